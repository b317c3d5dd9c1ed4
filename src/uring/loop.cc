#include "uring/loop.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace rmq {

// ---- frame memory ------------------------------------------------------------------------------------

// Under AddressSanitizer frames are not kept, so that a use after their end is found.
#if defined(__SANITIZE_ADDRESS__)
#define RMQ_KEEP_FRAMES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RMQ_KEEP_FRAMES 0
#endif
#endif
#ifndef RMQ_KEEP_FRAMES
#define RMQ_KEEP_FRAMES 1
#endif

namespace {
constexpr size_t frame_class_bytes = 128;
constexpr size_t frame_classes = 32;  // up to 4 KiB
constexpr size_t frames_kept_per_class = RMQ_KEEP_FRAMES ? 4096 : 0;

struct FreeFrame {
  FreeFrame* next;
};
struct FrameLists {
  std::array<FreeFrame*, frame_classes> head{};
  std::array<size_t, frame_classes> count{};
  ~FrameLists() {
    for (FreeFrame* f : head)
      while (f != nullptr) std::free(std::exchange(f, f->next));
    count.fill(frames_kept_per_class);  // whatever is freed after this goes straight back
  }
};
thread_local FrameLists frame_lists;
}  // namespace

void* frame_allocate(size_t bytes) {
  size_t c = (bytes - 1) / frame_class_bytes;
  if (c < frame_classes) {
    FreeFrame*& head = frame_lists.head[c];
    if (head != nullptr) {
      frame_lists.count[c]--;
      return std::exchange(head, head->next);
    }
    bytes = (c + 1) * frame_class_bytes;
  }
  void* p = std::malloc(bytes);
  check(p != nullptr);
  return p;
}

void frame_free(void* p, size_t bytes) noexcept {
  size_t c = (bytes - 1) / frame_class_bytes;
  if (c >= frame_classes || frame_lists.count[c] >= frames_kept_per_class) {
    std::free(p);
    return;
  }
  frame_lists.count[c]++;
  auto* f = static_cast<FreeFrame*>(p);
  f->next = frame_lists.head[c];
  frame_lists.head[c] = f;
}

// ---- wait lists --------------------------------------------------------------------------------------

void WaitList::add(Waiter& w) {
  check(w.list == nullptr);
  w.list = this;
  w.prev = tail_;
  w.next = nullptr;
  (tail_ != nullptr ? tail_->next : head_) = &w;
  tail_ = &w;
}

void WaitList::remove(Waiter& w) {
  check(w.list == this);
  (w.prev != nullptr ? w.prev->next : head_) = w.next;
  (w.next != nullptr ? w.next->prev : tail_) = w.prev;
  w.list = nullptr;
  w.prev = w.next = nullptr;
}

bool WaitList::wake_one() {
  if (head_ == nullptr) return false;
  Loop::current().fire(*head_, WaitResult::notified);
  return true;
}

void WaitList::wake_all() {
  while (wake_one()) {
  }
}

// ---- the loop ----------------------------------------------------------------------------------------

namespace {
thread_local Loop* current_loop = nullptr;
}

Loop& Loop::current() {
  check(current_loop != nullptr);
  return *current_loop;
}
Loop* Loop::current_or_null() {
  return current_loop;
}

Loop::Loop(Clock& clock, Random& random) : clock_(clock), random_(random) {
  check(current_loop == nullptr);
  current_loop = this;
}
Loop::~Loop() {
  check(current_loop == this);
  current_loop = nullptr;
}

bool Loop::before(const Waiter* a, const Waiter* b) {
  return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->sequence < b->sequence;
}

void Loop::sift_up(size_t i) {
  Waiter* w = heap_[i];
  while (i > 0) {
    size_t parent = (i - 1) / 2;
    if (!before(w, heap_[parent])) break;
    heap_[i] = heap_[parent];
    heap_[i]->heap_index = static_cast<uint32_t>(i);
    i = parent;
  }
  heap_[i] = w;
  w->heap_index = static_cast<uint32_t>(i);
}

void Loop::sift_down(size_t i) {
  Waiter* w = heap_[i];
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) child++;
    if (!before(heap_[child], w)) break;
    heap_[i] = heap_[child];
    heap_[i]->heap_index = static_cast<uint32_t>(i);
    i = child;
  }
  heap_[i] = w;
  w->heap_index = static_cast<uint32_t>(i);
}

void Loop::arm(Waiter& w, int64_t deadline_ns) {
  check(w.heap_index == UINT32_MAX);
  w.deadline_ns = deadline_ns;
  w.sequence = sequence_++;
  heap_.push_back(&w);
  sift_up(heap_.size() - 1);
}

void Loop::heap_remove(Waiter& w) {
  size_t i = w.heap_index;
  check(i < heap_.size());
  Waiter* last = heap_.back();
  heap_.pop_back();
  w.heap_index = UINT32_MAX;
  if (last == &w) return;
  heap_[i] = last;
  last->heap_index = static_cast<uint32_t>(i);
  sift_up(i);
  sift_down(last->heap_index);
}

void Loop::fire(Waiter& w, WaitResult why) {
  if (w.list != nullptr) w.list->remove(w);
  if (w.heap_index != UINT32_MAX) heap_remove(w);
  w.result = why;
  ready(w.coroutine);
}

void Loop::fire_due() {
  while (!heap_.empty() && heap_[0]->deadline_ns <= now_ns_) fire(*heap_[0], WaitResult::deadline);
}

void Loop::resume_ready() {
  batch_.swap(ready_);
  before_resume(batch_);
  for (auto h : batch_) h.resume();
  batch_.clear();
}

namespace {
struct Root {
  struct promise_type : detail::FrameMemory {
    bool* done = nullptr;
    promise_type(Task<void>&, bool& d) : done(&d) {}
    Root get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept { *done = true; }
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
  std::coroutine_handle<> handle;
};
Root run_root(Task<void>& t, bool&) {
  co_await t;
}
}  // namespace

void Loop::run(Task<void> root) {
  bool done = false;
  now_ns_ = clock_.mono_ns();  // not in the constructor: a derived loop may own its clock
  ready(run_root(root, done).handle);
  while (!done) {
    turns_++;
    int64_t deadline = !ready_.empty() ? 0 : heap_.empty() ? no_deadline : heap_[0]->deadline_ns;
    poll(deadline);
    now_ns_ = clock_.mono_ns();
    fire_due();
    resume_ready();
  }
}

}  // namespace rmq

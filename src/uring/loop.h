// Loop: what drives the coroutines of one thread. Completions, timers and wake-ups only put coroutines on
// a ready list; the loop resumes them later from its own turn, never inside submit, reap or a notify.
// Ring (io_uring) and the simulator derive from it. One Loop per thread; nothing here takes a lock.
//
// Waiter is the one way to sleep: a coroutine that waits in a list (an Event, a Semaphore, …), for a
// deadline, or for both; whatever comes first takes it out of the other.
#pragma once

#include <coroutine>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "uring/task.h"

namespace rmq {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t mono_ns() = 0;  // never goes back
  virtual int64_t wall_ms() = 0;  // milliseconds since 1970; may step
};

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t next() = 0;
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
};

class Loop;
class WaitList;

inline constexpr int64_t no_deadline = INT64_MAX;

enum class WaitResult : uint8_t { notified, deadline };

struct Waiter {
  std::coroutine_handle<> coroutine;
  WaitList* list = nullptr;
  Waiter* prev = nullptr;
  Waiter* next = nullptr;
  int64_t deadline_ns = no_deadline;
  uint64_t sequence = 0;  // equal deadlines fire in the order of arming
  uint32_t heap_index = UINT32_MAX;
  WaitResult result = WaitResult::notified;
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
};

// Waiters in arrival order. Destroyed only when empty.
class WaitList {
 public:
  WaitList() = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;
  ~WaitList() { check(head_ == nullptr); }

  void add(Waiter& w);
  void remove(Waiter& w);
  Waiter* front() const { return head_; }
  bool empty() const { return head_ == nullptr; }
  bool wake_one();  // false: nobody waits
  void wake_all();

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

class Loop {
 public:
  // The loop of this thread; it is a bug to ask where none is.
  static Loop& current();
  static Loop* current_or_null();

  Loop(Clock& clock, Random& random);
  virtual ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Clock& clock() { return clock_; }
  Random& random() { return random_; }
  // Monotonic time of this turn, nanoseconds: read once per turn. For deadlines.
  int64_t now_ns() const { return now_ns_; }
  int64_t wall_ms() { return clock_.wall_ms(); }

  // Resumes `h` in this or the next turn, in order. Only on the loop's own thread.
  void ready(std::coroutine_handle<> h) { ready_.push_back(h); }

  // For Waiters: arm puts it under a deadline, fire takes it out of list and heap and makes it ready.
  void arm(Waiter& w, int64_t deadline_ns);
  void fire(Waiter& w, WaitResult why);

  // Runs `root` to its end, turning the loop; then returns. The owner's thread.
  void run(Task<void> root);

  uint64_t turns() const { return turns_; }  // for the watchdog: changes while the loop turns

 protected:
  // One turn's waiting: submit, wait until something completes or `deadline_ns` (no_deadline: for ever;
  // 0: do not wait), call ready() for all that completed. The simulator moves its clock here.
  virtual void poll(int64_t deadline_ns) = 0;
  // Order of the ready list: the simulator shuffles it by seed.
  virtual void before_resume(std::vector<std::coroutine_handle<>>&) {}

 private:
  void resume_ready();
  void fire_due();
  void heap_remove(Waiter& w);
  void sift_up(size_t i);
  void sift_down(size_t i);
  static bool before(const Waiter* a, const Waiter* b);

  Clock& clock_;
  Random& random_;
  int64_t now_ns_ = 0;
  uint64_t turns_ = 0;
  uint64_t sequence_ = 0;
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> batch_;
  std::vector<Waiter*> heap_;
};

// Awaitable: waits in `list` (may be null: only the deadline) until notified or the deadline.
class [[nodiscard]] Wait {
 public:
  Wait(WaitList* list, int64_t deadline_ns) : list_(list), deadline_ns_(deadline_ns) {}
  Wait(const Wait&) = delete;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    waiter_.coroutine = h;
    if (list_ != nullptr) list_->add(waiter_);
    if (deadline_ns_ != no_deadline) Loop::current().arm(waiter_, deadline_ns_);
  }
  WaitResult await_resume() const noexcept { return waiter_.result; }

 private:
  WaitList* list_;
  int64_t deadline_ns_;
  Waiter waiter_;
};

// Sleeps without a way to be stopped: for short waits only. Long ones wait on a stop Event (sync.h).
inline Wait sleep_until(int64_t deadline_ns) {
  return Wait(nullptr, deadline_ns);
}
inline Wait sleep_for(int64_t ns) {
  return Wait(nullptr, Loop::current().now_ns() + ns);
}

// Lets everybody else who is ready run first.
struct [[nodiscard]] Yield {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) const { Loop::current().ready(h); }
  void await_resume() const noexcept {}
};

}  // namespace rmq

// What the timer service keeps in memory of the messages of rmq_sys_wheel_timer: when the next ones are due,
// 16 bytes each, and which are done, a bit each from the first that is not. Plain memory, no I/O, one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rmq::broker {

// A message that is to come.
struct PendingTimer {
  int64_t due = 0;  // monotonic clock, milliseconds, and in the lowest bit whether it follows the wall clock
  int64_t offset = 0;  // in the queue
  static PendingTimer make(int64_t due_ms, bool follows_wall, int64_t offset) {
    return {due_ms * 2 + (follows_wall ? 1 : 0), offset};
  }
  int64_t due_ms() const { return due >> 1; }
  bool follows_wall() const { return (due & 1) != 0; }
  bool before(const PendingTimer& o) const {
    return due_ms() != o.due_ms() ? due_ms() < o.due_ms() : offset < o.offset;
  }
};
static_assert(sizeof(PendingTimer) == 16);

// A heap of them, in blocks: it never copies itself to grow, and gives memory back as it shrinks.
class TimerHeap {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t bytes() const { return blocks_.size() * block_entries * sizeof(PendingTimer); }
  const PendingTimer& top() const { return blocks_[0][0]; }
  // How many are due at that time; `most` when it is that many or more.
  size_t due_count(int64_t now_ms, size_t most) const;
  void push(const PendingTimer& t);
  PendingTimer pop();
  void clear();
  // All that follow the wall clock become due so much later (or earlier).
  void shift_wall(int64_t ms);
  // Keeps the ones for which keep() says so.
  template <class F>
  void keep_if(F keep) {
    if (size_ == 0) return;
    size_t to = 0;
    for (size_t i = 0; i < size_; i++)
      if (keep(at(i))) at(to++) = at(i);
    size_ = to;
    heapify();
    trim();
  }
  // Forgets about half, those that come last: all that do not come before what is returned.
  PendingTimer forget_later_half();

 private:
  static constexpr size_t block_entries = 4096;
  static constexpr size_t arity = 4;
  PendingTimer& at(size_t i) { return blocks_[i / block_entries][i % block_entries]; }
  void sift_down(size_t i);
  void heapify();
  void trim();

  std::vector<std::unique_ptr<PendingTimer[]>> blocks_;
  size_t size_ = 0;
};

// Which offsets of a queue are done.
class DoneSet {
 public:
  // All below are done; it is not.
  int64_t low() const { return low_; }
  bool contains(int64_t offset) const;
  void add(int64_t offset);
  void add_below(int64_t offset);
  int64_t end() const { return base_ + static_cast<int64_t>(words_.size()) * 64; }  // none at or behind it
  size_t bytes() const { return words_.size() * sizeof(uint64_t); }

  // As text for a file: low, a blank, and the bits from there on (base64). Nothing: not such text.
  std::string encode() const;
  static std::optional<DoneSet> decode(std::string_view text);

 private:
  void move_low();

  int64_t base_ = 0;  // of words_[0], a multiple of 64
  int64_t low_ = 0;
  std::deque<uint64_t> words_;
};

}  // namespace rmq::broker

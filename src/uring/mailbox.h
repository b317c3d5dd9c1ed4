// Mailbox: values from any thread to one ring, in the order of each sender. Bounded: a full one refuses, and
// the sender decides what that means. Sending takes no lock; the consumer is woken by one eventfd write, and
// only when it sleeps.
//
// Cells go round in laps. A cell's state is 2 * lap when it may be filled in that lap and 2 * lap + 1 when it
// is full, so that zeroed memory is an empty box, and cells that were never used take no memory.
//
// No wake-up is lost: the sender first fills its cell, then looks at `sleeps_`; the consumer first sets
// `sleeps_`, then looks at the cell. These four are sequentially consistent, so at least one sees the other.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "uring/sync.h"
#include "uring/wakeup.h"

namespace rmq {

template <class T>
class Mailbox final : private Wakeup {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  // Made and destroyed on the consumer's thread; holds up to `max` values, rounded up to a power of two.
  // Senders must have ended before it dies.
  Mailbox(Ring& consumer, uint32_t max)
      : Wakeup(consumer), cells_(allocate(std::bit_ceil(max))), mask_(std::bit_ceil(max) - 1) {}
  ~Mailbox() {
    while (try_pop().has_value()) {
    }
    std::free(cells_);
  }

  // Any thread. False: full, or closed; then `v` is as it was.
  bool push(T&& v) {
    uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if (closed_.load(std::memory_order_relaxed)) return false;
      uint64_t seen = state(at).load(std::memory_order_acquire);
      uint64_t wanted = 2 * lap(at);
      if (seen == wanted) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) break;
      } else if (seen < wanted) {
        return false;  // the consumer is a whole lap behind
      } else {
        at = tail_.load(std::memory_order_relaxed);  // somebody else filled it
      }
    }
    new (cells_[at & mask_].value) T(std::move(v));
    state(at).store(2 * lap(at) + 1, std::memory_order_seq_cst);
    wake_consumer();
    return true;
  }
  bool push(const T& v) {
    T copy(v);
    return push(std::move(copy));
  }

  // The consumer's thread.
  std::optional<T> try_pop() {
    if (!has_value()) return std::nullopt;
    T* p = std::launder(reinterpret_cast<T*>(cells_[head_ & mask_].value));
    std::optional<T> v(std::move(*p));
    p->~T();
    state(head_).store(2 * (lap(head_) + 1), std::memory_order_release);
    head_++;
    return v;
  }

  // The consumer's thread, one at a time. Nothing: closed and empty.
  Task<std::optional<T>> pop() {
    for (;;) {
      std::optional<T> v = try_pop();
      if (v) co_return v;
      sleeps_.store(true, std::memory_order_seq_cst);
      bool came = has_value();
      bool over = closed_.load(std::memory_order_seq_cst);
      if (came || over) sleeps_.store(false, std::memory_order_relaxed);
      if (came) continue;
      if (over) co_return std::nullopt;
      co_await Wait(&waiting_, no_deadline);
    }
  }

  // Any thread. push() refuses from now on, though one that runs beside it may still get in.
  void close() {
    closed_.store(true, std::memory_order_seq_cst);
    wake_consumer();
  }

 private:
  struct Cell {
    uint64_t state;
    alignas(T) std::byte value[sizeof(T)];
  };
  static_assert(alignof(Cell) <= alignof(std::max_align_t));

  static Cell* allocate(size_t n) {
    void* p = std::calloc(n, sizeof(Cell));
    check(p != nullptr);
    return static_cast<Cell*>(p);
  }
  std::atomic_ref<uint64_t> state(uint64_t at) { return std::atomic_ref<uint64_t>(cells_[at & mask_].state); }
  uint64_t lap(uint64_t at) const { return at / (mask_ + 1); }
  bool has_value() { return state(head_).load(std::memory_order_seq_cst) == 2 * lap(head_) + 1; }

  void wake_consumer() {
    if (!sleeps_.load(std::memory_order_seq_cst)) return;
    if (sleeps_.exchange(false, std::memory_order_seq_cst)) wake();
  }
  void on_wake() override { waiting_.wake_all(); }

  Cell* const cells_;
  const uint64_t mask_;
  alignas(64) std::atomic<uint64_t> tail_{0};  // the next cell to fill
  alignas(64) std::atomic<bool> sleeps_{false};
  std::atomic<bool> closed_{false};
  alignas(64) uint64_t head_ = 0;  // the next cell to take; the consumer's
  WaitList waiting_;
};

}  // namespace rmq

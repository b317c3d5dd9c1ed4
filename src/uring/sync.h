// Waiting for each other on one loop: Event, Semaphore, Queue, and Scope, the owner of running tasks.
// All of one thread; between threads there is Mailbox (mailbox.h).
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "uring/loop.h"
#include "uring/task.h"

namespace rmq {

// A flag to wait for. As a stop flag it is also how everything that sleeps long is stopped:
// `if (co_await stop.wait_for(30 * ns_per_s)) co_return;`
class Event {
 public:
  bool is_set() const { return set_; }
  void set() {
    set_ = true;
    waiters_.wake_all();
  }
  void reset() { set_ = false; }
  // Wakes who waits now without setting the flag.
  void notify() { waiters_.wake_all(); }
  bool has_waiters() const { return !waiters_.empty(); }

  // True: set or notified. False: the deadline came first.
  Task<bool> wait() { return wait_until(no_deadline); }
  Task<bool> wait_for(int64_t ns) { return wait_until(Loop::current().now_ns() + ns); }
  Task<bool> wait_until(int64_t deadline_ns) {
    if (set_) co_return true;
    WaitResult r = co_await Wait(&waiters_, deadline_ns);
    co_return r == WaitResult::notified;
  }

 private:
  bool set_ = false;
  WaitList waiters_;
};

// A bounded number of slots, given out in order of asking.
class Semaphore {
 public:
  explicit Semaphore(uint32_t slots) : free_(slots) {}
  bool try_acquire() {
    if (free_ == 0 || !waiters_.empty()) return false;
    free_--;
    return true;
  }
  Task<void> acquire() {
    if (try_acquire()) co_return;
    co_await Wait(&waiters_, no_deadline);  // release() hands the slot over
  }
  void release() {
    if (!waiters_.wake_one()) free_++;
  }
  uint32_t free_slots() const { return free_; }

 private:
  uint32_t free_;
  WaitList waiters_;
};

// A bounded queue from many to one or more on the same loop.
template <class T>
class Queue {
 public:
  explicit Queue(size_t max) : max_(max) {}
  // False: full, or closed.
  bool push(T v) {
    if (closed_ || items_.size() >= max_) return false;
    items_.push_back(std::move(v));
    waiters_.wake_one();
    return true;
  }
  // Nothing: closed and empty.
  Task<std::optional<T>> pop() {
    while (items_.empty()) {
      if (closed_) co_return std::nullopt;
      co_await Wait(&waiters_, no_deadline);
    }
    std::optional<T> v(std::move(items_.front()));
    items_.pop_front();
    co_return v;
  }
  void close() {
    closed_ = true;
    waiters_.wake_all();
  }
  size_t size() const { return items_.size(); }

 private:
  const size_t max_;
  bool closed_ = false;
  std::deque<T> items_;
  WaitList waiters_;
};

// Owns tasks that run beside their spawner. spawn() runs the task now, up to its first suspension. join()
// resolves when all have ended; a Scope must be joined (empty) before it dies. Nothing is detached.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { check(running_ == 0); }

  void spawn(Task<void> t) {
    running_++;
    drive(std::move(t), *this);
  }
  Task<void> join() {
    while (running_ != 0) co_await Wait(&idle_, no_deadline);
  }
  uint32_t running() const { return running_; }

 private:
  struct Driver {
    struct promise_type : detail::FrameMemory {
      Driver get_return_object() const noexcept { return {}; }
      std::suspend_never initial_suspend() const noexcept { return {}; }
      std::suspend_never final_suspend() const noexcept { return {}; }
      void return_void() const noexcept {}
      [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    };
  };
  static Driver drive(Task<void> t, Scope& s) {
    co_await t;
    if (--s.running_ == 0) s.idle_.wake_all();
  }
  uint32_t running_ = 0;
  WaitList idle_;
};

}  // namespace rmq

// Task<T>: a coroutine that somebody awaits. It is lazy: it starts in the co_await that consumes it, runs
// on the awaiting thread, and its frame dies with the Task object. It is its own awaiter.
//
// Starting runs the child *inside* await_suspend and looks whether it finished at once. Then the parent
// goes on without having been suspended, so a loop over a million awaits that never block uses no stack
// in any build type (GCC without optimisation does not turn symmetric transfer into a jump).
//
// Frames come from per-thread free lists by size: a request allocates nothing after the first ones.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.h"

namespace rmq {

// Memory for coroutine frames; the same thread must free what it took.
void* frame_allocate(size_t bytes);
void frame_free(void* p, size_t bytes) noexcept;

namespace detail {

struct FrameMemory {
  static void* operator new(size_t n) { return frame_allocate(n); }
  static void operator delete(void* p, size_t n) noexcept { frame_free(p, n); }
};

struct TaskPromiseBase : FrameMemory {
  std::coroutine_handle<> continuation;
  bool starting = false;

  std::suspend_always initial_suspend() const noexcept { return {}; }
  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) const noexcept {
      TaskPromiseBase& p = h.promise();
      if (p.starting || !p.continuation) return std::noop_coroutine();
      return p.continuation;
    }
    void await_resume() const noexcept {}
  };
  Final final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
};

template <class T>
struct TaskPromise : TaskPromiseBase {
  std::optional<T> value;
  template <class U>
  void return_value(U&& v) {
    value.emplace(std::forward<U>(v));
  }
};
template <>
struct TaskPromise<void> : TaskPromiseBase {
  void return_void() const noexcept {}
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : detail::TaskPromise<T> {
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
  };

  Task(Task&& o) noexcept : h_(std::exchange(o.h_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (h_) h_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> parent) noexcept {
    auto& p = h_.promise();
    p.continuation = parent;
    p.starting = true;
    auto h = h_;
    h.resume();
    if (h.done()) return false;
    p.starting = false;
    return true;
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) {
      check(h_.promise().value.has_value());
      return std::move(*h_.promise().value);
    }
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> h) : h_(h) {}
  std::coroutine_handle<promise_type> h_;
};

}  // namespace rmq

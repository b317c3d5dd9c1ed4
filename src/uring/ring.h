// Ring: the Loop on io_uring. One per thread, made and destroyed on that thread, which is the only one that
// submits. A turn is one system call: it hands over all queued submissions, waits, and takes completions.
// Those only mark things done and put coroutines on the ready list; the loop resumes them after.
//
// Every submission has a Completion as its user_data. The kernel owns that object, and the memory which the
// operation names, until its last completion came. Op is the usual one, awaited by a coroutine and living in
// its frame; what completes many times (multishot accept and receive) is a Completion of its own.
//
// Floor: kernel 6.1, liburing 2.3. What is missing on a machine is told by probe.h.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "uring/loop.h"

namespace rmq {

class Offload;

class SystemClock final : public Clock {
 public:
  int64_t mono_ns() override { return system_mono_ns(); }
  int64_t wall_ms() override { return system_wall_ms(); }
};

// xoshiro256** seeded by the kernel. Not for secrets.
class SystemRandom final : public Random {
 public:
  SystemRandom();
  uint64_t next() override;

 private:
  uint64_t s_[4];
};

// Receives the results of a submission on the ring's thread. It must not resume a coroutine: it fires
// waiters or calls Loop::ready. `flags` are IORING_CQE_F_*; without F_MORE it was the last one.
class Completion {
 public:
  virtual void on_completion(int32_t result, uint32_t flags) = 0;

 protected:
  ~Completion() = default;
};

struct RingOptions {
  uint32_t sq_entries = 512;  // a full queue submits and goes on: this bounds a batch, not the work
  uint32_t cq_entries = 8192;
  uint32_t completions_per_turn = 256;
};

class Ring final : public Loop {
 public:
  // On the thread that will run it. Errors: errno of io_uring_setup; probe.h puts them in words.
  static Result<std::unique_ptr<Ring>> create(RingOptions options = {});
  // Nothing of anybody may be in flight, save what the ring does by itself (closes, cancels).
  ~Ring() override;

  static Ring& current() { return static_cast<Ring&>(Loop::current()); }

  // Queues a submission. `c` and what the entry points at stay until the last completion.
  void start(const io_uring_sqe& prepared, Completion& c);
  // Asks the kernel to stop what `target` waits for: it still gets its last completion (-ECANCELED, or
  // what came first), and `done` gets one for the request itself.
  void cancel(Completion& target, Completion& done);
  // Stops an operation that waits on a file descriptor and drops its result. It does not return before the
  // kernel let go of it, which for such operations is at once. For destructors.
  void cancel_now(Completion& target);
  // Closes a descriptor in the background, errors unseen.
  void close_fd(int fd);

  // The thread for what the ring cannot do; started with the first use.
  Offload& offload();
  uint16_t next_buffer_group() { return buffer_groups_++; }
  io_uring* raw() { return &ring_; }
  uint64_t in_flight() const { return in_flight_; }
  uint64_t enters() const { return enters_; }  // system calls, for tests and metrics

 private:
  struct Done {
    Completion* to;
    int32_t result;
    uint32_t flags;
  };
  class Ignore final : public Completion {
   public:
    void on_completion(int32_t, uint32_t) override {}
  };

  explicit Ring(RingOptions options);
  void poll(int64_t deadline_ns) override;
  void enter(int64_t deadline_ns);
  void wait_one();
  void take(std::vector<Done>& into, uint32_t max);
  void dispatch(const Done& d);
  io_uring_sqe* free_entry();

  SystemClock clock_;
  SystemRandom random_;
  RingOptions options_;
  io_uring ring_{};
  bool ready_to_use_ = false;
  uint64_t in_flight_ = 0;  // submissions whose last completion was not dispatched
  uint64_t enters_ = 0;
  uint16_t buffer_groups_ = 0;
  Ignore ignore_;
  std::vector<Done> taken_;    // of this turn
  std::vector<Done> backlog_;  // taken outside a turn, dispatched by the next
  std::unique_ptr<Offload> offload_;
};

// One operation. Prepare sqe() with the io_uring_prep_* functions, then await it once: the result is the
// completion's, a count or -errno. Lives in the coroutine's frame.
class [[nodiscard]] Op final : private Completion {
 public:
  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() { check(!in_flight_); }

  io_uring_sqe* sqe() { return reinterpret_cast<io_uring_sqe*>(sqe_); }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    waiter_.coroutine = h;
    start();
  }
  int32_t await_resume() const noexcept { return result_; }

  // Starts it and waits; at the deadline it is cancelled, both completions are awaited, and the result is
  // -ETIME, unless it succeeded in the meantime.
  Task<int32_t> finish_by(int64_t deadline_ns);

 private:
  class Finished;
  void start() {
    check(!in_flight_);
    in_flight_ = true;
    Ring::current().start(*sqe(), *this);
  }
  void on_completion(int32_t result, uint32_t flags) override;

  // An io_uring_sqe. As a member it is pedantically wrong: it ends in a flexible array.
  alignas(io_uring_sqe) std::byte sqe_[sizeof(io_uring_sqe)] = {};
  Waiter waiter_;
  int32_t result_ = 0;
  bool in_flight_ = false;
};

}  // namespace rmq

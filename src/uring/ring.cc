#include "uring/ring.h"

#include <errno.h>
#include <sys/random.h>

#include <bit>

#include "uring/offload.h"

namespace rmq {

SystemRandom::SystemRandom() {
  size_t got = 0;
  while (got < sizeof s_) {
    ssize_t n = getrandom(reinterpret_cast<char*>(s_) + got, sizeof s_ - got, 0);
    check(n > 0 || errno == EINTR);
    if (n > 0) got += static_cast<size_t>(n);
  }
  s_[0] |= 1;  // all zero would stay zero
}

uint64_t SystemRandom::next() {
  uint64_t result = std::rotl(s_[1] * 5, 7) * 9;
  uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = std::rotl(s_[3], 45);
  return result;
}

Ring::Ring(RingOptions options) : Loop(clock_, random_), options_(options) {}

Result<std::unique_ptr<Ring>> Ring::create(RingOptions options) {
  std::unique_ptr<Ring> r(new Ring(options));
  io_uring_params p{};
  // TASKRUN_FLAG lets a turn without submissions see, without a system call, that completions wait.
  p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
            IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
  p.cq_entries = options.cq_entries;
  int e = io_uring_queue_init_params(options.sq_entries, &r->ring_, &p);
  if (e < 0) return fail_errno(e, "io_uring_setup");
  r->ready_to_use_ = true;
  io_uring_ring_dontfork(&r->ring_);
  io_uring_register_ring_fd(&r->ring_);  // saves a descriptor look-up per turn; works without
  return r;
}

Ring::~Ring() {
  if (!ready_to_use_) return;
  offload_.reset();
  int64_t give_up_ns = system_mono_ns() + 10 * ns_per_s;
  while (in_flight_ != 0) {
    take(backlog_, UINT32_MAX);
    for (const Done& d : backlog_) {
      bool is_own = d.to == &ignore_;
      check(is_own);  // an operation outlived its ring: its memory may be gone
      dispatch(d);
    }
    backlog_.clear();
    if (in_flight_ == 0) break;
    check(system_mono_ns() < give_up_ns);
    enter(system_mono_ns() + ns_per_s / 10);
  }
  io_uring_queue_exit(&ring_);
}

Offload& Ring::offload() {
  if (!offload_) offload_ = std::make_unique<Offload>(*this);
  return *offload_;
}

io_uring_sqe* Ring::free_entry() {
  for (;;) {
    if (io_uring_sqe* e = io_uring_get_sqe(&ring_)) return e;
    enters_++;
    int r = io_uring_submit(&ring_);
    if (r == -EBUSY || r == -EAGAIN) {  // the kernel wants completions to be taken first
      io_uring_get_events(&ring_);
      take(backlog_, UINT32_MAX);
    } else {
      check(r >= 0 || r == -EINTR);
    }
  }
}

void Ring::start(const io_uring_sqe& prepared, Completion& c) {
  io_uring_sqe* e = free_entry();
  *e = prepared;
  io_uring_sqe_set_data(e, &c);
  in_flight_++;
}

void Ring::cancel(Completion& target, Completion& done) {
  io_uring_sqe e{};
  io_uring_prep_cancel(&e, &target, 0);
  start(e, done);
}

void Ring::close_fd(int fd) {
  io_uring_sqe e{};
  io_uring_prep_close(&e, fd);
  start(e, ignore_);
}

void Ring::cancel_now(Completion& target) {
  bool asked = false;
  for (;;) {
    take(backlog_, UINT32_MAX);
    bool gone = false;
    std::erase_if(backlog_, [&](const Done& d) {
      if (d.to != &target) return false;
      if ((d.flags & IORING_CQE_F_MORE) == 0) {
        gone = true;
        in_flight_--;
      }
      return true;
    });
    if (gone) return;
    if (!asked) cancel(target, ignore_);
    asked = true;
    wait_one();
  }
}

void Ring::take(std::vector<Done>& into, uint32_t max) {
  unsigned head = 0;
  uint32_t n = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    if (n == max) break;
    n++;
    into.push_back({static_cast<Completion*>(io_uring_cqe_get_data(cqe)), cqe->res, cqe->flags});
  }
  io_uring_cq_advance(&ring_, n);
}

void Ring::dispatch(const Done& d) {
  if ((d.flags & IORING_CQE_F_MORE) == 0) in_flight_--;
  d.to->on_completion(d.result, d.flags);
}

void Ring::wait_one() {
  enters_++;
  int r = io_uring_submit_and_wait(&ring_, 1);
  check(r >= 0 || r == -EINTR || r == -EAGAIN || r == -EBUSY);
}

void Ring::enter(int64_t deadline_ns) {
  if (deadline_ns == no_deadline) return wait_one();
  int64_t left_ns = deadline_ns == 0 ? 0 : deadline_ns - clock_.mono_ns();
  int r = 0;
  if (left_ns <= 0) {
    unsigned flags = __atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED);
    bool waits = (flags & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) != 0;
    if (io_uring_sq_ready(&ring_) == 0 && !waits) return;
    enters_++;
    r = io_uring_submit_and_get_events(&ring_);
  } else {
    __kernel_timespec t{left_ns / ns_per_s, left_ns % ns_per_s};
    io_uring_cqe* cqe = nullptr;
    enters_++;
    r = io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, &t, nullptr);
  }
  // EAGAIN, EBUSY: out of memory for requests, or completions must be taken first. The entries stay queued.
  check(r >= 0 || r == -ETIME || r == -EINTR || r == -EAGAIN || r == -EBUSY);
}

void Ring::poll(int64_t deadline_ns) {
  bool have = !backlog_.empty() || io_uring_cq_ready(&ring_) != 0;
  enter(have ? 0 : deadline_ns);
  taken_.clear();
  taken_.swap(backlog_);
  take(taken_, options_.completions_per_turn);
  for (const Done& d : taken_) dispatch(d);
}

// ---- Op ----------------------------------------------------------------------------------------------

void Op::on_completion(int32_t result, uint32_t) {
  result_ = result;
  in_flight_ = false;
  // No coroutine: its deadline fired in this turn and it is on the ready list already.
  if (waiter_.coroutine) Loop::current().fire(waiter_, WaitResult::notified);
}

class Op::Finished {
 public:
  Finished(Op& op, int64_t deadline_ns) : op_(op), deadline_ns_(deadline_ns) {}
  bool await_ready() const noexcept { return !op_.in_flight_; }
  void await_suspend(std::coroutine_handle<> h) {
    op_.waiter_.coroutine = h;
    if (deadline_ns_ != no_deadline) Loop::current().arm(op_.waiter_, deadline_ns_);
  }
  void await_resume() const noexcept { op_.waiter_.coroutine = nullptr; }

 private:
  Op& op_;
  int64_t deadline_ns_;
};

Task<int32_t> Op::finish_by(int64_t deadline_ns) {
  start();
  co_await Finished(*this, deadline_ns);
  if (!in_flight_) co_return result_;
  Op stop;
  io_uring_prep_cancel(stop.sqe(), static_cast<Completion*>(this), 0);
  co_await stop;
  co_await Finished(*this, no_deadline);
  if (result_ == -ECANCELED || result_ == -EINTR) co_return -ETIME;
  co_return result_;
}

}  // namespace rmq

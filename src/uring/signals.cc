#include "uring/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

namespace rmq {

static sigset_t ours() {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGTERM);
  sigaddset(&s, SIGINT);
  sigaddset(&s, SIGHUP);
  return s;
}

void Signals::block() {
  sigset_t s = ours();
  check(pthread_sigmask(SIG_BLOCK, &s, nullptr) == 0);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  check(sigaction(SIGPIPE, &ignore, nullptr) == 0);
}

Signals::Signals(Ring& ring) : ring_(ring), fd_(-1) {
  sigset_t s = ours();
  fd_ = ::signalfd(-1, &s, SFD_CLOEXEC);
  check(fd_ >= 0);
  arm();
}

Signals::~Signals() {
  if (armed_) ring_.cancel_now(*this);
  ::close(fd_);
}

// One is read ahead; the others wait in the kernel.
void Signals::arm() {
  armed_ = true;
  io_uring_sqe e{};
  io_uring_prep_read(&e, fd_, &info_, sizeof info_, 0);
  ring_.start(e, *this);
}

void Signals::on_completion(int32_t result, uint32_t) {
  armed_ = false;
  if (result == sizeof info_) {
    pending_ = static_cast<int>(info_.ssi_signo);
    waiting_.wake_all();
    return;
  }
  check(result == -EINTR || result == -EAGAIN);
  arm();
}

Task<int> Signals::next() {
  while (pending_ == 0 && !closed_) co_await Wait(&waiting_, no_deadline);
  if (closed_) co_return 0;
  int signal = std::exchange(pending_, 0);
  arm();
  co_return signal;
}

void Signals::close() {
  closed_ = true;
  waiting_.wake_all();
}

}  // namespace rmq

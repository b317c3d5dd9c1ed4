#include "uring/wakeup.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace rmq {

// Without EFD_NONBLOCK: the ring then waits for the counter by itself. wake() cannot block, as the counter
// would have to be near 2^64.
Wakeup::Wakeup(Ring& ring) : ring_(ring), fd_(eventfd(0, EFD_CLOEXEC)) {
  check(fd_ >= 0);
  arm();
}

Wakeup::~Wakeup() {
  ring_.cancel_now(*this);
  ::close(fd_);
}

void Wakeup::wake() {
  uint64_t one = 1;
  ssize_t n = 0;
  do n = ::write(fd_, &one, sizeof one);
  while (n < 0 && errno == EINTR);
  check(n == sizeof one);
}

void Wakeup::arm() {
  io_uring_sqe e{};
  io_uring_prep_read(&e, fd_, &count_, sizeof count_, 0);
  ring_.start(e, *this);
}

void Wakeup::on_completion(int32_t result, uint32_t) {
  check(result == sizeof count_ || result == -EINTR || result == -EAGAIN);
  arm();
  on_wake();
}

}  // namespace rmq

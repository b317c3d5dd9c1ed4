#include "uring/listener.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uring/sockaddr.h"
#include "uring/stream.h"

namespace rmq {

UringListener::UringListener(Ring& ring, RecvPool& pool, int fd)
    : ring_(ring), pool_(pool), fd_(fd), local_(local_address(fd)) {}

UringListener::~UringListener() {
  check(fd_ < 0);  // closed() was not awaited
}

Result<void> UringListener::listen() {
  constexpr int backlog = 1024;
  const int on = 1;
  ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // bind() has turned it off
  if (::listen(fd_, backlog) != 0) return fail_errno(errno, "listen");
  if (!closing_) arm();
  return {};
}

void UringListener::arm() {
  check(!armed_);
  armed_ = true;
  parked_ = false;
  io_uring_sqe e{};
  io_uring_prep_multishot_accept(&e, fd_, nullptr, nullptr, SOCK_CLOEXEC);
  ring_.start(e, accept_);
}

void UringListener::cancel() {
  cancels_++;
  ring_.cancel(accept_, cancel_done_);
}

void UringListener::on_cancelled() {
  cancels_--;
  if (!in_flight()) settled_.wake_all();
}

// The connection was gone before it was accepted (accept(2) lists these), or nothing happened.
static bool is_passing(int error) {
  switch (error) {
    case EINTR:
    case EAGAIN:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ECANCELED:
      return true;
    default:
      return false;
  }
}

void UringListener::on_accept(int32_t result, uint32_t flags) {
  if ((flags & IORING_CQE_F_MORE) == 0) armed_ = false;
  if (result >= 0) {
    if (closing_) {
      ring_.close_fd(result);
    } else {
      accepted_.push_back(result);
    }
  } else if (!is_passing(-result)) {
    error_ = -result;
  }
  if (!closing_) {
    bool room = accepted_.size() < queue_max;
    if (!armed_ && error_ == 0 && room) arm();
    if (armed_ && !parked_ && !room) {
      parked_ = true;
      cancel();
    }
  }
  changed_.notify();
  if (!in_flight()) settled_.wake_all();
}

bool UringListener::worth_telling(int error) {
  int64_t now_ns = ring_.now_ns();
  for (Told& t : told_) {
    if (t.error != error) continue;
    if (now_ns - t.at_ns < tell_again_ns) return false;
    t.at_ns = now_ns;
    return true;
  }
  told_.push_back({error, now_ns});
  return true;
}

std::unique_ptr<Stream> UringListener::make_stream(int fd) {
  SockAddr peer{};
  peer.bytes = sizeof peer.storage;
  if (::getpeername(fd, &peer.generic, &peer.bytes) != 0) {  // reset already
    ring_.close_fd(fd);
    return nullptr;
  }
  return std::make_unique<UringStream>(ring_, pool_, fd, local_address(fd), from_sockaddr(&peer.generic));
}

Task<Result<std::unique_ptr<Stream>>> UringListener::accept() {
  for (;;) {
    if (closing_) co_return fail(Errc::closed, "accept: closed");
    if (!accepted_.empty()) {
      int fd = accepted_.front();
      accepted_.pop_front();
      if (!armed_ && error_ == 0 && accepted_.empty()) arm();
      std::unique_ptr<Stream> s = make_stream(fd);
      if (s) co_return s;
      continue;
    }
    if (error_ != 0 && worth_telling(error_)) {
      bool limit = error_ == EMFILE || error_ == ENFILE || error_ == ENOMEM || error_ == ENOBUFS;
      co_return fail(limit ? Errc::limit : Errc::io, "accept", error_);
    }
    if (error_ != 0) {
      bool stopped = co_await stop_.wait_for(pause_ns);
      if (stopped) continue;
      error_ = 0;
    }
    if (!armed_) arm();
    co_await changed_.wait();
  }
}

void UringListener::close() {
  if (closing_) return;
  closing_ = true;
  if (armed_) cancel();
  while (!accepted_.empty()) {
    ring_.close_fd(accepted_.front());
    accepted_.pop_front();
  }
  stop_.set();
  changed_.notify();
}

Task<void> UringListener::closed() {
  close();
  while (in_flight()) co_await Wait(&settled_, no_deadline);
  if (fd_ >= 0) ring_.close_fd(std::exchange(fd_, -1));
}

}  // namespace rmq

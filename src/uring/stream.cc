#include "uring/stream.h"

#include <errno.h>
#include <sys/socket.h>

#include "uring/iov.h"

namespace rmq {

// Errc::timeout is kept for deadlines of ours: a peer that stopped acknowledging is an I/O error.
static Error socket_error(int result, const char* where) {
  bool closed = result == -ECONNRESET || result == -EPIPE;
  return {closed ? Errc::closed : Errc::io, -result, where};
}

UringStream::UringStream(Ring& ring, RecvPool& pool, int fd, const Address& local, const Address& peer)
    : ring_(ring), pool_(pool), fd_(fd), local_(local), peer_(peer) {
  arm();
}

UringStream::~UringStream() {
  check(fd_ < 0);  // closed() was not awaited
}

void UringStream::arm() {
  check(!armed_);
  armed_ = true;
  parked_ = false;
  io_uring_sqe e{};
  io_uring_prep_recv_multishot(&e, fd_, nullptr, 0, 0);
  e.flags |= IOSQE_BUFFER_SELECT;
  e.buf_group = pool_.group();
  ring_.start(e, receive_);
}

void UringStream::rearm() {
  if (!armed_ && !closing_ && !ended_) arm();
}

void UringStream::cancel_receive() {
  cancels_++;
  ring_.cancel(receive_, cancel_done_);
}

void UringStream::on_cancelled() {
  cancels_--;
  settle();
}

void UringStream::on_receive(int32_t result, uint32_t flags) {
  bool more = (flags & IORING_CQE_F_MORE) != 0;
  if (!more) armed_ = false;
  if ((flags & IORING_CQE_F_BUFFER) != 0) {
    uint32_t bytes = result > 0 && !closing_ ? static_cast<uint32_t>(result) : 0;
    if (RecvPool::Chunk* c = pool_.taken(flags >> IORING_CQE_BUFFER_SHIFT, bytes)) {
      (last_ != nullptr ? last_->next : first_) = c;
      last_ = c;
      queued_++;
    }
  }
  if (!closing_) {
    if (!more) on_end(result);
    if (armed_ && !parked_ && queued_ > queue_max) {
      parked_ = true;
      cancel_receive();
    }
    if (first_ != nullptr || ended_) readers_.wake_one();
  }
  settle();
}

// The multishot is over: because of us, of the kernel's state of affairs, or of the connection.
void UringStream::on_end(int32_t result) {
  switch (result) {
    case -ENOBUFS:
      pool_.starve(*this);
      return;
    case -ECANCELED:  // parked: recv() arms again, if it does not wait for us already
      if (queued_ <= queue_resume_at) arm();
      return;
    case -EINTR:
    case -EAGAIN:
      break;
    case 0:
      ended_ = true;
      end_ = {Errc::closed, 0, "recv: the peer closed"};
      return;
    default:
      if (result < 0) {
        ended_ = true;
        end_ = socket_error(result, "recv");
        return;
      }
  }
  if (queued_ <= queue_max) arm();
}

Result<RecvBuffer> UringStream::pop() {
  RecvPool::Chunk* c = first_;
  first_ = c->next;
  if (first_ == nullptr) last_ = nullptr;
  queued_--;
  if (!armed_ && !ended_ && queued_ <= queue_resume_at) {
    pool_.unstarve(*this);
    arm();
  }
  return pool_.hand_out(c);
}

Task<Result<RecvBuffer>> UringStream::recv(int64_t deadline_ns) {
  for (;;) {
    if (closing_) co_return fail(Errc::closed, "recv: closed");
    if (first_ != nullptr) co_return pop();
    if (ended_) co_return std::unexpected(end_);
    WaitResult why = co_await Wait(&readers_, deadline_ns);
    if (why == WaitResult::deadline && !closing_ && !ended_ && first_ == nullptr)
      co_return fail(Errc::timeout, "recv");
  }
}

Task<Result<void>> UringStream::send(std::span<const iovec> from) {
  IovCursor left(from);
  while (!left.empty()) {
    if (closing_) co_return fail(Errc::closed, "send: closed");
    std::span<const iovec> next = left.next();
    // MSG_WAITALL: the kernel goes on after a part by itself, mostly.
    unsigned flags = MSG_NOSIGNAL | MSG_WAITALL | (left.is_last() ? 0 : MSG_MORE);
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(next.data());
    m.msg_iovlen = next.size();
    Op op;
    if (next.size() == 1) {
      io_uring_prep_send(op.sqe(), fd_, next[0].iov_base, next[0].iov_len, static_cast<int>(flags));
    } else {
      io_uring_prep_sendmsg(op.sqe(), fd_, &m, flags);
    }
    sends_++;
    int32_t n = co_await op;
    sends_--;
    settle();
    if (n == -EINTR || n == -EAGAIN) continue;
    if (closing_) co_return fail(Errc::closed, "send: closed");
    if (n <= 0) co_return std::unexpected(socket_error(n == 0 ? -EPIPE : n, "send"));
    left.advance(static_cast<size_t>(n));
  }
  co_return Result<void>();
}

void UringStream::drop_queue() {
  while (first_ != nullptr) {
    RecvPool::Chunk* c = first_;
    first_ = c->next;
    pool_.give_back(c);
  }
  last_ = nullptr;
  queued_ = 0;
}

void UringStream::close() {
  if (closing_) return;
  closing_ = true;
  ::shutdown(fd_, SHUT_RDWR);  // ends a send that waits for room, too
  if (armed_) cancel_receive();
  pool_.unstarve(*this);
  drop_queue();
  readers_.wake_all();
}

Task<void> UringStream::closed() {
  close();
  while (in_flight()) co_await Wait(&settled_, no_deadline);
  if (fd_ >= 0) ring_.close_fd(std::exchange(fd_, -1));
}

}  // namespace rmq

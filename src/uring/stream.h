// UringStream: a connected socket on a ring. One multishot receive is in flight as long as there is room: it
// fills a short queue that recv() takes from. When nobody reads, the queue reaches its limit, the receive is
// cancelled, and the peer is slowed down by TCP; reading arms it again.
#pragma once

#include "uring/io.h"
#include "uring/recv_pool.h"
#include "uring/ring.h"
#include "uring/sync.h"

namespace rmq {

class UringStream final : public Stream, private RecvPool::Client {
 public:
  // Takes over `fd`, a connected socket that is not O_NONBLOCK.
  UringStream(Ring& ring, RecvPool& pool, int fd, const Address& local, const Address& peer);
  ~UringStream() override;
  Task<Result<RecvBuffer>> recv(int64_t deadline_ns) override;
  Task<Result<void>> send(std::span<const iovec> from) override;
  void close() override;
  Task<void> closed() override;
  const Address& peer() const override { return peer_; }
  const Address& local() const override { return local_; }

 private:
  static constexpr uint32_t queue_max = 32;       // chunks nobody read: above, receiving stops
  static constexpr uint32_t queue_resume_at = 8;  // and goes on when so few are left

  class Receive final : public Completion {
   public:
    explicit Receive(UringStream& s) : stream_(s) {}
    void on_completion(int32_t result, uint32_t flags) override { stream_.on_receive(result, flags); }

   private:
    UringStream& stream_;
  };
  class CancelDone final : public Completion {
   public:
    explicit CancelDone(UringStream& s) : stream_(s) {}
    void on_completion(int32_t, uint32_t) override { stream_.on_cancelled(); }

   private:
    UringStream& stream_;
  };

  void arm();
  void rearm() override;
  void cancel_receive();
  void on_receive(int32_t result, uint32_t flags);
  void on_end(int32_t result);
  void on_cancelled();
  void drop_queue();
  Result<RecvBuffer> pop();
  bool in_flight() const { return armed_ || cancels_ != 0 || sends_ != 0; }
  void settle() {
    if (!in_flight()) settled_.wake_all();
  }

  Ring& ring_;
  RecvPool& pool_;
  int fd_;
  bool armed_ = false;
  bool parked_ = false;  // the receive was cancelled for want of a reader
  bool closing_ = false;
  bool ended_ = false;  // nothing will come any more: end_ says why
  Error end_{Errc::closed, 0, "recv"};
  uint32_t cancels_ = 0;
  uint32_t sends_ = 0;
  uint32_t queued_ = 0;
  RecvPool::Chunk* first_ = nullptr;
  RecvPool::Chunk* last_ = nullptr;
  Receive receive_{*this};
  CancelDone cancel_done_{*this};
  WaitList readers_;
  WaitList settled_;
  Address local_;
  Address peer_;
};

}  // namespace rmq

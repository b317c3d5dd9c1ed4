// UringListener: a listening socket with one multishot accept in flight. Accepted sockets wait in a short
// queue; when nobody takes them accepting stops, and the kernel's backlog holds the others.
//
// Running out of descriptors or memory does not end it: accept() tells each kind of failure once a minute,
// pauses, and goes on.
#pragma once

#include <deque>
#include <vector>

#include "uring/recv_pool.h"
#include "uring/ring.h"
#include "uring/sync.h"

namespace rmq {

class UringListener final : public Listener {
 public:
  UringListener(Ring& ring, RecvPool& pool, int fd);  // takes over `fd`, which is bound
  ~UringListener() override;
  Result<void> listen() override;  // backlog 1024
  // One caller at a time. Errc::limit and Errc::io are facts to log: call it again.
  Task<Result<std::unique_ptr<Stream>>> accept() override;
  void close() override;
  Task<void> closed() override;
  const Address& local() const override { return local_; }

 private:
  static constexpr size_t queue_max = 64;
  static constexpr int64_t pause_ns = 100 * ns_per_ms;
  static constexpr int64_t tell_again_ns = 60 * ns_per_s;

  class Accept final : public Completion {
   public:
    explicit Accept(UringListener& l) : listener_(l) {}
    void on_completion(int32_t result, uint32_t flags) override { listener_.on_accept(result, flags); }

   private:
    UringListener& listener_;
  };
  class CancelDone final : public Completion {
   public:
    explicit CancelDone(UringListener& l) : listener_(l) {}
    void on_completion(int32_t, uint32_t) override { listener_.on_cancelled(); }

   private:
    UringListener& listener_;
  };
  struct Told {
    int error;
    int64_t at_ns;
  };

  void arm();
  void cancel();
  void on_accept(int32_t result, uint32_t flags);
  void on_cancelled();
  bool worth_telling(int error);
  std::unique_ptr<Stream> make_stream(int fd);
  bool in_flight() const { return armed_ || cancels_ != 0; }

  Ring& ring_;
  RecvPool& pool_;
  int fd_;
  bool armed_ = false;
  bool parked_ = false;
  bool closing_ = false;
  int error_ = 0;  // why accepting stopped, not yet looked at by accept()
  uint32_t cancels_ = 0;
  std::deque<int> accepted_;
  std::vector<Told> told_;
  Event changed_;  // notified, never set
  Event stop_;
  WaitList settled_;
  Accept accept_{*this};
  CancelDone cancel_done_{*this};
  Address local_;
};

}  // namespace rmq

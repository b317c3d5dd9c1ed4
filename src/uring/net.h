// UringNet: TCP through a ring. Accepting and receiving are multishot; names are resolved on the ring's
// Offload thread. One per ring, on the ring's thread, and it outlives its streams, listeners and every
// RecvBuffer they gave.
//
// Who keeps RecvBuffers for long takes them from all connections of the ring: beyond three quarters of the
// pool, received bytes are copied into allocations of their size (recv_pool.h).
#pragma once

#include <memory>

#include "uring/io.h"
#include "uring/recv_pool.h"
#include "uring/ring.h"

namespace rmq {

class UringNet final : public Net {
 public:
  static Result<std::unique_ptr<UringNet>> create(Ring& ring, RecvPoolOptions options = {});
  // An empty host and "0.0.0.0" are IPv4 and IPv6 where the machine has both.
  Task<Result<std::unique_ptr<Listener>>> bind(std::string host, uint16_t port) override;
  // Tries each address of a name until one answers. TCP_NODELAY is on, as on accepted streams.
  Task<Result<std::unique_ptr<Stream>>> connect(std::string host, uint16_t port,
                                                int64_t deadline_ns) override;
  RecvPool& pool() { return *pool_; }

 private:
  UringNet(Ring& ring, std::unique_ptr<RecvPool> pool) : ring_(ring), pool_(std::move(pool)) {}
  Task<Result<std::vector<Address>>> resolve(std::string host, uint16_t port, int64_t deadline_ns);
  Task<Result<std::unique_ptr<Stream>>> connect_one(Address to, int64_t deadline_ns);

  Ring& ring_;
  std::unique_ptr<RecvPool> pool_;
};

}  // namespace rmq

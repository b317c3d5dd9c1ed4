// Requests of ours to another server (a broker to its name servers): one connection an address, opened when
// it is needed, opened again when it broke. All on one loop.
#pragma once

#include <memory>
#include <string>

#include "daemon/connection.h"

namespace rmq {

class RemotingClient {
 public:
  // `address` is host:port; the host may be a name.
  RemotingClient(Net& net, std::string address) : net_(net), address_(std::move(address)) {}
  const std::string& address() const { return address_; }

  template <class Cmd>
  Task<Result<std::unique_ptr<RemoteAnswer>>> call(typename Cmd::Request header, std::string body,
                                                   int64_t deadline_ns) {
    auto c = co_await connection(deadline_ns);
    if (!c) co_return std::unexpected(c.error());
    int32_t opaque = (*c)->next_opaque();
    std::string frame;
    Cmd::append_request(frame, opaque, header, body);
    auto answer = co_await (*c)->call(std::move(frame), opaque, deadline_ns);
    co_return answer;
  }
  // How many connections were opened so far: while it stays the same and the connection is open, requests go
  // over one connection.
  uint64_t opened() const { return opened_; }
  bool is_open() const { return connection_ && connection_->is_open(); }
  // `wake` is set when the connection that is open now closes; it must outlive that, and so stop(). False:
  // none is open.
  bool wake_at_close(Event& wake) {
    if (!is_open()) return false;
    connection_->hold(wake);
    return true;
  }
  // Closes the connection and resolves when it is gone. Calls after it fail with Errc::closed.
  Task<void> stop();

 private:
  Task<Result<std::shared_ptr<Connection>>> connection(int64_t deadline_ns);

  Net& net_;
  const std::string address_;
  Scope scope_;
  std::shared_ptr<Connection> connection_;
  uint64_t opened_ = 0;
  bool stopped_ = false;
  Semaphore connecting_{1};
};

// "host:port" in two; Errc::bad_input.
Result<std::pair<std::string, uint16_t>> split_host_port(std::string_view address);

}  // namespace rmq

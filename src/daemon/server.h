// Listens and makes a Connection of each stream, up to a limit. Owns its connections' tasks.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "daemon/connection.h"

namespace rmq {

class Server {
 public:
  Server(Net& net, Service& service) : net_(net), service_(service) {}
  // Begins to accept at host:port, or at an address that was bound before; the port that it got is port().
  // Call one of the two, once, on the loop's thread; after an error, stop().
  Task<Result<void>> listen(std::string host, uint16_t port);
  Result<void> listen(std::unique_ptr<Listener> bound);
  // Stops accepting; connections go on.
  void stop_accepting();
  // Stops accepting, closes all connections and resolves when none is left.
  Task<void> stop();
  uint16_t port() const { return port_; }
  size_t connections() const { return open_.size(); }

 private:
  Task<void> accept_loop();
  Task<void> serve(std::shared_ptr<Connection> c);

  Net& net_;
  Service& service_;
  std::unique_ptr<Listener> listener_;
  uint16_t port_ = 0;
  Scope scope_;
  std::unordered_set<std::shared_ptr<Connection>> open_;
};

// Takes an address for a daemon. One that is in use is tried again for 3 s: the kernel closes what the ring
// of a killed process held a moment after that process has gone, and who starts at once finds its own old
// port.
Task<Result<std::unique_ptr<Listener>>> bind_at_start(Net& net, std::string host, uint16_t port);

// Why a daemon cannot listen at host:port, and what its operator can do. `from` is the key of the
// configuration that the port comes from, or as "listenPort - 2".
std::string cannot_listen_text(const std::string& host, int64_t port, std::string_view from,
                               const Error& why);

}  // namespace rmq

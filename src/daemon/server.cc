#include "daemon/server.h"

#include <cerrno>

#include "base/log.h"

namespace rmq {

static constexpr int64_t accept_retry_ns = 100 * ns_per_ms;
static constexpr int64_t taken_port_wait_ns = 3 * ns_per_s, taken_port_again_ns = 50 * ns_per_ms;

Task<Result<void>> Server::listen(std::string host, uint16_t port) {
  CO_TRY_VAR(bound, co_await bind_at_start(net_, std::move(host), port));
  co_return listen(std::move(bound));
}

Result<void> Server::listen(std::unique_ptr<Listener> bound) {
  listener_ = std::move(bound);
  TRY(listener_->listen());
  port_ = listener_->local().port;
  scope_.spawn(accept_loop());
  return {};
}

Task<void> Server::accept_loop() {
  for (;;) {
    auto stream = co_await listener_->accept();
    if (!stream) {
      if (stream.error().code == Errc::closed) break;
      // Out of descriptors or memory: the next one may find some.
      service_.faults.accept_failed++;
      log(LogLevel::error, ids::peer_limit, "a connection was not accepted",
          {{"REASON", to_string(stream.error())}});
      co_await sleep_for(accept_retry_ns);
      continue;
    }
    if (open_.size() >= limits::connections_max) {
      service_.faults.too_many++;
      log(LogLevel::warning, ids::peer_limit, "connection refused: too many are open",
          {{"CLIENT", (*stream)->peer().text()}});
      (*stream)->close();
      co_await (*stream)->closed();
      continue;
    }
    scope_.spawn(serve(std::make_shared<Connection>(std::move(*stream), &service_, port_)));
  }
}

Task<void> Server::serve(std::shared_ptr<Connection> c) {
  open_.insert(c);
  co_await c->serve();
  open_.erase(c);
}

void Server::stop_accepting() {
  if (listener_) listener_->close();
}

Task<void> Server::stop() {
  stop_accepting();
  for (const auto& c : open_) c->close();
  co_await scope_.join();
  if (listener_) co_await listener_->closed();
}

Task<Result<std::unique_ptr<Listener>>> bind_at_start(Net& net, std::string host, uint16_t port) {
  const int64_t deadline_ns = Loop::current().now_ns() + taken_port_wait_ns;
  for (bool said = false;; said = true) {
    auto bound = co_await net.bind(host, port);
    const bool taken = !bound && bound.error().sys == EADDRINUSE;
    if (!taken || Loop::current().now_ns() >= deadline_ns) co_return bound;
    if (!said)
      log(LogLevel::info, "port " + std::to_string(port) +
                              " is taken: tried again for 3 s, as a killed rmqd "
                              "gives its ports back a moment later");
    co_await sleep_for(taken_port_again_ns);
  }
}

std::string cannot_listen_text(const std::string& host, int64_t port, std::string_view from,
                               const Error& why) {
  const std::string number = std::to_string(port), k(from.substr(0, from.find(' ')));
  std::string text = "cannot listen at " + host + ":" + number + " (" + std::string(from) + "): ";
  if (why.sys == EADDRINUSE)
    return text + "the port is taken. Stop what has it, or set another " + k +
           "; 'ss -ltnp sport = :" + number + "' says who it is";
  if (why.sys == EADDRNOTAVAIL || why.code == Errc::not_found)
    return text + "that is no address of this host. Set bindAddress to one, or to 0.0.0.0 for all";
  if (why.sys == EACCES) return text + "ports below 1024 need CAP_NET_BIND_SERVICE. Set another " + k;
  return text + "bindAddress or " + k + " cannot be used";
}

}  // namespace rmq

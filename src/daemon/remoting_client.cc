#include "daemon/remoting_client.h"

#include <charconv>

namespace rmq {

Result<std::pair<std::string, uint16_t>> split_host_port(std::string_view address) {
  size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return fail(Errc::bad_input, "address is not host:port");
  std::string_view host = address.substr(0, colon), digits = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  uint16_t port = 0;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (ec != std::errc{} || end != digits.data() + digits.size() || port == 0)
    return fail(Errc::bad_input, "port is not a number from 1 to 65535");
  return std::pair{std::string(host), port};
}

Task<Result<std::shared_ptr<Connection>>> RemotingClient::connection(int64_t deadline_ns) {
  co_await connecting_.acquire();
  if (!stopped_ && !(connection_ && connection_->is_open())) {
    auto at = split_host_port(address_);
    if (!at) {
      connecting_.release();
      co_return std::unexpected(at.error());
    }
    auto stream = co_await net_.connect(at->first, at->second, deadline_ns);
    if (!stream) {
      connecting_.release();
      co_return std::unexpected(stream.error());
    }
    connection_ = std::make_shared<Connection>(std::move(*stream), nullptr, 0);
    opened_++;
    scope_.spawn(connection_->serve());
  }
  connecting_.release();
  if (stopped_) {
    if (connection_) connection_->close();
    co_return fail(Errc::closed, "client is stopped");
  }
  co_return connection_;
}

Task<void> RemotingClient::stop() {
  stopped_ = true;
  if (connection_) connection_->close();
  co_await scope_.join();
}

}  // namespace rmq

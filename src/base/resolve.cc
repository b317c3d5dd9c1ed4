#include "base/resolve.h"

#include <sys/socket.h>

namespace rmq {

int resolve_host(const std::string& host, const char* port, int flags, addrinfo*& found) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  found = nullptr;
  const int error = getaddrinfo(host.c_str(), port, &hints, &found);
  if (error == 0 || host != "localhost") return error;
  // That name is known everywhere (RFC 6761, 6.3). AI_ADDRCONFIG does not count the loopback device.
  hints.ai_flags = AI_NUMERICHOST;
  return getaddrinfo("127.0.0.1", port, &hints, &found);
}

}  // namespace rmq

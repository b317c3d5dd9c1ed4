// Text forms of addresses.
#include <arpa/inet.h>

#include <charconv>
#include <cstring>

#include "uring/io.h"

namespace rmq {

std::string Address::ip_text() const {
  char b[INET6_ADDRSTRLEN];
  check(inet_ntop(v6 ? AF_INET6 : AF_INET, ip, b, sizeof b) != nullptr);
  return b;
}

std::string Address::text() const {
  std::string host = ip_text();
  if (v6) host = "[" + host + "]";
  return host + ":" + std::to_string(port);
}

Result<Address> Address::parse(std::string_view s) {
  size_t colon = s.rfind(':');
  if (colon == std::string_view::npos) return fail(Errc::bad_input, "address without a port");
  std::string host(s.substr(0, colon));
  std::string_view digits = s.substr(colon + 1);
  Address a;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), a.port);
  if (ec != std::errc{} || end != digits.data() + digits.size() || digits.empty())
    return fail(Errc::bad_input, "port is not a number from 0 to 65535");
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (inet_pton(AF_INET, host.c_str(), a.ip) == 1) return a;
  a.v6 = true;
  if (inet_pton(AF_INET6, host.c_str(), a.ip) == 1) return a;
  return fail(Errc::bad_input, "not an IP address");
}

}  // namespace rmq

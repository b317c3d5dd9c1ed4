// Between Address and what the socket calls take. IPv4 addresses mapped into IPv6, as a socket for both
// families gives them, are IPv4.
#pragma once

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "uring/io.h"

namespace rmq {

struct SockAddr {
  union {
    sockaddr generic;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_storage storage;
  };
  socklen_t bytes = 0;
};

inline SockAddr to_sockaddr(const Address& a) {
  SockAddr s{};
  if (a.v6) {
    s.v6.sin6_family = AF_INET6;
    s.v6.sin6_port = htons(a.port);
    memcpy(&s.v6.sin6_addr, a.ip, 16);
    s.bytes = sizeof s.v6;
  } else {
    s.v4.sin_family = AF_INET;
    s.v4.sin_port = htons(a.port);
    memcpy(&s.v4.sin_addr, a.ip, 4);
    s.bytes = sizeof s.v4;
  }
  return s;
}

inline Address from_sockaddr(const sockaddr* p) {
  Address a;
  if (p->sa_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, p, sizeof v4);
    a.port = ntohs(v4.sin_port);
    memcpy(a.ip, &v4.sin_addr, 4);
  } else if (p->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    memcpy(&v6, p, sizeof v6);
    a.port = ntohs(v6.sin6_port);
    a.v6 = !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    if (a.v6) {
      memcpy(a.ip, &v6.sin6_addr, 16);
    } else {
      memcpy(a.ip, v6.sin6_addr.s6_addr + 12, 4);
    }
  }
  return a;
}

inline Address local_address(int fd) {
  SockAddr s{};
  s.bytes = sizeof s.storage;
  if (getsockname(fd, &s.generic, &s.bytes) != 0) return {};
  return from_sockaddr(&s.generic);
}

}  // namespace rmq

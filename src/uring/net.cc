#include "uring/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/resolve.h"
#include "uring/listener.h"
#include "uring/offload.h"
#include "uring/sockaddr.h"
#include "uring/stream.h"

namespace rmq {

namespace {

class ResolveJob final : public Offload::Job {
 public:
  explicit ResolveJob(std::string host) : host_(std::move(host)) {}
  void work() override {
    addrinfo* list = nullptr;
    error = resolve_host(host_, nullptr, AI_ADDRCONFIG, list);
    if (error != 0) return;
    for (addrinfo* i = list; i != nullptr; i = i->ai_next) {
      if (i->ai_family == AF_INET || i->ai_family == AF_INET6) found.push_back(from_sockaddr(i->ai_addr));
    }
    freeaddrinfo(list);
  }
  int error = 0;  // EAI_*
  std::vector<Address> found;

 private:
  std::string host_;
};

std::optional<Address> numeric(const std::string& host, uint16_t port) {
  Address a;
  a.port = port;
  if (inet_pton(AF_INET, host.c_str(), a.ip) == 1) return a;
  a.v6 = true;
  if (inet_pton(AF_INET6, host.c_str(), a.ip) == 1) return a;
  return std::nullopt;
}

// Blocking mode on purpose: the ring then waits for readiness by itself.
Result<int> tcp_socket(bool v6) {
  int fd = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE) return fail(Errc::limit, "socket", errno);
    return fail_errno(errno, "socket");
  }
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted sockets inherit it
  return fd;
}

// Takes the address `fd` is bound to for us alone. Two sockets with SO_REUSEADDR may be bound to one address
// as long as neither listens, so bind() alone keeps nobody out; without that option it would fail for the
// connections of a process that was here before. A socket that has listened, and was then shut down, stays
// bound, refuses connections, and shares its address with nobody once the option is off again. False: errno.
bool keep_address(int fd) {
  const int off = 0;
  if (::listen(fd, 1) != 0) return false;
  ::shutdown(fd, SHUT_RD);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
  return true;
}

Result<int> bound_socket(const Address& at, bool both_families) {
  TRY_VAR(fd, tcp_socket(at.v6));
  int on = 1;
  int v6_only = both_families ? 0 : 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.v6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  SockAddr sa = to_sockaddr(at);
  bool bound = ::bind(fd, &sa.generic, sa.bytes) == 0;
  if (bound && at.port != 0) bound = keep_address(fd);  // a port that the kernel chose is lost by that
  if (bound) return fd;
  int error = errno;
  ::close(fd);
  return fail_errno(error, "bind");
}

}  // namespace

Result<std::unique_ptr<UringNet>> UringNet::create(Ring& ring, RecvPoolOptions options) {
  TRY_VAR(pool, RecvPool::create(ring, options));
  return std::unique_ptr<UringNet>(new UringNet(ring, std::move(pool)));
}

Task<Result<std::unique_ptr<Listener>>> Net::listen(std::string host, uint16_t port) {
  auto bound = co_await bind(std::move(host), port);
  if (!bound) co_return bound;
  auto listening = (*bound)->listen();
  if (listening) co_return bound;
  (*bound)->close();
  co_await (*bound)->closed();
  co_return std::unexpected(listening.error());
}

Task<Result<std::unique_ptr<Listener>>> UringNet::bind(std::string host, uint16_t port) {
  Address at;
  at.port = port;
  bool all = host.empty() || host == "0.0.0.0";
  Result<int> fd = fail(Errc::unsupported, "bind");
  if (all) {
    at.v6 = true;
    fd = bound_socket(at, true);
    bool no_v6 = !fd && (fd.error().sys == EAFNOSUPPORT || fd.error().sys == EADDRNOTAVAIL);
    at.v6 = false;
    if (no_v6) fd = bound_socket(at, false);
  } else {
    Result<std::vector<Address>> found = co_await resolve(std::move(host), port, no_deadline);
    if (!found) co_return std::unexpected(found.error());
    fd = bound_socket(found->front(), false);
  }
  if (!fd) co_return std::unexpected(fd.error());
  std::unique_ptr<Listener> l = std::make_unique<UringListener>(ring_, *pool_, *fd);
  co_return l;
}

Task<Result<std::vector<Address>>> UringNet::resolve(std::string host, uint16_t port, int64_t deadline_ns) {
  std::optional<Address> direct = numeric(host, port);
  if (direct) co_return std::vector<Address>{*direct};
  auto job = std::make_shared<ResolveJob>(std::move(host));
  bool ran = co_await ring_.offload().run(job, deadline_ns);
  if (!ran) co_return fail(Errc::timeout, "resolve a name");
  if (job->error == EAI_AGAIN) co_return fail(Errc::io, "resolve a name: the resolver does not answer");
  if (job->error != 0 || job->found.empty()) co_return fail(Errc::not_found, "resolve a name");
  for (Address& a : job->found) a.port = port;
  co_return std::move(job->found);
}

Task<Result<std::unique_ptr<Stream>>> UringNet::connect(std::string host, uint16_t port,
                                                        int64_t deadline_ns) {
  Result<std::vector<Address>> found = co_await resolve(std::move(host), port, deadline_ns);
  if (!found) co_return std::unexpected(found.error());
  Error last{Errc::not_found, 0, "connect"};
  for (const Address& to : *found) {
    Result<std::unique_ptr<Stream>> s = co_await connect_one(to, deadline_ns);
    if (s) co_return s;
    last = s.error();
    if (last.code == Errc::timeout) break;
  }
  co_return std::unexpected(last);
}

Task<Result<std::unique_ptr<Stream>>> UringNet::connect_one(Address to, int64_t deadline_ns) {
  Result<int> fd = tcp_socket(to.v6);
  if (!fd) co_return std::unexpected(fd.error());
  SockAddr sa = to_sockaddr(to);
  int32_t r = -EINTR;
  while (r == -EINTR || r == -EAGAIN) {
    Op op;
    io_uring_prep_connect(op.sqe(), *fd, &sa.generic, sa.bytes);
    r = co_await op.finish_by(deadline_ns);
  }
  if (r < 0) {
    ring_.close_fd(*fd);
    if (r == -ETIME) co_return fail(Errc::timeout, "connect");
    co_return fail_errno(r, "connect");
  }
  std::unique_ptr<Stream> s = std::make_unique<UringStream>(ring_, *pool_, *fd, local_address(*fd), to);
  co_return s;
}

}  // namespace rmq

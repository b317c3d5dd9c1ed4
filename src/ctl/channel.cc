// Idea: see channel.h. Sockets are non-blocking underneath and every wait is a poll(2) with what is left of
// the deadline, so that a peer that goes silent costs the timeout and not more.

#include "ctl/channel.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/resolve.h"
#include "base/time.h"

namespace rmq::ctl {

namespace {

volatile sig_atomic_t stop_flag = 0;

std::string errno_text(int err) {
  char buf[128];
  return strerror_r(err, buf, sizeof buf);
}

std::string advice_for(const Peer& peer) {
  if (peer.what == "name server") return "check that it runs, and the address given by -n or NAMESRV_ADDR";
  return "check that it runs, and that its address (brokerIP1) can be reached from here";
}

std::unexpected<Failure> unreachable(const Peer& peer, std::string_view reason) {
  return fail(Exit::unreachable,
              fmt::format("cannot reach {}: {}; {}", peer.to_string(), reason, advice_for(peer)));
}

}  // namespace

std::string one_line_remark(std::string_view remark) {
  std::string out;
  for (char c : remark) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out;
}

void watch_for_stop() {
  struct sigaction action{};
  action.sa_handler = [](int) { stop_flag = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}
bool stop_asked() {
  return stop_flag != 0;
}

Deadline Deadline::after_ms(int64_t ms) {
  return {system_mono_ns() + ms * ns_per_ms};
}
int64_t Deadline::left_ms() const {
  int64_t left = at_ns - system_mono_ns();
  return left <= 0 ? 0 : (left + ns_per_ms - 1) / ns_per_ms;
}

Channel::Fd::~Fd() {
  if (value >= 0) close(value);
}

// Readiness within the deadline; errors and hang-ups count as ready, the call that follows says what it was.
static bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    auto left = static_cast<int>(std::min<int64_t>(deadline.left_ms(), 1'000'000));
    int n = poll(&p, 1, left);
    if (n > 0) return true;
    if (n == 0 && deadline.left_ms() == 0) return false;
    if (n < 0 && (errno != EINTR || stop_asked())) return false;
  }
}

Outcome<Channel::Fd> Channel::connect_one(const void* addrinfo, const Peer& peer, Deadline deadline) {
  const auto* a = static_cast<const ::addrinfo*>(addrinfo);
  Fd fd(socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.value < 0) return unreachable(peer, errno_text(errno));
  int one = 1;
  setsockopt(fd.value, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (::connect(fd.value, a->ai_addr, a->ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return unreachable(peer, errno_text(errno));
  if (!wait_for(fd.value, POLLOUT, deadline))
    return unreachable(peer, "no answer to the connection attempt in time");
  int err = 0;
  socklen_t size = sizeof err;
  getsockopt(fd.value, SOL_SOCKET, SO_ERROR, &err, &size);
  if (err != 0) return unreachable(peer, errno_text(err));
  return fd;
}

Outcome<Channel> Channel::connect(Peer peer, int64_t timeout_ms) {
  Deadline deadline = Deadline::after_ms(timeout_ms);
  addrinfo* found = nullptr;
  std::string port = fmt::format("{}", peer.address.port);
  int err = resolve_host(peer.address.host, port.c_str(), 0, found);
  if (err != 0) return unreachable(peer, gai_strerror(err));
  Outcome<Fd> fd = unreachable(peer, "the name has no address");
  for (addrinfo* a = found; a; a = a->ai_next) {
    fd = connect_one(a, peer, deadline);
    if (fd) break;
  }
  freeaddrinfo(found);
  if (!fd) return std::unexpected(fd.error());
  return Channel(std::move(*fd), std::move(peer), timeout_ms);
}

std::unexpected<Failure> Channel::broken(std::string_view reason) const {
  return fail(Exit::unreachable, fmt::format("{}: {}", peer_.to_string(), reason));
}

std::unexpected<Failure> Channel::malformed(std::string_view what, const Error& e) const {
  return fail(Exit::bad_input, fmt::format("{} gave a malformed answer to {} ({})", peer_.to_string(), what,
                                           rmq::to_string(e)));
}

std::unexpected<Failure> Channel::refusal(const Reply& reply) const {
  int32_t code = reply.command.code;
  std::string_view name = proto::name_of(reply.code());
  std::string text =
      fmt::format("{} refused: {} ({})", peer_.to_string(), name.empty() ? "code" : name, code);
  if (!reply.command.remark.empty()) text += ": " + one_line_remark(reply.command.remark);
  return fail(Exit::refused, std::move(text), code);
}

Outcome<void> Channel::write(std::string_view bytes) {
  Deadline deadline = Deadline::after_ms(timeout_ms_);
  while (!bytes.empty()) {
    ssize_t n = ::send(fd_.value, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == EINTR && !stop_asked()) continue;
    if (errno != EAGAIN) return broken(fmt::format("the connection broke ({})", errno_text(errno)));
    if (!wait_for(fd_.value, POLLOUT, deadline))
      return broken(fmt::format("took no more bytes for {}ms", timeout_ms_));
  }
  return {};
}

Outcome<bool> Channel::receive(Deadline deadline) {
  char buffer[64 << 10];
  ssize_t n = recv(fd_.value, buffer, sizeof buffer, 0);
  if (n < 0 && errno == EAGAIN) {
    if (!wait_for(fd_.value, POLLIN, deadline)) return false;
    n = recv(fd_.value, buffer, sizeof buffer, 0);
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n < 0) return broken(fmt::format("the connection broke ({})", errno_text(errno)));
  if (n == 0)
    return broken(parser_->held_bytes() ? "closed the connection in the middle of an answer"
                                        : "closed the connection without an answer");
  Bytes rest = as_bytes({buffer, static_cast<size_t>(n)});
  for (;;) {
    auto frame = parser_->next(rest);
    if (!frame) return malformed("a request", frame.error());
    if (!*frame) return true;
    Reply reply;
    reply.frame = std::move(*frame);
    if (auto r = proto::decode_command(reply.frame, &reply.command); !r)
      return malformed("a request", r.error());
    if (reply.command.is_response()) arrived_.push_back(std::move(reply));
  }
}

Outcome<Reply> Channel::wait(int32_t opaque) {
  Deadline deadline = Deadline::after_ms(timeout_ms_);
  for (;;) {
    for (auto it = arrived_.begin(); it != arrived_.end(); ++it) {
      if (it->command.opaque != opaque) continue;
      Reply reply = std::move(*it);
      arrived_.erase(it);
      return reply;
    }
    TRY_VAR(any, receive(deadline));
    if (any) continue;
    if (stop_asked()) return broken("interrupted while waiting for an answer");
    if (deadline.left_ms() == 0) return broken(fmt::format("no answer within {}ms", timeout_ms_));
  }
}

Outcome<Reply> Channel::take() {
  if (arrived_.empty()) {
    TRY(receive(Deadline{0}));
    if (arrived_.empty()) return Reply{};
  }
  Reply reply = std::move(arrived_.front());
  arrived_.pop_front();
  return reply;
}

}  // namespace rmq::ctl

// Streams and listeners of a ring over loopback.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

#include "ring_fixture.h"
#include "uring/listener.h"
#include "uring/net.h"
#include "uring/sockaddr.h"
#include "uring/stream.h"

namespace rmq {
namespace {

constexpr const char* loopback = "127.0.0.1";

class NetTest : public RingTest {
 protected:
  explicit NetTest(RecvPoolOptions pool = {}) {
    Result<std::unique_ptr<UringNet>> n = UringNet::create(*ring_, pool);
    check(n.has_value());
    net_ = std::move(*n);
  }
  ~NetTest() override { net_.reset(); }
  std::unique_ptr<UringNet> net_;
};

struct Pair {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

Task<Pair> make_pair(Net& net) {
  Pair p;
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  p.listener = std::move(*l);
  Result<std::unique_ptr<Stream>> c = co_await net.connect(loopback, p.listener->local().port, no_deadline);
  check(c.has_value());
  p.client = std::move(*c);
  Result<std::unique_ptr<Stream>> s = co_await p.listener->accept();
  check(s.has_value());
  p.server = std::move(*s);
  co_return p;
}

Task<void> drop(Pair& p) {
  co_await p.client->closed();
  co_await p.server->closed();
  co_await p.listener->closed();
}

Task<Result<void>> send_text(Stream& s, std::string_view text) {
  iovec v = iov(text);
  Result<void> r = co_await s.send(std::span(&v, 1));
  co_return r;
}

// Reads until `bytes` came or the stream ended.
Task<std::string> read_bytes(Stream& s, size_t bytes) {
  std::string got;
  while (got.size() < bytes) {
    Result<RecvBuffer> b = co_await s.recv(no_deadline);
    if (!b) break;
    got += as_text(b->bytes());
  }
  co_return got;
}

Task<void> exchange(Net& net) {
  Pair p = co_await make_pair(net);
  EXPECT_EQ(p.client->peer(), p.listener->local());
  EXPECT_EQ(p.client->local(), p.server->peer());
  EXPECT_EQ(p.server->local(), p.listener->local());
  Result<void> sent = co_await send_text(*p.client, "hello");
  EXPECT_TRUE(sent) << why(sent);
  std::string got = co_await read_bytes(*p.server, 5);
  EXPECT_EQ(got, "hello");
  Result<void> answered = co_await send_text(*p.server, "world");
  EXPECT_TRUE(answered) << why(answered);
  got = co_await read_bytes(*p.client, 5);
  EXPECT_EQ(got, "world");
  co_await p.client->closed();
  Result<RecvBuffer> end = co_await p.server->recv(no_deadline);
  EXPECT_FALSE(end);
  EXPECT_EQ(end.error().code, Errc::closed);
  co_await drop(p);
}
TEST_F(NetTest, BytesGoBothWaysAndTheEndIsSeen) {
  run(exchange(*net_));
}

// ---- sockets made by hand ------------------------------------------------------------------------------

int plain_socket(int family = AF_INET) {
  int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(fd >= 0);
  return fd;
}
// The handshake is the kernel's: nobody has to accept.
int plain_connect(const Address& to) {
  int fd = plain_socket(to.v6 ? AF_INET6 : AF_INET);
  SockAddr sa = to_sockaddr(to);
  check(::connect(fd, &sa.generic, sa.bytes) == 0);
  return fd;
}
std::unique_ptr<UringStream> stream_of(Ring& r, UringNet& n, int fd) {
  return std::make_unique<UringStream>(r, n.pool(), fd, Address{}, Address{});
}
struct SocketPair {
  SocketPair() {
    check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    int small = 4096;
    ::setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  }
  int fd[2];
};

std::string pattern(size_t bytes) {
  std::string s(bytes, '\0');
  for (size_t i = 0; i < bytes; i++) s[i] = static_cast<char>(i * 2654435761u >> 24);
  return s;
}

// ---- sending -----------------------------------------------------------------------------------------

Task<void> send_all(Stream& s, std::span<const iovec> v, bool& done) {
  Result<void> r = co_await s.send(v);
  EXPECT_TRUE(r) << why(r);
  done = true;
}

Task<void> send_in_parts(Ring& r, UringNet& net, size_t buffers) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  std::unique_ptr<UringStream> b = stream_of(r, net, p.fd[1]);
  std::string all = pattern(3'000'000);
  std::vector<iovec> v;
  for (size_t i = 0; i < buffers; i++) {
    size_t from = all.size() * i / buffers;
    v.push_back(iov(std::string_view(all).substr(from, all.size() * (i + 1) / buffers - from)));
  }
  bool sent = false;
  Scope scope;
  scope.spawn(send_all(*a, v, sent));
  EXPECT_FALSE(sent);  // 4 KiB of room: it waits for the reader
  std::string got = co_await read_bytes(*b, all.size());
  EXPECT_TRUE(got == all);
  co_await scope.join();
  EXPECT_TRUE(sent);
  co_await a->closed();
  co_await b->closed();
}
TEST_F(NetTest, ASendThatTheSocketTakesInPartsIsWhole) {
  run(send_in_parts(*ring_, *net_, 1));
}
TEST_F(NetTest, ASendOfMoreBuffersThanACallTakesIsWhole) {
  run(send_in_parts(*ring_, *net_, 3000));
}

Task<void> send_expecting(Stream& s, std::string_view text, Errc expected) {
  iovec v = iov(text);
  Result<void> r = co_await s.send(std::span(&v, 1));
  EXPECT_FALSE(r);
  if (!r) {
    EXPECT_EQ(r.error().code, expected) << why(r);
  }
}
Task<void> close_while_sending(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  std::string big(1'000'000, 's');
  Scope scope;
  scope.spawn(send_expecting(*a, big, Errc::closed));
  co_await sleep_for(5 * ns_per_ms);
  EXPECT_EQ(scope.running(), 1u);
  co_await a->closed();
  co_await scope.join();
  ::close(p.fd[1]);
}
TEST_F(NetTest, CloseEndsASendThatWaitsForRoom) {
  run(close_while_sending(*ring_, *net_));
}

Task<void> send_to_closed(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  ::close(p.fd[1]);
  co_await send_expecting(*a, "x", Errc::closed);  // and no SIGPIPE
  co_await a->closed();
  co_await send_expecting(*a, "x", Errc::closed);
}
TEST_F(NetTest, ASendToAPeerThatIsGoneFails) {
  run(send_to_closed(*ring_, *net_));
}

Task<void> half_closed(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  ::shutdown(p.fd[1], SHUT_WR);
  Result<RecvBuffer> b = co_await a->recv(no_deadline);
  EXPECT_EQ(b.error().code, Errc::closed);
  Result<void> sent = co_await send_text(*a, "still");
  EXPECT_TRUE(sent) << why(sent);
  char got[8] = {};
  EXPECT_EQ(::read(p.fd[1], got, sizeof got), 5);
  co_await a->closed();
  ::close(p.fd[1]);
}
TEST_F(NetTest, APeerThatSendsNoMoreMayStillReceive) {
  run(half_closed(*ring_, *net_));
}

// ---- receiving ---------------------------------------------------------------------------------------

Task<void> recv_deadline(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  int64_t until_ns = r.now_ns() + 10 * ns_per_ms;
  Result<RecvBuffer> b = co_await a->recv(until_ns);
  EXPECT_FALSE(b);
  if (!b) {
    EXPECT_EQ(b.error().code, Errc::timeout);
  }
  EXPECT_GE(r.now_ns(), until_ns);
  EXPECT_EQ(::write(p.fd[1], "late", 4), 4);
  std::string got = co_await read_bytes(*a, 4);
  EXPECT_EQ(got, "late");
  co_await a->closed();
  ::close(p.fd[1]);
}
TEST_F(NetTest, RecvEndsAtItsDeadlineAndLosesNothing) {
  run(recv_deadline(*ring_, *net_));
}

Task<void> recv_expecting(Stream& s, Errc expected) {
  Result<RecvBuffer> b = co_await s.recv(no_deadline);
  EXPECT_FALSE(b);
  if (!b) {
    EXPECT_EQ(b.error().code, expected) << why(b);
  }
}
Task<void> close_while_receiving(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  Scope scope;
  scope.spawn(recv_expecting(*a, Errc::closed));
  co_await sleep_for(ns_per_ms);
  a->close();
  a->close();
  co_await scope.join();
  co_await a->closed();
  co_await a->closed();
  co_await recv_expecting(*a, Errc::closed);
  EXPECT_EQ(r.in_flight(), 1u);  // the close of the descriptor, in the background
  char c = 0;
  EXPECT_EQ(::read(p.fd[1], &c, 1), 0);
  ::close(p.fd[1]);
}
TEST_F(NetTest, CloseEndsARecv) {
  run(close_while_receiving(*ring_, *net_));
}

Task<void> close_with_unread(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  EXPECT_EQ(::write(p.fd[1], "unread", 6), 6);
  co_await sleep_for(ns_per_ms);
  EXPECT_LT(net.pool().free_buffers(), 256u);
  a->close();
  EXPECT_EQ(net.pool().free_buffers(), 256u);
  co_await recv_expecting(*a, Errc::closed);
  co_await a->closed();
  ::close(p.fd[1]);
}
TEST_F(NetTest, CloseGivesBackWhatNobodyRead) {
  run(close_with_unread(*ring_, *net_));
}

Task<void> reset_by_peer(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  int fd = plain_connect((*l)->local());
  Result<std::unique_ptr<Stream>> s = co_await (*l)->accept();
  check(s.has_value());
  linger hard{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::close(fd);
  co_await recv_expecting(**s, Errc::closed);
  co_await (*s)->closed();
  co_await (*l)->closed();
}
TEST_F(NetTest, AResetIsTheEnd) {
  run(reset_by_peer(*net_));
}

// A reader that does not read: receiving stops at the queue's limit, the sender is held by the kernel, and
// reading starts it again.
Task<void> slow_reader(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  std::unique_ptr<UringStream> b = stream_of(r, net, p.fd[1]);
  std::string all = pattern(8'000'000);
  iovec v = iov(all);
  bool sent = false;
  Scope scope;
  scope.spawn(send_all(*a, std::span(&v, 1), sent));
  for (int i = 0; i < 10'000 && net.pool().free_buffers() >= 256 - 32; i++) co_await sleep_for(ns_per_ms);
  co_await sleep_for(20 * ns_per_ms);
  uint32_t left = net.pool().free_buffers();
  EXPECT_FALSE(sent);
  EXPECT_LT(left, 256u - 32u);
  EXPECT_GT(left, 256u - 80u);  // 33 queued, and what came while the cancel was under way
  co_await sleep_for(20 * ns_per_ms);
  EXPECT_EQ(net.pool().free_buffers(), left);  // it really stopped
  std::string got = co_await read_bytes(*b, all.size());
  EXPECT_TRUE(got == all);
  co_await scope.join();
  EXPECT_TRUE(sent);
  co_await a->closed();
  co_await b->closed();
}
TEST_F(NetTest, AStreamThatNobodyReadsStopsReceiving) {
  run(slow_reader(*ring_, *net_));
}

// ---- few buffers -------------------------------------------------------------------------------------

class TinyPool : public NetTest {
 protected:
  TinyPool() : NetTest({.buffers = 4, .buffer_bytes = 256}) {}
};

// Who keeps buffers does not stop the others: below a quarter free, bytes move to memory of their own.
Task<void> keep_buffers(Ring& r, UringNet& net) {
  SocketPair p;
  std::unique_ptr<UringStream> a = stream_of(r, net, p.fd[0]);
  std::vector<RecvBuffer> kept;
  for (int i = 0; i < 50; i++) {
    std::string text = std::to_string(1000 + i);
    EXPECT_EQ(::write(p.fd[1], text.data(), 4), 4);
    Result<RecvBuffer> b = co_await a->recv(no_deadline);
    EXPECT_TRUE(b) << why(b);
    if (b) kept.push_back(std::move(*b));
  }
  EXPECT_GE(net.pool().free_buffers(), 1u);
  for (int i = 0; i < 50; i++) EXPECT_EQ(as_text(kept[i].bytes()), std::to_string(1000 + i));
  kept.clear();
  EXPECT_EQ(net.pool().free_buffers(), 4u);
  co_await a->closed();
  ::close(p.fd[1]);
}
TEST_F(TinyPool, KeptBuffersDoNotRunOut) {
  run(keep_buffers(*ring_, *net_));
}

Task<void> read_to_end(Stream& s, std::string& got) {
  for (;;) {
    Result<RecvBuffer> b = co_await s.recv(no_deadline);
    if (!b) break;
    got += as_text(b->bytes());
  }
}
// Twenty streams have 8 KiB each at once; the pool holds 1 KiB.
Task<void> exhaust(Ring& r, UringNet& net) {
  constexpr size_t streams = 20;
  std::vector<SocketPair> pairs(streams);
  std::string all = pattern(8192);
  std::vector<std::unique_ptr<UringStream>> s;
  std::vector<std::string> got(streams);
  Scope scope;
  for (size_t i = 0; i < streams; i++) {
    EXPECT_EQ(::write(pairs[i].fd[1], all.data(), all.size()), static_cast<ssize_t>(all.size()));
    ::close(pairs[i].fd[1]);
    s.push_back(stream_of(r, net, pairs[i].fd[0]));
    scope.spawn(read_to_end(*s[i], got[i]));
  }
  co_await scope.join();
  EXPECT_GT(net.pool().times_starved(), 0u);
  for (size_t i = 0; i < streams; i++) {
    EXPECT_TRUE(got[i] == all) << i << ": " << got[i].size();
    co_await s[i]->closed();
  }
}
TEST_F(TinyPool, StarvedStreamsGoOnWhenBuffersComeBack) {
  run(exhaust(*ring_, *net_));
}

// Nobody reads and all starve: closing must find them in the list and leave nothing behind.
Task<void> close_starved(Ring& r, UringNet& net) {
  std::vector<SocketPair> pairs(20);
  std::vector<std::unique_ptr<UringStream>> s;
  std::string all = pattern(8192);
  for (SocketPair& p : pairs) {
    EXPECT_GT(::write(p.fd[1], all.data(), all.size()), 0);
    s.push_back(stream_of(r, net, p.fd[0]));
  }
  for (int turn = 0; turn < 4; turn++) co_await Yield();
  for (auto& stream : s) co_await stream->closed();
  for (SocketPair& p : pairs) ::close(p.fd[1]);
  EXPECT_GT(net.pool().times_starved(), 0u);
  EXPECT_EQ(net.pool().free_buffers(), 4u);
}
TEST_F(TinyPool, StarvedStreamsCanBeClosed) {
  run(close_starved(*ring_, *net_));
}

// ---- listening ---------------------------------------------------------------------------------------

Task<void> accept_expecting(Listener& l, Errc expected) {
  Result<std::unique_ptr<Stream>> s = co_await l.accept();
  EXPECT_FALSE(s);
  if (!s) {
    EXPECT_EQ(s.error().code, expected) << why(s);
  }
}
Task<void> close_while_accepting(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  Scope scope;
  scope.spawn(accept_expecting(**l, Errc::closed));
  co_await sleep_for(ns_per_ms);
  (*l)->close();
  co_await scope.join();
  co_await (*l)->closed();
  co_await accept_expecting(**l, Errc::closed);
}
TEST_F(NetTest, CloseEndsAnAccept) {
  run(close_while_accepting(*net_));
}

Task<void> listen_twice(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  uint16_t port = (*l)->local().port;
  Result<std::unique_ptr<Listener>> second = co_await net.listen(loopback, port);
  EXPECT_FALSE(second);
  if (!second) {
    EXPECT_EQ(second.error().sys, EADDRINUSE);
  }
  // Connections of before do not keep the port from the next process.
  int fd = plain_connect((*l)->local());
  Result<std::unique_ptr<Stream>> s = co_await (*l)->accept();
  co_await (*s)->closed();
  co_await (*l)->closed();
  co_await sleep_for(5 * ns_per_ms);
  Result<std::unique_ptr<Listener>> again = co_await net.listen(loopback, port);
  EXPECT_TRUE(again) << why(again);
  if (again) co_await (*again)->closed();
  ::close(fd);
}
TEST_F(NetTest, APortIsFreeAgainAtOnce) {
  run(listen_twice(*net_));
}

// A bound address is ours alone, and refuses connections until it listens; also where connections of a
// process that was there before are still known to the kernel.
Task<void> bind_first(Net& net, bool had_connections) {
  Result<std::unique_ptr<Listener>> before = co_await net.listen(loopback, 0);
  check(before.has_value());
  const Address at = (*before)->local();
  int old_fd = -1;
  if (had_connections) {
    old_fd = plain_connect(at);
    Result<std::unique_ptr<Stream>> s = co_await (*before)->accept();
    co_await (*s)->closed();
  }
  co_await (*before)->closed();
  co_await sleep_for(5 * ns_per_ms);

  Result<std::unique_ptr<Listener>> l = co_await net.bind(loopback, at.port);
  check(l.has_value());
  Result<std::unique_ptr<Listener>> second = co_await net.bind(loopback, at.port);
  EXPECT_FALSE(second);
  if (!second) {
    EXPECT_EQ(second.error().sys, EADDRINUSE);
  }
  Result<std::unique_ptr<Listener>> all = co_await net.listen("", at.port);
  EXPECT_FALSE(all);
  Result<std::unique_ptr<Stream>> s = co_await net.connect(loopback, at.port, no_deadline);
  EXPECT_FALSE(s);
  if (!s) {
    EXPECT_EQ(s.error().sys, ECONNREFUSED);
  }
  Result<void> listening = (*l)->listen();
  EXPECT_TRUE(listening);
  int fd = plain_connect(at);
  s = co_await (*l)->accept();
  EXPECT_TRUE(s);
  if (s) co_await (*s)->closed();
  co_await (*l)->closed();
  ::close(fd);
  if (old_fd >= 0) ::close(old_fd);
}
TEST_F(NetTest, BoundIsNotListening) {
  run(bind_first(*net_, false));
}
TEST_F(NetTest, BoundWhereConnectionsWere) {
  run(bind_first(*net_, true));
}

Task<void> bind_and_leave(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.bind(loopback, 0);
  check(l.has_value());
  const uint16_t port = (*l)->local().port;
  EXPECT_NE(port, 0);
  co_await (*l)->closed();
  Result<std::unique_ptr<Listener>> again = co_await net.bind(loopback, port);
  EXPECT_TRUE(again) << why(again);
  if (again) co_await (*again)->closed();
}
TEST_F(NetTest, BoundAndNeverUsed) {
  run(bind_and_leave(*net_));
}

// More connections than the listener takes ahead, and none taken for a while.
Task<void> many_waiting(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  std::vector<int> fds;
  for (int i = 0; i < 300; i++) fds.push_back(plain_connect((*l)->local()));
  co_await sleep_for(5 * ns_per_ms);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 300; i++) {
    Result<std::unique_ptr<Stream>> s = co_await (*l)->accept();
    check(s.has_value());
    streams.push_back(std::move(*s));
  }
  fds.push_back(plain_connect((*l)->local()));
  fds.push_back(plain_connect((*l)->local()));
  Result<std::unique_ptr<Stream>> last = co_await (*l)->accept();
  check(last.has_value());
  streams.push_back(std::move(*last));
  for (auto& s : streams) co_await s->closed();
  co_await (*l)->closed();  // one was never accepted
  for (int fd : fds) ::close(fd);
}
TEST_F(NetTest, AcceptingStopsWhenNobodyTakesAndGoesOn) {
  run(many_waiting(*net_));
}

int lowest_free_fd() {
  int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}
void set_files(rlim_t n) {
  rlimit r{};
  getrlimit(RLIMIT_NOFILE, &r);
  r.rlim_cur = n;
  check(setrlimit(RLIMIT_NOFILE, &r) == 0);
}
Task<void> raise_files(rlim_t n) {
  co_await sleep_for(250 * ns_per_ms);
  set_files(n);
}
Task<void> out_of_files(Net& net) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  std::vector<int> fds;
  for (int i = 0; i < 3; i++) fds.push_back(plain_connect((*l)->local()));
  set_files(static_cast<rlim_t>(lowest_free_fd()));
  Scope scope;
  scope.spawn(raise_files(before.rlim_cur));
  Result<std::unique_ptr<Stream>> s = co_await (*l)->accept();
  EXPECT_FALSE(s);
  if (!s) {
    EXPECT_EQ(s.error().code, Errc::limit);
  }
  if (!s) {
    EXPECT_EQ(s.error().sys, EMFILE);
  }
  for (int i = 0; i < 3; i++) {  // told once; then it waits until there are descriptors
    s = co_await (*l)->accept();
    EXPECT_TRUE(s) << why(s);
    if (s) co_await (*s)->closed();
  }
  co_await scope.join();
  co_await (*l)->closed();
  for (int fd : fds) ::close(fd);
}
TEST_F(NetTest, AcceptSurvivesTheLackOfDescriptors) {
  run(out_of_files(*net_));
}

// The descriptor of the stream between these two.
int find_fd(const Address& local, const Address& peer) {
  for (int fd = 0; fd < 1000; fd++) {
    SockAddr sa{};
    sa.bytes = sizeof sa.storage;
    if (::getpeername(fd, &sa.generic, &sa.bytes) != 0) continue;
    if (from_sockaddr(&sa.generic) == peer && local_address(fd) == local) return fd;
  }
  return -1;
}
bool no_delay(const Stream& s) {
  int on = 0;
  socklen_t n = sizeof on;
  int fd = find_fd(s.local(), s.peer());
  return ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &n) == 0 && on != 0;
}
Task<void> look_at_options(Net& net) {
  Pair p = co_await make_pair(net);
  EXPECT_TRUE(no_delay(*p.client));
  EXPECT_TRUE(no_delay(*p.server));
  co_await drop(p);
}
TEST_F(NetTest, SmallSendsAreNotDelayed) {
  run(look_at_options(*net_));
}

bool machine_has_v6() {
  int fd = ::socket(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0) return false;
  SockAddr sa = to_sockaddr(*Address::parse("[::1]:0"));
  bool ok = ::bind(fd, &sa.generic, sa.bytes) == 0;
  ::close(fd);
  return ok;
}
Task<void> connect_from(Net& net, Listener& l, std::string host, bool v6) {
  Result<std::unique_ptr<Stream>> c = co_await net.connect(host, l.local().port, no_deadline);
  EXPECT_TRUE(c) << host << why(c);
  if (!c) co_return;
  Result<std::unique_ptr<Stream>> s = co_await l.accept();
  check(s.has_value());
  EXPECT_EQ((*s)->peer().v6, v6);
  EXPECT_EQ((*s)->peer().ip_text(), host);
  EXPECT_EQ((*s)->peer(), (*c)->local());
  co_await (*c)->closed();
  co_await (*s)->closed();
}
Task<void> both_families(Net& net, std::string all) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(all, 0);
  check(l.has_value());
  co_await connect_from(net, **l, loopback, false);
  if (machine_has_v6()) co_await connect_from(net, **l, "::1", true);
  co_await (*l)->closed();
}
TEST_F(NetTest, AllAddressesAreBothFamiliesAndV4LooksLikeV4) {
  run(both_families(*net_, ""));
  run(both_families(*net_, "0.0.0.0"));
}
Task<void> only_v6(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen("::1", 0);
  check(l.has_value());
  EXPECT_TRUE((*l)->local().v6);
  co_await connect_from(net, **l, "::1", true);
  co_await (*l)->closed();
}
TEST_F(NetTest, ListensOnAnIpv6Address) {
  if (!machine_has_v6()) GTEST_SKIP() << "no IPv6";
  run(only_v6(*net_));
}

// ---- connecting --------------------------------------------------------------------------------------

Task<void> connect_refused(Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  uint16_t port = (*l)->local().port;
  co_await (*l)->closed();
  co_await sleep_for(5 * ns_per_ms);
  Result<std::unique_ptr<Stream>> s = co_await net.connect(loopback, port, no_deadline);
  EXPECT_FALSE(s);
  if (!s) {
    EXPECT_EQ(s.error().sys, ECONNREFUSED) << why(s);
  }
}
TEST_F(NetTest, ARefusedConnectTellsSo) {
  run(connect_refused(*net_));
}

// A listener whose backlog is full drops the handshake: the connect hangs.
Task<void> connect_deadline(Ring& r, Net& net) {
  int fd = plain_socket();
  SockAddr sa = to_sockaddr(*Address::parse("127.0.0.1:0"));
  check(::bind(fd, &sa.generic, sa.bytes) == 0);
  check(::listen(fd, 0) == 0);
  Address at = local_address(fd);
  int first = plain_connect(at);
  int64_t until_ns = r.now_ns() + 50 * ns_per_ms;
  Result<std::unique_ptr<Stream>> s = co_await net.connect(loopback, at.port, until_ns);
  EXPECT_FALSE(s);
  if (!s) {
    EXPECT_EQ(s.error().code, Errc::timeout) << why(s);
  }
  EXPECT_GE(r.now_ns(), until_ns);
  ::close(first);
  ::close(fd);
}
TEST_F(NetTest, AConnectEndsAtItsDeadline) {
  run(connect_deadline(*ring_, *net_));
}

Task<void> by_name(Ring& r, Net& net) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen("", 0);
  check(l.has_value());
  Result<std::unique_ptr<Stream>> s =
      co_await net.connect("localhost", (*l)->local().port, r.now_ns() + 30 * ns_per_s);
  EXPECT_TRUE(s) << why(s);
  if (s) co_await (*s)->closed();
  co_await (*l)->closed();
}
TEST_F(NetTest, NamesAreResolved) {
  run(by_name(*ring_, *net_));
}

// ---- many --------------------------------------------------------------------------------------------

Task<void> echo(std::unique_ptr<Stream> s) {
  for (;;) {
    Result<RecvBuffer> b = co_await s->recv(no_deadline);
    if (!b) break;
    iovec v = iov(as_text(b->bytes()));
    Result<void> sent = co_await s->send(std::span(&v, 1));
    if (!sent) break;
  }
  co_await s->closed();
}
Task<void> echo_server(Listener& l, Scope& scope) {
  for (;;) {
    Result<std::unique_ptr<Stream>> s = co_await l.accept();
    if (!s) break;
    scope.spawn(echo(std::move(*s)));
  }
}
Task<void> ask_and_compare(Net& net, uint16_t port, int number, int& right) {
  Result<std::unique_ptr<Stream>> c = co_await net.connect(loopback, port, no_deadline);
  check(c.has_value());
  for (int i = 0; i < 5; i++) {
    std::string text = pattern(static_cast<size_t>(number % 50 + 1) * 100);
    Result<void> sent = co_await send_text(**c, text);
    check(sent.has_value());
    std::string got = co_await read_bytes(**c, text.size());
    right += got == text ? 1 : 0;
  }
  co_await (*c)->closed();
}
Task<void> many_clients(Net& net, int n, int& right) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen(loopback, 0);
  check(l.has_value());
  Scope servers;
  Scope clients;
  servers.spawn(echo_server(**l, servers));
  for (int i = 0; i < n; i++) clients.spawn(ask_and_compare(net, (*l)->local().port, i, right));
  co_await clients.join();
  co_await (*l)->closed();
  co_await servers.join();
}
TEST_F(NetTest, AThousandConnectionsAtOnce) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  if (before.rlim_max < 3000) GTEST_SKIP() << "too few descriptors";
  set_files(std::max<rlim_t>(before.rlim_cur, 3000));
  int right = 0;
  run(many_clients(*net_, 1000, right));
  EXPECT_EQ(right, 5000);
  setrlimit(RLIMIT_NOFILE, &before);
}
TEST_F(TinyPool, AHundredConnectionsShareFourBuffers) {
  int right = 0;
  run(many_clients(*net_, 100, right));
  EXPECT_EQ(right, 500);
}

}  // namespace
}  // namespace rmq

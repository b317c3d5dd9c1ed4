// Streams and listeners of a ring over loopback.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

#include "ring_fixture.h"
#include "uring/net.h"

namespace rmq {
namespace {

// Addresses that tests take: one process may run them beside others.
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
TEST_F(NetTest, BytesGoBothWaysAndTheEndIsSeen) { run(exchange(*net_)); }

}  // namespace
}  // namespace rmq

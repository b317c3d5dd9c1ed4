// The HTTP server of metrics and health, on the simulated network: what it answers, and what peers cannot do
// to it.
#include "daemon/http_server.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "daemon/exporter.h"
#include "sim/sim_net.h"

namespace rmq {
namespace {

constexpr uint16_t port = 5557;

class TestService : public HttpService {
 public:
  Task<void> get(std::string_view path, HttpReply& reply) override {
    served++;
    if (path == "/text") co_await reply.send(200, "text/plain", "hello\n");
    if (path == "/slow") {
      co_await sleep_for(ns_per_s);
      co_await reply.send(200, "text/plain", "slow\n");
    }
    if (path == "/pieces") {
      co_await reply.begin("text/plain");
      co_await reply.write("one,");
      co_await reply.write("two");
    }
    if (path == "/endless") {
      co_await reply.begin("text/plain");
      while (!reply.is_broken()) co_await reply.write(std::string(64 << 10, 'e'));
      broken++;
    }
  }
  int served = 0, broken = 0;
};

struct World {
  explicit World(sim::SimLoop& loop)
      : network(loop),
        server_net(network, "10.0.0.1"),
        client_net(network, "10.0.0.2"),
        server(server_net, service) {}
  sim::SimNetwork network;
  sim::SimNet server_net, client_net;
  TestService service;
  HttpServer server;
};

class Client {
 public:
  static Task<std::unique_ptr<Client>> connect(World& w) {
    auto s = co_await w.client_net.connect("10.0.0.1", port, no_deadline);
    check(s.has_value());
    auto c = std::make_unique<Client>();
    c->stream_ = std::move(*s);
    co_return c;
  }
  Task<void> send(std::string bytes) {
    iovec v{bytes.data(), bytes.size()};
    [[maybe_unused]] auto sent = co_await stream_->send({&v, 1});
  }
  // All that comes until the server closes, or within `seconds`.
  Task<std::string> receive(int64_t seconds) {
    std::string out;
    const int64_t until_ns = Loop::current().now_ns() + seconds * ns_per_s;
    for (;;) {
      auto got = co_await stream_->recv(until_ns);
      if (!got) {
        closed = got.error().code != Errc::timeout;
        co_return out;
      }
      out += as_text(got->bytes());
    }
  }
  Task<std::string> ask(std::string request, int64_t seconds = 3) {
    co_await send(std::move(request));
    co_return co_await receive(seconds);
  }
  Task<void> close() {
    stream_->close();
    co_await stream_->closed();
  }
  bool closed = false;

 private:
  std::unique_ptr<Stream> stream_;
};

using Scenario = Task<void> (*)(World&);

Task<void> run(World& w, Scenario scenario) {
  auto listening = co_await w.server.listen("10.0.0.1", port);
  EXPECT_TRUE(listening);
  co_await scenario(w);
  co_await w.server.stop();
  EXPECT_EQ(w.server.connections(), 0u);
}

void simulate(Scenario scenario) {
  for (uint64_t seed = 1; seed <= 3; seed++) {
    sim::SimLoop loop(seed);
    World w(loop);
    loop.run(run(w, scenario));
  }
}

std::string get(std::string_view path, std::string_view more = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" + std::string(more) + "\r\n";
}
size_t count_of(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) n++;
  return n;
}

Task<void> answers(World& w) {
  auto c = co_await Client::connect(w);
  std::string a = co_await c->ask(get("/text?x=1"));
  EXPECT_TRUE(a.starts_with("HTTP/1.1 200 OK\r\n")) << a;
  EXPECT_TRUE(a.ends_with("Content-Length: 6\r\nCache-Control: no-store\r\n\r\nhello\n")) << a;
  EXPECT_FALSE(c->closed) << "it is kept for the next request";
  a = co_await c->ask(get("/pieces"));
  EXPECT_TRUE(a.ends_with("\r\n\r\n4\r\none,\r\n3\r\ntwo\r\n0\r\n\r\n")) << a;
  EXPECT_NE(a.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << a;
  a = co_await c->ask("HEAD /text HTTP/1.1\r\nHost: h\r\n\r\nHEAD /pieces HTTP/1.1\r\nHost: h\r\n\r\n" +
                      get("/nothing"));
  EXPECT_EQ(count_of(a, "200 OK"), 2u) << a;
  EXPECT_EQ(count_of(a, "hello"), 0u);
  EXPECT_EQ(count_of(a, "one"), 0u);
  EXPECT_EQ(count_of(a, "404 Not Found"), 1u);
  EXPECT_FALSE(c->closed);
  a = co_await c->ask(get("http://somewhere:1/text", "Connection: foo, Close\r\n"));
  EXPECT_TRUE(a.ends_with("hello\n")) << a;
  EXPECT_TRUE(c->closed);
  co_await c->close();
}
TEST(HttpServer, Answers) {
  simulate(answers);
}

Task<void> old_clients(World& w) {
  auto c = co_await Client::connect(w);
  std::string a = co_await c->ask("GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(a.ends_with("\r\n\r\none,two")) << a;
  EXPECT_TRUE(c->closed) << "only that says where it ends";
  co_await c->close();
  c = co_await Client::connect(w);
  a = co_await c->ask("GET /text HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(a.ends_with("hello\n")) << a;
  EXPECT_FALSE(c->closed);
  a = co_await c->ask("\r\nGET /text HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(a.ends_with("hello\n")) << a;
  EXPECT_TRUE(c->closed);
  co_await c->close();
}
TEST(HttpServer, OldClients) {
  simulate(old_clients);
}

TEST(HttpServer, Heads) {
  const std::pair<std::string, int> wrong[] = {
      {"\r\n\r\n", 400},
      {"GET\r\n\r\n", 400},
      {"GET /text\r\n\r\n", 400},
      {"GET  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},                        // no host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},  //
      {"GET / text HTTP/1.1\r\nHost: h\r\n\r\n", 400},        //
      {"GET text HTTP/1.1\r\nHost: h\r\n\r\n", 400},          //
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},             //
      {"GET / http/1.1\r\nHost: h\r\n\r\n", 400},             //
      {"GET / HTTP/1.1x\r\nHost: h\r\n\r\n", 400},            //
      {"G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},             //
      {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},            // smuggling by names
      {"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400},  //
      {"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400},       // a line feed of its own
      {std::string("GET / HTTP/1.1\r\nHost: h\0\r\n\r\n", 28), 400},
      {"POST / HTTP/1.1\r\nHost: h\r\n\r\n", 405},
      {"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 413},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 413}};
  for (const auto& [head, status] : wrong) {
    auto r = parse_http_head(head);
    EXPECT_FALSE(r) << head;
    if (!r) EXPECT_EQ(r.error(), status) << head;
  }
  auto good = parse_http_head("GET /a/b?c=/d HTTP/1.1\r\nHOST:\th \r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->path, "/a/b");
  EXPECT_TRUE(good->keep_alive && good->takes_chunks && !good->is_head);
}

Task<void> refusals(World& w) {
  for (const char* request :
       {"POST /text HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "nonsense\r\n\r\n",
        "GET /text HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"}) {
    auto c = co_await Client::connect(w);
    std::string a = co_await c->ask(std::string(request) + get("/text"));
    EXPECT_EQ(count_of(a, "HTTP/1.1 "), 1u) << "nothing behind it is taken for a request: " << a;
    EXPECT_NE(a.find("Connection: close\r\n"), std::string::npos) << a;
    EXPECT_TRUE(c->closed);
    co_await c->close();
  }
  EXPECT_EQ(w.service.served, 0);
  std::map<int, uint64_t> counts;
  w.server.each_count([&](int status, uint64_t n) { counts[status] = n; });
  EXPECT_EQ(counts, (std::map<int, uint64_t>{{400, 1}, {405, 1}, {413, 1}}));
}
TEST(HttpServer, RefusesAndCloses) {
  simulate(refusals);
}

Task<void> long_head(World& w) {
  auto c = co_await Client::connect(w);
  std::string a =
      co_await c->ask(get("/text", "X: " + std::string(limits::http_head_bytes_max, 'x') + "\r\n"), 20);
  EXPECT_TRUE(a.starts_with("HTTP/1.1 431 ")) << a;
  EXPECT_TRUE(c->closed);
  co_await c->close();
  c = co_await Client::connect(w);
  a = co_await c->ask("GET /text HTTP/1.1\r\nX: " + std::string(limits::http_head_bytes_max * 4, 'x'), 20);
  EXPECT_TRUE(a.starts_with("HTTP/1.1 431 ")) << "without an end, too";
  co_await c->close();
  c = co_await Client::connect(w);
  const std::string frame = get("/text", "X: \r\n");
  a = co_await c->ask(
      get("/text", "X: " + std::string(limits::http_head_bytes_max - frame.size(), 'x') + "\r\n"));
  EXPECT_TRUE(a.ends_with("hello\n")) << "just short enough";
  co_await c->close();
}
TEST(HttpServer, HeadsAreBounded) {
  simulate(long_head);
}

Task<void> slow_heads(World& w) {
  auto idle = co_await Client::connect(w);
  auto slow = co_await Client::connect(w);
  const int64_t began_ns = Loop::current().now_ns();
  const std::string request = get("/text", "X: a long name\r\n");
  // A byte each second is not enough to stay.
  size_t sent = 0;
  for (; sent < request.size() && w.server.connections() == 2; sent++) {
    co_await slow->send(request.substr(sent, 1));
    co_await sleep_for(ns_per_s);
  }
  EXPECT_LT(sent, 13u);
  EXPECT_EQ(w.server.connections(), 1u) << "who has not begun may wait longer";
  std::string a = co_await idle->receive(100);
  EXPECT_TRUE(a.empty() && idle->closed);
  EXPECT_LT(Loop::current().now_ns() - began_ns, 70 * ns_per_s);
  co_await idle->close();
  co_await slow->close();
}
TEST(HttpServer, SlowPeersAreClosed) {
  simulate(slow_heads);
}

Task<void> takes_nothing(World& w) {
  auto c = co_await Client::connect(w);
  co_await c->send(get("/endless"));
  co_await sleep_for(70 * ns_per_s);
  EXPECT_EQ(w.service.broken, 1) << "the answer has an end when nobody takes it";
  EXPECT_EQ(w.server.connections(), 0u);
  co_await c->close();
  c = co_await Client::connect(w);
  co_await c->send(get("/endless"));
  co_await sleep_for(ns_per_s);
  co_await c->close();
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.service.broken, 2) << "or when he goes";
}
TEST(HttpServer, AnswersAreBounded) {
  simulate(takes_nothing);
}

Task<void> many(World& w) {
  std::vector<std::unique_ptr<Client>> all;
  for (uint32_t i = 0; i < limits::http_connections_max; i++) {
    all.push_back(co_await Client::connect(w));
    co_await all.back()->send(get("/slow"));
  }
  co_await sleep_for(ns_per_s / 2);
  auto c = co_await Client::connect(w);
  std::string a = co_await c->ask(get("/text"));
  EXPECT_TRUE(a.empty() && c->closed) << a;
  EXPECT_EQ(w.server.turned_away(), 1u);
  co_await c->close();
  for (auto& one : all) {
    a = co_await one->receive(1);
    EXPECT_TRUE(a.ends_with("slow\n")) << "the others are served";
    co_await one->close();
  }
  co_await sleep_for(ns_per_s);
  c = co_await Client::connect(w);
  a = co_await c->ask(get("/text"));
  EXPECT_TRUE(a.ends_with("hello\n")) << "and then the next";
  co_await c->close();
}
TEST(HttpServer, ConnectionsAreBounded) {
  simulate(many);
}

Task<void> many_that_ask_nothing(World& w) {
  std::vector<std::unique_ptr<Client>> all;
  for (uint32_t i = 0; i < limits::http_connections_max; i++) {
    all.push_back(co_await Client::connect(w));
    co_await sleep_for(ns_per_ms);
  }
  std::string a = co_await all[0]->ask(get("/text"));  // so the second waits for longest
  EXPECT_TRUE(a.ends_with("hello\n")) << a;
  auto probe = co_await Client::connect(w);
  a = co_await probe->ask(get("/text"));
  EXPECT_TRUE(a.ends_with("hello\n")) << "it does not wait until they are closed: " << a;
  EXPECT_LE(w.server.connections(), limits::http_connections_max);
  a = co_await all[0]->ask(get("/text"));
  EXPECT_TRUE(a.ends_with("hello\n")) << a;
  a = co_await all[1]->receive(1);
  EXPECT_TRUE(all[1]->closed);
  co_await probe->close();
  for (auto& one : all) co_await one->close();
}
TEST(HttpServer, IdleConnectionsKeepNobodyAway) {
  simulate(many_that_ask_nothing);
}

Task<void> stopping(World& w) {
  auto c = co_await Client::connect(w);
  co_await c->send(get("/slow"));
  co_await sleep_for(100 * ns_per_ms);
  co_await w.server.stop();
  std::string a = co_await c->receive(1);
  EXPECT_TRUE(c->closed);
  co_await c->close();
}
TEST(HttpServer, StopsWhileItAnswers) {
  simulate(stopping);
}

// ---- the page ----------------------------------------------------------------------------------------

class TestSource : public MetricsSource {
 public:
  Task<void> write(MetricsPage& page) override {
    static constexpr MetricFamily gauge{"test_gauge", MetricType::gauge, "topic", "A gauge."};
    static constexpr MetricFamily size{"test_size", MetricType::histogram, "", "A size."};
    page.family(gauge);
    for (int i = 0; i < series; i++) {
      page.sample({{"topic", std::string(80, 'T') + std::to_string(i)}}, i);
      if (page.is_full()) co_await page.flush();
    }
    if (series == 0) page.sample({{"topic", "a\"b\\c\nd"}}, 1.5);
    MetricHistogram<2> h;
    constexpr std::array<double, 2> bounds{1, 0.5e7};
    for (double v : {0.5, 1.0, 2.0, 1e9}) h.add(bounds, v);
    page.family(size);
    page.histogram({}, bounds, h);
  }
  int series = 0;
};

Task<std::string> scrape(World& w, std::string path) {
  auto c = co_await Client::connect(w);
  std::string a = co_await c->ask("GET " + path + " HTTP/1.0\r\n\r\n", 30);
  co_await c->close();
  co_return a;
}

Task<void> exported(World& w) {
  Exporter exporter(w.server_net, {true, "10.0.0.1", port, 4000});
  TestSource source;
  exporter.add(source, R"(node="n")");
  Event stop;
  Scope scope;
  scope.spawn(exporter.run(stop));
  co_await sleep_for(ns_per_ms);
  std::string a = co_await scrape(w, "/health/ready");
  EXPECT_TRUE(a.starts_with("HTTP/1.1 503 ") && a.ends_with("\r\nstarting\n")) << a;
  exporter.set_not_ready("");
  a = co_await scrape(w, "/health/ready");
  EXPECT_TRUE(a.starts_with("HTTP/1.1 200 ") && a.ends_with("\r\nready\n")) << a;
  a = co_await scrape(w, "/health/live");
  EXPECT_TRUE(a.ends_with("\r\nlive\n")) << a;
  a = co_await scrape(w, "/metrics");
  EXPECT_NE(a.find("# HELP test_gauge A gauge.\n# TYPE test_gauge gauge\n"
                   "test_gauge{node=\"n\",topic=\"a\\\"b\\\\c\\nd\"} 1.5\n"),
            std::string::npos)
      << a;
  EXPECT_NE(
      a.find("test_size_bucket{node=\"n\",le=\"1.0\"} 2\ntest_size_bucket{node=\"n\",le=\"5000000.0\"} 3\n"
             "test_size_bucket{node=\"n\",le=\"+Inf\"} 4\ntest_size_sum{node=\"n\"} 1000000003.5\n"
             "test_size_count{node=\"n\"} 4\n"),
      std::string::npos)
      << a;
  source.series = 5000;
  a = co_await scrape(w, "/metrics");
  EXPECT_EQ(count_of(a, "\ntest_gauge{"), 4000u);
  EXPECT_NE(a.find("rmqd_series_left_out{node=\"n\",metric=\"test_gauge\"} 1000\n"), std::string::npos);
  source.series = 4000;  // more than the network takes of him
  auto slow = co_await Client::connect(w);
  co_await slow->send(get("/metrics"));  // and takes nothing
  co_await sleep_for(ns_per_s);
  const int64_t began_ns = Loop::current().now_ns();
  co_await exporter.remove(source);
  EXPECT_LT(Loop::current().now_ns() - began_ns, ns_per_s) << "that holds nobody up";
  co_await slow->close();
  a = co_await scrape(w, "/metrics");
  EXPECT_EQ(count_of(a, "test_"), 0u);
  stop.set();
  co_await scope.join();
}

Task<void> port_taken(World& w) {
  auto other = co_await w.server_net.listen("10.0.0.1", port);
  EXPECT_TRUE(other);
  Exporter exporter(w.server_net, {true, "10.0.0.1", port, 4000});
  Event stop;
  Scope scope;
  scope.spawn(exporter.run(stop));
  co_await sleep_for(ns_per_s);
  (*other)->close();
  co_await (*other)->closed();
  other->reset();
  co_await sleep_for(11 * ns_per_s);
  std::string a = co_await scrape(w, "/health/live");
  EXPECT_TRUE(a.ends_with("\r\nlive\n")) << "it has found the port free: " << a;
  stop.set();
  co_await scope.join();
}

void simulate_exporter(Scenario scenario) {
  sim::SimLoop loop(1);
  World w(loop);
  loop.run(scenario(w));
}
TEST(Exporter, ServesMetricsAndHealth) {
  simulate_exporter(exported);
}
TEST(Exporter, WaitsForItsPort) {
  simulate_exporter(port_taken);
}

}  // namespace
}  // namespace rmq

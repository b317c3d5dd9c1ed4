// Echo over loopback: what a ring costs per small request. Server and clients on a thread each with a ring
// of their own; `connections` streams with one request of 128 bytes in flight on each.
#include <benchmark/benchmark.h>

#include <atomic>
#include <thread>

#include "uring/mailbox.h"
#include "uring/net.h"
#include "uring/sync.h"

namespace rmq {
namespace {

constexpr size_t request_bytes = 128;

Task<void> echo(std::unique_ptr<Stream> s) {
  for (;;) {
    Result<RecvBuffer> b = co_await s->recv(no_deadline);
    if (!b) break;
    iovec v{const_cast<std::byte*>(b->bytes().data()), b->bytes().size()};
    Result<void> sent = co_await s->send(std::span(&v, 1));
    if (!sent) break;
  }
  co_await s->closed();
}

Task<void> accept_all(Listener& l, Scope& scope) {
  for (;;) {
    Result<std::unique_ptr<Stream>> s = co_await l.accept();
    if (!s) break;
    scope.spawn(echo(std::move(*s)));
  }
}

Task<void> serve(Net& net, std::atomic<uint16_t>& port, Mailbox<int>& stop) {
  Result<std::unique_ptr<Listener>> l = co_await net.listen("127.0.0.1", 0);
  check(l.has_value());
  Scope scope;
  scope.spawn(accept_all(**l, scope));
  port = (*l)->local().port;
  port.notify_all();
  co_await stop.pop();
  co_await (*l)->closed();
  co_await scope.join();
}

class EchoServer {
 public:
  EchoServer() : thread_(&EchoServer::run, this) { port_.wait(0); }
  ~EchoServer() {
    stop_.load()->push(1);
    thread_.join();
  }
  uint16_t port() const { return port_; }

 private:
  void run() {
    auto ring = Ring::create();
    check(ring.has_value());
    {
      auto net = UringNet::create(**ring);
      check(net.has_value());
      Mailbox<int> stop(**ring, 1);
      stop_ = &stop;
      (*ring)->run(serve(**net, port_, stop));
    }
  }
  std::atomic<uint16_t> port_{0};
  std::atomic<Mailbox<int>*> stop_{nullptr};
  std::thread thread_;
};

Task<void> ask(Stream& s, size_t times) {
  char request[request_bytes] = {};
  for (size_t i = 0; i < times; i++) {
    iovec v{request, sizeof request};
    Result<void> sent = co_await s.send(std::span(&v, 1));
    check(sent.has_value());
    size_t got = 0;
    while (got < sizeof request) {
      Result<RecvBuffer> b = co_await s.recv(no_deadline);
      check(b.has_value());
      got += b->bytes().size();
    }
  }
}

Task<void> connect_all(Net& net, uint16_t port, std::vector<std::unique_ptr<Stream>>& streams) {
  for (auto& s : streams) {
    Result<std::unique_ptr<Stream>> c = co_await net.connect("127.0.0.1", port, no_deadline);
    check(c.has_value());
    s = std::move(*c);
  }
}
Task<void> ask_all(std::vector<std::unique_ptr<Stream>>& streams, size_t times) {
  Scope scope;
  for (auto& s : streams) scope.spawn(ask(*s, times));
  co_await scope.join();
}
Task<void> close_all(std::vector<std::unique_ptr<Stream>>& streams) {
  for (auto& s : streams) co_await s->closed();
}

void bench_echo(benchmark::State& state) {
  constexpr size_t times = 100;
  EchoServer server;
  auto ring = Ring::create();
  check(ring.has_value());
  {
    auto net = UringNet::create(**ring);
    check(net.has_value());
    std::vector<std::unique_ptr<Stream>> streams(static_cast<size_t>(state.range(0)));
    (*ring)->run(connect_all(**net, server.port(), streams));
    uint64_t enters = (*ring)->enters();
    for (auto _ : state) (*ring)->run(ask_all(streams, times));
    auto requests = static_cast<double>(state.iterations()) * static_cast<double>(streams.size() * times);
    state.counters["requests/s"] = benchmark::Counter(requests, benchmark::Counter::kIsRate);
    state.counters["syscalls/request"] = static_cast<double>((*ring)->enters() - enters) / requests;
    state.counters["starved/request"] = static_cast<double>((*net)->pool().times_starved()) / requests;
    (*ring)->run(close_all(streams));
  }
}
BENCHMARK(bench_echo)->Name("echo_connections")->Arg(1)->Arg(16)->Arg(100)->Arg(500)->UseRealTime();

Task<void> nops(size_t n) {
  for (size_t i = 0; i < n; i++) {
    Op op;
    io_uring_prep_nop(op.sqe());
    benchmark::DoNotOptimize(co_await op);
  }
}
void bench_nop(benchmark::State& state) {
  auto ring = Ring::create();
  check(ring.has_value());
  for (auto _ : state) (*ring)->run(nops(1000));
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(bench_nop)->Name("await_nop");

void bench_mailbox(benchmark::State& state) {
  auto ring = Ring::create();
  check(ring.has_value());
  {
    Mailbox<uint64_t> box(**ring, 1024);
    for (auto _ : state) {
      for (uint64_t i = 0; i < 1000; i++) box.push(i);
      for (uint64_t i = 0; i < 1000; i++) benchmark::DoNotOptimize(box.try_pop());
    }
    state.SetItemsProcessed(state.iterations() * 1000);
  }
}
BENCHMARK(bench_mailbox)->Name("mailbox_push_pop");

}  // namespace
}  // namespace rmq

BENCHMARK_MAIN();

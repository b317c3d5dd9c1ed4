// Connection, Server and RemotingClient on the simulated network.
#include "daemon/connection.h"

#include "base/log.h"
#include "daemon/remoting_client.h"
#include "daemon/server.h"
#include "proto/headers_namesrv.h"
#include "sim_peer.h"

namespace rmq {
namespace {

using proto::ResponseCode;
using sim::Peer;
using sim::request_frame;

constexpr int32_t echo = 1, slow = 2, big = 3, extents = 4, big_with_room = 5;
constexpr size_t big_bytes = 1 << 20;

class TestService : public Service {
 public:
  Task<void> serve(Request& r) override {
    served++;
    if (r.command.code == slow) {
      co_await wait(r);
      r.reply(ResponseCode::SUCCESS, {}, "slow");
    } else if (r.command.code == big) {
      bigs_in_turn =
          std::exchange(turn_of_big, Loop::current().turns()) == turn_of_big ? bigs_in_turn + 1 : 1;
      most_bigs_in_turn = std::max(most_bigs_in_turn, bigs_in_turn);
      r.reply(ResponseCode::SUCCESS, {}, std::string(big_bytes, 'b'));
    } else if (r.command.code == big_with_room) {
      if (!r.try_take_room(big_bytes)) co_await r.take_room(big_bytes);
      r.reply(ResponseCode::SUCCESS, {}, std::string(big_bytes, 'b'));
    } else if (r.command.code == extents) {
      answer_extents(r);
    } else if (r.command.code == static_cast<int32_t>(proto::GetKvConfig::code)) {
      auto h = proto::GetKvConfig::decode(r.command);
      check(h.has_value());
      if (h->key == "slow") co_await wait(r);
      r.answer<proto::GetKvConfig>({.value = h->key});
    } else {
      r.reply(ResponseCode::SUCCESS, {}, as_text(r.body()));
    }
  }
  Task<void> wait(Request& r) {
    Event wake;
    waiting.push_back(&wake);
    most_waiting = std::max(most_waiting, waiting.size());
    r.connection().hold(wake);
    co_await wake.wait();
    std::erase(waiting, &wake);
    r.connection().unhold(wake);
  }
  void answer_extents(Request& r) {
    auto live = std::make_shared<std::atomic<uint64_t>>(0);
    store::LogMemory* m = store::LogMemory::create(4096, live);
    std::memcpy(m->data(), "onetwo", 6);
    std::vector<store::LogExtent> body;
    body.emplace_back(*m, m->data(), 3);
    body.emplace_back(*m, m->data() + 3, 3);
    m->unref();
    r.answer<proto::DeleteKvConfig>(ResponseCode::SUCCESS, {}, {}, std::move(body), 6);
  }
  void opened(const std::shared_ptr<Connection>& c) override { connections.push_back(c); }
  void closed(const std::shared_ptr<Connection>& c) override {
    EXPECT_FALSE(c->is_open());
    closed_count++;
    waiting_at_close = waiting.size();
    std::erase(connections, c);
  }
  void release() {
    for (Event* w : waiting) w->set();
  }

  int served = 0, closed_count = 0;
  int bigs_in_turn = 0, most_bigs_in_turn = 0;
  uint64_t turn_of_big = UINT64_MAX;
  size_t most_waiting = 0, waiting_at_close = 0;
  std::vector<Event*> waiting;
  std::vector<std::shared_ptr<Connection>> connections;
};

struct World {
  explicit World(sim::SimLoop& loop) : network(loop) {}
  sim::SimNetwork network;
  sim::SimNet server_net{network, "10.0.0.1"}, client_net{network, "10.0.0.2"};
  TestService service;
  Server server{server_net, service};
  Task<std::unique_ptr<Peer>> peer() { return Peer::connect(client_net, "10.0.0.1", server.port()); }
};

using Scenario = Task<void> (*)(World&);
Task<void> run_scenario(World& w, Scenario scenario) {
  auto listening = co_await w.server.listen("10.0.0.1", 9876);
  EXPECT_TRUE(listening);
  co_await scenario(w);
  co_await w.server.stop();
  EXPECT_EQ(w.server.connections(), 0u);
}
void simulate(Scenario scenario) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    sim::SimLoop loop(seed);
    World w(loop);
    loop.run(run_scenario(w, scenario));
  }
}

Task<void> pipelined(World& w) {
  auto p = co_await w.peer();
  std::string frames;
  for (int i = 0; i < 500; i++) frames += request_frame(echo, i, {}, std::to_string(i));
  bool sent = co_await p->send(frames);
  EXPECT_TRUE(sent);
  for (int i = 0; i < 500; i++) {
    auto a = co_await p->next();
    if (!a) {
      ADD_FAILURE() << "answer " << i;
      break;
    }
    EXPECT_EQ(a->command.opaque, i) << "handlers that do not wait answer in order";
    EXPECT_TRUE(a->command.is_response());
    EXPECT_EQ(a->frame.body_text(), std::to_string(i));
  }
  co_await p->close();
}
TEST(Connection, AnswersPipelinedRequestsInOrder) {
  simulate(pipelined);
}

Task<void> overtaken(World& w) {
  auto p = co_await w.peer();
  co_await p->send(request_frame(slow, 1) + request_frame(echo, 2));
  auto first = co_await p->next();
  EXPECT_TRUE(first && first->command.opaque == 2) << "a waiting request holds nobody up";
  w.service.release();
  auto second = co_await p->next();
  EXPECT_TRUE(second && second->command.opaque == 1);
  EXPECT_EQ(second->frame.body_text(), "slow");
  co_await p->close();
}
TEST(Connection, AWaitingRequestBlocksNobody) {
  simulate(overtaken);
}

// Peers that take nothing share what there is, and leave the rest to the others.
Task<void> greedy(World& w) {
  constexpr uint64_t limit = 32u << 20;
  w.service.net_memory.set_limit(limit);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 10; i++) {
    peers.push_back(co_await w.peer());
    std::string frames;
    for (int k = 0; k < 40; k++) frames += request_frame(big_with_room, k);
    bool sent = co_await peers.back()->send(frames);
    EXPECT_TRUE(sent);
  }
  co_await sleep_for(20 * ns_per_s);
  EXPECT_GT(w.service.net_memory.unsent_bytes(), limit / 4);
  EXPECT_LT(w.service.net_memory.unsent_bytes(), limit / 2 + 10 * big_bytes);
  auto modest = co_await w.peer();
  auto a = co_await modest->call(request_frame(big_with_room, 1));
  EXPECT_TRUE(a && a->frame.body_text().size() == big_bytes);
  for (int k = 0; k < 40; k++) {
    a = co_await peers[3]->next(60);
    EXPECT_TRUE(a) << "who begins to take them gets them all: " << k;
    if (!a) break;
  }
  for (auto& p : peers) co_await p->close();
  co_await modest->close();
  co_await w.server.stop();
  EXPECT_EQ(w.service.net_memory.unsent_bytes(), 0u);
  EXPECT_EQ(w.service.net_memory.request_bytes(), 0u);
}
TEST(Connection, PeersThatTakeNothingHaveAShare) {
  simulate(greedy);
}

// Unfinished large requests use up the memory for requests: the next one of them goes, small ones are served.
Task<void> unfinished(World& w) {
  w.service.net_memory.set_limit(16u << 20);
  std::vector<std::unique_ptr<Peer>> peers;
  std::string frame = request_frame(echo, 1, {}, std::string(3u << 20, 'x'));
  for (int i = 0; i < 4; i++) {
    peers.push_back(co_await w.peer());
    co_await peers.back()->send(frame.substr(0, 2'500'000));
  }
  co_await sleep_for(ns_per_s);
  EXPECT_LE(w.service.net_memory.request_bytes(), (8u << 20) + 2'500'000);
  EXPECT_LT(w.server.connections(), 4u) << "one had to go";
  EXPECT_GT(w.server.connections(), 1u);
  auto small = co_await w.peer();
  auto a = co_await small->call(request_frame(echo, 1, {}, "small"));
  EXPECT_TRUE(a && a->frame.body_text() == "small");
  for (auto& p : peers) co_await p->close();
  co_await small->close();
}
TEST(Connection, LargeRequestsHaveALimitTogether) {
  simulate(unfinished);
}

Task<void> oneway(World& w) {
  auto p = co_await w.peer();
  co_await p->send(request_frame(echo, 1, {}, "x", proto::flag_oneway) + request_frame(echo, 2));
  auto a = co_await p->next();
  EXPECT_TRUE(a && a->command.opaque == 2) << "no answer to a one-way request";
  EXPECT_EQ(w.service.served, 2);
  co_await p->close();
}
TEST(Connection, OnewayRequestsAreServedAndNotAnswered) {
  simulate(oneway);
}

Task<void> extent_body(World& w) {
  auto p = co_await w.peer();
  co_await p->send(request_frame(echo, 1, {}, "a") + request_frame(extents, 2) +
                   request_frame(echo, 3, {}, "c"));
  std::string bodies;
  for (int i = 0; i < 3; i++) {
    auto a = co_await p->next();
    EXPECT_TRUE(a && a->command.opaque == i + 1);
    if (a) bodies += std::string(a->frame.body_text()) + "|";
  }
  EXPECT_EQ(bodies, "a|onetwo|c|");
  co_await p->close();
}
TEST(Connection, BodiesOfExtentsStandBetweenOtherAnswers) {
  simulate(extent_body);
}

Task<void> malformed(World& w) {
  auto good = co_await w.peer();
  for (std::string bad : {std::string("\0\0\0\2ab", 6), std::string("\x7f\0\0\0xxxx", 8),
                          std::string("\0\0\0\6\7\0\0\2{}", 10), std::string("\0\0\0\7\0\0\0\3{x}", 11)}) {
    auto p = co_await w.peer();
    testing::internal::CaptureStderr();
    co_await p->send(bad);
    auto a = co_await p->next();
    EXPECT_TRUE(a == nullptr && p->is_closed());
    std::string logged = testing::internal::GetCapturedStderr();
    size_t line = logged.find("malformed frame");
    EXPECT_NE(line, std::string::npos) << logged;
    EXPECT_EQ(logged.find("malformed frame", line + 1), std::string::npos) << "one line: " << logged;
    auto still = co_await good->call(request_frame(echo, 9));
    EXPECT_TRUE(still && still->command.opaque == 9) << "nobody else notices";
    co_await p->close();
  }
  co_await good->close();
}
TEST(Connection, AMalformedFrameClosesOnlyItsConnection) {
  sim::SimLoop loop(1);
  World w(loop);
  loop.run(run_scenario(w, malformed));
}

Task<void> idle(World& w) {
  auto p = co_await w.peer();
  int64_t start_ns = Loop::current().now_ns();
  co_await sleep_for(100 * ns_per_s);
  auto a = co_await p->call(request_frame(echo, 1));
  EXPECT_TRUE(a) << "100 s are not too long";
  co_await sleep_for(100 * ns_per_s);
  EXPECT_EQ(w.server.connections(), 1u) << "it was active 100 s ago";
  auto end = co_await p->next(60);
  EXPECT_TRUE(end == nullptr && p->is_closed());
  EXPECT_NEAR(static_cast<double>(Loop::current().now_ns() - start_ns) / ns_per_s, 220, 1);
  co_await p->close();
}
TEST(Connection, ClosesAfterTwoIdleMinutes) {
  simulate(idle);
}

Task<void> send_many(Peer& p, int count) {
  std::string frames;
  for (int i = 0; i < count; i++) frames += request_frame(slow, i);
  co_await p.send(frames);
}
Task<void> back_pressure(World& w) {
  constexpr int count = 9'000;
  auto p = co_await w.peer();
  Scope scope;
  scope.spawn(send_many(*p, count));
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.service.waiting.size(), limits::requests_in_flight_per_connection);
  EXPECT_LT(w.service.served, count);
  int answered = 0;
  while (answered < count) {
    w.service.release();
    auto a = co_await p->next(1);
    if (!a && p->is_closed()) break;
    if (a) answered++;
  }
  EXPECT_EQ(answered, count) << "none is lost";
  co_await scope.join();
  co_await p->close();
}
TEST(Connection, StopsReadingWhenTooManyAreInFlight) {
  sim::SimLoop loop(1);
  World w(loop);
  loop.run(run_scenario(w, back_pressure));
}

Task<void> deaf_peer(World& w) {
  auto p = co_await w.peer();
  std::string frames;
  for (int i = 0; i < 200; i++) frames += request_frame(big, i);
  co_await p->send(frames);
  co_await sleep_for(ns_per_s);
  if (w.service.connections.size() != 1) {
    ADD_FAILURE() << "connections: " << w.service.connections.size();
    co_return;
  }
  std::shared_ptr<Connection> c = w.service.connections[0];
  EXPECT_GE(c->unsent_bytes(), limits::unsent_bytes_per_connection);
  EXPECT_LE(c->unsent_bytes(), limits::unsent_bytes_per_connection + 2 * big_bytes)
      << "all requests came at once, their answers would not fit";
  EXPECT_LE(w.service.most_bigs_in_turn, 2) << "others have to wait meanwhile";
  co_await sleep_for(130 * ns_per_s);
  EXPECT_FALSE(c->is_open()) << "it took nothing for two minutes";
  co_await p->close();
}
TEST(Connection, ClosesAPeerThatTakesNoAnswers) {
  sim::SimLoop loop(1);
  World w(loop);
  loop.run(run_scenario(w, deaf_peer));
}

Task<void> many_at_once(World& w) {
  constexpr int count = 200;
  auto p = co_await w.peer();
  std::string frames;
  for (int i = 0; i < count; i++) frames += request_frame(big, i);
  co_await p->send(frames);
  co_await sleep_for(ns_per_s);
  EXPECT_LT(w.service.served, count);
  for (int i = 0; i < count; i++) {
    auto a = co_await p->next();
    if (!a) {
      ADD_FAILURE() << "answer " << i << " did not come";
      break;
    }
    EXPECT_EQ(a->command.opaque, i);
    EXPECT_EQ(a->frame.body_text().size(), big_bytes);
  }
  co_await p->close();
}
TEST(Connection, AnswersAllThatCameInOneBuffer) {
  sim::SimLoop loop(1);
  World w(loop);
  loop.run(run_scenario(w, many_at_once));
}

Task<void> close_while_suspended(World& w) {
  auto p = co_await w.peer();
  auto other = co_await w.peer();
  co_await p->send(request_frame(slow, 1) + request_frame(slow, 2));
  co_await other->send(request_frame(slow, 3));
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.service.waiting.size(), 3u);
  co_await p->close();
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.service.closed_count, 1);
  EXPECT_EQ(w.service.waiting_at_close, 1u) << "closed() comes after the last request of the connection";
  co_await other->close();  // its request is still waiting when the server stops
}
TEST(Connection, CloseEndsSuspendedRequestsFirst) {
  simulate(close_while_suspended);
}

Task<void> stop_while_suspended(World& w) {
  auto p = co_await w.peer();
  co_await p->send(request_frame(slow, 1));
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.service.waiting.size(), 1u);
  co_await w.server.stop();
  EXPECT_EQ(w.service.closed_count, 1);
  EXPECT_TRUE(w.service.waiting.empty());
  auto a = co_await p->next();
  EXPECT_TRUE(a == nullptr && p->is_closed());
  co_await p->close();
}
TEST(Server, StopEndsSuspendedRequests) {
  simulate(stop_while_suspended);
}

Task<void> no_service(World& w) {
  auto listener = co_await w.server_net.listen("10.0.0.1", 1000);
  auto p = co_await Peer::connect(w.client_net, "10.0.0.1", 1000);
  auto stream = co_await (*listener)->accept();
  auto c = std::make_shared<Connection>(std::move(*stream), nullptr, 1000);
  Scope scope;
  scope.spawn(c->serve());
  auto a = co_await p->call(request_frame(40'000, -7));
  EXPECT_TRUE(a && a->command.opaque == -7);
  EXPECT_EQ(a->command.response_code(), ResponseCode::REQUEST_CODE_NOT_SUPPORTED);
  EXPECT_EQ(a->command.remark, " request type 40000 not supported");
  c->close();
  co_await scope.join();
  co_await p->close();
  (*listener)->close();
  co_await (*listener)->closed();
}
TEST(Connection, WithoutAServiceRequestsAreNotSupported) {
  simulate(no_service);
}

Task<void> check_call(RemotingClient& c, std::string key, int64_t timeout_ns, std::optional<Errc> expected) {
  proto::GetKvConfig::Request h{"n", key};
  auto a = co_await c.call<proto::GetKvConfig>(h, {}, Loop::current().now_ns() + timeout_ns);
  if (expected) {
    EXPECT_FALSE(a.has_value()) << key;
    if (a) co_return;
    EXPECT_EQ(a.error().code, *expected) << key;
    co_return;
  }
  EXPECT_TRUE(a.has_value()) << key;
  if (!a) co_return;
  auto header = proto::GetKvConfig::decode_response((*a)->command);
  EXPECT_TRUE(header && header->value == key);
}
Task<void> calls(World& w) {
  RemotingClient client(w.client_net, "10.0.0.1:9876");
  Scope scope;
  for (int i = 0; i < 20; i++) scope.spawn(check_call(client, std::to_string(i), ns_per_s, std::nullopt));
  co_await scope.join();
  EXPECT_EQ(w.server.connections(), 1u) << "one connection for all";
  co_await check_call(client, "slow", ns_per_s, Errc::timeout);
  w.service.release();  // the late answer is dropped
  co_await check_call(client, "after", ns_per_s, std::nullopt);
  scope.spawn(check_call(client, "slow", 100 * ns_per_s, Errc::closed));
  co_await sleep_for(ns_per_s);
  for (auto& c : w.service.connections) c->close();
  co_await scope.join();
  co_await check_call(client, "again", ns_per_s, std::nullopt);  // connects anew
  co_await client.stop();
  co_await check_call(client, "stopped", ns_per_s, Errc::closed);
  RemotingClient nowhere(w.client_net, "10.0.0.1:1");
  proto::GetKvConfig::Request h{"n", "k"};
  auto refused = co_await nowhere.call<proto::GetKvConfig>(h, {}, Loop::current().now_ns() + ns_per_s);
  EXPECT_FALSE(refused.has_value());
  co_await nowhere.stop();
}
TEST(RemotingClient, CallsTimeOutAndReconnect) {
  simulate(calls);
}

TEST(Server, SaysWhyItCannotListen) {
  const Error taken{Errc::io, EADDRINUSE, "bind"}, nobody{Errc::io, EADDRNOTAVAIL, "bind"},
      unknown{Errc::not_found, 0, "resolve a name"}, forbidden{Errc::io, EACCES, "bind"};
  EXPECT_EQ(
      cannot_listen_text("0.0.0.0", 10909, "listenPort - 2", taken),
      "cannot listen at 0.0.0.0:10909 (listenPort - 2): the port is taken. Stop what has it, or set another "
      "listenPort; 'ss -ltnp sport = :10909' says who it is");
  for (const Error& e : {nobody, unknown})
    EXPECT_EQ(cannot_listen_text("192.0.2.1", 9876, "namesrvListenPort", e),
              "cannot listen at 192.0.2.1:9876 (namesrvListenPort): that is no address of this host. Set "
              "bindAddress to one, or to 0.0.0.0 for all");
  EXPECT_EQ(cannot_listen_text("::1", 80, "listenPort", forbidden),
            "cannot listen at ::1:80 (listenPort): ports below 1024 need CAP_NET_BIND_SERVICE. Set another "
            "listenPort");
}

TEST(RemotingClient, SplitsAddresses) {
  EXPECT_EQ(split_host_port("a.b:1")->first, "a.b");
  EXPECT_EQ(split_host_port("[::1]:9876")->first, "::1");
  EXPECT_EQ(split_host_port("[::1]:9876")->second, 9876);
  for (const char* bad : {"", "a", ":1", "a:", "a:0", "a:65536", "a:1x"})
    EXPECT_FALSE(split_host_port(bad)) << bad;
}

}  // namespace
}  // namespace rmq

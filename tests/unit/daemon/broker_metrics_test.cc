// What the broker counts, and that what peers make up cannot make it count without bound.
#include "broker_world.h"
#include "daemon/broker/metrics_export.h"
#include "daemon/exporter.h"

namespace rmq::broker {
namespace {

Task<std::string> scrape(World& w) {
  auto stream = co_await w.client_net.connect("10.0.0.1", 5557, no_deadline);
  std::string request = "GET /metrics HTTP/1.0\r\n\r\n", out;
  iovec v{request.data(), request.size()};
  [[maybe_unused]] auto sent = co_await (*stream)->send({&v, 1});
  for (;;) {
    auto got = co_await (*stream)->recv(no_deadline);
    if (!got) break;
    out += as_text(got->bytes());
  }
  (*stream)->close();
  co_await (*stream)->closed();
  co_return out;
}

Task<void> counted(World& w) {
  for (int i = 0; i < 3; i++) co_await w.send("T", "m");
  co_await w.send("T", "m", "__SHARDINGKEY\x01k\x02");
  const BrokerMetrics& m = w.broker.metrics;
  EXPECT_EQ(m.topics().at("T").in[static_cast<size_t>(MessageType::normal)].messages, 3u);
  EXPECT_EQ(m.topics().at("T").in[static_cast<size_t>(MessageType::fifo)].messages, 1u);
  auto a = co_await w.pull("T", 0);
  EXPECT_EQ(records(a).size(), 4u);
  EXPECT_EQ(m.pairs().at("T@g").pulled.messages, 4u);
  auto waiting = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await waiting->send(w.pull_frame("T", 4, "*", 1000));
  co_await sleep_for(100 * ns_per_ms);
  EXPECT_EQ(m.at_work(Processor::pull), 0) << "who waits for messages is not at work";
  a = co_await waiting->next();
  EXPECT_EQ(code_of(a), 19);
  bool held = false;
  for (const auto& [key, rpc] : m.rpcs())
    if (rpc.held)
      held = rpc.request_code == 11 && rpc.response_code == 19 && rpc.ms.counts[6] + rpc.ms.counts[7] == 1;
  EXPECT_TRUE(held) << "it took a second";
  co_await waiting->close();
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "T"}});
  EXPECT_EQ(code_of(a), 0);
  EXPECT_FALSE(m.topics().contains("T"));
  EXPECT_FALSE(m.pairs().contains("T@g"));
}
TEST(BrokerMetrics, CountsByTopicAndGroupUntilTheyGo) {
  simulate({counted});
}

Task<void> made_up_codes(World& w) {
  const size_t before = w.broker.metrics.rpcs().size();
  for (int32_t code = 30'000; code < 30'200; code++) {
    auto a = co_await w.call(static_cast<RequestCode>(code), {});
    EXPECT_EQ(code_of(a), 3);
  }
  EXPECT_EQ(w.broker.metrics.rpcs().size(), before + 1);
  for (const auto& [key, rpc] : w.broker.metrics.rpcs())
    if (rpc.response_code == 3) EXPECT_EQ(rpc.ms.count(), 200u);
}
TEST(BrokerMetrics, MadeUpCodesShareASeries) {
  simulate({made_up_codes});
}

// A page is made between other tasks: topics and groups that go meanwhile do no harm.
Task<void> changes_while_scraping(World& w) {
  Exporter exporter(w.server_net, {true, "10.0.0.1", 5557, 10'000});
  BrokerExport source(w.broker);
  exporter.add(source, BrokerExport::labels(w.config));
  Event stop;
  Scope scope;
  scope.spawn(exporter.run(stop));
  const std::string heartbeat = R"({"clientID":"c","consumerDataSet":[{"groupName":"g",)"
                                R"("subscriptionDataSet":[{"topic":"T0","subString":"*"}]}]})";
  co_await w.peer->call(w.request(RequestCode::HEART_BEAT, {}, heartbeat));
  for (int i = 0; i < 300; i++) co_await w.send("T" + std::to_string(i), "m");
  auto other = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  std::string page;
  Scope scraping;
  auto take = [](World& world, std::string& into) -> Task<void> { into = co_await scrape(world); };
  scraping.spawn(take(w, page));
  for (int i = 0; i < 300; i++) {
    const std::string topic = "T" + std::to_string(i);
    co_await other->call(w.request(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", topic}}));
  }
  co_await scraping.join();
  EXPECT_NE(
      page.find("rocketmq_messages_in_total{cluster=\"DefaultCluster\",node_id=\"b\",node_type=\"broker\""),
      std::string::npos);
  page = co_await scrape(w);
  EXPECT_EQ(page.find("topic=\"T"), std::string::npos);
  EXPECT_NE(page.find("rocketmq_topic_number{"), std::string::npos);
  co_await other->close();
  co_await exporter.remove(source);
  stop.set();
  co_await scope.join();
}
TEST(BrokerMetrics, TopicsMayGoWhileAPageIsMade) {
  simulate({changes_while_scraping});
}

// All topics of a large broker are deleted one by one, then all groups: each deletion looks at what it
// deletes, not at everything that is left.
Task<void> mass_deletion(World& w) {
  constexpr int topics = 100, groups = 10;
  BrokerMetrics& m = w.broker.metrics;
  OffsetManager& o = w.broker.offsets;
  const auto topic_name = [](int t) { return "T" + std::to_string(t); };
  const auto group_name = [](int g) { return "g" + std::to_string(g); };
  for (int t = 0; t < topics; t++) {
    w.broker.topics.put({.topic_name = topic_name(t)}, w.broker.wall_ms());
    m.message_in(topic_name(t), MessageType::normal, 1, 100);
    for (int g = 0; g < groups; g++) {
      m.messages_out(topic_name(t), group_name(g), 1, 100);
      o.commit(group_name(g), topic_name(t), 0, 7);
    }
  }
  EXPECT_EQ(o.topics_of("g0").size(), size_t{topics});
  EXPECT_EQ(o.groups_of("T0").size(), size_t{groups});
  const uint64_t series_before = m.looked_at(), offsets_before = o.looked_at();
  for (int t = 0; t < topics / 2; t++) {
    auto a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", topic_name(t)}});
    EXPECT_EQ(code_of(a), 0);
  }
  EXPECT_EQ(o.topics_of("g0").size(), size_t{topics / 2});
  EXPECT_EQ(m.pairs().size(), size_t{topics / 2 * groups});
  for (int g = 0; g < groups; g++) {
    auto a = co_await w.call(RequestCode::DELETE_SUBSCRIPTIONGROUP,
                             {{"groupName", group_name(g)}, {"cleanOffset", "true"}});
    EXPECT_EQ(code_of(a), 0);
  }
  EXPECT_TRUE(m.pairs().empty());
  EXPECT_EQ(m.topics().size(), size_t{topics / 2});
  EXPECT_TRUE(o.groups_of(topic_name(topics - 1)).empty());
  EXPECT_EQ(o.query("g1", topic_name(topics - 1), 0), std::nullopt);
  // Beside the walk of every ten seconds, over what is left.
  const uint64_t walks = static_cast<uint64_t>(w.broker.now_ns() / (10 * ns_per_s) + 1);
  EXPECT_LE(m.looked_at() - series_before, uint64_t{2 * topics * groups} + walks * topics * (groups + 1));
  EXPECT_LE(o.looked_at() - offsets_before, uint64_t{4 * topics * groups});
}
TEST(BrokerMetrics, AMassDeletionIsLinear) {
  simulate({mass_deletion});
}

}  // namespace
}  // namespace rmq::broker

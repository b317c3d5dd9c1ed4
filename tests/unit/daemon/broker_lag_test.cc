// How far groups are behind, also those that nobody is a member of just now: which pairs of topic and group
// are told, and that however many there are neither the page nor the work for it grows without bound.
#include "base/limits.h"
#include "broker_world.h"
#include "daemon/broker/consumer_lag.h"
#include "pop_client.h"

namespace rmq::broker {
namespace {

// The one of that pair; lag -1: it is not told. More than once fails.
ConsumerLag lag_in(const std::vector<ConsumerLag>& all, std::string_view group, std::string_view topic,
                   bool retry = false) {
  ConsumerLag found;
  found.lag = -1;
  for (const ConsumerLag& l : all) {
    if (l.group != group || l.topic != topic || l.retry != retry) continue;
    EXPECT_EQ(found.lag, -1) << "twice: " << group << " " << topic;
    found = l;
  }
  return found;
}

Task<void> commit(World& w, std::string_view group, std::string_view topic, int64_t offset) {
  auto a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET, {{"consumerGroup", group},
                                                                 {"topic", topic},
                                                                 {"queueId", "0"},
                                                                 {"commitOffset", std::to_string(offset)}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
}

std::string heartbeat(std::string_view type) {
  return R"({"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":")" + std::string(type) +
         R"(","subscriptionDataSet":[{"topic":"T","subString":"*"}]}]})";
}

// A group is told of before its members come, while they are there, and when they are gone.
Task<void> comes_and_goes(World& w) {
  ConsumerLagCalculator lags(w.broker);
  for (int i = 0; i < 5; i++) co_await w.send("T", "m");
  auto member = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await member->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("CONSUME_PASSIVELY")));
  auto a = co_await w.pull("T", 0);
  EXPECT_EQ(records(a).size(), 5u);
  co_await commit(w, "g", "T", 2);
  auto all = co_await lags.all();
  EXPECT_EQ(all.size(), 1u);
  ConsumerLag l = lag_in(all, "g", "T");
  EXPECT_EQ(l.lag, 3);
  EXPECT_EQ(l.inflight, 3);
  EXPECT_EQ(l.ready, 0);
  co_await member->close();
  for (int i = 0; i < 15; i++) {
    co_await sleep_for(60 * ns_per_s);
    co_await w.peer->call(w.request(RequestCode::GET_BROKER_RUNTIME_INFO, {}));  // or it is closed as idle
  }
  all = co_await lags.all();
  EXPECT_EQ(all.size(), 1u);
  l = lag_in(all, "g", "T");
  EXPECT_EQ(l.lag, 3);
  EXPECT_EQ(l.inflight, 0) << "nobody has them";
  EXPECT_EQ(l.ready, 3);
  EXPECT_GT(l.latency_ms, 890'000);
  EXPECT_EQ(l.queueing_ms, l.latency_ms);
  co_await commit(w, "g", "T", 5);
  all = co_await lags.all();
  EXPECT_TRUE(all.empty()) << "nothing waits for it";
  co_await w.send("T", "m");
  all = co_await lags.all();
  EXPECT_EQ(lag_in(all, "g", "T").lag, 1);
  member = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await member->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("CONSUME_PASSIVELY")));
  co_await sleep_for(ns_per_s);
  all = co_await lags.all();
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(lag_in(all, "g", "T").lag, 1);
  co_await member->close();
  co_await sleep_for(ns_per_s);
  a = co_await w.call(RequestCode::DELETE_SUBSCRIPTIONGROUP, {{"groupName", "g"}});
  EXPECT_EQ(code_of(a), 0);
  all = co_await lags.all();
  EXPECT_TRUE(all.empty()) << "a deleted group waits for nothing";
}
TEST(BrokerLag, OfAGroupWithAndWithoutMembers) {
  simulate({comes_and_goes});
}

// What tools and the broker itself keep offsets for; retry topics and topics that are gone.
Task<void> not_told(World& w) {
  ConsumerLagCalculator lags(w.broker);
  for (const char* topic : {"T", "%RETRY%g", "TBW102"}) {
    co_await w.send(topic, "m");
    for (const char* group : {"g", "TOOLS_CONSUMER"}) {
      w.broker.groups.find_or_create(group, w.broker.wall_ms());
      w.broker.offsets.commit(group, topic, 0, 0);
    }
  }
  w.broker.offsets.commit("nobody", "T", 0, 0);
  w.broker.offsets.commit("g", "Gone", 0, 0);
  auto all = co_await lags.all();
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(lag_in(all, "g", "T").lag, 1);
  auto a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "T"}});
  EXPECT_EQ(code_of(a), 0);
  all = co_await lags.all();
  EXPECT_TRUE(all.empty());
}
TEST(BrokerLag, OfNobodyElse) {
  simulate({not_told});
}

// Popped and not acknowledged is behind, too; and so are the copies in the retry topic.
Task<void> popped(World& w) {
  ConsumerLagCalculator lags(w.broker);
  for (int i = 0; i < 5; i++) co_await w.send("T", "m");
  PopAsk p;
  p.most = 2;
  p.invisible_ms = 10'000;
  auto a = co_await w.peer->call(pop_frame(++w.opaque, p, w.broker.wall_ms()));
  EXPECT_EQ(popped_of(a).size(), 2u);
  auto all = co_await lags.all();
  ConsumerLag l = lag_in(all, "g", "T");
  EXPECT_EQ(l.lag, 5);
  EXPECT_EQ(l.inflight, 2);
  EXPECT_EQ(l.ready, 3);
  co_await sleep_for(60 * ns_per_s);
  all = co_await lags.all();
  EXPECT_EQ(lag_in(all, "g", "T").lag, 3);
  const int64_t retried = lag_in(all, "g", "T", true).lag;
  EXPECT_TRUE(retried == 2 || retried == -1) << retried;
}
TEST(BrokerLag, OfAGroupThatPops) {
  simulate({popped});
}

std::string name(const char* front, int n) {
  std::string digits = std::to_string(n);
  return front + std::string(5 - digits.size(), '0') + digits;
}

// More pairs than are shown: those with the most messages are.
Task<void> many(World& w) {
  ConsumerLagCalculator lags(w.broker);
  constexpr int topics = 60, groups = 100;
  static_assert(topics * groups > limits::offline_lags_max);
  for (int t = 0; t < topics; t++)
    for (int n = 0; n <= t / 20; n++) co_await w.send(name("T", t), "m");
  for (int g = 0; g < groups; g++) {
    w.broker.groups.find_or_create(name("g", g), w.broker.wall_ms());
    for (int t = 0; t < topics; t++) w.broker.offsets.commit(name("g", g), name("T", t), 0, 0);
  }
  for (int round = 0; round < 3; round++) {
    auto all = co_await lags.all();
    EXPECT_EQ(all.size(), limits::offline_lags_max);
    EXPECT_EQ(lags.offline_left_out(), topics * groups - limits::offline_lags_max);
    size_t by_lag[4] = {};
    for (const ConsumerLag& l : all) by_lag[std::clamp<int64_t>(l.lag, 0, 3)]++;
    EXPECT_EQ(by_lag[3], 2000u);
    EXPECT_EQ(by_lag[2], 2000u);
    EXPECT_EQ(by_lag[1], 1000u);
  }
  for (int g = 0; g < groups; g++) w.broker.offsets.remove_group(name("g", g));
  auto all = co_await lags.all();
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(lags.offline_left_out(), 0u);
}
TEST(BrokerLag, TheLargestOfVeryMany) {
  simulate({many});
}

// More pairs than one call looks at: it goes on where the last one ended, and forgets nothing meanwhile.
Task<void> in_turns(World& w) {
  ConsumerLagCalculator lags(w.broker);
  constexpr int topics = 100, groups = 1050;
  static_assert(topics * groups > limits::offline_pairs_at_once);
  for (int t = 0; t < topics; t++) co_await w.send(name("T", t), "m");
  for (int g = 0; g < groups; g++) {
    w.broker.groups.find_or_create(name("g", g), w.broker.wall_ms());
    for (int t = 0; t < topics; t++) w.broker.offsets.commit(name("g", g), name("T", t), 0, 1);
  }
  for (int g : {10, 1045}) w.broker.offsets.commit(name("g", g), "T00001", 0, 0);
  auto all = co_await lags.all();
  EXPECT_EQ(lag_in(all, name("g", 10), "T00001").lag, 1);
  EXPECT_EQ(all.size(), 1u);
  all = co_await lags.all();
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(lag_in(all, name("g", 1045), "T00001").lag, 1);
  for (int round = 0; round < 2; round++) {
    all = co_await lags.all();
    EXPECT_EQ(all.size(), 2u);
  }
}
TEST(BrokerLag, OfMoreThanOneCallLooksAt) {
  simulate({in_turns});
}

}  // namespace
}  // namespace rmq::broker

// RouteTable: who is known, what is routed, and which version of the truth wins.
#include "daemon/namesrv/route_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/time.h"

namespace rmq::namesrv {
namespace {

using proto::DataVersion;
using proto::JsonStyle;

DataVersion version(int64_t counter) {
  return {0, 1'000 + counter, counter};
}

using Topics = std::vector<std::pair<std::string, int32_t>>;  // name, perm

proto::RegisterBrokerBody body_of(const Topics& topics, DataVersion v) {
  proto::RegisterBrokerBody b;
  b.topic_config_wrapper.data_version = v;
  for (const auto& [name, perm] : topics) {
    proto::TopicConfig c;
    c.topic_name = name;
    c.read_queue_nums = c.write_queue_nums = 4;
    c.perm = perm;
    b.topic_config_wrapper.topic_config_table[name] = c;
  }
  return b;
}

struct RouteTableTest : testing::Test {
  RouteTable table;
  int64_t now_ns = 5 * ns_per_s;

  RouteTable::Registration broker(std::string_view addr, int64_t id = 0, Channel channel = 1,
                                  std::optional<bool> acting = std::nullopt) {
    RouteTable::Registration r;
    r.cluster = "c";
    r.broker_name = "b";
    r.broker_addr = addr;
    r.ha_server_addr = "ha:1";
    r.broker_id = id;
    r.timeout_ns = 120 * ns_per_s;
    r.enable_acting_master = acting;
    r.channel = channel;
    return r;
  }
  RouteTable::Registered add(const RouteTable::Registration& r, const Topics& topics, DataVersion v) {
    return table.register_broker(r, body_of(topics, v), now_ns);
  }
  int32_t perm(std::string_view topic) {
    auto route = table.route_data(topic, {});
    return route ? route->queue_datas.at(0).perm : -1;
  }
};

TEST_F(RouteTableTest, RouteInBothStyles) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  EXPECT_EQ(*table.route("T", JsonStyle::fastjson, {}),
            R"({"brokerDatas":[{"brokerAddrs":{0:"1.1.1.1:1"},"brokerName":"b","cluster":"c",)"
            R"("enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,)"
            R"("readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]})");
  EXPECT_NE(table.route("T", JsonStyle::strict, {})->find(R"("brokerAddrs":{"0":"1.1.1.1:1"})"),
            std::string::npos);
  EXPECT_EQ(table.route("V", JsonStyle::strict, {}), nullptr);
}

TEST_F(RouteTableTest, TheKeptAnswerFollowsEveryChange) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  auto answer = [&] { return *table.route("T", JsonStyle::strict, {}); };
  std::string before = answer();
  EXPECT_EQ(before, answer());
  auto differs = [&](const char* what) {
    std::string after = answer();
    EXPECT_NE(after, before) << what;
    before = after;
  };
  add(broker("1.1.1.1:1"), {{"T", 4}}, version(2));
  differs("perm by registration");
  table.add_write_perm("b");
  differs("add_write_perm");
  table.wipe_write_perm("b");
  differs("wipe_write_perm");
  add(broker("1.1.1.2:1", 1), {{"T", 4}, {"U", 4}}, version(2));
  differs("a slave came");
  table.unregister_broker("c", "b", "1.1.1.2:1");
  differs("a slave left");
  table.register_topic("T", {{"b", 9, 9, 6, 0}});
  differs("register_topic");
  auto r = broker("1.1.1.1:1");
  r.zone_name = "z";
  add(r, {{"T", 6}, {"U", 6}}, version(3));
  differs("zone");
  proto::RegisterBrokerBody filters = body_of({{"T", 6}, {"U", 6}}, version(3));
  filters.filter_server_list = {"f:1"};
  table.register_broker(r, filters, now_ns);
  differs("filter servers");
  table.forget_answer("T");
  EXPECT_NE(table.route("T", JsonStyle::strict, "b:4")->find(R"("orderTopicConf":"b:4")"), std::string::npos);
}

TEST_F(RouteTableTest, TheFirstRegistrationMustNotBeOfOneTopic) {
  using Outcome = RouteTable::Registered::Outcome;
  EXPECT_EQ(add(broker("1.1.1.1:1"), {{"T", 6}}, version(1)).outcome, Outcome::refused);
  EXPECT_EQ(table.route("T", JsonStyle::strict, {}), nullptr);
  EXPECT_TRUE(table.cluster_info().cluster_addr_table.empty()) << "and leaves nothing behind";
  EXPECT_EQ(add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1)).outcome, Outcome::done);
  EXPECT_EQ(add(broker("1.1.1.1:1"), {{"V", 6}}, version(2)).outcome, Outcome::done);
  EXPECT_EQ(perm("V"), 6);
  EXPECT_EQ(perm("T"), 6) << "an incremental registration removes nothing";
}

TEST_F(RouteTableTest, SlavesLearnTheirMasterAndGiveNoTopics) {
  add(broker("1.1.1.2:1", 1), {{"S", 6}, {"T", 6}}, version(1));
  EXPECT_EQ(perm("S"), -1) << "a slave of an old version";
  auto slave = add(broker("1.1.1.2:1", 1), {{"S", 6}, {"T", 6}}, version(1));
  EXPECT_EQ(slave.master_addr, "") << "no master yet";
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  slave = add(broker("1.1.1.2:1", 1), {{"S", 6}, {"T", 6}}, version(2));
  EXPECT_EQ(slave.master_addr, "1.1.1.1:1");
  EXPECT_EQ(slave.ha_server_addr, "ha:1");
  EXPECT_EQ(perm("S"), -1);
}

TEST_F(RouteTableTest, APrimeSlaveGivesReadOnlyTopicsAndActsAsMaster) {
  table.set_options({.support_acting_master = true});
  add(broker("1.1.1.2:1", 2, 1, true), {{"S", 6}, {"T", 6}}, version(1));
  EXPECT_EQ(perm("S"), 4);
  auto route = table.route_data("S", {});
  EXPECT_EQ(route->broker_datas[0].broker_addrs, (std::map<int64_t, std::string>{{0, "1.1.1.2:1"}}));
  table.set_options({});
  route = table.route_data("S", {});
  EXPECT_EQ(route->broker_datas[0].broker_addrs, (std::map<int64_t, std::string>{{2, "1.1.1.2:1"}}));
}

TEST_F(RouteTableTest, WithoutItsMasterASetIsReadOnly) {
  add(broker("1.1.1.1:1", 0, 1, true), {{"T", 6}, {"U", 6}}, version(1));
  add(broker("1.1.1.2:1", 1, 2, true), {{"T", 6}, {"U", 6}}, version(1));
  auto gone = table.unregister_broker("c", "b", "1.1.1.1:1");
  EXPECT_TRUE(gone && gone->min_id_changed && gone->enable_acting_master);
  EXPECT_EQ(perm("T"), 4);
}

TEST_F(RouteTableTest, AHigherStateVersionHoldsTheId) {
  using Outcome = RouteTable::Registered::Outcome;
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, {5, 100, 1});
  EXPECT_EQ(add(broker("1.1.1.9:1"), {{"T", 4}, {"U", 6}}, {4, 200, 9}).outcome, Outcome::ignored);
  EXPECT_EQ(perm("T"), 6);
  EXPECT_EQ(add(broker("1.1.1.9:1"), {{"T", 4}, {"U", 6}}, {6, 200, 9}).outcome, Outcome::done);
  EXPECT_EQ(perm("T"), 4);
  EXPECT_EQ(table.member_group("c", "b").broker_addrs.at(0), "1.1.1.9:1");
  table.unregister_broker("c", "b", "1.1.1.1:1");
  EXPECT_EQ(perm("T"), 4) << "the one that was replaced takes nothing along";
}

TEST_F(RouteTableTest, ADeletedTopicDoesNotComeBackFromAnOldSnapshot) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(5));
  table.delete_topic("T", std::nullopt, now_ns);
  EXPECT_EQ(perm("T"), -1);
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(5));
  EXPECT_EQ(perm("T"), -1) << "taken before the deletion";
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(4));
  EXPECT_EQ(perm("T"), -1) << "taken long before the deletion";
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(6));
  EXPECT_EQ(perm("T"), 6) << "created again";
  table.delete_topic("T", std::nullopt, now_ns);
  table.expire(now_ns + 50 * ns_per_s);
  add(broker("1.1.1.1:1"), {{"U", 6}, {"V", 6}}, version(7));
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(6));
  EXPECT_EQ(perm("T"), -1) << "also when a newer snapshot came in between";
}

TEST_F(RouteTableTest, CrossingChangesAreBothVisible) {
  add(broker("1.1.1.1:1"), {{"A", 6}, {"B", 6}, {"C", 6}}, version(1));
  // A was changed with version 2, B with version 3; they arrive the other way round.
  add(broker("1.1.1.1:1"), {{"B", 4}}, version(3));
  add(broker("1.1.1.1:1"), {{"A", 4}}, version(2));
  EXPECT_EQ(perm("A"), 4);
  EXPECT_EQ(perm("B"), 4);
  add(broker("1.1.1.1:1"), {{"A", 4}, {"B", 6}, {"C", 6}}, version(2));
  EXPECT_EQ(perm("B"), 4) << "the whole table from before B's change does not undo it";
  EXPECT_EQ(*table.data_version("c", "1.1.1.1:1"), version(3));
  add(broker("1.1.1.1:1"), {{"A", 6}, {"B", 6}, {"C", 4}}, version(4));
  EXPECT_EQ(perm("A"), 6);
  EXPECT_EQ(perm("C"), 4);
}

TEST_F(RouteTableTest, ABrokerThatComesAnewIsBelieved) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(9));
  add(broker("1.1.1.2:1", 1), {}, version(9));
  table.unregister_broker("c", "b", "1.1.1.1:1");
  add(broker("1.1.1.1:1"), {{"T", 4}, {"U", 6}}, version(1));
  EXPECT_EQ(perm("T"), 4) << "its files were restored from a backup";
}

TEST_F(RouteTableTest, OlderMeansBothCounterAndClock) {
  EXPECT_TRUE(is_older({0, 1, 1}, {0, 2, 2}));
  EXPECT_TRUE(is_older({0, 1, 1}, {0, 1, 2}));
  EXPECT_FALSE(is_older({0, 1, 1}, {0, 1, 1}));
  EXPECT_FALSE(is_older({0, 9, 1}, {0, 2, 2})) << "counter lost, clock later: a new life";
  EXPECT_FALSE(is_older({0, 1, 9}, {0, 2, 2}));
  EXPECT_TRUE(is_older({1, 9, 9}, {2, 1, 1}));
}

TEST_F(RouteTableTest, AClosedChannelTakesItsBrokersOnly) {
  add(broker("1.1.1.1:1", 0, 7), {{"T", 6}, {"U", 6}}, version(1));
  auto other = broker("1.1.1.5:1", 0, 8);
  other.broker_name = "b2";
  add(other, {{"T", 6}, {"W", 6}}, version(1));
  EXPECT_EQ(table.channel_closed(9).size(), 0u);
  auto gone = table.channel_closed(7);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].broker_addr, "1.1.1.1:1");
  EXPECT_EQ(table.route_data("T", {})->broker_datas.size(), 1u);
  EXPECT_FALSE(table.route_data("U", {}));
  EXPECT_EQ(table.cluster_info().cluster_addr_table.at("c"), std::vector<std::string>{"b2"});
  // A broker that has a new connection already does not leave with the old one.
  auto again = broker("1.1.1.5:1", 0, 10);
  again.broker_name = "b2";
  add(again, {{"T", 6}, {"W", 6}}, version(1));
  EXPECT_EQ(table.channel_closed(8).size(), 0u);
  EXPECT_TRUE(table.route_data("W", {}));
}

TEST_F(RouteTableTest, SilentBrokersExpire) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  EXPECT_TRUE(table.expire(now_ns + 120 * ns_per_s).empty());
  table.heartbeat("c", "1.1.1.1:1", now_ns + 100 * ns_per_s);
  EXPECT_TRUE(table.expire(now_ns + 219 * ns_per_s).empty());
  EXPECT_EQ(table.expire(now_ns + 221 * ns_per_s).size(), 1u);
  EXPECT_EQ(table.topic_count(), 0u);
  EXPECT_EQ(table.broker_count(), 0u);
}

TEST_F(RouteTableTest, TheSameRegistrationIsRecognised) {
  auto r = broker("1.1.1.1:1");
  EXPECT_FALSE(table.refresh_if_same(r, 77, now_ns));
  add(r, {{"T", 6}, {"U", 6}}, version(1));
  EXPECT_FALSE(table.refresh_if_same(r, 77, now_ns));
  table.set_fingerprint("c", "1.1.1.1:1", 77);
  EXPECT_TRUE(table.refresh_if_same(r, 77, now_ns + 100 * ns_per_s));
  EXPECT_TRUE(table.expire(now_ns + 219 * ns_per_s).empty()) << "it is a sign of life";
  EXPECT_FALSE(table.refresh_if_same(r, 78, now_ns)) << "another body";
  r.channel = 2;
  EXPECT_FALSE(table.refresh_if_same(r, 77, now_ns)) << "another connection";
}

TEST_F(RouteTableTest, DeletingInAClusterLeavesTheOthers) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  auto other = broker("1.1.1.5:1");
  other.cluster = "c2";
  other.broker_name = "b2";
  add(other, {{"T", 6}, {"W", 6}}, version(1));
  table.delete_topic("T", "nowhere", now_ns);
  EXPECT_EQ(table.route_data("T", {})->queue_datas.size(), 2u);
  table.delete_topic("T", "c2", now_ns);
  ASSERT_EQ(table.route_data("T", {})->queue_datas.size(), 1u);
  EXPECT_EQ(table.route_data("T", {})->queue_datas[0].broker_name, "b");
  EXPECT_EQ(table.topics_of_cluster("c2"), std::vector<std::string>{"W"});
}

TEST_F(RouteTableTest, MissingTopicsGoOnlyWhenAskedAndOnlyForWholeTables) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}, {"V", 6}}, version(1));
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(2));
  EXPECT_EQ(perm("V"), 6);
  table.set_options({.delete_missing_topics = true});
  add(broker("1.1.1.1:1"), {{"T", 6}}, version(3));
  EXPECT_EQ(perm("V"), 6) << "news of one topic";
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(4));
  EXPECT_EQ(perm("V"), -1);
}

TEST_F(RouteTableTest, WrittenPermissionLastsUntilTheBrokersVersionChanges) {
  add(broker("1.1.1.1:1"), {{"T", 7}, {"U", 6}}, version(1));
  EXPECT_EQ(table.wipe_write_perm("b"), 2);
  EXPECT_EQ(perm("T"), 5);
  add(broker("1.1.1.1:1"), {{"T", 7}, {"U", 6}}, version(1));
  EXPECT_EQ(perm("T"), 5);
  EXPECT_EQ(table.add_write_perm("b"), 2);
  EXPECT_EQ(perm("T"), 6);
  add(broker("1.1.1.1:1"), {{"T", 7}, {"U", 6}}, version(2));
  EXPECT_EQ(perm("T"), 7);
  EXPECT_EQ(table.wipe_write_perm("unknown"), 0);
}

TEST_F(RouteTableTest, RegisterTopicNeedsKnownBrokers) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  table.register_topic("X", {{"b", 1, 1, 6, 0}, {"nobody", 1, 1, 6, 0}});
  EXPECT_EQ(perm("X"), -1);
  table.register_topic("X", {{"b", 1, 1, 6, 0}});
  EXPECT_EQ(perm("X"), 6);
}

TEST_F(RouteTableTest, ListsAndFlags) {
  auto b = body_of({{"T", 6}, {"U", 6}, {"W", 6}}, version(1));
  b.topic_config_wrapper.topic_config_table["T"].topic_sys_flag = 1;
  b.topic_config_wrapper.topic_config_table["U"].topic_sys_flag = 2;
  b.topic_config_wrapper.topic_config_table["W"].topic_sys_flag = 3;
  table.register_broker(broker("1.1.1.1:1"), b, now_ns);
  auto sorted = [](std::vector<std::string> v) {
    std::sort(v.begin(), v.end());
    return v;
  };
  EXPECT_EQ(sorted(table.all_topics()), (std::vector<std::string>{"T", "U", "W"}));
  EXPECT_EQ(sorted(table.topics_by_flag(1, 1)), (std::vector<std::string>{"T", "W"}));
  EXPECT_EQ(table.topics_by_flag(3, 2), (std::vector<std::string>{"U"}));
  EXPECT_EQ(table.system_topics().topic_list, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(table.system_topics().broker_addr, "1.1.1.1:1");
  EXPECT_TRUE(table.member_group("c", "nobody").broker_addrs.empty());
}

TEST_F(RouteTableTest, MappingsOfStaticTopicsAreShown) {
  auto b = body_of({{"T", 6}, {"U", 6}}, version(1));
  b.topic_config_wrapper.topic_queue_mapping_info_map =
      R"({"T":{"bname":"b","currIdMap":{0:1},"topic":"T"}})";
  table.register_broker(broker("1.1.1.1:1"), b, now_ns);
  EXPECT_NE(table.route("T", JsonStyle::fastjson, {})
                ->find(R"("topicQueueMappingByBroker":{"b":{"bname":"b","currIdMap":{"0":1},"topic":"T"}})"),
            std::string::npos)
      << *table.route("T", JsonStyle::fastjson, {});
  EXPECT_EQ(table.route("U", JsonStyle::fastjson, {})->find("topicQueueMappingByBroker"), std::string::npos);
}

// 300 brokers with 1,000 topics each, of 70,000 names: all is found, all goes away, and nothing is left.
TEST_F(RouteTableTest, ManyBrokersAndTopics) {
  constexpr int brokers = 300, topics = 1'000, names = 70'000;
  std::vector<std::string> broker_names, addrs;
  for (int i = 0; i < brokers; i++) {
    broker_names.push_back("b" + std::to_string(i));
    addrs.push_back("10.0.0.1:" + std::to_string(i));
  }
  for (int i = 0; i < brokers; i++) {
    Topics of_broker;
    for (int k = 0; k < topics; k++) of_broker.emplace_back("T" + std::to_string((i * 233 + k) % names), 6);
    auto r = broker(addrs[i], 0, static_cast<Channel>(i) + 1);
    r.broker_name = broker_names[i];
    add(r, of_broker, version(1));
  }
  EXPECT_EQ(table.topic_count(), static_cast<size_t>(names));
  EXPECT_EQ(table.broker_count(), static_cast<size_t>(brokers));
  EXPECT_EQ(table.route_data("T500", {})->queue_datas.size(), 4u);
  ASSERT_NE(table.route("T500", JsonStyle::strict, {}), nullptr);
  for (int i = 0; i < brokers; i++) EXPECT_EQ(table.channel_closed(static_cast<Channel>(i) + 1).size(), 1u);
  EXPECT_EQ(table.topic_count(), 0u);
  EXPECT_TRUE(table.cluster_info().broker_addr_table.empty());
}

// ---- in parts, and by differences ---------------------------------------------------------------------

using Extent = RouteTable::Extent;
using Outcome = RouteTable::Registered::Outcome;

TEST_F(RouteTableTest, PartsMakeAWhole) {
  table.set_options({.delete_missing_topics = true});
  auto part = [&](Extent extent, const Topics& topics, DataVersion v) {
    auto r = broker("1.1.1.1:1");
    r.extent = extent;
    return add(r, topics, v).outcome;
  };
  EXPECT_EQ(part(Extent::next_part, {{"A", 6}, {"B", 6}}, version(1)), Outcome::incomplete) << "of what?";
  EXPECT_EQ(part(Extent::first_part, {{"A", 6}, {"B", 6}}, version(1)), Outcome::done);
  EXPECT_EQ(part(Extent::next_part, {{"C", 6}, {"D", 6}}, version(1)), Outcome::done);
  EXPECT_EQ(part(Extent::last_part, {{"E", 6}}, version(1)), Outcome::done);
  EXPECT_EQ(part(Extent::last_part, {{"F", 6}}, version(1)), Outcome::incomplete) << "it is over";
  for (const char* t : {"A", "B", "C", "D", "E"}) EXPECT_EQ(perm(t), 6) << t;
  part(Extent::first_part, {{"A", 6}, {"B", 4}}, version(2));
  EXPECT_EQ(perm("C"), 6) << "its part may come";
  part(Extent::last_part, {{"D", 6}}, version(3));
  EXPECT_EQ(perm("B"), 4);
  for (const char* t : {"C", "E"}) EXPECT_EQ(perm(t), -1) << t;
  for (const char* t : {"A", "D"}) EXPECT_EQ(perm(t), 6) << t;
}

// What a broker says that comes back with older files is believed to the last part.
TEST_F(RouteTableTest, PartsOfABrokerThatRegistersAnewAreBelieved) {
  add(broker("1.1.1.2:1", 1, 2, true), {{"T", 6}, {"U", 6}}, version(9));
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}, {"V", 6}}, version(9));
  table.channel_closed(1);
  auto r = broker("1.1.1.1:1", 0, 3);
  r.extent = Extent::first_part;
  add(r, {{"T", 4}, {"U", 6}}, version(2));
  r.extent = Extent::last_part;
  add(r, {{"V", 4}}, version(2));
  EXPECT_EQ(perm("T"), 4);
  EXPECT_EQ(perm("V"), 4);
}

TEST_F(RouteTableTest, ADifferenceLeadsFromOneVersionToTheNext) {
  auto difference = [&](DataVersion from, const Topics& topics, DataVersion to) {
    auto r = broker("1.1.1.1:1", 0, 7);
    r.extent = Extent::difference;
    r.base = from;
    return add(r, topics, to).outcome;
  };
  EXPECT_EQ(difference(version(1), {}, version(1)), Outcome::incomplete) << "nobody knows the broker";
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}}, version(1));
  EXPECT_EQ(difference(version(1), {{"V", 6}}, version(2)), Outcome::done);
  EXPECT_EQ(perm("V"), 6) << "one topic is enough";
  EXPECT_EQ(perm("T"), 6);
  EXPECT_EQ(difference(version(1), {{"W", 6}}, version(3)), Outcome::incomplete);
  EXPECT_EQ(perm("W"), -1);
  EXPECT_EQ(*table.data_version("c", "1.1.1.1:1"), version(2));
  now_ns += 119 * ns_per_s;
  EXPECT_EQ(difference(version(2), {}, version(2)), Outcome::done) << "a sign of life";
  now_ns += 119 * ns_per_s;
  EXPECT_TRUE(table.expire(now_ns).empty());
  EXPECT_TRUE(table.channel_closed(1).empty()) << "it has come over another connection";
  EXPECT_EQ(table.channel_closed(7).size(), 1u);
}

TEST_F(RouteTableTest, ADifferenceTakesDeletedTopicsAwayWhereThatIsWanted) {
  add(broker("1.1.1.1:1"), {{"T", 6}, {"U", 6}, {"V", 6}}, version(1));
  auto r = broker("1.1.1.1:1");
  r.extent = Extent::difference;
  for (const char* gone : {"T", "U"}) {
    table.set_options({.delete_missing_topics = gone[0] == 'U'});
    r.base = version(gone[0] - 'T' + 1);
    proto::RegisterBrokerBody body = body_of({}, version(gone[0] - 'T' + 2));
    body.deleted_topics = {gone, "never there"};
    EXPECT_EQ(table.register_broker(r, body, now_ns).outcome, Outcome::done);
  }
  EXPECT_EQ(perm("T"), 6) << "as with RocketMQ's default";
  EXPECT_EQ(perm("U"), -1);
  EXPECT_EQ(perm("V"), 6);
}

}  // namespace
}  // namespace rmq::namesrv

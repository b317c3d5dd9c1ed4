// How a broker tells name servers of its topics: rmq-namesrvd in parts and by differences, others as
// RocketMQ's broker does, and what happens when one of them goes away.
#include "base/crc.h"
#include "broker_world.h"

namespace rmq::broker {
namespace {

// A registration as it came.
struct Seen {
  size_t frame_bytes = 0;
  std::optional<int32_t> part, parts;
  bool is_difference = false;
  proto::RegisterBrokerBody body;
  const proto::DataVersion& version() const { return body.topic_config_wrapper.data_version; }
  size_t topics() const { return body.topic_config_wrapper.topic_config_table.size(); }
};

void record(Request& r, std::vector<Seen>& seen) {
  auto h = proto::RegisterBroker::decode(r.command);
  EXPECT_TRUE(h && h->body_crc32 == static_cast<int32_t>(body_crc(r.body())));
  auto body = proto::RegisterBrokerBody::parse(r.frame().body_text());
  EXPECT_TRUE(body);
  if (!h || !body) return;
  seen.push_back({r.frame().bytes(), h->part, h->parts, h->difference_of.has_value(), std::move(*body)});
}

// A name server of ours that remembers what it was told.
struct Ours : Service {
  Ours(World& w) : names(NamesrvConfig{}, w.disk, w.server_net), server(w.server_net, *this) {}
  namesrv::NameServer names;
  Server server;
  std::vector<Seen> seen;
  Task<void> serve(Request& r) override {
    if (r.command.code == static_cast<int32_t>(RequestCode::REGISTER_BROKER)) record(r, seen);
    co_await names.serve(r);
  }
  void closed(const std::shared_ptr<Connection>& c) override { names.closed(c); }
};

// One that knows nothing of differences. It takes topics as Apache's does: only from a data version that is
// another than the last.
struct Other : Service {
  Other(World& w) : server(w.server_net, *this) {}
  Server server;
  std::vector<Seen> seen;
  int queries = 0;
  bool is_known = false;
  proto::DataVersion version;
  proto::TopicConfigTable topics;

  Task<void> serve(Request& r) override {
    if (r.command.code == static_cast<int32_t>(RequestCode::QUERY_DATA_VERSION)) {
      queries++;
      auto asked = proto::DataVersion::parse(r.frame().body_text());
      proto::QueryDataVersion::Response header;
      header.changed = !is_known || !asked || *asked != version;
      co_return r.answer<proto::QueryDataVersion>(header, is_known ? version.to_json() : "");
    }
    if (r.command.code != static_cast<int32_t>(RequestCode::REGISTER_BROKER))
      co_return r.reply(ResponseCode::SUCCESS);
    record(r, seen);
    const auto& w = seen.back().body.topic_config_wrapper;
    if (!is_known && w.topic_config_table.size() == 1)
      co_return r.reply(ResponseCode::SYSTEM_ERROR, "register broker failed");
    const bool changed = !is_known || version != w.data_version;
    for (const auto& [name, c] : w.topic_config_table)
      if (changed || !topics.contains(name)) topics[name] = c;
    is_known = true;
    version = w.data_version;
    r.reply(ResponseCode::SUCCESS);
  }
  void closed(const std::shared_ptr<Connection>&) override { forget(); }
  void forget() {
    is_known = false;
    topics.clear();
  }
};

rmq::BrokerConfig with_second_namesrv() {
  rmq::BrokerConfig c = test_config();
  c.namesrvAddr += ";10.0.0.1:9877";
  return c;
}

proto::TopicConfig topic(std::string name, int32_t perm = 6) {
  proto::TopicConfig c;
  c.topic_name = std::move(name);
  c.read_queue_nums = c.write_queue_nums = 4;
  c.perm = perm;
  return c;
}
void make_topics(World& w, int n, const std::string& prefix = "a_topic_with_a_usual_name_") {
  for (int i = 0; i < n; i++) w.broker.topics.put(topic(prefix + std::to_string(i)), w.broker.wall_ms());
}

Task<void> change_one(World& w, std::string name) {
  proto::TopicConfig c = topic(std::move(name));
  auto changed = co_await w.broker.change_topic(std::move(c));
  EXPECT_TRUE(changed);
}

// As simulate(), with one seed: many topics take their time.
void simulate_once(Scenario scenario, const rmq::BrokerConfig& config) {
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  loop.run(run_world(network, disk, config, scenario, {}));
}

template <class Names>
Task<void> listen(Names& n) {
  auto listening = co_await n.server.listen("10.0.0.1", 9877);
  EXPECT_TRUE(listening);
  co_await sleep_for(2 * ns_per_s);  // until the broker has seen it
}

// Every topic once, each request far below the frame limit.
void expect_all(const std::vector<Seen>& seen, const World& w, size_t bytes_max) {
  std::set<std::string> names;
  size_t topics = 0;
  for (const Seen& s : seen) {
    EXPECT_LT(s.frame_bytes, bytes_max);
    topics += s.topics();
    for (const auto& [name, c] : s.body.topic_config_wrapper.topic_config_table) names.insert(name);
  }
  EXPECT_EQ(topics, names.size()) << "none twice";
  EXPECT_EQ(names.size(), w.broker.topics.all().size());
}

Task<void> seventy_thousand(World& w) {
  make_topics(w, 70'000);
  Ours ours(w);
  co_await listen(ours);
  EXPECT_GT(ours.seen.size(), 1u);
  expect_all(ours.seen, w, 1 << 20);
  for (size_t i = 0; i < ours.seen.size(); i++) {
    EXPECT_EQ(ours.seen[i].part, static_cast<int32_t>(i + 1));
    EXPECT_EQ(ours.seen[i].parts, static_cast<int32_t>(ours.seen.size()));
  }
  EXPECT_EQ(ours.names.routes().topic_count(), w.broker.topics.all().size());
  ours.seen.clear();
  co_await change_one(w, "One");
  EXPECT_EQ(ours.seen.size(), 1u);
  EXPECT_TRUE(ours.seen.at(0).is_difference);
  EXPECT_EQ(ours.seen.at(0).topics(), 1u);
  EXPECT_TRUE(ours.names.routes().route_data("One", {})) << "before the client is answered";
  co_await sleep_for(31 * ns_per_s);
  EXPECT_EQ(ours.seen.size(), 2u);
  EXPECT_LT(ours.seen.at(1).frame_bytes, 1000u) << "a sign of life";
  co_await w.broker.registration.unregister_all();
  co_await ours.server.stop();
}
TEST(BrokerRegistration, ToOursInPartsThenByDifferences) {
  simulate_once(seventy_thousand, with_second_namesrv());
}

Task<void> changes_and_deletions(World& w) {
  Ours ours(w);
  NamesrvConfig c;
  c.deleteTopicWithBrokerRegistration = true;
  ours.names.take_config(c);
  make_topics(w, 10);
  co_await listen(ours);
  const std::string first = "a_topic_with_a_usual_name_0";
  EXPECT_TRUE(ours.names.routes().route_data(first, {}));
  w.broker.topics.remove(first, w.broker.wall_ms());
  w.broker.topics.put(topic("a_topic_with_a_usual_name_1", 4), w.broker.wall_ms());
  co_await w.broker.registration.tell_changes();
  EXPECT_FALSE(ours.names.routes().route_data(first, {}));
  EXPECT_EQ(ours.names.routes().route_data("a_topic_with_a_usual_name_1", {})->queue_datas.at(0).perm, 4);
  EXPECT_TRUE(ours.names.routes().route_data("a_topic_with_a_usual_name_2", {}));
  // What concerns all topics is no difference.
  w.broker.config.brokerPermission = 4;
  w.broker.topics.changed(w.broker.wall_ms());
  co_await w.broker.registration.tell_changes();
  EXPECT_EQ(ours.names.routes().route_data("a_topic_with_a_usual_name_2", {})->queue_datas.at(0).perm, 4);
  // A name server that has lost the broker, though the connection is there, gets everything again.
  ours.names.routes().unregister_broker("DefaultCluster", "b", w.broker.address_text());
  ours.seen.clear();
  co_await change_one(w, "After");
  EXPECT_TRUE(ours.names.routes().route_data("After", {}));
  EXPECT_TRUE(ours.names.routes().route_data("a_topic_with_a_usual_name_2", {}));
  EXPECT_EQ(ours.seen.size(), 2u) << "the difference, then the whole";
  co_await w.broker.registration.unregister_all();
  co_await ours.server.stop();
}
TEST(BrokerRegistration, ADifferenceIsWholeOrBecomesIt) {
  simulate({changes_and_deletions}, with_second_namesrv());
}

Task<void> many_at_once(World& w) {
  Ours ours(w);
  co_await listen(ours);
  ours.seen.clear();
  Scope scope;
  for (int i = 0; i < 500; i++) scope.spawn(change_one(w, "Many" + std::to_string(i)));
  co_await scope.join();
  EXPECT_LE(ours.seen.size(), 4u) << "changes of the same time go together";
  for (int i = 0; i < 500; i++)
    EXPECT_TRUE(ours.names.routes().route_data("Many" + std::to_string(i), {})) << i;
  co_await w.broker.registration.unregister_all();
  co_await ours.server.stop();
}
TEST(BrokerRegistration, ChangesOfTheSameTimeGoTogether) {
  simulate({many_at_once}, with_second_namesrv());
}

// A name server is stopped and started again with nothing in it. A topic that was made meanwhile, and all
// others, are routed a second later; making it did not wait.
template <class Names>
Task<void> comes_back(World& w) {
  make_topics(w, 5'000);
  auto before = std::make_unique<Names>(w);
  co_await listen(*before);
  co_await before->server.stop();
  before.reset();
  co_await sleep_for(20 * ns_per_s);  // long enough for it to be given up
  const int64_t began_ns = w.broker.now_ns();
  co_await change_one(w, "Meanwhile");
  EXPECT_LT(w.broker.now_ns() - began_ns, ns_per_s / 2);
  Names after(w);
  auto listening = co_await after.server.listen("10.0.0.1", 9877);
  EXPECT_TRUE(listening);
  co_await sleep_for(1'200 * ns_per_ms);
  std::set<std::string> names;
  for (const Seen& s : after.seen)
    for (const auto& [name, c] : s.body.topic_config_wrapper.topic_config_table) names.insert(name);
  EXPECT_EQ(names.size(), w.broker.topics.all().size());
  EXPECT_TRUE(names.contains("Meanwhile"));
  co_await w.broker.registration.unregister_all();
  co_await after.server.stop();
}
TEST(BrokerRegistration, ANameServerThatIsBackHasEverythingWithinASecond) {
  simulate({comes_back<Ours>, comes_back<Other>}, with_second_namesrv());
}

// Another address than ours, where nobody answers: nothing waits for it after the first time.
Task<void> nobody_there(World& w) {
  co_await sleep_for(5 * ns_per_s);
  for (int i = 0; i < 3; i++) {
    const int64_t began_ns = w.broker.now_ns();
    co_await change_one(w, "Alone" + std::to_string(i));
    EXPECT_LT(w.broker.now_ns() - began_ns, ns_per_s / 2);
  }
  EXPECT_EQ(w.broker.registration.status(), "1 of 2 name servers");
}
TEST(BrokerRegistration, WhoIsAwayHoldsUpNobody) {
  simulate({nobody_there}, with_second_namesrv());
}

// To others: all in one request as long as that is no frame that they would refuse.
Task<void> others(World& w) {
  Other other(w);
  co_await listen(other);
  EXPECT_EQ(other.seen.size(), 1u);
  expect_all(other.seen, w, 16 << 20);
  EXPECT_FALSE(other.seen.at(0).part) << "no field that they do not know";
  EXPECT_EQ(other.version, w.broker.topics.data_version());
  co_await change_one(w, "One");
  EXPECT_EQ(other.seen.size(), 2u);
  EXPECT_EQ(other.seen.at(1).topics(), 1u);
  EXPECT_TRUE(other.topics.contains("One"));
  co_await sleep_for(31 * ns_per_s);
  EXPECT_EQ(other.seen.size(), 3u) << "few topics are sent again each time";
  EXPECT_EQ(other.seen.at(2).topics(), w.broker.topics.all().size());
  other.forget();
  co_await change_one(w, "Two");
  EXPECT_EQ(other.topics.size(), w.broker.topics.all().size()) << "one topic was refused, so it got all";
  co_await w.broker.registration.unregister_all();
  co_await other.server.stop();
}
TEST(BrokerRegistration, ToOthersAsRocketMQsBroker) {
  simulate({others}, with_second_namesrv());
}

Task<void> others_split(World& w) {
  make_topics(w, 30'000, std::string(100, 'x'));
  Other other(w);
  co_await listen(other);
  EXPECT_GT(other.seen.size(), 1u) << "as one it would be a frame of 11 MB";
  expect_all(other.seen, w, 10 << 20);
  std::set<int64_t> counters;
  for (const Seen& s : other.seen) counters.insert(s.version().counter);
  EXPECT_EQ(counters.size(), other.seen.size()) << "of one version only the first request would be taken";
  EXPECT_EQ(other.version, w.broker.topics.data_version());
  // Nothing has changed: it is asked, and everything comes again every now and then.
  const int queries = other.queries;
  other.seen.clear();
  co_await sleep_for(200 * ns_per_s);
  EXPECT_TRUE(other.seen.empty());
  EXPECT_GE(other.queries - queries, 6);
  co_await sleep_for(120 * ns_per_s);
  expect_all(other.seen, w, 10 << 20);
  // It has another version than we think.
  other.seen.clear();
  other.version.counter = 1;
  co_await sleep_for(31 * ns_per_s);
  expect_all(other.seen, w, 10 << 20);
  // Changed topics are taken, whatever request they come in, of those that it has.
  for (const auto& [name, c] : other.seen.at(1).body.topic_config_wrapper.topic_config_table)
    w.broker.topics.put(topic(name, 4), w.broker.wall_ms());
  co_await w.broker.registration.tell_changes();
  for (const auto& [name, c] : other.seen.at(1).body.topic_config_wrapper.topic_config_table)
    if (!w.broker.topics.is_system(name)) EXPECT_EQ(other.topics.at(name).perm, 4) << name;
  co_await w.broker.registration.unregister_all();
  co_await other.server.stop();
}
TEST(BrokerRegistration, ToOthersSplitWhereOneFrameWouldBeTooLong) {
  simulate_once(others_split, with_second_namesrv());
}

Task<void> others_split_small(World& w) {
  make_topics(w, 100);
  Other other(w);
  co_await listen(other);
  expect_all(other.seen, w, 16 << 20);
  EXPECT_GE(other.seen.size(), 11u);
  for (const Seen& s : other.seen) EXPECT_LE(s.topics(), 10u);
  co_await w.broker.registration.unregister_all();
  co_await other.server.stop();
}
TEST(BrokerRegistration, SplitRegistrationIsForOthers) {
  rmq::BrokerConfig c = with_second_namesrv();
  c.enableSplitRegistration = true;
  c.splitRegistrationSize = 10;
  simulate({others_split_small}, c);
}

// A registration that is under way when the broker says goodbye does not bring it back.
Task<void> goodbye(World& w) {
  make_topics(w, 20'000);
  Ours ours(w);
  auto listening = co_await ours.server.listen("10.0.0.1", 9877);
  EXPECT_TRUE(listening);
  while (ours.seen.empty()) co_await sleep_for(ns_per_ms);
  EXPECT_LT(ours.seen.size(), 10u);
  co_await w.broker.registration.unregister_all();
  co_await sleep_for(2 * ns_per_s);
  EXPECT_EQ(ours.names.routes().broker_count(), 0u);
  co_await ours.server.stop();
}
TEST(BrokerRegistration, TheGoodbyeIsTheLastWord) {
  simulate_once(goodbye, with_second_namesrv());
}

}  // namespace
}  // namespace rmq::broker

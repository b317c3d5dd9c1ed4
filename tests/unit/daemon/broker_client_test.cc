// Clients, offsets, locks and administration through the whole broker, simulated.
#include <algorithm>

#include "base/crc.h"
#include "broker_world.h"
#include "proto/bodies_stats.h"
#include "proto/headers_namesrv.h"

namespace rmq::broker {
namespace {

std::string heartbeat(std::string_view client, std::string_view group, std::string_view topic,
                      std::string_view tags = "*", int64_t version = 1) {
  proto::HeartbeatData h;
  h.client_id = client;
  h.producer_groups = {"pg"};
  proto::ConsumerData c;
  c.group_name = group;
  auto s = proto::SubscriptionData::build(topic, tags);
  check(s.has_value());
  s->sub_version = version;
  c.subscription_data_set = {*s};
  h.consumers = {c};
  return h.to_json();
}

Task<bool> told_of_change(Peer& p) {
  auto a = co_await p.next(2);
  co_return a && a->command.code == static_cast<int32_t>(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED) &&
      a->command.is_oneway() && a->command.ext.value_or("consumerGroup", "") == "g";
}

Task<void> membership(World& w) {
  auto a = co_await w.send("T", "x");
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent = co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c1", "g", "T")));
  EXPECT_TRUE(sent);
  bool told = co_await told_of_change(*one);
  EXPECT_TRUE(told);
  a = co_await one->next();
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(ext(a, "IS_SUPPORT_HEART_BEAT_V2"), "true");
  EXPECT_NE(w.broker.topics.find("%RETRY%g"), nullptr);
  auto two = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  sent = co_await two->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c2", "g", "T")));
  told = co_await told_of_change(*one);
  EXPECT_TRUE(told) << "a member joined";
  a = co_await w.call(RequestCode::GET_CONSUMER_LIST_BY_GROUP, {{"consumerGroup", "g"}});
  EXPECT_EQ(body_text(a), R"({"consumerIdList":["c1","c2"]})");
  co_await two->close();
  told = co_await told_of_change(*one);
  EXPECT_TRUE(told) << "a member's connection closed";
  a = co_await w.call(RequestCode::GET_CONSUMER_LIST_BY_GROUP, {{"consumerGroup", "g"}});
  EXPECT_EQ(body_text(a), R"({"consumerIdList":["c1"]})");
  a = co_await w.call(RequestCode::GET_CONSUMER_CONNECTION_LIST, {{"consumerGroup", "g"}});
  auto shown = proto::ConsumerConnection::parse(body_text(a));
  EXPECT_TRUE(shown && shown->connection_set.size() == 1 && shown->connection_set[0].client_id == "c1");
  a = co_await one->call(
      w.request(RequestCode::UNREGISTER_CLIENT, {{"clientID", "c1"}, {"consumerGroup", "g"}}));
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.call(RequestCode::GET_CONSUMER_LIST_BY_GROUP, {{"consumerGroup", "g"}});
  EXPECT_EQ(code_of(a), 1) << "an empty group is an error, as everywhere";
  a = co_await w.call(RequestCode::GET_CONSUMER_CONNECTION_LIST, {{"consumerGroup", "g"}});
  EXPECT_EQ(code_of(a), 206);
  co_await one->close();
}
TEST(BrokerClient, MembersComeAndGo) {
  simulate({membership});
}

Task<void> told_soon(World& w, Peer& p, int64_t since_ns) {
  bool told = co_await told_of_change(p);
  EXPECT_TRUE(told);
  EXPECT_LE(w.broker.now_ns() - since_ns, ns_per_s / 4);
}

// A group that starts as a whole: each member learns of the others soon, and not of each alone.
Task<void> crowd(World& w) {
  constexpr size_t n = 2000;
  std::vector<std::unique_ptr<Peer>> all;
  for (size_t i = 0; i < n; i++) {
    std::unique_ptr<Peer> p = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    co_await p->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c" + std::to_string(i), "g", "T")));
    all.push_back(std::move(p));
  }
  co_await sleep_for(2 * ns_per_s);
  EXPECT_EQ(w.broker.clients.consumers("g")->channels.size(), n);
  EXPECT_LT(w.broker.clients.told(), 10 * n) << "not each of each";
  Peer& first = *all[0];
  Answer a;
  do a = co_await first.next(1);
  while (a);
  int64_t began_ns = w.broker.now_ns();
  auto late = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await late->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("late", "g", "T")));
  co_await told_soon(w, first, began_ns);
  began_ns = w.broker.now_ns();
  co_await late->close();
  co_await told_soon(w, first, began_ns);
  began_ns = w.broker.now_ns();
  co_await all[1]->close();
  co_await told_soon(w, first, began_ns);
  a = co_await w.call(RequestCode::GET_CONSUMER_LIST_BY_GROUP, {{"consumerGroup", "g"}});
  const std::string list = body_text(a);
  EXPECT_EQ(static_cast<size_t>(std::count(list.begin(), list.end(), ',')), n - 2);
  EXPECT_EQ(list.find("\"late\""), std::string::npos);
  for (auto& p : all) co_await p->close();
}
TEST(BrokerClient, ACrowdIsToldTogether) {
  simulate({crowd});
}

// Members that start one after the other, as the consumers of one program do.
Task<void> few(World& w) {
  std::vector<std::unique_ptr<Peer>> all;
  for (int i = 0; i < 4; i++) {
    std::unique_ptr<Peer> p = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    const int64_t began_ns = w.broker.now_ns();
    co_await p->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c" + std::to_string(i), "g", "T")));
    for (auto& other : all) {
      bool told = co_await told_of_change(*other);
      EXPECT_TRUE(told);
      EXPECT_LE(w.broker.now_ns() - began_ns, 10 * ns_per_ms) << i;
    }
    for (int frames = 0; frames < 2; frames++) {  // its answer, and that it came itself
      auto a = co_await p->next();
      EXPECT_TRUE(a);
    }
    all.push_back(std::move(p));
  }
  for (auto& p : all) co_await p->close();
}
TEST(BrokerClient, AFewAreToldAtOnce) {
  simulate({few});
}

// What is sent while a consumer starts is not missed: it asks for its offset, then for the end.
Task<void> starts_at_the_end(World& w) {
  auto a = co_await w.put_topic("T", "4");
  auto member = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto stranger = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await member->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c1", "g", "T")));
  bool told = co_await told_of_change(*member);
  EXPECT_TRUE(told);
  a = co_await member->next();
  EXPECT_EQ(code_of(a), 0);
  // Asks for its offset; a message comes; asks for the end.
  auto end_seen_by = [&w](Peer& p, int64_t wait_ns) -> Task<std::string> {
    Ext which{{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"setZeroIfNotFound", "false"}};
    auto answer = co_await p.call(w.request(RequestCode::QUERY_CONSUMER_OFFSET, which));
    EXPECT_EQ(code_of(answer), 22);
    answer = co_await w.send("T", "x");
    EXPECT_EQ(code_of(answer), 0);
    co_await sleep_for(wait_ns);
    answer = co_await p.call(w.request(RequestCode::GET_MAX_OFFSET, {{"topic", "T"}, {"queueId", "1"}}));
    EXPECT_EQ(ext(answer, "offset"), "0") << "another queue";
    answer = co_await p.call(w.request(RequestCode::GET_MAX_OFFSET, {{"topic", "T"}, {"queueId", "0"}}));
    co_return ext(answer, "offset");
  };
  std::string end = co_await end_seen_by(*member, 0);
  EXPECT_EQ(end, "0") << "the queue was empty when it asked";
  a = co_await member->call(w.request(RequestCode::GET_MAX_OFFSET, {{"topic", "T"}, {"queueId", "0"}}));
  EXPECT_EQ(ext(a, "offset"), "1") << "once";
  end = co_await end_seen_by(*member, 2 * ns_per_s);
  EXPECT_EQ(end, "1");
  end = co_await end_seen_by(*member, 4 * ns_per_s);
  EXPECT_EQ(end, "3") << "that was too long ago";
  end = co_await end_seen_by(*stranger, 0);
  EXPECT_EQ(end, "4") << "no member: a tool";
  co_await member->close();
  co_await stranger->close();
}
TEST(BrokerClient, AConsumerMissesNothingThatComesWhileItStarts) {
  simulate({starts_at_the_end});
}

Task<void> silent(World& w) {
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c1", "g", "T")));
  for (int i = 0; i < 20; i++) {  // other traffic, no heartbeat
    co_await sleep_for(10 * ns_per_s);
    co_await one->send(w.request(RequestCode::GET_MAX_OFFSET, {{"topic", "T"}, {"queueId", "0"}}));
  }
  EXPECT_EQ(w.broker.clients.consumers("g"), nullptr) << "120 s without a heartbeat";
  co_await one->close();
}
TEST(BrokerClient, SilentMemberIsDropped) {
  simulate({silent});
}

Task<void> registered_subscription(World& w) {
  co_await w.peer->send(w.send_frame("T", "x"));
  auto a = co_await w.peer->next();
  auto pull = [&](std::string_view version) {
    return w.request(RequestCode::PULL_MESSAGE, {{"consumerGroup", "g"},
                                                 {"topic", "T"},
                                                 {"queueId", "0"},
                                                 {"queueOffset", "0"},
                                                 {"maxMsgNums", "32"},
                                                 {"sysFlag", "0"},
                                                 {"commitOffset", "0"},
                                                 {"suspendTimeoutMillis", "0"},
                                                 {"subVersion", version}});
  };
  a = co_await w.peer->call(pull("7"));
  EXPECT_EQ(code_of(a), 24) << "no heartbeat yet";
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c1", "g", "T", "other", 7)));
  co_await sleep_for(ns_per_s);
  a = co_await w.peer->call(pull("7"));
  EXPECT_EQ(code_of(a), 20) << "filtered by the subscription of the heartbeat";
  a = co_await w.peer->call(pull("8"));
  EXPECT_EQ(code_of(a), 25);
  co_await one->close();
}
TEST(BrokerClient, PullByTheRegisteredSubscription) {
  simulate({registered_subscription});
}

// Not an initializer_list: GCC 12 cannot keep one in a statement with co_await.
std::string lock_body(std::string_view client, std::same_as<int> auto... queues) {
  proto::LockBatchRequestBody b;
  b.consumer_group = "g";
  b.client_id = client;
  (b.mq_set.push_back({"T", "b", queues}), ...);
  return b.to_json();
}
size_t granted(const Answer& a) {
  auto b = proto::LockBatchResponseBody::parse(body_text(a));
  return b ? b->lock_ok_mq_set.size() : 99;
}
Task<void> locks(World& w) {
  auto a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 0, 1));
  EXPECT_EQ(granted(a), 2u);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0, 1, 2));
  EXPECT_EQ(granted(a), 1u);
  a = co_await w.call(RequestCode::UNLOCK_BATCH_MQ, {}, lock_body("B", 0));
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0));
  EXPECT_EQ(granted(a), 0u) << "only the owner unlocks";
  co_await sleep_for(40 * ns_per_s);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 0));
  EXPECT_EQ(granted(a), 1u) << "renewed";
  co_await sleep_for(30 * ns_per_s);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0, 1));
  EXPECT_EQ(granted(a), 1u) << "queue 1 ran out after 60 s, queue 0 was renewed";
}
TEST(BrokerClient, QueueLocks) {
  simulate({locks});
}

Task<void> take_locks(World& w) {
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("A", "g", "T", "*", 1)));
  auto two = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await two->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("B", "g", "T", "*", 2)));
  co_await sleep_for(ns_per_s);
  auto a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 0, 1));
  EXPECT_EQ(granted(a), 2u);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("nobody", 5));
  EXPECT_EQ(granted(a), 1u);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 2, 3));
  EXPECT_EQ(granted(a), 2u);
  a = co_await w.call(RequestCode::UNLOCK_BATCH_MQ, {}, lock_body("B", 3));
  EXPECT_EQ(code_of(a), 0);
  co_await one->close();
  co_await two->close();
}
Task<void> locks_are_kept(World& w) {
  auto a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0, 1, 2, 3, 5));
  EXPECT_EQ(granted(a), 3u) << "its own, the one that nobody had, and that of one who is no member";
  co_await sleep_for(50 * ns_per_s);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0));
  EXPECT_EQ(granted(a), 0u) << "its owner may be at work still";
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 1));
  EXPECT_EQ(granted(a), 1u) << "the owner renews";
  co_await sleep_for(15 * ns_per_s);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0, 1));
  EXPECT_EQ(granted(a), 1u) << "queue 0 ran out, 60 s after the start";
}
Task<void> what_ran_out_is_forgotten(World& w) {
  co_await sleep_for(80 * ns_per_s);
}
Task<void> nobody_owns(World& w) {
  auto a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("C", 0, 1, 2, 3));
  EXPECT_EQ(granted(a), 4u);
}
TEST(BrokerClient, QueueLocksOutliveTheBroker) {
  simulate({take_locks, locks_are_kept, what_ran_out_is_forgotten, nobody_owns});
}

// A consumer that locks before its first heartbeat: from its next renewal on the lock is one that is kept.
Task<void> lock_then_heartbeat(World& w, sim::SimDisk& disk) {
  auto a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 0));
  EXPECT_EQ(granted(a), 1u);
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("A", "g", "T", "*", 1)));
  co_await sleep_for(ns_per_s);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 0));
  EXPECT_EQ(granted(a), 1u);
  disk.crash_now();
  co_await one->close();
}
Task<void> only_the_owner(World& w) {
  auto a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("B", 0));
  EXPECT_EQ(granted(a), 0u);
  a = co_await w.call(RequestCode::LOCK_BATCH_MQ, {}, lock_body("A", 0));
  EXPECT_EQ(granted(a), 1u);
}
TEST(BrokerClient, ALockIsKeptFromTheFirstRenewalOfAMember) {
  sim::DiskImage image;
  crash_run<>(1, 0, sim::CrashFate::all_lost(1), image, test_config(), lock_then_heartbeat);
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {}, image);
  loop.run(run_worlds(network, disk, test_config(), {only_the_owner}));
}

Task<void> commit_offsets(World& w) {
  for (int i = 0; i < 5; i++) {
    auto a = co_await w.send("O", "m");
    EXPECT_EQ(code_of(a), 0);
  }
  auto query = [&](std::string_view zero) {
    return w.request(RequestCode::QUERY_CONSUMER_OFFSET,
                     {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"setZeroIfNotFound", zero}});
  };
  auto a = co_await w.peer->call(query("false"));
  EXPECT_EQ(code_of(a), 22);
  a = co_await w.peer->call(query("true"));
  EXPECT_EQ(ext(a, "offset"), "0") << "a young queue";
  a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"commitOffset", "3"}});
  EXPECT_EQ(code_of(a), 26) << "an unknown group is not made by a commit";
  co_await w.peer->call(w.pull_frame("O", 4, "*", 0, "g", 1, 4));
  a = co_await w.peer->call(query("false"));
  EXPECT_EQ(ext(a, "offset"), "4") << "committed by the pull";
  a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"commitOffset", "2"}});
  a = co_await w.peer->call(query("false"));
  EXPECT_EQ(ext(a, "offset"), "2") << "offsets may go back";
  a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}});
  EXPECT_EQ(code_of(a), 29);
  a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "None"}, {"queueId", "0"}, {"commitOffset", "2"}});
  EXPECT_EQ(code_of(a), 17);
}
Task<void> offsets_kept(World& w) {
  auto a = co_await w.call(
      RequestCode::QUERY_CONSUMER_OFFSET,
      {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"setZeroIfNotFound", "false"}});
  EXPECT_EQ(ext(a, "offset"), "2");
}
TEST(BrokerClient, OffsetsAreCommittedAndKept) {
  simulate({commit_offsets, offsets_kept});
}

// A group whose messages went with the end of the log gets what comes in their place.
Task<void> offset_behind_the_end(World& w) {
  auto a = co_await w.send("O", "before");
  co_await w.peer->call(w.pull_frame("O", 1, "*", 0, "g", 1, 7));
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 7);
}
Task<void> set_to_the_end(World& w) {
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 1);
  auto a = co_await w.send("O", "after");
  EXPECT_EQ(code_of(a), 0);
}
Task<void> and_no_further(World& w) {
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 1);
  co_return;
}
TEST(BrokerClient, AnOffsetBehindTheEndOfItsQueueIsSetToItByAStart) {
  simulate({offset_behind_the_end, set_to_the_end, and_no_further});
}

Task<void> topics(World& w) {
  auto create = [&](std::string_view topic, std::string_view queues, std::string_view perm,
                    std::string_view attributes = {}) {
    return w.topic_frame(topic, queues, attributes, perm);
  };
  auto a = co_await w.peer->call(create("New", "3", "6", "+message.type=FIFO"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.call(RequestCode::GET_TOPIC_CONFIG, {{"topic", "New"}});
  auto c = proto::TopicConfig::parse(body_text(a));
  EXPECT_TRUE(c && c->read_queue_nums == 3 && c->attributes.at("message.type") == "FIFO");
  a = co_await w.peer->call(create("New", "3", "8"));
  EXPECT_EQ(code_of(a), 29) << "a perm that means nothing is refused";
  EXPECT_EQ(w.broker.topics.find("New")->perm, 6);
  a = co_await w.peer->call(create("New", "-1", "6"));
  EXPECT_EQ(code_of(a), 29);
  a = co_await w.peer->call(create("TBW102", "3", "6"));
  EXPECT_EQ(code_of(a), 29);
  a = co_await w.peer->call(create("Other", "3", "6", "+no.such=1"));
  EXPECT_EQ(code_of(a), 1);
  for (const char* unserved : {"+queue.type=RocksDBCQ", "+message.type=LITE"}) {
    a = co_await w.peer->call(create("Other", "3", "6", unserved));
    EXPECT_EQ(code_of(a), 1) << unserved;
    EXPECT_NE(remark(a).find(unserved + 1), std::string::npos) << "named: " << remark(a);
  }
  EXPECT_EQ(w.broker.topics.find("Other"), nullptr);
  a = co_await w.peer->call(create("Other", "3", "6", "+message.type=MIXED"));
  EXPECT_EQ(code_of(a), w.config.enableMixedMessageType ? 0 : 29) << remark(a);
  a = co_await w.call(RequestCode::GET_TOPIC_STATS_INFO, {{"topic", "New"}});
  auto stats = proto::TopicStatsTable::parse(body_text(a));
  EXPECT_TRUE(stats && stats->offset_table.size() == 3) << "every queue at once";
  auto ns = co_await Peer::connect(w.client_net, "10.0.0.1", 9876);
  a = co_await ns->call(w.request(RequestCode::GET_ROUTEINFO_BY_TOPIC, {{"topic", "New"}}));
  EXPECT_EQ(code_of(a), 0) << "routable when the creation was answered";
  co_await ns->close();
  a = co_await w.send("New", "x");
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "New"}});
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.call(RequestCode::GET_TOPIC_CONFIG, {{"topic", "New"}});
  EXPECT_EQ(code_of(a), 17);
  EXPECT_EQ(w.store->max_offset("New", 0), 0);
}
TEST(BrokerClient, TopicAdministration) {
  simulate({topics});
  BrokerConfig c = test_config();
  c.enableMixedMessageType = true;
  simulate({topics}, c);
}

// A topic of RocketMQ's that would not be what it says here: the start is refused, by name.
Task<void> nothing(World&) {
  co_return;
}
Task<Result<void>> start_with_topic(sim::SimNetwork& network, Disk& disk, std::string attributes) {
  std::string json = R"({"topicConfigTable":{"T":{"attributes":{)" + attributes +
                     R"(},"perm":6,"readQueueNums":1,"topicName":"T","writeQueueNums":1}}})";
  auto written = co_await store::replace_file(disk, "/store/config/topics.json", json);
  EXPECT_TRUE(written);
  co_return co_await run_until_crash<>(network, disk, test_config(), nothing);
}
Task<void> expect_start(sim::SimNetwork& network, Disk& disk, std::string attributes, std::string why) {
  auto r = co_await start_with_topic(network, disk, attributes);
  EXPECT_EQ(r.has_value(), why.empty()) << attributes;
  if (!r) EXPECT_NE(to_string(r.error()).find(why), std::string::npos) << to_string(r.error());
}
TEST(BrokerClient, TopicsThatAreNotServedRefuseTheStart) {
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  loop.run(expect_start(network, disk, R"("cleanup.policy":"COMPACTION")", ""));
  loop.run(expect_start(network, disk, R"("queue.type":"RocksDBCQ")", "queue.type=RocksDBCQ"));
  loop.run(expect_start(network, disk, R"("queue.type":"BatchCQ","cleanup.policy":"COMPACTION")", "BatchCQ"));
  loop.run(expect_start(network, disk, R"("queue.type":"BatchCQ")", ""));
  loop.run(expect_start(network, disk, R"("cleanup.policy":"DELETE","queue.type":"SimpleCQ")", ""));
}

Task<void> config(World& w) {
  auto a = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "maxMessageSize=10\nbrokerConfigPath=/x\n");
  EXPECT_EQ(code_of(a), 16);
  EXPECT_EQ(w.config.maxMessageSize, 100'000) << "nothing of a refused request is applied";
  a = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "maxMessageSize=10\n");
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.send("T", "12345678901");
  EXPECT_EQ(code_of(a), 13);
  a = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "listenPort=1234\n");
  EXPECT_EQ(code_of(a), 1) << "it needs a restart, and says so";
  EXPECT_NE(remark(a).find("listenPort: kept in /store/config/rmqd.toml, needs a restart"),
            std::string::npos);
  EXPECT_EQ(w.config.listenPort, 10911);
  a = co_await w.call(RequestCode::GET_BROKER_CONFIG, {});
  EXPECT_NE(body_text(a).find("maxMessageSize=10\n"), std::string::npos);
  a = co_await w.call(RequestCode::GET_BROKER_RUNTIME_INFO, {});
  for (const char* key :
       {"putTps", "getTransferredTps", "getTransferedTps", "earliestMessageTimeStamp", "commitLogDiskRatio"})
    EXPECT_NE(body_text(a).find("\"" + std::string(key) + "\":"), std::string::npos) << key;
}
TEST(BrokerClient, Configuration) {
  simulate({config});
}

Task<void> groups(World& w) {
  proto::SubscriptionGroupConfig g;
  g.group_name = "grp";
  g.retry_max_times = 3;
  auto a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, g.to_json());
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.call(RequestCode::GET_SUBSCRIPTIONGROUP_CONFIG, {{"group", "grp"}});
  auto back = proto::SubscriptionGroupConfig::parse(body_text(a));
  EXPECT_TRUE(back && back->retry_max_times == 3);
  g.group_name = "bad name";
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, g.to_json());
  EXPECT_EQ(code_of(a), 29);
}
Task<void> groups_kept(World& w) {
  const auto* g = w.broker.groups.find("grp");
  EXPECT_TRUE(g != nullptr && g->retry_max_times == 3);
  auto a = co_await w.call(RequestCode::DELETE_SUBSCRIPTIONGROUP, {{"groupName", "grp"}});
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.broker.groups.find("grp"), nullptr);
}
TEST(BrokerClient, GroupAdministration) {
  simulate({groups, groups_kept});
}

// A name server that looks at the checksum as Apache's does: without the top bit, and no other way.
struct StrictNamesrv : Service {
  int good = 0, bad = 0;
  Task<void> serve(Request& r) override {
    if (r.command.code != static_cast<int32_t>(RequestCode::REGISTER_BROKER))
      co_return r.reply(ResponseCode::REQUEST_CODE_NOT_SUPPORTED);
    auto h = proto::RegisterBroker::decode(r.command);
    bool right = h && h->body_crc32 == static_cast<int32_t>(body_crc(r.body()));
    (right ? good : bad)++;
    r.reply(right ? ResponseCode::SUCCESS : ResponseCode::SYSTEM_ERROR);
    co_return;
  }
};
Task<void> checksum(World& w) {
  StrictNamesrv strict;
  Server server(w.server_net, strict);
  auto listening = co_await server.listen("10.0.0.1", 9877);
  EXPECT_TRUE(listening);
  co_await sleep_for(2 * ns_per_s);  // until the broker has seen that it is there
  for (int i = 0; i < 16; i++) {     // half of all bodies have a checksum with the top bit set
    proto::TopicConfig c;
    c.topic_name = "Sum" + std::to_string(i);
    auto changed = co_await w.broker.change_topic(c);
    EXPECT_TRUE(changed);
  }
  EXPECT_GE(strict.good, 16);
  EXPECT_EQ(strict.bad, 0);
  EXPECT_EQ(w.broker.registration.status(), "2 of 2 name servers");
  co_await w.broker.registration.unregister_all();
  co_await server.stop();
}
TEST(BrokerClient, RegistrationHasTheChecksumThatApacheWants) {
  rmq::BrokerConfig c = test_config();
  c.namesrvAddr += ";10.0.0.1:9877";
  simulate({checksum}, c);
}

// A group's name is checked wherever one is made, and what makes many tables wait is not asked for.
Task<void> odd_requests(World& w) {
  auto a = co_await w.send("T", "x");
  a = co_await w.call(RequestCode::CLONE_GROUP_OFFSET, {{"srcGroup", "g"}, {"destGroup", "bad\nname"}});
  EXPECT_EQ(code_of(a), 29) << remark(a);
  co_await w.peer->call(w.pull_frame("T", 0));
  a = co_await w.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, {{"topic", "T"},
                                                                   {"group", "g"},
                                                                   {"timestamp", "0"},
                                                                   {"isForce", "true"},
                                                                   {"queueId", "2147483647"},
                                                                   {"offset", "0"}});
  EXPECT_EQ(code_of(a), 29) << remark(a);
  std::string refs = R"({"clientID":"c","consumerDataSet":[{"groupName":"g2","subscriptionDataSet":[)";
  refs += R"({"topic":"T","codeSet":[0)";
  for (int i = 0; i < 5000; i++) refs += ",0";
  refs += "]}";
  for (int i = 0; i < 5000; i++) refs += R"(,{"$ref":"$.consumerDataSet[0].subscriptionDataSet[0]"})";
  refs += "]}]}";
  a = co_await w.call(RequestCode::HEART_BEAT, {}, refs);
  EXPECT_NE(code_of(a), 0) << "a text that stands for 25 million values";
}
TEST(BrokerClient, OddRequestsAreRefused) {
  simulate({odd_requests});
}

// Topics go away while their broker is asked how it is.
Task<void> info_while_deleting(World& w) {
  for (int i = 0; i < 30; i++) co_await w.send("Gone" + std::to_string(i), "x");
  auto other = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  std::string deletions, questions;
  for (int i = 0; i < 30; i++) {
    const std::string topic = "Gone" + std::to_string(i);
    deletions += w.request(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", topic}});
  }
  for (int i = 0; i < 5; i++) questions += w.request(RequestCode::GET_BROKER_RUNTIME_INFO, {});
  co_await w.peer->send(questions);
  co_await other->send(deletions);
  for (int i = 0; i < 5; i++) {
    auto a = co_await w.peer->next();
    EXPECT_EQ(code_of(a), 0);
    EXPECT_EQ(body_text(a).find("\"earliestMessageTimeStamp\":\"-1\""), std::string::npos);
  }
  co_await other->close();
}
TEST(BrokerClient, AskedWhileTopicsGo) {
  simulate({info_while_deleting});
}

TEST(BrokerConfig, LevelsAndCombinations) {
  EXPECT_EQ(DelayLevels::parse("1s 2m 3h 4d")->delay_ms,
            (std::vector<int64_t>{1'000, 120'000, 10'800'000, 345'600'000}));
  for (std::string_view bad : {"", "1", "s", "1s 2x", "0s", "-1s", "1s  2"})
    EXPECT_FALSE(DelayLevels::parse(bad)) << bad;
  auto errors_of = [](void (*change)(rmq::BrokerConfig&)) {
    rmq::BrokerConfig c = test_config();
    change(c);
    ConfigErrors e;
    complete_broker_config(c, false, true, e);
    return e.size();
  };
  EXPECT_EQ(errors_of([](rmq::BrokerConfig&) {}), 0u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.brokerIP1 = "a.host"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.messageDelayLevel = "soon"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.messageDelayLevel = "9999999999999999s"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.brokerClusterName = ""; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.brokerName = "a@b c"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.brokerName = std::string(300, 'n'); }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.bindAddress = "foo"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.namesrvAddr = "xx"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.namesrvAddr = "1.2.3.4:99999;;h:1"; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.namesrvAddr = "h.example:9876;[::1]:9876;"; }), 0u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.memoryLimit = 1 << 20; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.storeMemoryBytes = 1 << 20; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) {
              c.memoryLimit = 100 << 20;
              c.storeMemoryBytes = 51 << 20;
            }),
            1u);
  rmq::BrokerConfig small = test_config();
  small.memoryLimit = 100 << 20;
  small.maxHashSlotNum = 5 << 20;  // 20 MiB
  ConfigErrors none;
  complete_broker_config(small, false, true, none);
  EXPECT_EQ(store_options_of(small).memory_bytes, 20u << 20) << "a quarter of what the slots leave";
  EXPECT_EQ(net_memory_bytes_of(small), 30u << 20);
  EXPECT_EQ(store_options_of(small).waiting_bytes, (80u << 20) / 64 * 3);
  small.storeMemoryBytes = 40 << 20;
  EXPECT_EQ(net_memory_bytes_of(small), 10u << 20) << "less for the network";
  small.messageIndexEnable = false;
  small.storeMemoryBytes = 0;
  complete_broker_config(small, false, true, none);
  EXPECT_EQ(store_options_of(small).memory_bytes, 25u << 20);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) {
              c.memoryLimit = 64 << 20;
              c.maxHashSlotNum = 50'000'000;
            }),
            1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.mappedFileSizeCommitLog = 1'000'001; }), 1u);
  EXPECT_EQ(errors_of([](rmq::BrokerConfig& c) { c.maxMessageSize = 1 << 20; }), 1u);
}

// Connections that send one would be closed, each time.
TEST(BrokerConfig, ALargestMessageFitsIntoMemory) {
  for (int64_t bytes : {4'194'304, 8'700'000, 8'800'000, 16'000'000}) {
    rmq::BrokerConfig c = test_config();
    c.memoryLimit = 64 << 20;
    c.storeMemoryBytes = 0;
    c.maxHashSlotNum = 5'000'000;
    c.mappedFileSizeCommitLog = 1 << 30;
    c.maxMessageSize = bytes;
    ConfigErrors errors;
    complete_broker_config(c, false, true, errors);
    EXPECT_EQ(errors.size(), bytes < 8'750'000 ? 0u : 1u) << bytes;
  }
}

// RocketMQ maps the file by an int.
TEST(BrokerConfig, NoCommitLogFileIsTooLargeForRocketMq) {
  rmq::BrokerConfig c;
  const auto table = rmq::broker_config_table();
  EXPECT_EQ(rmq::config_set(table, c, "mappedFileSizeCommitLog", "2147479552"), "");
  EXPECT_NE(rmq::config_set(table, c, "mappedFileSizeCommitLog", "2147483648"), "");
}

// A start that makes the ConsumeQueues again would take the log away with them.
TEST(BrokerConfig, TheCommitLogHasADirectoryOfItsOwn) {
  auto errors_with = [](const char* commit_log) {
    rmq::BrokerConfig c = test_config();
    c.storePathRootDir = "/data/store";
    c.storePathCommitLog = commit_log;
    rmq::ConfigErrors errors;
    complete_broker_config(c, false, true, errors);
    return errors.size();
  };
  for (const char* good :
       {"", "/data/store/commitlog", "/log", "/data/store/consumequeue2", "/data/consumequeue"})
    EXPECT_EQ(errors_with(good), 0u) << good;
  for (const char* bad : {"/data/store/consumequeue", "/data/store//consumequeue/",
                          "/data/x/../store/index/log", "/data/store/rmqd.batchqueue", "/data/store/config"})
    EXPECT_EQ(errors_with(bad), 1u) << bad;
}

}  // namespace
}  // namespace rmq::broker

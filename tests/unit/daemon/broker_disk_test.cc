// What a store that loses its oldest files looks like to clients, and what an operator may say about it.
#include <map>

#include "broker_world.h"
#include "daemon/broker_config.h"
#include "proto/batch.h"
#include "store/config_file.h"

namespace rmq::broker {
namespace {

TEST(BrokerDisk, HoursOfDeleteWhen) {
  EXPECT_EQ(hours_of("04"), 1u << 4);
  EXPECT_EQ(hours_of("0;23;7"), 1u | 1u << 23 | 1u << 7);
  EXPECT_EQ(hours_of(""), 0u);
  for (const char* wrong : {"24", "-1", "4,5", "four", "04;x"}) EXPECT_FALSE(hours_of(wrong)) << wrong;
  BrokerConfig c = test_config();
  c.deleteWhen = "4am";
  ConfigErrors errors;
  complete_broker_config(c, false, true, errors);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("deleteWhen"), std::string::npos) << errors[0];
}

Task<void> old_messages_go(World& w) {
  for (int i = 0; i < 30; i++) {
    auto sent = co_await w.send("T", std::to_string(i) + std::string(90'000, '.'));
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
  auto set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "fileReservedTime=1\ndeleteWhen=25\n");
  EXPECT_EQ(code_of(set), 29);
  EXPECT_EQ(w.store->options().retention.file_reserved_ms, 72 * 3'600'000) << "all or nothing";
  std::string every_hour = "0";
  for (int h = 1; h < 24; h++) every_hour += ";" + std::to_string(h);
  set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {},
                        "fileReservedTime=1\ndeleteWhen=" + every_hour + "\n");
  EXPECT_EQ(code_of(set), 0) << remark(set);
  co_await sleep_for(2 * 3600 * ns_per_s);
  // The connection was silent for longer than channelExpiredTimeout.
  co_await w.peer->close();
  w.peer = co_await sim::Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto min = co_await w.call(RequestCode::GET_MIN_OFFSET, {{"topic", "T"}, {"queueId", "0"}});
  const std::string offset = ext(min, "offset");
  EXPECT_EQ(offset, "22") << "two files of 11 messages";
  auto pulled = co_await w.pull("T", 3);
  EXPECT_EQ(code_of(pulled), 21) << remark(pulled);
  EXPECT_EQ(remark(pulled), "OFFSET_TOO_SMALL");
  EXPECT_EQ(ext(pulled, "nextBeginOffset"), offset);
  EXPECT_EQ(ext(pulled, "minOffset"), offset);
  pulled = co_await w.pull("T", 22);
  EXPECT_EQ(code_of(pulled), 0) << remark(pulled);
}
TEST(BrokerDisk, OldMessagesGo) {
  simulate({old_messages_go});
}

// What an administrator may ask for at any hour.
Task<void> cleaning(World& w) {
  for (int i = 0; i < 3; i++) {
    auto sent = co_await w.send("Old", std::to_string(i));
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
  auto committed =
      co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "Old"}, {"queueId", "0"}, {"commitOffset", "3"}});
  auto pulled = co_await w.pull("Old", 0);
  EXPECT_EQ(code_of(pulled), 0) << remark(pulled);
  committed =
      co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "Old"}, {"queueId", "0"}, {"commitOffset", "3"}});
  EXPECT_EQ(code_of(committed), 0) << remark(committed);
  for (int i = 0; i < 30; i++) {
    auto sent = co_await w.send("T", std::to_string(i) + std::string(90'000, '.'));
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
  w.config.fileReservedTime = 0;
  w.config.deleteWhen = "";
  w.broker.apply_config();
  co_await sleep_for(90 * ns_per_s);
  EXPECT_EQ(w.store->min_physical_offset(), 0) << "it is not the hour";
  auto done = co_await w.call(RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE, {});
  EXPECT_EQ(code_of(done), 0) << remark(done);
  EXPECT_EQ(w.store->max_offset("Old", 0), 3) << "its messages are there";
  done = co_await w.call(RequestCode::DELETE_EXPIRED_COMMITLOG, {});
  EXPECT_EQ(code_of(done), 0) << remark(done);
  co_await sleep_for(5 * ns_per_s);
  EXPECT_GT(w.store->min_physical_offset(), 0);
  EXPECT_EQ(w.store->min_offset("Old", 0), 3);
  done = co_await w.call(RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE, {});
  EXPECT_EQ(code_of(done), 0) << remark(done);
  EXPECT_EQ(w.store->max_offset("Old", 0), 0);
  // The group misses nothing of what comes, although its consumer is still at 3.
  auto sent = co_await w.send("Old", "new");
  EXPECT_EQ(ext(sent, "queueOffset"), "0");
  pulled = co_await w.pull("Old", 3);
  EXPECT_EQ(code_of(pulled), 21) << remark(pulled);
  EXPECT_EQ(ext(pulled, "nextBeginOffset"), "0");
  pulled = co_await w.pull("Old", 0);
  EXPECT_EQ(bodies(pulled), "new");
}
TEST(BrokerDisk, CleaningOnRequest) {
  BrokerConfig c = test_config();
  c.channelExpiredTimeout = 600'000;
  simulate({cleaning}, c);
}

Task<void> unused_topics_go(World& w) {
  auto sent = co_await w.send("Kept", "kept");
  store::MessageIn m;
  m.topic = "Orphan";  // as if its topics.json had been lost
  m.body = as_bytes("x");
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
  auto done = co_await w.call(RequestCode::CLEAN_UNUSED_TOPIC, {});
  EXPECT_EQ(code_of(done), 0) << remark(done);
  EXPECT_EQ(w.store->max_offset("Orphan", 0), 0);
  EXPECT_EQ(w.store->max_offset("Kept", 0), 1);
}
TEST(BrokerDisk, UnusedTopicsGo) {
  simulate({unused_topics_go});
}

// The disk has no room: what is refused, with which words, and what goes on.
Task<void> full_disk(World& w) {
  auto sent = co_await w.send("T", "first");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  auto set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "diskReservedBytes=1125899906842624\n");
  EXPECT_EQ(code_of(set), 0) << remark(set);
  co_await sleep_for(2 * ns_per_s);
  sent = co_await w.send("T", "second");
  EXPECT_EQ(code_of(sent), 14);
  for (const char* part : {"the file system at / has ", " bytes free, the limit is 1125899906842624 bytes"})
    EXPECT_NE(remark(sent).find(part), std::string::npos) << remark(sent);
  auto pulled = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(pulled), "first");
  auto committed =
      co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"commitOffset", "1"}});
  EXPECT_EQ(code_of(committed), 0) << remark(committed);
  auto back = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK,
                              {{"offset", std::to_string(records(pulled).at(0).physical_offset)},
                               {"group", "g"},
                               {"delayLevel", "1"},
                               {"maxReconsumeTimes", "16"}});
  EXPECT_EQ(code_of(back), 0) << remark(back);
  co_await sleep_for(5 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("%RETRY%g", 0), 1) << "delivered after its delay";
  sent = co_await w.send("%RETRY%g", "the client's way to give it back");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "diskReservedBytes=0\n");
  EXPECT_EQ(code_of(set), 0) << remark(set);
  co_await sleep_for(2 * ns_per_s);
  sent = co_await w.send("T", "third");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
}
TEST(BrokerDisk, AFullDiskRefusesSendsAlone) {
  simulate({full_disk});
}

// A topic that only a refused message asked for.
Task<void> no_topic_on_a_full_disk(World& w) {
  auto set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "diskReservedBytes=1125899906842624\n");
  EXPECT_EQ(code_of(set), 0) << remark(set);
  co_await sleep_for(2 * ns_per_s);
  auto sent = co_await w.send("New", "refused");
  EXPECT_EQ(code_of(sent), 14);
  EXPECT_NE(remark(sent).find("the file system at / has "), std::string::npos) << remark(sent);
  EXPECT_EQ(ext(sent, "MSG_REGION"), "DefaultRegion");
  std::string batch;
  proto::append_batch_message(batch, 0, as_bytes("refused"), "");
  sent = co_await w.peer->call(w.batch_frame("New", batch));
  EXPECT_EQ(code_of(sent), 14);
  EXPECT_EQ(w.broker.topics.find("New"), nullptr);
  EXPECT_FALSE(w.names.routes().route_data("New", ""));
  // What is wrong with the request is said first.
  sent = co_await w.send("N?w", "refused");
  EXPECT_EQ(code_of(sent), 29) << remark(sent);
  sent = co_await w.send("%RETRY%new", "the client's way to give it back");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  // A reply is for its client, stored or not.
  auto replied = co_await w.call(RequestCode::SEND_REPLY_MESSAGE_V2,
                                 {{"a", "pg"},
                                  {"b", "Replies"},
                                  {"c", "TBW102"},
                                  {"d", "4"},
                                  {"e", "0"},
                                  {"f", "0"},
                                  {"g", "1"},
                                  {"h", "0"},
                                  {"i", ""},
                                  {"j", "0"}},
                                 "x");
  EXPECT_EQ(remark(replied), "reply message properties[REPLY_TO_CLIENT] is null");
  set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "diskReservedBytes=0\n");
  EXPECT_EQ(code_of(set), 0) << remark(set);
  co_await sleep_for(2 * ns_per_s);
  sent = co_await w.send("New", "taken");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  EXPECT_NE(w.broker.topics.find("New"), nullptr);
}
TEST(BrokerDisk, AFullDiskGetsNoTopics) {
  simulate({no_topic_on_a_full_disk});
}

// Files of the configuration that cannot be written: kept in memory, and written when there is room.
Task<void> config_on_a_full_disk(World& w) {
  auto& plan = dynamic_cast<sim::SimDisk&>(w.disk).plan();
  auto sent = co_await w.send("T", "first");
  auto pulled = co_await w.pull("T", 0);
  plan.faults = {{sim::FaultKind::no_space, sim::OpKind::write, "/config/", 1, 1'000'000}};
  auto made = co_await w.put_topic("Made", "1");
  EXPECT_EQ(code_of(made), 0) << remark(made);
  for (int i = 0; i < 3; i++) {
    auto committed = co_await w.call(
        RequestCode::UPDATE_CONSUMER_OFFSET,
        {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"commitOffset", std::to_string(i)}});
    EXPECT_EQ(code_of(committed), 0) << remark(committed);
    co_await sleep_for(6 * ns_per_s);
  }
  auto on_disk = co_await store::load_file(w.disk, "/store/config/topics.json", nullptr);
  EXPECT_TRUE(on_disk && on_disk->content.find("\"Made\"") == std::string::npos);
  plan.faults.clear();
  co_await sleep_for(12 * ns_per_s);
  on_disk = co_await store::load_file(w.disk, "/store/config/topics.json", nullptr);
  EXPECT_TRUE(on_disk && on_disk->content.find("\"Made\"") != std::string::npos);
  on_disk = co_await store::load_file(w.disk, "/store/config/consumerOffset.json", nullptr);
  EXPECT_TRUE(on_disk && on_disk->content.find("T@g") != std::string::npos);
  auto deleted = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "T"}});
  EXPECT_EQ(code_of(deleted), 0) << remark(deleted);
}
TEST(BrokerDisk, ConfigurationIsKeptInMemoryUntilThereIsRoom) {
  simulate({config_on_a_full_disk});
}

// Whoever looks into RocketMQ's files finds a change there within a second.
Task<void> config_files_are_written_soon(World& w) {
  co_await sleep_for(20 * ns_per_s);  // whatever the start has left to write is written
  for (int i = 0; i < 3; i++) {
    const std::string name = "Made" + std::to_string(i);
    auto made = co_await w.put_topic(name, "1");
    EXPECT_EQ(code_of(made), 0) << remark(made);
    proto::SubscriptionGroupConfig c;
    c.group_name = name;
    made = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, c.to_json());
    EXPECT_EQ(code_of(made), 0) << remark(made);
    co_await sleep_for(ns_per_s);
    for (std::string file : {"topics.json", "subscriptionGroup.json"}) {
      auto on_disk = co_await store::load_file(w.disk, "/store/config/" + file, nullptr);
      EXPECT_TRUE(on_disk && on_disk->content.find(name) != std::string::npos) << file << " " << name;
    }
  }
}
TEST(BrokerDisk, FilesOfTheConfigurationHaveAChangeWithinASecond) {
  simulate({config_files_are_written_soon});
}

// Topics and groups whose making or deletion was answered; of others nobody knows.
std::map<std::string, bool> topics_known, groups_known;

Task<void> change_one(World& w, sim::SimDisk& disk, int i) {
  const std::string topic = "T" + std::to_string(i), group = "g" + std::to_string(i);
  auto a = co_await w.put_topic(topic, "1");
  if (!disk.crashed() && code_of(a) == 0) topics_known[topic] = true;
  proto::SubscriptionGroupConfig c;
  c.group_name = group;
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, c.to_json());
  if (!disk.crashed() && code_of(a) == 0) groups_known[group] = true;
  if (i % 2 == 0 || disk.crashed()) co_return;
  topics_known.erase(topic);
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", topic}});
  if (!disk.crashed() && code_of(a) == 0) topics_known[topic] = false;
  groups_known.erase(group);
  a = co_await w.call(RequestCode::DELETE_SUBSCRIPTIONGROUP, {{"groupName", group}});
  if (!disk.crashed() && code_of(a) == 0) groups_known[group] = false;
}
Task<void> change_until_crash(World& w, sim::SimDisk& disk) {
  for (int i = 0; i < 4 && !disk.crashed(); i++) {
    co_await change_one(w, disk, i);
    if (i == 1) co_await sleep_for(6 * ns_per_s);  // the files are written
  }
}
Task<void> all_known(World& w) {
  for (const auto& [topic, there] : topics_known)
    EXPECT_EQ(w.broker.topics.find(topic) != nullptr, there) << topic;
  for (const auto& [group, there] : groups_known)
    EXPECT_EQ(w.broker.groups.find(group) != nullptr, there) << group;
  co_return;
}
TEST(BrokerDisk, ACrashTakesNoTopicAndNoGroup) {
  BrokerConfig c = test_config();
  c.messageIndexEnable = false;
  uint64_t points = 1;
  for (uint64_t point = 0; point <= points && !testing::Test::HasFailure(); point += 7) {
    SCOPED_TRACE(point);
    topics_known.clear();
    groups_known.clear();
    const auto fate = point % 2 == 0 ? sim::CrashFate::all_lost(point) : sim::CrashFate::mixed(point);
    sim::DiskImage image = sim::empty_image();
    const uint64_t passed = crash_run(7, point, fate, image, c, change_until_crash);
    if (point == 0) points = passed;
    if (point == 0) continue;
    sim::SimLoop loop(point);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {}, image);
    loop.run(run_worlds(network, disk, c, {all_known, all_known}));
  }
  EXPECT_GT(points, 100u);
}

}  // namespace
}  // namespace rmq::broker

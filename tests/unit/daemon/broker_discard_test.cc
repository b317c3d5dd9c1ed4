// Discard policies through the whole broker: what goes, what stays, what is counted, and that it stays gone.
#include "broker_world.h"
#include "proto/bodies_config.h"

namespace rmq::broker {
namespace {

BrokerConfig patient_config() {
  BrokerConfig c = test_config();
  c.channelExpiredTimeout = 86'400'000;
  c.cleanResourceInterval = 1000;
  c.autoCreateTopicEnable = true;
  return c;
}

Task<void> make_topic(World& w, std::string_view name, std::string_view attributes, int32_t expected = 0) {
  auto made = co_await w.put_topic(name, "2", attributes);
  EXPECT_EQ(code_of(made), expected) << remark(made);
}

Task<void> send_some(World& w, std::string_view topic, int count, size_t bytes) {
  for (int i = 0; i < count; i++) {
    auto sent = co_await w.send(topic, std::string(bytes, 'x'), {}, i % 2 == 0 ? "0" : "1");
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
}

// A silent connection would be closed.
Task<void> rest(World& w, int64_t seconds) {
  co_await w.peer->close();
  co_await sleep_for(seconds * ns_per_s);
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
}

int64_t left(World& w, std::string_view topic) {
  int64_t n = 0;
  for (int32_t id : w.store->queue_ids(topic))
    n += w.store->max_offset(topic, id) - w.store->min_offset(topic, id);
  return n;
}

Task<void> commit(World& w, std::string_view topic, std::string_view group, std::string_view offset) {
  auto pulled = co_await w.pull(topic, 0, "*", group);
  EXPECT_EQ(code_of(pulled), 0) << remark(pulled);
  auto committed = co_await w.call(
      RequestCode::UPDATE_CONSUMER_OFFSET,
      {{"consumerGroup", group}, {"topic", topic}, {"queueId", "0"}, {"commitOffset", offset}});
  EXPECT_EQ(code_of(committed), 0) << remark(committed);
}

Task<std::string> runtime(World& w, const std::string& key) {
  auto info = co_await w.call(RequestCode::GET_BROKER_RUNTIME_INFO, {});
  auto table = proto::KVTable::parse(body_text(info));
  EXPECT_TRUE(table.has_value());
  if (!table) co_return "";
  auto it = table->table.find(key);
  co_return it == table->table.end() ? "" : it->second;
}

Task<void> by_age(World& w) {
  co_await make_topic(w, "Aged", "+discard.policy=age,+discard.age.ms=3600000");
  co_await make_topic(w, "Other", "");
  co_await send_some(w, "Aged", 20, 50'000);
  co_await send_some(w, "Other", 2, 100);
  co_await commit(w, "Aged", "slow", "4");
  co_await commit(w, "Aged", "fast", "10");
  co_await rest(w, 1800);
  EXPECT_EQ(left(w, "Aged"), 20) << "half an hour";
  co_await send_some(w, "Aged", 4, 50'000);
  co_await rest(w, 2400);
  EXPECT_EQ(left(w, "Aged"), 4) << "the last ones are forty minutes old";
  EXPECT_EQ(left(w, "Other"), 2);
  auto pulled = co_await w.pull("Aged", 4, "*", "slow");
  EXPECT_EQ(code_of(pulled), 21) << remark(pulled);
  EXPECT_EQ(ext(pulled, "nextBeginOffset"), "10");
  std::string lost = co_await runtime(w, "unconsumedDeleted_slow");
  EXPECT_EQ(lost, "6");
  lost = co_await runtime(w, "unconsumedDeleted_fast");
  EXPECT_EQ(lost, "") << "it had consumed all of it";
}
Task<void> stays_gone(World& w) {
  EXPECT_EQ(left(w, "Aged"), 4);
  EXPECT_EQ(w.store->min_offset("Aged", 0), 10);
  EXPECT_EQ(left(w, "Other"), 2);
  std::string lost = co_await runtime(w, "unconsumedDeleted_slow");
  EXPECT_EQ(lost, "") << "a start deletes nothing";
  // Made again, it has nothing to do with what was discarded.
  auto deleted = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "Aged"}});
  EXPECT_EQ(code_of(deleted), 0);
  co_await send_some(w, "Aged", 6, 100);
}
Task<void> new_ones_are_there(World& w) {
  EXPECT_EQ(left(w, "Aged"), 6);
  EXPECT_EQ(w.store->min_offset("Aged", 0), 0);
  co_return;
}
TEST(Discard, ByAge) {
  simulate({by_age, stays_gone, new_ones_are_there}, patient_config());
}

// A clock that is set forward makes nothing old.
Task<void> clock_jumps(World& w) {
  co_await make_topic(w, "Aged", "+discard.policy=age,+discard.age.ms=3600000");
  co_await send_some(w, "Aged", 4, 100);
  static_cast<sim::SimLoop&>(Loop::current()).sim_clock().step_wall(86'400'000);
  co_await rest(w, 3000);
  EXPECT_EQ(left(w, "Aged"), 4);
  co_await rest(w, 900);
  EXPECT_EQ(left(w, "Aged"), 0);
}
TEST(Discard, AClockThatJumpsMakesNothingOld) {
  simulate({clock_jumps}, patient_config());
}

// Space comes back when nothing in a file is needed, long before fileReservedTime.
Task<void> space_comes_back(World& w) {
  co_await make_topic(w, "Aged", "+discard.policy=age,+discard.age.ms=60000");
  co_await send_some(w, "Aged", 40, 90'000);
  EXPECT_EQ(w.store->min_physical_offset(), 0);
  co_await rest(w, 300);
  EXPECT_EQ(left(w, "Aged"), 0);
  EXPECT_EQ(w.store->min_physical_offset(), 3 << 20) << "all but the file in use";
  EXPECT_EQ(w.store->max_offset("Aged", 0), 20);
}
TEST(Discard, SpaceComesBack) {
  simulate({space_comes_back}, patient_config());
}

Task<void> by_bytes(World& w) {
  co_await make_topic(w, "Bounded", "+discard.policy=fifo,+discard.bytes=400000");
  co_await make_topic(w, "Free", "");
  for (int i = 0; i < 10; i++) {
    co_await send_some(w, "Bounded", 6, 10'000);
    co_await send_some(w, "Free", 6, 10'000);
    co_await sleep_for(3 * ns_per_s);
    EXPECT_LE(left(w, "Bounded"), 40);
    EXPECT_EQ(left(w, "Free"), (i + 1) * 6);
  }
  EXPECT_GE(left(w, "Bounded"), 36) << "no more than it must";
  EXPECT_EQ(w.store->max_offset("Bounded", 0), 30);
  EXPECT_NEAR(static_cast<double>(w.store->min_offset("Bounded", 0)),
              static_cast<double>(w.store->min_offset("Bounded", 1)), 1.0);
}
TEST(Discard, ByBytes) {
  simulate({by_bytes}, patient_config());
}

// What is discarded ends where the log does: what comes next is nobody's to discard. The bytes of a topic are
// counted in buckets of the log, of 4096 bytes here, and the last bucket goes on behind the log's end.
Task<void> the_last_bucket(World& w) {
  co_await make_topic(w, "Few", "+discard.policy=fifo,+discard.bytes=600");
  co_await send_some(w, "Few", 4, 100);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(left(w, "Few"), 0) << "they lie in one bucket";
  EXPECT_LT(w.store->confirm_offset(), 4096);
  auto sent = co_await w.send("Few", "new");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(left(w, "Few"), 1) << "what went does not count any more";
}
Task<void> the_new_one_is_there(World& w) {
  EXPECT_LT(w.store->confirm_offset(), 4096);
  auto pulled = co_await w.pull("Few", 2);
  EXPECT_EQ(bodies(pulled), "new");
}
TEST(Discard, NotBehindTheEndOfTheLog) {
  simulate({the_last_bucket, the_new_one_is_there}, patient_config());
}

// With ASYNC_FLUSH a loss of power may take the end of the log that a discard had reached; what comes in its
// place was never discarded. The file of such a store:
Task<void> discarded_beyond_the_end(World& w) {
  co_await make_topic(w, "Cut", "");
  const int64_t end = w.store->confirm_offset();
  auto saved = co_await store::replace_file(w.disk, "/store/config/discardedBelow.json",
                                            R"({"table":{"Cut":")" + std::to_string(end + 3000) + R"("}})");
  EXPECT_TRUE(saved);
}
Task<void> comes_in_its_place(World& w) {
  co_await send_some(w, "Cut", 40, 100);
  EXPECT_EQ(left(w, "Cut"), 40);
}
Task<void> is_kept(World& w) {
  EXPECT_EQ(left(w, "Cut"), 40);
  co_return;
}
TEST(Discard, WhatALossOfPowerTookIsNotDiscardedAgain) {
  simulate({discarded_beyond_the_end, comes_in_its_place, is_kept, is_kept}, patient_config());
}

Task<void> by_reading(World& w) {
  for (const char* topic : {"Read", "Unread", "Later"}) co_await make_topic(w, topic, "");
  co_await make_topic(w, "Safe", "+discard.policy=none");
  co_await sleep_for(3 * ns_per_s);
  for (const char* topic : {"Safe", "Unread", "Read"}) co_await send_some(w, topic, 10, 30'000);
  for (int i = 0; i < 5; i++) {
    auto pulled = co_await w.pull("Read", 0);
    EXPECT_EQ(code_of(pulled), 0);
    co_await sleep_for(ns_per_s);
  }
  EXPECT_EQ(left(w, "Unread"), 10) << "there is room for two";
  co_await send_some(w, "Later", 10, 30'000);
  auto pulled = co_await w.pull("Later", 0);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(left(w, "Unread"), 0);
  EXPECT_EQ(left(w, "Read"), 10);
  EXPECT_EQ(left(w, "Later"), 10);
  EXPECT_EQ(left(w, "Safe"), 10);
}
TEST(Discard, ByReading) {
  BrokerConfig c = patient_config();
  c.discardPolicy = "lru";
  c.discardBytes = 700'000;
  simulate({by_reading}, c);
}

Task<void> whole_log(World& w) {
  co_await send_some(w, "T", 60, 90'000);
  co_await commit(w, "T", "g", "1");
  co_await rest(w, 90);
  EXPECT_LE(w.store->max_physical_offset() - w.store->min_physical_offset(), 3 << 20);
  EXPECT_GE(w.store->min_physical_offset(), 2 << 20);
  EXPECT_GT(w.store->min_offset("T", 0), 0);
  std::string lost = co_await runtime(w, "unconsumedDeleted_g");
  EXPECT_EQ(lost, std::to_string(w.store->min_offset("T", 0) - 1));
}
TEST(Discard, TheWholeLogByBytes) {
  BrokerConfig c = patient_config();
  c.discardPolicy = "fifo";
  c.discardBytes = 3 << 20;
  simulate({whole_log}, c);
}

Task<void> attributes(World& w) {
  co_await make_topic(w, "A", "+discard.policy=sometimes", 1);
  co_await make_topic(w, "A", "+discard.age.ms=0", 1);
  co_await make_topic(w, "A", "+discard.bytes=many", 1);
  co_await make_topic(w, "A", "+discard.policy=lru,+discard.bytes=5");
  co_await make_topic(w, "A", "-discard.policy,+discard.age.ms=7");
}
TEST(Discard, Attributes) {
  simulate({attributes}, patient_config());
}

}  // namespace
}  // namespace rmq::broker

// Compacted topics through the whole broker: what is refused, what offsets are answered, what a consumer sees
// who begins at 0, and that POP gives back what it gave from there.
#include <map>
#include <set>

#include "pop_client.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

constexpr int keys = 5;

BrokerConfig small_config() {
  BrokerConfig c = test_config();
  c.channelExpiredTimeout = 86'400'000;
  c.mappedFileSizeCommitLog = 32 << 10;
  c.maxMessageSize = 4096;
  c.messageIndexEnable = false;
  c.compactionCqMappedFileSize = 20 * 46;
  c.compactionMappedFileSize = 4096;
  c.compactionScheduleInternal = 2000;
  return c;
}

Task<void> make_topic(World& w, std::string_view name, std::string_view attributes, int32_t expected = 0,
                      std::string_view why = "") {
  auto made = co_await w.put_topic(name, "1", attributes);
  EXPECT_EQ(code_of(made), expected) << remark(made);
  EXPECT_NE(remark(made).find(why), std::string::npos) << remark(made);
}

std::string keyed(std::string_view key) {
  std::string out;
  proto::append_property(out, "KEYS", key);
  return out;
}

Task<void> send_some(World& w, int from, int count) {
  for (int i = from; i < from + count; i++) {
    const std::string body = std::to_string(i) + std::string(200, ' ');
    auto sent = co_await w.send("C", body, keyed("k" + std::to_string(i % keys)), "0");
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
    EXPECT_EQ(ext(sent, "queueOffset"), std::to_string(i));
  }
}

Task<void> rest(World& w, int64_t seconds) {
  co_await w.peer->close();
  co_await sleep_for(seconds * ns_per_s);
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
}

Task<void> what_is_refused(World& w) {
  co_await make_topic(w, "C", "+cleanup.policy=COMPACTION");
  for (const std::string& properties : {std::string(), keyed(" "),
                                        std::string("TAGS\x01"
                                                    "a\x02")}) {
    auto sent = co_await w.send("C", "x", properties, "0");
    EXPECT_EQ(code_of(sent), 13);
    EXPECT_EQ(remark(sent), "Required message key is missing");
  }
  std::string body;
  proto::append_batch_message(body, 0, as_bytes("1"), keyed("a"));
  proto::append_batch_message(body, 0, as_bytes("2"), "");
  auto sent = co_await w.peer->call(w.batch_frame("C", body));
  EXPECT_EQ(code_of(sent), 13) << "one without a key";
  EXPECT_EQ(w.store->max_offset("C", 0), 0) << "nothing of it is stored";
  co_await make_topic(w, "D", "+cleanup.policy=COMPACTION,+discard.policy=age", 1, "discard.policy");
  co_await make_topic(w, "C", "+cleanup.policy=DELETE", 1, "unchangeable");
  co_await make_topic(w, "E", "+cleanup.policy=DELETE");
  sent = co_await w.send("E", "x", "", "0");
  EXPECT_EQ(code_of(sent), 0);
}
TEST(BrokerCompaction, AMessageWithoutKeyIsRefused) {
  simulate({what_is_refused}, small_config());
}

// A consumer from 0: offsets rise, and the latest of each key is there.
Task<size_t> consume_all(World& w, int64_t end) {
  int64_t offset = 0, before = -1;
  size_t seen = 0;
  std::map<std::string, int64_t> latest;
  while (offset < end) {
    auto pulled = co_await w.pull("C", offset);
    EXPECT_EQ(code_of(pulled), 0) << remark(pulled) << " at " << offset;
    if (code_of(pulled) != 0) co_return seen;
    EXPECT_EQ(ext(pulled, "maxOffset"), std::to_string(end));
    EXPECT_EQ(ext(pulled, "minOffset"), std::to_string(w.store->min_offset("C", 0)));
    for (Bytes some = pulled->frame.body(); !some.empty();) {
      auto record = proto::parse_record(some);
      EXPECT_TRUE(record);
      if (!record) co_return seen;
      EXPECT_GT(record->queue_offset, before);
      before = record->queue_offset;
      EXPECT_EQ(std::stoll(std::string(as_text(record->body))), before) << "the message of that offset";
      latest[std::string(record->property("KEYS").value_or(""))] = before;
      some = some.subspan(record->size);
      seen++;
    }
    EXPECT_EQ(ext(pulled, "nextBeginOffset"), std::to_string(before + 1));
    offset = before + 1;
  }
  EXPECT_EQ(latest.size(), static_cast<size_t>(keys));
  for (const auto& [key, at] : latest) EXPECT_GE(at, end - keys) << key;
  co_return seen;
}

Task<void> check_offsets(World& w, int64_t end) {
  auto min = co_await w.call(RequestCode::GET_MIN_OFFSET, {{"topic", "C"}, {"queueId", "0"}});
  EXPECT_EQ(ext(min, "offset"), std::to_string(w.store->min_offset("C", 0)));
  EXPECT_NE(ext(min, "offset"), "0");
  auto max = co_await w.call(RequestCode::GET_MAX_OFFSET, {{"topic", "C"}, {"queueId", "0"}});
  EXPECT_EQ(ext(max, "offset"), std::to_string(end));
  auto first = co_await w.call(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP,
                               {{"topic", "C"}, {"queueId", "0"}, {"timestamp", "0"}});
  EXPECT_EQ(ext(first, "offset"), ext(min, "offset"));
  auto beyond = co_await w.pull("C", end + 10);
  EXPECT_EQ(code_of(beyond), 21);
  EXPECT_EQ(ext(beyond, "nextBeginOffset"), std::to_string(end));
}

Task<void> compacts(World& w) {
  co_await make_topic(w, "C", "+cleanup.policy=COMPACTION");
  co_await send_some(w, 0, 200);
  co_await rest(w, 30);
  const size_t seen = co_await consume_all(w, 200);
  EXPECT_LT(seen, 40u);
  co_await check_offsets(w, 200);
}
Task<void> still_there(World& w) {
  const size_t seen = co_await consume_all(w, 200);
  EXPECT_LT(seen, 40u);
  co_await check_offsets(w, 200);
  co_await send_some(w, 200, 100);
  co_await rest(w, 30);
  const size_t more = co_await consume_all(w, 300);
  EXPECT_LT(more, 40u);
}
TEST(BrokerCompaction, TheLatestOfEachKeyIsSeenFromOffset0) {
  simulate({compacts, still_there}, small_config());
}

// The CommitLog loses all of it; nothing counts as lost to a group.
Task<void> log_goes(World& w) {
  co_await make_topic(w, "C", "+cleanup.policy=COMPACTION");
  co_await send_some(w, 0, 200);
  auto joined = co_await w.pull("C", 0, "*", "cg");
  EXPECT_EQ(code_of(joined), 0) << remark(joined);
  auto committed =
      co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "cg"}, {"topic", "C"}, {"queueId", "0"}, {"commitOffset", "0"}});
  EXPECT_EQ(code_of(committed), 0);
  for (int i = 0; i < 50; i++) {
    auto sent = co_await w.send("other", std::string(3000, 'o'), "", "0");
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
  co_await rest(w, 100);
  EXPECT_GT(w.store->min_physical_offset(), 100'000);
  const size_t seen = co_await consume_all(w, 200);
  EXPECT_LT(seen, 40u);
  auto info = co_await w.call(RequestCode::GET_BROKER_RUNTIME_INFO, {});
  EXPECT_EQ(body_text(info).find("unconsumedDeleted_cg"), std::string::npos);
  auto cleaned = co_await w.call(RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE, {});
  EXPECT_EQ(code_of(cleaned), 0);
  co_await check_offsets(w, 200);
}
Task<void> all_the_same(World& w) {
  const size_t seen = co_await consume_all(w, 200);
  EXPECT_LT(seen, 40u);
  co_await check_offsets(w, 200);
}
TEST(BrokerCompaction, TheCommitLogMayLoseItsFiles) {
  BrokerConfig c = small_config();
  c.autoCreateTopicEnable = true;
  c.discardPolicy = "fifo";
  c.discardBytes = 64 << 10;
  c.cleanResourceInterval = 1000;
  simulate({log_goes, all_the_same}, c);
}

// With enableCompaction=false it is a topic as others, but for its keys.
Task<void> no_compaction(World& w) {
  co_await make_topic(w, "C", "+cleanup.policy=COMPACTION");
  auto sent = co_await w.send("C", "x", "", "0");
  EXPECT_EQ(code_of(sent), 13);
  co_await send_some(w, 0, 100);
  co_await rest(w, 30);
  const size_t seen = co_await consume_all(w, 100);
  EXPECT_EQ(seen, 100u);
}
Task<void> now_it_compacts(World& w) {
  co_await send_some(w, 100, 1);
  co_await rest(w, 30);
  const size_t seen = co_await consume_all(w, 101);
  EXPECT_LT(seen, 40u);
}
TEST(BrokerCompaction, CanBeOff) {
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  BrokerConfig off = small_config();
  off.enableCompaction = false;
  loop.run(run_worlds(network, disk, off, {no_compaction}));
  loop.run(run_worlds(network, disk, small_config(), {now_it_compacts}));
}

// What was popped from where the CommitLog has nothing any more, and was not acknowledged, comes again.
Task<void> pops_come_again(World& w) {
  co_await log_goes(w);
  PopAsk p;
  p.topic = "C";
  p.invisible_ms = 20'000;
  std::set<std::string> popped;
  for (int i = 0; i < 4; i++) {
    auto a = co_await w.peer->call(pop_frame(++w.opaque, p, w.broker.wall_ms()));
    if (code_of(a) != 0) break;
    for (const PoppedMessage& m : popped_of(a)) EXPECT_TRUE(popped.insert(m.body).second);
  }
  EXPECT_GE(popped.size(), static_cast<size_t>(keys));
  co_await rest(w, 60);
  EXPECT_EQ(w.store->max_offset("%RETRY%g_C", 0), static_cast<int64_t>(popped.size()));
}
TEST(BrokerCompaction, WhatWasPoppedComesAgain) {
  BrokerConfig c = small_config();
  c.autoCreateTopicEnable = true;
  c.discardPolicy = "fifo";
  c.discardBytes = 64 << 10;
  c.cleanResourceInterval = 1000;
  simulate({pops_come_again}, c);
}

}  // namespace
}  // namespace rmq::broker

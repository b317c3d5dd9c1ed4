// Light queues (LMQ): messages come into the queues that they name, over restarts and crashes.
#include "pop_client.h"
#include "proto/batch.h"
#include "proto/properties.h"
#include "store/light_queues.h"

namespace rmq::broker {
namespace {

BrokerConfig lmq_config() {
  BrokerConfig c = test_config();
  c.enableLmq = c.enableMultiDispatch = true;
  return c;
}

std::string to_queues(std::string_view names, std::string_view name = {}, std::string_view value = {}) {
  std::string out;
  proto::append_property(out, "INNER_MULTI_DISPATCH", names);
  if (!name.empty()) proto::append_property(out, name, value);
  return out;
}

// "body@offsets" of each record.
std::string seen(const Answer& a) {
  std::string out;
  for (const auto& r : records(a)) {
    auto offsets = r.property("INNER_MULTI_QUEUE_OFFSET");
    out += (out.empty() ? "" : " ") + std::string(as_text(r.body)) + "@" + std::string(offsets.value_or("-"));
  }
  return out;
}

Task<void> sends(World& w) {
  auto a = co_await w.send("T", "one", to_queues("%LMQ%a,%LMQ%b"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "two", to_queues("%LMQ%a"));
  a = co_await w.send("T", "three", to_queues("%LMQ%b,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET", "77,77"));
  a = co_await w.send("T", "four");
  EXPECT_EQ(ext(a, "queueOffset"), "3");
  a = co_await w.pull("%LMQ%a", 0);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(seen(a), "one@0,0 two@1 three@1,2");
  EXPECT_EQ(ext(a, "nextBeginOffset"), "3");
  EXPECT_EQ(ext(a, "maxOffset"), "3");
  EXPECT_EQ(records(a)[0].topic, "T") << "it is the record of the topic";
  a = co_await w.pull("%LMQ%b", 1);
  EXPECT_EQ(seen(a), "three@1,2");
  a = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(a), "one,two,three,four");
  // A light queue is a topic, too, of which nobody knows before.
  a = co_await w.send("%LMQ%c", "direct");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "five", to_queues("%LMQ%c"));
  a = co_await w.pull("%LMQ%c", 0);
  EXPECT_EQ(seen(a), "direct@- five@1");
  a = co_await w.call(RequestCode::GET_MAX_OFFSET, {{"topic", "%LMQ%a"}, {"queueId", "0"}});
  EXPECT_EQ(ext(a, "offset"), "3");
  EXPECT_EQ(w.broker.topics.snapshot().topic_config_table.count("%LMQ%a"), 0u);
}
Task<void> goes_on(World& w) {
  auto a = co_await w.pull("%LMQ%a", 0);
  EXPECT_EQ(seen(a), "one@0,0 two@1 three@1,2");
  a = co_await w.send("T", "six", to_queues("%LMQ%a"));
  a = co_await w.pull("%LMQ%a", 3);
  EXPECT_EQ(seen(a), "six@3");
}
TEST(BrokerLmq, AMessageComesIntoTheQueuesThatItNames) {
  simulate({sends, goes_on}, lmq_config());
}

// The log alone says it all.
TEST(BrokerLmq, AreMadeAgainFromTheLog) {
  sim::SimLoop loop(3);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  loop.run(run_worlds(network, disk, lmq_config(), {sends}));
  auto without_queues = [](Disk& d) -> Task<void> {
    for (const char* file : {"/store/rmqd.checkpoint", "/store/checkpoint"}) [[maybe_unused]]
      auto removed = co_await d.remove(file);
  };
  loop.run(without_queues(disk));
  loop.run(run_worlds(network, disk, lmq_config(), {goes_on}));
}

Task<void> refused(World& w) {
  auto a = co_await w.send("T", "x");
  for (const char* wrong : {"a", "%LMQ%", "%LMQ%a,", "%LMQ%a,%LMQ%a", "%LMQ%a/b", "%LMQ%a,T", ","}) {
    a = co_await w.send("T", "x", to_queues(wrong));
    if (std::string_view(wrong) == "%LMQ%a,") continue;  // as Java's split() takes it
    EXPECT_EQ(code_of(a), 13) << wrong;
    EXPECT_NE(remark(a).find("INNER_MULTI_DISPATCH"), std::string::npos) << wrong << ": " << remark(a);
  }
  a = co_await w.send("%LMQ%a", "x", to_queues("%LMQ%a"));
  EXPECT_EQ(code_of(a), 13) << "it goes there anyway";
  a = co_await w.send("T", "x", to_queues("%LMQ%b"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "x", to_queues("%LMQ%b,%LMQ%c"));
  EXPECT_EQ(code_of(a), 1) << "one more than maxLmqConsumeQueueNum";
  EXPECT_NE(remark(a).find("LMQ_CONSUME_QUEUE_NUM_EXCEEDED"), std::string::npos) << remark(a);
  a = co_await w.send("%LMQ%c", "x");
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(w.store->max_offset("%LMQ%c", 0), 0);
  a = co_await w.send("T", "x", to_queues("%LMQ%a,%LMQ%b"));
  EXPECT_EQ(code_of(a), 0) << "both are there";
}
TEST(BrokerLmq, WhatCannotBeIsRefused) {
  BrokerConfig c = lmq_config();
  c.maxLmqConsumeQueueNum = 2;
  simulate({refused}, c);
}

Task<void> later(World& w) {
  auto a = co_await w.send("T", "later", to_queues("%LMQ%a", "DELAY", "1"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "now", to_queues("%LMQ%a"));
  co_await sleep_for(3 * ns_per_s);
  a = co_await w.pull("%LMQ%a", 0);
  EXPECT_EQ(seen(a), "now@0 later@1") << "it comes when it is due";
}
TEST(BrokerLmq, DelayedMessagesComeWhenTheyAreDue) {
  simulate({later}, lmq_config());
}

// A RocketMQ that reads the log anew would take it for a unit of the light queue, at an offset that is taken.
Task<void> dead_letter(World& w) {
  auto a = co_await w.send("T", "poison", to_queues("%LMQ%a"));
  const std::string at = std::to_string(proto::parse_offset_id(ext(a, "msgId"))->physical_offset);
  a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK,
                      {{"offset", at}, {"group", "g"}, {"delayLevel", "-1"}, {"originTopic", "T"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.pull("%DLQ%g", 0);
  EXPECT_EQ(seen(a), "poison@-");
  EXPECT_EQ(w.store->max_offset("%LMQ%a", 0), 1);
}
TEST(BrokerLmq, ADeadLetterIsInNoLightQueue) {
  simulate({dead_letter}, lmq_config());
}

// The topic's queue is further than the light queue: offsets are the light queue's.
Task<void> popped(World& w) {
  auto a = co_await w.send("T", "other");
  a = co_await w.send("T", "one", to_queues("%LMQ%a"));
  a = co_await w.send("T", "two", to_queues("%LMQ%a"));
  PopAsk p = with_invisible(10'000);
  p.topic = "%LMQ%a";
  a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(bodies(a), "one,two");
  EXPECT_EQ(ext(a, "startOffsetInfo"), "0 0 0");
  EXPECT_EQ(ext(a, "msgOffsetInfo"), "0 0 0,1");
  const std::string handle = "0 " + ext(a, "popTime") + " 10000 " + ext(a, "reviveQid") + " 0 b 0 ";
  int32_t code = co_await ack(w, handle + "1", "g", "%LMQ%a");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w, "%LMQ%a"), 0) << "one is out";
  co_await sleep_for(15 * ns_per_s);
  a = co_await ask(w, p);
  EXPECT_EQ(bodies(a), "one") << "two is acknowledged";
}
TEST(BrokerLmq, ArePopped) {
  simulate({popped}, lmq_config());
}

Task<void> waits(World& w) {
  auto a = co_await w.send("T", "first", to_queues("%LMQ%a"));
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await consumer->send(w.pull_frame("%LMQ%a", 1, "*", 10'000));
  a = co_await w.send("T", "second", to_queues("%LMQ%a"));
  auto pulled = co_await consumer->next(1);
  EXPECT_EQ(bodies(pulled), "second");
  co_await consumer->close();
}
TEST(BrokerLmq, APullWaitsForTheNext) {
  simulate({waits}, lmq_config());
}

Task<void> batches(World& w) {
  auto a = co_await w.send("T", "x");
  const std::string to_a = to_queues("%LMQ%a"), forged = to_queues("%LMQ%a", "INNER_MULTI_QUEUE_OFFSET", "5");
  std::string body;
  proto::append_batch_message(body, 0, as_bytes("b0"), to_a);
  proto::append_batch_message(body, 0, as_bytes("b1"), to_a);
  auto send_batch = [&w](std::string text) { return w.batch_frame("T", text); };
  a = co_await w.peer->call(send_batch(body));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.pull("%LMQ%a", 0);
  EXPECT_EQ(seen(a), "b0@0 b1@1");
  body.clear();
  proto::append_batch_message(body, 0, as_bytes("b2"), forged);
  a = co_await w.peer->call(send_batch(body));
  EXPECT_EQ(code_of(a), 13) << "only the broker knows offsets";
}
TEST(BrokerLmq, MessagesOfABatchToo) {
  simulate({batches}, lmq_config());
}

Task<void> commit(World& w, std::string group, std::string topic, std::string offset) {
  auto a = co_await w.call(
      RequestCode::UPDATE_CONSUMER_OFFSET,
      {{"consumerGroup", group}, {"topic", topic}, {"queueId", "0"}, {"commitOffset", offset}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
}
Task<void> expect_offset(World& w, std::string group, std::string topic, std::string offset) {
  auto a = co_await w.call(RequestCode::QUERY_CONSUMER_OFFSET,
                           {{"consumerGroup", group}, {"topic", topic}, {"queueId", "0"}});
  EXPECT_EQ(ext(a, "offset"), offset) << group << " " << topic;
}
Task<void> offsets(World& w) {
  auto a = co_await w.send("T", "one", to_queues("%LMQ%a"));
  a = co_await w.pull("%LMQ%a", 0, "*", "g");
  co_await commit(w, "g", "%LMQ%a", "1");
  co_await commit(w, "g", "T", "1");
  co_await commit(w, "%LMQ%client", "%LMQ%a", "1");
}
Task<void> offsets_again(World& w) {
  co_await expect_offset(w, "g", "%LMQ%a", "1");
  co_await expect_offset(w, "g", "T", "1");
  co_await expect_offset(w, "%LMQ%client", "%LMQ%a", "1");
  EXPECT_EQ(w.broker.groups.snapshot().subscription_group_table.count("%LMQ%client"), 0u);
  const auto table = w.broker.offsets.snapshot();
  EXPECT_EQ(table.lmq_offset_table.has_value(), w.config.enableLmq);
  if (table.lmq_offset_table) EXPECT_EQ(table.lmq_offset_table->at("%LMQ%a@%LMQ%client"), 1);
  EXPECT_EQ(w.broker.offsets.path(), w.config.enableLmq ? "/store/config/lmqConsumerOffset.json"
                                                        : "/store/config/consumerOffset.json");
}
// Switched on, off and on again: nobody loses an offset.
TEST(BrokerLmq, OffsetsStayWhateverTheirFile) {
  sim::SimLoop loop(3);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  loop.run(run_worlds(network, disk, lmq_config(), {offsets, offsets_again}));
  loop.run(run_worlds(network, disk, test_config(), {offsets_again}));
  loop.run(run_worlds(network, disk, lmq_config(), {offsets_again}));
}

Task<void> without(World& w) {
  auto a = co_await w.send("T", "one", to_queues("%LMQ%a,not one"));
  EXPECT_EQ(code_of(a), 0) << "it is a property as any other";
  a = co_await w.pull("%LMQ%a", 0);
  EXPECT_EQ(code_of(a), 17);
  a = co_await w.pull("T", 0);
  EXPECT_EQ(seen(a), "one@-");
}
TEST(BrokerLmq, OffByDefault) {
  simulate({without});
}

// ---- crashes -----------------------------------------------------------------------------------------

Task<void> send_until_crash(World& w, sim::SimDisk& disk) {
  auto a = co_await w.send("T", "m0", to_queues("%LMQ%a,%LMQ%b"));
  for (int i = 1; i < 8 && !disk.crashed() && code_of(a) == 0; i++)
    a = co_await w.send("T", "m" + std::to_string(i), to_queues(i % 2 == 0 ? "%LMQ%a,%LMQ%b" : "%LMQ%b"));
}

// What is in the topic is in its light queues, at the offsets that it says, and they have nothing else.
Task<void> all_in_place(World& w) {
  std::map<std::string, std::vector<std::string>> want;
  auto a = co_await w.pull("T", 0);
  for (const auto& r : records(a)) {
    const std::vector<store::LightPlace> places = store::light_places_of(r);
    EXPECT_FALSE(places.empty());
    for (const auto& p : places) {
      auto& queue = want[std::string(p.queue)];
      EXPECT_EQ(p.offset, static_cast<int64_t>(queue.size()));
      queue.emplace_back(as_text(r.body));
    }
  }
  for (const auto& [name, all] : want) {
    EXPECT_EQ(w.store->max_offset(name, 0), static_cast<int64_t>(all.size())) << name;
    a = co_await w.pull(name, 0);
    std::string list;
    for (const std::string& b : all) list += (list.empty() ? "" : ",") + b;
    EXPECT_EQ(bodies(a), list) << name;
  }
  a = co_await w.send("T", "more", to_queues("%LMQ%a,%LMQ%b"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
}

TEST(BrokerLmq, ACrashAtEveryPointLeavesTopicAndQueuesTheSame) {
  crash_at_every_point(lmq_config(), send_until_crash, all_in_place);
}

}  // namespace
}  // namespace rmq::broker

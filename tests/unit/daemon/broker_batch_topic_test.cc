// Topics with queue.type=BatchCQ through the whole broker: what a send of a batch stores and answers, what is
// refused, pulls, tags, times, POP, messages given back, and all of it after a restart.
#include "crash_lives.h"
#include "pop_client.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string property(std::string_view name, std::string_view value) {
  std::string out;
  proto::append_property(out, name, value);
  return out;
}

Task<void> make_topic(World& w, std::string name, std::string attributes, int32_t expected = 0,
                      std::string why = "") {
  auto made = co_await w.put_topic(name, "1", attributes);
  EXPECT_EQ(code_of(made), expected) << remark(made);
  EXPECT_NE(remark(made).find(why), std::string::npos) << remark(made);
}

std::string batch_frame(World& w, std::string_view topic, std::string_view name, int messages,
                        std::string_view properties, std::string_view sys_flag = "0") {
  std::string body;
  for (int i = 0; i < messages; i++) {
    const std::string text = std::string(name) + std::to_string(i);
    proto::append_batch_message(body, i, as_bytes(text), property("TAGS", "a"));
  }
  return w.request(RequestCode::SEND_BATCH_MESSAGE,
                   {{"a", "pg"},
                    {"b", topic},
                    {"c", "TBW102"},
                    {"d", "1"},
                    {"e", "0"},
                    {"f", sys_flag},
                    {"g", "1"},
                    {"h", "5"},
                    {"i", properties},
                    {"m", "true"}},
                   body);
}

// In a coroutine, where ASSERT_* cannot return.
#define CO_ASSERT_EQ(a, b)   \
  do {                       \
    bool same_ = (a) == (b); \
    EXPECT_EQ(a, b);         \
    if (!same_) co_return;   \
  } while (0)

constexpr std::string_view key = "0123456789ABCDEF0123456789ABCDEF";

Task<Answer> send_batch(World& w, std::string name, int messages) {
  std::string frame =
      batch_frame(w, "B", name, messages, property("UNIQ_KEY", key) + property("WAIT", "true"));
  co_return co_await w.peer->call(std::move(frame));
}

// "offset x messages" of each record of a pull.
std::string shape(const Answer& a) {
  std::string out;
  for (const proto::RecordView& r : records(a))
    out += (out.empty() ? "" : " ") + std::to_string(r.queue_offset) + "x" +
           std::to_string(store::inner_messages_of(r));
  return out;
}

Task<void> sends(World& w) {
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  auto a = co_await w.send("B", "single", property("TAGS", "a"));
  EXPECT_EQ(ext(a, "queueOffset"), "0");
  EXPECT_EQ(ext(a, "batchUniqId"), "absent");
  a = co_await send_batch(w, "b", 5);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(ext(a, "queueOffset"), "1");
  EXPECT_EQ(ext(a, "batchUniqId"), key);
  EXPECT_EQ(ext(a, "transactionId"), key);
  EXPECT_EQ(ext(a, "msgId").size(), proto::offset_id_text_v4) << "one record";
  a = co_await w.send("B", "single", property("TAGS", "a"));
  EXPECT_EQ(ext(a, "queueOffset"), "6");
  // Without a UNIQ_KEY, as producers of 4.x send it: its messages, one by one.
  std::string frame = batch_frame(w, "B", "o", 3, "");
  a = co_await w.peer->call(std::move(frame));
  EXPECT_EQ(ext(a, "queueOffset"), "7");
  EXPECT_EQ(ext(a, "batchUniqId"), "absent");
  a = co_await send_batch(w, "c", 40);
  EXPECT_EQ(ext(a, "queueOffset"), "10");
  EXPECT_EQ(w.store->max_offset("B", 0), 50);
  auto got = co_await w.pull("B", 1);
  const auto all = records(got);
  CO_ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].sys_flag & 0xC0, 0xC0);
  EXPECT_EQ(all[0].flag, 5);
  EXPECT_EQ(all[0].property("INNER_NUM"), "5");
  EXPECT_EQ(all[0].property("INNER_BASE"), "1");
  EXPECT_EQ(all[0].property("CLUSTER"), w.config.brokerClusterName);
  EXPECT_EQ(*proto::check_batch(all[0].body), 5u);
  EXPECT_EQ(all[1].property("INNER_BASE"), std::nullopt);
}

Task<void> pulls(World& w) {
  auto a = co_await w.pull("B", 0);
  EXPECT_EQ(shape(a), "0x1 1x5 6x1 7x1 8x1 9x1") << "40 more are too many";
  EXPECT_EQ(ext(a, "nextBeginOffset"), "10");
  EXPECT_EQ(ext(a, "maxOffset"), "50");
  a = co_await w.pull("B", 4);
  EXPECT_EQ(shape(a), "1x5 6x1 7x1 8x1 9x1") << "from within a batch";
  a = co_await w.pull("B", 49);
  EXPECT_EQ(shape(a), "10x40");
  EXPECT_EQ(ext(a, "nextBeginOffset"), "50");
  a = co_await w.pull("B", 0, "a");
  EXPECT_EQ(shape(a), "0x1 6x1 7x1 8x1 9x1") << "a batch has no tags";
  EXPECT_EQ(ext(a, "nextBeginOffset"), "10");
  // Who waits is woken by a batch.
  bool sent = co_await w.peer->send(w.pull_frame("B", 50, "*", 20'000));
  EXPECT_TRUE(sent);
  auto sender = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  std::string frame = batch_frame(w, "B", "late", 3, property("UNIQ_KEY", key));
  auto answer = co_await sender->call(std::move(frame));
  EXPECT_EQ(code_of(answer), 0);
  a = co_await w.peer->next(30);
  EXPECT_EQ(shape(a), "50x3");
  co_await sender->close();
}
TEST(BrokerBatchTopic, StoresABatchAsOneRecord) {
  simulate({sends, pulls});
}

Task<void> refusals(World& w) {
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  co_await make_topic(w, "P", "+queue.type=SimpleCQ");
  co_await make_topic(w, "C", "+queue.type=BatchCQ,+cleanup.policy=COMPACTION", 1, "cleanup.policy");
  co_await make_topic(w, "C", "+queue.type=BatchCQ,+dedup.key=KEYS", 1, "dedup.key");
  co_await make_topic(w, "B", "+dedup.key=KEYS", 1, "dedup.key");
  co_await make_topic(w, "B", "+queue.type=SimpleCQ", 1, "unchangeable");
  for (std::string topic : {"B", "P"}) {
    auto a = co_await w.send(topic, "x", property("INNER_NUM", "3"));
    EXPECT_EQ(code_of(a), 13) << topic;
    std::string frame = batch_frame(w, topic, "x", 2, property("UNIQ_KEY", key) + property("INNER_NUM", "3"));
    a = co_await w.peer->call(std::move(frame));
    EXPECT_EQ(code_of(a), 13) << topic;
    frame = batch_frame(w, topic, "x", 2, property("UNIQ_KEY", key), "192");
    a = co_await w.peer->call(std::move(frame));
    EXPECT_EQ(code_of(a), 13) << topic;
    frame = batch_frame(w, topic, "x", 2, property("UNIQ_KEY", key) + property("DELAY", "3"));
    a = co_await w.peer->call(std::move(frame));
    EXPECT_EQ(code_of(a), 13) << topic;
    a = co_await w.call(RequestCode::SEND_MESSAGE_V2,
                        {{"a", "pg"},
                         {"b", topic},
                         {"c", "TBW102"},
                         {"d", "4"},
                         {"e", "0"},
                         {"f", "128"},
                         {"g", "1"},
                         {"h", "0"}},
                        "x");
    EXPECT_EQ(code_of(a), 13) << topic << ": the flag of a batch";
    EXPECT_EQ(w.store->max_offset(topic, 0), 0);
  }
}
TEST(BrokerBatchTopic, OnlyTheBrokerMakesBatches) {
  simulate({refusals});
}

Task<int64_t> by_time(World& w, int64_t ms, std::string boundary) {
  const std::string text = std::to_string(ms);
  auto a =
      co_await w.call(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP,
                      {{"topic", "B"}, {"queueId", "0"}, {"timestamp", text}, {"boundaryType", boundary}});
  co_return std::atoll(ext(a, "offset").c_str());
}

Task<void> times(World& w) {
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  int64_t offset = co_await by_time(w, w.broker.wall_ms(), "lower");
  EXPECT_EQ(offset, 0) << "nobody wrote to it";
  std::vector<int64_t> at;
  for (int messages : {5, 7, 3}) {
    auto a = co_await send_batch(w, "t", messages);
    EXPECT_EQ(code_of(a), 0);
    at.push_back(co_await w.store->store_time("B", 0, w.store->max_offset("B", 0) - 1));
    co_await sleep_for(ns_per_s);
  }
  for (std::string boundary : {"lower", "upper"}) {
    offset = co_await by_time(w, at[0] - 10, boundary);
    EXPECT_EQ(offset, 0);
    offset = co_await by_time(w, at[0], boundary);
    EXPECT_EQ(offset, 0);
    offset = co_await by_time(w, at[0] + 10, boundary);
    EXPECT_EQ(offset, 5);
    offset = co_await by_time(w, at[1], boundary);
    EXPECT_EQ(offset, 5);
    offset = co_await by_time(w, at[2] + 10, boundary);
    EXPECT_EQ(offset, 12) << "the last record, as RocketMQ has it";
  }
}
TEST(BrokerBatchTopic, ATimeFindsAWholeBatch) {
  simulate({times});
}

// The record would come again with all of its messages: the client sends the one as a new message.
Task<void> gives_back(World& w) {
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  auto a = co_await send_batch(w, "t", 5);
  EXPECT_EQ(code_of(a), 0);
  auto got = co_await w.pull("B", 0);
  const std::string physical = std::to_string(records(got)[0].physical_offset);
  a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK, {{"offset", physical},
                                                            {"group", "g"},
                                                            {"delayLevel", "1"},
                                                            {"originMsgId", "x"},
                                                            {"originTopic", "B"},
                                                            {"unitMode", "false"},
                                                            {"maxReconsumeTimes", "16"}});
  EXPECT_EQ(code_of(a), 1) << remark(a);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("%RETRY%g", 0), 0);
}
TEST(BrokerBatchTopic, ABatchIsNotTakenBack) {
  simulate({gives_back});
}

PopAsk pop_b() {
  PopAsk p = with_invisible(5000);
  p.topic = "B";
  return p;
}

Task<void> pops(World& w) {
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  for (int messages : {3, 50, 4}) {
    auto a = co_await send_batch(w, "t", messages);
    EXPECT_EQ(code_of(a), 0);
  }
  auto first = co_await pop(w, pop_b());
  auto second = co_await pop(w, pop_b());
  auto third = co_await pop(w, pop_b());
  auto fourth = co_await pop(w, pop_b());
  CO_ASSERT_EQ(first.size() + second.size() + third.size(), 3u);
  EXPECT_EQ(first[0].offset, 0);
  EXPECT_EQ(second[0].offset, 3);
  EXPECT_EQ(third[0].offset, 53);
  EXPECT_TRUE(fourth.empty());
  for (const auto* got : {&first, &third}) {
    const std::string handle = (*got)[0].handle;
    int32_t code = co_await ack(w, handle, "g", "B");
    EXPECT_EQ(code, 0);
  }
  EXPECT_EQ(committed(w, "B"), 3) << "what is not acknowledged";
  co_await sleep_for(8 * ns_per_s);
  auto again = co_await pop(w, pop_b());
  CO_ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].reconsume_times, 1);
  EXPECT_EQ(*proto::check_batch(as_bytes(again[0].body)), 50u) << "as a whole";
  const std::string handle = again[0].handle;
  int32_t code = co_await ack(w, handle, "g", "B");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w, "B"), 57);
  // An offset within a batch, that somebody has set.
  w.broker.offsets.commit("g", "B", 0, 55);
  auto whole = co_await pop(w, pop_b());
  CO_ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].offset, 53);
}
TEST(BrokerBatchTopic, PopGivesWholeBatches) {
  simulate({pops});
}

Task<void> deletes(World& w) {
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  auto a = co_await send_batch(w, "t", 5);
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "B"}});
  EXPECT_EQ(code_of(a), 0);
  co_await make_topic(w, "B", "+queue.type=SimpleCQ");
  std::string frame = batch_frame(w, "B", "t", 3, property("UNIQ_KEY", key));
  a = co_await w.peer->call(std::move(frame));
  EXPECT_EQ(ext(a, "queueOffset"), "0");
  EXPECT_EQ(ext(a, "batchUniqId"), "absent");
}
Task<void> is_ordinary(World& w) {
  EXPECT_FALSE(w.store->is_batch_topic("B"));
  auto a = co_await w.pull("B", 0);
  EXPECT_EQ(bodies(a), "t0,t1,t2");
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "B"}});
  EXPECT_EQ(code_of(a), 0);
  co_await make_topic(w, "B", "+queue.type=BatchCQ");
  a = co_await send_batch(w, "t", 4);
  EXPECT_EQ(ext(a, "queueOffset"), "0");
  EXPECT_EQ(ext(a, "batchUniqId"), key);
}
Task<void> is_batch(World& w) {
  auto a = co_await w.pull("B", 2);
  EXPECT_EQ(shape(a), "0x4");
}
TEST(BrokerBatchTopic, ANameMayChangeItsType) {
  simulate({deletes, is_ordinary, is_batch});
}

// What a topic is has to be known before the store is opened, also when topics.json does not have it yet.
Task<void> makes_and_sends(World& w, LifeNow& now, int& answered) {
  auto made = co_await w.put_topic("B", "1", "+queue.type=BatchCQ");
  for (int i = 0; i < 3 && now.counts() && code_of(made) == 0; i++) {
    auto a = co_await send_batch(w, "t", 5);
    if (now.counts() && code_of(a) == 0) answered += 5;
  }
}
Task<void> goes_on(World& w, LifeNow& now, int& answered) {
  const int64_t end = w.store->max_offset("B", 0);
  if (end < answered || end % 5 != 0) now.machine.error("the queue ends at " + std::to_string(end));
  if (end == 0) co_return;
  if (!w.store->is_batch_topic("B")) now.machine.error("an ordinary topic");
  auto a = co_await w.pull("B", end - 3);
  if (shape(a) != std::to_string(end - 5) + "x5") now.machine.error("within a batch: " + shape(a));
  a = co_await send_batch(w, "t", 2);
  if (ext(a, "queueOffset") != std::to_string(end)) now.machine.error("the next at " + ext(a, "queueOffset"));
}

void makes_until(uint64_t point, Machine& machine) {
  int answered = 0;
  LifePlan plan;
  plan.crash_at = point;
  live<int&>(machine, plan, fate_of(point), makes_and_sends, answered);
  const uint64_t points = machine.points;
  plan.seed = 2;
  plan.crash_at = 0;
  live<int&>(machine, plan, sim::CrashFate::all_kept(3), goes_on, answered);
  machine.points = points;
}

TEST(BrokerBatchTopic, ACrashAtEveryPointOfItsMaking) {
  Machine whole;
  makes_until(0, whole);
  ASSERT_TRUE(whole.errors.empty()) << text_of(whole.errors);
  each_point(whole.points, "a batch topic is made", [](uint64_t point, uint64_t) {
    Machine machine;
    makes_until(point, machine);
    return machine.errors;
  });
}

}  // namespace
}  // namespace rmq::broker

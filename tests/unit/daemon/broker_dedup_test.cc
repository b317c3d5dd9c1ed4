// De-duplication: a repeated send is answered as the first was, and stores nothing; over restarts and
// crashes.
#include "broker_world.h"
#include "daemon/broker/deduplication.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string keyed(std::string_view unique, std::string_view keys = {}, std::string_view name = {},
                  std::string_view value = {}) {
  std::string out;
  if (!unique.empty()) proto::append_property(out, "UNIQ_KEY", unique);
  if (!keys.empty()) proto::append_property(out, "KEYS", keys);
  if (!name.empty()) proto::append_property(out, name, value);
  return out;
}

Task<void> make_topic(World& w, std::string_view topic, std::string_view attributes) {
  auto a = co_await w.put_topic(topic, "4", attributes);
  EXPECT_EQ(code_of(a), 0) << remark(a);
}

// The same outcome, and nothing more stored.
void expect_same(const Answer& again, const Answer& first) {
  EXPECT_EQ(code_of(again), 0) << remark(again);
  for (const char* field : {"msgId", "queueId", "queueOffset", "transactionId"})
    EXPECT_EQ(ext(again, field), ext(first, field)) << field;
}

Task<void> by_unique_key(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY,+dedup.window.ms=60000");
  auto first = co_await w.send("D", "one", keyed("U1"), "1");
  EXPECT_EQ(code_of(first), 0);
  auto again = co_await w.send("D", "one", keyed("U1"), "3");  // a client tries another queue
  expect_same(again, first);
  EXPECT_EQ(w.store->max_offset("D", 1) + w.store->max_offset("D", 3), 1);
  EXPECT_EQ(w.broker.dedup.answered(), 1u);
  auto other = co_await w.send("D", "two", keyed("U2"), "1");
  EXPECT_EQ(ext(other, "queueOffset"), "1");
  auto elsewhere = co_await w.send("T", "one", keyed("U1"));
  elsewhere = co_await w.send("T", "one", keyed("U1"));
  EXPECT_EQ(w.store->max_offset("T", 0), 2) << "a topic without the attribute";
  co_await sleep_for(61 * ns_per_s);
  again = co_await w.send("D", "one", keyed("U1"), "1");
  EXPECT_EQ(ext(again, "queueOffset"), "2") << "the window has passed";
}
Task<void> after_a_restart(World& w) {
  auto again = co_await w.send("D", "one", keyed("U1"), "0");
  EXPECT_EQ(ext(again, "queueOffset"), "2");
  EXPECT_EQ(ext(again, "queueId"), "1");
  EXPECT_EQ(w.store->max_offset("D", 0), 0);
  co_await sleep_for(61 * ns_per_s);
  again = co_await w.send("D", "one", keyed("U1"), "0");
  EXPECT_EQ(ext(again, "queueId"), "0");
}
TEST(BrokerDedup, ByUniqueKeyWithinAWindow) {
  simulate({by_unique_key, after_a_restart});
}

Task<void> by_keys(World& w) {
  co_await make_topic(w, "D", "+dedup.key=KEYS");
  auto first = co_await w.send("D", "one", keyed("U1", "order 17"));
  auto again = co_await w.send("D", "other body", keyed("U2", "order 17"));
  expect_same(again, first);
  auto none = co_await w.send("D", "no key", keyed("U3"));
  none = co_await w.send("D", "no key", keyed("U3"));
  EXPECT_EQ(w.store->max_offset("D", 0), 3) << "without KEYS each is stored";
  // Half messages are ended once by themselves, and one that was rolled back may come again.
  std::string half = keyed("U4", "order 18", "TRAN_MSG", "true");
  for (int i = 0; i < 2; i++) {
    auto a = co_await w.send("D", "half", half);
    EXPECT_EQ(code_of(a), 0);
  }
  EXPECT_EQ(w.store->max_offset(proto::names::RMQ_SYS_TRANS_HALF_TOPIC, 0), 2);
}
TEST(BrokerDedup, ByKeys) {
  simulate({by_keys});
}

// Memory for 100 keys: those that a start remembers are the newest of all queues, in which order ever it
// reads them.
Task<void> more_than_memory(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY,+dedup.window.ms=600000");
  for (int i = 0; i < 160; i++) {
    auto a = co_await w.send("D", "x", keyed("U" + std::to_string(i)), i < 80 ? "1" : "0");
    EXPECT_EQ(code_of(a), 0);
    co_await sleep_for(2 * ns_per_ms);
  }
}
Task<void> newest_are_known(World& w) {
  for (int i = 70; i < 160; i++) {
    auto a = co_await w.send("D", "x", keyed("U" + std::to_string(i)), "2");
    EXPECT_EQ(ext(a, "queueId"), i < 80 ? "1" : "0") << i;
  }
  EXPECT_EQ(w.store->max_offset("D", 2), 0);
}
TEST(BrokerDedup, AStartRemembersTheNewest) {
  BrokerConfig c = test_config();
  c.dedupMemoryBytes = 100 * Deduplication::bytes_per_key;
  simulate({more_than_memory, newest_are_known}, c);
}

// The topic is deleted while one is being stored and another waits for it.
Task<void> claim_later(Deduplication& d, DedupRule rule, std::optional<Deduplication::Claim>& out) {
  auto claim = co_await d.claim("D", rule, "K");
  out = claim;
}
Task<void> deleted_meanwhile(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY,+dedup.window.ms=60000");
  Deduplication& d = w.broker.dedup;
  const DedupRule rule{DedupRule::Key::UNIQ_KEY, 60'000};
  auto first = co_await d.claim("D", rule, "K");
  EXPECT_FALSE(first.first);
  std::optional<Deduplication::Claim> second;
  Scope scope;
  scope.spawn(claim_later(d, rule, second));
  co_await sleep_for(ns_per_s);
  EXPECT_FALSE(second) << "it waits";
  auto a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "D"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(ns_per_s);
  EXPECT_TRUE(second && !second->first) << "in the new topic it is the first";
  FirstMessage stored;
  stored.physical_offset = 7;
  d.settle(first.key, &stored);
  if (second) d.settle(second->key, nullptr);
  auto third = co_await d.claim("D", rule, "K");
  EXPECT_FALSE(third.first) << "the one that was stored was of the old topic";
  d.settle(third.key, nullptr);
  co_await sleep_for(61 * ns_per_s);
  auto other = co_await d.claim("D", rule, "other");
  d.settle(other.key, nullptr);
  EXPECT_EQ(d.known(), 0u) << "nothing stays behind";
  co_await scope.join();
}
TEST(BrokerDedup, ATopicIsDeletedMeanwhile) {
  simulate({deleted_meanwhile});
}

// The second comes while the first is on its way to the disk.
Task<void> at_the_same_time(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  auto other = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  std::string frame = w.send_frame("D", "one", keyed("U1"));
  co_await w.peer->send(frame + frame);
  co_await other->send(frame);
  auto a = co_await w.peer->next();
  auto b = co_await w.peer->next();
  auto c = co_await other->next();
  expect_same(b, a);
  expect_same(c, a);
  EXPECT_EQ(w.store->max_offset("D", 0), 1);
  co_await other->close();
}
TEST(BrokerDedup, WaitsForTheFirst) {
  simulate({at_the_same_time});
}

Task<void> batches(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  auto alone = co_await w.send("D", "b1", keyed("U1"));
  std::string body;
  for (const char* n : {"0", "1", "2", "0"})
    proto::append_batch_message(body, 0, as_bytes("b" + std::string(n)), keyed("U" + std::string(n)));
  auto frame = [&] { return w.batch_frame("D", body); };
  auto first = co_await w.peer->call(frame());
  EXPECT_EQ(code_of(first), 0) << remark(first);
  EXPECT_EQ(w.store->max_offset("D", 0), 3) << "b1 was there, b0 came twice";
  auto pulled = co_await w.pull("D", 0);
  EXPECT_EQ(bodies(pulled), "b1,b0,b2");
  auto again = co_await w.peer->call(frame());
  EXPECT_EQ(ext(again, "msgId"), ext(first, "msgId")) << "ids of all four, in order";
  EXPECT_EQ(ext(first, "msgId").substr(33, 32), ext(alone, "msgId"));
  EXPECT_EQ(w.store->max_offset("D", 0), 3);
}
TEST(BrokerDedup, OfABatchWhatIsNew) {
  simulate({batches});
}

Task<void> delayed(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  auto first = co_await w.send("D", "later", keyed("U1", {}, "DELAY", "3"));
  auto again = co_await w.send("D", "later", keyed("U1", {}, "DELAY", "3"));
  expect_same(again, first);
  EXPECT_EQ(w.store->max_offset(proto::names::SCHEDULE_TOPIC_XXXX, 2), 1);
}
Task<void> still_known(World& w) {
  auto again = co_await w.send("D", "later", keyed("U1", {}, "DELAY", "3"));
  EXPECT_EQ(w.store->max_offset(proto::names::SCHEDULE_TOPIC_XXXX, 2), 1) << "it waits to be delivered";
  co_await sleep_for(12 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("D", 0), 1);
  again = co_await w.send("D", "later", keyed("U1"));
  EXPECT_EQ(w.store->max_offset("D", 0), 1);
}
TEST(BrokerDedup, DelayedOnesToo) {
  simulate({delayed, still_known});
}

// A dead letter that is sent again, as rmqctl does: stored, although its key is known, and once.
Task<void> dead_letters(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  auto a = co_await w.send("D", "one", keyed("U1"));
  const std::string again = keyed("U1", {}, "DLQ_ORIGIN_MESSAGE_ID", "0A00000100002A9F0000000000000001");
  const std::string other = keyed("U1", {}, "DLQ_ORIGIN_MESSAGE_ID", "0A00000100002A9F0000000000000002");
  auto first = co_await w.send("D", "one again", again);
  EXPECT_EQ(ext(first, "queueOffset"), "1");
  a = co_await w.send("D", "one again", again);
  expect_same(a, first);
  a = co_await w.send("D", "of another group", other);
  EXPECT_EQ(ext(a, "queueOffset"), "2");
}
Task<void> dead_letters_later(World& w) {
  const std::string again = keyed("U1", {}, "DLQ_ORIGIN_MESSAGE_ID", "0A00000100002A9F0000000000000001");
  auto a = co_await w.send("D", "one again", again);
  EXPECT_EQ(ext(a, "queueOffset"), "1") << "also after a restart";
  a = co_await w.send("D", "one", keyed("U1"));
  EXPECT_EQ(ext(a, "queueOffset"), "0");
}
TEST(BrokerDedup, ADeadLetterIsSentAgainOnce) {
  simulate({dead_letters, dead_letters_later});
}

Task<void> deleted(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  auto a = co_await w.send("D", "one", keyed("U1"));
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "D"}});
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  a = co_await w.send("D", "one", keyed("U1"));
  EXPECT_EQ(w.store->max_offset("D", 0), 1) << "a new topic knows nothing of the old one";
}
TEST(BrokerDedup, ADeletedTopicIsForgotten) {
  simulate({deleted});
}

Task<void> failing(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  auto a = co_await w.send("D", "", keyed("U1"));
  EXPECT_EQ(code_of(a), 13);
  a = co_await w.send("D", std::string(100'001, 'x'), keyed("U1"));
  EXPECT_EQ(code_of(a), 13);
  a = co_await w.send("D", "one", keyed("U1"));
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.store->max_offset("D", 0), 1) << "what was refused is not known";
}
TEST(BrokerDedup, ARefusedSendMayBeRepeated) {
  simulate({failing});
}

Task<void> little_memory(World& w) {
  co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  for (int i = 0; i < 30; i++) {
    auto a = co_await w.send("D", "x", keyed("U" + std::to_string(i)));
    EXPECT_EQ(code_of(a), 0);
  }
  EXPECT_LE(w.broker.dedup.known(), 10u);
  EXPECT_EQ(w.broker.dedup.forgotten(), 20u);
  auto a = co_await w.send("D", "x", keyed("U29"));
  EXPECT_EQ(w.store->max_offset("D", 0), 30) << "the newest are known";
  a = co_await w.send("D", "x", keyed("U0"));
  EXPECT_EQ(w.store->max_offset("D", 0), 31) << "the oldest are forgotten";
}
TEST(BrokerDedup, MemoryIsBounded) {
  BrokerConfig c = test_config();
  c.dedupMemoryBytes = 10 * static_cast<int64_t>(Deduplication::bytes_per_key);
  simulate({little_memory}, c);
}

Task<void> attributes(World& w) {
  for (const char* wrong :
       {"+dedup.key=BODY", "+dedup.key=KEYS,+dedup.window.ms=10", "+dedup.key=KEYS,+dedup.window.ms=soon"}) {
    auto a = co_await w.put_topic("D", "4", wrong);
    EXPECT_NE(code_of(a), 0) << wrong;
  }
  EXPECT_EQ(w.broker.topics.find("D"), nullptr);
}
TEST(BrokerDedup, AttributesAreChecked) {
  simulate({attributes});
}

// ---- crashes -----------------------------------------------------------------------------------------

// A producer that sends each message until it is answered.
std::map<std::string, int> kept;
Task<void> count_kept(World& w) {
  kept.clear();
  for (int64_t at = 0; at < w.store->max_offset("D", 0);) {
    auto a = co_await w.pull("D", at);
    if (code_of(a) != 0) break;
    for (const auto& r : records(a)) {
      kept[std::string(as_text(r.body))]++;
      at = r.queue_offset + 1;
    }
  }
}
Task<void> send_all_again(World& w) {
  auto a = co_await w.call(RequestCode::GET_TOPIC_CONFIG, {{"topic", "D"}});
  if (w.broker.topics.find("D") == nullptr) co_await make_topic(w, "D", "+dedup.key=UNIQ_KEY");
  for (int i = 0; i < 8; i++) {
    a = co_await w.send("D", "m" + std::to_string(i), keyed("U" + std::to_string(i)));
    EXPECT_EQ(code_of(a), 0);
  }
  co_await count_kept(w);
  for (int i = 0; i < 8; i++) EXPECT_EQ(kept["m" + std::to_string(i)], 1) << i;
}

Task<void> send_until_crash(World& w, sim::SimDisk& disk) {
  auto a = co_await w.put_topic("D", "4", "+dedup.key=UNIQ_KEY");
  for (int i = 0; i < 8 && !disk.crashed() && code_of(a) == 0; i++)
    a = co_await w.send("D", "m" + std::to_string(i), keyed("U" + std::to_string(i)));
}

TEST(BrokerDedup, ACrashAtEveryPointStoresNothingTwice) {
  crash_at_every_point(test_config(), send_until_crash, send_all_again);
}

}  // namespace
}  // namespace rmq::broker

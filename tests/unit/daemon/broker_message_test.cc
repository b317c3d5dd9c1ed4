// Sending and pulling through the whole broker, simulated.
#include "broker_world.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string props(const sim::Ext& p) {
  std::string out;
  for (auto& [k, v] : p) proto::append_property(out, k, v);
  return out;
}

Task<void> send_and_pull(World& w) {
  auto sent = co_await w.send("T", "hello",
                              props({{"TAGS", "a"}, {"UNIQ_KEY", "U1"}, {"POP_CK", "x"}, {"CLUSTER", "y"}}));
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  EXPECT_EQ(ext(sent, "queueOffset"), "0");
  EXPECT_EQ(ext(sent, "transactionId"), "U1");
  EXPECT_EQ(ext(sent, "MSG_REGION"), "DefaultRegion");
  EXPECT_EQ(ext(sent, "TRACE_ON"), "true");
  auto got = co_await w.pull("T", 0);
  EXPECT_EQ(code_of(got), 0);
  EXPECT_EQ(remark(got), "FOUND");
  EXPECT_EQ(ext(got, "nextBeginOffset"), "1");
  EXPECT_EQ(ext(got, "minOffset"), "0");
  EXPECT_EQ(ext(got, "maxOffset"), "1");
  EXPECT_EQ(ext(got, "suggestWhichBrokerId"), "0");
  auto r = records(got);
  EXPECT_EQ(r.size(), 1u);
  if (r.size() != 1) co_return;
  EXPECT_EQ(as_text(r[0].body), "hello");
  EXPECT_EQ(r[0].property("CLUSTER"), "DefaultCluster");
  EXPECT_EQ(r[0].property("POP_CK"), std::nullopt);
  EXPECT_EQ(r[0].property("UNIQ_KEY"), "U1");
  EXPECT_EQ(r[0].store_host.to_string(), "10.0.0.1:10911");
  EXPECT_EQ(ext(sent, "msgId"), proto::make_offset_id(r[0].store_host, r[0].physical_offset));
  auto view =
      co_await w.call(RequestCode::VIEW_MESSAGE_BY_ID, {{"offset", std::to_string(r[0].physical_offset)}});
  EXPECT_EQ(bodies(view), "hello");
  view = co_await w.call(RequestCode::VIEW_MESSAGE_BY_ID,
                         {{"offset", std::to_string(r[0].physical_offset + 1)}});
  EXPECT_EQ(code_of(view), 1);
}
TEST(BrokerMessage, WhatIsSentIsPulled) {
  simulate({send_and_pull});
}

Task<void> auto_create(World& w) {
  auto sent = co_await w.send("Auto", "x");
  EXPECT_EQ(code_of(sent), 0);
  const proto::TopicConfig* t = w.broker.topics.find("Auto");
  EXPECT_NE(t, nullptr);
  if (t == nullptr) co_return;
  EXPECT_EQ(t->write_queue_nums, 4);
  EXPECT_EQ(t->perm, 6);
  EXPECT_TRUE(w.names.routes().topic_count() > 0);
  sent = co_await w.peer->call(w.request(RequestCode::SEND_MESSAGE_V2,
                                         {{"a", "pg"},
                                          {"b", "Auto2"},
                                          {"c", "NoSuch"},
                                          {"d", "4"},
                                          {"e", "0"},
                                          {"f", "0"},
                                          {"g", "1"},
                                          {"h", "0"}},
                                         "x"));
  EXPECT_EQ(code_of(sent), 17);
  EXPECT_EQ(ext(sent, "MSG_REGION"), "DefaultRegion") << "a refused send carries it too";
  sent = co_await w.peer->call(w.request(RequestCode::SEND_MESSAGE_V2,
                                         {{"a", "pg"},
                                          {"b", "Auto3"},
                                          {"c", "TBW102"},
                                          {"d", "100"},
                                          {"e", "-1"},
                                          {"f", "0"},
                                          {"g", "1"},
                                          {"h", "0"}},
                                         "x"));
  EXPECT_EQ(code_of(sent), 0);
  t = w.broker.topics.find("Auto3");
  EXPECT_TRUE(t != nullptr && t->write_queue_nums == 8);
}
TEST(BrokerMessage, FirstSendCreatesTheTopic) {
  simulate({auto_create});
}

Task<void> refusals(World& w) {
  auto a = co_await w.send("T", "x");
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.send("bad/name", "x");
  EXPECT_EQ(code_of(a), 29);
  a = co_await w.send("SCHEDULE_TOPIC_XXXX", "x");
  EXPECT_EQ(code_of(a), 16);
  EXPECT_EQ(remark(a), "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden.");
  a = co_await w.send("T", "x", {}, "4");
  EXPECT_EQ(code_of(a), 29) << "queue beyond the topic's";
  a = co_await w.send("T", "");
  EXPECT_EQ(code_of(a), 13) << "empty body";
  a = co_await w.send("T", std::string(100'001, 'x'));
  EXPECT_EQ(code_of(a), 13) << "over maxMessageSize";
  for (int inner = 0; inner < 2; inner++) {
    for (int kind = 0; kind < 3; kind++) {
      std::string special = kind == 0   ? props({{"TRAN_MSG", "true"}})
                            : kind == 1 ? props({{"DELAY", "3"}})
                                        : props({{"TIMER_DELAY_SEC", "60"}});
      std::string body;
      proto::append_batch_message(body, 0, as_bytes("m"), inner == 1 ? std::string_view(special) : "");
      std::string frame = w.batch_frame("T", body, "0", inner == 0 ? std::string_view(special) : "");
      a = co_await w.peer->call(std::move(frame));
      EXPECT_EQ(code_of(a), 13) << inner << kind << remark(a);
    }
  }
  a = co_await w.send("T", "x", props({{"DELAY", "abc"}}));
  EXPECT_EQ(code_of(a), 13);
  a = co_await w.call(RequestCode::SEND_MESSAGE_V2, {{"b", "T"}}, "x");
  EXPECT_EQ(code_of(a), 1) << "a required field is missing";
  a = co_await w.call(RequestCode::WHO_CONSUME_THE_MESSAGE, {});
  EXPECT_EQ(code_of(a), 3) << "no broker serves it any more";
  EXPECT_EQ(w.store->max_offset("T", 0), 1) << "nothing of them was stored";
}
TEST(BrokerMessage, RefusesByCodeAndStoresNothing) {
  simulate({refusals});
}

// A topic with the order flag takes nothing while the broker is not writable: a producer that then took
// another broker's queue would break its order. Others are not refused for that, clients pass such brokers
// over.
Task<void> order_topic(World& w) {
  for (std::string_view order : {"true", "false"}) {
    const std::string topic = "Order_" + std::string(order);
    std::string frame = w.topic_frame(topic, "4", {}, "6", order);
    auto a = co_await w.peer->call(std::move(frame));
    EXPECT_EQ(code_of(a), 0) << remark(a);
    a = co_await w.call(RequestCode::GET_TOPIC_CONFIG, {{"topic", topic}});
    EXPECT_NE(body_text(a).find("\"order\":" + std::string(order)), std::string::npos) << body_text(a);
    for (std::string_view body : {"one", "two", "three"}) {
      a = co_await w.send(topic, body);
      EXPECT_EQ(code_of(a), 0) << remark(a);
    }
    a = co_await w.pull(topic, 0);
    EXPECT_EQ(bodies(a), "one,two,three");
    w.config.brokerPermission = proto::perm::read;
    a = co_await w.send(topic, "four");
    EXPECT_EQ(code_of(a), order == "true" ? 16 : 0) << remark(a);
    w.config.brokerPermission = proto::perm::read | proto::perm::write;
  }
}
TEST(BrokerMessage, AnOrderTopicWantsAWritableBroker) {
  simulate({order_topic});
}

Task<void> batch(World& w) {
  std::string body;
  for (std::string_view b : {"b0", "b1", "b2"})
    proto::append_batch_message(body, 7, as_bytes(b), props({{"TAGS", b}}));
  auto frame = [&](std::string_view topic, std::string_view text) {
    return w.request(RequestCode::SEND_BATCH_MESSAGE,
                     {{"a", "pg"},
                      {"b", topic},
                      {"c", "TBW102"},
                      {"d", "1"},
                      {"e", "0"},
                      {"f", "0"},
                      {"g", "1"},
                      {"h", "0"},
                      {"m", "true"}},
                     text);
  };
  auto a = co_await w.peer->call(frame("B", body));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  std::string ids = ext(a, "msgId");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), ','), 2);
  auto got = co_await w.pull("B", 0);
  EXPECT_EQ(bodies(got), "b0,b1,b2");
  EXPECT_EQ(records(got)[1].flag, 7);
  a = co_await w.peer->call(frame("B", std::string_view(body).substr(0, body.size() - 1)));
  EXPECT_EQ(code_of(a), 1) << "cut";
  a = co_await w.peer->call(frame("%RETRY%g", body));
  EXPECT_EQ(code_of(a), 13);
  EXPECT_EQ(w.store->max_offset("B", 0), 3);
}
TEST(BrokerMessage, BatchIsStoredAsItsMessages) {
  simulate({batch});
}

Task<void> long_polling(World& w) {
  auto first = co_await w.send("L", "m0", props({{"TAGS", "a"}}));
  EXPECT_EQ(code_of(first), 0);
  auto sender = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  int64_t began = w.broker.now_ns();
  bool sent = co_await w.peer->send(w.pull_frame("L", 1, "b", 20'000));
  EXPECT_TRUE(sent);
  co_await sleep_for(5 * ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 1u);
  // Another request on the same connection is not held up.
  auto other = co_await w.call(RequestCode::GET_MAX_OFFSET, {{"topic", "L"}, {"queueId", "0"}});
  EXPECT_EQ(ext(other, "offset"), "1");
  auto a = co_await sender->call(w.send_frame("L", "m1", props({{"TAGS", "a"}})));
  EXPECT_EQ(code_of(a), 0);
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 1u) << "a message with another tag does not wake it";
  a = co_await sender->call(w.send_frame("L", "m2", props({{"TAGS", "b"}})));
  auto woken = co_await w.peer->next();
  EXPECT_EQ(code_of(woken), 0);
  EXPECT_EQ(bodies(woken), "m2");
  EXPECT_EQ(ext(woken, "nextBeginOffset"), "3");
  EXPECT_LT(w.broker.now_ns() - began, 10 * ns_per_s);
  // Nothing comes: not found at the deadline, not before.
  began = w.broker.now_ns();
  sent = co_await w.peer->send(w.pull_frame("L", 3, "*", 2'000));
  auto late = co_await w.peer->next(30);
  EXPECT_EQ(code_of(late), 19);
  EXPECT_GE(w.broker.now_ns() - began, 2 * ns_per_s);
  EXPECT_LT(w.broker.now_ns() - began, 3 * ns_per_s);
  // Whoever leaves while waiting is forgotten.
  sent = co_await sender->send(w.pull_frame("L", 3, "*", 60'000));
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 1u);
  co_await sender->close();
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 0u);
}
TEST(BrokerMessage, PullWaitsForWhatItWants) {
  simulate({long_polling});
}

Task<void> pull_table(World& w) {
  for (int i = 0; i < 3; i++) {
    auto a = co_await w.send("P", "m", props({{"TAGS", "a"}}));
    EXPECT_EQ(code_of(a), 0);
  }
  struct Row {
    int64_t offset;
    std::string_view subscription;
    int32_t code;
    std::string_view next, remark;
  };
  const Row rows[] = {{1, "*", 0, "3", "FOUND"},
                      {3, "*", 19, "3", "OFFSET_OVERFLOW_ONE"},
                      {9, "*", 21, "3", "OFFSET_OVERFLOW_BADLY"},
                      {-1, "*", 21, "0", "OFFSET_TOO_SMALL"},
                      {0, "zz", 20, "3", "NO_MATCHED_MESSAGE"}};
  for (const Row& row : rows) {
    auto a = co_await w.pull("P", row.offset, row.subscription);
    EXPECT_EQ(code_of(a), row.code) << row.offset;
    EXPECT_EQ(ext(a, "nextBeginOffset"), row.next) << row.offset;
    EXPECT_EQ(remark(a), row.remark);
  }
  auto a = co_await w.pull("P", 0, "||");
  EXPECT_EQ(code_of(a), 23);
  a = co_await w.pull("Nowhere", 0);
  EXPECT_EQ(code_of(a), 17);
  // The second port does not serve pulls, the rest it does.
  auto vip = co_await Peer::connect(w.client_net, "10.0.0.1", 10909);
  a = co_await vip->call(w.pull_frame("P", 0));
  EXPECT_EQ(code_of(a), 3);
  a = co_await vip->call(w.send_frame("P", "by the second port"));
  EXPECT_EQ(code_of(a), 0);
  co_await vip->close();
}
TEST(BrokerMessage, PullAnswersByOffset) {
  simulate({pull_table});
}

Task<void> delayed(World& w) {
  int64_t began = w.broker.now_ns();
  auto a = co_await w.send("D", "later", props({{"DELAY", "2"}, {"TAGS", "t"}}));
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.store->max_offset("D", 0), 0);
  co_await w.peer->send(w.pull_frame("D", 0, "t", 30'000));
  auto got = co_await w.peer->next(60);
  EXPECT_EQ(bodies(got), "later");
  int64_t took = w.broker.now_ns() - began;
  EXPECT_GE(took, 5 * ns_per_s) << "never early";
  EXPECT_LT(took, 6 * ns_per_s);
  a = co_await w.send("D", "now", props({{"DELAY", "0"}}));
  EXPECT_EQ(w.store->max_offset("D", 0), 2);
  a = co_await w.send("D", "far", props({{"DELAY", "99"}}));
  EXPECT_EQ(w.store->max_offset("SCHEDULE_TOPIC_XXXX", 17), 1) << "beyond the last level: the last level";
  auto far = co_await w.store->queue_unit("SCHEDULE_TOPIC_XXXX", 17, 0);
  auto extent = co_await w.store->record_at(far ? far->physical_offset : -1);
  if (!extent) co_return ADD_FAILURE() << "no record";
  EXPECT_EQ(proto::parse_record(extent->bytes())->property("DELAY"), "18") << "and so its consumer sees it";
  for (std::string_view wrong : {"soon", "1.5", "99999999999999999999"}) {
    a = co_await w.send("D", "wrong", props({{"DELAY", wrong}}));
    EXPECT_EQ(code_of(a), 13) << wrong;
  }
}
TEST(BrokerMessage, DelayLevels) {
  simulate({delayed});
}

Task<void> delayed_before_restart(World& w) {
  auto a = co_await w.send("R", "m", props({{"DELAY", "5"}}));
  EXPECT_EQ(code_of(a), 0);
}
Task<void> delayed_after_restart(World& w) {
  co_await w.peer->send(w.pull_frame("R", 0, "*", 120'000));
  auto got = co_await w.peer->next(200);
  EXPECT_EQ(bodies(got), "m");
  co_await sleep_for(120 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("R", 0), 1) << "once";
}
Task<void> not_again(World& w) {
  co_await sleep_for(120 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("R", 0), 1) << "not again after another start";
}
TEST(BrokerMessage, DelayedMessageSurvivesRestartAndComesOnce) {
  simulate({delayed_before_restart, delayed_after_restart, not_again});
}

Task<void> send_back(World& w) {
  auto a = co_await w.send("S", "poison", props({{"TAGS", "t"}}));
  auto got = co_await w.pull("S", 0);
  EXPECT_EQ(records(got).size(), 1u);
  if (records(got).size() != 1) co_return;
  std::string at = std::to_string(records(got)[0].physical_offset), id = ext(a, "msgId");
  int64_t began = w.broker.now_ns();
  a = co_await w.call(
      RequestCode::CONSUMER_SEND_MSG_BACK,
      {{"offset", at}, {"group", "g"}, {"delayLevel", "0"}, {"originMsgId", id}, {"originTopic", "S"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await w.peer->send(w.pull_frame("%RETRY%g", 0, "*", 60'000));
  auto again = co_await w.peer->next(100);
  auto r = records(again);
  EXPECT_EQ(r.size(), 1u);
  if (r.size() != 1) co_return;
  EXPECT_GE(w.broker.now_ns() - began, 10 * ns_per_s) << "delay level 3";
  EXPECT_EQ(r[0].reconsume_times, 1);
  EXPECT_EQ(r[0].property("RETRY_TOPIC"), "S");
  EXPECT_EQ(r[0].property("ORIGIN_MESSAGE_ID"), id);
  // Beyond the group's times it is dead, and visible at once.
  a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK, {{"offset", std::to_string(r[0].physical_offset)},
                                                            {"group", "g"},
                                                            {"delayLevel", "0"},
                                                            {"maxReconsumeTimes", "1"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  auto dead = co_await w.pull("%DLQ%g", 0);
  EXPECT_EQ(bodies(dead), "poison");
  EXPECT_EQ(records(dead)[0].property("ORIGIN_MESSAGE_ID"), id);
  a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK,
                      {{"offset", "1"}, {"group", "g"}, {"delayLevel", "0"}});
  EXPECT_EQ(code_of(a), 1);
}
TEST(BrokerMessage, MessageBackRetriesThenDies) {
  simulate({send_back});
}

// The group says how often, and each retry comes a level later than the one before.
Task<void> by_group(World& w) {
  proto::SubscriptionGroupConfig g;
  g.group_name = "g";
  g.retry_max_times = 2;
  auto a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, g.to_json());
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("S", "poison");
  std::string at = std::to_string(proto::parse_offset_id(ext(a, "msgId"))->physical_offset);
  for (int64_t n = 0; n < 2; n++) {
    const int64_t began = w.broker.now_ns(), wanted = (n == 0 ? 10 : 30) * ns_per_s;
    a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK,
                        {{"offset", at}, {"group", "g"}, {"delayLevel", "0"}, {"originTopic", "S"}});
    EXPECT_EQ(code_of(a), 0) << remark(a);
    while (w.store->max_offset("%RETRY%g", 0) == n && w.broker.now_ns() - began < 2 * wanted)
      co_await sleep_for(10 * ns_per_ms);
    EXPECT_GE(w.broker.now_ns() - began, wanted) << n;
    EXPECT_LT(w.broker.now_ns() - began, wanted + ns_per_s) << n;
    auto unit = co_await w.store->queue_unit("%RETRY%g", 0, n);
    if (!unit) co_return ADD_FAILURE() << "no retry";
    at = std::to_string(unit->physical_offset);
  }
  EXPECT_EQ(w.store->max_offset("%DLQ%g", 0), 0);
  a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK,
                      {{"offset", at}, {"group", "g"}, {"delayLevel", "0"}, {"originTopic", "S"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.store->max_offset("%DLQ%g", 0), 1);
}
TEST(BrokerMessage, RetriesByTheGroupsTimes) {
  simulate({by_group});
}

// What was committed keeps TRAN_MSG, and clients that give it back by a plain send may keep it, too.
Task<void> committed_one_back(World& w) {
  const std::string properties = props({{"TRAN_MSG", "true"}, {"PGROUP", "pg"}, {"RETRY_TOPIC", "S"}});
  auto a = co_await w.send("%RETRY%g", "again", properties + props({{"DELAY", "1"}}), "0", "1");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("%RETRY%g", "at once", properties, "0", "1");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("%RETRY%g", "dead", properties, "0", "17");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(2 * ns_per_s);
  auto got = co_await w.pull("%RETRY%g", 0);
  EXPECT_EQ(bodies(got), "at once,again");
  got = co_await w.pull("%DLQ%g", 0);
  EXPECT_EQ(bodies(got), "dead");
  EXPECT_EQ(w.store->max_offset("RMQ_SYS_TRANS_HALF_TOPIC", 0), 0) << "none is a half message";
}
TEST(BrokerMessage, ARetryIsNoHalfMessage) {
  simulate({committed_one_back});
}

// ---- properties at the limit of the format -------------------------------------------------------------

constexpr size_t properties_max = 32'767;

// Properties that are stored with that size.
Task<std::string> properties_of(World& w, size_t bytes) {
  auto a = co_await w.send("P", "probe", props({{"p", "x"}}));
  auto id = proto::parse_offset_id(ext(a, "msgId"));
  auto extent = co_await w.store->record_at(id->physical_offset);
  const size_t fixed = proto::parse_record(extent->bytes())->properties.size() - 1;
  co_return props({{"p", std::string(bytes - fixed, 'x')}});
}
Task<Answer> give_back(World& w, int64_t offset, std::string_view level, std::string_view times) {
  const std::string at = std::to_string(offset);
  auto a = co_await w.call(RequestCode::CONSUMER_SEND_MSG_BACK, {{"offset", at},
                                                                 {"group", "g"},
                                                                 {"delayLevel", level},
                                                                 {"originTopic", "S"},
                                                                 {"maxReconsumeTimes", times}});
  co_return a;
}

proto::RecordView record_of(const store::LogExtent& extent) {
  auto r = proto::parse_record(extent.bytes(), proto::CrcCheck::verify);
  check(r.has_value());
  return *r;
}

// Gives one message back until it is dead, and looks what became of it.
Task<void> give_back_to_death(World& w, const std::string& topic, size_t spare, int64_t dead) {
  const std::string p = co_await properties_of(w, properties_max - spare);
  const size_t content = proto::find_property(p, "p")->size();
  auto a = co_await w.send(topic, "long", p);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  int64_t offset = proto::parse_offset_id(ext(a, "msgId"))->physical_offset;
  int64_t in_retry = w.store->max_offset("%RETRY%g", 0);
  int32_t times = 0;
  for (; times < 4; times++) {
    a = co_await give_back(w, offset, "1", "3");
    EXPECT_EQ(code_of(a), 0) << remark(a);
    co_await sleep_for(1500 * ns_per_ms);
    if (w.store->max_offset("%RETRY%g", 0) == in_retry) break;
    auto unit = co_await w.store->queue_unit("%RETRY%g", 0, in_retry++);
    auto extent = co_await w.store->record_at(unit->physical_offset);
    EXPECT_EQ(record_of(*extent).property("RETRY_TOPIC"), topic);
    EXPECT_EQ(record_of(*extent).reconsume_times, times + 1);
    EXPECT_EQ(record_of(*extent).property("p")->size(), content);
    offset = unit->physical_offset;
  }
  EXPECT_EQ(times, spare >= 100 ? 3 : 0) << "what has room is tried again";
  EXPECT_EQ(w.store->max_offset("%DLQ%g", 0), dead + 1);
  auto unit = co_await w.store->queue_unit("%DLQ%g", 0, dead);
  if (!unit) co_return ADD_FAILURE() << "it is lost";
  auto extent = co_await w.store->record_at(unit->physical_offset);
  EXPECT_EQ(as_text(record_of(*extent).body), "long");
  EXPECT_EQ(record_of(*extent).property("p")->size(), content);
  EXPECT_EQ(record_of(*extent).property("RETRY_TOPIC").has_value(), spare >= 60);
  EXPECT_EQ(record_of(*extent).reconsume_times, times + 1);
}
Task<void> long_message_back(World& w) {
  const std::string topic(100, 'S');
  int64_t dead = 0;
  for (size_t spare : {0, 1, 20, 60, 100, 200, 400}) {
    co_await give_back_to_death(w, topic, spare, dead++);
    if (testing::Test::HasFailure()) co_return ADD_FAILURE() << "with " << spare << " bytes to spare";
  }
}
TEST(BrokerMessage, AMessageBackIsTakenWithPropertiesOfAnySize) {
  simulate({long_message_back});
}

// Whatever room is left, to the byte: it is taken.
Task<void> each_length_back(World& w) {
  const std::string topic(100, 'S');
  int64_t taken = 0;
  for (size_t spare = 0; spare < 260; spare++, taken++) {
    const std::string p = co_await properties_of(w, properties_max - spare);
    auto a = co_await w.send(topic, "long", p);
    EXPECT_EQ(code_of(a), 0) << remark(a);
    const int64_t offset = proto::parse_offset_id(ext(a, "msgId"))->physical_offset;
    a = co_await give_back(w, offset, "1", "3");
    if (code_of(a) != 0) co_return ADD_FAILURE() << remark(a) << " with " << spare << " bytes to spare";
  }
  co_await sleep_for(2 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("%RETRY%g", 0) + w.store->max_offset("%DLQ%g", 0), taken);
}
TEST(BrokerMessage, AMessageBackIsTakenWithAnyRoomThatIsLeft) {
  simulate({each_length_back});
}

// As an orderly consumer gives up on a message: with its properties and some more of the client.
Task<void> long_plain_retry(World& w) {
  const std::string p = co_await properties_of(w, properties_max);
  auto more = [&](const std::string& topic) {
    return p + props({{"RETRY_TOPIC", topic},
                      {"ORIGIN_MESSAGE_ID", std::string(32, 'A')},
                      {"RECONSUME_TIME", "17"},
                      {"MAX_RECONSUME_TIMES", "16"},
                      {"DELAY", "1"}});
  };
  const std::string some = more("S"), lots = more(std::string(100, 'S'));
  auto a = co_await w.send("%RETRY%g", "given up", some, "0", "17");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("%RETRY%g", "again", some, "0", "1");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("%RETRY%g", "no room for a delay", lots, "0", "1");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.store->max_offset("%RETRY%g", 0), 0) << "it has a delay";
  co_await sleep_for(2 * ns_per_s);
  auto again = co_await w.pull("%RETRY%g", 0);
  EXPECT_EQ(bodies(again), "again");
  auto dead = co_await w.pull("%DLQ%g", 0);
  EXPECT_EQ(bodies(dead), "given up,no room for a delay");
  EXPECT_EQ(records(dead)[0].property("RETRY_TOPIC"), "S");
  const std::string too_much = p + p;
  a = co_await w.send("%RETRY%g", "x", too_much, "0", "1");
  EXPECT_EQ(code_of(a), 13) << "what no message can have";
}
TEST(BrokerMessage, APlainRetryIsTakenWithPropertiesOfAnySize) {
  simulate({long_plain_retry});
}

// As RocketMQ stores them: without room for what delivery adds.
Task<void> long_timer(World& w) {
  auto made = co_await w.send("T", "x", {}, "1");
  EXPECT_EQ(code_of(made), 0);
  std::string properties;
  const std::string due = std::to_string(w.broker.wall_ms() + 3000);
  proto::append_property(properties, "REAL_TOPIC", "T");
  proto::append_property(properties, "REAL_QID", "0");
  proto::append_property(properties, "TIMER_DELIVER_MS", due);
  proto::append_property(properties, "TIMER_OUT_MS", due);
  proto::append_property(properties, "p", std::string(properties_max - properties.size() - 3, 'x'));
  store::MessageIn m;
  m.topic = "rmq_sys_wheel_timer";
  m.properties = properties;
  m.body = as_bytes("long");
  m.store_host = m.born_host = w.broker.store_host;
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
  co_await sleep_for(5 * ns_per_s);
  auto got = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(got), "long");
}
TEST(BrokerMessage, ATimerMessageIsDeliveredWithPropertiesOfAnySize) {
  simulate({long_timer});
}

Task<void> fill(World& w) {
  for (int i = 0; i < 50; i++) {
    auto a = co_await w.send("K", "m" + std::to_string(i));
    EXPECT_EQ(code_of(a), 0);
  }
}
Task<void> all_there(World& w) {
  EXPECT_EQ(w.store->max_offset("K", 0), 50);
  auto got = co_await w.pull("K", 49);
  EXPECT_EQ(bodies(got), "m49");
  EXPECT_NE(w.broker.topics.find("K"), nullptr);
  auto a = co_await w.send("K", "next");
  EXPECT_EQ(ext(a, "queueOffset"), "50");
}
TEST(BrokerMessage, RestartKeepsTopicsAndMessages) {
  simulate({fill, all_there});
}

Task<void> async_flush(World& w) {
  auto a = co_await w.send("A", "m");
  EXPECT_EQ(code_of(a), 0);
  auto got = co_await w.pull("A", 0);
  EXPECT_EQ(bodies(got), "m");
}
TEST(BrokerMessage, AsyncFlush) {
  BrokerConfig c = test_config();
  c.flushDiskType = "ASYNC_FLUSH";
  simulate({async_flush}, c);
}

// enabledAppendPropCRC: one at the end of each record, also of copies, and of nobody else's making.
Task<void> with_crc(World& w) {
  auto sent = co_await w.send("T", "plain", props({{"K", "v"}, {"__CRC32#", "0123456789"}, {"TAGS", "a"}}));
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  sent = co_await w.send("T", "later", props({{"K", "v"}, {"DELAY", "1"}}));
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  co_await sleep_for(2 * ns_per_s);
  auto got = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(got), "plain,later");
  Bytes rest = got->frame.body();
  for (const proto::RecordView& r : records(got)) {
    EXPECT_TRUE(r.property_crc && proto::property_crc_fits(r, rest));
    EXPECT_EQ(r.properties.find("__CRC32#"), std::string_view::npos) << "only one";
    EXPECT_EQ(r.property("K"), "v");
    rest = rest.subspan(r.size);
  }
  got = co_await w.pull("T", 0, "a");
  EXPECT_EQ(bodies(got), "plain");
}
TEST(BrokerMessage, ACrcOfEachRecord) {
  BrokerConfig c = test_config();
  c.enabledAppendPropCRC = true;
  simulate({with_crc, batch}, c);
}

}  // namespace
}  // namespace rmq::broker

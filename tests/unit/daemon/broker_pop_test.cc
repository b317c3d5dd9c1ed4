// POP through the whole broker, simulated: what comes, what does not, when, and with which handle.
#include <set>

#include "pop_client.h"
#include "proto/bodies_stats.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

// ---- one after the other ---------------------------------------------------------------------------------

Task<void> basics(World& w) {
  co_await send_some(w, 3);
  auto a = co_await ask(w, {});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(remark(a), "FOUND");
  for (std::string_view field : {"popTime", "invisibleTime", "reviveQid", "restNum"})
    EXPECT_NE(ext(a, field), "absent") << field;
  EXPECT_EQ(ext(a, "startOffsetInfo"), "0 0 0");
  EXPECT_EQ(ext(a, "msgOffsetInfo"), "0 0 0,1,2");
  EXPECT_EQ(ext(a, "invisibleTime"), "60000");
  EXPECT_EQ(ext(a, "restNum"), "0");
  Popped got = popped_of(a);
  EXPECT_EQ(bodies_of(got), "m0,m1,m2");
  a = co_await ask(w, {});
  EXPECT_EQ(code_of(a), 210) << "invisible to everybody else";
  EXPECT_EQ(ext(a, "restNum"), "0");
  EXPECT_EQ(committed(w), 0) << "what nobody acknowledged is not passed";
  EXPECT_EQ(w.broker.pop.table.outstanding(), 3u);
  for (size_t i : {1u, 0u, 2u}) {
    int32_t code = co_await ack(w, got[i].handle);
    EXPECT_EQ(code, 0);
    EXPECT_EQ(committed(w), i == 1 ? 0 : i == 0 ? 2 : 3);
  }
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0) << "twice does no harm";
  EXPECT_EQ(w.broker.pop.table.outstanding(), 0u);
  EXPECT_EQ(w.broker.pop.table.checkpoints(), 0u);
  co_await sleep_for(120 * ns_per_s);
  EXPECT_EQ(w.broker.topics.find("%RETRY%g_T"), nullptr) << "nothing came again";
}
TEST(BrokerPop, Basics) {
  simulate({basics});
}

Task<void> refusals(World& w) {
  co_await send_some(w, 2);
  PopAsk p;
  p.queue = 99;
  auto a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 29) << remark(a);
  p = {};
  p.most = 33;
  a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 29) << remark(a);
  p = {};
  p.topic = "Unknown";
  a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 17) << remark(a);
  p = {};
  p.expression = "||";
  a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 23) << remark(a);
  std::string stale = pop_frame(++w.opaque, {}, w.broker.wall_ms() - 1000);
  a = co_await w.peer->call(stale);
  EXPECT_EQ(code_of(a), 210) << "it has waited too long on its way";
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m0,m1");
  if (got.size() != 2) co_return;
  std::string frame = ack_frame(++w.opaque, "g", "T", got[0].handle, 1'000'000);
  a = co_await w.peer->call(frame);
  EXPECT_EQ(code_of(a), 208) << remark(a);
  frame = ack_frame(++w.opaque, "g", "Unknown", got[0].handle);
  a = co_await w.peer->call(frame);
  EXPECT_EQ(code_of(a), 17) << remark(a);
  for (std::string_view handle : {"", "1 2 3", "0 x 60000 0 0 b 0 0", "0 1 2 3 44 b 0 0"}) {
    const sim::Ext ext({"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"extraInfo", handle},
                       {"offset", "0"});
    a = co_await w.peer->call(
        sim::request_frame(static_cast<int32_t>(RequestCode::ACK_MESSAGE), ++w.opaque, ext));
    EXPECT_EQ(code_of(a), 13) << handle;
  }
  auto vip = co_await Peer::connect(w.client_net, "10.0.0.1", 10909);
  frame = pop_frame(++w.opaque, {}, w.broker.wall_ms());
  a = co_await vip->call(frame);
  EXPECT_EQ(code_of(a), 3) << "not on the second port";
  co_await vip->close();
}
TEST(BrokerPop, Refusals) {
  simulate({refusals});
}

Task<void> comes_again(World& w) {
  std::string props;
  proto::append_property(props, "TAGS", "red");
  proto::append_property(props, "mine", "kept");
  auto a = co_await w.send("T", "one", props);
  a = co_await w.send("T", "two");
  Popped got = co_await pop(w, with_invisible(5000));
  EXPECT_EQ(bodies_of(got), "one,two");
  if (got.size() != 2) co_return;
  const int64_t popped_ms = PopHandle::parse(got[0].handle)->pop_time_ms;
  int32_t code = co_await ack(w, got[1].handle);
  EXPECT_EQ(code, 0);
  PopAsk wait = with_invisible(5000);
  wait.poll_ms = 20'000;
  const int64_t before = w.broker.now_ns();
  Popped again = co_await pop(w, wait);
  const int64_t waited_ms = (w.broker.now_ns() - before) / ns_per_ms;
  EXPECT_EQ(bodies_of(again), "one") << "exactly what nobody acknowledged";
  EXPECT_GE(waited_ms, 4900);
  EXPECT_LE(waited_ms, 5100) << "a waiting request gets it at once";
  if (again.size() != 1) co_return;
  EXPECT_EQ(again[0].reconsume_times, 1);
  EXPECT_EQ(again[0].topic, "T") << "under its own topic";
  EXPECT_EQ(again[0].tag, "red");
  EXPECT_EQ(again[0].first_pop_time, std::to_string(popped_ms));
  EXPECT_TRUE(again[0].handle.find(" 1 b 0 0") != std::string::npos) << again[0].handle;
  EXPECT_EQ(committed(w), 2) << "it has left its queue";
  code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0) << "too late, and of no effect";
  again = co_await pop(w, wait);
  EXPECT_EQ(bodies_of(again), "one");
  if (again.size() != 1) co_return;
  EXPECT_EQ(again[0].reconsume_times, 2) << "counted on";
  EXPECT_EQ(again[0].first_pop_time, std::to_string(popped_ms)) << "of the first pop";
  code = co_await ack(w, again[0].handle);
  EXPECT_EQ(code, 0);
  again = co_await pop(w, wait);
  EXPECT_EQ(bodies_of(again), "");
  a = co_await w.pull("%RETRY%g_T", 0);
  EXPECT_EQ(bodies(a), "one,one") << "RocketMQ's retry topic";
  EXPECT_EQ(records(a)[0].property("mine"), "kept");
}
TEST(BrokerPop, WhatIsNotAcknowledgedComesAgain) {
  simulate({comes_again});
}

Task<void> retry_topic_v2(World& w) {
  w.config.enableRetryTopicV2 = true;
  co_await send_some(w, 1);
  Popped got = co_await pop(w, with_invisible(1000));
  co_await sleep_for(2 * ns_per_s);
  EXPECT_NE(w.broker.topics.find("%RETRY%g+T"), nullptr);
  w.config.popResponseReturnActualRetryTopic = true;
  got = co_await pop(w, with_invisible(1000));
  EXPECT_EQ(bodies_of(got), "m0");
  if (got.size() != 1) co_return;
  EXPECT_EQ(got[0].topic, "%RETRY%g+T");
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  co_await sleep_for(2 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "");
}
TEST(BrokerPop, RetryTopicV2) {
  simulate({retry_topic_v2});
}

Task<void> changes(World& w) {
  co_await send_some(w, 3);
  Popped got = co_await pop(w, with_invisible(3000));
  EXPECT_EQ(got.size(), 3u);
  if (got.size() != 3) co_return;
  auto a = co_await change(w, got[0].handle, 10'000);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(ext(a, "invisibleTime"), "10000");
  const std::string late = changed_handle(got[0].handle, a);
  a = co_await change(w, got[1].handle, 500);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(800 * ns_per_ms);
  Popped again = co_await pop(w, with_invisible(60'000));
  EXPECT_EQ(bodies_of(again), "m1") << "sooner";
  co_await sleep_for(3 * ns_per_s);
  again = co_await pop(w, with_invisible(60'000));
  EXPECT_EQ(bodies_of(again), "m2") << "as it was";
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0) << "the old handle has no effect";
  a = co_await change(w, got[0].handle, 1000);
  EXPECT_EQ(code_of(a), 208) << "nor can it be changed";
  co_await sleep_for(3 * ns_per_s);
  a = co_await change(w, late, 10'000);
  EXPECT_EQ(code_of(a), 0) << "longer again, before the time is up";
  const std::string later = changed_handle(late, a);
  co_await sleep_for(6 * ns_per_s);
  again = co_await pop(w, with_invisible(60'000));
  EXPECT_EQ(bodies_of(again), "");
  code = co_await ack(w, later);
  EXPECT_EQ(code, 0);
  co_await sleep_for(20 * ns_per_s);
  again = co_await pop(w, with_invisible(60'000));
  EXPECT_EQ(bodies_of(again), "");
  EXPECT_EQ(committed(w), 3);
}
TEST(BrokerPop, InvisibleTimeChanges) {
  simulate({changes});
}

Task<void> tags(World& w) {
  for (std::string_view tag : {"A", "B", "C", "B", "A"}) {
    std::string props;
    proto::append_property(props, "TAGS", tag);
    auto a = co_await w.send("T", tag, props);
  }
  PopAsk p = with_invisible(2000);
  p.expression = "A || C";
  auto a = co_await ask(w, p);
  EXPECT_EQ(ext(a, "msgOffsetInfo"), "0 0 0,2,4");
  Popped got = popped_of(a);
  EXPECT_EQ(bodies_of(got), "A,C,A");
  if (got.size() != 3) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  code = co_await ack(w, got[2].handle);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w), 2);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(committed(w), 5);
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "C") << "by its tag, also in the retry topic";
}
TEST(BrokerPop, Tags) {
  simulate({tags});
}

Task<void> expressions(World& w) {
  for (std::string_view price : {"5", "20", "7", "30"}) {
    std::string props;
    proto::append_property(props, "price", price);
    auto a = co_await w.send("T", price, props);
  }
  PopAsk p = with_invisible(2000);
  p.type = "SQL92";
  p.expression = "price > 10";
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "20,30");
  if (got.size() != 2) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(committed(w), 4);
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "30") << "also in the retry topic";
  p.expression = "price >";
  auto a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 23) << remark(a);
}
TEST(BrokerPop, Expressions) {
  simulate({expressions});
}

std::string with_price(std::string_view price) {
  std::string props;
  proto::append_property(props, "price", price);
  return props;
}

// A message that waits for one expression is no matter of those who wait for another.
Task<void> waits_by_expression(World& w) {
  auto dear = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto cheap = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto first = co_await w.send("T", "0", with_price("0"));
  EXPECT_EQ(code_of(first), 0) << remark(first);
  PopAsk p;
  p.type = "SQL92";
  p.poll_ms = 20'000;
  p.expression = "price > 100";
  bool sent = co_await dear->send(pop_frame(++w.opaque, p, w.broker.wall_ms()));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  p.expression = "price > 10";
  sent = co_await cheap->send(pop_frame(++w.opaque, p, w.broker.wall_ms()));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  EXPECT_EQ(w.broker.pop.polling.waiting(), 2u);
  for (std::string_view price : {"1", "2"}) {
    auto a = co_await w.send("T", price, with_price(price));
    EXPECT_EQ(code_of(a), 0) << remark(a);
  }
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(committed(w), 1) << "nobody was woken for what nobody wants";
  auto a = co_await w.send("T", "20", with_price("20"));
  a = co_await cheap->next(1);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  if (code_of(a) == 0) EXPECT_EQ(bodies_of(popped_of(a)), "20");
  EXPECT_EQ(w.broker.pop.polling.waiting(), 1u) << "the one who came first waits still";
  a = co_await w.send("T", "200", with_price("200"));
  a = co_await dear->next(1);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  if (code_of(a) == 0) EXPECT_EQ(bodies_of(popped_of(a)), "200");
  co_await dear->close();
  co_await cheap->close();
}
TEST(BrokerPop, WaitsByExpression) {
  simulate({waits_by_expression});
}

Task<void> queues(World& w) {
  for (std::string_view q : {"0", "1", "2", "3"}) co_await send_some(w, 2, "T", std::string(q));
  PopAsk p;
  p.queue = 2;
  auto a = co_await ask(w, p);
  EXPECT_EQ(ext(a, "msgOffsetInfo"), "0 2 0,1");
  p = {};
  p.most = 5;
  Popped got = co_await pop(w, p);
  EXPECT_EQ(got.size(), 5u) << "of any queues";
  a = co_await ask(w, p);
  EXPECT_EQ(popped_of(a).size(), 1u);
  PopAsk other;
  other.group = "h";
  got = co_await pop(w, other);
  EXPECT_EQ(got.size(), 8u) << "another group has its own";
}
TEST(BrokerPop, Queues) {
  simulate({queues});
}

Task<void> begins(World& w) {
  co_await send_some(w, 5);
  PopAsk newest;
  newest.init_mode = 1;
  newest.group = "young";
  Popped got = co_await pop(w, newest);
  EXPECT_EQ(got.size(), 5u) << "a young queue is read from its beginning";
  w.config.initPopOffsetByCheckMsgInMem = false;
  newest.group = "old";
  got = co_await pop(w, newest);
  EXPECT_EQ(bodies_of(got), "m4") << "the newest";
  co_await send_some(w, 1, "T", "0", 5);
  got = co_await pop(w, newest);
  EXPECT_EQ(bodies_of(got), "m5") << "and then what comes";
}
TEST(BrokerPop, InitMode) {
  simulate({begins});
}

Task<void> polls(World& w) {
  co_await send_some(w, 1, "T", "1");
  Popped got = co_await pop(w);
  PopAsk p;
  p.poll_ms = 1000;
  int64_t began = w.broker.now_ns();
  auto a = co_await ask(w, p);
  int64_t waited_ms = (w.broker.now_ns() - began) / ns_per_ms;
  EXPECT_EQ(code_of(a), 210);
  EXPECT_TRUE(waited_ms >= 900 && waited_ms <= 1000) << waited_ms;
  // Two wait; one message wakes one of them.
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto two = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  p.poll_ms = 10'000;
  std::string frame = pop_frame(++w.opaque, p, w.broker.wall_ms());
  bool sent = co_await one->send(frame);
  co_await sleep_for(10 * ns_per_ms);
  sent = sent && co_await two->send(frame);
  EXPECT_TRUE(sent);
  co_await sleep_for(10 * ns_per_ms);
  const sim::Ext info({"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "-1"});
  a = co_await w.call(RequestCode::POLLING_INFO, info);
  EXPECT_EQ(ext(a, "pollingNum"), "2");
  co_await send_some(w, 1, "T", "0", 7);
  a = co_await one->next();
  EXPECT_EQ(code_of(a), 0) << "who came first";
  a = co_await two->next(1);
  EXPECT_EQ(a, nullptr);
  EXPECT_EQ(w.broker.pop.polling.waiting(), 1u);
  co_await two->close();
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.pop.polling.waiting(), 0u) << "who goes does not wait";
  co_await one->close();
}
TEST(BrokerPop, LongPolling) {
  simulate({polls});
}

Task<void> notices(World& w) {
  co_await send_some(w, 1);
  auto notice = [&](std::string_view poll) {
    const std::string born = std::to_string(w.broker.wall_ms());
    const sim::Ext ext({"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "-1"}, {"pollTime", poll},
                       {"bornTime", born}, {"order", "false"});
    return sim::request_frame(static_cast<int32_t>(RequestCode::NOTIFICATION), ++w.opaque, ext);
  };
  auto a = co_await w.peer->call(notice("500"));
  EXPECT_EQ(ext(a, "hasMsg"), "true");
  Popped got = co_await pop(w, with_invisible(3000));
  a = co_await w.peer->call(notice("500"));
  EXPECT_EQ(ext(a, "hasMsg"), "false");
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent = co_await one->send(notice("20000"));
  EXPECT_TRUE(sent);
  const int64_t began = w.broker.now_ns();
  a = co_await one->next(10);
  EXPECT_EQ(ext(a, "hasMsg"), "true") << "the message that came again";
  EXPECT_LE(w.broker.now_ns() - began, 4 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m0");
  sent = co_await one->send(notice("20000"));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  co_await send_some(w, 1);
  a = co_await one->next(1);
  EXPECT_EQ(ext(a, "hasMsg"), "true");
  co_await one->close();
}
TEST(BrokerPop, Notification) {
  simulate({notices});
}

Task<void> notices_by_expression(World& w) {
  auto first = co_await w.send("T", "0", with_price("50"));
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "0");
  const std::string born = std::to_string(w.broker.wall_ms());
  const sim::Ext wanted({"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "-1"}, {"pollTime", "20000"},
                        {"bornTime", born}, {"order", "false"}, {"expType", "SQL92"}, {"exp", "price > 10"});
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent =
      co_await one->send(sim::request_frame(static_cast<int32_t>(RequestCode::NOTIFICATION), 1, wanted));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  auto a = co_await w.send("T", "5", with_price("5"));
  a = co_await one->next(1);
  EXPECT_EQ(a, nullptr) << "no message that it wants";
  a = co_await w.send("T", "20", with_price("20"));
  a = co_await one->next(1);
  EXPECT_EQ(ext(a, "hasMsg"), "true");
  const sim::Ext bad({"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "-1"}, {"pollTime", "0"},
                     {"bornTime", born}, {"expType", "SQL92"}, {"exp", "price >"});
  a = co_await w.call(RequestCode::NOTIFICATION, bad);
  EXPECT_EQ(code_of(a), 23) << remark(a);
  co_await one->close();
}
TEST(BrokerPop, NotificationByExpression) {
  simulate({notices_by_expression});
}

Task<void> batches(World& w) {
  co_await send_some(w, 10);
  Popped got = co_await pop(w, with_invisible(4000));
  if (got.size() != 10) co_return;
  auto h = PopHandle::parse(got[0].handle);
  auto body = [&](std::string_view bits) {
    return R"({"brokerName":"b","acks":[{"c":"g","t":"T","r":"0","so":0,"q":0,"rq":0,"pt":)" +
           std::to_string(h->pop_time_ms) + R"(,"it":4000,"b":)" + std::string(bits) + "}]}";
  };
  auto a = co_await w.call(RequestCode::BATCH_ACK_MESSAGE, {}, body(R"("/QE=")"));  // 0xfd 0x01
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(committed(w), 1) << "all but the second and the last";
  EXPECT_EQ(w.broker.pop.table.outstanding(), 2u);
  a = co_await w.call(RequestCode::BATCH_ACK_MESSAGE, {}, body("[2]"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(committed(w), 9);
  for (std::string_view bad : {"", "{}", R"({"brokerName":"b","acks":[]})", R"({"acks":[{"b":"!"}]})"}) {
    a = co_await w.call(RequestCode::BATCH_ACK_MESSAGE, {}, bad);
    EXPECT_EQ(code_of(a), 208) << bad;
  }
  co_await sleep_for(5 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m9");
}
TEST(BrokerPop, BatchAck) {
  simulate({batches});
}

// ---- in order
// ----------------------------------------------------------------------------------------------

Task<void> in_order(World& w) {
  co_await send_some(w, 6);
  PopAsk p = with_invisible(5000);
  p.order = true;
  p.most = 3;
  auto a = co_await ask(w, p);
  EXPECT_EQ(ext(a, "reviveQid"), "999");
  EXPECT_EQ(ext(a, "orderCountInfo"), "0 0 0");
  Popped got = popped_of(a);
  EXPECT_EQ(bodies_of(got), "m0,m1,m2");
  if (got.size() != 3) co_return;
  Popped other = co_await pop(w, p);
  EXPECT_EQ(bodies_of(other), "") << "blocked while they are not acknowledged";
  PopAsk free = with_invisible(5000);
  other = co_await pop(w, free);
  EXPECT_EQ(bodies_of(other), "") << "for everybody";
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  code = co_await ack(w, got[2].handle);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w), 1);
  PopAsk waits = p;
  waits.poll_ms = 20'000;
  const int64_t began = w.broker.now_ns();
  a = co_await ask(w, waits);
  EXPECT_TRUE(w.broker.now_ns() - began > 4 * ns_per_s && w.broker.now_ns() - began < 6 * ns_per_s);
  got = popped_of(a);
  EXPECT_EQ(bodies_of(got), "m1,m3") << "not what was acknowledged";
  if (got.size() != 2) co_return;
  EXPECT_EQ(got[0].reconsume_times, 1);
  EXPECT_EQ(got[1].reconsume_times, 0);
  EXPECT_EQ(got[0].topic, "T") << "in its queue";
  for (const PoppedMessage& m : got) {
    code = co_await ack(w, m.handle);
    EXPECT_EQ(code, 0);
  }
  EXPECT_EQ(committed(w), 4);
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m4,m5");
  code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  std::string wrong = ack_frame(++w.opaque, "g", "T", got[0].handle, 6);
  a = co_await w.peer->call(wrong);
  EXPECT_EQ(code_of(a), 13) << "none of them";
}
TEST(BrokerPop, InOrder) {
  simulate({in_order});
}

// Popped again and again, and fewer at a time: what was acknowledged in between is remembered.
Task<void> out_of_order_acks(World& w) {
  co_await send_some(w, 8);
  PopAsk p = with_invisible(1000);
  p.order = true;
  p.most = 4;
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m0,m1,m2,m3");
  if (got.size() != 4) co_return;
  for (size_t i : {1u, 3u}) {
    int32_t code = co_await ack(w, got[i].handle);
    EXPECT_EQ(code, 0);
  }
  for (int32_t most : {1, 3, 1, 2}) {
    co_await sleep_for(1100 * ns_per_ms);
    p.most = most;
    got = co_await pop(w, p);
    EXPECT_EQ(bodies_of(got), most == 3 ? "m0,m2" : "m0");
    EXPECT_EQ(committed(w), 0);
  }
  if (got.size() != 1) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w), 2);
  p.most = 1;
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m2");
  if (got.size() != 1) co_return;
  code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w), 4) << "m3 was acknowledged long ago";
  p.most = 32;
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m4,m5,m6,m7");
}
TEST(BrokerPop, AcknowledgedOutOfOrder) {
  simulate({out_of_order_acks});
}

// One that nobody acknowledges before many that are.
Task<void> far_ahead(World& w) {
  co_await send_some(w, 200);
  PopAsk p = with_invisible(1000);
  p.order = true;
  p.most = 32;
  std::set<std::string> acknowledged;
  for (int round = 0; round < 12; round++) {
    Popped got = co_await pop(w, p);
    EXPECT_FALSE(got.empty());
    for (const PoppedMessage& m : got) {
      EXPECT_FALSE(acknowledged.contains(m.body)) << m.body;
      if (m.body == "m0") continue;
      int32_t code = co_await ack(w, m.handle);
      EXPECT_EQ(code, 0);
      acknowledged.insert(m.body);
    }
    co_await sleep_for(1100 * ns_per_ms);
  }
  EXPECT_EQ(committed(w), 0);
  EXPECT_EQ(acknowledged.size(), 31u) << "a pop looks at 32 messages from the first one on";
}
TEST(BrokerPop, FarAheadOfOneThatIsNotAcknowledged) {
  simulate({far_ahead});
}

Task<void> attempts(World& w) {
  co_await send_some(w, 4);
  PopAsk p = with_invisible(30'000);
  p.order = true;
  p.most = 2;
  p.attempt = "a 1";
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m0,m1");
  Popped again = co_await pop(w, p);
  EXPECT_EQ(bodies_of(again), "m0,m1") << "the same attempt gets the same messages";
  if (again.size() != 2) co_return;
  EXPECT_EQ(again[0].reconsume_times, 0);
  p.attempt = "a 2";
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "");
  auto a = co_await change(w, again[0].handle, 1000);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await change(w, again[1].handle, 1000);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(1100 * ns_per_ms);
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m0,m1");
  if (got.size() != 2) co_return;
  EXPECT_EQ(got[0].reconsume_times, 1);
}
TEST(BrokerPop, Attempts) {
  simulate({attempts});
}

// ---- restarts
// ----------------------------------------------------------------------------------------------

std::string kept_handle;

Task<void> before_restart(World& w) {
  co_await send_some(w, 4);
  Popped got = co_await pop(w, with_invisible(30'000));
  if (got.size() != 4) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  code = co_await ack(w, got[2].handle);
  EXPECT_EQ(code, 0);
  kept_handle = got[1].handle;
}
Task<void> after_restart(World& w) {
  EXPECT_EQ(committed(w), 1);
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "") << "what was popped is invisible still";
  int32_t code = co_await ack(w, kept_handle);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w), 3) << "by the handle of before";
  co_await sleep_for(31 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m3");
}
TEST(BrokerPop, Restart) {
  simulate({before_restart, after_restart});
}

Task<void> order_before(World& w) {
  co_await send_some(w, 4);
  PopAsk p = with_invisible(10'000);
  p.order = true;
  p.most = 2;
  Popped got = co_await pop(w, p);
  if (got.size() != 2) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  kept_handle = got[1].handle;
}
Task<void> order_after(World& w) {
  PopAsk p = with_invisible(10'000);
  p.order = true;
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "") << "blocked still";
  int32_t code = co_await ack(w, kept_handle);
  EXPECT_EQ(code, 0);
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m2,m3");
}
TEST(BrokerPop, RestartInOrder) {
  simulate({order_before, order_after});
}

// What the Java broker does between two runs of ours: it gives from the offset on, and writes its own.
Task<void> java_was_here(World& w) {
  w.broker.offsets.commit("g", "T", 0, 3);
  auto kept = co_await w.broker.offsets.kept(w.broker.offsets.last_change());
  EXPECT_TRUE(kept);
  EXPECT_EQ(w.broker.pop.table.outstanding(), 0u) << "somebody else's offset counts";
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m3");
}
TEST(BrokerPop, AnOffsetOfSomebodyElseCounts) {
  simulate({before_restart, java_was_here});
}

Task<void> foreign_file(World& w) {
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m2,m3") << "from the file that another broker wrote";
}
TEST(BrokerPop, AFileOfAnotherBrokerCounts) {
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  auto lives = [](sim::SimNetwork& n, Disk& d) -> Task<void> {
    const ConfigSource no_file;
    co_await run_world(n, d, test_config(), before_restart, no_file);
    std::string text = R"({"offsetTable":{"T@g":{0:2}}})";
    auto written = co_await store::replace_file(d, "/store/config/consumerOffset.json", text);
    EXPECT_TRUE(written);
    co_await run_world(n, d, test_config(), foreign_file, no_file);
  };
  loop.run(lives(network, disk));
}

Task<void> resets(World& w) {
  co_await send_some(w, 4);
  Popped got = co_await pop(w);
  if (got.size() != 4) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  auto a = co_await w.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, {{"topic", "T"},
                                                                        {"group", "g"},
                                                                        {"queueId", "0"},
                                                                        {"offset", "1"},
                                                                        {"timestamp", "0"},
                                                                        {"isForce", "true"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(committed(w), 1);
  code = co_await ack(w, got[1].handle);
  EXPECT_EQ(code, 0) << "of no effect";
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m1,m2,m3") << "also to where the group was";
  a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "T"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.broker.pop.table.outstanding(), 0u);
  co_await send_some(w, 1, "T", "0", 10);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m10") << "a new topic of that name";
}
TEST(BrokerPop, ResetAndDeletion) {
  simulate({resets});
}

Task<void> shown(World& w) {
  co_await send_some(w, 5);
  PopAsk p;
  p.most = 3;
  Popped got = co_await pop(w, p);
  if (got.size() != 3) co_return;
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  auto a = co_await w.call(RequestCode::GET_CONSUME_STATS, {{"consumerGroup", "g"}, {"topic", "T"}});
  EXPECT_TRUE(body_text(a).find(R"("brokerOffset":5,"consumerOffset":1)") != std::string::npos)
      << body_text(a);
  EXPECT_TRUE(body_text(a).find(R"("pullOffset":3)") != std::string::npos) << body_text(a);
  a = co_await w.call(RequestCode::POP_ROLLBACK, {});
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(committed(w), 1) << "an older broker begins at what is not acknowledged";
  EXPECT_EQ(w.broker.pop.table.outstanding(), 2u) << "and this one goes on";
}
TEST(BrokerPop, WhatOperatorsSee) {
  simulate({shown});
}

Task<void> threshold(World& w) {
  w.config.enablePopMessageThreshold = true;
  w.config.popInflightMessageThreshold = 4;
  co_await send_some(w, 10);
  PopAsk p;
  p.most = 5;
  Popped got = co_await pop(w, p);
  EXPECT_EQ(got.size(), 5u);
  auto a = co_await ask(w, p);
  EXPECT_EQ(code_of(a), 210);
  EXPECT_EQ(ext(a, "restNum"), "5");
  int32_t code = co_await ack(w, got[0].handle);
  EXPECT_EQ(code, 0);
  got = co_await pop(w, p);
  EXPECT_EQ(got.size(), 5u);
}
TEST(BrokerPop, Threshold) {
  simulate({threshold});
}

TEST(PopHandle, IsThatOfTheClients) {
  auto h = PopHandle::parse("100 1700000000000 60000 3 1 broker-a 2 105 4711");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->start_offset, 100);
  EXPECT_EQ(h->revive_queue, 3);
  EXPECT_EQ(h->offset, 105);
  EXPECT_EQ(h->encode(), "100 1700000000000 60000 3 1 broker-a 2 105") << "a proxy's ninth field is its own";
  EXPECT_FALSE(PopHandle::parse("100 1700000000000 60000 3 1 broker-a"));
  EXPECT_EQ(pop_retry_topic("g", "T", false), "%RETRY%g_T");
  EXPECT_EQ(original_topic("g_1", "%RETRY%g_1+T_2"), "T_2");
  EXPECT_EQ(retry_mark_of("%RETRY%g+T"), '2');
}

}  // namespace
}  // namespace rmq::broker

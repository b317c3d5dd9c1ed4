// What a RocketMQ broker gave out by POP before rmqd took its directory over, simulated.
#include "pop_client.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

Task<void> revive_log(World& w, std::string tag, std::string body) {
  std::string properties;
  proto::append_property(properties, "TAGS", tag);
  store::MessageIn m;
  m.topic = "rmq_sys_REVIVE_LOG_DefaultCluster";
  m.queue_id = 3;
  m.store_host = w.broker.store_host;
  m.body = as_bytes(body);
  m.properties = properties;
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
}

// The same while it waits in the timer until it is due.
Task<void> timed_revive_log(World& w, std::string_view tag, std::string body, int64_t due_ms) {
  std::string properties;
  proto::append_property(properties, "TAGS", tag);
  proto::append_property(properties, "REAL_TOPIC", "rmq_sys_REVIVE_LOG_DefaultCluster");
  proto::append_property(properties, "REAL_QID", "3");
  proto::append_property(properties, "TIMER_OUT_MS", std::to_string(due_ms));
  store::MessageIn m;
  m.topic = "rmq_sys_wheel_timer";
  m.store_host = w.broker.store_host;
  m.body = as_bytes(body);
  m.properties = properties;
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
}

int64_t java_pop_ms = 0;

// A Java broker gave out eight messages, committed the offset behind them, and left its directory to us: four
// whose time was up, and four that their client has still to acknowledge.
Task<void> left_by_java(World& w) {
  co_await send_some(w, 8);
  w.broker.groups.find_or_create("g", w.broker.wall_ms());
  w.broker.save_new_groups();
  w.broker.offsets.commit("g", "T", 0, 8);
  w.broker.stopping.set();  // what comes now is for the next
  const std::string popped = std::to_string(w.broker.wall_ms() - 4000);
  co_await revive_log(w, "ck",
                      R"({"bm":8,"bn":"b","c":"g","d":[0,1,2,3],"it":2000,"n":4,"pt":)" + popped +
                          R"(,"q":0,"ro":0,"rp":null,"so":0,"t":"T"})");
  co_await revive_log(w, "ck", "no JSON");
  co_await revive_log(w, "ack", R"({"ao":1,"bn":"b","c":"g","pt":)" + popped + R"(,"q":0,"so":0,"t":"T"})");
  java_pop_ms = w.broker.wall_ms();
  const std::string now = std::to_string(java_pop_ms);
  co_await timed_revive_log(w, "ck",
                            R"({"bm":0,"bn":"b","c":"g","d":[0,1,2,3],"it":20000,"n":4,"pt":)" + now +
                                R"(,"q":0,"ro":0,"rp":null,"so":4,"t":"T"})",
                            java_pop_ms + 19'000);
  co_await timed_revive_log(w, "ack", R"({"ao":4,"bn":"b","c":"g","pt":)" + now + R"(,"q":0,"so":4,"t":"T"})",
                            java_pop_ms + 20'000);
}
Task<void> taken_over(World& w) {
  const std::string handle = "4 " + std::to_string(java_pop_ms) + " 20000 3 0 b 0 ";
  int32_t code = co_await ack(w, handle + "5");
  EXPECT_EQ(code, 0);
  auto a = co_await change(w, handle + "6", 40'000);
  EXPECT_EQ(code_of(a), 0) << "a handle that Java gave: " << remark(a);
  co_await sleep_for(1500 * ns_per_ms);
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m0,m2") << "two are acknowledged, the fourth in the bit map";
  EXPECT_EQ(committed(w), 6) << "what was not acknowledged is not passed";
  EXPECT_EQ(committed(w, "rmq_sys_REVIVE_LOG_DefaultCluster", "CID_RMQ_SYS_REVIVE_GROUP", 3), 2)
      << "as RocketMQ counts";
  co_await sleep_for(20 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m7") << "when its time is up";
  co_await sleep_for(22 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m6") << "and this one later";
  EXPECT_EQ(committed(w), 8);
  EXPECT_EQ(w.store->max_offset("rmq_sys_REVIVE_LOG_DefaultCluster", 3), 3) << "the timer has none for it";
}
Task<void> not_taken_twice(World& w) {
  co_await sleep_for(6 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("%RETRY%g_T", 0), 4);
  EXPECT_EQ(w.broker.pop.table.outstanding(), 4u);
}
TEST(BrokerPop, WhatJavaLeftOutstandingIsTakenOver) {
  simulate({left_by_java, taken_over, not_taken_twice});
}

// It was killed before it wrote the group's offset for the first time.
Task<void> killed_java(World& w) {
  co_await send_some(w, 6);
  w.broker.groups.find_or_create("g", w.broker.wall_ms());
  w.broker.save_new_groups();
  w.broker.stopping.set();
  const std::string now = std::to_string(w.broker.wall_ms());
  for (std::string_view start : {"0", "2"})
    co_await timed_revive_log(w, "ck",
                              R"({"bm":0,"bn":"b","c":"g","d":[0,1],"it":20000,"n":2,"pt":)" + now +
                                  R"(,"q":0,"ro":0,"rp":null,"so":)" + std::string(start) + R"(,"t":"T"})",
                              w.broker.wall_ms() + 19'000);
}
Task<void> goes_on_behind(World& w) {
  co_await sleep_for(ns_per_s);
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m4,m5") << "the others are outstanding";
  EXPECT_EQ(committed(w), 0);
  co_await sleep_for(22 * ns_per_s);
  got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m0,m1,m2,m3");
}
TEST(BrokerPop, AKilledJavaBrokerWithoutOffsets) {
  simulate({killed_java, goes_on_behind});
}

// It gave out four in order, and one was acknowledged.
Task<void> left_in_order(World& w) {
  co_await send_some(w, 5);
  w.broker.groups.find_or_create("g", w.broker.wall_ms());
  w.broker.save_new_groups();
  w.broker.offsets.commit("g", "T", 0, 1);
  java_pop_ms = w.broker.wall_ms();
  const std::string popped = std::to_string(java_pop_ms), later = std::to_string(java_pop_ms + 20'000);
  const std::string text = R"({"table":{"T@g":{0:{"a":"try","cm":1,"i":10000,"l":)" + popped +
                           R"(,"o":[0,1,2,3],"oc":{2:1},"ot":{3:)" + later + R"(},"popTime":)" + popped +
                           R"(}},"U@g":{0:{"o":[0],"popTime":)" + popped + R"(,"i":10000}},"bad":{}}})";
  auto written = co_await store::replace_file(w.broker.disk, "/store/config/consumerOrderInfo.json", text);
  EXPECT_TRUE(written);
}
Task<void> goes_on_in_order(World& w) {
  PopAsk p;
  p.order = true;
  p.attempt = "another";
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "") << "the queue is blocked";
  const std::string handle = "0 " + std::to_string(java_pop_ms) + " 10000 999 0 b 0 ";
  int32_t code = co_await ack(w, handle + "1");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(committed(w), 2) << "by a handle that Java gave";
  co_await sleep_for(12 * ns_per_s);
  got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "") << "one of them is invisible for longer";
  co_await sleep_for(10 * ns_per_s);
  auto a = co_await ask(w, p);
  EXPECT_EQ(bodies_of(popped_of(a)), "m2,m3,m4");
  EXPECT_NE(ext(a, "orderCountInfo").find("0 qo0%2 2"), std::string::npos) << ext(a, "orderCountInfo");
}
TEST(BrokerPop, WhatJavaGaveOutInOrderIsTakenOver) {
  simulate({left_in_order, goes_on_in_order});
}

}  // namespace
}  // namespace rmq::broker

// Messages of any delay through the whole broker, simulated: codes, times, recalls, RocketMQ's stores.
#include "base/base64.h"
#include "broker_world.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string props(const sim::Ext& p) {
  std::string out;
  for (auto& [k, v] : p) proto::append_property(out, k, v);
  return out;
}

// Waits for messages of queue 0, from offset 0 on.
Task<Answer> wait_for(World& w, std::string_view topic, int64_t count, int64_t seconds = 60) {
  const int64_t until = w.broker.now_ns() + seconds * ns_per_s;
  while (w.store->max_offset(topic, 0) < count && w.broker.now_ns() < until) co_await sleep_for(ns_per_ms);
  co_return co_await w.pull(topic, 0);
}

Task<void> codes(World& w) {
  auto a = co_await w.send("T", "x", props({{"TIMER_DELAY_MS", "5000"}, {"UNIQ_KEY", "U1"}}), "2");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(ext(a, "queueId"), "2") << "that of the real topic";
  EXPECT_EQ(ext(a, "queueOffset"), "0") << "that in the timer's queue";
  EXPECT_EQ(w.store->max_offset("T", 2), 0);
  EXPECT_EQ(w.store->max_offset("rmq_sys_wheel_timer", 0), 1);
  auto handle = base64url_decode(ext(a, "recallHandle"));
  EXPECT_TRUE(handle && handle->starts_with("v1 T b 18000") && handle->ends_with(" U1"))
      << handle.value_or("none");
  for (std::string_view bad : {"31536001", "-1", "x", "9223372036854775807"}) {
    a = co_await w.send("T", "x", props({{"TIMER_DELAY_SEC", bad}}));
    EXPECT_EQ(code_of(a), 13) << bad << remark(a);
  }
  a = co_await w.send("T", "x", props({{"TIMER_DELAY_SEC", "31536000"}}));
  EXPECT_EQ(code_of(a), 0) << "a year";
  EXPECT_EQ(w.store->max_offset("T", 0), 0);
  a = co_await w.send("T", "x", props({{"TIMER_DELIVER_MS", "1700000000000"}}));
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.store->max_offset("T", 0), 1) << "the time has passed: at once";
  EXPECT_EQ(ext(a, "recallHandle"), "absent");
  a = co_await w.send("T", "x", props({{"DELAY", "1"}, {"TIMER_DELAY_SEC", "x"}}));
  EXPECT_EQ(code_of(a), 0) << "the level wins";
  EXPECT_EQ(ext(a, "recallHandle"), "absent");
  a = co_await w.send("T", "x", props({{"TIMER_DELAY_SEC", "9"}, {"P", std::string(32'640, 'p')}}));
  EXPECT_EQ(code_of(a), 13) << "no room for what delivery adds";
  for (std::string_view topic : {"rmq_sys_wheel_timer", "rmq_sys_delivered"}) {
    a = co_await w.send(topic, "x");
    EXPECT_EQ(code_of(a), 16) << topic;
  }
  w.config.timerWheelEnable = false;
  a = co_await w.send("T", "x", props({{"TIMER_DELAY_SEC", "9"}}));
  EXPECT_EQ(code_of(a), 1) << remark(a);
  w.config.timerWheelEnable = true;
  EXPECT_EQ(w.store->max_offset("rmq_sys_wheel_timer", 0), 2) << "nothing else was stored";
}
TEST(BrokerTimer, Codes) {
  simulate({codes});
}

Task<void> delivered(World& w) {
  int64_t began = w.broker.now_ns();
  const int64_t deliver = w.broker.wall_ms() + 2345;
  std::string deliver_text = std::to_string(deliver);
  auto a = co_await w.send("T", "time",
                           props({{"TIMER_DELIVER_MS", deliver_text}, {"TAGS", "t"}, {"KEYS", "kk"}}));
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.send("T", "soon", props({{"TIMER_DELAY_MS", "5"}}));
  auto got = co_await wait_for(w, "T", 1);
  EXPECT_EQ(bodies(got), "soon");
  EXPECT_LT(w.broker.now_ns() - began, 50 * ns_per_ms);
  got = co_await wait_for(w, "T", 2);
  EXPECT_EQ(bodies(got), "soon,time");
  EXPECT_GE(w.broker.wall_ms(), deliver);
  EXPECT_LE(w.broker.wall_ms(), deliver + 100) << "exact to 100 ms";
  auto r = records(got);
  if (r.size() != 2) co_return;
  EXPECT_EQ(r[1].property("REAL_TOPIC"), "T");
  EXPECT_EQ(r[1].property("REAL_QID"), "0");
  EXPECT_EQ(r[1].property("TIMER_OUT_MS"), deliver_text);
  EXPECT_EQ(r[1].property("TIMER_DELIVER_MS"), deliver_text);
  EXPECT_EQ(r[1].property("TAGS"), "t");
  EXPECT_TRUE(r[1].property("TIMER_ENQUEUE_MS"));
  EXPECT_TRUE(r[1].property("TIMER_DEQUEUE_MS"));
  got = co_await w.pull("T", 0, "t");
  EXPECT_EQ(bodies(got), "time") << "the copy has its tag";
  // The clock is set forward by an hour: a delay is not touched by it, a time of day comes with it.
  a = co_await w.send("S", "delay", props({{"TIMER_DELAY_SEC", "60"}}));
  std::string in_half_an_hour = std::to_string(w.broker.wall_ms() + 1'800'000);
  a = co_await w.send("S", "time", props({{"TIMER_DELIVER_MS", in_half_an_hour}}));
  began = w.broker.now_ns();
  static_cast<sim::SimLoop&>(Loop::current()).sim_clock().step_wall(3'600'000);
  got = co_await wait_for(w, "S", 1);
  EXPECT_EQ(bodies(got), "time");
  EXPECT_LT(w.broker.now_ns() - began, ns_per_s);
  static_cast<sim::SimLoop&>(Loop::current()).sim_clock().step_wall(-7'200'000);
  got = co_await wait_for(w, "S", 2, 70);
  EXPECT_EQ(bodies(got), "time,delay");
  EXPECT_GE(w.broker.now_ns() - began, 59'900 * ns_per_ms);
  EXPECT_LT(w.broker.now_ns() - began, 60'500 * ns_per_ms) << "nor later when it is set back";
}
TEST(BrokerTimer, ComesInTimeAsItWas) {
  simulate({delivered});
}

Task<Answer> recall_by(World& w, std::string_view topic, std::string_view handle) {
  return w.call(RequestCode::RECALL_MESSAGE,
                {{"producerGroup", "pg"}, {"topic", topic}, {"recallHandle", handle}});
}

Task<void> recalls(World& w) {
  auto a = co_await w.send("T", "keep", props({{"TIMER_DELAY_MS", "3000"}, {"UNIQ_KEY", "U0"}}));
  a = co_await w.send("T", "gone", props({{"TIMER_DELAY_MS", "3000"}, {"UNIQ_KEY", "U1"}}));
  std::string handle = ext(a, "recallHandle");
  auto r = co_await recall_by(w, "T", handle);
  EXPECT_EQ(code_of(r), 0) << remark(r);
  EXPECT_EQ(ext(r, "msgId"), "U1");
  EXPECT_EQ(ext(r, "MSG_REGION"), "DefaultRegion");
  r = co_await recall_by(w, "T", handle);
  EXPECT_EQ(code_of(r), 0) << "twice does no harm";
  a = co_await w.send("T2", "x");
  r = co_await recall_by(w, "T2", handle);
  EXPECT_EQ(code_of(r), 604) << "another topic's";
  r = co_await recall_by(w, "NoTopic", handle);
  EXPECT_EQ(code_of(r), 17);
  for (std::string_view bad : {"", "###", "djE", "djIgVCBiIDEgaw=="}) {
    r = co_await recall_by(w, "T", bad);
    EXPECT_TRUE(code_of(r) == 604 || code_of(r) == 1) << bad << " " << remark(r);
  }
  std::string_view far = "v1 T b 9900000000000 U1", past = "v1 T b 1700000000000 U1",
                   other = "v1 T c 1800000009000 U";
  for (std::string_view text : {far, past, other}) {
    r = co_await recall_by(w, "T", base64url_encode(text));
    EXPECT_EQ(code_of(r), 604) << text;
  }
  co_await sleep_for(6 * ns_per_s);
  auto got = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(got), "keep");
  EXPECT_EQ(w.broker.timers.stats().recalled, 1u);
  r = co_await recall_by(w, "T", handle);
  EXPECT_EQ(code_of(r), 604) << "its time has come";
  EXPECT_EQ(w.broker.timers.stats().in_memory, 0u) << "recalls go as well";
  auto info = co_await w.call(RequestCode::GET_BROKER_RUNTIME_INFO, {});
  auto table = proto::KVTable::parse(body_text(info));
  EXPECT_TRUE(table && table->table["timersRecalledTotal"] == "1" &&
              table->table["timersDeliveredTotal"] == "1")
      << body_text(info);
  w.config.recallMessageEnable = false;
  r = co_await recall_by(w, "T", handle);
  EXPECT_EQ(code_of(r), 16);
  w.config.recallMessageEnable = true;
}
TEST(BrokerTimer, Recalls) {
  simulate({recalls});
}

// What was taken with a longer timerMaxDelaySec than there is now: it comes at its time, and can be recalled.
std::string far_handle;
Task<void> taken_with_a_longer_limit(World& w) {
  auto a = co_await w.send("T", "gone", props({{"TIMER_DELAY_SEC", "60"}, {"UNIQ_KEY", "U1"}}));
  far_handle = ext(a, "recallHandle");
  a = co_await w.send("T", "kept", props({{"TIMER_DELAY_SEC", "60"}, {"UNIQ_KEY", "U2"}}));
  w.config.timerMaxDelaySec = 10;
  a = co_await w.send("T", "x", props({{"TIMER_DELAY_SEC", "60"}}));
  EXPECT_EQ(code_of(a), 13);
  const std::string later = "v1 T b " + std::to_string(w.broker.wall_ms() + 61'000) + " U1";
  auto r = co_await recall_by(w, "T", base64url_encode(later));
  EXPECT_EQ(code_of(r), 604) << "later than any message";
}
Task<void> recalled_with_a_shorter_limit(World& w) {
  w.config.timerMaxDelaySec = 10;
  co_await sleep_for(ns_per_s);
  auto r = co_await recall_by(w, "T", far_handle);
  EXPECT_EQ(code_of(r), 0) << remark(r);
  auto got = co_await wait_for(w, "T", 1, 70);
  co_await sleep_for(5 * ns_per_s);
  got = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(got), "kept");
  EXPECT_GE(w.broker.wall_ms(), records(got)[0].born_timestamp_ms + 60'000);
}
TEST(BrokerTimer, ALowerLimitIsForWhatComesFromThenOn) {
  simulate({taken_with_a_longer_limit, recalled_with_a_shorter_limit});
}

Task<void> before_restart(World& w) {
  for (int i = 0; i < 40; i++) {
    std::string delay = std::to_string(1000 + i * 100), key = "k" + std::to_string(i);
    auto a =
        co_await w.send("R", "m" + std::to_string(i), props({{"TIMER_DELAY_MS", delay}, {"UNIQ_KEY", key}}));
    EXPECT_EQ(code_of(a), 0);
    if (i == 39) {
      auto r = co_await recall_by(w, "R", ext(a, "recallHandle"));
      EXPECT_EQ(code_of(r), 0);
    }
  }
  co_await sleep_for(2 * ns_per_s);
}
Task<void> after_restart(World& w) {
  co_await sleep_for(10 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("R", 0), 39) << "each once, but for the recalled one";
  EXPECT_EQ(w.broker.timers.stats().first_pending, 41);
}
TEST(BrokerTimer, SurviveRestarts) {
  simulate({before_restart, after_restart, after_restart});
}

// Memory for a few only: the others wait in the queue.
Task<void> few_in_memory(World& w) {
  w.broker.timers.set_memory_max(16);
  for (int i = 0; i < 200; i++) {
    std::string delay = std::to_string(2000 + (i * 7919) % 3000);
    auto a = co_await w.send("F", "m" + std::to_string(i), props({{"TIMER_DELAY_MS", delay}}));
    EXPECT_EQ(code_of(a), 0);
    EXPECT_LE(w.broker.timers.stats().in_memory, 16u);
  }
  co_await sleep_for(8 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("F", 0), 200);
}
TEST(BrokerTimer, MoreThanFitIntoMemory) {
  simulate({few_in_memory});
}

// The log grows and the message is in its oldest file: it is put again, and comes once, or can be recalled.
Task<void> grow(World& w) {
  for (int i = 0; i < 80; i++) {
    auto a = co_await w.send("Big", std::string(90'000, 'b'));
    EXPECT_EQ(code_of(a), 0);
  }
}
Task<void> rolled(World& w) {
  auto a = co_await w.send("T", "keep", props({{"TIMER_DELAY_SEC", "200"}, {"UNIQ_KEY", "U0"}}));
  a = co_await w.send("T", "gone", props({{"TIMER_DELAY_SEC", "200"}, {"UNIQ_KEY", "U1"}}));
  std::string handle = ext(a, "recallHandle");
  a = co_await w.send("T", "early", props({{"TIMER_DELAY_SEC", "200"}, {"UNIQ_KEY", "U2"}}));
  auto r = co_await recall_by(w, "T", ext(a, "recallHandle"));
  EXPECT_EQ(code_of(r), 0);
  int64_t needed = co_await w.broker.timers.needed_from();
  EXPECT_LT(needed, 10'000);
  co_await grow(w);
  co_await sleep_for(25 * ns_per_s);
  EXPECT_EQ(w.broker.timers.stats().rolled, 4u) << "three messages and a recall";
  EXPECT_EQ(w.broker.timers.stats().first_pending, 4);
  needed = co_await w.broker.timers.needed_from();
  EXPECT_GT(needed, 6 << 20);
  r = co_await recall_by(w, "T", handle);
  EXPECT_EQ(code_of(r), 0) << remark(r);
  co_await sleep_for(25 * ns_per_s);
  EXPECT_EQ(w.broker.timers.stats().rolled, 4u) << "not again and again";
}
Task<void> rolled_came(World& w) {
  co_await sleep_for(200 * ns_per_s);  // longer than a silent connection lives
  auto again = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto got = co_await again->call(w.pull_frame("T", 0));
  EXPECT_EQ(bodies(got), "keep");
  auto all = records(got);
  if (all.size() == 1) EXPECT_EQ(all[0].property("TIMER_ROLL_TIMES"), "1");
  co_await again->close();
}
TEST(BrokerTimer, OutlivesTheLog) {
  simulate({rolled, rolled_came});
}

// The clock is set before a delayed message is put again: its delay stays what it was.
Task<void> rolled_after_a_step(World& w) {
  auto& clock = static_cast<sim::SimLoop&>(Loop::current()).sim_clock();
  const int64_t began = w.broker.now_ns();
  auto a = co_await w.send("T", "delay", props({{"TIMER_DELAY_SEC", "200"}, {"UNIQ_KEY", "U0"}}));
  a = co_await w.send("T", "gone", props({{"TIMER_DELAY_SEC", "200"}, {"UNIQ_KEY", "U1"}}));
  auto r = co_await recall_by(w, "T", ext(a, "recallHandle"));
  EXPECT_EQ(code_of(r), 0) << remark(r);
  clock.step_wall(3'600'000);
  co_await sleep_for(2 * ns_per_s);
  a = co_await w.send("T", "later", props({{"TIMER_DELAY_SEC", "201"}, {"UNIQ_KEY", "U2"}}));
  clock.step_wall(-7'200'000);
  co_await grow(w);
  co_await sleep_for(25 * ns_per_s);
  EXPECT_EQ(w.broker.timers.stats().rolled, 4u) << "three messages and a recall";
  a = co_await w.send("T", "behind them", props({{"TIMER_DELAY_SEC", "100"}}));
  co_await sleep_for(110 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 1) << "it has the clock as it is now";
  co_await w.peer->close();  // silent for too long
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto got = co_await wait_for(w, "T", 2, 100);
  EXPECT_EQ(bodies(got), "behind them,delay");
  EXPECT_GE(w.broker.now_ns() - began, 200 * ns_per_s);
  EXPECT_LT(w.broker.now_ns() - began, 201 * ns_per_s);
  got = co_await wait_for(w, "T", 3, 10);
  EXPECT_EQ(bodies(got), "behind them,delay,later");
}
TEST(BrokerTimer, PutAgainAfterTheClockWasSet) {
  simulate({rolled_after_a_step});
}

// Retention of one hour: what waits for ten comes all the same, by the timer and by level; the files go.
Task<void> longer_than_the_log(World& w) {
  auto a = co_await w.send("T", "timer", props({{"TIMER_DELAY_SEC", "36000"}}));
  EXPECT_EQ(code_of(a), 0);
  a = co_await w.send("T", "level", props({{"DELAY", "18"}}));
  EXPECT_EQ(code_of(a), 0);
  for (int i = 0; i < 40; i++) a = co_await w.send("Big", std::string(90'000, 'b'));
  std::string every_hour = "0";
  for (int h = 1; h < 24; h++) every_hour += ";" + std::to_string(h);
  a = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {},
                      "fileReservedTime=1\ndeleteWhen=" + every_hour + "\n");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(7190 * ns_per_s);
  EXPECT_EQ(w.store->min_physical_offset(), 0) << "the message of the level is in the first file";
  co_await sleep_for(3600 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 1) << "the level's has come";
  EXPECT_GE(w.store->min_physical_offset(), 3 << 20) << "and what held the files is gone";
  EXPECT_GE(w.broker.timers.stats().rolled, 1u);
  co_await sleep_for(7 * 3600 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
  co_await sleep_for(3600 * ns_per_s);
  co_await w.peer->close();  // silent for too long
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto got = co_await w.pull("T", 0);
  EXPECT_EQ(bodies(got), "level,timer");
}
TEST(BrokerTimer, OutlivesRetention) {
  simulate({longer_than_the_log});
}

// ---- delay levels

Task<void> three_by_level(World& w) {
  for (std::string_view body : {"one", "two", "three"}) {
    auto a = co_await w.send("L", body, props({{"DELAY", "3"}}));
    EXPECT_EQ(code_of(a), 0);
  }
}
Task<void> write_file(Disk& d, std::string path, std::string text) {
  auto saved = co_await store::replace_file(d, std::move(path), std::move(text));
  EXPECT_TRUE(saved);
}
Task<void> two_come(World& w) {
  co_await sleep_for(12 * ns_per_s);
  auto got = co_await w.pull("L", 0);
  EXPECT_EQ(bodies(got), "two,three");
  EXPECT_EQ(w.broker.schedule.offset_of(3), 3);
}
Task<void> file_is_exact(World& w) {
  auto file = co_await store::load_file(w.disk, "/store/config/delayOffset.json",
                                        [](std::string_view) { return true; });
  EXPECT_TRUE(file);
  if (!file) co_return;
  auto offsets = proto::DelayOffsetWrapper::parse(file->content);
  EXPECT_TRUE(offsets && offsets->offset_table[3] == 3) << "for a RocketMQ broker after a stop in order";
  EXPECT_EQ(w.store->max_offset("L", 0), 2);
}
// A RocketMQ broker had the directory in between and delivered the first; and the third level is configured
// no more, what waits in it comes all the same.
TEST(BrokerDelayLevel, GoesOnWhereRocketMQStopped) {
  BrokerConfig c = test_config(), fewer = test_config();
  c.messageDelayLevel = "1h 2h 9s";
  fewer.messageDelayLevel = "1s";
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  std::vector<Scenario> first = {three_by_level}, then = {two_come, file_is_exact};
  loop.run(run_worlds(network, disk, c, first));
  std::string text = "{\n\t\"dataVersion\":{\"counter\":1},\n\t\"offsetTable\":{1:0,2:0,3:1\n\t}\n}";
  loop.run(write_file(disk, "/store/config/delayOffset.json", text));
  loop.run(run_worlds(network, disk, fewer, then));
}

// ---- a store of RocketMQ's

store::MessageIn java_message(std::string_view properties) {
  store::MessageIn m;
  m.topic = "rmq_sys_wheel_timer";
  m.body = as_bytes("java");
  m.properties = properties;
  return m;
}

// Its units hold hashes of tags. What is due before lastReadTimeMs was delivered, as far as it was read.
int64_t java_second_ms = 0;
Task<void> java_ran(World& w) {
  const int64_t now = w.broker.wall_ms(), second = now / 1000 * 1000;
  auto put = [&](std::string key, int64_t out_ms, std::string_view more_name, std::string more) {
    std::string out = std::to_string(out_ms);
    std::string p = props({{"UNIQ_KEY", key}, {"REAL_TOPIC", "J"}, {"REAL_QID", "0"}, {"TIMER_OUT_MS", out}});
    if (!more.empty()) proto::append_property(p, more_name, more);
    return p;
  };
  auto made = co_await w.send("J", "x", {}, "1");
  EXPECT_EQ(code_of(made), 0);
  std::vector<std::string> all;
  all.push_back(put("done", second - 5000, "", ""));
  all.push_back(put("late", second - 1000, "", ""));    // not delivered when it stopped
  all.push_back(put("rolled", second + 3000, "", ""));  // put again as the next but one
  all.push_back(put("recalled", second + 3000, "", ""));
  all.push_back(put("rolled", second + 3000, "TIMER_ROLL_TIMES", "1"));
  all.push_back(put("recalled", second + 3000, "TIMER_DEL_UNIQKEY", "J+recalled"));
  all.push_back(put("unread", second - 5000, "", ""));  // had not come to the wheel
  for (const std::string& p : all) {
    auto stored = co_await w.store->put(java_message(p));
    EXPECT_EQ(stored.status, store::PutMessageStatus::PUT_OK);
  }
  java_second_ms = second;
}
// The first run must not deliver them: its wheel is off.
Task<void> java_over(World& w) {
  co_await sleep_for(8 * ns_per_s);
  auto got = co_await w.pull("J", 0);
  std::vector<std::string> keys;
  for (const auto& r : records(got)) keys.emplace_back(*r.property("UNIQ_KEY"));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"late", "rolled", "unread"}));
}
TEST(BrokerTimer, GoesOnWhereRocketMQStopped) {
  BrokerConfig without = test_config();
  without.timerWheelEnable = false;
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  std::vector<Scenario> first = {java_ran}, then = {java_over, java_over};
  loop.run(run_worlds(network, disk, without, first));
  std::string check;
  append_be<int64_t>(check, java_second_ms - 2000);
  append_be<int64_t>(check, 0);
  append_be<int64_t>(check, 6);
  loop.run(write_file(disk, "/store/config/timercheck", check + std::string(32, '\0')));
  loop.run(run_worlds(network, disk, test_config(), then));
}

// What a stop leaves for it.
struct LogUnit {
  int64_t previous = 0, slot_ms = 0, physical = 0;
  int32_t magic = 0, bytes = 0;
};
Task<std::string> read_file(Disk& disk, std::string path, size_t bytes) {
  auto f = co_await disk.open(path, {});
  if (!f) co_return std::string{};
  std::string out(bytes, '\0');
  MutableBytes into(reinterpret_cast<std::byte*>(out.data()), out.size());
  auto n = co_await (*f)->read(0, into);
  co_await (*f)->close();
  out.resize(n.value_or(0));
  co_return out;
}
std::vector<LogUnit> units_of(const std::string& text) {
  std::vector<LogUnit> out;
  ByteReader r(as_bytes(text));
  while (r.left() >= 52 && r.get<int32_t>() == 52) {
    LogUnit u;
    u.previous = r.get<int64_t>();
    u.magic = r.get<int32_t>();
    u.slot_ms = r.get<int64_t>();
    u.slot_ms += r.get<int32_t>();
    u.physical = r.get<int64_t>();
    u.bytes = r.get<int32_t>();
    r.skip(12);
    out.push_back(u);
  }
  return out;
}

int64_t handed_over_ms = 0;
Task<void> some_pending(World& w) {
  constexpr int64_t day_s = 86'400;
  auto a = co_await w.send("T", "done", props({{"TIMER_DELAY_MS", "500"}}));
  a = co_await w.send("T", "soon", props({{"UNIQ_KEY", "soon"}, {"TIMER_DELAY_SEC", "100"}}));
  a = co_await w.send("T", "also", props({{"TIMER_DELAY_SEC", "100"}}));
  const std::string two = std::to_string(2 * day_s + 100), ten = std::to_string(10 * day_s);
  a = co_await w.send("T", "two days", props({{"TIMER_DELAY_SEC", two}}));
  a = co_await w.send("T", "ten days", props({{"TIMER_DELAY_SEC", ten}}));
  a = co_await w.send("T", "recalled", props({{"UNIQ_KEY", "gone"}, {"TIMER_DELAY_SEC", "50"}}));
  const std::string handle = ext(a, "recallHandle");
  a = co_await w.call(RequestCode::RECALL_MESSAGE,
                      {{"producerGroup", "p"}, {"topic", "T"}, {"recallHandle", handle}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "done, too", props({{"TIMER_DELAY_MS", "500"}}));
  co_await sleep_for(2 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 2);
  handed_over_ms = w.broker.wall_ms();
  // Left by RocketMQ, of another time.
  auto old = co_await store::replace_file(w.disk, "/store/timerlog/00000000000104857600", "old");
  EXPECT_TRUE(old);
  old = co_await store::replace_file(w.disk, "/store/timerwheel", "old");
  EXPECT_TRUE(old);
}
Task<void> handed_over(World& w) {
  const std::string check = co_await read_file(w.disk, "/store/config/timercheck", 4096);
  EXPECT_EQ(check.size(), 4096u);
  ByteReader r(as_bytes(check));
  const int64_t from_ms = r.get<int64_t>(), log_end = r.get<int64_t>();
  EXPECT_LE(from_ms, handed_over_ms + 1000);
  EXPECT_GE(from_ms, handed_over_ms - 1000);
  EXPECT_EQ(from_ms % 1000, 0);
  EXPECT_EQ(r.get<int64_t>(), 8) << "lastTimerQueueOffset";
  EXPECT_EQ(r.get<int64_t>(), 8) << "masterTimerQueueOffset";
  auto list = co_await w.disk.list("/store/timerlog");
  EXPECT_TRUE(list && list->size() == 1 && (*list)[0].bytes == 104'857'600);
  auto wheel = co_await w.disk.open("/store/timerwheel", {});
  EXPECT_FALSE(wheel) << "RocketMQ makes it from the timerlog";
  const std::string text = co_await read_file(w.disk, "/store/timerlog/00000000000000000000", 1000);
  auto units = units_of(text);
  EXPECT_EQ(units.size(), 7u) << "six that are pending, and the last one of the queue";
  EXPECT_EQ(log_end, 7 * 52);
  if (units.size() != 7) co_return;
  const std::vector<int32_t> magics = {1, 1, 3, 3, 1, 5, 1};
  for (size_t i = 0; i < units.size(); i++) {
    EXPECT_EQ(units[i].magic, magics[i]) << i;
    auto unit = co_await w.store->queue_unit(store::timer_topic, 0, static_cast<int64_t>(i + 1));
    EXPECT_EQ(units[i].physical, unit->physical_offset) << i;
    EXPECT_EQ(units[i].bytes, unit->bytes) << i;
    EXPECT_EQ(units[i].slot_ms % 1000, 0) << i;
  }
  EXPECT_EQ(units[0].slot_ms, units[1].slot_ms);
  EXPECT_EQ(units[0].previous, -1);
  EXPECT_EQ(units[1].previous, 0) << "a chain";
  EXPECT_NEAR(static_cast<double>(units[0].slot_ms - from_ms), 98'000, 1001);
  EXPECT_EQ(units[2].slot_ms - from_ms, 86'400'000) << "half of the window, to be looked at again";
  EXPECT_EQ(units[3].slot_ms - from_ms, 172'800'000) << "the window";
  EXPECT_EQ(units[4].slot_ms, units[5].slot_ms) << "a recall and what it means";
  EXPECT_LT(units[6].slot_ms, from_ms) << "nobody looks there any more";
  // And for ourselves nothing has changed.
  co_await sleep_for(100 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 4);
}
Task<void> handed_over_again(World& w) {
  const std::string text = co_await read_file(w.disk, "/store/timerlog/00000000000000000000", 1000);
  EXPECT_EQ(units_of(text).size(), 3u) << "two far ones, and the last one of the queue";
  EXPECT_EQ(w.store->max_offset("T", 0), 4);
}
TEST(BrokerTimer, AStopLeavesWhatRocketMQGoesOnWith) {
  simulate({some_pending, handed_over, handed_over_again});
}

// ---- what is told --------------------------------------------------------------------------------------

Task<std::map<std::string, int64_t>> waiting(World& w) {
  auto a = co_await w.call(RequestCode::GET_TIMER_METRICS, {});
  EXPECT_EQ(code_of(a), 0);
  auto metrics = proto::TimerMetrics::parse(body_text(a));
  EXPECT_TRUE(metrics);
  std::map<std::string, int64_t> out;
  if (metrics)
    for (const auto& [topic, c] : metrics->timing_count) out[topic] = c.count;
  co_return out;
}
using Waiting = std::map<std::string, int64_t>;
Task<void> metrics(World& w) {
  auto found = co_await waiting(w);
  EXPECT_EQ(found, Waiting{});
  for (int i = 0; i < 10; i++) {
    auto a = co_await w.send(i % 2 == 0 ? "A" : "B", "x", props({{"TIMER_DELAY_SEC", i < 4 ? "5" : "500"}}));
    EXPECT_EQ(code_of(a), 0);
  }
  auto a = co_await w.send("A", "gone", props({{"UNIQ_KEY", "gone"}, {"TIMER_DELAY_SEC", "4"}}));
  const std::string handle = ext(a, "recallHandle");
  found = co_await waiting(w);
  EXPECT_EQ(found, (Waiting{{"A", 6}, {"B", 5}}));
  a = co_await w.call(RequestCode::RECALL_MESSAGE,
                      {{"producerGroup", "p"}, {"topic", "A"}, {"recallHandle", handle}});
  EXPECT_EQ(code_of(a), 0);
  co_await sleep_for(10 * ns_per_s);
  found = co_await waiting(w);
  EXPECT_EQ(found, (Waiting{{"A", 3}, {"B", 3}})) << "two of each have come, one was recalled";
  a = co_await w.call(RequestCode::GET_TIMER_CHECK_POINT, {});
  EXPECT_EQ(body_text(a).size(), 56u);
  const std::string body = body_text(a);
  ByteReader r(as_bytes(body));
  EXPECT_NEAR(static_cast<double>(r.get<int64_t>()), static_cast<double>(w.broker.wall_ms()), 1500);
  r.skip(8);
  EXPECT_EQ(r.get<int64_t>(), 12) << "the messages and the recall";
  EXPECT_EQ(r.get<int64_t>(), 12);
  a = co_await w.call(RequestCode::GET_BROKER_RUNTIME_INFO, {});
  auto info = proto::KVTable::parse(body_text(a));
  EXPECT_EQ(info->table["timerCongestNum"], "6");
  EXPECT_EQ(info->table["timerReadBehind"], "0");
  EXPECT_EQ(info->table["timerOffsetBehind"], "0");
}
Task<void> metrics_after_a_restart(World& w) {
  co_await sleep_for(ns_per_s);
  auto found = co_await waiting(w);
  EXPECT_EQ(found, (Waiting{{"A", 3}, {"B", 3}}));
  co_await sleep_for(500 * ns_per_s);  // the idle connection is closed meanwhile
  co_await w.peer->close();
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  found = co_await waiting(w);
  EXPECT_EQ(found, Waiting{});
}
TEST(BrokerTimer, TellsHowManyWaitByTopic) {
  simulate({metrics, metrics_after_a_restart});
}

}  // namespace
}  // namespace rmq::broker

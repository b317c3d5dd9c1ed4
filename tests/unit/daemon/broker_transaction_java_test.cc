// Half messages as RocketMQ leaves them: copied for a check without a word of where the first copy lies, and
// op records that name old copies only. Each comes once, whichever of its places an end names.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "crash_lives.h"
#include "transaction_client.h"

namespace rmq::broker {
namespace {

BrokerConfig java_config() {
  BrokerConfig c = crash_config();
  c.transactionTimeOut = 1000;
  c.transactionCheckInterval = 2000;
  c.transactionCheckMax = 1000;
  return c;
}

// ---- what RocketMQ writes ------------------------------------------------------------------------------

// In an order of its own, as of its maps.
std::string shuffled(const std::string& properties) {
  std::vector<std::pair<std::string, std::string>> all;
  proto::PropertyReader reader(properties);
  for (proto::Property p; reader.next(&p);) all.emplace_back(p.name, p.value);
  std::ranges::sort(all, std::greater<>{});
  std::string out;
  for (const auto& [name, value] : all) proto::append_property(out, name, value);
  return out;
}

constexpr int64_t sent_ms = 1'800'000'000'000;  // about when the simulated clock begins

Task<HalfPlace> put_raw(store::MessageStore& s, std::string_view topic, std::string_view body,
                        std::string properties, int64_t born_ms) {
  store::MessageIn m;
  m.topic = topic;
  m.properties = properties;
  m.body = as_bytes(body);
  m.born_timestamp_ms = born_ms;
  auto put = co_await s.put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
  co_return HalfPlace{std::to_string(put.queue_offset), std::to_string(put.physical_offset)};
}

Task<HalfPlace> java_half(store::MessageStore& s, std::string_view key, std::string_view more_name = {},
                          std::string_view more_value = {}, int64_t after_ms = 0) {
  std::string properties = half_properties(key, "pg", more_name, more_value);
  proto::append_property(properties, "REAL_TOPIC", "T");
  proto::append_property(properties, "REAL_QID", "0");
  const std::string body = std::string(key) + ".";
  co_return co_await put_raw(s, names::RMQ_SYS_TRANS_HALF_TOPIC, body, shuffled(properties),
                             sent_ms + after_ms);
}

// What a check of RocketMQ makes of it.
Task<HalfPlace> java_copy(store::MessageStore& s, HalfPlace of) {
  auto extent = co_await s.record_at(std::stoll(of.physical));
  auto half = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
  if (!half) {
    ADD_FAILURE() << "no half message";
    co_return of;
  }
  const std::string times(half->property("TRANSACTION_CHECK_TIMES").value_or("0"));
  std::string properties(half->properties);
  proto::set_property(properties, "TRANSACTION_CHECK_TIMES", std::to_string(std::stoi(times) + 1));
  const std::string body(as_text(half->body));
  co_return co_await put_raw(s, names::RMQ_SYS_TRANS_HALF_TOPIC, body, shuffled(properties),
                             half->born_timestamp_ms);
}

Task<void> op(store::MessageStore& s, std::string body, bool by_java) {
  std::string properties;
  proto::append_property(properties, "TAGS", "d");
  if (by_java) proto::append_property(properties, "WAIT", "true");
  co_await put_raw(s, names::RMQ_SYS_TRANS_OP_HALF_TOPIC, body, std::move(properties), sent_ms);
}
// As if the offset of CID_RMQ_SYS_TRANS were behind it.
Task<void> passed(store::MessageStore& s, HalfPlace p) {
  co_await op(s, p.queue_offset + ",", false);
}

using Writer = Task<void> (*)(store::MessageStore&);
Task<void> write_raw(Disk& disk, BrokerConfig config, Writer write) {
  auto opened = co_await store::MessageStore::open(disk, store_options_of(config), nullptr);
  check(opened.has_value());
  co_await write(**opened);
  co_await (*opened)->shutdown();
}

Task<void> run_between(sim::SimNetwork& network, Disk& disk, BrokerConfig config,
                       std::vector<Scenario> before, Writer write, std::vector<Scenario> after) {
  co_await run_worlds(network, disk, config, std::move(before));
  co_await write_raw(disk, config, write);
  co_await run_worlds(network, disk, config, std::move(after));
}
void simulate_java(std::vector<Scenario> before, Writer write, std::vector<Scenario> after,
                   BrokerConfig config = java_config()) {
  for (uint64_t seed = 1; seed <= 2; seed++) {
    sim::SimLoop loop(seed);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {});
    loop.run(run_between(network, disk, config, before, write, after));
  }
}

// ---- what is done with it ------------------------------------------------------------------------------

Task<std::map<std::string, int>> visible(World& w) {
  std::map<std::string, int> out;
  for (int64_t at = 0; at < w.store->max_offset("T", 0); at++) {
    auto unit = co_await w.store->queue_unit("T", 0, at);
    auto extent = co_await w.store->record_at(unit ? unit->physical_offset : -1);
    auto r = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
    if (r) out[std::string(as_text(r->body).substr(0, as_text(r->body).find('.')))]++;
  }
  co_return out;
}

Task<int> questions_until(World& w, int seconds) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  int n = 0;
  for (const int64_t end_ns = Loop::current().now_ns() + seconds * ns_per_s;
       Loop::current().now_ns() < end_ns;) {
    a = co_await w.peer->next(1);
    if (question(a)) n++;
  }
  co_return n;
}

std::map<std::string, HalfPlace> first;  // of each message, by key

Task<void> end_once(World& w, std::string key, const char* decision) {
  auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);  // questions come at the other
  std::string frame = end_frame(w, first[key], decision, "pg", "true");
  auto a = co_await peer->call(std::move(frame));
  EXPECT_EQ(code_of(a), 0) << key << remark(a);
  EXPECT_EQ(remark(a), "") << key;
  frame = end_frame(w, first[key], commit, "pg", "true");
  a = co_await peer->call(std::move(frame));
  EXPECT_EQ(code_of(a), 0);
  co_await peer->close();
  EXPECT_EQ(remark(a), "the transaction has ended before") << key;
}

// ---- a late end ----------------------------------------------------------------------------------------

Task<void> checked_by_java(store::MessageStore& s) {
  for (const char* key : {"commit", "rollback", "later", "restarted"}) {
    first[key] = co_await java_half(s, key);
    co_await passed(s, first[key]);
    const HalfPlace second = co_await java_copy(s, first[key]);
    if (key[0] == 'c') {
      co_await passed(s, second);
      co_await java_copy(s, second);
    }
  }
}
Task<void> late_ends(World& w) {
  co_await sleep_for(ns_per_s / 10);
  EXPECT_EQ(w.broker.transactions.open(), 4u);
  co_await end_once(w, "commit", commit);
  co_await end_once(w, "rollback", rollback);
  const int questions = co_await questions_until(w, 3);
  EXPECT_GE(questions, 2) << "now the copies are of this broker";
  co_await end_once(w, "later", commit);
}
Task<void> ended_after_the_restart(World& w) {
  co_await end_once(w, "restarted", commit);
  const int questions = co_await questions_until(w, 5);
  EXPECT_EQ(questions, 0);
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  auto got = co_await visible(w);
  const std::map<std::string, int> wanted{{"commit", 1}, {"later", 1}, {"restarted", 1}};
  EXPECT_EQ(got, wanted);
}
TEST(BrokerTransactionJava, AnEndByTheFirstPlaceEndsTheCopy) {
  simulate_java({}, checked_by_java, {late_ends, ended_after_the_restart});
}

// The same unique key, sent twice: these are two.
Task<void> same_key_twice(store::MessageStore& s) {
  first["old"] = co_await java_half(s, "K");
  co_await op(s, first["old"].queue_offset + ",", true);
  first["new"] = co_await java_half(s, "K", {}, {}, 1);
  co_await passed(s, first["new"]);
  co_await java_copy(s, first["new"]);
}
Task<void> other_one_is_open(World& w) {
  auto a = co_await end(w, first["old"], commit, "pg", "true");
  EXPECT_EQ(remark(a), "the transaction has ended before");
  EXPECT_EQ(w.broker.transactions.open(), 1u);
  EXPECT_EQ(w.store->max_offset("T", 0), 0);
  co_await end_once(w, "new", commit);
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
}
TEST(BrokerTransactionJava, AnotherMessageWithTheSameKeyIsNotEnded) {
  simulate_java({}, same_key_twice, {other_one_is_open});
}

// ---- after a kill --------------------------------------------------------------------------------------

// Its offset is from before the check.
Task<void> killed_after_checks(store::MessageStore& s) {
  first["asked"] = co_await java_half(s, "asked");
  const HalfPlace second = co_await java_copy(s, first["asked"]);
  co_await java_copy(s, second);
  // The end names the copy, and the offset is behind neither.
  first["ended"] = co_await java_half(s, "ended");
  const HalfPlace copy = co_await java_copy(s, first["ended"]);
  co_await op(s, copy.queue_offset + ",", true);
}
Task<void> one_of_them_is_open(World& w) {
  co_await sleep_for(ns_per_s / 10);
  EXPECT_EQ(w.broker.transactions.open(), 1u);
  const int questions = co_await questions_until(w, 1);
  EXPECT_LE(questions, 1) << "asked about once";
}
Task<void> and_ends(World& w) {
  co_await sleep_for(ns_per_s / 10);
  EXPECT_EQ(w.broker.transactions.open(), 1u) << "a later start knows it, too";
  co_await end_once(w, "asked", commit);
  auto a = co_await end(w, first["ended"], commit, "pg", "true");
  EXPECT_EQ(remark(a), "the transaction has ended before");
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
}
TEST(BrokerTransactionJava, OfSeveralCopiesTheNewestIsOpen) {
  simulate_java({}, killed_after_checks, {one_of_them_is_open, and_ends});
}

// RocketMQ took an end by the first place after it had made a copy: it asks about that all the same.
Task<void> ended_late_there(store::MessageStore& s) {
  first["ended"] = co_await java_half(s, "ended");
  co_await passed(s, first["ended"]);
  co_await java_copy(s, first["ended"]);
  co_await op(s, first["ended"].queue_offset + ",", true);
  first["asked"] = co_await java_half(s, "asked");
  co_await passed(s, first["asked"]);
  co_await java_copy(s, first["asked"]);
}
Task<void> is_over(World& w) {
  co_await sleep_for(ns_per_s / 10);
  EXPECT_EQ(w.broker.transactions.open(), 1u);
  const int questions = co_await questions_until(w, 3);
  EXPECT_GE(questions, 1);
  EXPECT_EQ(w.broker.transactions.open(), 1u);
}
TEST(BrokerTransactionJava, WhatHasEndedThereIsNotAskedAbout) {
  simulate_java({}, ended_late_there, {is_over, is_over});
}

// The same when RocketMQ's offset in the op topic is behind that op record: it had passed the place that it
// names.
Task<void> write_offsets(Disk& disk) {
  // Behind the first place of "asked", and behind all op records.
  const std::string table = R"({"offsetTable":{"RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS":{0:1},)"
                            R"("RMQ_SYS_TRANS_OP_HALF_TOPIC@CID_RMQ_SYS_TRANS":{0:3}}})";
  auto made = co_await disk.make_dirs("/store/config");
  EXPECT_TRUE(made);
  auto written = co_await store::replace_file(disk, "/store/config/consumerOffset.json", table);
  EXPECT_TRUE(written);
}
TEST(BrokerTransactionJava, WhatHasEndedThereIsNotAskedAboutThoughItsOpRecordIsOld) {
  for (uint64_t seed = 1; seed <= 2; seed++) {
    sim::SimLoop loop(seed);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {});
    loop.run(write_raw(disk, java_config(), ended_late_there));
    loop.run(write_offsets(disk));
    loop.run(run_worlds(network, disk, java_config(), {is_over, is_over}));
  }
}

// ---- copies of our copies ------------------------------------------------------------------------------

Task<void> copied_by_us(World& w) {
  for (const char* key : {"K1", "K2"}) {
    const std::string body = std::string(key) + ".";
    auto sent = co_await w.send("T", body, half_properties(key));
    first[key] = place_of(sent);
  }
  const int questions = co_await questions_until(w, 2);
  EXPECT_EQ(questions, 2);
}
Task<void> copied_by_java(store::MessageStore& s) {
  const int64_t end = s.max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0);
  for (int64_t at = end - 2; at < end; at++) {
    auto unit = co_await s.queue_unit(names::RMQ_SYS_TRANS_HALF_TOPIC, 0, at);
    if (!unit) co_return ADD_FAILURE() << "no unit";
    const HalfPlace ours{std::to_string(at), std::to_string(unit->physical_offset)};
    co_await passed(s, ours);
    co_await java_copy(s, ours);
  }
}
Task<void> still_open(World& w) {
  co_await sleep_for(ns_per_s / 10);
  EXPECT_EQ(w.broker.transactions.open(), 2u) << "its properties are in another order, and good";
  co_await end_once(w, "K1", commit);
  const int questions = co_await questions_until(w, 4);
  EXPECT_GE(questions, 1);
  co_await end_once(w, "K2", commit);
  EXPECT_EQ(w.store->max_offset("T", 0), 2);
}
TEST(BrokerTransactionJava, ACopyOfOurCopyIsOpen) {
  BrokerConfig c = java_config();
  c.transactionCheckInterval = 3000;
  simulate_java({copied_by_us}, copied_by_java, {still_open}, c);
}

// ---- crashes -------------------------------------------------------------------------------------------

struct Known {
  std::map<std::string, const char*> decided;  // and sent
  std::set<std::string> answered;
};

Task<void> take_over(store::MessageStore& s) {
  first.clear();
  for (int i = 0; i < 5; i++) {
    const std::string key = "K" + std::to_string(i);
    const bool delayed = i == 4;
    first[key] = co_await java_half(s, key, delayed ? "TIMER_DELAY_SEC" : "", delayed ? "1" : "");
    if (i % 2 == 0) co_await passed(s, first[key]);
    co_await java_copy(s, first[key]);
  }
}

// Late ends by the first places, some of them when our own copies are there.
Task<void> end_until_crash(World& w, LifeNow& now, Known& known) {
  for (int i = 0; i < 5 && now.counts(); i++) {
    const std::string key = "K" + std::to_string(i);
    known.decided[key] = i == 1 ? rollback : commit;
    if (i == 2) co_await questions_until(w, 2);
    if (!now.counts()) break;
    auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    std::string frame = end_frame(w, first[key], known.decided[key], "pg", "true");
    auto a = co_await peer->call(std::move(frame));
    if (now.counts() && code_of(a) == 0) known.answered.insert(key);
    co_await peer->close();
  }
}

// What is open still is ended as was decided; each is visible as often as it should be.
Task<void> end_all(World& w, LifeNow& now, Known& known) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  for (const int64_t end_ns = Loop::current().now_ns() + 8 * ns_per_s; Loop::current().now_ns() < end_ns;) {
    a = co_await w.peer->next(1);
    auto q = question(a);
    if (!q) continue;
    if (known.answered.contains(q->unique_key)) now.machine.error(q->unique_key + " had ended");
    const char* decision = q->unique_key == "K1" ? rollback : commit;
    std::string frame = end_frame(w, q->place, decision, "pg", "true", proto::flag_oneway);
    co_await w.peer->send(std::move(frame));
  }
  if (w.broker.transactions.open() != 0) now.machine.error("something is open");
  auto got = co_await visible(w);
  for (int i = 0; i < 5; i++) {
    const std::string key = "K" + std::to_string(i);
    if (got[key] != (i == 1 ? 0 : 1)) now.machine.error(key + " is visible " + std::to_string(got[key]));
  }
}

void three_lives(uint64_t point, Machine& machine) {
  Known known;
  LifePlan plan;
  plan.config = java_config();
  {
    sim::SimLoop loop(1);
    sim::SimDisk disk(loop, {}, machine.image);
    loop.run(write_raw(disk, plan.config, take_over));
    disk.crash_now();
    machine.image = disk.crash_image(sim::CrashFate::all_kept(1));
  }
  plan.seed = 2;
  plan.crash_at = point;
  live<Known&>(machine, plan, fate_of(point), end_until_crash, known);
  const uint64_t points = machine.points;
  plan.seed = 3;
  plan.crash_at = 0;
  live<Known&>(machine, plan, sim::CrashFate::all_kept(3), end_all, known);
  machine.points = points;
}

TEST(BrokerTransactionJava, ACrashAtEveryPointOfLateEnds) {
  Machine whole;
  three_lives(0, whole);
  ASSERT_TRUE(whole.errors.empty()) << text_of(whole.errors);
  each_point(whole.points, "take over", [](uint64_t point, uint64_t) {
    Machine machine;
    three_lives(point, machine);
    return machine.errors;
  });
}

}  // namespace
}  // namespace rmq::broker

// Transactions: half messages, their ends, the questions to producers; over restarts, and over a crash at
// every point.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "base/log.h"
#include "transaction_client.h"

namespace rmq::broker {
namespace {

BrokerConfig quick_config() {
  BrokerConfig c = test_config();
  c.transactionTimeOut = 1000;
  c.transactionCheckInterval = 2000;
  c.transactionCheckMax = 3;
  return c;
}

// ---- ends --------------------------------------------------------------------------------------------

Task<void> ends(World& w) {
  auto sent = co_await w.send("T", "first", half_properties("K1"), "2");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  EXPECT_EQ(ext(sent, "transactionId"), "K1");
  EXPECT_EQ(ext(sent, "queueId"), "2") << "the queue that was asked for";
  EXPECT_EQ(w.store->max_offset("T", 2), 0) << "a half message is not visible";
  const HalfPlace p = place_of(sent);

  auto a = co_await end(w, p, commit, "other");
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "The producer group wrong");
  // Named: GCC 12 destroys such arguments twice in a statement with co_await.
  const HalfPlace other_queue_offset{"7", p.physical}, other_physical{p.queue_offset, "123456789"};
  a = co_await end(w, other_queue_offset, commit);
  EXPECT_EQ(remark(a), "The transaction state table offset wrong");
  a = co_await end(w, other_physical, commit);
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "Find prepared transaction message failed");
  auto plain = co_await w.send("T", "plain", {}, "2");
  a = co_await end(w, place_of(plain), commit);
  EXPECT_EQ(code_of(a), 1) << "not a half message";
  a = co_await end(w, p, "5");
  EXPECT_EQ(code_of(a), 29);
  EXPECT_EQ(w.store->max_offset("T", 2), 1) << "only the plain one";

  a = co_await end(w, p, commit);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.store->max_offset("T", 2), 2);
  for (const char* decision : {commit, rollback, commit}) {
    a = co_await end(w, p, decision);
    EXPECT_EQ(code_of(a), 0);
    EXPECT_EQ(remark(a), "the transaction has ended before");
  }
  EXPECT_EQ(w.store->max_offset("T", 2), 2) << "visible once";
  auto unit = co_await w.store->queue_unit("T", 2, 1);
  if (!unit) co_return ADD_FAILURE() << "no unit";
  auto extent = co_await w.store->record_at(unit->physical_offset);
  auto r = proto::parse_record(extent->bytes(), proto::CrcCheck::verify);
  EXPECT_EQ(as_text(r->body), "first");
  EXPECT_EQ(r->sys_flag & proto::sys_flag::transaction_mask, proto::sys_flag::transaction_commit);
  EXPECT_EQ(std::to_string(r->prepared_transaction_offset), p.physical);
  EXPECT_EQ(r->property("__transactionId__").value_or(""), "K1");
  EXPECT_EQ(r->property("TRAN_MSG").value_or(""), "true");
  EXPECT_FALSE(r->property("REAL_TOPIC") || r->property("REAL_QID"));

  sent = co_await w.send("T", "second", half_properties("K2"));
  a = co_await end(w, place_of(sent), rollback);
  EXPECT_EQ(code_of(a), 0);
  a = co_await end(w, place_of(sent), commit);
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.store->max_offset("T", 0), 0) << "rolled back is rolled back";
  co_await w.peer->send(end_frame(w, place_of(sent), "0"));
  auto nothing = co_await w.peer->next(1);
  EXPECT_EQ(nothing, nullptr) << "'unknown' is not answered";
  EXPECT_EQ(w.broker.transactions.open(), 0u);
}
Task<void> ends_are_kept(World& w) {
  co_await sleep_for(20 * ns_per_s);
  EXPECT_EQ(w.broker.transactions.open(), 0u) << "what has ended stays ended";
  auto sent = co_await w.send("T", "third", half_properties("K3"));
  EXPECT_EQ(ext(sent, "queueOffset"), "2");
}
TEST(BrokerTransaction, EndsOnce) {
  simulate({ends, ends_are_kept});
}

// Two ends of the same half message at the same time.
Task<void> racing_ends(World& w) {
  auto sent = co_await w.send("T", "x", half_properties("K1"));
  auto other = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  std::string mine = end_frame(w, place_of(sent), commit), theirs = end_frame(w, place_of(sent), rollback);
  co_await w.peer->send(mine + theirs + mine);
  co_await other->send(mine + mine);
  for (int i = 0; i < 5; i++) {
    auto a = co_await (i < 3 ? *w.peer : *other).next();
    EXPECT_EQ(code_of(a), 0);
  }
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
  co_await other->close();
}
TEST(BrokerTransaction, OneOfRacingEndsCounts) {
  simulate({racing_ends});
}

Task<void> refused(World& w) {
  auto a = co_await w.send("T", "x", half_properties("K1", "pg", "p", "x"));
  auto extent = co_await w.store->record_at(0);
  size_t fixed = proto::parse_record(extent->bytes())->properties.size() - 1;
  a = co_await w.send("T", "x", half_properties("K1", "pg", "p", std::string(32'767 - fixed - 100, 'x')));
  EXPECT_EQ(code_of(a), 13) << "no room for what a check adds";
  a = co_await w.send("T", "x", half_properties("K1", "pg", "p", std::string(32'767 - fixed - 200, 'x')));
  EXPECT_EQ(code_of(a), 0);
  w.broker.config.rejectTransactionMessage = true;
  a = co_await w.send("T", "x", half_properties("K1"));
  EXPECT_EQ(code_of(a), 16);
  EXPECT_EQ(w.store->max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0), 2);
}
TEST(BrokerTransaction, RefusedBeforeAnythingIsStored) {
  simulate({refused});
}

Task<void> delayed_commit(World& w) {
  auto level = co_await w.send("T", "level", half_properties("K1", "pg", "DELAY", "3"));
  auto timer = co_await w.send("T", "timer", half_properties("K2", "pg", "TIMER_DELAY_SEC", "20"), "1");
  auto wrong = co_await w.send("T", "wrong", half_properties("K3", "pg", "TIMER_DELAY_SEC", "soon"));
  EXPECT_EQ(code_of(wrong), 13) << "what a commit could not place";
  wrong = co_await w.send("T", "wrong", half_properties("K4", "pg", "DELAY", "soon"));
  EXPECT_EQ(code_of(wrong), 13) << "nor by level";
  w.config.timerWheelEnable = false;
  wrong = co_await w.send("T", "wrong", half_properties("K5", "pg", "TIMER_DELAY_SEC", "9"));
  EXPECT_EQ(code_of(wrong), 1) << remark(wrong);
  w.config.timerWheelEnable = true;
  EXPECT_EQ(w.store->max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0), 2);
  co_await sleep_for(5 * ns_per_s);
  for (const Answer* sent : {&level, &timer}) {
    auto a = co_await end(w, place_of(*sent), commit);
    EXPECT_EQ(code_of(a), 0) << remark(a);
  }
  co_await sleep_for(8 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 0) << "10 s from the commit";
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
  EXPECT_EQ(w.store->max_offset("T", 1), 0);
  co_await sleep_for(12 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 1), 1);
  auto pulled = co_await w.pull("T", 0);
  auto got = records(pulled);
  EXPECT_EQ(got.size(), 1u);
  if (!got.empty()) EXPECT_EQ(std::to_string(got[0].prepared_transaction_offset), place_of(level).physical);
}
TEST(BrokerTransaction, ADelayBeginsWithTheCommit) {
  simulate({delayed_commit});
}

// A delay that was taken with the half message: what the limits are at the commit does not matter.
Task<void> commit_with_other_limits(World& w) {
  auto far = co_await w.send("T", "far", half_properties("K1", "pg", "TIMER_DELAY_SEC", "20"));
  auto off = co_await w.send("T", "off", half_properties("K2", "pg", "TIMER_DELAY_SEC", "10"));
  w.config.timerMaxDelaySec = 5;
  auto a = co_await end(w, place_of(far), commit);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  w.config.timerWheelEnable = false;
  a = co_await end(w, place_of(off), commit);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(15 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 0) << "it waits";
  w.config.timerWheelEnable = true;
  co_await sleep_for(2 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
  co_await sleep_for(4 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 0), 2);
}
TEST(BrokerTransaction, ACommitHasTheDelayThatWasTaken) {
  simulate({commit_with_other_limits});
}

// ---- questions ---------------------------------------------------------------------------------------

Task<void> asked(World& w) {
  auto sent = co_await w.send("T", "ask me", half_properties("K1"), "1");
  auto lost = co_await w.send("T", "nobody is there", half_properties("K2", "away"));
  auto producer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto a = co_await producer->call(w.request(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg")));
  EXPECT_EQ(code_of(a), 0);
  int64_t begin = Loop::current().now_ns();
  a = co_await producer->next(20);
  auto q = question(a);
  EXPECT_TRUE(q) << "not asked";
  if (!q) co_return co_await producer->close();
  EXPECT_GE(Loop::current().now_ns() - begin, 5 * ns_per_s) << "transactionTimeOut is 6 s";
  EXPECT_LE(Loop::current().now_ns() - begin, 7 * ns_per_s);
  EXPECT_EQ(q->flag & proto::flag_oneway, proto::flag_oneway);
  EXPECT_EQ(q->topic, "T");
  EXPECT_EQ(q->queue_id, 1);
  EXPECT_EQ(q->body, "ask me");
  EXPECT_EQ(q->unique_key, "K1");
  EXPECT_EQ(q->check_times, "1");
  a = co_await producer->next(40);
  auto again = question(a);
  EXPECT_TRUE(again) << "not asked again";
  if (!again) co_return co_await producer->close();
  EXPECT_EQ(again->check_times, "2");
  EXPECT_GE(Loop::current().now_ns() - begin, 34 * ns_per_s) << "30 s after the first";
  // By the copy of the first question, though a newer one is there; and later by the others.
  a = co_await end(w, q->place, commit, "pg", "true");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(remark(a), "");
  EXPECT_EQ(w.store->max_offset("T", 1), 1);
  const std::array<HalfPlace, 3> places{place_of(sent), q->place, again->place};
  for (const HalfPlace& p : places) {
    a = co_await end(w, p, commit);
    EXPECT_EQ(remark(a), "the transaction has ended before");
  }
  EXPECT_EQ(w.store->max_offset("T", 1), 1);
  a = co_await producer->next(100);
  EXPECT_EQ(a, nullptr) << "no question after the end";
  EXPECT_EQ(w.broker.transactions.open(), 1u) << "the group that is away";
  EXPECT_EQ(w.broker.transactions.checks(), 2u);
  co_await producer->close();
}
Task<void> away_comes_back(World& w) {
  co_await sleep_for(20 * ns_per_s);
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("away"));
  a = co_await w.peer->next(6);  // not only when the next interval has passed
  auto q = question(a);
  if (!q) co_return ADD_FAILURE() << "not asked";
  EXPECT_EQ(q->unique_key, "K2");
  EXPECT_EQ(q->check_times, "1") << "only real questions count";
  a = co_await end(w, q->place, rollback, "away", "true");
  EXPECT_EQ(code_of(a), 0);
}
TEST(BrokerTransaction, AsksUntilItIsEnded) {
  simulate({asked, away_comes_back});
}

Task<void> immune(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  std::string properties = half_properties("K1", "pg", "CHECK_IMMUNITY_TIME_IN_SECONDS", "20");
  // The born time decides whether an end comes too late.
  auto sent = co_await w.send("T", "x", properties);
  a = co_await w.peer->next(19);
  EXPECT_EQ(a, nullptr);
  a = co_await w.peer->next(3);
  auto q = question(a);
  if (!q) co_return ADD_FAILURE() << "not asked";
  EXPECT_EQ(q->check_times, "1");
  a = co_await end(w, place_of(sent), commit);
  EXPECT_EQ(code_of(a), 604) << "too late, unless it answers a question";
  a = co_await end(w, q->place, commit, "pg", "true");
  EXPECT_EQ(code_of(a), 0);
}
TEST(BrokerTransaction, ImmunityTimeIsWaitedForFirst) {
  simulate({immune});
}

Task<void> resume_again(World& w, const std::string& id) {
  auto a = co_await w.call(RequestCode::RESUME_CHECK_HALF_MESSAGE, {{"topic", "T"}, {"msgId", id}});
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(remark(a), "it was given its checks again before");
  a = co_await w.peer->next(10);
  EXPECT_EQ(a, nullptr) << "no question about it";
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
}
Task<void> nobody_knows(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  auto sent = co_await w.send("T", "who knows", half_properties("K1"));
  int questions = 0;
  for (;;) {
    a = co_await w.peer->next(10);
    if (!question(a)) break;
    questions++;
  }
  EXPECT_EQ(questions, 3) << "transactionCheckMax";
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  EXPECT_EQ(w.broker.transactions.given_up(), 1u);
  a = co_await end(w, place_of(sent), commit);
  EXPECT_EQ(remark(a), "the transaction has ended before");
  auto set_aside = co_await w.pull(names::TRANS_CHECK_MAX_TIME_TOPIC, 0);
  EXPECT_EQ(bodies(set_aside), "who knows");
  // An operator gives it its questions again.
  std::string id = proto::make_offset_id(w.broker.store_id_host, records(set_aside)[0].physical_offset);
  a = co_await w.call(RequestCode::RESUME_CHECK_HALF_MESSAGE, {{"topic", "other"}, {"msgId", id}});
  EXPECT_EQ(code_of(a), 1);
  a = co_await w.call(RequestCode::RESUME_CHECK_HALF_MESSAGE, {{"topic", "T"}, {"msgId", "junk"}});
  EXPECT_EQ(code_of(a), 29);
  a = co_await w.call(RequestCode::RESUME_CHECK_HALF_MESSAGE, {{"topic", "T"}, {"msgId", id}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.peer->next(10);
  auto q = question(a);
  if (!q) co_return ADD_FAILURE() << "not asked";
  EXPECT_EQ(q->check_times, "1");
  a = co_await end(w, q->place, commit, "pg", "true");
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
  co_await resume_again(w, id);
}
// What was put back once is not put back, and committed, a second time.
Task<void> resumed_before_the_restart(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  auto set_aside = co_await w.pull(names::TRANS_CHECK_MAX_TIME_TOPIC, 0);
  co_await resume_again(w,
                        proto::make_offset_id(w.broker.store_id_host, records(set_aside)[0].physical_offset));
}
TEST(BrokerTransaction, SetAsideAfterSoManyQuestionsAndResumedOnce) {
  simulate({nobody_knows, resumed_before_the_restart}, quick_config());
}

// Half messages as RocketMQ takes them, up to the last byte of the properties: they can be asked about,
// ended, and set aside, and hold up nobody else.
Task<void> put_long_half(World& w, std::string_view key) {
  std::string properties = half_properties(key);
  proto::append_property(properties, "REAL_TOPIC", "T");
  proto::append_property(properties, "REAL_QID", "0");
  proto::append_property(properties, "p", std::string(32'767 - properties.size() - 3, 'x'));
  store::MessageIn m;
  m.topic = names::RMQ_SYS_TRANS_HALF_TOPIC;
  m.properties = properties;
  m.body = as_bytes(key);
  m.store_host = m.born_host = w.broker.store_host;
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
  w.broker.transactions.wake();
}
Task<void> long_halves(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  co_await put_long_half(w, "long");
  co_await put_long_half(w, "longer");
  auto sent = co_await w.send("T", "short", half_properties("short"));
  std::map<std::string, int> asked;
  for (a = co_await w.peer->next(10); a; a = co_await w.peer->next(10)) {
    auto q = question(a);
    if (!q) co_return ADD_FAILURE() << "not a question";
    asked[q->unique_key]++;
    if (q->unique_key == "longer") continue;
    std::string frame = end_frame(w, q->place, commit, "pg", "true", proto::flag_oneway);
    co_await w.peer->send(std::move(frame));
  }
  EXPECT_EQ(asked["long"], 1);
  EXPECT_EQ(asked["short"], 1);
  EXPECT_EQ(asked["longer"], 3) << "transactionCheckMax";
  EXPECT_EQ(w.store->max_offset("T", 0), 2);
  auto set_aside = co_await w.pull(names::TRANS_CHECK_MAX_TIME_TOPIC, 0);
  EXPECT_EQ(bodies(set_aside), "longer");
  EXPECT_EQ(w.broker.transactions.open(), 0u);
}
TEST(BrokerTransaction, PropertiesThatLeaveNoRoomForACopy) {
  simulate({long_halves}, quick_config());
}
Task<void> old_long_half(World& w) {
  co_await put_long_half(w, "long");
  const std::string filler(90'000, 'f');
  for (int i = 0; i < 45; i++) co_await w.send("F", filler);
  co_await sleep_for(3 * ns_per_s);
  auto set_aside = co_await w.pull(names::TRANS_CHECK_MAX_TIME_TOPIC, 0);
  EXPECT_EQ(bodies(set_aside), "long") << "it does not go with its file of the log";
}
TEST(BrokerTransaction, WhatCannotMoveToANewerFileIsSetAside) {
  simulate({old_long_half});
}

// Half messages come while others are asked about: each is asked about, and each comes once.
Task<void> keep_sending(World& w, Peer& p, int first, int count) {
  for (int i = first; i < first + count; i++) {
    const std::string key = "K" + std::to_string(i);
    std::string frame = w.send_frame("T", key, half_properties(key));
    bool sent = co_await p.send(std::move(frame));
    EXPECT_TRUE(sent);
    if (i % 3 == 0) co_await sleep_for(static_cast<int64_t>(Loop::current().random().below(3 * ns_per_ms)));
  }
}
Task<void> busy_producers(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  constexpr int senders = 4, each = 1500;
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < senders; i++) {
    auto p = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    peers.push_back(std::move(p));
  }
  Scope scope;
  for (int i = 0; i < senders; i++)
    scope.spawn(keep_sending(w, *peers[static_cast<size_t>(i)], i * each, each));
  std::map<std::string, std::string> ended;
  for (a = co_await w.peer->next(10); a; a = co_await w.peer->next(10)) {
    auto q = question(a);
    if (!q) co_return ADD_FAILURE() << "not a question";
    ended[q->unique_key] = q->check_times;
    std::string frame = end_frame(w, q->place, commit, "pg", "true", proto::flag_oneway);
    co_await w.peer->send(std::move(frame));
  }
  co_await scope.join();
  EXPECT_EQ(ended.size(), static_cast<size_t>(senders * each));
  EXPECT_EQ(w.store->max_offset("T", 0), senders * each);
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  for (auto& p : peers) co_await p->close();
}
TEST(BrokerTransaction, NothingIsForgottenWhileOthersCome) {
  BrokerConfig c = quick_config();
  c.transactionTimeOut = 20;
  c.transactionCheckInterval = 300;
  c.transactionCheckMax = 1000;
  simulate({busy_producers}, c);
}

// ---- crashes -----------------------------------------------------------------------------------------

// What a producer knows: its transactions, what it wants of each, and which of them were acknowledged.
struct Producer {
  std::map<std::string, std::string> wanted;  // by key: commit or rollback
  std::set<std::string> stored;               // the half message was acknowledged
};

Task<bool> answer_questions(World& w, const Producer& p, int64_t seconds) {
  int64_t until = Loop::current().now_ns() + seconds * ns_per_s;
  while (Loop::current().now_ns() < until) {
    auto a = co_await w.peer->next(1);
    if (w.peer->is_closed()) co_return false;
    auto q = question(a);
    auto wanted = q ? p.wanted.find(q->unique_key) : p.wanted.end();
    if (wanted == p.wanted.end()) continue;
    std::string frame = end_frame(w, q->place, wanted->second, "pg", "true", proto::flag_oneway);
    bool sent = co_await w.peer->send(std::move(frame));
    if (!sent) co_return false;
  }
  co_return true;
}

// Some end at once, others when they are asked about; until the disk freezes. Bodies of many sizes: records
// of a batch lie in different sectors then, and a crash may keep some of them.
Task<void> work_until_crash(World& w, sim::SimDisk& disk, Producer& p) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  for (int i = 0; i < 6 && !disk.crashed(); i++) {
    std::string key = "K" + std::to_string(i);
    p.wanted[key] = i % 3 == 1 ? rollback : commit;
    std::string body = key + "." + std::string(Loop::current().random().below(1000), 'x');
    auto sent = co_await w.send("T", body, half_properties(key));
    if (disk.crashed() || code_of(sent) != 0) break;
    p.stored.insert(key);
    if (i % 2 == 0) co_await end(w, place_of(sent), p.wanted[key]);
  }
  if (!disk.crashed()) co_await answer_questions(w, p, 4);
}

BrokerConfig patient_config() {
  BrokerConfig config = quick_config();
  config.transactionCheckMax = 1000;
  return config;
}

std::map<std::string, int> counted;

Task<void> count_visible(World& w) {
  counted.clear();
  for (int64_t at = 0; at < w.store->max_offset("T", 0);) {
    auto a = co_await w.pull("T", at);
    if (code_of(a) != 0) break;
    for (const auto& r : records(a)) {
      counted[std::string(as_text(r.body).substr(0, as_text(r.body).find('.')))]++;
      at = r.queue_offset + 1;
    }
  }
}

const Producer* surviving = nullptr;
Task<void> after_crash(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  co_await answer_questions(w, *surviving, 10);
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  co_await count_visible(w);
  for (const auto& [key, wanted] : surviving->wanted) {
    if (wanted == rollback)
      EXPECT_EQ(counted[key], 0) << key << " was rolled back";
    else if (surviving->stored.contains(key))
      EXPECT_EQ(counted[key], 1) << key << " was committed";
    else
      EXPECT_LE(counted[key], 1) << key;
  }
}

sim::CrashFate fate_of(int fate, uint64_t seed) {
  return fate == 0   ? sim::CrashFate::all_lost(seed)
         : fate == 1 ? sim::CrashFate::all_kept(seed)
         : fate == 2 ? sim::CrashFate::all_torn(seed)
                     : sim::CrashFate::mixed(seed);
}

void second_run(uint64_t seed, const Producer& p, const sim::DiskImage& image) {
  sim::SimLoop loop(seed);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {}, image);
  surviving = &p;
  loop.run(run_worlds(network, disk, patient_config(), {after_crash, after_crash}));
}

void crash_and_look(uint64_t seed, uint64_t point, int fate) {
  Producer p;
  sim::DiskImage image;
  crash_run<Producer&>(seed, point, fate_of(fate, seed), image, patient_config(), work_until_crash, p);
  second_run(seed, p, image);
}

uint64_t points_of_a_run() {
  Producer p;
  sim::DiskImage image;
  uint64_t points = crash_run<Producer&>(1, 0, fate_of(0, 1), image, patient_config(), work_until_crash, p);
  EXPECT_EQ(p.stored.size(), 6u);
  return points;
}

TEST(BrokerTransaction, ACrashAtEveryPointEndsEachOnce) {
  const uint64_t points = points_of_a_run();
  for (uint64_t point = 1; point <= points; point++) {
    crash_and_look(1, point, static_cast<int>(point % 2));
    if (HasFailure()) {
      ADD_FAILURE() << "at point " << point << " of " << points;
      return;
    }
  }
}

// What a crash leaves of a batch that commits when it cuts it: the message without the op record.
Task<void> commit_without_op(World& w, sim::SimDisk& disk, Producer& p) {
  auto sent = co_await w.send("T", "K0.", half_properties("K0"));
  p.wanted["K0"] = commit;
  p.stored.insert("K0");
  auto half = proto::parse_offset_id(ext(sent, "msgId"));
  auto extent = co_await w.store->record_at(half ? half->physical_offset : -1);
  const std::string properties = committed_properties(*proto::parse_record(extent->bytes()));
  store::MessageIn m;
  m.topic = "T";
  m.properties = properties;
  m.body = as_bytes("K0.");
  m.sys_flag = proto::sys_flag::transaction_commit;
  m.prepared_transaction_offset = half ? half->physical_offset : -1;
  m.store_host = m.born_host = w.broker.store_host;
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
  disk.crash_now();
}
Task<void> known_as_committed(World& w) {
  co_await sleep_for(ns_per_s / 2);
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  EXPECT_EQ(w.store->max_offset(names::RMQ_SYS_TRANS_OP_HALF_TOPIC, 0), 1) << "for a later start";
  co_await after_crash(w);
}

TEST(BrokerTransaction, ACommitThatACrashCutIsKnown) {
  Producer p;
  sim::DiskImage image;
  crash_run<Producer&>(1, 0, fate_of(1, 1), image, patient_config(), commit_without_op, p);
  sim::SimLoop loop(2);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {}, image);
  surviving = &p;
  loop.run(run_worlds(network, disk, quick_config(), {known_as_committed, after_crash}));
}

// The same when the end named an older copy than the one that is open, and when the message is delayed.
Task<void> put_without_op(World& w, const HalfPlace& p) {
  auto extent = co_await w.store->record_at(std::stoll(p.physical));
  if (!extent) co_return ADD_FAILURE() << "no half message";
  auto half = proto::parse_record(extent->bytes());
  std::string properties = committed_properties(*half);
  store::MessageIn m;
  m.topic = "T";
  m.body = half->body;
  m.sys_flag = proto::sys_flag::transaction_commit;
  m.prepared_transaction_offset = half->physical_offset;
  m.store_host = m.born_host = w.broker.store_host;
  Broker::Placed placed;
  w.broker.place_delayed(m, properties, 0, placed);
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
}
Task<void> commit_older_copy(World& w, sim::SimDisk& disk) {
  auto sent = co_await w.send("T", "x", half_properties("K0"));
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  a = co_await w.peer->next(10);
  EXPECT_TRUE(question(a));
  co_await put_without_op(w, place_of(sent));
  disk.crash_now();
}
Task<void> commit_delayed(World& w, sim::SimDisk& disk) {
  auto sent = co_await w.send("T", "x", half_properties("K0", "pg", "TIMER_DELAY_SEC", "5"));
  co_await put_without_op(w, place_of(sent));
  disk.crash_now();
}
Task<void> not_asked_again(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  a = co_await w.peer->next(10);
  EXPECT_EQ(a, nullptr) << "a question";
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
}
TEST(BrokerTransaction, ACutCommitIsKnownWhateverItNamed) {
  for (auto work : {commit_older_copy, commit_delayed}) {
    sim::DiskImage image;
    crash_run<>(1, 0, fate_of(1, 1), image, patient_config(), work);
    sim::SimLoop loop(2);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {}, image);
    loop.run(run_worlds(network, disk, patient_config(), {not_asked_again, not_asked_again}));
  }
}

// ---- crashes while a message is put back ---------------------------------------------------------------

std::string set_aside_id(World& w) {
  return proto::make_offset_id(w.broker.store_id_host, 0);
}
Task<void> resume_until_crash(World& w, sim::SimDisk& disk) {
  std::string properties = half_properties("K0");
  proto::append_property(properties, "REAL_TOPIC", "T");
  proto::append_property(properties, "REAL_QID", "0");
  store::MessageIn m;
  m.topic = names::TRANS_CHECK_MAX_TIME_TOPIC;
  m.properties = properties;
  m.body = as_bytes("K0.");
  m.store_host = m.born_host = w.broker.store_host;
  [[maybe_unused]] auto put = co_await w.store->put(m);
  const std::string id = set_aside_id(w);
  for (int i = 0; i < 3 && !disk.crashed(); i++) {
    auto a = co_await w.call(RequestCode::RESUME_CHECK_HALF_MESSAGE, {{"topic", "T"}, {"msgId", id}});
    co_await w.send("F", "between");
  }
}
// However often it is put back: it is asked about, and committed, once.
Task<void> resumed_once(World& w) {
  auto a = co_await w.call(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg"));
  const std::string id = set_aside_id(w);
  for (int i = 0; i < 2; i++) {
    a = co_await w.call(RequestCode::RESUME_CHECK_HALF_MESSAGE, {{"topic", "T"}, {"msgId", id}});
    if (code_of(a) != 0) co_return;  // the crash took the message itself
    co_await answer_questions(w, *surviving, 4);
    EXPECT_EQ(w.broker.transactions.open(), 0u);
    EXPECT_EQ(w.store->max_offset("T", 0), 1);
  }
}
TEST(BrokerTransaction, ACrashAtEveryPointOfAResume) {
  Producer p;
  p.wanted["K0"] = commit;
  surviving = &p;
  sim::DiskImage image;
  const uint64_t points = crash_run(1, 0, fate_of(0, 1), image, patient_config(), resume_until_crash);
  for (uint64_t point = 1; point <= points && !HasFailure(); point++) {
    crash_run(1, point, fate_of(static_cast<int>(point % 4), point), image, patient_config(),
              resume_until_crash);
    sim::SimLoop loop(point);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {}, image);
    loop.run(run_worlds(network, disk, patient_config(), {resumed_once, resumed_once}));
    if (HasFailure()) ADD_FAILURE() << "at point " << point << " of " << points;
  }
}

// ---- crashes while messages are set aside --------------------------------------------------------------

// A producer that is asked and says nothing.
Task<std::unique_ptr<Peer>> silent_producer(World& w) {
  auto p = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto a = co_await p->call(w.request(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg")));
  co_return p;
}
Task<void> unanswered_until_crash(World& w, sim::SimDisk& disk, Producer& p) {
  auto silent = co_await silent_producer(w);
  for (int i = 0; i < 5 && !disk.crashed(); i++) {
    const std::string key = "K" + std::to_string(i), body = key + "." + std::string(400, 'x');
    auto sent = co_await w.send("T", body, half_properties(key));
    if (disk.crashed() || code_of(sent) != 0) break;
    p.stored.insert(key);
  }
  while (!disk.crashed() && w.broker.transactions.open() > 0) co_await sleep_for(50 * ns_per_ms);
  if (!disk.crashed()) co_await sleep_for(ns_per_s);
  co_await silent->close();
}
Task<void> set_aside_once(World& w) {
  auto silent = co_await silent_producer(w);
  co_await sleep_for(10 * ns_per_s);
  EXPECT_EQ(w.broker.transactions.open(), 0u);
  std::map<std::string, int> aside;
  for (int64_t at = 0; at < w.store->max_offset(names::TRANS_CHECK_MAX_TIME_TOPIC, 0); at++) {
    auto a = co_await w.pull(names::TRANS_CHECK_MAX_TIME_TOPIC, at);
    const auto got = records(a);
    if (got.empty()) co_return ADD_FAILURE() << "nothing at " << at;
    aside[std::string(as_text(got[0].body).substr(0, 2))]++;
  }
  for (int i = 0; i < 5; i++) {
    const std::string key = "K" + std::to_string(i);
    EXPECT_LE(aside[key], 1) << key;
    if (surviving->stored.contains(key)) EXPECT_EQ(aside[key], 1) << key;
  }
  EXPECT_EQ(w.store->max_offset("T", 0), 0);
  co_await silent->close();
}
TEST(BrokerTransaction, ACrashAtEveryPointSetsEachAsideOnce) {
  BrokerConfig config = quick_config();
  config.transactionCheckMax = 1;
  log_set_level(LogLevel::error);
  uint64_t points = 1;
  for (uint64_t point = 0; point <= points && !HasFailure(); point++) {
    Producer p;
    surviving = &p;
    sim::DiskImage image;
    const uint64_t passed = crash_run<Producer&>(1, point, fate_of(static_cast<int>(point % 4), point), image,
                                                 config, unanswered_until_crash, p);
    if (point == 0) {
      EXPECT_EQ(p.stored.size(), 5u);
      points = passed;
      continue;
    }
    sim::SimLoop loop(point);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {}, image);
    std::vector<Scenario> later(point % 4 == 0 ? 2 : 1, set_aside_once);
    loop.run(run_worlds(network, disk, config, later));
    if (HasFailure()) ADD_FAILURE() << "at point " << point << " of " << points;
  }
}

// Many messages of a group that is away, and too old: they are set aside, and another group is asked in time.
Task<void> away_and_old(World& w) {
  constexpr int many = 300;
  std::string frames;
  for (int i = 0; i < many; i++) frames += w.send_frame("T", "x", half_properties(std::to_string(i), "away"));
  co_await w.peer->send(std::move(frames));
  for (int i = 0; i < many; i++) co_await w.peer->next();
  co_await sleep_for(3598 * ns_per_s);
  auto producer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto a = co_await producer->call(w.request(RequestCode::HEART_BEAT, {}, producer_heartbeat("pg")));
  a = co_await producer->call(w.send_frame("T", "mine", half_properties("K")));
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.broker.transactions.open(), many + 1u);
  a = co_await producer->next(7);
  auto q = question(a);
  if (!q) co_return ADD_FAILURE() << "not asked in time";
  EXPECT_EQ(q->unique_key, "K");
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(w.broker.transactions.given_up(), static_cast<uint64_t>(many)) << "older than fileReservedTime";
  EXPECT_EQ(w.broker.transactions.open(), 1u);
  EXPECT_EQ(w.store->max_offset(names::TRANS_CHECK_MAX_TIME_TOPIC, 0), many);
  co_await producer->close();
}
TEST(BrokerTransaction, AGroupThatIsAwayHoldsUpNobody) {
  BrokerConfig config = test_config();
  config.fileReservedTime = 1;
  config.mappedFileSizeCommitLog = 8 << 20;
  simulate({away_and_old}, config);
}

// RMQ_TRANSACTION_SEEDS=FROM-TO: other seeds than usual.
TEST(BrokerTransaction, ACrashAnywhereEndsEachOnce) {
  const char* text = std::getenv("RMQ_TRANSACTION_SEEDS");
  uint64_t from = 1, to = 150;
  if (text != nullptr) ASSERT_EQ(std::sscanf(text, "%lu-%lu", &from, &to), 2);
  const uint64_t points = points_of_a_run();
  for (uint64_t seed = from; seed <= to; seed++) {
    // Most of the work is done in the last two thirds.
    crash_and_look(seed, points / 3 + seed * 7919 % (points * 2 / 3), 2 + static_cast<int>(seed % 2));
    if (HasFailure()) {
      ADD_FAILURE() << "with RMQ_TRANSACTION_SEEDS=" << seed << "-" << seed;
      return;
    }
  }
}

}  // namespace
}  // namespace rmq::broker

// SQL92 filters through the whole broker, simulated: registration and its codes, pulls of every kind, waiting
// ones, retry topics, consumerFilter.json.
#include "broker_world.h"
#include "daemon/broker/subscription_filter.h"

namespace rmq::broker {
namespace {

struct Sub {
  std::string topic, expression;
  int64_t version = 1;
  std::string type = "SQL92";
};

std::string heartbeat(std::string_view client, std::string_view group, const std::vector<Sub>& subs,
                      bool without_sub = false, int32_t fingerprint = 0) {
  proto::HeartbeatData h;
  h.client_id = client;
  h.heartbeat_fingerprint = fingerprint;
  h.without_sub = without_sub;
  proto::ConsumerData c;
  c.group_name = group;
  for (const Sub& sub : subs) {
    auto s = proto::SubscriptionData::build(sub.topic, sub.expression, sub.type);
    check(s.has_value());
    s->sub_version = sub.version;
    c.subscription_data_set.push_back(*s);
  }
  h.consumers = {c};
  return h.to_json();
}
std::string heartbeat_of(std::string_view group, std::string_view expression, int64_t version = 1) {
  std::vector<Sub> subs = {{"T", std::string(expression), version}};
  return heartbeat("c-" + std::string(group), group, subs);
}

// By the group's subscription, or with one of its own.
std::string pull_frame(World& w, std::string_view group, std::string_view version = "0",
                       std::string_view expression = "", std::string_view type = "SQL92",
                       std::string_view topic = "T", std::string_view offset = "0", int64_t suspend_ms = 0,
                       RequestCode code = RequestCode::PULL_MESSAGE) {
  const int32_t flags = (expression.empty() ? 0 : 4) | (suspend_ms > 0 ? 2 : 0);
  return w.request(code, {{"consumerGroup", group},
                          {"topic", topic},
                          {"queueId", "0"},
                          {"queueOffset", offset},
                          {"maxMsgNums", "32"},
                          {"sysFlag", std::to_string(flags)},
                          {"commitOffset", "0"},
                          {"suspendTimeoutMillis", std::to_string(suspend_ms)},
                          {"subscription", expression},
                          {"subVersion", version},
                          {"expressionType", type}});
}

Task<void> send_numbers(World& w, int from, int to) {
  for (int i = from; i < to; i++) {
    const std::string body = "m" + std::to_string(i), properties = "n\1" + std::to_string(i) + "\2";
    auto a = co_await w.send("T", body, properties);
    EXPECT_EQ(code_of(a), 0);
  }
}

Task<void> beat(World& w, std::string body) {
  bool sent = co_await w.peer->send(w.request(RequestCode::HEART_BEAT, {}, body));
  EXPECT_TRUE(sent);
  Answer a;
  do {
    a = co_await w.peer->next();
  } while (code_of(a) == static_cast<int32_t>(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED));
  EXPECT_EQ(code_of(a), 0);
}

Task<Answer> check_config(World& w, std::string_view expression, std::string_view type = "SQL92") {
  std::string body =
      R"({"clientId":"c","group":"g","namespace":"","subscriptionData":{"topic":"T","subString":")" +
      std::string(expression) + R"(","expressionType":")" + std::string(type) + "\"}}";
  co_return co_await w.call(RequestCode::CHECK_CLIENT_CONFIG, {}, body);
}

Task<void> client_config(World& w) {
  auto a = co_await check_config(w, "n > 5");
  EXPECT_EQ(code_of(a), 0);
  a = co_await check_config(w, "n > ");
  EXPECT_EQ(code_of(a), 23);
  EXPECT_EQ(remark(a),
            "Invalid MessageSelector. line 1, column 5: the expression ends where a property, a literal or ( "
            "must follow");
  a = co_await check_config(w, "n > 5", "SQL93");
  EXPECT_EQ(code_of(a), 23);
  a = co_await check_config(w, "A || B", "TAG");
  EXPECT_EQ(code_of(a), 0);
  w.config.enablePropertyFilter = false;
  a = co_await check_config(w, "n > 5");
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "The broker does not support consumer to filter message by SQL92");
}
TEST(BrokerFilter, ClientsAskBeforeTheySubscribe) {
  simulate({client_config});
}

Task<void> with_expression(World& w) {
  co_await send_numbers(w, 0, 10);
  auto a = co_await w.peer->call(pull_frame(w, "g", "0", "n >= 7 OR n = 2"));
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(bodies(a), "m2,m7,m8,m9");
  EXPECT_EQ(ext(a, "nextBeginOffset"), "10");
  a = co_await w.peer->call(pull_frame(w, "g", "0", "n > 100"));
  EXPECT_EQ(code_of(a), 20);
  EXPECT_EQ(ext(a, "nextBeginOffset"), "10") << "passes what does not match";
  a = co_await w.peer->call(pull_frame(w, "g", "0", "n > 5 AND"));
  EXPECT_EQ(code_of(a), 23);
  EXPECT_NE(remark(a).find("parse the consumer's subscription failed: line 1, column 10"), std::string::npos)
      << remark(a);
  a = co_await w.peer->call(pull_frame(w, "g", "0", "n > 5", "SQL93"));
  EXPECT_EQ(code_of(a), 23);
  a = co_await w.peer->call(
      pull_frame(w, "g", "0", "n = 3", "SQL92", "T", "0", 0, RequestCode::LITE_PULL_MESSAGE));
  EXPECT_EQ(bodies(a), "m3");
  w.config.enablePropertyFilter = false;
  a = co_await w.peer->call(pull_frame(w, "g", "0", "n > 5"));
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "The broker does not support consumer to filter message by SQL92");
}
TEST(BrokerFilter, PullWithAnExpression) {
  simulate({with_expression});
}

Task<void> registered(World& w) {
  co_await send_numbers(w, 0, 10);
  co_await beat(w, heartbeat_of("g", "n < 3", 7));
  auto a = co_await w.peer->call(pull_frame(w, "g", "7"));
  EXPECT_EQ(bodies(a), "m0,m1,m2");
  // Go sends TAG and version 0: the heartbeat's subscription decides.
  a = co_await w.peer->call(pull_frame(w, "g", "0", "", "TAG"));
  EXPECT_EQ(bodies(a), "m0,m1,m2");
  a = co_await w.peer->call(pull_frame(w, "g", "8"));
  EXPECT_EQ(code_of(a), 25) << "SUBSCRIPTION_NOT_LATEST";
  co_await beat(w, heartbeat_of("g", "n > 7", 6));
  a = co_await w.peer->call(pull_frame(w, "g", "7"));
  EXPECT_EQ(bodies(a), "m0,m1,m2") << "an older version does not count";
  co_await beat(w, heartbeat_of("g", "n > 7", 7));
  a = co_await w.peer->call(pull_frame(w, "g", "7"));
  EXPECT_EQ(bodies(a), "m0,m1,m2") << "nor does the same one";
  co_await beat(w, heartbeat_of("g", "n > 7", 9));
  a = co_await w.peer->call(pull_frame(w, "g", "9"));
  EXPECT_EQ(bodies(a), "m8,m9");
  w.config.enablePropertyFilter = false;
  a = co_await w.peer->call(pull_frame(w, "g", "9"));
  EXPECT_EQ(code_of(a), 1);
}
TEST(BrokerFilter, PullByTheHeartbeatsExpression) {
  simulate({registered});
}

// Version 2: the whole of it once, then digests without subscriptions, which change nothing.
Task<void> digests(World& w) {
  co_await send_numbers(w, 0, 5);
  std::vector<Sub> subs = {{"T", "n = 4", 3}};
  co_await beat(w, heartbeat("c", "g", subs, false, 77));
  subs.clear();
  co_await beat(w, heartbeat("c", "g", subs, true, 77));
  auto a = co_await w.peer->call(pull_frame(w, "g", "3"));
  EXPECT_EQ(bodies(a), "m4");
}
TEST(BrokerFilter, HeartbeatsOfVersion2) {
  simulate({digests});
}

Task<void> wrong_expressions(World& w) {
  co_await send_numbers(w, 0, 3);
  co_await beat(w, heartbeat_of("g", "n >", 5));
  auto a = co_await w.peer->call(pull_frame(w, "g", "5"));
  EXPECT_EQ(code_of(a), 27) << "FILTER_DATA_NOT_EXIST";
  EXPECT_EQ(
      remark(a),
      "The broker's consumer filter data is not exist!Your expression may be wrong! line 1, column 4: the "
      "expression ends where a property, a literal or ( must follow");
  co_await beat(w, heartbeat_of("g", "n > 1", 6));
  a = co_await w.peer->call(pull_frame(w, "g", "6"));
  EXPECT_EQ(bodies(a), "m2") << "a newer one that is right";
  co_await beat(w, heartbeat_of("g", "n > 1 AND", 7));
  a = co_await w.peer->call(pull_frame(w, "g", "7"));
  EXPECT_EQ(code_of(a), 27) << "the old one does not stand in for the new one";
  // What was left over by a newer client of the same group.
  co_await beat(w, heartbeat_of("h", "n = 0", 5));
  auto* g = const_cast<ConsumerGroupInfo*>(w.broker.clients.consumers("h"));
  g->subscriptions.find("T")->second.sub_version = 9;
  a = co_await w.peer->call(pull_frame(w, "h", "9"));
  EXPECT_EQ(code_of(a), 28) << "FILTER_DATA_NOT_LATEST";
}
TEST(BrokerFilter, WrongAndOldExpressions) {
  simulate({wrong_expressions});
}

Task<void> waiting(World& w) {
  co_await send_numbers(w, 0, 1);
  co_await beat(w, heartbeat_of("g", "n = 5", 1));
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent = co_await consumer->send(pull_frame(w, "g", "1", "", "", "T", "1", 15'000));
  EXPECT_TRUE(sent);
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 1u);
  co_await send_numbers(w, 1, 5);
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 1u) << "what does not match wakes nobody";
  const int64_t before = w.broker.now_ns();
  co_await send_numbers(w, 5, 6);
  auto a = co_await consumer->next();
  EXPECT_EQ(bodies(a), "m5");
  EXPECT_LT(w.broker.now_ns() - before, ns_per_s);
  // Nothing matches until the time is up: the next offset has passed it all.
  sent = co_await consumer->send(pull_frame(w, "g", "1", "", "", "T", "6", 5'000));
  co_await sleep_for(ns_per_s);
  co_await send_numbers(w, 6, 9);
  a = co_await consumer->next();
  EXPECT_EQ(code_of(a), 20);
  EXPECT_EQ(ext(a, "nextBeginOffset"), "9");
  // Another subscription while it waits: what only the new one wants is not passed over.
  sent = co_await consumer->send(pull_frame(w, "g", "1", "", "", "T", "9", 5'000));
  co_await sleep_for(ns_per_s);
  co_await beat(w, heartbeat_of("g", "n = 9", 2));
  co_await send_numbers(w, 9, 10);
  a = co_await consumer->next();
  EXPECT_EQ(bodies(a), "m9");
  co_await consumer->close();
}
TEST(BrokerFilter, WaitingPullsWakeForWhatMatches) {
  simulate({waiting});
}

// Hundreds of groups with one expression evaluate it once for each message.
Task<void> shared(World& w) {
  for (int i = 0; i < 300; i++)
    co_await beat(w, heartbeat_of("g" + std::to_string(i), "n BETWEEN 3 AND 4", 1));
  auto* f = w.broker.filters.find("T", "g0");
  check(f != nullptr);
  EXPECT_EQ(f->expression, w.broker.filters.find("T", "g299")->expression);
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await send_numbers(w, 0, 3);
  for (int i = 0; i < 300; i++)
    co_await consumer->send(pull_frame(w, "g" + std::to_string(i), "1", "", "", "T", "3", 15'000));
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 300u);
  co_await send_numbers(w, 5, 6);
  co_await send_numbers(w, 3, 4);
  for (int i = 0; i < 300; i++) {
    auto a = co_await consumer->next();
    EXPECT_EQ(bodies(a), "m3");
  }
  EXPECT_EQ(f->expression->evaluations(), 2u);
  co_await consumer->close();
}
TEST(BrokerFilter, EqualExpressionsAreEvaluatedOnce) {
  simulate({shared});
}

const SharedExpression& expression_of(World& w, std::string_view group) {
  auto* f = w.broker.filters.find("T", group);
  check(f != nullptr);
  return *f->expression;
}

Task<void> wait_for(World& w, Peer& consumer, std::string group, std::string expression) {
  std::string body = heartbeat_of(group, expression, 1);
  co_await beat(w, std::move(body));
  bool sent = co_await consumer.send(pull_frame(w, group, "1", "", "", "T", "1", 15'000));
  EXPECT_TRUE(sent);
}

// A message is looked at for those who may want it: who waits for another value of a property costs nothing.
Task<void> needing(World& w) {
  co_await send_numbers(w, 0, 1);
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  for (int i = 10; i < 60; i++) {
    std::string number = std::to_string(i);
    co_await wait_for(w, *consumer, "g" + number, "n = " + number);
  }
  co_await wait_for(w, *consumer, "more", "n > 30 AND 17 = n");
  co_await wait_for(w, *consumer, "text", "n = '17'");
  co_await wait_for(w, *consumer, "rest", "n BETWEEN 17 AND 18");
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 53u);
  co_await send_numbers(w, 17, 18);
  std::multiset<std::string> got;
  for (int i = 0; i < 3; i++) {
    auto a = co_await consumer->next();
    got.insert(bodies(a));
  }
  EXPECT_EQ(got.count("m17"), 3u) << "g17, text and rest";
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 50u);
  for (const char* group : {"g17", "more", "text", "rest"})
    EXPECT_EQ(expression_of(w, group).evaluations(), 1u);
  for (const char* group : {"g10", "g18", "g59"}) EXPECT_EQ(expression_of(w, group).evaluations(), 0u);
  co_await send_numbers(w, 59, 60);
  auto a = co_await consumer->next();
  EXPECT_EQ(bodies(a), "m59");
  EXPECT_EQ(expression_of(w, "g59").evaluations(), 1u) << "what it waited through is not read again";
  co_await consumer->close();
}
TEST(BrokerFilter, WhoNeedsAnotherValueCostsNothing) {
  simulate({needing});
}

// A pull whose time is up goes on behind what came meanwhile; those messages were judged once.
Task<void> judged_once(World& w) {
  co_await send_numbers(w, 0, 1);
  co_await beat(w, heartbeat_of("g", "n > 1000", 1));
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent = co_await consumer->send(pull_frame(w, "g", "1", "", "", "T", "1", 15'000));
  EXPECT_TRUE(sent);
  co_await sleep_for(ns_per_s);
  co_await send_numbers(w, 1, 601);
  auto a = co_await consumer->next(30);
  EXPECT_EQ(code_of(a), 20);
  EXPECT_EQ(ext(a, "nextBeginOffset"), "601");
  EXPECT_EQ(expression_of(w, "g").evaluations(), 600u);
  co_await consumer->close();
}
TEST(BrokerFilter, WhatCameWhileAPullWaitedIsJudgedOnce) {
  simulate({judged_once});
}

TEST(LastProperties, AreReadForTheSecondThatLooks) {
  ExpressionCache cache;
  const std::string properties =
      "a\1"
      "7\2b\1x\2";
  std::vector<ExpressionRef> all;
  for (const char* text : {"a > 5", "b = 'x'", "a > 6 AND b = 'x'", "a > 7"}) all.push_back(*cache.get(text));
  for (int64_t offset : {1000, 2000})
    for (size_t i = 0; i < all.size(); i++) EXPECT_EQ(all[i]->matches(offset, properties), i < 3);
  EXPECT_EQ(cache.last().reads(), 2u);
  EXPECT_EQ(all[0]->matches(3000, properties), true);
  EXPECT_EQ(cache.last().reads(), 2u) << "one alone takes what it needs";
}

// One long expression over a long queue holds nobody up: the pull ends early, and the next one goes on.
Task<void> costly(World& w) {
  co_await send_numbers(w, 0, 600);
  std::string text = "n = -1";
  for (int i = 0; i < 2000; i++) text += " OR x = " + std::to_string(i);
  int64_t offset = 0;
  int pulls = 0;
  while (offset < 600 && pulls < 100) {
    auto a = co_await w.peer->call(pull_frame(w, "g", "0", text, "SQL92", "T", std::to_string(offset)));
    EXPECT_EQ(code_of(a), 20);
    int64_t next = std::stoll(ext(a, "nextBeginOffset"));
    EXPECT_GT(next, offset);
    offset = next;
    pulls++;
  }
  EXPECT_EQ(offset, 600);
  EXPECT_GT(pulls, 3);
}
TEST(BrokerFilter, CostlyExpressionsAreServedInParts) {
  simulate({costly});
}

Task<void> retries(World& w) {
  std::vector<Sub> subs = {{"T", "n > 5"}, {"%RETRY%g", "n = 1"}};
  co_await beat(w, heartbeat("c", "g", subs));
  auto a = co_await w.send("%RETRY%g", "small",
                           "n\1"
                           "1\2RETRY_TOPIC\1T\2");
  a = co_await w.send("%RETRY%g", "large",
                      "n\1"
                      "9\2RETRY_TOPIC\1T\2");
  a = co_await w.send("%RETRY%g", "other",
                      "n\1"
                      "1\2RETRY_TOPIC\1U\2");
  a = co_await w.peer->call(pull_frame(w, "g", "1", "", "", "%RETRY%g"));
  EXPECT_EQ(bodies(a), "small,other");
  w.config.filterSupportRetry = true;
  a = co_await w.peer->call(pull_frame(w, "g", "1", "", "", "%RETRY%g"));
  EXPECT_EQ(bodies(a), "large,other") << "by the expression for the topic that they come from";
  a = co_await w.peer->call(pull_frame(w, "g", "1", "n = 1", "SQL92", "%RETRY%g"));
  EXPECT_EQ(bodies(a), "large,other") << "the request's own does not count";
  a = co_await w.peer->call(pull_frame(w, "g", "1", "*", "TAG", "%RETRY%g"));
  EXPECT_EQ(bodies(a), "small,large,other");
  subs.back() = {"%RETRY%g", "*", 2, "TAG"};
  co_await beat(w, heartbeat("c", "g", subs));
  a = co_await w.peer->call(pull_frame(w, "g", "1", "", "", "%RETRY%g"));
  EXPECT_EQ(bodies(a), "small,large,other") << "RocketMQ's clients subscribe to it by tags";
}
TEST(BrokerFilter, RetryTopicsGoByTheOriginalSubscription) {
  simulate({retries});
}

Task<void> before_restart(World& w) {
  std::vector<Sub> subs = {{"T", "n = 'it''s' OR n = '\"é'", 5}, {"U", "x IS NULL", 6}};
  co_await beat(w, heartbeat("c", "g", subs));
  co_await beat(w, heartbeat_of("gone", "n = 1", 1));
  auto a =
      co_await w.call(RequestCode::UNREGISTER_CLIENT, {{"clientID", "c-gone"}, {"consumerGroup", "gone"}});
  EXPECT_TRUE(w.broker.filters.find("T", "gone")->data.is_dead());
  EXPECT_FALSE(w.broker.filters.find("T", "g")->data.is_dead());
  subs.pop_back();
  co_await beat(w, heartbeat("c", "g", subs));
  EXPECT_TRUE(w.broker.filters.find("U", "g")->data.is_dead()) << "not subscribed to any more";
}
Task<void> after_restart(World& w) {
  auto* f = w.broker.filters.find("T", "g");
  EXPECT_NE(f, nullptr);
  if (f == nullptr) co_return;
  EXPECT_EQ(f->data.expression, "n = 'it''s' OR n = '\"é'");
  EXPECT_EQ(f->data.client_version, 5);
  EXPECT_TRUE(f->data.is_dead()) << "nobody is there after a start";
  EXPECT_TRUE(f->expression->expression().matches("n\1\"é\2"));
  auto a = co_await w.send("%RETRY%g", "small", "n\0011\2RETRY_TOPIC\1T\2");
  a = co_await w.send("%RETRY%g", "quoted", "n\1it's\2RETRY_TOPIC\1T\2");
  a = co_await w.peer->call(pull_frame(w, "g", "0", "TRUE", "SQL92", "%RETRY%g"));
  EXPECT_EQ(bodies(a), "quoted") << "in force before anybody is there";
  std::vector<Sub> subs = {{"T", "n = 'it''s' OR n = '\"é'", 5}};
  co_await beat(w, heartbeat("c", "g", subs));
  EXPECT_FALSE(f->data.is_dead());
  co_await sleep_for(80 * ns_per_s);
  EXPECT_EQ(w.broker.filters.find("T", "gone"), nullptr) << "older than filterDataCleanTimeSpan";
  EXPECT_EQ(w.broker.filters.find("U", "g"), nullptr);
}
Task<void> after_expiry(World& w) {
  EXPECT_EQ(w.broker.filters.find("T", "gone"), nullptr);
  EXPECT_NE(w.broker.filters.find("T", "g"), nullptr);
  co_return;
}
TEST(BrokerFilter, AreKeptAndExpire) {
  BrokerConfig config = test_config();
  config.filterDataCleanTimeSpan = 60'000;
  config.filterSupportRetry = true;
  simulate({before_restart, after_restart, after_expiry}, config);
}

TEST(ExpressionCache, KeepsWhatIsHeldAndTheLastOnes) {
  ExpressionCache cache;
  auto held = cache.get("a = 1");
  ASSERT_TRUE(held);
  EXPECT_EQ(*cache.get("a = 1"), *held);
  for (int i = 0; i < 2000; i++) {
    auto e = cache.get("a = 1 AND b = " + std::to_string(i));
    ASSERT_TRUE(e);
  }
  EXPECT_EQ(*cache.get("a = 1"), *held) << "somebody holds it";
  EXPECT_LE(cache.known(), 1024u) << "those that are gone are forgotten";
  const SharedExpression* last = cache.get("a = 1 AND b = 1999")->get();
  EXPECT_EQ(cache.get("a = 1 AND b = 1999")->get(), last);
  EXPECT_FALSE(cache.get("a ="));
}

}  // namespace
}  // namespace rmq::broker

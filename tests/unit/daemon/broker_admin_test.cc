// What operators do to groups and topics through the whole broker, simulated: resets while consumers run,
// fewer queues while messages are on their way to them, statistics.
#include "broker_world.h"
#include "proto/bodies_stats.h"

namespace rmq::broker {
namespace {

Task<Answer> reset_to(World& w, std::string_view timestamp, std::string_view queue = "-1",
                      std::string_view offset = "-1") {
  return w.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, {{"topic", "T"},
                                                             {"group", "g"},
                                                             {"timestamp", timestamp},
                                                             {"isForce", "true"},
                                                             {"queueId", queue},
                                                             {"offset", offset}});
}
Task<Answer> commit(World& w, std::string_view offset) {
  return w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"commitOffset", offset}});
}
Task<void> send_some(World& w, int n) {
  for (int i = 0; i < n; i++) {
    auto a = co_await w.send("T", "m");
    EXPECT_EQ(code_of(a), 0);
  }
}

Task<void> overtaken_commit(World& w) {
  co_await send_some(w, 10);
  auto a = co_await w.peer->call(w.pull_frame("T", 0, "*", 0, "g", 1, 3));
  EXPECT_EQ(ext(a, "nextBeginOffset"), "10");
  a = co_await reset_to(w, "0", "0", "1");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.peer->call(w.pull_frame("T", 10));
  EXPECT_EQ(code_of(a), 21);
  // It was sent before its client had that answer.
  a = co_await commit(w, "7");
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(remark(a), "Offset has been previously reset");
  EXPECT_EQ(w.broker.offsets.query("g", "T", 0), 1);
  a = co_await commit(w, "2");
  EXPECT_EQ(w.broker.offsets.query("g", "T", 0), 2) << "nothing that it had before";
  co_await sleep_for(9 * ns_per_s);
  a = co_await commit(w, "7");
  EXPECT_EQ(w.broker.offsets.query("g", "T", 0), 2)
      << "a client that was told waits, and commits what it had";
  co_await sleep_for(7 * ns_per_s);
  a = co_await commit(w, "7");
  EXPECT_EQ(w.broker.offsets.query("g", "T", 0), 7) << "not for ever";
  a = co_await reset_to(w, "0", "0", "1");
  a = co_await w.peer->call(w.pull_frame("T", 10));
  EXPECT_EQ(code_of(a), 21);
  a = co_await w.peer->call(w.pull_frame("T", 1));
  a = co_await commit(w, "7");
  EXPECT_EQ(w.broker.offsets.query("g", "T", 0), 7) << "it went there and has read that far again";
}
TEST(BrokerAdmin, ACommitOnItsWayDoesNotUndoAReset) {
  simulate({overtaken_commit});
}

Task<void> waiting_consumer(World& w) {
  co_await send_some(w, 5);
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto other = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await consumer->send(w.pull_frame("T", 5, "*", 15'000));
  co_await other->send(w.pull_frame("T", 5, "*", 15'000, "h"));
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(w.broker.long_polling.waiting(), 2u);
  auto a = co_await reset_to(w, "0");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await consumer->next(1);
  EXPECT_EQ(code_of(a), 21) << "it learns it while it waits";
  EXPECT_EQ(ext(a, "nextBeginOffset"), "0");
  EXPECT_EQ(w.broker.long_polling.waiting(), 1u) << "other groups go on waiting";
  co_await consumer->close();
  co_await other->close();
}
TEST(BrokerAdmin, AWaitingConsumerLearnsOfAReset) {
  simulate({waiting_consumer});
}

Task<void> at_clients(World& w) {
  w.config.useServerSideResetOffset = false;
  co_await send_some(w, 5);
  auto a = co_await w.peer->call(w.pull_frame("T", 5, "*", 0, "g", 1, 3));
  a = co_await reset_to(w, "0");
  EXPECT_EQ(code_of(a), 206) << "nobody to tell";
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  const std::string heartbeat =
      R"({"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[]}]})";
  co_await consumer->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat));
  a = co_await consumer->next();
  a = co_await consumer->next();
  a = co_await reset_to(w, "0");
  EXPECT_EQ(code_of(a), 1) << "a queue without an offset";
  for (int32_t q = 1; q < 4; q++) w.broker.offsets.commit("g", "T", q, 0);
  a = co_await reset_to(w, "-1");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  auto told = co_await consumer->next();
  EXPECT_EQ(code_of(told), static_cast<int32_t>(RequestCode::RESET_CONSUMER_CLIENT_OFFSET));
  EXPECT_EQ(ext(told, "group"), "g");
  EXPECT_EQ(body_text(told), body_text(a));
  auto body = proto::ResetOffsetBody::parse(body_text(told));
  EXPECT_TRUE(body);
  const proto::MessageQueue first{"T", "b", 0};
  if (body) EXPECT_EQ(body->offset_table.at(first), 5);
  EXPECT_EQ(w.broker.offsets.query("g", "T", 0), 3) << "the consumers move by themselves";
  co_await consumer->close();
}
TEST(BrokerAdmin, ResetsAtTheClients) {
  simulate({at_clients});
}

Task<Answer> set_queues(World& w, std::string_view queues) {
  return w.put_topic("T", queues);
}

// Sent to queue 3 of 4, delivered when there are 2.
Task<void> fewer_queues(World& w) {
  auto a = co_await set_queues(w, "4");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "by level",
                      "DELAY\1"
                      "2\2",
                      "3");
  a = co_await w.send("T", "by timer",
                      "TIMER_DELAY_SEC\1"
                      "8\2",
                      "3");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  auto half = co_await w.peer->call(w.request(RequestCode::SEND_MESSAGE_V2,
                                              {{"a", "pg"},
                                               {"b", "T"},
                                               {"c", "TBW102"},
                                               {"d", "4"},
                                               {"e", "3"},
                                               {"f", "4"},
                                               {"g", "1"},
                                               {"h", "0"},
                                               {"i", "TRAN_MSG\1true\2PGROUP\1pg\2UNIQ_KEY\1K\2"},
                                               {"j", "0"}},
                                              "half"));
  EXPECT_EQ(code_of(half), 0) << remark(half);
  auto id = proto::parse_offset_id(ext(half, "msgId"));
  a = co_await set_queues(w, "2");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  const std::string physical = std::to_string(id ? id->physical_offset : -1),
                    offset = ext(half, "queueOffset");
  a = co_await w.call(RequestCode::END_TRANSACTION, {{"topic", "T"},
                                                     {"producerGroup", "pg"},
                                                     {"tranStateTableOffset", offset},
                                                     {"commitLogOffset", physical},
                                                     {"commitOrRollback", "8"},
                                                     {"fromTransactionCheck", "false"},
                                                     {"msgId", "K"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(20 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 3), 0);
  EXPECT_EQ(w.store->max_offset("T", 1), 3) << "where consumers read them";
}
TEST(BrokerAdmin, MessagesOnTheirWayFindAQueueThatIsLeft) {
  simulate({fewer_queues});
}

Task<void> statistics(World& w) {
  co_await send_some(w, 5);
  auto a = co_await w.pull("T", 0);
  EXPECT_EQ(code_of(a), 0);
  co_await sleep_for(2 * ns_per_s);
  a = co_await w.call(RequestCode::VIEW_BROKER_STATS_DATA,
                      {{"statsName", "TOPIC_PUT_NUMS"}, {"statsKey", "T"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_NE(body_text(a).find(R"("statsMinute":{"avgpt":1.0,"sum":5,"tps":)"), std::string::npos)
      << body_text(a);
  a = co_await w.call(RequestCode::VIEW_BROKER_STATS_DATA,
                      {{"statsName", "GROUP_GET_NUMS"}, {"statsKey", "T@g"}});
  EXPECT_NE(body_text(a).find(R"("statsMinute":{"avgpt":5.0,"sum":5,"tps":)"), std::string::npos)
      << body_text(a);
  a = co_await w.call(RequestCode::VIEW_BROKER_STATS_DATA,
                      {{"statsName", "GROUP_GET_NUMS"}, {"statsKey", "T@h"}});
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "The stats <GROUP_GET_NUMS> <T@h> not exist");
  w.broker.offsets.commit("g", "T", 0, 5);
  a = co_await w.call(RequestCode::GET_CONSUME_STATS, {{"consumerGroup", "g"}, {"topic", "T"}});
  auto stats = proto::ConsumeStats::parse(body_text(a));
  EXPECT_TRUE(stats);
  if (stats) EXPECT_GT(stats->consume_tps, 1.0);
}
TEST(BrokerAdmin, StatisticsOfTopicsAndGroups) {
  simulate({statistics});
}

Task<std::unique_ptr<Peer>> waiting_pull(World& w) {
  auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent = co_await peer->send(w.pull_frame("T", w.store->max_offset("T", 0), "*", 20'000));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  co_return peer;
}

// A pull that waited is answered by what is true now.
Task<void> rights_are_taken(World& w) {
  co_await send_some(w, 1);
  auto one = co_await waiting_pull(w);
  auto a = co_await w.peer->call(w.topic_frame("T", "4", {}, "2"));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await send_some(w, 1);
  a = co_await one->next(1);
  EXPECT_EQ(code_of(a), 16) << "the topic may not be read any more";
  co_await one->close();
  a = co_await w.peer->call(w.topic_frame("T", "4"));
  one = co_await waiting_pull(w);
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {},
                      R"({"groupName":"g","consumeEnable":false})");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await send_some(w, 1);
  a = co_await one->next(1);
  EXPECT_EQ(code_of(a), 16) << "the group may not consume any more";
  co_await one->close();
}
TEST(BrokerAdmin, RightsThatAreTakenWhileAPullWaits) {
  simulate({rights_are_taken});
}

Task<std::string> queues_behind(World& w, std::string_view field) {
  auto a = co_await w.call(RequestCode::GET_CONSUME_STATS, {{"consumerGroup", "g"}, {field, "T"}});
  auto stats = proto::ConsumeStats::parse(body_text(a));
  EXPECT_TRUE(stats) << body_text(a);
  std::string out;
  for (const auto& [queue, o] : stats->offset_table)
    if (o.broker_offset > o.consumer_offset) out += queue.topic + std::to_string(queue.queue_id);
  co_return out;
}

// Members that say what they read, and members that do not: consumers of queues that they were given.
Task<void> subscribed_or_not(World& w) {
  co_await send_some(w, 5);
  auto a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {},
                           R"({"groupName":"g","notifyConsumerIdsChangedEnable":false})");
  w.broker.offsets.commit("g", "T", 0, 2);
  const std::string before = R"({"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":)"
                             R"("CONSUME_ACTIVELY","messageModel":"CLUSTERING","consumeFromWhere":)"
                             R"("CONSUME_FROM_LAST_OFFSET","subscriptionDataSet":[)";
  a = co_await w.call(RequestCode::HEART_BEAT, {}, before + "]}]}");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_NE(w.broker.clients.consumers("g"), nullptr);
  std::string behind = co_await queues_behind(w, "topic");
  EXPECT_EQ(behind, "T0") << "who subscribes to nothing reads what it likes";
  a = co_await w.call(RequestCode::GET_BROKER_CONSUME_STATS, {{"isOrder", "false"}});
  EXPECT_NE(body_text(a).find(R"("totalDiff":3)"), std::string::npos) << body_text(a);
  a = co_await w.call(RequestCode::HEART_BEAT, {},
                      before + R"({"topic":"Other","subString":"*","subVersion":1}]}]})");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  behind = co_await queues_behind(w, "topic");
  EXPECT_EQ(behind, "") << "it subscribes to something else";
  behind = co_await queues_behind(w, "topicList");
  EXPECT_EQ(behind, "T0") << "whoever asks by a list wants to know in any case";
}
TEST(BrokerAdmin, ConsumeStatsOfWhoSubscribesToSomethingElse) {
  simulate({subscribed_or_not});
}

Task<void> all_groups(World& w) {
  co_await send_some(w, 5);
  for (std::string_view group : {"g", "h", "i"}) w.broker.groups.find_or_create(group, w.broker.wall_ms());
  w.broker.offsets.commit("g", "T", 0, 2);
  w.broker.offsets.commit("h", "T", 0, 4);
  w.broker.offsets.commit("i", "T", 0, 1);
  w.broker.offsets.note_pulled("h", "T", 0, 5);
  auto a = co_await w.call(RequestCode::GET_BROKER_CONSUME_STATS, {{"isOrder", "false"}});
  const std::string all = body_text(a);
  EXPECT_NE(all.find(R"("totalDiff":8,"totalInflightDiff":1})"), std::string::npos) << all;
  EXPECT_NE(all.find(R"({"g":[{"consumeTps":)"), std::string::npos) << all;
  EXPECT_NE(all.find(R"(:{"brokerOffset":5,"consumerOffset":2,)"), std::string::npos) << all;
  a = co_await w.call(RequestCode::GET_BROKER_CONSUME_STATS, {{"isOrder", "true"}});
  EXPECT_NE(body_text(a).find(R"("totalDiff":0,)"), std::string::npos) << "T is no topic of ordered messages";

  auto correction = [&w](std::string_view group, std::string_view without) {
    return w.call(RequestCode::QUERY_CORRECTION_OFFSET,
                  {{"topic", "T"}, {"compareGroup", group}, {"filterGroups", without}});
  };
  a = co_await correction("h", "");
  EXPECT_EQ(body_text(a), R"({"correctionOffsets":{0:1}})");
  a = co_await correction("h", "x,i");
  EXPECT_EQ(body_text(a), R"({"correctionOffsets":{0:2}})") << "without a group";
  a = co_await correction("i", "i");
  EXPECT_EQ(body_text(a), R"({"correctionOffsets":{0:9223372036854775807}})") << "it is behind all others";
  EXPECT_EQ(w.broker.offsets.query("i", "T", 0), 1) << "the reference deletes it";
}
TEST(BrokerAdmin, StatisticsOfAllGroups) {
  simulate({all_groups});
}

Task<void> status(World& w) {
  auto asked = [&w](std::string_view client) {
    return w.request(RequestCode::INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
                     {{"topic", "T"}, {"group", "g"}, {"clientAddr", client}});
  };
  auto a = co_await w.peer->call(asked(""));
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "No Any Consumer online in the consumer group: [g]");
  auto member = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto mute = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  for (Peer* p : {member.get(), mute.get()}) {
    const std::string heartbeat = R"({"clientID":")" + std::string(p == mute.get() ? "mute" : "c") +
                                  R"(","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[]}]})";
    co_await p->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat));
  }
  co_await sleep_for(2 * ns_per_s);
  Answer told;
  do told = co_await member->next(1);
  while (told);
  co_await w.peer->send(asked(""));
  do told = co_await member->next(1);
  while (told && told->command.code != static_cast<int32_t>(RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT));
  EXPECT_EQ(ext(told, "topic"), "T");
  if (!told) co_return;
  const std::string where = R"({"messageQueueTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}})";
  co_await member->send(sim::request_frame(0, told->command.opaque, {}, where, proto::flag_response));
  a = co_await w.peer->next(4);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  auto body = proto::GetConsumerStatusBody::parse(body_text(a));
  EXPECT_TRUE(body) << body_text(a);
  const proto::MessageQueue queue{"T", "b", 0};
  if (body) {
    EXPECT_EQ(body->consumer_table.size(), 1u) << "who does not answer is left out";
    EXPECT_EQ(body->consumer_table["c"][queue], 7);
  }
  a = co_await w.peer->call(asked("nobody"));
  EXPECT_EQ(body_text(a), R"({"consumerTable":{},"messageQueueTable":{}})");
  co_await member->close();
  co_await mute->close();
}
TEST(BrokerAdmin, WhereConsumersAre) {
  simulate({status});
}

}  // namespace
}  // namespace rmq::broker

// Requests of mqadmin and dashboards through the whole broker, simulated: lists of topics and groups, looks
// into queues, messages consumed on demand, and what is refused with a reason.
#include "broker_world.h"
#include "proto/bodies_admin.h"

namespace rmq::broker {
namespace {

Task<void> topic_list(World& w) {
  auto a = co_await w.call(RequestCode::UPDATE_AND_CREATE_TOPIC_LIST, {},
                           R"({"topicConfigList":[{"topicName":"A","readQueueNums":2,"writeQueueNums":2,)"
                           R"("perm":6,"attributes":{"+message.type":"FIFO"}},{"topicName":"bad name"}]})");
  EXPECT_EQ(code_of(a), 29);
  EXPECT_EQ(remark(a).substr(0, 10), "bad name: ");
  EXPECT_EQ(w.broker.topics.find("A"), nullptr) << "nothing of a refused list";
  constexpr const char* two =
      R"({"topicConfigList":[{"topicName":"A","readQueueNums":2,"writeQueueNums":2,"perm":6,)"
      R"("attributes":{"+message.type":"FIFO"}},{"topicName":"B","readQueueNums":3,"writeQueueNums":3,)"
      R"("perm":6}]})";
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_TOPIC_LIST, {}, two);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  const proto::TopicConfig* t = w.broker.topics.find("A");
  EXPECT_TRUE(t != nullptr && t->attributes.at("message.type") == "FIFO");
  EXPECT_TRUE(w.names.routes().route_data("B", "")) << "the name server knows it when the answer comes";
  // RocketMQ leaves B undone here, because A is as it was.
  a = co_await w.call(
      RequestCode::UPDATE_AND_CREATE_TOPIC_LIST, {},
      R"({"topicConfigList":[{"topicName":"A","readQueueNums":2,"writeQueueNums":2,"perm":6,)"
      R"("attributes":{}},{"topicName":"B","readQueueNums":5,"writeQueueNums":5,"perm":6}]})");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.broker.topics.find("B")->read_queue_nums, 5);
  EXPECT_EQ(w.broker.topics.find("A")->attributes.at("message.type"), "FIFO") << "not mentioned, not changed";
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_TOPIC_LIST, {}, "no list");
  EXPECT_EQ(code_of(a), 29);
}
Task<void> topic_list_kept(World& w) {
  const proto::TopicConfig* t = w.broker.topics.find("B");
  EXPECT_TRUE(t != nullptr && t->read_queue_nums == 5);
  co_return;
}
TEST(BrokerMqadmin, ListsOfTopics) {
  simulate({topic_list, topic_list_kept});
}

Task<void> group_list(World& w) {
  auto a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {},
                           R"({"groupConfigList":[{"groupName":"g1"},{"groupName":"g 2"}]})");
  EXPECT_EQ(code_of(a), 29);
  EXPECT_EQ(w.broker.groups.find("g1"), nullptr);
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {},
                      R"({"groupConfigList":[{"groupName":"g1","retryMaxTimes":2},{"groupName":"g2"}]})");
  EXPECT_EQ(code_of(a), 0) << remark(a);
}
Task<void> group_list_kept(World& w) {
  const auto* g = w.broker.groups.find("g1");
  EXPECT_TRUE(g != nullptr && g->retry_max_times == 2);
  EXPECT_NE(w.broker.groups.find("g2"), nullptr);
  co_return;
}
TEST(BrokerMqadmin, ListsOfGroups) {
  simulate({group_list, group_list_kept});
}

Task<Answer> forbid(World& w, std::string_view group, const char* readable) {
  const Ext::Field third = readable == nullptr ? Ext::Field{} : Ext::Field{"readable", readable};
  const Ext fields{{"group", group}, {"topic", "T"}, third};
  return w.call(RequestCode::UPDATE_AND_GET_GROUP_FORBIDDEN, fields);
}
constexpr const char* heartbeat =
    R"({"clientID":"c1","consumerDataSet":[{"groupName":"g","consumeType":"CONSUME_PASSIVELY",)"
    R"("messageModel":"CLUSTERING","subscriptionDataSet":[{"topic":"T","subString":"a || b",)"
    R"("tagsSet":["a","b"],"codeSet":[97,98],"subVersion":1}]}]})";
// The first one of a group is followed by the news that it has a member.
Task<void> beat(World& w) {
  co_await w.peer->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat));
  auto one = co_await w.peer->next();
  auto other = co_await w.peer->next();
  EXPECT_TRUE(one && other);
}
std::string registered_pull(World& w) {
  return w.request(RequestCode::PULL_MESSAGE, {{"consumerGroup", "g"},
                                               {"topic", "T"},
                                               {"queueId", "0"},
                                               {"queueOffset", "0"},
                                               {"maxMsgNums", "32"},
                                               {"sysFlag", "0"},
                                               {"commitOffset", "0"},
                                               {"suspendTimeoutMillis", "0"},
                                               {"subVersion", "1"}});
}
Task<void> forbidden(World& w) {
  auto a = co_await w.send("T", "m", "TAGS\1a\2");
  EXPECT_EQ(code_of(a), 0);
  a = co_await forbid(w, "g", "false");
  EXPECT_EQ(code_of(a), 26) << "no such group";
  co_await beat(w);
  a = co_await w.peer->call(registered_pull(w));
  EXPECT_EQ(code_of(a), 0);
  a = co_await forbid(w, "g", nullptr);
  EXPECT_EQ(body_text(a), R"({"group":"g","readable":true,"topic":"T"})");
  a = co_await forbid(w, "g", "false");
  EXPECT_EQ(body_text(a), R"({"group":"g","readable":false,"topic":"T"})");
  a = co_await w.peer->call(registered_pull(w));
  EXPECT_EQ(code_of(a), 16);
  EXPECT_EQ(ext(a, "forbiddenType"), "5");
  a = co_await w.pull("T", 0);
  EXPECT_EQ(code_of(a), 0) << "a pull that carries its subscription, as with RocketMQ";
}
Task<void> forbidden_still(World& w) {
  co_await beat(w);
  auto a = co_await w.peer->call(registered_pull(w));
  EXPECT_EQ(code_of(a), 16);
  a = co_await forbid(w, "g", "true");
  EXPECT_EQ(body_text(a), R"({"group":"g","readable":true,"topic":"T"})");
  a = co_await w.peer->call(registered_pull(w));
  EXPECT_EQ(code_of(a), 0);
}
TEST(BrokerMqadmin, AGroupIsForbiddenATopic) {
  simulate({forbidden, forbidden_still});
}

Task<Answer> query_queue(World& w, std::string_view queue, std::string_view index, std::string_view count,
                         std::string_view group = "") {
  const Ext::Field fifth = group.empty() ? Ext::Field{} : Ext::Field{"consumerGroup", group};
  const Ext fields{{"topic", "T"}, {"queueId", queue}, {"index", index}, {"count", count}, fifth};
  return w.call(RequestCode::QUERY_CONSUME_QUEUE, fields);
}
Task<void> queue_units(World& w) {
  for (const char* tags : {"TAGS\1a\2", "TAGS\1c\2", "TAGS\1b\2"}) {
    auto sent = co_await w.send("T", "m", tags);
    EXPECT_EQ(code_of(sent), 0);
  }
  auto a = co_await query_queue(w, "0", "1", "2");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  std::string body = body_text(a);
  EXPECT_NE(body.find(R"("maxQueueIndex":3,"minQueueIndex":0,"queueData":[{"eval":false,"physicOffset":)"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("tagsCode":99},)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("tagsCode":98}])"), std::string::npos) << body;
  a = co_await query_queue(w, "0", "0", "10", "g");
  EXPECT_NE(body_text(a).find(R"("filterData":"g@T is not online!")"), std::string::npos) << body_text(a);
  co_await beat(w);
  a = co_await query_queue(w, "0", "0", "10", "g");
  body = body_text(a);
  EXPECT_NE(body.find(R"("subString":"a || b")"), std::string::npos) << body;
  for (const char* unit : {R"("tagsCode":97)", R"("tagsCode":98)"}) {
    const size_t at = body.find(unit);
    EXPECT_NE(at, std::string::npos) << body;
    EXPECT_EQ(body.substr(body.rfind('{', at), 13), R"({"eval":true,)") << body;
  }
  const size_t other = body.find(R"("tagsCode":99)");
  EXPECT_EQ(body.substr(body.rfind('{', other), 14), R"({"eval":false,)") << body;
  a = co_await query_queue(w, "0", "3", "1");
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(remark(a), "Index 3 of 0@T is not exist!");
  a = co_await query_queue(w, "77", "0", "1");
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "77@T is not exist!");
  a = co_await query_queue(w, "0", "-5", "-1");
  EXPECT_EQ(code_of(a), 0) << "and nothing breaks";
}
TEST(BrokerMqadmin, UnitsOfAQueue) {
  simulate({queue_units});
}

Task<void> time_span(World& w) {
  auto a = co_await w.call(RequestCode::QUERY_CONSUME_TIME_SPAN, {{"topic", "T"}, {"group", "g"}});
  EXPECT_EQ(code_of(a), 17);
  std::vector<int64_t> stored;
  for (int i = 0; i < 3; i++) {
    auto sent = co_await w.send("T", "m");
    EXPECT_EQ(code_of(sent), 0);
    const int64_t ms = co_await w.store->store_time("T", 0, i);
    stored.push_back(ms);
    co_await sleep_for(2 * ns_per_s);
  }
  w.broker.offsets.commit("g", "T", 0, 2);
  a = co_await w.call(RequestCode::QUERY_CONSUME_TIME_SPAN, {{"topic", "T"}, {"group", "g"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  const std::string body = body_text(a);
  const std::string first = body.substr(0, body.find("},{"));
  auto number = [&first](const char* name) {
    const size_t at = first.find(std::string("\"") + name + "\":");
    return at == std::string::npos ? -7 : std::stoll(first.substr(at + std::string_view(name).size() + 3));
  };
  EXPECT_EQ(number("minTimeStamp"), stored[0]) << body;
  EXPECT_EQ(number("maxTimeStamp"), stored[2]) << body;
  EXPECT_EQ(number("consumeTimeStamp"), stored[1]) << body;
  EXPECT_GE(number("delayTime"), 2000) << body;
  EXPECT_LT(number("delayTime"), 4000) << body;
  EXPECT_NE(body.find(R"("messageQueue":{"brokerName":"b","queueId":0,"topic":"T"})"), std::string::npos)
      << body;
}
TEST(BrokerMqadmin, WhenAGroupsMessagesAreFrom) {
  simulate({time_span});
}

Task<void> consume_directly(World& w) {
  auto sent = co_await w.send("T", "the one", "KEYS\1k\2");
  const std::string id = ext(sent, "msgId");
  const Ext fields{{"consumerGroup", "g"}, {"clientId", "c1"}, {"msgId", id}, {"topic", "T"}};
  auto a = co_await w.call(RequestCode::CONSUME_MESSAGE_DIRECTLY, fields);
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "The Consumer <g> <c1> not online");
  auto consumer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await consumer->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat));
  for (int i = 0; i < 2; i++) a = co_await consumer->next();
  co_await w.peer->send(w.request(RequestCode::CONSUME_MESSAGE_DIRECTLY, fields));
  auto asked = co_await consumer->next();
  EXPECT_EQ(code_of(asked), 309);
  EXPECT_EQ(ext(asked, "brokerName"), "b");
  EXPECT_EQ(ext(asked, "topicSysFlag"), "0");
  EXPECT_EQ(ext(asked, "groupSysFlag"), "0");
  EXPECT_EQ(bodies(asked), "the one");
  co_await consumer->send(sim::request_frame(0, asked->command.opaque, {},
                                             R"({"consumeResult":"CR_SUCCESS"})", proto::flag_response));
  a = co_await w.peer->next();
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(body_text(a), R"({"consumeResult":"CR_SUCCESS"})") << "as the client said it";
  for (const char* wrong : {"", "xyz", "0A0000010000277F00000000000F4240"}) {
    a = co_await w.call(RequestCode::CONSUME_MESSAGE_DIRECTLY,
                        {{"consumerGroup", "g"}, {"clientId", "c1"}, {"msgId", wrong}});
    EXPECT_NE(code_of(a), 0) << wrong;
  }
  co_await w.peer->send(w.request(RequestCode::GET_CONSUMER_RUNNING_INFO,
                                  {{"consumerGroup", "g"}, {"clientId", "c1"}, {"jstackEnable", "true"}}));
  asked = co_await consumer->next();
  EXPECT_EQ(code_of(asked), 307);
  EXPECT_EQ(ext(asked, "jstackEnable"), "true");
  co_await consumer->send(
      sim::request_frame(0, asked->command.opaque, {}, R"({"jstack":"main"})", proto::flag_response));
  a = co_await w.peer->next();
  EXPECT_EQ(body_text(a), R"({"jstack":"main"})");
  co_await consumer->close();
}
TEST(BrokerMqadmin, AMemberIsAskedToConsumeOneMessage) {
  simulate({consume_directly});
}

Task<void> replicas(World& w) {
  co_await w.send("T", "m");
  auto a = co_await w.call(RequestCode::GET_BROKER_HA_STATUS, {});
  EXPECT_EQ(code_of(a), 0);
  EXPECT_NE(body_text(a).find(R"("haConnectionInfo":[],"inSyncSlaveNums":0,"master":true,)"
                              R"("masterCommitLogMaxOffset":)" +
                              std::to_string(w.store->max_physical_offset())),
            std::string::npos)
      << body_text(a);
}
TEST(BrokerMqadmin, StatusOfAMasterWithoutReplicas) {
  simulate({replicas});
}

Task<void> reasons(World& w) {
  const std::pair<RequestCode, const char*> rows[] = {
      {RequestCode::AUTH_CREATE_USER, "no users and ACLs"},
      {RequestCode::AUTH_LIST_ACL, "no users and ACLs"},
      {RequestCode::UPDATE_AND_CREATE_STATIC_TOPIC, "no static topics"},
      {RequestCode::EXPORT_ROCKSDB_CONFIG_TO_JSON, "nothing in RocksDB"},
      {RequestCode::CONTROLLER_ELECT_MASTER, "no controller"},
      {RequestCode::RESET_MASTER_FLUSH_OFFSET, "no replicas"},
      {RequestCode::ADD_BROKER, "no broker container"},
      {RequestCode::GET_COLD_DATA_FLOW_CTR_INFO, "bounds reads of old messages"},
      {RequestCode::SET_COMMITLOG_READ_MODE, "past the page cache"},
      {RequestCode::SWITCH_TIMER_ENGINE, "one timer engine"},
      {RequestCode::GET_BROKER_LITE_INFO, "no lite topics"},
  };
  for (const auto& [code, reason] : rows) {
    auto a = co_await w.call(code, {});
    EXPECT_EQ(code_of(a), 3);
    EXPECT_NE(remark(a).find(reason), std::string::npos) << remark(a);
  }
  auto a = co_await w.call(static_cast<RequestCode>(12'345), {});
  EXPECT_EQ(remark(a), " request type 12345 not supported");
}
TEST(BrokerMqadmin, WhatIsNotServedHasAReason) {
  simulate({reasons});
}

}  // namespace
}  // namespace rmq::broker

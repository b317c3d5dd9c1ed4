// Bodies as clients of many languages send them, and as RocketMQ writes them.
#include <gtest/gtest.h>

#include "proto/bodies_admin.h"
#include "proto/bodies_client.h"
#include "proto/bodies_config.h"
#include "proto/bodies_export.h"
#include "proto/bodies_route.h"
#include "proto/bodies_running.h"
#include "proto/bodies_stats.h"
#include "proto/codes.h"

namespace rmq::proto {

TEST(Heartbeat, AsJavaWritesIt) {
  auto h = HeartbeatData::parse(
      R"({"clientID":"10.0.0.1@1#2","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",)"
      R"("consumeType":"CONSUME_ACTIVELY","groupName":"g","messageModel":"BROADCASTING",)"
      R"("subscriptionDataSet":[)"
      R"({"classFilterMode":false,"codeSet":[2598919],"expressionType":"TAG","subString":"TagA",)"
      R"("subVersion":1700000000000,"tagsSet":["TagA"],"topic":"T"}],"unitMode":false}],)"
      R"("heartbeatFingerprint":7,)"
      R"("producerDataSet":[{"groupName":"p"}],"withoutSub":true})");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->client_id, "10.0.0.1@1#2");
  EXPECT_EQ(h->producer_groups, std::vector<std::string>{"p"});
  ASSERT_EQ(h->consumers.size(), 1u);
  const ConsumerData& c = h->consumers[0];
  EXPECT_EQ(c.consume_type, ConsumeType::CONSUME_ACTIVELY);
  EXPECT_EQ(c.message_model, MessageModel::BROADCASTING);
  EXPECT_EQ(c.consume_from_where, ConsumeFromWhere::CONSUME_FROM_FIRST_OFFSET);
  ASSERT_EQ(c.subscription_data_set.size(), 1u);
  EXPECT_EQ(c.subscription_data_set[0], [] {
    auto s = *SubscriptionData::build("T", "TagA");
    s.sub_version = 1'700'000'000'000;
    return s;
  }());
  EXPECT_EQ(h->heartbeat_fingerprint, 7);
  EXPECT_TRUE(h->without_sub);
  EXPECT_EQ(HeartbeatData::parse(h->to_json())->to_json(), h->to_json());
}

TEST(Heartbeat, AsOthersWriteIt) {
  // C++: ordinals, quoted version, trailing newline. Go: code set as strings, no sets, nanoseconds.
  auto h = HeartbeatData::parse(
      "{\"clientID\":\"c\",\"producerDataSet\":null,\"consumerDataSet\":[{\"groupName\":\"g\","
      "\"consumeType\":1,"
      "\"messageModel\":0,\"consumeFromWhere\":4,\"subscriptionDataSet\":[{\"topic\":\"T\",\"subString\":\"a "
      "|| b\","
      "\"codeSet\":[\"98\",\"97\"],\"tagsSet\":[\"b\",\"a\"],\"subVersion\":\"1700000000000000000\"},"
      "{\"topic\":\"U\",\"subString\":\"*\"}],\"unknown\":{}}]}\n");
  ASSERT_TRUE(h);
  const ConsumerData& c = h->consumers.at(0);
  EXPECT_EQ(c.consume_type, ConsumeType::CONSUME_PASSIVELY);
  EXPECT_EQ(c.message_model, MessageModel::BROADCASTING);
  EXPECT_EQ(c.consume_from_where, ConsumeFromWhere::CONSUME_FROM_FIRST_OFFSET);
  EXPECT_EQ(c.subscription_data_set[0].code_set, (std::vector<int32_t>{97, 98}));
  EXPECT_EQ(c.subscription_data_set[0].sub_version, 1'700'000'000'000'000'000);
  EXPECT_TRUE(c.subscription_data_set[0].is_tag_type());
  EXPECT_TRUE(c.subscription_data_set[1].tags_set.empty());
  EXPECT_FALSE(HeartbeatData::parse("[]"));
  EXPECT_FALSE(HeartbeatData::parse(""));
  EXPECT_FALSE(HeartbeatData::parse(
      R"({"clientID":"c","consumerDataSet":[{"subscriptionDataSet":[{"codeSet":["x"]}]}]})"));
}

TEST(Heartbeat, ReferencesOfFastjson1) {
  auto h = HeartbeatData::parse(
      R"({"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T",)"
      R"("subString":"x"}]},)"
      R"({"groupName":"h",)"
      R"("subscriptionDataSet":[{"$ref":"$.consumerDataSet[0].subscriptionDataSet[0]"}]}]})");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->consumers.at(1).subscription_data_set.at(0).topic, "T");
}

TEST(Subscription, Build) {
  auto all = SubscriptionData::build("T", "");
  EXPECT_EQ(all->sub_string, "*");
  EXPECT_TRUE(all->tags_set.empty());
  auto two = SubscriptionData::build("T", " b || a||");
  EXPECT_EQ(two->tags_set, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(two->code_set, (std::vector<int32_t>{97, 98}));
  EXPECT_EQ(two->sub_string, " b || a||");
  EXPECT_FALSE(SubscriptionData::build("T", "||"));
  EXPECT_FALSE(SubscriptionData::build("T", "||||"));
  auto nothing = SubscriptionData::build("T", "|| ||");  // matches nothing, as in the reference
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->tags_set.empty());
  EXPECT_NE(nothing->sub_string, "*");
  EXPECT_EQ(SubscriptionData::build("T", " * ")->tags_set, std::vector<std::string>{"*"});
  auto sql = SubscriptionData::build("T", "a > 1", "SQL92");
  EXPECT_FALSE(sql->is_tag_type());
  EXPECT_TRUE(sql->tags_set.empty());
  EXPECT_FALSE(SubscriptionData::build("T", "", "SQL92"));
}

TEST(Bodies, QueueTablesHaveBareObjectKeys) {
  ResetOffsetBody b;
  b.offset_table[{"T", "broker-a", 1}] = 5;
  b.offset_table[{"T", "broker-a", 0}] = 4;
  std::string bare =
      R"({"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:4,{"brokerName":"broker-a",)"
      R"("queueId":1,"topic":"T"}:5}})";
  EXPECT_EQ(b.to_json(), bare);
  EXPECT_EQ(b.to_json(JsonStyle::strict), bare);
  EXPECT_EQ(ResetOffsetBody::parse(bare)->offset_table, b.offset_table);
  EXPECT_EQ(ResetOffsetBody::parse(
                R"({"offsetTable":{"{\"brokerName\":\"broker-a\",\"queueId\":0,\"topic\":\"T\"}":4}})")
                ->offset_table.size(),
            1u);
  EXPECT_EQ(ResetOffsetBody::parse(b.to_json_for_cpp())->offset_table, b.offset_table);
  EXPECT_FALSE(ResetOffsetBody::parse(R"({"offsetTable":{"x":4}})"));
}

TEST(Bodies, LocksAndLists) {
  auto r = LockBatchRequestBody::parse(
      R"({"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"b","queueId":3,"topic":"T"}],)"
      R"("onlyThisBroker":false})");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->mq_set.at(0), (MessageQueue{"T", "b", 3}));
  LockBatchResponseBody a{r->mq_set};
  EXPECT_EQ(a.to_json(), R"({"lockOKMQSet":[{"brokerName":"b","queueId":3,"topic":"T"}]})");
  EXPECT_EQ(LockBatchResponseBody{}.to_json(), R"({"lockOKMQSet":[]})");
  EXPECT_EQ((ConsumerListBody{{"x", "y"}}.to_json()), R"({"consumerIdList":["x","y"]})");
  EXPECT_EQ(ConsumerListBody::parse(R"({"consumerIdList":["x"]})")->consumer_id_list.size(), 1u);
}

TEST(Bodies, Route) {
  TopicRouteData r;
  r.queue_datas.push_back({"broker-a", 4, 4, 6, 0});
  r.broker_datas.push_back(
      {"DefaultCluster", "broker-a", {{0, "10.0.0.1:10911"}, {1, "10.0.0.2:10911"}}, {}, false});
  EXPECT_EQ(
      r.to_json(JsonStyle::fastjson),
      R"({"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a",)"
      R"("cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[)"
      R"({"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]})");
  EXPECT_NE(r.to_json(JsonStyle::strict).find(R"({"0":"10.0.0.1:10911","1":"10.0.0.2:10911"})"),
            std::string::npos);
  EXPECT_EQ(*TopicRouteData::parse(r.to_json(JsonStyle::fastjson)), r);
  EXPECT_EQ(*TopicRouteData::parse(r.to_json(JsonStyle::strict)), r);
}

TEST(Bodies, ClusterAndLists) {
  ClusterInfo c;
  c.broker_addr_table["b"] = {"c", "b", {{0, "h:1"}}, {}, false};
  c.cluster_addr_table["c"] = {"b"};
  EXPECT_EQ(c.to_json(), R"({"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1"},"brokerName":"b","cluster":"c",)"
                         R"("enableActingMaster":false}},)"
                         R"("clusterAddrTable":{"c":["b"]}})");
  EXPECT_EQ(ClusterInfo::parse(c.to_json())->broker_addr_table, c.broker_addr_table);
  EXPECT_EQ((TopicList{{"a", "b"}, {}}.to_json()), R"({"topicList":["a","b"]})");
  BrokerMemberGroup g{"c", "b", {{0, "h:1"}}};
  EXPECT_EQ(g.to_response_json(),
            R"({"brokerMemberGroup":{"brokerAddrs":{0:"h:1"},"brokerName":"b","cluster":"c"}})");
  EXPECT_EQ(BrokerMemberGroup::parse_response(g.to_response_json())->broker_addrs, g.broker_addrs);
}

TEST(Bodies, TopicConfig) {
  TopicConfig c;
  c.topic_name = "T";
  c.attributes["+message.type"] = "FIFO";
  EXPECT_EQ(
      c.to_json(),
      R"({"attributes":{"+message.type":"FIFO"},"order":false,"perm":6,"readQueueNums":16,"topicFilterType":)"
      R"("SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":16})");
  EXPECT_EQ(*TopicConfig::parse(c.to_json()), c);
  EXPECT_EQ(c.to_line(), R"(T 16 16 6 SINGLE_TAG {"+message.type":"FIFO"})");
  EXPECT_EQ(*TopicConfig::parse_line(c.to_line()), c);
  EXPECT_TRUE(TopicConfig::parse_line("T 1 2 6 MULTI_TAG"));  // 4.x: no attributes
  for (const char* bad : {"", "T", "T 1", "T 1 2 x SINGLE_TAG {}", "T 1 2 6 SINGLE_TAG [", "T 1 2 6"}) {
    EXPECT_FALSE(TopicConfig::parse_line(bad)) << bad;
  }
}

static TopicConfigSerializeWrapper some_topics() {
  TopicConfigSerializeWrapper w;
  w.data_version = {0, 1'700'000'000'000, 5};
  for (const char* name : {"T", "U"}) {
    TopicConfig c;
    c.topic_name = name;
    c.read_queue_nums = 4;
    w.topic_config_table[name] = c;
  }
  return w;
}

TEST(Bodies, TopicFiles) {
  auto w = some_topics();
  EXPECT_EQ(TopicConfigSerializeWrapper::parse(w.to_json(JsonStyle::pretty))->topic_config_table,
            w.topic_config_table);
  EXPECT_TRUE(w.to_json(JsonStyle::pretty).starts_with("{\n\t\"dataVersion\":{\n\t\t\"counter\":5,\n"));
  EXPECT_EQ(TopicConfigSerializeWrapper::parse(w.to_json())->data_version, w.data_version);
}

TEST(Bodies, RegisterBroker) {
  RegisterBrokerBody b;
  b.topic_config_wrapper = some_topics();
  b.topic_config_wrapper.mapping_data_version.emplace();
  b.topic_config_wrapper.topic_queue_mapping_info_map = R"({"S":{"bname":"b","topic":"S","totalQueues":2}})";
  b.filter_server_list = {"f:1"};
  std::string bytes = *b.to_compressed();
  for (auto parsed : {RegisterBrokerBody::parse_any(bytes, true, 513),
                      RegisterBrokerBody::parse_any(b.to_json(), false, 513)}) {
    ASSERT_TRUE(parsed) << parsed.error().where;
    EXPECT_EQ(parsed->topic_config_wrapper.topic_config_table, b.topic_config_wrapper.topic_config_table);
    EXPECT_EQ(parsed->topic_config_wrapper.data_version, b.topic_config_wrapper.data_version);
    EXPECT_EQ(parsed->topic_config_wrapper.topic_queue_mapping_info_map,
              b.topic_config_wrapper.topic_queue_mapping_info_map);
    EXPECT_EQ(parsed->filter_server_list, b.filter_server_list);
  }
  EXPECT_EQ(
      RegisterBrokerBody::parse_any(bytes, true, 401)->topic_config_wrapper.topic_queue_mapping_info_map, "");
  EXPECT_EQ(RegisterBrokerBody::parse_any(some_topics().to_json(), false, 30)
                ->topic_config_wrapper.topic_config_table.size(),
            2u);
  EXPECT_TRUE(RegisterBrokerBody::parse_any("", true, 513));
  for (size_t n = 1; n < bytes.size(); n += 3)
    EXPECT_FALSE(RegisterBrokerBody::parse_compressed(bytes.substr(0, n), 513));
  EXPECT_FALSE(RegisterBrokerBody::parse_compressed("junk", 513));
}

TEST(Bodies, SubscriptionGroup) {
  SubscriptionGroupConfig c;
  c.group_name = "g";
  EXPECT_EQ(*SubscriptionGroupConfig::parse(c.to_json()), c);
  c.group_retry_policy.exponential = true;
  c.group_retry_policy.exponential_retry_policy.emplace();
  c.group_retry_policy.customized_next_ms = {1000, 2000};
  c.subscription_data_set.emplace().push_back({"T", "TAG", "*", 3});
  c.retry_max_times = 3;
  EXPECT_EQ(*SubscriptionGroupConfig::parse(c.to_json()), c);
  SubscriptionGroupWrapper w;
  w.subscription_group_table["g"] = c;
  w.forbidden_table["g"]["T"] = 2;
  auto back = SubscriptionGroupWrapper::parse(w.to_json(JsonStyle::pretty));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->subscription_group_table, w.subscription_group_table);
  EXPECT_EQ(back->forbidden_table, w.forbidden_table);
}

TEST(Bodies, OffsetsHaveBareNumbersAsKeys) {
  ConsumerOffsetWrapper w;
  w.offset_table["T@g"] = {{0, 5}, {3, 7}};
  EXPECT_EQ(
      w.to_json(),
      R"({"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"offsetTable":{"T@g":{0:5,3:7}}})");
  EXPECT_EQ(ConsumerOffsetWrapper::parse(w.to_json(JsonStyle::pretty))->offset_table, w.offset_table);
  EXPECT_EQ(ConsumerOffsetWrapper::parse(w.to_json(JsonStyle::strict))->offset_table, w.offset_table);
  DelayOffsetWrapper d;
  d.offset_table = {{1, 10}, {18, 5}};
  EXPECT_EQ(DelayOffsetWrapper::parse(d.to_json())->offset_table, d.offset_table);
  EXPECT_FALSE(DelayOffsetWrapper::parse(R"({"offsetTable":{"x":1}})"));
}

TEST(Bodies, KeyValues) {
  KVTable t{{{"k", "v"}}};
  EXPECT_EQ(t.to_json(), R"({"table":{"k":"v"}})");
  EXPECT_EQ(KVTable::parse(t.to_json())->table, t.table);
  KVConfigWrapper c;
  c.config_table["ORDER_TOPIC_CONFIG"]["T"] = "broker-a:4";
  EXPECT_EQ(KVConfigWrapper::parse(c.to_json(JsonStyle::pretty))->config_table, c.config_table);
}

TEST(Bodies, Stats) {
  TopicStatsTable t;
  t.offset_table[{"T", "b", 0}] = {1, 5, 9};
  EXPECT_EQ(
      t.to_json(),
      R"({"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"lastUpdateTimestamp":9,"maxOffset":5,)"
      R"("minOffset":1}},"topicPutTps":0.0})");
  EXPECT_EQ(TopicStatsTable::parse(t.to_json())->offset_table, t.offset_table);
  ConsumeStats s;
  s.consume_tps = 1.5;
  s.offset_table[{"T", "b", 0}] = {10, 5, 6, 7};
  auto back = ConsumeStats::parse(s.to_json());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->offset_table, s.offset_table);
  EXPECT_EQ(back->consume_tps, 1.5);
}

TEST(Bodies, Connections) {
  ConsumerConnection c;
  c.connection_set.push_back({"id", "1.2.3.4:5", "JAVA", 513});
  c.subscription_table["T"] = *SubscriptionData::build("T", "a");
  c.message_model = MessageModel::BROADCASTING;
  auto back = ConsumerConnection::parse(c.to_json());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->connection_set, c.connection_set);
  EXPECT_EQ(back->subscription_table, c.subscription_table);
  EXPECT_EQ(back->message_model, c.message_model);
  ProducerConnection p{c.connection_set};
  EXPECT_EQ(
      p.to_json(),
      R"({"connectionSet":[{"clientAddr":"1.2.3.4:5","clientId":"id","language":"JAVA","version":513}]})");
  EXPECT_EQ(ProducerConnection::parse(p.to_json())->connection_set, c.connection_set);
}

TEST(Bodies, WhatAConsumerTellsOfItself) {
  auto info = ConsumerRunningInfo::parse(
      R"({"jstack":"main\n  at X","mqPopTable":{},"mqTable":{{"brokerName":"b","queueId":1,"topic":"T"}:)"
      R"({"cachedMsgCount":3,"cachedMsgSizeInMiB":2,"commitOffset":7,"droped":true,"lastPullTimestamp":11,)"
      R"("locked":true}},"properties":{"PROP_CLIENT_VERSION":"V5_5_0"},)"
      R"("statusTable":{"T":{"consumeOKTPS":1.5,)"
      R"("consumeFailedMsgs":4}},"subscriptionSet":[{"subString":"a","topic":"T"}],"userConsumerInfo":{}})");
  ASSERT_TRUE(info);
  const ProcessQueueInfo& q = info->mq_table.at({"T", "b", 1});
  EXPECT_EQ(q.cached_msg_count, 3);
  EXPECT_EQ(q.commit_offset, 7);
  EXPECT_TRUE(q.dropped && q.locked);
  EXPECT_EQ(info->properties.at("PROP_CLIENT_VERSION"), "V5_5_0");
  EXPECT_EQ(info->status_table.at("T").consume_ok_tps, 1.5);
  EXPECT_EQ(info->status_table.at("T").consume_failed_msgs, 4);
  EXPECT_EQ(info->subscription_set.at(0).sub_string, "a");
  EXPECT_EQ(info->jstack, "main\n  at X");
  auto result = ConsumeMessageDirectlyResult::parse(
      R"({"autoCommit":true,"consumeResult":"CR_THROW_EXCEPTION","order":false,"remark":"boom",)"
      R"("spentTimeMills":5})");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->consume_result, "CR_THROW_EXCEPTION");
  EXPECT_EQ(result->remark, "boom");
  EXPECT_EQ(result->spent_time_ms, 5);
  auto producers =
      ProducerTableInfo::parse(R"({"data":{"g":[{"clientId":"c","language":"JAVA","lastUpdateTimestamp":9,)"
                               R"("remoteIP":"1.2.3.4:5","version":513}]}})");
  ASSERT_TRUE(producers);
  EXPECT_EQ(producers->data.at("g").at(0).remote_ip, "1.2.3.4:5");
  EXPECT_EQ(producers->to_json(), ProducerTableInfo::parse(producers->to_json())->to_json());
}

// What brokers answer to tools, read by ours: what is written is what is read, and more than ours write.
TEST(AnswersForTools, AreReadAsTheyAreWritten) {
  ConsumeStatsList lag;
  lag.broker_addr = "h:1";
  lag.total_diff = 12;
  ConsumeStats of_group;
  of_group.offset_table[{"T", "b", 3}] = {10, 4, 6, 1700};
  lag.consume_stats_list.emplace_back()["g"].push_back(of_group);
  auto read = ConsumeStatsList::parse(lag.to_json());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_json(), lag.to_json());
  EXPECT_EQ(read->consume_stats_list[0]["g"][0].offset_table.begin()->second.consumer_offset, 4);
  BrokerStatsData rates;
  rates.minute = {60, 1.5, 2};
  rates.day = {86'400, 1, 3};
  auto rates_read = BrokerStatsData::parse(rates.to_json());
  ASSERT_TRUE(rates_read);
  EXPECT_EQ(rates_read->to_json(), rates.to_json());
  QueryConsumeQueueResponseBody units;
  units.queue_data = {{1000, 200, -5, true, ""}, {1200, 300, 7, false, "torn"}};
  units.min_queue_index = 3;
  units.max_queue_index = 9;
  units.filter_data = "none";
  auto units_read = QueryConsumeQueueResponseBody::parse(units.to_json());
  ASSERT_TRUE(units_read);
  EXPECT_EQ(units_read->to_json(), units.to_json());
  for (auto json :
       {"[]", "{", R"({"consumeStatsList":{}})", R"({"queueData":1})", R"({"haConnectionInfo":1})"})
    EXPECT_FALSE(ConsumeStatsList::parse(json) && QueryConsumeQueueResponseBody::parse(json) &&
                 HARuntimeInfo::parse(json))
        << json;
}

TEST(AnswersForTools, ReplicasOfAMasterAndOfOneOfThem) {
  auto master = HARuntimeInfo::parse(
      R"({"haClientRuntimeInfo":{"activated":false},"haConnectionInfo":[{"addr":"10.0.0.2:4711","diff":128,)"
      R"("inSync":true,"slaveAckOffset":900,"transferFromWhere":1000,"transferredByteInSecond":77}],)"
      R"("inSyncSlaveNums":1,"master":true,"masterCommitLogMaxOffset":1028})");
  ASSERT_TRUE(master);
  ASSERT_EQ(master->ha_connection_info.size(), 1u);
  EXPECT_EQ(master->ha_connection_info[0].slave_ack_offset, 900);
  EXPECT_TRUE(master->ha_connection_info[0].in_sync);
  EXPECT_EQ(master->master_commit_log_max_offset, 1028);
  auto replica = HARuntimeInfo::parse(
      R"({"haClientRuntimeInfo":{"masterAddr":"10.0.0.1:10912","maxOffset":900,"masterFlushOffset":1028},)"
      R"("master":false})");
  ASSERT_TRUE(replica);
  EXPECT_FALSE(replica->master);
  EXPECT_EQ(replica->ha_client_runtime_info.master_addr, "10.0.0.1:10912");
  HARuntimeInfo none;
  none.master_commit_log_max_offset = 5;
  EXPECT_EQ(HARuntimeInfo::parse(none.to_json())->to_json(), none.to_json());
}

TEST(MetadataExport, BrokersAndTheirSums) {
  MetadataTables a, b;
  a.topic_config_table["T"].topic_name = "T";
  a.topic_config_table["T"].read_queue_nums = 4;
  a.subscription_group_table["g"].group_name = "g";
  b = a;
  b.topic_config_table["T"].read_queue_nums = 6;
  b.topic_config_table["U"].topic_name = "U";
  MetadataExport e;
  e.export_time_ms = 17;
  e.add("a", a);
  e.add("b", b);
  EXPECT_EQ(e.all.topic_config_table["T"].read_queue_nums, 10) << "as mqadmin's: the sum";
  auto read = MetadataExport::parse(e.to_json());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->export_time_ms, 17);
  EXPECT_EQ(read->brokers["a"].topic_config_table, a.topic_config_table);
  EXPECT_EQ(read->brokers["b"].subscription_group_table, b.subscription_group_table);
  EXPECT_EQ(read->to_json(), e.to_json());
  // mqadmin's own, and a broker's topics.json.
  read = MetadataExport::parse(
      R"({"topicConfigTable":{"T":{"topicName":"T","readQueueNums":3}},"subscriptionGroupTable":{},)"
      R"("exportTime":1})");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->brokers.empty());
  EXPECT_EQ(read->all.topic_config_table["T"].read_queue_nums, 3);
  read = MetadataExport::parse(R"({"dataVersion":{"counter":1},"topicConfigTable":{"T":{"topicName":"T"}}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->all.topic_config_table.size(), 1u);
  EXPECT_FALSE(MetadataExport::parse(R"({"brokers":[]})"));
  EXPECT_FALSE(MetadataExport::parse(R"({"brokers":{"a":{"topicConfigTable":7}}})"));
}

}  // namespace rmq::proto

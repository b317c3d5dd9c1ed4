// Our bytes against those of RocketMQ 5.5.0's own classes (golden/golden.txt, made by golden/Golden.java).
// What has one order only must be the same byte for byte; the others are decoded and compared. With --print
// this program writes what we encode, for Golden.java to read.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "proto/batch.h"
#include "proto/bodies_client.h"
#include "proto/bodies_config.h"
#include "proto/bodies_route.h"
#include "proto/bodies_stats.h"
#include "proto/command_table.h"
#include "proto/message_id.h"
#include "proto/properties.h"

namespace rmq::proto {

using Table = std::map<std::string, std::string>;

static constexpr std::string_view nasty = "q\"b\\s\x01\x02\n\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80";
static constexpr std::string_view send_properties =
    "KEYS\x01k1 k2\x02TAGS\x01q\"b\\s\n\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\x02";

static const Table& golden() {
  static const Table table = [] {
    Table t;
    std::ifstream in(RMQ_GOLDEN_FILE);
    for (std::string line; std::getline(in, line);) {
      size_t tab = line.find('\t');
      std::string bytes;
      for (size_t i = tab + 1; i + 1 < line.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
      }
      t[line.substr(0, tab)] = bytes;
    }
    return t;
  }();
  return table;
}

// ------------------------------------------------------------------------------------------ what we make

static const MessageQueue queue{"T", "broker-a", 0};

static void make_commands(Table& t) {
  for (SerializeType type : {SerializeType::json, SerializeType::rocketmq}) {
    std::string suffix = type == SerializeType::json ? "JSON" : "ROCKETMQ";
    SendMessageV2::append_request(t["request " + suffix], 77,
                                  {.producer_group = "pg",
                                   .topic = "TopicTest",
                                   .default_topic = "TBW102",
                                   .default_topic_queue_nums = 4,
                                   .queue_id = 3,
                                   .born_timestamp = 1'700'000'000'000,
                                   .flag = 7,
                                   .properties = send_properties,
                                   .max_reconsume_times = 16,
                                   .bname = "broker-a"},
                                  "the body", 0, type);
    std::string remark = "NO " + std::string(nasty);
    RemotingCommand request;
    request.opaque = INT32_MIN;
    request.serialize_type = type;
    PullMessage::append_answer(t["response " + suffix], request, ResponseCode::PULL_NOT_FOUND,
                               {.next_begin_offset = 12, .min_offset = -1, .max_offset = INT64_MAX}, remark);
  }
}

static RecordFields fields(const char* born, const char* store, std::string_view topic) {
  RecordFields f;
  f.topic = topic;
  f.body = as_bytes(std::string_view("hello"));
  f.properties = "KEYS\x01k1 k2\x02TAGS\x01TagA\x02";
  f.queue_id = 3;
  f.flag = 7;
  f.queue_offset = 11;
  f.physical_offset = 0x123456789a;
  f.born_timestamp_ms = 1'700'000'000'000;
  f.born_host = *Host::parse(born);
  f.store_timestamp_ms = 1'700'000'000'005;
  f.store_host = *Host::parse(store);
  f.reconsume_times = 2;
  f.prepared_transaction_offset = 99;
  return f;
}

static std::string record(const RecordFields& f) {
  std::string s(record_size(f), '\0');
  encode_record(f, {reinterpret_cast<std::byte*>(s.data()), s.size()});
  return s;
}

static void make_records(Table& t) {
  t["record v4"] = record(fields("10.1.2.3:40000", "127.0.0.1:10911", "TopicTest"));
  t["record v6"] = record(fields("[2001:db8::1]:40000", "[::1]:10911", "TopicTest"));
  std::string long_topic = "%RETRY%" + std::string(200, 'g');
  t["record long"] = record(fields("10.1.2.3:40000", "127.0.0.1:10911", long_topic));
  for (int i = 0; i < 2; ++i) {
    std::string n = std::to_string(i), properties;
    append_property(properties, "KEYS", "k" + n);
    append_batch_message(t["batch"], i, as_bytes("body" + n), properties);
  }
  t["offset id"] = make_offset_id(*Host::parse("127.0.0.1:10911"), 0x1234);
  t["offset id v6"] = make_offset_id(*Host::parse("[2001:db8::7]:1"), INT64_MAX);
}

static SubscriptionData subscription() {
  SubscriptionData s = *SubscriptionData::build("T", "TagA || TagB");
  s.sub_version = 1'700'000'000'000;
  return s;
}

static TopicConfigSerializeWrapper topics(std::initializer_list<const char*> names) {
  TopicConfigSerializeWrapper w;
  w.data_version = {2, 1'700'000'000'000, 5};
  for (const char* name : names) {
    TopicConfig& c = w.topic_config_table[name];
    c.topic_name = name;
    c.read_queue_nums = 4;
    c.write_queue_nums = 8;
    c.attributes["+message.type"] = "FIFO";
  }
  return w;
}

static RegisterBrokerBody registration() {
  RegisterBrokerBody b;
  b.topic_config_wrapper = topics({"T", "U"});
  b.topic_config_wrapper.mapping_data_version = DataVersion{0, 1'700'000'000'001, 0};
  b.topic_config_wrapper.topic_queue_mapping_info_map =
      R"({"S":{"bname":"broker-a","currIdMap":{},"dirty":false,"epoch":1,"scope":"__global__","topic":"S",)"
      R"("totalQueues":2}})";
  b.filter_server_list = {"f:1"};
  return b;
}

static void make_routes(Table& t) {
  BrokerData broker{"DefaultCluster", "broker-a", {{0, "10.0.0.1:10911"}, {1, "10.0.0.2:10911"}}, {}, false};
  TopicRouteData route;
  route.queue_datas.push_back({"broker-a", 4, 8, 6, 0});
  route.broker_datas.push_back(broker);
  t["route"] = route.to_json(JsonStyle::fastjson);
  t["route strict"] = route.to_json(JsonStyle::strict);
  ClusterInfo cluster;
  cluster.broker_addr_table["broker-a"] = broker;
  cluster.cluster_addr_table["DefaultCluster"] = {"broker-a"};
  t["cluster"] = cluster.to_json();
  t["topic list"] = TopicList{{"T"}, {}}.to_json();
  t["register plain"] = registration().to_json();
  t["register compressed"] = *registration().to_compressed();
}

static void make_configuration(Table& t) {
  SubscriptionGroupConfig group;
  group.group_name = "g";
  t["group"] = group.to_json();
  SubscriptionGroupWrapper groups;
  groups.data_version = {2, 1'700'000'000'000, 5};
  groups.subscription_group_table["g"] = group;
  t["groups"] = groups.to_json();
  t["topics"] = topics({"T"}).to_json();
  t["topics pretty"] = topics({"T"}).to_json(JsonStyle::pretty);
  KVTable kv;
  kv.table["k"] = "v" + std::string(nasty);
  t["kv"] = kv.to_json();
}

static void make_client_bodies(Table& t) {
  HeartbeatData h;
  h.client_id = "10.0.0.1@1#2";
  h.producer_groups = {"pg"};
  ConsumerData& c = h.consumers.emplace_back();
  c.group_name = "cg";
  c.consume_from_where = ConsumeFromWhere::CONSUME_FROM_FIRST_OFFSET;
  c.subscription_data_set.push_back(subscription());
  t["heartbeat"] = h.to_json();
  t["lock"] = LockBatchRequestBody{"g", "c", false, {queue}}.to_json();
  t["locked"] = LockBatchResponseBody{{queue}}.to_json();
  t["consumer list"] = ConsumerListBody{{"a", "b"}}.to_json();
  t["reset offset"] = ResetOffsetBody{{{queue, 4}}}.to_json();
  t["consumer status"] = GetConsumerStatusBody{{{queue, 4}}, {}}.to_json();
  t["topic stats"] = TopicStatsTable{{{queue, {1, 5, 9}}}, 0}.to_json();
  t["consume stats"] = ConsumeStats{{{queue, {10, 5, 6, 7}}}, 1.5}.to_json();
  ConsumerConnection cc;
  cc.connection_set.push_back({"id", "1.2.3.4:5", "GO", 317});
  cc.subscription_table["T"] = subscription();
  cc.consume_type = ConsumeType::CONSUME_ACTIVELY;
  cc.message_model = MessageModel::BROADCASTING;
  cc.consume_from_where = ConsumeFromWhere::CONSUME_FROM_TIMESTAMP;
  t["consumer connection"] = cc.to_json();
  t["group list"] = GroupList{{"g"}}.to_json();
}

static Table ours() {
  Table t;
  make_commands(t);
  make_records(t);
  make_routes(t);
  make_configuration(t);
  make_client_bodies(t);
  return t;
}

// -------------------------------------------------------------------------------------------------- tests

TEST(Golden, SameBytes) {
  Table mine = ours();
  size_t compared = 0;
  for (const auto& [name, bytes] : golden()) {
    // Ext fields are in the order of a Java hash map, deflate has many outputs, hashes are tested below.
    if (name.starts_with("response ") || name == "register compressed" || name.starts_with("hash ")) continue;
    ASSERT_TRUE(mine.contains(name)) << name;
    EXPECT_EQ(mine[name], bytes) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 27u);
}

static RemotingCommand decoded(Frame& frame, const std::string& bytes) {
  auto f = parse_frame(as_bytes(bytes));
  EXPECT_TRUE(f);
  frame = std::move(*f);
  RemotingCommand c;
  EXPECT_TRUE(decode_command(frame, &c));
  return c;
}

TEST(Golden, Requests) {
  for (const char* name : {"request JSON", "request ROCKETMQ"}) {
    Frame frame;
    RemotingCommand c = decoded(frame, golden().at(name));
    EXPECT_EQ(c.request_code(), RequestCode::SEND_MESSAGE_V2);
    EXPECT_EQ(c.opaque, 77);
    EXPECT_EQ(c.version, 513);
    EXPECT_EQ(frame.body_text(), "the body");
    auto h = SendMessageV2::decode(c);
    ASSERT_TRUE(h);
    EXPECT_EQ(h->topic, "TopicTest");
    EXPECT_EQ(h->properties, send_properties);
    EXPECT_EQ(h->max_reconsume_times, 16);
    EXPECT_EQ(h->bname, "broker-a");
  }
}

TEST(Golden, Responses) {
  for (const char* name : {"response JSON", "response ROCKETMQ"}) {
    Frame frame;
    RemotingCommand c = decoded(frame, golden().at(name));
    EXPECT_EQ(c.response_code(), ResponseCode::PULL_NOT_FOUND);
    EXPECT_EQ(c.opaque, INT32_MIN);
    EXPECT_EQ(c.remark, "NO " + std::string(nasty));
    auto h = PullMessage::decode_response(c);
    ASSERT_TRUE(h);
    EXPECT_EQ(h->next_begin_offset, 12);
    EXPECT_EQ(h->min_offset, -1);
    EXPECT_EQ(h->max_offset, INT64_MAX);
    EXPECT_FALSE(h->offset_delta);
  }
}

TEST(Golden, Records) {
  for (const char* name : {"record v4", "record v6"}) {
    auto v = parse_record(as_bytes(golden().at(name)), CrcCheck::verify);
    ASSERT_TRUE(v);
    EXPECT_EQ(v->topic, "TopicTest");
    EXPECT_EQ(as_text(v->body), "hello");
    EXPECT_EQ(v->physical_offset, 0x123456789a);
    EXPECT_EQ(v->property("TAGS"), "TagA");
  }
  EXPECT_EQ(*check_batch(as_bytes(golden().at("batch"))), 2u);
}

TEST(Golden, Hashes) {
  int compared = 0;
  for (const auto& [name, bytes] : golden()) {
    if (!name.starts_with("hash ")) continue;
    std::string text;
    for (size_t i = 5; i < name.size(); i += 2) {
      text += static_cast<char>(std::stoi(name.substr(i, 2), nullptr, 16));
    }
    EXPECT_EQ(java_hash(text), load_be<int32_t>(bytes.data())) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

TEST(Golden, CompressedRegistration) {
  auto b = RegisterBrokerBody::parse_any(golden().at("register compressed"), true, 513);
  ASSERT_TRUE(b) << b.error().where;
  RegisterBrokerBody e = registration();
  EXPECT_EQ(b->topic_config_wrapper.topic_config_table, e.topic_config_wrapper.topic_config_table);
  EXPECT_EQ(b->topic_config_wrapper.data_version, e.topic_config_wrapper.data_version);
  EXPECT_EQ(b->topic_config_wrapper.topic_queue_mapping_info_map,
            e.topic_config_wrapper.topic_queue_mapping_info_map);
  EXPECT_EQ(b->filter_server_list, e.filter_server_list);
}

// What RocketMQ wrote, read and written again, is what it wrote.
TEST(Golden, BodiesSurviveReading) {
  auto again = [](const char* name, auto parsed) {
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->to_json(), golden().at(name)) << name;
  };
  auto text = [](const char* name) -> std::string_view { return golden().at(name); };
  again("heartbeat", HeartbeatData::parse(text("heartbeat")));
  again("register plain", RegisterBrokerBody::parse(text("register plain")));
  again("cluster", ClusterInfo::parse(text("cluster")));
  again("group", SubscriptionGroupConfig::parse(text("group")));
  again("groups", SubscriptionGroupWrapper::parse(text("groups")));
  again("topics", TopicConfigSerializeWrapper::parse(text("topics pretty")));
  again("topic stats", TopicStatsTable::parse(text("topic stats")));
  again("consume stats", ConsumeStats::parse(text("consume stats")));
  again("reset offset", ResetOffsetBody::parse(text("reset offset")));
  again("consumer status", GetConsumerStatusBody::parse(text("consumer status")));
  again("lock", LockBatchRequestBody::parse(text("lock")));
  again("locked", LockBatchResponseBody::parse(text("locked")));
  again("consumer connection", ConsumerConnection::parse(text("consumer connection")));
  again("kv", KVTable::parse(text("kv")));
  EXPECT_EQ(TopicRouteData::parse(text("route strict"))->to_json(JsonStyle::fastjson), text("route"));
  EXPECT_EQ(TopicRouteData::parse(text("route"))->to_json(JsonStyle::strict), text("route strict"));
}

}  // namespace rmq::proto

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--print") {
    for (const auto& [name, bytes] : rmq::proto::ours()) {
      std::printf("%s\t", name.c_str());
      for (char c : bytes) std::printf("%02x", static_cast<unsigned char>(c));
      std::printf("\n");
    }
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// Bodies of statistics and connections, read by admin tools. Tables keyed by a message queue are written with
// the bare object as key (fastjson), which is the only form that the tools of 5.5 read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/bodies_client.h"
#include "proto/fastjson.h"

namespace rmq::proto {

// GET_TOPIC_STATS_INFO.
struct TopicOffset {
  int64_t min_offset = 0, max_offset = 0, last_update_timestamp_ms = 0;
  bool operator==(const TopicOffset&) const = default;
};
struct TopicStatsTable {
  std::map<MessageQueue, TopicOffset> offset_table;
  double topic_put_tps = 0;
  static Result<TopicStatsTable> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// GET_CONSUME_STATS.
struct OffsetWrapper {
  int64_t broker_offset = 0, consumer_offset = 0, pull_offset = 0, last_timestamp_ms = 0;
  bool operator==(const OffsetWrapper&) const = default;
};
struct ConsumeStats {
  std::map<MessageQueue, OffsetWrapper> offset_table;
  double consume_tps = 0;
  static Result<ConsumeStats> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  void write(JsonWriter& w) const;
};

// GET_BROKER_CONSUME_STATS.
struct ConsumeStatsList {
  std::string broker_addr;
  std::vector<std::map<std::string, std::vector<ConsumeStats>>> consume_stats_list;
  int64_t total_diff = 0, total_inflight_diff = 0;
  static Result<ConsumeStatsList> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// QUERY_CORRECTION_OFFSET.
struct QueryCorrectionOffsetBody {
  std::map<int32_t, int64_t> correction_offsets;  // by queue
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// VIEW_BROKER_STATS_DATA.
struct BrokerStatsItem {
  int64_t sum = 0;
  double tps = 0;    // sum a second
  double avgpt = 0;  // sum a call
};
struct BrokerStatsData {
  BrokerStatsItem minute, hour, day;
  static Result<BrokerStatsData> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

struct Connection {
  std::string client_id, client_addr, language;
  int32_t version = 0;
  bool operator==(const Connection&) const = default;
};

// GET_CONSUMER_CONNECTION_LIST.
struct ConsumerConnection {
  std::vector<Connection> connection_set;
  std::map<std::string, SubscriptionData> subscription_table;
  ConsumeType consume_type = ConsumeType::CONSUME_PASSIVELY;
  MessageModel message_model = MessageModel::CLUSTERING;
  ConsumeFromWhere consume_from_where = ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET;
  static Result<ConsumerConnection> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// GET_PRODUCER_CONNECTION_LIST.
struct ProducerConnection {
  std::vector<Connection> connection_set;
  static Result<ProducerConnection> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// GET_ALL_PRODUCER_INFO.
struct ProducerInfo {
  std::string client_id, remote_ip, language;
  int32_t version = 0;
  int64_t last_update_timestamp_ms = 0;
};
struct ProducerTableInfo {
  std::map<std::string, std::vector<ProducerInfo>> data;  // by group
  static Result<ProducerTableInfo> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// QUERY_TOPIC_CONSUME_BY_WHO.
struct GroupList {
  std::vector<std::string> group_list;
  static Result<GroupList> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// QUERY_SUBSCRIPTION_BY_CONSUMER.
struct QuerySubscriptionResponseBody {
  std::string group, topic;
  std::optional<SubscriptionData> subscription_data;
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

}  // namespace rmq::proto

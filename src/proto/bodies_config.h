// Configuration that travels and that is kept in files: topics, subscription groups, offsets, with their
// data versions. The same text serves topics.json, subscriptionGroup.json, consumerOffset.json and
// delayOffset.json (JsonStyle::pretty) and the admin requests that read them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/fastjson.h"

namespace rmq::proto {

struct DataVersion {
  int64_t state_version = 0;
  int64_t timestamp_ms = 0;
  int64_t counter = 0;
  bool operator==(const DataVersion&) const = default;
  void next(int64_t now_ms) {
    timestamp_ms = now_ms;
    ++counter;
  }
  static Result<DataVersion> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  void write(JsonWriter& w) const;
};

// Lines of text in a JSON file of rmqd's own: {"changes":["..",..]}.
struct ChangeList {
  std::vector<std::string> changes;
  static Result<ChangeList> parse(std::string_view json);
  std::string to_json() const;
};

struct TopicConfig {
  std::string topic_name;
  int32_t read_queue_nums = 16;
  int32_t write_queue_nums = 16;
  int32_t perm = 6;
  bool multi_tag = false;  // topicFilterType: SINGLE_TAG or MULTI_TAG
  int32_t topic_sys_flag = 0;
  bool order = false;
  std::map<std::string, std::string> attributes;
  bool operator==(const TopicConfig&) const = default;

  static Result<TopicConfig> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  void write(JsonWriter& w) const;
  // "name read write perm filterType attributes": the form of compressed registrations.
  std::string to_line() const;
  static Result<TopicConfig> parse_line(std::string_view line);
};

using TopicConfigTable = std::map<std::string, TopicConfig, std::less<>>;

// TopicConfigSerializeWrapper, with the mapping members of 5.x when asked. topics.json and the answer of
// GET_ALL_TOPIC_CONFIG.
struct TopicConfigSerializeWrapper {
  DataVersion data_version;
  TopicConfigTable topic_config_table;
  // TopicConfigAndMappingSerializeWrapper: the mapping tables as JSON objects, passed through; empty: left
  // out.
  std::optional<DataVersion> mapping_data_version;
  std::string topic_queue_mapping_info_map, topic_queue_mapping_detail_map;

  static Result<TopicConfigSerializeWrapper> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  void write(JsonWriter& w) const;
};

// UPDATE_AND_CREATE_TOPIC_LIST.
struct TopicConfigList {
  std::vector<TopicConfig> topic_config_list;
  static Result<TopicConfigList> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

struct ExponentialRetryPolicy {
  int64_t initial_ms = 5'000, max_ms = 7'200'000, multiplier = 2;
  bool operator==(const ExponentialRetryPolicy&) const = default;
};
struct GroupRetryPolicy {
  bool exponential = false;  // type: CUSTOMIZED or EXPONENTIAL
  std::optional<ExponentialRetryPolicy> exponential_retry_policy;
  std::optional<std::vector<int64_t>> customized_next_ms;
  bool operator==(const GroupRetryPolicy&) const = default;
};

struct SimpleSubscriptionData {
  std::string topic, expression_type, expression;
  int64_t version = 0;
  bool operator==(const SimpleSubscriptionData&) const = default;
};

struct SubscriptionGroupConfig {
  std::string group_name;
  bool consume_enable = true;
  bool consume_from_min_enable = true;
  bool consume_broadcast_enable = true;
  bool consume_message_orderly = false;
  int32_t retry_queue_nums = 1;
  int32_t retry_max_times = 16;
  GroupRetryPolicy group_retry_policy;
  int64_t broker_id = 0;
  int64_t which_broker_when_consume_slowly = 1;
  bool notify_consumer_ids_changed_enable = true;
  int32_t group_sys_flag = 0;
  int32_t consume_timeout_minute = 15;
  std::optional<std::vector<SimpleSubscriptionData>> subscription_data_set;
  std::map<std::string, std::string> attributes;
  bool operator==(const SubscriptionGroupConfig&) const = default;

  static Result<SubscriptionGroupConfig> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  void write(JsonWriter& w) const;
};

using SubscriptionGroupTable = std::map<std::string, SubscriptionGroupConfig, std::less<>>;

// subscriptionGroup.json and the answer of GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
struct SubscriptionGroupWrapper {
  DataVersion data_version;
  SubscriptionGroupTable subscription_group_table;
  std::map<std::string, std::map<std::string, int32_t>> forbidden_table;  // group → topic → bits
  static Result<SubscriptionGroupWrapper> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST.
struct SubscriptionGroupList {
  std::vector<SubscriptionGroupConfig> group_config_list;
  static Result<SubscriptionGroupList> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// consumerOffset.json and the answer of GET_ALL_CONSUMER_OFFSET: "topic@group" → queue id → offset.
struct ConsumerOffsetWrapper {
  DataVersion data_version;
  // lmqConsumerOffset.json: of groups that are named as light queues; of each topic there is one queue.
  std::optional<std::map<std::string, int64_t, std::less<>>> lmq_offset_table;
  std::map<std::string, std::map<int32_t, int64_t>, std::less<>> offset_table;
  static Result<ConsumerOffsetWrapper> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// delayOffset.json and the answer of GET_ALL_DELAY_OFFSET: level → queue offset.
struct DelayOffsetWrapper {
  DataVersion data_version;
  std::optional<int64_t> delivered_offset;  // in our own files only: where the markers begin that are newer
  std::map<int32_t, int64_t> offset_table;
  static Result<DelayOffsetWrapper> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// timerDelivered.json, a file of ours: which messages of rmq_sys_wheel_timer are done.
struct TimerDelivered {
  int64_t marker = 0;  // markers of rmq_sys_delivered from there on are newer
  std::string done;    // the broker's DoneSet
  // config/timercheck as it was when it was last taken into account.
  std::optional<int64_t> java_last_read_ms, java_queue_offset;
  static Result<TimerDelivered> parse(std::string_view json);
  std::string to_json() const;
};

// GET_TIMER_METRICS: messages of any delay that wait, by the topic that they are for.
struct TimerMetrics {
  struct Count {
    int64_t count = 0, time_stamp = 0;  // when it changed
  };
  DataVersion data_version;
  std::map<std::string, Count, std::less<>> timing_count;
  static Result<TimerMetrics> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// {"table":{k:v}}: GET_KVLIST_BY_NAMESPACE, GET_BROKER_RUNTIME_INFO, the answer of REGISTER_BROKER.
struct KVTable {
  std::map<std::string, std::string, std::less<>> table;
  static Result<KVTable> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// kvConfig.json of the name server: namespace → key → value.
struct KVConfigWrapper {
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> config_table;
  static Result<KVConfigWrapper> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// messageRequestMode.json is topic → group → SetMessageRequestModeRequestBody (bodies_client.h).

}  // namespace rmq::proto

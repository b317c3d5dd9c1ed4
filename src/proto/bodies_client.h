// Bodies that clients send and read: heartbeats, subscriptions, consumer lists, queue locks, offset resets,
// assignment. parse() takes what any client writes (fastjson text, numbers as strings, enums by name or
// ordinal, missing sets); to_json() writes what RocketMQ writes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/fastjson.h"

namespace rmq::proto {

enum class ConsumeType : uint8_t { CONSUME_ACTIVELY, CONSUME_PASSIVELY, CONSUME_POP };
enum class MessageModel : uint8_t { BROADCASTING, CLUSTERING };
enum class ConsumeFromWhere : uint8_t {
  CONSUME_FROM_LAST_OFFSET,
  CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
  CONSUME_FROM_MIN_OFFSET,
  CONSUME_FROM_MAX_OFFSET,
  CONSUME_FROM_FIRST_OFFSET,
  CONSUME_FROM_TIMESTAMP,
};
std::string_view name_of(ConsumeType v);
std::string_view name_of(MessageModel v);
std::string_view name_of(ConsumeFromWhere v);

struct MessageQueue {
  std::string topic;
  std::string broker_name;
  int32_t queue_id = 0;
  auto operator<=>(const MessageQueue&) const = default;

  static Result<MessageQueue> parse(std::string_view json);
  std::string to_json() const;  // {"brokerName":..,"queueId":..,"topic":..}: also the key of offset tables
};

// Written as {"offsetTable":{{"brokerName":..}:1,..}} with bare object keys, in every style: the clients of
// 5.5 read nothing else.
using MessageQueueTable = std::map<MessageQueue, int64_t>;

inline constexpr std::string_view sql92 = "SQL92";  // an expression type, as TAG

struct SubscriptionData {
  static constexpr std::string_view sub_all = "*";
  std::string topic;
  std::string sub_string;
  std::vector<std::string> tags_set;  // sorted
  std::vector<int32_t> code_set;      // Java hash of each tag; sorted
  int64_t sub_version = 0;
  std::string expression_type = "TAG";
  bool class_filter_mode = false;
  bool operator==(const SubscriptionData&) const = default;

  bool is_tag_type() const { return expression_type == "TAG" || expression_type.empty(); }
  // FilterAPI.build: from a tag expression ("*", "A || B") or, with another type, from its text.
  // Errc::bad_input for an expression without a tag ("||").
  static Result<SubscriptionData> build(std::string_view topic, std::string_view sub_string,
                                        std::string_view expression_type = "TAG");
  static Result<SubscriptionData> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  void write(JsonWriter& w) const;
};

struct ConsumerData {
  std::string group_name;
  ConsumeType consume_type = ConsumeType::CONSUME_PASSIVELY;
  MessageModel message_model = MessageModel::CLUSTERING;
  ConsumeFromWhere consume_from_where = ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET;
  std::vector<SubscriptionData> subscription_data_set;
  bool unit_mode = false;
};

// HEART_BEAT.
struct HeartbeatData {
  std::string client_id;
  std::vector<std::string> producer_groups;
  std::vector<ConsumerData> consumers;
  int32_t heartbeat_fingerprint = 0;  // 0: the first version of heartbeats
  bool without_sub = false;           // the subscriptions were left out (version 2)

  static Result<HeartbeatData> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// CHECK_CLIENT_CONFIG.
struct CheckClientRequestBody {
  std::string client_id, group, name_space;
  std::optional<SubscriptionData> subscription_data;
  static Result<CheckClientRequestBody> parse(std::string_view json);
};

// GET_CONSUMER_LIST_BY_GROUP's answer.
struct ConsumerListBody {
  std::vector<std::string> consumer_id_list;
  static Result<ConsumerListBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
struct LockBatchRequestBody {
  std::string consumer_group, client_id;
  bool only_this_broker = false;
  std::vector<MessageQueue> mq_set;
  static Result<LockBatchRequestBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};
struct LockBatchResponseBody {
  std::vector<MessageQueue> lock_ok_mq_set;
  static Result<LockBatchResponseBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// RESET_CONSUMER_CLIENT_OFFSET and the answer of INVOKE_BROKER_TO_RESET_OFFSET.
// queueLocks.json, a file of ours: who owns which queues.
struct QueueLocks {
  struct Held {
    LockBatchRequestBody by;
    int64_t renewed_ms = 0;  // monotonic clock of the machine
  };
  std::vector<Held> locks;
  static Result<QueueLocks> parse(std::string_view json);
  std::string to_json() const;
};

struct ResetOffsetBody {
  MessageQueueTable offset_table;
  static Result<ResetOffsetBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
  std::string to_json_for_cpp()
      const;  // {"offsetTable":[{"brokerName":..,"offset":..,"queueId":..,"topic":..}]}
};
// The answer of GET_CONSUMER_STATUS_FROM_CLIENT.
struct GetConsumerStatusBody {
  MessageQueueTable message_queue_table;
  std::map<std::string, MessageQueueTable>
      consumer_table;  // by client id: INVOKE_BROKER_TO_GET_CONSUMER_STATUS
  static Result<GetConsumerStatusBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// QUERY_ASSIGNMENT.
struct QueryAssignmentRequestBody {
  std::string topic, consumer_group, client_id, strategy_name;
  MessageModel message_model = MessageModel::CLUSTERING;
  static Result<QueryAssignmentRequestBody> parse(std::string_view json);
};
struct MessageQueueAssignment {
  MessageQueue message_queue;
  std::string mode = "PULL";  // or POP
};
struct QueryAssignmentResponseBody {
  std::optional<std::vector<MessageQueueAssignment>> assignments;  // left out when there is none
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// SET_MESSAGE_REQUEST_MODE, and an entry of messageRequestMode.json.
struct SetMessageRequestModeRequestBody {
  std::string topic, consumer_group;
  std::string mode = "PULL";
  int32_t pop_share_queue_num = 0;
  static Result<SetMessageRequestModeRequestBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// messageRequestMode.json and the answer of GET_ALL_MESSAGE_REQUEST_MODE.
struct MessageRequestModes {
  // By topic, then by group.
  std::map<std::string, std::map<std::string, SetMessageRequestModeRequestBody, std::less<>>, std::less<>>
      table;
  static Result<MessageRequestModes> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

}  // namespace rmq::proto

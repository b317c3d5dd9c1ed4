// Bodies of admin requests about single queues, groups and replicas, as mqadmin and dashboards read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/bodies_client.h"
#include "proto/fastjson.h"

namespace rmq::proto {

// QUERY_CONSUME_QUEUE.
struct ConsumeQueueData {
  int64_t physic_offset = 0;
  int32_t physic_size = 0;
  int64_t tags_code = 0;
  bool eval = false;  // whether the group's filter takes the message, as far as the tags code says
  std::string msg;    // what is wrong with the unit; empty: nothing
};
struct QueryConsumeQueueResponseBody {
  std::optional<SubscriptionData> subscription_data;
  std::optional<std::string> filter_data;  // a text for people
  std::vector<ConsumeQueueData> queue_data;
  int64_t max_queue_index = 0, min_queue_index = 0;
  // Without the subscription.
  static Result<QueryConsumeQueueResponseBody> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// QUERY_CONSUME_TIME_SPAN. Milliseconds; -1 where there is no message.
struct QueueTimeSpan {
  MessageQueue message_queue;
  int64_t min_ms = -1, max_ms = -1, consume_ms = -1;
  int64_t delay_ms = 0;  // age of the first message that the group has not consumed
};
struct QueryConsumeTimeSpanBody {
  std::vector<QueueTimeSpan> consume_time_span_set;
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// UPDATE_AND_GET_GROUP_FORBIDDEN.
struct GroupForbidden {
  std::string group, topic;
  bool readable = true;
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// GET_BROKER_HA_STATUS. A replica's own view (haClientRuntimeInfo) is read, and written as zeros: masters of
// ours have no replicas yet, and replicas there are none.
struct HAConnectionInfo {
  std::string addr;
  int64_t slave_ack_offset = 0, diff = 0, transferred_byte_in_second = 0, transfer_from_where = 0;
  bool in_sync = false;
};
struct HAClientRuntimeInfo {
  std::string master_addr;
  int64_t transferred_byte_in_second = 0, max_offset = 0, master_flush_offset = 0;
  int64_t last_read_timestamp_ms = 0, last_write_timestamp_ms = 0;
};
struct HARuntimeInfo {
  int64_t master_commit_log_max_offset = 0;
  bool master = true;
  int32_t in_sync_slave_nums = 0;
  std::vector<HAConnectionInfo> ha_connection_info;
  HAClientRuntimeInfo ha_client_runtime_info;
  static Result<HARuntimeInfo> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;  // of a master without replicas
};

}  // namespace rmq::proto

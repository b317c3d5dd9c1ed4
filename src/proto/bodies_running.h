// What a consumer tells of itself when a broker asks it: GET_CONSUMER_RUNNING_INFO and
// CONSUME_MESSAGE_DIRECTLY. Brokers pass it on unchanged; it is for tools to read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/bodies_client.h"

namespace rmq::proto {

struct ProcessQueueInfo {
  int64_t commit_offset = 0;
  int32_t cached_msg_count = 0, cached_msg_size_in_mib = 0;
  bool locked = false, dropped = false;
  int64_t last_pull_timestamp_ms = 0, last_consume_timestamp_ms = 0;
};

// Of one topic. Times in milliseconds, rates a second.
struct ConsumeStatus {
  double pull_rt = 0, pull_tps = 0, consume_rt = 0, consume_ok_tps = 0, consume_failed_tps = 0;
  int64_t consume_failed_msgs = 0;  // of the last hour
};

struct ConsumerRunningInfo {
  std::map<std::string, std::string> properties;  // PROP_CONSUME_TYPE and so on
  std::vector<SubscriptionData> subscription_set;
  std::map<MessageQueue, ProcessQueueInfo> mq_table;
  std::map<std::string, ConsumeStatus> status_table;
  std::string jstack;  // when it was asked for
  static Result<ConsumerRunningInfo> parse(std::string_view json);
};

struct ConsumeMessageDirectlyResult {
  std::string
      consume_result;  // CR_SUCCESS, CR_LATER, CR_ROLLBACK, CR_COMMIT, CR_THROW_EXCEPTION, CR_RETURN_NULL
  std::string remark;
  bool order = false;
  int64_t spent_time_ms = 0;
  static Result<ConsumeMessageDirectlyResult> parse(std::string_view json);
};

}  // namespace rmq::proto

// What RocketMQ writes about popped messages: the body of BATCH_ACK_MESSAGE, and the records of its topic
// rmq_sys_REVIVE_LOG_<cluster>. parse() takes the bit set as fastjson writes it, base64, and as fastjson2
// does where it is told nothing, an array of signed bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rmq::proto {

struct BatchAck {
  std::string consumer_group, topic;
  std::string retry;  // which topic: "0" the topic itself, "1" and "2" its retry topics
  int64_t start_offset = 0;
  int32_t queue_id = 0;
  int32_t revive_queue_id = 0;
  int64_t pop_time_ms = 0;
  int64_t invisible_time_ms = 0;
  std::vector<uint8_t> bits;  // java.util.BitSet.toByteArray(): bit i is the message at start_offset + i
};

struct BatchAckMessageRequestBody {
  std::string broker_name;
  std::vector<BatchAck> acks;
  static Result<BatchAckMessageRequestBody> parse(std::string_view json);
};

// A checkpoint (tag ck), an acknowledgement (ack) or several (bAck) in RocketMQ's revive log
// (storage.md 16.1).
struct ReviveLogRecord {
  std::string consumer_group, topic;
  int32_t queue_id = 0;
  int64_t start_offset = 0;
  int64_t pop_time_ms = 0;
  int64_t invisible_time_ms = 0;      // of a checkpoint, as the next three
  int32_t bit_map = 0;                // of those that were acknowledged before it was written
  int32_t count = 0;                  // messages
  std::vector<int64_t> differences;   // of their offsets and the start; empty: 0, 1, 2, …
  std::vector<int64_t> acknowledged;  // offsets
  static Result<ReviveLogRecord> parse(std::string_view json);
};

// What RocketMQ gave out last of a queue, in order: an entry of its consumerOrderInfo.json (storage.md 16.4).
struct ConsumerOrderInfo {
  std::string topic, consumer_group, attempt_id;
  int32_t queue_id = 0;
  int64_t pop_time_ms = 0;
  int64_t invisible_time_ms = 0;
  std::vector<int64_t> offsets;
  std::map<int64_t, int64_t> next_visible_ms;  // by offset, where it is another time
  std::map<int64_t, int32_t> consumed;         // by offset: how often it was popped before
  int64_t acknowledged = 0;                    // bit i: offsets[i]
  // All entries of the file that can be read.
  static Result<std::vector<ConsumerOrderInfo>> parse_table(std::string_view json);
};

}  // namespace rmq::proto

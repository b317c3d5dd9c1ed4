// Events of a message as clients tell them in the trace topic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rmq::ctl {

struct TraceEvent {
  std::string kind;  // "sent", "transaction", "recalled", "consumed"
  int64_t at_ms = 0;
  std::string group, topic, msg_id, keys, offset_id;
  std::string client_host;  // of whom told it
  std::string store_host;   // where it was sent to
  std::string request;      // pairs the beginning and the end of a consumption
  std::string result;
  int64_t cost_ms = -1, retry = 0;
  bool is_end = false;
};

// Those of the records in a trace message's body that are about the message with this unique id, offset id or
// key. What is no record is passed over.
std::vector<TraceEvent> parse_trace(std::string_view body, std::string_view id);

// By time, the two records of a consumption as one event.
std::vector<TraceEvent> in_order(std::vector<TraceEvent> events);

}  // namespace rmq::ctl

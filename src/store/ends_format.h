// The bytes of rmqd.ends, docs/formats.md 4.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace rmq::store {

// Where queues end of which the log has nothing any more; rmqd.ends.
struct QueueEnd {
  std::string topic;
  int32_t queue_id = 0;
  int64_t offset = 0;  // the next message's is not less
  bool operator==(const QueueEnd&) const = default;
};
struct QueueEndsFile {
  int64_t log_begin = 0;  // the log's first offset that it was written for
  std::vector<QueueEnd> queues;
};

std::string encode_queue_ends(const QueueEndsFile& f);
std::optional<QueueEndsFile> decode_queue_ends(Bytes file);  // nothing: not valid

}  // namespace rmq::store

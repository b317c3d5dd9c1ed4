// Light queues (RocketMQ's LMQ): queues named "%LMQ%...", each of the one id 0, that a message comes into
// besides the queue of its topic. The property INNER_MULTI_DISPATCH of a message names them, separated by
// commas. The store puts the offset that the message gets in each of them into the record
// (INNER_MULTI_QUEUE_OFFSET, in the same order), so that recovery, ours and RocketMQ's, makes the same units
// again from the record alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "proto/record.h"

namespace rmq::store {

inline constexpr std::string_view light_queue_prefix = "%LMQ%";
inline constexpr int32_t light_queue_id = 0;
inline constexpr char light_queue_separator = ',';

inline bool is_light_queue(std::string_view topic) {
  return topic.starts_with(light_queue_prefix);
}

// Messages of these topics go to no light queue whatever they say: they wait for something, or come again.
bool has_no_light_queues(std::string_view topic);

// The names of the value of INNER_MULTI_DISPATCH. Nothing: one is not the name of a light queue that can be,
// is there twice, or is `topic`, where the message goes anyway.
std::optional<std::vector<std::string_view>> parse_light_queues(std::string_view list,
                                                                std::string_view topic);

struct LightPlace {
  std::string_view queue;
  int64_t offset = 0;
};
// Where a record says that it is in light queues; empty: in none.
std::vector<LightPlace> light_places_of(const proto::RecordView& r);

}  // namespace rmq::store

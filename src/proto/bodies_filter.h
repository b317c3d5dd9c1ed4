// consumerFilter.json: the expressions that consumer groups filter topics by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/fastjson.h"

namespace rmq::proto {

struct BloomFilterData {
  std::vector<int32_t> bit_pos;
  int32_t bit_num = 0;
};

struct ConsumerFilterData {
  std::string consumer_group, topic, expression;
  std::string expression_type = "SQL92";
  int64_t born_time_ms = 0;
  int64_t dead_time_ms = 0;  // at least born_time_ms: nobody of the group is there since then
  int64_t client_version = 0;
  BloomFilterData bloom_filter_data;

  bool is_dead() const { return dead_time_ms >= born_time_ms; }
};

struct ConsumerFilterWrapper {
  using Groups = std::map<std::string, ConsumerFilterData, std::less<>>;
  std::map<std::string, Groups, std::less<>> filter_data_by_topic;
  static Result<ConsumerFilterWrapper> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

}  // namespace rmq::proto

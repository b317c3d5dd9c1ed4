// metadata.json, what an export of topics and groups holds. The two tables at its top are those of mqadmin's
// exportMetadata (seen in 5.5.0): of all brokers together, where a topic's queue numbers, and the retry queue
// numbers of a group, are sums over the brokers. Ours has each broker's own tables besides.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "proto/bodies_config.h"

namespace rmq::proto {

struct MetadataTables {
  TopicConfigTable topic_config_table;
  SubscriptionGroupTable subscription_group_table;
};

struct MetadataExport {
  int64_t export_time_ms = 0;
  MetadataTables all;
  std::map<std::string, MetadataTables, std::less<>> brokers;  // by name; empty in mqadmin's own files
  // Adds a broker's tables to `brokers` and to `all`.
  void add(std::string_view broker, MetadataTables tables);
  static Result<MetadataExport> parse(std::string_view json);
  std::string to_json() const;  // pretty
};

}  // namespace rmq::proto

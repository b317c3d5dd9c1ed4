// Bodies of the name server: routes, cluster view, topic lists, registration of brokers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/bodies_config.h"
#include "proto/fastjson.h"

namespace rmq::proto {

struct QueueData {
  std::string broker_name;
  int32_t read_queue_nums = 0;
  int32_t write_queue_nums = 0;
  int32_t perm = 0;
  int32_t topic_sys_flag = 0;
  auto operator<=>(const QueueData&) const = default;
};

struct BrokerData {
  std::string cluster;
  std::string broker_name;
  std::map<int64_t, std::string> broker_addrs;  // broker id → "host:port"
  std::optional<std::string> zone_name;
  bool enable_acting_master = false;
  bool operator==(const BrokerData&) const = default;
};

// GET_ROUTEINFO_BY_TOPIC. JsonStyle::strict for requests of version V4_9_4 and above or with
// acceptStandardJsonOnly, else JsonStyle::fastjson (broker ids bare).
struct TopicRouteData {
  std::optional<std::string> order_topic_conf;
  std::vector<QueueData> queue_datas;
  std::vector<BrokerData> broker_datas;
  std::map<std::string, std::vector<std::string>> filter_server_table;
  std::string topic_queue_mapping_by_broker;  // a JSON object, passed through; empty: left out
  bool operator==(const TopicRouteData&) const = default;

  static Result<TopicRouteData> parse(std::string_view json);
  std::string to_json(JsonStyle style) const;
};

// GET_BROKER_CLUSTER_INFO.
struct ClusterInfo {
  std::map<std::string, BrokerData> broker_addr_table;
  std::map<std::string, std::vector<std::string>> cluster_addr_table;  // cluster → broker names
  static Result<ClusterInfo> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// GET_ALL_TOPIC_LIST_FROM_NAMESERVER and its kin.
struct TopicList {
  std::vector<std::string> topic_list;
  std::optional<std::string> broker_addr;
  static Result<TopicList> parse(std::string_view json);
  std::string to_json(JsonStyle style = JsonStyle::fastjson) const;
};

// GET_BROKER_MEMBER_GROUP.
struct BrokerMemberGroup {
  std::string cluster, broker_name;
  std::map<int64_t, std::string> broker_addrs;
  static Result<BrokerMemberGroup> parse_response(std::string_view json);  // {"brokerMemberGroup":{..}}
  std::string to_response_json(JsonStyle style = JsonStyle::fastjson) const;
};

// REGISTER_BROKER.
struct RegisterBrokerBody {
  TopicConfigSerializeWrapper topic_config_wrapper;
  // Absent: the name server leaves its list unchanged.
  std::optional<std::vector<std::string>> filter_server_list;
  // Of a difference between rmqd's broker and name server: topics that are gone.
  std::vector<std::string> deleted_topics;

  static Result<RegisterBrokerBody> parse(std::string_view json);
  std::string to_json() const;
  // The zlib form (ext field compressed=true). Topic flags and order are not carried by it. `version` is the
  // sender's: from V5_0_0 on the queue mappings follow. Inflates at most 64 MiB (Errc::limit).
  static Result<RegisterBrokerBody> parse_compressed(std::string_view bytes, int32_t version);
  Result<std::string> to_compressed() const;
  // By the header's `compressed` and the version: before V3_0_11 the body is the topic wrapper alone. An
  // empty body is an empty registration.
  static Result<RegisterBrokerBody> parse_any(std::string_view body, bool compressed, int32_t version);
};

}  // namespace rmq::proto

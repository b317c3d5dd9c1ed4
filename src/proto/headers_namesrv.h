// The name server's requests (bodies in bodies_route.h and bodies_topic.h).
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct PutKvConfigRequestHeader {
  std::string_view name_space, key, value;
  static constexpr auto fields = describe(field("namespace", &PutKvConfigRequestHeader::name_space),
                                          field("key", &PutKvConfigRequestHeader::key),
                                          field("value", &PutKvConfigRequestHeader::value));
};

struct GetKvConfigRequestHeader {
  std::string_view name_space, key;
  static constexpr auto fields = describe(field("namespace", &GetKvConfigRequestHeader::name_space),
                                          field("key", &GetKvConfigRequestHeader::key));
};

struct GetKvConfigResponseHeader {
  std::optional<std::string_view> value;
  static constexpr auto fields = describe(field("value", &GetKvConfigResponseHeader::value));
};

struct DeleteKvConfigRequestHeader {
  std::string_view name_space, key;
  static constexpr auto fields = describe(field("namespace", &DeleteKvConfigRequestHeader::name_space),
                                          field("key", &DeleteKvConfigRequestHeader::key));
};

struct GetKvListByNamespaceRequestHeader {
  std::string_view name_space;
  static constexpr auto fields = describe(field("namespace", &GetKvListByNamespaceRequestHeader::name_space));
};

struct RegisterBrokerRequestHeader {
  std::string_view broker_name, broker_addr, cluster_name, ha_server_addr;
  int64_t broker_id = 0;
  std::optional<int64_t> heartbeat_timeout_millis;
  std::optional<bool> enable_acting_master;
  bool compressed = false;
  int32_t body_crc32 = 0;
  std::optional<std::string_view> zone_name;
  // Between rmqd's broker and name server alone (QueryDataVersionRequestHeader): the body is the first,
  // second
  // ... of so many parts of a whole registration; or what has changed since this data version, as JSON.
  std::optional<int32_t> part, parts;
  std::optional<std::string_view> difference_of;
  static constexpr auto fields =
      describe(field("brokerName", &RegisterBrokerRequestHeader::broker_name),
               field("brokerAddr", &RegisterBrokerRequestHeader::broker_addr),
               field("clusterName", &RegisterBrokerRequestHeader::cluster_name, Resource::cluster),
               field("haServerAddr", &RegisterBrokerRequestHeader::ha_server_addr),
               field("brokerId", &RegisterBrokerRequestHeader::broker_id),
               field("heartbeatTimeoutMillis", &RegisterBrokerRequestHeader::heartbeat_timeout_millis),
               field("enableActingMaster", &RegisterBrokerRequestHeader::enable_acting_master),
               defaulted("compressed", &RegisterBrokerRequestHeader::compressed),
               defaulted("bodyCrc32", &RegisterBrokerRequestHeader::body_crc32),
               field("__ZONE_NAME", &RegisterBrokerRequestHeader::zone_name),
               field("rmqdPart", &RegisterBrokerRequestHeader::part),
               field("rmqdParts", &RegisterBrokerRequestHeader::parts),
               field("rmqdDifferenceOf", &RegisterBrokerRequestHeader::difference_of));
};

struct RegisterBrokerResponseHeader {
  std::optional<std::string_view> ha_server_addr, master_addr;
  std::optional<bool> wants_whole;  // nothing was taken: this name server does not have what it builds upon
  static constexpr auto fields =
      describe(field("haServerAddr", &RegisterBrokerResponseHeader::ha_server_addr),
               field("masterAddr", &RegisterBrokerResponseHeader::master_addr),
               field("rmqdWantsWhole", &RegisterBrokerResponseHeader::wants_whole));
};

struct UnregisterBrokerRequestHeader {
  std::string_view broker_name, broker_addr, cluster_name;
  int64_t broker_id = 0;
  static constexpr auto fields =
      describe(field("brokerName", &UnregisterBrokerRequestHeader::broker_name),
               field("brokerAddr", &UnregisterBrokerRequestHeader::broker_addr),
               field("clusterName", &UnregisterBrokerRequestHeader::cluster_name, Resource::cluster),
               field("brokerId", &UnregisterBrokerRequestHeader::broker_id));
};

struct GetRouteInfoRequestHeader {
  std::string_view topic;
  std::optional<bool> accept_standard_json_only, zone_mode;
  std::optional<std::string_view> zone_name;
  static constexpr auto fields =
      describe(field("topic", &GetRouteInfoRequestHeader::topic, Resource::topic),
               field("acceptStandardJsonOnly", &GetRouteInfoRequestHeader::accept_standard_json_only),
               field("__ZONE_MODE", &GetRouteInfoRequestHeader::zone_mode),
               field("__ZONE_NAME", &GetRouteInfoRequestHeader::zone_name));
};

struct WipeWritePermOfBrokerRequestHeader {
  std::string_view broker_name;
  static constexpr auto fields =
      describe(field("brokerName", &WipeWritePermOfBrokerRequestHeader::broker_name));
};

struct WipeWritePermOfBrokerResponseHeader {
  int32_t wipe_topic_count = 0;
  static constexpr auto fields =
      describe(field("wipeTopicCount", &WipeWritePermOfBrokerResponseHeader::wipe_topic_count));
};

struct AddWritePermOfBrokerRequestHeader {
  std::string_view broker_name;
  static constexpr auto fields =
      describe(field("brokerName", &AddWritePermOfBrokerRequestHeader::broker_name));
};

struct AddWritePermOfBrokerResponseHeader {
  int32_t add_topic_count = 0;
  static constexpr auto fields =
      describe(field("addTopicCount", &AddWritePermOfBrokerResponseHeader::add_topic_count));
};

struct DeleteTopicFromNamesrvRequestHeader {
  std::string_view topic;
  std::optional<std::string_view> cluster_name;
  static constexpr auto fields =
      describe(field("topic", &DeleteTopicFromNamesrvRequestHeader::topic, Resource::topic),
               field("clusterName", &DeleteTopicFromNamesrvRequestHeader::cluster_name, Resource::cluster));
};

struct RegisterTopicRequestHeader {
  std::string_view topic;
  static constexpr auto fields =
      describe(field("topic", &RegisterTopicRequestHeader::topic, Resource::topic));
};

struct GetTopicsByClusterRequestHeader {
  std::string_view cluster;
  static constexpr auto fields =
      describe(field("cluster", &GetTopicsByClusterRequestHeader::cluster, Resource::cluster));
};

// rmqd's broker asks with offers_differences, rmq-namesrvd answers takes_differences; then registrations may
// come in parts and as differences. Apache's brokers and name servers pass over fields that they do not know.
struct QueryDataVersionRequestHeader {
  std::string_view broker_name, broker_addr, cluster_name;
  int64_t broker_id = 0;
  std::optional<bool> offers_differences;
  static constexpr auto fields =
      describe(field("brokerName", &QueryDataVersionRequestHeader::broker_name),
               field("brokerAddr", &QueryDataVersionRequestHeader::broker_addr),
               field("clusterName", &QueryDataVersionRequestHeader::cluster_name, Resource::cluster),
               field("brokerId", &QueryDataVersionRequestHeader::broker_id),
               field("rmqdOffersDifferences", &QueryDataVersionRequestHeader::offers_differences));
};

struct QueryDataVersionResponseHeader {
  bool changed = false;
  std::optional<bool> takes_differences;
  static constexpr auto fields =
      describe(field("changed", &QueryDataVersionResponseHeader::changed),
               field("rmqdTakesDifferences", &QueryDataVersionResponseHeader::takes_differences));
};

struct GetBrokerMemberGroupRequestHeader {
  std::string_view cluster_name, broker_name;
  static constexpr auto fields =
      describe(field("clusterName", &GetBrokerMemberGroupRequestHeader::cluster_name, Resource::cluster),
               field("brokerName", &GetBrokerMemberGroupRequestHeader::broker_name));
};

struct BrokerHeartbeatRequestHeader {
  std::string_view cluster_name, broker_addr, broker_name;
  std::optional<int64_t> broker_id;
  std::optional<int32_t> epoch;
  std::optional<int64_t> max_offset, confirm_offset, heartbeat_timeout_mills;
  std::optional<int32_t> election_priority;
  static constexpr auto fields =
      describe(field("clusterName", &BrokerHeartbeatRequestHeader::cluster_name, Resource::cluster),
               field("brokerAddr", &BrokerHeartbeatRequestHeader::broker_addr),
               field("brokerName", &BrokerHeartbeatRequestHeader::broker_name),
               field("brokerId", &BrokerHeartbeatRequestHeader::broker_id),
               field("epoch", &BrokerHeartbeatRequestHeader::epoch),
               field("maxOffset", &BrokerHeartbeatRequestHeader::max_offset),
               field("confirmOffset", &BrokerHeartbeatRequestHeader::confirm_offset),
               field("heartbeatTimeoutMills", &BrokerHeartbeatRequestHeader::heartbeat_timeout_mills),
               field("electionPriority", &BrokerHeartbeatRequestHeader::election_priority));
};

using PutKvConfig =
    Command<RequestCode::PUT_KV_CONFIG, PutKvConfigRequestHeader, EmptyHeader, Admission::namesrv>;
using GetKvConfig = Command<RequestCode::GET_KV_CONFIG, GetKvConfigRequestHeader, GetKvConfigResponseHeader,
                            Admission::namesrv>;
using DeleteKvConfig =
    Command<RequestCode::DELETE_KV_CONFIG, DeleteKvConfigRequestHeader, EmptyHeader, Admission::namesrv>;
using GetKvlistByNamespace = Command<RequestCode::GET_KVLIST_BY_NAMESPACE, GetKvListByNamespaceRequestHeader,
                                     EmptyHeader, Admission::namesrv>;
using RegisterBroker = Command<RequestCode::REGISTER_BROKER, RegisterBrokerRequestHeader,
                               RegisterBrokerResponseHeader, Admission::namesrv>;
using UnregisterBroker =
    Command<RequestCode::UNREGISTER_BROKER, UnregisterBrokerRequestHeader, EmptyHeader, Admission::namesrv>;
using GetRouteinfoByTopic =
    Command<RequestCode::GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader, EmptyHeader, Admission::route>;
using GetBrokerClusterInfo =
    Command<RequestCode::GET_BROKER_CLUSTER_INFO, EmptyHeader, EmptyHeader, Admission::namesrv>;
using WipeWritePermOfBroker =
    Command<RequestCode::WIPE_WRITE_PERM_OF_BROKER, WipeWritePermOfBrokerRequestHeader,
            WipeWritePermOfBrokerResponseHeader, Admission::namesrv>;
using AddWritePermOfBroker = Command<RequestCode::ADD_WRITE_PERM_OF_BROKER, AddWritePermOfBrokerRequestHeader,
                                     AddWritePermOfBrokerResponseHeader, Admission::namesrv>;
using GetAllTopicListFromNameserver =
    Command<RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, EmptyHeader, EmptyHeader, Admission::namesrv>;
using DeleteTopicInNamesrv = Command<RequestCode::DELETE_TOPIC_IN_NAMESRV,
                                     DeleteTopicFromNamesrvRequestHeader, EmptyHeader, Admission::namesrv>;
using RegisterTopicInNamesrv = Command<RequestCode::REGISTER_TOPIC_IN_NAMESRV, RegisterTopicRequestHeader,
                                       EmptyHeader, Admission::namesrv>;
using GetTopicsByCluster = Command<RequestCode::GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequestHeader,
                                   EmptyHeader, Admission::namesrv>;
using GetSystemTopicListFromNs =
    Command<RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_NS, EmptyHeader, EmptyHeader, Admission::namesrv>;
using GetUnitTopicList =
    Command<RequestCode::GET_UNIT_TOPIC_LIST, EmptyHeader, EmptyHeader, Admission::namesrv>;
using GetHasUnitSubTopicList =
    Command<RequestCode::GET_HAS_UNIT_SUB_TOPIC_LIST, EmptyHeader, EmptyHeader, Admission::namesrv>;
using GetHasUnitSubUnunitTopicList =
    Command<RequestCode::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, EmptyHeader, EmptyHeader, Admission::namesrv>;
using UpdateNamesrvConfig =
    Command<RequestCode::UPDATE_NAMESRV_CONFIG, EmptyHeader, EmptyHeader, Admission::namesrv>;
using GetNamesrvConfig =
    Command<RequestCode::GET_NAMESRV_CONFIG, EmptyHeader, EmptyHeader, Admission::namesrv>;
using QueryDataVersion = Command<RequestCode::QUERY_DATA_VERSION, QueryDataVersionRequestHeader,
                                 QueryDataVersionResponseHeader, Admission::namesrv>;
using GetBrokerMemberGroup = Command<RequestCode::GET_BROKER_MEMBER_GROUP, GetBrokerMemberGroupRequestHeader,
                                     EmptyHeader, Admission::namesrv>;
using BrokerHeartbeat =
    Command<RequestCode::BROKER_HEARTBEAT, BrokerHeartbeatRequestHeader, EmptyHeader, Admission::namesrv>;

using NamesrvCommands =
    CommandList<PutKvConfig, GetKvConfig, DeleteKvConfig, GetKvlistByNamespace, RegisterBroker,
                UnregisterBroker, GetRouteinfoByTopic, GetBrokerClusterInfo, WipeWritePermOfBroker,
                AddWritePermOfBroker, GetAllTopicListFromNameserver, DeleteTopicInNamesrv,
                RegisterTopicInNamesrv, GetTopicsByCluster, GetSystemTopicListFromNs, GetUnitTopicList,
                GetHasUnitSubTopicList, GetHasUnitSubUnunitTopicList, UpdateNamesrvConfig, GetNamesrvConfig,
                QueryDataVersion, GetBrokerMemberGroup, BrokerHeartbeat>;

}  // namespace rmq::proto

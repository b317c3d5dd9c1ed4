// Administration of a broker: topics, groups, connections, offsets, configuration, users and access lists.
// Types are as the wire has them; what each request means is in docs and in daemon/broker.
#pragma once

#include "proto/describe.h"
#include "proto/headers_push.h"

namespace rmq::proto {

struct CreateTopicRequestHeader {
  std::string_view topic, default_topic;
  int32_t read_queue_nums = 0;
  int32_t write_queue_nums = 0;
  int32_t perm = 0;
  std::string_view topic_filter_type;
  std::optional<int32_t> topic_sys_flag;
  bool order = false;
  std::optional<std::string_view> attributes;
  std::optional<bool> force;
  static constexpr auto fields =
      describe(field("topic", &CreateTopicRequestHeader::topic, Resource::topic),
               field("defaultTopic", &CreateTopicRequestHeader::default_topic),
               field("readQueueNums", &CreateTopicRequestHeader::read_queue_nums),
               field("writeQueueNums", &CreateTopicRequestHeader::write_queue_nums),
               field("perm", &CreateTopicRequestHeader::perm),
               field("topicFilterType", &CreateTopicRequestHeader::topic_filter_type),
               field("topicSysFlag", &CreateTopicRequestHeader::topic_sys_flag),
               defaulted("order", &CreateTopicRequestHeader::order),
               field("attributes", &CreateTopicRequestHeader::attributes),
               field("force", &CreateTopicRequestHeader::force));
};

struct DeleteTopicRequestHeader {
  std::string_view topic;
  static constexpr auto fields = describe(field("topic", &DeleteTopicRequestHeader::topic, Resource::topic));
};

struct GetTopicConfigRequestHeader {
  std::string_view topic;
  std::optional<bool> lo;
  static constexpr auto fields =
      describe(field("topic", &GetTopicConfigRequestHeader::topic, Resource::topic),
               field("lo", &GetTopicConfigRequestHeader::lo));
};

struct GetAllTopicConfigRequestHeader {
  std::optional<int32_t> topic_seq, max_topic_num;
  std::optional<std::string_view> data_version;
  static constexpr auto fields =
      describe(field("topicSeq", &GetAllTopicConfigRequestHeader::topic_seq),
               field("maxTopicNum", &GetAllTopicConfigRequestHeader::max_topic_num),
               field("dataVersion", &GetAllTopicConfigRequestHeader::data_version));
};

struct GetAllTopicConfigResponseHeader {
  std::optional<int32_t> total_topic_num;
  static constexpr auto fields =
      describe(field("totalTopicNum", &GetAllTopicConfigResponseHeader::total_topic_num));
};

struct GetTopicStatsInfoRequestHeader {
  std::string_view topic;
  static constexpr auto fields =
      describe(field("topic", &GetTopicStatsInfoRequestHeader::topic, Resource::topic));
};

struct QueryConsumeQueueRequestHeader {
  std::optional<std::string_view> topic;
  int32_t queue_id = 0;
  int64_t index = 0;
  int32_t count = 0;
  std::optional<std::string_view> consumer_group;
  static constexpr auto fields =
      describe(field("topic", &QueryConsumeQueueRequestHeader::topic, Resource::topic),
               defaulted("queueId", &QueryConsumeQueueRequestHeader::queue_id),
               defaulted("index", &QueryConsumeQueueRequestHeader::index),
               defaulted("count", &QueryConsumeQueueRequestHeader::count),
               field("consumerGroup", &QueryConsumeQueueRequestHeader::consumer_group, Resource::group));
};

struct QueryConsumeTimeSpanRequestHeader {
  std::string_view topic, group;
  static constexpr auto fields =
      describe(field("topic", &QueryConsumeTimeSpanRequestHeader::topic, Resource::topic),
               field("group", &QueryConsumeTimeSpanRequestHeader::group, Resource::group));
};

struct GetAllSubscriptionGroupRequestHeader {
  std::optional<int32_t> group_seq, max_group_num;
  std::optional<std::string_view> data_version;
  static constexpr auto fields =
      describe(field("groupSeq", &GetAllSubscriptionGroupRequestHeader::group_seq),
               field("maxGroupNum", &GetAllSubscriptionGroupRequestHeader::max_group_num),
               field("dataVersion", &GetAllSubscriptionGroupRequestHeader::data_version));
};

struct GetAllSubscriptionGroupResponseHeader {
  std::optional<int32_t> total_group_num;
  static constexpr auto fields =
      describe(field("totalGroupNum", &GetAllSubscriptionGroupResponseHeader::total_group_num));
};

struct GetSubscriptionGroupConfigRequestHeader {
  std::string_view group;
  static constexpr auto fields =
      describe(field("group", &GetSubscriptionGroupConfigRequestHeader::group, Resource::group));
};

// removeOffset is what 4.x tools call cleanOffset.
struct DeleteSubscriptionGroupRequestHeader {
  std::string_view group_name;
  bool clean_offset = false;
  bool remove_offset = false;
  static constexpr auto fields =
      describe(field("groupName", &DeleteSubscriptionGroupRequestHeader::group_name, Resource::group),
               defaulted("cleanOffset", &DeleteSubscriptionGroupRequestHeader::clean_offset),
               defaulted("removeOffset", &DeleteSubscriptionGroupRequestHeader::remove_offset));
};

struct UpdateGroupForbiddenRequestHeader {
  std::string_view group, topic;
  std::optional<bool> readable;
  static constexpr auto fields =
      describe(field("group", &UpdateGroupForbiddenRequestHeader::group, Resource::group),
               field("topic", &UpdateGroupForbiddenRequestHeader::topic, Resource::topic),
               field("readable", &UpdateGroupForbiddenRequestHeader::readable));
};

struct GetConsumerConnectionListRequestHeader {
  std::string_view consumer_group;
  static constexpr auto fields = describe(
      field("consumerGroup", &GetConsumerConnectionListRequestHeader::consumer_group, Resource::group));
};

struct GetProducerConnectionListRequestHeader {
  std::string_view producer_group;
  static constexpr auto fields =
      describe(field("producerGroup", &GetProducerConnectionListRequestHeader::producer_group));
};

// topicList is separated by semicolons.
struct GetConsumeStatsRequestHeader {
  std::string_view consumer_group;
  std::optional<std::string_view> topic, topic_list;
  static constexpr auto fields =
      describe(field("consumerGroup", &GetConsumeStatsRequestHeader::consumer_group, Resource::group),
               field("topic", &GetConsumeStatsRequestHeader::topic, Resource::topic),
               field("topicList", &GetConsumeStatsRequestHeader::topic_list));
};

struct GetBrokerConsumeStatsRequestHeader {
  bool is_order = false;
  static constexpr auto fields = describe(field("isOrder", &GetBrokerConsumeStatsRequestHeader::is_order));
};

struct QueryTopicConsumeByWhoRequestHeader {
  std::string_view topic;
  static constexpr auto fields =
      describe(field("topic", &QueryTopicConsumeByWhoRequestHeader::topic, Resource::topic));
};

struct QueryTopicsByConsumerRequestHeader {
  std::string_view group;
  static constexpr auto fields =
      describe(field("group", &QueryTopicsByConsumerRequestHeader::group, Resource::group));
};

struct QuerySubscriptionByConsumerRequestHeader {
  std::string_view group;
  std::optional<std::string_view> topic;
  static constexpr auto fields =
      describe(field("group", &QuerySubscriptionByConsumerRequestHeader::group, Resource::group),
               field("topic", &QuerySubscriptionByConsumerRequestHeader::topic, Resource::topic));
};

struct QueryCorrectionOffsetRequestHeader {
  std::optional<std::string_view> filter_groups;
  std::string_view compare_group, topic;
  static constexpr auto fields =
      describe(field("filterGroups", &QueryCorrectionOffsetRequestHeader::filter_groups),
               field("compareGroup", &QueryCorrectionOffsetRequestHeader::compare_group, Resource::group),
               field("topic", &QueryCorrectionOffsetRequestHeader::topic, Resource::topic));
};

struct CloneGroupOffsetRequestHeader {
  std::string_view src_group, dest_group;
  std::optional<std::string_view> topic;
  bool offline = false;
  static constexpr auto fields =
      describe(field("srcGroup", &CloneGroupOffsetRequestHeader::src_group, Resource::group),
               field("destGroup", &CloneGroupOffsetRequestHeader::dest_group, Resource::group),
               field("topic", &CloneGroupOffsetRequestHeader::topic, Resource::topic),
               defaulted("offline", &CloneGroupOffsetRequestHeader::offline));
};

struct GetBrokerConfigResponseHeader {
  std::string_view version;
  static constexpr auto fields = describe(field("version", &GetBrokerConfigResponseHeader::version));
};

struct ViewBrokerStatsDataRequestHeader {
  std::string_view stats_name, stats_key;
  static constexpr auto fields = describe(field("statsName", &ViewBrokerStatsDataRequestHeader::stats_name),
                                          field("statsKey", &ViewBrokerStatsDataRequestHeader::stats_key));
};

struct SetCommitlogReadModeRequestHeader {
  std::optional<std::string_view> read_ahead_mode;
  static constexpr auto fields =
      describe(field("READ_AHEAD_MODE", &SetCommitlogReadModeRequestHeader::read_ahead_mode));
};

struct CheckRocksdbCqWriteProgressRequestHeader {
  std::string_view topic;
  int64_t check_store_time = 0;
  static constexpr auto fields =
      describe(field("topic", &CheckRocksdbCqWriteProgressRequestHeader::topic, Resource::topic),
               defaulted("checkStoreTime", &CheckRocksdbCqWriteProgressRequestHeader::check_store_time));
};

struct ExportRocksdbConfigToJsonRequestHeader {
  std::string_view config_type;
  static constexpr auto fields =
      describe(field("configType", &ExportRocksdbConfigToJsonRequestHeader::config_type));
};

// AUTH_CREATE_USER, AUTH_UPDATE_USER, AUTH_DELETE_USER, AUTH_GET_USER.
struct UserRequestHeader {
  std::string_view username;
  static constexpr auto fields = describe(field("username", &UserRequestHeader::username));
};

struct ListUsersRequestHeader {
  std::optional<std::string_view> filter;
  static constexpr auto fields = describe(field("filter", &ListUsersRequestHeader::filter));
};

// AUTH_CREATE_ACL, AUTH_UPDATE_ACL, AUTH_GET_ACL.
struct AclSubjectRequestHeader {
  std::string_view subject;
  static constexpr auto fields = describe(field("subject", &AclSubjectRequestHeader::subject));
};

struct DeleteAclRequestHeader {
  std::string_view subject;
  std::optional<std::string_view> policy_type, resource;
  static constexpr auto fields = describe(field("subject", &DeleteAclRequestHeader::subject),
                                          field("policyType", &DeleteAclRequestHeader::policy_type),
                                          field("resource", &DeleteAclRequestHeader::resource));
};

struct ListAclsRequestHeader {
  std::optional<std::string_view> subject_filter, resource_filter;
  static constexpr auto fields = describe(field("subjectFilter", &ListAclsRequestHeader::subject_filter),
                                          field("resourceFilter", &ListAclsRequestHeader::resource_filter));
};

using UpdateAndCreateTopic =
    Command<RequestCode::UPDATE_AND_CREATE_TOPIC, CreateTopicRequestHeader, EmptyHeader, Admission::admin>;
using UpdateAndCreateTopicList =
    Command<RequestCode::UPDATE_AND_CREATE_TOPIC_LIST, EmptyHeader, EmptyHeader, Admission::admin>;
using UpdateAndCreateStaticTopic = Command<RequestCode::UPDATE_AND_CREATE_STATIC_TOPIC,
                                           CreateTopicRequestHeader, EmptyHeader, Admission::admin>;
using DeleteTopicInBroker =
    Command<RequestCode::DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader, EmptyHeader, Admission::admin>;
using DeleteTopicInBrokerList =
    Command<RequestCode::DELETE_TOPIC_IN_BROKER_LIST, EmptyHeader, EmptyHeader, Admission::admin>;
using GetTopicConfig =
    Command<RequestCode::GET_TOPIC_CONFIG, GetTopicConfigRequestHeader, EmptyHeader, Admission::admin>;
using GetAllTopicConfig = Command<RequestCode::GET_ALL_TOPIC_CONFIG, GetAllTopicConfigRequestHeader,
                                  GetAllTopicConfigResponseHeader, Admission::admin>;
using GetTopicStatsInfo =
    Command<RequestCode::GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader, EmptyHeader, Admission::admin>;
using GetSystemTopicListFromBroker =
    Command<RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_BROKER, EmptyHeader, EmptyHeader, Admission::admin>;
using CleanUnusedTopic = Command<RequestCode::CLEAN_UNUSED_TOPIC, EmptyHeader, EmptyHeader, Admission::admin>;
using CleanExpiredConsumequeue =
    Command<RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE, EmptyHeader, EmptyHeader, Admission::admin>;
using DeleteExpiredCommitlog =
    Command<RequestCode::DELETE_EXPIRED_COMMITLOG, EmptyHeader, EmptyHeader, Admission::admin>;
using QueryConsumeQueue =
    Command<RequestCode::QUERY_CONSUME_QUEUE, QueryConsumeQueueRequestHeader, EmptyHeader, Admission::admin>;
using QueryConsumeTimeSpan = Command<RequestCode::QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequestHeader,
                                     EmptyHeader, Admission::admin>;
using UpdateAndCreateSubscriptiongroup =
    Command<RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, EmptyHeader, EmptyHeader, Admission::admin>;
using UpdateAndCreateSubscriptiongroupList = Command<RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
                                                     EmptyHeader, EmptyHeader, Admission::admin>;
using GetAllSubscriptiongroupConfig =
    Command<RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GetAllSubscriptionGroupRequestHeader,
            GetAllSubscriptionGroupResponseHeader, Admission::admin>;
using GetSubscriptiongroupConfig =
    Command<RequestCode::GET_SUBSCRIPTIONGROUP_CONFIG, GetSubscriptionGroupConfigRequestHeader, EmptyHeader,
            Admission::admin>;
using DeleteSubscriptiongroup = Command<RequestCode::DELETE_SUBSCRIPTIONGROUP,
                                        DeleteSubscriptionGroupRequestHeader, EmptyHeader, Admission::admin>;
using DeleteSubscriptionGroupList =
    Command<RequestCode::DELETE_SUBSCRIPTION_GROUP_LIST, EmptyHeader, EmptyHeader, Admission::admin>;
using UpdateAndGetGroupForbidden = Command<RequestCode::UPDATE_AND_GET_GROUP_FORBIDDEN,
                                           UpdateGroupForbiddenRequestHeader, EmptyHeader, Admission::admin>;
using GetConsumerConnectionList =
    Command<RequestCode::GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader, EmptyHeader,
            Admission::admin>;
using GetProducerConnectionList =
    Command<RequestCode::GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader, EmptyHeader,
            Admission::admin>;
using GetAllProducerInfo =
    Command<RequestCode::GET_ALL_PRODUCER_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using GetConsumeStats =
    Command<RequestCode::GET_CONSUME_STATS, GetConsumeStatsRequestHeader, EmptyHeader, Admission::admin>;
using GetBrokerConsumeStats = Command<RequestCode::GET_BROKER_CONSUME_STATS,
                                      GetBrokerConsumeStatsRequestHeader, EmptyHeader, Admission::admin>;
using QueryTopicConsumeByWho = Command<RequestCode::QUERY_TOPIC_CONSUME_BY_WHO,
                                       QueryTopicConsumeByWhoRequestHeader, EmptyHeader, Admission::admin>;
using QueryTopicsByConsumer = Command<RequestCode::QUERY_TOPICS_BY_CONSUMER,
                                      QueryTopicsByConsumerRequestHeader, EmptyHeader, Admission::admin>;
using QuerySubscriptionByConsumer =
    Command<RequestCode::QUERY_SUBSCRIPTION_BY_CONSUMER, QuerySubscriptionByConsumerRequestHeader,
            EmptyHeader, Admission::admin>;
using QueryCorrectionOffset = Command<RequestCode::QUERY_CORRECTION_OFFSET,
                                      QueryCorrectionOffsetRequestHeader, EmptyHeader, Admission::admin>;
using CloneGroupOffset =
    Command<RequestCode::CLONE_GROUP_OFFSET, CloneGroupOffsetRequestHeader, EmptyHeader, Admission::admin>;
using InvokeBrokerToResetOffset = Command<RequestCode::INVOKE_BROKER_TO_RESET_OFFSET,
                                          ResetOffsetRequestHeader, EmptyHeader, Admission::admin>;
using InvokeBrokerToGetConsumerStatus =
    Command<RequestCode::INVOKE_BROKER_TO_GET_CONSUMER_STATUS, GetConsumerStatusRequestHeader, EmptyHeader,
            Admission::admin>;
using GetBrokerRuntimeInfo =
    Command<RequestCode::GET_BROKER_RUNTIME_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using UpdateBrokerConfig =
    Command<RequestCode::UPDATE_BROKER_CONFIG, EmptyHeader, EmptyHeader, Admission::admin>;
using GetBrokerConfig =
    Command<RequestCode::GET_BROKER_CONFIG, EmptyHeader, GetBrokerConfigResponseHeader, Admission::admin>;
using ViewBrokerStatsData = Command<RequestCode::VIEW_BROKER_STATS_DATA, ViewBrokerStatsDataRequestHeader,
                                    EmptyHeader, Admission::admin>;
using GetAllMessageRequestMode =
    Command<RequestCode::GET_ALL_MESSAGE_REQUEST_MODE, EmptyHeader, EmptyHeader, Admission::admin>;
using UpdateColdDataFlowCtrConfig =
    Command<RequestCode::UPDATE_COLD_DATA_FLOW_CTR_CONFIG, EmptyHeader, EmptyHeader, Admission::admin>;
using RemoveColdDataFlowCtrConfig =
    Command<RequestCode::REMOVE_COLD_DATA_FLOW_CTR_CONFIG, EmptyHeader, EmptyHeader, Admission::admin>;
using GetColdDataFlowCtrInfo =
    Command<RequestCode::GET_COLD_DATA_FLOW_CTR_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using SetCommitlogReadMode = Command<RequestCode::SET_COMMITLOG_READ_MODE, SetCommitlogReadModeRequestHeader,
                                     EmptyHeader, Admission::admin>;
using CheckRocksdbCqWriteProgress =
    Command<RequestCode::CHECK_ROCKSDB_CQ_WRITE_PROGRESS, CheckRocksdbCqWriteProgressRequestHeader,
            EmptyHeader, Admission::admin>;
using ExportRocksdbConfigToJson =
    Command<RequestCode::EXPORT_ROCKSDB_CONFIG_TO_JSON, ExportRocksdbConfigToJsonRequestHeader, EmptyHeader,
            Admission::admin>;
using GetTimerCheckPoint =
    Command<RequestCode::GET_TIMER_CHECK_POINT, EmptyHeader, EmptyHeader, Admission::admin>;
using GetTimerMetrics = Command<RequestCode::GET_TIMER_METRICS, EmptyHeader, EmptyHeader, Admission::admin>;
using SwitchTimerEngine =
    Command<RequestCode::SWITCH_TIMER_ENGINE, EmptyHeader, EmptyHeader, Admission::admin>;
using AuthCreateUser =
    Command<RequestCode::AUTH_CREATE_USER, UserRequestHeader, EmptyHeader, Admission::admin>;
using AuthUpdateUser =
    Command<RequestCode::AUTH_UPDATE_USER, UserRequestHeader, EmptyHeader, Admission::admin>;
using AuthDeleteUser =
    Command<RequestCode::AUTH_DELETE_USER, UserRequestHeader, EmptyHeader, Admission::admin>;
using AuthGetUser = Command<RequestCode::AUTH_GET_USER, UserRequestHeader, EmptyHeader, Admission::admin>;
using AuthListUser =
    Command<RequestCode::AUTH_LIST_USER, ListUsersRequestHeader, EmptyHeader, Admission::admin>;
using AuthCreateAcl =
    Command<RequestCode::AUTH_CREATE_ACL, AclSubjectRequestHeader, EmptyHeader, Admission::admin>;
using AuthUpdateAcl =
    Command<RequestCode::AUTH_UPDATE_ACL, AclSubjectRequestHeader, EmptyHeader, Admission::admin>;
using AuthDeleteAcl =
    Command<RequestCode::AUTH_DELETE_ACL, DeleteAclRequestHeader, EmptyHeader, Admission::admin>;
using AuthGetAcl = Command<RequestCode::AUTH_GET_ACL, AclSubjectRequestHeader, EmptyHeader, Admission::admin>;
using AuthListAcl = Command<RequestCode::AUTH_LIST_ACL, ListAclsRequestHeader, EmptyHeader, Admission::admin>;
using QueryBrokerOffset =
    Command<RequestCode::QUERY_BROKER_OFFSET, EmptyHeader, EmptyHeader, Admission::none>;
using GetTopicConfigList =
    Command<RequestCode::GET_TOPIC_CONFIG_LIST, EmptyHeader, EmptyHeader, Admission::none>;
using GetTopicNameList = Command<RequestCode::GET_TOPIC_NAME_LIST, EmptyHeader, EmptyHeader, Admission::none>;
using TriggerDeleteFiles =
    Command<RequestCode::TRIGGER_DELETE_FILES, EmptyHeader, EmptyHeader, Admission::none>;
using SuspendConsumer = Command<RequestCode::SUSPEND_CONSUMER, EmptyHeader, EmptyHeader, Admission::none>;
using ResumeConsumer = Command<RequestCode::RESUME_CONSUMER, EmptyHeader, EmptyHeader, Admission::none>;
using ResetConsumerOffsetInConsumer =
    Command<RequestCode::RESET_CONSUMER_OFFSET_IN_CONSUMER, EmptyHeader, EmptyHeader, Admission::none>;
using ResetConsumerOffsetInBroker =
    Command<RequestCode::RESET_CONSUMER_OFFSET_IN_BROKER, EmptyHeader, EmptyHeader, Admission::none>;
using AdjustConsumerThreadPool =
    Command<RequestCode::ADJUST_CONSUMER_THREAD_POOL, EmptyHeader, EmptyHeader, Admission::none>;
using WhoConsumeTheMessage =
    Command<RequestCode::WHO_CONSUME_THE_MESSAGE, EmptyHeader, EmptyHeader, Admission::none>;
using RegisterFilterServer =
    Command<RequestCode::REGISTER_FILTER_SERVER, EmptyHeader, EmptyHeader, Admission::none>;
using RegisterMessageFilterClass =
    Command<RequestCode::REGISTER_MESSAGE_FILTER_CLASS, EmptyHeader, EmptyHeader, Admission::none>;

using AdminCommands = CommandList<
    UpdateAndCreateTopic, UpdateAndCreateTopicList, UpdateAndCreateStaticTopic, DeleteTopicInBroker,
    DeleteTopicInBrokerList, GetTopicConfig, GetAllTopicConfig, GetTopicStatsInfo,
    GetSystemTopicListFromBroker, CleanUnusedTopic, CleanExpiredConsumequeue, DeleteExpiredCommitlog,
    QueryConsumeQueue, QueryConsumeTimeSpan, UpdateAndCreateSubscriptiongroup,
    UpdateAndCreateSubscriptiongroupList, GetAllSubscriptiongroupConfig, GetSubscriptiongroupConfig,
    DeleteSubscriptiongroup, DeleteSubscriptionGroupList, UpdateAndGetGroupForbidden,
    GetConsumerConnectionList, GetProducerConnectionList, GetAllProducerInfo, GetConsumeStats,
    GetBrokerConsumeStats, QueryTopicConsumeByWho, QueryTopicsByConsumer, QuerySubscriptionByConsumer,
    QueryCorrectionOffset, CloneGroupOffset, InvokeBrokerToResetOffset, InvokeBrokerToGetConsumerStatus,
    GetBrokerRuntimeInfo, UpdateBrokerConfig, GetBrokerConfig, ViewBrokerStatsData, GetAllMessageRequestMode,
    UpdateColdDataFlowCtrConfig, RemoveColdDataFlowCtrConfig, GetColdDataFlowCtrInfo, SetCommitlogReadMode,
    CheckRocksdbCqWriteProgress, ExportRocksdbConfigToJson, GetTimerCheckPoint, GetTimerMetrics,
    SwitchTimerEngine, AuthCreateUser, AuthUpdateUser, AuthDeleteUser, AuthGetUser, AuthListUser,
    AuthCreateAcl, AuthUpdateAcl, AuthDeleteAcl, AuthGetAcl, AuthListAcl, QueryBrokerOffset,
    GetTopicConfigList, GetTopicNameList, TriggerDeleteFiles, SuspendConsumer, ResumeConsumer,
    ResetConsumerOffsetInConsumer, ResetConsumerOffsetInBroker, AdjustConsumerThreadPool,
    WhoConsumeTheMessage, RegisterFilterServer, RegisterMessageFilterClass>;

}  // namespace rmq::proto

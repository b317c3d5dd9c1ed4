// Requests of a server to a client, and the two that a broker relays from an admin tool to a client.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct NotifyConsumerIdsChangedRequestHeader {
  std::string_view consumer_group;
  static constexpr auto fields = describe(
      field("consumerGroup", &NotifyConsumerIdsChangedRequestHeader::consumer_group, Resource::group));
};

// INVOKE_BROKER_TO_RESET_OFFSET (queueId -1: all; timestamp negative: maximum) and its relay to clients.
struct ResetOffsetRequestHeader {
  std::string_view topic, group;
  int64_t timestamp = 0;
  bool is_force = false;
  std::optional<int32_t> queue_id;
  std::optional<int64_t> offset;
  static constexpr auto fields = describe(field("topic", &ResetOffsetRequestHeader::topic, Resource::topic),
                                          field("group", &ResetOffsetRequestHeader::group, Resource::group),
                                          field("timestamp", &ResetOffsetRequestHeader::timestamp),
                                          field("isForce", &ResetOffsetRequestHeader::is_force),
                                          field("queueId", &ResetOffsetRequestHeader::queue_id),
                                          field("offset", &ResetOffsetRequestHeader::offset));
};

struct GetConsumerStatusRequestHeader {
  std::string_view topic, group;
  std::optional<std::string_view> client_addr;
  static constexpr auto fields =
      describe(field("topic", &GetConsumerStatusRequestHeader::topic, Resource::topic),
               field("group", &GetConsumerStatusRequestHeader::group, Resource::group),
               field("clientAddr", &GetConsumerStatusRequestHeader::client_addr));
};

struct GetConsumerRunningInfoRequestHeader {
  std::string_view consumer_group, client_id;
  bool jstack_enable = false;
  static constexpr auto fields =
      describe(field("consumerGroup", &GetConsumerRunningInfoRequestHeader::consumer_group, Resource::group),
               field("clientId", &GetConsumerRunningInfoRequestHeader::client_id),
               defaulted("jstackEnable", &GetConsumerRunningInfoRequestHeader::jstack_enable));
};

struct ConsumeMessageDirectlyRequestHeader {
  std::string_view consumer_group;
  std::optional<std::string_view> client_id, msg_id, broker_name, topic;
  std::optional<int32_t> topic_sys_flag, group_sys_flag;
  static constexpr auto fields =
      describe(field("consumerGroup", &ConsumeMessageDirectlyRequestHeader::consumer_group, Resource::group),
               field("clientId", &ConsumeMessageDirectlyRequestHeader::client_id),
               field("msgId", &ConsumeMessageDirectlyRequestHeader::msg_id),
               field("brokerName", &ConsumeMessageDirectlyRequestHeader::broker_name),
               field("topic", &ConsumeMessageDirectlyRequestHeader::topic, Resource::topic),
               field("topicSysFlag", &ConsumeMessageDirectlyRequestHeader::topic_sys_flag),
               field("groupSysFlag", &ConsumeMessageDirectlyRequestHeader::group_sys_flag));
};

struct ReplyMessageRequestHeader {
  std::string_view producer_group, topic, default_topic;
  int32_t default_topic_queue_nums = 0;
  int32_t queue_id = 0;
  int32_t sys_flag = 0;
  int64_t born_timestamp = 0;
  int32_t flag = 0;
  std::optional<std::string_view> properties;
  std::optional<int32_t> reconsume_times;
  bool unit_mode = false;
  std::string_view born_host, store_host;
  int64_t store_timestamp = 0;
  static constexpr auto fields =
      describe(field("producerGroup", &ReplyMessageRequestHeader::producer_group),
               field("topic", &ReplyMessageRequestHeader::topic, Resource::topic),
               field("defaultTopic", &ReplyMessageRequestHeader::default_topic),
               field("defaultTopicQueueNums", &ReplyMessageRequestHeader::default_topic_queue_nums),
               field("queueId", &ReplyMessageRequestHeader::queue_id),
               field("sysFlag", &ReplyMessageRequestHeader::sys_flag),
               field("bornTimestamp", &ReplyMessageRequestHeader::born_timestamp),
               field("flag", &ReplyMessageRequestHeader::flag),
               field("properties", &ReplyMessageRequestHeader::properties),
               field("reconsumeTimes", &ReplyMessageRequestHeader::reconsume_times),
               defaulted("unitMode", &ReplyMessageRequestHeader::unit_mode),
               field("bornHost", &ReplyMessageRequestHeader::born_host),
               field("storeHost", &ReplyMessageRequestHeader::store_host),
               field("storeTimestamp", &ReplyMessageRequestHeader::store_timestamp));
};

struct NotifyMinBrokerIdChangeRequestHeader {
  std::optional<int64_t> min_broker_id;
  std::optional<std::string_view> broker_name, min_broker_addr, offline_broker_addr, ha_broker_addr;
  static constexpr auto fields =
      describe(field("minBrokerId", &NotifyMinBrokerIdChangeRequestHeader::min_broker_id),
               field("brokerName", &NotifyMinBrokerIdChangeRequestHeader::broker_name),
               field("minBrokerAddr", &NotifyMinBrokerIdChangeRequestHeader::min_broker_addr),
               field("offlineBrokerAddr", &NotifyMinBrokerIdChangeRequestHeader::offline_broker_addr),
               field("haBrokerAddr", &NotifyMinBrokerIdChangeRequestHeader::ha_broker_addr));
};

using NotifyConsumerIdsChanged = Command<RequestCode::NOTIFY_CONSUMER_IDS_CHANGED,
                                         NotifyConsumerIdsChangedRequestHeader, EmptyHeader, Admission::push>;
using ResetConsumerClientOffset = Command<RequestCode::RESET_CONSUMER_CLIENT_OFFSET, ResetOffsetRequestHeader,
                                          EmptyHeader, Admission::push>;
using GetConsumerStatusFromClient = Command<RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT,
                                            GetConsumerStatusRequestHeader, EmptyHeader, Admission::push>;
using GetConsumerRunningInfo = Command<RequestCode::GET_CONSUMER_RUNNING_INFO,
                                       GetConsumerRunningInfoRequestHeader, EmptyHeader, Admission::admin>;
using ConsumeMessageDirectly = Command<RequestCode::CONSUME_MESSAGE_DIRECTLY,
                                       ConsumeMessageDirectlyRequestHeader, EmptyHeader, Admission::admin>;
using PushReplyMessageToClient = Command<RequestCode::PUSH_REPLY_MESSAGE_TO_CLIENT, ReplyMessageRequestHeader,
                                         EmptyHeader, Admission::push>;
using NotifyUnsubscribeLite =
    Command<RequestCode::NOTIFY_UNSUBSCRIBE_LITE, EmptyHeader, EmptyHeader, Admission::push>;
using NotifyMinBrokerIdChange = Command<RequestCode::NOTIFY_MIN_BROKER_ID_CHANGE,
                                        NotifyMinBrokerIdChangeRequestHeader, EmptyHeader, Admission::ha>;

using PushCommands = CommandList<NotifyConsumerIdsChanged, ResetConsumerClientOffset,
                                 GetConsumerStatusFromClient, GetConsumerRunningInfo, ConsumeMessageDirectly,
                                 PushReplyMessageToClient, NotifyUnsubscribeLite, NotifyMinBrokerIdChange>;

}  // namespace rmq::proto

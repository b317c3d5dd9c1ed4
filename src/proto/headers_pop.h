// POP consumption, and the lite topics of 5.5 that build on it.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct PopMessageRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  int32_t max_msg_nums = 0;
  int64_t invisible_time = 0;
  int64_t poll_time = 0;
  int64_t born_time = 0;
  int32_t init_mode = 0;
  std::optional<std::string_view> exp_type, exp;
  bool order = false;
  std::optional<std::string_view> attempt_id;
  static constexpr auto fields = describe(
      field("consumerGroup", &PopMessageRequestHeader::consumer_group, Resource::group),
      field("topic", &PopMessageRequestHeader::topic, Resource::topic),
      field("queueId", &PopMessageRequestHeader::queue_id),
      field("maxMsgNums", &PopMessageRequestHeader::max_msg_nums),
      field("invisibleTime", &PopMessageRequestHeader::invisible_time),
      field("pollTime", &PopMessageRequestHeader::poll_time),
      defaulted("bornTime", &PopMessageRequestHeader::born_time),
      field("initMode", &PopMessageRequestHeader::init_mode),
      field("expType", &PopMessageRequestHeader::exp_type), field("exp", &PopMessageRequestHeader::exp),
      defaulted("order", &PopMessageRequestHeader::order),
      field("attemptId", &PopMessageRequestHeader::attempt_id));
};

struct PopMessageResponseHeader {
  int64_t pop_time = 0;
  int64_t invisible_time = 0;
  int32_t revive_qid = 0;
  int64_t rest_num = 0;
  std::optional<std::string_view> start_offset_info, msg_offset_info, order_count_info;
  static constexpr auto fields =
      describe(field("popTime", &PopMessageResponseHeader::pop_time),
               field("invisibleTime", &PopMessageResponseHeader::invisible_time),
               field("reviveQid", &PopMessageResponseHeader::revive_qid),
               field("restNum", &PopMessageResponseHeader::rest_num),
               field("startOffsetInfo", &PopMessageResponseHeader::start_offset_info),
               field("msgOffsetInfo", &PopMessageResponseHeader::msg_offset_info),
               field("orderCountInfo", &PopMessageResponseHeader::order_count_info));
};

struct AckMessageRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  std::string_view extra_info;
  int64_t offset = 0;
  static constexpr auto fields =
      describe(field("consumerGroup", &AckMessageRequestHeader::consumer_group, Resource::group),
               field("topic", &AckMessageRequestHeader::topic, Resource::topic),
               field("queueId", &AckMessageRequestHeader::queue_id),
               field("extraInfo", &AckMessageRequestHeader::extra_info),
               field("offset", &AckMessageRequestHeader::offset));
};

struct PeekMessageRequestHeader {
  std::string_view topic;
  int32_t queue_id = 0;
  int32_t max_msg_nums = 0;
  std::string_view consumer_group;
  static constexpr auto fields =
      describe(field("topic", &PeekMessageRequestHeader::topic, Resource::topic),
               field("queueId", &PeekMessageRequestHeader::queue_id),
               field("maxMsgNums", &PeekMessageRequestHeader::max_msg_nums),
               field("consumerGroup", &PeekMessageRequestHeader::consumer_group, Resource::group));
};

struct ChangeInvisibleTimeRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  std::string_view extra_info;
  int64_t offset = 0;
  int64_t invisible_time = 0;
  static constexpr auto fields =
      describe(field("consumerGroup", &ChangeInvisibleTimeRequestHeader::consumer_group, Resource::group),
               field("topic", &ChangeInvisibleTimeRequestHeader::topic, Resource::topic),
               field("queueId", &ChangeInvisibleTimeRequestHeader::queue_id),
               field("extraInfo", &ChangeInvisibleTimeRequestHeader::extra_info),
               field("offset", &ChangeInvisibleTimeRequestHeader::offset),
               field("invisibleTime", &ChangeInvisibleTimeRequestHeader::invisible_time));
};

struct ChangeInvisibleTimeResponseHeader {
  int64_t pop_time = 0;
  int64_t invisible_time = 0;
  int32_t revive_qid = 0;
  static constexpr auto fields =
      describe(field("popTime", &ChangeInvisibleTimeResponseHeader::pop_time),
               field("invisibleTime", &ChangeInvisibleTimeResponseHeader::invisible_time),
               field("reviveQid", &ChangeInvisibleTimeResponseHeader::revive_qid));
};

struct NotificationRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  int64_t poll_time = 0;
  int64_t born_time = 0;
  bool order = false;
  std::optional<std::string_view> attempt_id, exp_type, exp;
  static constexpr auto fields = describe(
      field("consumerGroup", &NotificationRequestHeader::consumer_group, Resource::group),
      field("topic", &NotificationRequestHeader::topic, Resource::topic),
      field("queueId", &NotificationRequestHeader::queue_id),
      field("pollTime", &NotificationRequestHeader::poll_time),
      field("bornTime", &NotificationRequestHeader::born_time),
      defaulted("order", &NotificationRequestHeader::order),
      field("attemptId", &NotificationRequestHeader::attempt_id),
      field("expType", &NotificationRequestHeader::exp_type), field("exp", &NotificationRequestHeader::exp));
};

struct NotificationResponseHeader {
  bool has_msg = false;
  bool polling_full = false;
  static constexpr auto fields =
      describe(field("hasMsg", &NotificationResponseHeader::has_msg),
               defaulted("pollingFull", &NotificationResponseHeader::polling_full));
};

struct PollingInfoRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  static constexpr auto fields =
      describe(field("consumerGroup", &PollingInfoRequestHeader::consumer_group, Resource::group),
               field("topic", &PollingInfoRequestHeader::topic, Resource::topic),
               field("queueId", &PollingInfoRequestHeader::queue_id));
};

struct PollingInfoResponseHeader {
  int32_t polling_num = 0;
  static constexpr auto fields = describe(field("pollingNum", &PollingInfoResponseHeader::polling_num));
};

struct PopLiteMessageRequestHeader {
  std::string_view client_id, consumer_group, topic;
  int32_t max_msg_num = 0;
  int64_t invisible_time = 0;
  int64_t poll_time = 0;
  int64_t born_time = 0;
  std::optional<std::string_view> attempt_id;
  static constexpr auto fields =
      describe(field("clientId", &PopLiteMessageRequestHeader::client_id),
               field("consumerGroup", &PopLiteMessageRequestHeader::consumer_group, Resource::group),
               field("topic", &PopLiteMessageRequestHeader::topic, Resource::topic),
               field("maxMsgNum", &PopLiteMessageRequestHeader::max_msg_num),
               field("invisibleTime", &PopLiteMessageRequestHeader::invisible_time),
               field("pollTime", &PopLiteMessageRequestHeader::poll_time),
               field("bornTime", &PopLiteMessageRequestHeader::born_time),
               field("attemptId", &PopLiteMessageRequestHeader::attempt_id));
};

struct PopLiteMessageResponseHeader {
  int64_t pop_time = 0;
  int64_t invisible_time = 0;
  int32_t revive_qid = 0;
  std::optional<std::string_view> start_offset_info, msg_offset_info, order_count_info;
  static constexpr auto fields =
      describe(field("popTime", &PopLiteMessageResponseHeader::pop_time),
               field("invisibleTime", &PopLiteMessageResponseHeader::invisible_time),
               field("reviveQid", &PopLiteMessageResponseHeader::revive_qid),
               field("startOffsetInfo", &PopLiteMessageResponseHeader::start_offset_info),
               field("msgOffsetInfo", &PopLiteMessageResponseHeader::msg_offset_info),
               field("orderCountInfo", &PopLiteMessageResponseHeader::order_count_info));
};

using PopMessage =
    Command<RequestCode::POP_MESSAGE, PopMessageRequestHeader, PopMessageResponseHeader, Admission::pull>;
using AckMessage = Command<RequestCode::ACK_MESSAGE, AckMessageRequestHeader, EmptyHeader, Admission::ack>;
using BatchAckMessage = Command<RequestCode::BATCH_ACK_MESSAGE, EmptyHeader, EmptyHeader, Admission::ack>;
using PeekMessage =
    Command<RequestCode::PEEK_MESSAGE, PeekMessageRequestHeader, PopMessageResponseHeader, Admission::pull>;
using ChangeMessageInvisibletime =
    Command<RequestCode::CHANGE_MESSAGE_INVISIBLETIME, ChangeInvisibleTimeRequestHeader,
            ChangeInvisibleTimeResponseHeader, Admission::ack>;
using Notification = Command<RequestCode::NOTIFICATION, NotificationRequestHeader, NotificationResponseHeader,
                             Admission::pull>;
using PollingInfo =
    Command<RequestCode::POLLING_INFO, PollingInfoRequestHeader, PollingInfoResponseHeader, Admission::pull>;
using PopRollback = Command<RequestCode::POP_ROLLBACK, EmptyHeader, EmptyHeader, Admission::admin>;
using PopLiteMessage = Command<RequestCode::POP_LITE_MESSAGE, PopLiteMessageRequestHeader,
                               PopLiteMessageResponseHeader, Admission::pull>;
using LiteSubscriptionCtl =
    Command<RequestCode::LITE_SUBSCRIPTION_CTL, EmptyHeader, EmptyHeader, Admission::client>;
using AckLiteMessage = Command<RequestCode::ACK_LITE_MESSAGE, EmptyHeader, EmptyHeader, Admission::ack>;
using GetBrokerLiteInfo =
    Command<RequestCode::GET_BROKER_LITE_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using GetParentTopicInfo =
    Command<RequestCode::GET_PARENT_TOPIC_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using GetLiteTopicInfo =
    Command<RequestCode::GET_LITE_TOPIC_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using GetLiteClientInfo =
    Command<RequestCode::GET_LITE_CLIENT_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using GetLiteGroupInfo =
    Command<RequestCode::GET_LITE_GROUP_INFO, EmptyHeader, EmptyHeader, Admission::admin>;
using TriggerLiteDispatch =
    Command<RequestCode::TRIGGER_LITE_DISPATCH, EmptyHeader, EmptyHeader, Admission::admin>;

using PopCommands =
    CommandList<PopMessage, AckMessage, BatchAckMessage, PeekMessage, ChangeMessageInvisibletime,
                Notification, PollingInfo, PopRollback, PopLiteMessage, LiteSubscriptionCtl, AckLiteMessage,
                GetBrokerLiteInfo, GetParentTopicInfo, GetLiteTopicInfo, GetLiteClientInfo, GetLiteGroupInfo,
                TriggerLiteDispatch>;

}  // namespace rmq::proto

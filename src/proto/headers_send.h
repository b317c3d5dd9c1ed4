// Sending: SEND_MESSAGE and its forms, CONSUMER_SEND_MSG_BACK, request-reply messages, RECALL_MESSAGE.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct SendMessageRequestHeader {
  std::string_view producer_group, topic, default_topic;
  int32_t default_topic_queue_nums = 0;
  int32_t queue_id = 0;  // negative: the broker picks a write queue
  int32_t sys_flag = 0;
  int64_t born_timestamp = 0;
  int32_t flag = 0;
  std::optional<std::string_view> properties;  // name 0x01 value 0x02 ...
  int32_t reconsume_times = 0;
  bool unit_mode = false;
  std::optional<int32_t> max_reconsume_times;
  bool batch = false;  // the body is a batch (batch.h), whatever the code
  std::optional<std::string_view> bname;
  static constexpr auto fields =
      describe(field("producerGroup", "a", &SendMessageRequestHeader::producer_group),
               field("topic", "b", &SendMessageRequestHeader::topic, Resource::topic),
               field("defaultTopic", "c", &SendMessageRequestHeader::default_topic),
               field("defaultTopicQueueNums", "d", &SendMessageRequestHeader::default_topic_queue_nums),
               field("queueId", "e", &SendMessageRequestHeader::queue_id),
               field("sysFlag", "f", &SendMessageRequestHeader::sys_flag),
               field("bornTimestamp", "g", &SendMessageRequestHeader::born_timestamp),
               field("flag", "h", &SendMessageRequestHeader::flag),
               field("properties", "i", &SendMessageRequestHeader::properties),
               defaulted("reconsumeTimes", "j", &SendMessageRequestHeader::reconsume_times),
               defaulted("unitMode", "k", &SendMessageRequestHeader::unit_mode),
               field("maxReconsumeTimes", "l", &SendMessageRequestHeader::max_reconsume_times),
               defaulted("batch", "m", &SendMessageRequestHeader::batch),
               field("bname", "n", &SendMessageRequestHeader::bname));
};

struct SendMessageResponseHeader {
  std::string_view msg_id;  // offset id; for a batch a comma list of them
  int32_t queue_id = 0;
  int64_t queue_offset = 0;  // of the first message of a batch
  std::optional<std::string_view> transaction_id, batch_uniq_id, recall_handle;
  std::optional<std::string_view> msg_region,
      trace_on;  // the Java client fails without ext fields: always set both
  static constexpr auto fields = describe(field("msgId", &SendMessageResponseHeader::msg_id),
                                          field("queueId", &SendMessageResponseHeader::queue_id),
                                          field("queueOffset", &SendMessageResponseHeader::queue_offset),
                                          field("transactionId", &SendMessageResponseHeader::transaction_id),
                                          field("batchUniqId", &SendMessageResponseHeader::batch_uniq_id),
                                          field("recallHandle", &SendMessageResponseHeader::recall_handle),
                                          field("MSG_REGION", &SendMessageResponseHeader::msg_region),
                                          field("TRACE_ON", &SendMessageResponseHeader::trace_on));
};

// The ext fields that a refused send must carry too.
struct SendRefusedHeader {
  std::string_view msg_region, trace_on;
  static constexpr auto fields = describe(field("MSG_REGION", &SendRefusedHeader::msg_region),
                                          field("TRACE_ON", &SendRefusedHeader::trace_on));
};

struct ConsumerSendMsgBackRequestHeader {
  int64_t offset = 0;  // physical offset in the CommitLog
  std::string_view group;
  int32_t delay_level = 0;
  std::optional<std::string_view> origin_msg_id, origin_topic;
  bool unit_mode = false;
  std::optional<int32_t> max_reconsume_times;
  static constexpr auto fields =
      describe(field("offset", &ConsumerSendMsgBackRequestHeader::offset),
               field("group", &ConsumerSendMsgBackRequestHeader::group, Resource::group),
               field("delayLevel", &ConsumerSendMsgBackRequestHeader::delay_level),
               field("originMsgId", &ConsumerSendMsgBackRequestHeader::origin_msg_id),
               field("originTopic", &ConsumerSendMsgBackRequestHeader::origin_topic),
               defaulted("unitMode", &ConsumerSendMsgBackRequestHeader::unit_mode),
               field("maxReconsumeTimes", &ConsumerSendMsgBackRequestHeader::max_reconsume_times));
};

struct RecallMessageRequestHeader {
  std::optional<std::string_view> producer_group;
  std::string_view topic, recall_handle;
  static constexpr auto fields = describe(field("producerGroup", &RecallMessageRequestHeader::producer_group),
                                          field("topic", &RecallMessageRequestHeader::topic, Resource::topic),
                                          field("recallHandle", &RecallMessageRequestHeader::recall_handle));
};

struct RecallMessageResponseHeader {
  std::string_view msg_id;
  std::optional<std::string_view> msg_region;
  static constexpr auto fields = describe(field("msgId", &RecallMessageResponseHeader::msg_id),
                                          field("MSG_REGION", &RecallMessageResponseHeader::msg_region));
};

using SendMessage =
    Command<RequestCode::SEND_MESSAGE, SendMessageRequestHeader, SendMessageResponseHeader, Admission::send>;
using SendMessageV2 = Command<RequestCode::SEND_MESSAGE_V2, SendMessageRequestHeader,
                              SendMessageResponseHeader, Admission::send, Names::brief>;
using SendBatchMessage = Command<RequestCode::SEND_BATCH_MESSAGE, SendMessageRequestHeader,
                                 SendMessageResponseHeader, Admission::send, Names::brief>;
using ConsumerSendMsgBack = Command<RequestCode::CONSUMER_SEND_MSG_BACK, ConsumerSendMsgBackRequestHeader,
                                    EmptyHeader, Admission::send>;
using SendReplyMessage = Command<RequestCode::SEND_REPLY_MESSAGE, SendMessageRequestHeader,
                                 SendMessageResponseHeader, Admission::reply>;
using SendReplyMessageV2 = Command<RequestCode::SEND_REPLY_MESSAGE_V2, SendMessageRequestHeader,
                                   SendMessageResponseHeader, Admission::reply, Names::brief>;
using RecallMessage = Command<RequestCode::RECALL_MESSAGE, RecallMessageRequestHeader,
                              RecallMessageResponseHeader, Admission::send>;

using SendCommands = CommandList<SendMessage, SendMessageV2, SendBatchMessage, ConsumerSendMsgBack,
                                 SendReplyMessage, SendReplyMessageV2, RecallMessage>;

}  // namespace rmq::proto

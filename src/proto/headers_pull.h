// Reading: PULL_MESSAGE, LITE_PULL_MESSAGE, QUERY_MESSAGE, VIEW_MESSAGE_BY_ID.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct PullMessageRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  int64_t queue_offset = 0;
  int32_t max_msg_nums = 0;
  int32_t sys_flag = 0;
  int64_t commit_offset = 0;
  int64_t suspend_timeout_millis = 0;
  std::optional<std::string_view> subscription;
  int64_t sub_version = 0;
  std::optional<std::string_view> expression_type;
  std::optional<int32_t> max_msg_bytes, request_source;
  std::optional<std::string_view> proxy_forward_client_id;
  static constexpr auto fields =
      describe(field("consumerGroup", &PullMessageRequestHeader::consumer_group, Resource::group),
               field("topic", &PullMessageRequestHeader::topic, Resource::topic),
               field("queueId", &PullMessageRequestHeader::queue_id),
               field("queueOffset", &PullMessageRequestHeader::queue_offset),
               field("maxMsgNums", &PullMessageRequestHeader::max_msg_nums),
               field("sysFlag", &PullMessageRequestHeader::sys_flag),
               field("commitOffset", &PullMessageRequestHeader::commit_offset),
               field("suspendTimeoutMillis", &PullMessageRequestHeader::suspend_timeout_millis),
               field("subscription", &PullMessageRequestHeader::subscription),
               field("subVersion", &PullMessageRequestHeader::sub_version),
               field("expressionType", &PullMessageRequestHeader::expression_type),
               field("maxMsgBytes", &PullMessageRequestHeader::max_msg_bytes),
               field("requestSource", &PullMessageRequestHeader::request_source),
               field("proxyFrowardClientId", &PullMessageRequestHeader::proxy_forward_client_id));
};

// Sent with every status of a pull, not only with SUCCESS: clients parse it unasked.
struct PullMessageResponseHeader {
  int64_t suggest_which_broker_id = 0;
  int64_t next_begin_offset = 0;
  int64_t min_offset = 0;
  int64_t max_offset = 0;
  std::optional<int64_t> offset_delta;
  std::optional<int32_t> topic_sys_flag, group_sys_flag, forbidden_type;
  static constexpr auto fields =
      describe(field("suggestWhichBrokerId", &PullMessageResponseHeader::suggest_which_broker_id),
               field("nextBeginOffset", &PullMessageResponseHeader::next_begin_offset),
               field("minOffset", &PullMessageResponseHeader::min_offset),
               field("maxOffset", &PullMessageResponseHeader::max_offset),
               field("offsetDelta", &PullMessageResponseHeader::offset_delta),
               field("topicSysFlag", &PullMessageResponseHeader::topic_sys_flag),
               field("groupSysFlag", &PullMessageResponseHeader::group_sys_flag),
               field("forbiddenType", &PullMessageResponseHeader::forbidden_type));
};

struct QueryMessageRequestHeader {
  std::string_view topic, key;
  int32_t max_num = 0;
  int64_t begin_timestamp = 0;
  int64_t end_timestamp = 0;
  std::optional<bool> unique_key_query;
  std::optional<std::string_view> index_type;  // from 5.5 on: "K", "U" or "T"
  static constexpr auto fields = describe(
      field("topic", &QueryMessageRequestHeader::topic, Resource::topic),
      field("key", &QueryMessageRequestHeader::key), field("maxNum", &QueryMessageRequestHeader::max_num),
      field("beginTimestamp", &QueryMessageRequestHeader::begin_timestamp),
      field("endTimestamp", &QueryMessageRequestHeader::end_timestamp),
      field("_UNIQUE_KEY_QUERY", &QueryMessageRequestHeader::unique_key_query),
      field("indexType", &QueryMessageRequestHeader::index_type));
};

struct QueryMessageResponseHeader {
  int64_t index_last_update_timestamp = 0;
  int64_t index_last_update_phyoffset = 0;
  static constexpr auto fields =
      describe(field("indexLastUpdateTimestamp", &QueryMessageResponseHeader::index_last_update_timestamp),
               field("indexLastUpdatePhyoffset", &QueryMessageResponseHeader::index_last_update_phyoffset));
};

struct ViewMessageRequestHeader {
  std::optional<std::string_view> topic;
  int64_t offset = 0;
  static constexpr auto fields = describe(field("topic", &ViewMessageRequestHeader::topic, Resource::topic),
                                          field("offset", &ViewMessageRequestHeader::offset));
};

using PullMessage =
    Command<RequestCode::PULL_MESSAGE, PullMessageRequestHeader, PullMessageResponseHeader, Admission::pull>;
using LitePullMessage = Command<RequestCode::LITE_PULL_MESSAGE, PullMessageRequestHeader,
                                PullMessageResponseHeader, Admission::lite_pull>;
using QueryMessage = Command<RequestCode::QUERY_MESSAGE, QueryMessageRequestHeader,
                             QueryMessageResponseHeader, Admission::query>;
using ViewMessageById =
    Command<RequestCode::VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader, EmptyHeader, Admission::query>;

using PullCommands = CommandList<PullMessage, LitePullMessage, QueryMessage, ViewMessageById>;

}  // namespace rmq::proto

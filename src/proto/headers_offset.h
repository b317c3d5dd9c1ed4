// Offsets of consumers and of queues.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct QueryConsumerOffsetRequestHeader {
  std::string_view consumer_group, topic;
  int32_t queue_id = 0;
  std::optional<bool> set_zero_if_not_found;
  static constexpr auto fields =
      describe(field("consumerGroup", &QueryConsumerOffsetRequestHeader::consumer_group, Resource::group),
               field("topic", &QueryConsumerOffsetRequestHeader::topic, Resource::topic),
               field("queueId", &QueryConsumerOffsetRequestHeader::queue_id),
               field("setZeroIfNotFound", &QueryConsumerOffsetRequestHeader::set_zero_if_not_found));
};

struct QueryConsumerOffsetResponseHeader {
  int64_t offset = 0;
  static constexpr auto fields = describe(field("offset", &QueryConsumerOffsetResponseHeader::offset));
};

struct UpdateConsumerOffsetRequestHeader {
  std::string_view consumer_group, topic;
  // Absent ones are answered INVALID_PARAMETER, not SYSTEM_ERROR as elsewhere.
  std::optional<int32_t> queue_id;
  std::optional<int64_t> commit_offset;
  static constexpr auto fields =
      describe(field("consumerGroup", &UpdateConsumerOffsetRequestHeader::consumer_group, Resource::group),
               field("topic", &UpdateConsumerOffsetRequestHeader::topic, Resource::topic),
               field("queueId", &UpdateConsumerOffsetRequestHeader::queue_id),
               field("commitOffset", &UpdateConsumerOffsetRequestHeader::commit_offset));
};

struct GetMaxOffsetRequestHeader {
  std::string_view topic;
  int32_t queue_id = 0;
  bool committed = true;
  static constexpr auto fields = describe(field("topic", &GetMaxOffsetRequestHeader::topic, Resource::topic),
                                          field("queueId", &GetMaxOffsetRequestHeader::queue_id),
                                          defaulted("committed", &GetMaxOffsetRequestHeader::committed));
};

struct GetMinOffsetRequestHeader {
  std::string_view topic;
  int32_t queue_id = 0;
  static constexpr auto fields = describe(field("topic", &GetMinOffsetRequestHeader::topic, Resource::topic),
                                          field("queueId", &GetMinOffsetRequestHeader::queue_id));
};

// GET_MAX_OFFSET, GET_MIN_OFFSET, SEARCH_OFFSET_BY_TIMESTAMP.
struct OffsetResponseHeader {
  int64_t offset = 0;
  static constexpr auto fields = describe(field("offset", &OffsetResponseHeader::offset));
};

// boundaryType: "lower" (also when absent) or "upper", in any case.
struct SearchOffsetRequestHeader {
  std::string_view topic;
  int32_t queue_id = 0;
  int64_t timestamp = 0;
  std::optional<std::string_view> boundary_type;
  static constexpr auto fields = describe(field("topic", &SearchOffsetRequestHeader::topic, Resource::topic),
                                          field("queueId", &SearchOffsetRequestHeader::queue_id),
                                          field("timestamp", &SearchOffsetRequestHeader::timestamp),
                                          field("boundaryType", &SearchOffsetRequestHeader::boundary_type));
};

struct GetEarliestMsgStoretimeRequestHeader {
  std::string_view topic;
  int32_t queue_id = 0;
  static constexpr auto fields =
      describe(field("topic", &GetEarliestMsgStoretimeRequestHeader::topic, Resource::topic),
               field("queueId", &GetEarliestMsgStoretimeRequestHeader::queue_id));
};

struct GetEarliestMsgStoretimeResponseHeader {
  int64_t timestamp = 0;
  static constexpr auto fields =
      describe(field("timestamp", &GetEarliestMsgStoretimeResponseHeader::timestamp));
};

using QueryConsumerOffset = Command<RequestCode::QUERY_CONSUMER_OFFSET, QueryConsumerOffsetRequestHeader,
                                    QueryConsumerOffsetResponseHeader, Admission::offset>;
using UpdateConsumerOffset = Command<RequestCode::UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader,
                                     EmptyHeader, Admission::offset>;
using GetMaxOffset =
    Command<RequestCode::GET_MAX_OFFSET, GetMaxOffsetRequestHeader, OffsetResponseHeader, Admission::admin>;
using GetMinOffset =
    Command<RequestCode::GET_MIN_OFFSET, GetMinOffsetRequestHeader, OffsetResponseHeader, Admission::admin>;
using SearchOffsetByTimestamp = Command<RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetRequestHeader,
                                        OffsetResponseHeader, Admission::admin>;
using GetEarliestMsgStoretime =
    Command<RequestCode::GET_EARLIEST_MSG_STORETIME, GetEarliestMsgStoretimeRequestHeader,
            GetEarliestMsgStoretimeResponseHeader, Admission::admin>;

using OffsetCommands = CommandList<QueryConsumerOffset, UpdateConsumerOffset, GetMaxOffset, GetMinOffset,
                                   SearchOffsetByTimestamp, GetEarliestMsgStoretime>;

}  // namespace rmq::proto

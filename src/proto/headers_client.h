// Clients: heartbeats, consumer lists, queue locks, assignment. Bodies in bodies_client.h.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct HeartbeatResponseHeader {
  bool is_support_heart_beat_v2 = false;
  bool is_sub_change = false;
  static constexpr auto fields =
      describe(field("IS_SUPPORT_HEART_BEAT_V2", &HeartbeatResponseHeader::is_support_heart_beat_v2),
               field("IS_SUB_CHANGE", &HeartbeatResponseHeader::is_sub_change));
};

struct UnregisterClientRequestHeader {
  std::string_view client_id;
  std::optional<std::string_view> producer_group, consumer_group;
  static constexpr auto fields =
      describe(field("clientID", &UnregisterClientRequestHeader::client_id),
               field("producerGroup", &UnregisterClientRequestHeader::producer_group),
               field("consumerGroup", &UnregisterClientRequestHeader::consumer_group, Resource::group));
};

struct GetConsumerListByGroupRequestHeader {
  std::string_view consumer_group;
  static constexpr auto fields =
      describe(field("consumerGroup", &GetConsumerListByGroupRequestHeader::consumer_group, Resource::group));
};

using HeartBeat =
    Command<RequestCode::HEART_BEAT, EmptyHeader, HeartbeatResponseHeader, Admission::heartbeat>;
using UnregisterClient =
    Command<RequestCode::UNREGISTER_CLIENT, UnregisterClientRequestHeader, EmptyHeader, Admission::client>;
using CheckClientConfig =
    Command<RequestCode::CHECK_CLIENT_CONFIG, EmptyHeader, EmptyHeader, Admission::client>;
using GetConsumerListByGroup = Command<RequestCode::GET_CONSUMER_LIST_BY_GROUP,
                                       GetConsumerListByGroupRequestHeader, EmptyHeader, Admission::consumer>;
using LockBatchMq = Command<RequestCode::LOCK_BATCH_MQ, EmptyHeader, EmptyHeader, Admission::consumer>;
using UnlockBatchMq = Command<RequestCode::UNLOCK_BATCH_MQ, EmptyHeader, EmptyHeader, Admission::consumer>;
using QueryAssignment = Command<RequestCode::QUERY_ASSIGNMENT, EmptyHeader, EmptyHeader, Admission::consumer>;
using SetMessageRequestMode =
    Command<RequestCode::SET_MESSAGE_REQUEST_MODE, EmptyHeader, EmptyHeader, Admission::consumer>;
using GetClientConfig = Command<RequestCode::GET_CLIENT_CONFIG, EmptyHeader, EmptyHeader, Admission::none>;

using ClientCommands =
    CommandList<HeartBeat, UnregisterClient, CheckClientConfig, GetConsumerListByGroup, LockBatchMq,
                UnlockBatchMq, QueryAssignment, SetMessageRequestMode, GetClientConfig>;

}  // namespace rmq::proto

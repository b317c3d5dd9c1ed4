// Between brokers, and between brokers and controllers (ha.md).
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

// With masterHaAddress the receiver stores the values, without it a master answers its own.
struct ExchangeHaInfoRequestHeader {
  std::optional<std::string_view> master_ha_address;
  std::optional<int64_t> master_flush_offset;
  std::optional<std::string_view> master_address;
  static constexpr auto fields =
      describe(field("masterHaAddress", &ExchangeHaInfoRequestHeader::master_ha_address),
               field("masterFlushOffset", &ExchangeHaInfoRequestHeader::master_flush_offset),
               field("masterAddress", &ExchangeHaInfoRequestHeader::master_address));
};

struct ExchangeHaInfoResponseHeader {
  std::optional<std::string_view> master_ha_address;
  std::optional<int64_t> master_flush_offset;
  std::optional<std::string_view> master_address;
  static constexpr auto fields =
      describe(field("masterHaAddress", &ExchangeHaInfoResponseHeader::master_ha_address),
               field("masterFlushOffset", &ExchangeHaInfoResponseHeader::master_flush_offset),
               field("masterAddress", &ExchangeHaInfoResponseHeader::master_address));
};

struct ResetMasterFlushOffsetHeader {
  int64_t master_flush_offset = 0;
  static constexpr auto fields =
      describe(field("masterFlushOffset", &ResetMasterFlushOffsetHeader::master_flush_offset));
};

struct NotifyBrokerRoleChangedRequestHeader {
  std::optional<std::string_view> master_address;
  std::optional<int32_t> master_epoch, sync_state_set_epoch;
  std::optional<int64_t> master_broker_id;
  static constexpr auto fields =
      describe(field("masterAddress", &NotifyBrokerRoleChangedRequestHeader::master_address),
               field("masterEpoch", &NotifyBrokerRoleChangedRequestHeader::master_epoch),
               field("syncStateSetEpoch", &NotifyBrokerRoleChangedRequestHeader::sync_state_set_epoch),
               field("masterBrokerId", &NotifyBrokerRoleChangedRequestHeader::master_broker_id));
};

struct AddBrokerRequestHeader {
  std::optional<std::string_view> config_path;
  static constexpr auto fields = describe(field("configPath", &AddBrokerRequestHeader::config_path));
};

struct RemoveBrokerRequestHeader {
  std::string_view broker_name, broker_cluster_name;
  int64_t broker_id = 0;
  static constexpr auto fields =
      describe(field("brokerName", &RemoveBrokerRequestHeader::broker_name),
               field("brokerClusterName", &RemoveBrokerRequestHeader::broker_cluster_name, Resource::cluster),
               field("brokerId", &RemoveBrokerRequestHeader::broker_id));
};

struct AlterSyncStateSetRequestHeader {
  std::optional<std::string_view> broker_name;
  std::optional<int64_t> master_broker_id;
  std::optional<int32_t> master_epoch;
  std::optional<int64_t> invoke_time;
  static constexpr auto fields =
      describe(field("brokerName", &AlterSyncStateSetRequestHeader::broker_name),
               field("masterBrokerId", &AlterSyncStateSetRequestHeader::master_broker_id),
               field("masterEpoch", &AlterSyncStateSetRequestHeader::master_epoch),
               field("invokeTime", &AlterSyncStateSetRequestHeader::invoke_time));
};

struct AlterSyncStateSetResponseHeader {
  int32_t new_sync_state_set_epoch = 0;
  static constexpr auto fields =
      describe(field("newSyncStateSetEpoch", &AlterSyncStateSetResponseHeader::new_sync_state_set_epoch));
};

struct ElectMasterRequestHeader {
  std::string_view cluster_name, broker_name;
  int64_t broker_id = -1;
  bool designate_elect = false;
  std::optional<int64_t> invoke_time;
  static constexpr auto fields =
      describe(field("clusterName", &ElectMasterRequestHeader::cluster_name, Resource::cluster),
               field("brokerName", &ElectMasterRequestHeader::broker_name),
               defaulted("brokerId", &ElectMasterRequestHeader::broker_id),
               defaulted("designateElect", &ElectMasterRequestHeader::designate_elect),
               field("invokeTime", &ElectMasterRequestHeader::invoke_time));
};

struct ElectMasterResponseHeader {
  std::optional<int64_t> master_broker_id;
  std::optional<std::string_view> master_address;
  std::optional<int32_t> master_epoch, sync_state_set_epoch;
  static constexpr auto fields =
      describe(field("masterBrokerId", &ElectMasterResponseHeader::master_broker_id),
               field("masterAddress", &ElectMasterResponseHeader::master_address),
               field("masterEpoch", &ElectMasterResponseHeader::master_epoch),
               field("syncStateSetEpoch", &ElectMasterResponseHeader::sync_state_set_epoch));
};

struct RegisterBrokerToControllerRequestHeader {
  std::optional<std::string_view> cluster_name, broker_name;
  std::optional<int64_t> broker_id;
  std::optional<std::string_view> broker_address;
  std::optional<int64_t> invoke_time;
  static constexpr auto fields = describe(
      field("clusterName", &RegisterBrokerToControllerRequestHeader::cluster_name, Resource::cluster),
      field("brokerName", &RegisterBrokerToControllerRequestHeader::broker_name),
      field("brokerId", &RegisterBrokerToControllerRequestHeader::broker_id),
      field("brokerAddress", &RegisterBrokerToControllerRequestHeader::broker_address),
      field("invokeTime", &RegisterBrokerToControllerRequestHeader::invoke_time));
};

struct RegisterBrokerToControllerResponseHeader {
  std::optional<std::string_view> cluster_name, broker_name;
  std::optional<int64_t> master_broker_id;
  std::optional<std::string_view> master_address;
  std::optional<int32_t> master_epoch, sync_state_set_epoch;
  static constexpr auto fields = describe(
      field("clusterName", &RegisterBrokerToControllerResponseHeader::cluster_name, Resource::cluster),
      field("brokerName", &RegisterBrokerToControllerResponseHeader::broker_name),
      field("masterBrokerId", &RegisterBrokerToControllerResponseHeader::master_broker_id),
      field("masterAddress", &RegisterBrokerToControllerResponseHeader::master_address),
      field("masterEpoch", &RegisterBrokerToControllerResponseHeader::master_epoch),
      field("syncStateSetEpoch", &RegisterBrokerToControllerResponseHeader::sync_state_set_epoch));
};

struct GetReplicaInfoRequestHeader {
  std::optional<std::string_view> broker_name;
  static constexpr auto fields = describe(field("brokerName", &GetReplicaInfoRequestHeader::broker_name));
};

struct GetReplicaInfoResponseHeader {
  std::optional<int64_t> master_broker_id;
  std::optional<std::string_view> master_address;
  std::optional<int32_t> master_epoch;
  static constexpr auto fields =
      describe(field("masterBrokerId", &GetReplicaInfoResponseHeader::master_broker_id),
               field("masterAddress", &GetReplicaInfoResponseHeader::master_address),
               field("masterEpoch", &GetReplicaInfoResponseHeader::master_epoch));
};

struct GetMetaDataResponseHeader {
  std::optional<std::string_view> group, controller_leader_id, controller_leader_address;
  std::optional<bool> is_leader;
  std::optional<std::string_view> peers;
  static constexpr auto fields =
      describe(field("group", &GetMetaDataResponseHeader::group),
               field("controllerLeaderId", &GetMetaDataResponseHeader::controller_leader_id),
               field("controllerLeaderAddress", &GetMetaDataResponseHeader::controller_leader_address),
               field("isLeader", &GetMetaDataResponseHeader::is_leader),
               field("peers", &GetMetaDataResponseHeader::peers));
};

struct CleanBrokerDataRequestHeader {
  std::optional<std::string_view> cluster_name;
  std::string_view broker_name;
  std::optional<std::string_view> broker_controller_ids_to_clean;
  bool is_clean_living_broker = false;
  static constexpr auto fields = describe(
      field("clusterName", &CleanBrokerDataRequestHeader::cluster_name, Resource::cluster),
      field("brokerName", &CleanBrokerDataRequestHeader::broker_name),
      field("brokerControllerIdsToClean", &CleanBrokerDataRequestHeader::broker_controller_ids_to_clean),
      defaulted("isCleanLivingBroker", &CleanBrokerDataRequestHeader::is_clean_living_broker));
};

struct GetNextBrokerIdRequestHeader {
  std::optional<std::string_view> cluster_name, broker_name;
  static constexpr auto fields =
      describe(field("clusterName", &GetNextBrokerIdRequestHeader::cluster_name, Resource::cluster),
               field("brokerName", &GetNextBrokerIdRequestHeader::broker_name));
};

struct GetNextBrokerIdResponseHeader {
  std::optional<std::string_view> cluster_name, broker_name;
  std::optional<int64_t> next_broker_id;
  static constexpr auto fields =
      describe(field("clusterName", &GetNextBrokerIdResponseHeader::cluster_name, Resource::cluster),
               field("brokerName", &GetNextBrokerIdResponseHeader::broker_name),
               field("nextBrokerId", &GetNextBrokerIdResponseHeader::next_broker_id));
};

struct ApplyBrokerIdRequestHeader {
  std::optional<std::string_view> cluster_name, broker_name;
  std::optional<int64_t> applied_broker_id;
  std::optional<std::string_view> register_check_code;
  static constexpr auto fields =
      describe(field("clusterName", &ApplyBrokerIdRequestHeader::cluster_name, Resource::cluster),
               field("brokerName", &ApplyBrokerIdRequestHeader::broker_name),
               field("appliedBrokerId", &ApplyBrokerIdRequestHeader::applied_broker_id),
               field("registerCheckCode", &ApplyBrokerIdRequestHeader::register_check_code));
};

struct ApplyBrokerIdResponseHeader {
  std::optional<std::string_view> cluster_name, broker_name;
  static constexpr auto fields =
      describe(field("clusterName", &ApplyBrokerIdResponseHeader::cluster_name, Resource::cluster),
               field("brokerName", &ApplyBrokerIdResponseHeader::broker_name));
};

using GetAllConsumerOffset =
    Command<RequestCode::GET_ALL_CONSUMER_OFFSET, EmptyHeader, EmptyHeader, Admission::ha>;
using GetAllDelayOffset = Command<RequestCode::GET_ALL_DELAY_OFFSET, EmptyHeader, EmptyHeader, Admission::ha>;
using AddBroker = Command<RequestCode::ADD_BROKER, AddBrokerRequestHeader, EmptyHeader, Admission::none>;
using RemoveBroker =
    Command<RequestCode::REMOVE_BROKER, RemoveBrokerRequestHeader, EmptyHeader, Admission::none>;
using ExchangeBrokerHaInfo = Command<RequestCode::EXCHANGE_BROKER_HA_INFO, ExchangeHaInfoRequestHeader,
                                     ExchangeHaInfoResponseHeader, Admission::ha>;
using GetBrokerHaStatus =
    Command<RequestCode::GET_BROKER_HA_STATUS, EmptyHeader, EmptyHeader, Admission::admin>;
using ResetMasterFlushOffset = Command<RequestCode::RESET_MASTER_FLUSH_OFFSET, ResetMasterFlushOffsetHeader,
                                       EmptyHeader, Admission::admin>;
using GetBrokerEpochCache =
    Command<RequestCode::GET_BROKER_EPOCH_CACHE, EmptyHeader, EmptyHeader, Admission::admin>;
using NotifyBrokerRoleChanged = Command<RequestCode::NOTIFY_BROKER_ROLE_CHANGED,
                                        NotifyBrokerRoleChangedRequestHeader, EmptyHeader, Admission::ha>;
using ControllerAlterSyncStateSet =
    Command<RequestCode::CONTROLLER_ALTER_SYNC_STATE_SET, AlterSyncStateSetRequestHeader,
            AlterSyncStateSetResponseHeader, Admission::controller>;
using ControllerElectMaster = Command<RequestCode::CONTROLLER_ELECT_MASTER, ElectMasterRequestHeader,
                                      ElectMasterResponseHeader, Admission::controller>;
using ControllerRegisterBroker =
    Command<RequestCode::CONTROLLER_REGISTER_BROKER, RegisterBrokerToControllerRequestHeader,
            RegisterBrokerToControllerResponseHeader, Admission::controller>;
using ControllerGetReplicaInfo =
    Command<RequestCode::CONTROLLER_GET_REPLICA_INFO, GetReplicaInfoRequestHeader,
            GetReplicaInfoResponseHeader, Admission::controller>;
using ControllerGetMetadataInfo = Command<RequestCode::CONTROLLER_GET_METADATA_INFO, EmptyHeader,
                                          GetMetaDataResponseHeader, Admission::controller>;
using ControllerGetSyncStateData =
    Command<RequestCode::CONTROLLER_GET_SYNC_STATE_DATA, EmptyHeader, EmptyHeader, Admission::controller>;
using UpdateControllerConfig =
    Command<RequestCode::UPDATE_CONTROLLER_CONFIG, EmptyHeader, EmptyHeader, Admission::controller>;
using GetControllerConfig =
    Command<RequestCode::GET_CONTROLLER_CONFIG, EmptyHeader, EmptyHeader, Admission::controller>;
using CleanBrokerData =
    Command<RequestCode::CLEAN_BROKER_DATA, CleanBrokerDataRequestHeader, EmptyHeader, Admission::controller>;
using ControllerGetNextBrokerId =
    Command<RequestCode::CONTROLLER_GET_NEXT_BROKER_ID, GetNextBrokerIdRequestHeader,
            GetNextBrokerIdResponseHeader, Admission::controller>;
using ControllerApplyBrokerId = Command<RequestCode::CONTROLLER_APPLY_BROKER_ID, ApplyBrokerIdRequestHeader,
                                        ApplyBrokerIdResponseHeader, Admission::controller>;

using HaCommands =
    CommandList<GetAllConsumerOffset, GetAllDelayOffset, AddBroker, RemoveBroker, ExchangeBrokerHaInfo,
                GetBrokerHaStatus, ResetMasterFlushOffset, GetBrokerEpochCache, NotifyBrokerRoleChanged,
                ControllerAlterSyncStateSet, ControllerElectMaster, ControllerRegisterBroker,
                ControllerGetReplicaInfo, ControllerGetMetadataInfo, ControllerGetSyncStateData,
                UpdateControllerConfig, GetControllerConfig, CleanBrokerData, ControllerGetNextBrokerId,
                ControllerApplyBrokerId>;

}  // namespace rmq::proto

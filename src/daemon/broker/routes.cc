// Which handler answers which request code: a line a row. Rows that this broker does not serve are named, so
// that nothing is forgotten silently; they are answered REQUEST_CODE_NOT_SUPPORTED.
#include "daemon/routes.h"

#include "daemon/broker/handlers.h"

namespace rmq::broker {

namespace {

using namespace proto;

using Served = RouteList<
    // messages
    Route<SendMessage, send_message>,                          //
    Route<SendMessageV2, send_message>,                        //
    Route<SendBatchMessage, send_batch_message>,               //
    Route<SendReplyMessage, send_reply_message>,               //
    Route<SendReplyMessageV2, send_reply_message>,             //
    Route<ConsumerSendMsgBack, consumer_send_msg_back>,        //
    Route<EndTransaction, end_transaction>,                    //
    Route<ResumeCheckHalfMessage, resume_check_half_message>,  //
    Route<PullMessage, pull_message>,                          //
    Route<LitePullMessage, lite_pull_message>,                 //
    Route<ViewMessageById, view_message_by_id>,                //
    Route<QueryMessage, query_message>,                        //
    Route<RecallMessage, recall_message>,                      //
    // POP
    Route<PopMessage, pop_message>,                                   //
    Route<PeekMessage, peek_message>,                                 //
    Route<AckMessage, ack_message>,                                   //
    Route<BatchAckMessage, batch_ack_message>,                        //
    Route<ChangeMessageInvisibletime, change_message_invisibletime>,  //
    Route<Notification, notification>,                                //
    Route<PollingInfo, polling_info>,                                 //
    Route<PopRollback, pop_rollback>,                                 //
    Route<QueryAssignment, query_assignment>,                         //
    Route<SetMessageRequestMode, set_message_request_mode>,           //
    Route<GetAllMessageRequestMode, get_all_message_request_mode>,    //
    // offsets
    Route<QueryConsumerOffset, query_consumer_offset>,           //
    Route<UpdateConsumerOffset, update_consumer_offset>,         //
    Route<GetMaxOffset, get_max_offset>,                         //
    Route<GetMinOffset, get_min_offset>,                         //
    Route<SearchOffsetByTimestamp, search_offset_by_timestamp>,  //
    Route<GetEarliestMsgStoretime, get_earliest_msg_storetime>,  //
    Route<GetAllConsumerOffset, get_all_consumer_offset>,        //
    Route<GetAllDelayOffset, get_all_delay_offset>,              //
    Route<CloneGroupOffset, clone_group_offset>,                 //
    Route<InvokeBrokerToResetOffset, reset_offset>,              //
    Route<QueryCorrectionOffset, query_correction_offset>,       //
    // clients
    Route<HeartBeat, heart_beat>,                                    //
    Route<UnregisterClient, unregister_client>,                      //
    Route<CheckClientConfig, check_client_config>,                   //
    Route<GetConsumerListByGroup, get_consumer_list_by_group>,       //
    Route<LockBatchMq, lock_batch_mq>,                               //
    Route<UnlockBatchMq, unlock_batch_mq>,                           //
    Route<GetConsumerConnectionList, get_consumer_connection_list>,  //
    Route<GetProducerConnectionList, get_producer_connection_list>,  //
    Route<GetAllProducerInfo, get_all_producer_info>,                //
    Route<GetConsumerRunningInfo, get_consumer_running_info>,        //
    Route<InvokeBrokerToGetConsumerStatus, get_consumer_status>,     //
    Route<ConsumeMessageDirectly, consume_message_directly>,         //
    // topics
    Route<UpdateAndCreateTopic, update_and_create_topic>,           //
    Route<UpdateAndCreateTopicList, update_and_create_topic_list>,  //
    Route<QueryConsumeQueue, query_consume_queue>,                  //
    Route<QueryConsumeTimeSpan, query_consume_time_span>,           //
    Route<DeleteTopicInBroker, delete_topic>,                       //
    Route<GetAllTopicConfig, get_all_topic_config>,                 //
    Route<GetTopicConfig, get_topic_config>,                        //
    Route<GetTopicStatsInfo, get_topic_stats_info>,                 //
    Route<GetSystemTopicListFromBroker, get_system_topic_list>,     //
    // groups
    Route<UpdateAndCreateSubscriptiongroup, update_and_create_group>,           //
    Route<UpdateAndCreateSubscriptiongroupList, update_and_create_group_list>,  //
    Route<UpdateAndGetGroupForbidden, update_and_get_group_forbidden>,          //
    Route<DeleteSubscriptiongroup, delete_group>,                               //
    Route<GetAllSubscriptiongroupConfig, get_all_group_config>,                 //
    Route<GetSubscriptiongroupConfig, get_group_config>,                        //
    Route<GetConsumeStats, get_consume_stats>,                                  //
    Route<GetBrokerConsumeStats, get_broker_consume_stats>,                     //
    Route<QueryTopicConsumeByWho, query_topic_consume_by_who>,                  //
    Route<QueryTopicsByConsumer, query_topics_by_consumer>,                     //
    Route<QuerySubscriptionByConsumer, query_subscription_by_consumer>,         //
    // the broker
    Route<GetBrokerRuntimeInfo, get_broker_runtime_info>,         //
    Route<GetBrokerConfig, get_broker_config>,                    //
    Route<GetBrokerHaStatus, get_broker_ha_status>,               //
    Route<ViewBrokerStatsData, view_broker_stats_data>,           //
    Route<DeleteExpiredCommitlog, delete_expired_commitlog>,      //
    Route<CleanExpiredConsumequeue, clean_expired_consumequeue>,  //
    Route<CleanUnusedTopic, clean_unused_topic>,                  //
    Route<GetTimerCheckPoint, get_timer_check_point>,             //
    Route<GetTimerMetrics, get_timer_metrics>,                    //
    Route<UpdateBrokerConfig, update_broker_config>>;

// Of other servers, or sent by brokers only.
using OfOthers = CommandList<CheckTransactionState, NotifyConsumerIdsChanged, ResetConsumerClientOffset,
                             GetConsumerStatusFromClient, PushReplyMessageToClient, NotifyUnsubscribeLite>;

// Not served by the reference either (remoting.md, end of section 17).
using Obsolete = CommandList<QueryBrokerOffset, GetTopicConfigList, GetTopicNameList, TriggerDeleteFiles,
                             SuspendConsumer, ResumeConsumer, ResetConsumerOffsetInConsumer,
                             ResetConsumerOffsetInBroker, AdjustConsumerThreadPool, WhoConsumeTheMessage,
                             RegisterFilterServer, RegisterMessageFilterClass, GetClientConfig>;

// Lite topics, replication, access control, and what why_not_served() says.
using ToCome = CommandList<
    PopLiteMessage, LiteSubscriptionCtl, AckLiteMessage, GetBrokerLiteInfo, GetParentTopicInfo,
    GetLiteTopicInfo, GetLiteClientInfo, GetLiteGroupInfo, TriggerLiteDispatch, NotifyMinBrokerIdChange,
    UpdateAndCreateStaticTopic, DeleteTopicInBrokerList, DeleteSubscriptionGroupList,
    UpdateColdDataFlowCtrConfig, RemoveColdDataFlowCtrConfig, GetColdDataFlowCtrInfo, SetCommitlogReadMode,
    CheckRocksdbCqWriteProgress, ExportRocksdbConfigToJson, SwitchTimerEngine, AuthCreateUser, AuthUpdateUser,
    AuthDeleteUser, AuthGetUser, AuthListUser, AuthCreateAcl, AuthUpdateAcl, AuthDeleteAcl, AuthGetAcl,
    AuthListAcl, AddBroker, RemoveBroker, ExchangeBrokerHaInfo, ResetMasterFlushOffset, GetBrokerEpochCache,
    NotifyBrokerRoleChanged, ControllerAlterSyncStateSet, ControllerElectMaster, ControllerRegisterBroker,
    ControllerGetReplicaInfo, ControllerGetMetadataInfo, ControllerGetSyncStateData, UpdateControllerConfig,
    GetControllerConfig, CleanBrokerData, ControllerGetNextBrokerId, ControllerApplyBrokerId>;

using Table = Routes<Broker, Served, NotServed<NamesrvCommands, OfOthers, Obsolete, ToCome>>;

// The second port (listenPort - 2) does not serve pulls and pops (remoting.md 7).
bool is_main_port_only(int32_t code) {
  switch (static_cast<RequestCode>(code)) {
    case RequestCode::PULL_MESSAGE:
    case RequestCode::LITE_PULL_MESSAGE:
    case RequestCode::POP_MESSAGE:
    case RequestCode::PEEK_MESSAGE:
    case RequestCode::NOTIFICATION:
    case RequestCode::POLLING_INFO:
      return true;
    default:
      return false;
  }
}

constexpr std::string_view no_access_control =
    "rmqd has no users and ACLs yet; who may connect is the network's to say";
constexpr std::string_view no_replicas = "rmqd has no replicas yet: every rmqd is a master";
constexpr std::string_view no_controller = "rmqd has no controller";
constexpr std::string_view no_container =
    "rmqd is one broker and no broker container; start another rmqd for another broker";
constexpr std::string_view no_static_topics =
    "rmqd has no static topics; rmqctl topic scale gives a topic more or fewer queues without losing a "
    "message";
constexpr std::string_view no_cold_data_control =
    "rmqd bounds reads of old messages by itself, for all groups alike";
constexpr std::string_view no_read_ahead_mode =
    "rmqd reads the CommitLog past the page cache and decides itself how far it reads ahead";
constexpr std::string_view no_rocksdb = "rmqd keeps nothing in RocksDB; its configuration files are JSON";
constexpr std::string_view one_timer_engine = "rmqd has one timer engine";
constexpr std::string_view no_lite_topics = "rmqd has no lite topics yet";

}  // namespace

std::string_view Broker::why_not_served(int32_t code) {
  using enum RequestCode;
  switch (static_cast<RequestCode>(code)) {
    case AUTH_CREATE_USER:
    case AUTH_UPDATE_USER:
    case AUTH_DELETE_USER:
    case AUTH_GET_USER:
    case AUTH_LIST_USER:
    case AUTH_CREATE_ACL:
    case AUTH_UPDATE_ACL:
    case AUTH_DELETE_ACL:
    case AUTH_GET_ACL:
    case AUTH_LIST_ACL:
      return no_access_control;
    case EXCHANGE_BROKER_HA_INFO:
    case RESET_MASTER_FLUSH_OFFSET:
    case GET_BROKER_EPOCH_CACHE:
    case NOTIFY_BROKER_ROLE_CHANGED:
      return no_replicas;
    case CONTROLLER_ALTER_SYNC_STATE_SET:
    case CONTROLLER_ELECT_MASTER:
    case CONTROLLER_REGISTER_BROKER:
    case CONTROLLER_GET_REPLICA_INFO:
    case CONTROLLER_GET_METADATA_INFO:
    case CONTROLLER_GET_SYNC_STATE_DATA:
    case UPDATE_CONTROLLER_CONFIG:
    case GET_CONTROLLER_CONFIG:
    case CLEAN_BROKER_DATA:
    case CONTROLLER_GET_NEXT_BROKER_ID:
    case CONTROLLER_APPLY_BROKER_ID:
      return no_controller;
    case ADD_BROKER:
    case REMOVE_BROKER:
      return no_container;
    case UPDATE_AND_CREATE_STATIC_TOPIC:
      return no_static_topics;
    case UPDATE_COLD_DATA_FLOW_CTR_CONFIG:
    case REMOVE_COLD_DATA_FLOW_CTR_CONFIG:
    case GET_COLD_DATA_FLOW_CTR_INFO:
      return no_cold_data_control;
    case SET_COMMITLOG_READ_MODE:
      return no_read_ahead_mode;
    case CHECK_ROCKSDB_CQ_WRITE_PROGRESS:
    case EXPORT_ROCKSDB_CONFIG_TO_JSON:
      return no_rocksdb;
    case SWITCH_TIMER_ENGINE:
      return one_timer_engine;
    case POP_LITE_MESSAGE:
    case LITE_SUBSCRIPTION_CTL:
    case ACK_LITE_MESSAGE:
    case GET_BROKER_LITE_INFO:
    case GET_PARENT_TOPIC_INFO:
    case GET_LITE_TOPIC_INFO:
    case GET_LITE_CLIENT_INFO:
    case GET_LITE_GROUP_INFO:
    case TRIGGER_LITE_DISPATCH:
      return no_lite_topics;
    default:
      return {};
  }
}

Task<void> Broker::serve(Request& request) {
  if (is_main_port_only(request.command.code) && request.connection().listen_port() != config.listenPort) {
    rmq::detail::answer_not_supported(request);
    return rmq::detail::finished();
  }
  return Table::serve(*this, request);
}

}  // namespace rmq::broker

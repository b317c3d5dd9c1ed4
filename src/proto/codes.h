// The numbers and names of the remoting protocol, spelled as RocketMQ spells them, so that one search finds
// both codebases: request and response codes, languages, versions, flag, permission and sysFlag bits, names
// of properties and system topics, and the checks of topic and group names with RocketMQ's remarks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace rmq::proto {

// clang-format off
#define RMQ_REQUEST_CODES(X) \
  X(SEND_MESSAGE, 10) X(PULL_MESSAGE, 11) X(QUERY_MESSAGE, 12) X(QUERY_BROKER_OFFSET, 13)                   \
  X(QUERY_CONSUMER_OFFSET, 14) X(UPDATE_CONSUMER_OFFSET, 15) X(UPDATE_AND_CREATE_TOPIC, 17)                 \
  X(UPDATE_AND_CREATE_TOPIC_LIST, 18) X(GET_ALL_TOPIC_CONFIG, 21) X(GET_TOPIC_CONFIG_LIST, 22)              \
  X(GET_TOPIC_NAME_LIST, 23) X(UPDATE_BROKER_CONFIG, 25) X(GET_BROKER_CONFIG, 26)                           \
  X(TRIGGER_DELETE_FILES, 27) X(GET_BROKER_RUNTIME_INFO, 28) X(SEARCH_OFFSET_BY_TIMESTAMP, 29)              \
  X(GET_MAX_OFFSET, 30) X(GET_MIN_OFFSET, 31) X(GET_EARLIEST_MSG_STORETIME, 32) X(VIEW_MESSAGE_BY_ID, 33)   \
  X(HEART_BEAT, 34) X(UNREGISTER_CLIENT, 35) X(CONSUMER_SEND_MSG_BACK, 36) X(END_TRANSACTION, 37)           \
  X(GET_CONSUMER_LIST_BY_GROUP, 38) X(CHECK_TRANSACTION_STATE, 39) X(NOTIFY_CONSUMER_IDS_CHANGED, 40)       \
  X(LOCK_BATCH_MQ, 41) X(UNLOCK_BATCH_MQ, 42) X(GET_ALL_CONSUMER_OFFSET, 43) X(GET_ALL_DELAY_OFFSET, 45)    \
  X(CHECK_CLIENT_CONFIG, 46) X(GET_CLIENT_CONFIG, 47) X(GET_TIMER_CHECK_POINT, 60)                          \
  X(GET_TIMER_METRICS, 61) X(PUT_KV_CONFIG, 100) X(GET_KV_CONFIG, 101) X(DELETE_KV_CONFIG, 102)             \
  X(REGISTER_BROKER, 103) X(UNREGISTER_BROKER, 104) X(GET_ROUTEINFO_BY_TOPIC, 105)                          \
  X(GET_BROKER_CLUSTER_INFO, 106) X(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, 200)                               \
  X(GET_ALL_SUBSCRIPTIONGROUP_CONFIG, 201) X(GET_TOPIC_STATS_INFO, 202)                                     \
  X(GET_CONSUMER_CONNECTION_LIST, 203) X(GET_PRODUCER_CONNECTION_LIST, 204)                                 \
  X(WIPE_WRITE_PERM_OF_BROKER, 205) X(GET_ALL_TOPIC_LIST_FROM_NAMESERVER, 206)                              \
  X(DELETE_SUBSCRIPTIONGROUP, 207) X(GET_CONSUME_STATS, 208) X(SUSPEND_CONSUMER, 209)                       \
  X(RESUME_CONSUMER, 210) X(RESET_CONSUMER_OFFSET_IN_CONSUMER, 211)                                         \
  X(RESET_CONSUMER_OFFSET_IN_BROKER, 212) X(ADJUST_CONSUMER_THREAD_POOL, 213)                               \
  X(WHO_CONSUME_THE_MESSAGE, 214) X(DELETE_TOPIC_IN_BROKER, 215) X(DELETE_TOPIC_IN_NAMESRV, 216)            \
  X(REGISTER_TOPIC_IN_NAMESRV, 217) X(GET_KVLIST_BY_NAMESPACE, 219) X(RESET_CONSUMER_CLIENT_OFFSET, 220)    \
  X(GET_CONSUMER_STATUS_FROM_CLIENT, 221) X(INVOKE_BROKER_TO_RESET_OFFSET, 222)                             \
  X(INVOKE_BROKER_TO_GET_CONSUMER_STATUS, 223) X(GET_TOPICS_BY_CLUSTER, 224)                                \
  X(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, 225) X(QUERY_TOPIC_CONSUME_BY_WHO, 300)                       \
  X(REGISTER_FILTER_SERVER, 301) X(REGISTER_MESSAGE_FILTER_CLASS, 302) X(QUERY_CONSUME_TIME_SPAN, 303)      \
  X(GET_SYSTEM_TOPIC_LIST_FROM_NS, 304) X(GET_SYSTEM_TOPIC_LIST_FROM_BROKER, 305)                           \
  X(CLEAN_EXPIRED_CONSUMEQUEUE, 306) X(GET_CONSUMER_RUNNING_INFO, 307) X(QUERY_CORRECTION_OFFSET, 308)      \
  X(CONSUME_MESSAGE_DIRECTLY, 309) X(SEND_MESSAGE_V2, 310) X(GET_UNIT_TOPIC_LIST, 311)                      \
  X(GET_HAS_UNIT_SUB_TOPIC_LIST, 312) X(GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, 313)                            \
  X(CLONE_GROUP_OFFSET, 314) X(VIEW_BROKER_STATS_DATA, 315) X(CLEAN_UNUSED_TOPIC, 316)                      \
  X(GET_BROKER_CONSUME_STATS, 317) X(UPDATE_NAMESRV_CONFIG, 318) X(GET_NAMESRV_CONFIG, 319)                 \
  X(SEND_BATCH_MESSAGE, 320) X(QUERY_CONSUME_QUEUE, 321) X(QUERY_DATA_VERSION, 322)                         \
  X(RESUME_CHECK_HALF_MESSAGE, 323) X(SEND_REPLY_MESSAGE, 324) X(SEND_REPLY_MESSAGE_V2, 325)                \
  X(PUSH_REPLY_MESSAGE_TO_CLIENT, 326) X(ADD_WRITE_PERM_OF_BROKER, 327) X(GET_ALL_PRODUCER_INFO, 328)       \
  X(DELETE_EXPIRED_COMMITLOG, 329) X(QUERY_TOPICS_BY_CONSUMER, 343)                                         \
  X(QUERY_SUBSCRIPTION_BY_CONSUMER, 345) X(GET_TOPIC_CONFIG, 351) X(GET_SUBSCRIPTIONGROUP_CONFIG, 352)      \
  X(UPDATE_AND_GET_GROUP_FORBIDDEN, 353) X(CHECK_ROCKSDB_CQ_WRITE_PROGRESS, 354)                            \
  X(EXPORT_ROCKSDB_CONFIG_TO_JSON, 355) X(LITE_PULL_MESSAGE, 361) X(RECALL_MESSAGE, 370)                    \
  X(QUERY_ASSIGNMENT, 400) X(SET_MESSAGE_REQUEST_MODE, 401) X(GET_ALL_MESSAGE_REQUEST_MODE, 402)            \
  X(UPDATE_AND_CREATE_STATIC_TOPIC, 513) X(GET_BROKER_MEMBER_GROUP, 901) X(ADD_BROKER, 902)                 \
  X(REMOVE_BROKER, 903) X(BROKER_HEARTBEAT, 904) X(NOTIFY_MIN_BROKER_ID_CHANGE, 905)                        \
  X(EXCHANGE_BROKER_HA_INFO, 906) X(GET_BROKER_HA_STATUS, 907) X(RESET_MASTER_FLUSH_OFFSET, 908)            \
  X(CONTROLLER_ALTER_SYNC_STATE_SET, 1001) X(CONTROLLER_ELECT_MASTER, 1002)                                 \
  X(CONTROLLER_REGISTER_BROKER, 1003) X(CONTROLLER_GET_REPLICA_INFO, 1004)                                  \
  X(CONTROLLER_GET_METADATA_INFO, 1005) X(CONTROLLER_GET_SYNC_STATE_DATA, 1006)                             \
  X(GET_BROKER_EPOCH_CACHE, 1007) X(NOTIFY_BROKER_ROLE_CHANGED, 1008) X(UPDATE_CONTROLLER_CONFIG, 1009)     \
  X(GET_CONTROLLER_CONFIG, 1010) X(CLEAN_BROKER_DATA, 1011) X(CONTROLLER_GET_NEXT_BROKER_ID, 1012)          \
  X(CONTROLLER_APPLY_BROKER_ID, 1013) X(UPDATE_COLD_DATA_FLOW_CTR_CONFIG, 2001)                             \
  X(REMOVE_COLD_DATA_FLOW_CTR_CONFIG, 2002) X(GET_COLD_DATA_FLOW_CTR_INFO, 2003)                            \
  X(SET_COMMITLOG_READ_MODE, 2004) X(AUTH_CREATE_USER, 3001) X(AUTH_UPDATE_USER, 3002)                      \
  X(AUTH_DELETE_USER, 3003) X(AUTH_GET_USER, 3004) X(AUTH_LIST_USER, 3005) X(AUTH_CREATE_ACL, 3006)         \
  X(AUTH_UPDATE_ACL, 3007) X(AUTH_DELETE_ACL, 3008) X(AUTH_GET_ACL, 3009) X(AUTH_LIST_ACL, 3010)            \
  X(SWITCH_TIMER_ENGINE, 5001) X(DELETE_TOPIC_IN_BROKER_LIST, 5002)                                         \
  X(DELETE_SUBSCRIPTION_GROUP_LIST, 5003) X(POP_MESSAGE, 200050) X(ACK_MESSAGE, 200051)                     \
  X(PEEK_MESSAGE, 200052) X(CHANGE_MESSAGE_INVISIBLETIME, 200053) X(NOTIFICATION, 200054)                   \
  X(POLLING_INFO, 200055) X(POP_ROLLBACK, 200056) X(POP_LITE_MESSAGE, 200070)                               \
  X(LITE_SUBSCRIPTION_CTL, 200071) X(ACK_LITE_MESSAGE, 200072) X(NOTIFY_UNSUBSCRIBE_LITE, 200073)           \
  X(GET_BROKER_LITE_INFO, 200074) X(GET_PARENT_TOPIC_INFO, 200075) X(GET_LITE_TOPIC_INFO, 200076)           \
  X(GET_LITE_CLIENT_INFO, 200077) X(GET_LITE_GROUP_INFO, 200078) X(TRIGGER_LITE_DISPATCH, 200079)           \
  X(BATCH_ACK_MESSAGE, 200151)

#define RMQ_RESPONSE_CODES(X) \
  X(SUCCESS, 0) X(SYSTEM_ERROR, 1) X(SYSTEM_BUSY, 2) X(REQUEST_CODE_NOT_SUPPORTED, 3)                       \
  X(TRANSACTION_FAILED, 4) X(FLUSH_DISK_TIMEOUT, 10) X(SLAVE_NOT_AVAILABLE, 11)                             \
  X(FLUSH_SLAVE_TIMEOUT, 12) X(MESSAGE_ILLEGAL, 13) X(SERVICE_NOT_AVAILABLE, 14)                            \
  X(VERSION_NOT_SUPPORTED, 15) X(NO_PERMISSION, 16) X(TOPIC_NOT_EXIST, 17) X(TOPIC_EXIST_ALREADY, 18)       \
  X(PULL_NOT_FOUND, 19) X(PULL_RETRY_IMMEDIATELY, 20) X(PULL_OFFSET_MOVED, 21) X(QUERY_NOT_FOUND, 22)       \
  X(SUBSCRIPTION_PARSE_FAILED, 23) X(SUBSCRIPTION_NOT_EXIST, 24) X(SUBSCRIPTION_NOT_LATEST, 25)             \
  X(SUBSCRIPTION_GROUP_NOT_EXIST, 26) X(FILTER_DATA_NOT_EXIST, 27) X(FILTER_DATA_NOT_LATEST, 28)            \
  X(INVALID_PARAMETER, 29) X(TRANSACTION_SHOULD_COMMIT, 200) X(TRANSACTION_SHOULD_ROLLBACK, 201)            \
  X(TRANSACTION_STATE_UNKNOW, 202) X(TRANSACTION_STATE_GROUP_WRONG, 203) X(NO_BUYER_ID, 204)                \
  X(NOT_IN_CURRENT_UNIT, 205) X(CONSUMER_NOT_ONLINE, 206) X(CONSUME_MSG_TIMEOUT, 207) X(NO_MESSAGE, 208)    \
  X(POLLING_FULL, 209) X(POLLING_TIMEOUT, 210) X(BROKER_NOT_EXIST, 211)                                     \
  X(BROKER_DISPATCH_NOT_COMPLETE, 212) X(BROADCAST_CONSUMPTION, 213) X(FLOW_CONTROL, 215)                   \
  X(NOT_LEADER_FOR_QUEUE, 501) X(ILLEGAL_OPERATION, 604) X(GO_AWAY, 1500)                                   \
  X(CONTROLLER_FENCED_MASTER_EPOCH, 2000) X(CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, 2001)                   \
  X(CONTROLLER_INVALID_MASTER, 2002) X(CONTROLLER_INVALID_REPLICAS, 2003)                                   \
  X(CONTROLLER_MASTER_NOT_AVAILABLE, 2004) X(CONTROLLER_INVALID_REQUEST, 2005)                              \
  X(CONTROLLER_BROKER_NOT_ALIVE, 2006) X(CONTROLLER_NOT_LEADER, 2007)                                       \
  X(CONTROLLER_BROKER_METADATA_NOT_EXIST, 2008) X(CONTROLLER_INVALID_CLEAN_BROKER_METADATA, 2009)           \
  X(CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, 2010) X(CONTROLLER_MASTER_STILL_EXIST, 2011)                   \
  X(CONTROLLER_ELECT_MASTER_FAILED, 2012) X(CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, 2013)                   \
  X(CONTROLLER_BROKER_ID_INVALID, 2014) X(CONTROLLER_JRAFT_INTERNAL_ERROR, 2015)                            \
  X(CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS, 2016) X(LMQ_QUOTA_EXCEEDED, 2017)                               \
  X(LITE_SUBSCRIPTION_QUOTA_EXCEEDED, 2018) X(USER_NOT_EXIST, 3001) X(POLICY_NOT_EXIST, 3002)

#define RMQ_LANGUAGES(X)                                                                                    \
  X(JAVA, 0) X(CPP, 1) X(DOTNET, 2) X(PYTHON, 3) X(DELPHI, 4) X(ERLANG, 5) X(RUBY, 6) X(OTHER, 7)           \
  X(HTTP, 8) X(GO, 9) X(PHP, 10) X(OMS, 11) X(RUST, 12) X(NODE_JS, 13)
// clang-format on

enum class RequestCode : int32_t {
#define X(name, number) name = number,
  RMQ_REQUEST_CODES(X)
#undef X
};

enum class ResponseCode : int32_t {
#define X(name, number) name = number,
  RMQ_RESPONSE_CODES(X)
#undef X
};

enum class LanguageCode : uint8_t {
#define X(name, number) name = number,
  RMQ_LANGUAGES(X)
#undef X
};

// Empty when the number has no name.
std::string_view name_of(RequestCode code);
std::string_view name_of(ResponseCode code);
std::string_view name_of(LanguageCode language);  // an unknown number is OTHER
LanguageCode language_of(std::string_view name);  // an unknown name is OTHER

// How the header of a command is written: the top byte of the second length word of a frame.
enum class SerializeType : uint8_t { json = 0, rocketmq = 1 };

// Bits of RemotingCommand.flag.
inline constexpr int32_t flag_response = 1;
inline constexpr int32_t flag_oneway = 2;

// Ordinals of MQVersion.Version: each release has a SNAPSHOT constant, the number below.
namespace mq_version {
inline constexpr int32_t V3_0_7_SNAPSHOT = 28;
inline constexpr int32_t V3_0_11 = 37;  // REGISTER_BROKER bodies are RegisterBrokerBody from here on
inline constexpr int32_t V3_1_8_SNAPSHOT = 62;
inline constexpr int32_t V3_4_9 = 121;  // maxReconsumeTimes of a send is honoured from here on
inline constexpr int32_t V4_9_3 = 399;
inline constexpr int32_t V4_9_4 = 401;  // route answers are strict JSON from here on
inline constexpr int32_t V5_0_0 = 413;  // compressed REGISTER_BROKER bodies carry queue mappings
inline constexpr int32_t V5_3_1 = 475;
inline constexpr int32_t V5_5_0 = 513;
inline constexpr int32_t HIGHER_VERSION = 612;
inline constexpr int32_t ours = V5_5_0;  // in every command that we write
}  // namespace mq_version
// "V5_5_0", "V4_9_8_SNAPSHOT", "HIGHER_VERSION": MQVersion.getVersionDesc.
std::string version_name(int32_t version);

// PermName: permission bits of topics, queues and the broker.
namespace perm {
inline constexpr int32_t priority = 8, read = 4, write = 2, inherit = 1;
inline constexpr bool is_readable(int32_t p) {
  return (p & read) == read;
}
inline constexpr bool is_writeable(int32_t p) {
  return (p & write) == write;
}
inline constexpr bool is_inherited(int32_t p) {
  return (p & inherit) == inherit;
}
}  // namespace perm

// PullSysFlag: sysFlag of PULL_MESSAGE.
namespace pull_sys_flag {
inline constexpr int32_t commit_offset = 1, suspend = 2, subscription = 4, class_filter = 8, lite_pull = 16;
}

// TopicSysFlag.
namespace topic_sys_flag {
inline constexpr int32_t unit = 1, unit_sub = 2;
}

// MixAll and TopicValidator: names with a meaning.
namespace names {
inline constexpr std::string_view retry_prefix = "%RETRY%";
inline constexpr std::string_view dlq_prefix = "%DLQ%";
inline constexpr std::string_view reply_topic_suffix = "REPLY_TOPIC";  // <cluster>_REPLY_TOPIC
inline constexpr std::string_view system_topic_prefix = "rmq_sys_";
inline constexpr std::string_view lmq_prefix = "%LMQ%";
inline constexpr std::string_view sync_broker_member_prefix = "rmq_sys_SYNC_BROKER_MEMBER_";
inline constexpr std::string_view revive_log_prefix = "rmq_sys_REVIVE_LOG_";

inline constexpr std::string_view TBW102 = "TBW102";  // the template of topics created by a send
inline constexpr std::string_view SCHEDULE_TOPIC_XXXX = "SCHEDULE_TOPIC_XXXX";
inline constexpr std::string_view BenchmarkTest = "BenchmarkTest";
inline constexpr std::string_view RMQ_SYS_TRANS_HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC";
inline constexpr std::string_view RMQ_SYS_TRANS_OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
inline constexpr std::string_view RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC";
inline constexpr std::string_view RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC";
inline constexpr std::string_view TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC";
inline constexpr std::string_view RMQ_SYS_TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC";
inline constexpr std::string_view SELF_TEST_TOPIC = "SELF_TEST_TOPIC";
inline constexpr std::string_view OFFSET_MOVED_EVENT = "OFFSET_MOVED_EVENT";
inline constexpr std::string_view CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC";
inline constexpr std::string_view rmq_sys_wheel_timer = "rmq_sys_wheel_timer";
inline constexpr std::string_view rmq_sys_delivered =
    "rmq_sys_delivered";  // ours: what was delivered in time

inline constexpr std::string_view TOOLS_CONSUMER = "TOOLS_CONSUMER";
inline constexpr std::string_view FILTERSRV_CONSUMER = "FILTERSRV_CONSUMER";
inline constexpr std::string_view SELF_TEST_C_GROUP = "SELF_TEST_C_GROUP";
inline constexpr std::string_view CID_RMQ_SYS_TRANS = "CID_RMQ_SYS_TRANS";
inline constexpr std::string_view system_group_prefix = "CID_RMQ_SYS_";
inline constexpr std::string_view order_topic_namespace = "ORDER_TOPIC_CONFIG";  // name server KV
}  // namespace names

// MessageConst: properties with a meaning. Those of the stored record that src/store needs are in record.h
// too (rmq::proto::prop there is the same namespace).
namespace prop {
inline constexpr std::string_view WAIT = "WAIT";
inline constexpr std::string_view RETRY_TOPIC = "RETRY_TOPIC";
inline constexpr std::string_view TRAN_MSG = "TRAN_MSG";
inline constexpr std::string_view PGROUP = "PGROUP";
inline constexpr std::string_view MIN_OFFSET = "MIN_OFFSET";
inline constexpr std::string_view MAX_OFFSET = "MAX_OFFSET";
inline constexpr std::string_view ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID";
inline constexpr std::string_view RECONSUME_TIME = "RECONSUME_TIME";
inline constexpr std::string_view MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES";
inline constexpr std::string_view MSG_REGION = "MSG_REGION";
inline constexpr std::string_view TRACE_ON = "TRACE_ON";
inline constexpr std::string_view CLUSTER = "CLUSTER";
inline constexpr std::string_view MSG_TYPE = "MSG_TYPE";
inline constexpr std::string_view POP_CK = "POP_CK";
inline constexpr std::string_view FIRST_POP_TIME = "1ST_POP_TIME";
inline constexpr std::string_view TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET";
inline constexpr std::string_view TRANSACTION_ID = "__transactionId__";
inline constexpr std::string_view TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES";
// Of this broker only, in half messages that were rewritten: when the first one was stored, and the CRC-32 of
// the properties behind it.
inline constexpr std::string_view TRANSACTION_STORE_TIME = "TRANSACTION_STORE_TIME";
inline constexpr std::string_view TRANSACTION_COPY_CRC = "TRANSACTION_COPY_CRC";
inline constexpr std::string_view CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS";
inline constexpr std::string_view INSTANCE_ID = "INSTANCE_ID";
inline constexpr std::string_view PRIORITY = "_SYS_MSG_PRIORITY_";
inline constexpr std::string_view LITE_TOPIC = "__LITE_TOPIC";
inline constexpr std::string_view CORRELATION_ID = "CORRELATION_ID";
inline constexpr std::string_view REPLY_TO_CLIENT = "REPLY_TO_CLIENT";
inline constexpr std::string_view TTL = "TTL";
inline constexpr std::string_view ARRIVE_TIME = "ARRIVE_TIME";
inline constexpr std::string_view PUSH_REPLY_TIME = "PUSH_REPLY_TIME";
inline constexpr std::string_view SHARDINGKEY = "__SHARDINGKEY";
inline constexpr std::string_view BORNHOST = "__BORNHOST";
inline constexpr std::string_view DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC";
inline constexpr std::string_view DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID";
}  // namespace prop

// TopicValidator.validateTopic and validateGroup: the remark of the refusal (code INVALID_PARAMETER), or
// nothing when the name is good. A topic of a retry or dead-letter queue may have 255 bytes, else 127.
std::optional<std::string> invalid_topic_remark(std::string_view topic);
std::optional<std::string> invalid_group_remark(std::string_view group);
// The static system topics and every name with the prefix rmq_sys_. Topics named after the cluster and the
// broker are the daemon's to add.
bool is_system_topic(std::string_view topic);
// The six topics that no client may send to, and the remark of that refusal (code NO_PERMISSION).
bool is_topic_forbidden_to_send(std::string_view topic);
std::string forbidden_to_send_remark(std::string_view topic);
// "The topic[X] is conflict with system topic." (code INVALID_PARAMETER)
std::string system_topic_remark(std::string_view topic);
bool is_system_group(std::string_view group);
inline bool is_retry_topic(std::string_view topic) {
  return topic.starts_with(names::retry_prefix);
}
inline bool is_dlq_topic(std::string_view topic) {
  return topic.starts_with(names::dlq_prefix);
}
std::string retry_topic_of(std::string_view group);  // of a group that is a retry topic already: itself
std::string dlq_topic_of(std::string_view group);

}  // namespace rmq::proto

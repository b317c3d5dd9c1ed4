#include "daemon/config.h"

namespace rmq {

namespace {

constexpr int64_t ms_per_day = 86'400'000;
constexpr std::string_view log_levels = "error|warning|notice|info|debug";

using B = BrokerConfig;
// clang-format off
const ConfigKey<B> broker_keys[] = {
  {"brokerClusterName", &B::brokerClusterName, "Name of the cluster that this broker belongs to."},
  {"brokerName", &B::brokerName, "Name of this broker; a master and its slaves share it. Empty: the host's name."},
  {"brokerId", &B::brokerId, "0 for a master.", 0, 0},
  {"brokerIP1", &B::brokerIP1, "Address that clients are told to connect to, and that stands in message ids. "
   "Empty: the first address of this host that is not a loopback one."},
  {"bindAddress", &B::bindAddress, "Address to listen on."},
  {"listenPort", &B::listenPort, "Main port. The port two below it is served too (clients call it the VIP channel).",
   3, 65535},
  {"namesrvAddr", &B::namesrvAddr, "Name servers, host:port separated by ';'. Each is registered with."},
  {"namesrvListenPort", &B::namesrvListenPort, "Port of the name server inside rmqd --standalone.", 1, 65535},
  {"namesrvKvConfigPath", &B::namesrvKvConfigPath, "KV config file of the name server inside rmqd --standalone. "
   "Empty: kvConfig.json beside the store."},
  {"storePathRootDir", &B::storePathRootDir, "Directory of the store."},
  {"storePathCommitLog", &B::storePathCommitLog, "Directory of the CommitLog. Empty: commitlog in storePathRootDir."},
  {"mappedFileSizeCommitLog", &B::mappedFileSizeCommitLog, "Size of a CommitLog file in bytes, a multiple of 4096. "
   "It must not change for an existing store.", 65'536, int64_t{1} << 40},
  {"mappedFileSizeConsumeQueue", &B::mappedFileSizeConsumeQueue, "Size of a ConsumeQueue file in bytes, "
   "a multiple of 20. It must not change for an existing store.", 2'000, 1 << 30},
  {"flushDiskType", &B::flushDiskType, "SYNC_FLUSH: a send is answered when the message is on stable storage, and no "
   "consumer sees it before. ASYNC_FLUSH: a send is answered when the kernel has the message; it survives a killed "
   "broker, and a power cut from flushIntervalCommitLog on.", 0, 0, "SYNC_FLUSH|ASYNC_FLUSH"},
  {"flushIntervalCommitLog", &B::flushIntervalCommitLog, "With ASYNC_FLUSH: milliseconds until written messages are "
   "on stable storage.", 1, 60'000},
  {"syncFlushTimeout", &B::syncFlushTimeout, "With SYNC_FLUSH: milliseconds after which a send is answered with "
   "FLUSH_DISK_TIMEOUT; the message is stored all the same.", 1, 600'000, {}, true},
  {"maxMessageSize", &B::maxMessageSize, "Largest message body in bytes.", 1, 16'000'000, {}, true},
  {"storeMemoryBytes", &B::storeMemoryBytes, "Memory for the recent end of the log and for reads of older parts, "
   "taken as it is needed.", 8 << 20, int64_t{1} << 40},
  {"maxTransferCountOnMessageInMemory", &B::maxTransferCountOnMessageInMemory,
   "Most messages in one pull answer, from memory.", 1, 4096, {}, true},
  {"maxTransferBytesOnMessageInMemory", &B::maxTransferBytesOnMessageInMemory,
   "Most bytes in one pull answer, from memory (one message always fits).", 1, 8 << 20, {}, true},
  {"maxTransferCountOnMessageInDisk", &B::maxTransferCountOnMessageInDisk,
   "Most messages in one pull answer, from disk.", 1, 4096, {}, true},
  {"maxTransferBytesOnMessageInDisk", &B::maxTransferBytesOnMessageInDisk,
   "Most bytes in one pull answer, from disk (one message always fits).", 1, 8 << 20, {}, true},
  {"autoCreateTopicEnable", &B::autoCreateTopicEnable, "A send to an unknown topic creates it, after the pattern of "
   "the default topic (TBW102)."},
  {"defaultTopicQueueNums", &B::defaultTopicQueueNums, "Queues of the default topic: the most that an automatically "
   "created topic gets.", 1, 65'536},
  {"autoCreateSubscriptionGroup", &B::autoCreateSubscriptionGroup, "A pull or heartbeat of an unknown consumer group "
   "creates it.", 0, 0, {}, true},
  {"clusterTopicEnable", &B::clusterTopicEnable, "The topic with the cluster's name can be read and written."},
  {"brokerTopicEnable", &B::brokerTopicEnable, "The topic with the broker's name can be read and written."},
  {"traceTopicEnable", &B::traceTopicEnable, "Create the topic for message traces at start."},
  {"msgTraceTopicName", &B::msgTraceTopicName, "Name of the topic for message traces."},
  {"brokerPermission", &B::brokerPermission, "What clients may do: 4 read, 2 write, 6 both.", 0, 7, {}, true},
  {"messageDelayLevel", &B::messageDelayLevel, "The delay levels, from level 1 on: numbers with s, m, h or d."},
  {"regionId", &B::regionId, "MSG_REGION of stored messages."},
  {"traceOn", &B::traceOn, "TRACE_ON of stored messages: clients send traces of their own.", 0, 0, {}, true},
  {"longPollingEnable", &B::longPollingEnable, "A pull that finds nothing waits as long as the client allows; false: "
   "shortPollingTimeMills.", 0, 0, {}, true},
  {"shortPollingTimeMills", &B::shortPollingTimeMills, "Milliseconds that a pull waits without longPollingEnable.",
   1, 60'000, {}, true},
  {"litePullMessageEnable", &B::litePullMessageEnable, "Lite pull consumers may pull.", 0, 0, {}, true},
  {"rejectPullConsumerEnable", &B::rejectPullConsumerEnable, "Refuse pull consumers: heartbeats of theirs are ignored, "
   "pulls of unknown consumers refused.", 0, 0, {}, true},
  {"flushConsumerOffsetInterval", &B::flushConsumerOffsetInterval, "Milliseconds between writes of the consumer "
   "offsets to consumerOffset.json.", 100, 600'000, {}, true},
  {"registerNameServerPeriod", &B::registerNameServerPeriod, "Milliseconds between registrations with the name "
   "servers.", 10'000, 60'000, {}, true},
  {"registerBrokerTimeoutMills", &B::registerBrokerTimeoutMills, "Milliseconds that a registration may take.",
   100, 60'000, {}, true},
  {"channelExpiredTimeout", &B::channelExpiredTimeout, "Milliseconds without a heartbeat after which a client is "
   "dropped.", 1'000, ms_per_day, {}, true},
  {"configBlackList", &B::configBlackList, "Keys that UPDATE_BROKER_CONFIG must refuse, separated by ';'."},
  {"logLevel", &B::logLevel, "Least level of what is logged.", 0, 0, log_levels, true},
};

using N = NamesrvConfig;
const ConfigKey<N> namesrv_keys[] = {
  {"bindAddress", &N::bindAddress, "Address to listen on."},
  {"listenPort", &N::listenPort, "Port.", 1, 65535},
  {"kvConfigPath", &N::kvConfigPath, "File of the KV config."},
  {"orderMessageEnable", &N::orderMessageEnable, "Route answers carry the order config of the topic.", 0, 0, {}, true},
  {"returnOrderTopicConfigToBroker", &N::returnOrderTopicConfigToBroker, "Registration answers carry all order "
   "configs.", 0, 0, {}, true},
  {"scanNotActiveBrokerInterval", &N::scanNotActiveBrokerInterval, "Milliseconds between looks for brokers that went "
   "silent.", 10, 600'000},
  {"deleteTopicWithBrokerRegistration", &N::deleteTopicWithBrokerRegistration, "A full registration removes topics of "
   "this broker that it does not name.", 0, 0, {}, true},
  {"enableAllTopicList", &N::enableAllTopicList, "Answer requests for the list of all topics.", 0, 0, {}, true},
  {"enableTopicList", &N::enableTopicList, "Answer requests for the topics of a cluster and of units.",
   0, 0, {}, true},
  {"supportActingMaster", &N::supportActingMaster, "A slave that acts for its missing master is shown as the master.",
   0, 0, {}, true},
  {"notifyMinBrokerIdChanged", &N::notifyMinBrokerIdChanged, "Tell the brokers of a set when its smallest id changes.",
   0, 0, {}, true},
  {"needWaitForService", &N::needWaitForService, "Refuse route requests during waitSecondsForService after the start.",
   0, 0, {}, true},
  {"waitSecondsForService", &N::waitSecondsForService, "Seconds, see needWaitForService.", 1, 3'600, {}, true},
  {"configBlackList", &N::configBlackList, "Keys that UPDATE_NAMESRV_CONFIG must refuse, separated by ';'."},
  {"logLevel", &N::logLevel, "Least level of what is logged.", 0, 0, log_levels, true},
};
// clang-format on

}  // namespace

std::span<const ConfigKey<BrokerConfig>> broker_config_table() {
  return broker_keys;
}
std::span<const ConfigKey<NamesrvConfig>> namesrv_config_table() {
  return namesrv_keys;
}

}  // namespace rmq

// What rmqd and rmq-namesrvd can be told: the two config structs and their tables. Names are RocketMQ's;
// units are in the name's RocketMQ tradition (…Interval, …Mills are milliseconds), the help says them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "daemon/config_table.h"

namespace rmq {

// metricsLabel, parsed. Nothing: it is not name:value pairs separated by ',', or a name is none of
// Prometheus', or one that samples have of their own.
using LabelList = std::vector<std::pair<std::string, std::string>>;
std::optional<LabelList> metric_labels_of(std::string_view text);

struct BrokerConfig {
  std::string brokerClusterName = "DefaultCluster";
  std::string brokerName;  // empty: the host's name
  int64_t brokerId = 0;
  std::string brokerIP1;  // empty: found out
  std::string bindAddress = "0.0.0.0";
  int64_t listenPort = 10911;
  std::string namesrvAddr;
  int64_t namesrvListenPort = 9876;
  std::string namesrvKvConfigPath;

  std::string storePathRootDir = "/var/lib/rmqd/store";
  std::string storePathCommitLog;
  int64_t mappedFileSizeCommitLog = 1 << 30;
  int64_t mappedFileSizeConsumeQueue = 6'000'000;
  int64_t mapperFileSizeBatchConsumeQueue = 13'800'000;
  std::string flushDiskType = "SYNC_FLUSH";
  int64_t flushIntervalCommitLog = 500;
  bool enabledAppendPropCRC = false;
  std::string damagedLog = "REFUSE";
  int64_t syncFlushTimeout = 5000;
  int64_t maxMessageSize = 4 << 20;
  int64_t memoryLimit = 0;
  int64_t storeMemoryBytes = 0;
  int64_t dedupMemoryBytes = 0;
  int64_t maxTransferCountOnMessageInMemory = 32;
  int64_t maxTransferBytesOnMessageInMemory = 262'144;
  int64_t maxTransferCountOnMessageInDisk = 8;
  int64_t maxTransferBytesOnMessageInDisk = 65'536;
  bool diskCpuAffinity = true;
  bool messageIndexEnable = true;
  bool messageIndexSafe = false;
  int64_t fileReservedTime = 72;
  std::string deleteWhen = "04";
  int64_t diskMaxUsedSpaceRatio = 75;
  int64_t diskSpaceCleanForciblyRatio = 85;
  bool cleanFileForciblyEnable = true;
  int64_t diskSpaceWarningLevelRatio = 90;
  int64_t diskReservedBytes = 256 << 20;
  std::string discardPolicy = "none";
  int64_t discardAgeMills = 0;
  int64_t discardBytes = 0;
  int64_t cleanResourceInterval = 10'000;
  bool enableCompaction = true;
  int64_t compactionMappedFileSize = 100 << 20;
  int64_t compactionCqMappedFileSize = 10 << 20;
  int64_t compactionScheduleInternal = 900'000;
  int64_t maxOffsetMapSize = 100 << 20;
  int64_t deleteCommitLogFilesInterval = 100;
  int64_t deleteConsumeQueueFilesInterval = 100;
  int64_t deleteFileBatchMax = 10;
  int64_t destroyMapedFileIntervalForcibly = 120'000;
  int64_t maxHashSlotNum = 5'000'000;
  int64_t maxIndexNum = 20'000'000;
  int64_t maxMsgsNumBatch = 64;
  int64_t defaultQueryMaxNum = 32;

  bool autoCreateTopicEnable = true;
  int64_t defaultTopicQueueNums = 8;
  bool autoCreateSubscriptionGroup = true;
  bool clusterTopicEnable = true;
  bool brokerTopicEnable = true;
  bool traceTopicEnable = false;
  std::string msgTraceTopicName = "RMQ_SYS_TRACE_TOPIC";
  int64_t brokerPermission = 6;
  std::string messageDelayLevel = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";
  bool rejectTransactionMessage = false;
  int64_t transactionTimeOut = 6000;
  int64_t transactionCheckMax = 15;
  int64_t transactionCheckInterval = 30'000;
  bool timerWheelEnable = true;
  int64_t timerMaxDelaySec = 365 * 86'400;
  bool recallMessageEnable = true;
  std::string regionId = "DefaultRegion";
  bool traceOn = true;
  bool storeReplyMessageEnable = true;
  bool enableMixedMessageType = false;
  bool enableLmq = false;
  bool enableMultiDispatch = false;
  int64_t maxLmqConsumeQueueNum = 20'000;
  bool longPollingEnable = true;
  int64_t shortPollingTimeMills = 1000;
  bool litePullMessageEnable = true;
  bool rejectPullConsumerEnable = false;
  bool enablePropertyFilter = true;
  bool useServerSideResetOffset = true;
  bool filterSupportRetry = false;
  int64_t filterDataCleanTimeSpan = 86'400'000;
  std::string defaultMessageRequestMode = "PULL";
  int64_t defaultPopShareQueueNum = -1;
  bool serverLoadBalancerEnable = true;
  int64_t popFromRetryProbability = 20;
  int64_t popFromRetryProbabilityForPriority = 0;
  bool priorityOrderAsc = true;
  bool enableRetryTopicV2 = false;
  bool retrieveMessageFromPopRetryTopicV1 = true;
  bool popResponseReturnActualRetryTopic = false;
  bool initPopOffsetByCheckMsgInMem = true;
  bool enablePopMessageThreshold = false;
  int64_t popInflightMessageThreshold = 10'000;
  int64_t flushConsumerOffsetInterval = 5000;
  int64_t registerNameServerPeriod = 30'000;
  int64_t registerBrokerTimeoutMills = 24'000;
  bool enableSplitRegistration = false;
  int64_t splitRegistrationSize = 800;
  int64_t channelExpiredTimeout = 120'000;
  std::string configBlackList;
  std::string metricsExporterType = "PROM";
  std::string metricsPromExporterHost = "127.0.0.1";
  int64_t metricsPromExporterPort = 5557;
  int64_t metricsOtelCardinalityLimit = 5000;
  std::string metricsLabel;
  std::string logLevel = "info";
};
std::span<const ConfigKey<BrokerConfig>> broker_config_table();

struct NamesrvConfig {
  std::string bindAddress = "0.0.0.0";
  int64_t listenPort = 9876;
  std::string kvConfigPath = "/var/lib/rmq-namesrvd/kvConfig.json";
  bool orderMessageEnable = false;
  bool returnOrderTopicConfigToBroker = true;
  int64_t scanNotActiveBrokerInterval = 10'000;
  bool deleteTopicWithBrokerRegistration = false;
  bool enableAllTopicList = true;
  bool enableTopicList = true;
  bool supportActingMaster = false;
  bool notifyMinBrokerIdChanged = false;
  bool needWaitForService = false;
  int64_t waitSecondsForService = 45;
  std::string configBlackList;
  std::string metricsExporterType = "PROM";
  std::string metricsPromExporterHost = "127.0.0.1";
  int64_t metricsPromExporterPort = 5558;
  int64_t metricsOtelCardinalityLimit = 5000;
  std::string metricsLabel;
  std::string logLevel = "info";
};
std::span<const ConfigKey<NamesrvConfig>> namesrv_config_table();

}  // namespace rmq

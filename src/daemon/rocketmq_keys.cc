#include "daemon/rocketmq_keys.h"

namespace rmq {

namespace {

// The fields of BrokerConfig, BrokerIdentity, MessageStoreConfig, NettyServerConfig, NettyClientConfig and
// AuthConfig of 5.5.0 that a properties file can set.
constexpr std::string_view keys =
    " "
    "accessMessageInMemoryHotRatio accessMessageInMemoryMaxRatio accountStatsEnable "
    "accountStatsPrintZeroValues ackMessageThreadPoolNums ackThreadPoolQueueCapacity aclCacheExpiredSecond "
    "aclCacheMaxNum aclCacheRefreshSecond aclEnable adminBrokerThreadPoolNums "
    "adminBrokerThreadPoolQueueCapacity allAckInSyncStateSet allowRecallWhenBrokerNotWriteable "
    "appendAckAsync appendCkAsync appendTopicForTimerDeleteKey asyncLearner asyncSendEnable authConfigPath "
    "authenticationEnabled authenticationMetadataProvider authenticationProvider authenticationStrategy "
    "authenticationWhitelist authorizationEnabled authorizationMetadataProvider authorizationProvider "
    "authorizationStrategy authorizationWhitelist autoCreateSubscriptionGroup autoCreateTopicEnable "
    "autoDeleteUnusedStats autoMessageVersionOnTopicLen batchDispatchRequestThreadPoolNums bindAddress "
    "bitMapLengthConsumeQueueExt bottomMostCompressionTypeForConsumeQueueStore "
    "broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond brokerClusterName brokerConfigPath "
    "brokerElectionPriority brokerFastFailureEnable brokerHeartbeatInterval brokerIP1 brokerIP2 brokerId "
    "brokerName brokerNotActiveTimeoutMillis brokerPermission brokerRole brokerTopicEnable "
    "cgColdReadThreshold channelExpiredTimeout channelNotActiveInterval checkCRCOnRecover "
    "checkCommitLogOffsetOnRecover checkSyncStateSetPeriod cleanFileForciblyEnable "
    "cleanOfflineBrokerInterval cleanResourceInterval cleanRocksDBDirtyCQIntervalMin cleanSwapedMapInterval "
    "clearRetryTopicWhenDeleteTopic clientAsyncSemaphoreValue clientCallbackExecutorThreads "
    "clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout clientManageThreadPoolNums "
    "clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue clientPooledByteBufAllocatorEnable "
    "clientSocketRcvBufSize clientSocketSndBufSize clientWorkerThreads clusterName clusterTopicEnable "
    "coldCtrStrategyEnable coldDataFlowControlEnable coldDataScanEnable combineAssignOffsetCQType "
    "combineCQEnableCheckSelf combineCQLoadingCQTypes combineCQMaxExtraSearchCommitLogFiles "
    "combineCQPreferCQType combineCQUseRocksdbForLmq commercialBaseCount commercialSizePerMsg "
    "commitCommitLogLeastPages commitCommitLogThoroughInterval commitIntervalCommitLog "
    "commitLogForceSwapMapInterval commitLogRecoverMaxNum commitLogSwapMapInterval "
    "commitLogSwapMapReserveFileNum compactionCqMappedFileSize compactionMappedFileSize "
    "compactionScheduleInternal compactionThreadNum compatibleWithOldNameSrv compressedRegister "
    "configBlackList configManagerVersion configName connectTimeoutMillis consumerFallbehindThreshold "
    "consumerManageThreadPoolNums consumerManagerThreadPoolQueueCapacity consumerOffsetUpdateVersionStep "
    "controllerAddr controllerHeartBeatTimeoutMills correctLogicMinOffsetForceInterval "
    "correctLogicMinOffsetSleepInterval dLegerGroup dLegerPeers dLegerSelfId dataReadAheadEnable "
    "debugLockEnable defaultPopShareQueueNum defaultQueryMaxNum defaultTopicQueueNums "
    "delayOffsetUpdateVersionStep deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval "
    "deleteFileBatchMax deleteWhen destroyMapedFileIntervalForcibly disableCallbackExecutor "
    "disableConsumeIfConsumerReadSlowly disableNettyWorkerGroup disappearTimeAfterStart diskFallRecorded "
    "diskMaxUsedSpaceRatio diskSpaceCleanForciblyRatio diskSpaceWarningLevelRatio dispatchCqCacheNum "
    "dispatchCqThreads dispatchFromSenderThread duplicationEnable enableAcceleratedRecovery "
    "enableAsyncReput enableAutoInSyncReplicas enableBatchPush enableBroadcastOffsetStore "
    "enableBuildConsumeQueueConcurrently enableCalcFilterBitMap enableCleanExpiredOffset enableCompaction "
    "enableConnectionMetrics enableConsumeQueueExt enableControllerMode enableCreateSysGroup "
    "enableDLegerCommitLog enableDetailStat enableFastChannelEventProcess enableLagAndDlqMetrics "
    "enableLiteEventMode enableLitePopLog enableLmq enableLmqQuota enableLmqStats "
    "enableLogConsumeQueueRepeatedlyBuildWhenRecover enableMessageStoreMetrics enableMixedMessageType "
    "enableMultiDispatch enableNetWorkFlowControl enableNotifyAfterPopOrderLockRelease "
    "enableNotifyBeforePopCalculateLag enablePopBatchAck enablePopBufferMerge enablePopLog "
    "enablePopMessageThreshold enablePopMetrics enablePropertyFilter enableReconnectForGoAway "
    "enableRegisterProducer enableRemoteEscape enableRemotingMetrics enableRequestMetrics "
    "enableRetryTopicV2 enableRocksDBLog enableRunningFlagsInFlush enableScheduleAsyncDeliver "
    "enableScheduleMessageStats enableShutdownGracefully enableSingleTopicRegister "
    "enableSkipLongAwaitingAck enableSlaveActingMaster enableSplitMetadata enableSplitRegistration "
    "enableStatsMetrics enableTransactionMetrics enabledAppendPropCRC endTransactionPoolQueueCapacity "
    "endTransactionThreadPoolNums estimateAccumulation expectConsumerNumUseFilter "
    "fastFailIfNoBufferInStorePool fetchControllerAddrByDnsLookup fetchNameSrvAddrByDnsLookup "
    "fetchNamesrvAddrByAddressServer fetchNamesrvAddrInterval fileReservedTime filterDataCleanTimeSpan "
    "filterSupportRetry flushCommitLogLeastPages flushCommitLogThoroughInterval flushCommitLogTimed "
    "flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval flushConsumerOffsetHistoryInterval "
    "flushConsumerOffsetInterval flushDelayOffsetInterval flushDiskType flushIntervalCommitLog "
    "flushIntervalConsumeQueue flushLeastPagesWhenWarmMapedFile forceRegister forceVerifyPropCRC "
    "forwardTimeout globalColdReadThreshold haFlowControlEnable haHousekeepingInterval haListenPort "
    "haMasterAddress haMaxGapNotInSync haMaxTimeSlaveNotCatchup haSendHeartbeatInterval haTransferBatchSize "
    "heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity highSpeedMode inSyncReplicas "
    "indexFileReadEnable indexFileWriteEnable indexRocksDBEnable initAuthenticationUser "
    "initPopOffsetByCheckMsgInMem innerClientAuthenticationCredentials isBrokerContainer "
    "isInBrokerContainer isScanAvailableNameSrv isolateLogEnable iteratorWhenUseRocksdbConsumeQueue "
    "listenPort liteEventCheckInterval liteEventFullDispatchDelayTime "
    "liteEventFullDispatchDelayTimeForWildcardGroup liteLagCountMetricsEnable liteLagLatencyCollectEnable "
    "liteLagLatencyMetricsEnable liteLagLatencyTopK litePullMessageEnable litePullMessageThreadPoolNums "
    "litePullThreadPoolQueueCapacity liteSubscriptionCheckInterval liteSubscriptionCheckTimeoutMills "
    "liteTtlCheckInterval loadBalancePollNameServerInterval loadBalanceProcessorThreadPoolNums "
    "loadBalanceThreadPoolQueueCapacity lockInStrictMode logicQueueForceSwapMapInterval "
    "logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum logicalDiskSpaceCleanForciblyThreshold "
    "longPollingEnable mappedFileSizeCommitLog mappedFileSizeConsumeQueue mappedFileSizeConsumeQueueExt "
    "mappedFileSizeTimerLog mappedFileSwapEnable mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests "
    "maxBatchDeleteFilesNum maxChecksumRange maxClientEventCount maxConsumeQueueScan "
    "maxErrorRateOfBloomFilter maxFilterMessageSize maxHaTransferByteInSecond maxHashSlotNum maxIndexNum "
    "maxLiteSubscriptionCount maxLmqConsumeQueueNum maxMessageFilterNumForNotification maxMessageSize "
    "maxMsgsNumBatch maxOffsetMapSize maxPopPollingSize maxReconnectIntervalTimeSeconds "
    "maxRecoveryCommitlogFiles maxRocksDBIndexQueryDays maxSlaveResendLength maxStatsIdleTimeInMinutes "
    "maxTopicLength maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory "
    "maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory memTableFlushIntervalMs "
    "messageDelayLevel messageIndexEnable messageIndexSafe messageStorePlugIn "
    "metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills "
    "metricLoggingExporterIntervalInMills metricsExportBatchMaxDataPoints metricsGrpcExporterHeader "
    "metricsGrpcExporterTarget metricsInDelta metricsLabel metricsOtelCardinalityLimit "
    "metricsPromExporterHost metricsPromExporterPort migrateAuthFromV1Enabled minInSyncReplicas minLiteTTl "
    "msgTraceTopicName namesrvAddr notifyConsumerIdsChangedEnable offsetCheckInSlave "
    "osPageCacheBusyTimeOutMills persistConsumerOffsetIncrementally popCkMaxBufferSize "
    "popCkOffsetMaxQueueSize popCkStayBufferTime popCkStayBufferTimeOut popConsumerFSServiceInit "
    "popConsumerKVServiceEnable popConsumerKVServiceInit popConsumerKVServiceLog popFromRetryProbability "
    "popFromRetryProbabilityForPriority popInflightMessageThreshold popLongPollingForceNotifyInterval "
    "popPollingMapExpireTimeSeconds popPollingMapSize popPollingSize popResponseReturnActualRetryTopic "
    "popReviveConcurrency popReviveMaxAttemptTimes popReviveMaxReturnSizePerRead popReviveSkipIfGroupAbsent "
    "preferredLeaderId printChannelGroups printChannelGroupsMinNum priorityOrderAsc "
    "processReplyMessageThreadPoolNums pullBatchMaxMessageCount pullMessageThreadPoolNums "
    "pullThreadPoolQueueCapacity putConsumeQueueDataByFileChannel putMessageFutureThreadPoolNums "
    "putMessageTimeout putMsgIndexHightWater putThreadPoolQueueCapacity queryMessageThreadPoolNums "
    "queryThreadPoolQueueCapacity readOnlyCommitLogStorePaths readUnCommitted realTimeNotifyConsumerChange "
    "realTimePersistRocksDBConfig recallMessageEnable recheckReputOffsetFromCq recoverConcurrently "
    "recoverThreadPoolNums redeleteHangedFileInterval regionId registerBrokerTimeoutMills "
    "registerNameServerPeriod rejectPullConsumerEnable rejectTransactionMessage replicasPerDiskPartition "
    "replyThreadPoolQueueCapacity retrieveMessageFromPopRetryTopicV1 reviveAckWaitMs reviveInterval "
    "reviveMaxSlow reviveQueueNum reviveScanTime rocketmqHome rocksdbCQDoubleWriteEnable "
    "rocksdbCompressionType rocksdbFlushWalFrequency rocksdbWalFileRollingThreshold sampleCountThreshold "
    "sampleSteps scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked "
    "searchBcqByCacheEnable sendHeartbeatTimeoutMillis sendMessageThreadPoolNums "
    "sendThreadPoolQueueCapacity serverAsyncSemaphoreValue serverCallbackExecutorThreads "
    "serverChannelMaxIdleTimeSeconds serverLoadBalancerEnable serverNettyWorkerGroupEnable "
    "serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads "
    "serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads "
    "sharedByteBufferNum shortPollingTimeMills shutdownWaitTimeSeconds skipPreOnline "
    "skipWhenCKRePutReachMaxTimes slaveReadEnable slaveTimeout socksProxyConfig "
    "spinLockCollisionRetreatOptimalDegree splitMetadataSize splitRegistrationSize "
    "startAcceptSendRequestTimeStamp statRocksDBCQIntervalSec statefulAuthenticationCacheExpiredSecond "
    "statefulAuthenticationCacheMaxNum statefulAuthorizationCacheExpiredSecond "
    "statefulAuthorizationCacheMaxNum storePathBrokerIdentity storePathCommitLog storePathDLedgerCommitLog "
    "storePathEpochFile storePathRootDir storeReplyMessageEnable storeType subscriptionExpiredTimeout "
    "syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod syncControllerMetadataPeriod syncFlushTimeout "
    "syncFromLastFile syncMasterFlushOffsetWhenStartup timerCheckMetricsWhen timerColdDataCheckIntervalMs "
    "timerCongestNumEachSlot timerEnableCheckMetrics timerEnableDisruptor timerEnableRetryUntilSuccess "
    "timerFlushIntervalMs timerGetMessageThreadNum timerInterceptDelayLevel timerMaxDelaySec "
    "timerMetricSmallThreshold timerPrecisionMs timerProgressLogIntervalMs timerPutMessageThreadNum "
    "timerRecallToTimeWheelEnable timerRecallToTimelineEnable timerReputServiceCorePoolSize "
    "timerReputServiceMaxPoolSize timerReputServiceQueueCapacity timerRocksDBEnable timerRocksDBPrecisionMs "
    "timerRocksDBRollIntervalHours timerRocksDBRollMaxTps timerRocksDBRollRangeHours timerRocksDBStopScan "
    "timerRocksDBTimeExpiredMaxTps timerRollWindowSlot timerSkipUnknownError timerStopDequeue "
    "timerStopEnqueue timerWarmEnable timerWheelEnable timerWheelSnapshotFlush timerWheelSnapshotIntervalMs "
    "topicQueueLockNum totalReplicas traceOn traceTopicEnable transRocksDBEnable "
    "transWriteOriginTransHalfEnable transactionCheckInterval transactionCheckMax "
    "transactionCheckRocksdbCoreThreads transactionCheckRocksdbMaxThreads "
    "transactionCheckRocksdbQueueCapacity transactionMetricFlushInterval transactionOpBatchInterval "
    "transactionOpMsgMaxSize transactionTimeOut transferMsgByHeap transientStorePoolEnable "
    "transientStorePoolSize travelCqFileNumWhenGetMessage updateNameServerAddrPeriod useABSLock "
    "useEpollNativeSelector useMessageFilterForNotification usePIDColdCtrStrategy "
    "useReentrantLockWhenPutMessage useSeparateRetryQueue useSeparateStorePathForRocksdbCQ "
    "useServerSideResetOffset useSingleRocksDBForAllConfigs useStaticSubscription useTLS "
    "userCacheExpiredSecond userCacheMaxNum userCacheRefreshSecond validateSystemTopicWhenUpdateTopic "
    "waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue waitTimeMillsInHeartbeatQueue "
    "waitTimeMillsInLitePullQueue waitTimeMillsInPullQueue waitTimeMillsInSendQueue "
    "waitTimeMillsInTransactionQueue wakeCommitWhenPutMessage wakeFlushWhenPutMessage warmMapedFileEnable "
    "writeBufferHighWaterMark writeBufferLowWaterMark writeWithoutMmap ";

enum class When : uint8_t { is_true, is_set, is_not };

// Settings of RocketMQ that change what a broker does so much that doing without them must be said loudly.
struct Refusal {
  std::string_view key;
  When when;
  std::string_view value;  // of is_not
  const char* reason;
};
constexpr Refusal refusals[] = {
    {"storeType", When::is_not, "default", "rmqd keeps ConsumeQueues in RocketMQ's files, not in RocksDB"},
    {"brokerRole", When::is_not, "ASYNC_MASTER", "this rmqd does not replicate"},
    {"enableDLegerCommitLog", When::is_true, "", "this rmqd has no DLedger mode"},
    {"enableControllerMode", When::is_true, "", "this rmqd has no controller mode"},
    {"enableSlaveActingMaster", When::is_true, "", "this rmqd does not replicate"},
    {"duplicationEnable", When::is_true, "", "this rmqd does not replicate"},
    {"isBrokerContainer", When::is_true, "", "each broker is a process of its own here"},
    {"aclEnable", When::is_true, "", "this rmqd has no access control: every client may do everything"},
    {"authenticationEnabled", When::is_true, "",
     "this rmqd has no access control: every client may do everything"},
    {"authorizationEnabled", When::is_true, "",
     "this rmqd has no access control: every client may do everything"},
    {"enableConsumeQueueExt", When::is_true, "", "rmqd does not write consumequeue_ext"},
    {"messageStorePlugIn", When::is_set, "", "this rmqd has no tiered storage"},
    {"readOnlyCommitLogStorePaths", When::is_set, "", "rmqd keeps the CommitLog in one directory"},
};

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 32 : c);
  return out;
}

struct Family {
  std::string_view part;  // a name that holds it belongs to the family
  const char* reason;
};
// The first one counts.
constexpr Family families[] = {
    {"RocksDB", "rmqd does not use RocketMQ's RocksDB stores"},
    {"rocksdb", "rmqd does not use RocketMQ's RocksDB stores"},
    {"combineCQ", "rmqd has one kind of ConsumeQueue"},
    {"hreadPoolNums", "rmqd has no thread pools"},
    {"ThreadNum", "rmqd has no thread pools"},
    {"hreadPoolQueueCapacity", "rmqd has no thread pools; its limits are fixed and bounded"},
    {"ueueCapacity", "rmqd has no thread pools; its limits are fixed and bounded"},
    {"PoolSize", "rmqd has no thread pools"},
    {"waitTimeMillsIn", "requests do not wait in queues of thread pools here"},
    {"Pages", "rmqd does not write through memory maps: it has no dirty pages to count"},
    {"ThoroughInterval", "rmqd does not write through memory maps: it has no dirty pages to count"},
    {"armMapedFile", "rmqd does not map files"},
    {"Swap", "rmqd does not map files"},
    {"transientStorePool", "rmqd does not map files"},
    {"Mmap", "rmqd does not map files"},
    {"server", "rmqd's network is io_uring, not Netty"},
    {"client", "rmqd's network is io_uring, not Netty"},
    {"Netty", "rmqd's network is io_uring, not Netty"},
    {"useEpoll", "rmqd's network is io_uring, not Netty"},
    {"writeBuffer", "rmqd's network is io_uring, not Netty"},
    {"Lock", "rmqd's log has one writer and no locks"},
    {"haM", "this rmqd does not replicate"},
    {"haL", "this rmqd does not replicate"},
    {"haF", "this rmqd does not replicate"},
    {"haH", "this rmqd does not replicate"},
    {"haS", "this rmqd does not replicate"},
    {"haT", "this rmqd does not replicate"},
    {"lave", "this rmqd does not replicate"},
    {"eplica", "this rmqd does not replicate"},
    {"ontroller", "this rmqd has no controller mode"},
    {"dLeger", "this rmqd has no DLedger mode"},
    {"CheckMetrics", "rmqd counts pending timer messages exactly: there is nothing to check by night"},
    {"MetricSmallThreshold",
     "rmqd counts pending timer messages exactly: there is nothing to check by night"},
    {"metric", "this rmqd exports no metrics by OpenTelemetry"},
    {"Metric", "this rmqd exports no metrics by OpenTelemetry"},
    {"imer",
     "rmqd's timers are exact, and indexed by their queue instead of a wheel: there is nothing else to set"},
    {"trans", "this rmqd records the end of a transaction at once, and in its log"},
    {"pop", "rmqd keeps in a way of its own what was popped: there is nothing else to set"},
    {"Pop", "rmqd keeps in a way of its own what was popped: there is nothing else to set"},
    {"revive", "rmqd keeps in a way of its own what was popped: there is nothing else to set"},
    {"lite", "this rmqd has no lite topics"},
    {"Lite", "this rmqd has no lite topics"},
    {"ompaction", "rmqd compacts one queue after the other: there is nothing else to set"},
    {"coldD", "rmqd has no flow control of cold reads to set"},
    {"auth", "this rmqd has no access control"},
    {"acl", "this rmqd has no access control"},
    {"CacheMaxNum", "this rmqd has no access control"},
    {"CacheExpiredSecond", "this rmqd has no access control"},
};

}  // namespace

bool is_rocketmq_key(std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return false;
  for (size_t at = keys.find(name); at != std::string_view::npos; at = keys.find(name, at + 1))
    if (keys[at - 1] == ' ' && keys[at + name.size()] == ' ') return true;
  return false;
}

const char* why_without(std::string_view name) {
  if (!is_rocketmq_key(name)) return "not a key of RocketMQ 5.5.0 or of rmqd";
  for (const Family& f : families)
    if (name.find(f.part) != std::string_view::npos) return f.reason;
  return "rmqd has nothing that this would change";
}

const char* why_refused(std::string_view key, std::string_view value) {
  for (const Refusal& r : refusals) {
    if (r.key != key) continue;
    if (r.when == When::is_true && lower(value) == "true") return r.reason;
    if (r.when == When::is_set && !value.empty()) return r.reason;
    if (r.when == When::is_not && lower(value) != lower(r.value)) return r.reason;
  }
  return nullptr;
}

ForeignKeys rocketmq_keys_passed_over(std::vector<std::string>* found) {
  return {[](std::string_view name) { return is_rocketmq_key(name) ? why_without(name) : nullptr; },
          why_refused, found};
}

}  // namespace rmq

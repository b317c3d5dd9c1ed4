#include "daemon/config.h"

#include <algorithm>

#include "daemon/metric_names.h"

namespace rmq {

namespace {

constexpr int64_t ms_per_day = 86'400'000;
constexpr std::string_view log_levels = "error|warning|notice|info|debug";
constexpr std::string_view exporter_types = "PROM|DISABLE";

using B = BrokerConfig;
const ConfigKey<B> broker_keys[] = {
    {"brokerClusterName", &B::brokerClusterName, "Name of the cluster that this broker belongs to."},
    {"brokerName", &B::brokerName,
     "Name of this broker; a master and its slaves share it. Empty: the host's name."},
    {"brokerId", &B::brokerId, "0 for a master.", 0, 0},
    {"brokerIP1", &B::brokerIP1,
     "Address that clients are told to connect to, and that stands in message ids. "
     "Empty: the first address of this host that is not a loopback one."},
    {"bindAddress", &B::bindAddress, "Address to listen on."},
    {"listenPort", &B::listenPort,
     "Main port. The port two below it is served too (clients call it the VIP channel).", 3, 65535},
    {"namesrvAddr", &B::namesrvAddr, "Name servers, host:port separated by ';'. Each is registered with."},
    {"namesrvListenPort", &B::namesrvListenPort, "Port of the name server inside rmqd --standalone.", 1,
     65535},
    {"namesrvKvConfigPath", &B::namesrvKvConfigPath,
     "KV config file of the name server inside rmqd --standalone. "
     "Empty: kvConfig.json beside the store."},
    {"storePathRootDir", &B::storePathRootDir, "Directory of the store."},
    {"storePathCommitLog", &B::storePathCommitLog,
     "Directory of the CommitLog, none that the store has for other files. Empty: commitlog in "
     "storePathRootDir."},
    {"mappedFileSizeCommitLog", &B::mappedFileSizeCommitLog,
     "Size of a CommitLog file in bytes, a multiple of 4096, less than 2 GiB, as RocketMQ has it. "
     "It must not change for an existing store.",
     65'536, 2'147'479'552},
    {"mappedFileSizeConsumeQueue", &B::mappedFileSizeConsumeQueue,
     "Size of a ConsumeQueue file in bytes, "
     "a multiple of 20. It must not change for an existing store.",
     2'000, 1 << 30},
    {"mapperFileSizeBatchConsumeQueue", &B::mapperFileSizeBatchConsumeQueue,
     "Size of RocketMQ's ConsumeQueue files of topics with queue.type=BatchCQ in bytes, a multiple of 46.",
     460, 1 << 30},
    {"flushDiskType", &B::flushDiskType,
     "SYNC_FLUSH: a send is answered when the message is on stable storage, and no "
     "consumer sees it before. ASYNC_FLUSH: a send is answered when the kernel has the message; it survives "
     "a killed "
     "broker, and a power cut from flushIntervalCommitLog on.",
     0, 0, "SYNC_FLUSH|ASYNC_FLUSH"},
    {"flushIntervalCommitLog", &B::flushIntervalCommitLog,
     "With ASYNC_FLUSH: milliseconds until written messages are "
     "on stable storage.",
     1, 60'000},
    {"enabledAppendPropCRC", &B::enabledAppendPropCRC,
     "Each message gets a property __CRC32#, the CRC of its whole record: a start after a loss of power then "
     "tells a write that was under way from a whole one by all of its bytes, without it by all but those of "
     "the "
     "properties; and store check looks at it. Consumers see the property, as with RocketMQ."},
    {"damagedLog", &B::damagedLog,
     "What a start does with damage in the middle of the CommitLog. REFUSE: it is left as it is, rmqd does "
     "not "
     "start. QUARANTINE: the damaged bytes are copied to the directory quarantine in the store, their "
     "messages "
     "are lost, the rest is served.",
     0, 0, "REFUSE|QUARANTINE"},
    {"syncFlushTimeout",
     &B::syncFlushTimeout,
     "With SYNC_FLUSH: milliseconds after which a send is answered with "
     "FLUSH_DISK_TIMEOUT; the message is stored all the same.",
     1,
     600'000,
     {},
     true},
    {"maxMessageSize",
     &B::maxMessageSize,
     "Largest message body in bytes. It must fit, with 64 KiB, into three sixteenths of memoryLimit.",
     1,
     16'000'000,
     {},
     true},
    {"memoryLimit", &B::memoryLimit,
     "Bytes of memory for the whole broker. 4 bytes for each of maxHashSlotNum come first; of the rest three "
     "eighths are for requests and answers on their way, a quarter for storeMemoryBytes, a twentieth for "
     "what "
     "waits to be confirmed or for its ConsumeQueue file, and what is left for tables of topics, groups and "
     "offsets, for connections and the program. Pages that the kernel keeps of ConsumeQueue files are not "
     "counted. 0: a quarter of what the machine or the control group allows, at most 1 GiB.",
     0, int64_t{1} << 40},
    {"storeMemoryBytes", &B::storeMemoryBytes,
     "Memory for the recent end of the log and for reads of older parts, taken as it is needed: a quarter of "
     "it is for the older parts while somebody reads them. At most half of memoryLimit. 0: a quarter of "
     "memoryLimit, as said there.",
     0, int64_t{1} << 40},
    {"dedupMemoryBytes", &B::dedupMemoryBytes,
     "Memory for the keys of messages in topics that are de-duplicated (attribute dedup.key), about 160 "
     "bytes a "
     "message within its window; at most an eighth of memoryLimit. 0: a sixteenth of it.",
     0, int64_t{1} << 40},
    {"maxTransferCountOnMessageInMemory",
     &B::maxTransferCountOnMessageInMemory,
     "Most messages in one pull answer, from memory.",
     1,
     4096,
     {},
     true},
    {"maxTransferBytesOnMessageInMemory",
     &B::maxTransferBytesOnMessageInMemory,
     "Most bytes in one pull answer, from memory (one message always fits).",
     1,
     8 << 20,
     {},
     true},
    {"maxTransferCountOnMessageInDisk",
     &B::maxTransferCountOnMessageInDisk,
     "Most messages in one pull answer, from disk.",
     1,
     4096,
     {},
     true},
    {"maxTransferBytesOnMessageInDisk",
     &B::maxTransferBytesOnMessageInDisk,
     "Most bytes in one pull answer, from disk (one message always fits).",
     1,
     8 << 20,
     {},
     true},
    {"diskCpuAffinity",
     &B::diskCpuAffinity,
     "Where the disk of the CommitLog has one queue of requests, as in many virtual machines, and one CPU "
     "takes "
     "its interrupts: rmqd's thread stays on that CPU while messages come in, within what it is allowed "
     "(CPUAffinity= of the unit, the control group). A flush is seen there at once even when clients on the "
     "same machine keep its CPUs busy. When it has to wait for that CPU it goes where there is room.",
     0,
     0,
     {},
     true},
    {"messageIndexEnable", &B::messageIndexEnable,
     "Messages can be looked up by key. What was stored while it was off is indexed when it is on again."},
    {"messageIndexSafe", &B::messageIndexSafe,
     "At the start, serve only when the index is complete. It becomes complete in any case; false: behind "
     "the "
     "scenes, after a crash, while look-ups wait for it up to two seconds."},
    {"fileReservedTime",
     &B::fileReservedTime,
     "Hours that messages are kept. CommitLog files all of whose messages are older are deleted, at the "
     "hours of deleteWhen; the file that is written never is.",
     0,
     87600,
     {},
     true},
    {"deleteWhen",
     &B::deleteWhen,
     "Hours of the day, local time, at which old files are deleted: numbers from 0 to 23 separated by ';'.",
     0,
     0,
     {},
     true},
    {"diskMaxUsedSpaceRatio",
     &B::diskMaxUsedSpaceRatio,
     "Per cent of the disk in use above which old files are deleted at any hour.",
     1,
     100,
     {},
     true},
    {"diskSpaceCleanForciblyRatio",
     &B::diskSpaceCleanForciblyRatio,
     "Per cent of the disk in use above which the oldest CommitLog files are deleted whatever their age, "
     "until the disk is below it. See cleanFileForciblyEnable.",
     1,
     100,
     {},
     true},
    {"cleanFileForciblyEnable",
     &B::cleanFileForciblyEnable,
     "Allow what diskSpaceCleanForciblyRatio says. It deletes messages that nobody may have read.",
     0,
     0,
     {},
     true},
    {"diskSpaceWarningLevelRatio",
     &B::diskSpaceWarningLevelRatio,
     "Per cent of the disk in use above which producers are refused (SERVICE_NOT_AVAILABLE) until it is "
     "below. Pulls, offset commits, administration and what consumers give back go on.",
     1,
     100,
     {},
     true},
    {"diskReservedBytes",
     &B::diskReservedBytes,
     "The same as an amount: with less free on the disk, producers are refused. The next CommitLog file "
     "(mappedFileSizeCommitLog bytes) is only made when this much stays free beside it. It must hold what "
     "goes on in the meantime: ConsumeQueue files, offsets, configuration. 0: no reserve.",
     0,
     1125899906842624,
     {},
     true},
    {"discardPolicy", &B::discardPolicy,
     "What goes before fileReservedTime. age: of each topic, messages older than discardAgeMills. fifo: the "
     "oldest CommitLog files, while the log is longer than discardBytes. lru: all messages of the topic that "
     "nobody has pulled from for longest, then of the next one, while all topics together hold more than "
     "discardBytes. Topics may say otherwise by the attributes discard.policy (none, age, fifo, lru), "
     "discard.age.ms and discard.bytes; a topic's own fifo is for its messages alone. Retry, dead letter and "
     "system topics are left alone.",
     0, 0, "none|age|fifo|lru", true},
    {"discardAgeMills",
     &B::discardAgeMills,
     "Milliseconds, for discardPolicy age and topics that say no discard.age.ms. 0: no limit.",
     0,
     int64_t{10} * 366 * 86'400'000,
     {},
     true},
    {"discardBytes",
     &B::discardBytes,
     "Bytes, for discardPolicy fifo and lru, and for topics with discard.policy fifo that say no "
     "discard.bytes. 0: no limit.",
     0,
     int64_t{1} << 50,
     {},
     true},
    {"cleanResourceInterval",
     &B::cleanResourceInterval,
     "Milliseconds between two looks for files to delete. The first one comes a minute after the start.",
     100,
     3600000,
     {},
     true},
    {"enableCompaction", &B::enableCompaction,
     "Topics with the attribute cleanup.policy=COMPACTION keep the latest message of each key, for ever. "
     "false: "
     "their old messages go with the CommitLog, as those of other topics."},
    {"compactionMappedFileSize", &B::compactionMappedFileSize,
     "Bytes of a log file of a compacted queue, rounded to a multiple of compactionCqMappedFileSize, of "
     "which it "
     "has five at least. The last file of a queue is never compacted.",
     4096, int64_t{1} << 30},
    {"compactionCqMappedFileSize", &B::compactionCqMappedFileSize,
     "Bytes of the queue file beside it, of which a message takes 46.", 460, int64_t{1} << 30},
    {"compactionScheduleInternal", &B::compactionScheduleInternal,
     "Milliseconds between two compactions of a queue. One is due when it has a full file that was not "
     "compacted "
     "yet.",
     100, 86'400'000},
    {"maxOffsetMapSize", &B::maxOffsetMapSize,
     "Most bytes for the keys of one compaction, and at most a sixteenth of memoryLimit. When there are "
     "more, "
     "the next one goes on.",
     4096, int64_t{1} << 40},
    {"deleteCommitLogFilesInterval",
     &B::deleteCommitLogFilesInterval,
     "Milliseconds between the deletions of two CommitLog files.",
     0,
     60000,
     {},
     true},
    {"deleteConsumeQueueFilesInterval",
     &B::deleteConsumeQueueFilesInterval,
     "Milliseconds between the deletions of two ConsumeQueue files.",
     0,
     60000,
     {},
     true},
    {"deleteFileBatchMax",
     &B::deleteFileBatchMax,
     "Most CommitLog files deleted at one look.",
     1,
     10000,
     {},
     true},
    {"destroyMapedFileIntervalForcibly",
     &B::destroyMapedFileIntervalForcibly,
     "Milliseconds that a reader may hold up the deletion of a file. Later it is deleted all the same, and "
     "its space comes back when the reader is done.",
     0,
     3600000,
     {},
     true},
    {"maxHashSlotNum", &B::maxHashSlotNum,
     "Hash slots of an index file. While messages come, the table of the newest file takes 4 bytes of memory "
     "a "
     "slot. When it is changed the index is made again from the CommitLog.",
     1'000, 100'000'000},
    {"maxIndexNum", &B::maxIndexNum,
     "Keys in an index file, of 20 bytes each. When it is changed the index is made again from the "
     "CommitLog.",
     1'000, 80'000'000},
    {"maxMsgsNumBatch",
     &B::maxMsgsNumBatch,
     "Most messages in the answer to a look-up by key.",
     1,
     1024,
     {},
     true},
    {"defaultQueryMaxNum",
     &B::defaultQueryMaxNum,
     "Most messages in the answer to a look-up by unique key.",
     1,
     1024,
     {},
     true},
    {"autoCreateTopicEnable",
     &B::autoCreateTopicEnable,
     "A send to an unknown topic creates it, after the pattern of "
     "the default topic (TBW102).",
     0,
     0,
     {},
     true},
    {"defaultTopicQueueNums",
     &B::defaultTopicQueueNums,
     "Queues of the default topic: the most that an automatically "
     "created topic gets.",
     1,
     65'536,
     {},
     true},
    {"autoCreateSubscriptionGroup",
     &B::autoCreateSubscriptionGroup,
     "A pull or heartbeat of an unknown consumer group "
     "creates it.",
     0,
     0,
     {},
     true},
    {"clusterTopicEnable", &B::clusterTopicEnable,
     "The topic with the cluster's name can be read and written."},
    {"brokerTopicEnable", &B::brokerTopicEnable, "The topic with the broker's name can be read and written."},
    {"traceTopicEnable", &B::traceTopicEnable, "Create the topic for message traces at start."},
    {"msgTraceTopicName", &B::msgTraceTopicName, "Name of the topic for message traces."},
    {"brokerPermission",
     &B::brokerPermission,
     "What clients may do: 4 read, 2 write, 6 both.",
     0,
     7,
     {},
     true},
    {"messageDelayLevel", &B::messageDelayLevel,
     "The delay levels, from level 1 on: numbers with s, m, h or d."},
    {"timerWheelEnable", &B::timerWheelEnable,
     "Messages may have any delay (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS). false: they are "
     "refused, and "
     "those that wait go on waiting."},
    {"timerMaxDelaySec",
     &B::timerMaxDelaySec,
     "The longest such delay, in seconds. What waits longer than the log keeps messages is stored again in "
     "time.",
     1,
     int64_t{100} * 365 * 86'400,
     {},
     true},
    {"recallMessageEnable",
     &B::recallMessageEnable,
     "Such messages may be recalled before their time.",
     0,
     0,
     {},
     true},
    {"rejectTransactionMessage",
     &B::rejectTransactionMessage,
     "Refuse half messages: this broker does not take transactions.",
     0,
     0,
     {},
     true},
    {"transactionTimeOut",
     &B::transactionTimeOut,
     "Milliseconds after which the producer of a half message that it has not ended is asked for the first "
     "time, unless the message says otherwise (CHECK_IMMUNITY_TIME_IN_SECONDS).",
     1,
     ms_per_day,
     {},
     true},
    {"transactionCheckMax",
     &B::transactionCheckMax,
     "So many times a producer is asked; then the half message goes to TRANS_CHECK_MAX_TIME_TOPIC.",
     1,
     10'000,
     {},
     true},
    {"transactionCheckInterval",
     &B::transactionCheckInterval,
     "Milliseconds between two questions about the same half message.",
     100,
     ms_per_day,
     {},
     true},
    {"regionId", &B::regionId, "MSG_REGION of stored messages."},
    {"traceOn",
     &B::traceOn,
     "TRACE_ON of stored messages: clients send traces of their own.",
     0,
     0,
     {},
     true},
    {"storeReplyMessageEnable",
     &B::storeReplyMessageEnable,
     "Replies to request messages are stored, besides being pushed to the client that asked.",
     0,
     0,
     {},
     true},
    {"enableMixedMessageType",
     &B::enableMixedMessageType,
     "Topics may be given the message.type MIXED.",
     0,
     0,
     {},
     true},
    {"enableLmq", &B::enableLmq,
     "Light queues, named %LMQ%...: a message comes into those that its property INNER_MULTI_DISPATCH names, "
     "too. "
     "With enableMultiDispatch."},
    {"enableMultiDispatch", &B::enableMultiDispatch, "The same as enableLmq: RocketMQ wants both."},
    {"maxLmqConsumeQueueNum", &B::maxLmqConsumeQueueNum,
     "Most light queues; a message that would make one more is refused.", 1, 1'000'000},
    {"longPollingEnable",
     &B::longPollingEnable,
     "A pull that finds nothing waits as long as the client allows; false: "
     "shortPollingTimeMills.",
     0,
     0,
     {},
     true},
    {"shortPollingTimeMills",
     &B::shortPollingTimeMills,
     "Milliseconds that a pull waits without longPollingEnable.",
     1,
     60'000,
     {},
     true},
    {"litePullMessageEnable", &B::litePullMessageEnable, "Lite pull consumers may pull.", 0, 0, {}, true},
    {"rejectPullConsumerEnable",
     &B::rejectPullConsumerEnable,
     "Refuse pull consumers: heartbeats of theirs are ignored, "
     "pulls of unknown consumers refused.",
     0,
     0,
     {},
     true},
    {"enablePropertyFilter",
     &B::enablePropertyFilter,
     "Consumers may filter by SQL92 expressions; false: they are refused (RocketMQ's default).",
     0,
     0,
     {},
     true},
    {"useServerSideResetOffset",
     &B::useServerSideResetOffset,
     "Offsets that an operator resets are kept by the broker, and consumers learn of them with their next "
     "pull; false: consumers that are online are told to move, and nobody else.",
     0,
     0,
     {},
     true},
    {"filterSupportRetry",
     &B::filterSupportRetry,
     "A pull of a retry topic by SQL92 gets the messages that match the group's expression for the topic "
     "that they came from; false: those that match the one for the retry topic. By tags, as RocketMQ's "
     "clients subscribe to it, all of them come back.",
     0,
     0,
     {},
     true},
    {"filterDataCleanTimeSpan",
     &B::filterDataCleanTimeSpan,
     "Milliseconds that the SQL92 expression of a consumer group is kept in consumerFilter.json after its "
     "last consumer has left.",
     0,
     INT64_MAX,
     {},
     true},
    {"defaultMessageRequestMode", &B::defaultMessageRequestMode,
     "How consumers that ask the broker for their queues take messages where SET_MESSAGE_REQUEST_MODE says "
     "nothing of topic and group.",
     0, 0, "PULL|POP", true},
    {"defaultPopShareQueueNum",
     &B::defaultPopShareQueueNum,
     "With POP as that default: so many of the consumers that follow have their queues popped by a consumer "
     "as well; 0 and less: each pops all queues.",
     -1,
     INT32_MAX,
     {},
     true},
    {"serverLoadBalancerEnable",
     &B::serverLoadBalancerEnable,
     "The queues of a topic are shared out among the group's consumers that ask; false: each gets all.",
     0,
     0,
     {},
     true},
    {"popFromRetryProbability",
     &B::popFromRetryProbability,
     "Of a hundred POP requests so many look at the retry topic first, the others at its end.",
     0,
     100,
     {},
     true},
    {"popFromRetryProbabilityForPriority",
     &B::popFromRetryProbabilityForPriority,
     "The same for topics whose message.type is PRIORITY.",
     0,
     100,
     {},
     true},
    {"priorityOrderAsc",
     &B::priorityOrderAsc,
     "Of topics whose message.type is PRIORITY: the larger number is the higher priority; false: the smaller "
     "one.",
     0,
     0,
     {},
     true},
    {"enableRetryTopicV2",
     &B::enableRetryTopicV2,
     "Messages that were popped and not acknowledged in time go to %RETRY%group+topic; false: to "
     "%RETRY%group_topic.",
     0,
     0,
     {},
     true},
    {"retrieveMessageFromPopRetryTopicV1",
     &B::retrieveMessageFromPopRetryTopicV1,
     "With enableRetryTopicV2: %RETRY%group_topic is popped from as well.",
     0,
     0,
     {},
     true},
    {"popResponseReturnActualRetryTopic",
     &B::popResponseReturnActualRetryTopic,
     "Messages popped from a retry topic keep its name; false: they come under their own topic, with their "
     "handle.",
     0,
     0,
     {},
     true},
    {"initPopOffsetByCheckMsgInMem",
     &B::initPopOffsetByCheckMsgInMem,
     "A group that begins with the newest message begins with the first of a queue that is young.",
     0,
     0,
     {},
     true},
    {"enablePopMessageThreshold",
     &B::enablePopMessageThreshold,
     "A queue of which a group has popped more than popInflightMessageThreshold messages without "
     "acknowledging them gives no more.",
     0,
     0,
     {},
     true},
    {"popInflightMessageThreshold",
     &B::popInflightMessageThreshold,
     "Messages; see enablePopMessageThreshold.",
     1,
     10'000'000,
     {},
     true},
    {"flushConsumerOffsetInterval",
     &B::flushConsumerOffsetInterval,
     "Milliseconds between writes of the consumer "
     "offsets to consumerOffset.json.",
     100,
     600'000,
     {},
     true},
    {"registerNameServerPeriod",
     &B::registerNameServerPeriod,
     "Milliseconds between registrations with the name "
     "servers.",
     10'000,
     60'000,
     {},
     true},
    {"registerBrokerTimeoutMills",
     &B::registerBrokerTimeoutMills,
     "Milliseconds that a registration may take.",
     100,
     60'000,
     {},
     true},
    {"enableSplitRegistration",
     &B::enableSplitRegistration,
     "Whether name servers other than rmq-namesrvd are sent the topics in requests of splitRegistrationSize "
     "each, and not all in one. What would be too long for one request is split in any case.",
     0,
     0,
     {},
     true},
    {"splitRegistrationSize",
     &B::splitRegistrationSize,
     "Topics in a request; see enableSplitRegistration.",
     2,
     1'000'000,
     {},
     true},
    {"channelExpiredTimeout",
     &B::channelExpiredTimeout,
     "Milliseconds without a heartbeat after which a client is "
     "dropped.",
     1'000,
     ms_per_day,
     {},
     true},
    {"configBlackList", &B::configBlackList, "Keys that UPDATE_BROKER_CONFIG must refuse, separated by ';'."},
    {"metricsExporterType", &B::metricsExporterType,
     "PROM: metrics for Prometheus (rmqd-metrics(7)) and /health/live and /health/ready are served over "
     "HTTP.",
     0, 0, exporter_types},
    {"metricsPromExporterHost", &B::metricsPromExporterHost,
     "Address that metrics and health are served at. Whoever reaches it may read them."},
    {"metricsPromExporterPort", &B::metricsPromExporterPort,
     "Port of it. When it is taken the daemon serves all the same, and tries again.", 1, 65535},
    {"metricsOtelCardinalityLimit", &B::metricsOtelCardinalityLimit,
     "Series of one metric that are shown at most; rmqd_series_left_out counts the others.", 1, 1'000'000},
    {"metricsLabel", &B::metricsLabel, "More labels for all metrics: name:value, separated by ','."},
    {"logLevel", &B::logLevel, "Least level of what is logged.", 0, 0, log_levels, true},
};

using N = NamesrvConfig;
const ConfigKey<N> namesrv_keys[] = {
    {"bindAddress", &N::bindAddress, "Address to listen on."},
    {"listenPort", &N::listenPort, "Port.", 1, 65535},
    {"kvConfigPath", &N::kvConfigPath, "File of the KV config."},
    {"orderMessageEnable",
     &N::orderMessageEnable,
     "Route answers carry the order config of the topic.",
     0,
     0,
     {},
     true},
    {"returnOrderTopicConfigToBroker",
     &N::returnOrderTopicConfigToBroker,
     "Registration answers carry all order "
     "configs.",
     0,
     0,
     {},
     true},
    {"scanNotActiveBrokerInterval", &N::scanNotActiveBrokerInterval,
     "Milliseconds between looks for brokers that went "
     "silent.",
     10, 600'000},
    {"deleteTopicWithBrokerRegistration",
     &N::deleteTopicWithBrokerRegistration,
     "A full registration removes topics of "
     "this broker that it does not name.",
     0,
     0,
     {},
     true},
    {"enableAllTopicList",
     &N::enableAllTopicList,
     "Answer requests for the list of all topics.",
     0,
     0,
     {},
     true},
    {"enableTopicList",
     &N::enableTopicList,
     "Answer requests for the topics of a cluster and of units.",
     0,
     0,
     {},
     true},
    {"supportActingMaster",
     &N::supportActingMaster,
     "A slave that acts for its missing master is shown as the master.",
     0,
     0,
     {},
     true},
    {"notifyMinBrokerIdChanged",
     &N::notifyMinBrokerIdChanged,
     "Tell the brokers of a set when its smallest id changes.",
     0,
     0,
     {},
     true},
    {"needWaitForService",
     &N::needWaitForService,
     "Refuse route requests during waitSecondsForService after the start.",
     0,
     0,
     {},
     true},
    {"waitSecondsForService",
     &N::waitSecondsForService,
     "Seconds, see needWaitForService.",
     1,
     3'600,
     {},
     true},
    {"configBlackList", &N::configBlackList,
     "Keys that UPDATE_NAMESRV_CONFIG must refuse, separated by ';'."},
    {"metricsExporterType", &N::metricsExporterType,
     "PROM: metrics for Prometheus (rmqd-metrics(7)) and /health/live and /health/ready are served over "
     "HTTP.",
     0, 0, exporter_types},
    {"metricsPromExporterHost", &N::metricsPromExporterHost,
     "Address that metrics and health are served at. Whoever reaches it may read them."},
    {"metricsPromExporterPort", &N::metricsPromExporterPort,
     "Port of it. When it is taken the daemon serves all the same, and tries again.", 1, 65535},
    {"metricsOtelCardinalityLimit", &N::metricsOtelCardinalityLimit,
     "Series of one metric that are shown at most; rmqd_series_left_out counts the others.", 1, 1'000'000},
    {"metricsLabel", &N::metricsLabel, "More labels for all metrics: name:value, separated by ','."},
    {"logLevel", &N::logLevel, "Least level of what is logged.", 0, 0, log_levels, true},
};

// A label that samples have of their own: with another one of that name Prometheus would refuse the page.
bool is_metric_label(std::string_view name) {
  static constexpr std::string_view own[] = {
#define X(id, family, type, labels, help) labels,
      RMQ_PROCESS_METRICS(X) RMQ_NAMESRV_METRICS(X) RMQ_BROKER_METRICS(X)
#undef X
          "cluster node_id node_type le quantile"};
  for (std::string_view all : own)
    while (!all.empty()) {
      const std::string_view one = all.substr(0, all.find(' '));
      if (one == name) return true;
      all.remove_prefix(std::min(all.size(), one.size() + 1));
    }
  return false;
}

}  // namespace

std::optional<LabelList> metric_labels_of(std::string_view text) {
  LabelList out;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.empty()) continue;
    const size_t colon = one.find(':');
    if (colon == std::string_view::npos || colon == 0 || !is_letter(one.front())) return std::nullopt;
    const std::string_view name = one.substr(0, colon);
    for (char c : name)
      if (!is_letter(c) && (c < '0' || c > '9')) return std::nullopt;
    if (name.starts_with("__") || is_metric_label(name)) return std::nullopt;
    for (const auto& [known, value] : out)
      if (known == name) return std::nullopt;
    out.emplace_back(name, one.substr(colon + 1));
  }
  return out;
}

std::span<const ConfigKey<BrokerConfig>> broker_config_table() {
  return broker_keys;
}
std::span<const ConfigKey<NamesrvConfig>> namesrv_config_table() {
  return namesrv_keys;
}

}  // namespace rmq

#include "daemon/broker_config.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/memory_limit.h"
#include "daemon/broker/schedule.h"
#include "daemon/overruled.h"
#include "daemon/rocketmq_keys.h"
#include "daemon/service_manager.h"
#include "proto/codes.h"
#include "store/compaction_format.h"
#include "store/format.h"
#include "store/index_format.h"
#include "uring/io.h"

namespace rmq {

namespace {

// A person who tries it out is not root and has no /var/lib/rmqd.
std::string default_standalone_root() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::string(state) + "/rmqd/store";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.local/state/rmqd/store";
  return "/var/lib/rmqd/store";
}

// A name that clients, tools and JSON can carry.
void check_name(const char* key, const std::string& name, ConfigErrors& errors) {
  bool good = !name.empty() && name.size() <= 127;
  for (char c : name)
    good = good && (std::isalnum(static_cast<unsigned char>(c)) ||
                    std::string_view("-_.%|").find(c) != std::string_view::npos);
  if (!good)
    errors.push_back(std::string("'") + key +
                     "' must be 1 to 127 letters, digits or characters of -_.%|, not '" + name + "'");
}

void check_addresses(const BrokerConfig& c, ConfigErrors& errors) {
  bool v6 = c.brokerIP1.find(':') != std::string::npos;
  if (!Address::parse((v6 ? "[" + c.brokerIP1 + "]" : c.brokerIP1) + ":1"))
    errors.push_back("'brokerIP1' must be an IP address, not '" + c.brokerIP1 + "'");
  v6 = c.bindAddress.find(':') != std::string::npos;
  if (!c.bindAddress.empty() && !Address::parse((v6 ? "[" + c.bindAddress + "]" : c.bindAddress) + ":1"))
    errors.push_back("'bindAddress' must be an IP address or empty, not '" + c.bindAddress + "'");
  std::string_view rest = c.namesrvAddr;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    size_t colon = one.rfind(':');
    std::string_view port = colon == std::string_view::npos ? std::string_view{} : one.substr(colon + 1);
    int64_t number = 0;
    bool good = colon != 0 && detail::parse_int(port, number) && number > 0 && number < 65'536;
    if (!one.empty() && !good)
      errors.push_back("'namesrvAddr' must be HOST:PORT, several separated by ';', not '" + std::string(one) +
                       "'");
  }
}

// What every message has among its properties, and topics that the broker makes.
void check_texts(const BrokerConfig& c, ConfigErrors& errors) {
  constexpr size_t region_bytes_max = 255;
  const bool has_controls = std::any_of(c.regionId.begin(), c.regionId.end(), [](char ch) {
    return static_cast<unsigned char>(ch) < 0x20 || ch == 0x7f;
  });
  if (c.regionId.size() > region_bytes_max || has_controls)
    errors.push_back("'regionId' must be at most 255 bytes, without control characters");
  if (auto wrong = proto::invalid_topic_remark(c.msgTraceTopicName))
    errors.push_back("'msgTraceTopicName': " + *wrong);
}

// A port that another one of this broker has would never be free.
void check_metrics(const BrokerConfig& c, ConfigErrors& errors) {
  if (!metric_labels_of(c.metricsLabel))
    errors.push_back(
        "'metricsLabel' must be name:value pairs separated by ',', with names that the metrics do not "
        "have already, not '" +
        c.metricsLabel + "'");
  const int64_t port = c.metricsPromExporterPort;
  if (c.metricsExporterType == "PROM" && (port == c.listenPort || port == c.listenPort - 2))
    errors.push_back(
        "'metricsPromExporterPort' must not be a port of the broker, listenPort or listenPort - 2");
}

// Directories of the store are not the CommitLog's: what else lies in that of the ConsumeQueues, say, is
// removed when they are made again.
void check_paths(const BrokerConfig& c, ConfigErrors& errors) {
  namespace fs = std::filesystem;
  static constexpr std::string_view others[] = {
      "consumequeue", store::batch_queue_dir, store::own_batch_queue_dir, "index", "config",
      "quarantine",   "timerwheel",           store::compaction_dir};
  if (c.storePathCommitLog.empty()) return;
  const auto real = [](const std::string& path) {
    std::error_code failed;
    fs::path p = fs::weakly_canonical(fs::absolute(path), failed);
    return (failed ? fs::path(path) : p).lexically_normal();
  };
  const fs::path log = real(c.storePathCommitLog);
  for (std::string_view name : others) {
    const fs::path below = log.lexically_relative(real(c.storePathRootDir + "/" + std::string(name)));
    if (below.empty() || *below.begin() == "..") continue;
    errors.push_back("'storePathCommitLog' must not be in the directory that the store has for its " +
                     std::string(name));
  }
}

void check_values(const BrokerConfig& c, ConfigErrors& errors) {
  check_paths(c, errors);
  check_name("brokerName", c.brokerName, errors);
  check_name("brokerClusterName", c.brokerClusterName, errors);
  check_addresses(c, errors);
  check_texts(c, errors);
  if (c.mappedFileSizeCommitLog % static_cast<int64_t>(disk_block_bytes) != 0)
    errors.push_back("'mappedFileSizeCommitLog' must be a multiple of 4096");
  if (c.mappedFileSizeConsumeQueue % 20 != 0)
    errors.push_back("'mappedFileSizeConsumeQueue' must be a multiple of 20");
  if (c.mapperFileSizeBatchConsumeQueue % 46 != 0)
    errors.push_back("'mapperFileSizeBatchConsumeQueue' must be a multiple of 46");
  if (c.maxMessageSize + 65'536 > c.mappedFileSizeCommitLog)
    errors.push_back("'maxMessageSize' and 64 KiB must fit into a CommitLog file (mappedFileSizeCommitLog)");
  // RocketMQ computes the size of the file in 32 bits.
  if (store::IndexLayout l{static_cast<uint32_t>(c.maxHashSlotNum), static_cast<uint32_t>(c.maxIndexNum)};
      l.file_bytes() > INT32_MAX)
    errors.push_back("an index file of 'maxHashSlotNum' and 'maxIndexNum' would be larger than 2 GiB");
  if (c.enableLmq != c.enableMultiDispatch)
    errors.push_back(
        "'enableLmq' and 'enableMultiDispatch' must be the same: one does nothing without the other");
  if (!hours_of(c.deleteWhen))
    errors.push_back("'deleteWhen' must be hours from 0 to 23 separated by ';', not '" + c.deleteWhen + "'");
  if (auto levels = broker::DelayLevels::parse(c.messageDelayLevel); !levels)
    errors.push_back(levels.error().where);
  check_metrics(c, errors);
}

constexpr int64_t memory_limit_min = 64 << 20, memory_limit_usual = 1 << 30;
constexpr int64_t store_memory_min = 8 << 20;
constexpr int64_t besides_slots_min = 40 << 20;

// What is left of memoryLimit for everything but the slot table of the newest index file. Of it:
// a quarter for log memory (storeMemoryBytes; a quarter of that more while slow readers hold it), 3/8 for
// requests and answers, 3/64 for what waits in the store, 1/16 for keys of de-duplication (dedupMemoryBytes),
// the rest for tables, connections and the program.
int64_t besides_slots(const BrokerConfig& c) {
  return c.memoryLimit - (c.messageIndexEnable ? 4 * c.maxHashSlotNum : 0);
}

void complete_memory(BrokerConfig& c, ConfigErrors& errors) {
  if (c.memoryLimit == 0) {
    const auto usable = static_cast<int64_t>(usable_memory_bytes());
    c.memoryLimit =
        usable == 0 ? memory_limit_usual : std::clamp(usable / 4, memory_limit_min, memory_limit_usual);
  }
  if (c.memoryLimit < memory_limit_min)
    return errors.push_back("'memoryLimit' must be 0 or at least 67108864 (64 MiB)");
  if (besides_slots(c) < besides_slots_min)
    return errors.push_back("'memoryLimit', which is " + std::to_string(c.memoryLimit) +
                            ", must be 40 MiB more than the 4 bytes of each of 'maxHashSlotNum' take");
  if (c.storeMemoryBytes == 0) c.storeMemoryBytes = std::max(besides_slots(c) / 4, store_memory_min);
  if (c.dedupMemoryBytes == 0) c.dedupMemoryBytes = besides_slots(c) / 16;
  if (c.dedupMemoryBytes > c.memoryLimit / 8)
    errors.push_back("'dedupMemoryBytes' must be at most an eighth of memoryLimit, which is " +
                     std::to_string(c.memoryLimit));
  if (c.storeMemoryBytes < store_memory_min)
    errors.push_back("'storeMemoryBytes' must be 0 or at least 8388608 (8 MiB)");
  if (c.storeMemoryBytes > c.memoryLimit / 2)
    errors.push_back("'storeMemoryBytes' must be at most half of memoryLimit, which is " +
                     std::to_string(c.memoryLimit));
  if (!errors.empty()) return;
  // Else no client could ever send one: see Connection::holds_too_much().
  const auto request_max = static_cast<int64_t>(net_memory_bytes_of(c) / 2);
  if (c.maxMessageSize + 65'536 > request_max)
    errors.push_back(
        "'maxMessageSize' and 64 KiB must fit into the part of memoryLimit for requests, which is " +
        std::to_string(request_max) + " bytes");
}

}  // namespace

void complete_broker_config(BrokerConfig& c, bool standalone, bool root_given, ConfigErrors& errors) {
  if (c.brokerName.empty()) c.brokerName = host_name();
  if (c.brokerIP1.empty()) c.brokerIP1 = first_host_address();
  if (standalone) {
    if (!root_given) c.storePathRootDir = default_standalone_root();
    std::string own = "127.0.0.1:" + std::to_string(c.namesrvListenPort);
    if (c.bindAddress != "0.0.0.0" && !c.bindAddress.empty())
      own = c.bindAddress + ":" + std::to_string(c.namesrvListenPort);
    c.namesrvAddr = c.namesrvAddr.empty() ? own : own + ";" + c.namesrvAddr;
    if (c.namesrvKvConfigPath.empty()) c.namesrvKvConfigPath = c.storePathRootDir + "/config/kvConfig.json";
  }
  if (standalone && (c.namesrvListenPort == c.listenPort || c.namesrvListenPort == c.listenPort - 2))
    errors.push_back("'namesrvListenPort' must not be a port of the broker, listenPort or listenPort - 2");
  complete_memory(c, errors);
  check_values(c, errors);
}

std::string own_config_path(const BrokerConfig& c) {
  return c.storePathRootDir + "/config/rmqd.toml";
}

namespace {

using Entries = std::vector<detail::ConfigEntry>;

BrokerConfig config_from(const ConfigSource& source, const Entries& main, const Entries& own,
                         const std::string& own_path, ConfigErrors& errors,
                         std::vector<std::string>* useless) {
  const auto table = broker_config_table();
  const ForeignKeys foreign = rocketmq_keys_passed_over(useless);
  BrokerConfig c;
  c.storePathRootDir.clear();
  config_take(table, c, main, source.file, errors, foreign);
  config_take(table, c, own, own_path, errors, foreign);
  if (useless != nullptr)
    for (std::string& line : overruled_keys(main, source.file, own, own_path))
      useless->push_back(std::move(line));
  config_take_settings(table, c, source.settings, errors, foreign);
  const bool root_given = !c.storePathRootDir.empty();
  if (!root_given) c.storePathRootDir = BrokerConfig{}.storePathRootDir;
  complete_broker_config(c, source.standalone, root_given, errors);
  return c;
}

}  // namespace

BrokerConfig read_broker_config(const ConfigSource& source, ConfigErrors& errors,
                                std::vector<std::string>* useless) {
  Entries main;
  if (!source.file.empty()) main = detail::read_toml(source.file, errors);
  ConfigErrors seen_again;
  const std::string own_path = own_config_path(config_from(source, main, {}, {}, seen_again, nullptr));
  Entries own;
  std::error_code unreadable;
  if (std::filesystem::exists(own_path, unreadable)) own = detail::read_toml(own_path, errors);
  return config_from(source, main, own, own_path, errors, useless);
}

BrokerConfig broker_config_of(const ConfigSource& source, std::string_view file_text,
                              std::string_view own_text, ConfigErrors& errors) {
  const std::string own_name = "changes at run time";
  const Entries main = detail::read_toml_text(file_text, source.file, errors);
  const Entries own = detail::read_toml_text(own_text, own_name, errors);
  return config_from(source, main, own, own_name, errors, nullptr);
}

uint64_t net_memory_bytes_of(const BrokerConfig& c) {
  const int64_t all = besides_slots(c);
  // Who gives the store more takes it from here, down to a quarter of what it would be.
  const int64_t more = std::max<int64_t>(c.storeMemoryBytes - all / 4, 0);
  return static_cast<uint64_t>(std::max(all * 3 / 8 - more, all * 3 / 32));
}

std::optional<uint32_t> hours_of(std::string_view text) {
  uint32_t bits = 0;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    int64_t hour = 0;
    if (one.empty()) continue;
    if (!detail::parse_int(one, hour) || hour < 0 || hour > 23) return std::nullopt;
    bits |= 1u << hour;
  }
  return bits;
}

store::RetentionOptions retention_options_of(const BrokerConfig& c) {
  store::RetentionOptions o;
  o.file_reserved_ms = c.fileReservedTime * 3'600'000;
  o.delete_hours = hours_of(c.deleteWhen).value_or(0);
  o.max_used_percent = static_cast<uint32_t>(c.diskMaxUsedSpaceRatio);
  o.clean_forcibly_percent = static_cast<uint32_t>(c.diskSpaceCleanForciblyRatio);
  o.clean_forcibly = c.cleanFileForciblyEnable;
  o.warning_percent = static_cast<uint32_t>(c.diskSpaceWarningLevelRatio);
  o.reserved_bytes = static_cast<uint64_t>(c.diskReservedBytes);
  if (c.discardPolicy == "fifo") o.log_bytes_max = static_cast<uint64_t>(c.discardBytes);
  o.clean_interval_ms = static_cast<uint32_t>(c.cleanResourceInterval);
  o.log_pause_ms = static_cast<uint32_t>(c.deleteCommitLogFilesInterval);
  o.queue_pause_ms = static_cast<uint32_t>(c.deleteConsumeQueueFilesInterval);
  o.batch_max = static_cast<uint32_t>(c.deleteFileBatchMax);
  o.destroy_forcibly_ms = static_cast<uint32_t>(c.destroyMapedFileIntervalForcibly);
  return o;
}

store::StoreOptions store_options_of(const BrokerConfig& c) {
  store::StoreOptions o;
  o.root = c.storePathRootDir;
  o.commit_log_dir = c.storePathCommitLog;
  o.commit_log_file_bytes = static_cast<uint64_t>(c.mappedFileSizeCommitLog);
  o.consume_queue_file_units = static_cast<uint32_t>(c.mappedFileSizeConsumeQueue / 20);
  o.batch_queue_file_units = static_cast<uint32_t>(c.mapperFileSizeBatchConsumeQueue / 46);
  o.flush =
      c.flushDiskType == "ASYNC_FLUSH" ? store::FlushDiskType::ASYNC_FLUSH : store::FlushDiskType::SYNC_FLUSH;
  o.append_property_crc = c.enabledAppendPropCRC;
  o.damaged_log = c.damagedLog == "QUARANTINE" ? store::DamagedLog::QUARANTINE : store::DamagedLog::REFUSE;
  o.flush_interval_ms = static_cast<uint32_t>(c.flushIntervalCommitLog);
  if (c.storeMemoryBytes != 0) o.memory_bytes = static_cast<uint64_t>(c.storeMemoryBytes);
  if (c.memoryLimit != 0)
    o.waiting_bytes = std::min(o.waiting_bytes, static_cast<uint64_t>(besides_slots(c)) * 3 / 64);
  o.unflushed_bytes_max = std::min(o.unflushed_bytes_max, std::max<uint64_t>(o.memory_bytes / 2, 8u << 20));
  o.max_message_bytes = static_cast<uint32_t>(c.maxMessageSize);
  o.transfer_count_in_memory = static_cast<uint32_t>(c.maxTransferCountOnMessageInMemory);
  o.transfer_bytes_in_memory = static_cast<uint32_t>(c.maxTransferBytesOnMessageInMemory);
  o.transfer_count_on_disk = static_cast<uint32_t>(c.maxTransferCountOnMessageInDisk);
  o.transfer_bytes_on_disk = static_cast<uint32_t>(c.maxTransferBytesOnMessageInDisk);
  if (auto levels = broker::DelayLevels::parse(c.messageDelayLevel)) o.delay_level_ms = levels->delay_ms;
  o.sync_flush_timeout_ms = static_cast<uint32_t>(c.syncFlushTimeout);
  if (c.enableLmq) o.light_queues_max = static_cast<uint32_t>(c.maxLmqConsumeQueueNum);
  o.index = c.messageIndexEnable;
  o.index_safe = c.messageIndexSafe;
  o.index_slots = static_cast<uint32_t>(c.maxHashSlotNum);
  o.index_entries = static_cast<uint32_t>(c.maxIndexNum);
  o.compaction_log_file_bytes = static_cast<uint64_t>(c.compactionMappedFileSize);
  o.compaction_queue_file_bytes = static_cast<uint64_t>(c.compactionCqMappedFileSize);
  o.compaction_interval_ms = static_cast<uint32_t>(c.compactionScheduleInternal);
  o.compaction_map_bytes = static_cast<uint64_t>(c.maxOffsetMapSize);
  if (c.memoryLimit != 0)
    o.compaction_map_bytes = std::min(o.compaction_map_bytes, static_cast<uint64_t>(besides_slots(c)) / 16);
  o.retention = retention_options_of(c);
  return o;
}

NamesrvConfig namesrv_config_of(const BrokerConfig& c) {
  NamesrvConfig n;
  n.bindAddress = c.bindAddress;
  n.listenPort = c.namesrvListenPort;
  n.kvConfigPath = c.namesrvKvConfigPath;
  n.logLevel = c.logLevel;
  return n;
}

}  // namespace rmq

// The bytes of the store's small structures: file names, ConsumeQueue units, both checkpoints. Pure functions
// over memory: the broker's store, which reads and writes through the ring, and the offline tools
// (store/offline), which read with plain calls, share them. The record is proto/record.h. docs/formats.md
// has the layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "proto/record.h"

namespace rmq::store {

// ---- file names

std::string file_name_20(uint64_t offset);  // "00000000001073741824"
bool parse_file_name_20(std::string_view name, uint64_t& offset);

// Fit to be the name of a directory. (What characters a topic may have is the broker's rule.)
bool legal_topic(std::string_view name);
// The name of a queue's directory: a number without sign.
bool parse_queue_id(std::string_view name, int32_t& id);

// ---- ConsumeQueue units

inline constexpr size_t unit_bytes = 20;  // physical offset 8, size 4, tags code 8
inline constexpr int32_t blank_unit_size = 0x7fffffff;

// One unit of a ConsumeQueue.
struct QueueUnit {
  int64_t physical_offset = 0;
  int32_t bytes = 0;
  int64_t tags_code = 0;
  bool operator==(const QueueUnit&) const = default;
};

void encode_unit(std::byte* to, const QueueUnit& u);
QueueUnit decode_unit(const std::byte* from);
// Filling before the first unit of a queue that begins within a file.
inline bool is_blank(const QueueUnit& u) {
  return u.physical_offset == 0 && u.bytes == blank_unit_size;
}

// Topics with queue.type=BatchCQ, in which a record may be of several messages: RocketMQ's ConsumeQueues,
// which have a unit of 46 bytes (compaction_format.h) for each record; and ours, with one of 20 bytes for
// each message.
inline constexpr std::string_view batch_queue_dir = "batchconsumequeue";
inline constexpr std::string_view own_batch_queue_dir = "rmqd.batchqueue";
inline constexpr int32_t inner_messages_max = 32'767;
// How many queue offsets a record takes: 1, or INNER_NUM of an inner batch that says its INNER_BASE too. The
// topics of what consumers could not consume have copies of such records, at one offset each.
int32_t inner_messages_of(const proto::RecordView& r);

inline constexpr std::string_view schedule_topic = "SCHEDULE_TOPIC_XXXX";
inline constexpr std::string_view timer_topic = "rmq_sys_wheel_timer";
// Ours. A record there says what was delivered in time (daemon/broker/delivery.h), and vouches for the copies
// that follow it in the log: its body begins with copy_guard_version and ends with a CopyGuard.
inline constexpr std::string_view delivered_topic = "rmq_sys_delivered";
inline constexpr uint8_t copy_guard_version = 2;
// For each record behind it the CRC-32 of its properties, which the record's own CRC does not cover; 0: not
// known. As bytes: those CRCs, big-endian, 4 bytes each, and their number, 4 bytes.
using CopyGuard = std::vector<uint32_t>;
void append_copy_guard(std::string& body, const CopyGuard& g);
// Empty: the body has none.
CopyGuard copy_guard_of(Bytes body);
// RocketMQ's topics of what was popped, whose messages go through the timer.
inline constexpr std::string_view revive_log_prefix = "rmq_sys_REVIVE_LOG_";

// A unit of the timer topic has as its tags code the time to deliver, times four, and what it is; RocketMQ
// puts the hash of TAGS there and does not look at it.
enum class TimerKind : uint8_t { time_of_day, delay, recall };
struct TimerTag {
  int64_t deliver_ms = 0;
  TimerKind kind = TimerKind::time_of_day;
};
int64_t encode_timer_tag(const TimerTag& t);
std::optional<TimerTag> decode_timer_tag(int64_t tags_code);  // nothing: a hash
// Of a record of the timer topic; nothing: it has no TIMER_OUT_MS that makes sense.
std::optional<TimerTag> timer_tag_of(const proto::RecordView& r);

// The tags code that a record's unit has: the hash of its TAGS. Of a delayed message in SCHEDULE_TOPIC_XXXX,
// with `delay_level_ms` by level from 1 on, the time to deliver it; no levels: the hash, too. Of a timer
// message: see TimerTag.
int64_t unit_tags_code(const proto::RecordView& r, std::span<const int64_t> delay_level_ms);

// ---- checkpoints

// What our recovery may rely on; one slot of rmqd.checkpoint.
struct OwnCheckpoint {
  uint64_t sequence = 0;
  bool clean = false;          // written by an orderly stop: the log ends at queues_durable
  bool sync_flush = false;     // the writer confirmed only what was on stable storage
  bool property_crc = false;   // each record that it appends behind log_durable has a property_crc
  int64_t queues_durable = 0;  // physical offset; the log is durable up to there as well
  int64_t log_durable = 0;     // at least queues_durable
  int64_t zeroed_to = 0;       // the log's files are written up to here, with zeros behind the log's end
  // A read found a queue file damaged: all are to be made anew.
  static constexpr uint64_t queues_damaged = UINT64_MAX;
  uint64_t queue_count = 0;        // queues with units of records below queues_durable; or queues_damaged
  uint64_t queue_units = 0;        // sum of their max offsets
  uint64_t queue_sum = 0;          // ... each times its queue_weight(), modulo 2^64; 0: not known
  int64_t store_timestamp_ms = 0;  // no record below queues_durable is newer
  // With `clean`: queue_weight() times where the queue's files begin, plus one, of queues that the log has
  // something of, modulo 2^64. 0: not known.
  uint64_t queue_begins = 0;
};

// Odd, and by chance alone equal for two queues: sums of it show which queues there are. It is in files.
uint64_t queue_weight(std::string_view topic, int32_t queue_id);

// RocketMQ's StoreCheckpoint.
struct JavaCheckpoint {
  int64_t physic_msg_timestamp = 0;
  int64_t logics_msg_timestamp = 0;
  int64_t index_msg_timestamp = 0;
  int64_t master_flushed_offset = 0;
  int64_t confirm_phy_offset = 0;
};

inline constexpr size_t own_checkpoint_slot_bytes = 4096;
inline constexpr size_t java_checkpoint_bytes = 4096;
// What `abort` holds while rmqd runs; RocketMQ writes its process id, and never reads it.
inline constexpr std::string_view own_abort_text = "rmqd";

void encode_checkpoint(const OwnCheckpoint& c, MutableBytes slot);  // own_checkpoint_slot_bytes
std::optional<OwnCheckpoint> decode_checkpoint(Bytes slot);         // nothing: not valid
// A whole slot of a later version of rmqd: its CRC fits, its number is not ours. Who opens such a store may
// break it.
bool is_later_checkpoint(Bytes slot);

void encode_java_checkpoint(const JavaCheckpoint& c, MutableBytes file);  // java_checkpoint_bytes
JavaCheckpoint decode_java_checkpoint(Bytes file);

// ---- stores that are not for us

// RocksDB keeps a file CURRENT in each of its directories. In which directories below the root we look, and
// what it means there; of config/ every other directory counts too, but for those of access control.
inline constexpr std::string_view rocksdb_file = "CURRENT";
inline constexpr std::string_view rocksdb_queue_dirs[] = {"consumequeue", "consumequeue_rocksdb"};
inline constexpr const char* rocksdb_queues_reason =
    "its ConsumeQueues are in RocksDB (storeType=defaultRocksDB), which rmqd does not read";
inline constexpr const char* rocksdb_config_reason =
    "its topics, groups and offsets are in RocksDB (storeType=defaultRocksDB), which rmqd does not read";
inline constexpr const char* dledger_reason = "its CommitLog is one of DLedger, which rmqd does not read";
inline constexpr const char* later_version_reason = "a later version of rmqd wrote it";
bool may_hold_rocksdb_config(std::string_view config_dir);  // the name of a directory in config/
bool is_dledger_dir(std::string_view name);                 // ... in the root

}  // namespace rmq::store

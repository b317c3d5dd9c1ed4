// Compacted topics on disk (cleanup.policy=COMPACTION), in RocketMQ's layout: each queue has a log of its
// own, compaction/compactionLog/<topic>/<queue id>, and beside each file of it one of the same name in
// compaction/compactionCq/<topic>/<queue id> with a unit of 46 bytes for each record. RocketMQ's batch
// ConsumeQueues have the same units. Pure functions over memory, as format.h. docs/formats.md, section 11.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "proto/record.h"

namespace rmq::store {

inline constexpr std::string_view compaction_dir = "compaction";
inline constexpr std::string_view compaction_log_dir = "compaction/compactionLog";
inline constexpr std::string_view compaction_queue_dir = "compaction/compactionCq";
inline constexpr std::string_view compaction_positions_file = "compaction/position-checkpoint";
inline constexpr std::string_view compaction_swap_file = "compaction/rmqd.swap";
inline constexpr std::string_view compacting_subdir =
    "compacting";  // of a queue: what will replace its files
inline constexpr std::string_view replicating_subdir = "replicating";  // of RocketMQ's slaves

// ---- units

inline constexpr size_t batch_unit_bytes = 46;

// physical offset 8 | size 4 | tags code 8 | store timestamp 8 | base offset 8 | messages 2 | compacted
// offset 4 | reserved 4
struct BatchUnit {
  int64_t physical_offset = 0;  // in that log: file name and position
  int32_t bytes = 0;
  int64_t tags_code = 0;
  int64_t store_timestamp_ms = 0;
  int64_t base_offset = 0;  // queue offset of the record's first message
  int16_t count = 0;        // its messages: 1 in compacted topics
  int32_t compacted_offset = -1;
  bool operator==(const BatchUnit&) const = default;
  bool is_message() const { return physical_offset >= 0 && bytes > 0 && base_offset >= 0 && count > 0; }
};

void encode_batch_unit(std::byte* to, const BatchUnit& u);
BatchUnit decode_batch_unit(const std::byte* from);
// Behind the last unit of a file that ends before it is full.
inline constexpr BatchUnit batch_end_unit{.physical_offset = -1};

// The unit of a record of a compacted topic that lies there.
BatchUnit compacted_unit_of(const proto::RecordView& v, int64_t physical_offset);

// ---- sizes of files

// RocketMQ rounds compactionCqMappedFileSize to whole units, and compactionMappedFileSize to a multiple of
// that.
uint64_t compaction_queue_file_bytes(uint64_t configured);
uint64_t compaction_log_file_bytes(uint64_t configured, uint64_t queue_file_bytes);
// RocketMQ leaves the last place for the end unit.
inline uint64_t compaction_units_max(uint64_t queue_file_bytes) {
  return queue_file_bytes / batch_unit_bytes - 1;
}

// ---- small files

// Up to which offset each queue is compacted, by "<topic>_<queue id>": RocketMQ's JSON. Text that it cannot
// be read from has no positions: they only save work.
std::string encode_compaction_positions(const std::map<std::string, int64_t>& positions);
std::map<std::string, int64_t> decode_compaction_positions(std::string_view text);

// Files of a queue are replaced by others, which lie in compacting_subdir: while that file is there, this has
// to be carried through.
struct CompactionSwap {
  std::string topic;
  int32_t queue_id = 0;
  std::vector<uint64_t> old_files;  // by their names
  std::vector<uint64_t> new_files;
  bool operator==(const CompactionSwap&) const = default;
};
std::string encode_compaction_swap(const CompactionSwap& s);
std::optional<CompactionSwap> decode_compaction_swap(std::string_view text);  // nothing: it is not whole

}  // namespace rmq::store

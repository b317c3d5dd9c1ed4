// What recovery may rely on, in three small files of the root directory.
//
// `rmqd.checkpoint` is ours: below which physical offset all ConsumeQueues are on stable storage, and sums
// over them that tell when some were deleted. Two slots, written in turn, so that one is good at every
// moment. `checkpoint` is RocketMQ's, kept up to date so that a RocketMQ broker may take the directory
// over. `abort` exists while a process runs. All are described in docs/formats.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/types.h"
#include "uring/task.h"

namespace rmq::store {

struct OwnCheckpoint {
  uint64_t sequence = 0;
  bool clean = false;              // written by an orderly stop: the log ends at queues_durable
  bool sync_flush = false;         // the writer confirmed only what was on stable storage
  int64_t queues_durable = 0;      // physical offset; the log is durable up to there as well
  int64_t log_durable = 0;         // at least queues_durable
  int64_t zeroed_to = 0;           // the log's files are written up to here, with zeros behind the log's end
  uint64_t queue_count = 0;        // queues with units of records below queues_durable
  uint64_t queue_units = 0;        // sum of their max offsets
  int64_t store_timestamp_ms = 0;  // no record below queues_durable is newer
};

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

void encode_checkpoint(const OwnCheckpoint& c, MutableBytes slot);  // own_checkpoint_slot_bytes
std::optional<OwnCheckpoint> decode_checkpoint(Bytes slot);         // nothing: not valid

class CheckpointFiles {
 public:
  CheckpointFiles(Disk& disk, std::string root);

  // Takes the directory for this process. Errc::exists: another one has it.
  Task<Result<void>> lock();
  Task<Result<void>> load();  // a missing or broken file is not an error
  const std::optional<OwnCheckpoint>& own() const { return own_; }
  const std::optional<JavaCheckpoint>& java() const { return java_; }
  bool abort_exists() const { return abort_exists_; }
  bool abort_is_ours() const { return abort_is_ours_; }  // else a RocketMQ broker left it

  Task<Result<void>> mark_running();                                // creates `abort`
  Task<Result<void>> mark_stopped();                                // removes it
  Task<Result<void>> save(OwnCheckpoint own, JavaCheckpoint java);  // sequence is set here
  Task<void> close();

 private:
  Task<Result<std::unique_ptr<File>>> open_file(const char* name, uint64_t bytes);
  Task<Result<void>> look_at_abort();
  Task<Result<void>> load_own();
  Task<Result<void>> load_java();

  Disk& disk_;
  const std::string root_;
  std::unique_ptr<File> lock_file_, own_file_, java_file_;
  std::optional<OwnCheckpoint> own_;
  std::optional<JavaCheckpoint> java_;
  bool abort_exists_ = false;
  bool abort_is_ours_ = false;
  uint64_t sequence_ = 0;
};

}  // namespace rmq::store

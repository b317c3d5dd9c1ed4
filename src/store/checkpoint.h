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

#include "store/format.h"
#include "store/types.h"
#include "uring/task.h"

namespace rmq::store {

class CheckpointFiles {
 public:
  CheckpointFiles(Disk& disk, std::string root);

  // Takes the directory for this process. Errc::exists: another one has it.
  Task<Result<void>> lock();
  Task<Result<void>> load();  // a missing or broken file is not an error
  const std::optional<OwnCheckpoint>& own() const { return own_; }
  uint64_t log_durable() const { return own_ ? static_cast<uint64_t>(own_->log_durable) : 0; }  // by own()
  const std::optional<JavaCheckpoint>& java() const { return java_; }
  bool abort_exists() const { return abort_exists_; }
  bool abort_is_ours() const { return abort_is_ours_; }  // else a RocketMQ broker left it
  // Up to which store time RocketMQ's files of the index are full and on the disk, by its checkpoint; 0:
  // nobody knows. We write that file, too, for RocketMQ, without CRC and sync: after a crash of ours anything
  // may stand there. `last_store_ms`: of the last message.
  int64_t index_safe_ms(int64_t last_store_ms) const;

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

// The files of the CommitLog: each of the same full size, named by the physical offset of its first byte.
// New ones are reserved in full before they are used, so a write of the log never makes a file longer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/format.h"
#include "store/types.h"
#include "uring/sync.h"
#include "uring/task.h"

namespace rmq::store {

struct Segment {
  uint64_t base = 0;  // physical offset of the first byte
  std::unique_ptr<File> file;
  uint64_t data_end = UINT64_MAX;  // behind the blank record; not yet sealed: UINT64_MAX
  int64_t last_put_ns = 0;  // of a file that was filled in this run: monotonic time of its last message
};

class SegmentSet {
 public:
  SegmentSet(Disk& disk, std::string dir, uint64_t file_bytes, StoreStats& stats);

  // Opens what is there. A last file that is empty is removed, one that is too short is made whole. Files and
  // their names are on stable storage when it resolves.
  // Errc::corrupt: one between is missing or cut short, and lost() says what of the log is gone. With
  // QUARANTINE such gaps are filled, also one between the last file and `durable_end` (if there is any file):
  // bridged(), log_gaps.cc.
  // Errc::unsupported: sizes are not `file_bytes`.
  Task<Result<void>> load(DamagedLog gaps, uint64_t durable_end);
  struct Lost {
    uint64_t begin = 0, end = 0;  // physical offsets
  };
  const std::optional<Lost>& lost() const { return lost_; }
  const std::vector<Lost>& bridged() const { return bridged_; }  // by file
  // The files that fill gaps get their names, durable. Before that the next load() finds the gaps again.
  Task<Result<void>> keep_bridges();
  // The next file: full size, synced, in a synced directory, then in the set. On failure nothing is left.
  Task<Result<void>> create(uint64_t base);
  // Everything from `end` on becomes zero, later files go away; on stable storage when it resolves.
  Task<Result<void>> cut(uint64_t end);
  // The oldest file, never the last, leaves the set at once and then the disk, as soon as nobody reads it (or
  // after `wait_ns`, or when `stop` is set: then it is unlinked all the same). The unlink and its name are
  // durable before the next file may go, so that a crash never leaves a gap. After a failure the next call
  // goes on with the same file. One call at a time.
  Task<Result<void>> remove_front(int64_t wait_ns, Event& stop);
  Task<void> close();

  size_t count() const { return files_.size(); }
  const std::shared_ptr<Segment>& at(size_t i) const { return files_[i]; }
  bool removing() const { return doomed_ != nullptr; }  // a remove_front() has not ended well
  // What remove_front() takes next.
  std::string path_of_front() const { return path_of(doomed_ ? doomed_->base : first_base()); }
  bool empty() const { return files_.empty(); }
  uint64_t first_base() const { return files_.empty() ? 0 : files_.front()->base; }
  uint64_t end_base() const { return files_.empty() ? 0 : files_.back()->base + file_bytes_; }
  uint64_t file_bytes() const { return file_bytes_; }
  std::shared_ptr<Segment> find(uint64_t physical) const;  // null: no file has it

 private:
  std::string path_of(uint64_t base) const;
  Task<Result<std::unique_ptr<File>>> open_file(std::string path, OpenHow how);
  Task<Result<std::unique_ptr<File>>> open_file(uint64_t base, bool create);
  Task<Result<void>> make_whole(File& f);
  Task<Result<void>> bridge(uint64_t base, File* has, uint64_t bytes);
  Task<Result<void>> bridge_to(uint64_t base);
  Task<Result<void>> remove_bridges();
  Error lost(uint64_t begin, uint64_t end, const char* why);
  Task<Result<void>> create_whole(uint64_t base);

  Disk& disk_;
  const std::string dir_;
  const uint64_t file_bytes_;
  StoreStats& stats_;
  std::deque<std::shared_ptr<Segment>> files_;
  std::shared_ptr<Segment> doomed_;  // out of the set, not yet off the disk
  std::optional<Lost> lost_;
  std::vector<Lost> bridged_;
  bool names_unsure_ = false;  // a sync of the directory failed after an unlink
};

}  // namespace rmq::store

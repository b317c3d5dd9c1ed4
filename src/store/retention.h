// Retention: old files of the log go, and with them what only pointed into them: ConsumeQueue files, index
// files, the minimum offsets of queues. RocketMQ's rules (DefaultMessageStore.CleanCommitLogService): every
// clean_interval_ms, when it is an hour of deleteWhen, or the disk is fuller than diskMaxUsedSpaceRatio, or
// somebody asked for it, files whose newest message is older than fileReservedTime go, oldest first, a few at
// a time; above diskSpaceCleanForciblyRatio of any age, until the disk is below it again. Never the file that
// is written, and never one that a recovery would start in (what is above the last checkpoint).
//
// Age. Messages carry wall clock time, and the wall clock may be set. A file that was filled in this run is
// as old as the monotonic clock says. For an older one now is what the wall clock was when the store was
// opened and the monotonic clock has counted since (or the wall clock, when that is behind), and it is at
// least as old as this run. What only the wall clock calls old is held back and reported.
//
// Crashes. The ends of queues that lose their last message are written first (queue_ends.h); then the log
// goes, one file at a time, each unlink durable before the next. Queues and index are judged by the log's new
// beginning; a start does the same from what it finds, so it does not matter how far this came. All of it
// runs on the store's loop beside everything else; unlinks and statvfs run on threads.
#pragma once

#include <optional>
#include <string>

#include "store/commit_log.h"
#include "store/index_service.h"
#include "store/queue_ends.h"
#include "uring/sync.h"

namespace rmq::store {

inline constexpr uint32_t manual_delete_rounds = 20;  // MAX_MANUAL_DELETE_FILE_TIMES

class RetentionOwner {
 public:
  virtual ~RetentionOwner();
  // Files of the log that end at or below it may go.
  virtual uint64_t deletable_below() const = 0;
};

class Retention {
 public:
  Retention(Disk& disk, const StoreOptions& o, StoreStats& stats, CommitLog& log, QueueTable& table,
            QueueFiles& queues, QueueEnds& ends, IndexService& index, RetentionOwner& owner);

  void start(Scope& tasks);  // when the store opens
  void stop();               // the task ends soon
  void set_options(const RetentionOptions& o);
  void set_listener(FailureListener* l) { listener_ = l; }
  // The next rounds delete what is older than fileReservedTime at any hour; the first one begins now.
  void delete_expired();
  // Files of the log in which no queue has a message any more go at any age.
  void set_reclaim(bool on) { reclaim_ = on; }
  // Queues have lost messages at their fronts, and perhaps files.
  void queues_moved() { cleaned_log_min_.reset(); }

 private:
  struct Age {
    int64_t wall_ms = 0;  // by the wall clock alone
    int64_t sure_ms = 0;
  };
  struct Round;

  Task<void> run();
  Task<void> round();
  Task<Result<uint32_t>> used_percent();
  Task<std::optional<DeleteReason>> reason_now(bool manual, bool& forcibly);
  Task<void> delete_log_files(DeleteReason why, bool forcibly);
  bool may_delete_front();
  Task<void> delete_beyond_bytes();
  Task<void> delete_unneeded();
  Task<bool> delete_front(DeleteReason why, int64_t age_ms);
  Task<Result<Age>> age_of_front();
  void note_held();
  Task<void> follow_log();
  Task<Result<void>> clean_queue(ConsumeQueue& q, int64_t log_min);
  Task<void> clean_index(int64_t log_min);
  void failed(std::string_view path, const Error& e);
  int64_t reserved_ms() const { return rules_.file_reserved_ms; }

  Disk& disk_;
  const StoreOptions& options_;
  RetentionOptions rules_;
  StoreStats& stats_;
  CommitLog& log_;
  QueueTable& table_;
  QueueFiles& queues_;
  QueueEnds& ends_;
  IndexService& index_;
  RetentionOwner& owner_;
  FailureListener* listener_ = nullptr;
  int64_t opened_ns_ = 0;
  int64_t opened_wall_ms_ = 0;
  uint32_t manual_rounds_ = 0;
  bool reclaim_ = false;
  int64_t told_jump_ms_ = 0;
  std::optional<int64_t> cleaned_log_min_;  // queues and index agree with a log that begins there
  Event soon_, stop_;
};

}  // namespace rmq::store

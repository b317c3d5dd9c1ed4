// Opening a directory: where the log ends, and queues that agree with it.
//
// The queues are on stable storage up to some physical offset Q (from our checkpoint; from the queues
// themselves in a directory that RocketMQ stopped in order; else the log's begin). Units above are cut off,
// then the log is walked from Q and every record dispatched again. The first position without a valid record
// is the end. What may be there:
// - nothing but zeros: the log ends here;
// - a torn tail, the write that was in flight when the machine stopped: everything from there on is cut;
// - damage: bytes that had been on stable storage are no record any more. Then there is no way to go on
//   without losing acknowledged messages, and the start is refused; or, by configuration, quarantine.cc sets
//   the damage aside and the walk goes on behind it.
// A torn tail and damage are told apart by how far valid data reaches behind the spot: the log writes at
// most log_write_bytes_max at a time and never starts a write before the last one is safe, so a valid record
// further away proves that the spot was safe once. The durable end in the checkpoint proves it as well. Of
// what a RocketMQ broker wrote, or of a log whose checkpoint is lost, RocketMQ's `checkpoint` proves it: a
// record behind the spot that is not newer than what it says was safe, and so was all before it.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/record.h"
#include "store/checkpoint.h"
#include "store/commit_log.h"
#include "store/log_walker.h"
#include "store/queue_ends.h"

namespace rmq::store {

class Recovery {
 public:
  Recovery(Disk& disk, const StoreOptions& o, StoreStats& stats, CommitLog& log, QueueTable& table,
           QueueFiles& files, QueueEnds& ends, CheckpointFiles& checkpoint, RecoveryProgress* progress);

  struct Outcome {
    uint64_t end = 0;  // the log's
    uint64_t zeroed_to = 0;
    int64_t last_store_timestamp_ms = 0;
  };
  Task<Result<Outcome>> run();

 private:
  Task<Result<Outcome>> recover();
  Task<Result<void>> load_queues();
  Task<Result<void>> load_own();
  Task<Result<void>> load_java();
  Task<Result<void>> load_with_gaps();
  // queue_account.cc: the queues know every record of the log below `end`. False: units are missing.
  Task<Result<bool>> all_accounted(uint64_t end);
  Task<Result<void>> rebuild_all();
  Task<Result<void>> look_before_rebuild();
  void apply_ends(bool walked);
  Task<Result<void>> walk(LogWalker& w);
  // One position: moves pos_ on, or says that no record is there.
  Task<Result<bool>> step(LogWalker& w);
  std::optional<proto::RecordView> valid_record(Bytes bytes) const;
  void passed(const proto::RecordView& v);
  void run_over(Bytes bytes);
  bool may_be_torn(const proto::RecordView& v, Bytes record) const;
  static bool is_set_aside(const proto::RecordView& v);  // what quarantine() puts there
  bool dispatch_plain(const proto::RecordView& v);
  bool dispatch_to_queue(const proto::RecordView& v);
  void add_unit(ConsumeQueue& q, const proto::RecordView& v);
  Task<Result<void>> dispatch(const proto::RecordView& v);
  Task<Result<void>> dispatch_mending(const proto::RecordView& v);
  Task<Result<void>> mend_order(ConsumeQueue& q, int64_t offset);
  void report();
  // False: damage at pos_ was quarantined, and the walk goes on from there.
  Task<Result<bool>> finish_tail(LogWalker& w);
  Task<Result<void>> look_for_damage(LogWalker& w, bool below_durable, bool provable);
  int64_t vouched_until_ms() const;
  Task<Result<void>> drop_unproven(LogWalker& w);
  Task<Result<void>> look_behind(LogWalker& w, uint64_t proof_from);
  Task<Result<void>> search_record(LogWalker& w, uint64_t from, uint64_t to);
  Task<Result<bool>> record_valid(LogWalker& w, uint64_t at);
  Task<Result<uint64_t>> proof_from(LogWalker& w);
  Task<Result<void>> sync_kept();
  Task<Result<void>> write_again(uint64_t from);
  Error damaged(uint64_t next_valid);
  // quarantine.cc
  Task<Result<void>> quarantine(LogWalker& w);
  Task<Result<void>> quarantine_tail(LogWalker& w);
  Task<Result<void>> keep_bytes(LogWalker& w, uint64_t from, uint64_t to);
  Task<Result<void>> overwrite(uint64_t physical, Bytes bytes);

  Disk& disk_;
  const StoreOptions& options_;
  const std::string root_;
  const DamagedLog damaged_log_;
  StoreStats& stats_;
  CommitLog& log_;
  QueueTable& table_;
  QueueFiles& files_;
  QueueEnds& ends_;
  CheckpointFiles& checkpoint_;
  RecoveryProgress* progress_;
  const OwnCheckpoint* own_ = nullptr;  // fits the log
  bool clean_ = false;                  // ... and was written by an orderly stop
  bool rebuilding_ = false;             // all queues anew: whatever the records say is right
  bool rebuild_wanted_ = false;
  bool only_looking_ = false;  // records are walked over, and get no units
  bool cut_ = false;
  bool quarantined_ = false;  // queues may have gaps
  uint64_t from_ = 0;         // Q
  uint64_t pos_ = 0;
  uint64_t nonzero_end_ = 0;   // behind the last byte that is not zero, as far as was looked
  uint64_t valid_behind_ = 0;  // a record whose place proves damage; 0: none
  int last_per_cent_ = -1;
  CopyGuard guard_;     // of the records behind the last marker of what was delivered
  size_t guarded_ = 0;  // so many of them were passed
  int64_t guard_store_ms_ = 0;
  Scope ahead_;  // reads of the walker
  int64_t last_store_ms_ = 0;
  int64_t passed_store_ms_ = INT64_MIN;  // of the record before pos_, where that is known
};

}  // namespace rmq::store

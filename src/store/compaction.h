// Compacted topics (cleanup.policy=COMPACTION): of the messages of a queue with the same KEYS the latest one
// stays, for ever, with its queue offset. RocketMQ's way and files: the messages go into the CommitLog and
// the ConsumeQueue as all do; behind their back each confirmed one is copied to a log of its queue
// (compaction_files.h), and each compactionScheduleInternal the full files of that log are written anew
// without what has a later message.
//
// A consumer reads what was copied from there, and the rest, which is some seconds old at most, as from any
// queue. So a put waits for nothing here, and what is not copied yet keeps its file of the CommitLog
// (needed_from()): retention takes nothing that is the latest of its key.
//
// Crashes. The copy: compaction_files.h. The compaction: new files are made in a directory beside, synced,
// and then rename-d over the old ones; a file names them all before the first rename (CompactionSwap), and a
// start carries through what it finds there. Before that file nothing has changed, and a start throws away
// what was made.
//
// One loop, the store's. A compaction keeps the keys of the newest part in memory, at most
// StoreOptions::compaction_map_bytes; when there are more the rest is done the next time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit_log.h"
#include "store/compaction_files.h"
#include "store/queue_files.h"
#include "uring/sync.h"

namespace rmq::store {

class CompactionOwner {
 public:
  virtual ~CompactionOwner();
  virtual uint64_t confirmed_offset() const = 0;
  virtual void compaction_failed(const Error& e) = 0;  // final, as a failed write of a ConsumeQueue
};

struct CompactedQueue {
  std::string topic;
  int32_t id = 0;
  std::vector<CompactedFilePtr> files;  // by base; the last one is written to
  int64_t copied = 0;  // messages below it are in the files, but for those that are compacted
  bool deleted = false;
  int64_t compact_at_ns = 0;
  Semaphore copying{1}, compacting{1};

  int64_t first() const;  // the first offset that is in the files; -1: there is none
};
using CompactedQueuePtr = std::shared_ptr<CompactedQueue>;

class Compaction {
 public:
  Compaction(Disk& disk, const StoreOptions& o, StoreStats& stats, QueueTable& table, QueueFiles& queues,
             CommitLog& log, CompactionOwner& owner);
  ~Compaction();

  // When the store opens: keeps all of the log when there are files of compacted topics, until set_topics().
  Task<Result<void>> look();
  // Once, before anything is put or read: the topics that are compacted. Loads their files; a queue that
  // knows less than those goes on behind them. Files of other topics stay as they are, and stale. `clean`:
  // the last process stopped in order.
  Task<Result<void>> set_topics(std::vector<std::string> topics, bool clean);
  // A new topic, before its first message; what is left of an older one of that name goes.
  Task<Result<void>> add_topic(std::string topic);
  // Also files that are there though the topic was not compacted in this run.
  Task<Result<void>> delete_topic(std::string topic);
  bool may_have_files(std::string_view topic) const { return has_files_ || has(topic); }
  bool has(std::string_view topic) const { return !topics_.empty() && topics_.contains(topic); }
  CompactedQueuePtr find(std::string_view topic, int32_t id) const;  // null: nothing of it is copied

  void start(Scope& tasks);
  void stop();  // the task ends soon
  // Nobody puts any more: copies what is left, closes all files.
  Task<void> finish(bool copy);
  // The log from there on is not copied yet.
  uint64_t needed_from() const { return needed_from_; }
  void set_listener(FailureListener* l) { listener_ = l; }

  // ---- reading what was copied (compaction_read.cc)
  // Adds records from r.next_begin_offset on to `r`. False: nothing that is wanted lies between there and the
  // end of the copy, where next_begin_offset is then.
  Task<bool> get(CompactedQueuePtr q, GetMessageResult& r, int32_t max_messages, const MessageFilter* filter);
  // The first unit with at least that offset; nothing: there is none.
  Task<Result<std::optional<BatchUnit>>> unit_at(CompactedQueuePtr q, int64_t offset);
  // The first one that was stored at that time or later, and the last one that was stored earlier.
  struct Neighbours {
    std::optional<int64_t> before, from;
  };
  Task<Result<Neighbours>> around(CompactedQueuePtr q, int64_t store_timestamp_ms);

 private:
  using Queues = std::map<int32_t, CompactedQueuePtr>;
  struct KeyMap;
  struct Chunk;

  std::string log_dir_of(std::string_view topic) const;
  std::string queue_dir_of(std::string_view topic) const;
  CompactedPlace place_of(const CompactedQueue& q, bool compacting) const;
  CompactedQueuePtr make_queue(std::string_view topic, int32_t id);
  std::vector<CompactedQueuePtr> all() const;
  void give_up_files();

  Task<Result<void>> recover_swap();
  Task<Result<void>> remove_replaced(std::string dir, std::string beside, bool clean);
  Task<Result<void>> load_queue(CompactedQueuePtr q, bool clean);
  Task<Result<bool>> load_file(CompactedQueuePtr q, CompactedFilePtr f, bool has_queue, bool last,
                               bool clean);
  Task<Result<void>> follow(CompactedQueuePtr q);
  Task<Result<void>> remove_tree(std::string dir);
  Task<Result<void>> remove_files_of(std::string topic);
  // One at a time makes or deletes a topic of that name.
  Task<void> begin_change(std::string topic);
  void end_change(const std::string& topic);

  Task<void> run_copies();
  Task<void> run_compactions();
  Task<bool> copy_all();
  Task<Result<void>> copy(CompactedQueuePtr q);
  Task<uint64_t> waits_from(CompactedQueuePtr q);
  Task<Result<void>> copy_some(CompactedQueuePtr q, QueueRef from, int64_t to);

  // compaction_pass.cc
  Task<void> compact_due();
  Task<Result<void>> compact(CompactedQueuePtr q);
  Task<Result<void>> check_room(const std::vector<CompactedFilePtr>& files);
  Task<Result<void>> learn_keys(CompactedQueuePtr q, const std::vector<CompactedFilePtr>& files,
                                KeyMap& keys);
  Task<Result<std::vector<CompactedFilePtr>>> write_anew(CompactedQueuePtr q,
                                                         const std::vector<CompactedFilePtr>& files,
                                                         const KeyMap& keys, uint64_t& removed);
  Task<Result<void>> announce(CompactedQueuePtr q, CompactionSwap swap);
  Task<Result<void>> replace(CompactedQueuePtr q, CompactionSwap swap, std::vector<CompactedFilePtr> old,
                             std::vector<CompactedFilePtr> made);
  Task<void> drop_made(const CompactedQueue& q);
  Task<Result<void>> open_both(CompactedFilePtr f);
  Task<Result<void>> carry_through(const CompactionSwap& s);
  Task<Result<void>> save_positions();
  Task<void> rest(int64_t began_ns);
  bool given_up(const CompactedQueue& q) const { return q.deleted || stop_.is_set(); }

  // compaction_read.cc
  struct Place {
    CompactedFilePtr file;  // null: there is none
    uint32_t index = 0;
  };
  Task<Result<Place>> find_place(CompactedQueuePtr q, int64_t offset);
  bool batch_full(const GetMessageResult& r, const Chunk& c, const BatchUnit& u, int32_t max_messages) const;
  Task<Result<void>> take_chunk(Chunk& c, GetMessageResult& r, int32_t max_messages,
                                const MessageFilter* filter);
  Task<Result<void>> add_run(Chunk& c, size_t from, size_t to, GetMessageResult& r,
                             const MessageFilter* filter);

  Disk& disk_;
  const StoreOptions& options_;
  StoreStats& stats_;
  QueueTable& table_;
  QueueFiles& queues_;
  CommitLog& log_;
  CompactionOwner& owner_;
  FailureListener* listener_ = nullptr;
  std::map<std::string, Queues, std::less<>> topics_;
  std::map<std::string, int64_t> positions_;  // of compactions, by RocketMQ's names
  std::set<std::string> changing_;            // topics that are being made or deleted
  Event changed_;
  uint64_t needed_from_ = UINT64_MAX;
  bool has_files_ = false;         // of some topic, when the store was opened
  uint64_t appended_at_rest_ = 0;  // end of the log when a compaction last rested
  Event stop_;
};

}  // namespace rmq::store

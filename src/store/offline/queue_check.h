// The ConsumeQueues against the CommitLog, both ways, in one walk over the log. Records and units of a queue
// are in the same order, so each queue needs only a cursor and a window of its file, whatever its size: with
// 40,000 queues that is some 250 MB, with few queues far less.
//
// A topic that is deleted leaves its records in the log, and one of the same name begins again at queue
// offset 0. So a queue's records come in generations; only the last one has units.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proto/record.h"
#include "store/ends_format.h"
#include "store/format.h"
#include "store/offline/batch_queue_check.h"
#include "store/offline/files.h"

namespace rmq::store::offline {

inline constexpr size_t queue_windows_bytes_max = 256u << 20;  // all windows together
inline constexpr size_t queue_window_bytes_max = 64u << 10;    // a multiple of unit_bytes is used

struct QueueStats {
  uint64_t topics = 0;
  uint64_t queues = 0;
  uint64_t files = 0;
  uint64_t units = 0;                  // that describe a record
  uint64_t expired = 0;                // units of records that retention has deleted
  uint64_t set_aside = 0;              // blank units for records that were damaged and set aside
  uint64_t pending = 0;                // records whose unit a broker makes when it opens the store
  uint64_t deleted_topic_records = 0;  // records of topics that were deleted
  uint64_t batch_queues = 0;           // RocketMQ's of batch topics
  uint64_t batch_units = 0;            // ... and their units that describe a record
  uint64_t restarts = 0;               // queues that began again at 0: their topic was deleted and made again
};

// From where on a unit may be missing: a broker that was killed writes units later than records.
struct QueueTruth {
  bool stopped = false;               // a broker stopped in order: nothing may be missing
  int64_t units_below = 0;            // else: records that end at or below this physical offset have units
  int64_t units_until_timestamp = 0;  // ... and records stored until then
  int64_t log_min = 0;                // physical offset of the log's begin
  int64_t sums_below = -1;            // rmqd's checkpoint counts the units of records that end at or below it

  bool may_miss(const proto::RecordView& r) const {
    if (stopped || r.store_timestamp_ms <= units_until_timestamp) return false;
    return r.physical_offset + static_cast<int64_t>(r.size) > units_below;
  }
};

class QueueChecker {
 public:
  QueueChecker(std::string root, Findings& findings);
  ~QueueChecker();
  // Finds all queue directories and their files.
  Result<void> list();
  void begin(const QueueTruth& truth) { truth_ = truth; }
  Result<void> on_record(const proto::RecordView& r);
  void on_hole(uint64_t begin, uint64_t end) {
    holes_.push_back({begin, end});
    batch_.on_hole(begin, end);
  }
  // What rmqd.ends says; of no use for a log that begins earlier than it was written for.
  void set_ends(const QueueEndsFile& ends);
  // After the last record. `sums`: what rmqd's checkpoint says of the queues, null: nothing usable. `exists`:
  // whether topics.json has a topic; null: not known.
  Result<void> finish(uint64_t log_end, const OwnCheckpoint* sums, bool (*exists)(void*, std::string_view),
                      void* context);
  const QueueStats& stats() const { return stats_; }
  int64_t file_units() const { return file_units_; }

 private:
  struct Queue;
  struct Topic;
  struct Range {
    uint64_t begin, end;
  };
  Topic& topic_of(std::string_view name);
  Queue& queue_of(Topic& t, int32_t id);
  Result<void> list_topics(std::string_view dir);
  Result<void> list_topic(std::string_view dir, const std::string& name);
  void list_queue(Queue& q, const std::vector<Entry>& entries);
  void find_file_size();
  void check_files(Queue& q);
  Result<QueueUnit> unit_at(Queue& q, int64_t offset);
  Result<void> load_window(Queue& q, int64_t offset);
  Result<void> on_units_of(const proto::RecordView& r);
  Result<void> on_unit_of(Queue& q, const proto::RecordView& r);
  Result<bool> is_filled(Queue& q, int64_t from, int64_t to);
  Result<bool> in_order(Queue& q, const proto::RecordView& r, int32_t messages);
  Result<void> take_unit(Queue& q, const proto::RecordView& r);
  Result<int64_t> skip_zeros(Queue& q, int64_t offset) const;
  std::string path_of(const Queue& q, int64_t offset) const;
  void pass_unit(Queue& q, const QueueUnit& u);
  Result<void> pass_units(Queue& q, int64_t to);
  void missing(Queue& q, const proto::RecordView& r);
  bool same(const Queue& q, const proto::RecordView& r, const QueueUnit& u) const;
  bool may_miss(const proto::RecordView& r);
  bool in_hole(int64_t physical) const;
  Finding wrong(const Queue& q, const proto::RecordView& r, const QueueUnit& u) const;
  Finding orphan(const Queue& q, const QueueUnit& u, bool may_be) const;
  Result<void> finish_queue(Queue& q);
  void judge_missing(Queue& q, bool forgiven);
  bool sums_fit(const OwnCheckpoint& own) const;
  std::string name_of_queue(const Queue& q) const;

  const std::string root_;
  Findings& findings_;
  QueueTruth truth_;
  BatchQueueChecker batch_;
  QueueStats stats_;
  std::unordered_map<std::string_view, std::unique_ptr<Topic>> topics_;  // keys are the topics' own names
  Topic* last_ = nullptr;
  std::vector<Range> holes_;
  std::vector<QueueEnd> ends_;
  int64_t file_units_ = 0;
  int64_t window_units_ = 0;
  int64_t may_miss_from_ = INT64_MAX;  // physical offset: the first record that may have no unit
  bool extended_ = false;              // there are consumequeue_ext files
};

}  // namespace rmq::store::offline

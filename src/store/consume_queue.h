// ConsumeQueues in memory: for each topic and queue id where it begins and ends, and its newest units. The
// units of a queue that is idle are all in its files; a busy one keeps some thousand bytes here, so that a
// consumer at the tail needs no file. queue_files.h writes and reads the files.
//
// A queue may be deleted while records are on their way to it or somebody reads it: it leaves the table at
// once and its memory goes with the last QueueRef.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/format.h"
#include "store/types.h"

namespace rmq::store {

struct Topic;

// Of a queue of a batch topic (batch_queue_files.cc): its units as RocketMQ has them.
struct BatchTail {
  int64_t files_begin = -1;        // where the first file begins, in bytes; -1: no files
  int64_t files_end = -1;          // behind the last file
  int64_t at = 0;                  // where the next unit goes
  int64_t synced = 0;              // on stable storage up to there
  bool new_file = false;           // its directory entry is not synced yet
  std::vector<std::byte> waiting;  // encoded units that no file has
};

struct ConsumeQueue {
  Topic* topic = nullptr;
  int32_t id = 0;
  uint32_t refs = 0;
  uint64_t uid = 0;         // never used again, unlike topic and id
  uint64_t weight = 0;      // queue_weight()
  int64_t next_offset = 0;  // the next message gets it
  int64_t max_offset = 0;   // below it: confirmed, visible
  int64_t min_offset = 0;
  int64_t front_physical = -1;  // of the unit of offset front_at; -1: not known
  int64_t front_at = -1;
  int64_t min_for_log = -1;       // where the log began when min_offset was found out
  int64_t last_physical_end = 0;  // of the newest unit that is not blank
  bool blank_end = false;         // blank units are the newest: of lost messages
  int64_t written = 0;            // units below it are in the files
  int64_t synced = 0;             // and on stable storage
  int64_t files_begin = -1;       // first unit of the first file; -1: no files
  int64_t files_end = -1;         // behind the last unit that the last file can hold
  int64_t end_floor = 0;          // in rmqd.ends: it ends there or later; 0: it is not there
  int64_t touched_ns = 0;         // last unit came
  bool deleted = false;
  bool unwritten_listed = false;
  bool unsynced_listed = false;
  bool busy_listed = false;
  bool new_file = false;        // its directory entry is not synced yet
  std::vector<std::byte> tail;  // encoded units from tail_first to max_offset
  int64_t tail_first = 0;
  std::unique_ptr<BatchTail> batch;  // null: of an ordinary topic, in which each record has one unit

  int64_t unwritten() const { return max_offset - written; }
  const std::byte* tail_unit(int64_t offset) const {
    return tail.data() + static_cast<size_t>(offset - tail_first) * unit_bytes;
  }
};

struct Topic {
  std::string name;
  std::vector<ConsumeQueue*> queues;                      // by id
  std::unordered_map<int32_t, ConsumeQueue*> far_queues;  // ids beyond that vector's limit
  uint32_t refs = 0;                                      // its queues that still live, and the table
};

class QueueTable;

class QueueRef {
 public:
  QueueRef() = default;
  explicit QueueRef(ConsumeQueue* q) : q_(q) {
    if (q_ != nullptr) q_->refs++;
  }
  QueueRef(QueueRef&& o) noexcept : q_(std::exchange(o.q_, nullptr)) {}
  QueueRef(const QueueRef& o) : QueueRef(o.q_) {}
  QueueRef& operator=(QueueRef o) noexcept {
    std::swap(q_, o.q_);
    return *this;
  }
  ~QueueRef();
  ConsumeQueue* get() const { return q_; }
  ConsumeQueue* operator->() const { return q_; }
  ConsumeQueue& operator*() const { return *q_; }
  explicit operator bool() const { return q_ != nullptr; }

 private:
  ConsumeQueue* q_ = nullptr;
};

class QueueTable {
 public:
  QueueTable() = default;
  ~QueueTable();
  QueueTable(const QueueTable&) = delete;
  QueueTable& operator=(const QueueTable&) = delete;

  ConsumeQueue* find(std::string_view topic, int32_t id) const;  // null: none
  ConsumeQueue& get_or_create(std::string_view topic, int32_t id);
  // The next unit of a queue, `count` times, at its max_offset. Says whether the queue had nothing unwritten
  // yet.
  bool push(ConsumeQueue& q, const QueueUnit& u, int64_t count = 1);
  // An empty queue whose first unit will be `offset`.
  void start_at(ConsumeQueue& q, int64_t offset);
  // Forgets units from memory that are in the files, but the newest `keep`.
  void trim(ConsumeQueue& q, int64_t keep);
  // Takes the topic out of the table and returns its queues.
  std::vector<QueueRef> detach(std::string_view topic);
  void detach_queue(ConsumeQueue& q);
  std::vector<QueueRef> all() const;  // by topic and id
  std::vector<std::string> topics() const;
  // Topics whose records may be of several messages; to be known before their first queue.
  void add_batch_topic(std::string_view name) { batch_topics_.emplace(name); }
  void remove_batch_topic(std::string_view name);
  bool is_batch_topic(std::string_view name) const { return batch_topics_.contains(name); }
  const std::set<std::string, std::less<>>& batch_topics() const { return batch_topics_; }
  // Encoded batch units that wait for their file.
  void add_waiting(BatchTail& t, std::span<const std::byte> unit);
  void drop_waiting(ConsumeQueue& q, size_t bytes);        // the first ones
  std::vector<int32_t> ids(std::string_view topic) const;  // sorted

  uint64_t queue_count() const { return queue_count_; }        // in the table
  uint64_t light_queue_count() const { return light_count_; }  // those of them that are light queues
  uint64_t used_queue_count() const { return used_count_; }    // those of them with max_offset > 0
  uint64_t units_total() const { return units_total_; }        // sum of max_offset
  uint64_t weighted_sum() const { return weighted_sum_; }      // of max_offset times weight
  // OwnCheckpoint::queue_begins, of a log that begins at `log_min`. Goes through all queues.
  uint64_t sum_of_begins(int64_t log_min) const;
  uint64_t unwritten_units() const { return unwritten_; }
  uint64_t tail_bytes() const { return tail_bytes_; }
  uint64_t batch_waiting_bytes() const { return batch_waiting_; }
  void was_written(ConsumeQueue& q, int64_t below);
  // While loading: what the files say.
  void loaded(ConsumeQueue& q);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a == b; }
  };
  Topic* find_topic(std::string_view name) const;
  Topic& topic_of(std::string_view name);
  void forget(ConsumeQueue& q);

  // Keys are the topics' own names.
  std::unordered_map<std::string_view, Topic*, Hash, Equal> topics_;
  mutable Topic* last_topic_ = nullptr;
  uint64_t next_uid_ = 1;
  uint64_t queue_count_ = 0;
  uint64_t used_count_ = 0;
  uint64_t light_count_ = 0;
  uint64_t units_total_ = 0;
  uint64_t weighted_sum_ = 0;
  uint64_t unwritten_ = 0;
  uint64_t tail_bytes_ = 0;
  uint64_t batch_waiting_ = 0;
  std::set<std::string, std::less<>> batch_topics_;
};

}  // namespace rmq::store

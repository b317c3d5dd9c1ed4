// The parts of a MessageStore put together: who appended what, whom a new confirm offset concerns, and the
// tasks in the background. message_store.cc has the writing side, message_read.cc the reading side,
// message_query.cc looking up by key.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "store/checkpoint.h"
#include "store/commit_log.h"
#include "store/compaction.h"
#include "store/consume_queue.h"
#include "store/disk_watch.h"
#include "store/index_query.h"
#include "store/index_service.h"
#include "store/message_store.h"
#include "store/queue_ends.h"
#include "store/read_ahead.h"
#include "store/retention.h"

namespace rmq::store {

// A record between append and confirmation.
struct PendingRecord {
  uint64_t end;         // physical
  uint64_t call_end;    // of the last record of the same put: they are confirmed together
  ConsumeQueue* queue;  // null: it gets no unit
  int64_t queue_offset;
  int64_t tags_code;
  int64_t store_timestamp_ms;
  int32_t bytes;
  int32_t messages;  // units in its queue
  uint32_t keys;     // so many hashes for the index wait as well
  uint32_t lights;   // ... and units of light queues
};

struct PendingLight {
  ConsumeQueue* queue = nullptr;
  int64_t queue_offset = 0;
};

// First in, first out, without allocation once it has grown.
template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  T& front() { return ring_[head_ & (ring_.size() - 1)]; }
  void pop() { head_++; }
  void push(const T& v) {
    if (size() == ring_.size()) grow();
    ring_[tail_++ & (ring_.size() - 1)] = v;
  }

 private:
  void grow() {
    std::vector<T> bigger(std::max<size_t>(256, ring_.size() * 2));
    for (size_t i = head_; i != tail_; i++) bigger[i & (bigger.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_ = std::move(bigger);
  }
  std::vector<T> ring_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

inline constexpr uint64_t hashes_per_record = 4;  // of its keys; more of them count as more records

struct PutWaiter : Waiter {
  std::span<const MessageIn> messages;
  PutMessageResult* result = nullptr;
  size_t total_bytes = 0;
  uint64_t end = 0;  // physical end of the last record, once appended
  int64_t since_ns = 0;
  bool wait = true;
  bool batch = false;
  bool appended = false;
};

struct MessageStore::Impl final : LogOwner, RetentionOwner, CompactionOwner {
  Impl(Disk& disk, StoreOptions o);
  ~Impl() override;

  // --- message_store.cc
  Task<Result<void>> open(RecoveryProgress* progress);
  Task<Result<void>> sync_parents();
  Task<Result<void>> begin_log(uint64_t end, uint64_t zeroed_to, int64_t last_store_ms);
  Task<PutMessageResult> put_all(std::span<const MessageIn> messages, bool batch, bool wait);
  std::optional<PutMessageResult> try_put(const MessageIn& m);
  Task<PutMessageStatus> confirmed(uint64_t end);
  proto::RecordFields record_fields(const MessageIn& m, std::string_view properties, std::string& room) const;
  PutMessageStatus check_message(const MessageIn& m, size_t& bytes) const;
  // --- light_put.cc
  // The light queues that the message goes to; nothing: what it says of them cannot be.
  std::optional<std::vector<std::string_view>> light_queues_of(const MessageIn& m) const;
  PutMessageStatus check_light(const MessageIn& m, size_t properties_bytes, size_t& bytes) const;
  // The properties to store of each message that says where in its queues it is: in light queues, or as an
  // inner batch. Empty for others; none at all when there are only those. Changes total_bytes of `w` to what
  // it will be then.
  std::vector<std::string> late_properties(PutWaiter& w);
  PutMessageStatus check_inner_batch(const MessageIn& m, size_t properties_bytes, size_t& bytes) const;
  uint32_t append_lights(const MessageIn& m);
  // --- message_store.cc
  PutMessageStatus open_for(const MessageIn& m) const;
  bool room_now(size_t bytes, bool urgent, PutMessageStatus& refused);
  void append(PutWaiter& w);
  // `properties` are stored instead of the message's own, when there are some.
  void append_one(const MessageIn& m, int64_t now_ms, PutWaiter& w, std::string_view properties);
  void admit_waiting();
  void log_advanced() override;
  void log_failed(const Error& e) override;
  Task<bool> log_may_grow(bool urgent) override;
  void log_stuck(bool stuck) override { disk_watch_.set_log_stuck(stuck); }
  uint64_t deletable_below() const override {
    return std::min({checkpointed_, needed_from_, compaction_.needed_from()});
  }
  uint64_t confirmed_offset() const override { return confirm_; }
  void compaction_failed(const Error& e) override { fail(e); }
  void advance_confirm();
  void dispatch(const PendingRecord& p, int64_t now_ns);
  void dispatch_to_queue(ConsumeQueue* queue, int64_t queue_offset, int32_t messages, const PendingRecord& p,
                         int64_t now_ns);
  void fail(const Error& e);
  void note_waiting();
  void expire(WaitList& list, int64_t now_ns);
  Task<Result<bool>> save_checkpoint(bool clean);
  Task<void> checkpoint_loop();
  Task<void> queue_loop();
  Task<void> watch_loop();
  Task<void> delete_topic(std::string topic);
  Task<Result<void>> begin_batch_topics();
  Task<Result<void>> add_batch_topic(std::string topic);
  bool is_expired(const ConsumeQueue& q);
  Task<bool> drop_expired_queue(QueueName name, std::function<void()> gone);
  Task<Result<void>> forget_ends(const std::vector<QueueRef>& queues);
  void queues_deleted(const Result<void>& r);
  Task<void> shutdown();

  // --- message_query.cc
  struct KeyQuery;
  Task<Result<QueryMessageResult>> query_message(std::string_view topic, std::string_view key,
                                                 int32_t max_messages, int64_t begin_ms, int64_t end_ms,
                                                 KeyKind kind);
  Task<Result<void>> look_up(KeyQuery& q, QueryMessageResult& r);
  Task<Result<void>> look_into(IndexChain& chain, int64_t file_begin_ms, KeyQuery& q);
  Task<void> check_candidate(KeyQuery& q, int64_t physical, int64_t entry_ms);

  // --- message_read.cc
  Task<GetMessageResult> get(std::string_view topic, int32_t queue_id, int64_t offset, int32_t max_messages,
                             const MessageFilter* filter);
  Task<Result<LogExtent>> record_at(int64_t physical_offset);
  Task<int64_t> store_time(std::string_view topic, int32_t queue_id, int64_t offset);
  Task<int64_t> search_offset(std::string_view topic, int32_t queue_id, int64_t timestamp_ms, Boundary b);
  int64_t min_offset(std::string_view topic, int32_t queue_id) const;
  Task<std::optional<QueueUnit>> queue_unit(std::string_view topic, int32_t queue_id, int64_t offset);
  Task<Result<size_t>> queue_units(std::string_view topic, int32_t queue_id, int64_t offset,
                                   std::span<QueueUnit> into);
  Task<Result<int64_t>> store_time_of(ConsumeQueue& q, int64_t offset);
  Task<int64_t> search_queue(ConsumeQueue& q, int64_t from, int64_t timestamp_ms, Boundary b);
  bool in_memory(int64_t physical_offset) const;
  bool batch_full(const GetMessageResult& r, const QueueUnit& u, int64_t messages,
                  int32_t max_messages) const;
  // The first offset from `offset` on, whose unit is `u`, that is of another record; `end` at most.
  static Task<Result<int64_t>> record_end(UnitCursor& units, int64_t offset, QueueUnit u, int64_t end);
  // The offset of the first message of the record that has the one at `offset`.
  Task<int64_t> record_begin(std::string_view topic, int32_t queue_id, int64_t offset);
  enum class Added : uint8_t {
    yes,
    no,     // the filter does not want it
    later,  // it would have to wait for the disk longer than what the result has already should
  };
  enum class Judgement : uint8_t { pass, drop, by_record };
  static Judgement judge(const MessageFilter* f, const QueueUnit& u);
  // `judge`: the filter decides by the record.
  std::optional<Added> add_at_once(GetMessageResult& r, ReadAhead::Get& g, const QueueUnit& u, bool judge);
  Task<Result<Added>> add_record(GetMessageResult& r, ReadAhead::Get& g, int64_t offset, QueueUnit u,
                                 bool judge);
  Task<void> scan(GetMessageResult& r, ReadAhead::Get& g, int32_t max_messages);
  void found_damaged(const ConsumeQueue& q, int64_t offset);

  Disk& disk_;
  StoreOptions options_;
  mutable StoreStats stats_;
  DiskWatch disk_watch_;
  QueueTable table_;
  QueueFiles queue_files_;
  QueueEnds queue_ends_;
  CheckpointFiles checkpoint_files_;
  CommitLog log_;
  IndexService index_;
  ReadAhead read_ahead_;
  Compaction compaction_;
  Retention retention_;
  Semaphore key_queries_{4};  // look-ups by key at a time

  const uint64_t pending_records_max_, unwritten_units_max_;  // then puts wait
  uint64_t confirm_ = 0;
  uint64_t hold_ = UINT64_MAX;
  Fifo<PendingRecord> pending_;
  Fifo<int32_t> pending_hashes_;
  Fifo<PendingLight> pending_lights_;
  WaitList room_waiters_, confirm_waiters_;
  ArrivalListener* arrivals_ = nullptr;
  FailureListener* failures_ = nullptr;
  int64_t last_store_ms_ = 0;       // of the newest record
  int64_t first_store_ms_ = 0;      // of the first record of this process, at least
  int64_t confirmed_store_ms_ = 0;  // of the newest confirmed one
  bool accepting_ = false;
  bool failed_ = false;
  std::string reason_;

  uint64_t checkpointed_ = 0;          // confirm offset of the last checkpoint
  uint64_t needed_from_ = UINT64_MAX;  // the owner still needs the log from there on
  uint64_t deletions_ = 0;
  bool checkpoint_wanted_ = false;
  bool queues_damaged_ = false;  // a file of theirs, as a read found: the next start makes them anew
  Scope tasks_;                  // the log's
  Scope own_tasks_;              // checkpoint, queue writing, watching puts
  bool stopping_ = false;
  Event checkpoint_work_, checkpoint_soon_, queue_work_, queue_soon_, watch_work_, watch_stop_, calls_done_;
  uint32_t puts_running_ = 0;
  uint32_t deletions_running_ = 0;
};

}  // namespace rmq::store

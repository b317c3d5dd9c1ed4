// MessageStore: RocketMQ's files, written through io_uring. One loop, the owner's; nothing blocks it.
//
// A put copies the message once, into log memory, in the order of the calls. A flush task writes whole
// blocks of the log, one write in flight, and what was appended meanwhile is the next write. When a write
// is done the confirm offset moves over the records in it: each gets its ConsumeQueue unit, the arrival
// listener is told, and then the put that brought it resolves. So a consumer never sees a message that a
// crash could still take away (SYNC_FLUSH), and the answer to a producer never comes before the message
// can be pulled.
//
// The CommitLog is the only truth. ConsumeQueue files and both checkpoints can be deleted: they are made
// again from the log when the store opens; so can index files, which are made again behind its back
// (index_service.h).
//
// docs/formats.md describes the files byte by byte.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/types.h"
#include "uring/task.h"

namespace rmq::store {

class MessageStore {
 public:
  // Takes the directory (`lock`; Errc::exists when another process has it), recovers, and is ready to
  // serve when it resolves. Errc::corrupt: damage in the middle of the log, see RecoveryProgress. `progress`
  // may be null. `disk` must outlive the store.
  static Task<Result<std::unique_ptr<MessageStore>>> open(Disk& disk, StoreOptions options,
                                                          RecoveryProgress* progress);
  ~MessageStore();  // only after shutdown() has resolved

  // Appends before the first suspension, so the order of calls is the order of the log (those that have to
  // wait for room append in that order too). Resolves when the record is below the confirm offset, or right
  // after the append with wait=false. The store timestamp never decreases along the log.
  Task<PutMessageResult> put(const MessageIn& message, bool wait = true);
  // put() in two halves, for callers that want to keep little while they wait. try_put() appends at once, or
  // refuses by its status; nothing when it would have to wait: then call put(). `message` may go after it.
  // Right after it, without a suspension between, confirmed(end) waits: PUT_OK, FLUSH_DISK_TIMEOUT or
  // SERVICE_NOT_AVAILABLE. `end` is physical_offset + total_bytes.
  std::optional<PutMessageResult> try_put(const MessageIn& message);
  Task<PutMessageStatus> confirmed(int64_t end);
  // All of them contiguous in one file, with one store timestamp, confirmed together. They may go to several
  // topics and queues. A crash may leave only the first of them, but then nothing follows those in the log,
  // and RecoveryStats::last_record is the last one that is left.
  Task<PutMessageResult> put_batch(std::span<const MessageIn> messages, bool wait = true);

  // Records of a queue from `offset` on; statuses and next_begin_offset as in RocketMQ's DefaultMessageStore.
  // `filter` may be null; it must stay until the call resolves, as `topic` must.
  Task<GetMessageResult> get(std::string_view topic, int32_t queue_id, int64_t offset, int32_t max_messages,
                             const MessageFilter* filter);
  // One record, contiguous. Errc::not_found when no record starts there (or it is not confirmed yet).
  Task<Result<LogExtent>> record_at(int64_t physical_offset);
  // The record of `bytes` there, when it is in memory; empty when it is not. It lies in the log's memory
  // until the next suspension, or in `scratch` when it is not in one piece there.
  Bytes record_in_memory(int64_t physical_offset, int32_t bytes, std::string& scratch);

  // At most `max_messages` of the messages of `topic` that have `key` (see KeyKind) and were stored from
  // `begin_ms` to `end_ms`, the newest ones, each once. Everything that was confirmed before the call is
  // found. The texts must stay until it resolves. Nothing is found without StoreOptions::index.
  Task<Result<QueryMessageResult>> query_message(std::string_view topic, std::string_view key,
                                                 int32_t max_messages, int64_t begin_ms, int64_t end_ms,
                                                 KeyKind kind = KeyKind::key);

  // Of a compacted topic the first message that is left; -1: no such queue.
  int64_t min_offset(std::string_view topic, int32_t queue_id) const;
  int64_t max_offset(std::string_view topic, int32_t queue_id) const;                  // 0: no such queue
  Task<int64_t> store_time(std::string_view topic, int32_t queue_id, int64_t offset);  // ms; -1 when absent
  Task<int64_t> earliest_store_time(std::string_view topic, int32_t queue_id);         // ms; -1 when empty
  enum class Boundary : uint8_t { LOWER, UPPER };
  // LOWER: the smallest offset stored at or after the time, max_offset when all are older. UPPER: the largest
  // stored at or before it, min_offset when all are younger. 0 for a queue that nobody wrote to.
  Task<int64_t> search_offset(std::string_view topic, int32_t queue_id, int64_t timestamp_ms, Boundary b);
  Task<std::optional<QueueUnit>> queue_unit(std::string_view topic, int32_t queue_id, int64_t offset);
  // Units of neighbouring offsets, from `offset` on, which must not be below min_offset; blank ones where a
  // record was lost. Returns how many, 0 at the end. `topic` and `into` must stay until it resolves.
  Task<Result<size_t>> queue_units(std::string_view topic, int32_t queue_id, int64_t offset,
                                   std::span<QueueUnit> into);
  // Near enough to the end of the log to be called hot (RocketMQ's rule about the page cache).
  bool in_memory(int64_t physical_offset) const;

  // A topic with queue.type=BatchCQ that is new, before its first message (StoreOptions::batch_topics).
  // Errc::bad_input: there are queues of that name, of a topic that was none.
  Task<Result<void>> add_batch_topic(std::string topic);
  bool is_batch_topic(std::string_view topic) const;
  // The offset of the first message of the record that holds the message at `offset`; `offset` itself in a
  // queue of another topic, or where nothing is.
  Task<int64_t> record_begin(std::string_view topic, int32_t queue_id, int64_t offset);

  // The topic's queues are gone at once; their files when it resolves. Puts may go on: what comes after is a
  // new topic that starts at offset 0, what was appended before but not yet confirmed is in no queue.
  Task<void> delete_topic(std::string topic);
  std::vector<std::string> topics_with_queues() const;  // sorted

  struct QueueName {
    std::string topic;
    int32_t queue_id = 0;
  };
  // Queues that had messages of which the log has none any more. Sorted.
  std::vector<QueueName> expired_queues() const;
  // Takes such a queue away with its files: what comes for it then is a new queue, from offset 0 on. `gone`
  // is called before anything can come. False: it is not expired (any more), or not there.
  Task<bool> drop_expired_queue(QueueName name, std::function<void()> gone);

  std::vector<int32_t> queue_ids(std::string_view topic) const;  // sorted

  // Compacted topics (compaction.h). Once, before anything is put or read: which they are; their files are
  // loaded. Without it, what retention may take of a store that has some stays.
  Task<Result<void>> set_compacted_topics(std::vector<std::string> topics);
  // A new one, before its first message.
  Task<Result<void>> add_compacted_topic(std::string topic);
  bool is_compacted(std::string_view topic) const;

  // Messages of that queue below that offset of the log leave it, for this run of the store. Their space
  // comes back with set_reclaim(), when no queue needs the file.
  Task<Result<void>> discard_below(std::string topic, int32_t queue_id, int64_t physical);
  void set_reclaim(bool on);
  void set_queue_listener(QueueListener* l);  // null: nobody

  // Retention (retention.h) goes by these rules from now on.
  void set_retention(const RetentionOptions& o);
  // What is older than fileReservedTime is deleted soon, at whatever hour.
  void delete_expired();

  // The log from there on is needed still, whatever its age and however full the disk: no file that ends
  // behind it is deleted. INT64_MAX, as it is at first: all may go.
  void set_needed_from(int64_t physical);

  int64_t min_physical_offset() const;
  int64_t max_physical_offset() const;  // end of what was appended
  int64_t confirm_offset() const;
  int64_t flushed_offset() const;  // on stable storage below it
  // Caps the confirm offset (replication); nothing: no cap. Never moves it back.
  void hold_confirm_offset(std::optional<int64_t> at_most);
  // Log bytes from there on, as far as they are written to the file; the count is 0 at the end. Between a
  // file's blank record and its end the bytes are zero. Errc::not_found below min_physical_offset().
  Task<Result<size_t>> read_log(int64_t from_physical, MutableBytes into);

  void set_arrival_listener(ArrivalListener* l);  // null: nobody
  void set_failure_listener(FailureListener* l);
  void set_max_message_bytes(uint32_t bytes);
  // Takes over max_message_bytes, the transfer limits and sync_flush_timeout_ms; the rest stays.
  void set_run_time_options(const StoreOptions& o);
  const StoreStats& stats() const;
  bool writable() const;                    // it has not failed, and is not stopping
  bool disk_full() const;                   // only messages that may use the reserve are taken (disk_watch.h)
  const char* not_writable_reason() const;  // "" while all messages are taken
  const StoreOptions& options() const;

  // Refuses puts from now on, waits for those and for deletions under way, writes and syncs everything,
  // removes `abort`. Nobody may be reading any more. After a failure it only lets go of everything.
  Task<void> shutdown();

 private:
  struct Impl;
  explicit MessageStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rmq::store

// What callers of the store see: options, a message going in, the outcome of puts and gets, extents of the
// log, counters. Names and numbers follow RocketMQ's MessageStore, so that a reader of both finds his way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/format.h"
#include "uring/io.h"

namespace rmq::store {

enum class FlushDiskType : uint8_t {
  SYNC_FLUSH,   // confirmed = on stable storage
  ASYNC_FLUSH,  // confirmed = handed to the kernel; on stable storage within flush_interval_ms
};

// What recovery does with bytes in the log that were a record once and are none any more.
enum class DamagedLog : uint8_t {
  REFUSE,      // the store does not open, the log stays as it is
  QUARANTINE,  // they are set aside, the rest is served
};

// When old files go and when there is no room for new messages: RocketMQ's rules and keys. All of it may
// change while the store runs.
struct RetentionOptions {
  int64_t file_reserved_ms = int64_t{72} * 3'600'000;  // fileReservedTime
  uint32_t delete_hours = 1u << 4;                     // deleteWhen: bit h: in hour h, local time
  uint32_t max_used_percent = 75;                      // diskMaxUsedSpaceRatio: above it, at any hour
  uint32_t clean_forcibly_percent = 85;                // diskSpaceCleanForciblyRatio: above it, of any age
  bool clean_forcibly = true;                          // cleanFileForciblyEnable
  uint32_t first_clean_ms = 60'000;                    // after the start
  uint32_t clean_interval_ms = 10'000;                 // cleanResourceInterval
  uint32_t log_pause_ms = 100;    // deleteCommitLogFilesInterval: between two files of the log
  uint32_t queue_pause_ms = 100;  // deleteConsumeQueueFilesInterval
  uint32_t warning_percent = 90;  // diskSpaceWarningLevelRatio: above it, producers are refused
  uint64_t reserved_bytes = 0;    // diskReservedBytes: with less free, producers are refused
  uint64_t log_bytes_max = 0;     // discardBytes with discardPolicy=fifo: a longer log loses its oldest files
  uint32_t batch_max = 10;        // deleteFileBatchMax: files of the log each time
  uint32_t destroy_forcibly_ms = 120'000;  // destroyMapedFileIntervalForcibly: so long readers may hold one
};

struct StoreOptions {
  std::string root;                             // storePathRootDir
  std::string commit_log_dir;                   // storePathCommitLog; empty: <root>/commitlog
  uint64_t commit_log_file_bytes = 1u << 30;    // mappedFileSizeCommitLog; a multiple of 4096
  uint32_t consume_queue_file_units = 300'000;  // mappedFileSizeConsumeQueue / 20
  uint32_t batch_queue_file_units = 300'000;    // mapperFileSizeBatchConsumeQueue / 46
  // All topics with queue.type=BatchCQ that there are when the store is opened (add_batch_topic()).
  std::vector<std::string> batch_topics;
  FlushDiskType flush = FlushDiskType::SYNC_FLUSH;
  uint32_t flush_interval_ms = 500;   // ASYNC_FLUSH: device sync at least this often
  uint64_t memory_bytes = 64u << 20;  // recent tail and read cache together, allocated on demand
  // Records between append and confirmation, and ConsumeQueue units that no file has yet: at the bound puts
  // wait. A third for the records, the rest for the units.
  uint64_t waiting_bytes = 48u << 20;
  uint64_t unflushed_bytes_max = 32u << 20;  // more appended but not yet written than this: puts wait
  uint32_t max_message_bytes = 4u << 20;     // maxMessageSize; set_max_message_bytes() changes it later
  // enabledAppendPropCRC: each record has a CRC of all of its bytes, as its last property __CRC32#.
  bool append_property_crc = false;
  // How many records, and bytes, one get() answers: maxTransfer{Count,Bytes}OnMessageIn{Memory,Disk}.
  uint32_t transfer_count_in_memory = 32;
  uint32_t transfer_bytes_in_memory = 256u << 10;
  uint32_t transfer_count_on_disk = 8;
  uint32_t transfer_bytes_on_disk = 64u << 10;
  // Nearer to the end of the log than this counts as "in memory" for those limits and for in_memory(), as
  // RocketMQ's accessMessageInMemoryMaxRatio of the machine's memory does. 0: 40 % of physical memory.
  uint64_t in_memory_distance_bytes = 0;
  uint32_t sync_flush_timeout_ms = 5000;    // syncFlushTimeout: then a put resolves FLUSH_DISK_TIMEOUT
  uint64_t zero_ahead_bytes = 64u << 20;    // how far ahead of the log's end its files are written with zeros
  uint32_t queue_write_interval_ms = 1000;  // units go to the ConsumeQueue files at least this often
  uint32_t checkpoint_interval_ms = 5000;   // queues synced and checkpoint written at least this often
  uint32_t sync_all_queues_min = 64;        // so many queues at once are synced with their file system
  DamagedLog damaged_log = DamagedLog::REFUSE;
  uint32_t open_queue_files_max = 2048;  // file descriptors kept open for ConsumeQueue files
  bool index = true;                     // messageIndexEnable: messages can be looked up by key
  bool index_safe = false;               // messageIndexSafe: open() waits until the index is complete
  uint32_t index_slots = 5'000'000;      // maxHashSlotNum
  uint32_t index_entries = 20'000'000;   // maxIndexNum, of one file
  uint32_t index_idle_ms = 10'000;       // slots of the index that nobody touched so long leave the memory
  // messageDelayLevel, from level 1 on: recovery makes the units of SCHEDULE_TOPIC_XXXX with it.
  std::vector<int64_t> delay_level_ms;
  // Light queues (light_queues.h): messages go to those that they name, and at most so many exist; 0: none.
  uint32_t light_queues_max = 0;
  // Compacted topics (compaction.h): compactionMappedFileSize, compactionCqMappedFileSize,
  // compactionScheduleInternal; and what the keys of one compaction may take, as of maxOffsetMapSize.
  uint64_t compaction_log_file_bytes = 100u << 20;
  uint64_t compaction_queue_file_bytes = 10u << 20;
  uint32_t compaction_interval_ms = 900'000;
  uint64_t compaction_map_bytes = 100u << 20;
  RetentionOptions retention;
};

// In RocketMQ's order: the numbers are not on the wire, the names are.
enum class PutMessageStatus : uint8_t {
  PUT_OK,
  FLUSH_DISK_TIMEOUT,
  MESSAGE_ILLEGAL,
  PROPERTIES_SIZE_EXCEEDED,
  SERVICE_NOT_AVAILABLE,
  CREATE_MAPPED_FILE_FAILED,
  OS_PAGE_CACHE_BUSY,
  WHEEL_TIMER_MSG_ILLEGAL,  // these two are the broker's
  WHEEL_TIMER_NOT_ENABLE,
  LMQ_CONSUME_QUEUE_NUM_EXCEEDED,
  UNKNOWN_ERROR,
};
const char* name_of(PutMessageStatus s);

struct MessageIn {  // views must stay valid until put() resolves
  std::string_view topic;
  int32_t queue_id = 0;
  int32_t flag = 0;
  int32_t sys_flag = 0;  // the bits for IPv6 hosts are set by the store, from the hosts
  int64_t born_timestamp_ms = 0;
  Address born_host;
  Address store_host;
  int32_t reconsume_times = 0;
  int64_t prepared_transaction_offset = 0;
  Bytes body;
  std::string_view properties;
  bool was_stored = false;       // a copy of what the log took before: maxMessageSize does not hold any more
  bool may_use_reserve = false;  // taken also when the disk has no room for what producers send
  // More than 0: the body is a batch of so many messages for a batch topic, which take as many queue offsets.
  // The store adds INNER_BASE to its properties; all else that makes it an inner batch is the caller's.
  int32_t inner_messages = 0;
  std::optional<int64_t> tags_code;  // instead of the TAGS hash (SCHEDULE_TOPIC_XXXX: the time to deliver)
};

struct PutMessageResult {
  PutMessageStatus status = PutMessageStatus::UNKNOWN_ERROR;
  int64_t queue_offset = -1;     // of the first
  int64_t physical_offset = -1;  // of the first
  int64_t store_timestamp_ms = 0;
  int32_t total_bytes = 0;                // all records of the call
  std::vector<int64_t> physical_offsets;  // put_batch only: of each
};

enum class GetMessageStatus : uint8_t {
  FOUND,
  NO_MATCHED_MESSAGE,
  MESSAGE_WAS_REMOVING,
  OFFSET_FOUND_NULL,
  OFFSET_OVERFLOW_BADLY,
  OFFSET_OVERFLOW_ONE,
  OFFSET_TOO_SMALL,
  NO_MATCHED_LOGIC_QUEUE,
  NO_MESSAGE_IN_QUEUE,
  OFFSET_RESET,
};
const char* name_of(GetMessageStatus s);  // the remark of a pull response

// Ref-counted memory of whole blocks, aligned for O_DIRECT. The count is atomic: an extent may die on
// another thread than the store's.
class LogMemory {
 public:
  static LogMemory* create(size_t bytes, std::shared_ptr<std::atomic<uint64_t>> live_bytes);  // one ref
  void ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref();
  bool shared() const { return refs_.load(std::memory_order_acquire) != 1; }
  std::byte* data() { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  LogMemory(std::byte* d, size_t n, std::shared_ptr<std::atomic<uint64_t>> live);
  ~LogMemory();
  std::byte* const data_;
  const size_t bytes_;
  std::atomic<uint32_t> refs_{1};
  std::shared_ptr<std::atomic<uint64_t>> live_bytes_;
};

// Some bytes of the log that stay as they are while this lives, whatever is put, evicted or deleted.
class LogExtent {
 public:
  LogExtent() = default;
  LogExtent(LogMemory& m, const std::byte* p, size_t n) : memory_(&m), data_(p), bytes_(n) { m.ref(); }
  LogExtent(LogExtent&& o) noexcept
      : memory_(std::exchange(o.memory_, nullptr)), data_(o.data_), bytes_(std::exchange(o.bytes_, 0)) {}
  LogExtent& operator=(LogExtent&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~LogExtent() {
    if (memory_ != nullptr) memory_->unref();
  }
  Bytes bytes() const { return {data_, bytes_}; }
  // Grows over the following bytes when they are the next ones of the same memory.
  bool append(const LogMemory& m, const std::byte* p, size_t n) {
    if (memory_ != &m || data_ + bytes_ != p) return false;
    bytes_ += n;
    return true;
  }

 private:
  LogMemory* memory_ = nullptr;
  const std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

struct GetMessageResult {
  GetMessageStatus status = GetMessageStatus::NO_MESSAGE_IN_QUEUE;
  int64_t next_begin_offset = 0;
  int64_t min_offset = 0;
  int64_t max_offset = 0;
  // The records back to back: neighbours are merged, and a record may be cut in two where log memory ends,
  // so send the extents in order and do not parse them one by one.
  std::vector<LogExtent> extents;
  uint32_t message_count = 0;
  uint64_t byte_count = 0;
};

enum class KeyKind : uint8_t {
  key,   // UNIQ_KEY or a word of KEYS
  tags,  // the whole of TAGS
};

struct QueryMessageResult {
  std::vector<LogExtent> records;  // one each, in the order of the log
  uint64_t byte_count = 0;
  int64_t index_last_update_timestamp_ms = 0;  // of the newest index file; 0: there is none
  int64_t index_last_update_physical = 0;
};

// A property of messages and the value that it must have.
struct NeededProperty {
  std::string_view name;
  std::string_view text;          // unless it is a number
  std::optional<int64_t> number;  // its text, read as Java's Long.parseLong does
};

class MessageFilter {
 public:
  virtual ~MessageFilter();
  virtual bool matches_tags_code(int64_t tags_code) const = 0;
  // Whether matches_record() decides as well, and what one call costs: about that many times 10 ns. One get()
  // spends only so much on calls.
  virtual bool needs_record() const { return false; }
  virtual uint32_t record_cost() const { return 1; }
  // The answer of matches_record() when it is known without the record.
  virtual std::optional<bool> known(int64_t physical_offset) const { return std::nullopt; }
  virtual bool matches_record(Bytes record) const { return true; }
  // Filters with the same identity say the same of every message. Null: it is like no other.
  virtual const void* identity() const { return nullptr; }
  // Without it no record matches; null: nothing of the kind is known.
  virtual const NeededProperty* needed() const { return nullptr; }
  // The same, of a copy: the physical offset that it says may be another message's.
  virtual bool matches_copy(Bytes record) const { return matches_record(record); }
};

// A record that has become visible to consumers.
struct Arrival {
  std::string_view topic;
  int32_t queue_id;
  int64_t queue_offset;
  int64_t tags_code;
  int64_t store_timestamp_ms;
  int64_t physical_offset;
  int32_t bytes;
  int32_t messages;  // of the record, from queue_offset on
};
class ArrivalListener {
 public:
  virtual ~ArrivalListener();
  virtual void on_arrival(const Arrival& a) = 0;  // on the store's loop; must not suspend, nor call put()
};

// Why a file went.
enum class DeleteReason : uint8_t {
  delete_when,    // older than fileReservedTime, in an hour of deleteWhen
  disk_used,      // ... with more of the disk in use than diskMaxUsedSpaceRatio
  manual,         // ... by DELETE_EXPIRED_COMMITLOG
  disk_forcibly,  // of any age: more of the disk in use than diskSpaceCleanForciblyRatio
  log_bytes,      // of any age: the log is longer than discardBytes
  discarded,      // of any age: nothing in it is in any queue, topics have discarded it
  log_deleted,    // of a queue or the index: the log has nothing of it any more
};
const char* name_of(DeleteReason r);

struct DeletedFile {
  std::string_view path;
  uint64_t bytes = 0;
  int64_t age_ms = -1;  // of its newest message, of a file of the log only
  DeleteReason reason = DeleteReason::delete_when;
};

// Told when messages leave a queue at its front, deleted or discarded. On the store's loop; must not suspend.
class QueueListener {
 public:
  virtual ~QueueListener();
  virtual void on_min_moved(std::string_view topic, int32_t queue_id, int64_t from, int64_t to) = 0;
};

// Why producers are refused.
struct DiskShortage {
  std::string mount_point;
  uint64_t free_bytes = 0;
  uint64_t limit_bytes = 0;  // so much should be free
  const char* why = "";
};

// Told of what an operator should know. On the store's loop; must not suspend.
class FailureListener {
 public:
  virtual ~FailureListener();
  // Once: the log or a queue cannot be written. Puts are refused from then on, for good.
  virtual void on_store_failed(const Error& e) = 0;
  // Once: a unit of that queue cannot be what was written, its message is passed over. The next start makes
  // all ConsumeQueues anew.
  virtual void on_queue_damaged(std::string_view topic, int32_t queue_id, int64_t offset) {}
  // Index files could not be relied on; they are made again from the log. `reason` is static.
  virtual void on_index_damaged(const char* reason) {}
  // Index files could not be read or written; that is tried again later, from the last good state.
  virtual void on_index_failed(const Error& e) {}
  virtual void on_file_deleted(const DeletedFile& f) {}
  // There is no room for new messages: producers are refused, all else goes on. `reason`: for a person.
  virtual void on_disk_full(const DiskShortage& s, std::string_view reason) {}
  virtual void on_disk_writable(std::string_view mount_point, uint64_t free_bytes) {}
  // That file could not be deleted; tried again later.
  virtual void on_delete_failed(std::string_view path, const Error& e) {}
  // Once for each jump of the wall clock: files of the log look older than fileReservedTime only because it
  // jumped forward by so much while the store was open. They stay until that time has really passed.
  virtual void on_delete_held(int64_t clock_jump_ms) {}
  // A queue of a compacted topic could not be compacted; nothing is lost, and it is tried again later.
  virtual void on_compaction_failed(std::string_view topic, int32_t queue_id, const Error& e) {}
};

// Told while the store opens. What was recovered, cut or found damaged is in stats().recovery after it.
class RecoveryProgress {
 public:
  virtual ~RecoveryProgress();
  virtual void on_progress(int per_cent, int64_t physical_offset) = 0;
  // Before open() fails with Errc::corrupt: no valid record starts at `physical_offset` although valid ones
  // follow from `next_valid_offset` on.
  // 0: none does, but the spot had been on stable storage.
  virtual void on_damage(int64_t physical_offset, int64_t next_valid_offset) = 0;
  // DamagedLog::QUARANTINE: [from, to) was set aside in <root>/quarantine.
  virtual void on_quarantine(int64_t from, int64_t to) = 0;
};

// Counts by powers of two: bucket i holds values in [2^(i-1), 2^i) microseconds, bucket 0 those below 1.
struct LatencyHistogram {
  std::array<uint64_t, 32> buckets{};
  uint64_t count = 0;
  uint64_t sum_us = 0;
  void add_ns(int64_t ns);
};

// Counts by powers of two: bucket i holds values in (2^(i-1), 2^i], bucket 0 those up to 1.
struct SizeHistogram {
  std::array<uint64_t, 32> buckets{};
  uint64_t sum = 0;
  void add(uint64_t value);
};

struct RecoveryStats {
  bool clean = false;           // the last process stopped in order
  bool queues_rebuilt = false;  // ConsumeQueues were made anew from the whole log
  int64_t scanned_from = 0;     // physical offsets
  int64_t scanned_to = 0;
  uint64_t records = 0;      // checked and dispatched
  int64_t last_record = -1;  // physical offset of the last of them, which is the log's; -1: there is none
  int64_t torn_at = -1;      // where a torn tail was cut; -1: nothing was cut
  uint64_t torn_bytes = 0;   // how far bytes other than zero reached behind it
  uint64_t quarantined_ranges = 0;
  uint64_t quarantined_bytes = 0;
  int64_t duration_ms = 0;
};

struct StoreStats {
  uint64_t puts = 0;       // messages
  uint64_t put_bytes = 0;  // of records
  uint64_t put_failures = 0;
  uint64_t puts_waited = 0;  // for room or for the next file
  uint64_t gets = 0;
  uint64_t get_messages = 0;
  uint64_t get_bytes = 0;
  uint64_t get_misses = 0;
  uint64_t records_in_memory = 0,
           records_read = 0;  // that gets looked at: at once, or after reading the disk
  uint64_t log_writes = 0;
  uint64_t log_write_bytes = 0;  // of the device: whole blocks
  LatencyHistogram log_write;
  SizeHistogram batch_messages, batch_bytes;  // of one write of the log
  uint64_t log_syncs = 0;                     // ASYNC_FLUSH and fallback
  uint64_t zeroed_bytes = 0;
  uint64_t log_reads = 0;  // from the device
  uint64_t log_read_bytes = 0;
  uint64_t queue_writes = 0;
  uint64_t queue_write_bytes = 0;
  uint64_t queue_reads = 0;
  uint64_t index_entries = 0;       // made, also those made again
  uint64_t index_write_bytes = 0;   // of entries
  uint64_t index_reads = 0;         // of look-ups
  uint64_t index_discards = 0;      // all files were thrown away and made again
  uint64_t index_failures = 0;      // I/O errors
  uint64_t index_behind_bytes = 0;  // of the log, below the confirm offset, not indexed yet
  uint64_t checkpoints = 0;
  uint64_t log_files_deleted = 0;
  uint64_t queue_files_deleted = 0;
  uint64_t index_files_deleted = 0;
  uint64_t delete_failures = 0;
  uint64_t compactions = 0;  // of a queue
  uint64_t compaction_failures = 0;
  uint64_t compaction_copied_messages = 0;
  uint64_t compaction_removed_messages = 0;
  uint64_t queues = 0;
  uint64_t unwritten_units = 0;  // dispatched, not yet in their ConsumeQueue file
  uint64_t memory_bytes = 0;     // log memory alive: tail, cache, and what extents hold beyond them
  bool direct_io = true;         // false: the file system has no O_DIRECT
  RecoveryStats recovery;
};

}  // namespace rmq::store

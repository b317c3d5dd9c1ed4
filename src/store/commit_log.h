// The CommitLog: one order for all messages. Appends go to log memory; one task writes whole blocks to the
// file, one write in flight, the next one taking what has come meanwhile. Full blocks are written straight
// from log memory, which never changes once filled; the last, partial block from a block of its own, padded
// with zeros, because appends go on in the original while the device reads.
//
// Ahead of the end two things are prepared: the next file, and files *written* with zeros, so that a commit
// overwrites blocks that exist and the file system has nothing to record for it.
//
// Offsets: appended >= written >= flushed. written: in the file (the device or the kernel has it); flushed:
// on stable storage. With SYNC_FLUSH both are the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "store/log_cache.h"
#include "store/segments.h"
#include "uring/sync.h"

namespace rmq::store {

inline constexpr size_t log_write_bytes_max = 1u << 20;  // one write; also how far a torn tail can reach
inline constexpr size_t log_chunk_bytes_max = 1u << 20;  // one piece of log memory
inline constexpr size_t log_read_bytes_max = 1u << 20;   // one read of old log
inline constexpr size_t zero_buffer_bytes = 256u << 10;
inline constexpr size_t zero_step_bytes = 512u << 10;  // one write of zeros ahead: commits wait for it

// Told by the log. Neither may suspend.
class LogOwner {
 public:
  virtual ~LogOwner();
  virtual void log_advanced() = 0;              // written, flushed or the room for appends has changed
  virtual void log_failed(const Error& e) = 0;  // final
  // Whether the next file may be made: the disk has room for it. `urgent`: also from the reserve.
  virtual Task<bool> log_may_grow(bool urgent) = 0;
  // Somebody needed the next file and it could not be had for want of room; or it is there now.
  virtual void log_stuck(bool stuck) = 0;
};

class CommitLog {
 public:
  CommitLog(Disk& disk, const StoreOptions& o, StoreStats& stats, LogOwner& owner);
  ~CommitLog();

  SegmentSet& segments() { return segments_; }
  // After recovery: the log ends at `end`, zeros are in the files up to `zeroed_to`. Loads the last piece.
  Task<Result<void>> begin_at(uint64_t end, uint64_t zeroed_to);
  void start(Scope& tasks);
  // No more appends come. Resolves when all is written and on stable storage and the tasks will end.
  Task<Result<void>> stop();
  Task<void> close();

  // --- appending
  enum class Room : uint8_t { ok, wait, no_space, no_file };
  Room room_for(size_t bytes, bool urgent);
  // Begins a run of records of `bytes` in total, contiguous in one file (ends the current file when they do
  // not fit). Returns their physical offset. Only when room_for() says ok.
  int64_t open_run(size_t bytes);
  MutableBytes record_memory(size_t bytes);  // where the next record is to be written
  void appended(size_t bytes);               // it is there
  void kick() { flush_work_.notify(); }      // a run is complete
  uint64_t appended_offset() const { return append_; }
  uint64_t written_offset() const { return written_; }
  uint64_t flushed_offset() const { return flushed_; }
  uint64_t zeroed_offset() const { return zeroed_; }
  bool failed() const { return failed_; }
  // All that was written when called is on stable storage when it resolves.
  Task<Result<void>> sync();

  // --- reading; only below written_offset()
  using Piece = LogCache::Piece;
  Piece in_memory(uint64_t physical, size_t bytes) { return cache_.find(physical, bytes); }
  // Brings old log into memory with one read, from the block of `physical` on towards `end`: at most
  // log_read_bytes_max, not beyond the file, and not what is in memory already or on its way. Few such reads
  // are in flight at a time, in the order of the calls, and while messages come in long ones rest between, so
  // that the device, and this thread, have time for the log's writes.
  Task<Result<void>> load(uint64_t physical, uint64_t end);
  Task<Result<LogExtent>> read(uint64_t physical, size_t bytes);  // contiguous; a copy where needed
  Task<Result<void>> copy(uint64_t physical, MutableBytes into);  // through a small read when not in memory

  uint64_t old_share_bytes() const { return cache_.old_share_bytes(); }
  uint64_t memory_bytes() const { return cache_.live_bytes(); }
  const std::shared_ptr<std::atomic<uint64_t>>& memory_counter() const { return cache_.live_counter(); }

 private:
  struct Batch {
    std::shared_ptr<Segment> segment;
    uint64_t begin = 0;  // whole block
    uint64_t end = 0;    // physical end of the data
    uint64_t puts = 0;   // messages that had been appended when it was made
  };
  Task<void> flush_loop();
  Task<void> sync_loop();
  Task<void> prepare_loop();
  bool next_batch(Batch& b);
  void fill_iovecs(const Batch& b);
  Task<Result<void>> write_batch(const Batch& b);
  void batch_written(const Batch& b);
  bool needs_next_file() const;
  bool needs_zeros() const;
  void plan_prepare();
  Task<void> create_next();
  Task<void> zero_step();
  void copy_in(uint64_t physical, Bytes from);
  LogMemory& tail_memory(uint64_t physical);
  void seal_file(uint64_t file_end);
  void fail_log(const Error& e);
  struct Loading {
    uint64_t end = 0;
    Event done;
  };
  std::shared_ptr<Loading> loading_at(uint64_t physical) const;
  void plan_rest(int64_t began_ns, uint64_t read_bytes);
  Task<Result<void>> read_run(uint64_t physical, uint64_t end);
  Task<Result<void>> read_part(uint64_t physical, MutableBytes into);

  const StoreOptions& options_;
  StoreStats& stats_;
  uint64_t counted_puts_ = 0;  // of stats_.puts, in batches that were written
  LogOwner& owner_;
  SegmentSet segments_;
  LogCache cache_;
  uint64_t append_ = 0;
  uint64_t written_ = 0;
  uint64_t flushed_ = 0;
  uint64_t zeroed_ = 0;    // the files hold zeros from the append position up to here
  uint64_t file_end_ = 0;  // of the file that appends go to
  int64_t last_put_ns_ = 0;
  uint64_t prepare_at_ = 0;  // appending beyond this wakes prepare_loop
  std::shared_ptr<Segment> append_segment_;
  bool want_next_file_ = false;  // somebody waits for it
  bool want_urgently_ = false;   // ... who may use the reserve of the disk
  Room next_file_ = Room::wait;  // how the last try to create one has ended: wait, no_space or no_file
  bool tried_urgently_ = false;  // ... which was allowed to use the reserve
  bool failed_ = false;
  bool stopping_ = false;

  std::byte* scratch_ = nullptr;  // a record that crosses two chunks is made here first
  size_t scratch_bytes_ = 0;
  size_t scratch_used_ = 0;
  LogMemory* bounce_;
  LogMemory* zeros_ = nullptr;
  std::vector<iovec> iovecs_;
  uint64_t zero_busy_from_ = UINT64_MAX;  // a write of zeros is in flight from here on
  Event zero_done_, flush_work_, prepare_work_, stop_, drained_;
  Semaphore sync_one_{1};
  std::map<uint64_t, std::shared_ptr<Loading>> loading_;  // by first offset
  Semaphore long_reads_{2}, short_reads_{16};
  int64_t long_reads_rest_until_ns_ = 0;
  uint64_t append_at_long_read_ = 0;  // when the last long read ended
};

}  // namespace rmq::store

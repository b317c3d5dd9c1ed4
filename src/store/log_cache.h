// The log's memory: the tail, chunks of equal size that appends fill, each the image of one aligned piece of
// the log; and runs of whole blocks that were read back for consumers that lag behind. Both live under one
// bound: when it is reached the least recently used of the runs goes, or, when they are few, the oldest piece
// of the tail that is already in its file. What a reader still holds lives on outside of the bound until he
// lets go.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>

#include "store/types.h"

namespace rmq::store {

class LogCache {
 public:
  LogCache(size_t chunk_bytes, uint64_t memory_bytes);
  ~LogCache();
  LogCache(const LogCache&) = delete;
  LogCache& operator=(const LogCache&) = delete;

  size_t chunk_bytes() const { return chunk_bytes_; }
  uint64_t index_of(uint64_t physical) const { return physical / chunk_bytes_; }

  // A new chunk at the end of the tail; its memory has arbitrary content.
  LogMemory& open_tail(uint64_t index);
  LogMemory* tail(uint64_t index);  // null: not there. The pointer lives until the next call here
  // Tail chunks that end at or below it may be evicted.
  void set_written(uint64_t physical) { written_ = physical; }

  struct Piece {
    LogMemory* memory = nullptr;  // null: not in memory
    const std::byte* data = nullptr;
    size_t bytes = 0;  // at most up to the end of that memory
    bool old = false;  // of a run that was read back
  };
  Piece find(uint64_t physical, size_t bytes);
  // Where memory begins again behind `physical`, which has none; at most `end`.
  uint64_t absent_until(uint64_t physical, uint64_t end) const;
  // Memory to read a run into, whole blocks. One ref, the caller's, for insert() or drop().
  LogMemory* take(size_t bytes);
  void insert(uint64_t begin, LogMemory* m);  // nothing of the run is in memory yet
  void drop(LogMemory* m);

  // So much the runs have for themselves, whatever the tail needs.
  uint64_t old_share_bytes() const { return memory_bytes_ / 4; }
  uint64_t live_bytes() const { return live_bytes_->load(std::memory_order_relaxed); }
  const std::shared_ptr<std::atomic<uint64_t>>& live_counter() const { return live_bytes_; }

 private:
  struct Run {
    LogMemory* memory;
    std::list<uint64_t>::iterator lru;
  };
  LogMemory* evict_one();

  const size_t chunk_bytes_;
  const uint64_t memory_bytes_;
  uint64_t written_ = 0;
  uint64_t used_bytes_ = 0;  // of both, and of what is being read
  uint64_t old_bytes_ = 0;   // of runs
  std::shared_ptr<std::atomic<uint64_t>> live_bytes_;
  std::unordered_map<uint64_t, LogMemory*> chunks_;  // of the tail
  std::deque<uint64_t> tail_;                        // ascending
  uint64_t last_index_ = UINT64_MAX;
  LogMemory* last_ = nullptr;
  std::map<uint64_t, Run> runs_;  // by first offset
  std::list<uint64_t> lru_;       // most recent first
};

}  // namespace rmq::store

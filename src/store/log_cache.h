// The log's memory: chunks of equal size, each the image of one aligned piece of the log. The newest ones
// are the tail, filled by appends; the others were read back for a consumer that lags behind. Both live
// under one bound: when it is reached the least recently used of those read back goes, or, when they are
// few, the oldest piece of the tail that is already in its file. What a reader still holds lives on
// outside of the bound until he lets go.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
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
  // Tail chunks that end at or below it may be evicted.
  void set_written(uint64_t physical) { written_ = physical; }
  LogMemory* find(uint64_t index);  // null: not in memory. The pointer lives until the next call here
  // Memory to read a chunk into. One ref, the caller's.
  LogMemory* take();
  void insert(uint64_t index, LogMemory* m);  // takes the caller's ref

  uint64_t live_bytes() const { return live_bytes_->load(std::memory_order_relaxed); }
  const std::shared_ptr<std::atomic<uint64_t>>& live_counter() const { return live_bytes_; }

 private:
  struct Entry {
    LogMemory* memory;
    bool tail;
    std::list<uint64_t>::iterator lru;  // of those that were read back
  };
  LogMemory* evict_one();
  LogMemory* remove(std::unordered_map<uint64_t, Entry>::iterator it);

  const size_t chunk_bytes_;
  const uint64_t chunks_max_;
  uint64_t written_ = 0;
  std::shared_ptr<std::atomic<uint64_t>> live_bytes_;
  std::unordered_map<uint64_t, Entry> chunks_;
  std::deque<uint64_t> tail_;  // ascending
  std::list<uint64_t> lru_;    // most recent first
  uint64_t last_index_ = UINT64_MAX;
  LogMemory* last_ = nullptr;
};

}  // namespace rmq::store

#include "store/log_cache.h"

#include <algorithm>

#include "base/check.h"

namespace rmq::store {

LogCache::LogCache(size_t chunk_bytes, uint64_t memory_bytes)
    : chunk_bytes_(chunk_bytes),
      chunks_max_(std::max<uint64_t>(memory_bytes / chunk_bytes, 4)),
      live_bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

LogCache::~LogCache() {
  for (auto& [index, e] : chunks_) e.memory->unref();
}

LogMemory* LogCache::remove(std::unordered_map<uint64_t, Entry>::iterator it) {
  Entry e = it->second;
  if (it->first == last_index_) last_index_ = UINT64_MAX;
  if (!e.tail) lru_.erase(e.lru);
  chunks_.erase(it);
  return e.memory;
}

// The chunk to do without, taken out of the table; null: all are needed. A quarter of the memory is left to
// those who read old messages; beyond it they lose theirs before the tail does.
LogMemory* LogCache::evict_one() {
  bool tail_can = tail_.size() > 1 && (tail_.front() + 1) * chunk_bytes_ <= written_;
  if (!lru_.empty() && (lru_.size() > chunks_max_ / 4 || !tail_can)) return remove(chunks_.find(lru_.back()));
  if (!tail_can) return nullptr;
  uint64_t index = tail_.front();
  tail_.pop_front();
  return remove(chunks_.find(index));
}

LogMemory* LogCache::take() {
  LogMemory* spare = nullptr;
  while (chunks_.size() >= chunks_max_) {
    LogMemory* m = evict_one();
    if (m == nullptr) break;
    if (spare == nullptr && !m->shared())
      spare = m;
    else
      m->unref();
  }
  return spare != nullptr ? spare : LogMemory::create(chunk_bytes_, live_bytes_);
}

LogMemory& LogCache::open_tail(uint64_t index) {
  check(tail_.empty() || tail_.back() < index);
  LogMemory* m = take();
  bool fresh = chunks_.emplace(index, Entry{m, true, lru_.end()}).second;
  check(fresh);
  tail_.push_back(index);
  return *m;
}

LogMemory* LogCache::find(uint64_t index) {
  if (index == last_index_) return last_;
  auto it = chunks_.find(index);
  if (it == chunks_.end()) return nullptr;
  if (!it->second.tail) lru_.splice(lru_.begin(), lru_, it->second.lru);
  last_index_ = index;
  last_ = it->second.memory;
  return last_;
}

void LogCache::insert(uint64_t index, LogMemory* m) {
  lru_.push_front(index);
  bool fresh = chunks_.emplace(index, Entry{m, false, lru_.begin()}).second;
  check(fresh);
}

}  // namespace rmq::store

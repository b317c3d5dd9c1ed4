#include "store/log_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rmq::store {

namespace {
constexpr uint64_t chunks_min = 4;
}

LogCache::LogCache(size_t chunk_bytes, uint64_t memory_bytes)
    : chunk_bytes_(chunk_bytes),
      memory_bytes_(std::max<uint64_t>(memory_bytes, chunks_min * chunk_bytes)),
      live_bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

LogCache::~LogCache() {
  for (auto& [index, m] : chunks_) m->unref();
  for (auto& [begin, run] : runs_) run.memory->unref();
}

// Memory to do without, taken out of the tables; null: all is needed. A quarter is left to those who read old
// messages; beyond it they lose theirs before the tail does.
LogMemory* LogCache::evict_one() {
  bool tail_can = tail_.size() > 1 && (tail_.front() + 1) * chunk_bytes_ <= written_;
  LogMemory* m = nullptr;
  if (!lru_.empty() && (old_bytes_ > old_share_bytes() || !tail_can)) {
    auto it = runs_.find(lru_.back());
    m = it->second.memory;
    old_bytes_ -= m->bytes();
    runs_.erase(it);
    lru_.pop_back();
  } else if (tail_can) {
    auto it = chunks_.find(tail_.front());
    m = it->second;
    if (it->first == last_index_) last_index_ = UINT64_MAX;
    chunks_.erase(it);
    tail_.pop_front();
  } else {
    return nullptr;
  }
  used_bytes_ -= m->bytes();
  return m;
}

LogMemory* LogCache::take(size_t bytes) {
  LogMemory* spare = nullptr;
  while (used_bytes_ + bytes > memory_bytes_) {
    LogMemory* m = evict_one();
    if (m == nullptr) break;
    if (spare == nullptr && m->bytes() == bytes && !m->shared())
      spare = m;
    else
      m->unref();
  }
  used_bytes_ += bytes;
  return spare != nullptr ? spare : LogMemory::create(bytes, live_bytes_);
}

void LogCache::drop(LogMemory* m) {
  used_bytes_ -= m->bytes();
  m->unref();
}

LogMemory& LogCache::open_tail(uint64_t index) {
  check(tail_.empty() || tail_.back() < index);
  LogMemory* m = take(chunk_bytes_);
  bool fresh = chunks_.emplace(index, m).second;
  check(fresh);
  tail_.push_back(index);
  return *m;
}

LogMemory* LogCache::tail(uint64_t index) {
  if (index == last_index_) return last_;
  auto it = chunks_.find(index);
  if (it == chunks_.end()) return nullptr;
  last_index_ = index;
  return last_ = it->second;
}

LogCache::Piece LogCache::find(uint64_t physical, size_t bytes) {
  if (LogMemory* m = tail(index_of(physical))) {
    size_t at = physical % chunk_bytes_;
    return {m, m->data() + at, std::min(bytes, chunk_bytes_ - at), false};
  }
  auto it = runs_.upper_bound(physical);
  if (it == runs_.begin()) return {};
  --it;
  Run& run = it->second;
  uint64_t at = physical - it->first;
  if (at >= run.memory->bytes()) return {};
  lru_.splice(lru_.begin(), lru_, run.lru);
  return {run.memory, run.memory->data() + at, std::min<size_t>(bytes, run.memory->bytes() - at), true};
}

uint64_t LogCache::absent_until(uint64_t physical, uint64_t end) const {
  auto run = runs_.upper_bound(physical);
  if (run != runs_.end()) end = std::min(end, run->first);
  auto chunk = std::upper_bound(tail_.begin(), tail_.end(), index_of(physical));
  if (chunk != tail_.end()) end = std::min(end, *chunk * chunk_bytes_);
  return end;
}

void LogCache::insert(uint64_t begin, LogMemory* m) {
  lru_.push_front(begin);
  bool fresh = runs_.emplace(begin, Run{m, lru_.begin()}).second;
  check(fresh);
  old_bytes_ += m->bytes();
}

}  // namespace rmq::store

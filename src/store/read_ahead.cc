#include "store/read_ahead.h"

#include <algorithm>

namespace rmq::store {

namespace {
constexpr uint64_t window_bytes_first = 64u << 10;
constexpr uint64_t gap_bytes_max = 64u << 10;  // less than that between two messages: one read brings both
constexpr int64_t reader_idle_ns = 10 * ns_per_s;
constexpr size_t readers_max = 8192;
constexpr int stretches_max = 16;  // read ahead at once for a reader whose messages lie far apart
constexpr uint32_t ahead_max = 8;  // readers that are read ahead for at a time
}  // namespace

bool UnitCursor::get(int64_t offset, QueueUnit& u) const {
  if (offset >= q_.tail_first) {
    u = decode_unit(q_.tail_unit(offset));
    return true;
  }
  if (!block_ || offset < block_->first || offset >= block_->first + block_->count) return false;
  u = decode_unit(block_->units.data() + static_cast<size_t>(offset - block_->first) * unit_bytes);
  return true;
}

Task<Result<void>> UnitCursor::load(int64_t offset) {
  auto b = co_await files_.block_of(q_, offset);
  if (!b) co_return std::unexpected(b.error());
  block_ = std::move(*b);
  co_return Result<void>();
}

bool ReadAhead::try_enter(Get& g) {
  if (!g.has_slot) g.has_slot = slots_.try_acquire();
  return g.has_slot;
}

Task<void> ReadAhead::enter(Get& g) {
  if (try_enter(g)) co_return;
  co_await slots_.acquire();
  g.has_slot = true;
}

// Each reader has one stretch that he is served from and one that is on its way. Those who wait for their
// first one are not known yet.
uint64_t ReadAhead::window_max() const {
  uint64_t count = std::max<uint64_t>({readers_.size(), waiting_max - slots_.free_slots(), 1});
  uint64_t share = log_.old_share_bytes() / (2 * count);
  return std::clamp<uint64_t>(share, disk_block_bytes, log_read_bytes_max);
}

// From the message at `offset` on as far as the messages that are wanted lie near each other, up to the
// window. Empty (end = 0): there is none.
Task<ReadAhead::Stretch> ReadAhead::plan(ConsumeQueue& q, int64_t offset, uint64_t window_bytes,
                                         const MessageFilter* filter) {
  Stretch s;
  UnitCursor units(files_, q);
  for (s.next = offset; s.next < q.max_offset && !q.deleted; s.next++) {
    QueueUnit u;
    if (!units.get(s.next, u)) {
      auto loaded = co_await units.load(s.next);
      if (!loaded || !units.get(s.next, u)) break;
    }
    if (is_blank(u) || u.bytes <= 0) continue;
    if (filter != nullptr && !filter->matches_tags_code(u.tags_code)) continue;
    uint64_t begin = static_cast<uint64_t>(u.physical_offset), end = begin + static_cast<uint64_t>(u.bytes);
    if (s.end == 0) {
      s.begin = begin;
    } else if (begin < s.end || begin - s.end > gap_bytes_max || end - s.begin > window_bytes) {
      break;
    }
    s.end = end;
  }
  co_return s;
}

Task<Result<void>> ReadAhead::load(Get& g, int64_t offset, uint64_t physical, uint64_t end) {
  auto it = readers_.find({g.q.uid, g.begin});
  uint64_t window = it != readers_.end() ? it->second->window_bytes : window_bytes_first;
  Stretch s = co_await plan(g.q, offset, std::min(window, window_max()), g.filter);
  g.asked = std::max({g.asked, s.next, offset + 1});
  co_return co_await log_.load(physical, std::max(end, s.end));
}

Task<void> ReadAhead::read_stretch(ConsumeQueue& q, Stretch s) {
  // Parts of it may be in memory already, for somebody else.
  for (uint64_t p = s.begin; p < s.end && !q.deleted;) {
    CommitLog::Piece there = log_.in_memory(p, s.end - p);
    if (there.memory != nullptr) {
      p += there.bytes;
      continue;
    }
    auto r = co_await log_.load(p, s.end);
    if (!r) co_return;  // whoever needs it will see the error
  }
}

Task<void> ReadAhead::read_on(QueueRef q, std::shared_ptr<Reader> reader) {
  const uint64_t window = reader->window_bytes;
  uint64_t bytes = 0;
  for (int i = 0; i < stretches_max && bytes < window / 2; i++) {
    Stretch s = co_await plan(*q, reader->asked, window, nullptr);
    if (s.end == 0) break;
    if (i == 0) reader->trigger = reader->asked;
    reader->asked = s.next;
    bytes += s.end - s.begin;
    co_await read_stretch(*q, s);
  }
  reader->reading = false;
}

void ReadAhead::forget(Readers::iterator it) {
  lru_.erase(it->second->lru);
  readers_.erase(it);
}

void ReadAhead::expire(int64_t now_ns) {
  while (!lru_.empty()) {
    auto it = readers_.find(lru_.back());
    if (readers_.size() < readers_max && now_ns - it->second->seen_ns < reader_idle_ns) return;
    forget(it);
  }
}

void ReadAhead::passed(const Get& g, int64_t next) {
  std::shared_ptr<Reader> r;
  if (auto it = readers_.find({g.q.uid, g.begin}); it != readers_.end()) {
    r = it->second;
    forget(it);
  }
  const bool reads_on = r != nullptr;
  if (!reads_on) r = std::make_shared<Reader>(Reader{.window_bytes = window_bytes_first});
  r->seen_ns = Loop::current().now_ns();
  expire(r->seen_ns);
  const Key key{g.q.uid, next};
  if (auto it = readers_.find(key); it != readers_.end()) forget(it);  // two have met
  lru_.push_front(key);
  r->lru = lru_.begin();
  readers_.emplace(key, r);
  if (g.asked > r->asked) {  // he had to wait
    r->asked = g.asked;
    r->trigger = next;
  }
  if (r->asked < next) r->trigger = r->asked = next;
  if (!reads_on) return;
  if (g.asked != 0 || next >= r->trigger) r->window_bytes = std::min(r->window_bytes * 2, window_max());
  bool now = next >= r->trigger && !r->reading && tasks_.running() < ahead_max && g.filter == nullptr;
  if (!now || r->asked >= g.q.max_offset) return;
  r->reading = true;
  tasks_.spawn(read_on(QueueRef(&g.q), r));
}

Task<void> ReadAhead::stop() {
  return tasks_.join();
}

}  // namespace rmq::store

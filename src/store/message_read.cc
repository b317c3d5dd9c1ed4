// The reading side of MessageStore: pulls, single records, times.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "proto/record.h"
#include "store/store_impl.h"

namespace rmq::store {

namespace {

constexpr int64_t scan_units_min = 800;        // 16,000 bytes of units, as RocketMQ scans at least
constexpr uint64_t filter_cost_max = 500'000;  // 5 ms: then the consumer asks again, others come in between

}  // namespace

bool MessageStore::Impl::in_memory(int64_t physical_offset) const {
  return log_.appended_offset() - static_cast<uint64_t>(physical_offset) <= options_.in_memory_distance_bytes;
}

bool MessageStore::Impl::batch_full(const GetMessageResult& r, const QueueUnit& u, int64_t messages,
                                    int32_t max_messages) const {
  if (r.message_count == 0) return false;
  if (static_cast<int64_t>(r.message_count) + messages > max_messages) return true;
  bool hot = in_memory(u.physical_offset);
  uint64_t bytes = r.byte_count + static_cast<uint64_t>(u.bytes);
  if (bytes > (hot ? options_.transfer_bytes_in_memory : options_.transfer_bytes_on_disk)) return true;
  return r.message_count + 1 > (hot ? options_.transfer_count_in_memory : options_.transfer_count_on_disk);
}

// The usual case: the record lies in one piece of memory. Nothing: it does not, nothing was done.
std::optional<MessageStore::Impl::Added> MessageStore::Impl::add_at_once(GetMessageResult& r,
                                                                         ReadAhead::Get& g,
                                                                         const QueueUnit& u, bool judge) {
  size_t bytes = static_cast<size_t>(u.bytes);
  CommitLog::Piece p = log_.in_memory(static_cast<uint64_t>(u.physical_offset), bytes);
  if (p.bytes != bytes) return std::nullopt;
  g.old = g.old || p.old;
  if (judge && !g.filter->matches_record({p.data, bytes})) return Added::no;
  bool grown = !r.extents.empty() && r.extents.back().append(*p.memory, p.data, p.bytes);
  if (!grown) r.extents.emplace_back(*p.memory, p.data, p.bytes);
  return Added::yes;
}

// Brings the record into memory, piece by piece, and adds it when all of it is there.
Task<Result<MessageStore::Impl::Added>> MessageStore::Impl::add_record(GetMessageResult& r, ReadAhead::Get& g,
                                                                       int64_t offset, QueueUnit u,
                                                                       bool judge) {
  uint64_t at = static_cast<uint64_t>(u.physical_offset);
  const uint64_t end = at + static_cast<uint64_t>(u.bytes);
  std::vector<LogExtent> pieces;
  while (at < end) {
    CommitLog::Piece p = log_.in_memory(at, end - at);
    if (p.memory == nullptr) {
      stats_.get_misses++;
      g.old = true;
      if (!read_ahead_.try_enter(g)) {
        // Too many wait: what there is may go first, and the memory that it holds.
        if (r.message_count != 0) co_return Added::later;
        co_await read_ahead_.enter(g);
      }
      CO_TRY(co_await read_ahead_.load(g, offset, at, end));
      continue;
    }
    g.old = g.old || p.old;
    pieces.emplace_back(*p.memory, p.data, p.bytes);
    at += p.bytes;
  }
  if (!judge) {
    for (LogExtent& e : pieces) r.extents.push_back(std::move(e));
    co_return Added::yes;
  }
  CO_TRY_VAR(record,
             co_await log_.read(static_cast<uint64_t>(u.physical_offset), static_cast<size_t>(u.bytes)));
  if (!g.filter->matches_record(record.bytes())) co_return Added::no;
  r.extents.push_back(std::move(record));
  co_return Added::yes;
}

// What a filter says about a message before its record is looked at.
MessageStore::Impl::Judgement MessageStore::Impl::judge(const MessageFilter* f, const QueueUnit& u) {
  if (f == nullptr) return Judgement::pass;
  if (!f->matches_tags_code(u.tags_code)) return Judgement::drop;
  if (!f->needs_record()) return Judgement::pass;
  auto verdict = f->known(u.physical_offset);
  if (!verdict) return Judgement::by_record;
  return *verdict ? Judgement::pass : Judgement::drop;
}

void MessageStore::Impl::found_damaged(const ConsumeQueue& q, int64_t offset) {
  if (std::exchange(queues_damaged_, true)) return;
  if (failures_ != nullptr) failures_->on_queue_damaged(q.topic->name, q.id, offset);
  checkpoint_wanted_ = true;
  checkpoint_work_.notify();
  checkpoint_soon_.notify();
}

Task<void> MessageStore::Impl::scan(GetMessageResult& r, ReadAhead::Get& g, int32_t max_messages) {
  ConsumeQueue& q = g.q;
  const int64_t offset = g.begin;
  int64_t file_units = queue_files_.file_units();
  int64_t end = std::min({r.max_offset, offset - offset % file_units + file_units,
                          offset + std::max<int64_t>(scan_units_min, max_messages)});
  int64_t log_min = static_cast<int64_t>(log_.segments().first_base());
  UnitCursor units(queue_files_, q);
  uint64_t cost = 0;
  r.status = GetMessageStatus::NO_MATCHED_MESSAGE;
  for (int64_t o = offset; o < end && cost < filter_cost_max; o++) {
    QueueUnit u;
    if (!units.get(o, u)) {
      auto loaded = co_await units.load(o);
      if (!loaded) {  // the same offset again later: nobody may skip messages because a read failed
        if (r.message_count == 0) r.status = GetMessageStatus::OFFSET_FOUND_NULL;
        co_return;
      }
      bool there = units.get(o, u);
      check(there);
    }
    int64_t next = o + 1;
    if (q.batch) {
      auto found = co_await record_end(units, o, u, r.max_offset);
      if (!found) {
        if (r.message_count == 0) r.status = GetMessageStatus::OFFSET_FOUND_NULL;
        co_return;
      }
      next = *found;
    }
    if (batch_full(r, u, next - o, max_messages)) co_return;
    // What no unit can say is damage of its file: nobody waits for it.
    const bool possible = u.bytes > 0 && u.physical_offset >= 0 &&
                          u.physical_offset <= static_cast<int64_t>(confirm_) - u.bytes;
    if (!possible && !is_blank(u)) found_damaged(q, o);
    const bool wanted = possible && !is_blank(u) && u.physical_offset >= log_min;
    if (!wanted && r.message_count == 0) r.status = GetMessageStatus::MESSAGE_WAS_REMOVING;
    const Judgement j = wanted ? judge(g.filter, u) : Judgement::drop;
    if (j != Judgement::drop) {
      const bool by_record = j == Judgement::by_record;
      if (by_record) cost += g.filter->record_cost();
      auto at_once = add_at_once(r, g, u, by_record);
      (at_once ? stats_.records_in_memory : stats_.records_read)++;
      Result<Added> added = at_once.value_or(Added::later);
      if (!at_once) added = co_await add_record(r, g, o, u, by_record);
      if (!added && r.message_count == 0) r.status = GetMessageStatus::OFFSET_FOUND_NULL;
      if (!added || *added == Added::later) co_return;
      if (*added == Added::yes) {
        r.message_count += static_cast<uint32_t>(next - o);
        r.byte_count += static_cast<uint64_t>(u.bytes);
        r.status = GetMessageStatus::FOUND;
      }
    }
    r.next_begin_offset = next;
    o = next - 1;
  }
}

Task<GetMessageResult> MessageStore::Impl::get(std::string_view topic, int32_t queue_id, int64_t offset,
                                               int32_t max_messages, const MessageFilter* filter) {
  GetMessageResult r;
  stats_.gets++;
  QueueRef q(table_.find(topic, queue_id));
  if (!q || q->max_offset == 0) co_return r;
  const CompactedQueuePtr compacted = compaction_.find(topic, queue_id);
  r.min_offset = compacted == nullptr ? q->min_offset : min_offset(topic, queue_id);
  r.max_offset = q->max_offset;
  r.next_begin_offset = offset;
  if (compacted != nullptr && offset < compacted->copied) {
    r.next_begin_offset = std::max<int64_t>(offset, 0);
    const bool all = co_await compaction_.get(compacted, r, max_messages, filter);
    if (all || r.next_begin_offset >= r.max_offset) {
      stats_.get_messages += r.message_count;
      stats_.get_bytes += r.byte_count;
      co_return r;
    }
    offset = r.next_begin_offset;
  }
  if (offset < q->min_offset) {
    r.status = GetMessageStatus::OFFSET_TOO_SMALL;
    r.next_begin_offset = q->min_offset;
  } else if (offset == r.max_offset) {
    r.status = GetMessageStatus::OFFSET_OVERFLOW_ONE;
  } else if (offset > r.max_offset) {
    r.status = GetMessageStatus::OFFSET_OVERFLOW_BADLY;
    r.next_begin_offset = r.max_offset;
  } else {
    ReadAhead::Get g(read_ahead_, *q, offset, filter);
    co_await scan(r, g, max_messages);
    if (g.old && r.next_begin_offset > offset) read_ahead_.passed(g, r.next_begin_offset);
    stats_.get_messages += r.message_count;
    stats_.get_bytes += r.byte_count;
  }
  co_return r;
}

int64_t MessageStore::Impl::min_offset(std::string_view topic, int32_t queue_id) const {
  const ConsumeQueue* q = table_.find(topic, queue_id);
  if (q == nullptr) return -1;
  const CompactedQueuePtr compacted = compaction_.find(topic, queue_id);
  const int64_t first = compacted != nullptr ? compacted->first() : -1;
  if (first >= 0) return first;
  return compacted != nullptr ? std::max(q->min_offset, compacted->copied) : q->min_offset;
}

Task<Result<LogExtent>> MessageStore::Impl::record_at(int64_t physical_offset) {
  uint64_t at = static_cast<uint64_t>(physical_offset);
  bool inside =
      physical_offset >= 0 && at >= log_.segments().first_base() && at + proto::record_bytes_min <= confirm_;
  if (!inside) co_return rmq::fail(Errc::not_found, "no record there");
  std::array<std::byte, proto::record_bytes_min> head;
  CO_TRY(co_await log_.copy(at, head));
  auto front = proto::record_front(head);
  bool plausible = front && front->is_message() && front->size >= head.size() &&
                   at + front->size <= confirm_ && proto::record_physical_offset(head) == physical_offset;
  if (!plausible) co_return rmq::fail(Errc::not_found, "no record there");
  CO_TRY_VAR(record, co_await log_.read(at, front->size));
  if (!proto::parse_record(record.bytes(), proto::CrcCheck::verify))
    co_return rmq::fail(Errc::not_found, "no valid record there");
  co_return std::move(record);
}

Task<std::optional<QueueUnit>> MessageStore::Impl::queue_unit(std::string_view topic, int32_t queue_id,
                                                              int64_t offset) {
  QueueRef q(table_.find(topic, queue_id));
  if (!q || offset < q->min_offset || offset >= q->max_offset) co_return std::nullopt;
  UnitCursor units(queue_files_, *q);
  QueueUnit u;
  if (!units.get(offset, u)) {
    auto loaded = co_await units.load(offset);
    if (!loaded || !units.get(offset, u)) co_return std::nullopt;
  }
  if (is_blank(u) || u.bytes <= 0) co_return std::nullopt;
  co_return u;
}

Task<Result<size_t>> MessageStore::Impl::queue_units(std::string_view topic, int32_t queue_id, int64_t offset,
                                                     std::span<QueueUnit> into) {
  QueueRef q(table_.find(topic, queue_id));
  if (!q) co_return size_t{0};
  if (offset < q->min_offset) co_return rmq::fail(Errc::not_found, "queue offset");
  const int64_t end = std::min(q->max_offset, offset + static_cast<int64_t>(into.size()));
  UnitCursor units(queue_files_, *q);
  size_t n = 0;
  for (int64_t o = offset; o < end; o++) {
    if (!units.get(o, into[n])) {
      CO_TRY(co_await units.load(o));
      bool there = units.get(o, into[n]);
      check(there);
    }
    n++;
  }
  co_return n;
}

Task<Result<int64_t>> MessageStore::Impl::store_time_of(ConsumeQueue& q, int64_t offset) {
  UnitCursor units(queue_files_, q);
  QueueUnit u;
  if (!units.get(offset, u)) {
    CO_TRY(co_await units.load(offset));
    bool there = units.get(offset, u);
    check(there);
  }
  if (is_blank(u)) co_return INT64_MIN;  // before everything
  std::array<std::byte, proto::record_bytes_min> head;
  CO_TRY(co_await log_.copy(static_cast<uint64_t>(u.physical_offset), head));
  co_return proto::record_store_timestamp(head);
}

Task<int64_t> MessageStore::Impl::store_time(std::string_view topic, int32_t queue_id, int64_t offset) {
  QueueRef q(table_.find(topic, queue_id));
  if (!q || offset >= q->max_offset) co_return -1;
  if (const CompactedQueuePtr compacted = compaction_.find(topic, queue_id)) {
    const int64_t copied = compacted->copied;
    if (offset < copied) {
      auto unit = co_await compaction_.unit_at(compacted, offset);
      if (unit && *unit) co_return (*unit)->store_timestamp_ms;
    }
    offset = std::max(offset, copied);  // the next message that there is
  }
  if (offset < q->min_offset || offset >= q->max_offset) co_return -1;
  auto t = co_await store_time_of(*q, offset);
  co_return t && *t >= 0 ? *t : -1;
}

// How many offsets lie on the left side: LOWER counts those stored before the time, UPPER those not after it.
Task<int64_t> MessageStore::Impl::search_offset(std::string_view topic, int32_t queue_id,
                                                int64_t timestamp_ms, Boundary b) {
  QueueRef q(table_.find(topic, queue_id));
  if (!q) co_return 0;
  const CompactedQueuePtr compacted = compaction_.find(topic, queue_id);
  if (compacted == nullptr) co_return co_await search_queue(*q, q->min_offset, timestamp_ms, b);
  const int64_t from = std::max(q->min_offset, compacted->copied);
  auto near = co_await compaction_.around(compacted, b == Boundary::LOWER ? timestamp_ms : timestamp_ms + 1);
  if (!near) co_return min_offset(topic, queue_id);
  if (b == Boundary::LOWER)
    co_return near->from ? *near->from : co_await search_queue(*q, from, timestamp_ms, b);
  if (near->from || from >= q->max_offset) co_return near->before.value_or(min_offset(topic, queue_id));
  auto first = co_await store_time_of(*q, from);
  const bool younger = first && *first > timestamp_ms;
  if (younger && near->before) co_return *near->before;
  co_return co_await search_queue(*q, from, timestamp_ms, b);
}

// In the queue from an offset on.
Task<int64_t> MessageStore::Impl::search_queue(ConsumeQueue& cq, int64_t from, int64_t timestamp_ms,
                                               Boundary b) {
  const QueueRef q(&cq);
  const int64_t min = from, max = q->max_offset;
  int64_t lo = min, hi = max;
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    auto t = co_await store_time_of(*q, mid);
    bool left = !t || (b == Boundary::LOWER ? *t < timestamp_ms : *t <= timestamp_ms);
    if (left)
      lo = mid + 1;
    else
      hi = mid;
  }
  co_return b == Boundary::LOWER ? lo : std::max(lo - 1, min);
}

// ---- the face ----------------------------------------------------------------------------------------

Task<GetMessageResult> MessageStore::get(std::string_view topic, int32_t queue_id, int64_t offset,
                                         int32_t max_messages, const MessageFilter* filter) {
  return impl_->get(topic, queue_id, offset, max_messages, filter);
}
Task<Result<LogExtent>> MessageStore::record_at(int64_t physical_offset) {
  return impl_->record_at(physical_offset);
}
int64_t MessageStore::min_offset(std::string_view topic, int32_t queue_id) const {
  return impl_->min_offset(topic, queue_id);
}
int64_t MessageStore::max_offset(std::string_view topic, int32_t queue_id) const {
  ConsumeQueue* q = impl_->table_.find(topic, queue_id);
  return q != nullptr ? q->max_offset : 0;
}
std::vector<int32_t> MessageStore::queue_ids(std::string_view topic) const {
  return impl_->table_.ids(topic);
}
std::vector<std::string> MessageStore::topics_with_queues() const {
  return impl_->table_.topics();
}
Task<int64_t> MessageStore::store_time(std::string_view topic, int32_t queue_id, int64_t offset) {
  return impl_->store_time(topic, queue_id, offset);
}
Task<int64_t> MessageStore::earliest_store_time(std::string_view topic, int32_t queue_id) {
  return impl_->store_time(topic, queue_id, min_offset(topic, queue_id));
}
Task<int64_t> MessageStore::search_offset(std::string_view topic, int32_t queue_id, int64_t timestamp_ms,
                                          Boundary b) {
  return impl_->search_offset(topic, queue_id, timestamp_ms, b);
}
Task<std::optional<QueueUnit>> MessageStore::queue_unit(std::string_view topic, int32_t queue_id,
                                                        int64_t offset) {
  return impl_->queue_unit(topic, queue_id, offset);
}
Task<Result<size_t>> MessageStore::queue_units(std::string_view topic, int32_t queue_id, int64_t offset,
                                               std::span<QueueUnit> into) {
  return impl_->queue_units(topic, queue_id, offset, into);
}
bool MessageStore::in_memory(int64_t physical_offset) const {
  return impl_->in_memory(physical_offset);
}

Task<Result<void>> MessageStore::set_compacted_topics(std::vector<std::string> topics) {
  return impl_->compaction_.set_topics(std::move(topics), impl_->stats_.recovery.clean);
}
Task<Result<void>> MessageStore::add_compacted_topic(std::string topic) {
  return impl_->compaction_.add_topic(std::move(topic));
}
bool MessageStore::is_compacted(std::string_view topic) const {
  return impl_->compaction_.has(topic);
}

Bytes MessageStore::record_in_memory(int64_t physical_offset, int32_t bytes, std::string& scratch) {
  uint64_t at = static_cast<uint64_t>(physical_offset);
  const uint64_t end = at + static_cast<uint64_t>(bytes);
  scratch.clear();
  while (at < end) {
    CommitLog::Piece p = impl_->log_.in_memory(at, end - at);
    if (p.memory == nullptr) return {};
    if (p.bytes == static_cast<size_t>(bytes)) return {p.data, p.bytes};
    scratch += as_text({p.data, p.bytes});
    at += p.bytes;
  }
  return as_bytes(scratch);
}

Task<Result<size_t>> MessageStore::read_log(int64_t from_physical, MutableBytes into) {
  uint64_t from = static_cast<uint64_t>(from_physical);
  CommitLog& log = impl_->log_;
  if (from_physical < 0 || from < log.segments().first_base())
    co_return rmq::fail(Errc::not_found, "log offset");
  if (from >= log.written_offset()) co_return size_t{0};
  MutableBytes part = into.first(std::min<size_t>(into.size(), log.written_offset() - from));
  CO_TRY(co_await log.copy(from, part));
  co_return part.size();
}

}  // namespace rmq::store

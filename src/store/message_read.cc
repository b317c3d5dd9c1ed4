// The reading side of MessageStore: pulls, single records, times.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "proto/record.h"
#include "store/store_impl.h"

namespace rmq::store {

namespace {

constexpr int64_t scan_units_min = 800;  // 16,000 bytes of units, as RocketMQ scans at least

// Units of one queue, one after the other: from memory where they are there, else from a block of a file.
class UnitCursor {
 public:
  UnitCursor(QueueFiles& files, ConsumeQueue& q) : files_(files), q_(q) {}
  bool get(int64_t offset, QueueUnit& u) const {
    if (offset >= q_.tail_first) {
      u = decode_unit(q_.tail_unit(offset));
      return true;
    }
    if (!block_ || offset < block_->first || offset >= block_->first + block_->count) return false;
    u = decode_unit(block_->units.data() + static_cast<size_t>(offset - block_->first) * unit_bytes);
    return true;
  }
  Task<Result<void>> load(int64_t offset) {
    auto b = co_await files_.block_of(q_, offset);
    if (!b) co_return std::unexpected(b.error());
    block_ = std::move(*b);
    co_return Result<void>();
  }

 private:
  QueueFiles& files_;
  ConsumeQueue& q_;
  std::shared_ptr<UnitBlock> block_;
};

}  // namespace

bool MessageStore::Impl::in_memory(int64_t physical_offset) const {
  return log_.appended_offset() - static_cast<uint64_t>(physical_offset) <= options_.in_memory_distance_bytes;
}

bool MessageStore::Impl::batch_full(const GetMessageResult& r, const QueueUnit& u,
                                    int32_t max_messages) const {
  if (r.message_count == 0) return false;
  if (static_cast<int64_t>(r.message_count) + 1 > max_messages) return true;
  bool hot = in_memory(u.physical_offset);
  uint64_t bytes = r.byte_count + static_cast<uint64_t>(u.bytes);
  if (bytes > (hot ? options_.transfer_bytes_in_memory : options_.transfer_bytes_on_disk)) return true;
  return r.message_count + 1 > (hot ? options_.transfer_count_in_memory : options_.transfer_count_on_disk);
}

// Adds one record to the result; false: the filter does not want it.
Task<Result<bool>> MessageStore::Impl::add_record(GetMessageResult& r, QueueUnit u,
                                                  const MessageFilter* filter) {
  uint64_t at = static_cast<uint64_t>(u.physical_offset);
  size_t left = static_cast<size_t>(u.bytes);
  if (filter != nullptr && filter->needs_record()) {
    CO_TRY_VAR(whole, co_await log_.read(at, left));
    if (!filter->matches_record(whole.bytes())) co_return false;
  }
  while (left != 0) {
    CommitLog::Piece p = log_.in_memory(at, left);
    if (p.memory == nullptr) {
      stats_.get_misses++;
      CO_TRY(co_await log_.load(at));
      continue;
    }
    bool grown = !r.extents.empty() && r.extents.back().append(*p.memory, p.data, p.bytes);
    if (!grown) r.extents.emplace_back(*p.memory, p.data, p.bytes);
    at += p.bytes;
    left -= p.bytes;
  }
  r.message_count++;
  r.byte_count += static_cast<uint64_t>(u.bytes);
  co_return true;
}

Task<void> MessageStore::Impl::scan(GetMessageResult& r, ConsumeQueue& q, int64_t offset,
                                    int32_t max_messages, const MessageFilter* filter) {
  int64_t file_units = queue_files_.file_units();
  int64_t end = std::min({r.max_offset, offset - offset % file_units + file_units,
                          offset + std::max<int64_t>(scan_units_min, max_messages)});
  int64_t log_min = static_cast<int64_t>(log_.segments().first_base());
  UnitCursor units(queue_files_, q);
  r.status = GetMessageStatus::NO_MATCHED_MESSAGE;
  for (int64_t o = offset; o < end; o++) {
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
    if (batch_full(r, u, max_messages)) co_return;
    bool wanted = !is_blank(u) && u.bytes > 0 && u.physical_offset >= log_min;
    if (!wanted && r.message_count == 0) r.status = GetMessageStatus::MESSAGE_WAS_REMOVING;
    if (wanted && filter != nullptr && !filter->matches_tags_code(u.tags_code)) wanted = false;
    if (wanted) {
      auto added = co_await add_record(r, u, filter);
      if (!added) {
        if (r.message_count == 0) r.status = GetMessageStatus::OFFSET_FOUND_NULL;
        co_return;
      }
      if (*added) r.status = GetMessageStatus::FOUND;
    }
    r.next_begin_offset = o + 1;
  }
}

Task<GetMessageResult> MessageStore::Impl::get(std::string_view topic, int32_t queue_id, int64_t offset,
                                               int32_t max_messages, const MessageFilter* filter) {
  GetMessageResult r;
  stats_.gets++;
  QueueRef q(table_.find(topic, queue_id));
  if (!q || q->max_offset == 0) co_return r;
  r.min_offset = q->min_offset;
  r.max_offset = q->max_offset;
  r.next_begin_offset = offset;
  if (offset < r.min_offset) {
    r.status = GetMessageStatus::OFFSET_TOO_SMALL;
    r.next_begin_offset = r.min_offset;
  } else if (offset == r.max_offset) {
    r.status = GetMessageStatus::OFFSET_OVERFLOW_ONE;
  } else if (offset > r.max_offset) {
    r.status = GetMessageStatus::OFFSET_OVERFLOW_BADLY;
    r.next_begin_offset = r.max_offset;
  } else {
    co_await scan(r, *q, offset, max_messages, filter);
    stats_.get_messages += r.message_count;
    stats_.get_bytes += r.byte_count;
  }
  co_return r;
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
  if (!q || offset < q->min_offset || offset >= q->max_offset) co_return -1;
  auto t = co_await store_time_of(*q, offset);
  co_return t && *t >= 0 ? *t : -1;
}

// How many offsets lie on the left side: LOWER counts those stored before the time, UPPER those not after it.
Task<int64_t> MessageStore::Impl::search_offset(std::string_view topic, int32_t queue_id,
                                                int64_t timestamp_ms, Boundary b) {
  QueueRef q(table_.find(topic, queue_id));
  if (!q) co_return 0;
  const int64_t min = q->min_offset, max = q->max_offset;
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
  ConsumeQueue* q = impl_->table_.find(topic, queue_id);
  return q != nullptr ? q->min_offset : -1;
}
int64_t MessageStore::max_offset(std::string_view topic, int32_t queue_id) const {
  ConsumeQueue* q = impl_->table_.find(topic, queue_id);
  return q != nullptr ? q->max_offset : 0;
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
bool MessageStore::in_memory(int64_t physical_offset) const {
  return impl_->in_memory(physical_offset);
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

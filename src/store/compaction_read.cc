// Reading compacted queues: what was copied, by offset and by time.
#include <algorithm>

#include "proto/record.h"
#include "store/blocks.h"
#include "store/compaction.h"

namespace rmq::store {

namespace {
constexpr uint32_t chunk_units = 64;           // units that are looked at together
constexpr int64_t scan_units_max = 800;        // one get() looks at; as of other queues
constexpr uint64_t filter_cost_max = 500'000;  // ... and spends on filters
}  // namespace

// Some units of one file, and which of them are wanted.
struct Compaction::Chunk {
  CompactedFilePtr file;
  uint32_t index = 0;  // of the first of `units`
  std::vector<BatchUnit> units;
  size_t seen = 0;  // so many were judged
  std::vector<BatchUnit> wanted;
  uint64_t wanted_bytes = 0;
  bool full = false;  // the answer has no room for the next one
  uint64_t cost = 0;  // spent on filters
};

// The file that has the first unit with at least that offset, and where.
Task<Result<Compaction::Place>> Compaction::find_place(CompactedQueuePtr q, int64_t offset) {
  Place p;
  const std::vector<CompactedFilePtr> files = q->files;
  for (const CompactedFilePtr& f : files)
    if (f->units != 0 && f->last >= offset) {
      p.file = f;
      break;
    }
  if (p.file == nullptr) co_return p;
  CO_TRY_VAR(index, co_await find_batch_unit(disk_, p.file, offset));
  p.index = index;
  co_return p;
}

Task<Result<std::optional<BatchUnit>>> Compaction::unit_at(CompactedQueuePtr q, int64_t offset) {
  CO_TRY_VAR(place, co_await find_place(q, offset));
  if (place.file == nullptr) co_return std::optional<BatchUnit>();
  const Place p = place;
  CO_TRY_VAR(units, co_await read_batch_units(disk_, p.file, p.index, 1));
  co_return std::optional<BatchUnit>(units[0]);
}

Task<Result<Compaction::Neighbours>> Compaction::around(CompactedQueuePtr q, int64_t store_timestamp_ms) {
  Neighbours n;
  const std::vector<CompactedFilePtr> files = q->files;
  for (const CompactedFilePtr& f : files) {
    if (f->units == 0) continue;
    if (f->last_ms < store_timestamp_ms) {
      n.before = f->last;
      continue;
    }
    CO_TRY_VAR(found, co_await find_batch_unit_by_time(disk_, f, store_timestamp_ms));
    const uint32_t index = found;
    const uint32_t first = index == 0 ? 0 : index - 1;
    CO_TRY_VAR(units, co_await read_batch_units(disk_, f, first, index - first + 1));
    if (first != index) n.before = units.front().base_offset;
    n.from = units.back().base_offset;
    break;
  }
  co_return n;
}

bool Compaction::batch_full(const GetMessageResult& r, const Chunk& c, const BatchUnit& u,
                            int32_t max_messages) const {
  const size_t count = r.message_count + c.wanted.size() + 1;
  const uint64_t bytes = r.byte_count + c.wanted_bytes + static_cast<uint64_t>(u.bytes);
  if (count == 1) return false;
  return count > static_cast<size_t>(std::max(max_messages, 1)) ||
         count > options_.transfer_count_in_memory || bytes > options_.transfer_bytes_in_memory;
}

// Records that lie one behind the other, with one read.
Task<Result<void>> Compaction::add_run(Chunk& c, size_t from, size_t to, GetMessageResult& r,
                                       const MessageFilter* filter) {
  CO_TRY_VAR(log, co_await compacted_log_of(disk_, c.file));
  const std::shared_ptr<File> file = log;
  const auto begin = static_cast<uint64_t>(c.wanted[from].physical_offset);
  const BatchUnit& back = c.wanted[to - 1];
  const size_t bytes = static_cast<uint64_t>(back.physical_offset + back.bytes) - begin;
  LogMemory* memory = LogMemory::create(align_up(bytes), log_.memory_counter());
  const LogExtent hold(*memory, memory->data(), bytes);
  memory->unref();
  CO_TRY_VAR(n, co_await file->read(begin - c.file->base, MutableBytes(memory->data(), bytes)));
  if (n != bytes) co_return fail(Errc::corrupt, "a file of compactionLog ends too early");
  for (size_t i = from; i < to; i++) {
    const BatchUnit& u = c.wanted[i];
    const std::byte* at = memory->data() + (static_cast<uint64_t>(u.physical_offset) - begin);
    const Bytes record(at, static_cast<size_t>(u.bytes));
    auto v = proto::parse_record(record);
    if (!v || v->size != record.size() || v->queue_offset != u.base_offset)
      co_return fail(Errc::corrupt, "a record of compactionLog");
    if (filter != nullptr && filter->needs_record()) {
      c.cost += filter->record_cost();
      if (!filter->matches_copy(record)) continue;
    }
    const bool grown = !r.extents.empty() && r.extents.back().append(*memory, at, record.size());
    if (!grown) r.extents.emplace_back(*memory, at, record.size());
    r.message_count++;
    r.next_begin_offset = u.base_offset + 1;
    r.byte_count += record.size();
    r.status = GetMessageStatus::FOUND;
  }
  co_return Result<void>();
}

Task<Result<void>> Compaction::take_chunk(Chunk& c, GetMessageResult& r, int32_t max_messages,
                                          const MessageFilter* filter) {
  for (const BatchUnit& u : c.units) {
    if (!u.is_message()) co_return fail(Errc::corrupt, "a unit of compactionCq");
    c.full = batch_full(r, c, u, max_messages);
    if (c.full) break;
    c.seen++;
    if (filter != nullptr && !filter->matches_tags_code(u.tags_code)) continue;
    c.wanted_bytes += static_cast<uint64_t>(u.bytes);
    c.wanted.push_back(u);
  }
  for (size_t from = 0, to = 0; from < c.wanted.size(); from = to) {
    for (to = from + 1; to < c.wanted.size(); to++)
      if (c.wanted[to].physical_offset != c.wanted[to - 1].physical_offset + c.wanted[to - 1].bytes) break;
    CO_TRY(co_await add_run(c, from, to, r, filter));
  }
  if (c.seen != 0) r.next_begin_offset = c.units[c.seen - 1].base_offset + 1;
  co_return Result<void>();
}

Task<bool> Compaction::get(CompactedQueuePtr q, GetMessageResult& r, int32_t max_messages,
                           const MessageFilter* filter) {
  const int64_t copied = q->copied;
  r.status = GetMessageStatus::NO_MATCHED_MESSAGE;
  uint64_t cost = 0;
  for (int64_t scanned = 0; scanned < scan_units_max && cost < filter_cost_max && r.message_count == 0;) {
    auto place = co_await find_place(q, r.next_begin_offset);
    if (place && place->file == nullptr) {
      r.next_begin_offset = std::max(r.next_begin_offset, copied);
      co_return false;
    }
    Chunk c;
    Result<void> taken;
    if (!place) {
      taken = std::unexpected(place.error());
    } else {
      c.file = place->file;
      c.index = place->index;
      auto units =
          co_await read_batch_units(disk_, c.file, c.index, std::min(chunk_units, c.file->units - c.index));
      if (units)
        c.units = std::move(*units);
      else
        taken = std::unexpected(units.error());
    }
    if (taken) taken = co_await take_chunk(c, r, max_messages, filter);
    if (!taken) {  // the same offset again later: nobody may skip messages because a read failed
      if (r.message_count == 0) r.status = GetMessageStatus::OFFSET_FOUND_NULL;
      co_return true;
    }
    scanned += static_cast<int64_t>(c.seen);
    cost += c.cost;
    CompactedFile::Hint& hint = c.file->hints[c.file->next_hint++ % c.file->hints.size()];
    hint.offset = r.next_begin_offset;
    hint.index = c.index + static_cast<uint32_t>(c.seen);
  }
  co_return true;
}

}  // namespace rmq::store

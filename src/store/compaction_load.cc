// What the files of compacted topics hold, found out at a start.
#include <algorithm>

#include "store/blocks.h"
#include "store/compaction_files.h"
#include "store/config_file.h"

namespace rmq::store {

namespace {

constexpr uint32_t units_at_once = 1024;

// Units from some place on; beyond the end of the file they are none.
Task<Result<std::vector<BatchUnit>>> peek_units(File& queue, uint64_t index, uint32_t count) {
  std::vector<std::byte> bytes(count * batch_unit_bytes);
  CO_TRY_VAR(n, co_await queue.read(index * batch_unit_bytes, bytes));
  std::vector<BatchUnit> units(n / batch_unit_bytes);
  for (size_t i = 0; i < units.size(); i++) units[i] = decode_batch_unit(bytes.data() + i * batch_unit_bytes);
  units.resize(count);
  co_return std::move(units);
}

void forget_records(CompactedFile& f) {
  f.units = 0;
  f.end = 0;
  f.first = f.last = -1;
}

// How many units the file has: they are in front, one after the other.
Task<Result<uint32_t>> count_units(File& queue, uint64_t queue_bytes) {
  uint64_t lo = 0, hi = queue_bytes / batch_unit_bytes;
  while (lo < hi) {
    const uint64_t mid = lo + (hi - lo) / 2;
    CO_TRY_VAR(u, co_await peek_units(queue, mid, 1));
    if (u[0].is_message())
      lo = mid + 1;
    else
      hi = mid;
  }
  co_return static_cast<uint32_t>(lo);
}

bool lies_in(const BatchUnit& u, const CompactedFile& f) {
  const auto at = static_cast<uint64_t>(u.physical_offset);
  return u.is_message() && u.count == 1 && at >= f.base &&
         at + static_cast<uint64_t>(u.bytes) <= f.base + f.log_bytes;
}

bool belongs(const proto::RecordView& v, std::string_view topic, int32_t id) {
  return v.topic == topic && v.queue_id == id;
}

// RocketMQ writes another physical offset into the record, so that a CRC of the whole cannot be asked for.
Result<proto::RecordView> checked_record(Bytes record, std::string_view topic, int32_t id) {
  auto v = proto::parse_record(record, proto::CrcCheck::verify);
  if (v && !belongs(*v, topic, id)) return fail(Errc::corrupt, "a file of compactionLog has another queue's");
  return v;
}

Task<Result<void>> cut_behind(File& f, uint64_t from, uint64_t bytes) {
  CO_TRY(co_await f.truncate(from));
  CO_TRY(co_await f.truncate(bytes));
  co_return co_await f.sync();
}

}  // namespace

Task<Result<void>> measure_compacted_file(Disk& disk, CompactedFilePtr f, std::string_view topic,
                                          int32_t id) {
  forget_records(*f);
  CO_TRY_VAR(opened, co_await compacted_queue_of(disk, f));
  const std::shared_ptr<File> queue = opened;
  CO_TRY_VAR(count, co_await count_units(*queue, f->queue_bytes));
  const uint32_t units = count;
  if (units == 0) co_return Result<void>();
  CO_TRY_VAR(first, co_await peek_units(*queue, 0, 1));
  const BatchUnit front = first[0];
  CO_TRY_VAR(last, co_await peek_units(*queue, units - 1, 1));
  const BatchUnit back = last[0];
  if (!lies_in(front, *f) || !lies_in(back, *f) || back.base_offset < front.base_offset)
    co_return fail(Errc::corrupt, "units of a file of compactionCq");
  // One record stands for the file: it is this queue's, and where its unit says.
  CO_TRY_VAR(log, co_await compacted_log_of(disk, f));
  const std::shared_ptr<File> log_file = log;
  std::vector<std::byte> bytes(static_cast<size_t>(back.bytes));
  CO_TRY_VAR(n, co_await log_file->read(static_cast<uint64_t>(back.physical_offset) - f->base, bytes));
  auto v = checked_record(Bytes(bytes).first(n), topic, id);
  if (!v || v->queue_offset != back.base_offset) co_return fail(Errc::corrupt, "a file of compactionLog");
  f->took(front);
  f->units = units - 1;
  f->took(back);
  co_return Result<void>();
}

Task<Result<void>> mend_compacted_file(Disk& disk, CompactedFilePtr f, std::string_view topic, int32_t id) {
  forget_records(*f);
  CO_TRY_VAR(queue, co_await compacted_queue_of(disk, f));
  const std::shared_ptr<File> queue_file = queue;
  CO_TRY_VAR(log, co_await compacted_log_of(disk, f));
  const std::shared_ptr<File> log_file = log;
  CompactedReader reader(log_file, f->log_bytes);
  std::vector<BatchUnit> units;
  for (;;) {
    const uint64_t at = reader.position();
    if (f->units % units_at_once == 0) {
      CO_TRY_VAR(some, co_await peek_units(*queue_file, f->units, units_at_once));
      units = std::move(some);
    }
    const BatchUnit& u = units[f->units % units_at_once];
    if (!lies_in(u, *f)) break;
    CO_TRY_VAR(record, co_await reader.next());
    auto v = checked_record(record, topic, id);
    if (!v || u != compacted_unit_of(*v, static_cast<int64_t>(f->base + at)) || v->queue_offset <= f->last)
      break;
    f->took(u);
  }
  CO_TRY(co_await cut_behind(*log_file, f->end, f->log_bytes));
  co_return co_await cut_behind(*queue_file, f->units * batch_unit_bytes, f->queue_bytes);
}

Task<Result<void>> make_whole_again(Disk& disk, CompactedFilePtr f, CompactedPlace place) {
  const auto rounded = [](uint64_t least, uint64_t step) { return (least + step - 1) / step * step; };
  const uint64_t log_least = f->end + proto::blank_record_bytes;
  if (f->log_bytes < log_least) {
    f->log_bytes = rounded(log_least, place.log_file_bytes);
    CO_TRY_VAR(log, co_await compacted_log_of(disk, f));
    CO_TRY(co_await log->truncate(f->log_bytes));
    CO_TRY(co_await log->sync());
  }
  const uint64_t queue_least = (f->units + uint64_t(1)) * batch_unit_bytes;
  if (f->queue_bytes < queue_least) {
    f->queue_bytes = rounded(queue_least, place.queue_file_bytes);
    CO_TRY_VAR(queue, co_await compacted_queue_of(disk, f));
    CO_TRY(co_await queue->truncate(f->queue_bytes));
    CO_TRY(co_await queue->sync());
  }
  co_return Result<void>();
}

Task<Result<void>> remake_compacted_queue(Disk& disk, CompactedFilePtr f, std::string_view topic, int32_t id,
                                          bool torn) {
  forget_records(*f);
  CO_TRY_VAR(log, co_await compacted_log_of(disk, f));
  const std::shared_ptr<File> log_file = log;
  CompactedReader reader(log_file, f->log_bytes);
  std::string bytes;
  for (;;) {
    const uint64_t at = reader.position();
    CO_TRY_VAR(record, co_await reader.next());
    auto v = checked_record(record, topic, id);
    if (!v || v->queue_offset <= f->last) {
      const bool end = record.empty() && reader.ended_well();
      if (!end && !torn) co_return fail(Errc::corrupt, "a file of compactionLog");
      break;
    }
    const BatchUnit u = compacted_unit_of(*v, static_cast<int64_t>(f->base + at));
    bytes.resize(bytes.size() + batch_unit_bytes);
    encode_batch_unit(reinterpret_cast<std::byte*>(bytes.data() + bytes.size() - batch_unit_bytes), u);
    f->took(u);
  }
  CO_TRY(co_await make_parent_dirs(disk, f->queue_path));
  OpenHow how;
  how.write = how.create = how.truncate = true;
  auto made = co_await disk.open(f->queue_path, how);
  if (!made) co_return std::unexpected(made.error());
  f->queue = std::move(*made);
  const iovec all{bytes.data(), bytes.size()};
  if (!bytes.empty()) CO_TRY(co_await f->queue->write(0, std::span(&all, 1), Durability::none));
  CO_TRY(co_await f->queue->truncate(f->queue_bytes));
  CO_TRY(co_await f->queue->sync());
  co_return co_await disk.sync_dir(parent_of(f->queue_path));  // its units will say what is whole
}

}  // namespace rmq::store

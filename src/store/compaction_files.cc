#include "store/compaction_files.h"

#include <algorithm>

#include "base/check.h"
#include "store/config_file.h"
#include "store/format.h"
#include "uring/loop.h"

namespace rmq::store {

namespace {

constexpr size_t write_bytes = 1u << 20;  // records that are written together
constexpr size_t read_bytes = 1u << 20;   // of a log file at a time
constexpr size_t blank_bytes = proto::blank_record_bytes;

Task<Result<std::shared_ptr<File>>> open_shared(Disk& disk, std::string path, OpenHow how) {
  auto opened = co_await disk.open(std::move(path), how);
  if (!opened) co_return std::unexpected(opened.error());
  co_return std::shared_ptr<File>(std::move(*opened));
}

// Another may have opened it meanwhile.
Task<Result<std::shared_ptr<File>>> open_into(Disk& disk, CompactedFilePtr f,
                                              std::shared_ptr<File> CompactedFile::* which,
                                              std::string path) {
  f->used_ns = Loop::current().now_ns();
  std::shared_ptr<File>& slot = (*f).*which;
  if (slot == nullptr) {
    OpenHow how;
    how.write = true;
    auto opened = co_await open_shared(disk, std::move(path), how);
    if (slot == nullptr && !opened) co_return opened;
    if (slot == nullptr) slot = std::move(*opened);
  }
  co_return slot;
}

Task<Result<void>> write_all(File& f, uint64_t at, Bytes bytes, Durability d) {
  const iovec v{const_cast<std::byte*>(bytes.data()), bytes.size()};
  co_return co_await f.write(at, std::span(&v, 1), d);
}

}  // namespace

void CompactedFile::took(const BatchUnit& u) {
  if (units == 0) {
    first = u.base_offset;
    first_ms = u.store_timestamp_ms;
  }
  last = u.base_offset;
  last_ms = u.store_timestamp_ms;
  units++;
  end = static_cast<uint64_t>(u.physical_offset) - base + static_cast<uint64_t>(u.bytes);
}

Task<Result<std::shared_ptr<File>>> compacted_log_of(Disk& disk, CompactedFilePtr f) {
  return open_into(disk, f, &CompactedFile::log, f->log_path);
}
Task<Result<std::shared_ptr<File>>> compacted_queue_of(Disk& disk, CompactedFilePtr f) {
  return open_into(disk, f, &CompactedFile::queue, f->queue_path);
}

// ---- units -------------------------------------------------------------------------------------------

Task<Result<std::vector<BatchUnit>>> read_batch_units(Disk& disk, CompactedFilePtr f, uint32_t index,
                                                      uint32_t count) {
  CO_TRY_VAR(opened, co_await compacted_queue_of(disk, f));
  const std::shared_ptr<File> file = opened;
  std::vector<std::byte> bytes(count * batch_unit_bytes);
  CO_TRY_VAR(n, co_await file->read(index * batch_unit_bytes, bytes));
  if (n != bytes.size()) co_return fail(Errc::corrupt, "a file of compactionCq ends too early");
  std::vector<BatchUnit> units(count);
  for (uint32_t i = 0; i < count; i++) units[i] = decode_batch_unit(bytes.data() + i * batch_unit_bytes);
  co_return std::move(units);
}

namespace {
// The first unit for which `at_least` holds; it holds for all behind it.
template <class F>
Task<Result<uint32_t>> lower_bound(Disk& disk, CompactedFilePtr f, F at_least) {
  uint32_t lo = 0, hi = f->units;
  while (lo < hi) {
    const uint32_t mid = lo + (hi - lo) / 2;
    CO_TRY_VAR(u, co_await read_batch_units(disk, f, mid, 1));
    if (at_least(u[0]))
      hi = mid;
    else
      lo = mid + 1;
  }
  co_return lo;
}
}  // namespace

Task<Result<uint32_t>> find_batch_unit(Disk& disk, CompactedFilePtr f, int64_t offset) {
  if (offset <= f->first) co_return 0u;
  if (offset > f->last) co_return f->units;
  for (const CompactedFile::Hint& h : f->hints)
    if (h.offset == offset) co_return h.index;
  auto found =
      co_await lower_bound(disk, f, [offset](const BatchUnit& u) { return u.base_offset >= offset; });
  co_return found;
}

Task<Result<uint32_t>> find_batch_unit_by_time(Disk& disk, CompactedFilePtr f, int64_t store_timestamp_ms) {
  auto found = co_await lower_bound(disk, f, [store_timestamp_ms](const BatchUnit& u) {
    return u.store_timestamp_ms >= store_timestamp_ms;
  });
  co_return found;
}

// ---- reading records ---------------------------------------------------------------------------------

// Whether so many bytes are there from position_ on, after reading more where they are not.
Task<Result<bool>> CompactedReader::have(size_t bytes) {
  if (rest().size() >= bytes) co_return true;
  if (position_ + bytes > end_) co_return false;
  std::copy(buffer_.begin() + static_cast<ptrdiff_t>(at_), buffer_.begin() + static_cast<ptrdiff_t>(filled_),
            buffer_.begin());
  filled_ -= at_;
  at_ = 0;
  buffer_.resize(
      std::max({buffer_.size(), bytes, static_cast<size_t>(std::min<uint64_t>(end_, read_bytes))}));
  const size_t want = std::min<uint64_t>(buffer_.size() - filled_, end_ - position_ - filled_);
  CO_TRY_VAR(n, co_await file_->read(position_ + filled_, MutableBytes(buffer_).subspan(filled_, want)));
  filled_ += n;
  filled_to_ += n;
  co_return filled_ >= bytes;
}

Task<Result<Bytes>> CompactedReader::next() {
  CO_TRY_VAR(head, co_await have(blank_bytes));
  if (!head) co_return Bytes();
  const auto front = proto::record_front(rest());
  if (!front || !front->is_message() || front->size < proto::record_bytes_min) co_return Bytes();
  const size_t size = front->size;
  CO_TRY_VAR(whole, co_await have(size));
  if (!whole) co_return Bytes();
  const Bytes record = rest().first(size);
  at_ += size;
  position_ += size;
  co_return record;
}

bool CompactedReader::ended_well() const {
  const auto front = proto::record_front(rest());
  return !front || front->is_blank() || (front->size == 0 && front->magic == 0);
}

// ---- writing -----------------------------------------------------------------------------------------

void CompactionWriter::resume(CompactedFilePtr last) {
  file_ = std::move(last);
  records_.clear();
  units_.clear();
  waiting_.clear();
}

bool CompactionWriter::fits(size_t bytes) const {
  if (file_ == nullptr) return false;
  const bool has_unit = file_->units + waiting_.size() < compaction_units_max(file_->queue_bytes);
  return has_unit && file_->end + records_.size() + bytes + blank_bytes <= file_->log_bytes;
}

// A record that no file could take gets one that is long enough.
Task<Result<void>> CompactionWriter::next_file(size_t record_bytes) {
  if (file_ == nullptr) CO_TRY(co_await make_parent_dirs(disk_, place_.log_dir + "/x"));
  if (file_ == nullptr) CO_TRY(co_await make_parent_dirs(disk_, place_.queue_dir + "/x"));
  const uint64_t step = place_.log_file_bytes;
  auto f = std::make_shared<CompactedFile>();
  f->base = file_ == nullptr ? 0 : file_->base + file_->log_bytes;
  f->log_bytes = (record_bytes + blank_bytes + step - 1) / step * step;
  f->queue_bytes = place_.queue_file_bytes;
  f->log_path = place_.log_dir + "/" + file_name_20(f->base);
  f->queue_path = place_.queue_dir + "/" + file_name_20(f->base);
  OpenHow how;
  how.write = how.create = how.truncate = true;
  CO_TRY_VAR(log, co_await open_shared(disk_, f->log_path, how));
  f->log = log;
  CO_TRY(co_await f->log->truncate(f->log_bytes));
  if (durability_ == Durability::on_media) {
    CO_TRY(co_await f->log->sync());
    CO_TRY(co_await disk_.sync_dir(place_.log_dir));  // before the other has a name
  }
  CO_TRY_VAR(queue, co_await open_shared(disk_, f->queue_path, how));
  f->queue = queue;
  CO_TRY(co_await f->queue->truncate(f->queue_bytes));
  if (durability_ == Durability::on_media) {
    CO_TRY(co_await f->queue->sync());
    CO_TRY(co_await disk_.sync_dir(place_.queue_dir));
  } else {
    unsynced_.push_back(f);
  }
  file_ = f;
  new_.push_back(std::move(f));
  co_return Result<void>();
}

Task<Result<void>> CompactionWriter::add(Bytes record, const proto::RecordView& view) {
  if (!fits(record.size())) {
    if (file_ != nullptr) CO_TRY(co_await seal());
    CO_TRY(co_await next_file(record.size()));
  }
  const BatchUnit u =
      compacted_unit_of(view, static_cast<int64_t>(file_->base + file_->end + records_.size()));
  records_.insert(records_.end(), record.begin(), record.end());
  units_.resize(units_.size() + batch_unit_bytes);
  encode_batch_unit(units_.data() + units_.size() - batch_unit_bytes, u);
  waiting_.push_back(u);
  if (records_.size() >= write_bytes) CO_TRY(co_await flush());
  co_return Result<void>();
}

Task<Result<void>> CompactionWriter::flush() {
  if (waiting_.empty()) co_return Result<void>();
  CO_TRY_VAR(log, co_await compacted_log_of(disk_, file_));
  const std::shared_ptr<File> log_file = log;
  CO_TRY_VAR(queue, co_await compacted_queue_of(disk_, file_));
  const std::shared_ptr<File> queue_file = queue;
  CO_TRY(co_await write_all(*log_file, file_->end, records_, durability_));
  CO_TRY(co_await write_all(*queue_file, file_->units * batch_unit_bytes, units_, durability_));
  for (const BatchUnit& u : waiting_) file_->took(u);
  records_.clear();
  units_.clear();
  waiting_.clear();
  co_return Result<void>();
}

Task<Result<void>> CompactionWriter::seal() {
  if (file_ == nullptr) co_return Result<void>();
  CO_TRY(co_await flush());
  CO_TRY_VAR(log, co_await compacted_log_of(disk_, file_));
  const std::shared_ptr<File> log_file = log;
  CO_TRY_VAR(queue, co_await compacted_queue_of(disk_, file_));
  const std::shared_ptr<File> queue_file = queue;
  std::array<std::byte, blank_bytes> blank;
  proto::encode_blank_record(blank, static_cast<uint32_t>(file_->log_bytes - file_->end));
  CO_TRY(co_await write_all(*log_file, file_->end, blank, durability_));
  std::array<std::byte, batch_unit_bytes> unit;
  encode_batch_unit(unit.data(), batch_end_unit);
  co_return co_await write_all(*queue_file, file_->units * batch_unit_bytes, unit, durability_);
}

Task<Result<void>> CompactionWriter::sync() {
  if (unsynced_.empty()) co_return Result<void>();
  for (const CompactedFilePtr& f : unsynced_) {
    CO_TRY(co_await f->log->sync());
    CO_TRY(co_await f->queue->sync());
  }
  unsynced_.clear();
  CO_TRY(co_await disk_.sync_dir(place_.log_dir));
  co_return co_await disk_.sync_dir(place_.queue_dir);
}

}  // namespace rmq::store

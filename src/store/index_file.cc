#include "store/index_file.h"

#include "base/check.h"
#include "uring/loop.h"

namespace rmq::store {

namespace {
constexpr size_t rebuild_entries = 10'000;  // in one read, and between two turns of the loop

int64_t now_ns() {
  return std::max<int64_t>(Loop::current().now_ns(), 1);
}
}  // namespace

IndexFile::IndexFile(Disk& disk, const std::string& dir, uint64_t name, IndexLayout layout, StoreStats& stats)
    : disk_(disk),
      path_(dir + "/" + index_name(name)),
      dir_(dir),
      name_(name),
      layout_(layout),
      stats_(stats),
      slots_(layout) {}

Task<Result<void>> IndexFile::create() {
  CO_TRY_VAR(file, co_await disk_.open(path_, {.write = true, .create = true, .truncate = true}));
  file_ = std::move(file);
  CO_TRY(co_await file_->truncate(layout_.file_bytes()));  // sparse
  CO_TRY(co_await file_->sync());
  CO_TRY(co_await disk_.sync_dir(dir_));
  CO_TRY(slots_.map(true));
  tail_first_ = header_.count;
  readable_ = true;
  co_return Result<void>();
}

Task<Result<void>> IndexFile::open_file(bool all_zero) {
  CO_TRY_VAR(file, co_await disk_.open(path_, {.write = true}));
  file_ = std::move(file);
  CO_TRY(slots_.map(all_zero));
  tail_first_ = header_.count;
  co_return Result<void>();
}

Task<Result<void>> IndexFile::open() {
  CO_TRY(co_await open_file(false));
  readable_ = true;
  co_return Result<void>();
}

// Some neighbouring entries into the slots.
Result<void> IndexFile::chain(Bytes entries, int32_t first, int64_t& last_physical) {
  for (size_t i = 0; i < entries.size() / index_entry_bytes; i++) {
    IndexEntry e = decode_index_entry(entries.data() + i * index_entry_bytes);
    bool sane =
        e.hash >= 0 && e.seconds >= 0 && e.physical >= last_physical && e.physical <= header_.end_physical;
    if (!sane) return fail(Errc::corrupt, "an entry of an index file makes no sense");
    uint32_t slot = layout_.slot_of(e.hash);
    if (slots_.get(slot) != e.previous) return fail(Errc::corrupt, "a chain of an index file is broken");
    slots_.set(slot, first + static_cast<int32_t>(i), now_ns());
    last_physical = e.physical;
  }
  return {};
}

Task<Result<void>> IndexFile::rebuild(const bool& stop) {
  CO_TRY(co_await open_file(true));
  std::vector<std::byte> buf;
  int64_t last_physical = header_.begin_physical;
  for (int32_t n = 1; n < header_.count;) {
    if (stop) co_return fail(Errc::cancelled, "the store is stopping");
    size_t count = std::min(rebuild_entries, static_cast<size_t>(header_.count - n));
    buf.resize(count * index_entry_bytes);
    CO_TRY_VAR(got, co_await file_->read(layout_.entry_at(n), buf));
    if (got != buf.size()) co_return fail(Errc::corrupt, "an index file ends too early");
    CO_TRY(chain(buf, n, last_physical));
    n += static_cast<int32_t>(count);
  }
  if (header_.count > 1 && last_physical != header_.end_physical)
    co_return fail(Errc::corrupt, "an index file ends with another message");
  slots_.mark_all_dirty(now_ns());
  readable_ = true;
  co_return Result<void>();
}

Task<Result<void>> IndexFile::load_slot(int32_t hash) {
  return slots_.load(*file_, layout_.slot_of(hash), now_ns());
}

void IndexFile::put(int32_t hash, int64_t physical, int64_t store_timestamp_ms) {
  check(!full());
  uint32_t slot = layout_.slot_of(hash);
  int32_t previous = slots_.get(slot);
  if (previous < 0 || previous >= header_.count) previous = 0;  // RocketMQ's files may have such
  if (header_.count == 1) {
    header_.begin_timestamp_ms = store_timestamp_ms;
    header_.begin_physical = physical;
  }
  int64_t seconds = (store_timestamp_ms - header_.begin_timestamp_ms) / 1000;
  IndexEntry e{hash, physical, static_cast<int32_t>(std::clamp<int64_t>(seconds, 0, INT32_MAX)), previous};
  size_t at = tail_.size();
  tail_.resize(at + index_entry_bytes);
  encode_index_entry(tail_.data() + at, e);
  slots_.set(slot, header_.count, now_ns());
  header_.count++;
  if (previous == 0) header_.used_slots++;
  header_.end_timestamp_ms = store_timestamp_ms;
  header_.end_physical = physical;
}

Task<Result<void>> IndexFile::write_tail() {
  if (tail_.empty()) co_return Result<void>();
  check(writing_.empty());
  writing_ = std::move(tail_);
  tail_ = {};
  uint64_t at = layout_.entry_at(tail_first_);
  tail_first_ += static_cast<int32_t>(writing_.size() / index_entry_bytes);
  iovec v{writing_.data(), writing_.size()};
  auto r = co_await file_->write(at, std::span(&v, 1), Durability::none);
  stats_.index_write_bytes += writing_.size();
  writing_ = {};
  co_return r;
}

Task<Result<void>> IndexFile::trim(int64_t untouched_since_ns) {
  co_return co_await slots_.write(*file_, untouched_since_ns, true);
}

Task<Result<void>> IndexFile::write_header() {
  std::byte bytes[index_header_bytes];
  encode_index_header(bytes, header_);
  iovec v{bytes, sizeof bytes};
  co_return co_await file_->write(0, std::span(&v, 1), Durability::none);
}

Task<Result<void>> IndexFile::sync(bool slots) {
  CO_TRY(co_await write_tail());
  if (slots) CO_TRY(co_await slots_.write(*file_, INT64_MAX, false));
  CO_TRY(co_await write_header());
  auto r = co_await file_->sync();
  sync_failed_ = sync_failed_ || !r;
  co_return r;
}

Task<void> IndexFile::end_writing() {
  if (file_ != nullptr) co_await file_->close();
  file_.reset();
  slots_.unmap();
}

bool IndexFile::slot_in_memory(int32_t hash, int32_t& number) const {
  uint32_t slot = layout_.slot_of(hash);
  if (!slots_.has(slot)) return false;
  number = slots_.get(slot);
  return true;
}

bool IndexFile::entry_in_memory(int32_t number, IndexEntry& e) const {
  int32_t writing_first = tail_first_ - static_cast<int32_t>(writing_.size() / index_entry_bytes);
  if (number < writing_first) return false;
  const std::vector<std::byte>& v = number < tail_first_ ? writing_ : tail_;
  int32_t first = number < tail_first_ ? writing_first : tail_first_;
  size_t at = static_cast<size_t>(number - first) * index_entry_bytes;
  if (at >= v.size()) return false;
  e = decode_index_entry(v.data() + at);
  return true;
}

}  // namespace rmq::store

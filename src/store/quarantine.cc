// Damage that the operator wants to serve around (damagedLog = QUARANTINE). The bytes are copied to a file of
// their own, <root>/quarantine/<20 digits of the offset>, and their place in the log becomes records that
// nobody sees: rolled back transaction messages, which neither we nor the Java broker put into any queue. So
// every later walk over the log, ours or Java's, finds whole records there. Units of the queues whose
// messages are lost become blanks. A crash at any moment leaves damage, of which the rest is quarantined at
// the next start.
#include <algorithm>
#include <cstring>

#include "proto/record.h"
#include "store/blocks.h"
#include "store/recovery.h"

namespace rmq::store {

namespace {

constexpr size_t piece_bytes = 1u << 20;
constexpr std::string_view quarantine_topic = "RMQ_SYS_QUARANTINE";

// `bytes` of the log that are one record.
void fill(MutableBytes out, uint64_t physical, int64_t store_ms) {
  proto::RecordFields f;
  f.topic =
      quarantine_topic.substr(0, std::min(quarantine_topic.size(), out.size() - proto::record_bytes_min));
  f.sys_flag = proto::sys_flag::transaction_rollback;
  f.physical_offset = static_cast<int64_t>(physical);
  f.born_timestamp_ms = f.store_timestamp_ms = store_ms;
  const std::vector<std::byte> nothing(out.size() - proto::record_bytes_min - f.topic.size());
  f.body = nothing;
  check(proto::record_size(f) == out.size());
  proto::encode_record(f, out);
}

}  // namespace

bool Recovery::is_set_aside(const proto::RecordView& v) {
  return proto::sys_flag::transaction_of(v.sys_flag) == proto::sys_flag::transaction_rollback &&
         v.properties.empty() && quarantine_topic.starts_with(v.topic);
}

// Copies [from, to) of the log; nothing when a start before this one has done it.
Task<Result<void>> Recovery::keep_bytes(LogWalker& w, uint64_t from, uint64_t to) {
  const std::string dir = root_ + "/quarantine", path = dir + "/" + file_name_20(from);
  CO_TRY(co_await disk_.make_dirs(dir));
  CO_TRY(co_await disk_.sync_dir(root_));
  const OpenHow how{.write = true, .create = true, .exclusive = true};
  auto opened = co_await disk_.open(path, how);
  if (!opened && opened.error().code == Errc::exists) co_return Result<void>();
  if (!opened) co_return std::unexpected(opened.error());
  std::unique_ptr<File> file = std::move(*opened);
  Result<void> r;
  for (uint64_t p = from; p < to && r;) {
    auto b = co_await w.view(p, std::min<uint64_t>(piece_bytes, to - p));
    if (!b) r = std::unexpected(b.error());
    if (!b || b->empty()) break;
    Bytes part = b->first(std::min<size_t>(b->size(), to - p));
    iovec v{const_cast<std::byte*>(part.data()), part.size()};
    r = co_await file->write(p - from, {&v, 1}, Durability::none);
    p += part.size();
  }
  if (r) r = co_await file->sync();
  co_await file->close();
  CO_TRY(r);
  co_return co_await disk_.sync_dir(dir);
}

// Writes over [physical, physical + bytes.size()) of one file, whose other bytes stay.
Task<Result<void>> Recovery::overwrite(uint64_t physical, Bytes bytes) {
  std::shared_ptr<Segment> s = log_.segments().find(physical);
  const uint64_t begin = align_down(physical), end = align_up(physical + bytes.size());
  LogMemory* m = LogMemory::create(end - begin, log_.memory_counter());
  auto got = co_await s->file->read(begin - s->base, {m->data(), m->bytes()});
  Result<void> r;
  if (!got)
    r = std::unexpected(got.error());
  else if (*got != m->bytes())
    r = fail(Errc::corrupt, "a commitlog file ends too early");
  if (r) {
    std::memcpy(m->data() + (physical - begin), bytes.data(), bytes.size());
    iovec v{m->data(), m->bytes()};
    r = co_await s->file->write(begin - s->base, {&v, 1}, Durability::on_media);
  }
  m->unref();
  co_return r;
}

// From pos_ to the next valid record in its file, or to the end of the file.
Task<Result<void>> Recovery::quarantine(LogWalker& w) {
  const uint64_t file_bytes = log_.segments().file_bytes();
  const uint64_t file_end = pos_ - pos_ % file_bytes + file_bytes;
  valid_behind_ = 0;
  CO_TRY(co_await search_record(w, pos_ + 1, file_end));
  const uint64_t to = valid_behind_ != 0 ? valid_behind_ : file_end;
  valid_behind_ = 0;
  if (to != file_end && to - pos_ <= proto::record_bytes_min)
    co_return fail(Errc::corrupt, "the damage is smaller than any record: it cannot be quarantined");
  CO_TRY(co_await keep_bytes(w, pos_, to));
  if (to == file_end) {
    std::vector<std::byte> mark(proto::blank_record_bytes);
    proto::encode_blank_record(mark, static_cast<uint32_t>(to - pos_));
    CO_TRY(co_await overwrite(pos_, mark));
  }
  for (uint64_t p = pos_; p < to && to != file_end;) {
    uint64_t n = to - p > 2 * piece_bytes ? piece_bytes : to - p;
    std::vector<std::byte> record(n);
    fill(record, p, last_store_ms_);
    CO_TRY(co_await overwrite(p, record));
    p += n;
  }
  w.forget();
  quarantined_ = true;
  stats_.recovery.quarantined_ranges++;
  stats_.recovery.quarantined_bytes += to - pos_;
  if (progress_ != nullptr) progress_->on_quarantine(static_cast<int64_t>(pos_), static_cast<int64_t>(to));
  co_return Result<void>();
}

// Nothing valid follows below the durable end: what there is goes aside, and the log ends here.
Task<Result<void>> Recovery::quarantine_tail(LogWalker& w) {
  if (nonzero_end_ > pos_) CO_TRY(co_await keep_bytes(w, pos_, nonzero_end_));
  const int64_t end = std::max<int64_t>(own_->log_durable, static_cast<int64_t>(nonzero_end_));
  stats_.recovery.quarantined_ranges++;
  stats_.recovery.quarantined_bytes += static_cast<uint64_t>(end) - pos_;
  if (progress_ != nullptr) progress_->on_quarantine(static_cast<int64_t>(pos_), end);
  co_return Result<void>();
}

}  // namespace rmq::store

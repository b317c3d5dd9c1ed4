#include "store/segments.h"

#include "base/check.h"

namespace rmq::store {

SegmentSet::SegmentSet(Disk& disk, std::string dir, uint64_t file_bytes, StoreStats& stats)
    : disk_(disk), dir_(std::move(dir)), file_bytes_(file_bytes), stats_(stats) {}

std::string SegmentSet::path_of(uint64_t base) const {
  return dir_ + "/" + file_name_20(base);
}

std::shared_ptr<Segment> SegmentSet::find(uint64_t physical) const {
  if (files_.empty() || physical < files_.front()->base) return nullptr;
  uint64_t i = (physical - files_.front()->base) / file_bytes_;
  return i < files_.size() ? files_[i] : nullptr;
}

Task<Result<std::unique_ptr<File>>> SegmentSet::open_file(std::string path, OpenHow how) {
  auto f = co_await disk_.open(path, how);
  if (f || f.error().code != Errc::unsupported || !how.direct) co_return f;
  stats_.direct_io = false;  // through the page cache then; every write is still synced as asked
  how.direct = false;
  co_return co_await disk_.open(std::move(path), how);
}

Task<Result<std::unique_ptr<File>>> SegmentSet::open_file(uint64_t base, bool create) {
  const OpenHow how{.write = true, .create = create, .direct = stats_.direct_io};
  co_return co_await open_file(path_of(base), how);
}

// Reserved in full, or at least of full size where the file system cannot reserve.
Task<Result<void>> SegmentSet::make_whole(File& f) {
  auto r = co_await f.allocate(0, file_bytes_);
  if (!r && r.error().code == Errc::unsupported) r = co_await f.truncate(file_bytes_);
  co_return r;
}

Error SegmentSet::lost(uint64_t begin, uint64_t end, const char* why) {
  lost_ = Lost{begin, end};
  return Error{Errc::corrupt, 0, why};
}

Task<Result<void>> SegmentSet::load(DamagedLog gaps, uint64_t durable_end) {
  const bool bridge_gaps = gaps == DamagedLog::QUARANTINE;
  CO_TRY(co_await disk_.make_dirs(dir_));
  CO_TRY(co_await remove_bridges());
  CO_TRY_VAR(entries, co_await disk_.list(dir_));
  std::vector<DirEntry> logs;
  uint64_t base = 0;
  for (auto& e : entries)
    if (!e.is_dir && parse_file_name_20(e.name, base)) logs.push_back(e);
  for (size_t i = 0; i < logs.size(); i++) {
    bool last = i + 1 == logs.size();
    parse_file_name_20(logs[i].name, base);
    if (last && logs[i].bytes == 0) {
      CO_TRY(co_await disk_.remove(path_of(base)));
      break;
    }
    const bool cut_short = !last && logs[i].bytes < file_bytes_;
    uint64_t next_base = 0;
    if (!last) parse_file_name_20(logs[i + 1].name, next_base);
    // All names are as they must be: it is not that the configured size is another one.
    const bool lost_end = cut_short && base % file_bytes_ == 0 && next_base % file_bytes_ == 0;
    if (lost_end && !bridge_gaps)
      co_return std::unexpected(lost(base + logs[i].bytes, next_base, "a commitlog file is cut short"));
    if (logs[i].bytes > file_bytes_ || (cut_short && !lost_end) || base % file_bytes_ != 0)
      co_return fail(Errc::unsupported, "the size of a commitlog file is not mappedFileSizeCommitLog");
    if (!files_.empty() && base != end_base() && bridge_gaps) CO_TRY(co_await bridge_to(base));
    if (!files_.empty() && base != end_base())
      co_return std::unexpected(lost(end_base(), base, "a commitlog file is missing"));
    auto s = std::make_shared<Segment>();
    s->base = base;
    CO_TRY_VAR(file, co_await open_file(base, false));
    s->file = std::move(file);
    if (lost_end) {
      Result<void> bridged = co_await bridge(base, s->file.get(), logs[i].bytes);
      co_await s->file->close();
      CO_TRY(bridged);
      continue;
    }
    if (logs[i].bytes < file_bytes_) CO_TRY(co_await make_whole(*s->file));
    files_.push_back(std::move(s));
  }
  if (files_.empty()) co_return Result<void>();
  if (bridge_gaps && durable_end > end_base()) CO_TRY(co_await bridge_to(durable_end));
  // A process that was killed may have made the last one and not synced it or its name yet.
  CO_TRY(co_await files_.back()->file->sync());
  co_return co_await disk_.sync_dir(dir_);
}

Task<Result<void>> SegmentSet::create_whole(uint64_t base) {
  CO_TRY_VAR(file, co_await open_file(base, true));
  CO_TRY(co_await make_whole(*file));
  CO_TRY(co_await file->sync());
  CO_TRY(co_await disk_.sync_dir(dir_));
  auto s = std::make_shared<Segment>();
  s->base = base;
  s->file = std::move(file);
  files_.push_back(std::move(s));
  co_return Result<void>();
}

Task<Result<void>> SegmentSet::create(uint64_t base) {
  check(files_.empty() || base == end_base());
  auto r = co_await create_whole(base);
  if (r) co_return r;
  auto removed = co_await disk_.remove(path_of(base));
  (void)removed;  // it may not even exist
  co_return r;
}

Task<Result<void>> SegmentSet::cut(uint64_t end) {
  // From the last file down, each durable before the next: no crash leaves a gap.
  while (!files_.empty() && files_.back()->base >= end && files_.size() > 1) {
    std::shared_ptr<Segment> s = files_.back();
    files_.pop_back();
    co_await s->file->close();
    CO_TRY(co_await disk_.remove(path_of(s->base)));
    CO_TRY(co_await disk_.sync_dir(dir_));
  }
  std::shared_ptr<Segment> s = find(end);
  if (s == nullptr) co_return Result<void>();  // the last file is full
  CO_TRY(co_await s->file->truncate(end - s->base));
  CO_TRY(co_await make_whole(*s->file));
  co_return co_await s->file->sync();
}

Task<Result<void>> SegmentSet::remove_front(int64_t wait_ns, Event& stop) {
  // An unlink that power loss takes back, before one that it does not, would be a gap in the log.
  if (names_unsure_) co_return fail(Errc::io, "the directory of the CommitLog could not be synced before");
  if (doomed_ == nullptr) {
    check(files_.size() > 1);
    doomed_ = files_.front();
    files_.pop_front();
  }
  // Who lets go of a file last pays for freeing its blocks. That should be the unlink, which the kernel runs
  // on a thread of its own.
  const int64_t until_ns = Loop::current().now_ns() + wait_ns;
  while (doomed_.use_count() > 1 && Loop::current().now_ns() < until_ns && !stop.is_set())
    co_await stop.wait_for(5 * ns_per_ms);
  if (doomed_.use_count() == 1) co_await doomed_->file->close();
  auto removed = co_await disk_.remove(path_of(doomed_->base));
  if (!removed && removed.error().code != Errc::not_found) co_return removed;
  auto synced = co_await disk_.sync_dir(dir_);
  if (!synced) names_unsure_ = true;
  doomed_.reset();
  co_return synced;
}

Task<void> SegmentSet::close() {
  if (doomed_ != nullptr) co_await doomed_->file->close();
  doomed_.reset();
  for (auto& s : files_) co_await s->file->close();
  files_.clear();
}

}  // namespace rmq::store

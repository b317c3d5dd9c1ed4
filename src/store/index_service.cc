#include "store/index_service.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "store/log_walker.h"

namespace rmq::store {

namespace {

constexpr size_t read_again_bytes = 1u << 20;  // of the log, between two turns
constexpr size_t records_read_max = 1024;      // ... and as many records
constexpr size_t entries_per_turn = 2048;
constexpr size_t hashes_soon = 8192;  // then entries are made without a pause
constexpr size_t prefetch_ahead = 8;
constexpr int64_t producers_first_ns = 2 * ns_per_ms;
constexpr int64_t retry_min_ns = ns_per_s, retry_max_ns = 60 * ns_per_s;
constexpr uint64_t discards_max = 3;  // more in one process: the disk lies, no use in going on

int64_t now_ns() {
  return Loop::current().now_ns();
}

uint64_t name_for(int64_t wall_ms) {
  std::string digits = format_wall_digits(wall_ms);
  uint64_t n = 0;
  auto [end, err] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  check(err == std::errc());
  return n;
}

}  // namespace

IndexService::IndexService(Disk& disk, const StoreOptions& o, StoreStats& stats, CommitLog& log)
    : disk_(disk),
      options_(o),
      stats_(stats),
      log_(log),
      dir_(o.root + "/index"),
      layout_{o.index_slots, o.index_entries},
      state_file_(disk, o.root) {}

void IndexService::start(uint64_t confirmed, Inherited inherited) {
  confirmed_ = confirmed;
  inherited_ = inherited;
  if (stats_.recovery.quarantined_ranges != 0) found_damaged("messages that it knows were set aside");
  if (enabled()) tasks_.spawn(run());
}

Task<bool> IndexService::stop(bool abandon) {
  abandoned_ = abandon;
  stopping_ = true;
  work_.set();
  soon_.set();
  stop_.set();
  progress_.notify();
  co_await tasks_.join();
  Result<void> safe;
  const bool saves = !abandon && healthy_;
  if (saves) safe = co_await save(true);
  if (saves && !safe) stats_.index_failures++;  // the next start goes on from the last state that was saved
  if (!abandon && (!saves || !safe)) safe = co_await disown();
  co_await let_go();
  co_await state_file_.close();
  co_return safe.has_value();
}

Task<void> IndexService::let_go() {
  live_ = false;
  healthy_ = false;
  waiting_.clear();
  indexed_ = 0;  // look-ups wait
  std::deque<std::shared_ptr<IndexFile>> files = std::move(files_);
  files_.clear();
  for (auto& f : files) {
    f->set_readable(false);  // a look-up may still hold it
    co_await f->end_writing();
    if (f->sync_failed()) co_await forget_unsafe(f->path());
  }
}

// The kernel takes its pages for written although they are not, whoever reads or syncs the file now.
Task<void> IndexService::forget_unsafe(std::string path) {
  auto removed = co_await disk_.remove(path);
  if (removed) removed = co_await disk_.sync_dir(dir_);
  if (!removed) tell("an index file that could not be synced cannot be removed");
}

Task<void> IndexService::run() {
  int64_t wait_ns = retry_min_ns;
  while (!stopping_) {
    auto r = co_await attempt();
    if (stopping_) co_return;
    check(!r);
    co_await let_go();
    if (damage_ != nullptr) continue;
    stats_.index_failures++;
    if (listener_ != nullptr) listener_->on_index_failed(r.error());
    progress_.notify();
    co_await stop_.wait_for(wait_ns);
    wait_ns = std::min(wait_ns * 2, retry_max_ns);
  }
}

// Ends well only when the store stops.
Task<Result<void>> IndexService::attempt() {
  CO_TRY(co_await load());
  inherited_.stopped_in_order = false;  // from now on the files are ours
  healthy_ = true;
  progress_.notify();
  auto r = co_await follow();
  if (!r) healthy_ = false;
  co_return r;
}

// ---- following the log ---------------------------------------------------------------------------------

void IndexService::confirmed(uint64_t to) {
  confirmed_ = to;
  if (!enabled()) return;
  if (waiting_.hashes.size() > index_hashes_waiting_max) {
    live_ = false;
    waiting_.clear();
  }
  if (work_.has_waiters()) work_.notify();
  if (waiting_.hashes.size() >= hashes_soon && soon_.has_waiters()) soon_.notify();
}

Task<Result<void>> IndexService::follow() {
  Batch batch;
  for (;;) {
    if (damage_ != nullptr) co_return fail(Errc::corrupt, damage_);
    while (!live_ && !stopping_ && damage_ == nullptr) {
      if (indexed_ < confirmed_)
        CO_TRY(co_await read_again(confirmed_));
      else
        live_ = true;  // nothing was suspended since: the next record comes from its put
    }
    if (live_ && indexed_ < confirmed_) {
      batch.clear();
      std::swap(batch, waiting_);
      CO_TRY(co_await link(batch, confirmed_));
    }
    if (stopping_) co_return Result<void>();
    CO_TRY(co_await upkeep());
    if (!stopping_ && damage_ == nullptr) co_await pause();
  }
}

Task<void> IndexService::pause() {
  if (indexed_ == confirmed_ && live_) {
    IndexFile* f = writing_file();
    bool more_to_do = has_unsaved() || (f != nullptr && f->slots_in_use());
    int64_t interval_ms = std::min(options_.checkpoint_interval_ms, options_.index_idle_ms);
    int64_t until = more_to_do ? now_ns() + interval_ms * ns_per_ms : no_deadline;
    co_await work_.wait_until(until);
  }
  if (live_ && !hurry_ && !stopping_) co_await soon_.wait_for(index_pause_ns);
  hurry_ = false;
}

IndexFile* IndexService::writing_file() const {
  return !files_.empty() && files_.back()->is_writing() ? files_.back().get() : nullptr;
}

bool IndexService::can_put(int32_t hash) const {
  IndexFile* f = writing_file();
  return f != nullptr && !f->full() && f->has_slot(hash);
}

// The first one after a start always comes here, as no slot is in memory then.
Task<Result<void>> IndexService::make_ready(int32_t hash) {
  if (state_is_clean_) CO_TRY(co_await save(false));
  IndexFile* f = writing_file();
  if (f == nullptr || f->full()) CO_TRY(co_await next_file());
  f = writing_file();
  if (!f->has_slot(hash)) CO_TRY(co_await f->load_slot(hash));
  co_return Result<void>();
}

// Makes the entries of records that end at `end`.
Task<Result<void>> IndexService::link(const Batch& b, uint64_t end) {
  size_t at = 0;
  for (const Record& r : b.records) {
    for (uint32_t i = 0; i < r.keys; i++, at++) {
      int32_t hash = b.hashes[at];
      if (!can_put(hash)) CO_TRY(co_await make_ready(hash));
      IndexFile& f = *files_.back();
      if (at + prefetch_ahead < b.hashes.size()) f.prefetch(b.hashes[at + prefetch_ahead]);
      f.put(hash, r.physical, r.store_timestamp_ms);
      if (at % entries_per_turn == entries_per_turn - 1) co_await Yield{};
    }
  }
  check(at == b.hashes.size());
  stats_.index_entries += at;
  indexed_ = end;
  progress_.notify();
  co_return Result<void>();
}

Task<Result<void>> IndexService::next_file() {
  IndexHeader begin;
  if (!files_.empty()) {
    IndexFile& last = *files_.back();
    if (last.is_writing()) {
      CO_TRY(co_await last.sync(true));
      co_await last.end_writing();
    }
    // As RocketMQ does it; the first entry sets them anew.
    begin.begin_timestamp_ms = begin.end_timestamp_ms = last.header().end_timestamp_ms;
    begin.begin_physical = begin.end_physical = last.header().end_physical;
  }
  last_name_ = std::max(name_for(Loop::current().wall_ms()), last_name_ + 1);
  auto f = std::make_shared<IndexFile>(disk_, dir_, last_name_, layout_, stats_);
  f->set_header(begin);
  files_.push_back(f);
  co_return co_await f->create();
}

// ---- from the log itself -------------------------------------------------------------------------------

Task<Result<void>> IndexService::read_again(uint64_t to) {
  LogWalker w(log_.segments(), stats_, log_.memory_counter());
  Batch b;
  uint64_t at = indexed_;
  while (at < to && !stopping_ && damage_ == nullptr) {
    const uint64_t from = at, puts = log_.appended_offset();
    b.clear();
    while (at < to && at - from < read_again_bytes && b.records.size() < records_read_max)
      CO_TRY(co_await take_record(w, at, to, b));
    CO_TRY(co_await link(b, at));
    CO_TRY(co_await upkeep());
    bool others = log_.appended_offset() != puts;
    if (others)
      co_await stop_.wait_for(producers_first_ns);
    else
      co_await Yield{};
  }
  co_return Result<void>();
}

Task<Result<void>> IndexService::take_record(LogWalker& w, uint64_t& at, uint64_t to, Batch& b) {
  SegmentSet& segments = log_.segments();
  if (at < segments.first_base()) {
    at = segments.first_base();
    co_return Result<void>();
  }
  const uint64_t left = segments.file_bytes() - at % segments.file_bytes();
  CO_TRY_VAR(head, co_await w.view(at, proto::record_bytes_min));
  auto front = proto::record_front(head);
  if (front && front->is_blank() && front->size == left) {
    at += left;
    co_return Result<void>();
  }
  bool whole = front && front->is_message() && front->size <= std::min(left, to - at);
  if (whole) {
    CO_TRY_VAR(bytes, co_await w.view(at, front->size));
    auto record = proto::parse_record(bytes, proto::CrcCheck::skip);
    if (record && record->physical_offset == static_cast<int64_t>(at)) {
      uint32_t keys = 0;
      if (is_indexed(record->sys_flag))
        keys = each_index_hash(record->topic, stored_properties(record->properties),
                               [&](int32_t hash) { b.hashes.push_back(hash); });
      b.records.push_back({record->physical_offset, record->store_timestamp_ms, keys});
      at += record->size;
      co_return Result<void>();
    }
  }
  if (at < segments.first_base()) co_return Result<void>();  // the file was deleted meanwhile
  tell("a CommitLog file has no record where one should be: the keys in the rest of it are not indexed");
  at = std::min(at + left, to);
  co_return Result<void>();
}

// ---- upkeep --------------------------------------------------------------------------------------------

Task<Result<void>> IndexService::upkeep() {
  IndexFile* f = writing_file();
  if (f != nullptr && f->tail_bytes() >= index_tail_bytes_max) CO_TRY(co_await f->write_tail());
  if (has_unsaved() && now_ns() - saved_ns_ >= options_.checkpoint_interval_ms * ns_per_ms)
    CO_TRY(co_await save(false));
  const int64_t idle_ns = options_.index_idle_ms * ns_per_ms;
  if (f != nullptr && f->slots_in_use() && now_ns() - trimmed_ns_ >= idle_ns / 2) {
    trimmed_ns_ = now_ns();
    CO_TRY(co_await f->trim(trimmed_ns_ - idle_ns));
  }
  co_return Result<void>();
}

IndexState IndexService::state_now(bool clean) const {
  IndexState s;
  s.clean = clean;
  s.layout = layout_;
  s.indexed = static_cast<int64_t>(indexed_);
  size_t sealed = files_.size();
  if (IndexFile* f = writing_file()) {
    s.newest = f->name();
    s.newest_header = f->header();
    sealed--;
  }
  size_t first = sealed > index_state_sealed_max ? sealed - index_state_sealed_max : 0;
  s.sealed_complete = first == 0;
  for (size_t i = first; i < sealed; i++)
    s.sealed.push_back({files_[i]->name(), files_[i]->header().end_physical});
  return s;
}

Task<Result<void>> IndexService::save(bool clean) {
  if (IndexFile* f = writing_file()) CO_TRY(co_await f->sync(clean));
  // The index must never know more than the log after a crash.
  if (log_.flushed_offset() < indexed_) CO_TRY(co_await log_.sync());
  list_changed_ = false;
  IndexState s = state_now(clean);
  CO_TRY(co_await state_file_.save(s));
  saved_ = static_cast<uint64_t>(s.indexed);
  saved_ns_ = now_ns();
  state_is_clean_ = clean;
  co_return Result<void>();
}

// ---- others --------------------------------------------------------------------------------------------

Task<void> IndexService::caught_up() {
  const uint64_t target = confirmed_;
  const int64_t deadline_ns = now_ns() + index_look_up_wait_ns;
  while (enabled() && indexed_ < target && !stopping_) {
    hurry_ = true;
    work_.notify();
    soon_.notify();
    bool in_time = co_await progress_.wait_until(deadline_ns);
    if (!in_time) co_return;
  }
}

Task<void> IndexService::complete() {
  const uint64_t target = confirmed_, failures = stats_.index_failures;
  while (enabled() && indexed_ < target && !stopping_ && stats_.index_failures == failures) {
    hurry_ = true;
    co_await progress_.wait();
  }
}

void IndexService::found_damaged(const char* reason) {
  if (damage_ != nullptr || stats_.index_discards >= discards_max) return;
  damage_ = reason;
  hurry_ = true;
  work_.notify();
  soon_.notify();
}

Task<Result<void>> IndexService::delete_before(int64_t physical, std::vector<std::string>* deleted) {
  while (healthy_ && files_.size() > 1 && files_.front()->header().end_physical < physical) {
    std::string path = files_.front()->path();
    files_.pop_front();
    list_changed_ = true;
    auto removed = co_await disk_.remove(path);
    if (!removed && removed.error().code != Errc::not_found) co_return removed;
    deleted->push_back(std::move(path));
  }
  if (list_changed_) work_.notify();
  co_return Result<void>();
}

std::optional<int64_t> IndexService::sealed_timestamp_ms() const {
  if (!healthy_) return std::nullopt;
  for (size_t i = files_.size(); i-- > 0;)
    if (!files_[i]->is_writing()) return files_[i]->header().end_timestamp_ms;
  return 0;
}

void IndexService::tell(const char* reason) {
  if (listener_ != nullptr)
    listener_->on_index_damaged(reason);
  else
    untold_ = reason;
}

void IndexService::set_listener(FailureListener* l) {
  listener_ = l;
  if (l == nullptr || untold_ == nullptr) return;
  l->on_index_damaged(untold_);
  untold_ = nullptr;
}

}  // namespace rmq::store

#include "store/commit_log.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "proto/record.h"
#include "store/blocks.h"

namespace rmq::store {

namespace {
constexpr uint64_t block = disk_block_bytes;
constexpr uint64_t long_read_bytes = 128u << 10;  // a longer read counts among the long ones
// When at least this much was appended since the last long read, messages come in and long reads rest.
constexpr uint64_t busy_append_bytes = 16u << 10;
// ... as many times as long as the read took: in proportion to what came in for each byte read, within these.
constexpr uint64_t rest_times_per_byte = 20, rest_times_max = 10;
constexpr int64_t rest_max_ns = 50 * ns_per_ms;
size_t chunk_bytes_for(uint64_t file_bytes) {
  return std::gcd<uint64_t>(file_bytes, log_chunk_bytes_max);
}
}  // namespace

LogOwner::~LogOwner() = default;

CommitLog::CommitLog(Disk& disk, const StoreOptions& o, StoreStats& stats, LogOwner& owner)
    : options_(o),
      stats_(stats),
      owner_(owner),
      segments_(disk, o.commit_log_dir, o.commit_log_file_bytes, stats),
      cache_(chunk_bytes_for(o.commit_log_file_bytes), o.memory_bytes),
      bounce_(LogMemory::create(block, cache_.live_counter())) {}

CommitLog::~CommitLog() {
  std::free(scratch_);
  bounce_->unref();
  if (zeros_ != nullptr) zeros_->unref();
}

Task<Result<void>> CommitLog::begin_at(uint64_t end, uint64_t zeroed_to) {
  if (segments_.find(end) == nullptr) {
    auto made = co_await segments_.create(end);
    if (!made) co_return made;
  }
  append_ = written_ = flushed_ = append_at_long_read_ = end;
  append_segment_ = segments_.find(end);
  file_end_ = append_segment_->base + segments_.file_bytes();
  zeroed_ = std::max(zeroed_to, align_up(end));
  cache_.set_written(end);
  uint64_t index = cache_.index_of(end);
  uint64_t begin = index * cache_.chunk_bytes();
  if (end != begin) {
    LogMemory& m = cache_.open_tail(index);
    MutableBytes into(m.data(), align_up(end - begin));
    auto n = co_await append_segment_->file->read(begin - append_segment_->base, into);
    if (!n) co_return std::unexpected(n.error());
    if (*n != into.size()) co_return fail(Errc::corrupt, "a commitlog file ends too early");
  }
  last_put_ns_ = Loop::current().now_ns();
  plan_prepare();
  co_return Result<void>();
}

void CommitLog::start(Scope& tasks) {
  tasks.spawn(flush_loop());
  tasks.spawn(prepare_loop());
  if (options_.flush == FlushDiskType::ASYNC_FLUSH) tasks.spawn(sync_loop());
}

Task<Result<void>> CommitLog::stop() {
  while (!failed_ && written_ < append_) co_await drained_.wait();
  Result<void> r = failed_ ? fail(Errc::io, "the log could not be written") : Result<void>();
  if (r) r = co_await sync();
  stopping_ = true;
  stop_.set();
  flush_work_.set();
  prepare_work_.set();
  co_return r;
}

Task<void> CommitLog::close() {
  co_await segments_.close();
}

void CommitLog::fail_log(const Error& e) {
  if (failed_) return;
  failed_ = true;
  drained_.notify();
  owner_.log_failed(e);
}

// ---- appending ---------------------------------------------------------------------------------------

CommitLog::Room CommitLog::room_for(size_t bytes, bool urgent) {
  if (append_ != written_ && append_ - written_ + bytes > options_.unflushed_bytes_max) return Room::wait;
  bool fits = append_ + bytes + proto::blank_record_bytes <= file_end_;
  if (fits || segments_.end_base() > file_end_) return Room::ok;
  want_next_file_ = true;
  want_urgently_ = want_urgently_ || urgent;
  prepare_work_.set();
  if (next_file_ == Room::no_space) owner_.log_stuck(true);
  return urgent && !tried_urgently_ ? Room::wait : next_file_;
}

LogMemory& CommitLog::tail_memory(uint64_t physical) {
  uint64_t index = cache_.index_of(physical);
  LogMemory* m = cache_.tail(index);
  return m != nullptr ? *m : cache_.open_tail(index);
}

void CommitLog::copy_in(uint64_t physical, Bytes from) {
  while (!from.empty()) {
    size_t at = physical % cache_.chunk_bytes();
    size_t n = std::min(from.size(), cache_.chunk_bytes() - at);
    std::memcpy(tail_memory(physical).data() + at, from.data(), n);
    physical += n;
    from = from.subspan(n);
  }
}

// Ends the current file with a blank record. The rest of its last chunk becomes zero, as in the file.
void CommitLog::seal_file(uint64_t file_end) {
  std::byte blank[proto::blank_record_bytes];
  proto::encode_blank_record(blank, static_cast<uint32_t>(file_end - append_));
  copy_in(append_, blank);
  append_segment_->data_end = append_ + sizeof blank;
  append_segment_->last_put_ns = last_put_ns_;
  size_t at = append_segment_->data_end % cache_.chunk_bytes();
  if (at != 0) std::memset(tail_memory(append_segment_->data_end).data() + at, 0, cache_.chunk_bytes() - at);
  append_ = file_end;
  append_segment_ = segments_.find(append_);
  file_end_ = append_ + segments_.file_bytes();
  want_next_file_ = want_urgently_ = false;
  prepare_at_ = 0;  // what is to be prepared was planned for the file that is full now
}

int64_t CommitLog::open_run(size_t bytes) {
  if (append_ + bytes + proto::blank_record_bytes > file_end_) seal_file(file_end_);
  return static_cast<int64_t>(append_);
}

MutableBytes CommitLog::record_memory(size_t bytes) {
  size_t at = append_ % cache_.chunk_bytes();
  if (at + bytes <= cache_.chunk_bytes()) {
    scratch_used_ = 0;
    return {tail_memory(append_).data() + at, bytes};
  }
  if (scratch_bytes_ < bytes) {
    std::free(scratch_);
    scratch_bytes_ = align_up(bytes);
    scratch_ = static_cast<std::byte*>(std::malloc(scratch_bytes_));
    check(scratch_ != nullptr);
  }
  scratch_used_ = bytes;
  return {scratch_, bytes};
}

void CommitLog::appended(size_t bytes) {
  if (scratch_used_ != 0) {
    check(scratch_used_ == bytes);
    copy_in(append_, {scratch_, bytes});
  }
  append_ += bytes;
  last_put_ns_ = Loop::current().now_ns();
  if (append_ >= prepare_at_) prepare_work_.set();
}

// ---- writing -----------------------------------------------------------------------------------------

bool CommitLog::next_batch(Batch& b) {
  if (written_ >= append_) return false;
  b.segment = segments_.find(written_);
  check(b.segment != nullptr);
  uint64_t data_end = std::min(append_, b.segment->data_end);
  b.begin = align_down(written_);
  b.end = std::min(data_end, b.begin + log_write_bytes_max);
  b.puts = stats_.puts;
  return true;
}

void CommitLog::fill_iovecs(const Batch& b) {
  iovecs_.clear();
  uint64_t full_end = align_down(b.end);
  for (uint64_t p = b.begin; p < full_end;) {
    size_t at = p % cache_.chunk_bytes();
    size_t n = std::min<uint64_t>(full_end - p, cache_.chunk_bytes() - at);
    iovecs_.push_back({tail_memory(p).data() + at, n});
    p += n;
  }
  if (full_end == b.end) return;
  size_t n = b.end - full_end;
  std::memcpy(bounce_->data(), tail_memory(full_end).data() + full_end % cache_.chunk_bytes(), n);
  std::memset(bounce_->data() + n, 0, block - n);
  iovecs_.push_back({bounce_->data(), block});
}

Task<Result<void>> CommitLog::write_batch(const Batch& b) {
  bool sync_flush = options_.flush == FlushDiskType::SYNC_FLUSH;
  Durability d = sync_flush ? Durability::on_media : Durability::none;
  co_return co_await b.segment->file->write(b.begin - b.segment->base, iovecs_, d);
}

void CommitLog::batch_written(const Batch& b) {
  stats_.batch_messages.add(b.puts - std::exchange(counted_puts_, b.puts));
  stats_.batch_bytes.add(b.end > written_ ? b.end - written_ : 0);
  written_ = b.end == b.segment->data_end ? b.segment->base + segments_.file_bytes() : b.end;
  zeroed_ = std::max(zeroed_, align_up(written_));
  if (options_.flush == FlushDiskType::SYNC_FLUSH) flushed_ = written_;
  cache_.set_written(written_);
  stats_.log_writes++;
  stats_.log_write_bytes += align_up(b.end) - b.begin;
}

Task<void> CommitLog::flush_loop() {
  Batch b;
  for (;;) {
    while (!failed_ && !next_batch(b)) {
      drained_.notify();
      if (stopping_) co_return;
      co_await flush_work_.wait();
    }
    if (failed_) co_return;
    if (align_up(b.end) > zero_busy_from_) {  // rare: appends have caught up with the zeros
      co_await zero_done_.wait();
      continue;
    }
    fill_iovecs(b);
    int64_t began_ns = Loop::current().clock().mono_ns();
    auto r = co_await write_batch(b);
    if (!r) {
      fail_log(r.error());
      co_return;
    }
    stats_.log_write.add_ns(Loop::current().clock().mono_ns() - began_ns);
    batch_written(b);
    owner_.log_advanced();
  }
}

Task<Result<void>> CommitLog::sync() {
  co_await sync_one_.acquire();
  uint64_t target = written_;
  Result<void> r;
  // After a sync that failed the kernel takes for written what is not: the next one would succeed.
  if (failed_) r = fail(Errc::io, "the log could not be written");
  while (r && flushed_ < target) {
    std::shared_ptr<Segment> s = segments_.find(flushed_);
    r = co_await s->file->sync();
    stats_.log_syncs++;
    if (r) flushed_ = std::max(flushed_, std::min(target, s->base + segments_.file_bytes()));
  }
  sync_one_.release();
  if (!r)
    fail_log(r.error());
  else
    owner_.log_advanced();
  co_return r;
}

Task<void> CommitLog::sync_loop() {
  while (!stop_.is_set() && !failed_) {
    if (append_ == flushed_) {
      co_await flush_work_.wait();  // an append: then its time begins
      if (stop_.is_set()) co_return;
    }
    bool stopped = co_await stop_.wait_for(options_.flush_interval_ms * ns_per_ms);
    if (stopped) co_return;
    auto r = co_await sync();
    if (!r) co_return;
  }
}

// ---- ahead of the end --------------------------------------------------------------------------------

bool CommitLog::needs_next_file() const {
  bool half_full = file_end_ - append_ <= segments_.file_bytes() / 2;
  return segments_.end_base() == file_end_ && (half_full || want_next_file_);
}

bool CommitLog::needs_zeros() const {
  uint64_t from = std::max(zeroed_, align_up(append_));
  return from < segments_.end_base() && from - append_ < options_.zero_ahead_bytes;
}

// Half of the zeros are used up, or half of the file: whatever appending reaches first.
void CommitLog::plan_prepare() {
  uint64_t at = UINT64_MAX;
  if (segments_.end_base() == file_end_) at = file_end_ - segments_.file_bytes() / 2;
  if (options_.zero_ahead_bytes != 0 && zeroed_ < segments_.end_base()) {
    uint64_t half = options_.zero_ahead_bytes / 2;
    at = std::min(at, zeroed_ > half ? zeroed_ - half : 0);
  }
  prepare_at_ = at;
}

Task<void> CommitLog::create_next() {
  const bool urgent = want_urgently_;
  bool may = co_await owner_.log_may_grow(urgent);
  Result<void> r = may ? Result<void>() : fail(Errc::no_space, "the reserve of the disk");
  if (may) r = co_await segments_.create(file_end_);
  next_file_ = r ? Room::wait : r.error().code == Errc::no_space ? Room::no_space : Room::no_file;
  tried_urgently_ = urgent && !r;
  if (r) owner_.log_stuck(false);
  owner_.log_advanced();
  if (!r) {
    bool stopped = co_await stop_.wait_for(ns_per_s);  // a full disk may get better
    (void)stopped;
  }
}

Task<void> CommitLog::zero_step() {
  if (zeros_ == nullptr) {
    zeros_ = LogMemory::create(zero_buffer_bytes, cache_.live_counter());
    std::memset(zeros_->data(), 0, zeros_->bytes());
  }
  uint64_t from = std::max(zeroed_, align_up(append_));
  // Overtaken by appends: leave them some room, or each would wait for zeros that it overwrites at once.
  bool overtaken = from != zeroed_ && append_ != written_;
  if (overtaken && from + zero_step_bytes < file_end_) from += zero_step_bytes;
  std::shared_ptr<Segment> s = segments_.find(from);
  uint64_t to = std::min({from + zero_step_bytes, s->base + segments_.file_bytes(),
                          align_up(append_ + std::max(options_.zero_ahead_bytes, from - append_ + block))});
  std::vector<iovec> v;
  for (uint64_t p = from; p < to; p += zero_buffer_bytes)
    v.push_back({zeros_->data(), std::min<uint64_t>(zero_buffer_bytes, to - p)});
  zero_busy_from_ = from;
  auto r = co_await s->file->write(from - s->base, v, Durability::on_media);
  zero_busy_from_ = UINT64_MAX;
  zero_done_.notify();
  if (!r) {
    fail_log(r.error());
    co_return;
  }
  zeroed_ = std::max(zeroed_, to);
  stats_.zeroed_bytes += to - from;
}

Task<void> CommitLog::prepare_loop() {
  while (!stopping_ && !failed_) {
    if (needs_next_file()) {
      co_await create_next();
      continue;
    }
    if (needs_zeros()) {
      co_await zero_step();
      // Commits come first: the further the zeros are ahead, the longer the pause.
      bool near = zeroed_ < append_ + options_.zero_ahead_bytes / 4;
      bool stopped = co_await stop_.wait_for(near ? 0 : 5 * ns_per_ms);
      if (stopped) co_return;
      continue;
    }
    plan_prepare();
    prepare_work_.reset();
    if (append_ >= prepare_at_) continue;
    co_await prepare_work_.wait();
  }
}

// ---- reading -----------------------------------------------------------------------------------------

std::shared_ptr<CommitLog::Loading> CommitLog::loading_at(uint64_t physical) const {
  auto it = loading_.upper_bound(physical);
  if (it == loading_.begin()) return nullptr;
  --it;
  return physical < it->second->end ? it->second : nullptr;
}

Task<Result<void>> CommitLog::read_run(uint64_t physical, uint64_t end) {
  uint64_t begin = align_down(physical);
  std::shared_ptr<Segment> s = segments_.find(begin);
  if (s == nullptr) co_return fail(Errc::not_found, "commitlog file");
  end = std::min({align_up(end), begin + log_read_bytes_max, s->base + segments_.file_bytes()});
  end = cache_.absent_until(begin, end);
  if (auto next = loading_.upper_bound(begin); next != loading_.end()) end = std::min(end, next->first);
  check(begin < end);
  auto loading = std::make_shared<Loading>();
  loading->end = end;
  loading_.emplace(begin, loading);
  LogMemory* m = cache_.take(end - begin);
  auto n = co_await s->file->read(begin - s->base, {m->data(), m->bytes()});
  loading_.erase(begin);
  loading->done.set();
  stats_.log_reads++;
  if (!n || *n != m->bytes()) {
    cache_.drop(m);
    if (!n) co_return std::unexpected(n.error());
    co_return fail(Errc::corrupt, "a commitlog file ends too early");
  }
  stats_.log_read_bytes += *n;
  cache_.insert(begin, m);
  co_return Result<void>();
}

void CommitLog::plan_rest(int64_t began_ns, uint64_t read_bytes) {
  const uint64_t appended = append_ - append_at_long_read_;
  append_at_long_read_ = append_;
  if (appended < busy_append_bytes) return;
  const int64_t now_ns = Loop::current().clock().mono_ns();
  const uint64_t times = std::clamp(appended * rest_times_per_byte / std::max<uint64_t>(read_bytes, 1),
                                    uint64_t(1), rest_times_max);
  const int64_t rest_ns = std::min((now_ns - began_ns) * int64_t(times), rest_max_ns);
  long_reads_rest_until_ns_ = std::max(long_reads_rest_until_ns_, now_ns) + rest_ns;
}

Task<Result<void>> CommitLog::load(uint64_t physical, uint64_t end) {
  end = std::max(end, physical + 1);
  const bool is_long = end - physical > long_read_bytes;
  Semaphore& slots = is_long ? long_reads_ : short_reads_;
  while (in_memory(physical, 1).memory == nullptr) {
    if (std::shared_ptr<Loading> other = loading_at(physical)) {
      co_await other->done.wait();
      continue;  // it may have failed, or be evicted again
    }
    bool waited = !slots.try_acquire();
    if (waited) co_await slots.acquire();
    if (is_long && Loop::current().now_ns() < long_reads_rest_until_ns_) {
      waited = true;
      co_await sleep_until(long_reads_rest_until_ns_);
    }
    if (waited && (in_memory(physical, 1).memory != nullptr || loading_at(physical) != nullptr)) {
      slots.release();
      continue;
    }
    const int64_t began_ns = Loop::current().clock().mono_ns();
    const uint64_t read_before = stats_.log_read_bytes;
    auto r = co_await read_run(physical, end);
    if (is_long) plan_rest(began_ns, stats_.log_read_bytes - read_before);
    slots.release();
    if (!r) co_return r;
  }
  co_return Result<void>();
}

// Within one chunk's place, past the cache.
Task<Result<void>> CommitLog::read_part(uint64_t physical, MutableBytes into) {
  std::shared_ptr<Segment> s = segments_.find(physical);
  if (s == nullptr) co_return fail(Errc::not_found, "commitlog file");
  uint64_t begin = align_down(physical), end = align_up(physical + into.size());
  LogMemory* m = LogMemory::create(end - begin, cache_.live_counter());
  auto got = co_await s->file->read(begin - s->base, {m->data(), m->bytes()});
  stats_.log_reads++;
  bool whole = got && *got == m->bytes();
  if (whole) std::memcpy(into.data(), m->data() + (physical - begin), into.size());
  m->unref();
  if (!got) co_return std::unexpected(got.error());
  if (!whole) co_return fail(Errc::corrupt, "a commitlog file ends too early");
  stats_.log_read_bytes += end - begin;
  co_return Result<void>();
}

Task<Result<void>> CommitLog::copy(uint64_t physical, MutableBytes into) {
  while (!into.empty()) {
    Piece p = in_memory(physical, into.size());
    size_t n = p.bytes;
    if (p.memory != nullptr) {
      std::memcpy(into.data(), p.data, n);
    } else {
      n = std::min(into.size(), cache_.chunk_bytes() - physical % cache_.chunk_bytes());
      n = cache_.absent_until(physical, physical + n) - physical;
      co_await short_reads_.acquire();
      auto r = co_await read_part(physical, into.first(n));
      short_reads_.release();
      if (!r) co_return r;
    }
    physical += n;
    into = into.subspan(n);
  }
  co_return Result<void>();
}

Task<Result<LogExtent>> CommitLog::read(uint64_t physical, size_t bytes) {
  Piece p = in_memory(physical, bytes);
  if (p.memory != nullptr && p.bytes == bytes) co_return LogExtent(*p.memory, p.data, bytes);
  LogMemory* m = LogMemory::create(align_up(bytes), cache_.live_counter());
  auto r = co_await copy(physical, {m->data(), bytes});
  if (!r) {
    m->unref();
    co_return std::unexpected(r.error());
  }
  LogExtent e(*m, m->data(), bytes);
  m->unref();
  co_return e;
}

}  // namespace rmq::store

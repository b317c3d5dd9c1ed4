#include "store/log_walker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/blocks.h"

namespace rmq::store {

namespace {
constexpr size_t piece_bytes_max = 2u << 20;
constexpr size_t pieces_ahead = 4;
// In front of each piece: there the beginning of a record goes that lies across its start.
constexpr size_t slack_bytes = 64u << 10;
}  // namespace

struct LogWalker::Piece {
  Piece(uint64_t at, size_t n, LogMemory* m) : begin(at), bytes(n), memory(m) {}
  ~Piece() {
    if (memory != nullptr) memory->unref();
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  uint64_t end() const { return begin + bytes; }
  std::byte* data() const { return memory->data() + slack_bytes; }
  const uint64_t begin;
  const size_t bytes;
  LogMemory* memory;
  bool good = false;
  Event done;
};

LogWalker::LogWalker(SegmentSet& segments, StoreStats& stats, std::shared_ptr<std::atomic<uint64_t>> live,
                     Scope* ahead)
    : segments_(segments), stats_(stats), live_(std::move(live)), scope_(ahead) {}

LogWalker::~LogWalker() {
  if (memory_ != nullptr) memory_->unref();
  for (LogMemory* m : spare_) m->unref();
}

size_t LogWalker::piece_bytes() const {
  return std::min<uint64_t>(piece_bytes_max, segments_.file_bytes());
}

Task<void> LogWalker::read_piece(std::shared_ptr<Segment> s, std::shared_ptr<Piece> p) {
  auto got = co_await s->file->read(p->begin - s->base, {p->data(), p->bytes});
  p->good = got && *got == p->bytes;  // else whoever needs it reads again, and sees the error
  p->done.set();
}

void LogWalker::plan_ahead() {
  uint64_t from = ahead_.empty() ? begin_ + filled_ : ahead_.back()->end();
  while (ahead_.size() < pieces_ahead) {
    std::shared_ptr<Segment> s = segments_.find(from);
    if (s == nullptr) return;
    LogMemory* m = nullptr;
    if (!spare_.empty()) {
      m = spare_.back();
      spare_.pop_back();
    } else {
      m = LogMemory::create(slack_bytes + piece_bytes(), live_);
    }
    const size_t bytes = std::min<uint64_t>(piece_bytes(), s->base + segments_.file_bytes() - from);
    ahead_.push_back(std::make_shared<Piece>(from, bytes, m));
    scope_->spawn(read_piece(s, ahead_.back()));
    from += bytes;
  }
}

void LogWalker::set_window(LogMemory* m, const std::byte* data, uint64_t begin, size_t bytes) {
  if (memory_ != nullptr && memory_ != m) {
    if (scope_ != nullptr && memory_->bytes() == slack_bytes + piece_bytes() && spare_.size() < pieces_ahead)
      spare_.push_back(memory_);
    else
      memory_->unref();
  }
  memory_ = m;
  data_ = data;
  begin_ = begin;
  filled_ = bytes;
}

// The last `tail` bytes of the window, which begin at `physical`, and the first pieces become one window.
// False: one of them could not be read.
bool LogWalker::join(uint64_t physical, size_t tail, size_t pieces) {
  size_t bytes = tail;
  for (size_t i = 0; i < pieces; i++) {
    bytes += ahead_[i]->bytes;
    if (!ahead_[i]->good) return false;
  }
  const std::byte* from = data_ + (physical - begin_);
  LogMemory* m = nullptr;
  std::byte* data = nullptr;
  if (pieces == 1 && tail <= slack_bytes) {
    m = std::exchange(ahead_[0]->memory, nullptr);
    data = m->data() + slack_bytes - tail;
    if (tail != 0) std::memcpy(data, from, tail);
  } else {
    m = LogMemory::create(align_up(bytes), live_);
    data = m->data();
    if (tail != 0) std::memcpy(data, from, tail);
    for (size_t i = 0, at = tail; i < pieces; at += ahead_[i++]->bytes)
      std::memcpy(data + at, ahead_[i]->data(), ahead_[i]->bytes);
  }
  for (size_t i = 0; i < pieces; i++) {
    stats_.log_reads++;
    stats_.log_read_bytes += ahead_[i]->bytes;
  }
  set_window(m, data, physical, bytes);
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(pieces));
  return true;
}

// The window moves on to what is being read ahead. False: that has it not.
Task<bool> LogWalker::go_on(uint64_t physical, uint64_t end) {
  if (ahead_.empty() || ahead_.front()->begin != begin_ + filled_) co_return false;
  if (physical < begin_ || physical > begin_ + filled_) co_return false;
  size_t pieces = 0;
  while (pieces < ahead_.size() && (pieces == 0 || ahead_[pieces - 1]->end() < end)) pieces++;
  if (ahead_[pieces - 1]->end() < end) co_return false;
  for (size_t i = 0; i < pieces; i++) {
    std::shared_ptr<Piece> p = ahead_[i];
    co_await p->done.wait();
  }
  co_return join(physical, begin_ + filled_ - physical, pieces);
}

Task<Result<void>> LogWalker::read_now(uint64_t physical, uint64_t end) {
  std::shared_ptr<Segment> s = segments_.find(physical);
  const size_t need = align_up(end) - align_down(physical);
  LogMemory* m = memory_;
  if (m == nullptr || m->bytes() < need) m = LogMemory::create(std::max(need, piece_bytes()), live_);
  set_window(m, m->data(), align_down(physical), 0);
  const size_t n = std::min<uint64_t>(m->bytes(), s->base + segments_.file_bytes() - begin_);
  auto got = co_await s->file->read(begin_ - s->base, {m->data(), n});
  if (!got) co_return std::unexpected(got.error());
  if (*got != n) co_return fail(Errc::corrupt, "a commitlog file ends too early");
  filled_ = n;
  stats_.log_reads++;
  stats_.log_read_bytes += n;
  co_return Result<void>();
}

Task<Result<void>> LogWalker::fill(uint64_t physical, uint64_t end) {
  const bool walks_on = filled_ != 0 && physical >= begin_ && physical <= begin_ + filled_;
  bool there = co_await go_on(physical, end);
  if (!there) {
    ahead_.clear();
    CO_TRY(co_await read_now(physical, end));
  }
  if (walks_on && scope_ != nullptr) plan_ahead();
  co_return Result<void>();
}

Task<Result<Bytes>> LogWalker::view(uint64_t physical, size_t bytes) {
  if (!holds(physical, physical + bytes)) {
    std::shared_ptr<Segment> s = segments_.find(physical);
    if (s == nullptr) co_return Bytes();
    const uint64_t end = std::min(physical + bytes, s->base + segments_.file_bytes());
    if (!holds(physical, end)) CO_TRY(co_await fill(physical, end));
  }
  // Not beyond the file: the window may go on with the next one's beginning.
  const uint64_t file_end = physical - physical % segments_.file_bytes() + segments_.file_bytes();
  const uint64_t to = std::min(begin_ + filled_, file_end);
  co_return Bytes(data_ + (physical - begin_), to - physical);
}

}  // namespace rmq::store

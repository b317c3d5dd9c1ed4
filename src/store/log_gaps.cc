// Files of the log that are missing or cut short, which the operator wants to serve around (damagedLog =
// QUARANTINE). Each becomes a file of full size with the records that it still has and a blank record behind
// them, so that every later walk over the log, ours or Java's, goes on with the next file. It has its name
// only when the queues know nothing of the lost messages any more: a start that is cut down finds the gap
// again.
#include <algorithm>
#include <cstring>

#include "proto/record.h"
#include "store/blocks.h"
#include "store/segments.h"

namespace rmq::store {

namespace {

constexpr std::string_view bridge_suffix = ".bridge";
constexpr uint64_t piece_bytes = 1u << 20;

// Memory for direct reads and writes.
class Piece {
 public:
  explicit Piece(uint64_t bytes)
      : memory_(LogMemory::create(bytes, std::make_shared<std::atomic<uint64_t>>())) {}
  ~Piece() { memory_->unref(); }
  Piece(const Piece&) = delete;
  MutableBytes bytes() { return {memory_->data(), memory_->bytes()}; }

  // What the file has there; the rest is zero.
  Task<Result<void>> read(File& f, uint64_t at) {
    CO_TRY_VAR(n, co_await f.read(at, bytes()));
    std::ranges::fill(bytes().subspan(n), std::byte{0});
    co_return Result<void>();
  }
  Task<Result<void>> write(File& f, uint64_t at) {
    iovec v{memory_->data(), memory_->bytes()};
    co_return co_await f.write(at, {&v, 1}, Durability::none);
  }

 private:
  LogMemory* memory_;
};

// Behind the last record that lies below `bytes` as a whole, by the records' sizes alone.
Task<Result<uint64_t>> whole_records(File& f, uint64_t bytes) {
  Piece window(piece_bytes);
  uint64_t begin = UINT64_MAX;
  for (uint64_t at = 0;;) {
    if (at + proto::blank_record_bytes > bytes) co_return at;
    if (begin == UINT64_MAX || at + proto::blank_record_bytes > begin + piece_bytes) {
      begin = align_down(at);
      CO_TRY(co_await window.read(f, begin));
    }
    const auto front = proto::record_front(window.bytes().subspan(at - begin, proto::blank_record_bytes));
    const bool whole =
        front && front->is_message() && front->size >= proto::record_bytes_min && front->size <= bytes - at;
    if (!whole) co_return at;
    at += front->size;
  }
}

}  // namespace

// `has`: the file that is cut short, which has `bytes`; null: it is missing.
Task<Result<void>> SegmentSet::bridge(uint64_t base, File* has, uint64_t bytes) {
  const OpenHow how{.write = true, .create = true, .truncate = true, .direct = stats_.direct_io};
  CO_TRY_VAR(file, co_await open_file(path_of(base) + std::string(bridge_suffix), how));
  auto s = std::make_shared<Segment>();
  s->base = base;
  s->file = std::move(file);
  CO_TRY(co_await make_whole(*s->file));
  uint64_t end = 0;
  if (has != nullptr) {
    Piece piece(std::min(piece_bytes, file_bytes_));
    for (uint64_t at = 0; at < bytes; at += piece.bytes().size()) {
      CO_TRY(co_await piece.read(*has, at));
      CO_TRY(co_await piece.write(*s->file, at));
    }
    CO_TRY_VAR(whole, co_await whole_records(*s->file, bytes));
    end = whole;
  }
  if (end + proto::blank_record_bytes > file_bytes_)
    co_return fail(Errc::corrupt, "a commitlog file that is cut short has no room for its blank record");
  const uint64_t block = align_down(end);
  Piece mark(align_up(end + proto::blank_record_bytes) - block);
  CO_TRY(co_await mark.read(*s->file, block));
  proto::encode_blank_record(mark.bytes().subspan(end - block, proto::blank_record_bytes),
                             static_cast<uint32_t>(file_bytes_ - end));
  CO_TRY(co_await mark.write(*s->file, block));
  CO_TRY(co_await s->file->truncate(file_bytes_));  // the last piece may have gone beyond it
  CO_TRY(co_await s->file->sync());
  files_.push_back(std::move(s));
  bridged_.push_back({base + end, base + file_bytes_});
  co_return Result<void>();
}

Task<Result<void>> SegmentSet::bridge_to(uint64_t base) {
  while (end_base() < base) CO_TRY(co_await bridge(end_base(), nullptr, 0));
  co_return Result<void>();
}

Task<Result<void>> SegmentSet::keep_bridges() {
  if (bridged_.empty()) co_return Result<void>();
  for (const Lost& l : bridged_) {
    const std::string path = path_of(l.end - file_bytes_);
    CO_TRY(co_await disk_.rename(path + std::string(bridge_suffix), path));
  }
  co_return co_await disk_.sync_dir(dir_);
}

// What a start left that was cut down.
Task<Result<void>> SegmentSet::remove_bridges() {
  CO_TRY_VAR(entries, co_await disk_.list(dir_));
  for (const DirEntry& e : entries)
    if (!e.is_dir && e.name.ends_with(bridge_suffix)) CO_TRY(co_await disk_.remove(dir_ + "/" + e.name));
  co_return Result<void>();
}

}  // namespace rmq::store

// A stretch of the log in memory for walking over it in order: read directly, past the cache, with several
// pieces in flight ahead of the walk, so that the device is never idle while records are looked at.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "store/segments.h"
#include "uring/task.h"

namespace rmq::store {

class LogWalker {
 public:
  // `ahead`: the reads ahead are tasks there. They may outlive the walker, and must be joined before the log
  // closes. Null: no reading ahead.
  LogWalker(SegmentSet& segments, StoreStats& stats, std::shared_ptr<std::atomic<uint64_t>> live,
            Scope* ahead = nullptr);
  ~LogWalker();
  LogWalker(const LogWalker&) = delete;
  LogWalker& operator=(const LogWalker&) = delete;
  // At least min(bytes, what is left of the file) bytes from `physical` on. The view lives until the next
  // call. Empty: no file has that offset.
  Task<Result<Bytes>> view(uint64_t physical, size_t bytes);
  // The log was written over.
  void forget() {
    filled_ = 0;
    ahead_.clear();
  }

 private:
  struct Piece;
  bool holds(uint64_t physical, uint64_t end) const {
    return memory_ != nullptr && physical >= begin_ && end <= begin_ + filled_;
  }
  Task<Result<void>> fill(uint64_t physical, uint64_t end);
  Task<bool> go_on(uint64_t physical, uint64_t end);
  Task<Result<void>> read_now(uint64_t physical, uint64_t end);
  bool join(uint64_t physical, size_t tail, size_t pieces);
  void set_window(LogMemory* m, const std::byte* data, uint64_t begin, size_t bytes);
  void plan_ahead();
  size_t piece_bytes() const;
  static Task<void> read_piece(std::shared_ptr<Segment> s, std::shared_ptr<Piece> p);

  SegmentSet& segments_;
  StoreStats& stats_;
  std::shared_ptr<std::atomic<uint64_t>> live_;
  Scope* const scope_;
  LogMemory* memory_ = nullptr;
  const std::byte* data_ = nullptr;  // of begin_, in memory_
  uint64_t begin_ = 0;
  size_t filled_ = 0;
  std::deque<std::shared_ptr<Piece>> ahead_;  // in order, the first one begins where the window ends
  std::vector<LogMemory*> spare_;
};

}  // namespace rmq::store

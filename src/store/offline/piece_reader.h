// The files of the CommitLog in order, piece by piece, read by threads ahead of whoever goes through them, so
// that neither the disk nor he waits for the other. Past the page cache where the file system can: what is
// read once is not worth the copy and the memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace rmq::store::offline {

struct LogDir;

class PieceReader {
 public:
  static constexpr size_t piece_bytes = 2u << 20;
  static constexpr size_t slack_bytes = 64u << 10;  // in front of each piece, to write to
  // From `from` on, a multiple of 4096 in one of the files, to the end of the last one. A piece ends where
  // its file does. `dir` must stay.
  PieceReader(const LogDir& dir, uint64_t from);
  ~PieceReader();
  PieceReader(const PieceReader&) = delete;
  PieceReader& operator=(const PieceReader&) = delete;

  struct Piece {
    uint64_t begin = 0;
    MutableBytes bytes;  // empty: there are no more
    uint64_t end() const { return begin + bytes.size(); }
  };
  // Waits for the next piece; it stays the next one.
  Result<Piece> front();
  // front() is taken: it lives until the next call, so that its end can be put in front of the next piece.
  void pop();

 private:
  struct Slot {
    std::byte* memory = nullptr;
    uint64_t begin = 0;
    size_t bytes = 0;
    int error = 0;
    bool ready = false;
  };
  struct Source;
  void run();
  bool claim(uint64_t& number, size_t& file);
  static int read(Source& s, uint64_t at, std::byte* to, size_t& bytes);

  static constexpr size_t slots = 6, readers = 2;
  const LogDir& dir_;
  std::mutex mutex_;
  std::condition_variable free_, ready_;
  Slot slots_[slots];
  uint64_t asked_ = 0;    // pieces that a thread reads or has read
  uint64_t taken_ = 0;    // pop()s
  size_t next_file_ = 0;  // of the next piece to read
  uint64_t next_at_ = 0;  // in it
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rmq::store::offline

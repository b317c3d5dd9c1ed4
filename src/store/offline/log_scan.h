// The CommitLog from its first file to its end, record by record. Where no valid record starts, the scan
// looks for the next one anywhere behind and goes on there: that is a hole. When nothing valid follows, the
// log ends. Whether a hole is damage or the trace of a write that was under way is for the caller to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/record.h"
#include "store/offline/files.h"
#include "store/offline/piece_reader.h"

namespace rmq::store::offline {

struct LogFile {
  uint64_t base = 0;   // physical offset of its first byte
  uint64_t bytes = 0;  // as it is on disk, but at most LogDir::file_bytes
  std::string name;
};

struct LogDir {
  std::string path;
  uint64_t file_bytes = 0;  // mappedFileSizeCommitLog, found out from names and sizes; 0: there are no files
  std::vector<LogFile> files;  // by base

  uint64_t first_base() const { return files.empty() ? 0 : files.front().base; }
  uint64_t end_base() const { return files.empty() ? 0 : files.back().base + file_bytes; }
  const LogFile* find(uint64_t physical) const;  // null: no file has it
};
// Lists the files; names, sizes and gaps that are wrong go to `findings`.
Result<LogDir> list_log(const std::string& path, Findings& findings);

// A window of the log. Whoever goes on where it ends gets what threads have read ahead.
class LogReader {
 public:
  explicit LogReader(const LogDir& dir);
  ~LogReader();
  // At least min(bytes, what the file still has) bytes from `physical` on; the view lives until the next
  // call. Empty: no file has that offset.
  Result<Bytes> view(uint64_t physical, size_t bytes);
  // Of the file that was looked at last: the first offset at or behind `physical` that is not in a hole of
  // it.
  uint64_t next_data(uint64_t physical) const;

 private:
  Result<void> open_file(const LogFile& f);
  Result<void> fill(const LogFile& f, uint64_t physical, size_t bytes);
  Result<void> read_now(const LogFile& f, uint64_t physical, size_t bytes);
  bool take_ahead(uint64_t from, uint64_t physical, size_t bytes);
  const LogDir& dir_;
  const LogFile* file_ = nullptr;
  InFile open_;
  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0;
  const std::byte* data_ = nullptr;  // of begin_, in memory_ or a piece
  uint64_t begin_ = 0;
  size_t filled_ = 0;
  std::unique_ptr<PieceReader> ahead_;
};

// What stands at a place of the log.
struct Spot {
  enum class Kind : uint8_t { record, blank, none } kind = Kind::none;
  uint64_t bytes = 0;  // to go on behind it
  proto::RecordView record;
  const char* why = "";  // none: what is wrong
  bool zero = false;     // none: there are only zeros, as far as a record's front reaches
};

struct Hole {
  uint64_t begin = 0, end = 0;
  const char* why = "";
  int64_t next_store_timestamp_ms = 0;  // of the record at `end`
  // A record of this size would have been there: only its bytes are wrong. 0: not known.
  uint64_t spot_bytes = 0;
  int64_t previous_store_timestamp_ms = INT64_MIN;  // of the record before `begin`, when there is one
};

class LogVisitor {
 public:
  virtual ~LogVisitor();
  virtual Result<void> on_record(const proto::RecordView& r) = 0;
  virtual void on_hole(const Hole& h) = 0;
  virtual bool on_progress(uint64_t physical) = 0;  // now and then; false: stop
};

struct LogEnd {
  uint64_t at = 0;           // the first offset without a record
  uint64_t nonzero_end = 0;  // behind the last byte that is not zero; `at` when there is none
  const char* why = "";      // what is wrong with what is at `at`; "": nothing is there
  bool stopped = false;      // by on_progress
};

class LogScan {
 public:
  LogScan(const LogDir& dir, LogVisitor& visitor);
  // From a physical offset on: one where a record starts, or the next one behind is taken.
  Result<LogEnd> run(uint64_t from);
  // The first offset at or behind `from` where a valid record starts; nothing when there is none.
  Result<std::optional<uint64_t>> next_record(uint64_t from);
  // What starts at `physical`.
  Result<Spot> look(uint64_t physical);

 private:
  Result<bool> find_next(uint64_t from, uint64_t* at, LogEnd* end);
  Result<bool> search(uint64_t from, uint64_t to, uint64_t* at, LogEnd* end);
  Result<bool> step(uint64_t* pos);

  const LogDir& dir_;
  LogVisitor& visitor_;
  LogReader reader_;
};

}  // namespace rmq::store::offline

// The files of one queue of a compacted topic: pairs of a log file and a queue file of the same name. They
// are read through the page cache, records one after the other and units by position.
//
// A record is on stable storage before its unit is written: a unit that fits its record is proof of it, and
// so is every unit before it. What a crash leaves behind the last such unit is cut, and comes again from the
// CommitLog.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/compaction_format.h"
#include "store/types.h"
#include "uring/io.h"
#include "uring/task.h"

namespace rmq::store {

// One pair. Whoever reads holds it; its files may be replaced meanwhile, then it has both of them open.
struct CompactedFile {
  std::string log_path, queue_path;
  uint64_t base = 0;  // its name
  uint64_t log_bytes = 0, queue_bytes = 0;
  uint64_t end = 0;                   // behind the last record, from the beginning of the file
  uint32_t units = 0;                 // so many records
  int64_t first = -1, last = -1;      // their queue offsets; -1: there are none
  int64_t first_ms = 0, last_ms = 0;  // ... and store timestamps
  std::shared_ptr<File> log, queue;   // open or null
  bool keep_open = false;             // its names are another's by now
  int64_t used_ns = 0;
  struct Hint {
    int64_t offset = -1;
    uint32_t index = 0;
  };
  std::array<Hint, 8> hints;  // where readers have stopped
  size_t next_hint = 0;

  void took(const BatchUnit& u);  // a record has been added
};
using CompactedFilePtr = std::shared_ptr<CompactedFile>;

// Opens it when it is not open.
Task<Result<std::shared_ptr<File>>> compacted_log_of(Disk& disk, CompactedFilePtr f);
Task<Result<std::shared_ptr<File>>> compacted_queue_of(Disk& disk, CompactedFilePtr f);

// So many units from that one on; all of them must be there.
Task<Result<std::vector<BatchUnit>>> read_batch_units(Disk& disk, CompactedFilePtr f, uint32_t index,
                                                      uint32_t count);
// The first unit with at least that offset, or `units` of the file.
Task<Result<uint32_t>> find_batch_unit(Disk& disk, CompactedFilePtr f, int64_t offset);
// The first unit with at least that store timestamp.
Task<Result<uint32_t>> find_batch_unit_by_time(Disk& disk, CompactedFilePtr f, int64_t store_timestamp_ms);

// The records of a log file, one after the other.
class CompactedReader {
 public:
  CompactedReader(std::shared_ptr<File> file, uint64_t end) : file_(std::move(file)), end_(end) {}
  // The next record as it lies there, at most up to `end`; empty: a blank record, no record, or the end.
  // Lives until the next call.
  Task<Result<Bytes>> next();
  // After next() gave nothing: the records end there in order.
  bool ended_well() const;
  uint64_t position() const { return position_; }     // of what next() will look at
  uint64_t bytes_read() const { return filled_to_; }  // from the file

 private:
  Task<Result<bool>> have(size_t bytes);
  Bytes rest() const { return Bytes(buffer_).first(filled_).subspan(at_); }

  std::shared_ptr<File> file_;
  const uint64_t end_;
  std::vector<std::byte> buffer_;
  size_t at_ = 0, filled_ = 0;
  uint64_t position_ = 0, filled_to_ = 0;
};

// Where new files of a queue are made.
struct CompactedPlace {
  std::string log_dir, queue_dir;
  uint64_t log_file_bytes = 0, queue_file_bytes = 0;
};

// Appends records to the last of a row of files, and makes the next ones. With Durability::on_media what
// flush() has written is on stable storage, and so is each file's name before its first record; with none all
// of it is after sync().
class CompactionWriter {
 public:
  CompactionWriter(Disk& disk, CompactedPlace place, Durability durability)
      : disk_(disk), place_(std::move(place)), durability_(durability) {}
  // Goes on behind `last` (null: with a first file), as the files say.
  void resume(CompactedFilePtr last);
  // Takes a record of a confirmed message; some of them are written together.
  Task<Result<void>> add(Bytes record, const proto::RecordView& view);
  Task<Result<void>> flush();
  Task<Result<void>> seal();  // flush(), and no more records come to that file
  Task<Result<void>> sync();
  // Files that were made since the last call, each before its first record is.
  std::vector<CompactedFilePtr> take_new() { return std::move(new_); }

 private:
  bool fits(size_t bytes) const;
  Task<Result<void>> next_file(size_t record_bytes);

  Disk& disk_;
  const CompactedPlace place_;
  const Durability durability_;
  CompactedFilePtr file_;
  std::vector<CompactedFilePtr> new_, unsynced_;
  std::vector<std::byte> records_, units_;  // not written yet
  std::vector<BatchUnit> waiting_;          // of them
};

// ---- at the start

// What there is of a file that nobody writes to any more.
Task<Result<void>> measure_compacted_file(Disk& disk, CompactedFilePtr f, std::string_view topic, int32_t id);
// The same of the one that was written to last, after a crash: each record is looked at, and what is behind
// the last good one is removed from both files.
Task<Result<void>> mend_compacted_file(Disk& disk, CompactedFilePtr f, std::string_view topic, int32_t id);
// A crash while an earlier start cut the two left them without room for what ends a file: they get it back.
Task<Result<void>> make_whole_again(Disk& disk, CompactedFilePtr f, CompactedPlace place);
// Makes a queue file that is lost, from the log file. `torn`: what follows a record may be anything.
Task<Result<void>> remake_compacted_queue(Disk& disk, CompactedFilePtr f, std::string_view topic, int32_t id,
                                          bool torn);

}  // namespace rmq::store

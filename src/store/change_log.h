// A log of the changes of a small table between two saves of its file, so that a change that was answered
// survives a crash while the file is written only now and then. Lines of text, "<crc32> <change>\n", in a
// file that is zeros ahead of its end: a write to it changes no metadata. Writes are grouped: one is under
// way, what comes meanwhile is the next. replace() begins the file anew.
//
// One loop. docs/formats.md has the lines byte by byte.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq::store {

class ChangeLog {
 public:
  // `durability` of each write: none survives kill -9, on_media also the loss of power.
  ChangeLog(Disk& disk, std::string path, Durability durability)
      : disk_(disk), path_(std::move(path)), durability_(durability) {}

  // The changes of a file, oldest first, up to the first line that is not whole. A missing file has none.
  Task<Result<std::vector<std::string>>> read();

  // The file holds `changes` and nothing else when it resolves, on stable storage and under its name whatever
  // happens then. What was added before the call counts as written: `changes` must hold what of it is still
  // wanted. Changes that are added while it runs come behind. Ends a failure. One call at a time.
  Task<Result<void>> replace(std::vector<std::string> changes);
  // Adds a change and begins to write it. Returns its number, for written().
  uint64_t add(std::string_view change);
  uint64_t last() const { return added_; }
  // Resolves when the change of that number is in the file. False: it could not be written, see error().
  Task<bool> written(uint64_t number);
  bool is_written(uint64_t number) const { return number <= written_; }
  bool failed() const { return failed_; }
  const Error& error() const { return error_; }
  uint64_t bytes() const { return end_; }

  // Ends the writing and closes the file; `remove` it, when its changes are all elsewhere.
  Task<void> close(bool remove);

 private:
  Task<void> write_all();
  Task<Result<void>> write_pending();
  Task<Result<void>> write_new(std::string content);
  void fail_with(const Error& e);

  Disk& disk_;
  const std::string path_;
  const Durability durability_;
  std::unique_ptr<File> file_;
  uint64_t end_ = 0;     // of the lines in the file
  uint64_t zeroed_ = 0;  // the file's size, zeros from end_ on
  std::string pending_;  // lines that no write has taken yet
  uint64_t added_ = 0, written_ = 0;
  bool writing_ = false, replacing_ = false, failed_ = false;
  Error error_{};
  Event moved_;
  Scope scope_;
};

}  // namespace rmq::store

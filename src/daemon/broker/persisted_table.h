// A table of the broker that is kept as one JSON file under config/: rewritten as a whole (temporary file,
// fsync, rename), one write at a time; changes that come while a write runs share the next one.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "store/config_file.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq::broker {

class PersistedTable {
 public:
  PersistedTable(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  virtual ~PersistedTable() = default;
  const std::string& path() const { return path_; }

  // Resolves when a state at least as new as that of the call is on disk. A full disk is no failure: the
  // state is kept in memory and save_again() brings it to disk; the journal has it.
  Task<Result<void>> save();
  // Writes what a full disk kept from being written. The owner calls it every few seconds.
  Task<void> save_again();
  // Reads the file (or its .bak) and hands the text to parse(). A store without the file is fine.
  Task<Result<void>> load();

 protected:
  virtual std::string render() const = 0;
  virtual Result<void> parse(std::string_view text) = 0;
  // The file, or its backup, in silence; Errc::not_found when there is neither.
  Task<Result<store::LoadedFile>> find_file();
  // The file's text, or its backup's, which the journal then tells; nothing when there is neither.
  Task<Result<std::optional<store::LoadedFile>>> load_text();
  // Replaces the file; a failure is said in the journal.
  Task<Result<void>> write(std::string text);

 private:
  Disk& disk_;
  const std::string path_;
  uint64_t wanted_ = 0;
  uint64_t written_ = 0;
  bool writing_ = false;
  bool unsaved_ = false;  // the disk was full
  Event done_;
};

}  // namespace rmq::broker

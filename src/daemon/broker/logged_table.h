// A PersistedTable of which each change is kept from the moment that it was answered: changes go to a log
// beside the file, "<file>.log", and every now and then a fold writes the file, as RocketMQ knows it, and
// begins the log anew. After an orderly stop everything is in the file, and there is no log; unless there is
// something that the file, as RocketMQ knows it, has no place for (beside_file()).
//
// Each time before the file is written its checksum goes into the log: "J <crc32> <bytes>". So at load the
// changes that count are those behind the line of the file that is there, and a log that knows nothing of
// that file (the Java broker has written it since) is left aside, loudly.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/persisted_table.h"
#include "proto/bodies_config.h"
#include "store/change_log.h"

namespace rmq::broker {

class LoggedTable : public PersistedTable {
 public:
  LoggedTable(Disk& disk, std::string path, Durability durability);

  // Reads the file and the changes since. Fails as PersistedTable::load(); a log that cannot be begun is
  // said in the journal and tried again at the next fold.
  Task<Result<void>> load();
  // The number of the last change, and whether that one is on disk.
  uint64_t last_change() const { return log_.last(); }
  bool is_kept(uint64_t change) const { return log_.is_written(change); }
  // As load() for who looks before the store is opened and locked: nothing is written. The table stays empty
  // when neither the file nor its log has that word.
  Task<Result<void>> peek(std::string_view word);
  // Resolves when that change and all before are on disk, or cannot be brought there. A full disk is no
  // failure: they are kept in memory, and a later fold brings them to disk.
  Task<Result<void>> kept(uint64_t change);
  // All changes until now, in the place of PersistedTable's: a change costs its line, not the file.
  Task<Result<void>> save() { return kept(last_change()); }
  Task<void> save_again() = delete;  // fold() does it
  // Writes the file when there were changes since the last time. One at a time, the owner's.
  Task<void> fold();
  // The last fold, and the log goes, or stays with what is beside_file(). Nobody may change the table any
  // more.
  Task<void> close();
  // Names the text of the file that is there, for who must know whose it is: checksum and length.
  const std::string& file_line() const { return file_line_; }
  // Set while there are changes that a fold would bring into the file.
  Event& to_fold() { return to_fold_; }
  uint64_t log_bytes() const { return log_.bytes(); }

 protected:
  // Adds a change to the log: text, applying which twice does no harm.
  void note(std::string change);
  // The table has changed by what is no change of the log: the next fold writes the file.
  void touch() {
    dirty_ = true;
    to_fold_.set();
  }
  // The front of a change that makes this data version of the table: "<letter> <timestamp> <counter> ".
  static std::string front_of(char letter, const proto::DataVersion& v);
  // Takes it from a change: the letter, the version into `v`; what follows stays in `change`. 0: it has none.
  static char take_front(std::string_view& change, proto::DataVersion& v);
  // Applies a change of the log. False: it is not one of this table.
  virtual bool apply(std::string_view change) = 0;
  // What is in force and in no file, as changes for the log: a log that is begun anew begins with them.
  virtual std::vector<std::string> beside_file() { return {}; }
  // The table has been read, and file_line() is that of its file.
  virtual void after_read() {}
  // A file of that line will take the place of the one that is there.
  virtual Task<void> before_write(std::string line) { co_return; }

 private:
  Task<Result<void>> begin_log(std::string_view file_text);
  size_t replay(const std::vector<std::string>& changes, size_t begin);

  store::ChangeLog log_;
  std::string file_line_;
  std::vector<std::string> since_;  // changes that came while the file is being written
  bool loaded_ = false;
  bool folding_ = false;
  bool dirty_ = false;  // and to_fold_ is set
  Event to_fold_;
  bool full_ = false;  // the disk had no room for the last fold
};

}  // namespace rmq::broker

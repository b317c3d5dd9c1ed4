// Plain blocking reading of a store's files, for the offline tools: no ring, no coroutines, nothing is ever
// changed. What is found wrong on the way is told as Findings, which keep a few examples of each kind and
// count the rest, so that a report stays short however broken a store is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace rmq::store::offline {

enum class Severity : uint8_t { note, damage };

// What a finding is about. The names are in reports (docs/formats.md, rmqctl(1)) and do not change.
enum class Kind : uint8_t {
  log_file,      // a CommitLog file: name, size, one is missing
  log_record,    // no valid record where one must start
  log_tail,      // what is behind the end of the log
  queue_file,    // a ConsumeQueue file or directory: name, size, one is missing
  queue_order,   // the queue offsets of the records are not dense
  unit_missing,  // a record without its unit
  unit_wrong,    // a unit that does not describe its record
  unit_orphan,   // a unit without a record
  checkpoint,    // rmqd.checkpoint or checkpoint
  index_file,    // an IndexFile: size, header, slots, chains
  index_entry,   // an entry that does not fit its record, a record that is not indexed
  config,        // config/*.json
  other,
};
const char* name_of(Kind k);

struct Finding {
  Severity severity = Severity::damage;
  Kind kind = Kind::other;
  std::string path;     // below the root, or what else it is about
  int64_t offset = -1;  // physical offset, queue offset or position: what fits the kind; -1: none
  std::string text;     // one sentence without a full stop
};

class Findings {
 public:
  explicit Findings(size_t kept_of_each) : kept_of_each_(kept_of_each) {}
  void add(Finding f);
  void damage(Kind k, std::string path, int64_t offset, std::string text) {
    add({Severity::damage, k, std::move(path), offset, std::move(text)});
  }
  void note(Kind k, std::string path, int64_t offset, std::string text) {
    add({Severity::note, k, std::move(path), offset, std::move(text)});
  }
  // For findings that may be many: `make` gives the Finding, and is only called while examples are kept.
  template <class Make>
  void add(Severity s, Kind k, Make make) {
    if (count(s, k) < kept_of_each_)
      add(make());
    else
      counts_[{s, k}]++;
  }
  const std::vector<Finding>& kept() const { return kept_; }
  uint64_t count(Severity s) const;
  uint64_t count(Severity s, Kind k) const;

 private:
  const size_t kept_of_each_;
  std::vector<Finding> kept_;
  std::map<std::pair<Severity, Kind>, uint64_t> counts_;
};

// A file that is open for reading.
class InFile {
 public:
  InFile() = default;
  InFile(InFile&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  InFile& operator=(InFile&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~InFile();
  static Result<InFile> open(const std::string& path);
  // As much as there is, up to into.size(): less only at the file's end.
  Result<size_t> read(uint64_t at, MutableBytes into) const;
  void will_need(uint64_t at, uint64_t bytes) const;  // the kernel reads it meanwhile
  // The first byte at or behind `at` that is not in a hole of a sparse file; nothing: only a hole follows.
  std::optional<uint64_t> next_data(uint64_t at) const;
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

bool all_zero(Bytes b);

struct Entry {
  std::string name;
  bool is_dir = false;
  uint64_t bytes = 0;
};
// By name. Errc::not_found when there is no such directory.
Result<std::vector<Entry>> list_dir(const std::string& path);
// A whole small file. Errc::not_found when there is none, Errc::limit when it is larger than `bytes_max`.
Result<std::string> read_small_file(const std::string& path, size_t bytes_max);

// Keeps brokers out while a tool looks: a shared lock on `lock`, of the kind that rmqd and RocketMQ take
// exclusively. Errc::exists: a broker runs on the directory. No lock file or no locks: nothing to keep.
class SharedLock {
 public:
  static Result<SharedLock> take(const std::string& root);

 private:
  InFile file_;
};

// Errc::unsupported with the reason for a store that is kept in other ways than we know (store/format.h).
Result<void> refuse_foreign_store(const std::string& root);

}  // namespace rmq::store::offline

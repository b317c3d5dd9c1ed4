// The IndexFiles against the CommitLog, in the same walk as the ConsumeQueues: entries are in the order of
// the log. Chains and slots are checked by making them again: a table of the newest entry of each slot (20 MB
// with RocketMQ's sizes), one file at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/record.h"
#include "store/index_format.h"
#include "store/offline/files.h"

namespace rmq::store::offline {

struct IndexStats {
  uint64_t files = 0;
  uint64_t entries = 0;    // that lead to a record
  uint64_t expired = 0;    // entries of records that retention has deleted
  uint64_t untagged = 0;   // records that are indexed by their other keys only
  uint64_t unindexed = 0;  // records with keys behind the index's end
};

class IndexChecker {
 public:
  IndexChecker(std::string root, Findings& findings);
  // `stopped`: a broker stopped in order, so slots and headers must agree with the entries of every file.
  Result<void> list(bool stopped, const IndexLayout& layout, int64_t log_min);
  bool any() const { return !files_.empty(); }
  Result<void> on_record(const proto::RecordView& r);
  void on_hole(uint64_t begin, uint64_t end) { holes_.push_back({begin, end}); }
  Result<void> finish();
  const IndexStats& stats() const { return stats_; }

 private:
  struct IndexFile {
    std::string name;
    IndexHeader header;
  };
  struct Range {
    uint64_t begin, end;
  };
  void tell(Kind k, std::string path, int64_t offset, std::string text) {
    findings_.add({severity_, k, std::move(path), offset, std::move(text)});
  }
  void judge_header(const IndexFile& f);
  Result<bool> next_entry();  // false: there are no more
  Result<void> load_window();
  IndexEntry entry_in_window(int64_t number) const;
  Result<void> open_file();
  Result<void> close_file();
  Result<void> compare_slots();
  void check_chain();
  void orphan();
  bool in_hole(int64_t physical) const;
  void check_entry(const proto::RecordView& r);
  std::string path_of(const IndexFile& f) const { return "index/" + f.name; }

  const std::string root_;
  Findings& findings_;
  bool stopped_ = false;
  // Of a broker that was killed: what does not fit its next start makes again, as it does a lost index.
  Severity severity_ = Severity::damage;
  IndexStats stats_;
  IndexLayout layout_;
  std::vector<IndexFile> files_;
  std::vector<Range> holes_;
  int64_t log_min_ = 0;
  // The entry that is looked at.
  size_t at_file_ = 0;
  int64_t number_ = 0;
  IndexEntry entry_;
  bool have_entry_ = false;
  InFile open_;
  std::vector<int32_t> newest_;  // by slot
  int32_t used_slots_ = 0;
  uint64_t broken_chains_ = 0;
  std::unique_ptr<std::byte[]> window_;
  int64_t window_first_ = 0, window_count_ = 0;
  std::vector<int32_t> hashes_;  // of the record at hand
  std::vector<bool> found_;
};

}  // namespace rmq::store::offline

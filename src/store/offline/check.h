// rmqctl store check: is everything in a store's directory as it should be? Nothing is changed and nothing is
// locked for long; memory stays bounded whatever the size. A store that a broker left by a kill is judged by
// what its next start makes of it: units that are behind the checkpoint may be missing, a write that was
// under way may be torn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/format.h"
#include "store/offline/compaction_check.h"
#include "store/offline/files.h"
#include "store/offline/index_check.h"
#include "store/offline/queue_check.h"

namespace rmq::store::offline {

class CheckHelper {
 public:
  virtual ~CheckHelper();
  // Bytes of the CommitLog that are done, and all of them. False: stop.
  virtual bool on_progress(uint64_t done_bytes, uint64_t all_bytes) = 0;
  // What is wrong with the content of config/<name>; "" when it is fine. (JSON is not this library's.)
  virtual std::string judge_config(std::string_view name, std::string_view content) = 0;
  // Behind topics.json: the changes since that its log has, which a killed broker leaves (change_lines.h).
  virtual void topics_changed(std::span<const std::string> changes) = 0;
  // After these: whether there is that topic.
  virtual bool topic_exists(std::string_view name) = 0;
};

struct CheckOptions {
  std::string root;
  std::string commit_log_dir;  // empty: <root>/commitlog
  bool live = false;         // although a broker has the directory open; it is judged as one that was killed
  size_t kept_of_each = 20;  // examples of each kind of finding
  IndexLayout index_layout;  // maxHashSlotNum, maxIndexNum
};

enum class Writer : uint8_t { none, rmqd, rocketmq };

struct CheckReport {
  explicit CheckReport(size_t kept_of_each) : findings(kept_of_each) {}
  Findings findings;
  bool stopped = false;           // the last broker stopped in order
  Writer running = Writer::none;  // who left `abort`
  bool interrupted = false;       // by on_progress: the rest was not looked at
  std::optional<OwnCheckpoint> own;
  std::optional<JavaCheckpoint> java;
  uint64_t log_files = 0, log_file_bytes = 0;
  uint64_t log_begin = 0, log_end = 0;  // physical offsets
  uint64_t records = 0, record_bytes = 0;
  uint64_t transaction_records = 0;  // prepared or rolled back: they have no units
  int64_t first_store_ms = 0, last_store_ms = 0;
  uint64_t torn_bytes = 0;  // behind the log's end, of a write that was under way
  QueueStats queues;
  IndexStats index;
  CompactionStats compaction;
  uint64_t config_files = 0;

  bool clean() const { return findings.count(Severity::damage) == 0 && !interrupted; }
};

// Errc::exists: a broker has the directory. Errc::not_found: there is no store. Errc::unsupported: a store of
// another kind; `where` says which. Errc::io: something cannot be read.
Result<CheckReport> check_store(const CheckOptions& options, CheckHelper& helper);

}  // namespace rmq::store::offline

// RocketMQ's files of queues of batch topics (queue.type=BatchCQ), with a unit for each record: reading one
// from its front, and holding all of them against the CommitLog. queue_check.h has our own files of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/record.h"
#include "store/compaction_format.h"
#include "store/offline/files.h"

namespace rmq::store::offline {

class BatchQueueReader {
 public:
  // Errc::not_found: there is no such queue.
  static Result<BatchQueueReader> open(const std::string& root, std::string_view topic, int32_t id);
  // The next unit; nothing behind the last one.
  Result<std::optional<BatchUnit>> next();
  size_t file_count() const { return files_.size(); }
  // What is wrong with the names and sizes of its files; null: nothing.
  const char* why_odd() const;

 private:
  std::string dir_;
  std::vector<Entry> files_;
  size_t file_ = 0;
  uint64_t at_ = 0;
  std::vector<std::byte> window_;  // from window_at_ on of the file
  uint64_t window_at_ = 0;
};

struct QueueTruth;

class BatchQueueChecker {
 public:
  BatchQueueChecker(std::string root, Findings& findings, const QueueTruth& truth);
  ~BatchQueueChecker();
  // All queues that there are, and the topics that have some.
  Result<void> list();
  bool has_topic(std::string_view name) const { return topics_.contains(name); }
  Result<void> on_record(const proto::RecordView& r);
  void on_hole(uint64_t begin, uint64_t end) { holes_.emplace_back(begin, end); }
  Result<void> finish();

  uint64_t queues() const { return queues_.size(); }
  uint64_t units() const { return units_; }

 private:
  struct Queue;
  Result<void> advance(Queue& q) const;
  void orphan(const Queue& q);
  void compare(Queue& q, const proto::RecordView& r);
  void missing(Queue& q, const proto::RecordView& r);

  const std::string root_;
  Findings& findings_;
  const QueueTruth& truth_;
  std::set<std::string, std::less<>> topics_;
  std::map<std::pair<std::string, int32_t>, std::unique_ptr<Queue>, std::less<>> queues_;
  std::vector<std::pair<uint64_t, uint64_t>> holes_;
  uint64_t units_ = 0;
};

}  // namespace rmq::store::offline

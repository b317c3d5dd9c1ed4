// The part of `rmqctl store check` that looks at compacted topics: each log file has its queue file, each
// unit a record that it describes, queue offsets rise. What a killed broker left behind the last good record
// of a queue is a note: its next start cuts it there, and it comes again from the CommitLog.
#pragma once

#include <cstdint>
#include <string>

#include "store/offline/files.h"

namespace rmq::store::offline {

struct CompactionStats {
  uint64_t queues = 0;
  uint64_t files = 0;    // of logs
  uint64_t records = 0;  // in them
};

// All of compaction/ below `root`. `stopped`: a broker stopped in order.
Result<CompactionStats> check_compaction(const std::string& root, bool stopped, Findings& findings);

}  // namespace rmq::store::offline

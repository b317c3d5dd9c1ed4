// Store directories that look like RocketMQ's but keep what we need elsewhere than in the files that we know:
// ConsumeQueues or configuration in RocksDB, a DLedger log, a store of a later rmqd. Serving one would hide
// messages or lose topics and offsets, so they are refused before anything in them is touched.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/format.h"
#include "uring/io.h"
#include "uring/task.h"

namespace rmq::store {

// Errc::unsupported with the reason, when the directory is one of those. Creates and changes nothing.
Task<Result<void>> refuse_foreign(Disk& disk, std::string root);

}  // namespace rmq::store

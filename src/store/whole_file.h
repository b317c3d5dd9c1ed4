// Small files that are read and written as a whole.
#pragma once

#include <string>

#include "base/result.h"
#include "uring/io.h"
#include "uring/task.h"

namespace rmq::store {

// The file has that content, on stable storage (its name only with its directory).
Task<Result<void>> write_whole(Disk& disk, std::string path, std::string content);
Task<Result<std::string>> read_whole(Disk& disk, std::string path);

}  // namespace rmq::store

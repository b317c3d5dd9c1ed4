// Small files that are read and written as a whole.
#pragma once

#include <string>

#include "base/result.h"
#include "uring/io.h"
#include "uring/task.h"

namespace rmq::store {

// The file has that content, on stable storage (its name only with its directory). Before it has any of
// it, it gets mode and owner of the file `access_of` (File::take_access_of()), when that is there.
Task<Result<void>> write_whole(Disk& disk, std::string path, std::string content, std::string access_of = {});
Task<Result<std::string>> read_whole(Disk& disk, std::string path);

}  // namespace rmq::store

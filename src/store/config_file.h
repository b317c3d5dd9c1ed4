// Small files that must survive a crash whole: topics.json and its like, replaced as RocketMQ does it.
// Before the new content takes the name, the old file becomes <path>.bak, so that one of the two is good
// at every moment.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "uring/io.h"
#include "uring/task.h"

namespace rmq::store {

// Makes the directories above `path` that are missing; on stable storage when it resolves.
Task<Result<void>> make_parent_dirs(Disk& disk, std::string path);

// Writes <path>.tmp, syncs it, renames the old file to <path>.bak, renames the new one to <path>, syncs the
// directory. When it resolves the new content is on stable storage. Makes missing directories.
Task<Result<void>> replace_file(Disk& disk, std::string path, std::string content);

struct LoadedFile {
  std::string content;
  bool from_backup = false;
};
// The file, or its .bak when the file is missing, empty, or `valid` (may be null) says no. Errc::not_found
// when neither exists, Errc::corrupt when there is something but nothing valid.
Task<Result<LoadedFile>> load_file(Disk& disk, std::string path, bool (*valid)(std::string_view));

}  // namespace rmq::store

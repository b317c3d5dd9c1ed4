// The units of one ConsumeQueue, read from its files with plain calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/format.h"
#include "store/offline/files.h"

namespace rmq::store::offline {

class QueueReader {
 public:
  // Errc::not_found: there is no such queue.
  static Result<QueueReader> open(const std::string& root, std::string_view topic, int32_t id);
  int64_t begin() const { return begin_; }  // first unit of the first file
  int64_t end() const { return end_; }      // behind the last one that the files have room for
  // Up to `count` units from `offset` on; those that are not written are zero. Fewer where the files end.
  Result<std::vector<QueueUnit>> read(int64_t offset, int64_t count) const;

 private:
  std::string dir_;
  int64_t file_units_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace rmq::store::offline

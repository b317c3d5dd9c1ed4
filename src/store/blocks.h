// What several parts of the store reckon with: device blocks, and the directory of a path.
#pragma once

#include <cstdint>
#include <string>

#include "uring/io.h"

namespace rmq::store {

inline uint64_t align_down(uint64_t v) {
  return v & ~(uint64_t{disk_block_bytes} - 1);
}
inline uint64_t align_up(uint64_t v) {
  return align_down(v + disk_block_bytes - 1);
}

// "/a" of "/a/b", "/" of "/a", "." of "a".
inline std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace rmq::store

// The records of what MessageStore::get() found, one after the other, where they lie.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "proto/record.h"
#include "store/types.h"

namespace rmq::broker {

// Goes over extents in which records may be cut: only the front of each is looked at.
class RecordWalk {
 public:
  explicit RecordWalk(const std::vector<store::LogExtent>& extents) : extents_(extents) {}

  // The queue offset of the next record; nothing at the end.
  std::optional<int64_t> next() {
    std::array<std::byte, proto::record_bytes_min> front;
    if (!read(front)) return std::nullopt;
    const auto size = load_be<uint32_t>(front.data());
    skip(size);
    return proto::record_queue_offset(front);
  }

 private:
  bool read(MutableBytes into) {
    size_t extent = extent_, at = at_;
    for (size_t have = 0; have < into.size();) {
      if (extent >= extents_.size()) return false;
      const Bytes piece = extents_[extent].bytes().subspan(at);
      const size_t n = std::min(piece.size(), into.size() - have);
      if (n != 0) std::memcpy(into.data() + have, piece.data(), n);
      have += n;
      at = 0;
      extent++;
    }
    return true;
  }
  void skip(size_t bytes) {
    while (extent_ < extents_.size()) {
      const size_t here = extents_[extent_].bytes().size() - at_;
      if (bytes < here) {
        at_ += bytes;
        return;
      }
      bytes -= here;
      at_ = 0;
      extent_++;
    }
  }

  const std::vector<store::LogExtent>& extents_;
  size_t extent_ = 0, at_ = 0;
};

inline std::string joined(const std::vector<store::LogExtent>& extents, size_t bytes) {
  std::string out;
  out.reserve(bytes);
  for (const store::LogExtent& e : extents) out += as_text(e.bytes());
  return out;
}

}  // namespace rmq::broker

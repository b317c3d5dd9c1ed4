// The memory that all connections of a service hold together: requests that are being received or worked on,
// and answers that nobody has taken yet. A share for each keeps peers that take nothing from using up what
// the others need. One loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace rmq {

class NetMemory {
 public:
  // Half for requests, half for answers. Until it is set: only the fixed limits of a connection.
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  uint64_t limit() const { return limit_; }
  uint64_t request_bytes() const { return requests_; }
  uint64_t unsent_bytes() const { return unsent_; }

  // True: no more requests than those that are there already.
  bool requests_exhausted() const { return requests_ >= limit_ / 2; }
  // So many bytes of answers one connection may have waiting: much while there is plenty, and an equal part
  // of what there is when half of it is used.
  size_t unsent_share() const {
    const uint64_t all = limit_ / 2;
    if (unsent_ < all / 2) return std::min<uint64_t>(limits::unsent_bytes_per_connection, all / 2);
    return std::max<uint64_t>(all / 2 / std::max<uint64_t>(holders_, 1), limits::unsent_share_min);
  }

  void requests_changed(size_t before, size_t after) { requests_ += after - before; }
  void unsent_changed(size_t before, size_t after) {
    unsent_ += after - before;
    holders_ += static_cast<uint64_t>(after != 0) - static_cast<uint64_t>(before != 0);
  }

 private:
  uint64_t limit_ = UINT64_MAX;
  uint64_t requests_ = 0;
  uint64_t unsent_ = 0;
  uint64_t holders_ = 0;  // connections with unsent bytes
};

}  // namespace rmq

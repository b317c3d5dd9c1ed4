// IovCursor walks through the caller's buffers for a call that may take only a part of them. The usual call
// takes all: then nothing was copied.
#pragma once

#include <limits.h>
#include <sys/uio.h>

#include <span>
#include <vector>

#include "base/check.h"

namespace rmq {

class IovCursor {
 public:
  explicit IovCursor(std::span<const iovec> all) : left_(all) { skip_empty(); }
  bool empty() const { return left_.empty(); }
  // What to offer to the kernel next; valid until advance().
  std::span<const iovec> next() const { return left_.first(left_.size() < IOV_MAX ? left_.size() : IOV_MAX); }
  bool is_last() const { return left_.size() <= IOV_MAX; }

  void advance(size_t bytes) {
    while (!left_.empty() && bytes >= left_[0].iov_len) {
      bytes -= left_[0].iov_len;
      left_ = left_.subspan(1);
    }
    skip_empty();
    if (bytes == 0) return;
    check(!left_.empty());
    if (copy_.empty()) {
      copy_.assign(left_.begin(), left_.end());
      left_ = copy_;
    }
    iovec& first = copy_[copy_.size() - left_.size()];
    first.iov_base = static_cast<char*>(first.iov_base) + bytes;
    first.iov_len -= bytes;
  }

 private:
  void skip_empty() {
    while (!left_.empty() && left_[0].iov_len == 0) left_ = left_.subspan(1);
  }
  std::span<const iovec> left_;
  std::vector<iovec> copy_;  // the rest after a part was taken
};

}  // namespace rmq

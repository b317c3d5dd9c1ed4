// A ring for each test, with the operations that the seam does not have: raw descriptors.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "uring/ring.h"
#include "uring/sync.h"

namespace rmq {

class RingTest : public testing::Test {
 protected:
  explicit RingTest(RingOptions options = {}) {
    Result<std::unique_ptr<Ring>> r = Ring::create(options);
    check(r.has_value());
    ring_ = std::move(*r);
  }
  void run(Task<void> t) { ring_->run(std::move(t)); }
  int64_t in_ms(int64_t ms) { return ring_->now_ns() + ms * ns_per_ms; }

  std::unique_ptr<Ring> ring_;
};

inline iovec iov(std::string_view s) {
  return {const_cast<char*>(s.data()), s.size()};
}

// EXPECT_* print and go on; ASSERT_* would return from a coroutine, which it cannot.
template <class T>
std::string why(const Result<T>& r) {
  return r ? std::string("ok") : to_string(r.error());
}

}  // namespace rmq

// A histogram as Prometheus has them: how many values were at most each bound, and their sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rmq {

// Counts by upper bounds, which are the caller's; the last count is of what is above all of them.
template <size_t N>
struct MetricHistogram {
  std::array<uint64_t, N + 1> counts{};
  double sum = 0;
  void add(const std::array<double, N>& bounds, double value, uint64_t times = 1) {
    size_t i = 0;
    while (i < N && value > bounds[i]) i++;
    counts[i] += times;
    sum += value * static_cast<double>(times);
  }
  uint64_t count() const {
    uint64_t n = 0;
    for (uint64_t c : counts) n += c;
    return n;
  }
};

}  // namespace rmq

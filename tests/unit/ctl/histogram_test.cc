#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ctl/bench.h"

namespace rmq::ctl {
namespace {

TEST(Histogram, EmptyHasNoLatency) {
  Histogram h;
  EXPECT_EQ(h.count(), 0);
  EXPECT_EQ(h.percentile_us(0.99), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  for (int64_t us = 1; us <= 50; us++) h.add(us);
  EXPECT_EQ(h.percentile_us(0.5), 25);
  EXPECT_EQ(h.percentile_us(1), 50);
  EXPECT_EQ(h.max_us(), 50);
}

TEST(Histogram, PercentilesAreNeverBelowAndAtMostOneBucketAbove) {
  std::mt19937_64 random(7);
  std::vector<int64_t> values;
  Histogram h;
  for (int i = 0; i < 20'000; i++) {
    auto us = static_cast<int64_t>(random() % (uint64_t{1} << (1 + random() % 31)));
    values.push_back(us);
    h.add(us);
  }
  std::sort(values.begin(), values.end());
  for (double part : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    auto rank = static_cast<size_t>(part * static_cast<double>(values.size()) + 0.999999) - 1;
    int64_t exact = values[std::min(rank, values.size() - 1)];
    EXPECT_GE(h.percentile_us(part), exact) << part;
    EXPECT_LE(h.percentile_us(part), exact + exact / 64 + 1) << part;
  }
}

TEST(Histogram, TakesTheAbsurd) {
  Histogram h;
  h.add(-5);
  h.add(INT64_MAX);
  EXPECT_EQ(h.count(), 2);
  EXPECT_EQ(h.max_us(), INT64_MAX);
  EXPECT_EQ(h.percentile_us(0.5), 0);
  h.clear();
  EXPECT_EQ(h.count(), 0);
}

}  // namespace
}  // namespace rmq::ctl

// The store must not lose, change or invent a message, whatever a crash leaves: at every crash point of a
// small workload with every fate, and over random lives by seed. store_model.h says what is checked.
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/store_cases.h"

namespace rmq::sim {
namespace {

using store::FlushDiskType;

std::string text_of(const Errors& errors) {
  std::string s;
  for (size_t i = 0; i < errors.size() && i < 10; i++) s += "\n  " + errors[i];
  return s;
}

// As they have no divisor in common with the 40 of every_point(), all get their share of its dear points.
constexpr uint64_t parts_of_deletes = 3;

// Every point, or of `parts` one; some with a crash at every point of the recovery as well.
void every_point(FlushDiskType flush, uint64_t seed, bool deletes = false, uint64_t part = 0,
                 uint64_t parts = 1) {
  PointCase c{.flush = flush, .seed = seed, .deletes = deletes};
  const uint64_t points = count_points(c);
  ASSERT_GT(points, 100u) << "the workload does too little";
  if (deletes) {
    ASSERT_GE(count_deleted(c), 2u) << "retention does too little";
  }
  int failures = 0;
  for (c.point = part; c.point <= points && failures < 3; c.point += parts) {
    c.nested = c.point % 40 == 7 ? PointCase::Nested::one : PointCase::Nested::none;
    Errors errors = check_point(c);
    if (errors.empty()) continue;
    failures++;
    ADD_FAILURE() << text_of(errors) << "\nrepeat with: " << command_of(c);
  }
}
TEST(EveryPoint, SyncFlush) {
  every_point(FlushDiskType::SYNC_FLUSH, 1);
}
TEST(EveryPoint, AsyncFlush) {
  every_point(FlushDiskType::ASYNC_FLUSH, 2);
}

// Under retention. In parts, which may run side by side.
class Deletes : public testing::TestWithParam<uint64_t> {};
TEST_P(Deletes, EveryPointSyncFlush) {
  every_point(FlushDiskType::SYNC_FLUSH, 4, true, GetParam(), parts_of_deletes);
}
TEST_P(Deletes, EveryPointAsyncFlush) {
  every_point(FlushDiskType::ASYNC_FLUSH, 7, true, GetParam(), parts_of_deletes);
}
INSTANTIATE_TEST_SUITE_P(Part, Deletes, testing::Range<uint64_t>(0, parts_of_deletes));

// The oracle sees what it must: a disk that lies about stable storage loses acknowledged messages.
TEST(Planted, ALyingDiskIsFoundOut) {
  PointCase c{.seed = 3, .dropped_syncs = {{}}};
  bool lost = false;
  for (c.point = count_points(c) / 2; c.point > 0 && !lost; c.point -= std::min<uint64_t>(c.point, 7))
    for (const std::string& e : check_point(c)) lost |= e.find("acknowledged message") != std::string::npos;
  EXPECT_TRUE(lost);
}

// The first seed that finds it; 0: none of 100.
uint64_t seed_that_finds(DroppedSync planted) {
  for (uint64_t seed = 1; seed <= 100; seed++)
    if (!run_seed(seed, false, {planted}).errors.empty()) return seed;
  return 0;
}

// One sync taken out of the store is found by the random lives. (Not those of ConsumeQueues: what such a
// crash takes from a small queue makes the checkpoint's sums wrong, and all queues are made anew.)
TEST(Planted, ADroppedSyncIsFoundWithinAHundredSeeds) {
  EXPECT_NE(seed_that_finds({OpKind::write, "/commitlog"}), 0u) << "the commit itself";
  EXPECT_NE(seed_that_finds({OpKind::sync, "/commitlog"}), 0u) << "files made, tails cut, asynchronous flush";
  EXPECT_NE(seed_that_finds({OpKind::sync_dir, "/commitlog"}), 0u) << "the name of a new file";
}

// RMQ_SIM_SEEDS: how many, where 2,000 take too long (sanitizers).
TEST(Seeds, RandomLives) {
  const char* wanted = std::getenv("RMQ_SIM_SEEDS");
  const uint64_t seeds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 2000;
  ASSERT_GT(seeds, 0u);
  int failures = 0;
  uint64_t messages = 0, faults = 0;
  for (uint64_t seed = 1; seed <= seeds && failures < 3; seed++) {
    SeedOutcome o = run_seed(seed, false);
    messages += o.messages;
    faults += o.faults;
    if (o.errors.empty()) continue;
    failures++;
    ADD_FAILURE() << text_of(o.errors) << "\nrepeat with: " << command_of_seed(seed);
  }
  EXPECT_GT(messages, seeds * 50);
  EXPECT_GT(faults, seeds / 2);
}

TEST(Seeds, SameSeedSameTrace) {
  for (uint64_t seed = 1000; seed < 1010; seed++)
    EXPECT_EQ(run_seed(seed, false).trace_hash, run_seed(seed, false).trace_hash) << "seed " << seed;
}

}  // namespace
}  // namespace rmq::sim

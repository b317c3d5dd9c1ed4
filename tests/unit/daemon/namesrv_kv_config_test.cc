// KvConfig on the simulated disk: what was acknowledged survives a crash at every point.
#include "daemon/namesrv/kv_config.h"

#include <gtest/gtest.h>

#include "sim/sim_disk.h"

namespace rmq::namesrv {
namespace {

const std::string path = "/var/lib/ns/kvConfig.json";

Task<void> put_one(KvConfig& kv, sim::SimDisk& disk, std::string key, std::string value,
                   KvConfig::Table& acked) {
  auto done = co_await kv.put("N", key, value);
  if (done && !disk.crashed()) acked[key] = value;
}

struct Outcome {
  KvConfig::Table acked;    // told to the caller before the crash
  bool is_removed = false;  // k3, acknowledged
};

Task<void> workload(sim::SimDisk& disk, Outcome& out) {
  KvConfig kv(disk, path);
  auto loaded = co_await kv.load();
  EXPECT_TRUE(loaded || disk.crashed());
  Scope scope;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++)
      scope.spawn(put_one(kv, disk, "k" + std::to_string(i), std::to_string(round), out.acked));
    co_await scope.join();
  }
  auto removed = co_await kv.remove("N", "k3");
  out.is_removed = removed && !disk.crashed();
  if (out.is_removed) out.acked.erase("k3");
}

Task<void> read_back(Disk& disk, KvConfig::Table& found) {
  KvConfig kv(disk, path);
  auto loaded = co_await kv.load();
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  if (const auto* t = kv.find("N")) found = *t;
}

TEST(KvConfig, WhatWasAcknowledgedSurvivesACrashAtEveryPoint) {
  uint64_t points = 0;
  for (uint64_t crash_at = 0; crash_at == 0 || crash_at <= points; crash_at++) {
    Outcome out;
    sim::DiskImage image;
    {
      sim::SimLoop loop(crash_at + 1);
      sim::SimDisk disk(loop, {.crash_at = crash_at});
      loop.run(workload(disk, out));
      if (crash_at == 0) points = disk.points();
      if (!disk.crashed()) disk.crash_now();
      image = disk.crash_image(sim::CrashFate::mixed(crash_at));
      EXPECT_TRUE(disk.violations().empty());
    }
    sim::SimLoop loop(1);
    sim::SimDisk disk(loop, {}, image);
    KvConfig::Table found;
    loop.run(read_back(disk, found));
    EXPECT_FALSE(out.is_removed && found.contains("k3")) << "crash at " << crash_at;
    for (const auto& [key, value] : out.acked) {
      // A later change that was under way may be there instead.
      ASSERT_TRUE(found.contains(key) || key == "k3") << key << ", crash at " << crash_at;
      EXPECT_TRUE(!found.contains(key) || found[key] >= value) << key << ", crash at " << crash_at;
    }
  }
  EXPECT_GT(points, 10u);
}

Task<void> share_writes(sim::SimDisk& disk, Outcome& out) {
  KvConfig kv(disk, path);
  Scope scope;
  for (int i = 0; i < 100; i++) scope.spawn(put_one(kv, disk, "k" + std::to_string(i), "v", out.acked));
  EXPECT_EQ(kv.find("N"), nullptr) << "not visible before it is on disk";
  co_await scope.join();
  EXPECT_EQ(out.acked.size(), 100u);
  uint64_t writes = disk.counters().writes;
  EXPECT_LE(writes, 4u) << "changes that come together share a write";
  auto same = co_await kv.put("N", "k1", "v");
  EXPECT_TRUE(same);
  EXPECT_EQ(disk.counters().writes, writes) << "nothing changed";
}
TEST(KvConfig, ChangesShareWrites) {
  sim::SimLoop loop(1);
  sim::SimDisk disk(loop, {});
  Outcome out;
  loop.run(share_writes(disk, out));
}

Task<void> failing(sim::SimDisk& disk) {
  KvConfig kv(disk, path);
  auto good = co_await kv.put("N", "k", "1");
  EXPECT_TRUE(good);
  disk.plan().faults.push_back({.kind = sim::FaultKind::io_error, .op = sim::OpKind::sync});
  auto bad = co_await kv.put("N", "k", "2");
  EXPECT_FALSE(bad);
  EXPECT_EQ(*kv.find("N", "k"), "1") << "what cannot be kept is not shown";
  auto again = co_await kv.put("N", "k", "3");
  EXPECT_TRUE(again);
  EXPECT_EQ(*kv.find("N", "k"), "3");
}
TEST(KvConfig, AFailedWriteChangesNothing) {
  sim::SimLoop loop(1);
  sim::SimDisk disk(loop, {});
  loop.run(failing(disk));
}

}  // namespace
}  // namespace rmq::namesrv

// Consumer offsets and their log: crashed at every point, with every fate, an offset whose commit resolved is
// there, and none that nobody committed. And what Java may do to the file between two runs of ours.
#include "daemon/broker/logged_table.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/broker/offset_manager.h"
#include "sim/sim_disk.h"
#include "sim/sim_loop.h"
#include "store/config_file.h"

namespace rmq::broker {
namespace {

using sim::CrashFate;
using sim::DiskImage;
using sim::SimDisk;
using sim::SimLoop;

constexpr const char* path = "/data/store/config/consumerOffset.json";
constexpr int groups = 3;

struct Known {
  int64_t kept[groups] = {}, tried[groups] = {};
};

std::string group(int i) {
  return "group " + std::to_string(i);
}

Task<void> commit_from(OffsetManager& m, Known& known, int who, int rounds) {
  for (int i = 0; i < rounds; i++) {
    known.tried[who]++;
    m.commit(group(who), "T", 0, known.tried[who]);
    int64_t value = known.tried[who];
    auto kept = co_await m.kept(m.last_change());
    if (!kept) co_return;
    known.kept[who] = value;
  }
}

void check_offsets(const OffsetManager& m, const Known& known) {
  for (int i = 0; i < groups; i++) {
    int64_t found = m.query(group(i), "T", 0).value_or(0);
    EXPECT_GE(found, known.kept[i]) << "an answered commit is lost";
    EXPECT_LE(found, known.tried[i]);
  }
}

// One life: what is there must be right, then commits of several clients and folds among them.
Task<void> live(SimDisk& d, Durability durability, Known& known) {
  OffsetManager m(d, path, durability);
  auto loaded = co_await m.load();
  if (!d.crashed()) {
    EXPECT_TRUE(loaded) << (loaded ? "" : to_string(loaded.error()));
    check_offsets(m, known);
  }
  if (!loaded) {
    co_await m.close();
    co_return;
  }
  for (int i = 0; i < groups; i++) known.tried[i] = std::max(known.tried[i], known.kept[i]);
  Scope scope;
  for (int i = 0; i < groups; i++) scope.spawn(commit_from(m, known, i, 4));
  co_await m.fold();
  for (int i = 0; i < groups; i++) scope.spawn(commit_from(m, known, i, 3));
  co_await scope.join();
  co_await m.fold();
  co_await commit_from(m, known, 0, 2);
  d.crash_now();
  co_await m.close();
}

uint64_t crash_once(uint64_t point, Durability durability, Known& known, DiskImage& image,
                    const CrashFate& fate) {
  SimLoop loop(point);
  SimDisk d(loop, {.crash_at = point}, image);
  loop.run(live(d, durability, known));
  image = d.crash_image(fate);
  return d.points();
}

TEST(LoggedTable, KeepsAnsweredCommitsAtEveryPoint) {
  Known known;
  DiskImage image = sim::empty_image();
  const uint64_t points = crash_once(0, Durability::on_media, known, image, CrashFate::all_lost(0));
  ASSERT_EQ(known.kept[0], 9);
  ASSERT_GT(points, 40u);
  for (uint64_t point = 1; point <= points; point++) {
    for (uint64_t seed = 0; seed < 4; seed++) {
      SCOPED_TRACE("point " + std::to_string(point) + " seed " + std::to_string(seed));
      constexpr CrashFate (*fates[])(uint64_t) = {CrashFate::all_lost, CrashFate::all_kept,
                                                  CrashFate::all_garbage, CrashFate::mixed};
      known = {};
      image = sim::empty_image();
      crash_once(point, Durability::on_media, known, image, fates[seed % 4](seed));
      crash_once(1 + (point * 7 + seed) % points, Durability::on_media, known, image,
                 fates[(seed + 1) % 4](seed));
      crash_once(0, Durability::on_media, known, image, CrashFate::all_lost(seed));
    }
  }
}

// kill -9 with asynchronous flush: what resolved is in the kernel.
TEST(LoggedTable, KeepsAnsweredCommitsWhenTheProcessIsKilled) {
  uint64_t points = 1;
  for (uint64_t point = 0; point <= points; point++) {
    SCOPED_TRACE(point);
    Known known;
    std::optional<sim::DiskState> state;
    {
      SimLoop loop(point);
      SimDisk d(loop, {.crash_at = point});
      loop.run(live(d, Durability::none, known));
      if (point == 0) points = d.points();
      state = d.take_state(point);
    }
    SimLoop loop(1);
    SimDisk d(loop, {}, std::move(*state));
    loop.run(live(d, Durability::none, known));
  }
  EXPECT_GT(points, 30u);
}

template <class... A>
void on_one_disk(Task<void> (*body)(SimDisk&, A...), A... a) {
  SimLoop loop(1);
  SimDisk d(loop, {});
  loop.run(body(d, a...));
}

Task<bool> exists(SimDisk& d, std::string p) {
  auto f = co_await d.open(std::move(p), {});
  if (f) co_await (*f)->close();
  co_return f.has_value();
}

Task<void> orderly_stop(SimDisk& d) {
  {
    OffsetManager m(d, path, Durability::on_media);
    co_await m.load();
    m.commit("g", "T", 0, 7);
    m.commit("g", "U", 3, 8);
    m.commit("h", "U", 3, 9);
    m.remove_group("h");
    co_await m.close();
  }
  bool left = co_await exists(d, std::string(path) + ".log");
  EXPECT_FALSE(left) << "the Java broker finds everything in the file";
  auto file = co_await store::load_file(d, path, nullptr);
  EXPECT_TRUE(file && file->content.find("\"T@g\"") != std::string::npos);
  EXPECT_TRUE(file && file->content.find("@h\"") == std::string::npos);
}
TEST(LoggedTable, AnOrderlyStopLeavesTheFileAlone) {
  on_one_disk(orderly_stop);
}

// A crash of ours, then a run of the Java broker, which knows nothing of the log.
Task<void> foreign_file(SimDisk& d) {
  {
    OffsetManager m(d, path, Durability::on_media);
    co_await m.load();
    m.commit("g", "T", 0, 7);
    co_await m.fold();
    m.commit("g", "T", 0, 8);
    auto kept = co_await m.kept(m.last_change());
    EXPECT_TRUE(kept);
  }
  OffsetManager again(d, path, Durability::on_media);
  co_await again.load();
  EXPECT_EQ(again.query("g", "T", 0), 8);
  again.commit("g", "T", 0, 9);
  auto kept = co_await again.kept(again.last_change());
  EXPECT_TRUE(kept);
  auto saved = co_await store::replace_file(d, path, R"({"offsetTable":{"T@g":{0:50}}})");
  EXPECT_TRUE(saved);
  OffsetManager third(d, path, Durability::on_media);
  co_await third.load();
  EXPECT_EQ(third.query("g", "T", 0), 50);
}
TEST(LoggedTable, AFileThatSomebodyElseWroteWins) {
  on_one_disk(foreign_file);
}

// The log cannot be written: the commit says so, and the next fold makes all well.
Task<void> failing(SimDisk& d) {
  OffsetManager m(d, path, Durability::on_media);
  co_await m.load();
  d.plan().faults.push_back(
      {.kind = sim::FaultKind::io_error, .op = sim::OpKind::write, .path_part = ".log"});
  m.commit("g", "T", 0, 7);
  auto kept = co_await m.kept(m.last_change());
  EXPECT_FALSE(kept);
  EXPECT_TRUE(!kept && kept.error().sys == EIO);
  EXPECT_EQ(m.query("g", "T", 0), 7);
  co_await m.fold();
  kept = co_await m.kept(m.last_change());
  EXPECT_TRUE(kept);
  m.commit("g", "T", 0, 8);
  kept = co_await m.kept(m.last_change());
  EXPECT_TRUE(kept);
  OffsetManager again(d, path, Durability::on_media);
  co_await again.load();
  EXPECT_EQ(again.query("g", "T", 0), 8);
}
TEST(LoggedTable, AFailedWriteIsSaidAndMended) {
  on_one_disk(failing);
}

// Names may hold anything: a group of an older version, or one that JSON brought.
Task<void> odd_names(SimDisk& d) {
  {
    OffsetManager m(d, path, Durability::on_media);
    co_await m.load();
    m.commit("bad\nname\\n", "T", 0, 5);
    m.commit("g", "T", 0, 77);
    auto kept = co_await m.kept(m.last_change());
    EXPECT_TRUE(kept);
  }
  OffsetManager again(d, path, Durability::on_media);
  co_await again.load();
  EXPECT_EQ(again.query("bad\nname\\n", "T", 0), 5);
  EXPECT_EQ(again.query("g", "T", 0), 77);
}
TEST(LoggedTable, ANameWithANewlineHidesNothing) {
  on_one_disk(odd_names);
}

// More than the zeros ahead of the end.
Task<void> much(SimDisk& d) {
  {
    OffsetManager m(d, path, Durability::on_media);
    co_await m.load();
    for (int i = 1; i <= 20'000; i++) m.commit("g", std::string(40, 't'), i % 50, i);
    auto kept = co_await m.kept(m.last_change());
    EXPECT_TRUE(kept);
  }
  OffsetManager again(d, path, Durability::on_media);
  co_await again.load();
  for (int q = 0; q < 50; q++)
    EXPECT_EQ(again.query("g", std::string(40, 't'), q), q == 0 ? 20'000 : 19'950 + q);
}
TEST(LoggedTable, GrowsBeyondItsZeros) {
  on_one_disk(much);
}

}  // namespace
}  // namespace rmq::broker

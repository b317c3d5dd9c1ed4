// Consumer offsets, topics and groups, and their logs: crashed at every point, with every fate, a change that
// was answered is there, and none that nobody made. And what Java may do to the file between two runs of
// ours.
#include "daemon/broker/logged_table.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/broker/group_manager.h"
#include "daemon/broker/offset_manager.h"
#include "daemon/broker/topic_manager.h"
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

// ---- resets --------------------------------------------------------------------------------------------

// A group that has pulled up to 80 and committed 50 is reset to 10, is told, and pulls from there.
enum ResetStage { committed, was_reset, was_told, has_noticed };
struct ResetLife {
  int answered = -1, tried = -1;
};

Task<void> take_stage(OffsetManager& m, int stage) {
  if (stage == committed) m.commit("g", "T", 3, 50);
  if (stage == committed) m.note_pulled("g", "T", 3, 80);
  if (stage == was_reset) m.set_reset("g", "T", 3, 10);
  if (stage == was_told) EXPECT_EQ(m.take_reset("g", "T", 3), 10);
  if (stage == has_noticed) m.note_pull("g", "T", 3, 10);
  co_return;
}

void check_reset(OffsetManager& m, const ResetLife& known) {
  const auto found = m.query("g", "T", 3);
  if (known.answered == committed && known.tried == committed) EXPECT_EQ(found, 50);
  if (known.answered < was_reset) return;
  EXPECT_EQ(found, 10);
  const bool counts = m.commit("g", "T", 3, 79);
  if (known.tried < has_noticed) EXPECT_FALSE(counts) << "a racing commit has undone an answered reset";
  if (known.answered == has_noticed) EXPECT_TRUE(counts);
}

Task<void> reset_and_crash(SimDisk& d, ResetLife& known) {
  {
    OffsetManager m(d, path, Durability::on_media);
    auto loaded = co_await m.load();
    for (int stage = committed; loaded && stage <= has_noticed; stage++) {
      known.tried = stage;
      co_await take_stage(m, stage);
      auto kept = co_await m.kept(m.last_change());
      if (!kept || d.crashed()) break;
      known.answered = stage;
      co_await m.fold();
      m.commit("other", "T", 0, stage);  // so that the next fold has something to do
    }
    d.crash_now();
    co_await m.close();
  }
}
Task<void> look_at_reset(SimDisk& d, const ResetLife& known) {
  OffsetManager m(d, path, Durability::on_media);
  auto loaded = co_await m.load();
  EXPECT_TRUE(loaded) << (loaded ? "" : to_string(loaded.error()));
  if (loaded) check_reset(m, known);
  co_await m.close();
}

TEST(LoggedTable, AResetIsInForceAfterACrashAtEveryPoint) {
  constexpr CrashFate (*fates[])(uint64_t) = {CrashFate::all_lost, CrashFate::all_kept,
                                              CrashFate::all_garbage, CrashFate::mixed};
  uint64_t points = 1;
  for (uint64_t point = 0; point <= points; point++) {
    for (uint64_t seed = point % 2; seed < 4; seed += 2) {
      SCOPED_TRACE("point " + std::to_string(point) + " seed " + std::to_string(seed));
      ResetLife known;
      DiskImage image = sim::empty_image();
      {
        SimLoop loop(seed);
        SimDisk d(loop, {.crash_at = point}, image);
        loop.run(reset_and_crash(d, known));
        if (point == 0) points = d.points();
        if (point == 0) EXPECT_EQ(known.answered, has_noticed);
        image = d.crash_image(fates[seed](seed));
      }
      SimLoop loop(seed);
      SimDisk d(loop, {}, image);
      loop.run(look_at_reset(d, known));
    }
  }
  EXPECT_GT(points, 60u);
}

// Each run ends in order, with a fold that has nothing else to do or a change beside it.
Task<void> reset_over_stops(SimDisk& d) {
  for (int stage = committed; stage <= has_noticed; stage++) {
    for (int stops = 0; stops < 3; stops++) {
      OffsetManager m(d, path, Durability::on_media);
      co_await m.load();
      if (stops == 0) co_await take_stage(m, stage);
      if (stops == 2) m.commit("other", "T", 0, stage);
      EXPECT_EQ(m.query("g", "T", 3), stage == committed ? 50 : 10);
      if (stage == was_reset || stage == was_told) EXPECT_FALSE(m.commit("g", "T", 3, 50)) << stops;
      if (stage == was_reset) EXPECT_FALSE(m.commit("g", "T", 3, 10)) << "it is pending";
      co_await m.close();
    }
    bool left = co_await exists(d, std::string(path) + ".log");
    EXPECT_EQ(left, stage == was_reset || stage == was_told) << "when nothing is in force there is no log";
    auto file = co_await store::load_file(d, path, nullptr);
    EXPECT_TRUE(file && file->content.find(stage == committed ? "3:50" : "3:10") != std::string::npos);
  }
  OffsetManager m(d, path, Durability::on_media);
  co_await m.load();
  EXPECT_TRUE(m.commit("g", "T", 3, 79)) << "it has taken notice";
  co_await m.close();
}
TEST(LoggedTable, AResetIsInForceAfterOrderlyStops) {
  on_one_disk(reset_over_stops);
}

// The 15 s go on while nobody runs, and are no more when the wall clock was set back.
Task<void> reset_in_time(SimDisk& d) {
  {
    OffsetManager m(d, path, Durability::on_media);
    co_await m.load();
    for (int stage = committed; stage <= was_told; stage++) co_await take_stage(m, stage);
    co_await m.close();
  }
  co_await sleep_for(14 * ns_per_s);
  {
    OffsetManager m(d, path, Durability::on_media);
    co_await m.load();
    EXPECT_FALSE(m.commit("g", "T", 3, 80));
    co_await sleep_for(2 * ns_per_s);
    EXPECT_TRUE(m.commit("g", "T", 3, 80));
    co_await m.close();
  }
  bool left = co_await exists(d, std::string(path) + ".log");
  EXPECT_FALSE(left) << "what has passed is in force no more";
}
TEST(LoggedTable, AResetIsInForceForItsTime) {
  on_one_disk(reset_in_time);
}

// The loss of power took what the group was reset to.
Task<void> reset_behind_the_end(SimDisk& d) {
  OffsetManager m(d, path, Durability::on_media);
  co_await m.load();
  for (int stage = committed; stage <= was_reset; stage++) co_await take_stage(m, stage);
  m.cut("g", "T", 3, 5);
  EXPECT_EQ(m.query("g", "T", 3), 5);
  EXPECT_FALSE(m.commit("g", "T", 3, 10)) << "it is pending";
  EXPECT_EQ(m.take_reset("g", "T", 3), 5);
  m.cut("g", "T", 3, 4);
  EXPECT_EQ(m.query("g", "T", 3), 4);
  co_await m.close();
}
TEST(LoggedTable, AResetBehindTheEndOfItsQueueIsSetToIt) {
  on_one_disk(reset_behind_the_end);
}

// A group that is deleted takes its resets along: one of that name begins anew.
Task<void> reset_and_deleted(SimDisk& d) {
  OffsetManager m(d, path, Durability::on_media);
  co_await m.load();
  for (int stage = committed; stage <= was_reset; stage++) co_await take_stage(m, stage);
  m.remove_group("g");
  EXPECT_TRUE(m.commit("g", "T", 3, 50));
  auto kept = co_await m.kept(m.last_change());
  EXPECT_TRUE(kept);
  OffsetManager again(d, path, Durability::on_media);
  co_await again.load();
  EXPECT_TRUE(again.commit("g", "T", 3, 51));
  co_await again.close();
}
TEST(LoggedTable, ADeletedGroupHasNoResets) {
  on_one_disk(reset_and_deleted);
}

// ---- topics and groups ---------------------------------------------------------------------------------

const BrokerConfig config;

// Each step is one change, and makes the data version's counter one more.
struct Topics : TopicManager {
  static constexpr const char* file = "/data/store/config/topics.json";
  explicit Topics(Disk& d) : TopicManager(d, file, config, 18) {}
  void step(int64_t i) {
    proto::TopicConfig c;
    c.topic_name = i % 4 == 0 ? "a" : "b";
    c.write_queue_nums = static_cast<int32_t>(i + 1);
    if (i % 4 == 1) c.attributes["message.type"] = "FIFO";
    if (i % 4 < 2) put(std::move(c), i);
    if (i % 4 == 2) remove("a", i);
    if (i % 4 == 3) changed(i);
  }
};
struct Groups : GroupManager {
  static constexpr const char* file = "/data/store/config/subscriptionGroup.json";
  explicit Groups(Disk& d) : GroupManager(d, file, config) {}
  void step(int64_t i) {
    proto::SubscriptionGroupConfig c;
    c.group_name = i % 4 == 0 ? "a" : "b";
    c.retry_max_times = static_cast<int32_t>(i);
    if (i % 8 == 3) c.subscription_data_set.emplace().push_back({"T", "TAG", "*", 0});
    if (i % 4 == 0 || i % 8 == 3) put(std::move(c), i);
    if (i % 8 == 1) set_read_forbidden("b", "T", true, i);
    if (i % 8 == 5) set_read_forbidden("b", "U", true, i);
    if (i % 8 == 6) set_read_forbidden("b", "U", false, i);
    if (i % 8 == 2) remove("a", i);
    if (i % 8 == 7) remove("b", i);
  }
};

struct Steps {
  int64_t answered = 0, tried = 0;
};

template <class Table>
Task<void> step_and_fold(SimDisk& d, Steps& steps, int64_t count) {
  Table table(d);
  auto loaded = co_await table.load();
  if (!d.crashed()) {
    EXPECT_TRUE(loaded) << (loaded ? "" : to_string(loaded.error()));
    const int64_t found = table.data_version().counter;
    EXPECT_GE(found, steps.answered) << "an answered change is lost";
    EXPECT_LE(found, steps.tried);
    Table expected(d);
    for (int64_t i = 0; i < found; i++) expected.step(i);
    EXPECT_EQ(table.snapshot().to_json(), expected.snapshot().to_json());
    steps.answered = steps.tried = found;
  }
  Scope folding;
  for (int64_t i = steps.tried, end = i + count; !d.crashed() && i < end; i++) {
    table.step(i);
    steps.tried = i + 1;
    EXPECT_EQ(table.data_version().counter, steps.tried);
    if (i % 7 == 4) co_await folding.join();
    if (i % 7 == 4) folding.spawn(table.fold());
    auto saved = co_await table.save();
    if (!saved) break;
    steps.answered = steps.tried;
  }
  co_await folding.join();
  d.crash_now();
  co_await table.close();
}

template <class Table>
uint64_t steps_until(uint64_t point, Steps& steps, DiskImage& image, const CrashFate& fate) {
  SimLoop loop(point);
  SimDisk d(loop, {.crash_at = point}, image);
  loop.run(step_and_fold<Table>(d, steps, 16));
  image = d.crash_image(fate);
  return d.points();
}

template <class Table>
void crash_everywhere() {
  Steps all;
  DiskImage image = sim::empty_image();
  const uint64_t points = steps_until<Table>(0, all, image, CrashFate::all_lost(0));
  ASSERT_EQ(all.answered, 16);
  ASSERT_GT(points, 60u);
  for (uint64_t point = 1; point <= points; point++) {
    SCOPED_TRACE("point " + std::to_string(point));
    constexpr CrashFate (*fates[])(uint64_t) = {CrashFate::all_lost, CrashFate::all_garbage,
                                                CrashFate::mixed};
    Steps steps;
    image = sim::empty_image();
    steps_until<Table>(point, steps, image, fates[point % 3](point));
    steps_until<Table>(1 + point * 7 % points, steps, image, fates[(point + 1) % 3](point));
    steps_until<Table>(0, steps, image, CrashFate::all_lost(point));
  }
}
TEST(LoggedTable, KeepsAnsweredChangesOfTopicsAtEveryPoint) {
  crash_everywhere<Topics>();
}
TEST(LoggedTable, KeepsAnsweredChangesOfGroupsAtEveryPoint) {
  crash_everywhere<Groups>();
}

// One topic more does not cost all of them; and an orderly stop leaves the file that RocketMQ reads.
Task<void> one_more(SimDisk& d) {
  {
    Topics topics(d);
    co_await topics.load();
    proto::TopicConfig c;
    for (int i = 0; i < 20'000; i++) {
      c.topic_name = "topic_" + std::to_string(i);
      topics.put(c, i);
    }
    co_await topics.fold();
    const uint64_t before = d.counters().bytes_written;
    c.topic_name = "one_more";
    topics.put(c, 1);
    auto saved = co_await topics.save();
    EXPECT_TRUE(saved);
    EXPECT_LT(d.counters().bytes_written - before, 512u);
    co_await topics.close();
  }
  bool left = co_await exists(d, std::string(Topics::file) + ".log");
  EXPECT_FALSE(left);
  auto file = co_await store::load_file(d, Topics::file, nullptr);
  EXPECT_TRUE(file && file->content.find("\"one_more\"") != std::string::npos);
  Topics again(d);
  co_await again.load();
  EXPECT_EQ(again.all().size(), 20'001u);
  EXPECT_EQ(again.data_version().counter, 20'001);
  co_await again.close();
}
TEST(LoggedTable, OneTopicMoreCostsALine) {
  on_one_disk(one_more);
}

}  // namespace
}  // namespace rmq::broker

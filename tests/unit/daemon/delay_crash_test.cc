// A crash at every write of small workloads, and random lives by seed: a delayed message never comes early,
// is never lost, never comes twice.
#include "delay_model.h"

namespace rmq::broker {
namespace {

std::string property(std::string_view name, int64_t value) {
  std::string out;
  proto::append_property(out, name, std::to_string(value));
  return out;
}

DelayedSend by_level(int level, int64_t delay_ms, int64_t at_ms) {
  return {property(proto::prop::DELAY, level), at_ms, delay_ms};
}

DelayedSend by_delay_ms(int64_t delay_ms, int64_t at_ms, int64_t recall_ms = -1) {
  return {property(proto::prop::TIMER_DELAY_MS, delay_ms), at_ms, delay_ms, 20, recall_ms};
}
DelayedSend by_delay_sec(int64_t delay_sec, int64_t at_ms) {
  return {property(proto::prop::TIMER_DELAY_SEC, delay_sec), at_ms, delay_sec * 1000};
}

BrokerConfig small_config() {
  BrokerConfig c = crash_config();
  c.messageDelayLevel = "1s 2s 5s";
  c.autoCreateTopicEnable = false;
  return c;
}

std::vector<DelayedSend> small_levels() {
  std::vector<DelayedSend> out;
  for (int64_t at : {0, 100, 900, 11'500, 12'000}) {
    out.push_back(by_level(1, 1000, at));
    out.push_back(by_level(1, 1000, at));
    out.push_back(by_level(2, 2000, at));
  }
  return out;
}

std::vector<DelayedSend> small_timers() {
  std::vector<DelayedSend> out;
  for (int64_t at : {0, 300, 11'800}) {
    out.push_back(by_delay_ms(700, at));
    out.push_back(by_delay_ms(1700, at, at + 500));
    out.push_back(by_delay_ms(15, at));
    out.push_back(by_delay_sec(1, at));
    out.push_back(by_delay_sec(1, at));
    out.push_back(by_level(1, 1000, at));
  }
  out.push_back(by_delay_ms(12'000, 400, 3000));
  out.push_back(by_delay_ms(13'000, 400));
  return out;
}

uint64_t count_points(const DelayLife& life) {
  DelayModel model;
  Machine machine;
  live(model, machine, life, sim::CrashFate::all_lost(1));
  EXPECT_TRUE(machine.errors.empty()) << text_of(machine.errors);
  return machine.points;
}

// Crashes at that point, perhaps once more in the life after it, and looks at the end.
std::vector<std::string> crash_at(const DelayLife& first, uint64_t point, uint64_t again) {
  DelayModel model;
  Machine machine;
  DelayLife life = first;
  life.crash_at = point;
  live(model, machine, life, fate_of(point));
  DelayLife next = first;
  next.sends.clear();
  next.down_ms = (point % 3) * 700;
  if (again != 0) {
    next.seed = first.seed + 1;
    next.crash_at = again;
    live(model, machine, next, fate_of(point + again));
  }
  next.crash_at = 0;
  next.seed = first.seed + 2;
  next.final = true;
  live(model, machine, next, fate_of(0));
  return machine.errors;
}

void at_every_point(const DelayLife& first, const char* what) {
  const uint64_t points = count_points(first);
  ASSERT_GT(points, 200u) << "the workload does too little";
  each_point(points, what, [&](uint64_t point, uint64_t again) { return crash_at(first, point, again); });
}

TEST(DelayCrash, LevelsAtEveryPoint) {
  DelayLife life;
  life.config = small_config();
  life.sends = small_levels();
  at_every_point(life, "levels, sync flush,");
}

TEST(DelayCrash, LevelsAtEveryPointAsyncFlush) {
  DelayLife life;
  life.seed = 5;
  life.config = small_config();
  life.config.flushDiskType = "ASYNC_FLUSH";
  life.sends = small_levels();
  at_every_point(life, "levels, async flush,");
}

TEST(DelayCrash, TimersAtEveryPoint) {
  DelayLife life;
  life.config = small_config();
  life.sends = small_timers();
  at_every_point(life, "timers, sync flush,");
}

TEST(DelayCrash, TimersAtEveryPointAsyncFlush) {
  DelayLife life;
  life.seed = 7;
  life.config = small_config();
  life.config.flushDiskType = "ASYNC_FLUSH";
  life.sends = small_timers();
  at_every_point(life, "timers, async flush,");
}

TEST(DelayCrash, TimersUnderAWallClockThatJumps) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    DelayModel model;
    Machine machine;
    DelayLife life;
    life.seed = seed;
    life.config = small_config();
    life.wall_steps = 2000;
    life.sends = small_timers();
    life.final = true;
    live(model, machine, life, fate_of(0));
    EXPECT_TRUE(machine.errors.empty()) << "seed " << seed << text_of(machine.errors);
  }
}

// Several lives, each with work of its own and an end at any point; few timers fit into memory.
std::vector<std::string> random_lives(uint64_t seed, uint64_t& rolled) {
  sim::SimRandom random(seed);
  DelayModel model;
  Machine machine;
  const int lives = static_cast<int>(2 + random.below(3));
  for (int i = 0; i <= lives; i++) {
    DelayLife life;
    life.seed = seed * 10 + static_cast<uint64_t>(i);
    life.config = small_config();
    if (seed % 3 == 0) life.config.flushDiskType = "ASYNC_FLUSH";
    life.entries_max = random.below(2) == 0 ? 8 : 0;
    life.final = i == lives;
    life.last_ms = life.final ? 60'000 : 20'000;
    life.down_ms = random.between(0, 3000);
    const size_t sends = life.final ? 3 : 5 + random.below(40);
    for (size_t n = 0; n < sends; n++) {
      int64_t at = random.between(0, 9000), delay = random.between(1, random.below(4) == 0 ? 25'000 : 2500);
      switch (random.below(4)) {
        case 0:
          life.sends.push_back(by_level(2, 2000, at));
          break;
        case 1:
          life.sends.push_back(by_delay_sec(delay / 1000 + 1, at));
          break;
        default:
          life.sends.push_back(
              by_delay_ms(delay, at, random.below(3) == 0 ? at + random.between(0, delay) : -1));
      }
      life.sends.back().body_bytes = random.below(2) == 0 ? random.below(45'000) : 20;
    }
    if (!life.final) life.crash_at = 100 + random.below(1200);
    live(model, machine, life, fate_of(random.next()));
  }
  rolled += model.rolled;
  return machine.errors;
}

TEST(DelayCrash, RandomLives) {
  uint64_t rolled = 0;
  const uint64_t seeds = each_seed(100, [&](uint64_t seed) { return random_lives(seed, rolled); });
  EXPECT_GT(rolled, seeds) << "messages are put again as the log ages";
}

// The wall clock is set, up to an hour either way, again and again.
TEST(DelayCrash, LevelsUnderAWallClockThatJumps) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    DelayModel model;
    Machine machine;
    DelayLife life;
    life.seed = seed;
    life.config = small_config();
    life.wall_steps = 2000;
    life.sends = small_levels();
    life.final = true;
    live(model, machine, life, fate_of(0));
    EXPECT_TRUE(machine.errors.empty()) << "seed " << seed << text_of(machine.errors);
  }
}

}  // namespace
}  // namespace rmq::broker

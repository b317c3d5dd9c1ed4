// replace_file() crashed at every point, with every fate: load_file() gives the last content that was saved,
// or the one that was being saved, and never a mixture or nothing.
#include <gtest/gtest.h>

#include <string>

#include "sim/sim_disk.h"
#include "store/config_file.h"

namespace rmq::sim {
namespace {

constexpr const char* path = "/data/store/config/topics.json";
constexpr int versions = 4;

std::string content_of(int version) {
  return "{" + std::to_string(version) + std::string(static_cast<size_t>(version) * 3000, 'x') + "}";
}
bool valid(std::string_view s) {
  return s.size() > 2 && s.front() == '{' && s.back() == '}';
}

// `saved`: the newest version whose save resolved, 0 for none.
Task<void> save_all(SimDisk& d, int& saved) {
  for (int v = saved + 1; v <= versions && !d.crashed(); v++) {
    auto r = co_await store::replace_file(d, path, content_of(v));
    EXPECT_EQ(r.has_value(), !d.crashed());
    if (r) saved = v;
  }
  d.crash_now();
}

Task<void> load(SimDisk& d, int saved, int& found) {
  auto r = co_await store::load_file(d, path, valid);
  if (!r) {
    EXPECT_EQ(saved, 0) << to_string(r.error());
    EXPECT_EQ(r.error().code, Errc::not_found);
    found = 0;
    co_return;
  }
  found = -1;
  for (int v = saved; v <= saved + 1; v++)
    if (v != 0 && r->content == content_of(v)) found = v;
  EXPECT_NE(found, -1) << "neither " << saved << " nor the next: " << r->content.substr(0, 10);
}

uint64_t crash_once(uint64_t point, int& saved, DiskImage& image, const CrashFate& fate) {
  SimLoop loop(point);
  SimDisk d(loop, {.crash_at = point}, image);
  loop.run(save_all(d, saved));
  image = d.crash_image(fate);
  return d.points();
}

TEST(ConfigFile, SurvivesACrashAtEveryPoint) {
  int saved = 0;
  DiskImage image = empty_image();
  const uint64_t points = crash_once(0, saved, image, CrashFate::all_lost(0));
  ASSERT_EQ(saved, versions);
  ASSERT_GT(points, 20u);
  for (uint64_t point = 1; point <= points; point++) {
    for (uint64_t seed = 0; seed < 12; seed++) {
      SCOPED_TRACE("point " + std::to_string(point) + " seed " + std::to_string(seed));
      constexpr CrashFate (*fates[])(uint64_t) = {CrashFate::all_lost, CrashFate::all_kept,
                                                  CrashFate::all_garbage, CrashFate::mixed};
      saved = 0;
      image = empty_image();
      crash_once(point, saved, image, fates[seed % 4](seed));
      int found = 0;
      {
        SimLoop loop(1);
        SimDisk d(loop, {}, image);
        loop.run(load(d, saved, found));
      }
      // And going on from there, crashed again, works as well.
      int again = found;
      crash_once(1 + (point * 7 + seed) % 12, again, image, fates[(seed + 1) % 4](seed));
      SimLoop loop(1);
      SimDisk d(loop, {}, image);
      loop.run(load(d, again, found));
    }
  }
}

}  // namespace
}  // namespace rmq::sim

#include "store/config_file.h"

#include "machine.h"

namespace rmq::store::test {
namespace {

bool is_json(std::string_view s) {
  return s.starts_with('{') && s.ends_with('}');
}

struct Files {
  SimDisk& disk;
  std::string content;
  bool from_backup = false;
  std::optional<Errc> error;
};

Task<void> replace(Files& f) {
  auto r = co_await replace_file(f.disk, "/config/topics.json", f.content);
  f.error = r ? std::nullopt : std::optional(r.error().code);
}
Task<void> load(Files& f) {
  auto r = co_await load_file(f.disk, "/config/topics.json", is_json);
  f.error = r ? std::nullopt : std::optional(r.error().code);
  if (!r) co_return;
  f.content = r->content;
  f.from_backup = r->from_backup;
}

// At whatever point the power goes: the old content or the new one, and the new one once replace resolved.
TEST(ConfigFile, OldOrNewAtEveryCrashPoint) {
  DiskImage start = sim::empty_image();
  {
    SimLoop loop(1);
    SimDisk disk(loop, {}, start);
    Files f{disk, "{1}"};
    loop.run(replace(f));
    f.content = "{2}";
    loop.run(replace(f));
    start = disk.crash_image(CrashFate::all_lost(1));
  }
  bool crashed = true;
  for (uint64_t at = 1; crashed; at++) {
    ASSERT_LT(at, 200u);
    DiskImage after;
    {
      SimLoop loop(at);
      SimDisk disk(loop, {.crash_at = at}, start);
      Files f{disk, "{3}"};
      loop.run(replace(f));
      crashed = disk.crashed();
      EXPECT_EQ(crashed, f.error.has_value());
      after = disk.crash_image(CrashFate::mixed(at));
    }
    SimLoop loop(1);
    SimDisk disk(loop, {}, after);
    Files f{disk, ""};
    loop.run(load(f));
    EXPECT_FALSE(f.error) << at;
    if (crashed) {
      EXPECT_TRUE(f.content == "{2}" || f.content == "{3}") << at << f.content;
    } else {
      EXPECT_EQ(f.content, "{3}");
    }
  }
}

TEST(ConfigFile, BackupWhenTheFileIsNoGood) {
  SimLoop loop(1);
  SimDisk disk(loop, {});
  Files f{disk, ""};
  loop.run(load(f));
  EXPECT_EQ(f.error, Errc::not_found);
  f.content = "{old}";
  loop.run(replace(f));
  f.content = "{new";
  loop.run(replace(f));
  loop.run(load(f));
  EXPECT_EQ(f.content, "{old}");
  EXPECT_TRUE(f.from_backup);
  f.content = "bad";
  loop.run(replace(f));
  loop.run(load(f));
  EXPECT_EQ(f.error, Errc::corrupt);
}

}  // namespace
}  // namespace rmq::store::test

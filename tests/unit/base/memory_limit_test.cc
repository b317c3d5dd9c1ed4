#include "base/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rmq {
namespace {

TEST(MemoryLimit, TheTightestGroupCounts) {
  char name[] = "/tmp/memory_limit_XXXXXX";
  const std::string root = mkdtemp(name);
  std::filesystem::create_directories(root + "/system.slice/rmqd.service");
  const auto put = [&](const char* group, const char* text) {
    std::ofstream(root + group + "/memory.max") << text;
  };
  constexpr std::string_view own = "0::/system.slice/rmqd.service\n";
  EXPECT_EQ(cgroup_memory_max(own, root), UINT64_MAX) << "no files";
  put("/system.slice/rmqd.service", "max\n");
  EXPECT_EQ(cgroup_memory_max(own, root), UINT64_MAX);
  put("/system.slice", "3000000\n");
  EXPECT_EQ(cgroup_memory_max(own, root), 3'000'000u);
  put("/system.slice/rmqd.service", "2000000\n");
  EXPECT_EQ(cgroup_memory_max(own, root), 2'000'000u);
  EXPECT_EQ(cgroup_memory_max("12:memory:/x\n0::/system.slice\n", root), 3'000'000u) << "a mixed hierarchy";
  EXPECT_EQ(cgroup_memory_max("0::/\n", root), UINT64_MAX);
  EXPECT_EQ(cgroup_memory_max("12:memory:/x\n", root), UINT64_MAX);
  EXPECT_EQ(cgroup_memory_max("", root), UINT64_MAX);
  std::filesystem::remove_all(root);
}

TEST(MemoryLimit, ThisMachineHasMemory) {
  EXPECT_GT(usable_memory_bytes(), 1u << 20);
}

}  // namespace
}  // namespace rmq

// How much memory this process may count on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rmq {

// Bytes: the machine's memory, or what the tightest memory.max of our control group and those above it
// allows. Reads /proc and /sys; 0 when neither can be read.
uint64_t usable_memory_bytes();

// The parts of it, for tests. `own_group` is the text of /proc/self/cgroup, `root` stands for /sys/fs/cgroup.
// UINT64_MAX: no limit.
uint64_t cgroup_memory_max(std::string_view own_group, const std::string& root);

}  // namespace rmq

#include "base/memory_limit.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace rmq {

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

uint64_t cgroup_memory_max(std::string_view own_group, const std::string& root) {
  constexpr std::string_view unified = "0::";  // the line of cgroup v2
  size_t at = own_group.starts_with(unified) ? 0 : own_group.find("\n0::");
  if (at == std::string_view::npos) return UINT64_MAX;
  at = own_group.find(unified, at) + unified.size();
  std::string group(own_group.substr(at, own_group.find('\n', at) - at));
  uint64_t least = UINT64_MAX;
  while (group.size() > 1) {  // the root group has no such file
    std::string text = text_of(root + group + "/memory.max");
    uint64_t bytes = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), bytes).ec == std::errc{})
      least = std::min(least, bytes);
    group.resize(group.rfind('/'));
  }
  return least;
}

uint64_t usable_memory_bytes() {
  uint64_t group = cgroup_memory_max(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  struct sysinfo info;
  uint64_t machine = sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : UINT64_MAX;
  uint64_t least = std::min(group, machine);
  return least == UINT64_MAX ? 0 : least;
}

}  // namespace rmq

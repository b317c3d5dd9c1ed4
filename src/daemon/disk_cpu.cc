#include "daemon/disk_cpu.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/time.h"

namespace rmq {

namespace fs = std::filesystem;

namespace {
constexpr uint64_t interrupts_least = 100;  // fewer between two looks tell nothing, and cost nothing
constexpr uint64_t writes_least = 100;      // ... of the log
constexpr int64_t look_interval_ns = 2 * ns_per_s;
constexpr int64_t free_for_most_ns = 3600 * ns_per_s;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<uint64_t> numbers_of(std::string_view text, char between) {
  std::vector<uint64_t> out;
  while (!text.empty()) {
    uint64_t value = 0;
    auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (wrong != std::errc{}) break;
    out.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && text.front() != between) break;
    text.remove_prefix(std::min<size_t>(1, text.size()));
  }
  return out;
}

// Names in a directory; none when it cannot be read.
std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> out;
  std::error_code wrong;
  for (fs::directory_iterator i(dir, wrong), end; !wrong && i != end; i.increment(wrong))
    out.push_back(i->path().filename().string());
  return out;
}

// From what a file system lies on down to the disk: through a partition, and through mappings (LVM, LUKS)
// that lie on one device. Empty: there are several, or none.
fs::path disk_below(fs::path device) {
  std::error_code wrong;
  for (int depth = 0; depth < 8; depth++) {
    device = fs::canonical(device, wrong);
    if (wrong) return {};
    if (fs::exists(device / "partition", wrong)) device = device.parent_path();
    const std::vector<std::string> slaves = names_in(device / "slaves");
    if (slaves.empty()) return device;
    if (slaves.size() > 1) return {};
    device = device / "slaves" / slaves[0];
  }
  return {};
}

// Of the controller that the disk is at: the nearest device above that has interrupts.
std::vector<std::string> interrupts_of(const fs::path& disk, const fs::path& sys) {
  std::error_code wrong;
  const fs::path root = fs::canonical(sys, wrong);
  fs::path at = wrong ? fs::path() : fs::canonical(disk / "device", wrong);
  for (; !wrong && at != root && at.has_relative_path(); at = at.parent_path())
    if (std::vector<std::string> found = names_in(at / "msi_irqs"); !found.empty()) return found;
  return {};
}
}  // namespace

std::optional<DiskInterrupts> DiskInterrupts::of(const std::string& path, const std::string& sys) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return std::nullopt;
  const std::string number = std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
  const fs::path disk = disk_below(fs::path(sys) / "dev/block" / number);
  if (disk.empty() || names_in(disk / "mq").size() != 1) return std::nullopt;
  if (first_line(disk / "queue/rq_affinity") == "2") return std::nullopt;  // finished where it was sent
  DiskInterrupts found;
  found.disk_ = disk.filename().string();
  for (const std::string& number_of_irq : interrupts_of(disk, sys))
    found.files_.push_back(sys + "/kernel/irq/" + number_of_irq + "/per_cpu_count");
  if (found.files_.empty()) return std::nullopt;
  found.busiest_cpu();
  return found;
}

int DiskInterrupts::busiest_cpu() {
  std::vector<uint64_t> now;
  for (const std::string& file : files_) {
    const std::vector<uint64_t> counts = numbers_of(first_line(file), ',');
    now.resize(std::max(now.size(), counts.size()));
    for (size_t cpu = 0; cpu < counts.size(); cpu++) now[cpu] += counts[cpu];
  }
  counts_.resize(now.size());
  uint64_t sum = 0, most = 0;
  int busiest = 0;
  for (size_t cpu = 0; cpu < now.size(); cpu++) {
    const uint64_t came = now[cpu] - std::min(counts_[cpu], now[cpu]);
    sum += came;
    if (came > most) busiest = static_cast<int>(cpu);
    most = std::max(most, came);
  }
  counts_ = std::move(now);
  if (sum < interrupts_least) return too_few_interrupts;
  return most >= sum / 5 * 4 ? busiest : spread_interrupts;
}

StayOnCpu::StayOnCpu(std::string schedstat) : schedstat_(std::move(schedstat)) {
  CPU_ZERO(&allowed_);
  if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) CPU_ZERO(&allowed_);
}

// Two fifths of the time since it was last looked at.
bool StayOnCpu::waits_too_long(int64_t now_ns) {
  const std::vector<uint64_t> stat = numbers_of(first_line(schedstat_), ' ');  // ran, waited, times
  const uint64_t waited = stat.size() < 2 ? 0 : stat[1];
  const uint64_t more = waited - std::min(waited_ns_, waited);
  const int64_t passed = now_ns - looked_ns_;
  const bool first = looked_ns_ == 0;
  waited_ns_ = waited;
  looked_ns_ = now_ns;
  return !first && more > static_cast<uint64_t>(passed) / 5 * 2;
}

void StayOnCpu::free_for_a_while(int64_t now_ns) {
  let_go();
  free_until_ns_ = now_ns + free_for_ns_;
  free_for_ns_ = std::min(2 * free_for_ns_, free_for_most_ns);
}

int StayOnCpu::look(int cpu, int64_t now_ns) {
  const bool too_long = waits_too_long(now_ns);
  if (on_ >= 0 && too_long) free_for_a_while(now_ns);
  if (cpu == too_few_interrupts || now_ns < free_until_ns_ || cpu == on_) return on_;
  const bool may = cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed_) && CPU_COUNT(&allowed_) > 1;
  if (!may) {
    let_go();
    return on_;
  }
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  error_ = ::sched_setaffinity(0, sizeof only, &only) == 0 ? 0 : errno;
  if (error_ == 0) on_ = cpu;
  return on_;
}

void StayOnCpu::let_go() {
  if (on_ < 0) return;
  error_ = ::sched_setaffinity(0, sizeof allowed_, &allowed_) == 0 ? 0 : errno;
  on_ = -1;
}

namespace {
void say(bool first, int on, int cpu, const std::string& disk, int error) {
  const LogLevel level = first ? LogLevel::info : LogLevel::debug;
  const std::string where = std::to_string(on >= 0 ? on : cpu);
  if (error != 0)
    return log(level, "the event loop cannot be kept on the CPU that takes the disk's interrupts",
               {{"CPU", where}, {"DISK", disk}, {"REASON", std::strerror(error)}});
  if (on < 0) return log(level, "the event loop runs on any CPU", {{"DISK", disk}});
  log(level, "the event loop stays on the CPU that takes the disk's interrupts",
      {{"CPU", where}, {"DISK", disk}});
}
}  // namespace

Task<void> stay_at_disk(StayAtDisk what, Event& stop) {
  std::optional<DiskInterrupts> interrupts = DiskInterrupts::of(what.path, what.sys);
  if (!interrupts) co_return;
  StayOnCpu stay;
  bool said = false;
  int before = -1;
  for (uint64_t writes = what.log_writes;;) {
    bool stopped = co_await stop.wait_for(look_interval_ns);
    if (stopped) break;
    const int cpu = interrupts->busiest_cpu();
    const uint64_t written = what.log_writes - std::exchange(writes, what.log_writes);
    int on = -1;
    if (what.wanted && written >= writes_least)
      on = stay.look(cpu, Loop::current().now_ns());
    else
      stay.let_go();
    const bool failed = stay.error() != 0 && !said;
    if (on != before || failed) say(!std::exchange(said, true), on, cpu, interrupts->disk(), stay.error());
    before = on;
  }
  stay.let_go();
}

}  // namespace rmq

// The doctor's checks of the host that it runs on: the kernel, limits of the running daemon, and how fast the
// store's disk makes a write durable.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/time.h"
#include "ctl/doctor.h"
#include "uring/probe.h"

namespace rmq::ctl {

namespace {

constexpr size_t block = 4096, blocks_written = 64, sync_writes = 200;
constexpr uint64_t open_files_min = 4096, memlock_min = 5u << 20;  // of receive buffers alone it has 4 MiB

// The process id of a running rmqd; 0: there is none that we can see.
int running_daemon() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream comm(entry.path() / "comm");
    std::string program;
    if (std::getline(comm, program) && program == "rmqd") return std::atoi(name.c_str());
  }
  return 0;
}

// The soft limit of "Max open files" and the like in /proc/PID/limits; nothing when it cannot be read.
std::optional<uint64_t> limit_of(int pid, std::string_view what) {
  std::ifstream limits(fmt::format("/proc/{}/limits", pid));
  std::string line;
  while (std::getline(limits, line)) {
    if (!line.starts_with(what)) continue;
    const size_t at = line.find_first_not_of(' ', what.size());
    if (at == std::string::npos) return std::nullopt;
    if (line.compare(at, 9, "unlimited") == 0) return UINT64_MAX;
    return std::strtoull(line.c_str() + at, nullptr, 10);
  }
  return std::nullopt;
}

struct Descriptor {
  explicit Descriptor(int fd) : value(fd) {}
  ~Descriptor() {
    if (value >= 0) close(value);
  }
  Descriptor(const Descriptor&) = delete;
  int value;
};

std::string errno_text(const char* what) {
  return fmt::format("{}: {}", what, strerror(errno));
}

}  // namespace

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (i->ifa_addr->sa_family == AF_INET)
      inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
    else if (i->ifa_addr->sa_family == AF_INET6)
      inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr, text, sizeof text);
    if (*text != '\0') out.emplace_back(text);
  }
  freeifaddrs(list);
  return out;
}

// The file is written once before it is measured, as the log is: a write that allocates takes longer.
std::expected<SyncLatency, std::string> measure_sync_latency(const std::string& directory, size_t writes) {
  Descriptor file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  if (file.value < 0) return std::unexpected(errno_text("a file cannot be made there"));
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(block, block), &std::free);
  if (!memory) return std::unexpected(errno_text("no memory"));
  std::memset(memory.get(), 0x5a, block);
  iovec v{memory.get(), block};
  for (size_t i = 0; i < blocks_written; i++)
    if (pwritev(file.value, &v, 1, static_cast<off_t>(i * block)) != static_cast<ssize_t>(block))
      return std::unexpected(errno_text("it cannot be written"));
  if (fdatasync(file.value) != 0) return std::unexpected(errno_text("it cannot be synced"));
  std::vector<int64_t> times;
  for (size_t i = 0; i < writes; i++) {
    const int64_t began_ns = system_mono_ns();
    if (pwritev2(file.value, &v, 1, static_cast<off_t>(i % blocks_written * block), RWF_DSYNC) !=
        static_cast<ssize_t>(block))
      return std::unexpected(errno_text("it cannot be written durably"));
    times.push_back((system_mono_ns() - began_ns) / ns_per_us);
  }
  std::sort(times.begin(), times.end());
  return SyncLatency{directory, times[times.size() / 2], times[times.size() * 99 / 100], times.back(),
                     times.size()};
}

void Doctor::look_at_kernel() {
  const ProbeFacts facts = probe_kernel();
  const std::string verdict = probe_verdict(facts, 0);
  if (!verdict.empty())
    return add(Grade::problem, "io-uring", "this host", verdict, "rmqd needs it and does not start without.");
  if (facts.io_uring_disabled.value_or(0) != 0)
    return add(Grade::problem, "io-uring", "this host",
               fmt::format(
                   "sysctl kernel.io_uring_disabled is {}: io_uring works for you, but not for the user rmqd",
                   *facts.io_uring_disabled),
               "sysctl -w kernel.io_uring_disabled=0, and a file in /etc/sysctl.d that says so.");
  add(Grade::ok, "io-uring", "this host", "kernel " + facts.kernel_release + " has all that rmqd needs");
}

void Doctor::look_at_limits() {
  const int pid = running_daemon();
  if (pid == 0) return;
  const std::string subject = fmt::format("rmqd, process {}", pid);
  const auto memlock = limit_of(pid, "Max locked memory"), files = limit_of(pid, "Max open files");
  if (!memlock || !files)
    return add(Grade::note, "limits", subject, "its limits cannot be read",
               "Run the doctor as root, or as user rmqd.");
  if (*memlock < memlock_min)
    add(Grade::warning, "memlock", subject,
        fmt::format("it may lock {} of memory only: io_uring may have no room for its buffers",
                    format_bytes(static_cast<int64_t>(*memlock))),
        "systemctl edit rmqd: [Service] LimitMEMLOCK=512M, then restart it. In a container the limit is the "
        "container's.");
  else
    add(Grade::ok, "memlock", subject, "it may lock as much memory as it needs");
  if (*files < open_files_min)
    add(Grade::warning, "open-files", subject,
        fmt::format("it may have {} files and connections open at a time", *files),
        "systemctl edit rmqd: [Service] LimitNOFILE=524288, then restart it.");
  else
    add(Grade::ok, "open-files", subject,
        fmt::format("it may have {} files and connections open",
                    format_number(static_cast<int64_t>(std::min<uint64_t>(*files, INT64_MAX)))));
}

void Doctor::look_at_store(const std::string& directory, Grade when_it_cannot) {
  auto measured = measure_sync_latency(directory, sync_writes);
  const std::string subject = "disk of " + directory;
  if (!measured)
    return add(
        when_it_cannot, "dsync-latency", subject, measured.error(),
        "Run the doctor as root, or as the user that rmqd runs as; the directory is storePathRootDir.");
  const double median_ms = static_cast<double>(measured->median_us) / 1000,
               p99_ms = static_cast<double>(measured->p99_us) / 1000,
               worst_ms = static_cast<double>(measured->worst_us) / 1000;
  const std::string text = fmt::format(
      "a durable write of 4 KiB takes {:.2f} ms; of 100 one takes {:.2f} ms, the slowest of {} took {:.2f} "
      "ms",
      median_ms, p99_ms, measured->writes, worst_ms);
  const Grade grade = p99_ms > 500 ? Grade::problem : p99_ms > 50 ? Grade::warning : Grade::ok;
  add(grade, "dsync-latency", subject, text,
      grade == Grade::ok ? ""
                         : "With SYNC_FLUSH every batch of sends waits for one. Use a device of its own with "
                           "a write cache that "
                           "survives a power cut (enterprise SSD), look for others on it (iostat -x 1) and "
                           "for errors (journalctl -k).");
}

void Doctor::look_at_host(const std::string& store) {
  std::vector<std::string> stores;
  if (!store.empty()) stores.push_back(store);
  const std::vector<std::string> own = own_addresses();
  bool is_here = !store.empty();
  for (const BrokerSeen& b : brokers_) {
    auto a = parse_address(b.node.address, 0);
    if (!a || std::find(own.begin(), own.end(), a->host) == own.end()) continue;
    is_here = true;
    auto root = b.config.find("storePathRootDir");
    if (store.empty() && root != b.config.end() && b.runtime.contains("rmqdVersion"))
      stores.push_back(root->second);
  }
  if (!is_here)
    return add(Grade::note, "host", "this host",
               "no broker of the cluster runs here: kernel, limits and disk were not looked at",
               "Run \"rmqctl doctor\" on the brokers' hosts, too.");
  look_at_kernel();
  look_at_limits();
  for (const std::string& directory : stores)
    look_at_store(directory, store.empty() ? Grade::note : Grade::problem);
}

}  // namespace rmq::ctl

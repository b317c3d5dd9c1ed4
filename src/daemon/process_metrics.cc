#include "daemon/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <set>

#include "base/log.h"

namespace rmq {

ProcessMetrics::ProcessMetrics(Ring& ring, RecvPool& pool, Disk& disk)
    : ring_(ring), pool_(pool), disk_(disk), started_ms_(ring.wall_ms()) {}

void ProcessMetrics::write_servers(MetricsPage& page) const {
  page.family(metric::connections);
  for (const Served& s : servers_)
    page.sample({{"port", std::to_string(s.server->port())}}, s.server->connections());
  PeerFaults sum;
  std::set<const Service*> seen;
  for (const Served& s : servers_)
    if (seen.insert(s.service).second) sum += s.service->faults;
  page.family(metric::closed_connections);
  page.sample({{"reason", "malformed_frame"}}, sum.malformed_frame);
  page.sample({{"reason", "idle"}}, sum.idle);
  page.sample({{"reason", "no_memory"}}, sum.no_memory);
  page.sample({{"reason", "too_many"}}, sum.too_many);
  page.sample({{"reason", "accept_failed"}}, sum.accept_failed);
}

void ProcessMetrics::write_ring(MetricsPage& page) const {
  page.only(metric::ring_enters, ring_.enters());
  page.only(metric::ring_in_flight, ring_.in_flight());
  page.only(metric::loop_turns, ring_.turns());
  page.only(metric::receive_buffers, uint64_t{pool_.buffers()});
  page.only(metric::receive_buffers_free, uint64_t{pool_.free_buffers()});
  page.only(metric::receive_shortages, pool_.times_starved());
}

// The first numbers of a small file of /proc; empty when it cannot be read.
static Task<std::vector<uint64_t>> read_numbers(Disk& disk, std::string path) {
  std::vector<uint64_t> out;
  auto file = co_await disk.open(std::move(path), {});
  if (!file) co_return out;
  std::array<std::byte, 512> text;
  auto n = co_await (*file)->read(0, text);
  co_await (*file)->close();
  std::string_view rest = n ? as_text(Bytes(text).first(*n)) : std::string_view{};
  while (!rest.empty()) {
    uint64_t value = 0;
    auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (wrong != std::errc{}) break;
    out.push_back(value);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  co_return out;
}

Task<void> ProcessMetrics::write_process(MetricsPage& page) {
  constexpr double second_us = 1e6, second_ms = 1e3;
  page.only(metric::process_start, static_cast<double>(started_ms_) / second_ms);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  page.only(metric::process_cpu,
            static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / second_us);
  const std::vector<uint64_t> pages = co_await read_numbers(disk_, "/proc/self/statm");
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (pages.size() >= 2) {
    page.only(metric::process_resident, pages[1] * page_bytes);
    page.only(metric::process_virtual, pages[0] * page_bytes);
  }
  auto open = co_await disk_.list("/proc/self/fd");
  if (open) page.only(metric::process_fds, uint64_t{open->size()});
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) == 0) page.only(metric::process_max_fds, uint64_t{most.rlim_cur});
}

Task<void> ProcessMetrics::write(MetricsPage& page) {
  page.family(metric::build_info);
  page.sample({{"version", RMQD_VERSION}}, 1);
  write_servers(page);
  write_ring(page);
  const LogCounts lines = log_counts();
  page.family(metric::log_lines_lost);
  page.sample({{"reason", "rate"}}, lines.over_rate);
  page.sample({{"reason", "queue"}}, lines.lost);
  co_await write_process(page);
}

}  // namespace rmq

// Before our headers: its members are called check(), as our macro is.
#include <CLI/CLI.hpp>

#include "daemon/service_manager.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"

namespace rmq {

CommandLine parse_command_line(int argc, char** argv, std::string_view program, std::string_view what,
                               std::string_view default_config, std::string_view keys_help,
                               bool with_standalone) {
  CommandLine c;
  CLI::App app{std::string(what), std::string(program)};
  bool version = false;
  app.add_option("-c,--config", c.config_file, "Configuration file")->type_name("FILE");
  app.add_option("-o,--set", c.settings, "Set a configuration key; wins over the file; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--check-config", c.check_config, "Check the configuration and exit (0: good, 78: not)");
  if (with_standalone)
    app.add_flag("--standalone", c.standalone,
                 "Run a name server in this process too; no configuration file is needed");
  app.add_flag("--version", version, "Print the version and exit");
  app.add_flag("--dump-config-man", c.print_config_roff)->group("");
  app.add_flag("--dump-metrics-man", c.print_metrics_roff)->group("");
  app.footer("Configuration keys, with their defaults (file " + std::string(default_config) + "):\n" +
             std::string(keys_help));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);
    c.exit_with = code == 0 ? exit_code::ok : exit_code::usage;
    return c;
  }
  if (version) {
    std::printf("%.*s %s\n", static_cast<int>(program.size()), program.data(), RMQD_VERSION);
    c.exit_with = exit_code::ok;
  }
  return c;
}

bool under_systemd() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat st{};
  unsigned long device = 0, inode = 0;
  if (stream == nullptr || std::sscanf(stream, "%lu:%lu", &device, &inode) != 2) return false;
  return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void report_config_errors(const std::vector<std::string>& errors) {
  const bool to_journal = under_systemd() && !errors.empty();
  if (to_journal) log_start(true, LogLevel::info);
  for (const std::string& e : errors) {
    if (to_journal)
      log(LogLevel::error, ids::config_invalid, e);
    else
      std::fprintf(stderr, "%s\n", e.c_str());
  }
  if (to_journal) log_stop();
}

static void notify(const std::string& state) {
  sd_notify(0, state.c_str());
}

void notify_ready(std::string_view status) {
  notify("READY=1\nSTATUS=" + std::string(status));
}
void notify_status(std::string_view status) {
  notify("STATUS=" + std::string(status));
}
void notify_stopping() {
  notify("STOPPING=1\nSTATUS=Stopping");
}
void notify_more_time(std::string_view status, int64_t more_time_ns) {
  notify("EXTEND_TIMEOUT_USEC=" + std::to_string(more_time_ns / ns_per_us) +
         "\nSTATUS=" + std::string(status));
}

Task<void> extend_stop(std::function<std::string()> what, Event& stopped) {
  constexpr int64_t interval_ns = 5 * ns_per_s, more_time_ns = 60 * ns_per_s;
  for (;;) {
    bool done = co_await stopped.wait_for(interval_ns);
    if (done) co_return;
    notify_more_time(what(), more_time_ns);
  }
}

Task<void> feed_watchdog(Event& stop) {
  uint64_t interval_us = 0;
  if (sd_watchdog_enabled(0, &interval_us) <= 0) co_return;
  for (;;) {
    notify("WATCHDOG=1");
    bool stopped = co_await stop.wait_for(static_cast<int64_t>(interval_us) * ns_per_us / 2);
    if (stopped) co_return;
  }
}

std::string first_host_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "127.0.0.1";
  std::string v4, v6;
  for (ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & IFF_UP) == 0)
      continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (i->ifa_addr->sa_family == AF_INET && v4.empty()) {
      inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
      v4 = text;
    } else if (i->ifa_addr->sa_family == AF_INET6 && v6.empty()) {
      auto* a = reinterpret_cast<sockaddr_in6*>(i->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr)) continue;
      inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
      v6 = text;
    }
  }
  freeifaddrs(list);
  return !v4.empty() ? v4 : !v6.empty() ? v6 : "127.0.0.1";
}

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace rmq

// What systemd and a person at a terminal see of a daemon: readiness, status text, the watchdog, exit codes
// (sysexits.h), and the common command line of both daemons.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "uring/sync.h"

namespace rmq {

namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int failure = 1;
inline constexpr int usage = 64;        // EX_USAGE: the command line
inline constexpr int data_error = 65;   // EX_DATAERR: a damaged store, or one of another kind
inline constexpr int unavailable = 69;  // EX_UNAVAILABLE: the kernel lacks something
inline constexpr int io_error = 74;     // EX_IOERR
inline constexpr int config = 78;       // EX_CONFIG; systemd does not start us again then
}  // namespace exit_code

struct CommandLine {
  std::string config_file;
  std::vector<std::string> settings;  // key=value of -o
  bool check_config = false;
  bool standalone = false;
  bool print_config_roff = false;
  bool print_metrics_roff = false;
  // Set: do not run, exit with this code (help, version, a mistake; the text is printed already).
  int exit_with = -1;
};

// Parses argv. `keys_help` is what config_help() gave; `with_standalone`: rmqd's option.
CommandLine parse_command_line(int argc, char** argv, std::string_view program, std::string_view what,
                               std::string_view default_config, std::string_view keys_help,
                               bool with_standalone);

bool under_systemd();  // stderr is the journal
// Says what is wrong with the configuration, a line each: to the journal as an event when started by systemd,
// else bare to stderr. Before log_start().
void report_config_errors(const std::vector<std::string>& errors);

// sd_notify lines; without a notify socket they do nothing.
void notify_ready(std::string_view status);
void notify_status(std::string_view status);
void notify_stopping();
// More time to start or stop (from now), with a status text.
void notify_more_time(std::string_view status, int64_t more_time_ns);

// A stop that takes long: says each few seconds what it is at, and asks the service manager for more time,
// until `stopped`. `what` gives the text; it runs on the loop that stops, so a loop that hangs gets no time.
Task<void> extend_stop(std::function<std::string()> what, Event& stopped);

// Feeds the watchdog of systemd at half its interval until `stop`; it runs on the ring that it vouches for.
Task<void> feed_watchdog(Event& stop);

// The first address of this host that is not a loopback one, IPv4 before IPv6; "127.0.0.1" when there is
// none.
std::string first_host_address();
std::string host_name();

}  // namespace rmq

#include "daemon/reload.h"

#include <systemd/sd-daemon.h>

#include <algorithm>

#include "base/log.h"
#include "base/time.h"

namespace rmq {

void begin_reload() {
  const std::string state = "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(system_mono_ns() / ns_per_us);
  sd_notify(0, state.c_str());
}

static void end_reload() {
  sd_notify(0, "READY=1");
}

// The log takes 20 lines of an event in ten seconds (base/log.h). What would be more goes into one.
static constexpr size_t lines_of_event = 15;

static void report_changes(LogLevel level, const MessageId& id, const std::vector<ConfigChange>& changes,
                           std::string_view client, std::string_view file) {
  std::string rest;
  for (size_t i = 0; i < changes.size(); i++) {
    const ConfigChange& c = changes[i];
    const std::string text =
        "'" + c.key + "' is " +
        (c.at_once ? (c.to.empty() ? "empty" : c.to) + " now"
                   : std::string("changed in the configuration: it takes effect at the next start"));
    if (i >= lines_of_event)
      rest += (rest.empty() ? "" : "; ") + text + " (from '" + c.from + "' to '" + c.to + "')";
    else
      log(level, id, text,
          {{"KEY", c.key}, {"FROM", c.from}, {"TO", c.to}, {"CLIENT", client}, {"FILE", file}});
  }
  if (!rest.empty()) log(level, id, rest, {{"CLIENT", client}, {"FILE", file}});
}

void report_useless(const std::vector<std::string>& lines) {
  std::string rest;
  for (size_t i = 0; i < lines.size(); i++) {
    if (i < lines_of_event)
      log(LogLevel::notice, ids::config_useless, lines[i]);
    else
      rest += (rest.empty() ? "" : "; ") + lines[i];
  }
  if (!rest.empty()) log(LogLevel::notice, ids::config_useless, rest);
}

void report_waiting(const std::vector<ConfigChange>& changes, std::string_view client,
                    std::string_view file) {
  report_changes(LogLevel::warning, ids::config_needs_restart, changes, client, file);
}

void report_reload(const std::vector<ConfigChange>& changes) {
  std::vector<ConfigChange> now, later;
  for (const ConfigChange& c : changes) (c.at_once ? now : later).push_back(c);
  report_changes(LogLevel::notice, ids::config_changed, now, {}, {});
  report_changes(LogLevel::warning, ids::config_needs_restart, later, {}, {});
  const std::string changed = std::to_string(now.size()), wait = std::to_string(later.size());
  log(LogLevel::notice, ids::config_reloaded,
      "the configuration was read again: " + changed + " keys changed, " + wait + " wait for a restart",
      {{"CHANGED", changed}, {"WAITING", wait}});
  end_reload();
}

void report_refused_reload(const ConfigErrors& errors) {
  for (const std::string& e : errors) log(LogLevel::error, ids::config_invalid, e);
  log(LogLevel::error, ids::reload_refused, "the configuration was not taken: nothing has changed",
      {{"REASON", errors.empty() ? std::string() : errors.front()}});
  end_reload();
}

}  // namespace rmq

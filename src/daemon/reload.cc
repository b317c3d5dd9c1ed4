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

void report_waiting(const std::vector<ConfigChange>& changes, std::string_view client,
                    std::string_view file) {
  for (const ConfigChange& c : changes)
    log(LogLevel::warning, ids::config_needs_restart,
        "'" + c.key + "' is changed in the configuration: it takes effect at the next start",
        {{"KEY", c.key}, {"FROM", c.from}, {"TO", c.to}, {"CLIENT", client}, {"FILE", file}});
}

void report_reload(const std::vector<ConfigChange>& changes) {
  size_t waiting = 0;
  for (const ConfigChange& c : changes) {
    waiting += c.at_once ? 0 : 1;
    if (c.at_once)
      log(LogLevel::notice, ids::config_changed,
          "'" + c.key + "' is " + (c.to.empty() ? "empty" : c.to) + " now",
          {{"KEY", c.key}, {"FROM", c.from}, {"TO", c.to}});
    else
      log(LogLevel::warning, ids::config_needs_restart,
          "'" + c.key + "' is changed in the configuration: it takes effect at the next start",
          {{"KEY", c.key}, {"FROM", c.from}, {"TO", c.to}});
  }
  const std::string changed = std::to_string(changes.size() - waiting), wait = std::to_string(waiting);
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

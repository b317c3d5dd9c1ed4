// SIGHUP: the configuration is read again. What may change at run time takes effect at once; of the rest the
// journal says what waits for a restart. A configuration with a mistake changes nothing.
#pragma once

#include <string>
#include <vector>

#include "daemon/config_table.h"

namespace rmq {

struct ConfigChange {
  std::string key, from, to;
  bool at_once = false;  // else at the next start
};

// What `next` has that is not in force.
template <class C>
std::vector<ConfigChange> config_changes(std::span<const ConfigKey<C>> table, const C& in_force,
                                         const C& next) {
  std::vector<ConfigChange> out;
  for (const auto& k : table) {
    std::string was = config_get(k, in_force), is = config_get(k, next);
    if (was != is) out.push_back({std::string(k.name), std::move(was), std::move(is), k.run_time});
  }
  return out;
}

// Keys that may change at run time get the values of `next`.
template <class C>
void take_run_time_keys(std::span<const ConfigKey<C>> table, C& in_force, const C& next) {
  for (const auto& k : table)
    if (k.run_time) std::visit([&](auto member) { in_force.*member = next.*member; }, k.member);
}

// Around a reload, for systemd (RELOADING=1 with MONOTONIC_USEC=, then READY=1) and the journal.
void begin_reload();
void report_reload(const std::vector<ConfigChange>& changes);
// What a request has changed for the next start: by whom, kept where.
void report_waiting(const std::vector<ConfigChange>& changes, std::string_view client, std::string_view file);
// Keys without effect, as read_broker_config() and read_config() tell them.
void report_useless(const std::vector<std::string>& lines);
void report_refused_reload(const ConfigErrors& errors);

}  // namespace rmq

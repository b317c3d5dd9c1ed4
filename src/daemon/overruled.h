// Keys of a configuration file that have no effect, since the daemon's own file (what was changed at run time
// where the configuration file could not be written) has another value for them. Who edits the one must be
// told of the other.
#pragma once

#include <string>
#include <vector>

#include "daemon/config_table.h"

namespace rmq {

// A line for each: "/etc/rmqd/rmqd.toml:12: 'fileReservedTime' has no effect: …".
inline std::vector<std::string> overruled_keys(const std::vector<detail::ConfigEntry>& main,
                                               const std::string& main_path,
                                               const std::vector<detail::ConfigEntry>& own,
                                               const std::string& own_path) {
  std::vector<std::string> out;
  for (const detail::ConfigEntry& m : main)
    for (const detail::ConfigEntry& o : own)
      if (m.key == o.key && m.value != o.value)
        out.push_back(main_path + ":" + std::to_string(m.line) + ": '" + m.key + "' has no effect: it is '" +
                      o.value + "' in " + own_path +
                      ", where it was kept when it was changed while the daemon ran");
  return out;
}

}  // namespace rmq

// Where the configuration of a running name server came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/config.h"

namespace rmq::namesrv {

struct ConfigSource {
  NamesrvConfig defaults;             // inside of rmqd: what the broker's configuration says
  std::string file;                   // empty: none
  std::vector<std::string> settings;  // key=value of the command line; they win over files
};
// Beside the KV config (empty where that has no path): what was changed at run time where the configuration
// file could not be written. It wins over that.
std::string own_config_path(const NamesrvConfig& c);
// From its files (blocking), or from texts that stand for them. What is wrong goes to `errors`; keys without
// effect to `useless`, which may be null.
NamesrvConfig read_config(const ConfigSource& source, ConfigErrors& errors,
                          std::vector<std::string>* useless);
NamesrvConfig config_of(const ConfigSource& source, std::string_view file_text, std::string_view own_text,
                        ConfigErrors& errors);

}  // namespace rmq::namesrv

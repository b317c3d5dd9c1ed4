// What a broker's configuration needs before it can be used: names and addresses that were left open are
// filled in, and what a row of the table cannot say alone is checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config.h"
#include "store/types.h"

namespace rmq {

// Fills brokerName, brokerIP1, memoryLimit, storeMemoryBytes (and, standalone, namesrvAddr and the KV file).
// `standalone`: rmqd --standalone; `root_given`: storePathRootDir was set by the file or by -o. Appends to
// `errors` what cannot work.
void complete_broker_config(BrokerConfig& c, bool standalone, bool root_given, ConfigErrors& errors);

// Where the configuration of a running broker came from.
struct ConfigSource {
  std::string file;                   // empty: none
  std::vector<std::string> settings;  // key=value of the command line; they win over files
  bool standalone = false;
};
// rmqd's own file below the store, with what was changed at run time where the configuration file could not
// be written. It wins over that.
std::string own_config_path(const BrokerConfig& c);
// The completed configuration of `source`, from its files (blocking), or from texts that stand for them. What
// is wrong goes to `errors`; keys of RocketMQ without effect to `useless`, which may be null.
BrokerConfig read_broker_config(const ConfigSource& source, ConfigErrors& errors,
                                std::vector<std::string>* useless);
BrokerConfig broker_config_of(const ConfigSource& source, std::string_view file_text,
                              std::string_view own_text, ConfigErrors& errors);

// Of a completed one: bytes for requests and answers on their way (NetMemory).
uint64_t net_memory_bytes_of(const BrokerConfig& c);
store::StoreOptions store_options_of(const BrokerConfig& c);
// Of a configuration that was checked.
store::RetentionOptions retention_options_of(const BrokerConfig& c);
// deleteWhen as bits, bit h for hour h. Nothing: it is not a list of hours.
std::optional<uint32_t> hours_of(std::string_view delete_when);
NamesrvConfig namesrv_config_of(const BrokerConfig& c);

}  // namespace rmq

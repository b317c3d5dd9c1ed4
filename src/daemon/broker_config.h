// What a broker's configuration needs before it can be used: names and addresses that were left open are
// filled in, and what a row of the table cannot say alone is checked.
#pragma once

#include <optional>
#include <string_view>

#include "daemon/config.h"
#include "store/types.h"

namespace rmq {

// Fills brokerName, brokerIP1, memoryLimit, storeMemoryBytes (and, standalone, namesrvAddr and the KV file).
// `standalone`: rmqd --standalone; `root_given`: storePathRootDir was set by the file or by -o. Appends to
// `errors` what cannot work.
void complete_broker_config(BrokerConfig& c, bool standalone, bool root_given, ConfigErrors& errors);
// Of a completed one: bytes for requests and answers on their way (NetMemory).
uint64_t net_memory_bytes_of(const BrokerConfig& c);
store::StoreOptions store_options_of(const BrokerConfig& c);
// Of a configuration that was checked.
store::RetentionOptions retention_options_of(const BrokerConfig& c);
// deleteWhen as bits, bit h for hour h. Nothing: it is not a list of hours.
std::optional<uint32_t> hours_of(std::string_view delete_when);
NamesrvConfig namesrv_config_of(const BrokerConfig& c);

}  // namespace rmq

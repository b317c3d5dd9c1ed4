// What RocketMQ's broker can be told that rmqd cannot: the names of its settings, and why each does not
// matter here. For people who come with a broker.conf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/config_table.h"

namespace rmq {

bool is_rocketmq_key(std::string_view name);     // of version 5.5.0
const char* why_without(std::string_view name);  // a sentence without a full stop, for a key that rmqd lacks

// A setting without which a broker would do something else than its operator relies on: why it cannot be had.
// Null: no harm is done without it.
const char* why_refused(std::string_view key, std::string_view value);
// Keys of RocketMQ for config_read(): all of them, and refused ones are errors.
ForeignKeys rocketmq_keys_passed_over(std::vector<std::string>* found);

}  // namespace rmq

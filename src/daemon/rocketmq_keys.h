// What RocketMQ's broker can be told that rmqd cannot: the names of its settings, and why each does not
// matter here. For people who come with a broker.conf.
#pragma once

#include <string_view>

namespace rmq {

bool is_rocketmq_key(std::string_view name);     // of version 5.5.0
const char* why_without(std::string_view name);  // a sentence without a full stop, for a key that rmqd lacks

}  // namespace rmq

// What is under way at one broker, besides what groups have not consumed: what must be over before the broker
// can be switched off.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ctl/context.h"

namespace rmq::ctl {

// Half messages that nobody has ended. Reads what the broker keeps of them.
Outcome<int64_t> open_transactions_at(Context& c, const BrokerNode& broker);
// Messages of any delay that are due later. Reads the whole timer topic.
Outcome<int64_t> pending_timers_at(Context& c, const BrokerNode& broker);
// By group, those that have any.
Outcome<std::map<std::string, int64_t>> dead_letters_at(Context& c, const BrokerNode& broker);

// The functions of "rmqctl broker drain" and "broker copy", for the table of the broker verbs.
Outcome<void> drain_broker(Context& c);
Outcome<void> copy_broker(Context& c);

}  // namespace rmq::ctl

// What the requests of POP share: checks, the end of a wait, refusals.
#pragma once

#include <optional>
#include <string_view>

#include "daemon/broker/broker.h"

namespace rmq::broker {

// Topic, queue (-1: any) and group as POP_MESSAGE, NOTIFICATION and POLLING_INFO check them, in RocketMQ's
// order. Nothing: good. A group that there may be is made.
std::optional<Refusal> refusal_of_pop(Broker& b, Request& r, std::string_view topic, std::string_view group,
                                      int32_t queue_id);
// When a request that was born then (client's clock, 0: now) and may wait so long is answered: RocketMQ does
// it 50 ms before the time is up.
int64_t poll_deadline_ns(const Broker& b, int64_t born_ms, int64_t poll_ms, int64_t now_ms);
bool polling_has_room(const Broker& b, const PopPolling& p, std::string_view topic, std::string_view group,
                      int32_t queue_id);
void refuse_unkept_pops(Request& r, const Error& e);

}  // namespace rmq::broker

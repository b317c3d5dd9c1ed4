// Retry and dead-letter topics: where a message goes that a consumer could not handle.
#pragma once

#include <optional>
#include <string>

#include "daemon/broker/broker.h"
#include "proto/headers_send.h"

namespace rmq::broker {

// A plain send to %RETRY%group. Nothing: the group does not exist. Empty: it stays a retry. Else the
// dead-letter topic, which exists then; `properties` has lost its delay. Either way what is too long of them
// has gone (send_back.cc).
Task<std::optional<std::string>> route_retry(Broker& b, int32_t client_version,
                                             const proto::SendMessageRequestHeader& h,
                                             std::string& properties, int32_t reconsume_times);

}  // namespace rmq::broker

// Parts of remarks that rmqd's own tools look for. Remarks are for people; where the protocol has no other
// place for an answer, daemon and tool agree here.
#pragma once

#include <string_view>

namespace rmq::proto {

// In the remark to a change of the configuration that is kept. Its code is an error all the same: mqadmin
// shows the remarks of errors alone. RocketMQ has no such answer.
inline constexpr std::string_view needs_restart_remark = "needs a restart to take effect";

}  // namespace rmq::proto

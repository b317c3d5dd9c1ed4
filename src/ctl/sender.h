// Where messages of a topic go, and the requests that carry them there. Shared by "send" and "bench send".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/context.h"
#include "proto/headers_send.h"

namespace rmq::ctl {

struct WriteQueue {
  std::string broker, address;
  int32_t queue_id = 0;
};

struct WriteTarget {
  std::vector<WriteQueue> queues;  // queue 0 of every broker, then queue 1 ...
  bool creates_topic = false;      // the topic does not exist; the broker makes it from TBW102
};

// The writeable queues of the topic's masters. A topic that does not exist yet gets the queues that it will
// be created with. With --broker only that broker's; with --queue only that one.
Outcome<WriteTarget> write_target(Context& c, const std::string& topic);

// How many queues a topic gets that a send creates: as the Java producer asks for.
inline constexpr int32_t default_topic_queues = 4;

// A request header of the usual kind for that queue.
proto::SendMessageRequestHeader send_header(std::string_view topic, const WriteQueue& q,
                                            std::string_view properties, int64_t now_ms);
inline constexpr std::string_view producer_group_name = "rmqctl";

// The codes of a send's answer with which the message is stored; they tell how safe it is.
bool is_stored(proto::ResponseCode code);

}  // namespace rmq::ctl

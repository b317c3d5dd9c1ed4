// What was popped from a RocketMQ broker and not acknowledged when rmqd took its directory over. RocketMQ has
// it in its revive log, a topic, as timer messages that are due when the time of the popped messages is up,
// and the group's offset has passed it. So it is taken into our table as it comes out of the timer, and comes
// again.
#pragma once

#include <cstdint>
#include <string>

#include "proto/bodies_pop.h"
#include "proto/record.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

class JavaPops {
 public:
  explicit JavaPops(Broker& broker) : broker_(broker) {}
  // Follows the topic until the broker's `stopping`.
  void start(Scope& scope);

 private:
  Task<void> follow(std::string topic);
  // Records of the queue that nobody has taken into account. Returns whether there may be more.
  Task<bool> read(const std::string& topic, int32_t queue_id);
  Task<void> take(const proto::RecordView& record);
  void take_checkpoint(const proto::ReviveLogRecord& r);
  void take_acknowledgement(const proto::ReviveLogRecord& r);

  Broker& broker_;
};

}  // namespace rmq::broker

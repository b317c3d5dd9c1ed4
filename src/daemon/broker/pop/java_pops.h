// What was popped from a RocketMQ broker and not acknowledged when rmqd took its directory over. RocketMQ has
// it in its revive log, a topic, as timer messages that are due when the time of the popped messages is up,
// and the group's offset has passed it. A start takes both into our table, those of the timer before they are
// due, and takes them out there: so a client that got its messages from RocketMQ acknowledges them here, and
// what it does not acknowledge comes again when its time is up. Until then (`taken`) nothing is revived, and
// who asks for a checkpoint that is not known waits. What was popped in order is in consumerOrderInfo.json.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proto/bodies_pop.h"
#include "proto/record.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

class JavaPops {
 public:
  explicit JavaPops(Broker& broker) : broker_(broker) {}
  // What was popped in order and is invisible still, where the group's offset says that it is so.
  Task<void> load();
  // Follows the topic until the broker's `stopping`.
  void start(Scope& scope);
  Event taken;

 private:
  Task<void> follow(std::string topic);
  // Records of the queue that nobody has taken into account. Returns whether there may be more.
  Task<bool> read(const std::string& topic, int32_t queue_id);
  // What waits in the timer for the topic. False: it could not be taken, and waits still.
  Task<bool> take_from_timer();
  Task<bool> take_some(std::vector<int64_t> offsets);
  Task<void> take(const proto::RecordView& record);
  void take_order(const proto::ConsumerOrderInfo& o);
  void take_checkpoint(const proto::ReviveLogRecord& r);
  void take_acknowledgement(const proto::ReviveLogRecord& r);

  Broker& broker_;
  std::vector<int64_t> in_timer_;  // queue offsets there
  // Queues, by their id in the table, of which RocketMQ had not written an offset yet when it was killed:
  // they go on behind what was popped.
  std::set<uint32_t> without_offset_;
};

}  // namespace rmq::broker

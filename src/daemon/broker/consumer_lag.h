// How far consumer groups are behind, by RocketMQ's rules (ConsumerLagCalculator): of groups that have a
// member, each topic that they subscribe to; of groups that pop, its retry topic as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/broker/text_map.h"
#include "uring/task.h"

namespace rmq::broker {

class Broker;

struct ConsumerLag {
  std::string group, topic;
  bool retry = false;       // of the retry topic of a group that pops `topic`
  int64_t lag = 0;          // messages that are not acknowledged
  int64_t inflight = 0;     // of them: given to the group
  int64_t ready = 0;        // of them: not given to it yet
  int64_t latency_ms = 0;   // age of the oldest that is not acknowledged; -1: it could not be found in time
  int64_t queueing_ms = 0;  // of the oldest that is not given to it yet
};

class ConsumerLagCalculator {
 public:
  explicit ConsumerLagCalculator(Broker& b) : broker_(b) {}
  // Of all groups, sorted by group and topic. Store times are read from the disk where they must be, at most
  // some thousand in one call; those of offsets that have not moved are known from the last one.
  Task<std::vector<ConsumerLag>> all();

 private:
  struct Pair {
    std::string group, topic, from;  // from: the topic or its retry topic
    bool pops = false, retry = false;
  };
  std::vector<Pair> pairs() const;
  Task<ConsumerLag> lag_of(Pair p);
  // -1: it is not known. INT64_MAX: there is no message.
  Task<int64_t> store_time(const std::string& topic, int32_t queue_id, int64_t offset);

  Broker& broker_;
  // Store times by "topic queue offset": of the last call, and of this one.
  TextMap<int64_t> known_, used_;
  size_t reads_ = 0;
};

}  // namespace rmq::broker

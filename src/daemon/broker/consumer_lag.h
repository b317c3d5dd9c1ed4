// How far consumer groups are behind, by RocketMQ's rules (ConsumerLagCalculator): of groups that have a
// member, each topic that they subscribe to; of groups that pop, its retry topic as well.
//
// RocketMQ tells nothing of a group without members, which nobody reads for. Here of each such group, as long
// as it is known, the topics in which it has offsets and messages to come; of all of them the
// limits::offline_lags_max with the most messages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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
  // some thousand in one call; those of offsets that have not moved are known from the last one. Where there
  // are more than limits::offline_pairs_at_once pairs of groups without members, each call looks at as many,
  // and knows of the others what an earlier one has seen.
  Task<std::vector<ConsumerLag>> all();
  // Pairs of groups without members that lag, and are not among what all() has told last.
  size_t offline_left_out() const;

 private:
  struct Pair {
    std::string group, topic, from;  // from: the topic or its retry topic
    bool pops = false, retry = false;
    bool offline = false;
  };
  struct Place {  // of a group in a queue
    int64_t min = 0, max = 0, committed = 0, given = 0, inflight = 0, lag = 0;
  };
  struct Behind {
    Pair pair;
    int64_t messages = 0;
  };
  struct Offline {  // of a group
    size_t behind = 0;
    std::vector<Behind> shown;
  };
  void add_pairs(std::vector<Pair>& out, const std::string& group, const std::string& topic, bool pops,
                 bool offline) const;
  std::vector<Pair> pairs() const;
  Place place_of(const Pair& p, int32_t queue_id) const;
  int32_t queues_of(const Pair& p) const;
  Task<ConsumerLag> lag_of(Pair p);
  bool is_offline(std::string_view group) const;
  bool pops_offline(const std::string& group, const std::string& topic) const;
  Task<void> look_at_offline();
  Task<Offline> look_at(std::string group);
  void show_the_largest();
  // -1: it is not known. INT64_MAX: there is no message.
  Task<int64_t> store_time(const std::string& topic, int32_t queue_id, int64_t offset);

  Broker& broker_;
  // Store times by "topic queue offset": of the last call, and of this one.
  TextMap<int64_t> known_, used_;
  size_t reads_ = 0;
  std::map<std::string, Offline, std::less<>> offline_;  // groups without members that lag
  std::string looked_to_;                                // the last one that was looked at
};

}  // namespace rmq::broker

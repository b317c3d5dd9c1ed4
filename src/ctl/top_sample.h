// What rmqctl top shows, at one moment: brokers, topics and groups, with rates since the moment before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ctl/context.h"

namespace rmq::ctl {

struct TopBroker {
  std::string name, address;
  std::string trouble;  // in a word or two; empty: none
  std::string why;      // what is known of it
  double in_rate = 0, out_rate = 0;
  std::optional<double> flush_ms;   // 99 of 100 writes of the log take at most so long
  std::optional<double> disk_used;  // 0 to 1
  int64_t boot_ms = 0;
};

struct TopTopic {
  std::string name;
  std::optional<double> in_rate;  // nothing: it was not there the moment before
  int64_t queues = 0, messages = 0;
};

struct TopGroup {
  std::string name;
  std::optional<double> out_rate;
  int64_t members = 0, lag = 0;
  bool has_offsets = true;  // without them nobody knows how far it is behind
};

struct TopSample {
  std::string cluster;
  int64_t at_ms = 0;
  std::vector<TopBroker> brokers;
  std::vector<TopTopic> topics;  // those with the highest rate first
  std::vector<TopGroup> groups;  // those that lag most first
  size_t topics_passed_over = 0, groups_passed_over = 0;
};

// Of many names those that are asked about each time: the first ones of the last time, and the others in
// turn.
class TopTurn {
 public:
  // `names`, sorted, are all that there are; `first` those of the last sample, the most important first. At
  // most `max` come out, half of them of `first` at most.
  std::vector<std::string> next(const std::vector<std::string>& names, const std::vector<std::string>& first,
                                size_t max);

 private:
  std::string last_;  // of those that took their turn
};

class TopSampler {
 public:
  // Asks all of it; of more topics or groups of a broker than can be asked each time, those that were busiest
  // and some others. Brokers that do not answer are in it with their trouble; fails when no name server
  // answers.
  Outcome<TopSample> take(Context& c);

 private:
  struct Offsets {
    int64_t sum = 0;
    int64_t at_ms = 0;
  };
  struct Parts {  // of one topic or group, over all brokers
    int64_t sum = 0, queues = 0, rest = 0;
    int64_t members = 0;
    bool has_offsets = false;
  };
  using Table = std::map<std::string, Parts>;
  TopBroker broker(Context& c, const BrokerNode& node);
  struct Asked {  // topics or groups of a broker, as each was when it was asked about last
    TopTurn turn;
    Table known;
    std::vector<std::string> now;  // asked about for this sample
  };
  struct OfBroker {
    Asked topics, groups;
  };
  static const std::vector<std::string>& choose(Asked& a, const std::vector<std::string>& names,
                                                const std::vector<std::string>& first, size_t max,
                                                size_t& passed_over);
  Outcome<void> ask_topics(Channel& broker, Asked& a, TopSample& out);
  Outcome<void> ask_groups(Channel& broker, Asked& a, TopSample& out);
  Table sum_of(Asked OfBroker::* what) const;
  // A rate from what the sum was before; keeps what it is now.
  static std::optional<double> rate(std::map<std::string, Offsets>& before, const std::string& name,
                                    int64_t sum, int64_t now_ms);

  std::map<std::string, Offsets> topics_, groups_;
  // Of brokers that could not be reached: who waits for them does not see the others.
  struct Unreachable {
    int64_t again_ms = 0;
    std::string why;
  };
  std::map<std::string, Unreachable> unreachable_;  // by address
  std::map<std::string, OfBroker> brokers_;         // by address
  std::vector<std::string> busiest_, laggards_;     // topics and groups of the last sample, the most so first
};

}  // namespace rmq::ctl

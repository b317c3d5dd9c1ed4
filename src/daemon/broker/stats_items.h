// What went through topics and to groups, over the last minute, hour and day: RocketMQ's StatsItemSet, asked
// for by VIEW_BROKER_STATS_DATA (admin.md 6) and as consumeTps of a group. In memory only. All items are
// sampled at the same moments, so an item is its counters and what they were at each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/broker/text_map.h"
#include "proto/bodies_stats.h"

namespace rmq::broker {

// What is counted together; the names of the statistics are in stats_items.cc.
enum class StatsKind : uint8_t {
  topic_put,  // key: topic
  group_get,  // topic@group
  send_back,  // topic@group
};

class StatsItemSet {
 public:
  StatsItemSet(std::string_view cluster, int64_t now_ns) : cluster_(cluster), started_ns_(now_ns) {}

  // `messages` of `bytes` in one call. Costs a look-up, or less when it is the same as the last time.
  void add(StatsKind kind, std::string_view topic, std::string_view group, uint64_t messages, uint64_t bytes,
           int64_t now_ns);
  // Every 10 s. Forgets what had no traffic for a day.
  void sample(int64_t now_ns);
  // By RocketMQ's name and key. Nothing: there is no such statistic, or nothing to tell.
  std::optional<proto::BrokerStatsData> find(std::string_view name, std::string_view key,
                                             int64_t now_ns) const;
  // Messages a second that the group got of the topic, over the last minute.
  double get_tps(std::string_view topic, std::string_view group, int64_t now_ns) const;
  size_t size() const;

 private:
  struct Counts {
    uint64_t calls = 0, messages = 0, bytes = 0;
  };
  // The last N values of something that is sampled every so often.
  template <size_t N>
  struct Ring {
    std::array<Counts, N> at{};
  };
  struct Item {
    Counts now;
    int64_t since_ns = 0;  // when it was made
    int64_t used_ns = 0;
    Ring<6> minute;
    Ring<6> hour;
    Ring<24> day;
  };
  template <size_t N>
  struct Moments {
    std::array<int64_t, N> ns{};
    uint64_t taken = 0;
    void take(int64_t now_ns) { ns[taken++ % N] = now_ns; }
  };
  using Items = TextMap<Item>;

  Items& items(StatsKind k) { return items_[static_cast<size_t>(k)]; }
  const Items& items(StatsKind k) const { return items_[static_cast<size_t>(k)]; }
  template <size_t N>
  static proto::BrokerStatsItem window(const Item& item, const Ring<N>& ring, const Moments<N>& moments,
                                       uint64_t Counts::* what, int64_t now_ns);
  proto::BrokerStatsData data_of(const Item& item, uint64_t Counts::* what, int64_t now_ns) const;

  const std::string cluster_;
  const int64_t started_ns_;
  std::array<Items, 3> items_;
  std::array<Item, 3> totals_;
  Moments<6> minute_, hour_;
  Moments<24> day_;
  uint64_t samples_ = 0;
  // The last item of each kind; its key is that of the map.
  std::array<Items::value_type*, 3> last_{};
  std::string key_;
};

}  // namespace rmq::broker

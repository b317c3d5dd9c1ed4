#include "daemon/broker/stats_items.h"

#include <algorithm>
#include <iterator>

#include "base/time.h"

namespace rmq::broker {

namespace {

constexpr uint64_t samples_per_hour_sample = 60;  // each 10 minutes
constexpr uint64_t samples_per_day_sample = 360;  // each hour
constexpr int64_t idle_ns = int64_t{24} * 3'600 * ns_per_s;

struct StatsName {
  std::string_view name;
  StatsKind kind;
  bool bytes;
  bool total;  // of the broker; the key is the cluster
};
constexpr StatsName names[] = {
    {"TOPIC_PUT_NUMS", StatsKind::topic_put, false, false},
    {"TOPIC_PUT_SIZE", StatsKind::topic_put, true, false},
    {"GROUP_GET_NUMS", StatsKind::group_get, false, false},
    {"GROUP_GET_SIZE", StatsKind::group_get, true, false},
    {"SNDBCK_PUT_NUMS", StatsKind::send_back, false, false},
    {"BROKER_PUT_NUMS", StatsKind::topic_put, false, true},
    {"BROKER_GET_NUMS", StatsKind::group_get, false, true},
};

}  // namespace

void StatsItemSet::add(StatsKind kind, std::string_view topic, std::string_view group, uint64_t messages,
                       uint64_t bytes, int64_t now_ns) {
  key_.assign(topic);
  if (!group.empty()) (key_ += '@') += group;
  auto*& last = last_[static_cast<size_t>(kind)];
  if (last == nullptr || last->first != key_) {
    auto it = items(kind).find(std::string_view(key_));
    if (it == items(kind).end()) {
      it = items(kind).emplace(key_, Item{}).first;
      it->second.since_ns = now_ns;
    }
    last = &*it;
  }
  for (Item* i : {&last->second, &totals_[static_cast<size_t>(kind)]}) {
    i->now.calls++;
    i->now.messages += messages;
    i->now.bytes += bytes;
    i->used_ns = now_ns;
  }
}

void StatsItemSet::sample(int64_t now_ns) {
  const bool hour = samples_ % samples_per_hour_sample == 0, day = samples_ % samples_per_day_sample == 0;
  auto take = [&](Item& i) {
    i.minute.at[minute_.taken % 6] = i.now;
    if (hour) i.hour.at[hour_.taken % 6] = i.now;
    if (day) i.day.at[day_.taken % 24] = i.now;
  };
  last_ = {};
  for (Items& table : items_) {
    std::erase_if(table, [&](const auto& e) { return now_ns - e.second.used_ns > idle_ns; });
    for (auto& [key, item] : table) take(item);
  }
  for (Item& item : totals_) take(item);
  minute_.take(now_ns);
  if (hour) hour_.take(now_ns);
  if (day) day_.take(now_ns);
  samples_++;
}

// From the oldest sample that there is, or from when the item was made, until now.
template <size_t N>
proto::BrokerStatsItem StatsItemSet::window(const Item& item, const Ring<N>& ring, const Moments<N>& moments,
                                            uint64_t Counts::* what, int64_t now_ns) {
  Counts from;
  int64_t from_ns = item.since_ns;
  if (moments.taken >= N && moments.ns[moments.taken % N] >= item.since_ns) {
    from = ring.at[moments.taken % N];
    from_ns = moments.ns[moments.taken % N];
  }
  proto::BrokerStatsItem out;
  out.sum = static_cast<int64_t>(item.now.*what - from.*what);
  const double seconds =
      static_cast<double>(std::max(now_ns - from_ns, ns_per_s)) / static_cast<double>(ns_per_s);
  out.tps = static_cast<double>(out.sum) / seconds;
  if (item.now.calls != from.calls)
    out.avgpt = static_cast<double>(out.sum) / static_cast<double>(item.now.calls - from.calls);
  return out;
}

proto::BrokerStatsData StatsItemSet::data_of(const Item& item, uint64_t Counts::* what,
                                             int64_t now_ns) const {
  return {window(item, item.minute, minute_, what, now_ns), window(item, item.hour, hour_, what, now_ns),
          window(item, item.day, day_, what, now_ns)};
}

std::optional<proto::BrokerStatsData> StatsItemSet::find(std::string_view name, std::string_view key,
                                                         int64_t now_ns) const {
  const auto* n =
      std::find_if(std::begin(names), std::end(names), [&](const StatsName& k) { return k.name == name; });
  if (n == std::end(names)) return std::nullopt;
  auto what = n->bytes ? &Counts::bytes : &Counts::messages;
  if (n->total) {
    if (key != cluster_) return std::nullopt;
    Item total = totals_[static_cast<size_t>(n->kind)];
    total.since_ns = started_ns_;
    return data_of(total, what, now_ns);
  }
  auto it = items(n->kind).find(key);
  if (it == items(n->kind).end()) return std::nullopt;
  return data_of(it->second, what, now_ns);
}

double StatsItemSet::get_tps(std::string_view topic, std::string_view group, int64_t now_ns) const {
  std::string key(topic);
  (key += '@') += group;
  auto data = find("GROUP_GET_NUMS", key, now_ns);
  return data ? data->minute.tps : 0;
}

size_t StatsItemSet::size() const {
  size_t n = 0;
  for (const Items& table : items_) n += table.size();
  return n;
}

}  // namespace rmq::broker

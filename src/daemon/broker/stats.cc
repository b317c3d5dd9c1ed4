#include "daemon/broker/stats.h"

#include <fmt/format.h>

#include <algorithm>

namespace rmq::broker {

void RecentLatency::sample(const store::LatencyHistogram& all) {
  samples_[taken_++ % seconds] = all;
}

store::LatencyHistogram RecentLatency::of_the_last_minute(const store::LatencyHistogram& all) const {
  if (taken_ < seconds) return all;
  const store::LatencyHistogram& before = samples_[taken_ % seconds];
  if (before.count == all.count) return all;
  store::LatencyHistogram out = all;
  for (size_t i = 0; i < out.buckets.size(); i++) out.buckets[i] -= before.buckets[i];
  out.count -= before.count;
  out.sum_us -= before.sum_us;
  return out;
}

void BrokerStats::sample() {
  samples_[taken_++ % samples_kept] = now;
}

double BrokerStats::rate(uint64_t Counters::* what, size_t seconds) const {
  size_t span = std::min({seconds, taken_ == 0 ? 0 : taken_ - 1, samples_kept - 1});
  if (span == 0) return 0;
  uint64_t last = samples_[(taken_ - 1) % samples_kept].*what;
  uint64_t first = samples_[(taken_ - 1 - span) % samples_kept].*what;
  return static_cast<double>(last - first) / static_cast<double>(span);
}

std::string BrokerStats::rates(uint64_t Counters::* what) const {
  return fmt::format("{:.2f} {:.2f} {:.2f}", rate(what, 10), rate(what, 60), rate(what, 600));
}

std::string BrokerStats::total_get_rates() const {
  auto both = [&](size_t s) { return rate(&Counters::get_found, s) + rate(&Counters::get_missed, s); };
  return fmt::format("{:.2f} {:.2f} {:.2f}", both(10), both(60), both(600));
}

}  // namespace rmq::broker

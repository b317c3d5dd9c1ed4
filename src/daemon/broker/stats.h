// Counters of the broker, and rates over the last 10 s, 60 s and 600 s from samples each second; and the
// latency of the last minute.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "store/types.h"

namespace rmq::broker {

struct Counters {
  uint64_t put_messages = 0;
  uint64_t put_failures = 0;
  uint64_t get_found = 0;  // pulls that found something
  uint64_t get_missed = 0;
  uint64_t get_transferred = 0;  // messages
  uint64_t timers_taken = 0;     // messages of any delay
  uint64_t timers_delivered = 0;
};

// What a histogram that only grows has counted lately.
class RecentLatency {
 public:
  static constexpr size_t seconds = 60;
  void sample(const store::LatencyHistogram& all);  // once a second
  // Of the last minute; of all time when nothing was counted in it.
  store::LatencyHistogram of_the_last_minute(const store::LatencyHistogram& all) const;

 private:
  std::array<store::LatencyHistogram, seconds> samples_{};
  size_t taken_ = 0;
};

class BrokerStats {
 public:
  Counters now;
  RecentLatency flush;  // of writes of the log

  void sample();  // once a second
  // "a b c": per second over the last 10, 60 and 600 seconds (as far as there are samples).
  std::string rates(uint64_t Counters::* what) const;
  std::string total_get_rates() const;
  double rate_10s(uint64_t Counters::* what) const { return rate(what, 10); }

 private:
  static constexpr size_t samples_kept = 601;
  double rate(uint64_t Counters::* what, size_t seconds) const;
  std::array<Counters, samples_kept> samples_{};
  size_t taken_ = 0;
};

}  // namespace rmq::broker

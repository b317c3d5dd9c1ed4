#include "daemon/broker/due_clock.h"

#include <algorithm>

#include "base/check.h"

namespace rmq::broker {

namespace {
constexpr int64_t step_ns_min = 10 * ns_per_ms;  // less is the error of looking at two clocks
constexpr int64_t look_ns_max = 2 * ns_per_ms;   // longer between two looks: we were interrupted
constexpr int looks_max = 4;
}  // namespace

DueClock::DueClock(Clock& clock) : clock_(clock) {
  measure(base_ns_);
}

// False: interrupted each time; the value is there, but may be wrong by that.
bool DueClock::measure(int64_t& base_ns) const {
  for (int i = 0; i < looks_max; i++) {
    int64_t before = clock_.mono_ns();
    base_ns = clock_.wall_ms() * ns_per_ms - before;  // never more than it is: nothing becomes early by it
    if (clock_.mono_ns() - before <= look_ns_max) return true;
  }
  return false;
}

bool DueClock::look() {
  int64_t base = 0;
  if (!measure(base)) return false;
  int64_t step = base - base_ns_;
  if (step < step_ns_min && step > -step_ns_min) return false;
  base_ns_ = base;
  return true;
}

void QueueBases::add(int64_t next_offset, int64_t base_ns) {
  while (!from_.empty() && from_.back().first >= next_offset) from_.pop_back();
  if (from_.empty() || from_.back().second != base_ns) from_.emplace_back(next_offset, base_ns);
  least_ns_ = std::min(least_ns_, base_ns);
  most_ns_ = std::max(most_ns_, base_ns);
}

int64_t QueueBases::base_ns(int64_t offset) const {
  check(!from_.empty());
  auto later = std::upper_bound(from_.begin() + 1, from_.end(), offset,
                                [](int64_t at, const auto& entry) { return at < entry.first; });
  return std::prev(later)->second;
}

}  // namespace rmq::broker

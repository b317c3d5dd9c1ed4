// Time for messages that are due later. A delay is measured on the monotonic clock: setting the wall clock
// makes no message early or late while the broker runs. A time of day that a message names is one of the wall
// clock, whatever that is set to. What is stored is wall clock time in both cases, for the next run.
//
// So each due time that is stored is read with the base (wall clock minus monotonic clock) of the moment when
// it was made, or, for a time of day, of now. One loop, the broker's.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "uring/loop.h"

namespace rmq::broker {

class DueClock {
 public:
  explicit DueClock(Clock& clock);
  // Compares the clocks. True: the wall clock has been set since the last call, base_ns() is another now.
  bool look();
  int64_t mono_ns() const { return clock_.mono_ns(); }
  int64_t base_ns() const { return base_ns_; }
  // Wall clock, milliseconds, as of the last look(): rounded down, and rounded up (where a delay begins, so
  // that it is not short by a part of a millisecond).
  int64_t wall_ms() const { return (mono_ns() + base_ns_) / ns_per_ms; }
  int64_t wall_ms_up() const { return (mono_ns() + base_ns_ + ns_per_ms - 1) / ns_per_ms; }

 private:
  bool measure(int64_t& base_ns) const;

  Clock& clock_;
  int64_t base_ns_ = 0;
};

// Which base the messages of one queue were stored with: it changes at queue offsets. For a queue into which
// the broker puts in order, so that a message that is on its way has a known offset.
class QueueBases {
 public:
  // Everything from `next_offset` on will be stored with this base.
  void add(int64_t next_offset, int64_t base_ns);
  int64_t base_ns(int64_t offset) const;
  int64_t least_ns() const { return least_ns_; }  // of all that there were
  int64_t most_ns() const { return most_ns_; }

 private:
  std::vector<std::pair<int64_t, int64_t>> from_;
  int64_t least_ns_ = INT64_MAX, most_ns_ = INT64_MIN;
};

}  // namespace rmq::broker

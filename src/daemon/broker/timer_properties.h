// What the properties of a message ask of the timer (storage.md 11.1): TIMER_DELAY_SEC, TIMER_DELAY_MS or
// TIMER_DELIVER_MS, in this order, and TIMER_DEL_UNIQKEY, which makes it a message that recalls another.
// Unlike RocketMQ, what is out of range is refused and never delivered at once: a negative number, and one
// that overflows. A time of day that has passed is delivered at once, as there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/format.h"

namespace rmq::broker {

struct TimerAsk {
  enum class What : uint8_t {
    nothing,  // no timer properties, or those of a message that was delivered by one before
    now,      // the time is there
    later,
    illegal,
  };
  What what = What::nothing;
  int64_t deliver_ms = 0;  // wall clock; of `later`
  store::TimerKind kind = store::TimerKind::time_of_day;
};

// `wall_ms` rounded down, `wall_ms_up` up: a delay begins with the latter.
TimerAsk timer_ask_of(std::string_view properties, int64_t wall_ms, int64_t wall_ms_up, int64_t max_delay_ms);

// What TIMER_DEL_UNIQKEY holds: which message is to be recalled.
std::string timer_delete_key(std::string_view topic, std::string_view unique_key);

}  // namespace rmq::broker

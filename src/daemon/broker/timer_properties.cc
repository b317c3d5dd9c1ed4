#include "daemon/broker/timer_properties.h"

#include <charconv>
#include <optional>

#include "proto/properties.h"

namespace rmq::broker {

namespace prop = proto::prop;

namespace {
// As Java's Long.parseLong, but that what is below 0 makes no sense here.
std::optional<int64_t> number_of(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  int64_t n = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc{} || end != text.data() + text.size() || n < 0) return std::nullopt;
  return n;
}
}  // namespace

TimerAsk timer_ask_of(std::string_view properties, int64_t wall_ms, int64_t wall_ms_up,
                      int64_t max_delay_ms) {
  std::optional<std::string_view> seconds, millis, time;
  bool deletes = false;
  proto::PropertyReader reader(properties);
  proto::Property p;
  while (reader.next(&p)) {
    if (p.name == prop::TIMER_OUT_MS) return {};
    if (p.name == prop::TIMER_DELAY_SEC) seconds = p.value;
    if (p.name == prop::TIMER_DELAY_MS) millis = p.value;
    if (p.name == prop::TIMER_DELIVER_MS) time = p.value;
    if (p.name == prop::TIMER_DEL_UNIQKEY) deletes = true;
  }
  if (!seconds && !millis && !time) return {};
  TimerAsk out{TimerAsk::What::illegal, 0, store::TimerKind::delay};
  auto n = number_of(seconds ? *seconds : millis ? *millis : *time);
  if (!n) return out;
  int64_t delay_ms = 0;
  if (seconds) {
    if (*n > max_delay_ms / 1000) return out;
    delay_ms = *n * 1000;
  } else if (millis) {
    delay_ms = *n;
  } else {
    delay_ms = *n - wall_ms;
    out.kind = store::TimerKind::time_of_day;
  }
  if (delay_ms > max_delay_ms) return out;
  if (delay_ms <= 0) {
    if (!deletes) out.what = TimerAsk::What::now;
    return out;
  }
  out.what = TimerAsk::What::later;
  out.deliver_ms = seconds || millis ? wall_ms_up + delay_ms : *n;
  if (deletes) out.kind = store::TimerKind::recall;
  return out;
}

std::string timer_delete_key(std::string_view topic, std::string_view unique_key) {
  return std::string(topic) + "+" + std::string(unique_key);
}

}  // namespace rmq::broker

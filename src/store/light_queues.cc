#include "store/light_queues.h"

#include <algorithm>
#include <charconv>

#include "base/limits.h"
#include "store/format.h"

namespace rmq::store {

namespace {

// The next item of a list with separators; `rest` begins behind it.
std::string_view next_item(std::string_view& rest) {
  const size_t end = rest.find(light_queue_separator);
  std::string_view item = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return item;
}

bool is_good_name(std::string_view name) {
  return is_light_queue(name) && name.size() > light_queue_prefix.size() &&
         name.size() <= limits::topic_bytes_max && legal_topic(name);
}

}  // namespace

bool has_no_light_queues(std::string_view topic) {
  constexpr std::string_view half[] = {"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"};
  return topic.starts_with("%RETRY%") || topic.starts_with("%DLQ%") || topic.starts_with("rmq_sys_") ||
         topic == schedule_topic || topic == half[0] || topic == half[1];
}

std::optional<std::vector<std::string_view>> parse_light_queues(std::string_view list,
                                                                std::string_view topic) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    std::string_view name = next_item(list);
    const bool again = std::find(out.begin(), out.end(), name) != out.end();
    if (!is_good_name(name) || again || name == topic) return std::nullopt;
    out.push_back(name);
  }
  return out;
}

std::vector<LightPlace> light_places_of(const proto::RecordView& r) {
  std::vector<LightPlace> out;
  // Nearly all records end here.
  if (r.properties.find(proto::prop::INNER_MULTI_QUEUE_OFFSET) == std::string_view::npos) return out;
  auto names = r.property(proto::prop::INNER_MULTI_DISPATCH);
  auto offsets = r.property(proto::prop::INNER_MULTI_QUEUE_OFFSET);
  if (!names || !offsets || has_no_light_queues(r.topic)) return out;
  std::string_view queues = *names, numbers = *offsets;
  while (!queues.empty() && !numbers.empty()) {
    LightPlace p;
    p.queue = next_item(queues);
    std::string_view number = next_item(numbers);
    auto [end, err] = std::from_chars(number.data(), number.data() + number.size(), p.offset);
    const bool good = err == std::errc() && end == number.data() + number.size() && p.offset >= 0;
    if (good && is_good_name(p.queue) && p.queue != r.topic) out.push_back(p);
  }
  return out;
}

}  // namespace rmq::store

// Messages whose records say which offsets they have in queues: those for light queues (light_queues.h), and
// inner batches. What they ask for is checked when they come, the offsets are known when they are appended.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/limits.h"
#include "store/light_queues.h"
#include "store/store_impl.h"

namespace rmq::store {

namespace {

constexpr size_t digits_max = 20;
constexpr std::string_view offsets_name = proto::prop::INNER_MULTI_QUEUE_OFFSET;

// The most that the offsets there can take of the properties.
size_t bytes_for(const std::vector<std::string_view>& names) {
  return offsets_name.size() + 3 + names.size() * (digits_max + 1);
}

// The properties without what an earlier record of the message said about its offsets under that name; each
// with its separator behind it.
std::string without(std::string_view properties, std::string_view name) {
  std::string out;
  out.reserve(properties.size() + 64);
  while (!properties.empty()) {
    const size_t end = properties.find('\x02');
    std::string_view entry = properties.substr(0, end);
    properties = end == std::string_view::npos ? std::string_view() : properties.substr(end + 1);
    const bool is_it = entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '\x01';
    if (entry.empty() || is_it) continue;
    out += entry;
    out += '\x02';
  }
  return out;
}

void add_offsets(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += '\x01';
  text += value;
  text += '\x02';
}

}  // namespace

std::optional<std::vector<std::string_view>> MessageStore::Impl::light_queues_of(const MessageIn& m) const {
  const bool none = options_.light_queues_max == 0 || m.inner_messages > 0;
  if (none || !proto::sys_flag::is_visible(m.sys_flag) || has_no_light_queues(m.topic))
    return std::vector<std::string_view>();
  if (m.properties.find(proto::prop::INNER_MULTI_DISPATCH) == std::string_view::npos)
    return std::vector<std::string_view>();
  auto list = proto::find_property(m.properties, proto::prop::INNER_MULTI_DISPATCH);
  if (!list) return std::vector<std::string_view>();
  auto names = parse_light_queues(*list, m.topic);
  // What was taken when there were no light queues here goes on without them.
  if (m.was_stored && (!names || m.properties.size() + bytes_for(*names) > limits::properties_bytes_max))
    return std::vector<std::string_view>();
  return names;
}

// Adds to `bytes` as much as the offsets can take beside the properties that the record has without them.
PutMessageStatus MessageStore::Impl::check_light(const MessageIn& m, size_t properties_bytes,
                                                 size_t& bytes) const {
  size_t fresh = is_light_queue(m.topic) && table_.find(m.topic, m.queue_id) == nullptr ? 1 : 0;
  auto names = light_queues_of(m);
  if (!names) return PutMessageStatus::MESSAGE_ILLEGAL;
  for (std::string_view name : *names)
    if (table_.find(name, light_queue_id) == nullptr) fresh++;
  if (fresh > 0 && !m.was_stored && table_.light_queue_count() + fresh > options_.light_queues_max)
    return PutMessageStatus::LMQ_CONSUME_QUEUE_NUM_EXCEEDED;
  if (names->empty()) return PutMessageStatus::PUT_OK;
  const size_t more = bytes_for(*names);
  if (!m.was_stored && properties_bytes + more > limits::properties_bytes_max)
    return PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
  bytes += more;
  return PutMessageStatus::PUT_OK;
}

std::vector<std::string> MessageStore::Impl::late_properties(PutWaiter& w) {
  std::vector<std::string> texts;
  std::map<ConsumeQueue*, int64_t> taken;  // offsets that messages before this one will get
  auto next_of = [&](std::string_view topic, int32_t id, int32_t messages = 1) {
    ConsumeQueue& q = table_.get_or_create(topic, id);
    const int64_t first = q.next_offset + taken[&q];
    taken[&q] += messages;
    return first;
  };
  const bool any = std::any_of(w.messages.begin(), w.messages.end(), [this](const MessageIn& m) {
    auto names = light_queues_of(m);
    return m.inner_messages > 0 || (names && !names->empty());
  });
  if (!any) return texts;
  w.total_bytes = 0;
  for (const MessageIn& m : w.messages) {
    auto names = light_queues_of(m);
    check(names.has_value());  // it was looked at when it came
    std::string& text = texts.emplace_back();
    int64_t base = 0;
    if (proto::sys_flag::is_visible(m.sys_flag))
      base = next_of(m.topic, m.queue_id, std::max(m.inner_messages, 1));
    std::string room;
    proto::RecordFields f = record_fields(m, {}, room);
    if (m.inner_messages > 0) {
      text = without(f.properties, proto::prop::INNER_BASE);
      add_offsets(text, proto::prop::INNER_BASE, std::to_string(base));
    } else if (!names->empty()) {
      std::string list;
      for (std::string_view name : *names) {
        if (!list.empty()) list += light_queue_separator;
        list += std::to_string(next_of(name, light_queue_id));
      }
      text = without(f.properties, offsets_name);
      add_offsets(text, offsets_name, list);
    }
    if (!text.empty()) f = record_fields(m, text, room);
    w.total_bytes += proto::record_size(f);
  }
  return texts;
}

uint32_t MessageStore::Impl::append_lights(const MessageIn& m) {
  auto names = light_queues_of(m);
  for (std::string_view name : *names) {
    ConsumeQueue& q = table_.get_or_create(name, light_queue_id);
    pending_lights_.push({&q, q.next_offset});
    q.next_offset++;
    q.refs++;
  }
  return static_cast<uint32_t>(names->size());
}

}  // namespace rmq::store

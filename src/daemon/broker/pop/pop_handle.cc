#include "daemon/broker/pop/pop_handle.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <iterator>

#include "proto/codes.h"

namespace rmq::broker {

std::string pop_retry_topic(std::string_view group, std::string_view topic, bool v2) {
  return fmt::format("{}{}{}{}", proto::names::retry_prefix, group, v2 ? '+' : '_', topic);
}

std::string original_topic(std::string_view group, std::string_view topic) {
  const size_t prefix = proto::names::retry_prefix.size() + group.size() + 1;
  if (!proto::is_retry_topic(topic) || topic.size() <= prefix) return std::string(topic);
  return std::string(topic.substr(prefix));
}

char retry_mark_of(std::string_view topic) {
  if (!proto::is_retry_topic(topic)) return '0';
  return topic.find('+') != std::string_view::npos ? '2' : '1';
}

std::optional<std::string> topic_of_mark(std::string_view mark, std::string_view group,
                                         std::string_view topic) {
  if (mark == "0") return std::string(topic);
  if (mark == "1" || mark == "2") return pop_retry_topic(group, topic, mark == "2");
  return std::nullopt;
}

std::string PopHandle::encode() const {
  std::string out = fmt::format("{} {} {} {} {} {} {}", start_offset, pop_time_ms, invisible_ms, revive_queue,
                                mark, broker_name, queue_id);
  if (offset) fmt::format_to(std::back_inserter(out), " {}", *offset);
  return out;
}

namespace {
template <class T>
bool read_number(std::string_view text, T& out) {
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc{} && end == text.data() + text.size();
}
}  // namespace

Result<PopHandle> PopHandle::parse(std::string_view text) {
  std::array<std::string_view, 8> field;
  size_t count = 0;
  while (count < field.size() && !text.empty()) {
    const size_t blank = text.find(' ');
    field[count++] = text.substr(0, blank);
    text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  }
  if (count < 7) return fail(Errc::bad_input, "extraInfo has fewer than seven fields");
  PopHandle h;
  bool good = read_number(field[0], h.start_offset) && read_number(field[1], h.pop_time_ms) &&
              read_number(field[2], h.invisible_ms) && read_number(field[3], h.revive_queue) &&
              field[4].size() == 1 && read_number(field[6], h.queue_id);
  if (good && count == 8) good = read_number(field[7], h.offset.emplace());
  if (!good) return fail(Errc::bad_input, "extraInfo has a field that is not a number");
  h.mark = field[4].front();
  h.broker_name = field[5];
  return h;
}

static std::back_insert_iterator<std::string> begin_part(std::string& info) {
  if (!info.empty()) info += ';';
  return std::back_inserter(info);
}

void append_start_offset(std::string& info, char mark, int32_t queue_id, int64_t start_offset) {
  fmt::format_to(begin_part(info), "{} {} {}", mark, queue_id, start_offset);
}
void append_queue_order_count(std::string& info, char mark, int32_t queue_id, int32_t count) {
  fmt::format_to(begin_part(info), "{} {} {}", mark, queue_id, count);
}
void append_offset_order_count(std::string& info, char mark, int32_t queue_id, int64_t offset,
                               int32_t count) {
  fmt::format_to(begin_part(info), "{} qo{}%{} {}", mark, queue_id, offset, count);
}
void begin_msg_offsets(std::string& info, char mark, int32_t queue_id) {
  fmt::format_to(begin_part(info), "{} {} ", mark, queue_id);
}
void append_msg_offset(std::string& info, bool first, int64_t offset) {
  if (!first) info += ',';
  fmt::format_to(std::back_inserter(info), "{}", offset);
}

}  // namespace rmq::broker

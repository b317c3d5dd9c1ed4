#include "proto/codes.h"

#include <algorithm>
#include <array>

namespace rmq::proto {

std::string_view name_of(RequestCode code) {
  switch (code) {
#define X(name, number)   \
  case RequestCode::name: \
    return #name;
    RMQ_REQUEST_CODES(X)
#undef X
  }
  return {};
}

std::string_view name_of(ResponseCode code) {
  switch (code) {
#define X(name, number)    \
  case ResponseCode::name: \
    return #name;
    RMQ_RESPONSE_CODES(X)
#undef X
  }
  return {};
}

std::string_view name_of(LanguageCode language) {
  switch (language) {
#define X(name, number)    \
  case LanguageCode::name: \
    return #name;
    RMQ_LANGUAGES(X)
#undef X
  }
  return "OTHER";
}

LanguageCode language_of(std::string_view name) {
  static constexpr std::pair<std::string_view, LanguageCode> all[] = {
#define X(name, number) {#name, LanguageCode::name},
      RMQ_LANGUAGES(X)
#undef X
  };
  for (auto [n, l] : all)
    if (n == name) return l;
  return LanguageCode::OTHER;
}

// MQVersion: first the pre-releases of 3.0.0, then pairs of SNAPSHOT and release: 3.0.1 to 3.0.15, 3.1 and
// 3.2 with ten releases each, 3.3 to 3.9 with nine (from 1), and ten each from 4.0 on.
std::string version_name(int32_t version) {
  static constexpr std::string_view first[] = {"SNAPSHOT", "ALPHA1",         "BETA1", "BETA2",
                                               "BETA3",    "BETA4",          "BETA5", "BETA6_SNAPSHOT",
                                               "BETA6",    "BETA7_SNAPSHOT", "BETA7", "BETA8_SNAPSHOT",
                                               "BETA8",    "BETA9_SNAPSHOT", "BETA9", "FINAL"};
  if (version < 0) return "UNKNOWN";
  if (version >= mq_version::HIGHER_VERSION) return "HIGHER_VERSION";
  if (version < 16) return "V3_0_0_" + std::string(first[version]);
  int minor, patch;  // minor counts on from 3.0
  if (version < 46) {
    minor = 0, patch = (version - 16) / 2 + 1;
  } else if (version < 86) {
    minor = 1 + (version - 46) / 20, patch = (version - 46) % 20 / 2;
  } else if (version < 212) {
    minor = 3 + (version - 86) / 18, patch = (version - 86) % 18 / 2 + 1;
  } else {
    minor = 10 + (version - 212) / 20, patch = (version - 212) % 20 / 2;
  }
  std::string s =
      "V" + std::to_string(3 + minor / 10) + "_" + std::to_string(minor % 10) + "_" + std::to_string(patch);
  if (version % 2 == 0) s += "_SNAPSHOT";
  return s;
}

namespace {

constexpr std::array<bool, 128> make_allowed() {
  std::array<bool, 128> t{};
  for (char c = '0'; c <= '9'; ++c) t[static_cast<size_t>(c)] = true;
  for (char c = 'a'; c <= 'z'; ++c) t[static_cast<size_t>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) t[static_cast<size_t>(c)] = true;
  for (char c : {'%', '|', '-', '_'}) t[static_cast<size_t>(c)] = true;
  return t;
}
constexpr std::array<bool, 128> allowed = make_allowed();

bool has_illegal(std::string_view s) {
  return std::any_of(s.begin(), s.end(), [](char c) {
    auto u = static_cast<unsigned char>(c);
    return u >= 128 || !allowed[u];
  });
}

// Character.isWhitespace over what is left of ASCII.
bool is_blank(std::string_view s) {
  return std::all_of(s.begin(), s.end(),
                     [](char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31); });
}

std::optional<std::string> invalid_name_remark(std::string_view what, std::string_view name, size_t max) {
  std::string w(what);
  if (is_blank(name)) return "The specified " + w + " is blank.";
  if (has_illegal(name)) {
    return "The specified " + w + ": " + std::string(name) +
           ", contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$";
  }
  if (name.size() > max) {
    return "The specified " + w + ": " + std::string(name) + ", is longer than " + w +
           " max length: " + std::to_string(max);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> invalid_topic_remark(std::string_view topic) {
  size_t max =
      is_retry_topic(topic) || is_dlq_topic(topic) ? limits::long_topic_bytes_max : limits::topic_bytes_max;
  return invalid_name_remark("topic", topic, max);
}

std::optional<std::string> invalid_group_remark(std::string_view group) {
  return invalid_name_remark("group", group, limits::group_bytes_max);
}

bool is_system_topic(std::string_view topic) {
  static constexpr std::string_view all[] = {names::TBW102,
                                             names::SCHEDULE_TOPIC_XXXX,
                                             names::BenchmarkTest,
                                             names::RMQ_SYS_TRANS_HALF_TOPIC,
                                             names::RMQ_SYS_TRACE_TOPIC,
                                             names::RMQ_SYS_TRANS_OP_HALF_TOPIC,
                                             names::TRANS_CHECK_MAX_TIME_TOPIC,
                                             names::SELF_TEST_TOPIC,
                                             names::OFFSET_MOVED_EVENT,
                                             names::CHECKPOINT_TOPIC,
                                             names::RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC,
                                             names::RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC};
  return topic.starts_with(names::system_topic_prefix) || std::ranges::find(all, topic) != std::end(all);
}

bool is_topic_forbidden_to_send(std::string_view topic) {
  static constexpr std::string_view all[] = {
      names::SCHEDULE_TOPIC_XXXX,        names::RMQ_SYS_TRANS_HALF_TOPIC, names::RMQ_SYS_TRANS_OP_HALF_TOPIC,
      names::TRANS_CHECK_MAX_TIME_TOPIC, names::SELF_TEST_TOPIC,          names::OFFSET_MOVED_EVENT,
      names::rmq_sys_wheel_timer,        names::rmq_sys_delivered};
  return std::ranges::find(all, topic) != std::end(all);
}

std::string forbidden_to_send_remark(std::string_view topic) {
  return "Sending message to topic[" + std::string(topic) + "] is forbidden.";
}

std::string system_topic_remark(std::string_view topic) {
  return "The topic[" + std::string(topic) + "] is conflict with system topic.";
}

bool is_system_group(std::string_view group) {
  return group.starts_with(names::system_group_prefix);
}

static std::string prefixed(std::string_view prefix, std::string_view group) {
  if (group.starts_with(prefix)) return std::string(group);
  std::string s(prefix);
  s += group;
  return s;
}

std::string retry_topic_of(std::string_view group) {
  return prefixed(names::retry_prefix, group);
}
std::string dlq_topic_of(std::string_view group) {
  return prefixed(names::dlq_prefix, group);
}

}  // namespace rmq::proto

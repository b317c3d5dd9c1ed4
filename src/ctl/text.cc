// Idea: see text.h. Numbers go through from_chars and must use up their text; dates are checked by making
// them again from the result.

#include "ctl/text.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/time.h"
#include "proto/codes.h"

namespace rmq::ctl {

namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T v{};
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

// A non-negative decimal at the front of `text`, taken off it.
std::optional<double> take_decimal(std::string_view* text) {
  if (text->empty() || text->front() < '0' || text->front() > '9') return std::nullopt;
  double v = 0;
  auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), v, std::chars_format::fixed);
  if (ec != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return v;
}

struct Unit {
  std::string_view name;
  double factor;
};

template <size_t N>
std::optional<int64_t> with_unit(std::string_view text, const std::array<Unit, N>& units) {
  text = trimmed(text);
  auto number = take_decimal(&text);
  if (!number) return std::nullopt;
  text = trimmed(text);
  for (const Unit& u : units) {
    if (u.name != text) continue;
    double v = *number * u.factor;
    if (v > 9e18) return std::nullopt;
    return static_cast<int64_t>(v);
  }
  return std::nullopt;
}

// Exactly `digits` decimal digits off the front of `text`.
std::optional<int> take_digits(std::string_view* text, size_t digits) {
  if (text->size() < digits) return std::nullopt;
  int v = 0;
  for (char c : text->substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    v = v * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return v;
}

bool take(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

// ".7", ".789", ".789123": milliseconds.
std::optional<int> take_fraction_ms(std::string_view* text) {
  if (!take(text, '.')) return 0;
  int ms = 0, scale = 100;
  bool any = false;
  while (!text->empty() && text->front() >= '0' && text->front() <= '9') {
    ms += (text->front() - '0') * scale;
    scale /= 10;
    any = true;
    text->remove_prefix(1);
  }
  if (!any) return std::nullopt;
  return ms;
}

// "", "Z", "+02:00", "-0530": seconds east, nothing for local time. False: something else.
bool take_zone(std::string_view text, std::optional<int>* east_seconds) {
  if (text.empty()) return true;
  if (text == "Z" || text == "z") {
    *east_seconds = 0;
    return true;
  }
  bool negative = text.front() == '-';
  if (!take(&text, '-') && !take(&text, '+')) return false;
  auto hours = take_digits(&text, 2);
  take(&text, ':');
  auto minutes = take_digits(&text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 14 || *minutes > 59) return false;
  int s = *hours * 3600 + *minutes * 60;
  *east_seconds = negative ? -s : s;
  return true;
}

bool take_clock(std::string_view* text, tm* t, int* ms) {
  auto hour = take_digits(text, 2);
  if (!hour || !take(text, ':')) return false;
  auto minute = take_digits(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return false;
  t->tm_hour = *hour;
  t->tm_min = *minute;
  if (!take(text, ':')) return true;
  auto second = take_digits(text, 2);
  auto fraction = second ? take_fraction_ms(text) : std::nullopt;
  if (!fraction || *second > 59) return false;
  t->tm_sec = *second;
  *ms = *fraction;
  return true;
}

std::optional<int64_t> parse_date_ms(std::string_view text) {
  tm t{};
  int ms = 0;
  auto year = take_digits(&text, 4);
  if (!year || !take(&text, '-')) return std::nullopt;
  auto month = take_digits(&text, 2);
  if (!month || !take(&text, '-')) return std::nullopt;
  auto day = take_digits(&text, 2);
  if (!day) return std::nullopt;
  t.tm_year = *year - 1900;
  t.tm_mon = *month - 1;
  t.tm_mday = *day;
  t.tm_isdst = -1;
  std::optional<int> east_seconds;
  if (!text.empty()) {
    if (!take(&text, ' ') && !take(&text, 'T')) return std::nullopt;
    if (!take_clock(&text, &t, &ms) || !take_zone(text, &east_seconds)) return std::nullopt;
  }
  tm asked = t;
  time_t s = east_seconds ? timegm(&t) : mktime(&t);
  if (t.tm_mday != asked.tm_mday || t.tm_mon != asked.tm_mon) return std::nullopt;  // 30th of February
  return (static_cast<int64_t>(s) - east_seconds.value_or(0)) * 1000 + ms;
}

}  // namespace

std::string to_string(const Address& a) {
  bool v6 = a.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", a.host, a.port) : fmt::format("{}:{}", a.host, a.port);
}

std::optional<Address> parse_address(std::string_view text, uint16_t default_port) {
  text = trimmed(text);
  Address a;
  std::string_view port;
  if (text.starts_with('[')) {
    auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    a.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !take(&port, ':')) return std::nullopt;
  } else {
    auto colon = text.rfind(':');
    a.host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
    if (colon != std::string_view::npos && port.empty()) return std::nullopt;
  }
  if (a.host.empty() || a.host.find_first_of(" /\t;,") != std::string::npos) return std::nullopt;
  if (port.empty()) {
    if (default_port == 0) return std::nullopt;
    a.port = default_port;
    return a;
  }
  auto number = whole_number<uint16_t>(port);
  if (!number || *number == 0) return std::nullopt;
  a.port = *number;
  return a;
}

Outcome<std::vector<Address>> parse_name_servers(std::string_view text) {
  std::vector<Address> out;
  while (!text.empty()) {
    auto end = text.find_first_of(";,");
    std::string_view part = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.empty()) continue;
    auto a = parse_address(part, 9876);
    if (!a)
      return fail(Exit::usage, fmt::format("\"{}\" is not the address of a name server (host:port)", part));
    out.push_back(*a);
  }
  if (out.empty()) return fail(Exit::usage, "the list of name servers is empty");
  return out;
}

std::optional<int64_t> parse_duration_ms(std::string_view text) {
  static constexpr std::array units = {Unit{"ms", 1},        Unit{"s", 1000},     Unit{"", 1000},
                                       Unit{"m", 60'000},    Unit{"min", 60'000}, Unit{"h", 3'600'000},
                                       Unit{"d", 86'400'000}};
  return with_unit(text, units);
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  static constexpr double k = 1024;
  static constexpr std::array units = {Unit{"", 1},          Unit{"B", 1},          Unit{"k", k},
                                       Unit{"K", k},         Unit{"KiB", k},        Unit{"m", k * k},
                                       Unit{"M", k * k},     Unit{"MiB", k * k},    Unit{"g", k * k * k},
                                       Unit{"G", k * k * k}, Unit{"GiB", k * k * k}};
  return with_unit(text, units);
}

// Never negative: protocol and verbs have -1 for the end of a queue, and what was before 1970 is before all.
std::optional<int64_t> parse_time_ms(std::string_view text, int64_t now_ms) {
  text = trimmed(text);
  if (text == "now") return now_ms;
  if (text.starts_with('@')) {
    auto at = whole_number<int64_t>(text.substr(1));
    return at && *at >= 0 ? at : std::nullopt;
  }
  if (text.size() >= 10 && text[4] == '-') {
    auto at = parse_date_ms(text);
    return at ? std::optional(std::max<int64_t>(*at, 0)) : std::nullopt;
  }
  if (text.ends_with(" ago")) text.remove_suffix(4);
  bool unit = text.find_first_not_of("0123456789. ") != std::string_view::npos;
  auto back = unit ? parse_duration_ms(text) : std::nullopt;
  if (!back) return std::nullopt;
  return std::max<int64_t>(now_ms - *back, 0);
}

Outcome<int64_t> parse_number(std::string_view text, std::string_view what, int64_t max) {
  auto n = whole_number<int64_t>(text);
  if (!n || *n < 0 || *n > max) return fail(Exit::usage, fmt::format("\"{}\" is not {}", text, what));
  return *n;
}

std::optional<Position> parse_position(std::string_view text, int64_t now_ms) {
  using Kind = Position::Kind;
  text = trimmed(text);
  if (text == "earliest") return Position{Kind::earliest, 0};
  if (text == "latest") return Position{Kind::latest, 0};
  if (auto offset = whole_number<int64_t>(text)) {
    if (*offset < 0) return std::nullopt;
    return Position{Kind::offset, *offset};
  }
  if (auto at = parse_time_ms(text, now_ms)) return Position{Kind::time, *at};
  return std::nullopt;
}

std::optional<int32_t> parse_permission(std::string_view text) {
  using namespace proto::perm;
  if (text == "rw" || text == "wr" || text == "6") return read | write;
  if (text == "r" || text == "4") return read;
  if (text == "w" || text == "2") return write;
  if (text == "none" || text == "0") return 0;
  return std::nullopt;
}

std::string permission_name(int32_t perm) {
  return {proto::perm::is_readable(perm) ? 'r' : '-', proto::perm::is_writeable(perm) ? 'w' : '-'};
}

}  // namespace rmq::ctl

#include "ctl/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "ctl/print.h"
#include "proto/fastjson.h"

namespace rmq::ctl {

namespace {

using Style = ScreenLine::Style;
using Lines = std::vector<ScreenLine>;

constexpr size_t brokers_in_all = 4, reasons_in_all = 2;
constexpr std::string_view keys = "q quit  space now  p pause  a all  b brokers  t topics  g groups  ? help";

std::string clock_text(int64_t ms) {
  const time_t s = static_cast<time_t>(ms / 1000);
  tm local{};
  localtime_r(&s, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::string rate_text(std::optional<double> rate) {
  if (!rate) return "-";
  if (*rate > 0 && *rate < 9.95) return fmt::format("{:.1f}", *rate);
  return format_number(static_cast<int64_t>(*rate + 0.5));
}

// Exactly so many columns: filled up with blanks, or cut with "..".
std::string fitted(std::string_view text, size_t width, bool right = false) {
  std::string out = printable(text);
  if (display_width(out) > width) {
    const size_t keep = width < 2 ? 0 : width - 2;
    while (display_width(out) > keep) {
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
      if (!out.empty()) out.pop_back();
    }
    out += width < 2 ? std::string(width, '.') : "..";
  }
  const std::string blanks(width - display_width(out), ' ');
  return right ? blanks + out : out + blanks;
}

struct Column {
  const char* heading;
  size_t width;  // 0: what is left
  bool right;
};

std::string row_of(std::span<const Column> columns, const std::vector<std::string>& cells, size_t width) {
  size_t fixed = 0;
  for (const Column& c : columns) fixed += c.width;
  fixed += 2 * (columns.size() - 1);
  const size_t rest = width > fixed + 10 ? width - fixed : 10;
  std::string out;
  for (size_t i = 0; i < columns.size(); i++) {
    if (i != 0) out += "  ";
    out += fitted(cells[i], columns[i].width == 0 ? rest : columns[i].width, columns[i].right);
  }
  if (display_width(out) > width) out = fitted(out, width);
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

void add_heading(Lines& lines, std::span<const Column> columns, size_t width) {
  std::vector<std::string> names;
  for (const Column& c : columns) names.emplace_back(c.heading);
  lines.push_back({Style::heading, row_of(columns, names, width)});
}

void add_rest(Lines& lines, size_t hidden, std::string_view what) {
  if (hidden != 0) lines.push_back({Style::dim, fmt::format("{} more {}", hidden, what)});
}

// How many of `n` rows fit into `room`, which holds a line that says how many do not.
size_t shown_of(size_t n, size_t room) {
  if (n <= room) return n;
  return room == 0 ? 0 : room - 1;
}

void add_brokers(Lines& lines, const TopSample& s, size_t width, size_t room) {
  constexpr Column columns[] = {{"BROKER", 0, false},   {"IN/s", 9, true}, {"OUT/s", 9, true},
                                {"FLUSH 99%", 9, true}, {"DISK", 5, true}, {"UP", 6, true},
                                {"STATE", 13, false}};
  add_heading(lines, columns, width);
  const size_t shown = shown_of(s.brokers.size(), room);
  for (size_t i = 0; i < shown; i++) {
    const TopBroker& b = s.brokers[i];
    const bool away = b.boot_ms == 0;
    const std::vector<std::string> cells = {
        b.name,
        away ? "-" : rate_text(b.in_rate),
        away ? "-" : rate_text(b.out_rate),
        b.flush_ms ? fmt::format("{:.1f} ms", *b.flush_ms) : "-",
        b.disk_used ? fmt::format("{:.0f} %", *b.disk_used * 100) : "-",
        away ? "-"
             : format_span_ms(s.at_ms - b.boot_ms).substr(0, format_span_ms(s.at_ms - b.boot_ms).find(' ')),
        b.trouble.empty() ? "ok" : b.trouble};
    lines.push_back({b.trouble.empty() ? Style::plain : Style::bad, row_of(columns, cells, width)});
  }
  add_rest(lines, s.brokers.size() - shown, "brokers");
}

size_t troubles_of(const TopSample& s) {
  return static_cast<size_t>(std::count_if(s.brokers.begin(), s.brokers.end(),
                                           [](const TopBroker& b) { return !b.trouble.empty(); }));
}

// Why the brokers in trouble are, one a line, and where to read what to do. `room` lines at most.
void add_reasons(Lines& lines, const TopSample& s, size_t width, size_t room) {
  const size_t all = troubles_of(s);
  size_t left = std::min(all, room > 0 ? room - 1 : 0);
  if (all == 0 || room == 0) return;
  for (const TopBroker& b : s.brokers) {
    if (b.trouble.empty() || left == 0) continue;
    left--;
    const std::string text = printable(fmt::format("{}: {}", b.name, b.why.empty() ? b.trouble : b.why));
    lines.push_back({Style::bad, display_width(text) > width ? fitted(text, width) : text});
  }
  const std::string_view hint = "what to do about it: rmqctl doctor";
  lines.push_back({Style::dim, display_width(hint) > width ? fitted(hint, width) : std::string(hint)});
}

void add_topics(Lines& lines, const TopSample& s, size_t width, size_t room) {
  constexpr Column columns[] = {
      {"TOPIC", 0, false}, {"IN/s", 10, true}, {"QUEUES", 6, true}, {"MESSAGES", 16, true}};
  add_heading(lines, columns, width);
  const size_t shown = shown_of(s.topics.size() + (s.topics_passed_over != 0 ? 1 : 0), room);
  for (size_t i = 0; i < std::min(shown, s.topics.size()); i++) {
    const TopTopic& t = s.topics[i];
    const std::vector<std::string> cells = {t.name, rate_text(t.in_rate), format_number(t.queues),
                                            format_number(t.messages)};
    lines.push_back({Style::plain, row_of(columns, cells, width)});
  }
  add_rest(lines, s.topics.size() - std::min(shown, s.topics.size()) + s.topics_passed_over, "topics");
}

void add_groups(Lines& lines, const TopSample& s, size_t width, size_t room) {
  constexpr Column columns[] = {
      {"GROUP", 0, false}, {"OUT/s", 10, true}, {"MEMBERS", 7, true}, {"LAG", 16, true}};
  add_heading(lines, columns, width);
  const size_t shown = shown_of(s.groups.size() + (s.groups_passed_over != 0 ? 1 : 0), room);
  for (size_t i = 0; i < std::min(shown, s.groups.size()); i++) {
    const TopGroup& g = s.groups[i];
    const std::vector<std::string> cells = {g.name, rate_text(g.out_rate),
                                            g.members == 0 ? "none" : format_number(g.members),
                                            g.has_offsets ? format_number(g.lag) : "-"};
    const bool nobody = g.members == 0 && g.lag != 0;
    lines.push_back({nobody ? Style::bad : Style::plain, row_of(columns, cells, width)});
  }
  add_rest(lines, s.groups.size() - std::min(shown, s.groups.size()) + s.groups_passed_over, "groups");
}

ScreenLine title(const TopSample& s, const TopState& state, size_t width) {
  if (!state.trouble.empty()) return {Style::bad, fitted(state.trouble, width)};
  double in = 0, out = 0;
  int64_t lag = 0;
  for (const TopBroker& b : s.brokers) {
    in += b.in_rate;
    out += b.out_rate;
  }
  for (const TopGroup& g : s.groups) lag += g.lag;
  const std::string left = fmt::format("{}  in {}/s  out {}/s  lag {}", s.cluster, rate_text(in),
                                       rate_text(out), format_number(lag));
  const std::string right = fmt::format(
      "{}  {}", clock_text(s.at_ms), state.paused ? "paused" : "every " + format_span_ms(state.interval_ms));
  if (display_width(left) + 2 + display_width(right) > width) return {Style::plain, fitted(left, width)};
  return {Style::plain, fitted(left, width - display_width(right)) + right};
}

void add_help(Lines& lines, size_t width) {
  for (const char* line :
       {"IN/s        messages a second that were stored",
        "OUT/s       messages a second that consumers got (brokers),",
        "            or that a group has acknowledged",
        "FLUSH 99%   99 of 100 writes of the log take at most so long:",
        "            producers wait for them", "DISK        of the store's file system, in use",
        "LAG         messages that the group has not acknowledged; -: it never has any",
        "MESSAGES    that are kept of the topic",
        "red         a broker in trouble, or a group that lags and has no member;",
        "            rmqctl doctor looks closer and says what to do", "",
        "a  everything    b  brokers    t  topics    g  groups",
        "space  look now    p  pause, and go on    q  quit"})
    lines.push_back({Style::plain, display_width(line) > width ? fitted(line, width) : line});
}

void add_all(Lines& lines, const TopSample& s, size_t width, size_t rows) {
  constexpr size_t unbounded = SIZE_MAX / 4;
  size_t brokers = unbounded, topics = unbounded, groups = unbounded, reasons = unbounded;
  if (rows != 0) {
    // Three headings, two blank lines and the keys; brokers get few rows, topics and groups share the rest.
    const size_t room = rows > lines.size() + 6 ? rows - lines.size() - 6 : 3;
    brokers = std::min({s.brokers.size(), brokers_in_all, room / 3});
    const size_t troubles = troubles_of(s);
    reasons = room < 12 || troubles == 0 ? 0 : std::min(troubles, reasons_in_all) + 1;
    const size_t left = room - brokers - reasons;
    const size_t topics_wanted = s.topics.size() + (s.topics_passed_over != 0 ? 1 : 0),
                 groups_wanted = s.groups.size() + (s.groups_passed_over != 0 ? 1 : 0);
    topics = std::min(topics_wanted, std::max(left / 2, left - std::min(left, groups_wanted)));
    groups = left - topics;
  }
  add_brokers(lines, s, width, brokers);
  add_reasons(lines, s, width, reasons);
  lines.push_back({});
  add_topics(lines, s, width, topics);
  lines.push_back({});
  add_groups(lines, s, width, groups);
}

}  // namespace

Lines top_screen(const TopSample& s, const TopState& state, size_t columns, size_t rows) {
  Lines lines;
  lines.push_back(title(s, state, columns));
  lines.push_back({});
  const size_t room = rows == 0 ? SIZE_MAX / 4 : rows > 4 ? rows - 4 : 1;
  switch (state.view) {
    case TopView::all:
      add_all(lines, s, columns, rows);
      break;
    case TopView::brokers: {
      const size_t reasons = room < 8 || troubles_of(s) == 0 ? 0 : std::min(troubles_of(s) + 1, room / 2);
      add_brokers(lines, s, columns, room - reasons);
      add_reasons(lines, s, columns, reasons);
      break;
    }
    case TopView::topics:
      add_topics(lines, s, columns, room);
      break;
    case TopView::groups:
      add_groups(lines, s, columns, room);
      break;
    case TopView::help:
      add_help(lines, columns);
      break;
  }
  if (rows == 0) return lines;
  lines.resize(std::min(lines.size(), rows - 1));
  while (lines.size() + 1 < rows) lines.push_back({});
  lines.push_back({Style::dim, fitted(keys, columns)});
  return lines;
}

std::string top_json(const TopSample& s) {
  Table brokers({{"", "brokerName"},
                 {"", "brokerAddr"},
                 {"", "inTps"},
                 {"", "outTps"},
                 {"", "flushLatency99Ms"},
                 {"", "diskRatio"},
                 {"", "bootTimestamp"},
                 {"", "trouble"},
                 {"", "reason"}});
  const auto real = [](std::optional<double> v) { return v ? Cell::real(*v) : Cell::none(); };
  for (const TopBroker& b : s.brokers)
    brokers.add({Cell::text(b.name), Cell::text(b.address), Cell::real(b.in_rate), Cell::real(b.out_rate),
                 real(b.flush_ms), real(b.disk_used), b.boot_ms > 0 ? Cell::moment(b.boot_ms) : Cell::none(),
                 Cell::text(b.trouble), Cell::text(b.why)});
  Table topics({{"", "topic"}, {"", "inTps"}, {"", "queues"}, {"", "messages"}});
  for (const TopTopic& t : s.topics)
    topics.add({Cell::text(t.name), real(t.in_rate), Cell::integer(t.queues), Cell::integer(t.messages)});
  Table groups({{"", "group"}, {"", "outTps"}, {"", "members"}, {"", "diffTotal"}});
  for (const TopGroup& g : s.groups)
    groups.add({Cell::text(g.name), real(g.out_rate), Cell::integer(g.members),
                g.has_offsets ? Cell::integer(g.lag) : Cell::none()});
  proto::JsonWriter w(proto::JsonStyle::strict);
  w.begin_object();
  w.member("cluster", s.cluster);
  w.key("brokers");
  brokers.write_json(w);
  w.key("topics");
  topics.write_json(w);
  w.key("groups");
  groups.write_json(w);
  w.end_object();
  return w.take() + "\n";
}

}  // namespace rmq::ctl

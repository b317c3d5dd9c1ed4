// Idea: see print.h.

#include "ctl/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/check.h"
#include "base/time.h"
#include "proto/fastjson.h"

namespace rmq::ctl {

std::string format_bytes(int64_t bytes) {
  static constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double v = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (v >= 1023.95 && unit + 1 < units.size()) {
    v /= 1024;
    unit++;
  }
  return fmt::format("{:.1f} {}", v, units[unit]);
}

std::string with_readable_bytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
    int64_t bytes = 0;
    const bool is_bytes = end > i && text.substr(end).starts_with(" bytes") &&
                          std::from_chars(text.data() + i, text.data() + end, bytes).ec == std::errc{};
    if (is_bytes) {
      out += format_bytes(bytes);
      i = end + std::string_view(" bytes").size();
    } else {
      const size_t next = std::max(end, i + 1);
      out += text.substr(i, next - i);
      i = next;
    }
  }
  return out;
}

std::string format_number(int64_t n) {
  std::string digits = fmt::format("{}", n);
  size_t first = n < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string format_span_ms(int64_t ms) {
  if (ms < 1000) return fmt::format("{}ms", ms);
  int64_t s = ms / 1000;
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return s % 60 ? fmt::format("{}m {}s", s / 60, s % 60) : fmt::format("{}m", s / 60);
  int64_t m = s / 60;
  if (m < 1440) return m % 60 ? fmt::format("{}h {}m", m / 60, m % 60) : fmt::format("{}h", m / 60);
  int64_t h = m / 60;
  return h % 24 ? fmt::format("{}d {}h", h / 24, h % 24) : fmt::format("{}d", h / 24);
}

std::string format_ago(int64_t at_ms, int64_t now_ms) {
  int64_t back = now_ms - at_ms;
  if (back >= 0 && back < 1000) return "just now";
  if (back < 0) return "in " + format_span_ms(-back);
  return format_span_ms(back) + " ago";
}

std::string format_moment(int64_t at_ms, int64_t now_ms) {
  if (at_ms <= 0) return "-";
  return fmt::format("{} ({})", format_wall_ms(at_ms), format_ago(at_ms, now_ms));
}

// Bytes of the UTF-8 sequence at the front of `s`, 0 when it is none.
static size_t utf8_sequence(std::string_view s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char c = byte(0);
  size_t n = c < 0x80                ? 1
             : c >= 0xC2 && c < 0xE0 ? 2
             : c >= 0xE0 && c < 0xF0 ? 3
             : c >= 0xF0 && c < 0xF5 ? 4
                                     : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; i++)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (c == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (c == 0xED && byte(1) > 0x9F) return 0;  // surrogate
  if (c == 0xF0 && byte(1) < 0x90) return 0;
  if (c == 0xF4 && byte(1) > 0x8F) return 0;
  return n;
}

// A control character of `n` bytes at the front of `s`, C1 included.
static bool is_control(std::string_view s, size_t n) {
  auto c = static_cast<unsigned char>(s[0]);
  return (n == 1 && (c < 0x20 || c == 0x7F)) ||
         (n == 2 && c == 0xC2 && static_cast<unsigned char>(s[1]) < 0xA0);
}

bool is_readable_text(std::string_view s) {
  while (!s.empty()) {
    size_t n = utf8_sequence(s);
    if (n == 0) return false;
    if (is_control(s, n) && s[0] != '\t' && s[0] != '\n' && s[0] != '\r') return false;
    s.remove_prefix(n);
  }
  return true;
}

static std::string escaped(std::string_view s, bool keeps_lines) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const size_t n = utf8_sequence(s);
    const std::string_view bytes = s.substr(0, std::max<size_t>(n, 1));
    s.remove_prefix(bytes.size());
    const char c = bytes[0];
    if ((n != 0 && !is_control(bytes, n)) || (keeps_lines && (c == '\n' || c == '\t'))) {
      out += bytes;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else {
      for (const char b : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(b));
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  return escaped(text, false);
}
std::string printable_lines(std::string_view text) {
  return escaped(text, true);
}

size_t display_width(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string format_hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[c & 15];
  }
  return out;
}

std::string hex_dump(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    std::string_view line = bytes.substr(at, 16);
    out += fmt::format("{:08x} ", at);
    for (size_t i = 0; i < 16; i++) {
      if (i == 8) out += ' ';
      out += i < line.size() ? fmt::format(" {:02x}", static_cast<unsigned char>(line[i])) : "   ";
    }
    out += "  |";
    for (char c : line) out += c >= 0x20 && c < 0x7F ? c : '.';
    out += "|\n";
  }
  return out;
}

std::string format_base64(std::string_view bytes) {
  static constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    size_t n = std::min<size_t>(3, bytes.size() - at);
    uint32_t v = 0;
    for (size_t i = 0; i < 3; i++) v = v << 8 | (i < n ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; i++) out += i <= n ? alphabet[v >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string one_line(std::string_view body) {
  if (!is_readable_text(body)) return "hex:" + format_hex(body);
  std::string out;
  out.reserve(body.size());
  for (char c : body) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Cell::to_text(int64_t now_ms) const {
  switch (kind) {
    case Kind::none:
      return "-";
    case Kind::text:
      return text_value.empty() ? "-" : printable(text_value);
    case Kind::integer:
      return fmt::format("{}", number);
    case Kind::real:
      return fmt::format("{:.2f}", fraction);
    case Kind::boolean:
      return number ? "yes" : "no";
    case Kind::moment_ms:
      return format_moment(number, now_ms);
    case Kind::bytes:
      return format_bytes(number);
    case Kind::list:
      return items.empty() ? "-" : printable(fmt::format("{}", fmt::join(items, ",")));
  }
  return {};
}

void Cell::to_json(proto::JsonWriter& w) const {
  switch (kind) {
    case Kind::none:
      w.null();
      break;
    case Kind::text:
      w.text(text_value);
      break;
    case Kind::integer:
    case Kind::moment_ms:
    case Kind::bytes:
      w.number(number);
      break;
    case Kind::real:
      w.real(fraction);
      break;
    case Kind::boolean:
      w.boolean(number != 0);
      break;
    case Kind::list:
      w.begin_array();
      for (const std::string& i : items) w.text(i);
      w.end_array();
      break;
  }
}

void Table::add(std::vector<Cell> row) {
  check(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::to_text(int64_t now_ms) const {
  std::vector<std::vector<std::string>> texts;
  std::vector<size_t> width(columns_.size());
  std::vector<bool> right(columns_.size(), true);
  for (size_t c = 0; c < columns_.size(); c++) width[c] = display_width(columns_[c].heading);
  for (const auto& row : rows_) {
    auto& line = texts.emplace_back();
    for (size_t c = 0; c < row.size(); c++) {
      line.push_back(row[c].to_text(now_ms));
      width[c] = std::max(width[c], display_width(line[c]));
      if (!row[c].right_aligned() && row[c].kind != Cell::Kind::none) right[c] = false;
    }
  }
  std::string out;
  auto emit = [&](auto text_of) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); c++) {
      if (columns_[c].heading.empty()) continue;
      std::string_view t = text_of(c);
      std::string gap(width[c] - display_width(t), ' ');
      if (!line.empty()) line += "  ";
      line += right[c] ? gap.append(t) : std::string(t).append(gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).append("\n");
  };
  if (rows_.empty()) std::fill(right.begin(), right.end(), false);
  emit([&](size_t c) { return std::string_view(columns_[c].heading); });
  for (const auto& line : texts) emit([&](size_t c) { return std::string_view(line[c]); });
  return out;
}

void Table::write_json(proto::JsonWriter& w) const {
  w.begin_array();
  for (const auto& row : rows_) {
    w.begin_object();
    for (size_t c = 0; c < row.size(); c++) {
      w.key(columns_[c].member);
      row[c].to_json(w);
    }
    w.end_object();
  }
  w.end_array();
}

std::string Table::to_json() const {
  proto::JsonWriter w(proto::JsonStyle::strict);
  write_json(w);
  return w.take() + "\n";
}

}  // namespace rmq::ctl

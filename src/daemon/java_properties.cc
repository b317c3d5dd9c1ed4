#include "daemon/java_properties.h"

#include <algorithm>
#include <cstdint>

namespace rmq {

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\f';
}
bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}

// To the end of a comment, which no backslash continues.
void skip_comment(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_of("\r\n")));
}

// One logical line: continued lines joined, leading blanks of each dropped, escapes still there. A comment is
// an empty one.
std::string take_line(std::string_view& text) {
  std::string line;
  bool at_start = true;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (at_start && is_blank(c)) continue;
    if (line.empty() && (c == '#' || c == '!')) {
      skip_comment(text);
      continue;
    }
    at_start = false;
    if (is_line_end(c)) {
      if (c == '\r' && text.starts_with('\n')) text.remove_prefix(1);
      break;
    }
    if (c == '\\' && !text.empty() && is_line_end(text.front())) {
      if (text.starts_with("\r\n")) text.remove_prefix(1);
      text.remove_prefix(1);
      at_start = true;
      continue;
    }
    if (c == '\\' && text.empty()) break;  // continued by nothing
    line += c;
    if (c == '\\') {
      line += text.front();
      text.remove_prefix(1);
    }
  }
  return line;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

// The four hex digits behind \u at `i`; moves `i` behind them. False: there are none.
bool take_hex(std::string_view s, size_t& i, uint32_t& out) {
  if (i + 4 > s.size()) return false;
  uint32_t v = 0;
  for (size_t k = i; k < i + 4; k++) {
    char c = s[k];
    uint32_t d = c >= '0' && c <= '9'                 ? c - '0'
                 : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                      : 16;
    if (d == 16) return false;
    v = v * 16 + d;
  }
  i += 4;
  out = v;
  return true;
}

std::string unescape(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    char c = s[i++];
    if (c != '\\' || i == s.size()) {
      out += c;
      continue;
    }
    c = s[i++];
    uint32_t unit = 0, low = 0;
    if (c == 'u' && take_hex(s, i, unit)) {
      size_t j = i + 2;
      if (unit >= 0xd800 && unit < 0xdc00 && s.substr(i).starts_with("\\u") && take_hex(s, j, low) &&
          low >= 0xdc00 && low < 0xe000) {
        i = j;
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      }
      append_utf8(out, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
    } else {
      out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 'f' ? '\f' : c;
    }
  }
  return out;
}

}  // namespace

Properties parse_properties(std::string_view text) {
  Properties out;
  while (!text.empty()) {
    const std::string line = take_line(text);
    if (line.empty()) continue;
    size_t key_end = 0;
    while (key_end < line.size() && line[key_end] != '=' && line[key_end] != ':' && !is_blank(line[key_end]))
      key_end += line[key_end] == '\\' ? 2 : 1;
    key_end = std::min(key_end, line.size());
    size_t value = key_end;
    while (value < line.size() && is_blank(line[value])) value++;
    if (value < line.size() && (line[value] == '=' || line[value] == ':')) value++;
    while (value < line.size() && is_blank(line[value])) value++;
    std::string_view all = line;
    out.emplace_back(unescape(all.substr(0, key_end)), unescape(all.substr(value)));
  }
  return out;
}

}  // namespace rmq

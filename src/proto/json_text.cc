#include "proto/json_text.h"

#include <simdjson.h>

#include <array>
#include <cstring>

namespace rmq::proto::json_text {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char l = static_cast<char>(c | 32);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

// The four digits of \uXXXX at `p`, -1 when they are not.
int32_t hex4(const char* p) {
  int32_t v = 0;
  for (int i = 0; i < 4; ++i) {
    int d = hex_digit(p[i]);
    if (d < 0) return -1;
    v = v << 4 | d;
  }
  return v;
}

char* put_utf8(char32_t c, char* out) {
  auto byte = [&](char32_t v) { *out++ = static_cast<char>(v); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | c >> 6), byte(0x80 | (c & 63));
  } else if (c < 0x10000) {
    byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63));
  } else {
    byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63));
  }
  return out;
}

char simple_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
    case '\'':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

// Reads \uXXXX (and its second half) at `in`, which stands behind the 'u'. Null when malformed.
const char* read_unicode(const char* in, const char* end, char32_t* out) {
  if (end - in < 4) return nullptr;
  int32_t v = hex4(in);
  if (v < 0) return nullptr;
  in += 4;
  auto c = static_cast<char32_t>(v);
  if (c >= 0xD800 && c < 0xDC00 && end - in >= 6 && in[0] == '\\' && in[1] == 'u') {
    int32_t low = hex4(in + 2);
    if (low >= 0xDC00 && low < 0xE000) {
      *out = 0x10000 + ((c - 0xD800) << 10) + (static_cast<char32_t>(low) - 0xDC00);
      return in + 6;
    }
  }
  *out = c >= 0xD800 && c < 0xE000 ? 0xFFFD : c;
  return in;
}

// 0: as it is; 'u': \u00XX; else the letter behind the backslash. Bytes from 0x80 on are as they are.
constexpr std::array<char, 256> make_escapes() {
  std::array<char, 256> t{};
  for (size_t i = 0; i < 32; ++i) t[i] = 'u';
  t['\b'] = 'b', t['\f'] = 'f', t['\n'] = 'n', t['\r'] = 'r', t['\t'] = 't', t['"'] = '"', t['\\'] = '\\';
  return t;
}
constexpr std::array<char, 256> escapes = make_escapes();

// Length of the valid sequence at `p` (1 to 4), 0 when there is none.
size_t utf8_sequence(const unsigned char* p, size_t left) {
  auto cont = [&](size_t i) { return i < left && (p[i] & 0xC0) == 0x80; };
  if (p[0] < 0x80) return 1;
  if (p[0] >= 0xC2 && p[0] < 0xE0) return cont(1) ? 2 : 0;
  if (p[0] >= 0xE0 && p[0] < 0xF0) {
    if (!cont(1) || !cont(2)) return 0;
    bool overlong = p[0] == 0xE0 && p[1] < 0xA0, surrogate = p[0] == 0xED && p[1] >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (p[0] >= 0xF0 && p[0] < 0xF5) {
    if (!cont(1) || !cont(2) || !cont(3)) return 0;
    bool overlong = p[0] == 0xF0 && p[1] < 0x90, beyond = p[0] == 0xF4 && p[1] >= 0x90;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::optional<std::string_view> unescape_in_place(char* text, size_t size, size_t escape) {
  const char* in = text + escape;
  const char* end = text + size;
  char* out = text + escape;
  while (in < end) {
    // `in` stands on a backslash here.
    if (end - in < 2) return std::nullopt;
    if (in[1] == 'u') {
      char32_t c;
      in = read_unicode(in + 2, end, &c);
      if (!in) return std::nullopt;
      out = put_utf8(c, out);
    } else {
      char c = simple_escape(in[1]);
      if (c == 0) return std::nullopt;
      *out++ = c;
      in += 2;
    }
    // Runs between escapes are short in what is escaped most, properties: no calls for them.
    while (in < end && *in != '\\') *out++ = *in++;
  }
  return std::string_view(text, static_cast<size_t>(out - text));
}

bool is_valid_utf8(std::string_view s) {
  return simdjson::validate_utf8(s.data(), s.size());
}

bool is_plain(std::string_view s) {
  unsigned char high = 0;
  for (char c : s) {
    if (escapes[static_cast<unsigned char>(c)]) return false;
    high |= static_cast<unsigned char>(c);
  }
  return high < 0x80 || is_valid_utf8(s);
}

char* write_escaped(std::string_view s, char* out) {
  static constexpr char hex[] = "0123456789abcdef";
  const auto* p = reinterpret_cast<const unsigned char*>(s.data());
  size_t i = 0;
  while (i < s.size()) {
    unsigned char c = p[i];
    if (c >= 0x80) {
      size_t n = utf8_sequence(p + i, s.size() - i);
      if (n == 0) {
        out = put_utf8(0xFFFD, out);
        ++i;
      } else {
        std::memcpy(out, p + i, n);
        out += n;
        i += n;
      }
      continue;
    }
    char e = escapes[c];
    if (e == 0) {
      *out++ = static_cast<char>(c);
    } else if (e == 'u') {
      std::memcpy(out, "\\u00", 4);
      out[4] = hex[c >> 4], out[5] = hex[c & 15];
      out += 6;
    } else {
      *out++ = '\\', *out++ = e;
    }
    ++i;
  }
  return out;
}

std::string repaired_utf8(std::string_view s) {
  std::string out;
  const auto* p = reinterpret_cast<const unsigned char*>(s.data());
  for (size_t i = 0; i < s.size();) {
    size_t n = utf8_sequence(p + i, s.size() - i);
    if (n) {
      out.append(s.substr(i, n));
      i += n;
    } else {
      append_utf8(out, 0xFFFD);
      ++i;
    }
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  char b[4];
  out.append(b, static_cast<size_t>(put_utf8(c, b) - b));
}

}  // namespace rmq::proto::json_text

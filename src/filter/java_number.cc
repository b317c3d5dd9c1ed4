#include "filter/java_number.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace rmq::filter {

namespace {

// The zeros of the scripts whose digits Character.digit takes, of those that one Java char holds (category Nd
// of Unicode 13; nine digits follow each).
constexpr uint16_t zeros[] = {0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6,
                              0x0c66, 0x0ce6, 0x0d66, 0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0,
                              0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620,
                              0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10};

int digit_of(uint32_t code_point) {
  const auto* above = std::upper_bound(std::begin(zeros), std::end(zeros), code_point);
  if (above == std::begin(zeros)) return -1;
  uint32_t value = code_point - *(above - 1);
  return value <= 9 ? static_cast<int>(value) : -1;
}

// The digit at the front of `text`, which loses it; -1: there is none.
int take_digit(std::string_view& text) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  auto follows = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  uint32_t first = byte(0), code_point = first;
  size_t bytes = 1;
  if (first >= 0xc2 && first < 0xe0 && follows(1)) {
    code_point = (first & 0x1f) << 6 | (byte(1) & 0x3f);
    bytes = 2;
  } else if (first >= 0xe0 && first < 0xf0 && follows(1) && follows(2)) {
    code_point = (first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    bytes = 3;
  }
  text.remove_prefix(bytes);
  constexpr uint32_t at_least[] = {0, 0, 0x80, 0x800};  // shorter would do: not UTF-8
  if (bytes == 1 ? code_point >= 0x80 : code_point < at_least[bytes]) return -1;
  return digit_of(code_point);
}

// Within [-limit - 1, limit].
std::optional<int64_t> whole_number(std::string_view text, uint64_t limit) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  const uint64_t max = limit + (negative ? 1 : 0);
  uint64_t value = 0;
  while (!text.empty()) {
    int digit = take_digit(text);
    if (digit < 0) return std::nullopt;
    if (value > (max - static_cast<uint64_t>(digit)) / 10) return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(digit);
  }
  return static_cast<int64_t>(negative ? 0 - value : value);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  char lower = static_cast<char>(c | 32);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
bool is_type_suffix(char c) {
  return c == 'f' || c == 'F' || c == 'd' || c == 'D';
}

// Digits of an exponent with its sign, to the end of `text`; clamped, as no number needs more.
std::optional<int64_t> exponent_of(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = std::min<int64_t>(value * 10 + (c - '0'), 1'000'000'000);
  }
  return negative ? -value : value;
}

// mantissa x 2^exponent, and a bit more when `more`; rounded once, half to even, also into subnormals.
double scaled(uint64_t mantissa, int64_t exponent, bool more) {
  if (mantissa == 0) return 0.0;
  int shift = std::countl_zero(mantissa);
  mantissa <<= shift;
  const int64_t top = exponent - shift + 63;  // the value is in [2^top, 2^(top + 1))
  if (top > 1023) return std::numeric_limits<double>::infinity();
  const int64_t keep = top >= -1022 ? 53 : 53 - (-1022 - top);
  if (keep < 0) return 0.0;
  uint64_t kept = keep == 0 ? 0 : mantissa >> (64 - keep);
  uint64_t rest = keep == 0 ? mantissa : mantissa << keep;
  constexpr uint64_t half = uint64_t{1} << 63;
  bool up = rest > half || (rest == half && (more || (kept & 1) != 0));
  return std::ldexp(static_cast<double>(kept + (up ? 1 : 0)), static_cast<int>(top - keep + 1));
}

// What is behind 0x, to its end: digits with at most one point, p, exponent, suffix.
std::optional<double> hexadecimal(std::string_view text) {
  size_t p = text.find_first_of("pP");
  if (p == std::string_view::npos) return std::nullopt;
  std::string_view digits = text.substr(0, p), exponent_text = text.substr(p + 1);
  if (!exponent_text.empty() && is_type_suffix(exponent_text.back())) exponent_text.remove_suffix(1);
  auto exponent = exponent_of(exponent_text);
  if (!exponent) return std::nullopt;
  uint64_t mantissa = 0;
  int64_t shift = 0;
  size_t count = 0;
  bool point = false, more = false;
  for (char c : digits) {
    if (c == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    int digit = hex_digit(c);
    if (digit < 0) return std::nullopt;
    count++;
    if (mantissa >> 60 == 0) {
      mantissa = mantissa << 4 | static_cast<uint64_t>(digit);
      if (point) shift -= 4;
    } else {
      more = more || digit != 0;
      if (!point) shift += 4;
    }
  }
  if (count == 0) return std::nullopt;
  return scaled(mantissa, *exponent + shift, more);
}

// A decimal number that the library found too large or too small for a double: which of the two?
double beyond_range(std::string_view digits) {
  size_t e = std::min(digits.find_first_of("eE"), digits.size());
  int64_t exponent = e < digits.size() ? exponent_of(digits.substr(e + 1)).value_or(0) : 0;
  std::string_view mantissa = digits.substr(0, e);
  size_t point = std::min(mantissa.find('.'), mantissa.size());
  size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return 0.0;
  int64_t magnitude = static_cast<int64_t>(point) - static_cast<int64_t>(first) + exponent;
  return magnitude > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

std::optional<double> decimal(std::string_view text) {
  if (is_type_suffix(text.back())) text.remove_suffix(1);
  size_t digits = 0, i = 0;
  for (bool point = false; i < text.size(); i++) {
    if (is_digit(text[i])) {
      digits++;
    } else if (text[i] == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  if (i < text.size()) {
    if ((text[i] | 32) != 'e') return std::nullopt;
    if (!exponent_of(text.substr(i + 1))) return std::nullopt;
  }
  double value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec == std::errc::result_out_of_range) return beyond_range(text);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int32_t> java_int(std::string_view text) {
  auto value = whole_number(text, static_cast<uint64_t>(INT32_MAX));
  if (!value) return std::nullopt;
  return static_cast<int32_t>(*value);
}

std::optional<int64_t> java_long(std::string_view text) {
  return whole_number(text, static_cast<uint64_t>(INT64_MAX));
}

std::optional<double> java_double(std::string_view text) {
  auto blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  bool negative = text[0] == '-';
  if (negative || text[0] == '+') text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  std::optional<double> value;
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (text.size() > 1 && text[0] == '0' && (text[1] | 32) == 'x') {
    value = hexadecimal(text.substr(2));
  } else {
    value = decimal(text);
  }
  if (value && negative) return -*value;
  return value;
}

int java_compare(double a, double b) {
  if (a < b) return -1;
  if (a > b) return 1;
  auto bits = [](double d) {
    return std::bit_cast<int64_t>(std::isnan(d) ? std::numeric_limits<double>::quiet_NaN() : d);
  };
  int64_t x = bits(a), y = bits(b);
  return x == y ? 0 : x < y ? -1 : 1;
}

}  // namespace rmq::filter

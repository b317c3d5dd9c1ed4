#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rmq {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<int8_t, 256> make_values() {
  std::array<int8_t, 256> v{};
  for (auto& x : v) x = -1;
  for (size_t i = 0; i < alphabet.size(); i++)
    v[static_cast<unsigned char>(alphabet[i])] = static_cast<int8_t>(i);
  return v;
}
constexpr auto values = make_values();

}  // namespace

std::string base64url_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t v = 0;
    size_t n = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; k++) v = v << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; k++) out += k <= n ? alphabet[v >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') text.remove_suffix(1), padding++;
  if (text.size() % 4 == 1 || (padding != 0 && (text.size() + padding) % 4 != 0)) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t v = 0;
  int bits = 0;
  for (char c : text) {
    int8_t x = values[static_cast<unsigned char>(c)];
    if (x < 0) return std::nullopt;
    v = v << 6 | static_cast<uint32_t>(x);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(v >> bits & 0xff);
  }
  return out;
}

}  // namespace rmq

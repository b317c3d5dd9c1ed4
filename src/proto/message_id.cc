#include "proto/message_id.h"

#include <time.h>

#include <cstring>

namespace rmq::proto {

namespace {

constexpr char hex[] = "0123456789ABCDEF";

char* put_hex(char* out, const void* bytes, size_t n) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  for (size_t i = 0; i < n; ++i) {
    *out++ = hex[p[i] >> 4];
    *out++ = hex[p[i] & 15];
  }
  return out;
}

template <class T>
char* put_hex_be(char* out, T v) {
  char b[sizeof v];
  store_be(b, v);
  return put_hex(out, b, sizeof b);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char l = static_cast<char>(c | 32);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

// Text of 32 or 56 digits to 16 or 28 bytes.
std::optional<size_t> from_hex(std::string_view text, std::byte* out) {
  if (text.size() != offset_id_text_v4 && text.size() != offset_id_text_v6) return std::nullopt;
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i / 2] = static_cast<std::byte>(high << 4 | low);
  }
  return text.size() / 2;
}

Host host_at(const std::byte* b, bool v6) {
  Host h;
  h.v6 = v6;
  std::memcpy(h.address.data(), b, h.address_bytes());
  return h;
}

}  // namespace

size_t format_offset_id(const Host& store_host, int64_t physical_offset, char* out) {
  char* p = put_hex(out, store_host.address.data(), store_host.address_bytes());
  p = put_hex_be(p, store_host.port);
  p = put_hex_be(p, physical_offset);
  return static_cast<size_t>(p - out);
}

std::string make_offset_id(const Host& store_host, int64_t physical_offset) {
  char b[offset_id_text_v6];
  return std::string(b, format_offset_id(store_host, physical_offset, b));
}

void append_offset_id(std::string& out, const Host& store_host, int64_t physical_offset) {
  char b[offset_id_text_v6];
  out.append(b, format_offset_id(store_host, physical_offset, b));
}

std::optional<OffsetId> parse_offset_id(std::string_view text) {
  std::byte b[offset_id_text_v6 / 2];
  auto n = from_hex(text, b);
  if (!n) return std::nullopt;
  OffsetId id;
  id.store_host = host_at(b, *n == sizeof b);
  id.store_host.port = load_be<int32_t>(b + *n - 12);
  id.physical_offset = load_be<int64_t>(b + *n - 8);
  return id;
}

UniqueIdMaker::UniqueIdMaker(const Host& own, uint16_t pid, uint32_t instance) {
  char b[offset_id_text_v6];
  char* p = put_hex(b, own.address.data(), own.address_bytes());
  p = put_hex_be(p, pid);
  p = put_hex_be(p, instance);
  fixed_.assign(b, static_cast<size_t>(p - b));
}

void UniqueIdMaker::start_month(int64_t now_ms) {
  time_t s = now_ms / 1000;
  tm t{};
  gmtime_r(&s, &t);
  t.tm_mday = 1;
  t.tm_hour = t.tm_min = t.tm_sec = 0;
  month_start_ms_ = static_cast<int64_t>(timegm(&t)) * 1000;
  ++t.tm_mon;
  next_month_ms_ = static_cast<int64_t>(timegm(&t)) * 1000;
}

std::string UniqueIdMaker::next(int64_t now_ms) {
  if (now_ms >= next_month_ms_ || now_ms < month_start_ms_) start_month(now_ms);
  char b[12];
  char* p = put_hex_be(b, static_cast<uint32_t>(now_ms - month_start_ms_));
  put_hex_be(p, counter_++);
  std::string id;
  id.reserve(fixed_.size() + sizeof b);
  id = fixed_;
  id.append(b, sizeof b);
  return id;
}

std::optional<UniqueIdParts> parse_unique_id(std::string_view text) {
  std::byte b[offset_id_text_v6 / 2];
  auto n = from_hex(text, b);
  if (!n) return std::nullopt;
  UniqueIdParts parts;
  parts.host = host_at(b, *n == sizeof b);
  const std::byte* p = b + parts.host.address_bytes();
  parts.pid = load_be<uint16_t>(p);
  parts.instance = load_be<uint32_t>(p + 2);
  parts.ms_in_month = load_be<uint32_t>(p + 6);
  parts.counter = load_be<uint16_t>(p + 10);
  return parts;
}

}  // namespace rmq::proto

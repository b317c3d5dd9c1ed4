#include "filter/bloom_filter.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace rmq::filter {

namespace {

constexpr uint64_t c1 = 0x87c37b91114253d5, c2 = 0x4cf5ad432745937f;

uint64_t mix_first(uint64_t k) {
  return std::rotl(k * c1, 31) * c2;
}
uint64_t mix_second(uint64_t k) {
  return std::rotl(k * c2, 33) * c1;
}
uint64_t finish(uint64_t h) {
  h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
  return h ^ h >> 33;
}
// Up to 8 bytes, the first one lowest.
uint64_t little_endian(std::string_view bytes) {
  uint64_t v = 0;
  for (size_t i = 0; i < bytes.size(); i++)
    v |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return v;
}

}  // namespace

uint64_t murmur3_low(std::string_view text) {
  const uint64_t bytes = text.size();
  uint64_t h1 = 0, h2 = 0;
  for (; text.size() >= 16; text.remove_prefix(16)) {
    h1 = (std::rotl(h1 ^ mix_first(little_endian(text.substr(0, 8))), 27) + h2) * 5 + 0x52dce729;
    h2 = (std::rotl(h2 ^ mix_second(little_endian(text.substr(8, 8))), 31) + h1) * 5 + 0x38495ab5;
  }
  h1 ^= mix_first(little_endian(text.substr(0, 8)));
  if (text.size() > 8) h2 ^= mix_second(little_endian(text.substr(8)));
  h1 ^= bytes;
  h2 ^= bytes;
  h1 += h2;
  h2 += h1;
  return finish(h1) + finish(h2);
}

std::vector<int32_t> BloomFilter::positions(std::string_view text) {
  const uint64_t hash = murmur3_low(text);
  const uint32_t first = static_cast<uint32_t>(hash), second = static_cast<uint32_t>(hash >> 32);
  std::vector<int32_t> out;
  for (uint32_t i = 1; i <= hashes; i++) {
    int32_t combined = static_cast<int32_t>(first + i * second);
    out.push_back((combined < 0 ? ~combined : combined) % bits);
  }
  return out;
}

}  // namespace rmq::filter

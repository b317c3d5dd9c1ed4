// The bits that RocketMQ's Bloom filter gives a consumer of a topic. rmqd evaluates expressions instead of
// keeping bit maps; it writes the positions into consumerFilter.json because RocketMQ ignores the whole file
// when they are not those that it would give (filter, BloomFilter.java and BloomFilterData.java).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rmq::filter {

// The low 64 bits of MurmurHash3_x64_128 with seed 0 (Austin Appleby, public domain; Guava's murmur3_128).
uint64_t murmur3_low(std::string_view text);

struct BloomFilter {
  // Of maxErrorRateOfBloomFilter = 20 per cent and expectConsumerNumUseFilter = 32, RocketMQ's defaults.
  static constexpr int32_t hashes = 3;
  static constexpr int32_t bits = 112;
  static std::vector<int32_t> positions(std::string_view text);
};

}  // namespace rmq::filter

// CRC-32 (IEEE 802.3, the one of zlib and java.util.zip.CRC32), by libdeflate.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace rmq {

// Of `data`, going on from `seed` (0 to begin). Any thread.
uint32_t crc32(Bytes data, uint32_t seed = 0);

// As RocketMQ stores it in a record: the top bit is cleared.
inline uint32_t body_crc(Bytes body) {
  return crc32(body) & 0x7fffffffU;
}

}  // namespace rmq

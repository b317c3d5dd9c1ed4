#include "base/crc.h"

#include <libdeflate.h>

namespace rmq {

uint32_t crc32(Bytes data, uint32_t seed) {
  return libdeflate_crc32(seed, data.data(), data.size());
}

}  // namespace rmq

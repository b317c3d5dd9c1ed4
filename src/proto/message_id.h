// Message ids. The offset id names a record: store address, port and physical offset as upper-case hex. The
// unique client id (UNIQ_KEY) names a message before it is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/record.h"

namespace rmq::proto {

struct OffsetId {
  Host store_host;
  int64_t physical_offset = 0;
};

inline constexpr size_t offset_id_text_v4 = 32, offset_id_text_v6 = 56;

// Writes 32 or 56 characters to `out` and returns their number.
size_t format_offset_id(const Host& store_host, int64_t physical_offset, char* out);
std::string make_offset_id(const Host& store_host, int64_t physical_offset);
void append_offset_id(std::string& out, const Host& store_host, int64_t physical_offset);
std::optional<OffsetId> parse_offset_id(std::string_view text);  // either case

// Makes unique ids as MessageClientIDSetter does: address, pid, a number of this instance, ms since the start
// of the month (UTC here), a counter. One thread; ids of two instances differ when `instance` does.
class UniqueIdMaker {
 public:
  UniqueIdMaker(const Host& own, uint16_t pid, uint32_t instance);
  // `now_ms` is wall time.
  std::string next(int64_t now_ms);

 private:
  void start_month(int64_t now_ms);
  std::string fixed_;  // hex of address, pid, instance
  int64_t month_start_ms_ = 0;
  int64_t next_month_ms_ = 0;
  uint16_t counter_ = 0;
};

struct UniqueIdParts {
  Host host;  // port 0
  uint16_t pid = 0;
  uint32_t instance = 0;
  uint32_t ms_in_month = 0;
  uint16_t counter = 0;
};
std::optional<UniqueIdParts> parse_unique_id(std::string_view text);

}  // namespace rmq::proto

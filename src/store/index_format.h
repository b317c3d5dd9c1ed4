// The layout of an IndexFile, RocketMQ's: a hash table from "topic#key" to physical offsets. A header, slots
// that hold the number of the newest entry of their chain, and entries in the order in which they came, each
// with the number of the one before it in its slot. Entry 0 is never used, 0 ends a chain. All integers are
// big-endian. docs/formats.md has the fields one by one.
//
// The file's name is the local time of its creation, yyyyMMddHHmmssSSS; names ascend.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "proto/record.h"

namespace rmq::store {

inline constexpr size_t index_header_bytes = 40;
inline constexpr size_t index_slot_bytes = 4;
inline constexpr size_t index_entry_bytes = 20;
inline constexpr size_t index_name_digits = 17;

struct IndexHeader {
  int64_t begin_timestamp_ms = 0;  // store timestamp of the first entry's message
  int64_t end_timestamp_ms = 0;    // ... of the last one's
  int64_t begin_physical = 0;      // physical offset of the first entry's message
  int64_t end_physical = 0;        // ... of the last one's
  int32_t used_slots = 0;
  int32_t count = 1;  // the number that the next entry gets

  bool operator==(const IndexHeader&) const = default;
};

struct IndexEntry {
  int32_t hash = 0;
  int64_t physical = 0;
  int32_t seconds = 0;  // from the header's begin_timestamp_ms to the message's store timestamp
  int32_t previous = 0;
};

// maxHashSlotNum and maxIndexNum: they are nowhere in the file, only its size depends on them.
struct IndexLayout {
  uint32_t slots = 5'000'000;
  uint32_t entries = 20'000'000;

  uint64_t slots_end() const { return index_header_bytes + uint64_t{slots} * index_slot_bytes; }
  uint64_t file_bytes() const { return slots_end() + uint64_t{entries} * index_entry_bytes; }
  uint32_t slot_of(int32_t hash) const { return static_cast<uint32_t>(hash) % slots; }
  uint64_t slot_at(uint32_t slot) const { return index_header_bytes + uint64_t{slot} * index_slot_bytes; }
  uint64_t entry_at(int64_t number) const {
    return slots_end() + static_cast<uint64_t>(number) * index_entry_bytes;
  }
  bool operator==(const IndexLayout&) const = default;
};

// Of a key: |hashCode of "topic#key"|, and 0 for the one value that has no absolute one.
inline int32_t index_hash_of(int32_t java_hash) {
  return java_hash == INT32_MIN ? 0 : std::max(java_hash, -java_hash);
}
inline int32_t index_hash(std::string_view topic, std::string_view key) {
  std::string text(topic);
  text += '#';
  text += key;
  return index_hash_of(proto::java_hash(text));
}

inline void encode_index_header(std::byte* to, const IndexHeader& h) {
  store_be(to, h.begin_timestamp_ms);
  store_be(to + 8, h.end_timestamp_ms);
  store_be(to + 16, h.begin_physical);
  store_be(to + 24, h.end_physical);
  store_be(to + 32, h.used_slots);
  store_be(to + 36, h.count);
}
// A file in which nothing was written yet has a count of 0: it means 1, as in every empty one.
inline IndexHeader decode_index_header(const std::byte* from) {
  IndexHeader h;
  h.begin_timestamp_ms = load_be<int64_t>(from);
  h.end_timestamp_ms = load_be<int64_t>(from + 8);
  h.begin_physical = load_be<int64_t>(from + 16);
  h.end_physical = load_be<int64_t>(from + 24);
  h.used_slots = load_be<int32_t>(from + 32);
  h.count = std::max(load_be<int32_t>(from + 36), 1);
  return h;
}

inline void encode_index_entry(std::byte* to, const IndexEntry& e) {
  store_be(to, e.hash);
  store_be(to + 4, e.physical);
  store_be(to + 12, e.seconds);
  store_be(to + 16, e.previous);
}
inline IndexEntry decode_index_entry(const std::byte* from) {
  return {load_be<int32_t>(from), load_be<int64_t>(from + 4), load_be<int32_t>(from + 12),
          load_be<int32_t>(from + 16)};
}

// What a header must fulfil whatever the file holds.
inline bool is_sane(const IndexHeader& h, const IndexLayout& l) {
  if (h.count > 1 && (h.begin_timestamp_ms <= 0 || h.begin_physical < 0)) return false;
  return h.count >= 1 && static_cast<uint32_t>(h.count) <= l.entries && h.used_slots >= 0 &&
         h.begin_timestamp_ms <= h.end_timestamp_ms && h.begin_physical <= h.end_physical;
}

inline bool parse_index_name(std::string_view name, uint64_t& number) {
  if (name.size() != index_name_digits) return false;
  auto [end, err] = std::from_chars(name.data(), name.data() + name.size(), number);
  return err == std::errc() && end == name.data() + name.size();
}
inline std::string index_name(uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(index_name_digits - std::min(digits.size(), index_name_digits), '0') + digits;
}

}  // namespace rmq::store

// The stored message: the record that lies in the CommitLog and that clients get in pull answers, byte for
// byte the same. This header stands alone (of ours only base), because src/store includes nothing else of
// src/proto. All integers big-endian:
//
//   total size 4 | magic 4 | body CRC 4 | queue id 4 | flag 4 | queue offset 8 | physical offset 8 | sysFlag
//   4 born timestamp 8 | born host 8 or 20 | store timestamp 8 | store host 8 or 20 | reconsume times 4
//   prepared transaction offset 8 | body length 4 | body | topic length 1 (V1) or 2 (V2) | topic
//   properties length 2 | properties
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace rmq::proto {

inline constexpr uint32_t record_magic_v1 = 0xDAA320A7;  // topic of at most 127 bytes
inline constexpr uint32_t record_magic_v2 = 0xDAA320AB;  // longer topics
inline constexpr uint32_t blank_magic = 0xCBD43194;      // the rest of a CommitLog file is unused
inline constexpr size_t blank_record_bytes = 8;  // remaining size 4, magic 4: always fits before a file's end

inline constexpr size_t record_queue_offset_at = 20;
inline constexpr size_t record_physical_offset_at = 28;
inline constexpr size_t record_sys_flag_at = 36;
inline constexpr size_t record_bytes_min = 91;  // v4 hosts, V1, empty body, topic and properties

// MessageSysFlag.
namespace sys_flag {
inline constexpr int32_t compressed = 0x1, multi_tags = 0x2;
inline constexpr int32_t transaction_mask = 0xC, transaction_none = 0, transaction_prepared = 0x4,
                         transaction_commit = 0x8, transaction_rollback = 0xC;
inline constexpr int32_t bornhost_v6 = 0x10, storehost_v6 = 0x20, need_unwrap = 0x40, inner_batch = 0x80;
inline constexpr int32_t compression_mask = 0x700, compression_lz4 = 0x100, compression_zstd = 0x200,
                         compression_zlib = 0x300;
inline constexpr int32_t transaction_of(int32_t f) {
  return f & transaction_mask;
}
// Whether a message has a place in its ConsumeQueue: it is none that waits for the end of its transaction.
inline constexpr bool is_visible(int32_t f) {
  return transaction_of(f) == transaction_none || transaction_of(f) == transaction_commit;
}
// One record of several messages, which its body holds as a batch.
inline constexpr bool is_inner_batch(int32_t f) {
  return (f & inner_batch) != 0;
}
inline constexpr int32_t with_transaction(int32_t f, int32_t type) {
  return (f & ~transaction_mask) | type;
}
}  // namespace sys_flag

// The properties that the store itself reads or writes (the others: codes.h).
namespace prop {
inline constexpr std::string_view KEYS = "KEYS";
inline constexpr std::string_view TAGS = "TAGS";
inline constexpr std::string_view UNIQ_KEY = "UNIQ_KEY";
inline constexpr std::string_view DELAY = "DELAY";
inline constexpr std::string_view REAL_TOPIC = "REAL_TOPIC";
inline constexpr std::string_view REAL_QID = "REAL_QID";
inline constexpr std::string_view TIMER_DELAY_MS = "TIMER_DELAY_MS";
inline constexpr std::string_view TIMER_DELAY_SEC = "TIMER_DELAY_SEC";
inline constexpr std::string_view TIMER_DELIVER_MS = "TIMER_DELIVER_MS";
inline constexpr std::string_view TIMER_OUT_MS = "TIMER_OUT_MS";
inline constexpr std::string_view TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS";
inline constexpr std::string_view TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS";
inline constexpr std::string_view TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES";
inline constexpr std::string_view TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY";
inline constexpr std::string_view INNER_NUM = "INNER_NUM";
inline constexpr std::string_view INNER_BASE = "INNER_BASE";
inline constexpr std::string_view INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH";
inline constexpr std::string_view INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET";
inline constexpr std::string_view CRC32 = "__CRC32#";
}  // namespace prop

// An address as records and offset ids hold it: 4 or 16 address bytes in network order, then the port.
struct Host {
  std::array<std::byte, 16> address{};  // the first 4 for v4
  int32_t port = 0;
  bool v6 = false;

  size_t address_bytes() const { return v6 ? 16 : 4; }
  size_t bytes() const { return address_bytes() + 4; }
  static Host v4_of(uint32_t address_host_order, int32_t port);
  // "127.0.0.1:10911", "[::1]:10911" or "::1:10911" (as Java prints it). Numbers only, no names.
  static std::optional<Host> parse(std::string_view text);
  std::string to_string() const;  // "127.0.0.1:10911", "[::1]:10911"
  bool operator==(const Host&) const = default;
};

// What a record is made of. Views belong to the caller; magic, sizes, CRC and the v6 bits of sysFlag are
// computed.
struct RecordFields {
  std::string_view topic;
  Bytes body;
  std::string_view properties;
  int32_t queue_id = 0;
  int32_t flag = 0;
  int32_t sys_flag = 0;
  int64_t queue_offset = 0;
  int64_t physical_offset = 0;
  int64_t born_timestamp_ms = 0;
  Host born_host;
  int64_t store_timestamp_ms = 0;
  Host store_host;
  int32_t reconsume_times = 0;
  int64_t prepared_transaction_offset = 0;
  bool append_crc = false;  // the CRC of the whole record becomes its last property
};

// RocketMQ's enabledAppendPropCRC: the last 20 bytes of the properties are "__CRC32#", 01, the CRC-32 of all
// bytes of the record before them without its top bit as ten decimal digits, the lowest one first, 02. (Seen
// with 5.5.0.)
inline constexpr size_t property_crc_bytes = 20;
// Bytes of the properties as they are written: with that property, and an 02 in front of it where one lacks.
size_t properties_bytes(const RecordFields& f);

// Bytes that encode_record will write. Topic of at most 32767 bytes, properties of at most 32767: the caller
// has checked its limits before (properties_bytes).
size_t record_size(const RecordFields& f);
// Writes the record to the front of `out` (at least record_size bytes) and returns its size. `crc` when the
// caller has the body's CRC already (base/crc.h body_crc).
size_t encode_record(const RecordFields& f, MutableBytes out, std::optional<uint32_t> crc = std::nullopt);

// What the one writer of the log knows last. `record` begins at the record.
void patch_queue_offset(MutableBytes record, int64_t queue_offset);
void patch_physical_offset(MutableBytes record, int64_t physical_offset);
void patch_store_timestamp(MutableBytes record, int64_t store_timestamp_ms);
// Of a record that was encoded here or parsed before (no checks beyond the fixed part's size).
int64_t record_queue_offset(Bytes record);
int64_t record_physical_offset(Bytes record);
int64_t record_store_timestamp(Bytes record);

// The end mark of a file whose last `remaining` bytes (at least blank_record_bytes) stay unused.
void encode_blank_record(MutableBytes out, uint32_t remaining);

// A parsed record; the views lie in the bytes that were given.
struct RecordView {
  uint32_t size = 0;
  uint32_t magic = 0;  // record_magic_v1 or record_magic_v2
  uint32_t body_crc = 0;
  int32_t queue_id = 0;
  int32_t flag = 0;
  int64_t queue_offset = 0;
  int64_t physical_offset = 0;
  int32_t sys_flag = 0;
  int64_t born_timestamp_ms = 0;
  Host born_host;
  int64_t store_timestamp_ms = 0;
  Host store_host;
  int32_t reconsume_times = 0;
  int64_t prepared_transaction_offset = 0;
  Bytes body;
  std::string_view topic;
  std::string_view properties;           // without the one that append_crc adds
  std::optional<uint32_t> property_crc;  // what that one says

  std::optional<std::string_view> property(std::string_view name) const;
  int64_t tags_code() const;  // of the property TAGS, 0 without
};

// False: the record has a property_crc, and is another. `record` begins with the record that `v` views.
bool property_crc_fits(const RecordView& v, Bytes record);

enum class CrcCheck : uint8_t { skip, verify };

// Parses the record at the front of `bytes`, which may go on behind it. Every length is checked against the
// record's size and that against `bytes`. Errc::bad_input: not a record (also blank_magic: look with
// record_front first); Errc::corrupt: the CRC is wrong; Errc::limit: `bytes` ends before the record does.
Result<RecordView> parse_record(Bytes bytes, CrcCheck crc = CrcCheck::skip);

// The first two words, for walking a log: nothing when fewer than 8 bytes.
struct RecordFront {
  uint32_t size;
  uint32_t magic;
  bool is_message() const { return magic == record_magic_v1 || magic == record_magic_v2; }
  bool is_blank() const { return magic == blank_magic; }
};
std::optional<RecordFront> record_front(Bytes bytes);

// Java's String.hashCode of a text in UTF-8: over UTF-16 units, invalid bytes count as U+FFFD. `begin` is the
// hash of what stands in front of it.
int32_t java_hash(std::string_view utf8, int32_t begin = 0);
// The tags code of a queue entry: the hash of the TAGS value, sign-extended.
inline int64_t tags_code_of(std::string_view tags) {
  return tags.empty() ? 0 : java_hash(tags);
}

// The value of `name` in a properties text (name 0x01 value 0x02 ...), as RocketMQ's tolerant reader sees it:
// the first 0x01 of an entry splits it, a missing last 0x02 is fine, entries without name or value do not
// count, of equal names the last one does.
std::optional<std::string_view> find_property(std::string_view properties, std::string_view name);

}  // namespace rmq::proto

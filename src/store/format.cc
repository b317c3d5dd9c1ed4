#include "store/format.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "base/crc.h"
#include "base/limits.h"

namespace rmq::store {

// ---- file names --------------------------------------------------------------------------------------

std::string file_name_20(uint64_t offset) {
  std::string s(20, '0');
  for (size_t i = 20; offset != 0; offset /= 10) s[--i] = static_cast<char>('0' + offset % 10);
  return s;
}

bool parse_file_name_20(std::string_view name, uint64_t& offset) {
  if (name.size() != 20) return false;
  auto [end, err] = std::from_chars(name.data(), name.data() + name.size(), offset);
  return err == std::errc() && end == name.data() + name.size();
}

bool legal_topic(std::string_view name) {
  bool dots = name == "." || name == "..";
  return !name.empty() && name.size() <= limits::long_topic_bytes_max && !dots &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

bool parse_queue_id(std::string_view name, int32_t& id) {
  auto [end, err] = std::from_chars(name.data(), name.data() + name.size(), id);
  return err == std::errc() && end == name.data() + name.size() && id >= 0;
}

bool may_hold_rocksdb_config(std::string_view config_dir) {
  return config_dir != "users" && config_dir != "acls";
}

bool is_dledger_dir(std::string_view name) {
  return name.starts_with("dledger-");
}

// ---- units -------------------------------------------------------------------------------------------

void encode_unit(std::byte* to, const QueueUnit& u) {
  store_be<int64_t>(to, u.physical_offset);
  store_be<int32_t>(to + 8, u.bytes);
  store_be<int64_t>(to + 12, u.tags_code);
}

QueueUnit decode_unit(const std::byte* from) {
  return {load_be<int64_t>(from), load_be<int32_t>(from + 8), load_be<int64_t>(from + 12)};
}

// ---- timer tags

namespace {
// Hashes are 32 bits; a time in this century, times four, is far above that.
constexpr int64_t timer_tag_min = int64_t{1} << 33;
constexpr int64_t timer_ms_max = int64_t{1} << 50;
}  // namespace

int64_t encode_timer_tag(const TimerTag& t) {
  return t.deliver_ms * 4 + static_cast<int64_t>(t.kind);
}

void append_copy_guard(std::string& body, const CopyGuard& g) {
  for (uint32_t crc : g) append_be(body, crc);
  append_be(body, static_cast<uint32_t>(g.size()));
}

CopyGuard copy_guard_of(Bytes body) {
  constexpr size_t each = sizeof(uint32_t);
  CopyGuard g;
  if (body.size() <= each || std::to_integer<uint8_t>(body[0]) != copy_guard_version) return g;
  const std::byte* end = body.data() + body.size() - each;
  const uint32_t n = load_be<uint32_t>(end);
  if (n > (body.size() - 1 - each) / each) return g;
  g.reserve(n);
  for (uint32_t i = n; i > 0; i--) g.push_back(load_be<uint32_t>(end - i * each));
  return g;
}

std::optional<TimerTag> decode_timer_tag(int64_t tags_code) {
  if (tags_code < timer_tag_min || tags_code / 4 > timer_ms_max || tags_code % 4 == 3) return std::nullopt;
  return TimerTag{tags_code / 4, static_cast<TimerKind>(tags_code % 4)};
}

std::optional<TimerTag> timer_tag_of(const proto::RecordView& r) {
  auto text = r.property(proto::prop::TIMER_OUT_MS);
  if (!text) return std::nullopt;
  TimerTag t;
  auto [end, err] = std::from_chars(text->data(), text->data() + text->size(), t.deliver_ms);
  if (err != std::errc() || end != text->data() + text->size()) return std::nullopt;
  if (r.property(proto::prop::TIMER_DEL_UNIQKEY))
    t.kind = TimerKind::recall;
  else if (r.property(proto::prop::TIMER_DELAY_SEC) || r.property(proto::prop::TIMER_DELAY_MS))
    t.kind = TimerKind::delay;
  bool sane = t.deliver_ms >= timer_tag_min / 4 && t.deliver_ms <= timer_ms_max;
  if (!sane) return std::nullopt;
  return t;
}

int32_t inner_messages_of(const proto::RecordView& r) {
  // Nearly all records end here.
  if (!proto::sys_flag::is_inner_batch(r.sys_flag)) return 1;
  if (r.topic.starts_with("%RETRY%") || r.topic.starts_with("%DLQ%")) return 1;
  const auto number = r.property(proto::prop::INNER_NUM);
  if (!number || !r.property(proto::prop::INNER_BASE)) return 1;
  int32_t n = 0;
  const auto [end, err] = std::from_chars(number->data(), number->data() + number->size(), n);
  const bool good = err == std::errc() && end == number->data() + number->size();
  return good && n >= 1 && n <= inner_messages_max ? n : 1;
}

int64_t unit_tags_code(const proto::RecordView& r, std::span<const int64_t> delay_level_ms) {
  if (r.topic == timer_topic) {
    auto tag = timer_tag_of(r);
    auto real = r.property(proto::prop::REAL_TOPIC);
    if (real && real->starts_with(revive_log_prefix)) return r.tags_code();  // it is to be looked at
    return tag ? encode_timer_tag(*tag) : r.tags_code();
  }
  if (r.topic != schedule_topic || delay_level_ms.empty()) return r.tags_code();
  auto text = r.property(proto::prop::DELAY);
  if (!text) return r.tags_code();
  int64_t level = 0;
  auto [end, err] = std::from_chars(text->data(), text->data() + text->size(), level);
  if (err != std::errc() || end != text->data() + text->size() || level <= 0) return r.tags_code();
  auto last = static_cast<int64_t>(delay_level_ms.size());
  return r.store_timestamp_ms + delay_level_ms[static_cast<size_t>(std::min(level, last) - 1)];
}

// ---- checkpoints -------------------------------------------------------------------------------------

namespace {

constexpr std::string_view magic = "RMQDCKPT";
constexpr uint32_t version = 1;
constexpr size_t body_at = 16;  // magic 8, version 4, CRC 4
constexpr size_t body_bytes = 8 + 4 + 8 * 7;
constexpr size_t begins_at = body_at + body_bytes;  // queue_begins and a CRC of it: added later

uint32_t crc_of(Bytes slot) {
  return crc32(slot.subspan(body_at, body_bytes));
}

// The version of a slot that is whole; every version keeps the place of magic, version and CRC, and what
// the CRC covers. 0: it is not whole.
uint32_t version_of(Bytes slot) {
  if (slot.size() != own_checkpoint_slot_bytes) return 0;
  ByteReader r(slot);
  if (r.text(magic.size()) != magic) return 0;
  uint32_t v = r.get<uint32_t>();
  return r.get<uint32_t>() == crc_of(slot) ? v : 0;
}

}  // namespace

uint64_t queue_weight(std::string_view topic, int32_t queue_id) {
  uint64_t h = 0xcbf29ce484222325;  // FNV-1a, and the last step of splitmix64
  for (char c : topic) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  h ^= static_cast<uint32_t>(queue_id);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
  h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
  return (h ^ (h >> 31)) | 1;
}

void encode_checkpoint(const OwnCheckpoint& c, MutableBytes slot) {
  check(slot.size() == own_checkpoint_slot_bytes);
  std::memset(slot.data(), 0, slot.size());
  ByteWriter w(slot.subspan(body_at));
  w.put<uint64_t>(c.sequence);
  w.put<uint32_t>((c.clean ? 1u : 0u) | (c.sync_flush ? 2u : 0u) | (c.property_crc ? 4u : 0u));
  w.put<int64_t>(c.queues_durable);
  w.put<int64_t>(c.log_durable);
  w.put<int64_t>(c.zeroed_to);
  w.put<uint64_t>(c.queue_count);
  w.put<uint64_t>(c.queue_units);
  w.put<int64_t>(c.store_timestamp_ms);
  w.put<uint64_t>(c.queue_sum);
  check(w.position() == body_bytes);
  ByteWriter begins(slot.subspan(begins_at));
  begins.put<uint64_t>(c.queue_begins);
  begins.put<uint32_t>(crc32(slot.subspan(begins_at, sizeof c.queue_begins)));
  ByteWriter head(slot);
  head.put_text(magic);
  head.put<uint32_t>(version);
  head.put<uint32_t>(crc_of(slot));
}

std::optional<OwnCheckpoint> decode_checkpoint(Bytes slot) {
  if (version_of(slot) != version) return std::nullopt;
  ByteReader r(slot.subspan(body_at));
  OwnCheckpoint c;
  c.sequence = r.get<uint64_t>();
  uint32_t flags = r.get<uint32_t>();
  c.clean = (flags & 1) != 0;
  c.sync_flush = (flags & 2) != 0;
  c.property_crc = (flags & 4) != 0;
  c.queues_durable = r.get<int64_t>();
  c.log_durable = r.get<int64_t>();
  c.zeroed_to = r.get<int64_t>();
  c.queue_count = r.get<uint64_t>();
  c.queue_units = r.get<uint64_t>();
  c.store_timestamp_ms = r.get<int64_t>();
  c.queue_sum = r.get<uint64_t>();
  ByteReader begins(slot.subspan(begins_at));
  const uint64_t sum = begins.get<uint64_t>();
  if (begins.get<uint32_t>() == crc32(slot.subspan(begins_at, sizeof sum))) c.queue_begins = sum;
  return c;
}

bool is_later_checkpoint(Bytes slot) {
  return version_of(slot) > version;
}

void encode_java_checkpoint(const JavaCheckpoint& c, MutableBytes file) {
  check(file.size() == java_checkpoint_bytes);
  std::memset(file.data(), 0, file.size());
  ByteWriter w(file);
  w.put<int64_t>(c.physic_msg_timestamp);
  w.put<int64_t>(c.logics_msg_timestamp);
  w.put<int64_t>(c.index_msg_timestamp);
  w.put<int64_t>(c.master_flushed_offset);
  w.put<int64_t>(c.confirm_phy_offset);
}

JavaCheckpoint decode_java_checkpoint(Bytes file) {
  ByteReader r(file);
  JavaCheckpoint j;
  j.physic_msg_timestamp = r.get<int64_t>();
  j.logics_msg_timestamp = r.get<int64_t>();
  j.index_msg_timestamp = r.get<int64_t>();
  j.master_flushed_offset = r.get<int64_t>();
  j.confirm_phy_offset = r.get<int64_t>();
  return j;
}

}  // namespace rmq::store

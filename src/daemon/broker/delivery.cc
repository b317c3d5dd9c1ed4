#include "daemon/broker/delivery.h"

#include <charconv>

#include "base/crc.h"
#include "daemon/broker/broker.h"
#include "proto/codes.h"

namespace rmq::broker {

namespace names = proto::names;

namespace {

constexpr uint8_t version = store::copy_guard_version;
constexpr uint8_t version_without_guard = 1;
constexpr uint32_t list_max = 1u << 20;
constexpr uint32_t readers = 16;  // reads of records at a time
constexpr int64_t save_interval_ns = 10 * ns_per_s;

void append_number(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  out += static_cast<char>(v);
}

void append_list(std::string& out, const std::vector<int64_t>& list) {
  append_number(out, list.size());
  int64_t last = 0;
  for (int64_t v : list) {
    int64_t d = v - last;
    append_number(out, (static_cast<uint64_t>(d) << 1) ^ static_cast<uint64_t>(d >> 63));
    last = v;
  }
}

uint64_t read_number(ByteReader& r) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    auto b = r.get<uint8_t>();
    v |= static_cast<uint64_t>(b & 0x7f) << shift;
    if ((b & 0x80) == 0) break;
  }
  return v;
}

bool read_list(ByteReader& r, std::vector<int64_t>& list) {
  uint64_t n = read_number(r);
  if (n > list_max || n > r.left()) return false;
  list.reserve(n);
  int64_t last = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t z = read_number(r);
    last = static_cast<int64_t>(static_cast<uint64_t>(last) + ((z >> 1) ^ (~(z & 1) + 1)));
    list.push_back(last);
  }
  return r.ok();
}

}  // namespace

std::string DeliveryMarker::encode() const {
  std::string out(1, static_cast<char>(version));
  append_number(out, static_cast<uint64_t>(level));
  append_list(out, next);
  append_list(out, copied);
  append_list(out, dropped);
  store::append_copy_guard(out, guard);
  return out;
}

std::optional<DeliveryMarker> DeliveryMarker::decode(Bytes body) {
  DeliveryMarker m;
  const bool guarded = !body.empty() && std::to_integer<uint8_t>(body[0]) == version;
  if (guarded) {
    m.guard = store::copy_guard_of(body);
    const size_t bytes = (m.guard.size() + 1) * sizeof(uint32_t);
    if (bytes > body.size()) return std::nullopt;
    body = body.first(body.size() - bytes);
  }
  ByteReader r(body);
  const auto begins = r.get<uint8_t>();
  if (!guarded && begins != version_without_guard) return std::nullopt;
  m.level = static_cast<int32_t>(read_number(r));
  bool good = read_list(r, m.next) && read_list(r, m.copied) && read_list(r, m.dropped);
  if (!good || r.left() != 0 || (guarded && m.guard.size() != m.copied.size())) return std::nullopt;
  return m;
}

// Of the properties that the copy's record will have; 0: the store adds to them.
static uint32_t guard_of(const Broker& b, const store::MessageIn& copy) {
  const bool changes = b.config.enabledAppendPropCRC ||
                       copy.properties.find(proto::prop::INNER_MULTI_DISPATCH) != std::string_view::npos ||
                       copy.properties.find(proto::prop::CRC32) != std::string_view::npos;
  return changes ? 0 : crc32(as_bytes(copy.properties));
}

Task<Delivery::Put> Delivery::put(const DeliveryMarker& unguarded, std::span<const store::MessageIn> copies) {
  check(copies.size() == unguarded.copied.size());
  DeliveryMarker marker = unguarded;
  for (const store::MessageIn& copy : copies) marker.guard.push_back(guard_of(broker_, copy));
  const std::string body = marker.encode();
  std::vector<store::MessageIn> all(1 + copies.size());
  store::MessageIn& m = all[0];
  m.may_use_reserve = true;  // of the whole batch: what is due was taken long ago
  m.topic = names::rmq_sys_delivered;
  m.queue_id = queue_;
  m.born_timestamp_ms = broker_.wall_ms();
  m.born_host = m.store_host = broker_.store_host;
  m.body = as_bytes(body);
  std::copy(copies.begin(), copies.end(), all.begin() + 1);
  auto r = co_await broker_.store.put_batch(all);
  Put out;
  out.status = r.status;
  out.done =
      r.status == store::PutMessageStatus::PUT_OK || r.status == store::PutMessageStatus::FLUSH_DISK_TIMEOUT;
  out.marker = r.queue_offset;
  out.physical = r.physical_offset;
  out.end = r.physical_offset + r.total_bytes;
  co_return out;
}

// Whether it may be a copy behind a marker: a delivered message, one that was put again, or a half message.
static bool is_copy(const proto::RecordView& record) {
  auto real = record.property(proto::prop::REAL_TOPIC);
  if (!real) return false;
  if (record.topic == names::RMQ_SYS_TRANS_HALF_TOPIC)
    return record.property(proto::prop::TRANSACTION_COPY_CRC) && has_good_properties(record);
  return *real == record.topic || record.topic == names::rmq_sys_wheel_timer;
}

// How many of the records behind the marker are of its batch: contiguous, of the same store time.
Task<Result<size_t>> Delivery::count_copies(const proto::RecordView& marker, size_t wanted) {
  int64_t at = marker.physical_offset + marker.size;
  for (size_t n = 0; n < wanted; n++) {
    auto extent = co_await broker_.store.record_at(at);
    if (!extent && extent.error().code == Errc::not_found) co_return n;
    if (!extent) co_return std::unexpected(extent.error());
    auto record = proto::parse_record(extent->bytes());
    if (!record || record->store_timestamp_ms != marker.store_timestamp_ms) co_return n;
    if (!is_copy(*record)) co_return n;
    at += record->size;
  }
  co_return wanted;
}

Task<Result<std::optional<Delivery::Found>>> Delivery::read_one(const store::QueueUnit& unit, int64_t offset,
                                                                bool last) {
  auto extent = co_await broker_.store.record_at(unit.physical_offset);
  if (!extent && extent.error().code == Errc::not_found) co_return std::optional<Found>{};
  if (!extent) co_return std::unexpected(extent.error());
  auto record = proto::parse_record(extent->bytes());
  if (!record) co_return std::optional<Found>{};
  auto marker = DeliveryMarker::decode(record->body);
  if (!marker) co_return std::optional<Found>{};
  Found f{std::move(*marker), offset, 0};
  f.copies = f.marker.copied.size();
  if (last) {
    CO_TRY_VAR(there, co_await count_copies(*record, f.copies));
    f.copies = there;
  }
  co_return std::optional<Found>(std::move(f));
}

Task<Result<std::vector<Delivery::Found>>> Delivery::read_from(int64_t queue_offset) {
  std::vector<Found> out;
  const int64_t max = broker_.store.max_offset(names::rmq_sys_delivered, queue_);
  int64_t at = std::max(queue_offset, broker_.store.min_offset(names::rmq_sys_delivered, queue_));
  std::vector<store::QueueUnit> units(512);
  while (at < max) {
    CO_TRY_VAR(n, co_await broker_.store.queue_units(names::rmq_sys_delivered, queue_, at, units));
    if (n == 0) break;
    for (size_t i = 0; i < n; i++, at++) {
      if (store::is_blank(units[i])) continue;
      CO_TRY_VAR(found, co_await read_one(units[i], at, at + 1 == max));
      if (found) out.push_back(std::move(*found));
    }
  }
  co_return out;
}

Task<Result<std::optional<Delivery::Found>>> Delivery::read_last(int64_t queue_offset) {
  const int64_t max = broker_.store.max_offset(names::rmq_sys_delivered, queue_);
  const int64_t min = std::max(queue_offset, broker_.store.min_offset(names::rmq_sys_delivered, queue_));
  for (int64_t at = max - 1; at >= min; at--) {
    store::QueueUnit unit;
    CO_TRY_VAR(n,
               co_await broker_.store.queue_units(names::rmq_sys_delivered, queue_, at, std::span(&unit, 1)));
    if (n == 0 || store::is_blank(unit)) continue;
    CO_TRY_VAR(found, co_await read_one(unit, at, at + 1 == max));
    if (found) co_return std::move(*found);
  }
  co_return std::optional<Found>{};
}

// ---- records and copies ------------------------------------------------------------------------------

namespace {
struct Reading {
  store::MessageStore& store;
  std::vector<DueMessage>& due;
  size_t next = 0;
  Result<void> result{};
};

Task<void> read_some(Reading& r) {
  while (r.next < r.due.size() && r.result) {
    DueMessage& d = r.due[r.next++];
    if (store::is_blank(d.unit)) continue;
    auto extent = co_await r.store.record_at(d.unit.physical_offset);
    if (!extent && extent.error().code == Errc::not_found) continue;
    if (!extent) {
      r.result = std::unexpected(extent.error());
      co_return;
    }
    auto record = proto::parse_record(extent->bytes());
    if (!record) continue;
    d.extent = std::move(*extent);
    d.record = *record;
  }
}
}  // namespace

Task<bool> flushed_so_far(store::MessageStore& store) {
  const int64_t end = store.max_physical_offset();
  while (store.writable() && store.flushed_offset() < end) co_await sleep_for(20 * ns_per_ms);
  co_return store.writable();
}

Task<bool> DeliveryProgress::save_safe() {
  freeze();
  bool safe = co_await flushed_so_far(broker_.store);
  if (!safe) co_return false;
  auto saved = co_await save();
  co_return saved.has_value();
}

Task<void> DeliveryProgress::save_often() {
  for (;;) {
    bool stop = co_await broker_.stopping.wait_for(save_interval_ns);
    if (stop) co_return;
    if (!std::exchange(dirty_, false)) continue;
    bool saved = co_await save_safe();
    if (!saved) dirty_ = true;
  }
}

Task<Result<void>> read_due(store::MessageStore& store, std::vector<DueMessage>& due) {
  Reading r{store, due};
  Scope scope;
  for (uint32_t i = 0; i < readers && r.next < due.size(); i++) scope.spawn(read_some(r));
  co_await scope.join();
  co_return r.result;
}

store::MessageIn copy_of(const DueMessage& due, const Address& store_host, std::string_view topic,
                         int32_t queue_id) {
  store::MessageIn m = copy_of(due.record, store_host);
  m.topic = topic;
  m.queue_id = queue_id;
  m.prepared_transaction_offset = due.record.prepared_transaction_offset;
  if (!due.properties.empty()) m.properties = due.properties;
  return m;
}

std::optional<RealQueue> real_queue_of(const proto::RecordView& record) {
  auto topic = record.property(proto::prop::REAL_TOPIC);
  auto queue = record.property(proto::prop::REAL_QID);
  if (!topic || !queue) return std::nullopt;
  RealQueue out{*topic, 0};
  auto [end, ec] = std::from_chars(queue->data(), queue->data() + queue->size(), out.queue_id);
  if (ec != std::errc{} || end != queue->data() + queue->size() || out.queue_id < 0) return std::nullopt;
  if (!store::legal_topic(out.topic)) return std::nullopt;
  // Only the broker itself writes to these.
  if (out.topic == names::RMQ_SYS_TRANS_HALF_TOPIC || out.topic == names::rmq_sys_delivered)
    return std::nullopt;
  return out;
}

}  // namespace rmq::broker

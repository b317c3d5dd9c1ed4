#include "daemon/broker/pop/java_pops.h"

#include <algorithm>

#include "daemon/broker/broker.h"
#include "proto/codes.h"

namespace rmq::broker {

namespace {
constexpr std::string_view revive_group = "CID_RMQ_SYS_REVIVE_GROUP";
// Acknowledgements come out of the timer right after their checkpoint: RocketMQ waits for them as long.
constexpr int64_t wait_ms = 3000;
}  // namespace

void JavaPops::start(Scope& scope) {
  scope.spawn(follow(std::string(proto::names::revive_log_prefix) + broker_.config.brokerClusterName));
}

Task<void> JavaPops::follow(std::string topic) {
  for (;;) {
    for (int32_t q : broker_.store.queue_ids(topic)) {
      bool more = co_await read(topic, q);
      while (more) more = co_await read(topic, q);
    }
    bool stop = co_await broker_.stopping.wait_for(ns_per_s);
    if (stop) co_return;
  }
}

// RocketMQ commits the offset of the last record, not the one behind it.
Task<bool> JavaPops::read(const std::string& topic, int32_t queue_id) {
  auto done = broker_.offsets.query(revive_group, topic, queue_id);
  int64_t at = std::max(done ? *done + 1 : 0, broker_.store.min_offset(topic, queue_id));
  const int64_t max = broker_.store.max_offset(topic, queue_id), end = std::min(max, at + 256);
  if (at >= end) co_return false;
  for (; at < end; at++) {
    auto unit = co_await broker_.store.queue_unit(topic, queue_id, at);
    if (!unit || store::is_blank(*unit)) continue;
    auto extent = co_await broker_.store.record_at(unit->physical_offset);
    if (!extent && extent.error().code != Errc::not_found) co_return false;  // again in a second
    if (!extent) continue;
    auto record = proto::parse_record(extent->bytes());
    if (record) co_await take(*record);
  }
  // First what was read, then how far.
  auto kept = co_await broker_.pop.table.kept(broker_.pop.table.last_change());
  if (!kept) co_return false;
  broker_.offsets.commit(revive_group, topic, queue_id, end - 1);
  co_return end < max;
}

Task<void> JavaPops::take(const proto::RecordView& record) {
  const auto tag = record.property(proto::prop::TAGS);
  auto r = proto::ReviveLogRecord::parse(as_text(record.body));
  if (!tag || !r || r->queue_id < 0) co_return;
  if (*tag == "ack" || *tag == "bAck") co_return take_acknowledgement(*r);
  if (*tag != "ck" || broker_.topics.find(r->topic) == nullptr) co_return;
  if (r->count < 1 || r->count > static_cast<int32_t>(PopCheckpoint::messages_max)) co_return;
  if (!r->differences.empty() && r->differences.size() != static_cast<size_t>(r->count)) co_return;
  co_await broker_.pop.open(r->consumer_group, r->topic, r->queue_id, 0);
  take_checkpoint(*r);
}

void JavaPops::take_checkpoint(const proto::ReviveLogRecord& r) {
  PopTable& table = broker_.pop.table;
  PopTable::QueuePointer q = table.find(r.consumer_group, r.topic, r.queue_id);
  const PopCheckpoint::Key key{r.start_offset, r.pop_time_ms};
  if (!q || q->checkpoints.contains(key)) return;
  std::vector<int64_t> offsets;
  for (int32_t i = 0; i < r.count; i++) {
    const int64_t place = r.differences.empty() ? i : r.differences[static_cast<size_t>(i)];
    if (place < 0 || place > UINT32_MAX) return;
    offsets.push_back(r.start_offset + place);
  }
  const int64_t due_ms = std::max(r.pop_time_ms + r.invisible_time_ms, broker_.due_clock.wall_ms());
  table.popped(*q, r.start_offset, q->next, r.pop_time_ms, due_ms + wait_ms, offsets);
  table.acknowledge(*q, key, static_cast<uint32_t>(r.bit_map));
  broker_.pop.look_again();
}

void JavaPops::take_acknowledgement(const proto::ReviveLogRecord& r) {
  PopTable& table = broker_.pop.table;
  PopTable::QueuePointer q = table.find(r.consumer_group, r.topic, r.queue_id);
  if (!q) return;
  const PopCheckpoint::Key key{r.start_offset, r.pop_time_ms};
  for (int64_t offset : r.acknowledged) {
    auto c = q->checkpoints.find(key);
    if (c == q->checkpoints.end()) return;
    table.acknowledge(*q, key, c->second.bit_of(offset - r.start_offset));
  }
}

}  // namespace rmq::broker

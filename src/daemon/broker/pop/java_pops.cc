#include "daemon/broker/pop/java_pops.h"

#include <algorithm>

#include "daemon/broker/broker.h"
#include "proto/codes.h"
#include "store/config_file.h"

namespace rmq::broker {

namespace {
constexpr std::string_view revive_group = "CID_RMQ_SYS_REVIVE_GROUP";
// A checkpoint that the timer has delivered: its acknowledgements come right after it, and RocketMQ waits for
// them as long.
constexpr int64_t wait_ms = 3000;
constexpr size_t at_once = 1024;
}  // namespace

Task<void> JavaPops::load() {
  auto file = co_await store::load_file(
      broker_.disk, broker_.config.storePathRootDir + "/config/consumerOrderInfo.json", nullptr);
  if (!file) co_return;
  auto all = proto::ConsumerOrderInfo::parse_table(file->content);
  if (!all) co_return;  // then it comes again at once
  for (const proto::ConsumerOrderInfo& o : *all) take_order(o);
}

// The file may be older than what rmqd did since.
void JavaPops::take_order(const proto::ConsumerOrderInfo& o) {
  PopTable& table = broker_.pop.table;
  const size_t count = o.offsets.size();
  if (count == 0 || count > OrderInfo::messages_max || broker_.topics.find(o.topic) == nullptr) return;
  if (table.find(o.consumer_group, o.topic, o.queue_id)) return;
  auto order = std::make_unique<OrderInfo>();
  order->attempt_id = o.attempt_id;
  order->pop_time_ms = o.pop_time_ms;
  order->end = o.offsets.back() + 1;
  order->acknowledged = static_cast<uint64_t>(o.acknowledged);
  for (int64_t offset : o.offsets) {
    auto visible = o.next_visible_ms.find(offset);
    auto consumed = o.consumed.find(offset);
    OrderInfo::Message& m = order->messages.emplace_back();
    m.offset = offset;
    m.visible_ms = o.pop_time_ms + o.invisible_time_ms;
    if (visible != o.next_visible_ms.end()) m.visible_ms = visible->second;
    if (consumed != o.consumed.end()) m.consumed = consumed->second;
  }
  const int64_t next = order->next_offset();
  if (broker_.offsets.query(o.consumer_group, o.topic, o.queue_id) != next) return;
  if (order->blocked_until_ms() <= broker_.wall_ms()) return;
  PopTable::QueuePointer q = table.add(o.consumer_group, o.topic, o.queue_id, next);
  q->order = std::move(order);
  table.order_changed(*q);
}

void JavaPops::start(Scope& scope) {
  scope.spawn(follow(std::string(proto::names::revive_log_prefix) + broker_.config.brokerClusterName));
}

Task<void> JavaPops::follow(std::string topic) {
  co_await broker_.timers.scanned.wait();
  while (!broker_.stopping.is_set()) {
    for (int32_t q : broker_.store.queue_ids(topic)) {
      bool more = co_await read(topic, q);
      while (more) more = co_await read(topic, q);
    }
    bool done = co_await take_from_timer();
    if (done) taken.set();
    co_await broker_.stopping.wait_for(ns_per_s);
  }
  taken.set();  // nobody waits any more
}

// In the order in which they came: a checkpoint before its acknowledgements.
Task<bool> JavaPops::take_from_timer() {
  const std::vector<int64_t> came = broker_.timers.take_for_pops();
  in_timer_.insert(in_timer_.end(), came.begin(), came.end());
  std::sort(in_timer_.begin(), in_timer_.end());
  while (!in_timer_.empty()) {
    const auto end = in_timer_.begin() + static_cast<ptrdiff_t>(std::min(at_once, in_timer_.size()));
    std::vector<int64_t> some(in_timer_.begin(), end);
    bool done = co_await take_some(std::move(some));
    if (!done) co_return false;
    in_timer_.erase(in_timer_.begin(), end);
  }
  co_return true;
}

// First they are in our table, then no more in the timer: what is taken twice after a crash in between was
// not acknowledged by anybody yet.
Task<bool> JavaPops::take_some(std::vector<int64_t> offsets) {
  std::vector<DueMessage> all;
  for (int64_t offset : offsets) {
    if (broker_.timers.is_done(offset)) continue;
    store::QueueUnit unit{0, store::blank_unit_size, 0};
    auto n = co_await broker_.store.queue_units(store::timer_topic, 0, offset, std::span(&unit, 1));
    if (!n && n.error().code != Errc::not_found) co_return false;
    DueMessage& d = all.emplace_back();
    d.offset = offset;
    d.unit = unit;
  }
  auto read = co_await read_due(broker_.store, all);
  if (!read) co_return false;
  for (const DueMessage& d : all)
    if (!d.extent.bytes().empty()) co_await take(d.record);
  auto kept = co_await broker_.pop.table.kept(broker_.pop.table.last_change());
  if (!kept) co_return false;
  std::vector<int64_t> done;
  for (const DueMessage& d : all) done.push_back(d.offset);
  if (done.empty()) co_return true;
  bool dropped = co_await broker_.timers.drop(std::move(done));
  co_return dropped;
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
  const bool known = broker_.offsets.query(r->consumer_group, r->topic, r->queue_id).has_value();
  PopTable::QueuePointer q = co_await broker_.pop.open(r->consumer_group, r->topic, r->queue_id, 0);
  if (!q) co_return;  // nobody gets it any more
  if (!known) without_offset_.insert(q->id);
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
  int64_t due_ms = std::max(r.pop_time_ms + r.invisible_time_ms, broker_.due_clock.wall_ms());
  if (taken.is_set()) due_ms += wait_ms;
  int64_t next = q->next;
  if (without_offset_.contains(q->id)) next = std::max(next, offsets.back() + 1);
  table.popped(*q, r.start_offset, next, r.pop_time_ms, due_ms, offsets);
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

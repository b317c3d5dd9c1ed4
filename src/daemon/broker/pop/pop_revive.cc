// What nobody acknowledged in time goes to the retry topic of its topic and group, counted (storage.md 16.3),
// and is done in its own queue when the copies are on stable storage. Before a copy is put, the log of the
// table says that it will be, and where the retry queue ended then. So after a crash in between a start looks
// behind that place for copies (they name their original by its physical offset) and puts only what is not
// there.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/pop/pop_handle.h"
#include "daemon/broker/pop/pop_service.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

using Key = PopCheckpoint::Key;

namespace {
constexpr size_t messages_at_once = 256;
constexpr size_t batch_bytes_max = 512u << 10;
constexpr int64_t again_ms = 1000;  // after a failure
constexpr int64_t look_ns = 100 * ns_per_ms;
constexpr int32_t read_write = proto::perm::read | proto::perm::write;
}  // namespace

Task<void> PopService::run() {
  co_await finish_interrupted();
  co_await java_.taken.wait();
  while (!stopping_) {
    settle_placed();
    broker_.look_at_clock();
    std::vector<Revival> due = take_due();
    if (!due.empty()) {
      co_await revive(std::move(due));
      continue;
    }
    int64_t wait_ns = ns_per_s;
    if (const PopCheckpoint* first = table.first_due())
      wait_ns =
          std::clamp((first->visible_ms - broker_.due_clock.wall_ms()) * ns_per_ms, ns_per_ms, ns_per_s);
    if (!placed_.empty()) wait_ns = std::min(wait_ns, look_ns);
    co_await changed_.wait_for(wait_ns);
  }
  settle_placed();
}

bool PopService::is_wanted(const PopQueue& q) const {
  return broker_.topics.find(q.topic) != nullptr && broker_.groups.find(q.group) != nullptr;
}

static std::string retry_topic_of(const Broker& b, const PopQueue& q) {
  if (proto::is_retry_topic(q.topic)) return q.topic;
  return pop_retry_topic(q.group, q.topic, b.config.enableRetryTopicV2);
}

std::vector<PopService::Revival> PopService::take_due() {
  std::vector<Revival> out;
  size_t messages = 0;
  const int64_t now_ms = broker_.due_clock.wall_ms();
  while (PopCheckpoint* c = table.first_due()) {
    if (c->visible_ms > now_ms || messages >= messages_at_once) break;
    PopTable::QueuePointer q = table.find(c->queue->group, c->queue->topic, c->queue->queue_id);
    const Key key = *c->key;
    if (!is_wanted(*q)) {
      table.acknowledge(*q, key, UINT32_MAX);
      continue;
    }
    Revival r;
    r.queue = q;
    r.key = key;
    r.epoch = q->epoch;
    r.retry_topic = retry_topic_of(broker_, *q);
    table.take_due(*c);
    for (size_t i = 0; i < c->count; i++) {
      if ((c->pending >> i & 1) == 0) continue;
      r.messages.emplace_back().offset = key.first + c->place(i);
      r.bits.push_back(1u << i);
    }
    messages += r.messages.size();
    out.push_back(std::move(r));
  }
  return out;
}

// Of a compacted topic, whose queue begins before what the log still has. False: it is not there any more.
Task<Result<bool>> PopService::read_compacted(const PopQueue& q, DueMessage& m) {
  auto got = co_await broker_.store.get(q.topic, q.queue_id, m.offset, 1, nullptr);
  if (got.status == store::GetMessageStatus::OFFSET_FOUND_NULL)
    co_return fail(Errc::io, "a message of a compacted topic");
  if (got.extents.size() != 1) co_return false;
  auto record = proto::parse_record(got.extents[0].bytes());
  if (!record || record->queue_offset != m.offset) co_return false;  // there is a later one of its key
  m.extent = std::move(got.extents[0]);
  m.record = *record;
  co_return true;
}

// Messages that the log does not have any more are done.
Task<Result<void>> PopService::read(Revival& r) {
  const store::QueueUnit none{0, store::blank_unit_size, 0};
  for (DueMessage& m : r.messages) {
    m.unit = none;
    if (m.offset < broker_.store.min_offset(r.queue->topic, r.queue->queue_id)) continue;
    auto n = co_await broker_.store.queue_units(r.queue->topic, r.queue->queue_id, m.offset,
                                                std::span(&m.unit, 1));
    if (!n && n.error().code != Errc::not_found) co_return std::unexpected(n.error());
    if (!n || *n == 0 || m.unit.bytes <= 0) m.unit = none;
    const bool compacted = !n && broker_.store.is_compacted(r.queue->topic);
    if (!compacted) continue;
    auto found = co_await read_compacted(*r.queue, m);
    if (!found) co_return std::unexpected(found.error());
  }
  auto done = co_await read_due(broker_.store, r.messages);
  co_return done;
}

// On disk before anything is put into it: what is in a topic that nobody knows is not popped.
Task<bool> PopService::make_retry_topic(std::string topic) {
  if (broker_.topics.find(topic) != nullptr) co_return true;
  co_await broker_.ensure_topic(topic, 1, read_write);
  auto saved = co_await broker_.topics.save();
  co_return saved.has_value();
}

void PopService::give_back(const Revival& r) {
  if (r.queue->epoch == r.epoch) table.put_off(*r.queue, r.key, broker_.due_clock.wall_ms() + again_ms);
}

Task<void> PopService::revive(std::vector<Revival> all) {
  std::vector<size_t> good;
  for (size_t i = 0; i < all.size(); i++) {
    Revival& r = all[i];
    auto done = co_await read(r);
    if (!done) {
      log(LogLevel::error, ids::delivery_failed, "messages that were not acknowledged cannot be read",
          {{"TOPIC", r.queue->topic}, {"GROUP", r.queue->group}, {"REASON", to_string(done.error())}});
      give_back(r);
      continue;
    }
    bool there = co_await make_retry_topic(r.retry_topic);
    if (!there) {
      give_back(r);
      continue;
    }
    // What was acknowledged while we read is done, and no longer too late.
    if (r.queue->epoch != r.epoch || !r.queue->checkpoints.contains(r.key)) continue;
    table.begin_revive(*r.queue, r.key, broker_.store.max_offset(r.retry_topic, 0));
    good.push_back(i);
  }
  auto noted = co_await table.kept(table.last_change());
  for (size_t i : good) {
    Revival& r = all[i];
    bool put = false;
    if (noted && r.queue->epoch == r.epoch) put = co_await put_copies(r);
    if (!put) give_back(r);
  }
}

namespace {

std::string properties_of_copy(const proto::RecordView& record, int64_t pop_time_ms) {
  std::string properties(record.properties);
  if (record.reconsume_times == 0 || !proto::find_property(properties, proto::prop::FIRST_POP_TIME))
    proto::set_property(properties, proto::prop::FIRST_POP_TIME, std::to_string(pop_time_ms));
  if (properties.size() > limits::properties_bytes_max) properties = std::string(record.properties);
  return properties;
}

}  // namespace

// The next copies of it that the log takes as one batch: those of messages that are still pending, from
// `from` on, which moves on. Messages that the log does not have any more are done.
PopService::Copies PopService::compose(Revival& r, size_t& from, size_t most) {
  Copies out;
  auto c = r.queue->checkpoints.find(r.key);
  const uint32_t pending = c == r.queue->checkpoints.end() ? 0 : c->second.pending;
  uint32_t gone = 0;
  size_t bytes = 0;
  for (; from < r.messages.size() && bytes < batch_bytes_max && out.messages.size() < most; from++) {
    DueMessage& m = r.messages[from];
    if ((pending & r.bits[from]) == 0) continue;
    if (m.extent.bytes().empty()) {
      gone |= r.bits[from];
      continue;
    }
    m.properties = properties_of_copy(m.record, r.key.second);
    out.bits |= r.bits[from];
    bytes += m.extent.bytes().size();
    store::MessageIn& copy = out.messages.emplace_back(copy_of(m, broker_.store_host, r.retry_topic, 0));
    copy.reconsume_times = m.record.reconsume_times + 1;
    copy.prepared_transaction_offset = m.record.physical_offset;
  }
  if (gone != 0) table.acknowledge(*r.queue, r.key, gone);
  return out;
}

Task<bool> PopService::put_copies(Revival& r) {
  size_t at = 0, most = PopCheckpoint::messages_max;
  while (at < r.messages.size() && r.queue->epoch == r.epoch) {
    const size_t begin = at;
    const Copies copies = compose(r, at, most);
    if (copies.messages.empty()) continue;
    auto put = co_await broker_.store.put_batch(copies.messages);
    const bool illegal = put.status == store::PutMessageStatus::MESSAGE_ILLEGAL ||
                         put.status == store::PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
    if (illegal && copies.messages.size() > 1) {  // too large as one batch, or which one is it?
      most = 1;
      at = begin;
      continue;
    }
    if (illegal) {
      log(LogLevel::error, ids::delivery_failed,
          "a message can never go to its retry topic, it is passed over",
          {{"TOPIC", r.retry_topic}, {"REASON", store::name_of(put.status)}});
      table.acknowledge(*r.queue, r.key, copies.bits);
      continue;
    }
    const bool done = put.status == store::PutMessageStatus::PUT_OK ||
                      put.status == store::PutMessageStatus::FLUSH_DISK_TIMEOUT;
    if (!done) {
      // What was put before must not be put again.
      [[maybe_unused]] bool safe = co_await flushed_so_far(broker_.store);
      settle_placed();
      co_return false;
    }
    placed_.push_back({r.queue, r.key, copies.bits, put.physical_offset + put.total_bytes});
    broker_.metrics.revived(original_topic(r.queue->group, r.queue->topic), r.queue->group,
                            copies.messages.size());
    wake_for(*r.queue, copies.messages.size());
  }
  settle_placed();
  co_return true;
}

// Those who wait for the topic get what is in its retry topic.
void PopService::wake_for(const PopQueue& q, size_t messages) {
  const std::string topic = original_topic(q.group, q.topic);
  for (size_t n = 0; n < messages; n++) {
    polling.wake_one(topic, q.group, -1);
    notifications.wake_one(topic, q.group, -1);
  }
}

void PopService::settle_placed() {
  const int64_t safe = broker_.store.flushed_offset();
  std::erase_if(placed_, [&](const Placed& p) {
    if (p.end > safe) return false;
    // A queue that somebody has reset since has no such checkpoint.
    table.acknowledge(*p.queue, p.key, p.bits);
    return true;
  });
}

// ---- after a crash -------------------------------------------------------------------------------------

// The physical offsets of the messages of which there is a copy in the queue from that offset on.
Task<std::set<int64_t>> PopService::copied_since(std::string topic, int64_t from) {
  std::set<int64_t> copied;
  const int64_t end = broker_.store.max_offset(topic, 0);
  for (int64_t at = std::max(from, broker_.store.min_offset(topic, 0)); at < end; at++) {
    auto unit = co_await broker_.store.queue_unit(topic, 0, at);
    if (!unit || store::is_blank(*unit)) continue;
    auto extent = co_await broker_.store.record_at(unit->physical_offset);
    if (!extent) continue;
    auto record = proto::parse_record(extent->bytes());
    if (record) copied.insert(record->prepared_transaction_offset);
  }
  co_return copied;
}

Task<std::vector<PopService::Origin>> PopService::origins_of(PopTable::QueuePointer q, Key key) {
  std::vector<Origin> out;
  for (size_t i = 0; i < PopCheckpoint::messages_max; i++) {
    auto c = q->checkpoints.find(key);
    if (c == q->checkpoints.end() || i >= c->second.count) break;
    if ((c->second.pending >> i & 1) == 0) continue;
    const auto place = c->second.place(i);
    auto unit = co_await broker_.store.queue_unit(q->topic, q->queue_id, key.first + place);
    if (unit) out.push_back({q, key, 1u << i, unit->physical_offset});
    if (unit || !broker_.store.is_compacted(q->topic)) continue;
    DueMessage m;
    m.offset = key.first + place;
    auto found = co_await read_compacted(*q, m);
    if (found && *found) out.push_back({q, key, 1u << i, m.record.physical_offset});
  }
  co_return out;
}

Task<void> PopService::finish_interrupted() {
  const auto interrupted = table.interrupted();
  std::map<std::string, int64_t> from;  // by retry topic
  std::map<std::string, std::vector<Origin>> origins;
  for (const auto& [q, key] : interrupted) {
    auto c = q->checkpoints.find(key);
    if (c == q->checkpoints.end()) continue;
    const std::string topic = retry_topic_of(broker_, *q);
    int64_t& least = from.try_emplace(topic, INT64_MAX).first->second;
    least = std::min(least, c->second.revive_from);
    std::vector<Origin> some = co_await origins_of(q, key);
    std::move(some.begin(), some.end(), std::back_inserter(origins[topic]));
  }
  for (const auto& [topic, all] : origins) {
    const std::set<int64_t> copied = co_await copied_since(topic, from[topic]);
    for (const Origin& o : all)
      if (copied.contains(o.physical)) table.acknowledge(*o.queue, o.key, o.bit);
  }
  for (const auto& [q, key] : interrupted) table.put_off(*q, key, broker_.due_clock.wall_ms());
}

}  // namespace rmq::broker

#include "daemon/broker/pop/pop_service.h"

#include <algorithm>

#include "base/limits.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/pop/pop_handle.h"
#include "proto/codes.h"

namespace rmq::broker {

PopService::PopService(Broker& broker, Disk& disk, std::string path, Durability durability,
                       OffsetManager& offsets)
    : table(disk, std::move(path), durability, offsets), broker_(broker), java_(broker) {}

namespace {

// A queue that the loss of power has cut (ASYNC_FLUSH): what was popped behind its end is gone, and what
// comes there now is something else.
void end_at(PopTable& table, PopQueue& q, int64_t max) {
  std::vector<std::pair<PopCheckpoint::Key, uint32_t>> gone;
  for (const auto& [key, c] : q.checkpoints) {
    uint32_t bits = 0;
    for (size_t i = 0; i < c.count; i++)
      if (key.first + c.place(i) >= max) bits |= 1u << i;
    if (bits != 0) gone.emplace_back(key, bits);
  }
  for (const auto& [key, bits] : gone) table.acknowledge(q, key, bits);
  if (q.order) {
    q.order->drop_from(max);
    if (q.order->is_over()) q.order.reset();
    q.next = std::min(q.next, max);
    return table.order_changed(q);
  }
  table.move_to(q, std::min(q.next, max));
}

}  // namespace

bool PopService::queue_ends(std::string_view group, std::string_view topic, int32_t queue_id, int64_t max) {
  PopTable::QueuePointer q = table.find(group, topic, queue_id);
  if (!q) return false;
  const bool cut = q->next > max || (q->order && q->order->end > max);
  if (cut) end_at(table, *q, max);
  return cut;
}

void PopService::start(Scope& scope) {
  scope.spawn(run());
  java_.start(scope);
}

void PopService::stop() {
  stopping_ = true;
  changed_.notify();
  polling.wake_all();
  notifications.wake_all();
}

void PopService::on_arrival(ArrivedMessage& m) {
  polling.on_arrival(m);
  notifications.on_arrival(m);
}

void PopService::on_reset(std::string_view topic, std::string_view group) {
  const std::string original = original_topic(group, topic);
  polling.wake_group(original, group);
  notifications.wake_group(original, group);
}

Task<PopTable::QueuePointer> PopService::queue_of_handle(std::string group, std::string topic,
                                                         int32_t queue_id, PopCheckpoint::Key key) {
  PopTable::QueuePointer q = table.find(group, topic, queue_id);
  if (java_.taken.is_set() || (q && q->checkpoints.contains(key))) co_return q;
  co_await java_.taken.wait();
  co_return table.find(group, topic, queue_id);
}

bool PopService::is_full() const {
  const auto most = static_cast<size_t>(broker_.config.memoryLimit) / 16 / limits::pop_checkpoint_bytes;
  return table.checkpoints() >= std::max(most, limits::pop_checkpoints_min);
}

std::vector<std::string> PopService::retry_topics(std::string_view group, std::string_view topic) const {
  std::vector<std::string> out;
  const bool v2 = broker_.config.enableRetryTopicV2;
  out.push_back(pop_retry_topic(group, topic, v2));
  if (v2 && !broker_.config.retrieveMessageFromPopRetryTopicV1) return out;
  std::string other = pop_retry_topic(group, topic, !v2);
  if (broker_.topics.find(other) != nullptr) out.push_back(std::move(other));
  return out;
}

int64_t PopService::next_offset(std::string_view group, std::string_view topic, int32_t queue_id) const {
  if (PopTable::QueuePointer q = table.find(group, topic, queue_id)) return q->next;
  if (auto offset = broker_.offsets.query(group, topic, queue_id)) return *offset;
  return std::max<int64_t>(0, broker_.store.min_offset(topic, queue_id));
}

// RocketMQ's rule: a young queue, whose first message is still hot, is read from its beginning also when the
// newest was asked for, so that nothing is missed of what was sent while the consumer started.
Task<PopTable::QueuePointer> PopService::open(std::string group, std::string topic, int32_t queue_id,
                                              int32_t init_mode) {
  if (PopTable::QueuePointer q = table.find(group, topic, queue_id)) co_return q;
  int64_t next = std::max<int64_t>(0, broker_.store.min_offset(topic, queue_id));
  auto known = broker_.offsets.query(group, topic, queue_id);
  if (!known && init_mode != 0 && !proto::is_retry_topic(topic)) {
    bool young = next == 0 && broker_.config.initPopOffsetByCheckMsgInMem;
    if (young) {
      auto first = co_await broker_.store.queue_unit(topic, queue_id, 0);
      young = first && broker_.store.in_memory(first->physical_offset);
    }
    if (!young) next = std::max<int64_t>(0, broker_.store.max_offset(topic, queue_id) - 1);
  }
  // On disk before anything is popped for it: a start takes a group that it does not know for a deleted one,
  // and drops what was popped for it.
  auto kept = co_await broker_.groups.save();
  if (!kept) co_return nullptr;
  // Somebody else may have come meanwhile.
  if (PopTable::QueuePointer q = table.find(group, topic, queue_id)) co_return q;
  known = broker_.offsets.query(group, topic, queue_id);
  // Deleted while the pop read other queues: an entry, and with it an offset, would outlive the deletion.
  if (broker_.topics.find(topic) == nullptr || broker_.groups.find(group) == nullptr) co_return nullptr;
  co_return table.add(group, topic, queue_id, known.value_or(next));
}

}  // namespace rmq::broker

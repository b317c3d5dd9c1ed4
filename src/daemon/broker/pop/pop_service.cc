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

void PopService::on_arrival(const store::Arrival& a) {
  polling.on_arrival(a);
  notifications.on_arrival(a);
}

bool PopService::is_full() const {
  const auto most = static_cast<size_t>(broker_.config.memoryLimit) / 16 / limits::pop_checkpoint_bytes;
  return table.checkpoints() >= std::max(most, limits::pop_checkpoints_min);
}

std::vector<std::string> PopService::retry_topics(std::string_view group, std::string_view topic) const {
  std::vector<std::string> out;
  const bool v2 = broker_.config.enableRetryTopicV2;
  out.push_back(pop_retry_topic(group, topic, v2));
  if (v2 && broker_.config.retrieveMessageFromPopRetryTopicV1)
    out.push_back(pop_retry_topic(group, topic, false));
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
    // Somebody else may have come meanwhile.
    if (PopTable::QueuePointer q = table.find(group, topic, queue_id)) co_return q;
    known = broker_.offsets.query(group, topic, queue_id);
  }
  co_return table.add(group, topic, queue_id, known.value_or(next));
}

}  // namespace rmq::broker

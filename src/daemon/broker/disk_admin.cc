// The disk on request: old files now and not at their hour, queues of which nothing is left, queues of topics
// that are no more (remoting.md 16.1).
#include "base/log.h"
#include "daemon/broker/handlers.h"
#include "proto/codes.h"
#include "store/light_queues.h"

namespace rmq::broker {

using proto::ResponseCode;

void delete_expired_commitlog(Broker& b, Request& r, proto::EmptyHeader) {
  log(LogLevel::notice, ids::clean_requested, "deletion of expired files was asked for",
      {{"CLIENT", r.connection().peer_text()}});
  b.store.delete_expired();
  r.reply(ResponseCode::SUCCESS);
}

// A queue that is taken away begins at 0 again. Groups that have consumed it must begin there too, or they
// would miss what comes: by a reset, so that consumers that wait at an old offset learn of it.
Task<void> clean_expired_consumequeue(Broker& b, Request& r, proto::EmptyHeader) {
  for (const store::MessageStore::QueueName& q : b.store.expired_queues()) {
    if (b.topics.is_system(q.topic)) continue;  // the broker itself keeps offsets in these
    const std::function<void()> reset_groups = [&b, q] {
      for (const std::string& group : b.offsets.groups_of(q.topic)) {
        const OffsetManager::Queues* queues = b.offsets.queues(group, q.topic);
        if (queues != nullptr && queues->contains(q.queue_id))
          b.offsets.set_reset(group, q.topic, q.queue_id, 0);
      }
    };
    bool dropped = co_await b.store.drop_expired_queue(q, reset_groups);
    if (dropped)
      log(LogLevel::notice, ids::queue_dropped, "a queue without messages was taken away",
          {{"TOPIC", q.topic},
           {"QUEUE", std::to_string(q.queue_id)},
           {"CLIENT", r.connection().peer_text()}});
  }
  r.reply(ResponseCode::SUCCESS);
}

Task<void> clean_unused_topic(Broker& b, Request& r, proto::EmptyHeader) {
  for (const std::string& topic : b.store.topics_with_queues()) {
    if (b.topics.find(topic) != nullptr || b.topics.is_system(topic) || store::is_light_queue(topic))
      continue;
    b.offsets.remove_topic(topic);
    co_await b.store.delete_topic(topic);
    log(LogLevel::notice, ids::queue_dropped, "the queues of a topic that is no more were taken away",
        {{"TOPIC", topic}, {"CLIENT", r.connection().peer_text()}});
  }
  r.reply(ResponseCode::SUCCESS);
}

}  // namespace rmq::broker

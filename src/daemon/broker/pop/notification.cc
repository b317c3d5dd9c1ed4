// NOTIFICATION (is there something to pop?), POLLING_INFO (how many wait) and POP_ROLLBACK (remoting.md 13).
#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/handlers.h"
#include "daemon/broker/pop/pop_handle.h"
#include "daemon/broker/pop/pop_requests.h"
#include "daemon/broker/subscription_filter.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

// When a queue that is blocked now is free; `free_ms` is lowered to it.
bool queue_has_message(const Broker& b, const proto::NotificationRequestHeader& h, std::string_view topic,
                       int32_t queue_id, int64_t& free_ms) {
  if (h.order) {
    PopTable::QueuePointer q = b.pop.table.find(h.consumer_group, topic, queue_id);
    const bool mine =
        q && q->order && h.attempt_id && !h.attempt_id->empty() && *h.attempt_id == q->order->attempt_id;
    const int64_t until = q && q->order && !mine ? q->order->blocked_until_ms() : INT64_MIN;
    if (until > b.due_clock.wall_ms()) {
      free_ms = std::min(free_ms, until);
      return false;
    }
  }
  return b.store.max_offset(topic, queue_id) > b.pop.next_offset(h.consumer_group, topic, queue_id);
}

bool topic_has_message(const Broker& b, const proto::NotificationRequestHeader& h, std::string_view topic,
                       int64_t& free_ms) {
  const proto::TopicConfig* c = b.topics.find(topic);
  for (int32_t q = 0; c != nullptr && q < c->read_queue_nums; q++)
    if (queue_has_message(b, h, topic, q, free_ms)) return true;
  return false;
}

bool has_message(const Broker& b, const proto::NotificationRequestHeader& h, int64_t& free_ms) {
  if (h.queue_id >= 0 && queue_has_message(b, h, h.topic, h.queue_id, free_ms)) return true;
  if (h.queue_id < 0 && topic_has_message(b, h, h.topic, free_ms)) return true;
  if (h.order) return false;
  const auto retries = b.pop.retry_topics(h.consumer_group, h.topic);
  return std::ranges::any_of(retries,
                             [&](const std::string& t) { return topic_has_message(b, h, t, free_ms); });
}

bool check_notification(Broker& b, Request& r, const proto::NotificationRequestHeader& h) {
  auto refuse = [&](ResponseCode code, std::string_view remark) {
    r.answer<proto::Notification>(code, {}, remark);
    return false;
  };
  if (!proto::perm::is_readable(static_cast<int32_t>(b.config.brokerPermission)))
    return refuse(ResponseCode::NO_PERMISSION,
                  fmt::format("the broker[{}] peeking message is forbidden", b.config.brokerIP1));
  auto wrong = refusal_of_pop(b, r, h.topic, h.consumer_group, h.queue_id);
  return !wrong || refuse(wrong->code, wrong->remark);
}

}  // namespace

Task<void> notification(Broker& b, Request& r, proto::NotificationRequestHeader h) {
  if (!check_notification(b, r, h)) co_return;
  auto filter = filter_of_request(b, h.topic, h.exp.value_or(std::string_view{}),
                                  h.exp_type.value_or(std::string_view{}));
  if (!filter) co_return r.answer<proto::Notification>(filter.error().code, {}, filter.error().remark);
  const int64_t deadline_ns = poll_deadline_ns(b, h.born_time, h.poll_time, b.wall_ms());
  for (;;) {
    b.look_at_clock();
    int64_t free_ms = INT64_MAX;
    const bool found = has_message(b, h, free_ms);
    const bool late = h.poll_time <= 0 || b.stopping.is_set() || b.now_ns() >= deadline_ns;
    if (found || late) co_return r.answer<proto::Notification>({found, false});
    if (!polling_has_room(b, b.pop.notifications, h.topic, h.consumer_group, h.queue_id))
      co_return r.answer<proto::Notification>({false, true});
    r.give_slot_back();
    int64_t wake_ns = deadline_ns;
    if (free_ms != INT64_MAX)
      wake_ns = std::min(wake_ns, b.now_ns() + (free_ms - b.due_clock.wall_ms()) * ns_per_ms);
    PollEnd end = co_await b.pop.notifications.wait(r.connection(), h.topic, h.consumer_group, h.queue_id,
                                                    filter->wanted(), wake_ns);
    if (end == PollEnd::closed) co_return;
    if (!check_notification(b, r, h)) co_return;
  }
}

void polling_info(Broker& b, Request& r, proto::PollingInfoRequestHeader h) {
  if (!proto::perm::is_readable(static_cast<int32_t>(b.config.brokerPermission)))
    return r.answer<proto::PollingInfo>(
        ResponseCode::NO_PERMISSION, {},
        fmt::format("the broker[{}] peeking message is forbidden", b.config.brokerIP1));
  if (auto wrong = refusal_of_pop(b, r, h.topic, h.consumer_group, h.queue_id))
    return r.answer<proto::PollingInfo>(wrong->code, {}, wrong->remark);
  const uint32_t n = b.pop.polling.waiting_for(h.topic, h.consumer_group, h.queue_id);
  r.answer<proto::PollingInfo>({static_cast<int32_t>(n)});
}

// RocketMQ moves what its RocksDB knows of popped messages to where an older broker finds it. Here there is
// nothing to move: the consumer offsets, in RocketMQ's file, never pass a message that is not acknowledged.
void pop_rollback(Broker&, Request& r, proto::EmptyHeader) {
  r.reply(ResponseCode::SUCCESS);
}

}  // namespace rmq::broker

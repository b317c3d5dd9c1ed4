// ACK_MESSAGE, BATCH_ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME (remoting.md 13). Answered when it is on
// disk. An acknowledgement that comes too late, after its message went to the retry topic, is answered 0 as
// RocketMQ does, and has no effect.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "daemon/broker/handlers.h"
#include "daemon/broker/pop/pop_handle.h"
#include "daemon/broker/pop/pop_requests.h"
#include "proto/bodies_pop.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;
using QueuePointer = PopTable::QueuePointer;

namespace {

constexpr size_t in_order_places_max = 65'536;  // bits of a batch that are looked at
constexpr int64_t longest_invisible_ms = int64_t{3650} * 86'400'000;

// Topic and queue; the offset must be in [min, max] of the queue, or [min, max) with `below_max`.
std::optional<Refusal> refusal_of_offset(const Broker& b, Request& r, std::string_view topic,
                                         int32_t queue_id, int64_t offset, bool below_max) {
  const proto::TopicConfig* t = b.topics.find(topic);
  if (t == nullptr)
    return Refusal{ResponseCode::TOPIC_NOT_EXIST,
                   fmt::format("topic[{}] not exist, apply first please!", topic)};
  if (queue_id < 0 || queue_id >= t->read_queue_nums)
    return Refusal{
        ResponseCode::MESSAGE_ILLEGAL,
        fmt::format("queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] consumer:[{}]",
                    queue_id, topic, t->read_queue_nums, r.connection().peer_text())};
  const int64_t min = b.store.min_offset(topic, queue_id), max = b.store.max_offset(topic, queue_id);
  if (offset < min || offset > max || (below_max && offset == max))
    return Refusal{ResponseCode::NO_MESSAGE,
                   fmt::format("offset is illegal, key:{}@{}, commit:{}, store:{}~{}", topic, queue_id,
                               offset, min, max)};
  return std::nullopt;
}

// False: it is none of the messages that were popped last.
bool acknowledge_in_order(Broker& b, PopQueue& q, int64_t offset, int64_t pop_time_ms) {
  if (!q.order || offset < q.next || q.order->pop_time_ms != pop_time_ms) return true;
  OrderInfo& o = *q.order;
  auto m = std::ranges::find(o.messages, offset, &OrderInfo::Message::offset);
  if (m == o.messages.end()) return false;
  o.acknowledged |= uint64_t{1} << (m - o.messages.begin());
  q.next = o.next_offset();
  b.pop.table.order_changed(q);
  // Whoever waits for the queue: it may be free now, or earlier than he knows.
  const bool free = !q.order || q.order->blocked_until_ms() <= b.due_clock.wall_ms();
  if (free) b.pop.polling.wake_one(q.topic, q.group, q.queue_id);
  if (free) b.pop.notifications.wake_one(q.topic, q.group, q.queue_id);
  return true;
}

void acknowledge(Broker& b, PopQueue& q, PopCheckpoint::Key key, int64_t offset) {
  auto c = q.checkpoints.find(key);
  if (c != q.checkpoints.end()) b.pop.table.acknowledge(q, key, c->second.bit_of(offset - key.first));
}

}  // namespace

Task<void> ack_message(Broker& b, Request& r, proto::AckMessageRequestHeader h) {
  if (auto wrong = refusal_of_offset(b, r, h.topic, h.queue_id, h.offset, false))
    co_return r.reply(wrong->code, wrong->remark);
  auto handle = PopHandle::parse(h.extra_info);
  if (!handle) co_return r.reply(ResponseCode::MESSAGE_ILLEGAL, handle.error().where);
  const PopCheckpoint::Key key{handle->start_offset, handle->pop_time_ms};
  QueuePointer q =
      co_await b.pop.queue_of_handle(std::string(h.consumer_group), std::string(h.topic), h.queue_id, key);
  if (q) {
    if (handle->in_order()) {
      const int64_t next = q->next;
      if (!acknowledge_in_order(b, *q, h.offset, handle->pop_time_ms))
        co_return r.reply(
            ResponseCode::MESSAGE_ILLEGAL,
            fmt::format("offset is illegal, key:{}@{}@{}, old:{}, commit:{}, {}", h.topic, h.consumer_group,
                        h.queue_id, next, h.offset, r.connection().peer_text()));
    } else {
      acknowledge(b, *q, key, h.offset);
    }
  }
  // Also when it came before and was not kept yet.
  auto kept = co_await b.pop.table.kept(b.pop.table.last_change());
  if (!kept) co_return refuse_unkept_pops(r, kept.error());
  r.reply(ResponseCode::SUCCESS);
}

// ---- several at once -------------------------------------------------------------------------------------

namespace {

// False: some of them are none of the messages that were popped last, in order.
Task<bool> acknowledge_batch(Broker& b, const proto::BatchAck& a) {
  auto topic = topic_of_mark(a.retry, a.consumer_group, a.topic);
  if (!topic) co_return true;
  const PopCheckpoint::Key key{a.start_offset, a.pop_time_ms};
  QueuePointer q = co_await b.pop.queue_of_handle(a.consumer_group, *topic, a.queue_id, key);
  if (!q) co_return true;
  auto is_set = [&a](size_t i) { return i / 8 < a.bits.size() && (a.bits[i / 8] >> (i % 8) & 1) != 0; };
  if (a.revive_queue_id == pop_order_revive_queue) {
    bool good = true;
    for (size_t i = 0; i < std::min(a.bits.size() * 8, in_order_places_max); i++)
      if (is_set(i))
        good = acknowledge_in_order(b, *q, a.start_offset + static_cast<int64_t>(i), a.pop_time_ms) && good;
    co_return good;
  }
  const auto c = q->checkpoints.find(key);
  if (c == q->checkpoints.end()) co_return true;
  uint32_t bits = 0;
  for (size_t i = 0; i < c->second.count; i++)
    if (is_set(c->second.place(i))) bits |= 1u << i;
  b.pop.table.acknowledge(*q, key, bits);
  co_return true;
}

}  // namespace

Task<void> batch_ack_message(Broker& b, Request& r, proto::EmptyHeader) {
  auto body = proto::BatchAckMessageRequestBody::parse(r.frame().body_text());
  if (!body || body->acks.empty())
    co_return r.reply(ResponseCode::NO_MESSAGE,
                      body ? "there is nothing to acknowledge" : body.error().where);
  bool good = true;
  for (const proto::BatchAck& a : body->acks) {
    bool known = co_await acknowledge_batch(b, a);
    good = good && known;
  }
  auto kept = co_await b.pop.table.kept(b.pop.table.last_change());
  if (!kept) co_return refuse_unkept_pops(r, kept.error());
  if (!good)
    co_return r.reply(ResponseCode::MESSAGE_ILLEGAL, "an offset is none of those that were popped last");
  r.reply(ResponseCode::SUCCESS);
}

// ---- another invisible time
// --------------------------------------------------------------------------------

namespace {

// In order: the handle stays as it is, and the time is counted from the pop.
void change_in_order(Broker& b, PopQueue& q, const proto::ChangeInvisibleTimeRequestHeader& h,
                     const PopHandle& handle, int64_t invisible_ms,
                     proto::ChangeInvisibleTimeResponseHeader& answer) {
  if (h.offset < q.next) return;
  const int64_t visible_ms = b.due_clock.wall_ms_up() + invisible_ms;
  answer = {handle.pop_time_ms, visible_ms - handle.pop_time_ms, handle.revive_queue};
  if (!q.order || q.order->pop_time_ms != handle.pop_time_ms) return;
  auto m = std::ranges::find(q.order->messages, h.offset, &OrderInfo::Message::offset);
  if (m == q.order->messages.end()) return;
  m->visible_ms = visible_ms;
  b.pop.table.order_changed(q);
  // Who waits for the queue finds out when it is free now.
  b.pop.polling.wake_group(q.topic, q.group);
  b.pop.notifications.wake_group(q.topic, q.group);
}

// False: the message is not outstanding by that handle (any more).
bool change_one(Broker& b, PopQueue& q, const proto::ChangeInvisibleTimeRequestHeader& h,
                const PopHandle& handle, int64_t invisible_ms,
                proto::ChangeInvisibleTimeResponseHeader& answer) {
  const PopCheckpoint::Key key{handle.start_offset, handle.pop_time_ms};
  auto c = q.checkpoints.find(key);
  if (c == q.checkpoints.end() || c->second.reviving) return false;
  if ((c->second.pending & c->second.bit_of(h.offset - key.first)) == 0) return false;
  // The new checkpoint must have another name, also within a millisecond.
  const int64_t pop_time_ms = std::max(b.wall_ms(), handle.pop_time_ms + 1);
  // Its client counts from there.
  const int64_t visible_ms = std::max(b.due_clock.wall_ms_up(), pop_time_ms) + invisible_ms;
  b.pop.table.change_invisible(q, key, h.offset, pop_time_ms, visible_ms);
  b.pop.look_again();
  answer = {pop_time_ms, h.invisible_time, handle.revive_queue};
  return true;
}

}  // namespace

Task<void> change_message_invisibletime(Broker& b, Request& r, proto::ChangeInvisibleTimeRequestHeader h) {
  if (auto wrong = refusal_of_offset(b, r, h.topic, h.queue_id, h.offset, true))
    co_return r.reply(wrong->code, wrong->remark);
  auto handle = PopHandle::parse(h.extra_info);
  if (!handle) co_return r.reply(ResponseCode::MESSAGE_ILLEGAL, handle.error().where);
  b.look_at_clock();
  const int64_t invisible_ms = std::clamp<int64_t>(h.invisible_time, 0, longest_invisible_ms);
  proto::ChangeInvisibleTimeResponseHeader answer;
  const PopCheckpoint::Key key{handle->start_offset, handle->pop_time_ms};
  QueuePointer q =
      co_await b.pop.queue_of_handle(std::string(h.consumer_group), std::string(h.topic), h.queue_id, key);
  bool found = q != nullptr;
  if (q && handle->in_order())
    change_in_order(b, *q, h, *handle, invisible_ms, answer);
  else if (q)
    found = change_one(b, *q, h, *handle, invisible_ms, answer);
  if (!found)
    co_return r.answer<proto::ChangeMessageInvisibletime>(
        ResponseCode::NO_MESSAGE, answer, "the message is not outstanding by this handle any more");
  auto kept = co_await b.pop.table.kept(b.pop.table.last_change());
  if (!kept) co_return refuse_unkept_pops(r, kept.error());
  r.answer<proto::ChangeMessageInvisibletime>(answer);
}

}  // namespace rmq::broker

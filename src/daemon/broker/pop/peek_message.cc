// PEEK_MESSAGE (remoting.md 13): the messages that the next pops of a group would get, of any queue or one,
// without taking them. Nothing changes by it, and it does not wait.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/handlers.h"
#include "daemon/broker/pop/pop_requests.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;
using store::GetMessageStatus;

namespace {

struct Peeked {
  int32_t most = 0;
  uint64_t most_bytes = 0;
  int32_t count = 0;
  uint64_t bytes = 0;
  int64_t rest = 0;  // of all queues, from where their next pops read
  std::vector<store::LogExtent> extents;
};

Task<void> peek_queue(Broker& b, Peeked& p, std::string_view group, std::string_view topic,
                      int32_t queue_id) {
  int64_t from = b.pop.next_offset(group, topic, queue_id);
  p.rest += std::max<int64_t>(0, b.store.max_offset(topic, queue_id) - from);
  for (int attempt = 0; attempt < 2 && p.count < p.most && p.bytes < p.most_bytes; attempt++) {
    store::GetMessageResult g = co_await b.store.get(topic, queue_id, from, p.most - p.count, nullptr);
    p.count += static_cast<int32_t>(g.message_count);
    p.bytes += g.byte_count;
    std::move(g.extents.begin(), g.extents.end(), std::back_inserter(p.extents));
    const bool elsewhere =
        g.status == GetMessageStatus::OFFSET_TOO_SMALL || g.status == GetMessageStatus::OFFSET_OVERFLOW_BADLY;
    if (!elsewhere) co_return;
    from = g.next_begin_offset;
  }
}

Task<void> peek_topic(Broker& b, Peeked& p, std::string_view group, std::string_view topic, uint64_t first) {
  const proto::TopicConfig* c = b.topics.find(topic);
  const auto queues = c == nullptr ? 0 : static_cast<uint64_t>(c->read_queue_nums);
  for (uint64_t i = 0; i < queues; i++)
    co_await peek_queue(b, p, group, topic, static_cast<int32_t>((first + i) % queues));
}

}  // namespace

Task<void> peek_message(Broker& b, Request& r, proto::PeekMessageRequestHeader h) {
  if (!proto::perm::is_readable(static_cast<int32_t>(b.config.brokerPermission)))
    co_return r.answer<proto::PeekMessage>(
        ResponseCode::NO_PERMISSION, {},
        fmt::format("the broker[{}] peeking message is forbidden", b.config.brokerIP1));
  if (auto refusal = refusal_of_pop(b, r, h.topic, h.consumer_group, h.queue_id))
    co_return r.answer<proto::PeekMessage>(refusal->code, {}, refusal->remark);
  Peeked p;
  p.most = h.max_msg_nums;
  p.most_bytes = static_cast<uint64_t>(b.config.maxTransferBytesOnMessageInMemory);
  const auto room = static_cast<size_t>(p.most_bytes) * 2;  // the last queue may bring as much again
  if (!r.try_take_room(room)) co_await r.take_room(room);
  if (!r.connection().is_open()) co_return;
  const uint64_t random = Loop::current().random().below(100);
  const bool retries_first = random % 5 == 0;
  const std::vector<std::string> retries = b.pop.retry_topics(h.consumer_group, h.topic);
  for (const std::string& t : retries)
    if (retries_first) co_await peek_topic(b, p, h.consumer_group, t, random);
  if (h.queue_id < 0)
    co_await peek_topic(b, p, h.consumer_group, h.topic, random);
  else
    co_await peek_queue(b, p, h.consumer_group, h.topic, h.queue_id);
  for (const std::string& t : retries)
    if (!retries_first) co_await peek_topic(b, p, h.consumer_group, t, random);
  proto::PopMessageResponseHeader header;
  header.rest_num = p.rest;
  const bool found = p.count > 0;
  const GetMessageStatus status = found ? GetMessageStatus::FOUND : GetMessageStatus::NO_MESSAGE_IN_QUEUE;
  const size_t bytes = p.bytes;
  r.answer<proto::PeekMessage>(found ? ResponseCode::SUCCESS : ResponseCode::PULL_NOT_FOUND, header,
                               store::name_of(status), std::move(p.extents), bytes);
}

}  // namespace rmq::broker

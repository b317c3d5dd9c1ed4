// Single queues for people who look into them: units of a ConsumeQueue, and from when to when their messages
// are.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/handlers.h"
#include "daemon/broker/subscription_filter.h"
#include "proto/bodies_admin.h"
#include "proto/codes.h"
#include "store/format.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

constexpr int32_t units_max = 1024;  // of one answer; who wants more asks from where it ended

void add_subscription(Broker& b, std::string_view group, std::string_view topic,
                      proto::QueryConsumeQueueResponseBody& body) {
  const ConsumerGroupInfo* online = b.clients.consumers(group);
  const proto::SubscriptionData* s = online == nullptr ? nullptr : online->subscription(topic);
  if (s == nullptr) {
    body.filter_data = fmt::format("{}@{} is not online!", group, topic);
    return;
  }
  body.subscription_data = *s;
  const ConsumerFilterManager::Filter* f = b.filters.find(topic, group);
  body.filter_data = f == nullptr ? "null" : f->data.expression_type + ": " + f->data.expression;
}

bool takes(const proto::QueryConsumeQueueResponseBody& body, const store::QueueUnit& u) {
  if (!body.subscription_data || !body.subscription_data->is_tag_type()) return false;
  const auto& codes = body.subscription_data->code_set;
  return codes.empty() || std::find(codes.begin(), codes.end(), u.tags_code) != codes.end();
}

Task<Result<void>> add_units(Broker& b, std::string topic, proto::QueryConsumeQueueRequestHeader h,
                             proto::QueryConsumeQueueResponseBody& body) {
  std::vector<store::QueueUnit> units(static_cast<size_t>(std::clamp(h.count, 0, units_max)));
  size_t done = 0;
  while (done < units.size()) {
    auto n = co_await b.store.queue_units(topic, h.queue_id, h.index + static_cast<int64_t>(done),
                                          std::span(units).subspan(done));
    if (!n) co_return std::unexpected(n.error());
    if (*n == 0) break;
    done += *n;
  }
  for (const store::QueueUnit& u : std::span(units).first(done)) {
    proto::ConsumeQueueData& d = body.queue_data.emplace_back();
    d.physic_offset = u.physical_offset;
    d.physic_size = u.bytes;
    d.tags_code = u.tags_code;
    d.eval = takes(body, u);
    if (store::is_blank(u)) d.msg = "the message is lost: its part of the CommitLog was damaged";
  }
  co_return Result<void>{};
}

}  // namespace

Task<void> query_consume_queue(Broker& b, Request& r, proto::QueryConsumeQueueRequestHeader h) {
  const std::string topic(h.topic.value_or(std::string_view{}));
  proto::QueryConsumeQueueResponseBody body;
  body.min_queue_index = b.store.min_offset(topic, h.queue_id);
  if (body.min_queue_index < 0)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, fmt::format("{}@{} is not exist!", h.queue_id, topic));
  body.max_queue_index = b.store.max_offset(topic, h.queue_id);
  if (h.consumer_group && !h.consumer_group->empty()) add_subscription(b, *h.consumer_group, topic, body);
  if (h.index < body.min_queue_index || h.index >= body.max_queue_index)
    co_return r.reply(ResponseCode::SUCCESS,
                      fmt::format("Index {} of {}@{} is not exist!", h.index, h.queue_id, topic),
                      body.to_json());
  auto added = co_await add_units(b, topic, h, body);
  if (!added) co_return r.reply(ResponseCode::SYSTEM_ERROR, to_string(added.error()));
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

Task<void> query_consume_time_span(Broker& b, Request& r, proto::QueryConsumeTimeSpanRequestHeader h) {
  const proto::TopicConfig* c = b.topics.find(h.topic);
  if (c == nullptr) co_return refuse_unknown_topic(r, h.topic);
  proto::QueryConsumeTimeSpanBody body;
  const int32_t queues = c->write_queue_nums;
  for (int32_t q = 0; q < queues; q++) {
    proto::QueueTimeSpan s;
    s.message_queue = {std::string(h.topic), b.config.brokerName, q};
    const int64_t end = b.store.max_offset(h.topic, q);
    const int64_t first = std::max<int64_t>(0, b.store.min_offset(h.topic, q));
    const int64_t next = std::max(first, b.offsets.query(h.group, h.topic, q).value_or(0));
    s.min_ms = co_await b.store.earliest_store_time(h.topic, q);
    s.max_ms = co_await b.store.store_time(h.topic, q, end - 1);
    s.consume_ms = s.min_ms;
    if (next > first) s.consume_ms = co_await b.store.store_time(h.topic, q, next - 1);
    if (next < end) {
      const int64_t stored_ms = co_await b.store.store_time(h.topic, q, next);
      if (stored_ms >= 0) s.delay_ms = std::max<int64_t>(0, b.wall_ms() - stored_ms);
    }
    body.consume_time_span_set.push_back(std::move(s));
  }
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

}  // namespace rmq::broker

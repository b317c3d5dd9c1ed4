#include "daemon/broker/topic_routes.h"

#include <algorithm>

#include "daemon/broker/broker.h"
#include "proto/codes.h"
#include "store/light_queues.h"

namespace rmq::broker {

using proto::MessageQueue;
using Queues = std::vector<MessageQueue>;

std::optional<Queues> TopicRoutes::own_queues(std::string_view topic) const {
  const proto::TopicConfig* c = broker_.topics.find(topic);
  if (c == nullptr || !proto::perm::is_readable(c->perm)) return std::nullopt;
  Queues out;
  for (int32_t q = 0; q < c->read_queue_nums; q++)
    out.push_back({std::string(topic), broker_.config.brokerName, q});
  return out;
}

static Queues queues_of(const proto::TopicRouteData& route, const std::string& topic) {
  Queues out;
  for (const proto::QueueData& d : route.queue_datas) {
    if (!proto::perm::is_readable(d.perm)) continue;
    for (int32_t q = 0; q < d.read_queue_nums; q++) out.push_back({topic, d.broker_name, q});
  }
  std::ranges::sort(out);
  return out;
}

void TopicRoutes::forget_old(int64_t now_ns) {
  if (known_.size() < topics_max) return;
  std::erase_if(known_,
                [&](const auto& e) { return !e.second->asking && now_ns - e.second->asked_ns > kept_ns; });
}

Task<std::optional<Queues>> TopicRoutes::readable_queues(std::string topic) {
  // No name server knows a light queue.
  if (!broker_.registration.has_servers() || store::is_light_queue(topic)) co_return own_queues(topic);
  forget_old(broker_.now_ns());
  std::shared_ptr<Known>& slot = known_[topic];
  if (!slot) slot = std::make_shared<Known>();
  std::shared_ptr<Known> known = slot;  // it may be forgotten while we wait
  const int64_t came_ns = broker_.now_ns();
  while (known->asking) co_await known->answered.wait();
  const bool fresh = known->queues && broker_.now_ns() - known->asked_ns < kept_ns;
  if (fresh || known->asked_ns > came_ns) co_return known->queues;
  known->asking = true;
  auto route = co_await broker_.registration.topic_route(topic);
  known->asking = false;
  known->asked_ns = broker_.now_ns();
  // A name server that is away for a while takes nobody's queues away.
  if (route)
    known->queues = *route ? std::optional(queues_of(**route, topic)) : own_queues(topic);
  else if (!known->queues)
    known->queues = own_queues(topic);
  std::optional<Queues> out = known->queues;
  known->answered.notify();
  co_return out;
}

}  // namespace rmq::broker

// Idea: see sender.h.

#include "ctl/sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace rmq::ctl {

static std::vector<WriteQueue> queues_of(const proto::TopicRouteData& route, bool inherited) {
  std::map<std::string_view, std::string_view> masters;
  for (const proto::BrokerData& b : route.broker_datas)
    if (auto m = b.broker_addrs.find(0); m != b.broker_addrs.end()) masters[b.broker_name] = m->second;
  std::vector<WriteQueue> out;
  for (const proto::QueueData& q : route.queue_datas) {
    auto master = masters.find(q.broker_name);
    if (master == masters.end() || !proto::perm::is_writeable(q.perm)) continue;
    int32_t count = inherited ? std::min(default_topic_queues, q.write_queue_nums) : q.write_queue_nums;
    for (int32_t id = 0; id < count; id++) out.push_back({q.broker_name, std::string(master->second), id});
  }
  std::sort(out.begin(), out.end(), [](const WriteQueue& a, const WriteQueue& b) {
    return std::tie(a.queue_id, a.broker) < std::tie(b.queue_id, b.broker);
  });
  return out;
}

// With "--broker host:port" the name server is not asked: the broker picks the queue.
static Outcome<WriteTarget> direct_target(const Options& o) {
  return WriteTarget{{{"", o.broker, static_cast<int32_t>(o.queue.value_or(-1))}}, false};
}

static bool is_missing(const Outcome<proto::TopicRouteData>& route) {
  return !route && route.error().response_code == static_cast<int32_t>(proto::ResponseCode::TOPIC_NOT_EXIST);
}

Outcome<WriteTarget> write_target(Context& c, const std::string& topic) {
  const Options& o = c.options();
  if (o.broker.find(':') != std::string::npos) return direct_target(o);
  WriteTarget out;
  auto route = c.route(topic);
  // The template of topics that a send makes is made by brokers alone, where they are allowed to make topics.
  if (is_missing(route) && topic != proto::names::TBW102) {
    auto missing = route.error();
    route = c.route(proto::names::TBW102);
    if (is_missing(route)) {
      missing.text += fmt::format("; make it with \"rmqctl topic create {}\"", topic);
      return std::unexpected(missing);
    }
    out.creates_topic = true;
  }
  if (!route) return std::unexpected(route.error());
  out.queues = queues_of(*route, out.creates_topic);
  std::erase_if(out.queues, [&](const WriteQueue& q) {
    return (!o.broker.empty() && q.broker != o.broker) || (o.queue && q.queue_id != *o.queue);
  });
  if (out.queues.empty()) {
    std::string where = o.broker.empty() ? "" : " at broker " + o.broker;
    std::string which = o.queue ? fmt::format("queue {}", *o.queue) : "queue";
    return fail(Exit::refused, fmt::format("topic {} has no writeable {}{}; see \"rmqctl topic route {}\"",
                                           topic, which, where, topic));
  }
  return out;
}

bool is_stored(proto::ResponseCode code) {
  using enum proto::ResponseCode;
  return code == SUCCESS || code == FLUSH_DISK_TIMEOUT || code == FLUSH_SLAVE_TIMEOUT ||
         code == SLAVE_NOT_AVAILABLE;
}

proto::SendMessageRequestHeader send_header(std::string_view topic, const WriteQueue& q,
                                            std::string_view properties, int64_t now_ms) {
  proto::SendMessageRequestHeader h;
  h.producer_group = producer_group_name;
  h.topic = topic;
  h.default_topic = proto::names::TBW102;
  h.default_topic_queue_nums = default_topic_queues;
  h.queue_id = q.queue_id;
  h.born_timestamp = now_ms;
  h.properties = properties;
  if (!q.broker.empty()) h.bname = q.broker;
  return h;
}

}  // namespace rmq::ctl

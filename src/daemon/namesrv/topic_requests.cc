// Requests about topics: routes and lists.
#include <strings.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/namesrv/name_server.h"

namespace rmq::namesrv {

using proto::JsonStyle;
using proto::ResponseCode;

namespace {

bool same_zone(const std::optional<std::string>& a, std::string_view b) {
  return a && a->size() == b.size() && strncasecmp(a->data(), b.data(), b.size()) == 0;
}

// Leaves the brokers of the client's zone, and sets without a master whatever their zone.
void keep_zone(proto::TopicRouteData& route, std::string_view zone) {
  std::erase_if(route.broker_datas, [&](const proto::BrokerData& b) {
    if (!b.broker_addrs.contains(0) || same_zone(b.zone_name, zone)) return false;
    for (const auto& [id, addr] : b.broker_addrs) route.filter_server_table.erase(addr);
    std::erase_if(route.queue_datas, [&](const auto& q) { return q.broker_name == b.broker_name; });
    return true;
  });
}

}  // namespace

std::string_view NameServer::order_conf(std::string_view topic) const {
  if (!config_.orderMessageEnable) return {};
  const std::string* v = kv_.find(proto::names::order_topic_namespace, topic);
  return v == nullptr ? std::string_view() : std::string_view(*v);
}

void NameServer::get_route(Request& r, proto::GetRouteinfoByTopic::Request h) {
  if (config_.needWaitForService &&
      Loop::current().now_ns() - start_ns_ < config_.waitSecondsForService * ns_per_s)
    return r.reply(ResponseCode::SYSTEM_ERROR, "name server not ready");
  const bool strict =
      r.command.version >= proto::mq_version::V4_9_4 || h.accept_standard_json_only.value_or(false);
  if (h.zone_mode.value_or(false) && h.zone_name && !h.zone_name->empty()) {
    if (auto route = routes_.route_data(h.topic, order_conf(h.topic))) {
      keep_zone(*route, *h.zone_name);
      return r.reply(ResponseCode::SUCCESS, {}, route->to_json(JsonStyle::fastjson));
    }
  } else if (const std::string* body = routes_.route(
                 h.topic, strict ? JsonStyle::strict : JsonStyle::fastjson, order_conf(h.topic))) {
    return r.reply(ResponseCode::SUCCESS, {}, *body);
  }
  r.reply(ResponseCode::TOPIC_NOT_EXIST,
          "No topic route info in name server for the topic: " + std::string(h.topic) +
              "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.");
}

void NameServer::register_topic(Request& r, proto::RegisterTopicInNamesrv::Request h) {
  auto route = proto::TopicRouteData::parse(as_text(r.body()));
  if (!route) return r.reply(ResponseCode::SYSTEM_ERROR, "the route data cannot be read");
  routes_.register_topic(h.topic, route->queue_datas);
  r.reply(ResponseCode::SUCCESS);
}

void NameServer::delete_topic(Request& r, proto::DeleteTopicInNamesrv::Request h) {
  routes_.delete_topic(h.topic, h.cluster_name, Loop::current().now_ns());
  log(LogLevel::notice, ids::topic_changed, "topic deleted from the routes",
      {{"TOPIC", h.topic}, {"CLIENT", r.connection().peer_text()}});
  r.reply(ResponseCode::SUCCESS);
}

void NameServer::answer_topics(Request& r, std::vector<std::string> topics, bool is_enabled) {
  if (!is_enabled) return r.reply(ResponseCode::SYSTEM_ERROR, "disable");
  proto::TopicList list;
  list.topic_list = std::move(topics);
  r.reply(ResponseCode::SUCCESS, {}, list.to_json());
}

void NameServer::get_all_topics(Request& r, proto::GetAllTopicListFromNameserver::Request) {
  answer_topics(r, routes_.all_topics(), config_.enableAllTopicList);
}

void NameServer::get_topics_by_cluster(Request& r, proto::GetTopicsByCluster::Request h) {
  answer_topics(r, routes_.topics_of_cluster(h.cluster), config_.enableTopicList);
}

void NameServer::get_system_topics(Request& r, proto::GetSystemTopicListFromNs::Request) {
  r.reply(ResponseCode::SUCCESS, {}, routes_.system_topics().to_json());
}

void NameServer::get_unit_topics(Request& r, proto::GetUnitTopicList::Request) {
  using namespace proto::topic_sys_flag;
  answer_topics(r, routes_.topics_by_flag(unit, unit), config_.enableTopicList);
}

void NameServer::get_unit_sub_topics(Request& r, proto::GetHasUnitSubTopicList::Request) {
  using namespace proto::topic_sys_flag;
  answer_topics(r, routes_.topics_by_flag(unit_sub, unit_sub), config_.enableTopicList);
}

void NameServer::get_unit_sub_ununit_topics(Request& r, proto::GetHasUnitSubUnunitTopicList::Request) {
  using namespace proto::topic_sys_flag;
  answer_topics(r, routes_.topics_by_flag(unit | unit_sub, unit_sub), config_.enableTopicList);
}

}  // namespace rmq::namesrv

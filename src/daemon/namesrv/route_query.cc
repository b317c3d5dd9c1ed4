// The reading half of RouteTable.
#include <algorithm>
#include <utility>

#include "daemon/namesrv/route_table.h"
#include "proto/codes.h"

namespace rmq::namesrv {

using proto::JsonStyle;

const std::string* RouteTable::route(std::string_view topic, JsonStyle style, std::string_view order_conf) {
  Topic* t = find_topic(topic);
  if (t == nullptr) return nullptr;
  std::string& answer = t->answers[style == JsonStyle::strict ? 1 : 0];
  if (answer.empty()) {
    answer = build_route(*t, order_conf).to_json(style);
    remember_answer(*t, answer.size());
  }
  return &answer;
}

std::optional<proto::TopicRouteData> RouteTable::route_data(std::string_view topic,
                                                            std::string_view order_conf) const {
  const Topic* t = find_topic(topic);
  if (t == nullptr) return std::nullopt;
  return build_route(*t, order_conf);
}

proto::TopicRouteData RouteTable::build_route(const Topic& t, std::string_view order_conf) const {
  proto::TopicRouteData out;
  if (!order_conf.empty()) out.order_topic_conf = std::string(order_conf);
  out.queue_datas.reserve(t.queues.size());
  out.broker_datas.reserve(t.queues.size());
  std::string mappings;
  for (const QueueEntry& e : t.queues) {
    const proto::BrokerData& broker = e.set->data;
    out.queue_datas.push_back(
        {broker.broker_name, e.read_queue_nums, e.write_queue_nums, e.perm, e.topic_sys_flag});
    out.broker_datas.push_back(broker);
    if (e.mapping) {
      proto::JsonWriter key;
      key.text(broker.broker_name);
      mappings += (mappings.empty() ? "{" : ",") + key.take() + ":" + *e.mapping;
    }
    if (filter_server_lists_ == 0) continue;
    for (const auto& [id, addr] : broker.broker_addrs) {
      const Live* live = find_live(broker.cluster, addr);
      if (live != nullptr && live->filter_servers) out.filter_server_table[addr] = *live->filter_servers;
    }
  }
  if (!mappings.empty()) out.topic_queue_mapping_by_broker = mappings + "}";
  if (options_.support_acting_master && !t.name.starts_with(proto::names::sync_broker_member_prefix))
    act_as_master(out);
  return out;
}

// Of a set without a master whose queues are read-only, the slave with the smallest id is shown as master:
// consumers that read from masters only find it then.
void RouteTable::act_as_master(proto::TopicRouteData& route) const {
  for (size_t i = 0; i < route.broker_datas.size(); i++) {
    auto& addrs = route.broker_datas[i].broker_addrs;
    if (addrs.empty() || addrs.contains(0) || !route.broker_datas[i].enable_acting_master) continue;
    if (proto::perm::is_writeable(route.queue_datas[i].perm)) continue;
    std::string addr = addrs.begin()->second;
    addrs.erase(addrs.begin());
    addrs.emplace(0, std::move(addr));
  }
}

const proto::DataVersion* RouteTable::data_version(std::string_view cluster, std::string_view addr) const {
  const Live* l = find_live(cluster, addr);
  return l == nullptr ? nullptr : &l->version;
}

std::string RouteTable::ha_address(std::string_view cluster, std::string_view addr) const {
  const Live* l = find_live(cluster, addr);
  return l == nullptr ? std::string() : l->ha_server_addr;
}

proto::ClusterInfo RouteTable::cluster_info() const {
  proto::ClusterInfo out;
  for (const auto& [name, set] : sets_) out.broker_addr_table.emplace(name, set->data);
  for (const auto& [cluster, names] : clusters_)
    out.cluster_addr_table.emplace(cluster, std::vector<std::string>(names.begin(), names.end()));
  return out;
}

proto::BrokerMemberGroup RouteTable::member_group(std::string_view cluster,
                                                  std::string_view broker_name) const {
  proto::BrokerMemberGroup out;
  out.cluster = cluster;
  out.broker_name = broker_name;
  if (const BrokerSet* set = find_set(broker_name)) out.broker_addrs = set->data.broker_addrs;
  return out;
}

std::vector<std::string> RouteTable::all_topics() const {
  std::vector<std::string> out;
  out.reserve(topics_.size());
  for (const auto& [name, t] : topics_) out.push_back(name);
  return out;
}

std::vector<std::string> RouteTable::topics_of_cluster(std::string_view cluster) const {
  std::vector<std::string> out;
  auto names = clusters_.find(cluster);
  if (names == clusters_.end()) return out;
  std::unordered_set<const Topic*> seen;
  for (const std::string& broker_name : names->second)
    for (const Topic* t : find_set(broker_name)->topics)
      if (seen.insert(t).second) out.push_back(t->name);
  return out;
}

// Each cluster and each broker has a topic of its name.
proto::TopicList RouteTable::system_topics() const {
  proto::TopicList out;
  std::set<std::string> names;
  for (const auto& [cluster, brokers] : clusters_) {
    names.insert(cluster);
    names.insert(brokers.begin(), brokers.end());
  }
  out.topic_list.assign(names.begin(), names.end());
  for (const auto& [name, set] : sets_) {
    if (set->data.broker_addrs.empty()) continue;
    out.broker_addr = set->data.broker_addrs.begin()->second;
    break;
  }
  return out;
}

std::vector<std::string> RouteTable::topics_by_flag(int32_t mask, int32_t value) const {
  std::vector<std::string> out;
  for (const auto& [name, t] : topics_)
    if ((t->queues.front().topic_sys_flag & mask) == value) out.push_back(name);
  return out;
}

}  // namespace rmq::namesrv

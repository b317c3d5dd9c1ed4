#include "daemon/broker/client_manager.h"

#include <algorithm>
#include <set>

#include "proto/headers_push.h"

namespace rmq::broker {

std::vector<std::string> ConsumerGroupInfo::client_ids() const {
  std::vector<std::string> out;
  for (const auto& [c, channel] : channels) out.push_back(channel.client_id);
  std::sort(out.begin(), out.end());
  return out;
}

const proto::SubscriptionData* ConsumerGroupInfo::subscription(std::string_view topic) const {
  auto it = subscriptions.find(topic);
  return it == subscriptions.end() ? nullptr : &it->second;
}

const ClientChannel* ConsumerGroupInfo::channel_of(std::string_view client_id) const {
  for (const auto& [c, channel] : channels)
    if (channel.client_id == client_id) return &channel;
  return nullptr;
}

namespace {

// The new set replaces the old one; of one topic the newer version wins. True: something changed.
bool update_subscriptions(ConsumerGroupInfo& g, const std::vector<proto::SubscriptionData>& now) {
  bool changed = false;
  std::set<std::string_view> named;
  for (const auto& s : now) {
    named.insert(s.topic);
    auto it = g.subscriptions.find(s.topic);
    if (it == g.subscriptions.end()) {
      g.subscriptions.emplace(s.topic, s);
      changed = true;
    } else if (s.sub_version > it->second.sub_version) {
      it->second = s;
    }
  }
  changed |= std::erase_if(g.subscriptions, [&](const auto& e) { return !named.contains(e.first); }) != 0;
  return changed;
}

}  // namespace

bool ClientManager::register_consumer(const proto::ConsumerData& data, const ClientChannel& channel,
                                      bool without_sub, int32_t fingerprint, bool notify) {
  auto it = consumers_.find(data.group_name);
  if (it == consumers_.end()) {
    it = consumers_.emplace(data.group_name, ConsumerGroupInfo{}).first;
    it->second.group = data.group_name;
  }
  ConsumerGroupInfo& g = it->second;
  g.consume_type = data.consume_type;
  g.message_model = data.message_model;
  g.consume_from_where = data.consume_from_where;
  auto [member, joined] = g.channels.insert_or_assign(channel.connection.get(), channel);
  bool changed = joined;
  if (!without_sub) {
    changed |= update_subscriptions(g, data.subscription_data_set);
    g.heartbeat_fingerprint = fingerprint;
  }
  if (changed && notify && g.message_model != proto::MessageModel::BROADCASTING) notify_members(g);
  return changed;
}

void ClientManager::register_producer(std::string_view group, const ClientChannel& channel) {
  auto it = producers_.find(group);
  if (it == producers_.end()) it = producers_.emplace(std::string(group), ProducerTable::mapped_type{}).first;
  it->second.insert_or_assign(channel.connection.get(), channel);
}

void ClientManager::unregister_consumer(std::string_view group, Connection* c, bool notify) {
  auto it = consumers_.find(group);
  if (it == consumers_.end() || it->second.channels.erase(c) == 0) return;
  if (it->second.channels.empty()) {
    consumers_.erase(it);
    if (on_last_left_) on_last_left_(group);
    return;
  }
  if (notify && it->second.message_model != proto::MessageModel::BROADCASTING) notify_members(it->second);
}

void ClientManager::unregister_producer(std::string_view group, Connection* c) {
  auto it = producers_.find(group);
  if (it == producers_.end()) return;
  it->second.erase(c);
  if (it->second.empty()) producers_.erase(it);
}

void ClientManager::remove_connection(Connection* c, bool (*notify_group)(const void*, std::string_view),
                                      const void* context) {
  std::vector<std::string> left;
  for (const auto& [name, g] : consumers_)
    if (g.channels.contains(c)) left.push_back(name);
  for (const std::string& g : left) unregister_consumer(g, c, notify_group(context, g));
  left.clear();
  for (const auto& [name, channels] : producers_)
    if (channels.contains(c)) left.push_back(name);
  for (const std::string& g : left) unregister_producer(g, c);
}

void ClientManager::close_silent(int64_t now_ns, int64_t timeout_ns) {
  std::vector<std::shared_ptr<Connection>> silent;
  auto look = [&](const std::map<Connection*, ClientChannel>& channels) {
    for (const auto& [c, channel] : channels)
      if (now_ns - channel.last_update_ns > timeout_ns) silent.push_back(channel.connection);
  };
  for (const auto& [name, g] : consumers_) look(g.channels);
  for (const auto& [name, channels] : producers_) look(channels);
  for (const auto& c : silent) c->close();
}

const ConsumerGroupInfo* ClientManager::consumers(std::string_view group) const {
  auto it = consumers_.find(group);
  return it == consumers_.end() ? nullptr : &it->second;
}

void ClientManager::notify_members(const ConsumerGroupInfo& g) const {
  for (const auto& [c, channel] : g.channels) {
    std::string frame;
    proto::NotifyConsumerIdsChanged::append_request(frame, c->next_opaque(), {.consumer_group = g.group}, {},
                                                    proto::flag_oneway);
    c->push(frame);
  }
}

}  // namespace rmq::broker

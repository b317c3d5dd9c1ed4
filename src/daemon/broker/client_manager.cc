#include "daemon/broker/client_manager.h"

#include <algorithm>
#include <set>

#include "proto/headers_push.h"

namespace rmq::broker {

namespace {
// To tell a member, and to answer the question that follows, takes about 10 us. So a group whose members come
// and go all the time takes a tenth of the processor, and 2,000 members learn it within a fifth of a second.
// Of a few, all know nearly at once: who starts beside them shares what is sent from then on.
constexpr int64_t tell_interval_min_ns = 5 * ns_per_ms, tell_interval_max_ns = ns_per_s / 2;
constexpr int64_t end_kept_ns = 3 * ns_per_s;
constexpr int64_t tell_interval_of_member_ns = 100 * ns_per_us;

int64_t tell_interval_ns(const ConsumerGroupInfo& g) {
  return std::clamp(static_cast<int64_t>(g.channels.size()) * tell_interval_of_member_ns,
                    tell_interval_min_ns, tell_interval_max_ns);
}
}  // namespace

const std::shared_ptr<const std::string>& ConsumerGroupInfo::list_body() const {
  if (list_body_ == nullptr)
    list_body_ = std::make_shared<const std::string>(proto::ConsumerListBody{client_ids()}.to_json());
  return list_body_;
}

const std::vector<std::string>& ConsumerGroupInfo::client_ids() const {
  if (!ids_.empty()) return ids_;
  for (const auto& [c, channel] : channels) ids_.push_back(channel.client_id);
  std::sort(ids_.begin(), ids_.end());
  return ids_;
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
  auto member = g.channels.find(channel.connection.get());
  const bool joined = member == g.channels.end();
  if (joined || member->second.client_id != channel.client_id) g.members_changed();
  g.channels.insert_or_assign(channel.connection.get(), channel);
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
  producer_clients_.insert_or_assign(channel.client_id, channel.connection);
}

void ClientManager::unregister_consumer(std::string_view group, Connection* c, bool notify) {
  auto it = consumers_.find(group);
  if (it == consumers_.end() || it->second.channels.erase(c) == 0) return;
  it->second.members_changed();
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
  auto member = it->second.find(c);
  if (member == it->second.end()) return;
  const std::string client_id = std::move(member->second.client_id);
  it->second.erase(member);
  if (it->second.empty()) producers_.erase(it);
  const bool has_more = std::any_of(producers_.begin(), producers_.end(),
                                    [c](const auto& other) { return other.second.contains(c); });
  auto known = producer_clients_.find(client_id);
  if (!has_more && known != producer_clients_.end() && known->second.get() == c)
    producer_clients_.erase(known);
}

void ClientManager::remove_connection(Connection* c, bool (*notify_group)(const void*, std::string_view),
                                      const void* context) {
  ends_.erase(c);
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

std::shared_ptr<Connection> ClientManager::producer_connection(std::string_view client_id) const {
  auto it = producer_clients_.find(client_id);
  return it == producer_clients_.end() ? nullptr : it->second;
}

void ClientManager::keep_end(std::string_view group, const Connection* c, std::string_view topic,
                             int32_t queue_id, int64_t end) {
  const ConsumerGroupInfo* g = consumers(group);
  if (g == nullptr || !g->channels.contains(const_cast<Connection*>(c))) return;
  ends_.insert_or_assign(c, KeptEnd{std::string(topic), queue_id, end, Loop::current().now_ns()});
}

std::optional<int64_t> ClientManager::take_end(const Connection* c, std::string_view topic,
                                               int32_t queue_id) {
  auto it = ends_.find(c);
  if (it == ends_.end() || it->second.topic != topic || it->second.queue_id != queue_id) return std::nullopt;
  const KeptEnd kept = std::move(it->second);
  ends_.erase(it);
  if (Loop::current().now_ns() - kept.since_ns > end_kept_ns) return std::nullopt;
  return kept.end;
}

void ClientManager::notify_members(ConsumerGroupInfo& g) {
  const int64_t now_ns = Loop::current().now_ns();
  if (now_ns - g.told_ns_ >= tell_interval_ns(g)) return tell(g, now_ns);
  if (to_tell_.insert(g.group).second) has_to_tell_.notify();
}

Task<void> ClientManager::tell_members(Event& stopping) {
  while (!stopping.is_set()) {
    const int64_t now_ns = Loop::current().now_ns();
    int64_t next_ns = now_ns + tell_interval_max_ns;
    for (auto it = to_tell_.begin(); it != to_tell_.end();) {
      auto g = consumers_.find(*it);
      const int64_t due_ns =
          g == consumers_.end() ? now_ns : g->second.told_ns_ + tell_interval_ns(g->second);
      if (due_ns <= now_ns) {
        it = to_tell_.erase(it);
        if (g != consumers_.end()) tell(g->second, now_ns);
      } else {
        next_ns = std::min(next_ns, due_ns);
        ++it;
      }
    }
    // Another group's turn may come before.
    if (to_tell_.empty())
      co_await has_to_tell_.wait_for(tell_interval_max_ns);
    else
      co_await has_to_tell_.wait_until(next_ns);
  }
}

void ClientManager::tell(ConsumerGroupInfo& g, int64_t now_ns) {
  g.told_ns_ = now_ns;
  told_ += g.channels.size();
  // The same bytes to all: nobody answers, so nobody looks at the opaque.
  std::string frame;
  const proto::NotifyConsumerIdsChanged::Request header{.consumer_group = g.group};
  proto::NotifyConsumerIdsChanged::append_request(frame, 0, header, {}, proto::flag_oneway);
  for (const auto& [c, channel] : g.channels) c->push(frame);
}

}  // namespace rmq::broker

#include "daemon/broker/group_manager.h"

#include "proto/codes.h"
#include "store/light_queues.h"

namespace rmq::broker {

namespace names = proto::names;

GroupManager::GroupManager(Disk& disk, std::string path, const BrokerConfig& config)
    : PersistedTable(disk, std::move(path)), config_(config) {}

const proto::SubscriptionGroupConfig* GroupManager::find(std::string_view group) const {
  auto it = groups_.find(group);
  if (it != groups_.end()) return &it->second;
  if (!config_.enableLmq || !store::is_light_queue(group)) return nullptr;
  light_.group_name = group;
  return &light_;
}

const proto::SubscriptionGroupConfig* GroupManager::find_or_create(std::string_view group, int64_t now_ms) {
  if (const auto* g = find(group)) return g;
  if (!config_.autoCreateSubscriptionGroup && !proto::is_system_group(group)) return nullptr;
  if (proto::invalid_group_remark(group)) return nullptr;
  proto::SubscriptionGroupConfig c;
  c.group_name = std::string(group);
  put(std::move(c), now_ms);
  unsaved_ = true;
  return find(group);
}

bool GroupManager::put(proto::SubscriptionGroupConfig c, int64_t now_ms) {
  auto it = groups_.find(c.group_name);
  if (it != groups_.end() && it->second == c) return false;
  std::string name = c.group_name;
  groups_.insert_or_assign(std::move(name), std::move(c));
  version_.next(now_ms);
  return true;
}

bool GroupManager::remove(std::string_view group, int64_t now_ms) {
  auto it = groups_.find(group);
  if (it == groups_.end()) return false;
  groups_.erase(it);
  forbidden_.erase(std::string(group));
  version_.next(now_ms);
  return true;
}

bool GroupManager::is_read_forbidden(std::string_view group, std::string_view topic) const {
  if (forbidden_.empty()) return false;
  auto g = forbidden_.find(std::string(group));
  if (g == forbidden_.end()) return false;
  auto t = g->second.find(std::string(topic));
  return t != g->second.end() && proto::perm::is_readable(t->second);
}

bool GroupManager::set_read_forbidden(std::string_view group, std::string_view topic, bool forbidden,
                                      int64_t now_ms) {
  if (is_read_forbidden(group, topic) == forbidden) return false;
  auto& topics = forbidden_[std::string(group)];
  int32_t& bits = topics[std::string(topic)];
  bits = forbidden ? bits | proto::perm::read : bits & ~proto::perm::read;
  if (bits == 0) topics.erase(std::string(topic));
  if (topics.empty()) forbidden_.erase(std::string(group));
  version_.next(now_ms);
  return true;
}

void GroupManager::add_system_groups(int64_t now_ms) {
  for (std::string_view g : {names::TOOLS_CONSUMER, names::FILTERSRV_CONSUMER, names::SELF_TEST_C_GROUP,
                             std::string_view("CID_ONS-HTTP-PROXY"), std::string_view("CID_ONSAPI_PULL"),
                             std::string_view("CID_ONSAPI_PERMISSION"), std::string_view("CID_ONSAPI_OWNER"),
                             names::CID_RMQ_SYS_TRANS}) {
    if (find(g) != nullptr) continue;
    proto::SubscriptionGroupConfig c;
    c.group_name = std::string(g);
    put(std::move(c), now_ms);
  }
}

proto::SubscriptionGroupWrapper GroupManager::snapshot() const {
  proto::SubscriptionGroupWrapper w;
  w.data_version = version_;
  for (const auto& [name, c] : groups_) w.subscription_group_table.emplace(name, c);
  w.forbidden_table = forbidden_;
  return w;
}

std::string GroupManager::render() const {
  return snapshot().to_json(proto::JsonStyle::pretty);
}

Result<void> GroupManager::parse(std::string_view text) {
  TRY_VAR(w, proto::SubscriptionGroupWrapper::parse(text));
  version_ = w.data_version;
  for (auto& [name, c] : w.subscription_group_table) groups_.insert_or_assign(name, std::move(c));
  forbidden_ = std::move(w.forbidden_table);
  return {};
}

}  // namespace rmq::broker

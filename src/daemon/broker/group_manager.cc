#include "daemon/broker/group_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "proto/codes.h"
#include "store/light_queues.h"

namespace rmq::broker {

namespace names = proto::names;

GroupManager::GroupManager(Disk& disk, std::string path, const BrokerConfig& config)
    : LoggedTable(disk, std::move(path), Durability::on_media), config_(config) {}

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
  version_.next(now_ms);
  note(front_of('G', version_) + c.to_json());
  std::string name = c.group_name;
  groups_.insert_or_assign(std::move(name), std::move(c));
  return true;
}

bool GroupManager::remove(std::string_view group, int64_t now_ms) {
  auto it = groups_.find(group);
  if (it == groups_.end()) return false;
  groups_.erase(it);
  forbidden_.erase(std::string(group));
  version_.next(now_ms);
  note(front_of('D', version_).append(group));
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
  const std::string g(group), t(topic);
  int32_t bits = 0;
  if (auto known = forbidden_.find(g); known != forbidden_.end())
    if (auto there = known->second.find(t); there != known->second.end()) bits = there->second;
  bits = forbidden ? bits | proto::perm::read : bits & ~proto::perm::read;
  forbid(g, t, bits);
  version_.next(now_ms);
  note(front_of('F', version_) + fmt::format("{} {}@{}", bits, t, g));
  return true;
}

void GroupManager::forbid(const std::string& group, const std::string& topic, int32_t bits) {
  auto& topics = forbidden_[group];
  topics[topic] = bits;
  if (bits == 0) topics.erase(topic);
  if (topics.empty()) forbidden_.erase(group);
}

namespace {
constexpr std::string_view predefined[] = {
    names::TOOLS_CONSUMER, names::FILTERSRV_CONSUMER, names::SELF_TEST_C_GROUP, "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",     "CID_ONSAPI_PERMISSION",   "CID_ONSAPI_OWNER",       names::CID_RMQ_SYS_TRANS};
}  // namespace

bool GroupManager::is_predefined(std::string_view group) {
  return proto::is_system_group(group) || std::ranges::find(predefined, group) != std::end(predefined);
}

void GroupManager::add_system_groups(int64_t now_ms) {
  for (std::string_view g : predefined) {
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

bool GroupManager::apply(std::string_view change) {
  const char what = take_front(change, version_);
  if (what == 'G') {
    auto c = proto::SubscriptionGroupConfig::parse(change);
    if (!c) return false;
    std::string name = c->group_name;
    groups_.insert_or_assign(std::move(name), std::move(*c));
    return true;
  }
  if (what == 'D') {
    if (auto it = groups_.find(change); it != groups_.end()) groups_.erase(it);
    forbidden_.erase(std::string(change));
    return true;
  }
  const size_t topic = change.find(' ') + 1, group = change.find('@', topic) + 1;
  int32_t bits = 0;
  const auto [end, wrong] = std::from_chars(change.data(), change.data() + change.size(), bits);
  const bool whole = topic != 0 && group != 0 && end == change.data() + topic - 1;
  if (what != 'F' || wrong != std::errc{} || !whole) return false;
  forbid(std::string(change.substr(group)), std::string(change.substr(topic, group - 1 - topic)), bits);
  return true;
}

}  // namespace rmq::broker

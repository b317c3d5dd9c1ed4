#include "daemon/broker/lock_manager.h"

namespace rmq::broker {

std::vector<proto::MessageQueue> LockManager::lock(std::string_view group, std::string_view client_id,
                                                   const std::vector<proto::MessageQueue>& wanted,
                                                   int64_t now_ns) {
  std::vector<proto::MessageQueue> got;
  if (wanted.empty()) return got;
  auto& locks = groups_[std::string(group)];
  for (const auto& q : wanted) {
    auto [it, fresh] = locks.try_emplace(q);
    Lock& l = it->second;
    bool free = fresh || l.client_id == client_id || now_ns - l.renewed_ns > lock_lives_ns;
    if (!free) continue;
    l.client_id = std::string(client_id);
    l.renewed_ns = now_ns;
    got.push_back(q);
  }
  return got;
}

void LockManager::unlock(std::string_view group, std::string_view client_id,
                         const std::vector<proto::MessageQueue>& queues) {
  auto g = groups_.find(group);
  if (g == groups_.end()) return;
  for (const auto& q : queues) {
    auto it = g->second.find(q);
    if (it != g->second.end() && it->second.client_id == client_id) g->second.erase(it);
  }
  if (g->second.empty()) groups_.erase(g);
}

bool LockManager::any_held(std::string_view group, int64_t now_ns) const {
  auto g = groups_.find(group);
  if (g == groups_.end()) return false;
  for (const auto& [q, l] : g->second)
    if (now_ns - l.renewed_ns <= lock_lives_ns) return true;
  return false;
}

void LockManager::sweep(int64_t now_ns) {
  for (auto g = groups_.begin(); g != groups_.end();) {
    std::erase_if(g->second, [&](const auto& e) { return now_ns - e.second.renewed_ns > lock_lives_ns; });
    g = g->second.empty() ? groups_.erase(g) : std::next(g);
  }
}

}  // namespace rmq::broker

#include "daemon/broker/lock_manager.h"

#include <algorithm>

#include "uring/loop.h"

namespace rmq::broker {

std::vector<proto::MessageQueue> LockManager::lock(std::string_view group, std::string_view client_id,
                                                   const std::vector<proto::MessageQueue>& wanted,
                                                   bool member, int64_t now_ns) {
  std::vector<proto::MessageQueue> got;
  if (wanted.empty()) return got;
  auto& locks = groups_[std::string(group)];
  for (const auto& q : wanted) {
    auto [it, fresh] = locks.try_emplace(q);
    Lock& l = it->second;
    const bool mine = l.client_id == client_id;
    bool free = fresh || mine || now_ns - l.renewed_ns > lock_lives_ns;
    if (!free) continue;
    const bool kept = member || (mine && l.kept);
    (fresh || !mine || kept != l.kept ? changed_ : renewed_) = true;
    l.kept = kept;
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
    if (it == g->second.end() || it->second.client_id != client_id) continue;
    g->second.erase(it);
    changed_ = true;
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
    if (std::erase_if(g->second, [&](const auto& e) { return now_ns - e.second.renewed_ns > lock_lives_ns; }))
      changed_ = true;
    g = g->second.empty() ? groups_.erase(g) : std::next(g);
  }
}

Task<void> LockManager::save_changes() {
  if (!changed_ && !saving_) co_return;
  changed_ = renewed_ = false;
  saving_++;
  [[maybe_unused]] auto saved = co_await save();
  saving_--;
}

Task<void> LockManager::save_renewals() {
  if (renewed_) changed_ = true;
  co_await save_changes();
}

// A client renews all its queues at once.
std::string LockManager::render() const {
  proto::QueueLocks out;
  for (const auto& [group, locks] : groups_) {
    std::map<std::pair<std::string_view, int64_t>, proto::LockBatchRequestBody> by_client;
    for (const auto& [queue, l] : locks) {
      if (!l.kept) continue;
      proto::LockBatchRequestBody& b = by_client[{l.client_id, l.renewed_ns}];
      b.consumer_group = group;
      b.client_id = l.client_id;
      b.mq_set.push_back(queue);
    }
    for (auto& [client, b] : by_client) out.locks.push_back({std::move(b), client.second / ns_per_ms});
  }
  return out.to_json();
}

Result<void> LockManager::parse(std::string_view text) {
  TRY_VAR(file, proto::QueueLocks::parse(text));
  // The clock goes on over a restart of the broker. Over one of the machine it begins anew: then a lock looks
  // younger than it is, at most as if it were renewed now.
  const int64_t now_ns = Loop::current().now_ns();
  for (const proto::QueueLocks::Held& h : file.locks) {
    const int64_t renewed_ns = std::clamp<int64_t>(h.renewed_ms, 0, now_ns / ns_per_ms) * ns_per_ms;
    if (now_ns - renewed_ns <= lock_lives_ns)
      lock(h.by.consumer_group, h.by.client_id, h.by.mq_set, true, renewed_ns);
  }
  changed_ = false;
  return {};
}

}  // namespace rmq::broker

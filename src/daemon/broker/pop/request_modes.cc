#include "daemon/broker/pop/request_modes.h"

#include <algorithm>

namespace rmq::broker {

using proto::MessageQueue;
using Queues = std::vector<MessageQueue>;

const proto::SetMessageRequestModeRequestBody* RequestModes::find(std::string_view topic,
                                                                  std::string_view group) const {
  auto t = modes_.table.find(topic);
  if (t == modes_.table.end()) return nullptr;
  auto g = t->second.find(group);
  return g == t->second.end() ? nullptr : &g->second;
}

void RequestModes::set(proto::SetMessageRequestModeRequestBody mode) {
  std::string topic = mode.topic, group = mode.consumer_group;
  modes_.table[std::move(topic)].insert_or_assign(std::move(group), std::move(mode));
}

std::string RequestModes::to_json(proto::JsonStyle style) const {
  return modes_.to_json(style);
}

Result<void> RequestModes::parse(std::string_view text) {
  TRY_VAR(read, proto::MessageRequestModes::parse(text));
  modes_ = std::move(read);
  return {};
}

// ---- shares ------------------------------------------------------------------------------------------

namespace {

std::optional<size_t> place_of(std::string_view client_id, const std::vector<std::string>& clients) {
  auto it = std::ranges::lower_bound(clients, client_id);
  if (it == clients.end() || *it != client_id) return std::nullopt;
  return static_cast<size_t>(it - clients.begin());
}

Queues average_share(size_t place, const Queues& all, size_t clients) {
  const size_t more = all.size() % clients, each = all.size() / clients;
  const bool one_more = place < more;
  const size_t begin = one_more ? place * (each + 1) : place * each + more;
  const size_t end = std::min(begin + each + (one_more ? 1 : 0), all.size());
  if (begin >= end) return {};
  return {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)};
}

Queues circle_share(size_t place, const Queues& all, size_t clients) {
  Queues out;
  for (size_t i = place; i < all.size(); i += clients) out.push_back(all[i]);
  return out;
}

}  // namespace

std::optional<Queues> allocate_queues(std::string_view strategy, std::string_view client_id,
                                      const Queues& all, const std::vector<std::string>& clients) {
  if (strategy != "AVG" && strategy != "AVG_BY_CIRCLE") return std::nullopt;
  auto place = place_of(client_id, clients);
  if (!place || all.empty()) return Queues{};
  if (strategy == "AVG") return average_share(*place, all, clients.size());
  return circle_share(*place, all, clients.size());
}

std::optional<Queues> allocate_for_pop(std::string_view strategy, std::string_view client_id,
                                       const Queues& all, const std::vector<std::string>& clients,
                                       int32_t share_queues) {
  if (share_queues <= 0 || static_cast<int64_t>(share_queues) >= static_cast<int64_t>(clients.size()) - 1) {
    Queues out;
    for (const MessageQueue& q : all)
      if (out.empty() || out.back().broker_name != q.broker_name) out.push_back({q.topic, q.broker_name, -1});
    return out;
  }
  auto place = place_of(client_id, clients);
  if (clients.size() > all.size()) {
    if (!place || all.empty()) return Queues{};
    return Queues{all[*place % all.size()]};
  }
  auto out = allocate_queues(strategy, client_id, all, clients);
  if (!out || !place) return out;
  for (int32_t i = 1; i <= share_queues; i++) {
    const std::string& next = clients[(*place + static_cast<size_t>(i)) % clients.size()];
    auto more = allocate_queues(strategy, next, all, clients);
    out->insert(out->end(), more->begin(), more->end());
  }
  return out;
}

}  // namespace rmq::broker

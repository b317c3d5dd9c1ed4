#include "daemon/broker/consumer_lag.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/pop/pop_handle.h"
#include "store/light_queues.h"

namespace rmq::broker {

namespace {
constexpr size_t reads_max = 2000;
constexpr size_t pairs_at_once = 16;  // then others have their turn
}  // namespace

// The topic, and of a group that pops its retry topic.
void ConsumerLagCalculator::add_pairs(std::vector<Pair>& out, const std::string& group,
                                      const std::string& topic, bool pops, bool offline) const {
  const proto::TopicConfig* c = broker_.topics.find(topic);
  if (c == nullptr || proto::is_retry_topic(topic)) return;
  const int32_t perm = c->perm & static_cast<int32_t>(broker_.config.brokerPermission);
  if (!proto::perm::is_readable(perm) && !proto::perm::is_writeable(perm)) return;
  out.push_back({group, topic, topic, pops, false, offline});
  if (!pops) return;
  std::string retry;
  for (std::string& t : broker_.pop.retry_topics(group, topic))
    if (retry.empty() && broker_.topics.find(t) != nullptr) retry = std::move(t);
  out.push_back({group, topic, retry, pops, true, offline});
}

std::vector<ConsumerLagCalculator::Pair> ConsumerLagCalculator::pairs() const {
  std::vector<Pair> out;
  for (const auto& [group, info] : broker_.clients.all_consumers()) {
    if (broker_.groups.find(group) == nullptr) continue;
    const bool pops = info.consume_type == proto::ConsumeType::CONSUME_POP;
    for (const auto& [topic, subscription] : info.subscriptions) add_pairs(out, group, topic, pops, false);
  }
  for (const auto& [group, known] : offline_) {
    if (!is_offline(group)) continue;
    for (const Behind& b : known.shown)
      if (broker_.topics.find(b.pair.topic) != nullptr) out.push_back(b.pair);
  }
  std::sort(out.begin(), out.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.group, a.topic, a.retry) < std::tie(b.group, b.topic, b.retry);
  });
  return out;
}

// ---- groups without members ----------------------------------------------------------------------------

// What the broker keeps for itself, or for tools, is no group that anybody waits for.
bool ConsumerLagCalculator::is_offline(std::string_view group) const {
  return !GroupManager::is_predefined(group) && broker_.groups.find(group) != nullptr &&
         broker_.clients.consumers(group) == nullptr;
}

bool ConsumerLagCalculator::pops_offline(const std::string& group, const std::string& topic) const {
  const OffsetManager::Queues* queues = broker_.offsets.queues(group, topic);
  if (queues == nullptr) return false;
  for (const auto& [queue_id, offset] : *queues)
    if (broker_.pop.table.find(group, topic, queue_id) != nullptr) return true;
  return false;
}

Task<ConsumerLagCalculator::Offline> ConsumerLagCalculator::look_at(std::string group) {
  Offline out;
  size_t looked = 0;
  const std::vector<std::string> topics = broker_.offsets.topics_of(group);
  for (const std::string& topic : topics) {
    if (broker_.topics.is_system(topic) || store::is_light_queue(topic)) continue;
    std::vector<Pair> found;
    add_pairs(found, group, topic, pops_offline(group, topic), true);
    for (Pair& p : found) {
      int64_t messages = 0;
      for (int32_t q = 0, queues = queues_of(p); q < queues; q++) messages += place_of(p, q).lag;
      if (messages <= 0) continue;
      out.behind++;
      out.shown.emplace_back(std::move(p), messages);
    }
    if (++looked % pairs_at_once == 0) co_await Yield();
  }
  co_return out;
}

// Group after group, from where the last call ended.
Task<void> ConsumerLagCalculator::look_at_offline() {
  std::vector<std::string> names;
  for (const auto& [group, config] : broker_.groups.all())
    if (is_offline(group)) names.push_back(group);
  std::sort(names.begin(), names.end());
  std::erase_if(offline_, [&names](const auto& known) {
    return !std::binary_search(names.begin(), names.end(), known.first);
  });
  const auto first = std::upper_bound(names.begin(), names.end(), looked_to_);
  std::rotate(names.begin(), first, names.end());
  size_t pairs = 0, shown = 0;
  for (const auto& [group, known] : offline_) shown += known.shown.size();
  for (size_t i = 0; i < names.size() && pairs < limits::offline_pairs_at_once; i++) {
    looked_to_ = names[i];
    Offline seen = co_await look_at(names[i]);
    pairs += broker_.offsets.topics_of(names[i]).size() + 1;
    if (i % pairs_at_once == pairs_at_once - 1) co_await Yield();
    auto known = offline_.find(names[i]);
    if (seen.behind == 0) {
      if (known != offline_.end()) offline_.erase(known);
      continue;
    }
    shown += seen.shown.size();
    offline_.insert_or_assign(names[i], std::move(seen));
    if (shown < 2 * limits::offline_lags_max) continue;
    show_the_largest();
    shown = limits::offline_lags_max;
  }
  show_the_largest();
}

void ConsumerLagCalculator::show_the_largest() {
  std::vector<int64_t> sizes;
  for (const auto& [group, known] : offline_)
    for (const Behind& b : known.shown) sizes.push_back(b.messages);
  if (sizes.size() <= limits::offline_lags_max) return;
  const auto last = sizes.begin() + (limits::offline_lags_max - 1);
  std::nth_element(sizes.begin(), last, sizes.end(), std::greater<>());
  const int64_t least = *last;
  auto room = std::count(sizes.begin(), last + 1, least);  // for those of just that size
  for (auto& [group, known] : offline_)
    std::erase_if(known.shown, [&](const Behind& b) {
      return b.messages < least || (b.messages == least && room-- <= 0);
    });
}

size_t ConsumerLagCalculator::offline_left_out() const {
  size_t n = 0;
  for (const auto& [group, known] : offline_) n += known.behind - known.shown.size();
  return n;
}

// ---- how far -------------------------------------------------------------------------------------------

Task<int64_t> ConsumerLagCalculator::store_time(const std::string& topic, int32_t queue_id, int64_t offset) {
  if (offset >= broker_.store.max_offset(topic, queue_id)) co_return INT64_MAX;
  const std::string key = topic + ' ' + std::to_string(queue_id) + ' ' + std::to_string(offset);
  if (auto it = used_.find(key); it != used_.end()) co_return it->second;
  int64_t ms = -1;
  if (auto it = known_.find(key); it != known_.end()) {
    ms = it->second;
  } else {
    if (reads_++ >= reads_max) co_return -1;
    ms = co_await broker_.store.store_time(topic, queue_id, offset);
  }
  if (ms > 0) used_.emplace(key, ms);
  co_return ms > 0 ? ms : -1;
}

int32_t ConsumerLagCalculator::queues_of(const Pair& p) const {
  const proto::TopicConfig* c = broker_.topics.find(p.from);
  return c == nullptr ? 0 : std::max(c->read_queue_nums, c->write_queue_nums);
}

ConsumerLagCalculator::Place ConsumerLagCalculator::place_of(const Pair& p, int32_t queue_id) const {
  Place at;
  at.max = broker_.store.max_offset(p.from, queue_id);
  at.min = std::clamp<int64_t>(broker_.store.min_offset(p.from, queue_id), 0, at.max);
  const auto kept = broker_.offsets.query(p.group, p.from, queue_id);
  if (p.pops) {
    const auto queue = broker_.pop.table.find(p.group, p.from, queue_id);
    at.inflight = queue ? static_cast<int64_t>(queue->outstanding()) : 0;
    at.given = queue ? queue->next : kept.value_or(at.max);
    at.committed = queue ? queue->first_unacknowledged() : at.given;
    at.given = std::clamp(at.given, at.min, at.max);
    at.lag = at.max - at.given + at.inflight;
    return at;
  }
  at.committed = std::clamp(kept.value_or(at.max), at.min, at.max);
  at.lag = at.max - at.committed;
  // What was given to members that are gone is given to others again.
  const int64_t pulled = p.offline ? at.committed : broker_.offsets.pulled(p.group, p.from, queue_id);
  at.given = std::clamp(pulled < 0 ? at.max : pulled, at.min, at.max);
  if (pulled >= 0)
    at.inflight = std::max<int64_t>(at.given - std::clamp(kept.value_or(pulled), at.min, at.max), 0);
  return at;
}

Task<ConsumerLag> ConsumerLagCalculator::lag_of(Pair p) {
  ConsumerLag out;
  out.group = p.group;
  out.topic = p.topic;
  out.retry = p.retry;
  int64_t oldest = INT64_MAX, oldest_ready = INT64_MAX;
  for (int32_t q = 0, queues = queues_of(p); q < queues; q++) {
    const Place at = place_of(p, q);
    out.lag += at.lag;
    out.inflight += at.inflight;
    out.ready += at.max - at.given;
    const int64_t unacknowledged_ms = co_await store_time(p.from, q, std::max(at.committed, at.min));
    const int64_t ready_ms = co_await store_time(p.from, q, at.given);
    oldest = std::min(oldest, unacknowledged_ms);
    oldest_ready = std::min(oldest_ready, ready_ms);
  }
  const int64_t now_ms = broker_.wall_ms();
  const auto age_ms = [now_ms](int64_t at) {
    return at == INT64_MAX ? 0 : at < 0 ? -1 : std::max<int64_t>(now_ms - at, 0);
  };
  out.latency_ms = age_ms(oldest);
  out.queueing_ms = age_ms(oldest_ready);
  co_return out;
}

Task<std::vector<ConsumerLag>> ConsumerLagCalculator::all() {
  std::vector<ConsumerLag> out;
  reads_ = 0;
  size_t done = 0;
  co_await look_at_offline();
  std::vector<Pair> wanted = pairs();
  for (Pair& p : wanted) {
    ConsumerLag lag = co_await lag_of(std::move(p));
    out.push_back(std::move(lag));
    if (++done % pairs_at_once == 0) co_await Yield();
  }
  known_ = std::exchange(used_, {});
  co_return out;
}

}  // namespace rmq::broker

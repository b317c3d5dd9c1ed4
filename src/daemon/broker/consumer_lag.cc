#include "daemon/broker/consumer_lag.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "daemon/broker/broker.h"
#include "daemon/broker/pop/pop_handle.h"

namespace rmq::broker {

namespace {
constexpr size_t reads_max = 2000;
constexpr size_t pairs_at_once = 16;  // then others have their turn
}  // namespace

std::vector<ConsumerLagCalculator::Pair> ConsumerLagCalculator::pairs() const {
  std::vector<Pair> out;
  for (const auto& [group, info] : broker_.clients.all_consumers()) {
    if (broker_.groups.find(group) == nullptr) continue;
    const bool pops = info.consume_type == proto::ConsumeType::CONSUME_POP;
    for (const auto& [topic, subscription] : info.subscriptions) {
      const proto::TopicConfig* c = broker_.topics.find(topic);
      if (c == nullptr || proto::is_retry_topic(topic)) continue;
      const int32_t perm = c->perm & static_cast<int32_t>(broker_.config.brokerPermission);
      if (!proto::perm::is_readable(perm) && !proto::perm::is_writeable(perm)) continue;
      out.push_back({group, topic, topic, pops, false});
      if (!pops) continue;
      std::string retry;
      for (std::string& t : broker_.pop.retry_topics(group, topic))
        if (retry.empty() && broker_.topics.find(t) != nullptr) retry = std::move(t);
      out.push_back({group, topic, retry, pops, true});
    }
  }
  std::sort(out.begin(), out.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.group, a.topic, a.retry) < std::tie(b.group, b.topic, b.retry);
  });
  return out;
}

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

Task<ConsumerLag> ConsumerLagCalculator::lag_of(Pair p) {
  ConsumerLag out;
  out.group = p.group;
  out.topic = p.topic;
  out.retry = p.retry;
  const proto::TopicConfig* c = broker_.topics.find(p.from);
  const int32_t queues = c == nullptr ? 0 : std::max(c->read_queue_nums, c->write_queue_nums);
  int64_t oldest = INT64_MAX, oldest_ready = INT64_MAX;
  for (int32_t q = 0; q < queues; q++) {
    const int64_t max = broker_.store.max_offset(p.from, q);
    const int64_t min = std::clamp<int64_t>(broker_.store.min_offset(p.from, q), 0, max);
    int64_t committed = 0, given = 0;
    if (p.pops) {
      const auto queue = broker_.pop.table.find(p.group, p.from, q);
      const auto outstanding = queue ? static_cast<int64_t>(queue->outstanding()) : 0;
      given = queue ? queue->next : broker_.offsets.query(p.group, p.from, q).value_or(max);
      committed = queue ? queue->first_unacknowledged() : given;
      given = std::clamp(given, min, max);
      out.inflight += outstanding;
      out.lag += max - given + outstanding;
    } else {
      const int64_t pulled = broker_.offsets.pulled(p.group, p.from, q);
      const auto kept = broker_.offsets.query(p.group, p.from, q);
      committed = std::clamp(kept.value_or(max), min, max);
      given = std::clamp(pulled < 0 ? max : pulled, min, max);
      out.lag += max - committed;
      if (pulled >= 0)
        out.inflight += std::max<int64_t>(given - std::clamp(kept.value_or(pulled), min, max), 0);
    }
    out.ready += max - given;
    const int64_t unacknowledged_ms = co_await store_time(p.from, q, std::max(committed, min));
    const int64_t ready_ms = co_await store_time(p.from, q, given);
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

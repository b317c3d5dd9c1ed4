// The timer service: how many messages wait, by the topic that they are for (GET_TIMER_METRICS). Units do not
// say the topic, so nothing is counted before somebody asks. Then the records of what is pending are read
// once, and those that come after them; what is done is taken off again.
#include <algorithm>

#include "daemon/broker/broker.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker/timer.h"
#include "proto/bodies_config.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;
using store::TimerKind;

namespace {
constexpr std::string_view topic = store::timer_topic;
constexpr size_t units_at_once = 256;
constexpr int64_t look_ns = 1 * ns_per_s;
constexpr int64_t patience_ns = 3 * ns_per_s;  // tools give up after 5 s
}  // namespace

// False: try again.
Task<bool> TimerService::count_some() {
  std::vector<store::QueueUnit> units(units_at_once);
  auto n = co_await broker_.store.queue_units(topic, 0, counted_to_, units);
  if (!n || *n == 0) co_return false;
  std::vector<DueMessage> pending;
  for (size_t i = 0; i < *n; i++) {
    const int64_t offset = counted_to_ + static_cast<int64_t>(i);
    if (!done_.contains(offset)) pending.push_back({offset, units[i], {}, {}, {}});
  }
  auto read = co_await read_due(broker_.store, pending);
  if (!read) co_return false;
  for (const DueMessage& d : pending) {
    if (done_.contains(d.offset) || d.extent.bytes().empty()) continue;  // meanwhile
    auto tag = store::timer_tag_of(d.record);
    auto to = real_queue_of(d.record);
    if (tag && to && tag->kind != TimerKind::recall) count(to->topic, 1);
  }
  counted_to_ += static_cast<int64_t>(*n);
  co_return true;
}

Task<void> TimerService::count_pending() {
  while (!broker_.stopping.is_set()) {
    if (!counting_ || !scanned_) {
      co_await count_wake_.wait_for(look_ns);
      continue;
    }
    counted_to_ = std::max({counted_to_, done_.low(), broker_.store.min_offset(topic, 0)});
    bool some = false;
    if (counted_to_ < broker_.store.max_offset(topic, 0)) some = co_await count_some();
    counted_.notify();
    if (!some) co_await count_wake_.wait_for(look_ns);
  }
}

void TimerService::count(std::string_view real_topic, int64_t change) {
  proto::TimerMetrics::Count& c = counts_.timing_count[std::string(real_topic)];
  c.count += change;
  c.time_stamp = broker_.wall_ms();
  counts_.data_version.next(c.time_stamp);
  if (c.count <= 0) counts_.timing_count.erase(std::string(real_topic));
}

void TimerService::count_done(const DueMessage& d) {
  if (!counting_ || d.offset >= counted_to_ || d.extent.bytes().empty()) return;
  auto tag = store::timer_tag_of(d.record);
  auto to = real_queue_of(d.record);
  if (tag && to && tag->kind != TimerKind::recall) count(to->topic, -1);
}

const proto::TimerMetrics& TimerService::counted_by_topic() {
  counting_ = true;
  count_wake_.notify();
  return counts_;
}

Task<const proto::TimerMetrics*> TimerService::pending_by_topic() {
  counting_ = true;
  count_wake_.notify();
  const int64_t all = broker_.store.max_offset(topic, 0), until_ns = broker_.now_ns() + patience_ns;
  while (counted_to_ < all && broker_.now_ns() < until_ns && !broker_.stopping.is_set())
    co_await counted_.wait_until(until_ns);
  co_return &counts_;
}

// ---- requests ----------------------------------------------------------------------------------------

void get_timer_check_point(Broker& b, Request& r, proto::EmptyHeader) {
  r.reply(ResponseCode::SUCCESS, {}, b.timers.java_check());
}

Task<void> get_timer_metrics(Broker& b, Request& r, proto::EmptyHeader) {
  const proto::TimerMetrics* metrics = co_await b.timers.pending_by_topic();
  r.reply(ResponseCode::SUCCESS, {}, metrics->to_json());
}

}  // namespace rmq::broker

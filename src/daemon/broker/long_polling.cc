#include "daemon/broker/long_polling.h"

#include <algorithm>

namespace rmq::broker {

Task<PollEnd> LongPolling::wait(Connection& c, std::string_view topic, int32_t queue_id,
                                const store::MessageFilter* filter, int64_t deadline_ns) {
  Poll poll{queue_id, filter, {}, false};
  auto it = topics_.find(topic);
  if (it == topics_.end()) it = topics_.emplace(std::string(topic), std::vector<Poll*>{}).first;
  it->second.push_back(&poll);
  waiting_++;
  c.hold(poll.wake);
  co_await poll.wake.wait_until(deadline_ns);
  c.unhold(poll.wake);
  waiting_--;
  it = topics_.find(topic);
  check(it != topics_.end());
  std::erase(it->second, &poll);
  if (it->second.empty()) topics_.erase(it);
  co_return !c.is_open() ? PollEnd::closed : poll.arrived ? PollEnd::arrived : PollEnd::timed_out;
}

void LongPolling::on_arrival(const store::Arrival& a) {
  if (waiting_ == 0) return;
  auto it = topics_.find(a.topic);
  if (it == topics_.end()) return;
  for (Poll* p : it->second) {
    if (p->queue_id != a.queue_id || p->arrived) continue;
    if (p->filter != nullptr && !p->filter->matches_tags_code(a.tags_code)) continue;
    p->arrived = true;
    p->wake.set();
  }
}

void LongPolling::wake_all() {
  for (auto& [topic, polls] : topics_)
    for (Poll* p : polls) p->wake.set();
}

}  // namespace rmq::broker

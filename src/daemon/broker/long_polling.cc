#include "daemon/broker/long_polling.h"

namespace rmq::broker {

bool ArrivedMessage::wanted_by(const store::MessageFilter* f) {
  if (f == nullptr) return true;
  if (!f->matches_tags_code(arrival.tags_code)) return false;
  if (!f->needs_record()) return true;
  if (auto verdict = f->known(arrival.physical_offset)) return *verdict;
  if (!looked_) record_ = store_.record_in_memory(arrival.physical_offset, arrival.bytes, scratch_);
  looked_ = true;
  return record_.empty() || f->matches_record(record_);  // not in memory: the read will tell
}

void LongPolling::insert(std::string_view topic, int32_t queue_id, Poll& p) {
  auto it = topics_.find(topic);
  if (it == topics_.end()) it = topics_.emplace(std::string(topic), Queues{}).first;
  Poll*& first = it->second[queue_id];
  p.next = first;
  if (first != nullptr) first->previous = &p;
  first = &p;
  p.listed = true;
}

void LongPolling::remove(std::string_view topic, int32_t queue_id, Poll& p) {
  if (!p.listed) return;
  p.listed = false;
  if (p.next != nullptr) p.next->previous = p.previous;
  if (p.previous != nullptr) {
    p.previous->next = p.next;
    return;
  }
  auto it = topics_.find(topic);
  check(it != topics_.end());
  auto first = it->second.find(queue_id);
  check(first != it->second.end() && first->second == &p);
  first->second = p.next;
  if (p.next != nullptr) return;
  it->second.erase(first);
  if (it->second.empty()) topics_.erase(it);
}

Task<PollEnd> LongPolling::wait(Connection& c, std::string_view topic, int32_t queue_id,
                                const store::MessageFilter* filter, int64_t deadline_ns) {
  Poll poll{.filter = filter};
  insert(topic, queue_id, poll);
  waiting_++;
  c.hold(poll.wake);
  co_await poll.wake.wait_until(deadline_ns);
  c.unhold(poll.wake);
  waiting_--;
  remove(topic, queue_id, poll);
  co_return !c.is_open() ? PollEnd::closed : poll.arrived ? PollEnd::arrived : PollEnd::timed_out;
}

void LongPolling::on_arrival(ArrivedMessage& m) {
  if (waiting_ == 0) return;
  const store::Arrival& a = m.arrival;
  auto it = topics_.find(a.topic);
  if (it == topics_.end()) return;
  auto first = it->second.find(a.queue_id);
  if (first == it->second.end()) return;
  for (Poll* p = first->second; p != nullptr;) {
    Poll* next = p->next;  // the list may go with its last poll
    if (m.wanted_by(p->filter)) {
      p->arrived = true;
      remove(a.topic, a.queue_id, *p);
      p->wake.set();
    }
    p = next;
  }
}

void LongPolling::wake(std::string_view topic, int32_t queue_id) {
  auto it = topics_.find(topic);
  if (it == topics_.end()) return;
  auto first = it->second.find(queue_id);
  if (first == it->second.end()) return;
  for (Poll *p = first->second, *next = nullptr; p != nullptr; p = next) {
    next = p->next;  // the list may go with its last poll
    p->arrived = true;
    remove(topic, queue_id, *p);
    p->wake.set();
  }
}

void LongPolling::wake_all() {
  for (auto& [topic, queues] : topics_)
    for (auto& [queue_id, first] : queues)
      for (Poll* p = first; p != nullptr; p = p->next) p->wake.set();
}

}  // namespace rmq::broker

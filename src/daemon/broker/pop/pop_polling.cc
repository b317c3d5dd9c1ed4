#include "daemon/broker/pop/pop_polling.h"

namespace rmq::broker {

PopPolling::List& PopPolling::list_of(std::string_view topic, std::string_view group) {
  auto t = topics_.find(topic);
  if (t == topics_.end()) t = topics_.emplace(std::string(topic), Groups{}).first;
  auto g = t->second.find(group);
  if (g == t->second.end()) g = t->second.emplace(std::string(group), List{}).first;
  return g->second;
}

void PopPolling::insert(List& l, Poll& p) {
  p.previous = l.last;
  (l.last != nullptr ? l.last->next : l.first) = &p;
  l.last = &p;
  p.listed = true;
}

void PopPolling::remove(List& l, Poll& p) {
  p.listed = false;
  (p.previous != nullptr ? p.previous->next : l.first) = p.next;
  (p.next != nullptr ? p.next->previous : l.last) = p.previous;
}

Task<PollEnd> PopPolling::wait(Connection& c, std::string_view topic, std::string_view group,
                               int32_t queue_id, const store::MessageFilter* filter, int64_t deadline_ns) {
  Poll poll{.queue_id = queue_id, .filter = filter};
  insert(list_of(topic, group), poll);
  waiting_++;
  c.hold(poll.wake);
  co_await poll.wake.wait_until(deadline_ns);
  c.unhold(poll.wake);
  waiting_--;
  List& list = list_of(topic, group);
  if (poll.listed) remove(list, poll);
  // It was told of a message just when its connection closed: the others look for it.
  if (poll.arrived && !c.is_open())
    for (Poll* p = list.first; p != nullptr; p = p->next) p->wake.set();
  if (list.first == nullptr) {
    auto t = topics_.find(topic);
    t->second.erase(t->second.find(group));
    if (t->second.empty()) topics_.erase(t);
  }
  co_return !c.is_open() ? PollEnd::closed : poll.arrived ? PollEnd::arrived : PollEnd::timed_out;
}

uint32_t PopPolling::waiting_for(std::string_view topic, std::string_view group, int32_t queue_id) const {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return 0;
  auto g = t->second.find(group);
  if (g == t->second.end()) return 0;
  uint32_t n = 0;
  for (const Poll* p = g->second.first; p != nullptr; p = p->next) n += p->queue_id == queue_id ? 1 : 0;
  return n;
}

void PopPolling::wake(List& l, int32_t queue_id, ArrivedMessage* m) {
  for (Poll* p = l.first; p != nullptr; p = p->next) {
    if (p->queue_id >= 0 && queue_id >= 0 && p->queue_id != queue_id) continue;
    if (m != nullptr && !m->wanted_by(p->filter)) continue;
    p->arrived = true;
    remove(l, *p);
    p->wake.set();
    return;
  }
}

void PopPolling::on_arrival(ArrivedMessage& m) {
  if (waiting_ == 0) return;
  auto t = topics_.find(m.arrival.topic);
  if (t == topics_.end()) return;
  for (auto& [group, list] : t->second) wake(list, m.arrival.queue_id, &m);
}

void PopPolling::wake_one(std::string_view topic, std::string_view group, int32_t queue_id) {
  if (waiting_ == 0) return;
  auto t = topics_.find(topic);
  if (t == topics_.end()) return;
  auto g = t->second.find(group);
  if (g != t->second.end()) wake(g->second, queue_id, nullptr);
}

void PopPolling::wake_group(std::string_view topic, std::string_view group) {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return;
  auto g = t->second.find(group);
  if (g == t->second.end()) return;
  for (Poll* p = g->second.first; p != nullptr; p = p->next) {
    p->arrived = true;
    p->wake.set();
  }
}

void PopPolling::wake_all() {
  for (auto& [topic, groups] : topics_)
    for (auto& [group, list] : groups)
      for (Poll* p = list.first; p != nullptr; p = p->next) p->wake.set();
}

}  // namespace rmq::broker

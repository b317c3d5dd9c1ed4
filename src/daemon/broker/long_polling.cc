#include "daemon/broker/long_polling.h"

#include "filter/java_number.h"
#include "proto/record.h"

namespace rmq::broker {

// Empty: not in memory.
Bytes ArrivedMessage::record() {
  if (!looked_) record_ = store_.record_in_memory(arrival.physical_offset, arrival.bytes, scratch_);
  looked_ = true;
  return record_;
}

bool ArrivedMessage::wanted_by(const store::MessageFilter* f) {
  if (f == nullptr) return true;
  if (!f->matches_tags_code(arrival.tags_code)) return false;
  if (!f->needs_record()) return true;
  if (auto verdict = f->known(arrival.physical_offset)) return *verdict;
  return record().empty() || f->matches_record(record());  // not in memory: the read will tell
}

const filter::PropertyTable* ArrivedMessage::properties() {
  if (has_properties_) return &properties_;
  auto parsed = proto::parse_record(record());
  if (!parsed) return nullptr;
  properties_.read(parsed->properties);
  has_properties_ = true;
  return &properties_;
}

// ---- those whose filters say the same ------------------------------------------------------------------

LongPolling::Alike::Some& LongPolling::Alike::place_of(const store::MessageFilter& f) {
  const store::NeededProperty* needed = f.needed();
  if (needed == nullptr) return others_;
  auto it = needing_.find(needed->name);
  if (it == needing_.end()) {
    it = needing_.emplace(std::string(needed->name), ByValue{}).first;
    it->second.name_hash = filter::PropertyTable::hash_of(needed->name);
  }
  if (needed->number) return it->second.numbers[*needed->number];
  return it->second.texts[std::string(needed->text)];
}

LongPolling::List& LongPolling::Alike::list_of(const store::MessageFilter& f) {
  auto [it, is_new] = lists_.try_emplace(f.identity());
  if (is_new) place_of(f).insert(&it->second);
  return it->second;
}

void LongPolling::Alike::forget(const store::MessageFilter& f) {
  auto it = lists_.find(f.identity());
  Some& place = place_of(f);
  place.erase(&it->second);
  lists_.erase(it);
  const store::NeededProperty* needed = f.needed();
  if (needed == nullptr || !place.empty()) return;
  auto by_value = needing_.find(needed->name);
  ByValue& v = by_value->second;
  if (needed->number)
    v.numbers.erase(*needed->number);
  else
    v.texts.erase(v.texts.find(needed->text));
  if (v.numbers.empty() && v.texts.empty()) needing_.erase(by_value);
}

void LongPolling::Alike::find(ArrivedMessage& m, std::vector<List*>& out) {
  out.assign(others_.begin(), others_.end());
  if (needing_.empty()) return;
  const filter::PropertyTable* properties = m.properties();
  if (properties == nullptr) {
    out.clear();
    for (auto& [identity, list] : lists_) out.push_back(&list);
    return;
  }
  for (auto& [name, v] : needing_) {
    const std::string_view value = properties->find(name, v.name_hash);
    if (value.empty()) continue;
    if (auto t = v.texts.find(value); t != v.texts.end())
      out.insert(out.end(), t->second.begin(), t->second.end());
    if (v.numbers.empty()) continue;
    const auto number = filter::java_long(value);
    if (!number) continue;
    if (auto n = v.numbers.find(*number); n != v.numbers.end())
      out.insert(out.end(), n->second.begin(), n->second.end());
  }
}

// ---- queues --------------------------------------------------------------------------------------------

LongPolling::Queue* LongPolling::find(std::string_view topic, int32_t queue_id) {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return nullptr;
  auto q = t->second.find(queue_id);
  return q == t->second.end() ? nullptr : &q->second;
}

void LongPolling::insert(std::string_view topic, int32_t queue_id, Poll& p) {
  auto it = topics_.find(topic);
  if (it == topics_.end()) it = topics_.emplace(std::string(topic), Queues{}).first;
  Queue& q = it->second[queue_id];
  List* list = &q.each;
  if (has_identity(p)) {
    if (q.alike == nullptr) q.alike = std::make_unique<Alike>();
    list = &q.alike->list_of(*p.filter);
  }
  p.next = list->first;
  if (p.next != nullptr) p.next->previous = &p;
  list->first = &p;
  p.list = list;
}

void LongPolling::unlink(Poll& p) {
  if (p.next != nullptr) p.next->previous = p.previous;
  (p.previous != nullptr ? p.previous->next : p.list->first) = p.next;
  p.list = nullptr;
}

void LongPolling::remove(std::string_view topic, int32_t queue_id, Poll& p) {
  if (p.list == nullptr) return;
  Queue* q = find(topic, queue_id);
  check(q != nullptr);
  p.unwanted_to = q->arrived_to;
  List& list = *p.list;
  unlink(p);
  if (list.first == nullptr && has_identity(p)) q->alike->forget(*p.filter);
  forget_if_empty(topic, queue_id);
}

void LongPolling::forget_if_empty(std::string_view topic, int32_t queue_id) {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return;
  auto q = t->second.find(queue_id);
  if (q == t->second.end() || !q->second.empty()) return;
  t->second.erase(q);
  if (t->second.empty()) topics_.erase(t);
}

Task<Polled> LongPolling::wait(Connection& c, std::string_view topic, int32_t queue_id,
                               const store::MessageFilter* filter, int64_t deadline_ns) {
  Poll poll{.filter = filter};
  insert(topic, queue_id, poll);
  waiting_++;
  c.hold(poll.wake);
  co_await poll.wake.wait_until(deadline_ns);
  c.unhold(poll.wake);
  waiting_--;
  remove(topic, queue_id, poll);
  Polled out;
  out.unwanted_to = poll.unwanted_to;
  if (!c.is_open())
    out.end = PollEnd::closed;
  else if (poll.arrived)
    out.end = PollEnd::arrived;
  co_return out;
}

void LongPolling::wake_all_of(List& l, int64_t unwanted_to) {
  for (Poll *p = l.first, *next = nullptr; p != nullptr; p = next) {
    next = p->next;
    p->arrived = true;
    p->unwanted_to = unwanted_to;
    p->list = nullptr;
    p->wake.set();
  }
  l.first = nullptr;
}

void LongPolling::wake_all_of(Queue& q) {
  wake_all_of(q.each, q.arrived_to);
  if (q.alike != nullptr)
    for (auto& [identity, list] : q.alike->lists()) wake_all_of(list, q.arrived_to);
  q.alike.reset();
}

void LongPolling::on_arrival(ArrivedMessage& m) {
  if (waiting_ == 0) return;
  const store::Arrival& a = m.arrival;
  Queue* q = find(a.topic, a.queue_id);
  if (q == nullptr) return;
  for (Poll *p = q->each.first, *next = nullptr; p != nullptr; p = next) {
    next = p->next;
    if (!m.wanted_by(p->filter)) continue;
    p->arrived = true;
    p->unwanted_to = a.queue_offset;
    unlink(*p);
    p->wake.set();
  }
  if (q->alike != nullptr) {
    q->alike->find(m, found_);
    for (List* l : found_) {
      const store::MessageFilter& f = *l->first->filter;
      if (!m.wanted_by(&f)) continue;
      Poll* const first = l->first;  // alive until the loop turns, and with it the filter
      wake_all_of(*l, a.queue_offset);
      q->alike->forget(*first->filter);
    }
  }
  q->arrived_to = a.queue_offset + a.messages;
  forget_if_empty(a.topic, a.queue_id);
}

void LongPolling::wake(std::string_view topic, int32_t queue_id) {
  Queue* q = find(topic, queue_id);
  if (q == nullptr) return;
  wake_all_of(*q);
  forget_if_empty(topic, queue_id);
}

void LongPolling::wake_all() {
  for (auto& [topic, queues] : topics_)
    for (auto& [queue_id, q] : queues) wake_all_of(q);
  topics_.clear();
}

}  // namespace rmq::broker

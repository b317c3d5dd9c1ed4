#include "delay_model.h"

#include "daemon/broker/handlers.h"

namespace rmq::broker {

namespace {

struct Life {
  DelayModel& model;
  const DelayLife& plan;
  LifeNow* now = nullptr;
  store::MessageStore* store = nullptr;
  Broker* broker = nullptr;
  World* world = nullptr;
  size_t sending = 0;
  int64_t began_ns = 0;
  int64_t next_offset = 0;
  std::map<size_t, int> came{};

  bool counts() const { return now->counts(); }
  int64_t true_ms() const { return now->true_ms(); }
  int64_t mono_ns() const { return now->loop.clock().mono_ns(); }
  void error(std::string text) { now->machine.error(std::move(text)); }
};

std::string body_of(size_t id, size_t bytes) {
  std::string body = "m" + std::to_string(id) + " ";
  body.resize(std::max(body.size(), bytes), 'x');
  return body;
}

Task<void> recall_one(Life& l, const DelayedSend& s, size_t id, int64_t deliver_ms) {
  co_await l.broker->stopping.wait_until(l.began_ns + s.recall_ms * ns_per_ms);
  if (!l.counts() || !l.store->writable() || !l.broker->timers.can_recall(deliver_ms)) co_return;
  l.model.sent[id].perhaps = true;
  const std::string key = "k" + std::to_string(id);
  auto put = co_await recall(*l.broker, "D", key, deliver_ms, l.broker->store_host);
  bool done = put.status == store::PutMessageStatus::PUT_OK;
  if (done) done = co_await is_safe_now(*l.world, *l.now);
  if (!l.counts()) co_return;
  l.model.sent[id].recalled = done;
  // Too late: then it came, or comes.
  if (put.status == store::PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL) l.model.sent[id].perhaps = false;
}

Task<void> send_one(Life& l, const DelayedSend& s) {
  co_await l.broker->stopping.wait_until(l.began_ns + s.at_ms * ns_per_ms);
  if (l.counts() && l.store->writable()) {
    const size_t id = l.model.sent.size();
    l.model.sent.push_back({});
    std::string properties = s.properties, body = body_of(id, s.body_bytes);
    store::MessageIn m;
    m.topic = "D";
    m.store_host = l.broker->store_host;
    m.body = as_bytes(body);
    SentMessage& sent = l.model.sent[id];
    sent.due_ms = l.true_ms() + s.delay_ms;
    proto::append_property(properties, proto::prop::UNIQ_KEY, "k" + std::to_string(id));
    auto put = co_await l.broker->put_delayed(m, properties);
    bool stored = put.status == store::PutMessageStatus::PUT_OK;
    bool safe = false;
    if (stored) safe = co_await is_safe_now(*l.world, *l.now);
    if (safe) l.model.sent[id].acknowledged = true;
    if (l.counts() && !stored) l.error(std::string("refused: ") + store::name_of(put.status));
    auto out = proto::find_property(properties, proto::prop::TIMER_OUT_MS);
    if (stored && s.recall_ms >= 0 && out)
      co_await recall_one(l, s, id, std::strtoll(out->data(), nullptr, 10));
  }
  l.sending--;
}

void take(Life& l, const proto::RecordView& record) {
  const size_t id = std::strtoull(reinterpret_cast<const char*>(record.body.data()) + 1, nullptr, 10);
  if (id >= l.model.sent.size()) return l.error("a message that nobody sent");
  l.came[id]++;
  const int64_t early = l.model.sent[id].due_ms - l.true_ms();
  if (early > 0) l.error("message " + std::to_string(id) + " came " + std::to_string(early) + " ms early");
}

Task<void> watch(Life& l) {
  int64_t all_there_ns = 0;
  for (;;) {
    auto next = co_await each_record(*l.world, *l.now, "D", 0, l.next_offset,
                                     [&l](const proto::RecordView& r) { take(l, r); });
    l.next_offset = next;
    int64_t now = l.mono_ns();
    bool all = l.sending == 0;
    for (size_t id = 0; id < l.model.sent.size(); id++) {
      const SentMessage& s = l.model.sent[id];
      if (s.acknowledged && !s.perhaps && l.came[id] == 0) all = false;
    }
    if (!all) all_there_ns = 0;
    if (all && all_there_ns == 0) all_there_ns = now;
    // A while longer: what comes twice may come later.
    bool enough = all && now - all_there_ns > 11 * ns_per_s;
    if (enough || !l.counts() || !l.store->writable() || now > l.began_ns + l.plan.last_ms * ns_per_ms) break;
    co_await sleep_for(7 * ns_per_ms);
  }
}

void judge(Life& l) {
  for (size_t id = 0; id < l.model.sent.size(); id++) {
    const SentMessage& s = l.model.sent[id];
    std::string name = "message " + std::to_string(id);
    if (l.came[id] > 1) l.error(name + " came " + std::to_string(l.came[id]) + " times");
    if (l.plan.final && s.acknowledged && !s.perhaps && l.came[id] == 0) l.error(name + " is lost");
    if (s.recalled && l.came[id] != 0) l.error(name + " came although it was recalled");
  }
}

Task<void> work(World& w, LifeNow& now, Life& l) {
  l.now = &now;
  l.world = &w;
  l.store = w.store.get();
  l.broker = &w.broker;
  if (l.plan.entries_max != 0) l.broker->timers.set_memory_max(l.plan.entries_max);
  l.broker->timers.set_roll_spare(2000);
  l.began_ns = l.mono_ns();
  Scope scope;
  l.sending = l.plan.sends.size();
  for (const DelayedSend& s : l.plan.sends) scope.spawn(send_one(l, s));
  co_await watch(l);
  l.broker->stopping.set();
  co_await scope.join();
  l.model.rolled += l.broker->timers.stats().rolled;
  if (l.counts()) judge(l);
}

}  // namespace

void live(DelayModel& model, Machine& machine, const DelayLife& life, const sim::CrashFate& fate) {
  Life l{.model = model, .plan = life};
  live<Life&>(machine, life, fate, work, l);
}

}  // namespace rmq::broker

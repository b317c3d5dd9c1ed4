// POP on a machine that crashes, at every write of a small workload and at random: while a message is leased
// to one client nobody else gets it, what was acknowledged (alone or in a batch) never comes again, what was
// not always does; and popped in order, none comes before an earlier one of its queue is acknowledged.
// Client and broker speak over the simulated network; what the client was told counts, nothing else.
#include <deque>
#include <set>

#include "crash_lives.h"
#include "pop_client.h"

namespace rmq::broker {
namespace {

struct Message {
  bool sent = false;          // and answered
  bool acknowledged = false;  // and answered, in time
  bool perhaps = false;       // acknowledged, but nobody knows whether that counted
  int64_t leased_until_ms = 0;
  int came = 0;
};

struct Model {
  std::deque<Message> messages;  // those who wait for an answer keep pointers to them
  int again = 0;                 // deliveries of what had come before
};

struct Life : LifePlan {
  int sends = 0;
  int64_t last_ms = 6000;
  bool final = false;  // everything that comes is acknowledged, and everything must come
  bool exact = true;   // SYNC_FLUSH: leases and acknowledgements survive a crash
  bool order = false;
};

// Times are of the wall clock, which goes on from life to life.
struct Run {
  Model& model;
  const Life& plan;
  sim::SimRandom random;
  World* world = nullptr;
  LifeNow* now = nullptr;
  int64_t ends_ns = 0;
  int32_t opaque = 0;
  int clients = 0;
  bool producing = true;

  bool counts() const { return now->counts(); }
  bool over() const { return !counts() || now->loop.clock().mono_ns() > ends_ns || all_done(); }
  bool all_done() const {
    if (!plan.final || producing) return false;
    for (const Message& m : model.messages)
      if (m.sent && !m.acknowledged && !m.perhaps) return false;
    return true;
  }
  int64_t wall_ms() const { return now->loop.clock().wall_ms(); }
  void error(std::string text) { now->machine.error(std::move(text)); }
};

Task<void> produce(Run& r, Peer& peer) {
  for (int i = 0; i < r.plan.sends && r.counts(); i++) {
    const size_t id = r.model.messages.size();
    r.model.messages.emplace_back();
    const std::string body = std::to_string(id), queue = std::to_string(id % 2);
    const sim::Ext ext({"a", "pg"}, {"b", "T"}, {"c", "TBW102"}, {"d", "2"}, {"e", queue}, {"f", "0"},
                       {"g", "1"}, {"h", "0"}, {"i", ""}, {"j", "0"});
    auto a = co_await peer.call(
        sim::request_frame(static_cast<int32_t>(RequestCode::SEND_MESSAGE_V2), ++r.opaque, ext, body));
    bool safe = r.plan.exact || co_await is_safe_now(*r.world, *r.now);
    if (safe && r.counts() && code_of(a) == 0) r.model.messages[id].sent = true;
    co_await sleep_for(static_cast<int64_t>(r.random.below(300)) * ns_per_ms);
  }
}

// A message has come: was it allowed to?
Message* received(Run& r, const PoppedMessage& p, int64_t leased_until_ms) {
  const size_t id = std::strtoull(p.body.c_str(), nullptr, 10);
  if (id >= r.model.messages.size()) {
    r.error("a message that nobody sent");
    return nullptr;
  }
  Message& m = r.model.messages[id];
  const std::string name = "message " + p.body;
  if (r.plan.exact && m.acknowledged) r.error(name + " came again although it was acknowledged");
  if (r.plan.exact && r.wall_ms() < m.leased_until_ms)
    r.error(name + " came " + std::to_string(m.leased_until_ms - r.wall_ms()) + " ms before its lease ended");
  if (m.came++ > 0) r.model.again++;
  m.leased_until_ms = leased_until_ms;
  return &m;
}

// In order: those of its queue that were sent before are acknowledged, or come before it in the same answer.
void look_at_order(Run& r, const std::vector<PoppedMessage>& got) {
  std::set<size_t> here;
  for (const PoppedMessage& p : got) {
    const size_t id = std::strtoull(p.body.c_str(), nullptr, 10);
    for (size_t before = id % 2; before < id && id < r.model.messages.size(); before += 2) {
      const Message& m = r.model.messages[before];
      if (m.sent && !m.acknowledged && !m.perhaps && !here.contains(before))
        r.error("message " + p.body + " came before " + std::to_string(before));
    }
    here.insert(id);
  }
}

// `leased_until_ms`: by this handle; another client may have the message meanwhile.
Task<void> acknowledge(Run& r, Peer& peer, const PoppedMessage& p, Message& m, int64_t leased_until_ms) {
  m.perhaps = true;
  auto a = co_await peer.call(ack_frame(++r.opaque, "g", "T", p.handle));
  if (!r.counts() || code_of(a) != 0) co_return;
  if (r.wall_ms() >= leased_until_ms) co_return;  // it may have come too late
  m.perhaps = false;
  m.acknowledged = true;
}

using Got = std::vector<std::pair<PoppedMessage, Message*>>;

// All of an answer by one BATCH_ACK_MESSAGE.
std::string batch_of(const Got& got) {
  std::map<std::string, std::vector<uint8_t>> bits;  // by all that names a checkpoint
  for (const auto& [p, m] : got) {
    auto h = PopHandle::parse(p.handle);
    check(h.has_value());
    std::vector<uint8_t>& b =
        bits[R"({"c":"g","t":"T","r":")" + std::string(1, h->mark) + R"(","so":)" +
             std::to_string(h->start_offset) + R"(,"q":)" + std::to_string(h->queue_id) + R"(,"rq":)" +
             std::to_string(h->revive_queue) + R"(,"pt":)" + std::to_string(h->pop_time_ms) + R"(,"it":)" +
             std::to_string(h->invisible_ms) + R"(,"b":[)"];
    const auto at = static_cast<size_t>(h->offset.value_or(0) - h->start_offset);
    if (b.size() <= at / 8) b.resize(at / 8 + 1);
    b[at / 8] = static_cast<uint8_t>(b[at / 8] | 1u << (at % 8));
  }
  std::string body;
  for (const auto& [head, bytes] : bits) {
    body += (body.empty() ? "" : ",") + head;
    for (size_t i = 0; i < bytes.size(); i++)
      body += (i == 0 ? "" : ",") + std::to_string(static_cast<int8_t>(bytes[i]));
    body += "]}";
  }
  return R"({"brokerName":"b","acks":[)" + body + "]}";
}

Task<void> acknowledge_all(Run& r, Peer& peer, const Got& got, int64_t leased_until_ms) {
  for (const auto& [p, m] : got) m->perhaps = true;
  const std::string body = batch_of(got);
  auto a = co_await peer.call(
      sim::request_frame(static_cast<int32_t>(RequestCode::BATCH_ACK_MESSAGE), ++r.opaque, {}, body));
  if (!r.counts() || code_of(a) != 0 || r.wall_ms() >= leased_until_ms) co_return;
  for (const auto& [p, m] : got) {
    m->perhaps = false;
    m->acknowledged = true;
  }
}

Task<void> change(Run& r, Peer& peer, const PoppedMessage& p, Message& m) {
  const int64_t before_ms = m.leased_until_ms, asked_ms = 100 + static_cast<int64_t>(r.random.below(1500));
  m.leased_until_ms = std::min(before_ms, r.wall_ms() + asked_ms);
  auto a = co_await peer.call(change_frame(++r.opaque, "g", "T", p.handle, asked_ms));
  if (!r.counts() || code_of(a) != 0) co_return;
  const int64_t until = std::strtoll(ext(a, "popTime").c_str(), nullptr, 10) +
                        std::strtoll(ext(a, "invisibleTime").c_str(), nullptr, 10);
  m.leased_until_ms = until;
  if (r.random.below(2) != 0) co_return;
  PoppedMessage changed = p;
  changed.handle = changed_handle(p.handle, a);
  co_await acknowledge(r, peer, changed, m, until);
}

Task<void> consume(Run& r, std::unique_ptr<Peer> peer) {
  while (!r.over()) {
    PopAsk ask;
    ask.invisible_ms = r.plan.final ? 5000 : 200 + static_cast<int64_t>(r.random.below(800));
    ask.poll_ms = 400;
    ask.most = 1 + static_cast<int32_t>(r.random.below(4));
    ask.order = r.plan.order;
    auto a = co_await peer->call(pop_frame(++r.opaque, ask, r.wall_ms()));
    if (!a || !r.counts()) break;
    if (code_of(a) != 0) continue;
    const int64_t until = std::strtoll(ext(a, "popTime").c_str(), nullptr, 10) + ask.invisible_ms;
    const std::vector<PoppedMessage> all = popped_of(a);
    if (r.plan.order) look_at_order(r, all);
    Got got;
    for (const PoppedMessage& p : all)
      if (Message* m = received(r, p, until)) got.emplace_back(p, m);
    if (got.size() > 1 && r.random.below(3) == 0) {
      co_await acknowledge_all(r, *peer, got, until);
      continue;
    }
    for (auto& [p, m] : got) {
      if (!r.counts()) break;
      const uint64_t what = r.plan.final ? 0 : r.random.below(4);
      if (what <= 1) co_await acknowledge(r, *peer, p, *m, until);
      if (what == 2) co_await change(r, *peer, p, *m);
    }
  }
  co_await peer->close();
  r.clients--;
}

Task<void> work(World& w, LifeNow& now, Run& r) {
  r.world = &w;
  r.now = &now;
  r.ends_ns = now.loop.clock().mono_ns() + r.plan.last_ms * ns_per_ms;
  Scope scope;
  r.clients = 2;
  for (int i = 0; i < 2; i++) {
    auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    scope.spawn(consume(r, std::move(peer)));
  }
  co_await produce(r, *w.peer);
  r.producing = false;
  while (r.clients > 0 && r.counts()) co_await sleep_for(10 * ns_per_ms);
  co_await scope.join();
}

void live_one(Model& model, Machine& machine, const Life& life, const sim::CrashFate& fate) {
  Run r{.model = model, .plan = life, .random = sim::SimRandom(life.seed + 77)};
  live<Run&>(machine, life, fate, work, r);
  if (!life.final || !machine.errors.empty()) return;
  for (size_t id = 0; id < model.messages.size(); id++) {
    const Message& m = model.messages[id];
    if (m.sent && !m.acknowledged && !m.perhaps)
      machine.error("message " + std::to_string(id) + " is lost, it came " + std::to_string(m.came) +
                    " times");
  }
}

BrokerConfig small_config() {
  BrokerConfig c = crash_config();
  c.flushConsumerOffsetInterval = 700;
  return c;
}

void at_every_point(const Life& first, const char* what, int least_again = 3) {
  Model all;
  Machine machine;
  live_one(all, machine, first, fate_of(1));
  EXPECT_TRUE(machine.errors.empty()) << text_of(machine.errors);
  EXPECT_GE(all.again, least_again) << "the workload lets too little come again";
  ASSERT_GT(machine.points, 150u) << "the workload does too little";
  each_point(machine.points, what, [&](uint64_t point, uint64_t again) {
    return crash_lives<Model>(first, point, again, 400, live_one);
  });
}

TEST(PopCrash, AtEveryPoint) {
  Life life;
  life.config = small_config();
  life.sends = 8;
  life.last_ms = 3500;
  at_every_point(life, "sync flush,");
}

TEST(PopCrash, AtEveryPointAsyncFlush) {
  Life life;
  life.config = small_config();
  life.config.flushDiskType = "ASYNC_FLUSH";
  life.exact = false;
  life.sends = 8;
  life.last_ms = 3500;
  at_every_point(life, "async flush,");
}

TEST(PopCrash, AtEveryPointInOrder) {
  Life life;
  life.config = small_config();
  life.order = true;
  life.sends = 12;
  life.last_ms = 5000;
  at_every_point(life, "in order,", 1);
}

std::vector<std::string> random_lives(uint64_t seed, int& again) {
  sim::SimRandom random(seed);
  Model model;
  Machine machine;
  const int lives = static_cast<int>(1 + random.below(4));
  for (int i = 0; i <= lives; i++) {
    Life life;
    life.seed = seed * 10 + static_cast<uint64_t>(i);
    life.config = small_config();
    life.exact = seed % 4 != 0;
    life.order = seed % 5 == 1;
    if (!life.exact) life.config.flushDiskType = "ASYNC_FLUSH";
    life.final = i == lives;
    life.last_ms = life.final ? 60'000 : 3000 + static_cast<int64_t>(random.below(9000));
    life.down_ms = static_cast<int64_t>(random.below(1500));
    life.sends = static_cast<int>(random.below(30));
    if (!life.final && random.below(5) != 0) life.crash_at = 50 + random.below(900);
    live_one(model, machine, life, fate_of(random.next()));
  }
  again += model.again;
  return machine.errors;
}

TEST(PopCrash, RandomLives) {
  int again = 0;
  const uint64_t seeds = each_seed(30, [&](uint64_t seed) { return random_lives(seed, again); });
  EXPECT_GT(again, static_cast<int>(seeds));
}

}  // namespace
}  // namespace rmq::broker

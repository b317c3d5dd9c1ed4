// Retries on a machine that crashes, at every write of a small workload and by seed: what a consumer has
// given back and was told so comes again, not before its delay, no more often than it was given back, and as
// a dead letter in the end; with what it was and where it was from.
#include <array>
#include <map>

#include "crash_lives.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

namespace prop = proto::prop;
constexpr int32_t times_max = 2;    // then it is a dead letter
constexpr int64_t retry_ms = 1000;  // delay level 1
constexpr const char* retry_topic = "%RETRY%g";
constexpr const char* dead_topic = "%DLQ%g";

// Giving back a message of so many reconsumeTimes.
struct Given {
  int tries = 0;
  int64_t first_ms = 0;  // true time of the first
  bool acknowledged = false;
};
struct Sent {
  bool acknowledged = false;
  std::string origin;  // its offset id
  std::array<Given, times_max + 1> given{};
};
struct Model {
  std::vector<Sent> sent;
  int retries = 0, dead = 0;  // that came, in all
};

struct Life : LifePlan {
  int sends = 0;
  int64_t last_ms = 8000;
  bool final = false;
};

// So many times its consumer cannot handle it; more than times_max: never.
int failures_of(size_t id) {
  return static_cast<int>(id % (times_max + 2));
}
bool dies(size_t id) {
  return failures_of(id) > times_max;
}
size_t id_of(const proto::RecordView& r) {
  return std::strtoull(reinterpret_cast<const char*>(r.body.data()), nullptr, 10);
}

struct Run {
  Model& model;
  const Life& plan;
  World* world = nullptr;
  LifeNow* now = nullptr;
  int64_t ends_ns = 0;
  int workers = 0;
  bool producing = true;
  std::map<std::pair<size_t, int32_t>, int> came{};  // by id and reconsumeTimes
  std::map<size_t, int> dead{};

  void error(size_t id, const std::string& text) {
    now->machine.error("message " + std::to_string(id) + " " + text);
  }
  bool over() const { return !now->counts() || now->loop.clock().mono_ns() > ends_ns || all_done(); }
  // What was acknowledged has come to its end.
  bool all_done() const {
    if (!plan.final || producing) return false;
    for (size_t id = 0; id < model.sent.size(); id++) {
      if (!model.sent[id].acknowledged) continue;
      const int last = std::min(failures_of(id), times_max);
      for (int t = 0; t <= last; t++)
        if (!came.contains({id, t})) return false;
      if (dies(id) && !dead.contains(id)) return false;
    }
    return true;
  }
};

// ---- giving back -------------------------------------------------------------------------------------

std::string back_frame(World& w, const proto::RecordView& r) {
  const std::string at = std::to_string(r.physical_offset), max = std::to_string(times_max);
  return w.request(RequestCode::CONSUMER_SEND_MSG_BACK, {{"offset", at},
                                                         {"group", "g"},
                                                         {"delayLevel", "1"},
                                                         {"originTopic", "S"},
                                                         {"maxReconsumeTimes", max}});
}

// As a client does when the other way has failed, and an orderly one always: a plain send.
std::string plain_frame(World& w, const proto::RecordView& r) {
  std::string properties(r.properties);
  const std::string times = std::to_string(r.reconsume_times + 1), max = std::to_string(times_max);
  if (!r.property(prop::RETRY_TOPIC)) proto::set_property(properties, prop::RETRY_TOPIC, r.topic);
  if (!r.property(prop::ORIGIN_MESSAGE_ID))
    proto::set_property(properties, prop::ORIGIN_MESSAGE_ID,
                        proto::make_offset_id(r.store_host, r.physical_offset));
  for (std::string_view name : {prop::REAL_TOPIC, prop::REAL_QID}) proto::remove_property(properties, name);
  proto::set_property(properties, prop::RECONSUME_TIME, times);
  proto::set_property(properties, prop::MAX_RECONSUME_TIMES, max);
  proto::set_property(properties, prop::DELAY, "1");
  return w.request(RequestCode::SEND_MESSAGE_V2,
                   {{"a", "g"},
                    {"b", retry_topic},
                    {"c", "TBW102"},
                    {"d", "1"},
                    {"e", "0"},
                    {"f", "0"},
                    {"g", "1"},
                    {"h", "0"},
                    {"i", properties},
                    {"j", times},
                    {"l", max}},
                   as_text(r.body));
}

Task<void> give_back(Run& r, Peer& peer, std::string frame, size_t id, int32_t times) {
  Given& before = r.model.sent[id].given[static_cast<size_t>(times)];
  if (before.tries++ == 0) before.first_ms = r.now->true_ms();
  auto a = co_await peer.call(std::move(frame));
  if (!r.now->counts()) co_return;
  if (code_of(a) != 0) co_return r.error(id, "is not taken back: " + remark(a));
  bool safe = co_await is_safe_now(*r.world, *r.now);
  if (safe) r.model.sent[id].given[static_cast<size_t>(times)].acknowledged = true;
}

// ---- the consumer ------------------------------------------------------------------------------------

// One that came: as it may be?
void look_at(Run& r, const proto::RecordView& record) {
  const size_t id = id_of(record);
  if (id >= r.model.sent.size()) return r.error(id, "is of nobody");
  Sent& s = r.model.sent[id];
  const int32_t times = record.reconsume_times;
  if (record.topic == "S") {
    s.origin = proto::make_offset_id(record.store_host, record.physical_offset);
    r.came[{id, 0}]++;
    if (times != 0) r.error(id, "is new and has come " + std::to_string(times) + " times");
    return;
  }
  const bool is_dead = record.topic == dead_topic;
  if (times < 1 || times > times_max + 1 || is_dead != (times == times_max + 1))
    return r.error(id, "has reconsumeTimes " + std::to_string(times) + " in " + std::string(record.topic));
  (is_dead ? r.dead[id] : r.came[{id, times}])++;
  (is_dead ? r.model.dead : r.model.retries)++;
  const Given& given = s.given[static_cast<size_t>(times) - 1];
  if (given.tries == 0) r.error(id, "comes again although nobody gave it back");
  const int64_t early = given.first_ms + retry_ms - r.now->true_ms();
  if (!is_dead && early > 0) r.error(id, "came again " + std::to_string(early) + " ms early");
  if (record.property(prop::RETRY_TOPIC).value_or("") != "S") r.error(id, "does not say its topic");
  if (record.property(prop::ORIGIN_MESSAGE_ID).value_or("") != s.origin) r.error(id, "does not say its id");
  if (record.property("mine").value_or("") != "kept") r.error(id, "has lost a property");
}

// Gives back what it cannot handle, unless that was taken before.
Task<void> consume(Run& r, std::unique_ptr<Peer> peer, std::string topic) {
  int64_t offset = 0;
  while (!r.over()) {
    std::vector<std::tuple<size_t, int32_t, std::string>> to_give;
    auto next =
        co_await each_record(*r.world, *r.now, topic, 0, offset, [&](const proto::RecordView& record) {
          look_at(r, record);
          const size_t id = id_of(record);
          const int32_t times = record.reconsume_times;
          if (id >= r.model.sent.size() || times > times_max || times >= failures_of(id)) return;
          if (topic == dead_topic || r.model.sent[id].given[static_cast<size_t>(times)].acknowledged) return;
          const bool plainly = (id / 4 + static_cast<size_t>(times)) % 3 == 0;
          to_give.emplace_back(id, times,
                               plainly ? plain_frame(*r.world, record) : back_frame(*r.world, record));
        });
    offset = next;
    for (auto& [id, times, frame] : to_give) {
      if (!r.now->counts()) break;
      co_await give_back(r, *peer, std::move(frame), id, times);
    }
    co_await sleep_for(20 * ns_per_ms);
  }
  co_await peer->close();
  r.workers--;
}

Task<void> produce(Run& r) {
  World& w = *r.world;
  std::string properties;
  proto::append_property(properties, "mine", "kept");
  for (int i = 0; i < r.plan.sends && r.now->counts(); i++) {
    const size_t id = r.model.sent.size();
    r.model.sent.emplace_back();
    const std::string body =
        std::to_string(id) + " " + std::string(Loop::current().random().below(2000), 'x');
    auto a = co_await w.send("S", body, properties);
    if (!r.now->counts()) break;
    bool safe = co_await is_safe_now(w, *r.now);
    if (safe && code_of(a) == 0) r.model.sent[id].acknowledged = true;
    co_await sleep_for(static_cast<int64_t>(Loop::current().random().below(400)) * ns_per_ms);
  }
  r.producing = false;
}

// What lies in the log at the end.
void judge(Run& r) {
  for (size_t id = 0; id < r.model.sent.size(); id++) {
    const Sent& s = r.model.sent[id];
    for (int32_t t = 0; t <= times_max + 1; t++) {
      const bool of_dead = t == times_max + 1;
      const int count = of_dead ? r.dead[id] : r.came[{id, t}];
      const int most = t == 0 ? 1 : s.given[static_cast<size_t>(t) - 1].tries;
      const bool owed = t == 0 ? s.acknowledged : s.given[static_cast<size_t>(t) - 1].acknowledged;
      const std::string which = of_dead ? "as a dead letter" : "for the " + std::to_string(t) + "th time";
      if (count > most) r.error(id, "is there " + std::to_string(count) + " times " + which);
      if (r.plan.final && owed && count == 0) r.error(id, "is lost, it should come " + which);
    }
  }
}

Task<void> work(World& w, LifeNow& now, Run& r) {
  r.world = &w;
  r.now = &now;
  r.ends_ns = now.loop.clock().mono_ns() + r.plan.last_ms * ns_per_ms;
  Scope scope;
  for (const char* topic : {"S", retry_topic, dead_topic}) {
    auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    r.workers++;
    scope.spawn(consume(r, std::move(peer), topic));
  }
  co_await produce(r);
  while (r.workers > 0) co_await sleep_for(10 * ns_per_ms);
  co_await scope.join();
  // What comes twice may come later.
  if (r.plan.final && now.counts()) {
    co_await sleep_for(3 * ns_per_s);
    r.came.clear();
    r.dead.clear();
    for (const char* topic : {"S", retry_topic, dead_topic})
      co_await each_record(w, now, topic, 0, 0,
                           [&r](const proto::RecordView& record) { look_at(r, record); });
  }
  if (now.counts()) judge(r);
}

void live_one(Model& model, Machine& machine, const Life& life, const sim::CrashFate& fate) {
  Run r{.model = model, .plan = life};
  live<Run&>(machine, life, fate, work, r);
}

// ---- the tests ---------------------------------------------------------------------------------------

void at_every_point(const Life& first, const char* what) {
  Model model;
  Machine machine;
  live_one(model, machine, first, fate_of(1));
  EXPECT_TRUE(machine.errors.empty()) << text_of(machine.errors);
  EXPECT_GE(model.retries, 5) << "the workload gives back too little";
  EXPECT_GE(model.dead, 1);
  ASSERT_GT(machine.points, 150u) << "the workload does too little";
  each_point(machine.points, what, [&](uint64_t point, uint64_t again) {
    return crash_lives<Model>(first, point, again, 700, live_one);
  });
}

TEST(RetryCrash, AtEveryPoint) {
  Life life;
  life.config = crash_config();
  life.sends = 6;
  at_every_point(life, "sync flush,");
}

TEST(RetryCrash, AtEveryPointAsyncFlush) {
  Life life;
  life.seed = 3;
  life.config = crash_config();
  life.config.flushDiskType = "ASYNC_FLUSH";
  life.sends = 6;
  at_every_point(life, "async flush,");
}

std::vector<std::string> random_lives(uint64_t seed, Model& all) {
  sim::SimRandom random(seed);
  Model model;
  Machine machine;
  const int lives = static_cast<int>(1 + random.below(4));
  for (int i = 0; i <= lives; i++) {
    Life life;
    life.seed = seed * 10 + static_cast<uint64_t>(i);
    life.config = crash_config();
    if (seed % 4 == 0) life.config.flushDiskType = "ASYNC_FLUSH";
    life.final = i == lives;
    life.last_ms = life.final ? 60'000 : random.between(2000, 9000);
    life.down_ms = random.between(0, 2500);
    life.sends = static_cast<int>(random.below(20));
    if (!life.final && random.below(5) != 0) life.crash_at = 50 + random.below(900);
    live_one(model, machine, life, fate_of(random.next()));
  }
  all.retries += model.retries;
  all.dead += model.dead;
  return machine.errors;
}

TEST(RetryCrash, RandomLives) {
  Model all;
  const uint64_t seeds = each_seed(40, [&](uint64_t seed) { return random_lives(seed, all); });
  EXPECT_GT(all.retries, static_cast<int>(seeds));
  EXPECT_GT(all.dead, 0);
}

}  // namespace
}  // namespace rmq::broker

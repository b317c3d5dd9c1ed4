// De-duplication on a machine that crashes, by seed: producers send each message again and again, at the same
// time, at once or delayed, alone or in batches, over crashes. All answers for one name one place, and it is
// there once. broker_dedup_test.cc has the crash at every point.
#include <map>

#include "crash_lives.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

constexpr int queues = 4;

struct Known {
  std::string place;  // the offset id that was answered
  bool safe = false;  // and a crash cannot take it
};
struct Model {
  std::vector<Known> messages;
  int repeated = 0;  // sends of what was known
};

struct Life : LifePlan {
  std::string rule;  // dedup.key
  int sends = 0;     // of each producer
  bool final = false;
};

struct Run {
  Model& model;
  const Life& plan;
  World* world = nullptr;
  LifeNow* now = nullptr;
  int64_t sent = 0;

  void error(size_t id, const std::string& text) {
    now->machine.error("message " + std::to_string(id) + " " + text);
  }
};

// UNIQ_KEY is the message's name, or KEYS is and each send has a UNIQ_KEY of its own.
std::string properties_of(Run& r, size_t id, std::string_view name = {}, std::string_view value = {}) {
  std::string out;
  const std::string key = "k" + std::to_string(id), life = std::to_string(r.plan.seed);
  const bool by_keys = r.plan.rule == "KEYS";
  proto::append_property(out, "UNIQ_KEY", by_keys ? "u" + life + "." + std::to_string(r.sent++) : key);
  if (by_keys) proto::append_property(out, "KEYS", key);
  if (!name.empty()) proto::append_property(out, name, value);
  return out;
}

size_t any_message(Run& r, Random& random) {
  const bool is_new = r.model.messages.empty() || random.below(2) == 0;
  if (is_new) r.model.messages.emplace_back();
  const size_t all = r.model.messages.size();
  return is_new ? all - 1 : random.below(all);
}

// Answered: where it is.
void answered(Run& r, size_t id, std::string_view place) {
  Known& k = r.model.messages[id];
  if (!k.place.empty()) r.model.repeated++;
  if (!k.place.empty() && k.place != place) r.error(id, "is at " + k.place + " and at " + std::string(place));
  k.place = place;
}

Task<void> send_alone(Run& r, Peer& peer, Random& random) {
  const size_t id = any_message(r, random);
  constexpr std::string_view delays[] = {"", "DELAY", "TIMER_DELAY_MS"}, values[] = {"", "1", "700"};
  const size_t how = random.below(4) % 3;
  const std::string body = std::to_string(id) + " " + std::string(random.below(1500), 'x');
  const std::string properties = properties_of(r, id, delays[how], values[how]);
  auto a =
      co_await peer.call(r.world->send_frame("D", body, properties, std::to_string(random.below(queues))));
  if (!r.now->counts()) co_return;
  if (code_of(a) != 0) co_return r.error(id, "is refused: " + remark(a));
  answered(r, id, ext(a, "msgId"));
  bool safe = co_await is_safe_now(*r.world, *r.now);
  if (safe) r.model.messages[id].safe = true;
}

Task<void> send_batch(Run& r, Peer& peer, Random& random) {
  std::vector<size_t> ids;
  std::string body;
  for (uint64_t n = 2 + random.below(3); n > 0; n--) {
    ids.push_back(any_message(r, random));
    const std::string one = std::to_string(ids.back()) + " " + std::string(random.below(1500), 'x');
    proto::append_batch_message(body, 0, as_bytes(one), properties_of(r, ids.back()));
  }
  const std::string queue = std::to_string(random.below(queues));
  auto a = co_await peer.call(r.world->batch_frame("D", body, queue));
  if (!r.now->counts()) co_return;
  if (code_of(a) != 0) co_return r.error(ids[0], "and others are refused: " + remark(a));
  std::string places = ext(a, "msgId") + ",";
  for (size_t id : ids) {
    const size_t comma = places.find(',');
    if (comma == std::string::npos) co_return r.error(id, "has no place in " + ext(a, "msgId"));
    answered(r, id, places.substr(0, comma));
    places.erase(0, comma + 1);
  }
  bool safe = co_await is_safe_now(*r.world, *r.now);
  for (size_t id : ids) r.model.messages[id].safe = r.model.messages[id].safe || safe;
}

constexpr Producing<Run> producing{send_alone, send_batch, 4, 300};

Task<void> judge(Run& r) {
  std::map<size_t, int> there;
  for (int q = 0; q < queues; q++)
    co_await each_record(*r.world, *r.now, "D", q, 0, [&there](const proto::RecordView& record) {
      there[std::strtoull(reinterpret_cast<const char*>(record.body.data()), nullptr, 10)]++;
    });
  if (!r.now->counts()) co_return;
  for (size_t id = 0; id < r.model.messages.size(); id++) {
    if (there[id] > 1) r.error(id, "is there " + std::to_string(there[id]) + " times");
    if (r.model.messages[id].safe && there[id] == 0) r.error(id, "is lost");
  }
}

Task<void> work(World& w, LifeNow& now, Run& r) {
  r.world = &w;
  r.now = &now;
  // What a crash may have taken is new when it is sent again.
  for (Known& k : r.model.messages)
    if (!k.safe) k.place.clear();
  if (w.broker.topics.find("D") == nullptr)
    co_await make_topic(w, now, "D", queues, "+dedup.key=" + r.plan.rule);
  co_await produce_by_three(r, producing);
  if (!now.counts()) co_return;
  if (r.plan.final) {
    co_await sleep_for(5 * ns_per_s);  // what is delayed comes
    co_await judge(r);
  }
}

std::vector<std::string> random_lives(uint64_t seed, int& repeated) {
  sim::SimRandom random(seed);
  Model model;
  Machine machine;
  const int lives = static_cast<int>(1 + random.below(4));
  for (int i = 0; i <= lives; i++) {
    Life life;
    life.seed = seed * 10 + static_cast<uint64_t>(i);
    life.config = crash_config();
    life.config.messageDelayLevel = "1s 2s";
    life.config.mappedFileSizeCommitLog = 256 << 10;
    // Without it nothing tells garbage that a torn write has left in the properties, where the key is.
    life.config.enabledAppendPropCRC = true;
    if (seed % 4 == 0) life.config.flushDiskType = "ASYNC_FLUSH";
    life.rule = seed % 2 == 0 ? "KEYS" : "UNIQ_KEY";
    life.final = i == lives;
    life.sends = static_cast<int>(3 + random.below(15));
    life.down_ms = random.between(0, 2500);
    if (!life.final && random.below(5) != 0) life.crash_at = 20 + random.below(500);
    Run r{.model = model, .plan = life};
    live<Run&>(machine, life, fate_of(random.next()), work, r);
  }
  repeated += model.repeated;
  return machine.errors;
}

TEST(DedupCrash, RandomLives) {
  int repeated = 0;
  const uint64_t seeds = each_seed(60, [&](uint64_t seed) { return random_lives(seed, repeated); });
  EXPECT_GT(repeated, static_cast<int>(seeds)) << "messages are sent again";
}

}  // namespace
}  // namespace rmq::broker

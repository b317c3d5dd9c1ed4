// A compacted topic on a machine that crashes, by seed: producers send messages of few keys, at once, delayed
// or in batches, while the topic is copied and compacted and the CommitLog loses its old files. The latest
// message of each key that was safe is there after any crash, or a later one; what is there is what was sent,
// at the offset that was answered. store/compaction_test.cc has the crash at every point.
#include <map>

#include "crash_lives.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

constexpr int queues = 2;
constexpr uint64_t keys = 12;

struct Place {
  int queue = 0;
  int64_t offset = -1;
  auto operator<=>(const Place&) const = default;
};
struct Model {
  std::map<std::string, uint64_t> sent;              // body to key
  std::map<Place, std::string> answered;             // body; that a crash cannot take
  std::map<std::pair<int, uint64_t>, int64_t> safe;  // by queue and key: the offset of the latest
  int64_t next = 0;
  uint64_t removed = 0, deleted = 0, judged = 0;  // messages compacted away, files of the log gone
};

struct Life : LifePlan {
  int sends = 0;
  bool long_one = false;  // retention comes a minute after the start
};

struct Run {
  Model& model;
  const Life& plan;
  World* world = nullptr;
  LifeNow* now = nullptr;
  void error(const std::string& text) { now->machine.error(text); }
};

std::string new_body(Run& r, Random& random, uint64_t key) {
  const std::string body =
      std::to_string(key) + " " + std::to_string(r.model.next++) + " " + std::string(random.below(700), 'x');
  r.model.sent[body] = key;
  return body;
}

std::string properties_of(uint64_t key) {
  std::string out;
  proto::append_property(out, "KEYS", "key " + std::to_string(key));
  return out;
}

struct Sent {
  Place place;
  uint64_t key;
  std::string body;
};

// What was answered, and can no crash take any more.
Task<void> note_safe(Run& r, std::vector<Sent> all) {
  const bool safe = co_await is_safe_now(*r.world, *r.now);
  if (!safe) co_return;
  for (Sent& s : all) {
    int64_t& latest = r.model.safe.try_emplace({s.place.queue, s.key}, -1).first->second;
    latest = std::max(latest, s.place.offset);
    r.model.answered[s.place] = std::move(s.body);
  }
}

Task<void> send_alone(Run& r, Peer& peer, Random& random) {
  Sent s;
  s.key = random.below(keys);
  s.body = new_body(r, random, s.key);
  s.place.queue = static_cast<int>(random.below(queues));
  std::string properties = properties_of(s.key);
  const bool delayed = random.below(8) == 0;
  if (delayed) proto::append_property(properties, "DELAY", "1");
  auto a = co_await peer.call(r.world->send_frame("C", s.body, properties, std::to_string(s.place.queue)));
  if (!r.now->counts()) co_return;
  if (code_of(a) != 0) co_return r.error("refused: " + remark(a));
  if (delayed) co_return;
  s.place.offset = std::stoll(ext(a, "queueOffset"));
  std::vector<Sent> all;
  all.push_back(std::move(s));
  co_await note_safe(r, std::move(all));
}

Task<void> send_batch(Run& r, Peer& peer, Random& random) {
  std::vector<Sent> all;
  std::string body;
  const int queue = static_cast<int>(random.below(queues));
  for (uint64_t n = 2 + random.below(4); n > 0; n--) {
    Sent& s = all.emplace_back();
    s.key = random.below(keys);
    s.body = new_body(r, random, s.key);
    proto::append_batch_message(body, 0, as_bytes(s.body), properties_of(s.key));
  }
  auto a = co_await peer.call(r.world->batch_frame("C", body, std::to_string(queue)));
  if (!r.now->counts()) co_return;
  if (code_of(a) != 0) co_return r.error("a batch is refused: " + remark(a));
  int64_t offset = std::stoll(ext(a, "queueOffset"));
  for (Sent& s : all) s.place = {queue, offset++};
  co_await note_safe(r, std::move(all));
}

constexpr Producing<Run> producing{send_alone, send_batch, 5, 400};

Task<void> judge(Run& r) {
  const Model& m = r.model;
  for (int q = 0; q < queues; q++) {
    std::map<uint64_t, int64_t> latest;
    int64_t before = -1;
    co_await each_record(*r.world, *r.now, "C", q, 0, [&](const proto::RecordView& record) {
      const std::string body(as_text(record.body));
      const auto sent = m.sent.find(body);
      if (sent == m.sent.end())
        return r.error("somebody else's message at " + std::to_string(record.queue_offset));
      if (record.queue_offset <= before) r.error("not in order at " + std::to_string(record.queue_offset));
      before = record.queue_offset;
      latest[sent->second] = record.queue_offset;
      const auto answered = m.answered.find({q, record.queue_offset});
      if (answered != m.answered.end() && answered->second != body)
        r.error("another message at offset " + std::to_string(record.queue_offset));
    });
    if (!r.now->counts()) co_return;
    for (const auto& [where, offset] : m.safe) {
      if (where.first != q) continue;
      const auto found = latest.find(where.second);
      if (found == latest.end() || found->second < offset)
        r.error("the latest message of key " + std::to_string(where.second) + " in queue " +
                std::to_string(q) + " is lost: offset " + std::to_string(offset));
    }
  }
  r.model.judged++;
}

Task<void> work(World& w, LifeNow& now, Run& r) {
  r.world = &w;
  r.now = &now;
  co_await judge(r);
  if (w.broker.topics.find("C") == nullptr)
    co_await make_topic(w, now, "C", queues, "+cleanup.policy=COMPACTION");
  co_await produce_by_three(r, producing);
  if (r.plan.long_one && now.counts()) co_await sleep_for(70 * ns_per_s);
  if (now.counts()) co_await judge(r);
  r.model.removed += w.store->stats().compaction_removed_messages;
  r.model.deleted += w.store->stats().log_files_deleted;
}

struct Totals {
  uint64_t removed = 0, deleted = 0;
};

std::vector<std::string> random_lives(uint64_t seed, Totals& totals) {
  sim::SimRandom random(seed);
  Model model;
  Machine machine;
  const int lives = static_cast<int>(2 + random.below(4));
  for (int i = 0; i <= lives; i++) {
    Life life;
    life.seed = seed * 10 + static_cast<uint64_t>(i);
    life.config = crash_config();
    life.config.messageDelayLevel = "1s 2s";
    life.config.mappedFileSizeCommitLog = 32 << 10;
    life.config.maxMessageSize = 4096;
    life.config.compactionCqMappedFileSize = 20 * 46;
    life.config.compactionMappedFileSize = 4096;
    life.config.compactionScheduleInternal = 1000;
    if (seed % 3 == 0) life.config.maxOffsetMapSize = 4096;
    life.config.discardPolicy = "fifo";
    life.config.discardBytes = 40 << 10;
    life.config.cleanResourceInterval = 200;
    if (seed % 4 == 0) life.config.flushDiskType = "ASYNC_FLUSH";
    life.sends = static_cast<int>(10 + random.below(40));
    life.long_one = random.below(2) == 0;
    life.down_ms = random.between(0, 2500);
    if (i < lives && random.below(5) != 0) life.crash_at = 20 + random.below(1500);
    Run r{.model = model, .plan = life};
    live<Run&>(machine, life, fate_of(random.next()), work, r);
  }
  totals.removed += model.removed;
  totals.deleted += model.deleted;
  if (model.judged == 0) machine.error("nothing was judged");
  return machine.errors;
}

TEST(CompactionCrash, RandomLives) {
  Totals totals;
  const uint64_t seeds = each_seed(40, [&](uint64_t seed) { return random_lives(seed, totals); });
  EXPECT_GT(totals.removed, seeds * 10) << "messages are compacted away";
  EXPECT_GT(totals.deleted, seeds) << "the log loses files";
}

}  // namespace
}  // namespace rmq::broker

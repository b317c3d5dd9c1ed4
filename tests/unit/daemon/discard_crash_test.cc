// Discard policies on a machine that crashes at every write: a queue never begins before what was discarded,
// nothing else is lost, and what is counted fits what went.
#include "crash_lives.h"
#include "proto/bodies_config.h"

namespace rmq::broker {
namespace {

constexpr int queues = 2;
constexpr int64_t fifo_bytes = 40'000, age_ms = 2500, lru_bytes = 120'000;
constexpr int64_t bucket_bytes = 4096, body_bytes = 3000, record_bytes_max = 3200;
const char* const topic_names[] = {"Fifo", "Aged", "Lru1", "Lru2", "Kept"};

struct Stored {
  std::string topic;
  int32_t queue = 0;
  int64_t offset = 0, physical = 0, bytes = 0, sent_ms = 0;
  int life = 0;
};
using QueueKey = std::pair<std::string, int32_t>;

// Outlives the machine. Times are true ones.
struct DiscardModel {
  std::vector<Stored> safe;                  // they were answered and on stable storage
  std::map<QueueKey, int64_t> begins, ends;  // of queues, as anybody saw them
  std::vector<std::string> errors;
  int64_t lived_ms = 0;
  int lives = 0;
  void error(std::string text) { errors.push_back(std::move(text)); }
};

struct DiscardLife {
  uint64_t seed = 1;
  std::string flush = "SYNC_FLUSH";
  int rounds = 0;         // of sends, 250 ms each
  uint64_t crash_at = 0;  // point of the disk
};

struct Life {
  DiscardModel& model;
  const DiscardLife& plan;
  sim::SimLoop& loop;
  sim::SimDisk& disk;
  BrokerConfig config{};
  std::unique_ptr<store::MessageStore> store{};
  std::unique_ptr<Broker> broker{};
  std::map<QueueKey, int64_t> began{};  // this life's
  int64_t now_ms() const { return model.lived_ms + (loop.clock().mono_ns() - ns_per_s) / ns_per_ms; }
  bool counts() const { return !disk.crashed(); }
};

BrokerConfig small_config(const std::string& flush) {
  BrokerConfig c = test_config();
  c.namesrvAddr = "";
  c.messageIndexEnable = false;
  c.timerWheelEnable = false;
  c.flushDiskType = flush;
  c.flushIntervalCommitLog = 20;
  c.mappedFileSizeCommitLog = 128 << 10;
  c.mappedFileSizeConsumeQueue = 200;
  c.cleanResourceInterval = 700;
  c.deleteCommitLogFilesInterval = 1;
  c.deleteConsumeQueueFilesInterval = 1;
  c.discardPolicy = "lru";
  c.discardBytes = lru_bytes;
  return c;
}

Task<void> make_topics(Life& l) {
  for (const char* name : topic_names) {
    proto::TopicConfig c;
    c.topic_name = name;
    c.read_queue_nums = c.write_queue_nums = queues;
    if (c.topic_name == "Fifo")
      c.attributes = {{"discard.policy", "fifo"}, {"discard.bytes", std::to_string(fifo_bytes)}};
    if (c.topic_name == "Aged")
      c.attributes = {{"discard.policy", "age"}, {"discard.age.ms", std::to_string(age_ms)}};
    if (c.topic_name == "Kept") c.attributes = {{"discard.policy", "none"}};
    l.broker->topics.put(std::move(c), l.broker->wall_ms());
  }
  auto saved = co_await l.broker->topics.save();
  EXPECT_TRUE(saved || !l.counts());
}

Task<void> send_one(Life& l, std::string_view topic, int32_t queue) {
  std::string body(static_cast<size_t>(body_bytes), 'x');
  store::MessageIn m;
  m.topic = topic;
  m.queue_id = queue;
  m.store_host = l.broker->store_host;
  m.body = as_bytes(body);
  const int64_t sent_ms = l.now_ms();
  auto put = co_await l.store->put(m);
  if (!l.counts()) co_return;
  if (put.status != store::PutMessageStatus::PUT_OK) co_return l.model.error("a send was refused");
  const int64_t end = put.physical_offset + put.total_bytes;
  while (l.counts() && l.store->flushed_offset() < end) co_await sleep_for(5 * ns_per_ms);
  if (!l.counts()) co_return;
  l.model.safe.push_back({std::string(topic), queue, put.queue_offset, put.physical_offset, put.total_bytes,
                          sent_ms, l.model.lives});
}

// What a consumer could have seen.
void watch(Life& l) {
  if (!l.counts()) return;
  for (const char* topic : topic_names)
    for (int32_t q = 0; q < queues; q++) {
      int64_t& begin = l.model.begins[{topic, q}];
      const int64_t now = std::max<int64_t>(l.store->min_offset(topic, q), 0);
      if (now < begin) l.model.error(std::string(topic) + " begins earlier than it did");
      begin = now;
    }
}

Task<void> work(Life& l) {
  for (const char* topic : topic_names)
    for (int32_t q = 0; q < queues; q++) l.broker->offsets.commit("slow", topic, q, 3);
  for (int round = 0; round < l.plan.rounds && l.counts() && l.store->writable(); round++) {
    for (const char* topic : topic_names) {
      co_await send_one(l, topic, round % queues);
      watch(l);
    }
    l.broker->discard.note_read("Lru1");
    co_await sleep_for(250 * ns_per_ms);
    watch(l);
  }
}

// Messages that went although the policy of their topic had no reason.
void judge_cut(Life& l, const std::string& topic, int64_t cut) {
  int64_t total = 0, kept = 0;
  for (const Stored& m : l.model.safe) {
    if (m.topic != topic) continue;
    total += m.bytes;
    if (m.physical >= cut) kept += m.bytes;
    if (topic == "Aged" && m.physical < cut && l.now_ms() - m.sent_ms < age_ms)
      l.model.error("a young message of Aged was discarded");
  }
  if (topic == "Fifo" && kept < std::min(total, fifo_bytes - bucket_bytes - record_bytes_max))
    l.model.error("Fifo keeps " + std::to_string(kept) + " bytes of " + std::to_string(total));
  if (topic == "Kept") l.model.error("Kept was discarded up to " + std::to_string(cut));
}

Task<void> check_queue(Life& l, const std::string& topic, int32_t q, int64_t cut) {
  const int64_t begin = std::max<int64_t>(l.store->min_offset(topic, q), 0),
                end = l.store->max_offset(topic, q);
  const std::string name = topic + " " + std::to_string(q);
  const bool all_durable = l.plan.flush == "SYNC_FLUSH";
  int64_t& seen = l.model.begins[{topic, q}];
  if (begin < (all_durable ? seen : std::min(seen, end)))
    l.model.error(name + " begins at " + std::to_string(begin) + " again, it was at " + std::to_string(seen));
  seen = begin;
  l.began[{topic, q}] = begin;
  for (const Stored& m : l.model.safe) {
    if (m.topic != topic || m.queue != q) continue;
    if (m.offset >= end) l.model.error(name + " lost its end");
    if (m.offset < begin && m.physical >= cut)
      l.model.error(name + " lost " + std::to_string(m.offset) + ", which was not discarded");
  }
  for (int64_t next = begin; next < end && l.counts();) {
    auto r = co_await l.store->get(topic, q, next, 32, nullptr);
    if (!l.counts()) co_return;
    if (r.status != store::GetMessageStatus::FOUND) {
      l.model.error(name + " cannot be read at " + std::to_string(next));
      co_return;
    }
    next = r.next_begin_offset;
  }
}

Task<void> check_all(Life& l) {
  auto file = co_await store::load_file(l.disk, "/store/config/discardedBelow.json", nullptr);
  std::map<std::string, int64_t, std::less<>> cuts;
  if (file) {
    auto table = proto::KVTable::parse(file->content);
    if (table)
      for (const auto& [topic, text] : table->table) cuts[topic] = std::strtoll(text.c_str(), nullptr, 10);
  }
  if (!l.counts()) co_return;
  for (const char* topic : topic_names) {
    const int64_t cut = cuts.contains(topic) ? cuts[topic] : 0;
    if (cut > l.store->confirm_offset())
      l.model.error(std::string(topic) + " is discarded behind the log's end");
    if (cut > 0) judge_cut(l, topic, cut);
    // A file of the log goes when nothing in it is needed: what was discarded may be known no more.
    const int64_t gone = std::max(cut, l.store->min_physical_offset());
    for (int32_t q = 0; q < queues; q++) co_await check_queue(l, topic, q, gone);
  }
}

// What "slow" had not consumed when its messages went, since the start.
void judge_counters(Life& l) {
  uint64_t expected = 0;
  for (const char* topic : topic_names)
    for (int32_t q = 0; q < queues; q++) {
      const int64_t begin = std::max<int64_t>(l.store->min_offset(topic, q), 0);
      const int64_t from = std::max<int64_t>(l.began[{topic, q}], 3);
      if (begin > from) expected += static_cast<uint64_t>(begin - from);
    }
  const auto& lost = l.broker->discard.lost_by_group();
  auto it = lost.find("slow");
  const uint64_t counted = it == lost.end() ? 0 : it->second;
  if (counted != expected)
    l.model.error("counted " + std::to_string(counted) + " lost messages, there are " +
                  std::to_string(expected));
}

Task<void> run(Life& l, sim::SimNet& net) {
  l.config = small_config(l.plan.flush);
  auto opened = co_await store::MessageStore::open(l.disk, store_options_of(l.config), nullptr);
  if (!opened) {
    if (l.counts()) l.model.error("cannot open: " + to_string(opened.error()));
    co_return;
  }
  l.store = std::move(*opened);
  l.broker = std::make_unique<Broker>(l.config, l.disk, net, *l.store);
  auto loaded = co_await l.broker->load();
  if (!loaded && l.counts()) l.model.error("cannot load: " + to_string(loaded.error()));
  if (loaded) {
    co_await make_topics(l);
    if (l.counts()) co_await check_all(l);
    l.broker->start();
    if (l.counts()) co_await work(l);
    co_await l.broker->stop();
    if (l.counts()) judge_counters(l);
  }
  co_await l.broker->save_all();
  co_await l.store->shutdown();
}

uint64_t live(DiscardModel& model, sim::DiskImage& image, const DiscardLife& life,
              const sim::CrashFate& fate) {
  sim::LoopOptions options;
  options.start_wall_step_ms = model.lived_ms;
  sim::SimLoop loop(life.seed, options);
  sim::SimNetwork network(loop);
  sim::SimNet net(network, "10.0.0.1");
  sim::DiskPlan plan;
  plan.crash_at = life.crash_at;
  sim::SimDisk disk(loop, plan, image);
  Life l{model, life, loop, disk};
  loop.run(run(l, net));
  for (const std::string& v : disk.violations()) model.error("disk: " + v);
  const uint64_t points = disk.points();
  l.broker.reset();
  l.store.reset();
  if (!disk.crashed()) disk.crash_now();
  image = disk.crash_image(fate);
  model.lived_ms = l.now_ms();
  model.lives++;
  return points;
}

// Crashes there; then a life that sends a few more and ends before any policy acts; then looks.
std::vector<std::string> crash_at(const std::string& flush, uint64_t point) {
  DiscardModel model;
  sim::DiskImage image = sim::empty_image();
  live(model, image, {.seed = 1, .flush = flush, .rounds = 36, .crash_at = point}, fate_of(point));
  live(model, image, {.seed = 2, .flush = flush, .rounds = 1}, fate_of(point + 1));
  const auto late = model.safe;
  live(model, image, {.seed = 3, .flush = flush}, fate_of(0));
  for (const Stored& m : late)
    if (m.life == 1 && m.offset < model.begins[{m.topic, m.queue}])
      model.error("a message that came after the crash was discarded: " + m.topic);
  return model.errors;
}

void at_every_point(const std::string& flush) {
  log_set_level(LogLevel::error);
  DiscardModel model;
  sim::DiskImage image = sim::empty_image();
  const uint64_t points =
      live(model, image, {.seed = 1, .flush = flush, .rounds = 36}, sim::CrashFate::all_lost(1));
  ASSERT_TRUE(model.errors.empty()) << text_of(model.errors);
  for (const char* topic : {"Fifo", "Aged", "Lru2"})
    ASSERT_GT((model.begins[{topic, 0}]), 0) << topic << " has lost nothing";
  each_point(points, flush.c_str(), [&flush](uint64_t point, uint64_t) { return crash_at(flush, point); });
}

TEST(DiscardCrash, AtEveryPointSyncFlush) {
  at_every_point("SYNC_FLUSH");
}
TEST(DiscardCrash, AtEveryPointAsyncFlush) {
  at_every_point("ASYNC_FLUSH");
}

}  // namespace
}  // namespace rmq::broker

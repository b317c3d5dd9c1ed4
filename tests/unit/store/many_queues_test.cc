// Stores of very many queues: their files are written in few steps, synced at once, and found again.
#include "machine.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr int topics = 150;

std::string topic_of(int i) {
  return "Topic" + std::to_string(i);
}

Task<void> put_each(Ctx& c, int rounds) {
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < topics; i++) {
      auto put = co_await c.put(topic_of(i), i % 4, "m" + std::to_string(r));
      CO_ASSERT(put.status == PutMessageStatus::PUT_OK);
    }
}

Task<void> expect_each(Ctx& c, int64_t messages) {
  for (int i = 0; i < topics; i++) {
    EXPECT_EQ(c.store->max_offset(topic_of(i), i % 4), messages) << i;
    auto r = co_await c.store->get(topic_of(i), i % 4, messages - 1, 32, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"m0"})) << i;
  }
}

TEST(ManyQueues, AreSyncedAtOnce) {
  Machine m;
  m.options.checkpoint_interval_ms = 100;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await put_each(c, 1);
        const auto before = c.disk.counters();
        const uint64_t checkpoints = c.store->stats().checkpoints;
        while (c.store->stats().checkpoints < checkpoints + 2) {
          co_await c.put("Last", 0, "x");
          co_await sleep_for(50 * ns_per_ms);
        }
        EXPECT_GE(c.disk.counters().all_syncs, before.all_syncs + 1);
        EXPECT_LT(c.disk.counters().syncs + c.disk.counters().dir_syncs,
                  before.syncs + before.dir_syncs + 40);
      },
      End::power_lost);
  m.run([](Ctx& c) -> Task<void> { co_await expect_each(c, 1); });
  EXPECT_FALSE(m.recovery.queues_rebuilt);
  EXPECT_LT(m.recovery.records, static_cast<uint64_t>(topics)) << "the checkpoint has their units";
}

TEST(ManyQueues, CutAfterACrash) {
  Machine m;
  m.options.checkpoint_interval_ms = 60'000;
  m.run([](Ctx& c) -> Task<void> { co_await put_each(c, 1); });
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await put_each(c, 3);
        co_await sleep_for(3 * ns_per_s);  // units are in the files, the checkpoint does not know of them
      },
      End::kill);
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < topics; i++) EXPECT_EQ(c.store->max_offset(topic_of(i), i % 4), 4) << i;
    co_return;
  });
  EXPECT_FALSE(m.recovery.queues_rebuilt);
}

TEST(ManyQueues, AFailedSyncOfAllStopsTheStore) {
  Machine m;
  m.options.checkpoint_interval_ms = 1000;
  m.plan.faults.push_back(
      {.kind = sim::FaultKind::io_error, .op = sim::OpKind::sync, .path_part = "consumequeue"});
  m.run([](Ctx& c) -> Task<void> {
    co_await put_each(c, 1);
    co_await sleep_for(3 * ns_per_s);
    EXPECT_FALSE(c.store->writable());
  });
}

// With few units each: a write a second for every queue would be as many writes as messages.
TEST(ManyQueues, AreWrittenSeldom) {
  Machine m;
  m.options.queue_write_interval_ms = 10;
  m.options.checkpoint_interval_ms = 60'000;
  m.run([](Ctx& c) -> Task<void> {
    Scope puts;
    std::vector<MessageIn> batch;
    std::vector<std::string> names;
    for (int i = 0; i < 3000; i++) names.push_back(topic_of(i));
    for (int r = 0; r < 3; r++) {
      for (int i = 0; i < 3000; i += 100) {
        batch.clear();
        for (int k = i; k < i + 100; k++)
          batch.push_back(Ctx::message(names[static_cast<size_t>(k)], 0, "m"));
        auto put = co_await c.store->put_batch(batch);
        CO_ASSERT(put.status == PutMessageStatus::PUT_OK);
      }
    }
    uint64_t after = c.store->stats().queue_writes;
    EXPECT_LT(after, 6000u) << "9,000 units";
    co_await sleep_for(2 * ns_per_s);
    EXPECT_EQ(c.store->stats().unwritten_units, 0u);
  });
}

// Machine `m` between two lives.
void change(Machine& m, Task<void> (*f)(SimDisk&)) {
  SimLoop loop(m.seed);
  SimDisk disk(loop, {}, m.image);
  loop.run(f(disk));
  m.image = disk.visible_image();
}

Task<void> expect_no_queues(SimDisk& d) {
  auto rest = co_await d.list("/store/consumequeue");
  EXPECT_TRUE(rest && rest->empty());
}

Task<void> nothing(Ctx&) {
  co_return;
}

// What a directory had before it was emptied, by a process that was killed, would come back with it.
TEST(ManyQueues, AnEmptyDirectoryOfATopicGoesForGood) {
  Machine m;
  m.run(nothing);
  change(m, [](SimDisk& d) -> Task<void> {
    auto made = co_await d.make_dirs("/store/consumequeue/Gone");
    EXPECT_TRUE(made);
  });
  m.run(nothing, End::power_lost);
  change(m, expect_no_queues);
}

// It did come back, and the stop after that was in order.
TEST(ManyQueues, AnEmptyFileOfAQueueThatIsNotThereGoes) {
  Machine m;
  m.run(nothing);
  change(m, [](SimDisk& d) -> Task<void> {
    auto made = co_await d.make_dirs("/store/consumequeue/Gone/1");
    EXPECT_TRUE(made);
    auto f =
        co_await d.open("/store/consumequeue/Gone/1/00000000000000000000", {.write = true, .create = true});
    CO_ASSERT(f.has_value());
    auto sized = co_await (*f)->truncate(6000);
    EXPECT_TRUE(sized);
    co_await (*f)->close();
  });
  m.run(nothing);
  change(m, expect_no_queues);
}

Task<void> expect_25(Ctx& c) {
  EXPECT_EQ(c.store->min_offset("T", 1), 0);
  EXPECT_EQ(c.store->max_offset("T", 1), 25);
  auto r = co_await c.store->get("T", 1, 0, 1, nullptr);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"m0"}));
}

TEST(ManyQueues, AFirstFileThatIsMissingIsMadeAgain) {
  Machine m;
  m.options.consume_queue_file_units = 10;
  m.run([](Ctx& c) -> Task<void> {
    co_await c.put("Other", 0, "x");
    for (int i = 0; i < 25; i++) co_await c.put("T", 1, "m" + std::to_string(i));
  });
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_FALSE(c.store->stats().recovery.queues_rebuilt);
    co_await expect_25(c);
  });
  m.remove_files("consumequeue/T/1/00000000000000000000");
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_TRUE(c.store->stats().recovery.queues_rebuilt);
    co_await expect_25(c);
  });
}

}  // namespace
}  // namespace rmq::store::test

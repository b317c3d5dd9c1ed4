// A queue's offsets never begin again, whatever became of its files, when the log has nothing of it any more.
#include <algorithm>
#include <iterator>

#include "offline_dir.h"
#include "store/ends_format.h"
#include "store/format.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr int64_t minute_ns = 60 * ns_per_s;
constexpr uint64_t log_file = 8192;
const std::string old_file = "consumequeue/Old/3/00000000000000000000";
const std::string ends_file = "rmqd.ends";

class Small : public Machine {
 public:
  Small() {
    options.commit_log_file_bytes = log_file;
    options.consume_queue_file_units = 10;
    options.checkpoint_interval_ms = 1000;
    options.index = false;
    options.retention.delete_hours = 0xffffff;
    options.retention.file_reserved_ms = 3'600'000;
  }
  // Of queues of that topic. Those of T may be there or not: it has messages.
  std::vector<QueueEnd> ends(std::string_view topic = "Old") const {
    std::vector<QueueEnd> out;
    auto f = decode_queue_ends(as_bytes(file(ends_file)));
    EXPECT_TRUE(f.has_value());
    if (f)
      std::copy_if(f->queues.begin(), f->queues.end(), std::back_inserter(out),
                   [&](const QueueEnd& e) { return e.topic == topic; });
    return out;
  }
};

// Five messages of an old queue, then so many others that the log loses the five.
Task<void> outlive(Ctx& c) {
  for (int i = 0; i < 5; i++) co_await c.put("Old", 3, "old");
  for (int i = 0; i < 40; i++) {
    co_await c.put("T", i % 2, std::string(900, 'x'));
    co_await sleep_for(5 * minute_ns);
  }
  EXPECT_EQ(c.store->min_offset("Old", 3), 5);
  EXPECT_EQ(c.store->max_offset("Old", 3), 5);
}

Task<void> goes_on_at_five(Ctx& c) {
  EXPECT_EQ(c.store->min_offset("Old", 3), 5);
  EXPECT_EQ(c.store->max_offset("Old", 3), 5);
  auto r = co_await c.put("Old", 3, "new");
  EXPECT_EQ(r.queue_offset, 5);
  auto got = co_await c.store->get("Old", 3, 5, 32, nullptr);
  EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"new"}));
}

std::string unit(int64_t physical, int32_t bytes) {
  std::string u(unit_bytes, '\0');
  encode_unit(reinterpret_cast<std::byte*>(u.data()), {physical, bytes, 0});
  return u;
}

std::string noise(size_t bytes) {
  std::string s;
  for (uint32_t x = 12345; s.size() < bytes; x = x * 1'664'525 + 1'013'904'223)
    s.push_back(static_cast<char>(x >> 24));
  return s;
}

TEST(QueueEnds, AreWrittenBeforeTheLogForgets) {
  Small m;
  m.run(outlive, End::power_lost);
  EXPECT_EQ(m.ends(), (std::vector<QueueEnd>{{"Old", 3, 5}}));
}

TEST(QueueEnds, WhateverIsInTheQueuesFiles) {
  const std::string damages[] = {
      std::string(200, '\0'),                       // lost
      noise(200),                                   // garbage
      std::string(40, '\0') + noise(160),           // both
      unit(100, 50) + unit(90, 50) + unit(80, 50),  // units, out of order
      unit(1, 91) + unit(100, 91),                  // fewer units than there were
      unit(0, 91) + unit(91, 91) + unit(200, 91) + unit(300, 91) + unit(400, 91) + unit(500, 91),
  };
  for (const std::string& damage : damages) {
    for (End end : {End::stop, End::kill, End::power_lost}) {
      Small m;
      m.run(outlive, end);
      m.damage(old_file, 0, damage);
      m.run(goes_on_at_five, End::kill);
      EXPECT_FALSE(m.recovery.queues_rebuilt) << "it is known where the queue ends";
      m.run([](Ctx& c) -> Task<void> {
        auto got = co_await c.store->get("Old", 3, 5, 32, nullptr);
        EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"new"}));
      });
    }
  }
}

TEST(QueueEnds, ARebuildKeepsThem) {
  for (const char* lost : {"consumequeue/", "consumequeue/Old/", "rmqd.checkpoint", "consumequeue/T/1/"}) {
    Small m;
    m.run(outlive, End::power_lost);
    m.remove_files(lost);
    m.run(goes_on_at_five, End::power_lost);
    EXPECT_EQ(m.recovery.queues_rebuilt, std::string_view(lost) != "consumequeue/Old/");
    m.run([](Ctx& c) -> Task<void> {
      EXPECT_EQ(c.store->max_offset("Old", 3), 6);
      co_return;
    });
  }
}

// RocketMQ's directories and those of earlier versions have no such file: what the queue's files say is taken
// over. Of them units count that are in order and below the log.
TEST(QueueEnds, AreLearnedFromFilesThatAreInOrder) {
  const std::pair<std::string, int64_t> more[] = {
      {"", 5},
      {unit(10, 91), 5},                  // goes back
      {unit(500, 0), 5},                  // no record
      {unit(600, 91) + unit(50, 91), 6},  // one that may be right, one that is not
  };
  for (const auto& [units, end] : more) {
    Small m;
    m.run(outlive, End::stop);
    m.remove_files(ends_file);
    m.remove_files("rmqd.checkpoint");
    if (!units.empty()) m.damage(old_file, 5 * unit_bytes, units);
    static int64_t expected;
    expected = end;
    m.run(
        [](Ctx& c) -> Task<void> {
          EXPECT_EQ(c.store->max_offset("Old", 3), expected);
          EXPECT_EQ(c.store->min_offset("Old", 3), expected);
          co_return;
        },
        End::power_lost);
    EXPECT_EQ(m.ends(), (std::vector<QueueEnd>{{"Old", 3, end}}));
    m.remove_files("consumequeue/");
    m.run([](Ctx& c) -> Task<void> {
      EXPECT_EQ(c.store->max_offset("Old", 3), expected);
      co_return;
    });
  }
}

// A queue of several files, all but the last of which retention took, the last one lost.
TEST(QueueEnds, OfAQueueThatLosesItsLastFile) {
  Small m;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 25; i++) co_await c.put("Old", 3, "old");
        for (int i = 0; i < 40; i++) {
          co_await c.put("T", i % 2, std::string(900, 'x'));
          co_await sleep_for(5 * minute_ns);
        }
      },
      End::power_lost);
  EXPECT_FALSE(m.exists(old_file));
  m.damage("consumequeue/Old/3/00000000000000000400", 0, noise(200));
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("Old", 3), 25);
    auto r = co_await c.put("Old", 3, "new");
    EXPECT_EQ(r.queue_offset, 25);
  });
}

TEST(QueueEnds, OfADeletedTopicAreForgotten) {
  Small m;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await outlive(c);
        co_await c.store->delete_topic("Old");
        auto r = co_await c.put("Old", 3, "again");
        EXPECT_EQ(r.queue_offset, 0);
      },
      End::power_lost);
  EXPECT_TRUE(m.ends().empty());
  m.remove_files("consumequeue/");
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("Old", 3), 1);
    co_return;
  });
}

// The file was written, the log's file did not go: its messages are there.
TEST(QueueEnds, DoNotHideWhatTheLogStillHas) {
  Small m;
  m.plan.faults.push_back({.kind = sim::FaultKind::io_error,
                           .op = sim::OpKind::remove,
                           .path_part = "/commitlog",
                           .nth = 1,
                           .times = 1'000'000});
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 5; i++) co_await c.put("Old", 3, "old");
        for (int i = 0; i < 40; i++) {
          co_await c.put("T", i % 2, std::string(900, 'x'));
          co_await sleep_for(5 * minute_ns);
        }
      },
      End::power_lost);
  EXPECT_EQ(m.ends(), (std::vector<QueueEnd>{{"Old", 3, 5}}));
  m.plan.faults.clear();
  m.options.retention.delete_hours = 0;
  for (const char* lost : {"consumequeue/Old/", "consumequeue/"}) {
    m.remove_files(lost);
    m.run(
        [](Ctx& c) -> Task<void> {
          EXPECT_EQ(c.store->min_physical_offset(), 0);
          EXPECT_EQ(c.store->min_offset("Old", 3), 0);
          auto got = co_await c.store->get("Old", 3, 0, 32, nullptr);
          EXPECT_EQ(bodies_of(got).size(), 5u);
        },
        End::power_lost);
  }
}

// A disk without room for the file: what is deleted makes it, and then it is written.
TEST(QueueEnds, AFullDiskIsStillCleaned) {
  Small m;
  m.plan.faults.push_back(
      {.kind = sim::FaultKind::no_space, .op = sim::OpKind::write, .path_part = ends_file, .nth = 1});
  m.run(outlive, End::power_lost);
  EXPECT_EQ(m.ends(), (std::vector<QueueEnd>{{"Old", 3, 5}}));
}

TEST(QueueEnds, ABrokenFileIsAsNone) {
  Small m;
  m.run(outlive, End::power_lost);
  m.damage(ends_file, 20, "broken");
  m.run(goes_on_at_five);
}

// store check counts a queue without files that is in rmqd.ends, as a broker does.
TEST(QueueEnds, AStoreCheckKnowsThem) {
  Small m;
  m.run(outlive, End::stop);
  m.damage(old_file, 0, noise(200));
  m.run([](Ctx&) -> Task<void> { co_return; });
  EXPECT_FALSE(m.exists(old_file));
  OfflineDir d(m);
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  d.flip(ends_file, 30);
  auto broken = checked(d);
  EXPECT_GE(broken.findings.count(offline::Severity::damage, offline::Kind::checkpoint), 1u)
      << text_of(broken);
}

TEST(QueueEnds, Format) {
  const QueueEndsFile f{8192, {{"Old", 3, 5}, {"%RETRY%g", 0, int64_t{1} << 40}}};
  std::string text = encode_queue_ends(f);
  auto back = decode_queue_ends(as_bytes(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->log_begin, 8192);
  EXPECT_EQ(back->queues, f.queues);
  for (size_t i = 0; i < text.size(); i++) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 4);
    EXPECT_FALSE(decode_queue_ends(as_bytes(other))) << i;
    EXPECT_FALSE(decode_queue_ends(as_bytes(text.substr(0, i)))) << i;
  }
}

}  // namespace
}  // namespace rmq::store::test

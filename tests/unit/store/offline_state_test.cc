// What store check makes of states that are no damage: retention, deleted topics, a broker that was killed, a
// store that is open, a store of another kind.
#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "offline_dir.h"

namespace rmq::store::test {
namespace {

using offline::Kind;
using offline::Severity;

const std::string log0 = "commitlog/00000000000000000000";

Task<void> three_files(Ctx& c) {
  std::string fill(50'000, 'f');
  for (int i = 0; i < 45; i++) co_await c.put("T", i % 3, fill);
  co_await c.put("U", 0, "late");
}

TEST(OfflineState, RetentionIsNoDamage) {
  Machine m;
  m.run(three_files);
  OfflineDir d(m);
  d.remove(log0);
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.log_begin, 1u << 20);
  EXPECT_EQ(r.queues.expired + r.queues.units, 46u);
  EXPECT_GT(r.queues.expired, 10u);
  // But the first record that is left must have its unit.
  std::string queue = "consumequeue/T/0/00000000000000000000";
  auto expired_of_t0 = static_cast<uint64_t>(r.queues.expired + 2) / 3;
  d.write(queue, 20 * expired_of_t0, std::string(20, '\0'));
  auto bad = checked(d);
  EXPECT_EQ(bad.findings.count(Severity::damage, Kind::unit_missing), 1u) << text_of(bad);
}

// Killed between making a queue's file and giving it its size: its records have no units yet.
TEST(OfflineState, AnEmptyQueueFileIsNoDamage) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> { co_await c.put("T", 0, "x"); }, End::kill);
  OfflineDir d(m);
  d.replace("consumequeue/T/0/00000000000000000000", "");
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.findings.count(Severity::note, Kind::queue_file), 1u) << text_of(r);
  EXPECT_EQ(r.queues.pending, 1u);
}

Task<void> delete_and_make_again(Ctx& c) {
  for (int i = 0; i < 5; i++) co_await c.put("T", 0, "old");
  for (int i = 0; i < 3; i++) co_await c.put("U", 0, "gone");
  co_await c.store->delete_topic("T");
  co_await c.store->delete_topic("U");
  for (int i = 0; i < 2; i++) co_await c.put("T", 0, "new");
}

TEST(OfflineState, DeletedTopicsAreNoDamage) {
  for (End end : {End::stop, End::kill}) {
    Machine m;
    m.run(delete_and_make_again, end);
    OfflineDir d(m);
    auto r = checked(d);
    EXPECT_TRUE(r.clean()) << text_of(r);
    EXPECT_EQ(r.queues.restarts, 1u);
    if (end == End::stop) {
      EXPECT_EQ(r.queues.deleted_topic_records, 8u);
    }
    EXPECT_EQ(r.records, 10u);
  }
}

// Without a checkpoint of ours topics.json tells a deleted topic from lost files.
TEST(OfflineState, TopicsTellDeletedFromLost) {
  Machine m;
  m.run(three_files);
  OfflineDir d(m);
  d.remove("rmqd.checkpoint");
  d.remove("consumequeue/T");
  d.replace("config/topics.json", "{}");
  TestHelper helper;
  helper.topics = {"U"};
  auto gone = check(d, helper);
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->clean()) << text_of(*gone);
  EXPECT_EQ(gone->queues.deleted_topic_records, 45u);
  helper.topics = {"T", "U"};
  auto lost = check(d, helper);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->findings.count(Severity::damage, Kind::unit_missing), 3u) << text_of(*lost);
}

// A killed broker: what is behind the checkpoint is made again at the next start; what is before it is not.
TEST(OfflineState, BehindTheCheckpointUnitsMayBeMissing) {
  Machine m;
  m.options.checkpoint_interval_ms = 1000;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 5; i++) co_await c.put("T", 0, "before");
        co_await sleep_for(3 * ns_per_s);
        for (int i = 0; i < 5; i++) co_await c.put("T", 0, "behind");
        co_await sleep_for(500 * ns_per_ms);
      },
      End::kill);
  OfflineDir d(m);
  std::string queue = "consumequeue/T/0/00000000000000000000";
  d.write(queue, 20 * 5, std::string(20 * 5, '\0'));
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.queues.pending, 5u);
  EXPECT_EQ(r.running, offline::Writer::rmqd);
  d.write(queue, 20 * 4, std::string(20, '\0'));
  auto bad = checked(d);
  EXPECT_EQ(bad.findings.count(Severity::damage, Kind::unit_missing), 1u) << text_of(bad);
}

TEST(OfflineState, TornTailIsANote) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 10; i++) co_await c.put("T", 0, "body" + std::to_string(i));
      },
      End::kill);
  constexpr uint64_t record = 91 + 1 + 5;
  {
    OfflineDir d(m);
    d.write(log0, 9 * record + 88, "torn");
    auto r = checked(d);
    EXPECT_TRUE(r.clean()) << text_of(r);
    EXPECT_EQ(r.findings.count(Severity::note, Kind::log_tail), 1u) << text_of(r);
    EXPECT_GT(r.torn_bytes, 0u);
    EXPECT_EQ(r.records, 9u);
  }
  OfflineDir d(m);
  d.write(log0, 4 * record + 88,
          "torn");  // records follow in the same write: what a torn write can look like
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.findings.count(Severity::note, Kind::log_tail), 1u) << text_of(r);
}

TEST(OfflineState, FarBehindATornSpotItIsDamage) {
  Machine m;
  m.options.commit_log_file_bytes = 4u << 20;
  m.run(
      [](Ctx& c) -> Task<void> {
        std::string fill(100'000, 'f');
        for (int i = 0; i < 30; i++) co_await c.put("T", 0, fill);
      },
      End::kill);
  OfflineDir d(m);
  d.flip(log0, 150'000);
  auto r = checked(d);
  // The record behind the spot proves nothing, one that is further away than a write reaches does.
  EXPECT_EQ(r.records, 29u);
  EXPECT_EQ(r.findings.count(Severity::damage, Kind::log_record), 1u) << text_of(r);
}

// As a start judges it: RocketMQ's checkpoint vouches for what a killed RocketMQ wrote, but not for records
// that are older than the one before the spot.
TEST(OfflineState, WhatRocketMqVouchedForIsDamage) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 10; i++) {
          co_await c.put("T", 0, "body" + std::to_string(i));
          co_await sleep_for(10 * ns_per_ms);
        }
        co_await sleep_for(6 * ns_per_s);
      },
      End::kill);
  constexpr uint64_t record = 91 + 1 + 5;
  constexpr size_t store_time_at = 56;
  for (const char* lost : {"rmqd.checkpoint", "abort"}) {
    OfflineDir d(m);
    d.remove("rmqd.checkpoint");
    if (std::string(lost) == "abort") d.replace("abort", "1234");
    const std::string newest = d.read(log0).substr(9 * record + store_time_at, 8);
    d.write(log0, 4 * record + 88, "torn");
    auto r = checked(d);
    EXPECT_EQ(r.findings.count(Severity::damage, Kind::log_record), 1u) << text_of(r);
    d.write(log0, 3 * record + store_time_at, newest);
    auto cut = checked(d);
    EXPECT_EQ(cut.findings.count(Severity::damage, Kind::log_record), 0u) << text_of(cut);
    EXPECT_EQ(cut.findings.count(Severity::note, Kind::log_tail), 1u) << text_of(cut);
  }
}

TEST(OfflineState, WhatWasSetAsideIsNoDamage) {
  Machine m;
  m.options.commit_log_file_bytes = 8u << 20;
  m.options.damaged_log = DamagedLog::QUARANTINE;
  m.run(three_files, End::kill);
  m.damage(log0, 210'000, "damage");
  m.run([](Ctx& c) -> Task<void> { co_return; });
  EXPECT_EQ(m.quarantined.size(), 1u);
  OfflineDir d(m);
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.queues.set_aside, 1u);
}

TEST(OfflineState, OneTornCheckpointSlotIsANote) {
  Machine m;
  m.run(three_files);
  m.run(three_files);
  OfflineDir d(m);
  std::string text = d.read("rmqd.checkpoint");
  auto a = decode_checkpoint(as_bytes(text).subspan(0, 4096));
  auto b = decode_checkpoint(as_bytes(text).subspan(4096));
  ASSERT_TRUE(a && b);
  d.flip("rmqd.checkpoint", (a->sequence < b->sequence ? 0 : 4096) + 30);
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.findings.count(Severity::note, Kind::checkpoint), 1u) << text_of(r);
}

// The lock that a running broker holds, ours or RocketMQ's.
TEST(OfflineState, AnOpenStoreIsRefused) {
  Machine m;
  m.run(three_files);
  OfflineDir d(m);
  d.replace("lock", "");
  int fd = ::open(d.path("lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  struct flock l{};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(fd, F_OFD_SETLK, &l), 0);
  TestHelper helper;
  auto r = check(d, helper);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Errc::exists);
  offline::CheckOptions o = options_of(d);
  o.live = true;
  auto live = offline::check_store(o, helper);
  ASSERT_TRUE(live) << to_string(live.error());
  EXPECT_TRUE(live->clean()) << text_of(*live);
  ::close(fd);
  EXPECT_TRUE(check(d, helper));
}

TEST(OfflineState, NothingThereIsSaid) {
  Machine m;
  m.run(three_files);
  OfflineDir d(m);
  d.remove("commitlog");
  TestHelper helper;
  auto r = check(d, helper);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Errc::not_found);
}

}  // namespace
}  // namespace rmq::store::test

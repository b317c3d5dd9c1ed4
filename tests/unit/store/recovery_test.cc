// Coming back: after a stop, a kill, a power cut, with files lost or damaged.
#include "base/crc.h"
#include "machine.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

const std::string first_log = "commitlog/00000000000000000000";

Task<void> ten_messages(Ctx& c) {
  for (int i = 0; i < 10; i++) {
    auto r = co_await c.put("T", i % 2, "body" + std::to_string(i));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  }
}
// Ten messages of 96 + 1 bytes each; another run of them goes on behind.
Task<void> ten_are_there(Ctx& c) {
  for (int q = 0; q < 2; q++) {
    auto r = co_await c.store->get("T", q, 0, 32, nullptr);
    auto bodies = bodies_of(r);
    CO_ASSERT(bodies.size() == 5);
    for (size_t i = 0; i < 5; i++)
      EXPECT_EQ(bodies[i], "body" + std::to_string(i * 2 + static_cast<size_t>(q)));
  }
}
constexpr uint64_t record = 91 + 1 + 5;

TEST(Recovery, EveryEndKeepsWhatWasAcknowledged) {
  for (End end : {End::stop, End::kill, End::power_lost, End::power_torn}) {
    Machine m;
    for (int round = 0; round < 3; round++) {
      m.run(round == 0 ? ten_messages : ten_are_there, end);
      EXPECT_EQ(m.recovery.torn_at, -1);
    }
    m.run([](Ctx& c) -> Task<void> {
      co_await ten_are_there(c);
      auto r = co_await c.put("T", 0, "more");
      EXPECT_EQ(r.queue_offset, 5);
      EXPECT_EQ(r.physical_offset, static_cast<int64_t>(10 * record));
    });
  }
}

// A life on a disk that outlives the process: what the kernel holds stays with it.
using LifeBody = Task<void> (*)(MessageStore&);
Task<void> on_disk(SimDisk& disk, const StoreOptions& o, LifeBody body, bool syncs_fail = false) {
  auto opened = co_await MessageStore::open(disk, o, nullptr);
  CO_ASSERT(opened.has_value());
  if (syncs_fail) {
    sim::Fault f;
    f.op = sim::OpKind::sync;
    f.path_part = "/commitlog/";
    f.times = 100;
    disk.plan().faults.push_back(f);
  }
  co_await body(**opened);
  disk.crash_now();
  co_await (*opened)->shutdown();
}

constexpr int written_messages = 24;
Task<void> write_until_a_sync_fails(MessageStore& s) {
  const std::string body(1000, 'b');
  for (int i = 0; i < written_messages; i++) {
    auto r = co_await s.put(Ctx::message("T", 0, body));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  }
  co_await sleep_for(3 * ns_per_s);
}
Task<void> all_are_shown(MessageStore& s) {
  for (int64_t o = 0; o < written_messages;) {
    auto r = co_await s.get("T", 0, o, 32, nullptr);
    CO_ASSERT(r.status == GetMessageStatus::FOUND);
    o += static_cast<int64_t>(bodies_of(r).size());
  }
}

// After a sync that failed the kernel calls blocks clean that it has not written: they can be read, no later
// sync saves them. A recovery that finds them there must write them, or shows messages that the next loss of
// power takes.
TEST(Recovery, WhatAFailedSyncLeftInTheKernelIsWrittenAgain) {
  StoreOptions o = Machine().options;
  o.flush = FlushDiskType::ASYNC_FLUSH;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    sim::DiskState kernel;
    {
      SimLoop loop(seed);
      SimDisk disk(loop, {});
      loop.run(on_disk(disk, o, write_until_a_sync_fails, true));
      kernel = disk.take_state(seed);
    }
    DiskImage media = sim::empty_image();
    for (int life = 0; life < 2; life++) {
      SimLoop loop(seed);
      std::unique_ptr<SimDisk> disk =
          life == 0 ? std::make_unique<SimDisk>(loop, sim::DiskPlan{}, std::move(kernel))
                    : std::make_unique<SimDisk>(loop, sim::DiskPlan{}, media);
      loop.run(on_disk(*disk, o, all_are_shown));
      media = disk->crash_image(CrashFate::all_lost(seed));
    }
  }
}

TEST(Recovery, ACheckpointShortensIt) {
  Machine m;
  m.options.checkpoint_interval_ms = 1000;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await ten_messages(c);
        co_await sleep_for(3 * ns_per_s);
        co_await c.put("T", 0, "last");
      },
      End::power_lost);
  m.run(nullptr, End::power_lost);
  EXPECT_EQ(m.recovery.records, 1u);
  EXPECT_EQ(m.recovery.scanned_from, static_cast<int64_t>(10 * record));
  m.run(nullptr);
  EXPECT_EQ(m.recovery.records, 0u) << "the last one wrote a checkpoint when it opened";
}

TEST(Recovery, TornTailIsCutAndStaysCut) {
  Machine m;
  m.run(ten_messages, End::kill);
  m.damage(first_log, 9 * record + 88, "torn");  // the last record, which might have been in flight
  m.run(
      [](Ctx& c) -> Task<void> {
        EXPECT_EQ(c.store->max_physical_offset(), static_cast<int64_t>(9 * record));
        EXPECT_EQ(c.store->max_offset("T", 1), 4);
        auto r = co_await c.put("T", 1, "again");
        EXPECT_EQ(r.queue_offset, 4);
        EXPECT_EQ(r.physical_offset, static_cast<int64_t>(9 * record));
      },
      End::kill);
  EXPECT_EQ(m.recovery.torn_at, static_cast<int64_t>(9 * record));
  EXPECT_EQ(m.recovery.torn_bytes, record - 2) << "the length of no properties is zero";
  m.run([](Ctx& c) -> Task<void> {
    auto r = co_await c.store->get("T", 1, 4, 32, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"again"}));
  });
}

// A valid record behind the cut must not come back when new records happen to end where it begins. Each fills
// a block, so that nothing that is written at the new end touches it.
TEST(Recovery, StaleRecordsAreNotResurrected) {
  Machine m;
  m.options.zero_ahead_bytes = 0;
  constexpr size_t body_bytes = 4096 - 92;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 10; i++) co_await c.put("T", 0, std::string(body_bytes, 'x'));
      },
      End::kill);
  m.damage(first_log, 8 * 4096 + 88, "torn");  // record 9 behind it stays valid
  m.run(
      [](Ctx& c) -> Task<void> {
        EXPECT_EQ(c.store->max_physical_offset(), 8 * 4096);
        auto r = co_await c.put("T", 0, std::string(body_bytes, 'y'));
        EXPECT_EQ(r.total_bytes, 4096);
      },
      End::kill);
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_physical_offset(), 9 * 4096);
    EXPECT_EQ(c.store->max_offset("T", 0), 9);
    co_return;
  });
}

// The tags code of a delayed message is the time to deliver it, also when its unit is made again.
TEST(Recovery, DelayedMessagesKeepTheirTime) {
  Machine m;
  m.options.delay_level_ms = {1'000, 5'000, 600'000};
  static std::vector<int64_t> stored_ms;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (const char* level : {"3", "99", "0"}) {
          std::string properties =
              "TAGS\x01red\x02"
              "DELAY\x01" +
              std::string(level) + "\x02";
          MessageIn in = Ctx::message("SCHEDULE_TOPIC_XXXX", 2, "late", properties);
          in.tags_code = 7;
          auto r = co_await c.store->put(in);
          stored_ms.push_back(r.store_timestamp_ms);
        }
      },
      End::stop);
  m.remove_files("consumequeue");
  m.run([](Ctx& c) -> Task<void> {
    for (int64_t offset = 0; offset < 3; offset++) {
      auto u = co_await c.store->queue_unit("SCHEDULE_TOPIC_XXXX", 2, offset);
      CO_ASSERT(u.has_value());
      int64_t late = stored_ms[static_cast<size_t>(offset)] + 600'000;
      EXPECT_EQ(u->tags_code, offset == 2 ? proto::tags_code_of("red") : late);
    }
  });
}

// The record's end is in another sector than its CRC: the last bytes of the properties are missing.
TEST(Recovery, TornPropertiesAreCut) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await c.put("T", 0, "whole");
        co_await c.put("T", 0, "torn!", "K\x01" + std::string(1000, 'v') + "\x02");
      },
      End::kill);
  m.damage(first_log, 1024, std::string(512, '\0'));
  m.run(nullptr);
  EXPECT_EQ(m.recovery.torn_at, static_cast<int64_t>(record));
}

// Garbage in the properties of the last write, where one with zeros would be told from a whole one anyhow.
TEST(Recovery, GarbageInPropertiesIsCutWithTheCrcOfTheWholeRecord) {
  for (bool with_crc : {true, false}) {
    for (uint64_t at : {1024 + 300, 1024 + 1090}) {  // within a value, and where the CRC itself is
      Machine m;
      m.options.append_property_crc = with_crc;
      m.run(
          [](Ctx& c) -> Task<void> {
            co_await c.put("T", 0, "whole");
            co_await c.put("T", 0, "torn!", "K\x01" + std::string(2000, 'v') + "\x02");
          },
          End::kill);
      m.damage(first_log, at, std::string(1100, 'g'));
      m.run(nullptr);
      const bool told = m.recovery.torn_at >= 0;
      EXPECT_EQ(told, with_crc || at + 1100 > 2200) << with_crc << " " << at;
    }
  }
}

// A copy of a delivered message has no CRC of its own; the marker before it has that of its properties.
TEST(Recovery, GarbageInTheCopyOfADeliveredMessageIsCut) {
  for (const char* value : {"v", "w"}) {
    Machine m;
    m.run(
        [](Ctx& c) -> Task<void> {
          const std::string known = "K\x01v\x02", unknown = "L\x01v\x02";
          std::string body(1, static_cast<char>(copy_guard_version));
          append_copy_guard(body, {crc32(as_bytes(known)), 0});
          std::vector<MessageIn> all;
          all.push_back(Ctx::message(delivered_topic, 1, body));
          all.push_back(Ctx::message("D", 0, "one", known));
          all.push_back(Ctx::message("D", 0, "two", unknown));
          all.push_back(Ctx::message("D", 0, "three", known));
          auto r = co_await c.store->put_batch(all);
          EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        },
        End::kill);
    const std::string before = m.file(first_log);
    m.damage(first_log, before.rfind("K\x01v") + 2, "w");  // of the third, which has none
    m.damage(first_log, before.find("L\x01v") + 2, "w");
    m.damage(first_log, before.find("K\x01v") + 2, value);
    m.run(nullptr);
    const bool good = *value == 'v';
    EXPECT_EQ(m.recovery.records, good ? 4u : 1u);
    EXPECT_EQ(m.recovery.torn_at >= 0, !good);
  }
}

// A crash has left a marker without its copies. What is put in their place counts, whatever its properties
// are, and also when the clock was set back.
TEST(Recovery, WhatLiesInThePlaceOfLostCopiesIsNoCopy) {
  for (uint64_t clock_s : {2'000u, 1'000u, 1u}) {
    Machine m;
    m.seed = 1'000;  // of seconds, too
    m.run(
        [](Ctx& c) -> Task<void> {
          std::string body(1, static_cast<char>(copy_guard_version));
          append_copy_guard(body, {crc32(as_bytes("K\x01v\x02")), crc32(as_bytes("K\x01v\x02"))});
          co_await c.put(std::string(delivered_topic), 1, body);
        },
        End::kill);
    m.seed = clock_s;
    m.run(
        [](Ctx& c) -> Task<void> {
          for (int i = 0; i < 3; i++) {
            auto put = co_await c.put("T", 0, "body", "K\x01other\x02");
            EXPECT_EQ(put.status, PutMessageStatus::PUT_OK);
          }
        },
        End::kill);
    m.remove_files("consumequeue/");  // all queues are made anew, from the marker on
    m.run(nullptr);
    EXPECT_EQ(m.recovery.records, 4u) << clock_s;
    EXPECT_EQ(m.recovery.torn_at, -1) << clock_s;
  }
}

// What RocketMQ wrote behind our checkpoint has no CRC, or one that a client made up.
TEST(Recovery, OnlyWhoWroteTheCrcIsHeldToIt) {
  for (bool ours : {true, false}) {
    Machine m;
    m.options.append_property_crc = true;
    m.run([](Ctx& c) -> Task<void> { co_await c.put("T", 0, "body", "K\x01v\x02"); }, End::kill);
    const size_t value_at = m.file(first_log).find("K\x01v\x02") + 2;
    m.damage(first_log, value_at, "w");
    if (!ours) m.damage("abort", 0, "12345");  // RocketMQ's process id
    m.run(nullptr);
    EXPECT_EQ(m.recovery.torn_at, ours ? 0 : -1);
  }
}

TEST(Recovery, WithAndWithoutTheCrcOfTheWholeRecord) {
  Machine m;
  const Body check = [](Ctx& c) -> Task<void> {
    auto r = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(r.status, GetMessageStatus::FOUND);
    for (const std::string& b : bodies_of(r)) EXPECT_EQ(b, "body");
    // Nobody else's property of that name is kept: not a client's, and not that of a message that was copied.
    const std::string lie = "A\001b\002__CRC32#\0011234567890\002C\001d\002__CRC32#\0011\002";
    for (int i = 0; i < 3; i++) {
      auto put = co_await c.put("T", 0, "body", lie);
      EXPECT_EQ(put.status, PutMessageStatus::PUT_OK);
    }
    r = co_await c.store->get("T", 0, c.store->max_offset("T", 0) - 1, 32, nullptr);
    const std::string bytes = bytes_of(r);
    auto v = proto::parse_record(as_bytes(bytes), proto::CrcCheck::verify);
    CO_ASSERT(v.has_value());
    EXPECT_EQ(v->properties, "A\001b\002C\001d\002");
    EXPECT_EQ(v->property_crc.has_value(), c.store->options().append_property_crc);
    EXPECT_TRUE(proto::property_crc_fits(*v, as_bytes(bytes)));
    // What was stored before is taken even where the CRC would make it too long.
    MessageIn in = Ctx::message("Long", 0, "x");
    const std::string much(32'767, 'p');
    in.properties = much;
    auto refused = co_await c.store->put(in);
    EXPECT_EQ(refused.status == PutMessageStatus::PROPERTIES_SIZE_EXCEEDED,
              c.store->options().append_property_crc);
    in.was_stored = true;
    auto taken = co_await c.store->put(in);
    EXPECT_EQ(taken.status, PutMessageStatus::PUT_OK);
  };
  m.run([](Ctx& c) -> Task<void> { co_await c.put("T", 0, "body"); }, End::kill);
  int64_t end = 0;
  for (bool crc : {true, false, true, true, false}) {
    m.options.append_property_crc = crc;
    m.run(check, End::kill);
    EXPECT_EQ(m.recovery.torn_at, -1);
    EXPECT_GE(m.recovery.scanned_to, end);
    end = m.recovery.scanned_to;
  }
  m.run(nullptr);
  EXPECT_EQ(m.recovery.torn_at, -1);
}

// Nothing forbids a client to send zeros in a property.
TEST(Recovery, ZerosInPropertiesAreNoTear) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await c.put("T", 0, "zeros", "K\x01" + std::string(300, '\0') + "\x02");
        co_await c.put("T", 0, "next");
      },
      End::power_lost);
  m.run([](Ctx& c) -> Task<void> {
    auto r = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"zeros", "next"}));
  });
}

// The newest record has no unit (a half message), and the clock is behind after the restart.
TEST(Recovery, StoreTimeNeverGoesBack) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    co_await sleep_for(20 * ns_per_s);
    MessageIn half = Ctx::message("T", 0, "half");
    half.sys_flag = proto::sys_flag::transaction_prepared;
    auto r = co_await c.store->put(half);
    EXPECT_GT(r.store_timestamp_ms, c.loop.wall_ms() - 1000);
  });
  m.run([](Ctx& c) -> Task<void> {
    auto half = co_await c.store->record_at(0);
    CO_ASSERT(half.has_value());
    auto r = co_await c.put("T", 0, "later");
    EXPECT_GE(r.store_timestamp_ms, proto::record_store_timestamp(half->bytes()));
    EXPECT_GT(r.store_timestamp_ms, c.loop.wall_ms() + 10'000) << "the clock is behind";
  });
}

TEST(Recovery, DamageInTheMiddleIsRefusedLoudly) {
  Machine m;
  m.options.commit_log_file_bytes = 8u << 20;
  m.run(
      [](Ctx& c) -> Task<void> {
        std::string body(30'000, 'x');
        for (int i = 0; i < 100; i++) co_await c.put("T", 0, body);
      },
      End::kill);
  constexpr uint64_t size = 91 + 1 + 30'000;
  DiskImage whole = m.copy();
  m.damage(first_log, 10 * size + 5000, "flip");
  EXPECT_EQ(m.try_open(), Errc::corrupt);
  EXPECT_EQ(m.damaged_at, static_cast<int64_t>(10 * size));
  EXPECT_GT(m.next_valid, static_cast<int64_t>(11 * size));
  EXPECT_EQ(m.next_valid % static_cast<int64_t>(size), 0);
  m.image = whole;
  whole = m.copy();
  m.damage(first_log, 10 * size, "flip");  // its size is gone as well
  EXPECT_EQ(m.try_open(), Errc::corrupt);
  m.image = whole;
  whole = m.copy();
  m.damage(first_log, 99 * size + 5000, "flip");
  EXPECT_EQ(m.try_open(), std::nullopt) << "the last one may have been in flight";
  EXPECT_EQ(m.recovery.torn_at, static_cast<int64_t>(99 * size));
}

constexpr int64_t big_record = 91 + 1 + 30'000;

Task<void> hundred_big(Ctx& c) {
  for (int i = 0; i < 100; i++)
    co_await c.put("T", 0, std::to_string(i) + std::string(29'998 + (i < 10), 'x'));
}
Task<void> all_but_ten_to_twelve(Ctx& c) {
  CO_ASSERT(c.store != nullptr);
  int64_t offset = 0;
  std::vector<std::string> seen;
  while (offset < c.store->max_offset("T", 0)) {
    auto r = co_await c.store->get("T", 0, offset, 32, nullptr);
    CO_ASSERT(r.next_begin_offset > offset);
    for (const std::string& b : bodies_of(r)) seen.push_back(b.substr(0, b.find('x')));
    offset = r.next_begin_offset;
  }
  std::vector<std::string> expected;
  for (int i = 0; i < 100; i++)
    if (i < 10 || i > 12) expected.push_back(std::to_string(i));
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(c.store->max_offset("T", 0), 100) << "offsets do not move";
}
Task<void> one_more(Ctx& c) {
  CO_ASSERT(c.store != nullptr);
  auto r = co_await c.put("T", 0, "more");
  EXPECT_EQ(r.queue_offset, 100);
}

TEST(Recovery, DamageInTheMiddleIsQuarantined) {
  Machine m;
  m.options.commit_log_file_bytes = 8u << 20;
  m.options.damaged_log = DamagedLog::QUARANTINE;
  m.run(hundred_big, End::kill);
  const std::string before = m.file(first_log);
  for (int i : {10, 11, 12}) m.damage(first_log, static_cast<uint64_t>(i * big_record) + 5000, "flip");
  m.run(all_but_ten_to_twelve, End::power_lost);
  std::vector<std::pair<int64_t, int64_t>> range{{10 * big_record, 13 * big_record}};
  EXPECT_EQ(m.quarantined, range);
  std::string kept = m.file("quarantine/00000000000000300920");
  EXPECT_EQ(kept.size(), 3 * big_record);
  EXPECT_EQ(kept.substr(0, 5000), before.substr(10 * big_record, 5000));
  m.run(all_but_ten_to_twelve);
  m.remove_files("consumequeue/");
  m.run(all_but_ten_to_twelve);
  m.run(one_more);
  EXPECT_EQ(m.quarantined, range) << "once is enough";
}

// A log of which rmqd.checkpoint tells nothing: RocketMQ was killed, or that file is lost. What RocketMQ's
// `checkpoint` says to be safe is no torn tail, and nothing behind it is cut.
constexpr size_t store_time_at = 56;
Task<void> hundred_big_and_a_checkpoint(Ctx& c) {
  co_await hundred_big(c);
  co_await sleep_for(6 * ns_per_s);
  EXPECT_GT(c.store->stats().checkpoints, 0u);
}
Machine killed_rocketmq() {
  Machine m;
  m.options.commit_log_file_bytes = 8u << 20;
  m.run(hundred_big_and_a_checkpoint, End::kill);
  m.remove_files("rmqd.checkpoint");
  m.damage("abort", 0, "1234");
  return m;
}
void expect_refused_and_set_aside(Machine& m) {
  for (int i : {10, 11, 12}) m.damage(first_log, static_cast<uint64_t>(i * big_record) + 5000, "flip");
  const std::string before = m.file(first_log);
  m.damaged_at = -1;
  EXPECT_EQ(m.try_open(), Errc::corrupt);
  EXPECT_EQ(m.damaged_at, 10 * big_record);
  EXPECT_EQ(m.next_valid, 13 * big_record);
  EXPECT_EQ(m.file(first_log), before);
  m.options.damaged_log = DamagedLog::QUARANTINE;
  m.run(all_but_ten_to_twelve);
  m.run(one_more);
  EXPECT_EQ(m.quarantined.size(), 1u);
}

TEST(Recovery, DamageInAStoreOfAKilledRocketMqIsRefused) {
  Machine m = killed_rocketmq();
  // A RocketMQ broker that is started again makes no old units anew.
  const std::string queue = "consumequeue/T/0/00000000000000000000", units = m.file(queue);
  ASSERT_GE(units.size(), 100 * 20u);
  DiskImage whole = m.copy();
  m.damage(first_log, 10 * big_record + 5000, "flip");
  EXPECT_EQ(m.try_open(), Errc::corrupt);
  EXPECT_EQ(m.file(queue), units);
  m.image = whole;
  expect_refused_and_set_aside(m);
}

TEST(Recovery, DamageIsRefusedWhenOurCheckpointIsLost) {
  Machine killed;
  killed.options.commit_log_file_bytes = 8u << 20;
  killed.run(hundred_big_and_a_checkpoint, End::kill);
  killed.remove_files("rmqd.checkpoint");
  expect_refused_and_set_aside(killed);
  Machine stopped;
  stopped.options.commit_log_file_bytes = 8u << 20;
  stopped.run(hundred_big);
  for (const char* lost : {"rmqd.checkpoint", "checkpoint", "consumequeue/"}) stopped.remove_files(lost);
  expect_refused_and_set_aside(stopped);
}

TEST(Recovery, WhatRocketMqDidNotVouchForIsATornTail) {
  const auto at = [](int i) { return static_cast<uint64_t>(i * big_record); };
  for (const bool older : {false, true}) {
    Machine m = killed_rocketmq();
    // The record before the spot is as new as the newest one, so those behind are what RocketMQ has cut once;
    // or nothing is vouched for but the first twenty.
    const std::string log = m.file(first_log);
    if (older)
      m.damage(first_log, at(49) + store_time_at, log.substr(at(99) + store_time_at, 8));
    else
      m.damage("checkpoint", 0, log.substr(at(20) + store_time_at, 8));
    m.damage(first_log, at(50) + 5000, "flip");
    EXPECT_EQ(m.try_open(), std::nullopt) << older;
    EXPECT_EQ(m.recovery.torn_at, 50 * big_record) << older;
  }
}

// The damage reaches over the end of a file; and below the durable end with nothing valid behind.
TEST(Recovery, DamageAtTheEndOfAFileIsQuarantined) {
  Machine m;
  m.options.damaged_log = DamagedLog::QUARANTINE;
  m.run(hundred_big, End::kill);  // files of 1 MiB: 34 records each
  m.damage(first_log, 33 * big_record + 1000, "flip");
  m.run([](Ctx& c) -> Task<void> {
    CO_ASSERT(c.store != nullptr);
    auto r = co_await c.store->get("T", 0, 32, 2, nullptr);
    EXPECT_EQ(r.message_count, 1u);
    r = co_await c.store->get("T", 0, 33, 1, nullptr);
    EXPECT_EQ(r.next_begin_offset, 34 + r.message_count);
    EXPECT_EQ(c.store->max_offset("T", 0), 100);
  });
  EXPECT_EQ(m.quarantined.size(), 1u);
  EXPECT_EQ(m.try_open(), std::nullopt);
}

// Zeros from below the durable end on: no record proves anything, the checkpoint does.
TEST(Recovery, ADamagedEndIsQuarantined) {
  Machine m;
  m.options.commit_log_file_bytes = 8u << 20;
  m.options.checkpoint_interval_ms = 20;
  m.run(
      [](Ctx& c) -> Task<void> {
        while (c.store->stats().checkpoints < 3) co_await c.put("T", 0, std::string(1000, 'x'));
      },
      End::kill);
  DiskImage whole = m.copy();
  EXPECT_EQ(m.try_open(), std::nullopt);
  const uint64_t from = static_cast<uint64_t>(m.recovery.scanned_from);
  const uint64_t end = static_cast<uint64_t>(m.recovery.scanned_to);
  ASSERT_LT(from, end);
  m.image = whole;
  m.damage(first_log, from, "junk" + std::string(end - from - 4, '\0'));
  whole = m.copy();
  EXPECT_EQ(m.try_open(), Errc::corrupt);
  EXPECT_EQ(m.next_valid, 0);
  m.image = whole;
  m.options.damaged_log = DamagedLog::QUARANTINE;
  m.run([](Ctx& c) -> Task<void> {
    CO_ASSERT(c.store != nullptr);
    EXPECT_EQ(c.store->max_offset("T", 0) * (91 + 1 + 1000), c.store->max_physical_offset());
    co_await c.put("T", 0, "again");
  });
  EXPECT_EQ(m.recovery.quarantined_ranges, 1u);
  std::string name = std::to_string(from);
  EXPECT_EQ(m.file("quarantine/" + std::string(20 - name.size(), '0') + name), "junk");
  EXPECT_EQ(m.try_open(), std::nullopt);
}

TEST(Recovery, AMissingLogFileIsRefused) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 40; i++) co_await c.put("T", 0, std::string(90'000, 'x'));
  });
  DiskImage whole = m.copy();
  m.remove_files("commitlog/00000000000001048576");
  EXPECT_EQ(m.try_open(), Errc::corrupt);
  EXPECT_EQ(m.damaged_at, 1 << 20);
  EXPECT_EQ(m.next_valid, 2 << 20);
  m.image = whole;
  whole = m.copy();
  m.cut("commitlog/00000000000001048576", 4096);
  EXPECT_EQ(m.try_open(), Errc::corrupt) << "all names fit the configured size";
  EXPECT_EQ(m.damaged_at, (1 << 20) + 4096);
  EXPECT_EQ(m.next_valid, 2 << 20);
  m.image = whole;
  whole = m.copy();
  m.remove_files("commitlog/");
  EXPECT_EQ(m.try_open(), Errc::corrupt);
}

TEST(Recovery, LostQueueFilesAreMadeAgain) {
  for (std::string lost : {"consumequeue/", "consumequeue/T/1/"}) {
    for (End end : {End::stop, End::kill}) {
      Machine m;
      m.run(ten_messages, end);
      m.run(nullptr, end);  // all units in files, and the checkpoint says so
      m.remove_files(lost);
      m.run(ten_are_there);
      EXPECT_TRUE(m.recovery.queues_rebuilt);
      m.run(ten_are_there);
      EXPECT_FALSE(m.recovery.queues_rebuilt);
    }
  }
}

// Number of queues and of units are those of the checkpoint; the queues are not.
TEST(Recovery, AQueueThatIsNoneDoesNotStandForALostOne) {
  for (End end : {End::stop, End::kill}) {
    Machine m;
    m.run(ten_messages, end);
    m.run(nullptr, end);
    const std::string name = "/00000000000000000000";
    m.rename_file("consumequeue/T/1" + name, "consumequeue/T/3" + name);
    m.run(ten_are_there);
    EXPECT_TRUE(m.recovery.queues_rebuilt);
    EXPECT_FALSE(m.exists("consumequeue/T/3/00000000000000000000"));
  }
}

TEST(Recovery, BothCheckpointsMayBeDeleted) {
  Machine m;
  m.run(ten_messages);
  m.remove_files("rmqd.checkpoint");
  m.remove_files("checkpoint");
  m.run(ten_are_there);
  EXPECT_TRUE(m.recovery.queues_rebuilt);
}

// Garbage in a file of the right size, units of another queue, a file that is cut short: after a stop in
// order too, ours or RocketMQ's, where nothing else would look at what is there.
TEST(Recovery, QueueFilesThatMakeNoSenseAreMadeAgain) {
  const std::string first = "consumequeue/T/0/00000000000000000000";
  const auto all_are_there = [](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("T", 0), 2500);
    for (int64_t at : {0, 1, 1000, 1999, 2000, 2499}) {
      auto r = co_await c.store->get("T", 0, at, 1, nullptr);
      EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"m" + std::to_string(at)}));
    }
  };
  const auto harm = [&](Machine& m, int kind) {
    const std::string units = m.file(first);
    if (kind == 0) m.damage(first, 0, std::string(units.rbegin(), units.rend()));
    if (kind == 1) m.damage(first, 20 * 3, std::string(20, '\x5a'));
    if (kind == 2) m.damage(first, 20 * 1999, units.substr(0, 20));
    if (kind == 3) m.cut(first, 20 * 1990);
  };
  for (int kind = 0; kind < 4; kind++) {
    for (const bool rocketmq : {false, true}) {
      Machine m;
      m.run([](Ctx& c) -> Task<void> {
        for (int i = 0; i < 2500; i++) co_await c.put("T", 0, "m" + std::to_string(i), "");
      });
      if (rocketmq) m.remove_files("rmqd.checkpoint");
      harm(m, kind);
      m.run(all_are_there);
      EXPECT_TRUE(m.recovery.queues_rebuilt) << kind << rocketmq;
    }
  }
}

// As a RocketMQ broker leaves a directory that it stopped in order: no checkpoint of ours.
TEST(Recovery, TakesOverFromRocketMq) {
  Machine m;
  m.run(ten_messages);
  m.remove_files("rmqd.checkpoint");
  m.run(ten_are_there);
  EXPECT_FALSE(m.recovery.queues_rebuilt);
  EXPECT_EQ(m.recovery.records, 0u);
}

TEST(Recovery, ExtraQueueFilesDoNotMatter) {
  Machine m;
  m.run(ten_messages, End::kill);
  m.run(nullptr, End::kill);
  // Units of records that the log does not have, and a queue that nobody knows.
  std::string unit("\0\0\0\0\0\x10\0\0\0\0\0\x61\0\0\0\0\0\0\0\0", 20);
  m.damage("consumequeue/T/0/00000000000000000000", 7 * 20, unit);
  m.run(ten_are_there, End::kill);
  EXPECT_EQ(m.file("consumequeue/T/0/00000000000000000000").find_first_not_of('\0', 5 * 20),
            std::string::npos);
}

TEST(Recovery, QueuesOverSeveralFilesAndOffsets) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 2500; i++) co_await c.put("T", 0, "m" + std::to_string(i), "");
  });
  EXPECT_TRUE(m.exists("consumequeue/T/0/00000000000000040000"));
  auto check = [](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("T", 0), 2500);
    auto r = co_await c.store->get("T", 0, 1990, 32, nullptr);
    auto b = bodies_of(r);
    CO_ASSERT(b.size() == 10);  // up to the end of that file of units
    EXPECT_EQ(b[0], "m1990");
    auto n = co_await c.store->get("T", 0, 2000, 1, nullptr);
    EXPECT_EQ(bodies_of(n), (std::vector<std::string>{"m2000"}));
  };
  m.run(check, End::kill);
  m.run(check, End::power_lost);
  m.run(check);
}

// The log begins with queue offset 1500 (as after retention, when the queue files are lost): the file starts
// with blank units.
TEST(Recovery, AQueueThatBeginsInTheMiddle) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 1500; i++) co_await c.put("T", 0, std::string(700, 'x'));
    while (c.store->max_physical_offset() < (1 << 20) + 100'000)
      co_await c.put("T", 0, std::string(700, 'y'));
  });
  m.remove_files("commitlog/00000000000000000000");
  m.remove_files("consumequeue/");
  m.remove_files("rmqd.checkpoint");
  auto check = [](Ctx& c) -> Task<void> {
    int64_t min = c.store->min_offset("T", 0);
    EXPECT_GT(min, 1000);
    EXPECT_LT(min, c.store->max_offset("T", 0));
    EXPECT_EQ(c.store->min_physical_offset(), 1 << 20);
    auto low = co_await c.store->get("T", 0, 10, 1, nullptr);
    EXPECT_EQ(low.status, GetMessageStatus::OFFSET_TOO_SMALL);
    EXPECT_EQ(low.next_begin_offset, min);
    auto r = co_await c.store->get("T", 0, min, 1, nullptr);
    EXPECT_EQ(r.status, GetMessageStatus::FOUND);
  };
  m.run(check);
  std::string units = m.file("consumequeue/T/0/00000000000000020000");
  EXPECT_EQ(units.substr(0, 20), std::string("\0\0\0\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0\0\0\0\0", 20));
  m.run(check);
  EXPECT_TRUE(m.recovery.clean);
}

TEST(Recovery, ProgressIsTold) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 500; i++) co_await c.put("T", 0, std::string(3000, 'x'));
      },
      End::kill);
  m.per_cents.clear();
  m.run(nullptr);
  ASSERT_GT(m.per_cents.size(), 20u);
  EXPECT_TRUE(std::is_sorted(m.per_cents.begin(), m.per_cents.end()));
  EXPECT_EQ(m.per_cents.back(), 100);
}

TEST(Recovery, TornCheckpointSlotFallsBack) {
  Machine m;
  m.run(ten_messages);
  // The newest slot is damaged; the other one, from the start, still holds.
  for (uint64_t at : {uint64_t{0}, uint64_t{4096}}) {
    Machine n;
    n.image = m.copy();
    n.damage("rmqd.checkpoint", at + 20, "\xff\xff");
    n.run(ten_are_there);
  }
}

// A message that takes several writes: the confirm offset, and with it the checkpoint, never stands within
// it.
int64_t cut_after_ns = 0;
Task<void> put_large(Ctx& c, std::string body) {
  co_await c.put("T", 0, body);
}
Task<void> cut_within(Ctx& c) {
  Scope puts;
  for (char x : {'a', 'b'}) puts.spawn(put_large(c, std::string(2'200'000, x)));
  co_await sleep_for(cut_after_ns);
  c.disk.crash_now();
  co_await puts.join();
}
TEST(Recovery, CheckpointsStandBetweenRecords) {
  for (int64_t step = 3; step <= 22; step += 2) {
    Machine m;
    m.options.commit_log_file_bytes = 8u << 20;
    m.options.memory_bytes = 16u << 20;
    m.options.unflushed_bytes_max = 8u << 20;
    m.options.zero_ahead_bytes = 0;
    m.options.checkpoint_interval_ms = 1;
    m.plan.write_ns_max = 4 * ns_per_ms;
    cut_after_ns = step * ns_per_ms / 2;
    m.run(cut_within, End::power_lost);
    EXPECT_EQ(m.try_open(), std::nullopt) << "cut after " << cut_after_ns << " ns";
  }
}

}  // namespace
}  // namespace rmq::store::test

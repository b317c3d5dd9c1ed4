// store check finds each kind of damage, and calls nothing damaged that is not.
#include <filesystem>
#include <functional>

#include "base/bytes.h"
#include "offline_dir.h"

namespace rmq::store::test {
namespace {

using offline::Kind;
using offline::Severity;

constexpr size_t big_body = 50'000;
constexpr int64_t later_ms = 600'000;

// Records of every sort, over three files of the log.
Task<void> write_a_store(Ctx& c) {
  std::string fill(big_body, 'f');
  for (int i = 0; i < 10; i++) {
    auto r =
        co_await c.put("T", i % 2, "body" + std::to_string(i), i % 3 == 0 ? "TAGS\x01red\x02" : "K\x01v\x02");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  }
  for (int i = 0; i < 45; i++)
    co_await c.put("U", 7, fill,
                   "TAGS\x01"
                   "blue\x02");
  MessageIn half = Ctx::message("T", 0, "half");
  half.sys_flag = proto::sys_flag::transaction_prepared;
  co_await c.store->put(half);
  MessageIn delayed = Ctx::message("SCHEDULE_TOPIC_XXXX", 2, "delayed", "TAGS\x01red\x02");
  delayed.tags_code = Loop::current().wall_ms() + later_ms;
  co_await c.store->put(delayed);
  for (int i = 0; i < 4; i++) co_await c.put("T", 1, "last" + std::to_string(i));
}

Machine written(End end = End::stop) {
  Machine m;
  m.run(write_a_store, end);
  return m;
}

const std::string log0 = "commitlog/00000000000000000000";
const std::string log1 = "commitlog/00000000000001048576";
const std::string log2 = "commitlog/00000000000002097152";
const std::string queue_t0 = "consumequeue/T/0/00000000000000000000";
const std::string queue_t1 = "consumequeue/T/1/00000000000000000000";
const std::string queue_u = "consumequeue/U/7/00000000000000000000";

std::string be64(int64_t v) {
  std::string s;
  append_be(s, v);
  return s;
}
std::string be32(int32_t v) {
  std::string s;
  append_be(s, v);
  return s;
}

// A bit of a property: nobody but the CRC of the whole record knows it.
TEST(OfflineCheck, PropertiesThatFitNotTheCrcOfTheirRecord) {
  for (bool with_crc : {true, false}) {
    Machine m;
    m.options.append_property_crc = with_crc;
    m.run(write_a_store);
    OfflineDir d(m);
    auto whole = checked(d);
    EXPECT_TRUE(whole.clean()) << text_of(whole);
    d.flip(log0, d.read(log0).find("K\x01v\x02") + 2);
    auto r = checked(d);
    EXPECT_EQ(r.clean(), !with_crc) << text_of(r);
    EXPECT_EQ(text_of(r).find("__CRC32#") != std::string::npos, with_crc) << text_of(r);
  }
}

TEST(OfflineCheck, EveryEndIsClean) {
  for (End end : {End::stop, End::kill, End::power_lost, End::power_torn}) {
    Machine m = written(end);
    OfflineDir d(m);
    uint64_t before = d.hash();
    auto r = checked(d);
    EXPECT_TRUE(r.clean()) << text_of(r);
    EXPECT_EQ(d.hash(), before) << "a check changes nothing";
    EXPECT_EQ(r.stopped, end == End::stop);
    EXPECT_EQ(r.records, 61u);
    EXPECT_EQ(r.transaction_records, 1u);
    EXPECT_EQ(r.queues.units + r.queues.pending, 60u);
    EXPECT_EQ(r.log_files, 3u);
    if (end == End::stop) {
      EXPECT_EQ(r.queues.queues, 4u);
      EXPECT_EQ(r.queues.units, 60u);
      EXPECT_EQ(r.findings.count(Severity::note, Kind::log_tail), 0u) << text_of(r);
    }
  }
}

// A start that was killed while it cut a queue: the next one makes the rest of the file.
TEST(OfflineCheck, AKilledStartMayLeaveAShortQueueFile) {
  Machine m = written();
  OfflineDir d(m);
  const std::string units = d.read(queue_u);
  ASSERT_EQ(units.size(), 20'000u);
  d.cut(queue_u, (units.find_last_not_of('\0') / 20 + 1) * 20);
  EXPECT_FALSE(checked(d).clean()) << "a broker that stops leaves none";
  d.replace("abort", "");
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.findings.count(Severity::note, Kind::queue_file), 1u) << text_of(r);
}

struct Plant {
  const char* name;
  Kind kind;
  std::function<void(const OfflineDir&)> damage;
};

// The first record of T queue 0: 91 + 1 + 5 + 9 bytes, body at 88.
constexpr uint64_t first_bytes = 91 + 1 + 5 + 9;

OwnCheckpoint checkpoint_of(const OfflineDir& d) {
  std::string text = d.read("rmqd.checkpoint");
  OwnCheckpoint best;
  for (size_t at : {0u, 4096u}) {
    auto c = decode_checkpoint(as_bytes(text).subspan(at, 4096));
    if (c && c->sequence > best.sequence) best = *c;
  }
  EXPECT_GT(best.sequence, 0u);
  return best;
}

int64_t end_of_log(const OfflineDir& d) {
  return checkpoint_of(d).queues_durable;
}

// Both slots say the same, changed by `change`.
void change_checkpoint(const OfflineDir& d, const std::function<void(OwnCheckpoint&)>& change) {
  OwnCheckpoint c = checkpoint_of(d);
  change(c);
  std::string slot(4096, '\0');
  encode_checkpoint(c, {reinterpret_cast<std::byte*>(slot.data()), slot.size()});
  d.replace("rmqd.checkpoint", slot + slot);
}

const Plant log_plants[] = {
    {"a file is missing", Kind::log_file, [](const OfflineDir& d) { d.remove(log1); }},
    {"a file is too short", Kind::log_file, [](const OfflineDir& d) { d.cut(log0, 900'000); }},
    {"a file is too long", Kind::log_file, [](const OfflineDir& d) { d.write(log1, (1 << 20) + 10, "x"); }},
    {"a file has a wrong name", Kind::log_file,
     [](const OfflineDir& d) { d.rename(log2, "commitlog/00000000000002097153"); }},
    {"no files at all", Kind::log_file,
     [](const OfflineDir& d) {
       for (const auto& f : {log0, log1, log2}) d.remove(f);
     }},
    {"a body's bit", Kind::log_record, [](const OfflineDir& d) { d.flip(log0, 90); }},
    {"a magic", Kind::log_record, [](const OfflineDir& d) { d.flip(log0, first_bytes + 7); }},
    {"a size", Kind::log_record, [](const OfflineDir& d) { d.flip(log0, first_bytes + 1); }},
    {"a physical offset", Kind::log_record, [](const OfflineDir& d) { d.flip(log0, first_bytes + 35); }},
    {"a topic's length", Kind::log_record, [](const OfflineDir& d) { d.flip(log0, 88 + 5); }},
    {"a negative queue id", Kind::log_record, [](const OfflineDir& d) { d.write(log0, 12, be32(-3)); }},
    {"a sector of zeros", Kind::log_record,
     [](const OfflineDir& d) { d.write(log1, 512 * 70, std::string(512, '\0')); }},
    {"an end mark", Kind::log_record,
     [](const OfflineDir& d) {
       std::string mark = be32(static_cast<int32_t>(proto::blank_magic));
       d.flip(log0, d.read(log0).rfind(mark));
     }},
    {"a queue offset", Kind::queue_order, [](const OfflineDir& d) { d.write(log0, 20, be64(3)); }},
    {"a record of another queue", Kind::queue_order,
     [](const OfflineDir& d) { d.write(log0, first_bytes + 101 + 12, be32(1)); }},
    {"a record twice", Kind::queue_order,
     [](const OfflineDir& d) {
       int64_t end = end_of_log(d);
       std::string record = d.read(log0).substr(0, first_bytes);
       record.replace(28, 8, be64(end));
       d.write(log2, static_cast<uint64_t>(end) % (1 << 20), record);
     }},
    {"the last record is gone", Kind::log_tail,
     [](const OfflineDir& d) {
       auto end = static_cast<uint64_t>(end_of_log(d)) % (1 << 20);
       d.write(log2, end - 97, std::string(97, '\0'));
     }},
    {"bytes behind the end", Kind::log_tail,
     [](const OfflineDir& d) {
       d.write(log2, static_cast<uint64_t>(end_of_log(d)) % (1 << 20) + 5, "junk");
     }},
};

const Plant queue_plants[] = {
    {"a unit's offset", Kind::unit_wrong, [](const OfflineDir& d) { d.flip(queue_u, 20 * 3 + 6); }},
    {"a unit's size", Kind::unit_wrong, [](const OfflineDir& d) { d.flip(queue_u, 20 * 3 + 11); }},
    {"a unit's tags code", Kind::unit_wrong, [](const OfflineDir& d) { d.flip(queue_t0, 19); }},
    {"the time to deliver", Kind::unit_wrong,
     [](const OfflineDir& d) {
       d.write("consumequeue/SCHEDULE_TOPIC_XXXX/2/00000000000000000000", 12, be64(112'785));
     }},
    {"a unit is zero", Kind::unit_missing,
     [](const OfflineDir& d) { d.write(queue_t1, 20 * 2, std::string(20, '\0')); }},
    {"the last unit is zero", Kind::unit_missing,
     [](const OfflineDir& d) { d.write(queue_t1, 20 * 8, std::string(20, '\0')); }},
    {"a unit too many", Kind::unit_orphan,
     [](const OfflineDir& d) { d.write(queue_t1, 20 * 9, be64(0) + be32(106) + be64(0)); }},
    {"a unit of a record that is another's", Kind::unit_orphan,
     [](const OfflineDir& d) {
       std::filesystem::create_directories(d.path("consumequeue/V/0"));
       d.replace("consumequeue/V/0/00000000000000000000",
                 be64(0) + be32(first_bytes) + be64(112'785) + std::string(20'000 - 20, '\0'));
     }},
    {"a queue's directory is missing", Kind::unit_missing,
     [](const OfflineDir& d) { d.remove("consumequeue/T/1"); }},
    {"all queues are missing", Kind::unit_missing, [](const OfflineDir& d) { d.remove("consumequeue"); }},
    {"a queue file is too short", Kind::queue_file, [](const OfflineDir& d) { d.cut(queue_u, 1000); }},
    {"a queue file has a wrong name", Kind::queue_file,
     [](const OfflineDir& d) { d.rename(queue_u, "consumequeue/U/7/00000000000000000020"); }},
    {"a queue file is missing", Kind::queue_file,
     [](const OfflineDir& d) {
       d.replace("consumequeue/U/7/00000000000000040000", std::string(20'000, '\0'));
     }},
    {"no checkpoint slot is whole", Kind::checkpoint,
     [](const OfflineDir& d) {
       d.flip("rmqd.checkpoint", 20);
       d.flip("rmqd.checkpoint", 4096 + 20);
     }},
    {"the checkpoint's size", Kind::checkpoint, [](const OfflineDir& d) { d.cut("rmqd.checkpoint", 5000); }},
    {"the checkpoint knows more queues", Kind::checkpoint,
     [](const OfflineDir& d) { change_checkpoint(d, [](OwnCheckpoint& c) { c.queue_count++; }); }},
    {"the checkpoint knows more units", Kind::checkpoint,
     [](const OfflineDir& d) { change_checkpoint(d, [](OwnCheckpoint& c) { c.queue_units++; }); }},
    {"the checkpoint knows other queues", Kind::checkpoint,
     [](const OfflineDir& d) { change_checkpoint(d, [](OwnCheckpoint& c) { c.queue_sum++; }); }},
    {"the checkpoint contradicts itself", Kind::checkpoint,
     [](const OfflineDir& d) { change_checkpoint(d, [](OwnCheckpoint& c) { c.log_durable = 5; }); }},
    {"the log was longer", Kind::log_tail,
     [](const OfflineDir& d) { change_checkpoint(d, [](OwnCheckpoint& c) { c.log_durable += 4096; }); }},
    {"RocketMQ's checkpoint's size", Kind::checkpoint, [](const OfflineDir& d) { d.cut("checkpoint", 100); }},
    {"RocketMQ's checkpoint is ahead", Kind::checkpoint,
     [](const OfflineDir& d) { d.write("checkpoint", 0, be64(int64_t{1} << 50)); }},
    {"a configuration file is no JSON", Kind::config,
     [](const OfflineDir& d) { d.replace("config/topics.json", "topics"); }},
    {"a configuration file is empty", Kind::config,
     [](const OfflineDir& d) { d.replace("config/consumerOffset.json", ""); }},
    {"a configuration file is broken, its backup is not", Kind::config,
     [](const OfflineDir& d) {
       d.replace("config/topics.json", "\x01");
       d.replace("config/topics.json.bak", "{}");
     }},
};

void expect_found(const Machine& m, const Plant& p) {
  OfflineDir d(m);
  p.damage(d);
  auto r = checked(d);
  EXPECT_FALSE(r.clean()) << p.name;
  EXPECT_GT(r.findings.count(Severity::damage, p.kind), 0u) << p.name << "\n" << text_of(r);
}

// Units of timer messages: ours have the time to deliver, RocketMQ's a hash.
Task<void> write_timers(Ctx& c) {
  const std::string out_ms = std::to_string(Loop::current().wall_ms() + later_ms);
  const std::string properties = "TIMER_OUT_MS\x01" + out_ms + "\x02TAGS\x01red\x02";
  MessageIn ours = Ctx::message(timer_topic, 0, "ours", properties);
  ours.tags_code = encode_timer_tag({Loop::current().wall_ms() + later_ms, TimerKind::time_of_day});
  MessageIn javas = Ctx::message(timer_topic, 0, "RocketMQ's", properties);
  javas.tags_code = proto::tags_code_of("red");
  MessageIn wrong = Ctx::message(timer_topic, 0, "wrong", properties);
  wrong.tags_code = 5;
  co_await c.store->put(ours);
  co_await c.store->put(javas);
  co_await c.store->put(wrong);
}
TEST(OfflineCheck, KnowsUnitsOfTimerMessages) {
  Machine m;
  m.run(write_timers, End::stop);
  OfflineDir d(m);
  offline::CheckReport r = checked(d);
  EXPECT_EQ(r.findings.count(Severity::damage), 1u) << text_of(r);
  EXPECT_NE(text_of(r).find("@2"), std::string::npos) << "the last one alone: " << text_of(r);
}

TEST(OfflineCheck, FindsDamageOfTheLog) {
  Machine m = written();
  for (const Plant& p : log_plants) expect_found(m, p);
}

TEST(OfflineCheck, FindsDamageOfQueuesAndCheckpoints) {
  Machine m = written();
  for (const Plant& p : queue_plants) expect_found(m, p);
}

// One wrong byte is one finding, not a heap of them: what follows from it is not told again.
TEST(OfflineCheck, OneDamageIsOneFinding) {
  Machine m = written();
  OfflineDir d(m);
  d.flip(log0, 90);
  auto r = checked(d);
  EXPECT_EQ(r.findings.count(Severity::damage), 1u) << text_of(r);
  ASSERT_EQ(r.findings.kept().size(), 1u) << text_of(r);
  EXPECT_EQ(r.findings.kept()[0].offset, 0);
  EXPECT_EQ(r.findings.kept()[0].path, log0);
  EXPECT_EQ(r.records, 60u);
}

TEST(OfflineCheck, CountsWhatItDoesNotShow) {
  Machine m = written();
  OfflineDir d(m);
  for (uint64_t i = 0; i < 45; i++) d.flip(queue_u, 20 * i + 11);
  auto r = checked(d);
  EXPECT_EQ(r.findings.count(Severity::damage, Kind::unit_wrong), 45u);
  EXPECT_EQ(r.findings.kept().size(), 20u);
}

TEST(OfflineCheck, StopsWhenTold) {
  Machine m;
  m.options.commit_log_file_bytes = 16u << 20;
  m.run([](Ctx& c) -> Task<void> {
    std::string fill(1 << 20, 'f');
    for (int i = 0; i < 20; i++) co_await c.put("T", 0, fill);
  });
  OfflineDir d(m);
  TestHelper helper;
  auto whole = check(d, helper);
  ASSERT_TRUE(whole) << to_string(whole.error());
  EXPECT_EQ(helper.last_done, helper.last_all);
  EXPECT_EQ(helper.last_all, 32u << 20);
  helper.stop = true;
  auto r = check(d, helper);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->interrupted);
  EXPECT_FALSE(r->clean());
}

}  // namespace
}  // namespace rmq::store::test

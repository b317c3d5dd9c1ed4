// Topics with queue.type=BatchCQ in the store: records of several messages, RocketMQ's files of their queues
// and ours, both ways between the two, and a crash at every point.
#include <map>

#include "offline_dir.h"
#include "proto/batch.h"
#include "store/compaction_format.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr const char* topic = "B";
constexpr int32_t inner_flags = proto::sys_flag::need_unwrap | proto::sys_flag::inner_batch;

class Batches : public Machine {
 public:
  Batches() {
    options.batch_topics = {topic};
    options.batch_queue_file_units = 16;
    options.consume_queue_file_units = 100;
  }
  std::vector<std::string> files(const std::string& dir) const {
    std::vector<std::string> out;
    for (const std::string& p : image.files())
      if (p.starts_with("/store/" + dir)) out.push_back(p.substr(7));
    return out;
  }
  // What RocketMQ finds in its files of a queue: up to the first unit that is none.
  std::vector<BatchUnit> units(int32_t queue) const {
    std::string all;
    for (const std::string& f : files("batchconsumequeue/B/" + std::to_string(queue) + "/")) {
      const std::string content = file(f);
      EXPECT_EQ(content.size(), size_t{options.batch_queue_file_units} * batch_unit_bytes) << f;
      all += content;
    }
    std::vector<BatchUnit> out;
    for (size_t at = 0; at < all.size(); at += batch_unit_bytes) {
      const BatchUnit u = decode_batch_unit(as_bytes(all).data() + at);
      if (!u.is_message()) {
        for (const std::byte b : as_bytes(all).subspan(at))
          EXPECT_EQ(b, std::byte{0}) << "behind the last unit";
        break;
      }
      out.push_back(u);
    }
    return out;
  }
};

std::string batch_of(int32_t messages, std::string_view name) {
  std::string body;
  for (int32_t i = 0; i < messages; i++)
    proto::append_batch_message(body, i, as_bytes(std::string(name) + "." + std::to_string(i)), "k\x01v\x02");
  return body;
}

// Messages 0: a single one. What the views point at must stay.
MessageIn message_of(int32_t queue, int32_t messages, const std::string& body,
                     const std::string& properties) {
  MessageIn m = Ctx::message(topic, queue, body, properties);
  if (messages == 0) return m;
  m.sys_flag = inner_flags;
  m.inner_messages = messages;
  return m;
}

Task<PutMessageResult> put_record(Ctx& c, int32_t queue, int32_t messages, std::string name) {
  const std::string body = messages == 0 ? name : batch_of(messages, name);
  std::string properties = "UNIQ_KEY\x01" + name + "\x02";
  if (messages > 0) properties += "INNER_NUM\x01" + std::to_string(messages) + "\x02";
  const MessageIn m = message_of(queue, messages, body, properties);
  co_return co_await c.store->put(m);
}

struct Record {
  int64_t offset = 0;
  int32_t messages = 0;  // as units: a single one is 1
  std::string name;
  int64_t physical = 0;
};
using Records = std::map<int32_t, std::vector<Record>>;  // by queue
Records put_so_far;

int64_t end_of(int32_t queue) {
  const std::vector<Record>& all = put_so_far[queue];
  return all.empty() ? 0 : all.back().offset + all.back().messages;
}

int32_t size_of(size_t n) {
  constexpr int32_t sizes[] = {0, 3, 1, 40, 0, 7, 130, 2};
  return sizes[n % std::size(sizes)];
}

// So many records more, in two queues.
Task<void> put_some(Ctx& c, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const size_t n = put_so_far[0].size() + put_so_far[1].size();
    const auto queue = static_cast<int32_t>(n % 3 == 2);
    const int32_t messages = size_of(n);
    const std::string name = "m" + std::to_string(n);
    PutMessageResult r = co_await put_record(c, queue, messages, name);
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(r.queue_offset, end_of(queue));
    put_so_far[queue].push_back({r.queue_offset, std::max(messages, 1), name, r.physical_offset});
  }
}
Task<void> write_some(Ctx& c) {
  put_so_far.clear();
  co_await put_some(c, 40);
}
Task<void> write_more(Ctx& c) {
  co_await put_some(c, 25);
}

// The records that a get() answers, as this file knows them.
std::vector<Record> records_of(const GetMessageResult& g) {
  std::vector<Record> out;
  const std::string all = bytes_of(g);
  for (Bytes rest = as_bytes(all); !rest.empty();) {
    auto v = proto::parse_record(rest, proto::CrcCheck::verify);
    EXPECT_TRUE(v);
    if (!v) break;
    Record r{v->queue_offset, inner_messages_of(*v), std::string(*v->property("UNIQ_KEY")),
             v->physical_offset};
    EXPECT_EQ(proto::sys_flag::is_inner_batch(v->sys_flag), v->property("INNER_BASE").has_value());
    if (v->property("INNER_BASE")) {
      EXPECT_EQ(*v->property("INNER_BASE"), std::to_string(r.offset));
      EXPECT_EQ(*proto::check_batch(v->body), static_cast<uint32_t>(r.messages));
    }
    out.push_back(r);
    rest = rest.subspan(v->size);
  }
  return out;
}

void expect_same(const Record& is, const Record& want) {
  EXPECT_EQ(is.offset, want.offset) << want.name;
  EXPECT_EQ(is.messages, want.messages) << want.name;
  EXPECT_EQ(is.name, want.name);
  EXPECT_EQ(is.physical, want.physical) << want.name;
}

// Reading from the beginning, and from each offset: a record is always answered as a whole.
Task<void> expect_queue(Ctx& c, int32_t queue, const std::vector<Record>& want) {
  const int64_t begin = want.empty() ? 0 : want.front().offset;
  std::vector<Record> all;
  for (int64_t at = begin; at < c.store->max_offset(topic, queue);) {
    GetMessageResult g = co_await c.store->get(topic, queue, at, 32, nullptr);
    CO_ASSERT(g.status == GetMessageStatus::FOUND && g.next_begin_offset > at);
    uint32_t messages = 0;
    for (const Record& r : records_of(g)) {
      all.push_back(r);
      messages += static_cast<uint32_t>(r.messages);
    }
    EXPECT_EQ(g.message_count, messages);
    EXPECT_TRUE(messages <= 32 || records_of(g).size() == 1) << messages;
    at = g.next_begin_offset;
  }
  EXPECT_EQ(all.size(), want.size());
  for (size_t i = 0; i < std::min(all.size(), want.size()); i++) expect_same(all[i], want[i]);
  for (const Record& r : want) {
    for (int64_t at = r.offset; at < r.offset + r.messages; at += 1 + r.messages / 5) {
      GetMessageResult g = co_await c.store->get(topic, queue, at, 1, nullptr);
      const std::vector<Record> got = records_of(g);
      CO_ASSERT(got.size() == 1);
      expect_same(got[0], r);
      EXPECT_EQ(g.next_begin_offset, r.offset + r.messages);
      int64_t first = co_await c.store->record_begin(topic, queue, at);
      EXPECT_EQ(first, r.offset);
    }
  }
}

Task<void> expect_all(Ctx& c) {
  for (int32_t queue : {0, 1}) {
    EXPECT_EQ(c.store->max_offset(topic, queue), end_of(queue));
    if (!put_so_far[queue].empty()) EXPECT_EQ(c.store->min_offset(topic, queue), 0);
    co_await expect_queue(c, queue, put_so_far[queue]);
  }
}

void expect_units(const Batches& m) {
  for (int32_t queue : {0, 1}) {
    const std::vector<BatchUnit> units = m.units(queue);
    const std::vector<Record>& want = put_so_far[queue];
    EXPECT_EQ(units.size(), want.size());
    for (size_t i = 0; i < std::min(units.size(), want.size()); i++) {
      EXPECT_EQ(units[i].base_offset, want[i].offset);
      EXPECT_EQ(units[i].count, want[i].messages);
      EXPECT_EQ(units[i].physical_offset, want[i].physical);
      EXPECT_GT(units[i].store_timestamp_ms, 0);
      EXPECT_EQ(units[i].compacted_offset, -1);
    }
  }
  EXPECT_TRUE(m.files("consumequeue/B").empty()) << "RocketMQ does not start with it";
}

TEST(BatchQueue, IsThereAfterEveryEnd) {
  for (End end : {End::stop, End::kill, End::power_lost, End::power_torn}) {
    SCOPED_TRACE(static_cast<int>(end));
    Batches m;
    m.run(write_some, end);
    m.run(expect_all);
    EXPECT_FALSE(m.recovery.queues_rebuilt);
    expect_units(m);
    m.run(write_more, end);
    m.run(expect_all);
    EXPECT_FALSE(m.recovery.queues_rebuilt);
    expect_units(m);
    m.remove_files("rmqd.batchqueue");
    m.run(expect_all);
    EXPECT_TRUE(m.recovery.queues_rebuilt) << "of the log alone";
    expect_units(m);
    m.remove_files("batchconsumequeue");
    m.run(expect_all);
    EXPECT_TRUE(m.recovery.queues_rebuilt);
    expect_units(m);
  }
}

Task<void> refusals(Ctx& c) {
  const std::string body = batch_of(3, "x"),
                    number =
                        "INNER_NUM\x01"
                        "3\x02",
                    both = number +
                           "INNER_BASE\x01"
                           "0\x02";
  MessageIn m = message_of(0, 3, body, number);
  m.topic = "T";
  PutMessageResult r = co_await c.store->put(m);
  EXPECT_EQ(r.status, PutMessageStatus::MESSAGE_ILLEGAL) << "an ordinary topic";
  m = message_of(0, inner_messages_max + 1, body, number);
  r = co_await c.store->put(m);
  EXPECT_EQ(r.status, PutMessageStatus::MESSAGE_ILLEGAL);
  m = message_of(0, 0, body, both);
  r = co_await c.store->put(m);
  EXPECT_EQ(r.status, PutMessageStatus::MESSAGE_ILLEGAL) << "a start would count three";
  const std::string long_one = number + "x\x01" + std::string(32'740, 'x') + "\x02";
  m = message_of(0, 3, body, long_one);
  r = co_await c.store->put(m);
  EXPECT_EQ(r.status, PutMessageStatus::PROPERTIES_SIZE_EXCEEDED) << "no room for INNER_BASE";
  EXPECT_EQ(c.store->max_offset(topic, 0), 0);
  // What a producer says of the base does not count.
  const std::string lie = number +
                          "INNER_BASE\x01"
                          "77\x02";
  m = message_of(0, 3, body, lie);
  r = co_await c.store->put(m);
  EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  EXPECT_EQ(r.queue_offset, 0);
  EXPECT_EQ(c.store->max_offset(topic, 0), 3);
  auto added = co_await c.store->add_batch_topic("T2");
  EXPECT_TRUE(added);
  r = co_await c.put("T3", 0, "x");
  added = co_await c.store->add_batch_topic("T3");
  EXPECT_FALSE(added) << "it has queues of the other kind";
}

TEST(BatchQueue, RefusesWhatIsNone) {
  Batches m;
  m.run(refusals);
}

// A record with the most messages that there can be.
Task<void> put_a_large_one(Ctx& c) {
  put_so_far.clear();
  for (int32_t messages : {3, inner_messages_max, 2}) {
    PutMessageResult r = co_await put_record(c, 0, messages, "m" + std::to_string(messages));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    put_so_far[0].push_back({r.queue_offset, messages, "m" + std::to_string(messages), r.physical_offset});
  }
}
TEST(BatchQueue, ALargeRecord) {
  Batches m;
  m.options.commit_log_file_bytes = 4u << 20;
  m.run(put_a_large_one, End::power_lost);
  m.run(expect_all);
  expect_units(m);
}

// ---- RocketMQ's directories ----------------------------------------------------------------------------

// RocketMQ made it: nothing of ours is there.
TEST(BatchQueue, ADirectoryOfRocketMQ) {
  Batches m;
  m.run(write_some);
  m.remove_files("rmqd.");
  m.run(expect_all);
  EXPECT_FALSE(m.recovery.queues_rebuilt);
  EXPECT_TRUE(m.recovery.clean);
  expect_units(m);
  m.run(write_more);
  m.run(expect_all);
  expect_units(m);
  // Its files make no sense: the log has everything.
  m.remove_files("rmqd.");
  m.damage("batchconsumequeue/B/0/00000000000000000000", batch_unit_bytes * 2, std::string(30, '\xff'));
  m.run(expect_all);
  EXPECT_TRUE(m.recovery.queues_rebuilt);
  expect_units(m);
}

// We stopped, RocketMQ has written on, and stopped: our files are as they were.
TEST(BatchQueue, RocketMQWritesOnAndStops) {
  Batches m;
  m.run(write_some);
  std::map<std::string, std::string> old;
  for (const std::string& f : m.files("rmqd.")) old[f] = m.file(f);
  m.run(write_more);
  for (const std::string& f : m.files("rmqd."))
    if (!old.contains(f)) m.remove_files(f);
  for (const auto& [name, content] : old) {
    const std::string now = m.file(name);
    std::string whole = content;
    whole.resize(std::max(now.size(), content.size()), '\0');
    m.damage(name, 0, whole);
  }
  m.run(expect_all);
  EXPECT_FALSE(m.recovery.queues_rebuilt);
  expect_units(m);
}

// RocketMQ's files are not of what ours are of.
TEST(BatchQueue, FilesThatDoNotFitAreMadeAgain) {
  Batches m;
  m.run(write_some);
  m.remove_files("batchconsumequeue/B/1");
  m.run(expect_all);
  EXPECT_TRUE(m.recovery.queues_rebuilt);
  expect_units(m);
  const size_t last = put_so_far[0].size() - 1;
  m.damage("batchconsumequeue/B/0/" + file_name_20(last / 16 * 16 * batch_unit_bytes),
           last % 16 * batch_unit_bytes, std::string(batch_unit_bytes, '\0'));
  m.run(expect_all);
  EXPECT_TRUE(m.recovery.queues_rebuilt);
  expect_units(m);
}

// ---- topics that come and go ---------------------------------------------------------------------------

Task<void> delete_and_write(Ctx& c) {
  co_await c.store->delete_topic(topic);
  EXPECT_EQ(c.store->max_offset(topic, 0), 0);
  auto r = co_await c.put(topic, 0, "ordinary");
  EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  EXPECT_EQ(r.queue_offset, 0);
}
Task<void> expect_ordinary(Ctx& c) {
  EXPECT_EQ(c.store->max_offset(topic, 0), 1);
  EXPECT_FALSE(c.store->is_batch_topic(topic));
  GetMessageResult g = co_await c.store->get(topic, 0, 0, 32, nullptr);
  EXPECT_EQ(bodies_of(g), std::vector<std::string>{"ordinary"});
}
TEST(BatchQueue, ADeletedTopicLeavesNothing) {
  Batches m;
  m.run(write_some);
  m.run(delete_and_write);
  EXPECT_TRUE(m.files("batchconsumequeue/B").empty());
  EXPECT_TRUE(m.files("rmqd.batchqueue/B").empty());
  m.options.batch_topics = {};
  m.run(expect_ordinary);
  EXPECT_FALSE(m.recovery.queues_rebuilt);
}

Task<void> nothing(Ctx&) {
  co_return;
}
// The topic was deleted, and the machine stopped before its files were: RocketMQ does not start with them.
TEST(BatchQueue, FilesOfNoTopicAreRemoved) {
  Batches m;
  m.run(write_some);
  m.options.batch_topics = {};
  m.run(nothing);
  EXPECT_TRUE(m.files("batchconsumequeue/B").empty());
  EXPECT_TRUE(m.files("rmqd.batchqueue/B").empty());
}

// ---- retention -----------------------------------------------------------------------------------------

constexpr int64_t hour_ns = 3600 * ns_per_s;

class Aging : public Batches {
 public:
  Aging() {
    options.commit_log_file_bytes = 16'384;
    options.retention.delete_hours = 0xffffff;
    options.retention.file_reserved_ms = 3'600'000;
    options.checkpoint_interval_ms = 1000;
  }
};

Task<void> write_and_wait(Ctx& c) {
  put_so_far.clear();
  for (int i = 0; i < 20; i++) {
    co_await put_some(c, 20);
    co_await sleep_for(hour_ns / 8);
  }
}
Task<void> expect_the_rest(Ctx& c) {
  for (int32_t queue : {0, 1}) {
    const int64_t min = c.store->min_offset(topic, queue);
    EXPECT_GT(min, 0);
    EXPECT_EQ(c.store->max_offset(topic, queue), end_of(queue));
    std::vector<Record> left;
    for (const Record& r : put_so_far[queue])
      if (r.offset >= min) left.push_back(r);
    CO_ASSERT(!left.empty());
    EXPECT_EQ(left.front().offset, min) << "a queue begins with a whole record";
    EXPECT_GE(left.front().physical, c.store->min_physical_offset());
    co_await expect_queue(c, queue, left);
  }
}
TEST(BatchQueue, OldFilesGo) {
  for (End end : {End::stop, End::power_lost}) {
    Aging m;
    m.run(write_and_wait, end);
    m.run(expect_the_rest);
    const std::vector<std::string> files = m.files("batchconsumequeue/B/0/");
    ASSERT_FALSE(files.empty());
    EXPECT_NE(files.front(), "batchconsumequeue/B/0/00000000000000000000");
    EXPECT_EQ(m.units(0).back().base_offset + m.units(0).back().count, end_of(0));
    m.remove_files("rmqd.");
    m.run(expect_the_rest);
    EXPECT_EQ(m.recovery.queues_rebuilt, false);
    m.remove_files("rmqd.batchqueue");
    m.run(expect_the_rest);
    EXPECT_TRUE(m.recovery.queues_rebuilt);
  }
}

// The log has nothing of the topic any more: its offsets go on all the same.
Task<void> age_out(Ctx& c) {
  put_so_far.clear();
  co_await put_some(c, 30);
  for (int i = 0; i < 60; i++) {
    auto r = co_await c.put("T", 0, std::string(1000, 'x'));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    co_await sleep_for(hour_ns / 10);
  }
  EXPECT_EQ(c.store->min_offset(topic, 0), end_of(0));
}
Task<void> expect_expired(Ctx& c) {
  EXPECT_EQ(c.store->min_offset(topic, 0), end_of(0));
  EXPECT_EQ(c.store->max_offset(topic, 0), end_of(0));
  co_return;
}
Task<void> go_on(Ctx& c) {
  co_await expect_expired(c);
  put_so_far[1].clear();
  PutMessageResult r = co_await put_record(c, 0, 5, "again");
  EXPECT_EQ(r.queue_offset, end_of(0));
  Record next{r.queue_offset, 5, "again", r.physical_offset};
  put_so_far[0] = {next};
}
Task<void> expect_again(Ctx& c) {
  co_await expect_queue(c, 0, put_so_far[0]);
}
TEST(BatchQueue, OffsetsGoOnWhenEverythingIsOld) {
  for (const char* lost : {"", "rmqd.", "rmqd.batchqueue", "batchconsumequeue"}) {
    SCOPED_TRACE(lost);
    Aging m;
    m.run(age_out);
    if (*lost != '\0') m.remove_files(lost);
    m.run(expect_expired);
    m.run(go_on, End::kill);
    m.run(expect_again);
    ASSERT_FALSE(m.units(0).empty());
    EXPECT_EQ(m.units(0).back().base_offset, put_so_far[0][0].offset);
    EXPECT_EQ(m.units(0).back().count, 5);
  }
}

// ---- store check ---------------------------------------------------------------------------------------

TEST(BatchQueue, StoreCheckLooksAtBoth) {
  Batches m;
  m.run(write_some);
  {
    OfflineDir d(m);
    offline::CheckReport r = checked(d);
    EXPECT_TRUE(r.clean()) << text_of(r);
    EXPECT_EQ(r.queues.batch_queues, 2u);
    EXPECT_EQ(r.queues.batch_units, put_so_far[0].size() + put_so_far[1].size());
    EXPECT_EQ(r.queues.units, static_cast<uint64_t>(end_of(0) + end_of(1)));
  }
  {  // RocketMQ's files alone.
    OfflineDir d(m);
    for (const std::string& f : m.files("rmqd.")) d.remove(f);
    d.remove("rmqd.batchqueue");
    offline::CheckReport r = checked(d);
    EXPECT_TRUE(r.clean()) << text_of(r);
    EXPECT_EQ(r.queues.batch_units, put_so_far[0].size() + put_so_far[1].size());
  }
  const std::string first = "batchconsumequeue/B/0/00000000000000000000";
  struct Damage {
    std::string file;
    uint64_t at;
    std::string bytes;
    offline::Kind kind;
  };
  const std::string last = "batchconsumequeue/B/0/" + file_name_20(16 * batch_unit_bytes);
  const Damage damages[] = {
      {first, batch_unit_bytes + 36, std::string("\0\x9", 2), offline::Kind::unit_wrong},
      {first, batch_unit_bytes + 35, "\x9", offline::Kind::unit_wrong},
      {last, (put_so_far[0].size() - 1 - 16) * batch_unit_bytes, std::string(46, '\0'),
       offline::Kind::unit_missing},
      {"rmqd.batchqueue/B/0/00000000000000000000", 20 * 2 + 7, "\x9", offline::Kind::unit_wrong},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.file + " " + std::to_string(damage.at));
    OfflineDir d(m);
    d.write(damage.file, damage.at, damage.bytes);
    offline::CheckReport r = checked(d);
    EXPECT_GT(r.findings.count(offline::Severity::damage, damage.kind), 0u) << text_of(r);
  }
}

// ---- a crash at every point ----------------------------------------------------------------------------

size_t answered[2];

Task<void> short_work(Ctx& c) {
  for (size_t n = 0; n < 45 && !c.disk.crashed(); n++) {
    const auto queue = static_cast<int32_t>(n % 3 == 2);
    const int32_t messages = size_of(n);
    const std::string name = "m" + std::to_string(n);
    put_so_far[queue].push_back({end_of(queue), std::max(messages, 1), name, -1});
    PutMessageResult r = co_await put_record(c, queue, messages, name);
    if (c.disk.crashed() || r.status != PutMessageStatus::PUT_OK) co_return;
    put_so_far[queue].back().physical = r.physical_offset;
    answered[queue] = put_so_far[queue].size();
    if (n % 8 == 7) co_await sleep_for(150 * ns_per_ms);
  }
}

Task<void> judge(Ctx& c) {
  for (int32_t queue : {0, 1}) {
    std::vector<Record>& all = put_so_far[queue];
    while (!all.empty() && end_of(queue) > c.store->max_offset(topic, queue)) all.pop_back();
    EXPECT_EQ(end_of(queue), c.store->max_offset(topic, queue)) << "whole records";
    EXPECT_GE(all.size(), answered[queue]);
    for (Record& r : all) {
      auto u = co_await c.store->queue_unit(topic, queue, r.offset);
      CO_ASSERT(u.has_value());
      r.physical = u->physical_offset;
    }
    co_await expect_queue(c, queue, all);
  }
  co_await put_some(c, 10);
}

uint64_t points_of(Batches& m, uint64_t crash_at, const CrashFate& fate) {
  SimLoop loop(m.seed);
  SimDisk disk(loop, {.crash_at = crash_at}, m.image);
  Ctx c{loop, disk, nullptr, {}};
  loop.run([](Batches& machine, Ctx& ctx) -> Task<void> {
    auto opened = co_await MessageStore::open(ctx.disk, machine.options, nullptr);
    if (!opened) co_return;
    ctx.store = opened->get();
    co_await short_work(ctx);
    co_await ctx.store->shutdown();
  }(m, c));
  EXPECT_TRUE(disk.violations().empty()) << disk.violations().front();
  const uint64_t points = disk.points();
  if (!disk.crashed()) disk.crash_now();
  m.image = disk.crash_image(fate);
  return points;
}

class Crashing : public Batches {
 public:
  Crashing() {
    options.checkpoint_interval_ms = 100;
    options.queue_write_interval_ms = 40;
    answered[0] = answered[1] = 0;
    put_so_far.clear();
  }
};

// Also of the recovery, and of the taking over of RocketMQ's files.
TEST(BatchQueue, ACrashAtEveryWriteLosesNothing) {
  Crashing measure;
  const uint64_t points = points_of(measure, 0, CrashFate::all_kept(1));
  EXPECT_GT(points, 200u);
  for (uint64_t point = 1; point <= points && !testing::Test::HasFailure(); point++) {
    SCOPED_TRACE("point " + std::to_string(point));
    Crashing m;
    const CrashFate fates[] = {CrashFate::mixed(point), CrashFate::all_lost(point),
                               CrashFate::all_torn(point)};
    points_of(m, point, fates[point % 3]);
    m.run(judge, point % 2 == 0 ? End::stop : End::power_lost);
    m.run(expect_all);
    expect_units(m);
    OfflineDir d(m);
    offline::CheckReport r = checked(d);
    EXPECT_EQ(r.findings.count(offline::Severity::damage), 0u) << text_of(r);
  }
}

Task<void> open_only(Batches& m, SimDisk& disk) {
  auto opened = co_await MessageStore::open(disk, m.options, nullptr);
  if (!opened) co_return;
  co_await (*opened)->shutdown();
}

// RocketMQ's directory, and a crash while it is taken over.
TEST(BatchQueue, ACrashAtEveryWriteOfTakingOver) {
  Batches made;
  made.run(write_some);
  made.remove_files("rmqd.");
  uint64_t points = 1;
  for (uint64_t point = 0; point <= points && !testing::Test::HasFailure(); point++) {
    SCOPED_TRACE("point " + std::to_string(point));
    Batches m;
    m.image = made.copy();
    {
      SimLoop loop(7);
      SimDisk disk(loop, {.crash_at = point}, m.image);
      loop.run(open_only(m, disk));
      if (point == 0) points = disk.points();
      if (!disk.crashed()) disk.crash_now();
      m.image = disk.crash_image(CrashFate::mixed(point + 1));
    }
    m.run(expect_all);
    expect_units(m);
  }
  EXPECT_GT(points, 20u);
}

}  // namespace
}  // namespace rmq::store::test

// Compacted topics: the latest message of each key stays, with its offset, whatever retention and crashes
// take.
#include <array>
#include <cstdio>
#include <map>

#include "machine.h"
#include "offline_dir.h"
#include "store/compaction_files.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr int keys = 7;
constexpr const char* topic = "C";
constexpr int64_t hour_ms = 3'600'000;

struct Told : FailureListener {
  void on_store_failed(const Error& e) override { failed = to_string(e); }
  void on_compaction_failed(std::string_view, int32_t, const Error& e) override { refused = to_string(e); }
  std::string failed, refused;
};
Told told;

// What the tests that follow each other on one machine have put: the message of each offset, of queue 0.
std::vector<std::string> put_so_far;
size_t answered = 0;  // of them

class Compacted : public Machine {
 public:
  Compacted() {
    options.commit_log_file_bytes = 16384;
    options.consume_queue_file_units = 16;
    options.checkpoint_interval_ms = 1000;
    options.compaction_queue_file_bytes = 20 * batch_unit_bytes;
    options.compaction_log_file_bytes = 1;  // five times that: 4600
    options.compaction_interval_ms = 3000;
    options.retention.delete_hours = 0;
    options.index = false;
    told = {};
    put_so_far.clear();
  }
  std::vector<std::string> files(const std::string& dir) const {
    std::vector<std::string> out;
    for (const std::string& p : image.files())
      if (p.starts_with("/store/" + dir)) out.push_back(p.substr(7));
    return out;
  }
};

Task<void> open_topic(Ctx& c) {
  CO_ASSERT(c.store != nullptr);
  told = {};
  c.store->set_failure_listener(&told);
  std::vector<std::string> topics{topic};  // named: GCC 12
  auto set = co_await c.store->set_compacted_topics(std::move(topics));
  EXPECT_TRUE(set) << to_string(set.error());
}

std::string key_of(size_t n) {
  return "k" + std::to_string(n % keys);
}

Task<void> put_more(Ctx& c, int count) {
  for (int i = 0; i < count; i++) {
    const size_t n = put_so_far.size();
    const std::string body = key_of(n) + " " + std::to_string(n) + " " + std::string(60 + n % 50, 'x');
    std::string properties = "KEYS\x01" + key_of(n) + "\x02TAGS\x01t" + std::to_string(n % 2) + "\x02";
    auto r = co_await c.put(topic, 0, body, properties);
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(r.queue_offset, static_cast<int64_t>(n));
    put_so_far.push_back(body);
    answered = put_so_far.size();
    co_await sleep_for(20 * ns_per_ms);
  }
}

// What a consumer sees who begins at `from`: bodies by offset.
Task<std::map<int64_t, std::string>> consume(Ctx& c, int64_t from, const MessageFilter* filter = nullptr) {
  std::map<int64_t, std::string> seen;
  for (int64_t offset = from;;) {
    auto r = co_await c.store->get(topic, 0, offset, 32, filter);
    if (r.status != GetMessageStatus::FOUND && r.next_begin_offset == offset) break;
    EXPECT_GT(r.next_begin_offset, offset);
    offset = r.next_begin_offset;
    std::string all = bytes_of(r);
    for (Bytes rest = as_bytes(all); !rest.empty();) {
      auto v = proto::parse_record(rest, proto::CrcCheck::verify);
      EXPECT_TRUE(v);
      if (!v) break;
      EXPECT_TRUE(seen.empty() || seen.rbegin()->first < v->queue_offset);
      seen[v->queue_offset] = as_text(v->body);
      const std::string_view key = as_text(v->body).substr(0, as_text(v->body).find(' '));
      if (v->queue_offset < static_cast<int64_t>(answered))
        EXPECT_EQ(v->property("KEYS"), key) << v->queue_offset;
      rest = rest.subspan(v->size);
    }
    if (offset >= c.store->max_offset(topic, 0)) break;
  }
  co_return seen;
}

// Every message that is seen is as it was put, and the latest one of each key is there. How many there are.
Task<size_t> check_all(Ctx& c) {
  auto seen = co_await consume(c, 0);
  const size_t all = put_so_far.size();
  EXPECT_EQ(c.store->max_offset(topic, 0), static_cast<int64_t>(all));
  for (const auto& [offset, body] : seen) EXPECT_EQ(body, put_so_far[static_cast<size_t>(offset)]);
  for (size_t n = all - std::min<size_t>(all, keys); n < all; n++)
    EXPECT_TRUE(seen.contains(static_cast<int64_t>(n))) << "the latest of its key: " << n;
  if (!seen.empty()) {
    EXPECT_EQ(c.store->min_offset(topic, 0), seen.begin()->first);
  }
  co_return seen.size();
}

Task<void> put_and_compact(Ctx& c) {
  co_await open_topic(c);
  co_await put_more(c, 150);
  co_await sleep_for(10 * ns_per_s);
  const size_t left = co_await check_all(c);
  // All but the last file, which has less than 20, is without what has a later message.
  EXPECT_LT(left, 20u + keys);
  EXPECT_GT(c.store->stats().compaction_removed_messages, 100u);
  EXPECT_EQ(c.store->stats().compaction_copied_messages, 150u);
}

TEST(Compaction, KeepsTheLatestOfEachKeyAtItsOffset) {
  Compacted m;
  m.run(put_and_compact);
  EXPECT_EQ(told.failed + told.refused, "");
  for (const std::string& f : m.files("compaction/")) EXPECT_EQ(f.find("compacting"), std::string::npos) << f;
  EXPECT_FALSE(m.exists("compaction/rmqd.swap"));
  EXPECT_NE(m.file("compaction/position-checkpoint").find("\"C_0\":"), std::string::npos);
  // As RocketMQ checks it: for each log file a queue file of the same name, and each of its configured size.
  const auto logs = m.files("compaction/compactionLog/C/0/"),
             queues = m.files("compaction/compactionCq/C/0/");
  ASSERT_EQ(logs.size(), queues.size());
  for (size_t i = 0; i < logs.size(); i++) {
    EXPECT_EQ(logs[i].substr(logs[i].size() - 20), queues[i].substr(queues[i].size() - 20));
    EXPECT_EQ(m.file(logs[i]).size(), 4600u);
    EXPECT_EQ(m.file(queues[i]).size(), 920u);
  }
}

Task<void> look_again(Ctx& c) {
  co_await open_topic(c);
  const size_t left = co_await check_all(c);
  EXPECT_LT(left, 40u);
  co_await put_more(c, 5);
  co_await sleep_for(10 * ns_per_s);
  co_await check_all(c);
}

TEST(Compaction, OutlivesEveryEndOfTheProcess) {
  for (End end : {End::stop, End::kill, End::power_lost, End::power_torn}) {
    Compacted m;
    m.run(put_and_compact, end);
    m.run(look_again, end);
    m.run(look_again);
    EXPECT_EQ(told.failed + told.refused, "");
  }
}

Task<void> put_only(Ctx& c) {
  co_await open_topic(c);
  co_await put_more(c, 150);
  const size_t left = co_await check_all(c);
  EXPECT_EQ(left, 150u);
}
Task<void> check_whole(Ctx& c) {
  co_await open_topic(c);
  const size_t left = co_await check_all(c);
  EXPECT_EQ(left, 150u);
}

TEST(Compaction, AStopCopiesAllForWhoTakesTheDirectoryOver) {
  Compacted m;
  m.options.compaction_interval_ms = 3'600'000;
  m.options.checkpoint_interval_ms = 3'600'000;
  m.run(put_only);
  EXPECT_EQ(m.stats.compaction_copied_messages, 150u);
  m.run(check_whole);
  EXPECT_EQ(m.stats.compaction_copied_messages, 0u);
}

Task<void> lose_the_log(Ctx& c) {
  co_await open_topic(c);
  co_await put_more(c, 150);
  for (int i = 0; i < 40; i++) {  // others fill the log
    auto r = co_await c.put("other", 0, std::string(3000, 'o'));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  }
  co_await sleep_for(2 * hour_ms * ns_per_ms);
  EXPECT_GT(c.store->min_physical_offset(), 100'000);
  co_await check_all(c);
  EXPECT_TRUE(c.store->expired_queues().empty() || c.store->expired_queues()[0].topic != topic);
  MessageStore::QueueName queue;
  queue.topic = topic;
  const bool dropped = co_await c.store->drop_expired_queue(std::move(queue), nullptr);
  EXPECT_FALSE(dropped);
}

// By time: the first of those that are left which was stored then or later, and the last that was not later.
Task<void> search_by_time(Ctx& c) {
  co_await open_topic(c);
  auto seen = co_await consume(c, 0);
  const int64_t max = c.store->max_offset(topic, 0);
  int64_t before = c.store->min_offset(topic, 0);
  for (const auto& [offset, body] : seen) {
    const int64_t ms = co_await c.store->store_time(topic, 0, offset);
    EXPECT_GT(ms, 0) << offset;
    const int64_t lower = co_await c.store->search_offset(topic, 0, ms, MessageStore::Boundary::LOWER);
    const int64_t upper = co_await c.store->search_offset(topic, 0, ms, MessageStore::Boundary::UPPER);
    const int64_t less = co_await c.store->search_offset(topic, 0, ms - 1, MessageStore::Boundary::UPPER);
    EXPECT_EQ(lower, offset);
    EXPECT_EQ(upper, offset);
    EXPECT_EQ(less, before);
    before = offset;
  }
  const int64_t late =
      co_await c.store->search_offset(topic, 0, INT64_MAX / 2, MessageStore::Boundary::LOWER);
  EXPECT_EQ(late, max);
  const int64_t none = co_await c.store->store_time(topic, 0, max);
  EXPECT_EQ(none, -1);
  EXPECT_FALSE(seen.empty());
  co_await put_more(c, 3);
  const int64_t ms = co_await c.store->store_time(topic, 0, max + 1);
  const int64_t fresh = co_await c.store->search_offset(topic, 0, ms, MessageStore::Boundary::LOWER);
  EXPECT_GE(fresh, max);
  const int64_t fresh_ms = co_await c.store->store_time(topic, 0, fresh);
  EXPECT_EQ(fresh_ms, ms);
}

TEST(Compaction, RetentionOfTheLogTakesNoKey) {
  for (End end : {End::stop, End::power_lost}) {
    Compacted m;
    m.options.retention.delete_hours = 0xffffff;
    m.options.retention.file_reserved_ms = hour_ms;
    m.run(lose_the_log, end);
    m.run(search_by_time, end);
    m.run(look_again);
    EXPECT_EQ(told.failed + told.refused, "");
  }
}

// Its queue files and where it ended are lost, and the log has nothing of it: offsets go on behind.
TEST(Compaction, NeverGivesAnOffsetTwice) {
  Compacted m;
  m.options.retention.delete_hours = 0xffffff;
  m.options.retention.file_reserved_ms = hour_ms;
  m.run(lose_the_log);
  m.remove_files("consumequeue/");
  m.remove_files("rmqd.");
  m.run(look_again);
}

struct OddTags : MessageFilter {
  bool matches_tags_code(int64_t code) const override { return code == proto::tags_code_of("t1"); }
};
struct LongBodies : MessageFilter {
  bool matches_tags_code(int64_t) const override { return true; }
  bool needs_record() const override { return true; }
  std::optional<bool> known(int64_t) const override { return false; }  // of the log's offsets: not these
  bool matches_record(Bytes) const override { return false; }
  bool matches_copy(Bytes record) const override { return proto::parse_record(record)->body.size() > 100; }
};

Task<void> filter(Ctx& c) {
  co_await open_topic(c);
  const auto all = co_await consume(c, 0);
  const OddTags odd;
  const auto some = co_await consume(c, 0, &odd);
  size_t wanted = 0;
  for (const auto& [offset, body] : all) wanted += static_cast<size_t>(offset % 2);
  EXPECT_EQ(some.size(), wanted);
  for (const auto& [offset, body] : some) EXPECT_EQ(offset % 2, 1);
  const LongBodies by_record;
  const auto long_ones = co_await consume(c, 0, &by_record);
  wanted = 0;
  for (const auto& [offset, body] : all) wanted += body.size() > 100 ? 1 : 0;
  EXPECT_EQ(long_ones.size(), wanted);
  EXPECT_GT(wanted, 0u);
}

TEST(Compaction, FiltersLookAtWhatIsThere) {
  Compacted m;
  m.run(put_and_compact);
  m.run(filter);
}

// The keys of one compaction do not fit: it takes several.
TEST(Compaction, ManyKeysTakeSeveralCompactions) {
  Compacted m;
  m.options.compaction_map_bytes = 300;  // three of them
  m.options.compaction_interval_ms = 100;
  m.run(put_and_compact);
  EXPECT_GT(m.stats.compactions, 10u);
  EXPECT_EQ(told.failed + told.refused, "");
}

// Queue files are made again from the log files; a log file that is lost is not passed over.
TEST(Compaction, LostFiles) {
  Compacted m;
  m.run(put_and_compact);
  const Compacted intact = m;
  m.remove_files("compaction/compactionCq/");
  m.run(look_again);
  put_so_far.resize(150);
  // RocketMQ leaves such files, also when it stops in order; it does not start then itself.
  Compacted replaced = intact;
  const std::string left = "/store/compaction/compactionLog/C/0/00000000000000000000.delete";
  replaced.run([](Ctx& c) -> Task<void> {
    OpenHow how;
    how.write = how.create = true;
    auto made = co_await c.disk.open("/store/compaction/compactionLog/C/0/00000000000000000000.delete", how);
    EXPECT_TRUE(made);
    co_await open_topic(c);
  });
  EXPECT_FALSE(replaced.image.read_file(left).has_value());
  replaced.run(look_again);
  Compacted broken = intact;
  broken.remove_files(broken.files("compaction/compactionLog/C/0/")[0]);
  const auto before = broken.files("compaction/");
  broken.run([](Ctx& c) -> Task<void> {
    std::vector<std::string> topics{topic};  // named: GCC 12
    auto set = co_await c.store->set_compacted_topics(std::move(topics));
    EXPECT_FALSE(set);
    if (!set) EXPECT_EQ(set.error().code, Errc::corrupt);
    co_await sleep_for(5 * ns_per_s);
  });
  EXPECT_EQ(broken.files("compaction/"), before) << "what cannot be read is left as it is";
}

// Of the last pair: the log file, where its records end, the queue file, how many units it has.
struct LastPair {
  std::string log, queue;
  uint64_t end = 0, units = 0;
};
LastPair last_pair;

// As a start leaves them that crashes between the two steps of cutting what is behind the last record.
Task<void> cut_short_and_put_more(Ctx& c) {
  OpenHow how;
  how.write = true;
  const std::pair<std::string, uint64_t> cuts[] = {{last_pair.log, last_pair.end},
                                                   {last_pair.queue, last_pair.units * batch_unit_bytes}};
  for (const auto& [path, bytes] : cuts) {
    auto f = co_await c.disk.open("/store/" + path, how);
    CO_ASSERT(f.has_value());
    auto cut = co_await (*f)->truncate(bytes);
    EXPECT_TRUE(cut);
    co_await (*f)->close();
  }
  co_await open_topic(c);
  co_await put_more(c, 30);
  co_await sleep_for(10 * ns_per_s);
  EXPECT_EQ(told.failed, "");
  co_await check_all(c);
}

TEST(Compaction, AStartThatCrashedWhileItCutTheFiles) {
  Compacted m;
  m.run(put_and_compact, End::kill);
  last_pair = {m.files("compaction/compactionLog/C/0/").back(),
               m.files("compaction/compactionCq/C/0/").back()};
  const std::string log = m.file(last_pair.log);
  for (;;) {
    auto v = proto::parse_record(as_bytes(log).subspan(last_pair.end), proto::CrcCheck::verify);
    if (!v) break;
    last_pair.end += v->size;
    last_pair.units++;
  }
  ASSERT_GT(last_pair.units, 0u);
  ASSERT_LT(last_pair.end, log.size());
  m.run(cut_short_and_put_more, End::kill);
  m.run([](Ctx& c) -> Task<void> {
    co_await open_topic(c);
    co_await check_all(c);
  });
}

Task<void> delete_and_make_again(Ctx& c) {
  co_await open_topic(c);
  co_await c.store->delete_topic(topic);
  EXPECT_FALSE(c.store->is_compacted(topic));
  auto added = co_await c.store->add_compacted_topic(topic);
  EXPECT_TRUE(added);
  put_so_far.clear();
  co_await put_more(c, 30);
  const size_t seen = co_await check_all(c);
  EXPECT_EQ(seen, 30u);
}

TEST(Compaction, ADeletedTopicLeavesNothingToItsSuccessor) {
  Compacted m;
  m.run(put_and_compact);
  m.run(delete_and_make_again);
  m.run([](Ctx& c) -> Task<void> {
    co_await open_topic(c);
    const size_t seen = co_await check_all(c);
    EXPECT_EQ(seen, 30u);
  });
}

// A crash before the files of a deleted topic are gone: whoever makes it anew does not get them.
TEST(Compaction, FilesOfADeletedTopicThatACrashLeft) {
  Compacted m;
  m.run(put_and_compact);
  m.run([](Ctx& c) -> Task<void> {
    std::vector<std::string> no_topics;
    auto none = co_await c.store->set_compacted_topics(std::move(no_topics));
    EXPECT_TRUE(none);
    co_await c.store->delete_topic(topic);
    auto added = co_await c.store->add_compacted_topic(topic);
    EXPECT_TRUE(added);
    put_so_far.clear();
    co_await put_more(c, 10);
    const size_t seen = co_await check_all(c);
    EXPECT_EQ(seen, 10u);
  });
}

Task<void> delete_now(Ctx& c) {
  co_await c.store->delete_topic(topic);
}
Task<void> add_now(Ctx& c) {
  auto added = co_await c.store->add_compacted_topic(topic);
  EXPECT_TRUE(added);
}

// Whoever asks again because the answer takes long; and whoever makes the topic again meanwhile.
TEST(Compaction, IsDeletedAndMadeBySeveralAtOnce) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    Compacted m;
    m.options.compaction_interval_ms = 3'600'000;
    m.run(put_only);
    m.seed = seed;
    m.run([](Ctx& c) -> Task<void> {
      co_await open_topic(c);
      Scope all;
      all.spawn(delete_now(c));
      all.spawn(delete_now(c));
      all.spawn(add_now(c));
      all.spawn(add_now(c));
      co_await all.join();
      EXPECT_EQ(told.failed, "");
      EXPECT_TRUE(c.store->is_compacted(topic));
      put_so_far.clear();
      co_await put_more(c, 30);
      co_await sleep_for(10 * ns_per_s);
      const size_t seen = co_await check_all(c);
      EXPECT_EQ(seen, 30u);
    });
    m.run([](Ctx& c) -> Task<void> {
      co_await open_topic(c);
      const size_t seen = co_await check_all(c);
      EXPECT_EQ(seen, 30u);
    });
  }
}

// ---- a disk without room, or with errors ---------------------------------------------------------------

constexpr uint64_t always = UINT64_MAX / 2;

std::string failed_before_the_end;  // a kill makes calls fail, too

Task<void> put_and_wait(Ctx& c) {
  co_await open_topic(c);
  co_await put_more(c, 150);
  co_await sleep_for(30 * ns_per_s);
  failed_before_the_end = told.failed;
}

size_t files_beside(const Compacted& m) {
  size_t n = 0;
  for (const std::string& f : m.files("compaction/")) n += f.find("compacting") == std::string::npos ? 0 : 1;
  return n;
}

// What cannot take its place must not fill the disk; and nothing of it counts as done.
TEST(Compaction, FilesThatFindNoWayToTheirPlaceAreRemoved) {
  Compacted m;
  m.options.compaction_interval_ms = 20'000;
  m.plan.faults.push_back({.kind = sim::FaultKind::no_space,
                           .op = sim::OpKind::write,
                           .path_part = "rmqd.swap",
                           .times = always});
  m.run(put_and_wait, End::kill);
  EXPECT_NE(told.refused, "");
  EXPECT_EQ(failed_before_the_end, "");
  EXPECT_EQ(files_beside(m), 0u);
  EXPECT_EQ(m.stats.compactions, 0u);
  EXPECT_EQ(m.stats.compaction_removed_messages, 0u);
  m.plan.faults.clear();
  m.run([](Ctx& c) -> Task<void> {
    co_await open_topic(c);
    co_await sleep_for(30 * ns_per_s);
    const size_t left = co_await check_all(c);
    EXPECT_LT(left, 20u + keys);
  });
  EXPECT_EQ(m.stats.compactions, 1u);
  EXPECT_GT(m.stats.compaction_removed_messages, 100u);
}

TEST(Compaction, FilesThatAreLargerThanThoseBeforeAreRemoved) {
  Compacted m;
  m.options.compaction_interval_ms = 3'600'000;
  m.run(put_only);
  m.options.compaction_interval_ms = 20'000;
  m.options.compaction_log_file_bytes = 100'000;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await open_topic(c);
        co_await sleep_for(30 * ns_per_s);
        const size_t left = co_await check_all(c);
        EXPECT_EQ(left, 150u);
      },
      End::kill);
  EXPECT_NE(told.refused.find("larger"), std::string::npos) << told.refused;
  EXPECT_EQ(files_beside(m), 0u);
}

// What is to be replaced is written, nobody knows whether it is safe, and it cannot be taken back.
TEST(Compaction, ASwapThatCannotBeTakenBackIsCarriedThrough) {
  Compacted m;
  m.options.compaction_interval_ms = 20'000;
  for (const sim::OpKind op : {sim::OpKind::sync, sim::OpKind::remove})
    m.plan.faults.push_back(
        {.kind = sim::FaultKind::io_error, .op = op, .path_part = "rmqd.swap", .times = always});
  m.run(put_and_wait, End::kill);
  EXPECT_NE(failed_before_the_end, "");
  m.plan.faults.clear();
  m.run([](Ctx& c) -> Task<void> {
    co_await open_topic(c);
    const size_t left = co_await check_all(c);
    EXPECT_GE(left, static_cast<size_t>(keys));
  });
  EXPECT_EQ(told.failed, "");
}

// On a full disk nothing can be copied. The log loses its old files all the same, or the disk stayed full
// for ever; but not those with messages that are not copied.
TEST(Compaction, AFullDiskLosesOldFilesOfTheLogAndNoKey) {
  Compacted m;
  m.options.retention.delete_hours = 0xffffff;
  m.options.retention.file_reserved_ms = hour_ms;
  m.options.checkpoint_interval_ms = 30'000;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await open_topic(c);
        co_await put_more(c, 20);
        co_await sleep_for(40 * ns_per_s);
        for (int i = 0; i < 40; i++) {
          auto r = co_await c.put("other", 0, std::string(3000, 'o'));
          EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        }
        co_await put_more(c, 15);
        for (int i = 0; i < 40; i++) {
          auto r = co_await c.put("other", 0, std::string(3000, 'o'));
          EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        }
      },
      End::kill);
  EXPECT_EQ(m.stats.compaction_copied_messages, 20u);
  m.plan.faults.push_back({.kind = sim::FaultKind::no_space,
                           .op = sim::OpKind::write,
                           .path_part = "compaction/",
                           .times = always});
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await open_topic(c);
        co_await sleep_for(2 * hour_ms * ns_per_ms);
        EXPECT_GT(c.store->min_physical_offset(), 50'000);
        EXPECT_LT(c.store->min_physical_offset(), 200'000);
        co_await check_all(c);
        EXPECT_EQ(told.failed, "");
      },
      End::kill);
  m.plan.faults.clear();
  m.run([](Ctx& c) -> Task<void> {
    co_await open_topic(c);
    co_await sleep_for(2 * hour_ms * ns_per_ms);
    EXPECT_GT(c.store->min_physical_offset(), 200'000);
    co_await check_all(c);
  });
}

// ---- what is on disk -----------------------------------------------------------------------------------

TEST(Compaction, ASwapIsWholeOrNone) {
  CompactionSwap s;
  s.topic = "T";
  s.queue_id = 3;
  s.old_files = {0, 4600};
  s.new_files = {0};
  const std::string text = encode_compaction_swap(s);
  EXPECT_EQ(decode_compaction_swap(text), s);
  for (size_t n = 0; n < text.size(); n++) {
    EXPECT_EQ(decode_compaction_swap(text.substr(0, n)), std::nullopt) << n;
    std::string other = text;
    other[n] ^= 1;
    EXPECT_EQ(decode_compaction_swap(other), std::nullopt) << n;
  }
  s.new_files.clear();
  EXPECT_EQ(decode_compaction_swap(encode_compaction_swap(s)), s);
}

TEST(Compaction, StoreCheckLooksAtIt) {
  Compacted m;
  m.run(put_and_compact);
  const auto check_now = [&m] {
    OfflineDir d(m);
    TestHelper helper;
    return check(d, helper);
  };
  auto clean = check_now();
  ASSERT_TRUE(clean);
  EXPECT_TRUE(clean->clean());
  EXPECT_EQ(clean->compaction.queues, 1u);
  EXPECT_GE(clean->compaction.records, static_cast<uint64_t>(keys));
  const std::string log = m.files("compaction/compactionLog/C/0/")[0];
  const std::string queue = m.files("compaction/compactionCq/C/0/")[0];
  m.damage(log, 100, "broken");
  auto found = check_now();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->findings.count(offline::Severity::damage, offline::Kind::unit_wrong), 1u);
  m.remove_files(queue);
  auto lost = check_now();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->clean()) << "a start makes it again";
  EXPECT_EQ(lost->findings.count(offline::Severity::note, offline::Kind::queue_file), 1u);
}

// ---- a crash at every point ----------------------------------------------------------------------------

Task<void> short_work(Ctx& c) {
  c.store->set_failure_listener(&told);
  std::vector<std::string> topics{topic};  // named: GCC 12
  auto set = co_await c.store->set_compacted_topics(std::move(topics));
  if (!set) {
    EXPECT_TRUE(c.disk.crashed()) << to_string(set.error());
    co_return;
  }
  for (int i = 0; i < 60 && !c.disk.crashed(); i++) {
    const size_t n = put_so_far.size();
    const std::string body = key_of(n) + " " + std::to_string(n) + " " + std::string(60 + n % 50, 'x');
    put_so_far.push_back(body);
    auto r = co_await c.put(topic, 0, body, "KEYS\x01" + key_of(n) + "\x02");
    if (c.disk.crashed() || r.status != PutMessageStatus::PUT_OK) co_return;
    answered = put_so_far.size();
    if (i % 10 == 9) co_await sleep_for(300 * ns_per_ms);
  }
  co_await sleep_for(ns_per_s);
}

Task<void> judge(Ctx& c) {
  co_await open_topic(c);
  auto seen = co_await consume(c, 0);
  const auto max = static_cast<size_t>(c.store->max_offset(topic, 0));
  EXPECT_GE(max, answered);
  EXPECT_LE(max, put_so_far.size());
  for (const auto& [offset, body] : seen) EXPECT_EQ(body, put_so_far[static_cast<size_t>(offset)]);
  for (size_t n = max - std::min<size_t>(max, keys); n < max; n++)
    EXPECT_TRUE(seen.contains(static_cast<int64_t>(n))) << "the latest of its key: " << n << " of " << max;
  put_so_far.resize(max);
  co_await put_more(c, 20);
  co_await sleep_for(2 * ns_per_s);
  co_await check_all(c);
}

uint64_t points_of(Compacted& m, uint64_t crash_at, const CrashFate& fate, Body body = short_work) {
  SimLoop loop(m.seed);
  SimDisk disk(loop, {.crash_at = crash_at}, m.image);
  Ctx c{loop, disk, nullptr, {}};
  loop.run([](Compacted& machine, Ctx& ctx, Body work) -> Task<void> {
    auto opened = co_await MessageStore::open(ctx.disk, machine.options, nullptr);
    if (!opened) co_return;
    ctx.store = opened->get();
    co_await work(ctx);
    co_await ctx.store->shutdown();
  }(m, c, body));
  EXPECT_TRUE(disk.violations().empty()) << disk.violations().front();
  const uint64_t points = disk.points();
  if (!disk.crashed()) disk.crash_now();
  m.image = disk.crash_image(fate);
  return points;
}

TEST(Compaction, ACrashAtEveryWriteLosesNothing) {
  Compacted measure;
  measure.options.compaction_interval_ms = 400;
  measure.options.checkpoint_interval_ms = 200;
  const uint64_t points = points_of(measure, 0, CrashFate::all_kept(1));
  EXPECT_GT(points, 200u);
  for (uint64_t point = 1; point <= points && !testing::Test::HasFailure(); point++) {
    SCOPED_TRACE("point " + std::to_string(point));
    Compacted m;
    m.options = measure.options;
    answered = 0;
    const CrashFate fates[] = {CrashFate::mixed(point), CrashFate::all_lost(point),
                               CrashFate::all_torn(point)};
    points_of(m, point, fates[point % 3]);
    told = {};
    m.run(judge);
    EXPECT_EQ(told.failed + told.refused, "");
  }
}

// The queue files were lost, and are made again.
TEST(Compaction, ACrashAtEveryWriteBehindLostQueueFiles) {
  Compacted base;
  base.options.compaction_interval_ms = 3'600'000;
  base.options.checkpoint_interval_ms = 200;
  base.run([](Ctx& c) -> Task<void> {
    co_await open_topic(c);
    co_await put_more(c, 50);
  });
  base.remove_files("compaction/compactionCq/");
  const std::vector<std::string> put_before = put_so_far;
  Compacted measure = base;
  const uint64_t points = points_of(measure, 0, CrashFate::all_kept(1));
  for (uint64_t point = 1; point <= points && !testing::Test::HasFailure(); point++) {
    SCOPED_TRACE("point " + std::to_string(point));
    Compacted m = base;
    put_so_far = put_before;
    answered = put_before.size();
    const CrashFate fates[] = {CrashFate::mixed(point), CrashFate::all_lost(point),
                               CrashFate::all_torn(point)};
    points_of(m, point, fates[point % 3]);
    m.run(judge);
    EXPECT_EQ(told.failed + told.refused, "");
  }
}

// A deleted topic is in the list of topics as before when there was no room to write that.
TEST(Compaction, ACrashWhileATopicIsDeletedStopsNoStart) {
  Compacted base;
  base.options.compaction_interval_ms = 3'600'000;
  base.run(put_only);
  const auto delete_it = [](Ctx& c) -> Task<void> {
    std::vector<std::string> topics{topic};  // named: GCC 12
    auto set = co_await c.store->set_compacted_topics(std::move(topics));
    if (set) co_await c.store->delete_topic(topic);
  };
  Compacted measure = base;
  const uint64_t points = points_of(measure, 0, CrashFate::all_kept(1), delete_it);
  EXPECT_GT(points, 40u);
  for (uint64_t point = 1; point <= points && !testing::Test::HasFailure(); point++) {
    for (const CrashFate& fate : {CrashFate::all_kept(point), CrashFate::mixed(point)}) {
      SCOPED_TRACE("point " + std::to_string(point));
      Compacted m = base;
      points_of(m, point, fate, delete_it);
      m.run([](Ctx& c) -> Task<void> {
        co_await open_topic(c);
        const auto seen = co_await consume(c, 0);
        EXPECT_LE(seen.size(), 150u);
        co_await c.store->delete_topic(topic);
        EXPECT_EQ(told.failed, "");
      });
      EXPECT_TRUE(m.files("compaction/compaction").empty());
    }
  }
}

}  // namespace
}  // namespace rmq::store::test

// Looking up messages by key, and the index files: their bytes, several of them, and their coming back after
// every kind of end, loss and damage.
#include "machine.h"
#include "offline_dir.h"
#include "store/index_format.h"
#include "store/index_keys.h"
#include "store/index_state.h"

namespace rmq::store::test {
namespace {

std::string props(std::string_view unique_key, std::string_view keys = "") {
  std::string p;
  if (!keys.empty()) p += "KEYS\x01" + std::string(keys) + "\x02";
  if (!unique_key.empty()) p += "UNIQ_KEY\x01" + std::string(unique_key) + "\x02";
  return p;
}

// The bodies that a look-up finds, in the order of the answer.
Task<std::string> find(Ctx& c, std::string_view topic, std::string_view key, int32_t max = 64,
                       int64_t begin_ms = 0, int64_t end_ms = INT64_MAX, KeyKind kind = KeyKind::key) {
  auto r = co_await c.store->query_message(topic, key, max, begin_ms, end_ms, kind);
  if (!r) co_return "failed: " + to_string(r.error());
  std::string out;
  uint64_t bytes = 0;
  for (const LogExtent& e : r->records) {
    auto v = proto::parse_record(e.bytes(), proto::CrcCheck::verify);
    if (!v) co_return "no record";
    out += (out.empty() ? "" : ",") + std::string(as_text(v->body));
    bytes += v->size;
  }
  if (bytes != r->byte_count) co_return "wrong byte count";
  co_return out;
}

struct Told final : FailureListener {
  void on_store_failed(const Error&) override { store_failed = true; }
  void on_index_damaged(const char* why) override { damaged.emplace_back(why); }
  void on_index_failed(const Error&) override { failures++; }
  std::vector<std::string> damaged;
  int failures = 0;
  bool store_failed = false;
};
Told told;  // of the last run with hear()

void hear(Ctx& c) {
  told = {};
  c.store->set_failure_listener(&told);
}

struct SmallIndex : Machine {
  SmallIndex() {
    options.index_slots = 7;
    options.index_entries = 20;
    options.checkpoint_interval_ms = 100;
  }
};

// ---- what is found -------------------------------------------------------------------------------------

TEST(Index, Hash) {
  EXPECT_EQ(index_hash("a", "b"), 97 * 961 + 35 * 31 + 98);
  EXPECT_EQ(proto::java_hash("polygenelubricants"), INT32_MIN);
  EXPECT_EQ(index_hash_of(INT32_MIN), 0);
  EXPECT_EQ(index_hash_of(-5), 5);
  std::vector<int32_t> hashes;
  const std::string text = props("u", "k  l ") + "TAGS\x01t\x02";
  StoredProperties p = stored_properties(text);
  EXPECT_EQ(p.tags, "t");
  EXPECT_EQ(each_index_hash("Ö", p, [&](int32_t h) { hashes.push_back(h); }), 4u);
  EXPECT_EQ(hashes, (std::vector<int32_t>{index_hash("Ö", "u"), index_hash("Ö", "k"), index_hash("Ö", "l"),
                                          index_hash("Ö", "T#t")}));
  EXPECT_EQ(hash_of_look_up("Ö", KeyKind::tags, "t"), index_hash("Ö", "T#t"));
}

TEST(Index, PropertiesAsRocketMqReadsThem) {
  StoredProperties p =
      stored_properties("KEYS\x01 a\x02KEYS\x01 b\x02UNIQ_KEY\x01\x02KEYSX\x01y\x02TAGS\x01last");
  EXPECT_EQ(p.keys, " b");
  EXPECT_EQ(p.unique_key, "");
  EXPECT_EQ(p.tags, "last");
  EXPECT_TRUE(has_key(p, KeyKind::key, "b"));
  EXPECT_FALSE(has_key(p, KeyKind::key, "last"));
  EXPECT_TRUE(has_key(p, KeyKind::tags, "last"));
  EXPECT_FALSE(has_key(p, KeyKind::key, ""));
}

Task<void> by_key(Ctx& c) {
  for (int i = 0; i < 5; i++)
    co_await c.put("T", i % 2, "m" + std::to_string(i),
                   props("u" + std::to_string(i), i < 4 ? "k  both" : "other k"));
  co_await c.put("U", 0, "of another topic", props("u0", "k"));
  std::string found = co_await find(c, "T", "k");
  EXPECT_EQ(found, "m0,m1,m2,m3,m4");
  found = co_await find(c, "T", "both");
  EXPECT_EQ(found, "m0,m1,m2,m3");
  found = co_await find(c, "T", "both", 2);
  EXPECT_EQ(found, "m2,m3") << "the newest";
  found = co_await find(c, "T", "u3");
  EXPECT_EQ(found, "m3");
  found = co_await find(c, "U", "u0");
  EXPECT_EQ(found, "of another topic");
  for (const char* none : {"", "none", "k  both", "oth"}) {
    found = co_await find(c, "T", none);
    EXPECT_EQ(found, "") << none;
  }
  found = co_await find(c, "T", "k", 0);
  EXPECT_EQ(found, "");
  found = co_await find(c, "T", "k", -1);
  EXPECT_EQ(found, "");
  co_await c.put("T", 0, "tagged", "TAGS\x01tag\x02");
  found = co_await find(c, "T", "tag", 64, 0, INT64_MAX, KeyKind::tags);
  EXPECT_EQ(found, "tagged");
  found = co_await find(c, "T", "tag");
  EXPECT_EQ(found, "") << "a tag is no key";
  co_await c.put("T", 0, "twice", props("same", "same same"));
  found = co_await find(c, "T", "same");
  EXPECT_EQ(found, "twice");
}

TEST(Index, ByKeyRightAfterThePut) {
  Machine m;
  m.run(by_key);
}

TEST(Index, BatchesAndTransactions) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    std::string p1 = props("b1"), p2 = props("b2", "key");
    std::vector<MessageIn> batch{Ctx::message("T", 0, "one", p1), Ctx::message("T", 0, "two", p2)};
    auto put = co_await c.store->put_batch(batch);
    EXPECT_EQ(put.status, PutMessageStatus::PUT_OK);
    std::string found = co_await find(c, "T", "b1");
    EXPECT_EQ(found, "one");
    std::string p = props("", "tx");
    constexpr int32_t types[] = {proto::sys_flag::transaction_prepared, proto::sys_flag::transaction_commit,
                                 proto::sys_flag::transaction_rollback};
    constexpr const char* names[] = {"prepared", "committed", "rolled back"};
    for (int i = 0; i < 3; i++) {
      MessageIn in = Ctx::message("T", 0, names[i], p);
      in.sys_flag = types[i];
      co_await c.store->put(in);
    }
    found = co_await find(c, "T", "tx");
    EXPECT_EQ(found, "prepared,committed");
  });
}

// "XAa#BB" and "XBB#Aa", "XAa#Aa" and so on have one hash: what is answered has the key.
TEST(Index, CollisionsAreToldApart) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    CO_ASSERT(index_hash("XAa", "BB") == index_hash("XBB", "Aa"));
    co_await c.put("XAa", 0, "first", props("", "Aa"));
    for (int i = 0; i < 10; i++) co_await c.put("XBB", 0, "second" + std::to_string(i), props("", "BB"));
    std::string found = co_await find(c, "XAa", "Aa", 1);
    EXPECT_EQ(found, "first") << "ten that only share its hash are newer";
    found = co_await find(c, "XAa", "BB");
    EXPECT_EQ(found, "");
    found = co_await find(c, "XBB", "BB", 2);
    EXPECT_EQ(found, "second8,second9");
  });
}

// One second between messages: the index keeps whole seconds, the records milliseconds.
TEST(Index, TimeRange) {
  SmallIndex m;
  m.run([](Ctx& c) -> Task<void> {
    std::vector<int64_t> at;
    for (int i = 0; i < 50; i++) {
      auto r = co_await c.put("T", 0, std::to_string(i), props("", "k"));
      at.push_back(r.store_timestamp_ms);
      co_await sleep_for(1300 * ns_per_ms);
    }
    std::string found = co_await find(c, "T", "k", 64, at[3], at[5]);
    EXPECT_EQ(found, "3,4,5") << "exactly the times of the records";
    found = co_await find(c, "T", "k", 64, at[44] - 100, at[44] + 100);
    EXPECT_EQ(found, "44");
    found = co_await find(c, "T", "k", 64, at[49] + 1000, INT64_MAX);
    EXPECT_EQ(found, "");
    found = co_await find(c, "T", "k", 64, 0, at[0] - 1000);
    EXPECT_EQ(found, "");
    found = co_await find(c, "T", "k", 64, at[9], at[4]);
    EXPECT_EQ(found, "") << "the end is before the begin";
    found = co_await find(c, "T", "k", 2, at[20], at[39]);
    EXPECT_EQ(found, "38,39") << "the newest of the range, in older files";
    auto all = co_await c.store->query_message("T", "k", 64, INT64_MIN, INT64_MAX);
    CO_ASSERT(all && all->records.size() == 50);
    EXPECT_EQ(all->index_last_update_timestamp_ms, at[49]);
  });
}

TEST(Index, LargeMessagesDoNotMakeTheAnswerTooLarge) {
  Machine m;
  m.options.commit_log_file_bytes = 16u << 20;
  m.options.memory_bytes = 64u << 20;
  m.options.unflushed_bytes_max = 16u << 20;
  m.run([](Ctx& c) -> Task<void> {
    std::string p = props("", "k");
    for (int i = 0; i < 5; i++) {
      std::string body(3u << 20, static_cast<char>('0' + i));
      co_await c.put("T", 0, body, p);
    }
    auto r = co_await c.store->query_message("T", "k", 64, 0, INT64_MAX);
    CO_ASSERT(r && r->records.size() == 3);
    auto v = proto::parse_record(r->records.back().bytes());
    CO_ASSERT(v.has_value());
    EXPECT_EQ(as_text(v->body).front(), '4') << "the newest are in it";
  });
}

TEST(Index, SwitchedOffFindsNothingAndOnAgainEverything) {
  Machine m;
  m.options.index = false;
  m.run([](Ctx& c) -> Task<void> {
    co_await c.put("T", 0, "m", props("u"));
    std::string found = co_await find(c, "T", "u");
    EXPECT_EQ(found, "");
  });
  EXPECT_FALSE(m.exists("rmqd.index"));
  m.options.index = true;
  m.run([](Ctx& c) -> Task<void> {
    std::string found = co_await find(c, "T", "u");
    EXPECT_EQ(found, "m");
  });
}

// ---- the files -----------------------------------------------------------------------------------------

std::vector<std::string> index_files(const Machine& m) {
  std::vector<std::string> out;
  for (const std::string& f : m.image.files())
    if (f.starts_with("/store/index/")) out.push_back(f.substr(sizeof "/store/" - 1));
  return out;
}

TEST(Index, BytesOfAFile) {
  SmallIndex m;
  m.run([](Ctx& c) -> Task<void> {
    co_await c.put("T", 0, "one", props("u1"));
    co_await sleep_for(5 * ns_per_s);
    co_await c.put("T", 0, "two", props("u2", "k"));
  });
  auto files = index_files(m);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].size(), sizeof "index/" - 1 + 17);
  std::string bytes = m.file(files[0]);
  const IndexLayout layout{7, 20};
  ASSERT_EQ(bytes.size(), 40u + 7 * 4 + 20 * 20);
  const auto* b = as_bytes(bytes).data();
  EXPECT_NEAR(load_be<int64_t>(b + 8) - load_be<int64_t>(b), 5001, 1) << "begin and end timestamp";
  EXPECT_EQ(load_be<int64_t>(b + 16), 0) << "begin physical";
  EXPECT_GT(load_be<int64_t>(b + 24), 91) << "end physical";
  EXPECT_EQ(load_be<int32_t>(b + 36), 4) << "count: one more than there are";
  std::vector<int32_t> slots(7);
  int32_t used = 0;
  const std::pair<const char*, int32_t> keys[] = {{"u1", 0}, {"u2", 5}, {"k", 5}};
  for (int32_t n = 1; n <= 3; n++) {
    IndexEntry e = decode_index_entry(b + layout.entry_at(n));
    int32_t hash = index_hash("T", keys[n - 1].first);
    int32_t& slot = slots[static_cast<size_t>(hash % 7)];
    EXPECT_EQ(e.hash, hash);
    EXPECT_EQ(e.physical, n == 1 ? 0 : load_be<int64_t>(b + 24));
    EXPECT_EQ(e.seconds, keys[n - 1].second);
    EXPECT_EQ(e.previous, slot);
    used += slot == 0;
    slot = n;
  }
  EXPECT_EQ(load_be<int32_t>(b + 32), used);
  for (size_t s = 0; s < 7; s++) EXPECT_EQ(load_be<int32_t>(b + 40 + 4 * s), slots[s]);
}

Task<void> sixty_messages(Ctx& c) {
  for (int i = 0; i < 60; i++) {
    co_await c.put("T", i % 3, "m" + std::to_string(i),
                   props("u" + std::to_string(i), "k" + std::to_string(i % 10)));
    if (i % 10 == 9) co_await sleep_for(70 * ns_per_ms);
  }
  co_await sleep_for(300 * ns_per_ms);
}
Task<void> sixty_are_found(Ctx& c) {
  hear(c);
  for (int i = 0; i < 60; i++) {
    std::string found = co_await find(c, "T", "u" + std::to_string(i));
    EXPECT_EQ(found, "m" + std::to_string(i));
  }
  std::string found = co_await find(c, "T", "k7");
  EXPECT_EQ(found, "m7,m17,m27,m37,m47,m57");
  co_await c.put("T", 0, "more", props("u60", "k7"));
  found = co_await find(c, "T", "k7", 2);
  EXPECT_EQ(found, "m57,more");
  EXPECT_FALSE(told.store_failed);
}

TEST(Index, SeveralFiles) {
  SmallIndex m;
  m.run(sixty_messages);
  auto files = index_files(m);
  EXPECT_EQ(files.size(), 7u) << "19 entries each, 120 in all";
  const IndexLayout layout{7, 20};
  int64_t end = 0;
  for (const std::string& f : files) {
    IndexHeader h = decode_index_header(as_bytes(m.file(f)).data());
    EXPECT_TRUE(is_sane(h, layout));
    EXPECT_GE(h.begin_physical, end);
    end = h.end_physical;
    EXPECT_TRUE(h.count == 20 || f == files.back());
  }
  m.run(sixty_are_found);
  EXPECT_TRUE(told.damaged.empty());
  EXPECT_EQ(m.stats.index_entries, 2u) << "nothing is made again after a stop in order";
}

TEST(Index, EveryEndKeepsIt) {
  for (End end : {End::stop, End::kill, End::power_lost, End::power_torn}) {
    for (uint32_t entries : {20u, 1000u}) {
      SmallIndex m;
      m.options.index_entries = entries;
      m.run(sixty_messages, end);
      m.run(sixty_are_found, end);
      EXPECT_TRUE(told.damaged.empty()) << static_cast<int>(end);
      EXPECT_LE(m.stats.index_entries, 60u) << "far less than all is made again";
      m.run([](Ctx& c) -> Task<void> {
        std::string found = co_await find(c, "T", "k7", 2);
        EXPECT_EQ(found, "m57,more");
      });
    }
  }
}

// After a stop in order RocketMQ relies on the slots of every file: also when the store has just been opened,
// and a crash had left slots that were not written.
TEST(Index, AStopRightAfterTheStartLeavesNoSlotBehind) {
  for (End end : {End::kill, End::power_lost, End::power_torn}) {
    Machine m;
    m.options.checkpoint_interval_ms = 100;
    m.run(sixty_messages, end);
    m.run([](Ctx&) -> Task<void> { co_return; });
    OfflineDir d(m);
    offline::CheckReport r = checked(d);
    EXPECT_TRUE(r.stopped);
    EXPECT_TRUE(r.clean()) << static_cast<int>(end) << text_of(r);
    EXPECT_GT(r.index.entries, 0u);
  }
}

// Slots that nobody touches go to the file and out of memory.
TEST(Index, IdleSlotsLeaveTheMemory) {
  Machine m;
  m.options.index_slots = 10'000;
  m.options.index_entries = 1000;
  m.options.index_idle_ms = 200;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await c.put("T", 0, "one", props("u1"));
        co_await sleep_for(2 * ns_per_s);
        co_await c.put("T", 0, "two", props("u1"));
        std::string found = co_await find(c, "T", "u1");
        EXPECT_EQ(found, "one,two");
        co_await sleep_for(2 * ns_per_s);
        found = co_await find(c, "T", "u1");
        EXPECT_EQ(found, "one,two");
        EXPECT_GT(c.store->stats().index_reads, 0u) << "from the file";
      },
      End::kill);
  auto files = index_files(m);
  ASSERT_EQ(files.size(), 1u);
  std::string bytes = m.file(files[0]);
  const IndexLayout layout{10'000, 1000};
  uint64_t at = layout.slot_at(layout.slot_of(index_hash("T", "u1")));
  EXPECT_EQ(load_be<int32_t>(bytes.data() + at), 2);
}

// ---- lost and damaged ----------------------------------------------------------------------------------

using Edit = Task<void> (*)(SimDisk&, std::vector<std::string>);

void edit(Machine& m, Edit e) {
  std::vector<std::string> paths;
  for (const std::string& f : index_files(m)) paths.push_back("/store/" + f);
  SimLoop loop(m.seed);
  SimDisk disk(loop, {}, m.image);
  loop.run(e(disk, paths));
  m.image = disk.visible_image();
}

Task<void> overwrite(SimDisk& disk, std::string path, uint64_t at, std::string bytes) {
  auto f = co_await disk.open(path, {.write = true, .create = true});
  CO_ASSERT(f.has_value());
  iovec v{bytes.data(), bytes.size()};
  auto r = co_await (*f)->write(at, std::span(&v, 1), Durability::on_media);
  EXPECT_TRUE(r);
  co_await (*f)->close();
}
Task<void> resize(SimDisk& disk, std::string path, uint64_t bytes) {
  auto f = co_await disk.open(path, {.write = true, .create = true});
  CO_ASSERT(f.has_value());
  auto r = co_await (*f)->truncate(bytes);
  EXPECT_TRUE(r);
  co_await (*f)->close();
}
Task<void> remove(SimDisk& disk, std::string path) {
  auto r = co_await disk.remove(path);
  EXPECT_TRUE(r);
}

struct DamageCase {
  const char* name;
  Edit edit;
  size_t told;  // how often, after a stop in order
};
const DamageCase damages[] = {
    {"the newest is missing",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> { co_await remove(d, f.back()); }, 1},
    {"one between is missing",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> { co_await remove(d, f[2]); }, 1},
    {"all are missing",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       for (const std::string& p : f) co_await remove(d, p);
     },
     1},
    {"the newest is cut",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> { co_await resize(d, f.back(), 100); }, 1},
    {"an old one is too long",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> { co_await resize(d, f[1], 4000); }, 1},
    {"an old header is garbage",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       co_await overwrite(d, f[1], 0, std::string(40, '\x7f'));
     },
     1},
    {"old slots are garbage",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       co_await overwrite(d, f[1], 40, std::string(28, '\x7f'));
     },
     1},
    {"old entries are garbage",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       co_await overwrite(d, f[1], 68, std::string(400, '\x7f'));
     },
     1},
    {"files that nobody knows",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       co_await resize(d, "/store/index/19700101000000000", 468);
       co_await overwrite(d, "/store/index/29991231235959999", 0, "garbage");
       co_await overwrite(d, "/store/index/notes.txt", 0, "not an index");
     },
     1},
    {"no state",
     [](SimDisk& d, std::vector<std::string>) -> Task<void> { co_await remove(d, "/store/rmqd.index"); }, 0},
    {"no state, and the newest is missing",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       co_await remove(d, "/store/rmqd.index");
       co_await remove(d, f.back());
     },
     0},
    {"no state, and an old one is garbage",
     [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
       co_await remove(d, "/store/rmqd.index");
       co_await overwrite(d, f[2], 0, std::string(40, '\x7f'));
     },
     1},
    {"the state is garbage",
     [](SimDisk& d, std::vector<std::string>) -> Task<void> {
       co_await overwrite(d, "/store/rmqd.index", 0, std::string(40'000, 'x'));
     },
     0},
};

// Whatever happens to the files: every message is found, and what is wrong is told once.
TEST(Index, DamageIsMadeGood) {
  for (End end : {End::stop, End::kill}) {
    for (const DamageCase& d : damages) {
      SCOPED_TRACE(std::string(d.name) + (end == End::kill ? ", after a kill" : ""));
      SmallIndex m;
      m.run(sixty_messages, end);
      edit(m, d.edit);
      m.run(
          [](Ctx& c) -> Task<void> {
            hear(c);
            co_await sleep_for(ns_per_s);
            for (int i = 0; i < 60; i++) co_await find(c, "T", "u" + std::to_string(i));
            std::vector<std::string> damaged = told.damaged;
            co_await sixty_are_found(c);
            EXPECT_TRUE(told.damaged.empty()) << "by the second look it is repaired: " << told.damaged[0];
            told.damaged = damaged;
            c.store->set_failure_listener(nullptr);  // a kill is the end of its files, too
          },
          end);
      bool no_state = std::string_view(d.name).starts_with("no state");
      if (end == End::stop || !no_state) {
        EXPECT_EQ(told.damaged.size(), d.told) << d.name;
      }
      m.run([](Ctx& c) -> Task<void> {
        hear(c);
        std::string found = co_await find(c, "T", "k7", 2);
        EXPECT_EQ(found, "m57,more");
      });
      EXPECT_TRUE(told.damaged.empty()) << d.name;
    }
  }
}

TEST(Index, OtherSizesMakeItAnew) {
  SmallIndex m;
  m.run(sixty_messages);
  m.options.index_slots = 11;
  m.run(sixty_are_found);
  EXPECT_EQ(told.damaged.size(), 1u);
  for (const std::string& f : index_files(m)) EXPECT_EQ(m.file(f).size(), 40u + 11 * 4 + 20 * 20);
}

TEST(Index, SafeMeansCompleteWhenOpen) {
  SmallIndex m;
  m.run(sixty_messages);
  m.remove_files("index/");
  m.remove_files("rmqd.index");
  m.options.index_safe = true;
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->stats().index_behind_bytes, 0u);
    EXPECT_EQ(c.store->stats().index_entries, 120u);
    co_return;
  });
  m.run([](Ctx& c) -> Task<void> {  // nothing to be made again
    EXPECT_EQ(c.store->stats().index_entries, 0u);
    int64_t began_ns = c.loop.now_ns();
    std::string found = co_await find(c, "T", "u0");
    EXPECT_EQ(found, "m0");
    EXPECT_LT(c.loop.now_ns() - began_ns, ns_per_s) << "no waiting";
  });
}

// A RocketMQ broker stopped in order and wrote more than our state knows of.
TEST(Index, FilesThatRocketMqWentOnWith) {
  SmallIndex m;
  m.run(sixty_messages);
  sim::DiskImage later = m.copy();
  m.run(sixty_are_found);  // "more": an entry in the newest file that the older state does not know
  std::string old_state = *later.read_file("/store/rmqd.index");
  m.damage("rmqd.index", 0, old_state);
  m.run([](Ctx& c) -> Task<void> {
    hear(c);
    std::string found = co_await find(c, "T", "k7", 3);
    EXPECT_EQ(found, "m47,m57,more");
  });
  EXPECT_TRUE(told.damaged.empty());
}

// After a crash, without a state: the time up to which files are safe is that of the last one that was
// synced. While the clock is set back all store timestamps are the same, and later files end at that time as
// well.
TEST(Index, OfFilesThatEndAtOneTimeTheFirstIsSafe) {
  SmallIndex m;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await c.put("Other", 0, "x");
        c.loop.sim_clock().step_wall(-3'600'000);
        co_await sixty_messages(c);
      },
      End::kill);
  m.remove_files("rmqd.index");
  m.damage("abort", 0, "1234");  // a RocketMQ broker's
  edit(m, [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
    co_await overwrite(d, f[3], 40, std::string(28, '\0'));  // slots that no sync had brought to the disk
  });
  m.run(sixty_are_found);
}

// `checkpoint` is written without a sync, and has no CRC.
TEST(Index, AfterACrashOfOursRocketMqsCheckpointVouchesForNoFile) {
  for (bool ours : {true, false}) {
    SmallIndex m;
    m.run(
        [](Ctx& c) -> Task<void> {
          co_await sixty_messages(c);
          co_await sleep_for(100 * ns_per_s);
          co_await c.put("Other", 0, "x");
        },
        End::kill);
    m.remove_files("rmqd.index");
    if (!ours) m.damage("abort", 0, "1234");
    // Of ours, a time that may be, 45 s after the start; of RocketMQ's, one behind all messages.
    m.damage("checkpoint", 16, ours ? std::string("\0\0\1\xa3\x18\x5d\0\0", 8) : std::string(8, 'x'));
    edit(m, [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
      co_await overwrite(d, f[1], 40, std::string(28, '\0'));
    });
    SCOPED_TRACE(ours ? "ours" : "RocketMQ's");
    m.run(sixty_are_found);
  }
}

// After a stop in order all files count as good where no state says which are: not so when they had never
// been looked at since a crash.
TEST(Index, AStopInOrderVouchesForNoFileThatACrashLeft) {
  SmallIndex m;
  m.run(sixty_messages, End::kill);
  m.remove_files("rmqd.index");
  edit(m, [](SimDisk& d, std::vector<std::string> f) -> Task<void> {
    co_await overwrite(d, f[1], 40, std::string(28, '\0'));
  });
  m.options.index = false;
  m.run([](Ctx& c) -> Task<void> { co_return; });
  EXPECT_FALSE(m.exists("abort"));
  m.options.index = true;
  m.run(sixty_are_found);
}

// ---- trouble -------------------------------------------------------------------------------------------

TEST(Index, AnErrorOfItsFilesHoldsUpNobody) {
  for (sim::OpKind op : {sim::OpKind::write, sim::OpKind::sync, sim::OpKind::open, sim::OpKind::truncate}) {
    SmallIndex m;
    m.plan.faults.push_back(
        {.kind = sim::FaultKind::io_error, .op = op, .path_part = "/index/", .nth = 2, .times = 2});
    m.run([](Ctx& c) -> Task<void> {
      hear(c);
      co_await sixty_messages(c);
      EXPECT_TRUE(c.store->writable());
      co_await sleep_for(10 * ns_per_s);
      for (int i = 0; i < 60; i++) {
        std::string found = co_await find(c, "T", "u" + std::to_string(i));
        EXPECT_EQ(found, "m" + std::to_string(i));
      }
      EXPECT_GE(told.failures, 1);
      EXPECT_FALSE(told.store_failed);
    });
    m.plan.faults.clear();
    m.run(sixty_are_found);
  }
}

Task<void> stop_after_sixty(SimLoop& loop, SimDisk& disk, const StoreOptions& o) {
  auto opened = co_await MessageStore::open(disk, o, nullptr);
  CO_ASSERT(opened.has_value());
  Ctx c{loop, disk, opened->get(), {}};
  co_await sixty_messages(c);
  co_await (*opened)->shutdown();
  disk.crash_now();
}

// A sync that failed leaves pages that the kernel takes for written. Who starts after a stop in order must
// not rely on that file: any part of it may go, and no later sync brings it to the device.
TEST(Index, AFileThatCouldNotBeSyncedIsNotTrustedAgain) {
  for (uint64_t seed = 1; seed <= 64; seed++) {
    SmallIndex m;
    {
      SimLoop loop(seed);
      SimDisk disk(loop, {});
      disk.plan().faults.push_back({.kind = sim::FaultKind::io_error,
                                    .op = sim::OpKind::sync,
                                    .path_part = "/index/",
                                    .nth = 1 + seed % 8,
                                    .times = 1000});
      loop.run(stop_after_sixty(loop, disk, m.options));
      m.image = disk.crash_image(CrashFate::all_torn(seed));
    }
    m.run(sixty_are_found);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(Index, StateOfManyFiles) {
  IndexState s;
  s.clean = true;
  s.layout = {7, 20};
  s.indexed = 12345;
  s.newest = 20261130071600123;
  s.newest_header = {1, 2, 3, 4, 5, 6};
  for (uint64_t i = 0; i < index_state_sealed_max; i++) s.sealed.push_back({i, static_cast<int64_t>(i * 10)});
  s.sealed_complete = false;
  std::vector<std::byte> slot(index_state_slot_bytes);
  encode_index_state(s, slot);
  auto t = decode_index_state(slot);
  ASSERT_TRUE(t.has_value());
  EXPECT_TRUE(t->clean && !t->sealed_complete && t->layout == s.layout && t->indexed == s.indexed);
  EXPECT_EQ(t->newest, s.newest);
  EXPECT_EQ(t->newest_header, s.newest_header);
  ASSERT_EQ(t->sealed.size(), s.sealed.size());
  EXPECT_EQ(t->sealed.back().end_physical, s.sealed.back().end_physical);
  for (size_t at : {0u, 9u, 14u, 100u, 16'000u}) {
    slot[at] ^= std::byte{1};
    EXPECT_FALSE(decode_index_state(slot).has_value()) << at;
    slot[at] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace rmq::store::test

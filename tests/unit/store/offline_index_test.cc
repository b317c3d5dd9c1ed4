// store check and the index: files that are made here as RocketMQ makes them, and damage to them.
#include <functional>

#include "offline_dir.h"
#include "store/index_format.h"

namespace rmq::store::test {
namespace {

using offline::Kind;
using offline::Severity;

constexpr IndexLayout layout{.slots = 7, .entries = 100};
const std::string index_file = "index/20231114221320000";
constexpr int records = 12;

Task<void> with_keys_and(Ctx& c, std::string more) {
  for (int i = 0; i < records; i++) {
    std::string n = std::to_string(i);
    co_await c.put("T", 0, "body", "UNIQ_KEY\x01unique" + n + "\x02KEYS\x01one" + n + " two\x02" + more);
    if (i % 4 == 0) co_await c.put("T", 0, "no keys");
  }
  MessageIn rolled_back = Ctx::message("T", 0, "gone", "KEYS\x01none\x02");
  rolled_back.sys_flag = proto::sys_flag::transaction_rollback;
  co_await c.store->put(rolled_back);
}

Task<void> with_keys(Ctx& c) {
  co_await with_keys_and(c, "");
}

Task<void> with_keys_and_tags(Ctx& c) {
  co_await with_keys_and(c, "TAGS\x01red\x02");
}

// The index of all records that `wanted` takes, without their TAGS.
std::string index_of(const std::string& log, const std::function<bool(int)>& wanted) {
  std::string file(layout.file_bytes(), '\0');
  auto* bytes = reinterpret_cast<std::byte*>(file.data());
  IndexHeader h;
  auto add = [&](const proto::RecordView& r, std::string_view key) {
    if (h.count == 1) {
      h.begin_timestamp_ms = r.store_timestamp_ms;
      h.begin_physical = r.physical_offset;
    }
    h.end_timestamp_ms = r.store_timestamp_ms;
    h.end_physical = r.physical_offset;
    IndexEntry e{index_hash(r.topic, key), r.physical_offset, 0, 0};
    e.seconds = static_cast<int32_t>((r.store_timestamp_ms - h.begin_timestamp_ms) / 1000);
    std::byte* slot = bytes + layout.slot_at(layout.slot_of(e.hash));
    e.previous = load_be<int32_t>(slot);
    if (e.previous == 0) h.used_slots++;
    store_be(slot, h.count);
    encode_index_entry(bytes + layout.entry_at(h.count), e);
    h.count++;
  };
  Bytes rest = as_bytes(log);
  for (int i = 0;;) {
    auto parsed = proto::parse_record(rest);
    if (!parsed) break;
    const proto::RecordView r = *parsed;
    rest = rest.subspan(r.size);
    auto unique = r.property(proto::prop::UNIQ_KEY);
    if (!unique || !wanted(i++)) continue;
    add(r, *unique);
    std::string_view keys = *r.property(proto::prop::KEYS);
    add(r, keys.substr(0, keys.find(' ')));
    add(r, keys.substr(keys.find(' ') + 1));
  }
  encode_index_header(bytes, h);
  return file;
}

offline::CheckReport checked_index(const OfflineDir& d) {
  TestHelper helper;
  offline::CheckOptions o = options_of(d);
  o.index_layout = layout;
  auto r = offline::check_store(o, helper);
  EXPECT_TRUE(r) << to_string(r.error());
  return r ? std::move(*r) : offline::CheckReport(1);
}

struct Indexed {
  explicit Indexed(const std::function<bool(int)>& wanted = [](int) { return true; }, Body life = with_keys) {
    m.options.index = false;
    m.run(life);
    d = std::make_unique<OfflineDir>(m);
    d->replace(index_file, index_of(d->read("commitlog/00000000000000000000"), wanted));
  }
  Machine m;
  std::unique_ptr<OfflineDir> d;
};

TEST(OfflineIndex, AWholeIndexIsClean) {
  Indexed s;
  auto r = checked_index(*s.d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.index.files, 1u);
  EXPECT_EQ(r.index.entries, 3u * records);
  EXPECT_EQ(r.index.unindexed, 0u);
}

// The index that rmqd itself writes.
TEST(OfflineIndex, OursIsClean) {
  Machine m;
  m.run(with_keys);
  OfflineDir d(m);
  auto r = checked(d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  // What a stop leaves behind the index's end is indexed after the next start.
  EXPECT_GT(r.index.entries, 0u);
  EXPECT_EQ(r.index.entries + 3 * r.index.unindexed, 3u * records);
}

TEST(OfflineIndex, WhatIsBehindItsEndIsCounted) {
  Indexed s([](int i) { return i < 8; });
  auto r = checked_index(*s.d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.index.unindexed, 4u);
}

TEST(OfflineIndex, AGapIsDamage) {
  Indexed s([](int i) { return i != 5; });
  auto r = checked_index(*s.d);
  EXPECT_EQ(r.findings.count(Severity::damage, Kind::index_entry), 1u) << text_of(r);
}

// Before 5.5 RocketMQ does not index them, and another broker goes on in the same file.
TEST(OfflineIndex, TagsThatAreNotIndexedAreNoDamage) {
  Indexed s([](int) { return true; }, with_keys_and_tags);
  auto r = checked_index(*s.d);
  EXPECT_TRUE(r.clean()) << text_of(r);
  EXPECT_EQ(r.index.untagged, uint64_t{records - 1}) << "behind the last entry nothing is missing";
  EXPECT_EQ(r.findings.count(Severity::note, Kind::index_entry), 1u) << text_of(r);
  Indexed gap([](int i) { return i != 5; }, with_keys_and_tags);
  auto g = checked_index(*gap.d);
  EXPECT_EQ(g.findings.count(Severity::damage, Kind::index_entry), 1u) << text_of(g);
}

TEST(OfflineIndex, FindsDamage) {
  struct Plant {
    const char* name;
    uint64_t at;
    Kind kind;
  };
  const Plant plants[] = {
      {"the header's count", 39, Kind::index_file},
      {"the number of used slots", 35, Kind::index_file},
      {"a slot", layout.slot_at(0) + 3, Kind::index_file},
      {"a hash", layout.entry_at(5) + 3, Kind::index_entry},
      {"a physical offset", layout.entry_at(5) + 11, Kind::index_entry},
      {"a large physical offset", layout.entry_at(5) + 4, Kind::index_entry},
      {"a time", layout.entry_at(5) + 15, Kind::index_entry},
      {"a chain", layout.entry_at(30) + 19, Kind::index_file},
  };
  for (const Plant& p : plants) {
    Indexed s;
    s.d->flip(index_file, p.at);
    auto r = checked_index(*s.d);
    EXPECT_GT(r.findings.count(Severity::damage, p.kind), 0u) << p.name << "\n" << text_of(r);
    EXPECT_LE(r.findings.count(Severity::damage), 4u) << p.name << "\n" << text_of(r);
  }
  Indexed s;
  s.d->cut(index_file, 100);
  auto r = checked_index(*s.d);
  EXPECT_EQ(r.findings.count(Severity::damage, Kind::index_file), 1u) << text_of(r);
}

}  // namespace
}  // namespace rmq::store::test

// Stores that are not for us are refused, by the broker's store and by the offline tools, and nothing in them
// changes.
#include "offline_dir.h"

namespace rmq::store::test {
namespace {

Task<void> some(Ctx& c) {
  co_await c.put("T", 0, "one");
}

struct NewFile {
  std::string path;
  std::string content;
};
Task<void> make_file(SimDisk& disk, const NewFile& f) {
  auto made = co_await disk.make_dirs(f.path.substr(0, f.path.rfind('/')));
  EXPECT_TRUE(made);
  auto file = co_await disk.open(f.path, {.write = true, .create = true});
  CO_ASSERT(file.has_value());
  iovec v{const_cast<char*>(f.content.data()), f.content.size()};
  auto r = co_await (*file)->write(0, std::span(&v, 1), Durability::on_media);
  EXPECT_TRUE(r);
  co_await (*file)->close();
}

void add_file(Machine& m, NewFile f) {
  SimLoop loop(m.seed);
  SimDisk disk(loop, {}, m.image);
  f.path = "/store/" + f.path;
  loop.run(make_file(disk, f));
  m.image = disk.visible_image();
}

std::string later_slot() {
  std::string slot(own_checkpoint_slot_bytes, '\0');
  encode_checkpoint({.sequence = 9}, {reinterpret_cast<std::byte*>(slot.data()), slot.size()});
  slot[11] = 2;  // the version; what the CRC covers stays
  return slot;
}

void expect_refused(Machine& m, const NewFile& f) {
  add_file(m, f);
  uint64_t before = m.image.hash();
  EXPECT_EQ(m.try_open(), Errc::unsupported) << f.path;
  EXPECT_EQ(m.image.hash(), before) << f.path;
  OfflineDir d(m);
  TestHelper helper;
  auto r = check(d, helper);
  ASSERT_FALSE(r) << f.path;
  EXPECT_EQ(r.error().code, Errc::unsupported) << f.path;
}

TEST(Foreign, RefusedAndUntouched) {
  for (const NewFile& f : {NewFile{"consumequeue/CURRENT", "MANIFEST-000004\n"},
                           NewFile{"consumequeue_rocksdb/CURRENT", "MANIFEST-000004\n"},
                           NewFile{"config/topics/CURRENT", "MANIFEST-000004\n"},
                           NewFile{"config/metadata/CURRENT", "MANIFEST-000004\n"},
                           NewFile{"dledger-n0/data/00000000000000000000", "x"}}) {
    Machine m;
    m.run(some);
    expect_refused(m, f);
  }
}

TEST(Foreign, ALaterVersionIsRefused) {
  Machine m;
  m.run(some);
  expect_refused(m, {"rmqd.checkpoint", later_slot()});
}

// RocketMQ makes this one in any case.
TEST(Foreign, NoCompactedTopics) {
  Machine m;
  m.run(some);
  add_file(m, {"compaction/position-checkpoint", "{}"});
  EXPECT_EQ(m.try_open(), std::nullopt);
}

// A slot that only looks like one of a later version is a damaged slot: the other one counts.
TEST(Foreign, ADamagedSlotIsNoLaterVersion) {
  Machine m;
  m.run(some);
  m.run(some);
  std::string slot = later_slot();
  slot[30] = 77;
  add_file(m, {"rmqd.checkpoint", slot});
  EXPECT_EQ(m.try_open(), std::nullopt);
}

// Access control is always in RocksDB: that is no reason.
TEST(Foreign, UsersAreNoReason) {
  Machine m;
  m.run(some);
  add_file(m, {"config/users/CURRENT", "MANIFEST-000004\n"});
  add_file(m, {"config/acls/CURRENT", "MANIFEST-000004\n"});
  EXPECT_EQ(m.try_open(), std::nullopt);
}

}  // namespace
}  // namespace rmq::store::test

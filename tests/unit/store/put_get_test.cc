// The ordinary life of a message: put, confirmed, pulled, still there after a restart.
#include "machine.h"

namespace rmq::store::test {
namespace {

Task<void> three_messages(Ctx& c) {
  auto a = co_await c.put("TopicA", 0, "one", "TAGS\x01x\x02");
  auto b = co_await c.put("TopicA", 0, "two");
  auto d = co_await c.put("TopicA", 1, "three");
  EXPECT_EQ(a.status, PutMessageStatus::PUT_OK);
  EXPECT_EQ(a.queue_offset, 0);
  EXPECT_EQ(a.physical_offset, 0);
  EXPECT_EQ(b.queue_offset, 1);
  EXPECT_EQ(b.physical_offset, a.total_bytes);
  EXPECT_EQ(d.queue_offset, 0);
  EXPECT_GE(b.store_timestamp_ms, a.store_timestamp_ms);
  EXPECT_EQ(c.store->confirm_offset(), c.store->max_physical_offset());
  auto r = co_await c.store->get("TopicA", 0, 0, 32, nullptr);
  EXPECT_EQ(r.status, GetMessageStatus::FOUND);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(r.extents.size(), 1u);  // neighbours are one extent
  EXPECT_EQ(r.next_begin_offset, 2);
  EXPECT_EQ(r.min_offset, 0);
  EXPECT_EQ(r.max_offset, 2);
}

Task<void> still_there(Ctx& c) {
  auto r = co_await c.store->get("TopicA", 0, 0, 32, nullptr);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"one", "two"}));
  auto q = co_await c.store->get("TopicA", 1, 0, 32, nullptr);
  EXPECT_EQ(bodies_of(q), (std::vector<std::string>{"three"}));
  auto u = co_await c.store->queue_unit("TopicA", 0, 0);
  CO_ASSERT(u.has_value());
  EXPECT_EQ(u->tags_code, 'x');
  auto next = co_await c.put("TopicA", 0, "four");
  EXPECT_EQ(next.queue_offset, 2);
}

TEST(PutGet, ComesBackAfterAStop) {
  Machine m;
  m.run(three_messages);
  EXPECT_FALSE(m.exists("abort"));
  m.run(still_there);
  EXPECT_TRUE(m.recovery.clean);
  EXPECT_EQ(m.recovery.records, 0u);
}

TEST(PutGet, ComesBackAfterAKill) {
  Machine m;
  m.run(three_messages, End::kill);
  EXPECT_TRUE(m.exists("abort"));
  m.run(still_there);
  EXPECT_FALSE(m.recovery.clean);
  EXPECT_EQ(m.recovery.records, 3u);
}

TEST(PutGet, ComesBackAfterPowerLoss) {
  Machine m;
  m.run(three_messages, End::power_lost);
  m.run(still_there);
  EXPECT_EQ(m.recovery.records, 3u);
}

}  // namespace
}  // namespace rmq::store::test

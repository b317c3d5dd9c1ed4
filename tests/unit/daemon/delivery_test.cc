// The parts of delivering once: the clock for due times, the marker.
#include "daemon/broker/delivery.h"
#include "broker_world.h"
#include "daemon/broker/due_clock.h"

namespace rmq::broker {
namespace {

class TestClock final : public Clock {
 public:
  int64_t mono_ns() override { return mono_ += slow_ns; }
  int64_t wall_ms() override { return wall_ms_ + mono_ / ns_per_ms; }
  int64_t mono_ = 0, wall_ms_ = 1'700'000'000'000, slow_ns = 0;
};

TEST(DueClock, SeesTheWallClockBeingSet) {
  TestClock c;
  DueClock due(c);
  EXPECT_FALSE(due.look());
  EXPECT_EQ(due.wall_ms(), c.wall_ms());
  c.mono_ += ns_per_s;
  EXPECT_FALSE(due.look()) << "time passing is no step";
  c.wall_ms_ += 9;
  EXPECT_FALSE(due.look()) << "that little is an error of measuring";
  c.wall_ms_ += 3'600'000;
  int64_t before = due.base_ns();
  EXPECT_TRUE(due.look());
  EXPECT_EQ(due.base_ns() - before, (3'600'000 + 9) * ns_per_ms);
  EXPECT_EQ(due.wall_ms(), c.wall_ms());
  c.wall_ms_ -= 1000;
  EXPECT_TRUE(due.look());
  c.slow_ns = 50 * ns_per_ms;
  c.wall_ms_ += 60'000;
  EXPECT_FALSE(due.look()) << "interrupted between the clocks: nothing is known";
}

TEST(DueClock, RoundsSoThatNothingIsEarly) {
  TestClock c;
  DueClock due(c);
  c.mono_ += ns_per_ms / 2;
  EXPECT_EQ(due.wall_ms_up(), due.wall_ms() + 1);
  int64_t sent_ns = c.mono_, deliver_ms = due.wall_ms_up() + 10;
  EXPECT_GE(deliver_ms * ns_per_ms - due.base_ns(), sent_ns + 10 * ns_per_ms);
}

TEST(DueClock, BasesBelongToOffsets) {
  QueueBases b;
  b.add(0, 100);
  EXPECT_EQ(b.base_ns(0), 100);
  EXPECT_EQ(b.base_ns(99), 100);
  b.add(10, 200);
  b.add(20, 300);
  b.add(20, 400);
  EXPECT_EQ(b.base_ns(9), 100);
  EXPECT_EQ(b.base_ns(10), 200);
  EXPECT_EQ(b.base_ns(19), 200);
  EXPECT_EQ(b.base_ns(20), 400) << "nothing came between the last two";
  // Ten that go on with an older base, in two steps; then as before.
  b.add(30, 100);
  b.add(35, 400);
  b.add(35, 100);
  b.add(40, 400);
  EXPECT_EQ(b.base_ns(29), 400);
  EXPECT_EQ(b.base_ns(30), 100);
  EXPECT_EQ(b.base_ns(39), 100);
  EXPECT_EQ(b.base_ns(40), 400);
  EXPECT_EQ(b.base_ns(INT64_MAX), 400);
  EXPECT_EQ(b.base_ns(10), 200);
}

TEST(DeliveryMarker, ComesBackAsItWas) {
  DeliveryMarker m;
  m.level = 3;
  m.next = {0, 5, int64_t{1} << 40};
  m.copied = {7, 8, 9, 3, int64_t{1} << 50};
  m.dropped = {-1, 0};
  m.guard = {1, 0, 0xffffffff, 4, 5};
  std::string text = m.encode();
  auto back = DeliveryMarker::decode(as_bytes(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->level, 3);
  EXPECT_EQ(back->next, m.next);
  EXPECT_EQ(back->copied, m.copied);
  EXPECT_EQ(back->dropped, m.dropped);
  EXPECT_EQ(back->guard, m.guard);
  for (size_t n = 0; n < text.size(); n++) EXPECT_FALSE(DeliveryMarker::decode(as_bytes(text).first(n))) << n;
  EXPECT_FALSE(DeliveryMarker::decode(as_bytes(text + "x")));
  std::string other = text;
  other[0] = 3;
  EXPECT_FALSE(DeliveryMarker::decode(as_bytes(other))) << "of a later version";
  m.guard.pop_back();
  EXPECT_FALSE(DeliveryMarker::decode(as_bytes(m.encode()))) << "each copy has its guard";
  const std::string first_version("\x01\x02\x02\x0a\x08\x02\x06\x02\x00", 9);
  back = DeliveryMarker::decode(as_bytes(first_version));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->copied, (std::vector<int64_t>{3, 4}));
}

// A Java broker wrote the file and went further than we know; its file has no deliveredOffset.
TEST(DelayOffsetFile, AsJavaWritesIt) {
  auto w = proto::DelayOffsetWrapper::parse("{\n\t\"offsetTable\":{1:4,2:5\n\t}\n}");
  ASSERT_TRUE(w);
  EXPECT_FALSE(w->delivered_offset);
  EXPECT_EQ(w->offset_table.at(2), 5);
  w->delivered_offset = 12;
  auto back = proto::DelayOffsetWrapper::parse(w->to_json(proto::JsonStyle::pretty));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->delivered_offset, 12);
}

}  // namespace
}  // namespace rmq::broker

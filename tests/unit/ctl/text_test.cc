#include "ctl/text.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

namespace rmq::ctl {
namespace {

constexpr int64_t now_ms = 1'700'000'000'000;  // 2023-11-14T22:13:20Z

class LocalTime : public ::testing::Test {
 protected:
  void SetUp() override { set_zone("UTC"); }
  void TearDown() override { set_zone("UTC"); }
  static void set_zone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
};

TEST(Address, Forms) {
  EXPECT_EQ(parse_address("broker.example:10911", 0), (Address{"broker.example", 10911}));
  EXPECT_EQ(parse_address(" 10.0.0.1 ", 9876), (Address{"10.0.0.1", 9876}));
  EXPECT_EQ(parse_address("[::1]:9876", 0), (Address{"::1", 9876}));
  EXPECT_EQ(parse_address("[::1]", 9876), (Address{"::1", 9876}));
  EXPECT_EQ(to_string(Address{"::1", 9876}), "[::1]:9876");
  EXPECT_EQ(to_string(Address{"h", 1}), "h:1");
  for (const char* bad :
       {"", ":9876", "h:", "h:0", "h:65536", "h:x", "h:1x", "a b:1", "[::1:1", "[::1]x", "h"})
    EXPECT_EQ(parse_address(bad, 0), std::nullopt) << bad;
}

TEST(Address, Lists) {
  auto list = parse_name_servers("a:1; b,c:3;");
  ASSERT_TRUE(list);
  EXPECT_EQ(*list, (std::vector<Address>{{"a", 1}, {"b", 9876}, {"c", 3}}));
  auto bad = parse_name_servers("a:1;b:zz");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().exit, Exit::usage);
  EXPECT_NE(bad.error().text.find("b:zz"), std::string::npos);
  EXPECT_FALSE(parse_name_servers(" ; "));
}

TEST(Duration, Units) {
  EXPECT_EQ(parse_duration_ms("250ms"), 250);
  EXPECT_EQ(parse_duration_ms("3"), 3000);
  EXPECT_EQ(parse_duration_ms("1.5m"), 90'000);
  EXPECT_EQ(parse_duration_ms("2 h"), 7'200'000);
  EXPECT_EQ(parse_duration_ms("1d"), 86'400'000);
  for (const char* bad : {"", "s", "-3s", "3x", "3s3", "1e3s", "99999999999999999999d"})
    EXPECT_EQ(parse_duration_ms(bad), std::nullopt) << bad;
}

TEST(Bytes, Units) {
  EXPECT_EQ(parse_bytes("1024"), 1024);
  EXPECT_EQ(parse_bytes("4k"), 4096);
  EXPECT_EQ(parse_bytes("1.5 MiB"), 3 << 19);
  EXPECT_EQ(parse_bytes("4kb"), std::nullopt);
  EXPECT_EQ(parse_bytes("-1"), std::nullopt);
}

TEST_F(LocalTime, Dates) {
  EXPECT_EQ(parse_time_ms("2023-11-14T22:13:20Z", 0), now_ms);
  EXPECT_EQ(parse_time_ms("2023-11-14 22:13:20.789", 0), now_ms + 789);
  EXPECT_EQ(parse_time_ms("2023-11-14T22:13:20.7Z", 0), now_ms + 700);
  EXPECT_EQ(parse_time_ms("2023-11-15T00:13:20+02:00", 0), now_ms);
  EXPECT_EQ(parse_time_ms("2023-11-14T16:43:20-0530", 0), now_ms);
  EXPECT_EQ(parse_time_ms("2023-11-14 22:13", 0), now_ms - 20'000);
  EXPECT_EQ(parse_time_ms("2023-11-14", 0), now_ms - (22 * 3600 + 13 * 60 + 20) * 1000);
  for (const char* bad : {"2023-02-30", "2023-13-01", "2023-11-14 24:00", "2023-11-14 10:60", "2023-11-14x",
                          "2023-11-14T10", "2023-11-14T10:00:00.", "2023-11-14T10:00:00+9", "2023-1-1"})
    EXPECT_EQ(parse_time_ms(bad, now_ms), std::nullopt) << bad;
}

TEST_F(LocalTime, DatesWithoutZoneAreLocal) {
  set_zone("UTC-3");  // POSIX: three hours east
  EXPECT_EQ(parse_time_ms("2023-11-15 01:13:20", 0), now_ms);
  EXPECT_EQ(parse_time_ms("2023-11-14T22:13:20Z", 0), now_ms);
}

TEST(Time, Relative) {
  EXPECT_EQ(parse_time_ms("now", now_ms), now_ms);
  EXPECT_EQ(parse_time_ms("10m ago", now_ms), now_ms - 600'000);
  EXPECT_EQ(parse_time_ms("2h", now_ms), now_ms - 7'200'000);
  EXPECT_EQ(parse_time_ms("@1700000000000", 0), now_ms);
  EXPECT_EQ(parse_time_ms("10", now_ms), std::nullopt);  // an offset, not a time
  EXPECT_EQ(parse_time_ms("yesterday", now_ms), std::nullopt);
  // Where a time is written as a number, -1 is the end of a queue.
  EXPECT_EQ(parse_time_ms("1000000000d ago", now_ms), 0);
  EXPECT_EQ(parse_time_ms("1969-12-31T23:59:59.999Z", now_ms), 0);
  EXPECT_EQ(parse_time_ms("@-1", now_ms), std::nullopt);
}

TEST(Position, Forms) {
  using Kind = Position::Kind;
  EXPECT_EQ(parse_position("earliest", now_ms), (Position{Kind::earliest, 0}));
  EXPECT_EQ(parse_position("latest", now_ms), (Position{Kind::latest, 0}));
  EXPECT_EQ(parse_position("17", now_ms), (Position{Kind::offset, 17}));
  EXPECT_EQ(parse_position("5m", now_ms), (Position{Kind::time, now_ms - 300'000}));
  EXPECT_EQ(parse_position("-1", now_ms), std::nullopt);
  EXPECT_EQ(parse_position("begin", now_ms), std::nullopt);
}

TEST(Permission, BothWays) {
  EXPECT_EQ(parse_permission("rw"), 6);
  EXPECT_EQ(parse_permission("4"), 4);
  EXPECT_EQ(parse_permission("w"), 2);
  EXPECT_EQ(parse_permission("none"), 0);
  EXPECT_EQ(parse_permission("8"), std::nullopt);
  EXPECT_EQ(permission_name(6), "rw");
  EXPECT_EQ(permission_name(4), "r-");
  EXPECT_EQ(permission_name(0), "--");
}

}  // namespace
}  // namespace rmq::ctl

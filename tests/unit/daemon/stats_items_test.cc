// StatsItemSet with a clock of the test's own: sums and rates over the last minute, hour and day.
#include "daemon/broker/stats_items.h"

#include <gtest/gtest.h>

#include "base/time.h"
#include "daemon/broker/stats.h"

namespace rmq::broker {
namespace {

class StatsItems : public testing::Test {
 protected:
  // Each 10 s, `messages` of 100 bytes before it.
  void run_for(int64_t seconds, uint64_t messages) {
    for (int64_t s = 0; s < seconds; s += 10) {
      if (messages > 0) items_.add(StatsKind::topic_put, "T", {}, messages, 100 * messages, now_);
      now_ += 10 * ns_per_s;
      items_.sample(now_);
    }
  }
  proto::BrokerStatsData of(std::string_view name, std::string_view key) {
    return items_.find(name, key, now_).value_or(proto::BrokerStatsData{{-1}, {-1}, {-1}});
  }

  int64_t now_ = 1'000 * ns_per_s;
  StatsItemSet items_{"Cluster", now_};
};

TEST_F(StatsItems, CountsAtOnce) {
  items_.add(StatsKind::topic_put, "T", {}, 3, 300, now_);
  items_.add(StatsKind::topic_put, "T", {}, 1, 100, now_);
  EXPECT_EQ(of("TOPIC_PUT_NUMS", "T").minute.sum, 4);
  EXPECT_EQ(of("TOPIC_PUT_SIZE", "T").day.sum, 400);
  EXPECT_DOUBLE_EQ(of("TOPIC_PUT_NUMS", "T").minute.avgpt, 2.0);
  EXPECT_EQ(of("BROKER_PUT_NUMS", "Cluster").hour.sum, 4);
  EXPECT_FALSE(items_.find("TOPIC_PUT_NUMS", "U", now_));
  EXPECT_FALSE(items_.find("GROUP_GET_NUMS", "T@g", now_));
  EXPECT_FALSE(items_.find("BROKER_PUT_NUMS", "T", now_));
  EXPECT_FALSE(items_.find("NO_SUCH_NUMS", "T", now_));
}

TEST_F(StatsItems, WindowsMoveOn) {
  run_for(300, 50);
  auto d = of("TOPIC_PUT_NUMS", "T");
  EXPECT_EQ(d.minute.sum, 250) << "from the oldest of six samples on";
  EXPECT_DOUBLE_EQ(d.minute.tps, 5.0);
  EXPECT_EQ(d.hour.sum, 1500);
  EXPECT_DOUBLE_EQ(d.hour.tps, 5.0);
  run_for(60, 0);
  d = of("TOPIC_PUT_NUMS", "T");
  EXPECT_EQ(d.minute.sum, 0);
  EXPECT_EQ(d.minute.tps, 0);
  EXPECT_EQ(d.day.sum, 1500);
  run_for(4'200, 0);
  EXPECT_EQ(of("TOPIC_PUT_NUMS", "T").hour.sum, 0);
  EXPECT_EQ(of("TOPIC_PUT_NUMS", "T").day.sum, 1500);
  run_for(26 * 3'600, 0);
  EXPECT_FALSE(items_.find("TOPIC_PUT_NUMS", "T", now_)) << "a day without traffic";
  EXPECT_EQ(items_.size(), 0u);
}

TEST_F(StatsItems, GroupsByTopic) {
  items_.add(StatsKind::group_get, "T", "g", 10, 1'000, now_);
  items_.add(StatsKind::group_get, "T", "h", 20, 2'000, now_);
  items_.add(StatsKind::send_back, "T", "g", 1, 100, now_);
  now_ += 10 * ns_per_s;
  EXPECT_EQ(of("GROUP_GET_NUMS", "T@g").minute.sum, 10);
  EXPECT_EQ(of("GROUP_GET_SIZE", "T@h").minute.sum, 2'000);
  EXPECT_EQ(of("SNDBCK_PUT_NUMS", "T@g").minute.sum, 1);
  EXPECT_EQ(of("BROKER_GET_NUMS", "Cluster").minute.sum, 30);
  EXPECT_DOUBLE_EQ(items_.get_tps("T", "h", now_), 2.0);
  EXPECT_EQ(items_.get_tps("T", "nobody", now_), 0);
}

TEST(RecentLatency, IsOfTheLastMinute) {
  RecentLatency recent;
  store::LatencyHistogram all;
  for (int i = 0; i < 100; i++) all.add_ns(900 * ns_per_ms);
  recent.sample(all);
  EXPECT_EQ(recent.of_the_last_minute(all).count, 100u) << "a minute has not passed yet";
  for (int second = 1; second < 60; second++) recent.sample(all);
  EXPECT_EQ(recent.of_the_last_minute(all).count, 100u) << "better an old one than none";
  for (int i = 0; i < 3; i++) all.add_ns(2 * ns_per_ms);
  const store::LatencyHistogram last = recent.of_the_last_minute(all);
  EXPECT_EQ(last.count, 3u);
  EXPECT_EQ(last.sum_us, 6000u);
  EXPECT_EQ(last.buckets[11], 3u);
}

}  // namespace
}  // namespace rmq::broker

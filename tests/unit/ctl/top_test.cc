// The screen of rmqctl top, from samples made by hand.
#include "ctl/top_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ctl/print.h"
#include "ctl/top_sample.h"
#include "json.h"

namespace rmq::ctl {
namespace {

TopSample sample(size_t brokers, size_t topics, size_t groups) {
  TopSample s;
  s.cluster = "DefaultCluster";
  s.at_ms = 1'700'000'000'000;
  for (size_t i = 0; i < brokers; i++) {
    TopBroker b;
    b.name = "broker-" + std::to_string(i);
    b.in_rate = 1234.4;
    b.out_rate = 2.25;
    b.flush_ms = 0.52;
    b.disk_used = 0.631;
    b.boot_ms = s.at_ms - 3 * 86'400'000 - 7'200'000;
    s.brokers.push_back(b);
  }
  for (size_t i = 0; i < topics; i++)
    s.topics.push_back({"topic-" + std::to_string(i), 1000.0, 8, 1'234'567});
  for (size_t i = 0; i < groups; i++) s.groups.push_back({"group-" + std::to_string(i), {}, 3, 42});
  return s;
}

std::vector<std::string> texts(const std::vector<ScreenLine>& lines) {
  std::vector<std::string> out;
  for (const ScreenLine& l : lines) out.push_back(l.text);
  return out;
}
std::string joined(const std::vector<ScreenLine>& lines) {
  std::string out;
  for (const ScreenLine& l : lines) out += l.text + "\n";
  return out;
}

TEST(Top, NamesDoNothingToTheTerminal) {
  TopSample s = sample(1, 1, 1);
  s.groups[0].name = "g\x1b[2J\nx";
  s.brokers[0].trouble = "down";
  s.brokers[0].why = "\x1b[31m";
  const std::string all = joined(top_screen(s, {}, 80, 24));
  EXPECT_EQ(all.find('\x1b'), std::string::npos) << all;
  EXPECT_NE(all.find("g\\x1b[2J\\nx"), std::string::npos) << all;
}

TEST(Top, FitsAnyTerminal) {
  for (size_t brokers : {0u, 1u, 30u})
    for (size_t topics : {0u, 1u, 100u})
      for (size_t groups : {0u, 1u, 100u})
        for (auto view : {TopView::all, TopView::brokers, TopView::topics, TopView::groups, TopView::help})
          for (auto [columns, rows] : {std::pair<size_t, size_t>{80, 24}, {40, 10}, {20, 6}, {200, 60}}) {
            TopState state;
            state.view = view;
            const auto lines = top_screen(sample(brokers, topics, groups), state, columns, rows);
            EXPECT_EQ(lines.size(), rows);
            for (const ScreenLine& l : lines) EXPECT_LE(display_width(l.text), columns) << l.text;
          }
}

TEST(Top, ShowsAllOnEightyByTwentyFour) {
  const auto lines = texts(top_screen(sample(2, 3, 100), {}, 80, 24));
  EXPECT_TRUE(lines[0].starts_with("DefaultCluster  in 2,469/s  out 4.5/s  lag 4,200  ")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with("every 2s")) << lines[0];
  EXPECT_EQ(lines[2], "BROKER                  IN/s      OUT/s  FLUSH 99%   DISK      UP  STATE");
  EXPECT_EQ(lines[3], "broker-0               1,234        2.2     0.5 ms   63 %      3d  ok");
  EXPECT_EQ(lines[6], "TOPIC                                             IN/s  QUEUES          MESSAGES");
  EXPECT_EQ(lines[7], "topic-0                                          1,000       8         1,234,567");
  EXPECT_EQ(lines[11], "GROUP                                           OUT/s  MEMBERS               LAG");
  EXPECT_EQ(lines[12], "group-0                                             -        3                42");
  EXPECT_EQ(lines[22].substr(0, 14), "90 more groups") << "what has no room is counted";
  EXPECT_TRUE(lines[23].starts_with("q quit"));
}

// Of 10,000 topics some are asked about each time: whatever is busy always, the others in turn, none
// forgotten.
TEST(Top, ManyTopicsTakeTurns) {
  std::vector<std::string> names;
  for (int i = 10'000; i < 20'000; i++) names.push_back("t" + std::to_string(i));
  TopTurn turn;
  EXPECT_EQ(turn.next({"a", "b"}, {}, 100), (std::vector<std::string>{"a", "b"}));
  const std::vector<std::string> busy = {"t19999", "gone", "t15000"};
  std::set<std::string> seen;
  for (int round = 0; round < 11; round++) {
    const auto asked = turn.next(names, busy, 1000);
    EXPECT_EQ(asked.size(), 1000u);
    EXPECT_TRUE(std::is_sorted(asked.begin(), asked.end()));
    for (const char* t : {"t19999", "t15000"}) EXPECT_TRUE(std::binary_search(asked.begin(), asked.end(), t));
    seen.insert(asked.begin(), asked.end());
  }
  EXPECT_EQ(seen.size(), names.size());
  const auto asked = turn.next(names, names, 1000);
  EXPECT_EQ(std::count_if(asked.begin(), asked.end(), [](const auto& n) { return n < "t10500"; }), 500)
      << "also the busy ones leave room for others";
}

TEST(Top, TroubleIsSeen) {
  TopSample s = sample(1, 1, 1);
  s.brokers[0].trouble = "refuses sends";
  s.brokers[0].why =
      "the file system at /var/lib/rmqd has 32.6 MiB free, the limit is 40.0 MiB, and so on and on";
  s.groups[0].members = 0;
  s.brokers[0].name = "a-broker-with-a-very-long-name-indeed";
  const auto lines = top_screen(s, {}, 80, 24);
  EXPECT_EQ(lines[3].style, ScreenLine::Style::bad);
  EXPECT_TRUE(lines[3].text.starts_with("a-broker-with-a..  ")) << lines[3].text;
  EXPECT_TRUE(lines[3].text.ends_with("refuses sends")) << lines[3].text;
  EXPECT_TRUE(lines[4].text.starts_with("a-broker-with-a-very-long-name-indeed: the file system at "))
      << "and why: " << lines[4].text;
  EXPECT_EQ(lines[5].text, "what to do about it: rmqctl doctor");
  EXPECT_NE(joined(lines).find("group-0"), std::string::npos);
  EXPECT_NE(joined(lines).find("   none  "), std::string::npos) << "members";
  for (const ScreenLine& l : lines)
    if (l.text.starts_with("group-0"))
      EXPECT_EQ(l.style, ScreenLine::Style::bad) << "it lags, and nobody consumes";
  TopState state;
  state.trouble = "the name server does not answer";
  EXPECT_TRUE(top_screen(s, state, 80, 24)[0].text.starts_with(state.trouble));
  state.trouble.clear();
  state.paused = true;
  EXPECT_TRUE(top_screen(s, state, 80, 24)[0].text.ends_with("paused"));
}

TEST(Top, TroubleLeavesRoomForTheRest) {
  TopSample s = sample(9, 50, 50);
  for (TopBroker& b : s.brokers) b.trouble = b.why = "unreachable";
  for (auto view : {TopView::all, TopView::brokers})
    for (size_t rows : {6u, 10u, 18u, 24u, 60u}) {
      TopState state;
      state.view = view;
      const auto lines = top_screen(s, state, 80, rows);
      EXPECT_EQ(lines.size(), rows);
      EXPECT_TRUE(lines.back().text.starts_with("q quit"));
      if (view == TopView::all && rows >= 24) {
        EXPECT_NE(joined(lines).find("topic-0"), std::string::npos) << rows;
        EXPECT_NE(joined(lines).find("group-0"), std::string::npos) << rows;
      }
    }
}

TEST(Top, AGroupThatNeverAcknowledgedHasNoLag) {
  TopSample s = sample(1, 1, 1);
  s.groups[0].has_offsets = false;
  s.groups[0].lag = 0;
  const std::string text = joined(top_screen(s, {}, 80, 24));
  EXPECT_NE(text.find("group-0                                             -        3                 -"),
            std::string::npos)
      << text;
  JsonDocument j;
  ASSERT_TRUE(j.parse(top_json(s)));
  EXPECT_TRUE(j.is_null("/groups/0/diffTotal"));
}

TEST(Top, PlainShowsEverything) {
  TopSample s = sample(9, 50, 50);
  s.topics_passed_over = 7;
  const std::string text = joined(top_screen(s, {}, 80, 0));
  EXPECT_NE(text.find("broker-8"), std::string::npos);
  EXPECT_NE(text.find("topic-49"), std::string::npos);
  EXPECT_NE(text.find("group-49"), std::string::npos);
  EXPECT_NE(text.find("7 more topics"), std::string::npos);
  EXPECT_EQ(text.find("q quit"), std::string::npos);
}

TEST(Top, Json) {
  TopSample s = sample(1, 1, 1);
  JsonDocument j;
  ASSERT_TRUE(j.parse(top_json(s)));
  EXPECT_EQ(j.text("/cluster"), "DefaultCluster");
  EXPECT_EQ(j.text("/brokers/0/brokerName"), "broker-0");
  EXPECT_EQ(j.integer("/topics/0/messages"), 1'234'567);
  EXPECT_EQ(j.integer("/groups/0/diffTotal"), 42);
  EXPECT_TRUE(j.is_null("/groups/0/outTps"));
}

}  // namespace
}  // namespace rmq::ctl

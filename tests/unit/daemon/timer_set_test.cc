// What the timer service keeps in memory, and what properties ask of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/base64.h"
#include "daemon/broker/timer_properties.h"
#include "daemon/broker/timer_set.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::vector<PendingTimer> drained(TimerHeap& h) {
  std::vector<PendingTimer> out;
  while (!h.empty()) out.push_back(h.pop());
  return out;
}
bool in_order(const std::vector<PendingTimer>& v) {
  return std::is_sorted(v.begin(), v.end(), [](const auto& a, const auto& b) { return a.before(b); });
}

TEST(TimerHeap, GivesThemByTime) {
  std::mt19937_64 random(1);
  TimerHeap h;
  for (int64_t i = 0; i < 20'000; i++)
    h.push(PendingTimer::make(static_cast<int64_t>(random() % 5000), i % 2 == 0, i));
  EXPECT_EQ(h.size(), 20'000u);
  EXPECT_LE(h.bytes(), 20'000u * 16 + 4096 * 16) << "16 bytes each, but for the last block";
  auto all = drained(h);
  EXPECT_EQ(all.size(), 20'000u);
  EXPECT_TRUE(in_order(all));
  EXPECT_LE(h.bytes(), 4096u * 16) << "memory is given back";
}

TEST(TimerHeap, MovesThoseThatFollowTheWallClock) {
  TimerHeap h;
  for (int64_t i = 0; i < 100; i++) h.push(PendingTimer::make(1000 + i, i % 2 == 1, i));
  h.shift_wall(-500);
  auto all = drained(h);
  EXPECT_TRUE(in_order(all));
  for (size_t i = 0; i < all.size(); i++) EXPECT_EQ(all[i].offset % 2, i < 50 ? 1 : 0);
  EXPECT_EQ(all[0].due_ms(), 501);
}

TEST(TimerHeap, ForgetsTheLaterHalf) {
  std::mt19937_64 random(2);
  for (int64_t spread : {1, 7, 100'000}) {  // also when all are due in the same millisecond
    TimerHeap h;
    for (int64_t i = 0; i < 10'000; i++)
      h.push(PendingTimer::make(static_cast<int64_t>(random() % static_cast<uint64_t>(spread)), false, i));
    PendingTimer horizon = h.forget_later_half();
    EXPECT_LT(h.size(), 8000u) << spread;
    EXPECT_GT(h.size(), 1000u) << spread;
    for (const auto& t : drained(h)) EXPECT_TRUE(t.before(horizon));
  }
  TimerHeap one;
  one.push(PendingTimer::make(5, true, 9));
  PendingTimer horizon = one.forget_later_half();
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.top().before(horizon));
}

TEST(DoneSet, IsASet) {
  std::mt19937_64 random(3);
  for (int64_t begin : {0, 1, 63, 64, 100'000}) {
    DoneSet s;
    s.add_below(begin);
    std::set<int64_t> model;
    for (int i = 0; i < 3000; i++) {
      int64_t o = begin + static_cast<int64_t>(random() % 1000);
      s.add(o);
      model.insert(o);
    }
    int64_t low = begin;
    while (model.contains(low)) low++;
    EXPECT_EQ(s.low(), low);
    for (int64_t o = begin; o < begin + 1200; o++)
      EXPECT_EQ(s.contains(o), o < low || model.contains(o)) << o;
    auto back = DoneSet::decode(s.encode());
    ASSERT_TRUE(back);
    EXPECT_EQ(back->low(), s.low());
    for (int64_t o = begin; o < begin + 1200; o++) EXPECT_EQ(back->contains(o), s.contains(o));
    EXPECT_EQ(back->encode(), s.encode());
    s.add_below(begin + 700);
    for (int64_t o = begin; o < begin + 1200; o++)
      EXPECT_EQ(s.contains(o), o < begin + 700 || model.contains(o) || o < s.low()) << o;
  }
}

TEST(DoneSet, ForgetsWhatLiesBehind) {
  DoneSet s;
  for (int64_t o = 0; o < 1'000'000; o++) s.add(o);
  EXPECT_EQ(s.low(), 1'000'000);
  EXPECT_LE(s.bytes(), 16u);
  s.add(2'000'000);
  EXPECT_FALSE(s.contains(1'500'000));
  EXPECT_TRUE(s.contains(2'000'000));
  EXPECT_LE(s.bytes(), 1'000'000u / 8 + 16);
}

TEST(DoneSet, TakesNoOtherText) {
  DoneSet s;
  s.add(70);
  std::string good = s.encode();
  ASSERT_TRUE(DoneSet::decode(good));
  for (std::string_view bad : {"", "5", "x AAAA", "-1 AAAAAAAAAAA=", "0 AAA", "0 ", "0 AAAAAAAAAAE=", "7!"})
    EXPECT_FALSE(DoneSet::decode(bad)) << bad;
  EXPECT_FALSE(DoneSet::decode("9" + good)) << "low lies elsewhere";
}

TEST(Base64, AsJava) {
  EXPECT_EQ(base64url_encode("v1 T b 1 k"), "djEgVCBiIDEgaw==");
  EXPECT_EQ(base64url_encode("\xff\xfe\xfd"), "__79");
  for (std::string_view text : {"", "a", "ab", "abc", "abcd"})
    EXPECT_EQ(base64url_decode(base64url_encode(text)), text);
  EXPECT_EQ(base64url_decode("YWI"), "ab") << "padding may be missing";
  for (std::string_view bad : {"a", "YW=I", "YWI==", "Y W I", "YWI+", "YWI/", "====", "YWJj="})
    EXPECT_FALSE(base64url_decode(bad)) << bad;
}

// ---- properties

constexpr int64_t now = 1'800'000'000'000, most = 1000 * 1000;

TimerAsk ask(std::initializer_list<std::pair<std::string_view, std::string_view>> list) {
  std::string text;
  for (auto [name, value] : list) proto::append_property(text, name, value);
  return timer_ask_of(text, now, now + 1, most);
}
using What = TimerAsk::What;

TEST(TimerProperties, WhatTheyAsk) {
  EXPECT_EQ(ask({{"TAGS", "a"}}).what, What::nothing);
  auto a = ask({{"TIMER_DELAY_SEC", "10"}});
  EXPECT_EQ(a.what, What::later);
  EXPECT_EQ(a.deliver_ms, now + 1 + 10'000) << "a delay begins at the millisecond that is rounded up";
  EXPECT_EQ(a.kind, store::TimerKind::delay);
  EXPECT_EQ(ask({{"TIMER_DELAY_MS", "5"}}).deliver_ms, now + 6);
  a = ask({{"TIMER_DELIVER_MS", std::to_string(now + 7)}});
  EXPECT_EQ(a.deliver_ms, now + 7) << "exact";
  EXPECT_EQ(a.kind, store::TimerKind::time_of_day);
  a = ask({{"TIMER_DELIVER_MS", "1"}, {"TIMER_DELAY_MS", "2"}, {"TIMER_DELAY_SEC", "3"}});
  EXPECT_EQ(a.deliver_ms, now + 1 + 3000) << "seconds before milliseconds before the time";
  EXPECT_EQ(ask({{"TIMER_DELIVER_MS", "1"}, {"TIMER_DELAY_MS", "2"}}).deliver_ms, now + 3);
  a = ask({{"TIMER_DELIVER_MS", std::to_string(now + 7)}, {"TIMER_DEL_UNIQKEY", "T+k"}});
  EXPECT_EQ(a.kind, store::TimerKind::recall);
  EXPECT_EQ(ask({{"TIMER_DEL_UNIQKEY", "T+k"}}).what, What::nothing) << "without a time it says nothing";
  EXPECT_EQ(ask({{"TIMER_DELAY_MS", "5"}, {"TIMER_OUT_MS", "1"}}).what, What::nothing) << "delivered before";
}

TEST(TimerProperties, Limits) {
  EXPECT_EQ(ask({{"TIMER_DELAY_SEC", "1000"}}).what, What::later);
  EXPECT_EQ(ask({{"TIMER_DELAY_SEC", "1001"}}).what, What::illegal);
  EXPECT_EQ(ask({{"TIMER_DELAY_MS", "1000000"}}).what, What::later);
  EXPECT_EQ(ask({{"TIMER_DELAY_MS", "1000001"}}).what, What::illegal);
  EXPECT_EQ(ask({{"TIMER_DELIVER_MS", std::to_string(now + most)}}).what, What::later);
  EXPECT_EQ(ask({{"TIMER_DELIVER_MS", std::to_string(now + most + 1)}}).what, What::illegal);
  EXPECT_EQ(ask({{"TIMER_DELAY_MS", "0"}}).what, What::now);
  EXPECT_EQ(ask({{"TIMER_DELIVER_MS", std::to_string(now)}}).what, What::now) << "the time is there";
  EXPECT_EQ(ask({{"TIMER_DELIVER_MS", std::to_string(now - 1)}}).what, What::now);
  EXPECT_EQ(ask({{"TIMER_DELIVER_MS", std::to_string(now)}, {"TIMER_DEL_UNIQKEY", "T+k"}}).what,
            What::illegal);
  for (std::string_view name : {"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})
    for (std::string_view bad : {"-1", "-9223372036854775808", "9223372036854775807", "9223372036854775808",
                                 "x", "1x", " 1", "1 ", "1.5", "0x10", "+", "+-1", "1e3"})
      EXPECT_EQ(ask({{name, bad}}).what, What::illegal) << name << "=" << bad;
  EXPECT_EQ(ask({{"TIMER_DELAY_SEC", "x"}, {"TIMER_DELAY_MS", "5"}}).what, What::illegal)
      << "the one that counts is broken";
}

}  // namespace
}  // namespace rmq::broker

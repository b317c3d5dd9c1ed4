// The log: levels, fields, and what happens to an event that comes too often.
#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace rmq {
namespace {

constexpr MessageId often{"00000000000000000000000000000001", "often"};
constexpr MessageId seldom{"00000000000000000000000000000002", "seldom"};

size_t count_of(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) n++;
  return n;
}

TEST(Log, AnEventThatComesTooOftenIsCounted) {
  const LogCounts before = log_counts();
  testing::internal::CaptureStderr();
  log_start(false, LogLevel::info);
  for (int i = 0; i < 25; i++) log(LogLevel::warning, often, "often", {{"TOPIC", "T"}});
  log(LogLevel::warning, seldom, "seldom");
  log_stop();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(text, " warning: often TOPIC=T\n"), 20u) << text;
  EXPECT_EQ(count_of(text, " warning: seldom\n"), 1u) << "others are not held back";
  EXPECT_EQ(count_of(text, " notice: 5 more lines of event often were not written SUPPRESSED=5\n"), 1u)
      << text;
  EXPECT_EQ(log_counts().over_rate - before.over_rate, 5u);
}

TEST(Log, WhatWasHeldBackIsToldWhenNothingComesAnyMore) {
  testing::internal::CaptureStderr();
  log_start(false, LogLevel::info);
  for (int i = 0; i < 21; i++) log(LogLevel::warning, often, "often");
  std::this_thread::sleep_for(std::chrono::milliseconds(11'500));
  log(LogLevel::warning, seldom, "later");
  log_stop();
  const std::string text = testing::internal::GetCapturedStderr();
  const size_t told = text.find("1 more lines of event often");
  ASSERT_NE(told, std::string::npos) << text;
  EXPECT_LT(told, text.find("later")) << text;
}

TEST(Log, TheLevelChangesWhileItRuns) {
  testing::internal::CaptureStderr();
  log_start(false, LogLevel::notice);
  log(LogLevel::info, "one");
  log_set_level(LogLevel::debug);
  log(LogLevel::debug, "two");
  log_set_level(LogLevel::error);
  log(LogLevel::warning, "three");
  log_stop();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(text, "one") + count_of(text, "three"), 0u) << text;
  EXPECT_EQ(count_of(text, " debug: two\n"), 1u) << text;
}

TEST(Log, ALineStaysALine) {
  testing::internal::CaptureStderr();
  log_start(false, LogLevel::info);
  log(LogLevel::info, "a\nb", {{"TOPIC", ""}, {"CLIENT", "c\x1b[31m"}});
  log_stop();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.ends_with(" info: a\\x0ab CLIENT=c\\x1b[31m\n")) << text;
}

}  // namespace
}  // namespace rmq

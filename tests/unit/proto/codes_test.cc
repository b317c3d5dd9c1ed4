// Names and checks of names, against values of the reference.
#include "proto/codes.h"

#include <gtest/gtest.h>

namespace rmq::proto {

TEST(Codes, NamesOfRequestAndResponseCodes) {
  EXPECT_EQ(name_of(RequestCode::SEND_MESSAGE_V2), "SEND_MESSAGE_V2");
  EXPECT_EQ(static_cast<int>(RequestCode::BATCH_ACK_MESSAGE), 200151);
  EXPECT_EQ(name_of(static_cast<RequestCode>(16)), "");
  EXPECT_EQ(name_of(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST), "SUBSCRIPTION_GROUP_NOT_EXIST");
  EXPECT_EQ(static_cast<int>(ResponseCode::GO_AWAY), 1500);
  EXPECT_EQ(static_cast<int>(ResponseCode::SYSTEM_ERROR), 1);
}

TEST(Codes, Languages) {
  EXPECT_EQ(language_of("GO"), LanguageCode::GO);
  EXPECT_EQ(language_of("KLINGON"), LanguageCode::OTHER);
  EXPECT_EQ(name_of(LanguageCode::NODE_JS), "NODE_JS");
  EXPECT_EQ(static_cast<int>(LanguageCode::NODE_JS), 13);
  EXPECT_EQ(name_of(static_cast<LanguageCode>(200)), "OTHER");
}

TEST(Codes, VersionNames) {
  EXPECT_EQ(version_name(0), "V3_0_0_SNAPSHOT");
  EXPECT_EQ(version_name(1), "V3_0_0_ALPHA1");
  EXPECT_EQ(version_name(15), "V3_0_0_FINAL");
  EXPECT_EQ(version_name(16), "V3_0_1_SNAPSHOT");
  EXPECT_EQ(version_name(37), "V3_0_11");
  EXPECT_EQ(version_name(46), "V3_1_0_SNAPSHOT");
  EXPECT_EQ(version_name(86), "V3_3_1_SNAPSHOT");
  EXPECT_EQ(version_name(211), "V3_9_9");
  EXPECT_EQ(version_name(63), "V3_1_8");
  EXPECT_EQ(version_name(121), "V3_4_9");
  EXPECT_EQ(version_name(139), "V3_5_9");
  EXPECT_EQ(version_name(213), "V4_0_0");
  EXPECT_EQ(version_name(355), "V4_7_1");
  EXPECT_EQ(version_name(399), "V4_9_3");
  EXPECT_EQ(version_name(409), "V4_9_8");
  EXPECT_EQ(version_name(441), "V5_1_4");
  EXPECT_EQ(version_name(479), "V5_3_3");
  EXPECT_EQ(version_name(512), "V5_5_0_SNAPSHOT");
  EXPECT_EQ(version_name(mq_version::ours), "V5_5_0");
  EXPECT_EQ(version_name(611), "V5_9_9");
  EXPECT_EQ(version_name(612), "HIGHER_VERSION");
  EXPECT_EQ(version_name(100'000), "HIGHER_VERSION");
}

TEST(Codes, TopicNames) {
  EXPECT_FALSE(invalid_topic_remark("a%|-_Z9"));
  EXPECT_EQ(invalid_topic_remark(""), "The specified topic is blank.");
  EXPECT_EQ(invalid_topic_remark(" "), "The specified topic is blank.");
  for (const char* bad : {"a/b", "a.b", "a b", "$", "\xc3\xa9"}) {
    EXPECT_EQ(invalid_topic_remark(bad),
              "The specified topic: " + std::string(bad) +
                  ", contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$");
  }
  EXPECT_TRUE(invalid_topic_remark(std::string_view("a\0b", 3)));
  EXPECT_FALSE(invalid_topic_remark(std::string(127, 't')));
  std::string long_topic(128, 't');
  EXPECT_EQ(invalid_topic_remark(long_topic),
            "The specified topic: " + long_topic + ", is longer than topic max length: 127");
  EXPECT_FALSE(invalid_topic_remark("%RETRY%" + std::string(248, 't')));
  EXPECT_TRUE(invalid_topic_remark("%RETRY%" + std::string(249, 't'))->ends_with("max length: 255"));
  EXPECT_FALSE(invalid_topic_remark("%DLQ%" + std::string(250, 't')));
}

TEST(Codes, GroupNames) {
  EXPECT_FALSE(invalid_group_remark(std::string(120, 'g')));
  EXPECT_TRUE(
      invalid_group_remark(std::string(121, 'g'))->ends_with(", is longer than group max length: 120"));
  EXPECT_EQ(invalid_group_remark("\t"), "The specified group is blank.");
}

TEST(Codes, SystemTopics) {
  for (const char* t :
       {"TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "BenchmarkTest", "rmq_sys_x"}) {
    EXPECT_TRUE(is_system_topic(t)) << t;
  }
  EXPECT_FALSE(is_system_topic("TBW103"));
  for (const char* t : {"SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
                        "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT"}) {
    EXPECT_TRUE(is_topic_forbidden_to_send(t)) << t;
    EXPECT_EQ(forbidden_to_send_remark(t), "Sending message to topic[" + std::string(t) + "] is forbidden.");
  }
  EXPECT_FALSE(is_topic_forbidden_to_send("TBW102"));
  EXPECT_EQ(system_topic_remark("T"), "The topic[T] is conflict with system topic.");
  EXPECT_EQ(retry_topic_of("g"), "%RETRY%g");
  EXPECT_EQ(retry_topic_of("%RETRY%g"), "%RETRY%g");
  EXPECT_EQ(dlq_topic_of("g"), "%DLQ%g");
}

}  // namespace rmq::proto

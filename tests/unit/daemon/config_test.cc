// Configuration tables, command line settings, and Java's properties text.
#include "daemon/config.h"
#include "daemon/rocketmq_keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "daemon/java_properties.h"

namespace rmq {
namespace {

std::string temp_file(const std::string& text) {
  char path[] = "/tmp/rmqd-config-test-XXXXXX";
  int fd = mkstemp(path);
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  return path;
}

TEST(Config, SettingsWinOverTheFileAndTheFileOverDefaults) {
  std::string path = temp_file("listenPort = 1000\nenableTopicList = false\n");
  NamesrvConfig c;
  std::vector<std::string> settings{"listenPort=2000", "kvConfigPath=/a=b"};
  ConfigErrors errors = config_read(namesrv_config_table(), c, path, settings);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(c.listenPort, 2000);
  EXPECT_FALSE(c.enableTopicList);
  EXPECT_EQ(c.kvConfigPath, "/a=b");
  EXPECT_EQ(c.scanNotActiveBrokerInterval, 10'000);
  std::remove(path.c_str());
}

TEST(Config, EveryMistakeIsToldWithItsLine) {
  std::string path =
      temp_file("listenPort = 70000\n\nenableTopicList = \"yes\"\nlistenPrt = 1\nlogLevel = \"loud\"\n");
  NamesrvConfig c;
  std::vector<std::string> settings{"nonsense", "orderMessageEnable=1"};
  ConfigErrors errors = config_read(namesrv_config_table(), c, path, settings);
  ASSERT_EQ(errors.size(), 6u);
  EXPECT_EQ(errors[0].find(path + ":"), 0u);
  std::string all;
  for (const std::string& e : errors) all += e + "\n";
  EXPECT_NE(all.find(path + ":1: 'listenPort' must be from 1 to 65535, not 70000"), std::string::npos) << all;
  EXPECT_NE(all.find(path + ":3: 'enableTopicList' must be a boolean"), std::string::npos) << all;
  EXPECT_NE(all.find(path + ":4: unknown key 'listenPrt' (did you mean 'listenPort'?)"), std::string::npos)
      << all;
  EXPECT_NE(all.find(path + ":5: 'logLevel' must be one of"), std::string::npos) << all;
  EXPECT_NE(all.find("-o nonsense: must be key=value"), std::string::npos) << all;
  EXPECT_NE(all.find("-o orderMessageEnable=1: 'orderMessageEnable' must be true or false"),
            std::string::npos)
      << all;
  std::remove(path.c_str());
}

TEST(Config, AKeyIsSetWhereThePersonWouldLookForIt) {
  const std::string text =
      "# About b = 1.\na = 1   # the first\n\n#b = 2\n  \"c\"=\"x # \\\" y\" # third\nd = true";
  auto set = [&](const char* key, const char* to) { return detail::with_toml_key(text, key, to); };
  EXPECT_EQ(set("a", "17"),
            "# About b = 1.\na = 17   # the first\n\n#b = 2\n  \"c\"=\"x # \\\" y\" # third\nd = true");
  EXPECT_EQ(set("b", "3"),
            "# About b = 1.\na = 1   # the first\n\n#b = 2\nb = 3\n  \"c\"=\"x # \\\" y\" # third\nd = true");
  EXPECT_EQ(set("c", "\"z\""),
            "# About b = 1.\na = 1   # the first\n\n#b = 2\n  \"c\"=\"z\" # third\nd = true");
  EXPECT_EQ(set("d", "false").substr(text.size() - 4), "false");
  EXPECT_EQ(set("e", "1"), text + "\ne = 1\n");
  EXPECT_EQ(detail::with_toml_key("", "e", "1"), "e = 1\n");
}

TEST(Config, WhatWasSetReadsBack) {
  for (const char* value :
       {"", "plain", "quote \" and \\", "tab\t and \x01 bell", "gr\xc3\xbc\xc3\x9f dich"}) {
    ConfigErrors errors;
    const std::string text = detail::with_toml_key("# nothing\n", "k", detail::toml_string(value));
    const auto entries = detail::read_toml_text(text, "f", errors);
    ASSERT_TRUE(errors.empty()) << errors.front();
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].value, value);
  }
}

TEST(Config, KeysOfRocketmqArePassedOverAloudUnlessTheyProtect) {
  std::string path = temp_file(
      "transactionOpBatchInterval = 200\naclEnable = true\nsendMessageThreadPoolNums = 3\nnothingAtAll = 1\n"
      "brokerRole = \"ASYNC_MASTER\"\n");
  BrokerConfig c;
  std::vector<std::string> found,
      settings{"waitTimeMillsInSendQueue=5000", "brokerRole=SLAVE", "aclEnable=false"};
  ConfigErrors errors =
      config_read(broker_config_table(), c, path, settings, rocketmq_keys_passed_over(&found));
  std::sort(errors.begin(), errors.end());
  std::sort(found.begin(), found.end());
  std::string all;
  for (const std::string& e : errors) all += e + "\n";
  ASSERT_EQ(errors.size(), 3u) << all;
  EXPECT_NE(errors[1].find(path + ":2: 'aclEnable' cannot be honoured: "), std::string::npos) << errors[0];
  EXPECT_NE(errors[2].find(path + ":4: unknown key 'nothingAtAll'"), std::string::npos) << errors[1];
  EXPECT_NE(errors[0].find("-o brokerRole=SLAVE: 'brokerRole' cannot be honoured: "), std::string::npos)
      << errors[0];
  ASSERT_EQ(found.size(), 5u);
  EXPECT_NE(found[2].find(path + ":1: 'transactionOpBatchInterval' has no effect: "), std::string::npos)
      << found[2];
  EXPECT_NE(found[3].find("thread pools"), std::string::npos) << found[3];
  std::remove(path.c_str());
}

TEST(Config, AFileThatIsNotTomlIsToldWithItsLine) {
  std::string path = temp_file("listenPort = 1\nx = = 2\n");
  NamesrvConfig c;
  ConfigErrors errors = config_read(namesrv_config_table(), c, path, {});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].find(path + ":2: "), 0u) << errors[0];
  std::remove(path.c_str());
  errors = config_read(namesrv_config_table(), c, path, {});
  ASSERT_EQ(errors.size(), 1u) << "no such file";
}

TEST(Config, LabelsForAllMetricsAreOtherOnesThanTheirOwn) {
  const LabelList two{{"site", "one"}, {"rack", ""}};
  EXPECT_EQ(metric_labels_of("site:one,rack:"), two);
  for (const char* own :
       {"cluster:x", "site:one,node_id:x", "le:1", "topic:T", "response_code:x", "site:1,site:2"})
    EXPECT_EQ(metric_labels_of(own), std::nullopt) << own;
}

TEST(Config, DefaultsPassTheirOwnRules) {
  BrokerConfig b, b2;
  for (const auto& k : broker_config_table())
    EXPECT_EQ(config_set(broker_config_table(), b2, k.name, config_get(k, b)), "") << k.name;
  NamesrvConfig n, n2;
  for (const auto& k : namesrv_config_table())
    EXPECT_EQ(config_set(namesrv_config_table(), n2, k.name, config_get(k, n)), "") << k.name;
}

TEST(JavaProperties, AsJavaReadsThem) {
  Properties p = parse_properties(
      "# comment\n! too\n\na=1\nb : 2 \n  c 3\nd\\=x=4\ne = a\\tb\\u00fc\\\\\nlong = one, \\\n    "
      "two\r\nempty=\nonly\n"
      "smile=\\ud83d\\ude00\nhalf=\\ud83d!\nu=\\u12");
  Properties expected{{"a", "1"},          {"b", "2 "},           {"c", "3"},
                      {"d=x", "4"},        {"e", "a\tb\u00fc\\"}, {"long", "one, two"},
                      {"empty", ""},       {"only", ""},          {"smile", "\U0001F600"},
                      {"half", "\uFFFD!"}, {"u", "u12"}};
  EXPECT_EQ(p, expected);
  EXPECT_TRUE(parse_properties("").empty());
  EXPECT_EQ(parse_properties("a=\\"), (Properties{{"a", ""}}));
}

// A comment ends with its line, also one that ends with a backslash: C:\store\.
TEST(JavaProperties, NothingContinuesAComment) {
  const Properties one{{"k", "v"}};
  for (const char* text :
       {"# c \\\nk=v", "! x\\\r\nk=v", "  # y \\\nk=v", "\\\n# x\nk=v", "#x\\\\\nk=v", "#\nk=v"})
    EXPECT_EQ(parse_properties(text), one) << text;
  EXPECT_EQ(parse_properties("a=b\\\n  # none\nc=d"), (Properties{{"a", "b# none"}, {"c", "d"}}));
}

}  // namespace
}  // namespace rmq

// A RocketMQ properties file as rmqd.toml.
#include "daemon/import_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/config.h"
#include "daemon/rocketmq_keys.h"

namespace rmq {
namespace {

BrokerConfig read_back(const std::string& toml) {
  char path[] = "/tmp/rmqd-import-test-XXXXXX";
  int fd = mkstemp(path);
  EXPECT_EQ(write(fd, toml.data(), toml.size()), static_cast<ssize_t>(toml.size()));
  close(fd);
  BrokerConfig c;
  ConfigErrors errors = config_read(broker_config_table(), c, path, {});
  EXPECT_TRUE(errors.empty()) << errors.front() << "\n" << toml;
  unlink(path);
  return c;
}

TEST(ImportConfig, WhatWeHaveIsTakenOver) {
  auto r = import_broker_config(
      "# a comment\nbrokerClusterName = shop\nbrokerName:broker-\\u0062\nlistenPort=10921\n"
      "autoCreateTopicEnable=FALSE \nflushDiskType=ASYNC_FLUSH\nstorePathRootDir=/data/with \"quotes\"\n"
      "mapedFileSizeCommitLog=536870912\nbrokerRole=ASYNC_MASTER\nstoreType=default\naclEnable=false\n",
      "broker.conf");
  EXPECT_TRUE(r.refused.empty()) << r.refused.front();
  EXPECT_EQ(r.taken, 7u);
  BrokerConfig c = read_back(r.toml);
  EXPECT_EQ(c.brokerClusterName, "shop");
  EXPECT_EQ(c.brokerName, "broker-b");
  EXPECT_EQ(c.listenPort, 10921);
  EXPECT_FALSE(c.autoCreateTopicEnable);
  EXPECT_EQ(c.flushDiskType, "ASYNC_FLUSH");
  EXPECT_EQ(c.storePathRootDir, "/data/with \"quotes\"");
  EXPECT_EQ(c.mappedFileSizeCommitLog, 536'870'912);
  EXPECT_NE(r.toml.find("# brokerRole = ASYNC_MASTER\n"), std::string::npos) << r.toml;
}

// As Java reads the file: a byte, a character.
TEST(ImportConfig, TheFileIsLatin1) {
  auto r = import_broker_config("brokerName=caf\xe9\nstorePathRootDir=/d\xc3\xa9\n", "broker.conf");
  BrokerConfig c = read_back(r.toml);
  EXPECT_EQ(c.brokerName, "caf\u00e9");
  EXPECT_EQ(c.storePathRootDir, "/d\u00c3\u00a9");
}

TEST(ImportConfig, TheRestIsNamedWithItsReason) {
  auto r = import_broker_config("sendMessageThreadPoolNums=16\nwarmMapedFileEnable=true\nmyOwnKey=1\n", "b");
  EXPECT_EQ(r.taken, 0u);
  EXPECT_NE(r.toml.find("# sendMessageThreadPoolNums = 16\n#     rmqd has no thread pools"),
            std::string::npos);
  EXPECT_NE(r.toml.find("# warmMapedFileEnable = true\n#     rmqd does not map files"), std::string::npos);
  EXPECT_NE(r.toml.find("# myOwnKey = 1\n#     not a key of RocketMQ"), std::string::npos) << r.toml;
  read_back(r.toml);
}

TEST(ImportConfig, WhatWouldBeMissedIsRefused) {
  const char* all[] = {"storeType=defaultRocksDB",
                       "brokerRole=SLAVE",
                       "brokerRole=SYNC_MASTER",
                       "aclEnable=true",
                       "enableControllerMode=True",
                       "storePathCommitLog=/a,/b",
                       "brokerId=1",
                       "listenPort=many",
                       "flushDiskType=NEVER"};
  for (const char* line : all) {
    auto r = import_broker_config(line, "b");
    EXPECT_EQ(r.refused.size(), 1u) << line;
    EXPECT_EQ(r.taken, 0u) << line;
    EXPECT_NE(r.toml.find("# Refused"), std::string::npos) << line;
    read_back(r.toml);
  }
}

TEST(ImportConfig, OddTextsStayComments) {
  auto r = import_broker_config("a\\nb=c\\nd = e\nregionId=x\\u0001y\\\\z\nlistenPort=1\nlistenPort=10911\n",
                                "x\ny");
  EXPECT_EQ(read_back(r.toml).regionId, "x\x01y\\z");
  EXPECT_EQ(read_back(r.toml).listenPort, 10'911) << "of two the last one counts";
}

TEST(ImportConfig, DifferentDefaultsAreSaid) {
  auto none = import_broker_config("", "b");
  EXPECT_NE(none.toml.find("# flushDiskType = \"SYNC_FLUSH\""), std::string::npos) << none.toml;
  auto said = import_broker_config("flushDiskType=SYNC_FLUSH\nstorePathRootDir=/s", "b");
  EXPECT_EQ(said.toml.find("# flushDiskType"), std::string::npos) << said.toml;
}

TEST(ImportConfig, KeysAreWholeNames) {
  EXPECT_TRUE(is_rocketmq_key("accessMessageInMemoryHotRatio"));
  EXPECT_TRUE(is_rocketmq_key("writeWithoutMmap"));
  EXPECT_FALSE(is_rocketmq_key("writeWithout"));
  EXPECT_FALSE(is_rocketmq_key("Ratio"));
  EXPECT_FALSE(is_rocketmq_key(""));
  EXPECT_FALSE(is_rocketmq_key("aclEnable adminBrokerThreadPoolNums"));
}

}  // namespace
}  // namespace rmq

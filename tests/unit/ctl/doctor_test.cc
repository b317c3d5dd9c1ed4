// rmqctl doctor against servers that have what it looks for.
#include "ctl/doctor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/time.h"
#include "fake_server.h"
#include "json.h"
#include "proto/headers_push.h"
#include "ran.h"

namespace rmq::ctl {
namespace {

using proto::RequestCode;
using proto::ResponseCode;

struct Told {
  std::string check, grade, subject, text, cure;
};

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    registered(server_, "b", server_.address());
    topics(server_, "\"T\"");
    runtime(
        "\"rmqdVersion\":\"1\",\"currentTimeMillis\":\"@NOW@\",\"commitLogDiskRatio\":\"0.5\","
        "\"putLatency99\":\"1.02\",\"storeNotWritableReason\":\"\"");
    server_.answer(RequestCode::GET_BROKER_CONFIG, ResponseCode::SUCCESS, "",
                   "diskMaxUsedSpaceRatio=75\nstorePathRootDir=/nonexistent\n");
    server_.answer(RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ResponseCode::SUCCESS, "",
                   "{\"dataVersion\":{},\"subscriptionGroupTable\":{\"g\":{\"groupName\":\"g\"}}}");
    server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::CONSUMER_NOT_ONLINE, "nobody");
    server_.answer(
        RequestCode::GET_ROUTEINFO_BY_TOPIC, ResponseCode::SUCCESS, "",
        fmt::format("{{\"brokerDatas\":[{{\"brokerAddrs\":{{\"0\":\"{}\"}},\"brokerName\":\"b\",\"cluster\":"
                    "\"c\"}}],\"queueDatas\":[{{\"brokerName\":\"b\",\"perm\":6,\"readQueueNums\":2,"
                    "\"topicSysFlag\":0,\"writeQueueNums\":2}}]}}",
                    server_.address()));
  }

  static void registered(FakeServer& at, std::string_view broker, std::string_view address) {
    at.answer(
        RequestCode::GET_BROKER_CLUSTER_INFO, ResponseCode::SUCCESS, "",
        fmt::format(
            "{{\"brokerAddrTable\":{{\"{0}\":{{\"brokerAddrs\":{{\"0\":\"{1}\"}},\"brokerName\":\"{0}\","
            "\"cluster\":\"c\"}}}},\"clusterAddrTable\":{{\"c\":[\"{0}\"]}}}}",
            broker, address));
  }
  static void topics(FakeServer& at, std::string_view names) {
    at.answer(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, ResponseCode::SUCCESS, "",
              fmt::format("{{\"topicList\":[{}]}}", names));
  }
  // `clock_ms`: how far the broker's clock is ahead.
  void runtime(std::string table, int64_t clock_ms = 0) {
    server_.on(RequestCode::GET_BROKER_RUNTIME_INFO, [=](const FakeServer::Request& r) {
      std::string body = "{\"table\":{" + table + "}}";
      if (size_t at = body.find("@NOW@"); at != std::string::npos)
        body.replace(at, 5, std::to_string(system_wall_ms() + clock_ms));
      FakeServer::Answer a;
      proto::append_response(a.bytes, r.command, ResponseCode::SUCCESS, "", body);
      return a;
    });
  }
  // Consumers "c0", "c1", …; each with what it tells of itself.
  void members(std::vector<std::string> infos) {
    std::string connections;
    for (size_t i = 0; i < infos.size(); i++)
      connections += fmt::format(
          "{}{{\"clientAddr\":\"1.1.1.1:1\",\"clientId\":\"c{}\",\"language\":\"JAVA\",\"version\":1}}",
          i == 0 ? "" : ",", i);
    server_.answer(
        RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::SUCCESS, "",
        fmt::format("{{\"connectionSet\":[{}],\"consumeType\":\"CONSUME_PASSIVELY\",\"messageModel\":"
                    "\"CLUSTERING\",\"subscriptionTable\":{{}}}}",
                    connections));
    server_.on(RequestCode::GET_CONSUMER_RUNNING_INFO, [=](const FakeServer::Request& r) {
      auto h = proto::GetConsumerRunningInfo::decode(r.command);
      FakeServer::Answer a;
      const size_t i = h ? static_cast<size_t>(h->client_id.back() - '0') : 0;
      const bool tells = i < infos.size() && !infos[i].empty();
      proto::append_response(a.bytes, r.command, tells ? ResponseCode::SUCCESS : ResponseCode::SYSTEM_ERROR,
                             "", tells ? infos[i] : "");
      return a;
    });
  }
  static std::string info(std::string_view expression, std::vector<int> queues) {
    std::string table;
    for (int q : queues)
      table += fmt::format(
          "{}{{\"brokerName\":\"b\",\"queueId\":{},\"topic\":\"T\"}}:{{\"commitOffset\":1,\"droped\":false}}",
          table.empty() ? "" : ",", q);
    return fmt::format(
        "{{\"mqTable\":{{{}}},\"properties\":{{}},\"statusTable\":{{}},\"subscriptionSet\":[{{\"topic\":"
        "\"T\","
        "\"subString\":\"{}\",\"expressionType\":\"TAG\"}}]}}",
        table, expression);
  }

  // What is wrong with this host is not what is tested: it is left out, and so is what it does to the exit
  // code.
  std::vector<Told> look(int exit_code, std::string namesrv = {}) {
    const Ran r =
        run({"doctor", "--json", "--timeout", "500ms", "-n", namesrv.empty() ? server_.address() : namesrv});
    std::vector<Told> out;
    JsonDocument j;
    EXPECT_TRUE(j.parse(r.out)) << r.out;
    bool host_is_well = true, rest_is_well = true;
    for (size_t i = 0; i < j.size(""); i++) {
      const std::string at = "/" + std::to_string(i) + "/";
      Told t{j.text(at + "check"), j.text(at + "grade"), j.text(at + "subject"), j.text(at + "text"),
             j.text(at + "cure")};
      const bool is_well = t.grade == "ok" || t.grade == "note";
      EXPECT_TRUE(is_well || !t.cure.empty()) << t.text;
      const bool of_host = t.subject == "this host" || t.subject.starts_with("rmqd, process");
      (of_host ? host_is_well : rest_is_well) &= is_well;
      out.push_back(std::move(t));
    }
    EXPECT_EQ(rest_is_well, exit_code == 0) << r.out;
    EXPECT_EQ(r.exit, host_is_well ? exit_code : std::max(exit_code, 1)) << r.out << r.err;
    return out;
  }
  static Told of(const std::vector<Told>& all, std::string_view check, std::string_view grade = {}) {
    for (const Told& t : all)
      if (t.check == check && (grade.empty() || t.grade == grade)) return t;
    return {};
  }

  FakeServer server_;
};

TEST_F(DoctorTest, NothingIsWrong) {
  const auto all = look(0);
  EXPECT_EQ(of(all, "clock").grade, "ok");
  EXPECT_EQ(of(all, "disk").grade, "ok");
  EXPECT_EQ(of(all, "flush-latency").grade, "ok");
  EXPECT_EQ(of(all, "advertised-address").grade, "note") << "loopback, but the name server is here, too";
  EXPECT_NE(of(all, "io-uring").grade, "") << "the broker is on this host";
  EXPECT_EQ(of(all, "dsync-latency").grade, "note") << "its store cannot be reached";
}

TEST_F(DoctorTest, NobodyThere) {
  const auto all = look(69, "127.0.0.1:1");
  EXPECT_EQ(of(all, "name-server").grade, "problem");
  EXPECT_FALSE(of(all, "name-server").cure.empty());
}

TEST_F(DoctorTest, AnAddressThatNobodyReaches) {
  registered(server_, "b", "127.0.0.1:1");
  const auto all = look(1);
  EXPECT_EQ(of(all, "advertised-address").grade, "problem");
  EXPECT_NE(of(all, "advertised-address").cure.find("brokerIP1"), std::string::npos);
  EXPECT_EQ(of(all, "advertised-address").text,
            "nobody answers at 127.0.0.1:1, the address that it tells clients: Connection refused");
}

TEST_F(DoctorTest, NameServersThatDisagree) {
  FakeServer other;
  registered(other, "b", "127.0.0.9:1");
  topics(other, "\"T\",\"U\"");
  auto all = look(1, server_.address() + ";" + other.address());
  Told t = of(all, "name-servers-disagree", "problem");
  EXPECT_NE(t.text.find("broker b (id 0, "), std::string::npos) << t.text;
  t = of(all, "name-servers-disagree", "warning");
  EXPECT_EQ(t.text, fmt::format("topic U is known at {} and not at {}", other.address(), server_.address()));
  registered(other, "b", server_.address());
  topics(other, "\"T\"");
  all = look(0, server_.address() + ";" + other.address());
  EXPECT_EQ(of(all, "name-servers-disagree").grade, "ok");
}

TEST_F(DoctorTest, ClocksApart) {
  runtime("\"currentTimeMillis\":\"@NOW@\"", 5'000);
  auto all = look(1);
  EXPECT_EQ(of(all, "clock").grade, "warning");
  EXPECT_NE(of(all, "clock").text.find("5s ahead of"), std::string::npos) << of(all, "clock").text;
  runtime("\"currentTimeMillis\":\"@NOW@\"", -60'000);
  all = look(1);
  EXPECT_EQ(of(all, "clock").grade, "problem");
  // Of a RocketMQ broker: its start and how long it runs.
  runtime(fmt::format("\"bootTimestamp\":\"{}\",\"runtime\":\"[ 1 days, 1 hours, 0 minutes, 10 seconds ]\"",
                      system_wall_ms() - 25 * 3'600'000 - 10'000 + 40'000));
  all = look(1);
  EXPECT_EQ(of(all, "clock").grade, "problem") << of(all, "clock").text;
}

TEST_F(DoctorTest, Disks) {
  runtime("\"commitLogDiskRatio\":\"0.80\"");
  auto all = look(1);
  EXPECT_EQ(of(all, "disk").grade, "warning");
  runtime("\"commitLogDiskRatio\":\"0.95\",\"storeNotWritableReason\":\"95 % of / is in use\"");
  all = look(1);
  EXPECT_EQ(of(all, "disk").grade, "problem");
  EXPECT_NE(of(all, "disk").text.find("95 % of / is in use"), std::string::npos);
  runtime("\"rmqdVersion\":\"1\",\"putLatency99\":\"200.0\"");
  all = look(1);
  EXPECT_EQ(of(all, "flush-latency").grade, "warning");
}

TEST_F(DoctorTest, MembersThatWantSomethingElse) {
  members({info("a", {0}), info("b", {1})});
  const auto all = look(1);
  const Told t = of(all, "subscription-mismatch");
  EXPECT_EQ(t.grade, "problem");
  EXPECT_EQ(t.subject, "group g");
  EXPECT_NE(t.text.find("of topic T, c0 wants \"a\", c1 wants \"b\""), std::string::npos) << t.text;
  EXPECT_EQ(of(all, "queues-without-owner").grade, "") << "each has one";
}

TEST_F(DoctorTest, QueuesThatNobodyConsumes) {
  members({info("*", {0}), info("*", {})});
  auto all = look(1);
  const Told t = of(all, "queues-without-owner");
  EXPECT_EQ(t.grade, "problem");
  EXPECT_EQ(t.text,
            "none of its members consumes 1 of its 2 queues, messages there wait: queue 1 of topic T at b");
  EXPECT_NE(t.cure.find("\"rmqctl group running g\""), std::string::npos) << t.cure;
  members({info("*", {0}), ""});
  all = look(0);
  EXPECT_EQ(of(all, "queues-without-owner").grade, "") << "the one that does not tell may have it";
  EXPECT_EQ(of(all, "consumers", "note").text, "1 of 2 members do not tell what they consume");
  members({info("*", {0}), info("*", {1}), info("*", {})});
  all = look(0);
  EXPECT_EQ(of(all, "queues-without-owner").grade, "note") << "one has nothing to do";
}

// What answers at the address is no broker: other text than for one that is silent.
TEST_F(DoctorTest, AnAddressWhereSomethingElseListens) {
  server_.on(RequestCode::GET_BROKER_RUNTIME_INFO, [](const FakeServer::Request&) {
    FakeServer::Answer a;
    a.bytes = "HTTP/1.1 400 Bad Request\r\n\r\n";
    return a;
  });
  const auto all = look(1);
  const Told t = of(all, "advertised-address", "problem");
  EXPECT_NE(t.text.find("is no broker"), std::string::npos) << t.text;
}

TEST_F(DoctorTest, GroupsThatNobodyConsumesFor) {
  auto stats = [&](int at) {
    server_.answer(RequestCode::GET_CONSUME_STATS, ResponseCode::SUCCESS, "",
                   fmt::format("{{\"consumeTps\":0.0,\"offsetTable\":{{{{\"brokerName\":\"b\",\"queueId\":0,"
                               "\"topic\":\"T\"}}:{{\"brokerOffset\":1250,\"consumerOffset\":{},"
                               "\"lastTimestamp\":0}}}}}}",
                               at));
  };
  stats(16);
  auto all = look(1);
  const Told t = of(all, "group-without-members");
  EXPECT_EQ(t.grade, "warning");
  EXPECT_EQ(t.subject, "group g");
  EXPECT_NE(t.text.find("1,234 messages wait"), std::string::npos) << t.text;
  stats(1250);
  all = look(0);
  EXPECT_EQ(of(all, "group-without-members").grade, "") << "nothing waits for it";
  stats(16);
  members({info("*", {0, 1})});
  all = look(0);
  EXPECT_EQ(of(all, "group-without-members").grade, "") << "it has a consumer";
}

TEST_F(DoctorTest, WhatIsWellIsCountedAndTheWorstComesLast) {
  const Ran well = run({"doctor", "-n", server_.address()});
  EXPECT_TRUE(well.out.starts_with("ok       ") && well.out.find("--all shows them") != std::string::npos)
      << well.out;
  EXPECT_EQ(well.out.find("clock agrees"), std::string::npos);
  EXPECT_NE(run({"doctor", "--all", "-n", server_.address()}).out.find("clock agrees"), std::string::npos);
  runtime(
      "\"currentTimeMillis\":\"@NOW@\",\"storeNotWritableReason\":\"/ has 34172928 bytes free, the limit "
      "is 41943040 bytes\"",
      5'000);
  const std::string out = run({"doctor", "-n", server_.address()}).out;
  const size_t note = out.find("\nnote "), warning = out.find("\nwarning "), problem = out.find("\nPROBLEM ");
  EXPECT_TRUE(note < warning && warning < problem && problem != std::string::npos) << out;
  EXPECT_NE(out.find("/ has 32.6 MiB free, the limit"), std::string::npos) << out;
}

TEST_F(DoctorTest, ACureThatSeveralHaveIsToldOnce) {
  const std::string out = run({"doctor", "--timeout", "500ms", "-n", "127.0.0.1:1;127.0.0.1:2"}).out;
  const size_t first = out.find("PROBLEM  name server 127.0.0.1:1"),
               second = out.find("PROBLEM  name server 127.0.0.1:2"), cure = out.find("-> Start it");
  EXPECT_TRUE(first < second && second < cure && cure != std::string::npos) << out;
  EXPECT_EQ(out.find("-> Start it", cure + 1), std::string::npos) << out;
}

TEST_F(DoctorTest, ForPeople) {
  runtime("\"commitLogDiskRatio\":\"0.95\",\"storeNotWritableReason\":\"95 % of / is in use\"");
  const Ran r = run({"doctor", "-n", server_.address()});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.out.find("PROBLEM  broker b: it refuses producers: 95 % of / is in use\n      -> Make room"),
            std::string::npos)
      << r.out;
  EXPECT_TRUE(r.err.starts_with("rmqctl: ") && r.err.ends_with(" found\n")) << r.err;
  size_t begin = 0;
  for (size_t end = 0; (end = r.out.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 80u) << r.out.substr(begin, end - begin);
}

TEST(SyncLatencyTest, MeasuresADirectory) {
  const char* tmp = std::getenv("TMPDIR");
  auto measured = measure_sync_latency(tmp != nullptr ? tmp : "/var/tmp", 20);
  if (!measured && measured.error().starts_with("a file cannot be made there"))
    GTEST_SKIP() << measured.error();
  ASSERT_TRUE(measured) << measured.error();
  EXPECT_EQ(measured->writes, 20u);
  EXPECT_LE(measured->median_us, measured->p99_us);
  EXPECT_LE(measured->p99_us, measured->worst_us);
  EXPECT_GT(measured->worst_us, 0);
  EXPECT_FALSE(measure_sync_latency("/nonexistent", 1));
}

}  // namespace
}  // namespace rmq::ctl

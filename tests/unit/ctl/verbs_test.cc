// The verbs against a server that behaves well, and one that does not.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "ctl/program.h"
#include "fake_server.h"
#include "json.h"
#include "proto/headers_namesrv.h"
#include "proto/headers_offset.h"
#include "proto/headers_pull.h"
#include "proto/headers_send.h"
#include "proto/properties.h"
#include "proto/record.h"
#include "ran.h"

namespace rmq::ctl {
namespace {

using proto::RequestCode;
using proto::ResponseCode;

void expect_one_line(const std::string& err) {
  EXPECT_TRUE(err.starts_with("rmqctl: ")) << err;
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
}

// One queue of one broker, as a server with a name server inside shows it.
class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    std::string addresses = fmt::format("{{0:\"{}\"}}", server_.address());
    server_.answer(
        RequestCode::GET_BROKER_CLUSTER_INFO, ResponseCode::SUCCESS, "",
        fmt::format(
            "{{\"brokerAddrTable\":{{\"b\":{{\"brokerAddrs\":{},\"brokerName\":\"b\",\"cluster\":\"c\"}}}},"
            "\"clusterAddrTable\":{{\"c\":[\"b\"]}}}}",
            addresses));
    server_.answer(
        RequestCode::GET_ROUTEINFO_BY_TOPIC, ResponseCode::SUCCESS, "",
        fmt::format("{{\"brokerDatas\":[{{\"brokerAddrs\":{},\"brokerName\":\"b\",\"cluster\":\"c\"}}],"
                    "\"filterServerTable\":{{}},\"queueDatas\":[{{\"brokerName\":\"b\",\"perm\":6,"
                    "\"readQueueNums\":1,\"topicSysFlag\":0,\"writeQueueNums\":1}}]}}",
                    addresses));
  }

  Ran on_server(std::vector<std::string> args) {
    args.insert(args.end(), {"-n", server_.address()});
    return run(std::move(args));
  }

  // A queue with `count` messages; the one at offset n has the body "m<n>" and tag A or B in turn.
  void fill_queue(int64_t count) {
    server_.on(RequestCode::GET_MIN_OFFSET, [](const FakeServer::Request& r) {
      FakeServer::Answer a;
      proto::GetMinOffset::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {0});
      return a;
    });
    server_.on(RequestCode::GET_MAX_OFFSET, [=](const FakeServer::Request& r) {
      FakeServer::Answer a;
      proto::GetMaxOffset::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {count});
      return a;
    });
    server_.on(RequestCode::PULL_MESSAGE, [=](const FakeServer::Request& r) { return pulled(r, count); });
  }

  static FakeServer::Answer pulled(const FakeServer::Request& r, int64_t count) {
    auto h = proto::PullMessage::decode(r.command);
    FakeServer::Answer a;
    if (!h) return a;
    proto::PullMessageResponseHeader out;
    out.max_offset = count;
    std::string body;
    int64_t offset = h->queue_offset;
    for (; offset < count && offset < h->queue_offset + 2; offset++) body += record(offset);
    out.next_begin_offset = offset;
    proto::PullMessage::append_answer(a.bytes, r.command,
                                      body.empty() ? ResponseCode::PULL_NOT_FOUND : ResponseCode::SUCCESS,
                                      out, "", body);
    return a;
  }

  static std::string record(int64_t offset) {
    std::string text = fmt::format("m{}", offset), properties;
    proto::append_property(properties, proto::prop::TAGS, offset % 2 ? "B" : "A");
    proto::RecordFields f;
    f.topic = "T";
    f.body = as_bytes(text);
    f.properties = properties;
    f.queue_offset = offset;
    f.store_timestamp_ms = 1'700'000'000'000 + offset;
    f.born_host = f.store_host = *proto::Host::parse("127.0.0.1:1");
    std::string out(proto::record_size(f), '\0');
    proto::encode_record(f, {reinterpret_cast<std::byte*>(out.data()), out.size()});
    return out;
  }

  FakeServer server_;
};

TEST_F(Verbs, RefusalNamesCodeNumberAndRemark) {
  server_.answer(RequestCode::GET_TOPIC_STATS_INFO, ResponseCode::NO_PERMISSION, "not\nyours");
  Ran r = on_server({"topic", "status", "T"});
  EXPECT_EQ(r.exit, 1);
  expect_one_line(r.err);
  EXPECT_NE(r.err.find("NO_PERMISSION (16): not yours"), std::string::npos) << r.err;
  EXPECT_EQ(r.out, "");
}

TEST_F(Verbs, UnknownCodeIsItsNumber) {
  server_.answer(RequestCode::GET_TOPIC_STATS_INFO, static_cast<ResponseCode>(4711), "");
  EXPECT_NE(on_server({"topic", "status", "T"}).err.find("code (4711)"), std::string::npos);
}

TEST_F(Verbs, MissingTopicSaysSo) {
  server_.answer(RequestCode::GET_ROUTEINFO_BY_TOPIC, ResponseCode::TOPIC_NOT_EXIST, "No topic route");
  Ran r = on_server({"topic", "route", "T"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("there is no topic \"T\""), std::string::npos) << r.err;
  EXPECT_NE(on_server({"send", "T", "x"}).err.find("rmqctl topic create T"), std::string::npos);
}

TEST_F(Verbs, NothingListens) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // bound, not listening: nobody else gets the port
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  socklen_t size = sizeof a;
  getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size);
  std::string dead = fmt::format("127.0.0.1:{}", ntohs(a.sin_port));
  Ran r = run({"cluster", "-n", dead});
  EXPECT_EQ(r.exit, 69);
  expect_one_line(r.err);
  for (const char* part : {dead.c_str(), "Connection refused", "NAMESRV_ADDR"})
    EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
  Ran two = run({"cluster", "-n", dead + ";" + dead});
  EXPECT_EQ(two.exit, 69);
  expect_one_line(two.err);
  // The next one of the list serves.
  EXPECT_EQ(run({"topic", "route", "T", "-n", dead + ";" + server_.address()}).exit, 0);
  close(fd);
}

TEST_F(Verbs, ClosedInTheMiddleOfAnAnswer) {
  server_.on(RequestCode::GET_TOPIC_STATS_INFO, [](const FakeServer::Request& r) {
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command, ResponseCode::SUCCESS, "", std::string(1000, ' '));
    a.bytes.resize(a.bytes.size() / 2);
    a.close_after = true;
    return a;
  });
  Ran r = on_server({"topic", "status", "T"});
  EXPECT_EQ(r.exit, 69);
  EXPECT_NE(r.err.find("in the middle of an answer"), std::string::npos) << r.err;
}

TEST_F(Verbs, ClosedWithoutAnAnswer) {
  server_.on(RequestCode::GET_TOPIC_STATS_INFO,
             [](const FakeServer::Request&) { return FakeServer::Answer{"", true}; });
  Ran r = on_server({"topic", "status", "T"});
  EXPECT_EQ(r.exit, 69);
  EXPECT_NE(r.err.find("without an answer"), std::string::npos) << r.err;
}

TEST_F(Verbs, NotTheProtocol) {
  server_.on(RequestCode::GET_BROKER_CLUSTER_INFO, [](const FakeServer::Request&) {
    return FakeServer::Answer{"HTTP/1.1 400 Bad Request\r\n\r\n", false};
  });
  Ran r = on_server({"cluster"});
  EXPECT_EQ(r.exit, 65);
  expect_one_line(r.err);
  EXPECT_NE(r.err.find("malformed"), std::string::npos) << r.err;
}

TEST_F(Verbs, BodyThatIsNoJson) {
  for (const char* body : {"", "no json", "{\"offsetTable\":", "[1,2"}) {
    server_.answer(RequestCode::GET_TOPIC_STATS_INFO, ResponseCode::SUCCESS, "", body);
    Ran r = on_server({"topic", "status", "T"});
    EXPECT_EQ(r.exit, 65) << body;
    EXPECT_NE(r.err.find("GET_TOPIC_STATS_INFO"), std::string::npos) << r.err;
  }
}

TEST_F(Verbs, SilenceCostsTheTimeout) {
  server_.on(RequestCode::GET_TOPIC_STATS_INFO,
             [](const FakeServer::Request&) { return FakeServer::Answer{}; });
  Ran r = on_server({"topic", "status", "T", "--timeout", "1s"});
  EXPECT_EQ(r.exit, 69);
  EXPECT_NE(r.err.find("no answer within 1000ms"), std::string::npos) << r.err;
}

TEST_F(Verbs, FastjsonKeysAreRead) {
  server_.answer(
      RequestCode::GET_TOPIC_STATS_INFO, ResponseCode::SUCCESS, "",
      "{\"offsetTable\":{{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"}:{\"lastUpdateTimestamp\":0,"
      "\"maxOffset\":17,\"minOffset\":3}},\"topicPutTps\":0.0}");
  Ran r = on_server({"topic", "status", "T", "--json"});
  EXPECT_EQ(r.exit, 0) << r.err;
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  EXPECT_EQ(d.integer("/0/messages"), 14);
}

TEST_F(Verbs, DeletionNeedsAYes) {
  server_.answer(RequestCode::DELETE_TOPIC_IN_BROKER, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::DELETE_TOPIC_IN_NAMESRV, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::DELETE_KV_CONFIG, ResponseCode::SUCCESS, "");
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC), old = dup(STDIN_FILENO);
  dup2(null, STDIN_FILENO);
  Ran r = on_server({"topic", "delete", "T"});
  dup2(old, STDIN_FILENO);
  close(old);
  close(null);
  EXPECT_EQ(r.exit, 64);
  EXPECT_NE(r.err.find("--yes"), std::string::npos) << r.err;
  EXPECT_EQ(server_.asked(RequestCode::DELETE_TOPIC_IN_BROKER), 0);
  EXPECT_EQ(on_server({"topic", "delete", "T", "--yes"}).exit, 0);
  EXPECT_EQ(server_.asked(RequestCode::DELETE_TOPIC_IN_BROKER), 1);
  EXPECT_EQ(server_.asked(RequestCode::DELETE_TOPIC_IN_NAMESRV), 1);
}

TEST_F(Verbs, CreateDoesNotOverwrite) {
  server_.answer(
      RequestCode::GET_TOPIC_CONFIG, ResponseCode::SUCCESS, "",
      "{\"attributes\":{},\"order\":false,\"perm\":6,\"readQueueNums\":4,\"topicFilterType\":\"SINGLE_TAG\","
      "\"topicName\":\"T\",\"topicSysFlag\":0,\"writeQueueNums\":4}");
  server_.answer(RequestCode::UPDATE_AND_CREATE_TOPIC, ResponseCode::SUCCESS, "");
  Ran r = on_server({"topic", "create", "T"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("exists already"), std::string::npos) << r.err;
  EXPECT_EQ(server_.asked(RequestCode::UPDATE_AND_CREATE_TOPIC), 0);
  // An update sends what was there with the one change.
  std::string sent;
  server_.on(RequestCode::UPDATE_AND_CREATE_TOPIC, [&](const FakeServer::Request& q) {
    sent = fmt::format("{} {} {}", q.command.ext.value_or("readQueueNums", "?"),
                       q.command.ext.value_or("writeQueueNums", "?"), q.command.ext.value_or("perm", "?"));
    FakeServer::Answer a;
    proto::append_response(a.bytes, q.command, ResponseCode::SUCCESS);
    return a;
  });
  EXPECT_EQ(on_server({"topic", "update", "T", "--perm", "r"}).exit, 0);
  EXPECT_EQ(sent, "4 4 4");
}

TEST_F(Verbs, SetConfigNoticesThatNothingChanged) {
  server_.answer(RequestCode::GET_BROKER_CONFIG, ResponseCode::SUCCESS, "", "deleteWhen=04\nlistenPort=1\n");
  server_.answer(RequestCode::UPDATE_BROKER_CONFIG, ResponseCode::SUCCESS, "");
  Ran r = on_server({"broker", "config", "set", "deleteWhen", "05"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("still is \"04\""), std::string::npos) << r.err;
  EXPECT_EQ(on_server({"broker", "config", "set", "noSuchKey", "1"}).exit, 1);
  EXPECT_EQ(server_.asked(RequestCode::UPDATE_BROKER_CONFIG), 1);
}

TEST_F(Verbs, CleaningIsAskedOfTheBroker) {
  constexpr std::pair<const char*, RequestCode> verbs[] = {
      {"delete-expired", RequestCode::DELETE_EXPIRED_COMMITLOG},
      {"clean-queues", RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE},
      {"clean-topics", RequestCode::CLEAN_UNUSED_TOPIC}};
  for (auto [verb, code] : verbs) {
    server_.answer(code, ResponseCode::SUCCESS, "");
    EXPECT_EQ(on_server({"broker", verb}).exit, 64) << "nobody to ask";
    EXPECT_EQ(server_.asked(code), 0) << verb;
    Ran r = on_server({"broker", verb, "--yes"});
    EXPECT_EQ(r.exit, 0) << r.err;
    EXPECT_NE(r.out.find("done"), std::string::npos) << r.out;
    EXPECT_EQ(server_.asked(code), 1) << verb;
    server_.answer(code, ResponseCode::SYSTEM_ERROR, "no");
    EXPECT_EQ(on_server({"broker", verb, "-y"}).exit, 1) << verb;
  }
}

TEST_F(Verbs, SendTellsWhatBecameOfTheMessage) {
  ResponseCode code = ResponseCode::SUCCESS;
  std::string seen;
  server_.on(RequestCode::SEND_MESSAGE_V2, [&](const FakeServer::Request& r) {
    auto h = proto::SendMessageV2::decode(r.command);
    seen = fmt::format("{}|{}|{}", h->topic, r.body,
                       proto::find_property(h->properties.value_or(""), "TAGS").value_or("-"));
    proto::SendMessageResponseHeader out;
    out.msg_id = "0A";
    out.queue_offset = 5;
    FakeServer::Answer a;
    proto::SendMessageV2::append_answer(a.bytes, r.command, code, out, "why");
    return a;
  });
  Ran r = on_server({"send", "T", "hello", "--tag", "A"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(seen, "T|hello|A");
  EXPECT_TRUE(r.out.starts_with("SEND_OK  b/0 @5  ")) << r.out;
  code = ResponseCode::FLUSH_DISK_TIMEOUT;  // stored, but not as asked
  r = on_server({"send", "T", "hello", "--json"});
  EXPECT_EQ(r.exit, 1);
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  EXPECT_EQ(d.text("/status"), "FLUSH_DISK_TIMEOUT");
  code = ResponseCode::SERVICE_NOT_AVAILABLE;
  r = on_server({"send", "T", "hello"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("SERVICE_NOT_AVAILABLE (14): why"), std::string::npos) << r.err;
}

TEST_F(Verbs, BadInputOfSend) {
  EXPECT_EQ(on_server({"send", "T", ""}).exit, 65);
  EXPECT_EQ(on_server({"send", "T", "--file", "/does/not/exist"}).exit, 65);
  EXPECT_EQ(on_server({"send", "T", "x", "--file", "/dev/null"}).exit, 64);
  EXPECT_EQ(on_server({"send", "T", "x", "--property", "noequals"}).exit, 64);
  EXPECT_EQ(on_server({"send", "bad topic", "x"}).exit, 64);
  EXPECT_EQ(on_server({"send", "T", "x", "--delay", "soon"}).exit, 64);
  EXPECT_EQ(server_.asked(RequestCode::SEND_MESSAGE_V2), 0);
}

TEST_F(Verbs, ConsumeReadsAllOnceAndOnlyWhatIsWanted) {
  fill_queue(5);
  EXPECT_EQ(on_server({"consume", "T", "--body"}).out, "m0\nm1\nm2\nm3\nm4\n");
  EXPECT_EQ(on_server({"consume", "T", "--body", "--from", "3"}).out, "m3\nm4\n");
  EXPECT_EQ(on_server({"consume", "T", "--body", "--from", "latest"}).out, "");
  EXPECT_EQ(on_server({"consume", "T", "--body", "--count", "3"}).out, "m0\nm1\nm2\n");
  EXPECT_EQ(on_server({"consume", "T", "--body", "--last", "2"}).out, "m3\nm4\n");
  EXPECT_EQ(on_server({"consume", "T", "--body", "--tag", "B"}).out, "m1\nm3\n");  // the fake does not filter
  EXPECT_EQ(server_.asked(RequestCode::UPDATE_CONSUMER_OFFSET), 0) << "no trace without a group";
}

TEST_F(Verbs, ConsumeInAGroupCommitsWhatWasPrinted) {
  fill_queue(5);
  int64_t committed = -1;
  server_.answer(RequestCode::GET_CONSUMER_LIST_BY_GROUP, ResponseCode::SYSTEM_ERROR,
                 "no consumer for this group, g");
  server_.on(RequestCode::QUERY_CONSUMER_OFFSET, [&](const FakeServer::Request& r) {
    FakeServer::Answer a;
    auto code = committed < 0 ? ResponseCode::QUERY_NOT_FOUND : ResponseCode::SUCCESS;
    proto::QueryConsumerOffset::append_answer(a.bytes, r.command, code, {std::max<int64_t>(committed, 0)});
    return a;
  });
  server_.on(RequestCode::UPDATE_CONSUMER_OFFSET, [&](const FakeServer::Request& r) {
    committed = proto::UpdateConsumerOffset::decode(r.command)->commit_offset.value_or(-2);
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command, ResponseCode::SUCCESS);
    return a;
  });
  EXPECT_EQ(on_server({"consume", "T", "--body", "-g", "g", "--count", "3"}).out, "m0\nm1\nm2\n");
  EXPECT_EQ(committed, 3) << "what was pulled but not printed is not committed";
  EXPECT_EQ(on_server({"consume", "T", "--body", "-g", "g", "--tag", "B"}).out, "m3\n");
  EXPECT_EQ(committed, 5) << "what was filtered away is committed";
  EXPECT_EQ(on_server({"consume", "T", "--body", "-g", "g"}).out, "");
  server_.answer(RequestCode::GET_CONSUMER_LIST_BY_GROUP, ResponseCode::SUCCESS, "",
                 "{\"consumerIdList\":[\"x\"]}");
  EXPECT_EQ(on_server({"consume", "T", "-g", "g", "--from", "earliest", "--timeout", "1s"}).exit, 64);
  EXPECT_EQ(committed, 5);
}

TEST_F(Verbs, ConsumeTellsThatMessagesAreMissing) {
  fill_queue(2);
  Ran r = on_server({"consume", "T", "--body", "--count", "3", "--timeout", "100ms"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_EQ(r.out, "m0\nm1\n");
  EXPECT_NE(r.err.find("only 2 of 3"), std::string::npos) << r.err;
}

TEST_F(Verbs, ConsumeFollowsAnOffsetThatMoved) {
  fill_queue(5);
  server_.on(RequestCode::PULL_MESSAGE, [](const FakeServer::Request& r) {
    auto h = proto::PullMessage::decode(r.command);
    if (h->queue_offset >= 3) return pulled(r, 5);
    FakeServer::Answer a;
    proto::PullMessageResponseHeader out;
    out.next_begin_offset = 3;
    out.max_offset = 5;
    proto::PullMessage::append_answer(a.bytes, r.command, ResponseCode::PULL_OFFSET_MOVED, out);
    return a;
  });
  Ran r = on_server({"consume", "T", "--body"});
  EXPECT_EQ(r.out, "m3\nm4\n");
  EXPECT_NE(r.err.find("goes on at 3"), std::string::npos) << r.err;
}

TEST_F(Verbs, ConsumeDoesNotTurnInCircles) {
  fill_queue(5);
  for (ResponseCode code : {ResponseCode::PULL_OFFSET_MOVED, ResponseCode::PULL_RETRY_IMMEDIATELY}) {
    server_.on(RequestCode::PULL_MESSAGE, [=](const FakeServer::Request& r) {
      FakeServer::Answer a;
      proto::PullMessage::append_answer(a.bytes, r.command, code, {0, 0, 0, 5});
      return a;
    });
    EXPECT_EQ(on_server({"consume", "T"}).exit, 65);
  }
}

TEST_F(Verbs, MessageByIdAsksTheBrokerThatTheIdNames) {
  server_.on(RequestCode::VIEW_MESSAGE_BY_ID, [](const FakeServer::Request& r) {
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command, ResponseCode::SUCCESS, "", record(7));
    return a;
  });
  std::string port = server_.address().substr(10);
  std::string id = fmt::format("7F000001{:08X}{:016X}", std::stoi(port), 0);
  Ran r = run({"message", id});  // no name server
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_NE(r.out.find("\nm7\n"), std::string::npos) << r.out;
  EXPECT_EQ(run({"message", "xyz"}).exit, 64);
}

TEST_F(Verbs, BenchCountsWhatWasAnsweredAndRefused) {
  server_.on(RequestCode::SEND_MESSAGE_V2, [](const FakeServer::Request& r) {
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command,
                           r.command.opaque % 2 ? ResponseCode::SYSTEM_BUSY : ResponseCode::SUCCESS);
    return a;
  });
  Ran r = on_server(
      {"bench", "send", "T", "--connections", "2", "--window", "2", "-d", "200ms", "--json", "-s", "10"});
  EXPECT_EQ(r.exit, 1);
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  int64_t requests = d.integer("/requests"), messages = d.integer("/messages");
  EXPECT_GE(requests, 4);
  EXPECT_EQ(d.integer("/refused/2"), requests - messages);
  EXPECT_EQ(server_.asked(RequestCode::SEND_MESSAGE_V2), requests);
}

TEST_F(Verbs, BenchPullsWhatIsThereAgainAndAgain) {
  fill_queue(4);
  Ran r = on_server({"bench", "pull", "T", "--connections", "1", "--window", "1", "-d", "200ms", "--json"});
  EXPECT_EQ(r.exit, 0) << r.err;
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  EXPECT_EQ(d.integer("/messages"), d.integer("/requests") * 2);  // the fake gives two at a time
}

TEST_F(Verbs, BenchAsksForRoutesInTurn) {
  std::set<std::string> asked;
  server_.on(RequestCode::GET_ROUTEINFO_BY_TOPIC, [&](const FakeServer::Request& r) {
    const auto topic = r.command.ext.value_or("topic", "");
    asked.emplace(topic);
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command,
                           topic == "T_000002" ? ResponseCode::TOPIC_NOT_EXIST : ResponseCode::SUCCESS, "",
                           "{}");
    return a;
  });
  Ran r = on_server({"bench", "route", "T", "--topics", "3", "--count", "30", "--json"});
  EXPECT_EQ(r.exit, 1) << "one of three is not there";
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  EXPECT_EQ(d.integer("/requests"), 30);
  EXPECT_EQ(d.integer("/messages"), 20);
  EXPECT_EQ(d.integer("/refused/17"), 10);
  EXPECT_EQ(asked, (std::set<std::string>{"T_000000", "T_000001", "T_000002"}));
}

TEST_F(Verbs, AMemberIsAskedWhatItIsAt) {
  server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::SUCCESS, "",
                 R"({"connectionSet":[{"clientAddr":"a","clientId":"c1","language":"JAVA","version":513}]})");
  std::string asked;
  server_.on(RequestCode::GET_CONSUMER_RUNNING_INFO, [&](const FakeServer::Request& r) {
    asked = fmt::format("{} {}", r.command.ext.value_or("clientId", "-"),
                        r.command.ext.value_or("jstackEnable", "-"));
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command, ResponseCode::SUCCESS, "",
                           R"({"jstack":"the stack","mqTable":{{"brokerName":"b","queueId":1,"topic":"T"}:)"
                           R"({"commitOffset":7}},"properties":{"PROP_X":"y"},)"
                           R"("subscriptionSet":[{"subString":"a","topic":"T"}]})");
    return a;
  });
  Ran r = on_server({"group", "running", "g", "--jstack"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(asked, "c1 true");
  for (const char* part : {"c1\n", "PROP_X = y", "the stack"})
    EXPECT_NE(r.out.find(part), std::string::npos) << r.out;
  r = on_server({"consumerStatus", "-g", "g", "--json"});
  EXPECT_EQ(asked, "c1 false");
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  EXPECT_EQ(d.integer("/0/queues/0/commitOffset"), 7);
  EXPECT_EQ(on_server({"group", "running", "g", "c2"}).exit, 1) << "no member";
  // Which of them has a queue that lags.
  server_.answer(RequestCode::GET_CONSUME_STATS, ResponseCode::SUCCESS, "",
                 R"({"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:{"brokerOffset":9},)"
                 R"({"brokerName":"b","queueId":2,"topic":"T"}:{"brokerOffset":9}}})");
  ASSERT_TRUE(d.parse(on_server({"group", "lag", "g", "--clients", "--json"}).out));
  EXPECT_EQ(d.text("/0/clientId"), "c1");
  EXPECT_TRUE(d.is_null("/1/clientId")) << "nobody told to have it";
  EXPECT_NE(on_server({"consumerProgress", "-g", "g", "-s", "true"}).out.find("CLIENT"), std::string::npos);
  EXPECT_EQ(on_server({"group", "lag", "g"}).out.find("CLIENT"), std::string::npos);
}

TEST_F(Verbs, AMemberConsumesOneMessage) {
  server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::SUCCESS, "",
                 R"({"connectionSet":[{"clientAddr":"a","clientId":"c1","language":"JAVA","version":513}]})");
  server_.answer(RequestCode::CONSUME_MESSAGE_DIRECTLY, ResponseCode::SUCCESS, "",
                 R"({"consumeResult":"CR_LATER","remark":"boom","spentTimeMills":5})");
  const size_t colon = server_.address().find(':');
  const int port = std::stoi(server_.address().substr(colon + 1));
  const std::string id = fmt::format("7F000001{:08X}0000000000000000", port);
  EXPECT_EQ(on_server({"group", "consume", "g", id}).exit, 64) << "nobody to ask";
  EXPECT_EQ(on_server({"group", "consume", "g", "nonsense", "--yes"}).exit, 64);
  EXPECT_EQ(server_.asked(RequestCode::CONSUME_MESSAGE_DIRECTLY), 0);
  Ran r = on_server({"group", "consume", "g", id, "--yes"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_NE(r.out.find("CR_LATER"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("boom"), std::string::npos) << r.out;
  server_.answer(RequestCode::CONSUME_MESSAGE_DIRECTLY, ResponseCode::SUCCESS, "",
                 R"({"consumeResult":4,"remark":"no","spentTimeMills":5})");
  r = on_server({"group", "consume", "g", id, "--yes"});
  EXPECT_NE(r.out.find("CR_THROW_EXCEPTION"), std::string::npos) << "as the Go client tells it: " << r.out;
}

// The Go client has no running info while one of its rates is no number.
TEST_F(Verbs, AMemberThatCannotTellWhatItIsAt) {
  server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::SUCCESS, "",
                 R"({"connectionSet":[{"clientAddr":"a","clientId":"c1","language":"GO","version":317}]})");
  server_.answer(RequestCode::GET_CONSUMER_RUNNING_INFO, ResponseCode::SUCCESS,
                 "json marshal error: json: unsupported value: NaN", "");
  const Ran r = on_server({"group", "running", "g"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("c1 does not tell what it is at: json marshal error: json: unsupported value: NaN"),
            std::string::npos)
      << r.err;
}

// A second broker "d" in the cluster, and queues of the topic there.
class TwoBrokers : public Verbs {
 protected:
  void SetUp() override {
    const std::string brokers = fmt::format(
        "{{\"brokerAddrs\":{{0:\"{}\"}},\"brokerName\":\"b\",\"cluster\":\"c\"}},"
        "{{\"brokerAddrs\":{{0:\"{}\"}},\"brokerName\":\"d\",\"cluster\":\"c\"}}",
        server_.address(), other_.address());
    const auto cut = brokers.find("},{") + 1;
    server_.answer(RequestCode::GET_BROKER_CLUSTER_INFO, ResponseCode::SUCCESS, "",
                   fmt::format("{{\"brokerAddrTable\":{{\"b\":{},\"d\":{}}},"
                               "\"clusterAddrTable\":{{\"c\":[\"b\",\"d\"]}}}}",
                               brokers.substr(0, cut), brokers.substr(cut + 1)));
    brokers_ = brokers;
    topic_at({"b"});
  }
  void topic_at(const std::vector<std::string>& names) {
    std::string queues;
    for (const std::string& name : names)
      queues += fmt::format(
          "{}{{\"brokerName\":\"{}\",\"perm\":6,\"readQueueNums\":1,\"topicSysFlag\":0,\"writeQueueNums\":1}"
          "}",
          queues.empty() ? "" : ",", name);
    server_.answer(RequestCode::GET_ROUTEINFO_BY_TOPIC, ResponseCode::SUCCESS, "",
                   fmt::format("{{\"brokerDatas\":[{}],\"filterServerTable\":{{}},\"queueDatas\":[{}]}}",
                               brokers_, queues));
  }
  void silence(RequestCode code) { silence(other_, code); }
  static void silence(FakeServer& server, RequestCode code) {
    server.on(code, [](const FakeServer::Request&) { return FakeServer::Answer{}; });
  }

  FakeServer other_;
  std::string brokers_;
};

TEST_F(TwoBrokers, ADeletionSaysWhatBecameOfItAtEach) {
  topic_at({"b", "d"});
  server_.answer(RequestCode::DELETE_TOPIC_IN_NAMESRV, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::DELETE_KV_CONFIG, ResponseCode::SUCCESS, "");
  const auto code = RequestCode::DELETE_TOPIC_IN_BROKER;
  auto remove = [&] { return on_server({"topic", "delete", "T", "--yes", "--json", "--timeout", "200ms"}); };
  FakeServer* const servers[] = {&server_, &other_};
  const char* const names[] = {"b", "d"};
  for (int frozen : {0, 1}) {
    silence(*servers[frozen], code);
    servers[1 - frozen]->answer(code, ResponseCode::SUCCESS, "");
    Ran r = remove();
    EXPECT_EQ(r.exit, 69);
    expect_one_line(r.err);
    EXPECT_NE(r.err.find(servers[frozen]->address()), std::string::npos) << r.err;
    JsonDocument d;
    ASSERT_TRUE(d.parse(r.out)) << r.out;
    EXPECT_EQ(d.text("/0/brokerName"), names[1 - frozen]);
    EXPECT_EQ(r.out.find(fmt::format("\"{}\"", names[frozen])), std::string::npos) << r.out;
  }
  EXPECT_EQ(server_.asked(RequestCode::DELETE_TOPIC_IN_NAMESRV), 0) << "one of them has it yet";
  server_.answer(code, ResponseCode::NO_PERMISSION, "not yours");
  silence(code);
  Ran r = remove();
  EXPECT_EQ(r.exit, 1) << "as the first of them";
  expect_one_line(r.err);
  for (const std::string& part : {server_.address(), std::string("not yours"), other_.address()})
    EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
  EXPECT_EQ(r.out, "");
  for (FakeServer* s : servers) s->answer(code, ResponseCode::SUCCESS, "");
  EXPECT_EQ(remove().exit, 0);
  EXPECT_EQ(server_.asked(RequestCode::DELETE_TOPIC_IN_NAMESRV), 1);
}

TEST_F(TwoBrokers, AResetSaysWhatBecameOfItAtEach) {
  topic_at({"b", "d"});
  FakeServer* const servers[] = {&server_, &other_};
  const char* const names[] = {"b", "d"};
  for (int i : {0, 1})
    servers[i]->answer(
        RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, ResponseCode::SUCCESS, "",
        fmt::format("{{\"offsetTable\":{{{{\"brokerName\":\"{}\",\"queueId\":0,\"topic\":\"T\"}}:5}}}}",
                    names[i]));
  auto frozen = [&](int i, RequestCode code) {
    for (FakeServer* s : servers)
      s->answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::CONSUMER_NOT_ONLINE, "");
    silence(*servers[i], code);
    Ran r = on_server({"group", "reset", "g", "T", "earliest", "--json", "--timeout", "200ms"});
    EXPECT_EQ(r.exit, 69);
    expect_one_line(r.err);
    EXPECT_NE(r.err.find(servers[i]->address()), std::string::npos) << r.err;
    JsonDocument d;
    ASSERT_TRUE(d.parse(r.out)) << r.out;
    EXPECT_EQ(d.text("/0/brokerName"), names[1 - i]);
    EXPECT_EQ(d.integer("/0/offset"), 5);
  };
  for (int i : {0, 1}) frozen(i, RequestCode::GET_CONSUMER_CONNECTION_LIST);
  EXPECT_EQ(server_.asked(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET), 1) << "not asked when it is frozen";
  frozen(1, RequestCode::INVOKE_BROKER_TO_RESET_OFFSET);
}

TEST_F(TwoBrokers, AGroupIsDeletedWhereItCanBe) {
  server_.answer(RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ResponseCode::SUCCESS, "",
                 "{\"subscriptionGroupTable\":{\"g\":{\"groupName\":\"g\"}}}");
  server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::CONSUMER_NOT_ONLINE, "");
  server_.answer(RequestCode::DELETE_SUBSCRIPTIONGROUP, ResponseCode::SUCCESS, "");
  silence(RequestCode::GET_CONSUMER_CONNECTION_LIST);
  Ran r = on_server({"group", "delete", "g", "--yes", "--timeout", "200ms"});
  EXPECT_EQ(r.exit, 69);
  expect_one_line(r.err);
  EXPECT_NE(r.err.find("broker d at"), std::string::npos) << r.err;
  EXPECT_NE(r.out.find(server_.address()), std::string::npos) << r.out;
  EXPECT_EQ(server_.asked(RequestCode::DELETE_SUBSCRIPTIONGROUP), 1);
  EXPECT_EQ(other_.asked(RequestCode::DELETE_SUBSCRIPTIONGROUP), 0);
}

TEST_F(TwoBrokers, ListsShowWhatOneHasWhenTheOtherIsSilent) {
  server_.answer(RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ResponseCode::SUCCESS, "",
                 "{\"subscriptionGroupTable\":{\"g\":{\"groupName\":\"g\"}}}");
  server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::CONSUMER_NOT_ONLINE, "");
  const char* offsets =
      "{\"consumeTps\":0.0,\"offsetTable\":{{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"}:"
      "{\"brokerOffset\":7,\"consumerOffset\":3,\"lastTimestamp\":0,\"pullOffset\":3}}}";
  server_.answer(RequestCode::GET_CONSUME_STATS, ResponseCode::SUCCESS, "", offsets);
  server_.answer(RequestCode::GET_BROKER_CONFIG, ResponseCode::SUCCESS, "", "deleteWhen=04\n");
  server_.answer(RequestCode::GET_TOPIC_STATS_INFO, ResponseCode::SUCCESS, "",
                 "{\"offsetTable\":{{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"}:"
                 "{\"lastUpdateTimestamp\":0,\"maxOffset\":7,\"minOffset\":0}}}");
  for (RequestCode code : {RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, RequestCode::GET_CONSUME_STATS,
                           RequestCode::GET_BROKER_CONFIG, RequestCode::GET_TOPIC_STATS_INFO})
    silence(code);
  const std::vector<std::pair<std::vector<std::string>, std::string>> lists = {
      {{"group", "list"}, "g"},
      {{"group", "lag", "g"}, "4 messages behind"},
      {{"broker", "config"}, "deleteWhen"},
      {{"topic", "status", "T"}, "7 messages"}};
  for (auto [args, shown] : lists) {
    args.insert(args.end(), {"--timeout", "200ms"});
    Ran r = on_server(args);
    EXPECT_EQ(r.exit, 69) << args[0] << ' ' << args[1];
    expect_one_line(r.err);
    EXPECT_NE(r.err.find("broker d at"), std::string::npos) << r.err;
    EXPECT_NE(r.out.find(shown), std::string::npos) << args[0] << ' ' << args[1] << ": " << r.out;
  }
  silence(RequestCode::GET_CONSUME_STATS);
  server_.answer(RequestCode::GET_CONSUME_STATS, ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, "");
  Ran unknown = on_server({"group", "lag", "g2", "--timeout", "200ms"});
  EXPECT_EQ(unknown.exit, 69) << "the other may have it: " << unknown.err;
}

TEST_F(TwoBrokers, AKeyThatWaitsForARestartIsKeptAtEachOfThem) {
  for (FakeServer* s : {&server_, &other_}) {
    s->answer(RequestCode::GET_BROKER_CONFIG, ResponseCode::SUCCESS, "", "regionId=old\n");
    s->answer(RequestCode::UPDATE_BROKER_CONFIG, ResponseCode::SYSTEM_ERROR,
              "regionId: kept in /etc/rmqd/rmqd.toml, needs a restart to take effect");
  }
  Ran r = on_server({"broker", "config", "set", "regionId", "new", "--json"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(other_.asked(RequestCode::UPDATE_BROKER_CONFIG), 1);
  EXPECT_NE(r.err.find("needs a restart"), std::string::npos) << r.err;
  JsonDocument d;
  ASSERT_TRUE(d.parse(r.out)) << r.out;
  EXPECT_EQ(d.text("/1/value"), "old");
  EXPECT_EQ(d.text("/1/valueAfterRestart"), "new");
  // What was changed before the other one refused is told.
  server_.answer(RequestCode::UPDATE_BROKER_CONFIG, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::GET_BROKER_CONFIG, ResponseCode::SUCCESS, "", "regionId=new\n");
  other_.answer(RequestCode::UPDATE_BROKER_CONFIG, ResponseCode::INVALID_PARAMETER, "no");
  r = on_server({"broker", "config", "set", "regionId", "new"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.out.find("regionId"), std::string::npos) << r.out;
}

TEST_F(TwoBrokers, UnitsOfAQueueThatOneBrokerHas) {
  server_.answer(RequestCode::QUERY_CONSUME_QUEUE, ResponseCode::SUCCESS, "",
                 "{\"maxQueueIndex\":1,\"minQueueIndex\":0,\"queueData\":[{\"eval\":true,\"msg\":\"\","
                 "\"physicOffset\":4711,\"physicSize\":200,\"tagsCode\":0}]}");
  other_.answer(RequestCode::QUERY_CONSUME_QUEUE, ResponseCode::SYSTEM_ERROR, "0@T is not exist!");
  Ran r = on_server({"topic", "units", "T", "0", "0"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_NE(r.out.find("4711"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("0@T is not exist!"), std::string::npos) << r.err;
  server_.answer(RequestCode::QUERY_CONSUME_QUEUE, ResponseCode::SYSTEM_ERROR, "0@T is not exist!");
  EXPECT_EQ(on_server({"topic", "units", "T", "0", "0"}).exit, 1);
}

// A name that was misspelt is no empty list, and nothing is done about it.
TEST_F(Verbs, WhatIsNotThereIsSaid) {
  server_.answer(RequestCode::WIPE_WRITE_PERM_OF_BROKER, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::ADD_WRITE_PERM_OF_BROKER, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::GET_CONSUME_STATS, ResponseCode::SUCCESS, "",
                 "{\"consumeTps\":0.0,\"offsetTable\":{}}");
  server_.answer(RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ResponseCode::SUCCESS, "",
                 "{\"subscriptionGroupTable\":{\"g\":{\"groupName\":\"g\"}}}");
  server_.answer(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, ResponseCode::SUCCESS, "",
                 "{\"topicList\":[\"T\"]}");
  const std::vector<std::vector<std::string>> wrong = {
      {"topic", "status", "T", "-b", "x"},  {"topic", "status", "T", "-c", "x"},
      {"topic", "stats", "-b", "x"},        {"topic", "stats", "T", "-b", "x"},
      {"namesrv", "wipe-write", "x", "-y"}, {"namesrv", "add-write", "x"},
      {"group", "lag", "g", "-t", "x"}};
  for (const auto& args : wrong) {
    Ran r = on_server(args);
    EXPECT_EQ(r.exit, 1) << args[1];
    expect_one_line(r.err);
    EXPECT_EQ(r.out, "") << args[1];
  }
  EXPECT_EQ(server_.asked(RequestCode::WIPE_WRITE_PERM_OF_BROKER), 0);
  EXPECT_EQ(server_.asked(RequestCode::ADD_WRITE_PERM_OF_BROKER), 0);
  EXPECT_EQ(on_server({"group", "create", "g", "--order", "yes"}).exit, 64);
}

// What is for all name servers, and one of them is away.
TEST_F(Verbs, ANameServerThatIsNotToldIsAFailure) {
  server_.answer(RequestCode::PUT_KV_CONFIG, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::DELETE_KV_CONFIG, ResponseCode::SUCCESS, "");
  server_.answer(RequestCode::GET_NAMESRV_CONFIG, ResponseCode::SUCCESS, "", "logLevel=debug\n");
  server_.answer(RequestCode::UPDATE_NAMESRV_CONFIG, ResponseCode::SUCCESS, "");
  server_.on(RequestCode::WIPE_WRITE_PERM_OF_BROKER, [](const FakeServer::Request& r) {
    FakeServer::Answer a;
    proto::WipeWritePermOfBroker::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {3});
    return a;
  });
  const std::vector<std::vector<std::string>> verbs = {{"namesrv", "kv", "set", "n", "k", "v"},
                                                       {"namesrv", "kv", "delete", "n", "k"},
                                                       {"namesrv", "config", "set", "logLevel", "debug"},
                                                       {"namesrv", "config"},
                                                       {"namesrv", "wipe-write", "b", "--yes"},
                                                       {"topic", "order", "put", "T", "b:4"},
                                                       {"topic", "order", "delete", "T"}};
  for (auto args : verbs) {
    args.insert(args.end(), {"-n", server_.address() + ";127.0.0.1:1"});
    Ran r = run(args);
    EXPECT_EQ(r.exit, 69) << args[1] << ' ' << args[2];
    EXPECT_NE(r.err.find("127.0.0.1:1 is left out"), std::string::npos) << r.err;
    EXPECT_FALSE(r.out.empty()) << "what was done is told";
  }
}

TEST_F(Verbs, MessageAtAnOffsetBehindTheEndSaysWhereThatIs) {
  fill_queue(3);
  Ran r = on_server({"message", "at", "T", "b", "0", "7"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("no message at offset 7; the queue ends at 3"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace rmq::ctl

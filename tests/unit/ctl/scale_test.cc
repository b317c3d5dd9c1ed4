// rmqctl topic scale against a broker of one topic, whose queues and offsets the test moves.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>

#include "fake_server.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/headers_admin.h"
#include "proto/headers_offset.h"
#include "ran.h"

namespace rmq::ctl {
namespace {

using proto::RequestCode;
using proto::ResponseCode;

class Scale : public testing::Test {
 protected:
  void SetUp() override {
    std::string addresses = fmt::format("{{0:\"{}\"}}", server_.address());
    server_.answer(
        RequestCode::GET_ROUTEINFO_BY_TOPIC, ResponseCode::SUCCESS, "",
        fmt::format("{{\"brokerDatas\":[{{\"brokerAddrs\":{},\"brokerName\":\"b\",\"cluster\":\"c\"}}],"
                    "\"filterServerTable\":{{}},\"queueDatas\":[{{\"brokerName\":\"b\",\"perm\":6,"
                    "\"readQueueNums\":4,\"topicSysFlag\":0,\"writeQueueNums\":4}}]}}",
                    addresses));
    topic_.topic_name = "T";
    topic_.read_queue_nums = topic_.write_queue_nums = 4;
    server_.on(RequestCode::GET_TOPIC_CONFIG,
               [this](const FakeServer::Request& r) { return success(r, topic_.to_json()); });
    server_.on(RequestCode::UPDATE_AND_CREATE_TOPIC, [this](const FakeServer::Request& r) {
      auto h = proto::UpdateAndCreateTopic::decode(r.command);
      topic_.read_queue_nums = h->read_queue_nums;
      topic_.write_queue_nums = h->write_queue_nums;
      steps_ += fmt::format("{}/{} ", topic_.read_queue_nums, topic_.write_queue_nums);
      if (topic_.read_queue_nums == 2 && late_message_) {
        end_++;
        late_message_ = false;
      }
      return success(r, "");
    });
    server_.on(RequestCode::GET_MAX_OFFSET, [this](const FakeServer::Request& r) {
      FakeServer::Answer a;
      proto::GetMaxOffset::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {end_});
      return a;
    });
    server_.on(RequestCode::GET_MIN_OFFSET, [this](const FakeServer::Request& r) {
      FakeServer::Answer a;
      proto::GetMinOffset::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {min_});
      return a;
    });
    server_.on(RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, [this](const FakeServer::Request& r) {
      return success(r, proto::GroupList{groups_}.to_json());
    });
    server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::CONSUMER_NOT_ONLINE, "offline");
    server_.on(RequestCode::GET_CONSUME_STATS, [this](const FakeServer::Request& r) {
      proto::ConsumeStats stats;
      for (int32_t q = 0; q < topic_.read_queue_nums; q++)
        stats.offset_table[{"T", "b", q}] = {end_, consumed_, consumed_, 0};
      consumed_ = std::min(end_, consumed_ + step_);
      return success(r, stats.to_json());
    });
  }
  static FakeServer::Answer success(const FakeServer::Request& r, const std::string& body) {
    FakeServer::Answer a;
    proto::append_response(a.bytes, r.command, ResponseCode::SUCCESS, "", body);
    return a;
  }
  Ran scale(std::vector<std::string> more) {
    std::vector<std::string> args{"topic", "scale", "T", "--settle", "1ms", "-n", server_.address()};
    args.insert(args.end(), more.begin(), more.end());
    return run(std::move(args));
  }

  proto::TopicConfig topic_;
  std::vector<std::string> groups_ = {"g"};
  int64_t min_ = 0, end_ = 10, consumed_ = 0, step_ = 5;
  bool late_message_ = false;
  std::string steps_;  // "read/write " of each change
  FakeServer server_;
};

TEST_F(Scale, ConsumersGetNewQueuesBeforeProducers) {
  Ran r = scale({"--queues", "8"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(steps_, "8/4 8/8 ");
  EXPECT_EQ(server_.asked(RequestCode::GET_CONSUME_STATS), 0) << "nothing to wait for";
}

TEST_F(Scale, QueuesGoWhenTheyAreEmpty) {
  Ran r = scale({"--queues", "2", "--json"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(steps_, "4/2 2/2 ");
  EXPECT_EQ(consumed_, 10);
  EXPECT_GE(server_.asked(RequestCode::GET_CONSUME_STATS), 3);
  EXPECT_NE(r.err.find("g has 20 messages left in 2 queues"), std::string::npos) << r.err;
  EXPECT_EQ(r.out,
            "[{\"brokerName\":\"b\",\"readQueueNumsBefore\":4,\"writeQueueNumsBefore\":4,\"readQueueNums\":2,"
            "\"writeQueueNums\":2}]\n");
}

TEST_F(Scale, GoesOnWhereItStopped) {
  topic_.write_queue_nums = 2;
  Ran r = scale({"--queues", "2"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(steps_, "2/2 ");
}

TEST_F(Scale, GoesBack) {
  topic_.write_queue_nums = 2;
  Ran r = scale({"--queues", "4"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(steps_, "4/4 ");
}

TEST_F(Scale, AMessageAtTheLastMomentIsNotLost) {
  late_message_ = true;
  step_ = 10;
  Ran r = scale({"--queues", "2"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(steps_, "4/2 2/2 4/2 2/2 ");
  EXPECT_EQ(consumed_, 11);
}

TEST_F(Scale, GroupsMayBeSkipped) {
  step_ = 0;
  Ran r = scale({"--queues", "2", "--skip-group", "g", "--yes"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(consumed_, 0);
}

TEST_F(Scale, AsksWhenNobodyConsumes) {
  groups_.clear();
  Ran r = scale({"--queues", "2"});
  EXPECT_NE(r.exit, 0);
  EXPECT_NE(r.err.find("20 messages in queues 2 to 3"), std::string::npos) << r.err;
  EXPECT_EQ(topic_.read_queue_nums, 4);
  r = scale({"--queues", "2", "--yes"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(topic_.read_queue_nums, 2);
}

TEST_F(Scale, WhatWasDeletedNeedsNoConsumer) {
  min_ = 10;
  step_ = 0;
  Ran r = scale({"--queues", "3"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(steps_, "4/3 3/3 ");
}

TEST_F(Scale, NeedsANumber) {
  EXPECT_EQ(scale({}).exit, 64);
}

}  // namespace
}  // namespace rmq::ctl

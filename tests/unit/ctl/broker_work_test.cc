// rmqctl broker drain and broker copy: brokers whose tables, queues and offsets the test moves.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fake_server.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/headers_admin.h"
#include "proto/headers_namesrv.h"
#include "proto/headers_offset.h"
#include "proto/message_id.h"
#include "ran.h"

namespace rmq::ctl {
namespace {

using proto::RequestCode;
using proto::ResponseCode;

FakeServer::Answer answer(const FakeServer::Request& r, std::string body,
                          ResponseCode code = ResponseCode::SUCCESS) {
  FakeServer::Answer a;
  proto::append_response(a.bytes, r.command, code, "", body);
  return a;
}

template <class C>
FakeServer::Answer offset_answer(const FakeServer::Request& r, int64_t offset) {
  FakeServer::Answer a;
  C::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {offset});
  return a;
}

// A broker with the topic T of one queue, which the group g consumes; a name server, too.
struct OneBroker {
  explicit OneBroker(std::string name) : name_(std::move(name)) {
    topics_["T"].topic_name = "T";
    topics_["T"].read_queue_nums = topics_["T"].write_queue_nums = 1;
    groups_["g"].group_name = "g";
    server_.on(RequestCode::GET_BROKER_CONFIG,
               [this](auto& r) { return answer(r, fmt::format("brokerPermission={}\n", permission_)); });
    server_.on(RequestCode::UPDATE_BROKER_CONFIG, [this](auto& r) {
      steps_ += std::string(r.body);
      if (takes_settings_) permission_ = 4;
      return answer(r, "");
    });
    server_.on(RequestCode::WIPE_WRITE_PERM_OF_BROKER, [this](auto& r) {
      steps_ += "wipe " + std::string(proto::WipeWritePermOfBroker::decode(r.command)->broker_name) + "\n";
      FakeServer::Answer a;
      proto::WipeWritePermOfBroker::append_answer(a.bytes, r.command, ResponseCode::SUCCESS, {1});
      return a;
    });
    server_.on(RequestCode::GET_ALL_TOPIC_CONFIG, [this](auto& r) {
      proto::TopicConfigSerializeWrapper w;
      w.topic_config_table = topics_;
      return answer(r, w.to_json());
    });
    server_.on(RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, [this](auto& r) {
      proto::SubscriptionGroupWrapper w;
      w.subscription_group_table = groups_;
      return answer(r, w.to_json());
    });
    server_.on(RequestCode::GET_TOPIC_STATS_INFO, [this](auto& r) {
      if (sent_ > 0 && --sent_ >= 0) end_++;
      proto::TopicStatsTable t;
      t.offset_table[{"T", name_, 0}] = {0, end_, 0};
      return answer(r, t.to_json());
    });
    offsets();
    server_.answer(RequestCode::GET_CONSUMER_CONNECTION_LIST, ResponseCode::CONSUMER_NOT_ONLINE, "offline");
    server_.on(RequestCode::GET_BROKER_RUNTIME_INFO, [this](auto& r) {
      proto::KVTable t;
      t.table["scheduleMessageOffset_1"] = fmt::format("{},{}", delivered_, delayed_);
      delivered_ = std::min(delayed_, delivered_ + 1);
      return answer(r, t.to_json());
    });
  }
  void offsets() {
    server_.on(RequestCode::GET_CONSUME_STATS, [this](auto& r) {
      if (proto::GetConsumeStats::decode(r.command)->consumer_group != "g")
        return answer(r, "", ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST);
      proto::ConsumeStats stats;
      stats.offset_table[{"T", name_, 0}] = {end_, consumed_, consumed_, 0};
      consumed_ = std::min(end_, consumed_ + step_);
      return answer(r, stats.to_json());
    });
    server_.on(RequestCode::GET_MIN_OFFSET, [](auto& r) { return offset_answer<proto::GetMinOffset>(r, 0); });
    server_.on(RequestCode::GET_MAX_OFFSET, [this](auto& r) {
      auto topic = proto::GetMaxOffset::decode(r.command)->topic;
      return offset_answer<proto::GetMaxOffset>(r, topic == "%DLQ%g" ? dead_ : 0);
    });
    server_.on(RequestCode::QUERY_CONSUMER_OFFSET, [this](auto& r) {
      auto h = proto::QueryConsumerOffset::decode(r.command);
      auto found = positions_.find(fmt::format("{}@{}:{}", h->topic, h->consumer_group, h->queue_id));
      if (found == positions_.end()) return answer(r, "", ResponseCode::QUERY_NOT_FOUND);
      return offset_answer<proto::QueryConsumerOffset>(r, found->second);
    });
    server_.on(RequestCode::UPDATE_CONSUMER_OFFSET, [this](auto& r) {
      auto h = proto::UpdateConsumerOffset::decode(r.command);
      positions_[fmt::format("{}@{}:{}", h->topic, h->consumer_group, *h->queue_id)] = *h->commit_offset;
      return answer(r, "");
    });
  }
  std::string row() const {
    return fmt::format("\"{}\":{{\"brokerAddrs\":{{0:\"{}\"}},\"brokerName\":\"{}\",\"cluster\":\"c\"}}",
                       name_, server_.address(), name_);
  }

  std::string name_;
  int32_t permission_ = 6;
  bool takes_settings_ = true;
  proto::TopicConfigTable topics_;
  proto::SubscriptionGroupTable groups_;
  std::map<std::string, int64_t> positions_;
  int64_t end_ = 10, consumed_ = 0, step_ = 5, delivered_ = 0, delayed_ = 0, dead_ = 0;
  int sent_ = 0;  // messages that producers still send, one each time the topic is looked at
  std::string steps_;
  FakeServer server_;
};

void know(OneBroker& namesrv, const std::vector<const OneBroker*>& brokers) {
  std::string rows, names;
  for (const OneBroker* b : brokers) {
    rows += (rows.empty() ? "" : ",") + b->row();
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ",", b->name_);
  }
  namesrv.server_.answer(
      RequestCode::GET_BROKER_CLUSTER_INFO, ResponseCode::SUCCESS, "",
      fmt::format("{{\"brokerAddrTable\":{{{}}},\"clusterAddrTable\":{{\"c\":[{}]}}}}", rows, names));
}

class Drain : public testing::Test {
 protected:
  void SetUp() override { know(b_, {&b_}); }
  Ran drain(std::vector<std::string> more = {}, const char* settle = "1ms") {
    std::vector<std::string> args{"broker", "drain", "b",  "--settle",
                                  settle,   "--yes", "-n", b_.server_.address()};
    args.insert(args.end(), more.begin(), more.end());
    return run(std::move(args));
  }
  OneBroker b_{"b"};
};

TEST_F(Drain, ProducersLeaveBeforeTheBrokerIsReadOnlyAndGroupsEmptyIt) {
  Ran r = drain();
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(b_.steps_, "wipe b\nbrokerPermission=4\n");
  EXPECT_EQ(b_.consumed_, 10);
  EXPECT_NE(r.err.find("group g has 10 messages left and nobody online"), std::string::npos) << r.err;
  EXPECT_NE(r.out.find("b is empty"), std::string::npos) << r.out;
}

TEST_F(Drain, AsksFirst) {
  Ran r = run({"broker", "drain", "b", "-n", b_.server_.address()});
  EXPECT_EQ(r.exit, 64);
  EXPECT_EQ(b_.steps_, "");
}

TEST_F(Drain, GoesOnWhereItStopped) {
  b_.permission_ = 4;
  Ran r = run({"broker", "drain", "b", "--settle", "1ms", "-n", b_.server_.address()});  // nothing to ask
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(b_.steps_, "wipe b\n");
}

TEST_F(Drain, GivesUpAndShowsWhatIsLeft) {
  b_.step_ = 0;
  Ran r = drain({"--timeout", "100ms", "--json"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_EQ(r.out, "[{\"what\":\"messages\",\"group\":\"g\",\"messages\":10,\"members\":0}]\n");
  EXPECT_NE(r.err.find("brokerPermission 6"), std::string::npos) << r.err;
}

TEST_F(Drain, GivingUpShowsWhatIsDearToKnowToo) {
  b_.step_ = 0;
  b_.delayed_ = INT64_MAX;
  Ran r = drain({"--timeout", "50ms", "--json"});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.out.find("delay level"), std::string::npos) << r.out;
  EXPECT_GE(b_.server_.asked(RequestCode::QUERY_CONSUMER_OFFSET), 1) << "transactions were not looked at";
}

TEST_F(Drain, GroupsMayBeSkipped) {
  b_.step_ = 0;
  Ran r = drain({"--skip-group", "g"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(b_.consumed_, 0);
}

TEST_F(Drain, DelayedMessagesAreWaitedFor) {
  b_.delayed_ = 3;
  Ran r = drain();
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(b_.delivered_, 3);
}

TEST_F(Drain, AProducerThatStaysIsNotedAndWaitedFor) {
  b_.sent_ = 40;
  b_.step_ = 100;
  Ran r = drain({}, "30ms");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(b_.sent_, 0) << "it took the broker for empty while messages came";
  EXPECT_EQ(b_.consumed_, 50);
}

TEST_F(Drain, DeadLettersAreToldAndNotWaitedFor) {
  b_.topics_["%DLQ%g"].topic_name = "%DLQ%g";
  b_.dead_ = 7;
  Ran r = drain({"--json"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, "[{\"what\":\"dead letters\",\"group\":\"g\",\"messages\":7,\"members\":null}]\n");
}

TEST_F(Drain, ABrokerThatIgnoresTheSettingIsAFailure) {
  b_.takes_settings_ = false;
  Ran r = drain();
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("did not"), std::string::npos) << r.err;
}

TEST_F(Drain, AnUnknownBrokerIsSaid) {
  Ran r = run({"broker", "drain", "other", "--yes", "-n", b_.server_.address()});
  EXPECT_EQ(r.exit, 1);
  EXPECT_NE(r.err.find("no broker \"other\""), std::string::npos) << r.err;
}

class Copy : public testing::Test {
 protected:
  void SetUp() override {
    know(from_, {&from_, &to_});
    to_.topics_.clear();
    to_.groups_.clear();
    from_.topics_["T"].read_queue_nums = 2;
    from_.topics_["T"].attributes["message.type"] = "FIFO";
    from_.topics_["%RETRY%g"].topic_name = "%RETRY%g";
    from_.topics_["TBW102"].topic_name = "TBW102";
    from_.topics_["from"].topic_name = "from";
    from_.groups_["TOOLS_CONSUMER"].group_name = "TOOLS_CONSUMER";
    from_.groups_["g"].retry_max_times = 3;
    from_.server_.on(RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, [](auto& r) {
      auto topic = proto::QueryTopicConsumeByWho::decode(r.command)->topic;
      return answer(
          r, proto::GroupList{topic == "T" ? std::vector<std::string>{"g"} : std::vector<std::string>{}}
                 .to_json());
    });
    to_.server_.on(RequestCode::UPDATE_AND_CREATE_TOPIC, [this](auto& r) {
      auto h = proto::UpdateAndCreateTopic::decode(r.command);
      if (refuses_) return answer(r, "", ResponseCode::INVALID_PARAMETER);
      made_ += fmt::format("topic {} {}/{} {}\n", h->topic, h->read_queue_nums, h->write_queue_nums,
                           h->attributes.value_or(""));
      to_.topics_[std::string(h->topic)].topic_name = h->topic;
      return answer(r, "");
    });
    to_.server_.on(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, [this](auto& r) {
      auto group = proto::SubscriptionGroupConfig::parse(r.body);
      made_ += fmt::format("group {} {}\n", group->group_name, group->retry_max_times);
      to_.groups_[group->group_name] = *group;
      return answer(r, "");
    });
  }
  Ran copy(std::vector<std::string> more = {"--yes"}) {
    std::vector<std::string> args{"broker", "copy", "from", "to", "-n", from_.server_.address()};
    args.insert(args.end(), more.begin(), more.end());
    return run(std::move(args));
  }
  OneBroker from_{"from"}, to_{"to"};
  bool refuses_ = false;
  std::string made_;
};

TEST_F(Copy, MakesWhatIsTheUsersAndSetsPositions) {
  Ran r = copy();
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(made_, "group g 3\ntopic T 2/1 +message.type=FIFO\n");
  EXPECT_EQ(to_.positions_, (std::map<std::string, int64_t>{{"T@g:0", 0}, {"T@g:1", 0}}));
}

TEST_F(Copy, IsSafeToRepeat) {
  ASSERT_EQ(copy().exit, 0);
  made_.clear();
  to_.positions_["T@g:0"] = 5;
  Ran r = copy();
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(made_, "");
  EXPECT_EQ(to_.positions_["T@g:0"], 5);
  EXPECT_NE(r.out.find("there already"), std::string::npos) << r.out;
}

TEST_F(Copy, OneTopicComesWithItsGroups) {
  from_.topics_["U"].topic_name = "U";
  from_.groups_["other"].group_name = "other";
  EXPECT_EQ(copy({"--yes", "--topic", "T"}).exit, 0);
  EXPECT_EQ(made_, "group g 3\ntopic T 2/1 +message.type=FIFO\n");
  EXPECT_EQ(copy({"--yes", "--topic", "V"}).exit, 1);
}

TEST_F(Copy, WhatIsRefusedIsSaidAndTheRestIsDone) {
  refuses_ = true;
  Ran r = copy();
  EXPECT_EQ(r.exit, 1);
  EXPECT_EQ(made_, "group g 3\n");
  EXPECT_NE(r.err.find("refused 1 of them"), std::string::npos) << r.err;
}

TEST_F(Copy, AsksFirst) {
  EXPECT_EQ(copy({}).exit, 64);
  EXPECT_EQ(made_, "");
  EXPECT_EQ(run({"broker", "copy", "from", "from", "--yes", "-n", from_.server_.address()}).exit, 64);
}

}  // namespace
}  // namespace rmq::ctl

#include "ctl/mqadmin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ctl/command_line.h"
#include "ctl/message_trace.h"

namespace rmq::ctl {
namespace {

Invocation parsed(std::vector<std::string> args) {
  auto r = parse_mqadmin_line(args);
  EXPECT_TRUE(r) << args[0] << ": " << (r ? "" : r.error().text);
  return r ? *r : Invocation{};
}

std::string refused(std::vector<std::string> args) {
  auto r = parse_mqadmin_line(args);
  if (r) return "taken";
  EXPECT_EQ(r.error().exit, Exit::usage) << args[0];
  return r.error().text;
}

bool has_option(const Verb& verb, std::string_view name) {
  auto is = [&](std::string_view names) { return names.substr(names.rfind(',') + 1) == name; };
  const auto own = own_options(verb);
  const auto all = global_options();
  return std::any_of(own.begin(), own.end(), [&](const OptionSpec* o) { return is(o->names); }) ||
         std::any_of(all.begin(), all.end(), [&](const OptionSpec& o) { return is(o.names); });
}

std::string_view without(std::string_view text, std::string_view characters) {
  const auto from = text.find_first_not_of(characters);
  return from == std::string_view::npos ? std::string_view() : text.substr(from);
}

// Every row names a verb that there is, places that it has and options that it takes, or gives a reason.
TEST(Mqadmin, EveryRowHoldsWhatItPromises) {
  for (const MqadminCommand& m : mqadmin_commands()) {
    if (*m.refusal) {
      EXPECT_STREQ(m.verb, "") << m.name;
      EXPECT_NE(refused({m.name, "-x"}).find(m.refusal), std::string::npos) << m.name;
      continue;
    }
    std::string_view words = m.verb;
    words = words.substr(0, words.find(" --"));
    const bool choice = std::string_view(m.options).find("=$") != std::string_view::npos;
    const Verb* verb = find_verb(choice ? std::string(words) + " put" : std::string(words));
    ASSERT_NE(verb, nullptr) << m.name;
    EXPECT_NE(mqadmin_names_of(verb->words).size(), 0u) << m.name;
    for (const MqadminOption& o : options_of(m)) {
      std::string_view target = without(o.target, "+?!~@ms");
      target = target.substr(0, target.find(':'));
      if (target.empty() || target == "*" || target == "$" || target == "--help") continue;
      if (target.starts_with("--")) {
        EXPECT_TRUE(has_option(*verb, target)) << m.name << " " << target;
      } else {
        EXPECT_LE(target[0] - '0', verb->arguments_max) << m.name << " " << o.names[0];
      }
    }
  }
}

TEST(Mqadmin, ValuesGoToTheirPlaces) {
  auto i = parsed({"updateTopic", "-tT", "--clusterName", "DefaultCluster", "-r", "3", "--writeQueueNums=4",
                   "-p", "6", "-a", "+message.type=FIFO,-e"});
  EXPECT_STREQ(i.verb->words, "topic update");
  EXPECT_TRUE(i.options.upsert) << "as there: it creates too";
  EXPECT_EQ(i.options.args, std::vector<std::string>{"T"});
  EXPECT_EQ(i.options.cluster, "DefaultCluster");
  EXPECT_EQ(i.options.read_queues, 3);
  EXPECT_EQ(i.options.write_queues, 4);
  EXPECT_EQ(i.options.attributes, std::vector<std::string>{"+message.type=FIFO,-e"});
  i = parsed({"cloneGroupOffset", "-t", "T", "-d", "NEW", "-s", "OLD", "-o", "true", "-n", "h:1"});
  EXPECT_EQ(i.options.args, (std::vector<std::string>{"OLD", "NEW", "T"}));
  EXPECT_EQ(i.options.namesrv, "h:1");
  EXPECT_NE(refused({"cloneGroupOffset", "-t", "T", "-s", "OLD"}).find("-d is missing"), std::string::npos);
  EXPECT_NE(refused({"topicRoute", "-t"}).find("-t needs a value"), std::string::npos);
}

TEST(Mqadmin, WhatIsTrueByDefaultThereAndWhatIsNot) {
  auto i = parsed({"updateSubGroup", "-g", "G"});
  EXPECT_TRUE(i.options.no_broadcast) << "mqadmin 5.5.0 sets it to false unless it is told otherwise";
  EXPECT_TRUE(i.options.no_from_min);
  EXPECT_FALSE(i.options.disabled);
  i = parsed({"updateSubGroup", "-g", "G", "-d", "true", "-m", "TRUE", "-s", "false", "-q", "2", "-w", "3"});
  EXPECT_FALSE(i.options.no_broadcast);
  EXPECT_FALSE(i.options.no_from_min);
  EXPECT_TRUE(i.options.disabled);
  EXPECT_EQ(i.options.retry_queues, 2);
  EXPECT_EQ(i.options.slow_broker_id, 3);
  EXPECT_TRUE(parsed({"deleteSubGroup", "-g", "G"}).options.keep_offsets);
  EXPECT_FALSE(parsed({"deleteSubGroup", "-g", "G", "-r", "true"}).options.keep_offsets);
}

TEST(Mqadmin, MomentsAndSpansAsItWritesThem) {
  auto position = [](const char* s) {
    return parsed({"resetOffsetByTime", "-g", "G", "-t", "T", "-s", s}).options.args[2];
  };
  EXPECT_EQ(position("now"), "now");
  EXPECT_EQ(position("-1"), "latest");
  EXPECT_EQ(position("1676730526212"), "@1676730526212");
  EXPECT_EQ(position("2026-11-30#04:05:06:789"), "2026-11-30 04:05:06.789");
  auto i =
      parsed({"resetOffsetByTime", "-g", "G", "-t", "T", "-o", "7", "-s", "now", "-b", "h:1", "-q", "0"});
  EXPECT_EQ(i.options.args[2], "7") << "an offset says more than a time";
  i = parsed({"consumeMessage", "-t", "T", "-s", "5", "-e", "9", "-c", "2"});
  EXPECT_EQ(i.options.from, "@5");
  EXPECT_EQ(i.options.to, "@9");
  EXPECT_EQ(i.options.count, 2);
  EXPECT_EQ(parsed({"clusterRT"}).options.interval, "10s");
  EXPECT_EQ(parsed({"clusterRT", "-i", "3"}).options.interval, "3s");
  EXPECT_EQ(parsed({"brokerConsumeStats", "-b", "h:1", "-t", "500"}).options.timeout, "500ms");
}

TEST(Mqadmin, OneCommandOfSeveralVerbs) {
  EXPECT_STREQ(parsed({"updateOrderConf", "-t", "T", "-m", "put", "-v", "a:4"}).verb->words,
               "topic order put");
  EXPECT_STREQ(parsed({"updateOrderConf", "-t", "T", "-m", "get"}).verb->words, "topic order get");
  EXPECT_STREQ(parsed({"updateOrderConf", "-t", "T", "-m", "delete"}).verb->words, "topic order delete");
  EXPECT_NE(refused({"updateOrderConf", "-t", "T"}).find("get, put, delete"), std::string::npos);
  auto i = parsed({"queryMsgById", "-t", "T", "-i", "ID", "-d", "CLIENT", "-g", "G"});
  EXPECT_STREQ(i.verb->words, "group consume");
  EXPECT_EQ(i.options.args, (std::vector<std::string>{"G", "ID", "CLIENT"}));
  EXPECT_STREQ(parsed({"queryMsgById", "-t", "T", "-i", "ID"}).verb->words, "message");
  EXPECT_EQ(parsed({"exportMetadata"}).options.args, std::vector<std::string>{"/tmp/rocketmq/export"});
}

TEST(Mqadmin, WhatIsNotDoneSaysSo) {
  EXPECT_NE(refused({"queryMsgById", "-i", "X", "-s", "true"}).find("-s, --sendMessage is not done"),
            std::string::npos);
  EXPECT_NE(refused({"sendMessage", "-t", "T", "-p", "x", "-m", "true"}).find("-m, "), std::string::npos);
  EXPECT_EQ(parsed({"sendMessage", "-t", "T", "-p", "x", "-m", "false"}).options.args.size(), 2u);
  EXPECT_NE(refused({"noSuchCommand"}).find("no command"), std::string::npos);
  EXPECT_NE(refused({"topicRoute", "-t", "T", "-z"}), "taken");
}

// Records as the encoder of the Java client 5.5.0 writes them.
TEST(MessageTrace, EventsOfOneMessage) {
  std::string body =
      "Pub|1000|region|pg|T|ID1|tag|k1 k2|10.0.0.1:10911|9|7|2|OFFSETID|true^"
      "Pub|1000|region|pg|T|ID2|tag|k3|10.0.0.1:10911|9|7|0|OFFSETID2|false^"
      "SubAfter|r2|ID1|30|false|k1 k2|2|2130|cg^"
      "SubBefore|2100|region|cg|r2|ID1|1|k1 k2^"
      "SubBefore|2000|region|cg|r1|ID1|0|k1 k2^"
      "EndTransaction|1500|region|pg|T|ID1|tag|k1 k2|10.0.0.1:10911|2|tx|COMMIT_MESSAGE|true^"
      "Recall|1600|region|pg|T|ID3|false^"
      "garbage^SubAfter^^";
  std::replace(body.begin(), body.end(), '|', '\1');
  std::replace(body.begin(), body.end(), '^', '\2');
  auto events = in_order(parse_trace(body, "ID1"));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].kind, "sent");
  EXPECT_EQ(events[0].result, "ok, transaction");
  EXPECT_EQ(events[0].cost_ms, 7);
  EXPECT_EQ(events[0].store_host, "10.0.0.1:10911");
  EXPECT_EQ(events[1].result, "committed, when it was checked");
  EXPECT_EQ(events[2].at_ms, 2000);
  EXPECT_EQ(events[2].result, "no end is told");
  EXPECT_EQ(events[3].at_ms, 2100);
  EXPECT_EQ(events[3].retry, 1);
  EXPECT_EQ(events[3].cost_ms, 30);
  EXPECT_EQ(events[3].result, "exception");
  EXPECT_EQ(parse_trace(body, "OFFSETID2")[0].result, "failed");
  EXPECT_EQ(parse_trace(body, "k3").size(), 1u) << "by a key";
  EXPECT_EQ(parse_trace(body, "ID3")[0].kind, "recalled");
  EXPECT_EQ(parse_trace(body, "k").size(), 0u);
  // An end that is told alone, with the time of the end.
  events = in_order(parse_trace(std::string("SubAfter\1r\1ID9\1"
                                            "30\1true\1\1"
                                            "0\1"
                                            "2130\1cg\2"),
                                "ID9"));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at_ms, 2100);
  EXPECT_EQ(events[0].group, "cg");
}

}  // namespace
}  // namespace rmq::ctl

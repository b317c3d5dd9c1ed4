#include "ctl/command_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ctl/mqadmin.h"

namespace rmq::ctl {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto end = text.find(' ');
    out.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

Invocation parsed(std::string_view line) {
  auto r = parse_command_line(split(line));
  EXPECT_TRUE(r) << line << ": " << (r ? "" : r.error().text);
  return r ? *r : Invocation{};
}

std::string refused(std::string_view line) {
  auto r = parse_command_line(split(line));
  if (r) return "taken";
  EXPECT_EQ(r.error().exit, Exit::usage) << line;
  EXPECT_EQ(r.error().text.find('\n'), std::string::npos) << "an error is one line: " << r.error().text;
  return r.error().text;
}

TEST(CommandLine, VerbsArgumentsAndOptions) {
  auto i = parsed("topic create Orders --queues 4 --perm rw");
  EXPECT_STREQ(i.verb->words, "topic create");
  EXPECT_EQ(i.options.args, std::vector<std::string>{"Orders"});
  EXPECT_EQ(i.options.queues, 4);
  EXPECT_EQ(i.options.perm, "rw");
  EXPECT_FALSE(i.options.read_queues);
}

TEST(CommandLine, GlobalOptionsStandAnywhere) {
  for (const char* line :
       {"-n h:1 --json topic status T", "topic -n h:1 status --json T", "topic status T --json -n h:1",
        "--namesrv=h:1 topic status T --json", "-nh:1 --json topic status T"}) {
    auto i = parsed(line);
    ASSERT_NE(i.verb, nullptr) << line;
    EXPECT_STREQ(i.verb->words, "topic status") << line;
    EXPECT_EQ(i.options.namesrv, "h:1") << line;
    EXPECT_TRUE(i.options.json) << line;
    EXPECT_EQ(i.options.args, std::vector<std::string>{"T"}) << line;
  }
}

TEST(CommandLine, LongestWordsWin) {
  EXPECT_STREQ(parsed("broker config").verb->words, "broker config");
  EXPECT_STREQ(parsed("broker config flushDiskType").verb->words, "broker config");
  EXPECT_STREQ(parsed("broker config set k v").verb->words, "broker config set");
  EXPECT_STREQ(parsed("cluster").verb->words, "cluster");
}

TEST(CommandLine, ValuesThatLookLikeOptionsOrVerbs) {
  EXPECT_EQ(parsed("send T -").options.args, (std::vector<std::string>{"T", "-"}));
  EXPECT_EQ(parsed("send T -- -body").options.args, (std::vector<std::string>{"T", "-body"}));
  EXPECT_EQ(parsed("send T /body").options.args, (std::vector<std::string>{"T", "/body"}));
  EXPECT_EQ(parsed("send T --key a --key b").options.keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parsed("send T --key a body").options.args, (std::vector<std::string>{"T", "body"}));
  EXPECT_EQ(parsed("consume T --from 10m").options.from, "10m");
  EXPECT_EQ(parsed("consume T --timeout 3s").options.wait, "3s");  // its own, not the global one
  EXPECT_EQ(parsed("cluster --timeout 3s").options.timeout, "3s");
}

TEST(CommandLine, ErrorsSayWhat) {
  EXPECT_NE(refused("frobnicate").find("\"frobnicate\""), std::string::npos);
  EXPECT_NE(refused("topic").find("list, create, update"), std::string::npos);
  EXPECT_NE(refused("topic frob").find("\"frob\""), std::string::npos);
  EXPECT_NE(refused("topic create").find("topic create TOPIC"), std::string::npos);
  EXPECT_NE(refused("topic create A B").find("\"B\""), std::string::npos);
  EXPECT_NE(refused("topic create A --frob").find("--frob"), std::string::npos);
  EXPECT_NE(refused("topic create A --queues 0").find("--queues"), std::string::npos);
  EXPECT_NE(refused("topic create A --queues x").find("--queues"), std::string::npos);
  EXPECT_NE(refused("topic create A --queues").find("--queues"), std::string::npos);
  EXPECT_NE(refused("--json").find("verb"), std::string::npos);
  EXPECT_NE(refused("help frob").find("\"frob\""), std::string::npos);
  auto none = parse_command_line({});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, Exit::usage);
}

TEST(CommandLine, HelpOfAllOfAFamilyAndOfAVerb) {
  EXPECT_NE(parsed("help").text.find("topic create TOPIC"), std::string::npos);
  EXPECT_EQ(parsed("--help").text, parsed("help").text);
  EXPECT_NE(parsed("help topic").text.find("topic delete TOPIC"), std::string::npos);
  EXPECT_EQ(parsed("help topic").text.find("\n  group "), std::string::npos);
  EXPECT_EQ(parsed("topic --help").text, parsed("help topic").text);
  EXPECT_NE(parsed("help topic create").text.find("--read-queues"), std::string::npos);
  EXPECT_EQ(parsed("topic create --help").text, parsed("help topic create").text);
  EXPECT_EQ(parsed("topic create A --help").text, parsed("help topic create").text);
  EXPECT_EQ(parsed("--version").text, "rmqctl " RMQD_VERSION "\n");
}

TEST(CommandLine, MqadminNames) {
  auto i = parsed("updateTopic -t T -c DefaultCluster -r 3 -w 4 -p 6 --json");
  EXPECT_STREQ(i.verb->words, "topic update");
  EXPECT_TRUE(i.options.upsert);  // as there: it creates too
  EXPECT_TRUE(i.options.json) << "our options go with it";
  EXPECT_EQ(i.options.args, std::vector<std::string>{"T"});
  EXPECT_FALSE(parsed("topic update T").options.upsert);
  EXPECT_STREQ(parsed("CLUSTERLIST -n h:1").verb->words, "cluster list");
  EXPECT_EQ(parsed("updateBrokerConfig -b h:1 -k a -v b").options.args, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parsed("consumerProgress").options.args.size(), 0u);
  EXPECT_EQ(parsed("consumerProgress -g G").options.args, std::vector<std::string>{"G"});
  EXPECT_NE(refused("topicRoute"), "taken");
  EXPECT_NE(refused("createUser -u alice").find("no users and ACLs yet"), std::string::npos);
  EXPECT_NE(parsed("help updateTopic").text.find("--read-queues"), std::string::npos);
}

TEST(CommandLine, TheProgramMqadmin) {
  auto i =
      parse_mqadmin_line({"resetOffsetByTime", "-n", "h:1", "-g", "G", "-t", "T", "-s", "now", "-f", "true"});
  ASSERT_TRUE(i) << i.error().text;
  EXPECT_STREQ(i->verb->words, "group reset");
  EXPECT_EQ(i->options.args, (std::vector<std::string>{"G", "T", "now"}));
  EXPECT_EQ(i->options.namesrv, "h:1");
  EXPECT_TRUE(i->options.yes) << "it never asks";
  i = parse_mqadmin_line({"UPDATETOPICPERM", "-t", "T", "-p", "4"});
  ASSERT_TRUE(i) << i.error().text;
  EXPECT_FALSE(i->options.upsert);
  EXPECT_EQ(i->options.perm, "4");
  EXPECT_EQ(parse_mqadmin_line({"topic", "list"}).error().exit, Exit::usage) << "not by our names";
  const std::string all = parse_mqadmin_line({})->text;
  for (const MqadminCommand& m : mqadmin_commands()) {
    EXPECT_NE(all.find(m.name), std::string::npos) << m.name;
    EXPECT_NE(parse_mqadmin_line({"help", m.name})->text.find(m.name), std::string::npos);
    if (!*m.refusal) {
      EXPECT_EQ(parse_mqadmin_line({m.name, "-h"})->text, parse_mqadmin_line({"help", m.name})->text)
          << m.name;
    }
  }
}

TEST(CommandLine, OnlyListsAreWatched) {
  auto i = parsed("topic list --watch --interval 5s");
  EXPECT_TRUE(i.options.watch);
  EXPECT_EQ(i.options.interval, "5s");
  EXPECT_NE(refused("topic create T --watch"), "taken");
  for (const Verb& v : verb_table()) {
    const std::string words = v.words;
    const bool is_list = words.ends_with(" list") || words.ends_with(" status") || words == "cluster";
    EXPECT_TRUE(!is_list || v.lists) << words;
  }
}

// Every row of the table can be invoked in every way that it promises, and says enough about itself.
TEST(VerbTable, EveryRowHoldsWhatItPromises) {
  std::set<std::string> words;
  for (const Verb& v : verb_table()) {
    EXPECT_TRUE(words.insert(v.words).second) << v.words;
    EXPECT_NE(std::string_view(v.summary), "") << v.words;
    std::string arguments, line = v.words;
    for (int a = 0; a < v.arguments_min; a++) arguments += " x" + std::to_string(a);
    EXPECT_EQ(parsed(line + arguments).verb, &v) << line;
    for (const OptionSpec& o : v.options) {
      std::string_view names = o.names;
      std::string option(names.substr(names.rfind(',') + 1));
      if (o.value)
        option += std::holds_alternative<std::optional<int64_t> Options::*>(o.member) ? " 1" : " value";
      EXPECT_EQ(parsed(line + arguments + " " + option).verb, &v) << line << " " << option;
      EXPECT_NE(help_of(v).find(names.substr(names.rfind(',') + 1)), std::string::npos) << option;
    }
  }
}

TEST(VerbTable, ManPageAndCompletionHaveEveryVerb) {
  std::string man = parsed("--dump-verbs-man").text, completion = parsed("--dump-completion").text;
  for (const Verb& v : verb_table()) {
    std::string shown;  // troff writes a hyphen that can be copied as \-
    for (char c : std::string_view(v.words)) shown += c == '-' ? std::string("\\-") : std::string(1, c);
    EXPECT_NE(man.find(".SS \"" + shown), std::string::npos) << v.words;
    EXPECT_NE(("\n" + completion).find("\n" + std::string(v.words) + "\n"), std::string::npos) << v.words;
  }
  EXPECT_NE(completion.find("topic create --queues\n"), std::string::npos);
  // A line of text that begins with a dot would be a troff request.
  std::string_view rest = man;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    static const std::set<std::string_view> requests = {".SS", ".TP", ".PP", ".br"};
    if (line.starts_with('.')) {
      EXPECT_TRUE(requests.contains(line.substr(0, line.find(' ')))) << line;
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
}

}  // namespace
}  // namespace rmq::ctl

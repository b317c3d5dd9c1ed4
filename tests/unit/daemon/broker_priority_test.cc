// Messages with a priority: the queue of that number, and POP takes the highest first.
#include "pop_client.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string of_priority(std::string_view priority, std::string_view name = {}, std::string_view value = {}) {
  std::string out;
  proto::append_property(out, "_SYS_MSG_PRIORITY_", priority);
  if (!name.empty()) proto::append_property(out, name, value);
  return out;
}

Task<void> make_topic(World& w, std::string_view topic, std::string_view attributes) {
  auto a = co_await w.put_topic(topic, "4", attributes);
  EXPECT_EQ(code_of(a), 0) << remark(a);
}

Task<void> make_group(World& w, std::string_view group, std::string_view attributes, int32_t code = 0) {
  auto a = co_await w.call(
      RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {},
      R"({"groupName":")" + std::string(group) + R"(","attributes":{)" + std::string(attributes) + "}}");
  EXPECT_EQ(code_of(a), code) << remark(a);
}

Task<void> queues(World& w) {
  auto a = co_await w.send("T", "x");
  struct Case {
    const char *priority, *name, *value, *queue;
  };
  for (const Case& c : {Case{"2", "", "", "2"}, Case{"9", "", "", "3"}, Case{"99999999999", "", "", "1"},
                        Case{"0", "", "", "0"}, Case{"-1", "", "", "1"}, Case{"high", "", "", "1"},
                        Case{"2", "DELAY", "0", "1"}, Case{"2", "__SHARDINGKEY", "k", "1"}}) {
    const std::string properties = of_priority(c.priority, c.name, c.value);
    a = co_await w.send("T", "x", properties, "1");
    EXPECT_EQ(code_of(a), 0) << remark(a);
    EXPECT_EQ(ext(a, "queueId"), c.queue) << c.priority << " " << c.name;
  }
  const std::string lite = of_priority("0", "__LITE_TOPIC", "l");
  a = co_await w.send("T", "x", lite);
  EXPECT_EQ(code_of(a), 13);
  EXPECT_NE(remark(a).find("lite topic"), std::string::npos) << remark(a);
  auto stored = co_await w.store->get("T", 1, w.store->max_offset("T", 1) - 1, 1, nullptr);
  auto record = proto::parse_record(stored.extents.at(0).bytes());
  EXPECT_TRUE(record && !record->property("_SYS_MSG_PRIORITY_")) << "one in order has no priority";
}
TEST(BrokerPriority, TheQueueOfThatNumber) {
  simulate({queues});
}

Task<std::string> pop_all(World& w, std::string group) {
  std::string out;
  for (int i = 0; i < 4; i++) {
    PopAsk ask;
    ask.topic = "P";
    ask.group = group;
    ask.most = 1;
    auto a = co_await w.peer->call(pop_frame(++w.opaque, ask, w.broker.wall_ms()));
    EXPECT_EQ(code_of(a), 0) << remark(a);
    out += bodies(a);
  }
  co_return out;
}

Task<void> pops(World& w) {
  co_await make_topic(w, "P", "+message.type=PRIORITY");
  for (const char* priority : {"1", "3", "0", "2"}) {
    const std::string properties = of_priority(priority);
    auto a = co_await w.send("P", priority, properties);
    EXPECT_EQ(code_of(a), 0);
  }
  std::string order = co_await pop_all(w, "g");
  EXPECT_EQ(order, w.config.priorityOrderAsc ? "3210" : "0123");
  // Not by priority at all: some group of these does not happen to get that order.
  co_await make_group(w, "any", R"("+priority.factor":"101")", 1);
  int same = 0;
  for (int i = 0; i < 8; i++) {
    const std::string group = "any" + std::to_string(i);
    co_await make_group(w, group, R"("+priority.factor":"0")");
    std::string other = co_await pop_all(w, group);
    same += other == order ? 1 : 0;
  }
  EXPECT_LT(same, 8);
  EXPECT_EQ(w.broker.groups.find("any0")->attributes.at("priority.factor"), "0");
  co_await make_group(w, "any0", R"("+lite.bind.topic":"T")", 1);
  co_await make_group(w, "any0", R"("-priority.factor":"")");
  EXPECT_TRUE(w.broker.groups.find("any0")->attributes.empty());
}
TEST(BrokerPriority, PopTakesTheHighestFirst) {
  simulate({pops});
  BrokerConfig c = test_config();
  c.priorityOrderAsc = false;
  simulate({pops}, c);
}

}  // namespace
}  // namespace rmq::broker

// PEEK_MESSAGE: what the next pops would get, without taking it.
#include "pop_client.h"

namespace rmq::broker {
namespace {

Task<Answer> peek(World& w, std::string_view queue, std::string_view most, std::string_view group = "g",
                  std::string_view topic = "T") {
  auto a =
      co_await w.call(RequestCode::PEEK_MESSAGE,
                      {{"topic", topic}, {"queueId", queue}, {"maxMsgNums", most}, {"consumerGroup", group}});
  co_return a;
}

Task<void> peeks(World& w) {
  auto a = co_await w.send("T", "m0");
  for (const char* body : {"m1", "m2"}) a = co_await w.send("T", body);
  a = co_await w.send("T", "other", {}, "1");
  for (int i = 0; i < 2; i++) {
    a = co_await peek(w, "0", "2");
    EXPECT_EQ(code_of(a), 0) << remark(a);
    EXPECT_EQ(remark(a), "FOUND");
    EXPECT_EQ(bodies(a), "m0,m1") << "nothing was taken";
    EXPECT_EQ(ext(a, "restNum"), "3");
  }
  a = co_await peek(w, "-1", "32");
  EXPECT_EQ(records(a).size(), 4u);
  EXPECT_EQ(ext(a, "restNum"), "4");
  EXPECT_FALSE(w.broker.offsets.query("g", "T", 0)) << "and nothing is known of the group";
  // What is popped is not there for the next pop.
  PopAsk ask;
  ask.queue = 0;
  ask.most = 2;
  a = co_await w.peer->call(pop_frame(++w.opaque, ask, w.broker.wall_ms()));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await peek(w, "0", "32");
  EXPECT_EQ(bodies(a), "m2");
  a = co_await peek(w, "0", "32", "another");
  EXPECT_EQ(bodies(a), "m0,m1,m2");
}
TEST(BrokerPeek, ShowsWhatTheNextPopGets) {
  simulate({peeks});
}

Task<void> nothing(World& w) {
  auto a = co_await w.send("T", "m0");
  a = co_await peek(w, "1", "32");
  EXPECT_EQ(code_of(a), 19);
  EXPECT_EQ(remark(a), "NO_MESSAGE_IN_QUEUE");
  a = co_await peek(w, "0", "0");
  EXPECT_EQ(code_of(a), 19);
  EXPECT_EQ(ext(a, "restNum"), "1");
  a = co_await peek(w, "0", "1", "g", "Unknown");
  EXPECT_EQ(code_of(a), 17);
  a = co_await peek(w, "9", "1");
  EXPECT_EQ(code_of(a), 29);
  auto vip = co_await Peer::connect(w.client_net, "10.0.0.1", 10909);
  a = co_await vip->call(
      w.request(RequestCode::PEEK_MESSAGE,
                {{"topic", "T"}, {"queueId", "0"}, {"maxMsgNums", "1"}, {"consumerGroup", "g"}}));
  EXPECT_EQ(code_of(a), 3) << "not on the second port";
  co_await vip->close();
}
TEST(BrokerPeek, NothingToShow) {
  simulate({nothing});
}

// Messages that nobody acknowledged come again by the retry topic: they are shown, too.
Task<void> retried(World& w) {
  auto a = co_await w.send("T", "m0");
  PopAsk ask;
  ask.invisible_ms = 1000;
  a = co_await w.peer->call(pop_frame(++w.opaque, ask, w.broker.wall_ms()));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(5 * ns_per_s);
  a = co_await peek(w, "-1", "32");
  EXPECT_EQ(bodies(a), "m0");
}
TEST(BrokerPeek, RetriesToo) {
  simulate({retried});
}

}  // namespace
}  // namespace rmq::broker

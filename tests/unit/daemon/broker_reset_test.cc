// Resets and clones of consumer offsets against commits of clients that were on their way, simulated.
#include "broker_world.h"

namespace rmq::broker {
namespace {

Task<void> reset(World& w) {
  for (int i = 0; i < 5; i++) {
    auto a = co_await w.send("O", "m");
    EXPECT_EQ(code_of(a), 0);
  }
  co_await w.peer->call(w.pull_frame("O", 5, "*", 0, "g", 1, 5));
  auto a = co_await w.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, {{"topic", "O"},
                                                                        {"group", "g"},
                                                                        {"timestamp", "0"},
                                                                        {"isForce", "true"},
                                                                        {"queueId", "0"},
                                                                        {"offset", "1"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"commitOffset", "5"}});
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 1) << "a racing commit does not undo it";
  a = co_await w.peer->call(w.pull_frame("O", 5));
  EXPECT_EQ(code_of(a), 21);
  EXPECT_EQ(remark(a), "OFFSET_RESET");
  EXPECT_EQ(ext(a, "nextBeginOffset"), "1");
  a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET,
                      {{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"commitOffset", "2"}});
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 2);
}
TEST(BrokerReset, ResetIsSeenByTheNextPull) {
  simulate({reset});
}

Task<Answer> commit_to(World& w, std::string offset) {
  const Ext header{{"consumerGroup", "g"}, {"topic", "O"}, {"queueId", "0"}, {"commitOffset", offset}};
  auto a = co_await w.call(RequestCode::UPDATE_CONSUMER_OFFSET, header);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_return a;
}
Task<void> reset_to_1(World& w) {
  const Ext header{{"topic", "O"},      {"group", "g"},   {"timestamp", "0"},
                   {"isForce", "true"}, {"queueId", "0"}, {"offset", "1"}};
  auto a = co_await w.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, header);
  EXPECT_EQ(code_of(a), 0) << remark(a);
}
// A client that has pulled all, and commits what it has while the broker is started again.
Task<void> reset_before_a_stop(World& w) {
  for (int i = 0; i < 5; i++) co_await w.send("O", "m");
  co_await w.peer->call(w.pull_frame("O", 0));
  co_await reset_to_1(w);
}
Task<void> pending_after_it(World& w) {
  auto a = co_await commit_to(w, "3");
  EXPECT_EQ(remark(a), "Offset has been previously reset");
  a = co_await w.peer->call(w.pull_frame("O", 5));
  EXPECT_EQ(remark(a), "OFFSET_RESET");
}
Task<void> told_after_it(World& w) {
  auto a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "Offset has been previously reset");
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 1);
  a = co_await w.peer->call(w.pull_frame("O", 1));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "") << "it has pulled from there";
}
TEST(BrokerReset, AResetIsNotUndoneOverARestart) {
  simulate({reset_before_a_stop, pending_after_it, told_after_it});
}

// It has pulled before the broker started; the broker knows by the pull that it answers with the reset.
Task<void> reset_of_who_pulled_before(World& w) {
  co_await reset_to_1(w);
  auto a = co_await w.peer->call(w.pull_frame("O", 5));
  EXPECT_EQ(remark(a), "OFFSET_RESET");
  a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "Offset has been previously reset");
}
Task<void> pull_and_commit(World& w) {
  for (int i = 0; i < 5; i++) co_await w.send("O", "m");
  co_await w.peer->call(w.pull_frame("O", 0));
  co_await commit_to(w, "2");
}
TEST(BrokerReset, AResetIsNotUndoneByWhoPulledBeforeARestart) {
  simulate({pull_and_commit, reset_of_who_pulled_before});
}

Task<std::unique_ptr<Peer>> member(World& w) {
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  const std::string heartbeat =
      R"({"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[]}]})";
  co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat));
  auto a = co_await one->next();
  EXPECT_EQ(code_of(a), static_cast<int32_t>(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED));
  a = co_await one->next();
  EXPECT_EQ(code_of(a), 0);
  co_return one;
}
Task<void> reset_at_the_client(World& w, std::string timestamp) {
  const Ext header{{"topic", "O"}, {"group", "g"}, {"timestamp", timestamp}, {"isForce", "true"}};
  auto a = co_await w.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, header);
  EXPECT_EQ(code_of(a), 0) << remark(a);
}
// The member commits the target; another commit of it, from before, comes later.
Task<void> told_to_go_back(World& w) {
  w.config.useServerSideResetOffset = false;
  co_await w.put_topic("O", "1");
  for (int i = 0; i < 5; i++) co_await w.send("O", "m");
  auto one = co_await member(w);
  co_await w.peer->call(w.pull_frame("O", 0));
  co_await commit_to(w, "3");
  co_await reset_at_the_client(w, "0");
  auto a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "") << "until it has moved";
  a = co_await commit_to(w, "0");
  EXPECT_EQ(remark(a), "");
  for (const char* racing : {"3", "4", "5"}) {
    a = co_await commit_to(w, racing);
    EXPECT_EQ(remark(a), "Offset has been previously reset");
  }
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 0);
  co_await one->close();
}
Task<void> still_back(World& w) {
  w.config.useServerSideResetOffset = false;
  auto a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "Offset has been previously reset") << "over a restart";
  a = co_await w.peer->call(w.pull_frame("O", 0));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "") << "it has pulled from there";
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 4);
}
TEST(BrokerReset, AResetAtTheClientsIsNotUndone) {
  simulate({told_to_go_back, still_back});
}

// The second reset counts; and who does not move by himself goes on committing.
Task<void> told_twice(World& w) {
  w.config.useServerSideResetOffset = false;
  co_await w.put_topic("O", "1");
  for (int i = 0; i < 5; i++) co_await w.send("O", "m");
  auto one = co_await member(w);
  co_await w.peer->call(w.pull_frame("O", 0));
  co_await commit_to(w, "3");
  co_await reset_at_the_client(w, "0");
  co_await commit_to(w, "0");
  co_await reset_at_the_client(w, "-1");
  auto a = co_await commit_to(w, "5");
  EXPECT_EQ(remark(a), "") << "the target of the second";
  a = co_await commit_to(w, "3");
  EXPECT_EQ(remark(a), "") << "where it comes by itself no reset is seen";
  co_await reset_at_the_client(w, "0");
  co_await sleep_for(31 * ns_per_s);
  a = co_await commit_to(w, "0");
  a = co_await commit_to(w, "4");
  EXPECT_EQ(remark(a), "") << "too late for a reset";
  co_await one->close();
}
TEST(BrokerReset, ResetsAtTheClientsFollowEachOther) {
  simulate({told_twice});
}

Task<void> clone_to_g(World& w) {
  const Ext header{{"srcGroup", "from"}, {"destGroup", "g"}, {"topic", "O"}, {"offline", "false"}};
  auto a = co_await w.call(RequestCode::CLONE_GROUP_OFFSET, header);
  EXPECT_EQ(code_of(a), 0) << remark(a);
}
Task<void> offsets_of_two(World& w) {
  co_await w.put_topic("O", "1");
  for (int i = 0; i < 5; i++) co_await w.send("O", "m");
  co_await w.peer->call(w.pull_frame("O", 2, "*", 0, "from", 1, 2));
  co_await w.peer->call(w.pull_frame("O", 0));
  co_await commit_to(w, "4");
}
Task<void> cloned_while_at_work(World& w) {
  co_await offsets_of_two(w);
  auto one = co_await member(w);
  co_await clone_to_g(w);
  auto a = co_await commit_to(w, "5");
  EXPECT_EQ(remark(a), "Offset has been previously reset");
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 2);
  a = co_await w.peer->call(w.pull_frame("O", 5));
  EXPECT_EQ(remark(a), "OFFSET_RESET");
  EXPECT_EQ(ext(a, "nextBeginOffset"), "2");
  co_await clone_to_g(w);
  a = co_await w.peer->call(w.pull_frame("O", 2));
  EXPECT_EQ(code_of(a), 0) << "it is there already";
  a = co_await commit_to(w, "5");
  EXPECT_EQ(remark(a), "");
  co_await one->close();
}
TEST(BrokerReset, ACloneIsNotUndoneByWhoIsAtWork) {
  simulate({cloned_while_at_work});
}

Task<void> cloned_after_a_reset(World& w) {
  co_await offsets_of_two(w);
  co_await reset_to_1(w);
  co_await clone_to_g(w);
  EXPECT_EQ(w.broker.offsets.query("g", "O", 0), 2) << "the latest counts";
  auto a = co_await w.peer->call(w.pull_frame("O", 5));
  EXPECT_EQ(ext(a, "nextBeginOffset"), "2");
}
TEST(BrokerReset, ACloneCountsAfterAResetThatWaits) {
  simulate({cloned_after_a_reset});
}

}  // namespace
}  // namespace rmq::broker

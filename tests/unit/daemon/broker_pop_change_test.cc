// POP while something else changes what it waits for or reads: resets, deletions, permissions,
// acknowledgements of what is just being read again; and messages that bring foreign handles.
#include <gtest/gtest.h>

#include "pop_client.h"
#include "proto/batch.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string reset_frame(World& w, std::string_view offset, std::string_view topic = "T") {
  return w.request(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, {{"topic", topic},
                                                                {"group", "g"},
                                                                {"queueId", "0"},
                                                                {"offset", offset},
                                                                {"timestamp", "0"},
                                                                {"isForce", "true"}});
}

Task<std::unique_ptr<Peer>> waiting(World& w, PopAsk p) {
  auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  std::string frame = pop_frame(++w.opaque, p, w.broker.wall_ms());
  bool sent = co_await peer->send(std::move(frame));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  co_return peer;
}

std::string notice_frame(World& w, std::string_view topic) {
  const std::string born = std::to_string(w.broker.wall_ms());
  return w.request(RequestCode::NOTIFICATION, {{"consumerGroup", "g"},
                                               {"topic", topic},
                                               {"queueId", "-1"},
                                               {"pollTime", "20000"},
                                               {"bornTime", born},
                                               {"order", "false"}});
}

PopAsk long_ask(std::string topic, int32_t queue = -1) {
  PopAsk p;
  p.topic = std::move(topic);
  p.queue = queue;
  p.poll_ms = 20'000;
  return p;
}

Task<void> reset_wakes(World& w) {
  co_await send_some(w, 2);
  for (const PoppedMessage& m : co_await pop(w)) co_await ack(w, m.handle);
  auto one = co_await waiting(w, long_ask("T"));
  std::string frame = reset_frame(w, "0");
  auto a = co_await w.peer->call(std::move(frame));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await one->next(1);
  EXPECT_TRUE(a) << "it learns of the reset at once";
  if (a) EXPECT_EQ(bodies_of(popped_of(a)), "m0,m1");
  bool sent = co_await one->send(notice_frame(w, "T"));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  frame = reset_frame(w, "1");
  a = co_await w.peer->call(std::move(frame));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await one->next(1);
  EXPECT_TRUE(a) << "who waits for a notice, too";
  co_await one->close();
}
TEST(BrokerPopChange, AResetReachesWhoWaits) {
  simulate({reset_wakes});
}

// Answers of those that wait are those that they would get if they came now.
Task<void> rights_are_taken(World& w) {
  auto a = co_await w.put_topic("T", "1");
  auto one = co_await waiting(w, long_ask("T"));
  auto two = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  bool sent = co_await two->send(notice_frame(w, "T"));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  std::string frame = w.topic_frame("T", "1", {}, "2");
  a = co_await w.peer->call(std::move(frame));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await send_some(w, 1);
  a = co_await one->next(1);
  EXPECT_EQ(code_of(a), 16) << "the topic may not be read any more";
  a = co_await two->next(1);
  EXPECT_EQ(code_of(a), 16);
  frame = w.topic_frame("T", "1");
  a = co_await w.peer->call(std::move(frame));
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m0") << "nobody has it";
  co_await one->close();
  one = co_await waiting(w, long_ask("T"));
  a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {},
                      R"({"groupName":"g","consumeEnable":false})");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await send_some(w, 1);
  a = co_await one->next(1);
  EXPECT_EQ(code_of(a), 16) << "the group may not consume any more";
  EXPECT_EQ(w.broker.pop.table.outstanding(), 1u);
  co_await one->close();
  co_await two->close();
}
TEST(BrokerPopChange, RightsThatAreTakenWhileItWaits) {
  simulate({rights_are_taken});
}

Task<void> deleted_while_it_waits(World& w) {
  co_await send_some(w, 1);
  for (const PoppedMessage& m : co_await pop(w)) co_await ack(w, m.handle);
  PopAsk p = long_ask("T", 0);
  p.poll_ms = 2000;
  auto one = co_await waiting(w, p);
  auto a = co_await w.call(RequestCode::DELETE_TOPIC_IN_BROKER, {{"topic", "T"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await one->next(5);
  EXPECT_EQ(code_of(a), 17) << remark(a);
  EXPECT_EQ(committed(w), -1) << "no offset of a topic that is gone";
  EXPECT_EQ(w.broker.pop.table.queues(), 0u);
  co_await one->close();
}
TEST(BrokerPopChange, ATopicThatIsDeletedWhileItWaits) {
  simulate({deleted_while_it_waits});
}

Task<void> no_more_groups(World& w) {
  w.config.autoCreateSubscriptionGroup = false;
  co_await send_some(w, 1);
  auto a = co_await w.call(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, R"({"groupName":"g"})");
  for (const PoppedMessage& m : co_await pop(w)) co_await ack(w, m.handle);
  auto one = co_await waiting(w, long_ask("T"));
  a = co_await w.call(RequestCode::DELETE_SUBSCRIPTIONGROUP, {{"groupName", "g"}, {"cleanOffset", "true"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await send_some(w, 1);
  a = co_await one->next(1);
  EXPECT_EQ(code_of(a), 26) << remark(a);
  EXPECT_EQ(committed(w), -1) << "no offset of a group that is gone";
  EXPECT_EQ(w.broker.pop.table.queues(), 0u);
  co_await one->close();
}
TEST(BrokerPopChange, AGroupThatIsDeletedWhileItWaits) {
  simulate({no_more_groups});
}

// Whoever was woken for a message is gone in the same moment: the next one gets it.
Task<void> gone_when_it_comes(World& w) {
  co_await send_some(w, 1);
  for (const PoppedMessage& m : co_await pop(w)) co_await ack(w, m.handle);
  auto one = co_await waiting(w, long_ask("T"));
  bool sent = co_await one->send(
      w.request(RequestCode::HEART_BEAT, {}, R"({"clientID":"c","consumerDataSet":[{"groupName":"g"}]})"));
  EXPECT_TRUE(sent);
  co_await sleep_for(50 * ns_per_ms);
  const ConsumerGroupInfo* group = w.broker.clients.consumers("g");
  EXPECT_TRUE(group != nullptr && group->channels.size() == 1);
  if (group == nullptr || group->channels.size() != 1) co_return;
  std::shared_ptr<Connection> connection = group->channels.begin()->second.connection;
  auto two = co_await waiting(w, long_ask("T"));
  EXPECT_EQ(w.broker.pop.polling.waiting(), 2u);
  w.broker.offsets.set_reset("g", "T", 0, 0);  // there is something, and nobody was told
  connection->close();
  w.broker.pop.polling.wake_one("T", "g", 0);
  auto a = co_await two->next(1);
  EXPECT_TRUE(a) << "it waits beside a message";
  if (a) EXPECT_EQ(bodies_of(popped_of(a)), "m0");
  connection.reset();
  co_await one->close();
  co_await two->close();
}
TEST(BrokerPopChange, WhoIsWokenIsGone) {
  simulate({gone_when_it_comes});
}

// Whoever was woken for a message has no room for it, as the client does not take its answers, and then is
// gone: the next one gets it at once, nothing is popped for who is gone, and what he held is given back.
Task<void> no_room_for_it(World& w) {
  for (int i = 0; i < 10; i++) co_await w.send("Large", std::string(90'000, 'x'));
  auto a = co_await w.put_topic("T", "1");
  auto one = co_await waiting(w, long_ask("T"));
  auto two = co_await waiting(w, long_ask("T"));
  w.broker.net_memory.set_limit(1u << 20);
  for (int i = 0; i < 4; i++) {
    std::string frame = w.pull_frame("Large", i * 2);
    bool sent = co_await one->send(std::move(frame));
    EXPECT_TRUE(sent);
  }
  co_await sleep_for(50 * ns_per_ms);
  EXPECT_EQ(w.broker.pop.polling.waiting(), 2u);
  co_await send_some(w, 1);
  a = co_await two->next(1);
  EXPECT_TRUE(a) << "it waits beside a message";
  if (a) EXPECT_EQ(bodies_of(popped_of(a)), "m0");
  EXPECT_EQ(w.broker.pop.polling.waiting(), 0u) << "the other one waits for room";
  co_await one->close();
  co_await sleep_for(50 * ns_per_ms);
  EXPECT_EQ(w.broker.pop.table.outstanding(), 1u);
  EXPECT_EQ(w.broker.net_memory.unsent_bytes(), 0u);
  co_await send_some(w, 1, "T", "0", 1);
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m1") << "nobody has it";
  co_await two->close();
}
TEST(BrokerPopChange, WhoIsWokenHasNoRoom) {
  simulate({no_room_for_it});
}

// What went to a retry topic of the other form before the setting was changed, and what goes there still
// because it was popped from there.
Task<void> form_is_changed(World& w) {
  for (bool v2 : {false, true, false}) {
    w.config.enableRetryTopicV2 = v2;
    co_await send_some(w, 1);
    Popped got = co_await pop(w, with_invisible(1000));
    EXPECT_EQ(bodies_of(got), "m0");
    co_await sleep_for(2 * ns_per_s);
    w.config.enableRetryTopicV2 = !v2;
    got = co_await pop(w, with_invisible(1000));
    EXPECT_EQ(bodies_of(got), "m0") << "from " << (v2 ? "V2" : "V1");
    co_await sleep_for(2 * ns_per_s);
    got = co_await pop(w);
    EXPECT_EQ(bodies_of(got), "m0") << "again";
    for (const PoppedMessage& m : got) co_await ack(w, m.handle);
  }
  EXPECT_EQ(w.broker.pop.table.outstanding(), 0u);
}
TEST(BrokerPopChange, TheFormOfRetryTopics) {
  simulate({form_is_changed});
}

// ---- messages that were popped before
// ----------------------------------------------------------------------

// Who passes on what it has popped may send the handles with it, in a batch as well. They are of other
// messages.
Task<void> passed_on(World& w) {
  auto a = co_await w.put_topic("T", "1");
  std::string body, properties;
  proto::append_property(properties, "POP_CK", "0 1 60000 0 0 b 0 0");
  for (std::string_view text : {"one", "two"})
    proto::append_batch_message(body, 0, as_bytes(text), properties);
  a = co_await w.peer->call(w.batch_frame("T", body));
  EXPECT_EQ(code_of(a), 0) << remark(a);
  // Of a broker that stored it so.
  store::MessageIn m;
  m.topic = "T";
  m.body = as_bytes(std::string_view("three"));
  m.properties = properties;
  auto put = co_await w.store->put(m);
  EXPECT_EQ(put.status, store::PutMessageStatus::PUT_OK);
  Popped got = co_await pop(w, with_invisible(1000));
  EXPECT_EQ(bodies_of(got), "one,two,three");
  for (const PoppedMessage& p : got) co_await ack(w, p.handle);
  EXPECT_EQ(w.broker.pop.table.outstanding(), 1u) << "the third can be acknowledged when it comes again";
  co_await sleep_for(3 * ns_per_s);
  got = co_await pop(w, with_invisible(1000));
  EXPECT_EQ(bodies_of(got), "three");
  for (const PoppedMessage& p : got) co_await ack(w, p.handle);
  EXPECT_EQ(w.broker.pop.table.outstanding(), 0u);
}
TEST(BrokerPopChange, HandlesOfOtherMessages) {
  simulate({passed_on});
}

// ---- damage
// ------------------------------------------------------------------------------------------------

Task<void> six_come_again(World& w) {
  co_await send_some(w, 6);
  Popped got = co_await pop(w, with_invisible(1000));
  EXPECT_EQ(got.size(), 6u);
  co_await sleep_for(2 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("%RETRY%g_T", 0), 6);
}

Task<std::string> all_popped(World& w, PopAsk p) {
  std::string out;
  for (int i = 0; i < 10; i++) {
    const Popped got = co_await pop(w, p);
    for (const PoppedMessage& m : got) {
      out += m.body;
      co_await ack(w, m.handle, p.group);
    }
  }
  co_return out;
}

// The broker lives, and the others come.
Task<void> without_the_damaged(World& w) {
  std::string got = co_await all_popped(w, {});
  EXPECT_EQ(got, "m0m1m3m4m5");
  EXPECT_EQ(committed(w, "%RETRY%g_T"), 6);
  PopAsk p;
  p.group = "h";
  got = co_await all_popped(w, p);
  EXPECT_EQ(got, "m0m1m3m4m5");
  p.group = "i";
  p.order = true;
  got = co_await all_popped(w, p);
  EXPECT_EQ(got, "m0m1m3m4m5");
  EXPECT_EQ(committed(w, "T", "i"), 6);
}

// Puts `bytes` at `place` of each record of m2 in the log: of the topic, and of the retry topics.
void damage_m2(sim::DiskImage& image, size_t place, std::string_view bytes, size_t records) {
  const std::string file = "/store/commitlog/00000000000000000000";
  const std::string log = image.read_file(file).value_or("");
  size_t damaged = 0;
  for (size_t at = 0; at + proto::record_bytes_min < log.size();) {
    auto record = proto::parse_record(as_bytes(std::string_view(log).substr(at)));
    if (!record) break;
    if (as_text(record->body) == "m2") {
      EXPECT_TRUE(image.write_file(file, at + place, bytes));
      damaged++;
    }
    at += record->size;
  }
  EXPECT_EQ(damaged, records);
}

// What is damaged between two lives of the broker; m2 is there `records` times.
void damaged_between(Scenario before, Scenario after, size_t records) {
  using std::literals::operator""sv;
  struct Damage {
    size_t place;
    std::string_view bytes;
  };
  // No size, one beyond the end, one that ends in the next record; a body or an offset that cannot be.
  for (const Damage& d : {Damage{0, "\0\0\0\0"sv}, Damage{0, "\0\1\0\0"sv}, Damage{0, "\0\0\1\100"sv},
                          Damage{84, "\0\1\0\0"sv}, Damage{20, "\200\0\0\0\0\0\0\0"sv}}) {
    sim::DiskImage image;
    {
      sim::SimLoop loop(1);
      sim::SimNetwork network(loop);
      sim::SimDisk disk(loop, {});
      loop.run(run_worlds(network, disk, test_config(), {before}));
      image = disk.visible_image();
    }
    damage_m2(image, d.place, d.bytes, records);
    sim::SimLoop loop(2);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {}, image);
    loop.run(run_worlds(network, disk, test_config(), {after}));
  }
}
TEST(BrokerPopChange, ADamagedMessage) {
  damaged_between(six_come_again, without_the_damaged, 2);
}

PopAsk in_order(int64_t invisible_ms) {
  PopAsk p = with_invisible(invisible_ms);
  p.order = true;
  return p;
}

// The first of those that are popped and not acknowledged is damaged, and one behind it was acknowledged.
Task<void> six_in_order(World& w) {
  co_await send_some(w, 6);
  Popped got = co_await pop(w, in_order(5000));
  EXPECT_EQ(got.size(), 6u);
  if (got.size() != 6) co_return;
  for (size_t i : {0u, 1u, 4u}) co_await ack(w, got[i].handle);
  EXPECT_EQ(committed(w), 2);
}
Task<void> those_behind_the_damaged(World& w) {
  PopAsk p = in_order(60'000);
  p.poll_ms = 20'000;
  auto one = co_await waiting(w, p);
  EXPECT_EQ(w.broker.pop.polling.waiting(), 1u) << "the queue is blocked still";
  auto a = co_await one->next(10);
  EXPECT_TRUE(a) << "who waits gets the rest when the queue is free";
  if (!a) co_return;
  Popped got = popped_of(a);
  EXPECT_EQ(bodies_of(got), "m3,m5") << "without the one that was acknowledged";
  for (const PoppedMessage& m : got) EXPECT_EQ(m.reconsume_times, 1);
  EXPECT_EQ(committed(w), 3);
  for (const PoppedMessage& m : got) co_await ack(w, m.handle);
  EXPECT_EQ(committed(w), 6);
  co_await send_some(w, 1, "T", "0", 6);
  got = co_await pop(w, in_order(1000));
  EXPECT_EQ(bodies_of(got), "m6");
  co_await one->close();
}
TEST(BrokerPopChange, TheFirstOfABatchInOrderIsDamaged) {
  damaged_between(six_in_order, those_behind_the_damaged, 1);
}

// ---- while it reads --------------------------------------------------------------------------------------

std::vector<std::string> handles;

Task<void> popped_in_order(World& w) {
  co_await send_some(w, 4);
  PopAsk p = with_invisible(1000);
  p.order = true;
  Popped got = co_await pop(w, p);
  handles.clear();
  for (const PoppedMessage& m : got) handles.push_back(m.handle);
  EXPECT_EQ(handles.size(), 4u);
}

// After a start the disk is being read for the next pop when the acknowledgements come.
Task<void> acknowledged_while_it_reads(World& w) {
  co_await sleep_for(2 * ns_per_s);
  PopAsk p = with_invisible(1000);
  p.order = true;
  std::string frames = pop_frame(++w.opaque, p, w.broker.wall_ms());
  for (const std::string& h : handles) frames += ack_frame(++w.opaque, "g", "T", h);
  bool sent = co_await w.peer->send(std::move(frames));
  EXPECT_TRUE(sent);
  int acknowledged = 0;
  std::string again;
  for (int i = 0; i < 5; i++) {
    auto a = co_await w.peer->next(5);
    if (a && a->command.ext.value_or("popTime", "") == "")
      acknowledged += code_of(a) == 0 ? 1 : 0;
    else if (code_of(a) == 0)
      again = bodies_of(popped_of(a));
  }
  EXPECT_EQ(acknowledged, 4);
  EXPECT_EQ(again, "") << "acknowledged before the pop was answered";
  EXPECT_EQ(committed(w), 4);
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "");
}
TEST(BrokerPopChange, AcknowledgedInOrderWhileItReads) {
  simulate({popped_in_order, acknowledged_while_it_reads});
}

Task<void> four_are_there(World& w) {
  co_await send_some(w, 4);
  for (const PoppedMessage& m : co_await pop(w)) co_await ack(w, m.handle);
  std::string frame = reset_frame(w, "3");
  auto a = co_await w.peer->call(std::move(frame));
  EXPECT_EQ(code_of(a), 0) << remark(a);
}

Task<void> reset_while_it_reads(World& w) {
  PopAsk p = long_ask("T", 0);
  std::string frames = pop_frame(++w.opaque, p, w.broker.wall_ms());
  frames += reset_frame(w, "1");
  bool sent = co_await w.peer->send(std::move(frames));
  EXPECT_TRUE(sent);
  std::string got;
  for (int i = 0; i < 2; i++) {
    auto a = co_await w.peer->next(5);
    EXPECT_TRUE(a) << "both are answered at once";
    if (a && ext(a, "popTime") != "absent") got = bodies_of(popped_of(a));
  }
  EXPECT_TRUE(got == "m1,m2,m3" || got == "m3") << got << ", from where the group was then";
}
TEST(BrokerPopChange, ResetWhileItReads) {
  simulate({four_are_there, reset_while_it_reads});
}

// What was acknowledged out of order stays so for those who pop without order.
Task<void> popped_and_acknowledged_in_order(World& w) {
  co_await send_some(w, 6);
  PopAsk p = with_invisible(1000);
  p.order = true;
  p.most = 5;
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m0,m1,m2,m3,m4");
  for (size_t i : {1u, 2u, 4u}) {
    if (i >= got.size()) co_return;
    int32_t code = co_await ack(w, got[i].handle);
    EXPECT_EQ(code, 0);
  }
  co_await sleep_for(1100 * ns_per_ms);
}
Task<void> popped_without_order(World& w) {
  co_await popped_and_acknowledged_in_order(w);
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m0,m3,m5");
  for (const PoppedMessage& m : got) {
    EXPECT_EQ(committed(w), m.body == "m0" ? 0 : m.body == "m3" ? 3 : 5);
    int32_t code = co_await ack(w, m.handle);
    EXPECT_EQ(code, 0);
  }
  EXPECT_EQ(committed(w), 6);
}
Task<void> one_without_order(World& w) {
  PopAsk p;
  for (const char* wanted : {"m0", "m3"}) {
    p.most = 1;
    Popped got = co_await pop(w, p);
    if (got.empty()) got = co_await pop(w, p);  // it has seen only what was acknowledged
    EXPECT_EQ(bodies_of(got), wanted);
  }
}
Task<void> the_rest_without_order(World& w) {
  Popped got = co_await pop(w);
  EXPECT_EQ(bodies_of(got), "m5");
  EXPECT_EQ(committed(w), 0) << "m0 is popped";
}
TEST(BrokerPopChange, FromInOrderToWithoutOrder) {
  simulate({popped_without_order});
  simulate({popped_and_acknowledged_in_order, one_without_order, the_rest_without_order});
}

// A queue that has lost its end, as a start finds it after a loss of power: acknowledgements before the end
// stay.
Task<void> popped_in_order_from_a_cut_queue(World& w) {
  co_await popped_and_acknowledged_in_order(w);
  EXPECT_TRUE(w.broker.pop.queue_ends(PopAsk().group, "T", 0, 4));
  PopAsk p = long_ask("T");
  p.order = true;
  Popped got = co_await pop(w, p);
  EXPECT_EQ(bodies_of(got), "m0,m3,m4,m5");
}
TEST(BrokerPopChange, ACutQueueKeepsWhatWasAcknowledgedInOrder) {
  simulate({popped_in_order_from_a_cut_queue});
}

// A start takes a group that it does not know for one that was deleted, and with it what was popped for it.
Task<void> a_group_is_on_disk_before_its_pops(World& w) {
  auto sent = co_await w.send("T", "m0");
  EXPECT_EQ(code_of(sent), 0) << remark(sent);
  auto& plan = dynamic_cast<sim::SimDisk&>(w.disk).plan();
  plan.slow_ns = ns_per_s;
  plan.faults = {{sim::FaultKind::slow, sim::OpKind::write, "/subscriptionGroup.json.log", 1, 1'000'000}};
  PopAsk p = long_ask("T");
  p.group = "new";
  auto peer = co_await waiting(w, p);
  EXPECT_NE(w.broker.groups.find("new"), nullptr);
  EXPECT_TRUE(w.broker.pop.table.empty());
  auto a = co_await peer->next(10);
  EXPECT_TRUE(a);
  if (a) EXPECT_EQ(bodies_of(popped_of(a)), "m0");
  EXPECT_FALSE(w.broker.pop.table.empty());
  co_await peer->close();
}
TEST(BrokerPopChange, AGroupIsOnDiskBeforeItsPops) {
  simulate({a_group_is_on_disk_before_its_pops});
}

}  // namespace
}  // namespace rmq::broker

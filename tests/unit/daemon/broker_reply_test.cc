// Request and reply: the reply goes to the client that asked, and is stored; who replied is told what became
// of it.
#include "broker_world.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

constexpr const char* reply_topic = "DefaultCluster_REPLY_TOPIC";

std::string producer_heartbeat(std::string_view client, std::string_view group) {
  return R"({"clientID":")" + std::string(client) + R"(","producerDataSet":[{"groupName":")" +
         std::string(group) + R"("}],"consumerDataSet":[]})";
}

std::string reply_properties(std::string_view client) {
  std::string out;
  proto::append_property(out, "CORRELATION_ID", "c1");
  proto::append_property(out, "MSG_TYPE", "reply");
  if (!client.empty()) proto::append_property(out, "REPLY_TO_CLIENT", client);
  return out;
}

std::string reply_frame(World& w, std::string_view client, std::string_view body,
                        std::string_view flags = "0") {
  return w.request(RequestCode::SEND_REPLY_MESSAGE_V2,
                   {{"a", "server"},
                    {"b", reply_topic},
                    {"c", "TBW102"},
                    {"d", "4"},
                    {"e", "0"},
                    {"f", flags},
                    {"g", "7"},
                    {"h", "3"},
                    {"i", reply_properties(client)},
                    {"j", "0"}},
                   body);
}

std::string response_frame(const Answer& to, ResponseCode code) {
  std::string out;
  proto::FrameWriter writer(out, proto::response_to(to->command, code, "said so"));
  writer.finish(0);
  return out;
}

// A client with a connection of its own that has told of its producers.
Task<std::unique_ptr<Peer>> client(World& w, std::string id, std::string group) {
  auto peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto a = co_await peer->call(w.request(RequestCode::HEART_BEAT, {}, producer_heartbeat(id, group)));
  EXPECT_EQ(code_of(a), 0);
  co_return peer;
}

Task<void> replies(World& w) {
  auto asker = co_await client(w, "asker", "pg");
  auto other = co_await client(w, "other", "pg");
  co_await w.peer->send(reply_frame(w, "asker", "the answer", "1"));
  auto push = co_await asker->next();
  EXPECT_EQ(code_of(push), 326);
  if (!push) co_return;
  EXPECT_FALSE(push->command.is_response());
  EXPECT_EQ(body_text(push), "the answer");
  EXPECT_EQ(ext(push, "topic"), reply_topic);
  EXPECT_EQ(ext(push, "producerGroup"), "server");
  EXPECT_EQ(ext(push, "sysFlag"), "1") << "a compressed body is told as such";
  EXPECT_EQ(ext(push, "bornTimestamp"), "7");
  EXPECT_EQ(ext(push, "flag"), "3");
  EXPECT_EQ(ext(push, "storeHost"), "10.0.0.1:10911");
  EXPECT_TRUE(ext(push, "bornHost").starts_with("10.0.0.2:")) << ext(push, "bornHost");
  const std::string properties = ext(push, "properties");
  EXPECT_EQ(proto::find_property(properties, "CORRELATION_ID"), "c1");
  EXPECT_TRUE(proto::find_property(properties, "PUSH_REPLY_TIME"));
  EXPECT_EQ(w.store->max_offset(reply_topic, 0), 0) << "it waits for the client's word";
  co_await asker->send(response_frame(push, ResponseCode::SUCCESS));
  auto a = co_await w.peer->next();
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(ext(a, "msgId").size(), 32u) << "it is stored";
  EXPECT_EQ(ext(a, "queueOffset"), "0");
  EXPECT_EQ(ext(a, "MSG_REGION"), "DefaultRegion");
  EXPECT_EQ(ext(a, "TRACE_ON"), "true");
  auto stored = co_await w.pull(reply_topic, 0);
  EXPECT_EQ(bodies(stored), "the answer");
  co_await asker->close();
  co_await other->close();
}
TEST(BrokerReply, GoesToTheClientThatAsked) {
  simulate({replies});
}

Task<void> not_taken(World& w) {
  auto a = co_await w.peer->call(reply_frame(w, "nobody", "x"));
  EXPECT_EQ(code_of(a), 1);
  EXPECT_EQ(remark(a), "push reply message fail, channel of <nobody> not found.");
  a = co_await w.peer->call(reply_frame(w, "", "x"));
  EXPECT_EQ(remark(a), "reply message properties[REPLY_TO_CLIENT] is null");
  EXPECT_EQ(w.store->max_offset(reply_topic, 0), 2) << "stored all the same";

  auto asker = co_await client(w, "asker", "pg");
  co_await w.peer->send(reply_frame(w, "asker", "x"));
  auto push = co_await asker->next();
  if (push) co_await asker->send(response_frame(push, ResponseCode::SYSTEM_ERROR));
  a = co_await w.peer->next();
  EXPECT_EQ(code_of(a), 1);
  EXPECT_TRUE(remark(a).starts_with("push reply message to asker")) << remark(a);

  co_await w.peer->send(reply_frame(w, "asker", "x"));
  push = co_await asker->next();
  co_await asker->close();
  a = co_await w.peer->next();
  EXPECT_EQ(code_of(a), 1) << "the client went away with it";
  a = co_await w.peer->call(reply_frame(w, "asker", "x"));
  EXPECT_EQ(remark(a), "push reply message fail, channel of <asker> not found.");
}
TEST(BrokerReply, WhoRepliedIsToldWhenItIsNotTaken) {
  simulate({not_taken});
}

Task<void> leaves(World& w) {
  auto asker = co_await client(w, "asker", "one");
  auto a = co_await asker->call(w.request(RequestCode::HEART_BEAT, {}, producer_heartbeat("asker", "two")));
  a = co_await asker->call(
      w.request(RequestCode::UNREGISTER_CLIENT, {{"clientID", "asker"}, {"producerGroup", "one"}}));
  EXPECT_EQ(code_of(a), 0);
  EXPECT_NE(w.broker.clients.producer_connection("asker"), nullptr) << "it has a producer left";
  // The same client by a new connection, and then the old one goes.
  auto again = co_await client(w, "asker", "two");
  co_await asker->close();
  co_await sleep_for(ns_per_s);
  EXPECT_NE(w.broker.clients.producer_connection("asker"), nullptr) << "the new one counts";
  a = co_await again->call(
      w.request(RequestCode::UNREGISTER_CLIENT, {{"clientID", "asker"}, {"producerGroup", "two"}}));
  EXPECT_EQ(w.broker.clients.producer_connection("asker"), nullptr);
  co_await again->close();
}
TEST(BrokerReply, AClientIsKnownAsLongAsItHasProducers) {
  simulate({leaves});
}

Task<void> unstored(World& w) {
  auto asker = co_await client(w, "asker", "pg");
  co_await w.peer->send(reply_frame(w, "asker", "x"));
  auto push = co_await asker->next();
  if (push) co_await asker->send(response_frame(push, ResponseCode::SUCCESS));
  auto a = co_await w.peer->next();
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(ext(a, "msgId"), "0");
  EXPECT_EQ(w.store->max_offset(reply_topic, 0), 0);
  co_await asker->close();
}
TEST(BrokerReply, NeedNotBeStored) {
  BrokerConfig c = test_config();
  c.storeReplyMessageEnable = false;
  simulate({unstored}, c);
}

}  // namespace
}  // namespace rmq::broker

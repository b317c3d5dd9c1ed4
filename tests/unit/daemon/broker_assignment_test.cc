// Shares of queues that the broker gives to consumers, by pull and by POP, and the mode that operators set.
#include "broker_world.h"
#include "daemon/broker/pop/request_modes.h"

namespace rmq::broker {
namespace {

std::string heartbeat(std::string_view client) {
  proto::HeartbeatData h;
  h.client_id = client;
  proto::ConsumerData c;
  c.group_name = "g";
  auto s = proto::SubscriptionData::build("T", "*");
  c.subscription_data_set = {*s};
  h.consumers = {c};
  return h.to_json();
}
std::string question(std::string_view client, std::string_view strategy = "AVG",
                     std::string_view model = "CLUSTERING") {
  return R"({"topic":"T","consumerGroup":"g","clientId":")" + std::string(client) + R"(","strategyName":")" +
         std::string(strategy) + R"(","messageModel":")" + std::string(model) + "\"}";
}
std::string assigned(const Answer& a) {  // "PULL 0,1"
  std::string out;
  std::string_view text = a->frame.body_text();
  if (text.find("messageQueueAssignments") == std::string_view::npos) return "none";
  for (size_t at = 0; (at = text.find("\"queueId\":", at)) != std::string_view::npos; at += 10)
    out += (out.empty() ? "" : ",") + std::to_string(std::atoi(text.data() + at + 10));
  return (text.find("POP") != std::string_view::npos ? "POP " : "PULL ") + out;
}

Task<void> shares(World& w) {
  auto a = co_await w.send("T", "x");
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c1"));
  EXPECT_EQ(assigned(a), "none") << "nobody is there";
  auto one = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto two = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await one->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c1")));
  co_await two->send(w.request(RequestCode::HEART_BEAT, {}, heartbeat("c2")));
  co_await sleep_for(ns_per_s);
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c1"));
  EXPECT_EQ(assigned(a), "PULL 0,1");
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c2"));
  EXPECT_EQ(assigned(a), "PULL 2,3");
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c2", "AVG_BY_CIRCLE"));
  EXPECT_EQ(assigned(a), "PULL 1,3");
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c3"));
  EXPECT_EQ(assigned(a), "PULL ") << "it is no member: it gets nothing";
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c1", "NO_SUCH"));
  EXPECT_EQ(assigned(a), "none");
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c1", "AVG", "BROADCASTING"));
  EXPECT_EQ(assigned(a), "PULL 0,1,2,3");
  std::string pop_mode = R"({"topic":"T","consumerGroup":"g","mode":"POP","popShareQueueNum":0})";
  a = co_await w.call(RequestCode::SET_MESSAGE_REQUEST_MODE, {}, pop_mode);
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.call(RequestCode::QUERY_ASSIGNMENT, {}, question("c1"));
  EXPECT_EQ(assigned(a), "POP -1");
  for (auto& [body, code] : {std::pair{R"({"topic":"%RETRY%g","consumerGroup":"g","mode":"POP"})", 16},
                             {R"({"topic":"X","consumerGroup":"g","mode":"POP"})", 17},
                             {R"({"topic":"T","consumerGroup":"no","mode":"POP"})", 26},
                             {R"({"topic":"T","consumerGroup":"g","mode":"SHOUT"})", 29}}) {
    a = co_await w.call(RequestCode::SET_MESSAGE_REQUEST_MODE, {}, body);
    EXPECT_EQ(code_of(a), code) << body << remark(a);
  }
  co_await one->close();
  co_await two->close();
}
Task<void> modes_are_kept(World& w) {
  auto a = co_await w.call(RequestCode::GET_ALL_MESSAGE_REQUEST_MODE, {});
  EXPECT_EQ(body_text(a),
            R"({"messageRequestModeMap":{"T":{"g":{"consumerGroup":"g","mode":"POP","popShareQueueNum":0,)"
            R"("topic":"T"}}}})");
}
TEST(BrokerAssignment, Shares) {
  simulate({shares, modes_are_kept});
}

TEST(BrokerAssignment, Strategies) {
  std::vector<proto::MessageQueue> all;
  for (int32_t q = 0; q < 7; q++) all.push_back({"T", q < 4 ? "a" : "b", q < 4 ? q : q - 4});
  auto text = [](const std::optional<std::vector<proto::MessageQueue>>& queues) {
    std::string out;
    for (const auto& q : *queues)
      out += (out.empty() ? "" : " ") + q.broker_name + std::to_string(q.queue_id);
    return out;
  };
  const std::vector<std::string> three = {"x", "y", "z"};
  EXPECT_EQ(text(allocate_queues("AVG", "x", all, three)), "a0 a1 a2");
  EXPECT_EQ(text(allocate_queues("AVG", "y", all, three)), "a3 b0");
  EXPECT_EQ(text(allocate_queues("AVG", "z", all, three)), "b1 b2");
  EXPECT_EQ(text(allocate_queues("AVG_BY_CIRCLE", "x", all, three)), "a0 a3 b2");
  EXPECT_EQ(text(allocate_for_pop("AVG", "x", all, three, -1)), "a-1 b-1");
  EXPECT_EQ(text(allocate_for_pop("AVG", "z", all, three, 1)), "b1 b2 a0 a1 a2");
  EXPECT_EQ(text(allocate_for_pop("AVG", "z", all, three, 2)), "a-1 b-1") << "nearly all of them";
  std::vector<std::string> many;
  for (char c = 'a'; c <= 'j'; c++) many.emplace_back(1, c);
  EXPECT_EQ(text(allocate_for_pop("AVG", "i", all, many, 3)), "a1") << "each gets one";
  EXPECT_EQ(text(allocate_queues("AVG", "i", all, many)), "") << "more clients than queues";
}

}  // namespace
}  // namespace rmq::broker

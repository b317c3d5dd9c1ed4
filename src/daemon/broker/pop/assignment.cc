// QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE and GET_ALL_MESSAGE_REQUEST_MODE (remoting.md 12.9): the broker
// decides which queues a client takes messages from, and whether by pull or by POP.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/handlers.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::MessageQueue;
using proto::ResponseCode;

namespace {

proto::SetMessageRequestModeRequestBody mode_of(const Broker& b, std::string_view topic,
                                                std::string_view group) {
  if (const auto* set = b.request_modes.find(topic, group)) return *set;
  proto::SetMessageRequestModeRequestBody mode;
  mode.mode = proto::is_retry_topic(topic) ? "PULL" : b.config.defaultMessageRequestMode;
  if (mode.mode == "POP") mode.pop_share_queue_num = static_cast<int32_t>(b.config.defaultPopShareQueueNum);
  return mode;
}

// Nothing: the client keeps what it has.
std::optional<std::vector<MessageQueue>> share_of(const Broker& b,
                                                  const proto::QueryAssignmentRequestBody& asked,
                                                  std::vector<MessageQueue> all,
                                                  const proto::SetMessageRequestModeRequestBody& mode) {
  if (asked.message_model == proto::MessageModel::BROADCASTING || !b.config.serverLoadBalancerEnable)
    return all;
  const ConsumerGroupInfo* group = b.clients.consumers(asked.consumer_group);
  if (group == nullptr) return std::nullopt;
  std::vector<std::string> clients = group->client_ids();
  clients.erase(std::unique(clients.begin(), clients.end()), clients.end());
  if (mode.mode != "POP") return allocate_queues(asked.strategy_name, asked.client_id, all, clients);
  return allocate_for_pop(asked.strategy_name, asked.client_id, all, clients, mode.pop_share_queue_num);
}

}  // namespace

Task<void> query_assignment(Broker& b, Request& r, proto::EmptyHeader) {
  auto asked = proto::QueryAssignmentRequestBody::parse(r.frame().body_text());
  if (!asked) co_return r.reply(ResponseCode::SYSTEM_ERROR, "the body cannot be read");
  proto::QueryAssignmentResponseBody answer;
  auto all = co_await b.routes.readable_queues(asked->topic);
  const proto::SetMessageRequestModeRequestBody mode = mode_of(b, asked->topic, asked->consumer_group);
  std::optional<std::vector<MessageQueue>> share;
  if (all) share = share_of(b, *asked, std::move(*all), mode);
  if (share) {
    answer.assignments.emplace();
    for (MessageQueue& q : *share) answer.assignments->push_back({std::move(q), mode.mode});
  }
  r.reply(ResponseCode::SUCCESS, {}, answer.to_json());
}

Task<void> set_message_request_mode(Broker& b, Request& r, proto::EmptyHeader) {
  auto mode = proto::SetMessageRequestModeRequestBody::parse(r.frame().body_text());
  if (!mode) co_return r.reply(ResponseCode::SYSTEM_ERROR, "the body cannot be read");
  if (mode->mode != "PULL" && mode->mode != "POP")
    co_return r.reply(ResponseCode::INVALID_PARAMETER,
                      fmt::format("mode must be PULL or POP, not {}", mode->mode));
  if (proto::is_retry_topic(mode->topic))
    co_return r.reply(ResponseCode::NO_PERMISSION, "retry topic is not allowed to set mode");
  if (b.topics.find(mode->topic) == nullptr)
    co_return r.reply(ResponseCode::TOPIC_NOT_EXIST, fmt::format("topic[{}] not exist", mode->topic));
  if (b.groups.find(mode->consumer_group) == nullptr)
    co_return r.reply(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist");
  b.request_modes.set(std::move(*mode));
  auto saved = co_await b.request_modes.save();
  if (!saved)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, "the mode cannot be kept: " + to_string(saved.error()));
  r.reply(ResponseCode::SUCCESS);
}

void get_all_message_request_mode(Broker& b, Request& r, proto::EmptyHeader) {
  r.reply(ResponseCode::SUCCESS, {}, b.request_modes.to_json(proto::JsonStyle::fastjson));
}

}  // namespace rmq::broker

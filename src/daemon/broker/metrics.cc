#include "daemon/broker/metrics.h"

#include <algorithm>

#include "base/time.h"
#include "daemon/connection.h"

namespace rmq::broker {

using proto::RequestCode;

std::string_view name_of(MessageType t) {
  switch (t) {
    case MessageType::normal:
      return "normal";
    case MessageType::fifo:
      return "fifo";
    case MessageType::delay:
      return "delay";
    case MessageType::transaction:
      return "transaction";
  }
  return "normal";
}

std::string_view name_of(Processor p) {
  constexpr std::array<std::string_view, processors> names{
      "send",          "async_put",        "pull",      "ack",
      "query_message", "client_manager",   "heartbeat", "lite_pull",
      "transaction",   "consumer_manager", "admin",     "reply"};
  return names[static_cast<size_t>(p)];
}

Processor processor_of(int32_t request_code) {
  switch (static_cast<RequestCode>(request_code)) {
    case RequestCode::SEND_MESSAGE:
    case RequestCode::SEND_MESSAGE_V2:
    case RequestCode::SEND_BATCH_MESSAGE:
    case RequestCode::CONSUMER_SEND_MSG_BACK:
    case RequestCode::RECALL_MESSAGE:
      return Processor::send;
    case RequestCode::PULL_MESSAGE:
    case RequestCode::POP_MESSAGE:
    case RequestCode::NOTIFICATION:
    case RequestCode::POLLING_INFO:
      return Processor::pull;
    case RequestCode::LITE_PULL_MESSAGE:
      return Processor::lite_pull;
    case RequestCode::ACK_MESSAGE:
    case RequestCode::BATCH_ACK_MESSAGE:
    case RequestCode::CHANGE_MESSAGE_INVISIBLETIME:
      return Processor::ack;
    case RequestCode::QUERY_MESSAGE:
    case RequestCode::VIEW_MESSAGE_BY_ID:
      return Processor::query_message;
    case RequestCode::HEART_BEAT:
      return Processor::heartbeat;
    case RequestCode::UNREGISTER_CLIENT:
    case RequestCode::CHECK_CLIENT_CONFIG:
      return Processor::client_manager;
    case RequestCode::GET_CONSUMER_LIST_BY_GROUP:
    case RequestCode::UPDATE_CONSUMER_OFFSET:
    case RequestCode::QUERY_CONSUMER_OFFSET:
      return Processor::consumer_manager;
    case RequestCode::END_TRANSACTION:
      return Processor::transaction;
    case RequestCode::SEND_REPLY_MESSAGE:
    case RequestCode::SEND_REPLY_MESSAGE_V2:
      return Processor::reply;
    default:
      return Processor::admin;
  }
}

BrokerMetrics::OfTopic& BrokerMetrics::of(std::string_view topic) {
  if (last_topic_ == nullptr || last_topic_->first != topic) {
    auto it = topics_.find(topic);
    if (it == topics_.end()) it = topics_.emplace(std::string(topic), OfTopic{}).first;
    last_topic_ = &*it;
  }
  return last_topic_->second;
}

BrokerMetrics::OfPair& BrokerMetrics::of(std::string_view topic, std::string_view group) {
  key_.assign(topic);
  (key_ += '@') += group;
  if (last_pair_ == nullptr || last_pair_->first != key_) {
    auto [it, is_new] = pairs_.try_emplace(key_);
    if (is_new) index_.add(topic_of(key_), group_of(key_));
    last_pair_ = &*it;
  }
  return last_pair_->second;
}

void BrokerMetrics::message_in(std::string_view topic, MessageType type, uint64_t messages, uint64_t bytes) {
  if (messages == 0) return;
  OfTopic& t = of(topic);
  const auto i = static_cast<size_t>(type);
  t.in[i].messages += messages;
  t.in[i].bytes += bytes;
  t.sizes[i].add(size_bounds, static_cast<double>(bytes / messages));
}

void BrokerMetrics::messages_out(std::string_view topic, std::string_view group, uint64_t messages,
                                 uint64_t bytes) {
  Traffic& t = of(topic, group).pulled;
  t.messages += messages;
  t.bytes += bytes;
}

void BrokerMetrics::popped(std::string_view topic, std::string_view group, bool retry, uint64_t messages,
                           uint64_t bytes) {
  Traffic& t = of(topic, group).popped[retry ? 1 : 0];
  t.messages += messages;
  t.bytes += bytes;
}

void BrokerMetrics::dead_letter(std::string_view topic, std::string_view group) {
  of(topic, group).dead_letters++;
}

void BrokerMetrics::revived(std::string_view topic, std::string_view group, uint64_t messages) {
  of(topic, group).revived += messages;
}

void BrokerMetrics::transaction_ended(std::string_view topic, bool commit, int64_t since_birth_ms) {
  OfTopic& t = of(topic);
  if (!commit) {
    t.rollbacks++;
    return;
  }
  t.commits++;
  t.finish.add(finish_bounds_s, static_cast<double>(std::max<int64_t>(since_birth_ms, 0) / 1000));
}

void BrokerMetrics::timer_taken(std::string_view topic, int64_t delay_ms) {
  OfTopic& t = of(topic);
  t.timers_taken++;
  t.delays.add(delay_bounds_s, static_cast<double>(std::max<int64_t>(delay_ms, 0) / 1000));
}

void BrokerMetrics::timer_delivered(std::string_view topic) {
  of(topic).timers_delivered++;
}

void BrokerMetrics::created(const Request& r, proto::ResponseCode code, double ms) {
  const size_t success = code == proto::ResponseCode::SUCCESS ? 1 : 0;
  if (r.command.code == static_cast<int32_t>(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP))
    return creation_.group[success].add(create_bounds_ms, ms);
  const bool system = proto::is_system_topic(r.command.ext.value_or("topic", ""));
  creation_.topic[success][system ? 1 : 0].add(create_bounds_ms, ms);
}

BrokerMetrics::Rpc& BrokerMetrics::rpc_of(const Request& r, int32_t request_code, int32_t response_code) {
  const bool unwritten = !r.is_oneway() && !r.connection().is_open();
  const uint64_t flags = (r.was_held() ? 1u : 0u) | (r.is_oneway() ? 2u : 0u) | (unwritten ? 4u : 0u);
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(request_code)) << 32 |
                       static_cast<uint64_t>(static_cast<uint32_t>(response_code)) << 3 | flags;
  if (last_rpc_ != nullptr && last_rpc_key_ == key) return *last_rpc_;
  auto it = rpcs_.find(key);
  if (it == rpcs_.end()) {
    // Codes that have no name share one series: a peer can make up any number of them.
    const bool known = !proto::name_of(static_cast<RequestCode>(request_code)).empty();
    if (!known && request_code != unknown_code) return rpc_of(r, unknown_code, response_code);
    it = rpcs_.emplace(key, Rpc{request_code, response_code, r.was_held(), r.is_oneway(), unwritten, {}})
             .first;
  }
  last_rpc_ = &it->second;
  last_rpc_key_ = key;
  return *last_rpc_;
}

void BrokerMetrics::answered(const Request& r, proto::ResponseCode code, int64_t now_ns) {
  const double ms = static_cast<double>((now_ns - r.begun_ns) / ns_per_ms);
  rpc_of(r, r.command.code, static_cast<int32_t>(code)).ms.add(rpc_bounds_ms, ms);
  const bool creates =
      r.command.code == static_cast<int32_t>(RequestCode::UPDATE_AND_CREATE_TOPIC) ||
      r.command.code == static_cast<int32_t>(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP);
  if (creates) created(r, code, ms);
}

void BrokerMetrics::forget_pair(std::string_view topic, std::string_view group) {
  key_.assign(topic);
  (key_ += '@') += group;
  looked_at_++;
  pairs_.erase(key_);
  index_.remove(topic, group);
}

void BrokerMetrics::forget_topic(std::string_view topic) {
  if (auto it = topics_.find(topic); it != topics_.end()) topics_.erase(it);
  looked_at_++;
  for (const std::string& group : index_.groups_of(topic)) forget_pair(topic, group);
  last_topic_ = nullptr;
  last_pair_ = nullptr;
}

void BrokerMetrics::forget_group(std::string_view group) {
  for (const std::string& topic : index_.topics_of(group)) forget_pair(topic, group);
  last_pair_ = nullptr;
}

}  // namespace rmq::broker

#include "ctl/queue_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/headers_offset.h"
#include "proto/headers_pull.h"

namespace rmq::ctl {

namespace {

constexpr int32_t messages_max = 32;

template <class C>
Outcome<int64_t> offset_of(Channel& broker, const typename C::Request& h, const char* what) {
  TRY_VAR(reply, broker.ask<C>(h));
  auto answer = C::decode_response(reply.command);
  if (!answer)
    return fail(Exit::bad_input, fmt::format("{}: malformed answer to {}: {}", broker.peer().to_string(),
                                             what, proto::remark_of(answer.error())));
  return answer->offset;
}

}  // namespace

Outcome<QueueScan> QueueScan::open(Context& c, const BrokerNode& broker, std::string topic, int32_t queue_id,
                                   int64_t from) {
  TRY_VAR(channel, c.broker_at(broker.address, broker.name));
  QueueScan scan(*channel, broker.name, std::move(topic), queue_id);
  proto::GetMinOffsetRequestHeader min;
  min.topic = scan.topic_;
  min.queue_id = queue_id;
  proto::GetMaxOffsetRequestHeader max;
  max.topic = scan.topic_;
  max.queue_id = queue_id;
  TRY_VAR(first, offset_of<proto::GetMinOffset>(*channel, min, "GET_MIN_OFFSET"));
  TRY_VAR(end, offset_of<proto::GetMaxOffset>(*channel, max, "GET_MAX_OFFSET"));
  scan.queue_begin_ = std::max(first, int64_t{0});
  scan.queue_end_ = end;
  scan.begin_ = scan.at_ = std::max({from, first, int64_t{0}});
  scan.end_ = std::max(end, scan.begin_);
  return scan;
}

Outcome<std::optional<QueueScan::Item>> QueueScan::next() {
  while (buffer_.empty()) {
    if (at_ >= end_) return std::nullopt;
    TRY(pull());
  }
  Item item = std::move(buffer_.front());
  buffer_.pop_front();
  return item;
}

Outcome<void> QueueScan::pull() {
  using enum proto::ResponseCode;
  proto::PullMessageRequestHeader h;
  h.consumer_group = proto::names::TOOLS_CONSUMER;
  h.topic = topic_;
  h.queue_id = queue_id_;
  h.queue_offset = at_;
  h.max_msg_nums = messages_max;
  h.sys_flag = proto::pull_sys_flag::subscription;
  h.subscription = "*";
  h.expression_type = "TAG";
  TRY_VAR(reply, channel_->call<proto::PullMessage>(h));
  proto::ResponseCode code = reply.code();
  if (code != SUCCESS && code != PULL_NOT_FOUND && code != PULL_RETRY_IMMEDIATELY &&
      code != PULL_OFFSET_MOVED)
    return channel_->refusal(reply);
  auto answer = proto::PullMessage::decode_response(reply.command);
  if (!answer)
    return fail(Exit::bad_input, fmt::format("{}: malformed answer to a pull: {}",
                                             channel_->peer().to_string(), proto::remark_of(answer.error())));
  if (code == PULL_NOT_FOUND || answer->next_begin_offset <= at_) {
    at_ = end_;  // what is missing is gone
    return {};
  }
  at_ = answer->next_begin_offset;
  auto owner = std::make_shared<Reply>(std::move(reply));
  TRY_VAR(messages, parse_messages(owner->frame.body(), broker_));
  for (Message& m : messages)
    if (m.record.queue_offset < end_) buffer_.push_back({std::move(m), owner});
  return {};
}

Outcome<int64_t> committed_offset(Channel& broker, std::string_view group, std::string_view topic,
                                  int32_t queue_id, int64_t otherwise) {
  proto::QueryConsumerOffsetRequestHeader h;
  h.consumer_group = group;
  h.topic = topic;
  h.queue_id = queue_id;
  h.set_zero_if_not_found = false;
  TRY_VAR(reply, broker.call<proto::QueryConsumerOffset>(h));
  if (reply.code() == proto::ResponseCode::QUERY_NOT_FOUND) return otherwise;
  if (!reply.ok()) return broker.refusal(reply);
  auto answer = proto::QueryConsumerOffset::decode_response(reply.command);
  if (!answer)
    return fail(Exit::bad_input, fmt::format("{}: malformed answer to QUERY_CONSUMER_OFFSET: {}",
                                             broker.peer().to_string(), proto::remark_of(answer.error())));
  return answer->offset;
}

}  // namespace rmq::ctl

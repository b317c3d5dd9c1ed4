// SEND_REPLY_MESSAGE, SEND_REPLY_MESSAGE_V2: the answer to a request that a producer sent as a message
// (Java's producer.request()). The message that asked carries the client id of its producer in
// REPLY_TO_CLIENT; the reply brings it back, and is pushed to that client (PUSH_REPLY_MESSAGE_TO_CLIENT). Who
// replied is told whether that client took it; the reply is stored as well (storeReplyMessageEnable), for
// whoever looks later.
#include <fmt/format.h>

#include "daemon/broker/handlers.h"
#include "daemon/broker/send_message.h"
#include "proto/codes.h"
#include "proto/headers_push.h"
#include "proto/properties.h"

namespace rmq::broker {

using proto::ResponseCode;
namespace prop = proto::prop;

namespace {

constexpr int64_t push_timeout_ns = 10 * ns_per_s;

std::string push_frame(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, int32_t opaque) {
  std::string properties(h.properties.value_or(std::string_view{}));
  proto::set_property(properties, prop::PUSH_REPLY_TIME, std::to_string(b.wall_ms()));
  proto::ReplyMessageRequestHeader push;
  push.producer_group = h.producer_group;
  push.topic = h.topic;
  push.default_topic = h.default_topic;
  push.default_topic_queue_nums = h.default_topic_queue_nums;
  push.queue_id = h.queue_id;
  push.sys_flag = h.sys_flag;
  push.born_timestamp = h.born_timestamp;
  push.flag = h.flag;
  push.properties = properties;
  push.reconsume_times = h.reconsume_times;
  push.unit_mode = h.unit_mode;
  push.born_host = r.connection().peer_text();
  push.store_host = b.address_text();
  push.store_timestamp = b.wall_ms();
  std::string frame;
  proto::PushReplyMessageToClient::append_request(frame, opaque, push, r.frame().body_text());
  return frame;
}

// Resolves when the client that asked has the reply, or will not: why, in RocketMQ's words; empty: it has it.
Task<std::string> push_reply(Broker& b, Request& r, const proto::SendMessageRequestHeader& h) {
  auto client_id = proto::find_property(h.properties.value_or(std::string_view{}), prop::REPLY_TO_CLIENT);
  if (!client_id) co_return fmt::format("reply message properties[{}] is null", prop::REPLY_TO_CLIENT);
  std::shared_ptr<Connection> client = b.clients.producer_connection(*client_id);
  if (!client || !client->is_open())
    co_return fmt::format("push reply message fail, channel of <{}> not found.", *client_id);
  const int32_t opaque = client->next_opaque();
  std::string frame = push_frame(b, r, h, opaque);
  auto answer = co_await client->call(std::move(frame), opaque, b.now_ns() + push_timeout_ns);
  if (!answer)
    co_return fmt::format("push reply message to {}fail. {}", *client_id, to_string(answer.error()));
  if ((*answer)->command.response_code() != ResponseCode::SUCCESS)
    co_return fmt::format("push reply message to {}fail. {}", *client_id, (*answer)->command.remark);
  co_return std::string{};
}

Task<store::PutMessageResult> store_reply(Broker& b, Request& r, const proto::SendMessageRequestHeader& h,
                                          int32_t queue_id) {
  std::string text;
  SendProperties p = store_properties(b, h.properties.value_or(std::string_view{}), text);
  store::MessageIn m = message_of(b, r, h, queue_id);
  m.body = r.body();
  m.properties = text;
  m.tags_code = p.tags_code;
  store::PutMessageResult put{store::PutMessageStatus::MESSAGE_ILLEGAL};
  if (!m.body.empty()) put = co_await b.store.put(m, p.wait);
  if (is_stored(put)) b.metrics.message_in(h.topic, p.type(), 1, static_cast<uint64_t>(put.total_bytes));
  co_return put;
}

}  // namespace

Task<void> send_reply_message(Broker& b, Request& r, proto::SendMessageRequestHeader h) {
  int32_t queue_id = 0;
  bool good = co_await check_send(b, r, h, SendOf::reply, &queue_id);
  if (!good) co_return;
  const std::string not_pushed = co_await push_reply(b, r, h);
  proto::SendMessageResponseHeader out;
  out.msg_id = "0";  // when nothing is stored
  out.queue_id = queue_id;
  out.msg_region = b.config.regionId;
  out.trace_on = b.config.traceOn ? "true" : "false";
  char id[proto::offset_id_text_v6];
  if (b.config.storeReplyMessageEnable) {
    store::PutMessageResult put = co_await store_reply(b, r, h, queue_id);
    if (is_stored(put)) {
      b.stats.now.put_messages++;
      out.msg_id = {id, proto::format_offset_id(b.store_id_host, put.physical_offset, id)};
      out.queue_offset = put.queue_offset;
    } else {
      b.stats.now.put_failures++;
    }
  }
  r.answer<proto::SendReplyMessage>(not_pushed.empty() ? ResponseCode::SUCCESS : ResponseCode::SYSTEM_ERROR,
                                    out, not_pushed);
}

}  // namespace rmq::broker

// RECALL_MESSAGE: a message of any delay is not delivered after all (remoting.md 12.10). The handle is what
// the answer to its send said: "v1 topic brokerName timestamp uniqueKey", base64. What is stored is a message
// of the timer's own that names it (TIMER_DEL_UNIQKEY), as RocketMQ has it.
//
// Success means that the message will not come, or never was: nobody looks whether there is one. A message
// whose time has come is too late, also when that happens while the recall is being stored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/base64.h"
#include "daemon/broker/handlers.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

using proto::ResponseCode;
namespace prop = proto::prop;

namespace {

constexpr std::string_view recall_tag = "_RECALL_TAG_";

struct Handle {
  std::string_view topic, broker, unique_key;
  int64_t deliver_ms = -1;
};

std::optional<Handle> parse_handle(std::string_view text) {
  std::array<std::string_view, 5> items;
  for (std::string_view& item : items) {
    size_t blank = text.find(' ');
    item = text.substr(0, blank);
    text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  }
  if (items[0] != "v1" || items[4].empty()) return std::nullopt;
  Handle h{items[1], items[2], items[4], -1};
  auto [end, ec] = std::from_chars(items[3].data(), items[3].data() + items[3].size(), h.deliver_ms);
  if (ec != std::errc{} || end != items[3].data() + items[3].size()) h.deliver_ms = -1;
  return h;
}

void refuse(Request& r, ResponseCode code, std::string_view remark) {
  r.reply(code, remark);
}

// Empty: it may be tried.
std::string_view wrong_with(Broker& b, const proto::RecallMessageRequestHeader& h, const Handle& handle) {
  if (handle.topic != h.topic) return "recall failed, topic not match";
  if (handle.broker != b.config.brokerName) return "recall failed, broker service not available";
  b.look_at_clock();
  // No message is due later, but for one that was sent when timerMaxDelaySec was longer.
  const int64_t latest_ms =
      std::max(b.due_clock.wall_ms() + b.config.timerMaxDelaySec * 1000, b.timers.latest_ms() + 1);
  if (handle.deliver_ms < 0 || handle.deliver_ms > latest_ms || !b.timers.can_recall(handle.deliver_ms))
    return "recall failed, timestamp invalid";
  if (!proto::is_property_text(handle.unique_key)) return "recall handle is invalid";
  return {};
}

}  // namespace

std::string make_recall_handle(std::string_view topic, std::string_view broker_name, int64_t deliver_ms,
                               std::string_view unique_key) {
  return base64url_encode(fmt::format("v1 {} {} {} {}", topic, broker_name, deliver_ms, unique_key));
}

Task<store::PutMessageResult> recall(Broker& b, std::string_view topic, std::string_view unique_key,
                                     int64_t deliver_ms, Address born_host) {
  std::string properties;
  proto::append_property(properties, prop::TIMER_DEL_UNIQKEY, timer_delete_key(topic, unique_key));
  proto::append_property(properties, prop::UNIQ_KEY, unique_key);
  proto::append_property(properties, prop::TIMER_DELIVER_MS, std::to_string(deliver_ms));
  proto::append_property(properties, prop::TAGS, recall_tag);
  store::MessageIn m;
  m.topic = topic;
  m.born_timestamp_ms = b.wall_ms();
  m.born_host = born_host;
  m.store_host = b.store_host;
  m.body = as_bytes("0");
  // RocketMQ's handles name a millisecond more than its messages, which are due at full seconds.
  TimerAsk ask{TimerAsk::What::later, deliver_ms, store::TimerKind::recall};
  if (ask.deliver_ms % 1000 == 1) ask.deliver_ms--;
  store::PutMessageResult put;
  put.status = store::PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
  if (!b.timers.begin_put(m, properties, ask)) co_return put;
  put = co_await b.store.put(m);
  if (put.queue_offset < 0) b.timers.put_refused();
  if (put.status == store::PutMessageStatus::PUT_OK &&
      !b.timers.holds_recall(ask.deliver_ms, put.queue_offset))
    put.status = store::PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL;
  co_return put;
}

Task<void> recall_message(Broker& b, Request& r, proto::RecallMessageRequestHeader h) {
  if (!b.config.recallMessageEnable || !b.config.timerWheelEnable)
    co_return refuse(r, ResponseCode::NO_PERMISSION, "recall failed, operation is forbidden");
  if (!proto::perm::is_writeable(static_cast<int32_t>(b.config.brokerPermission)))
    co_return refuse(r, ResponseCode::SERVICE_NOT_AVAILABLE, "recall failed, broker service not available");
  if (b.topics.find(h.topic) == nullptr)
    co_return refuse(r, ResponseCode::TOPIC_NOT_EXIST,
                     fmt::format("recall failed, the topic[{}] not exist", h.topic));
  auto text = base64url_decode(h.recall_handle);
  auto handle = text ? parse_handle(*text) : std::nullopt;
  if (!handle) co_return refuse(r, ResponseCode::ILLEGAL_OPERATION, "recall handle is invalid");
  std::string_view wrong = wrong_with(b, h, *handle);
  if (!wrong.empty()) co_return refuse(r, ResponseCode::ILLEGAL_OPERATION, wrong);

  auto put = co_await recall(b, handle->topic, handle->unique_key, handle->deliver_ms, r.connection().peer());
  if (put.status == store::PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL)
    co_return refuse(r, ResponseCode::ILLEGAL_OPERATION, "recall failed, timestamp invalid");
  if (put.status != store::PutMessageStatus::PUT_OK)
    co_return refuse(r, refusal_of(b, put.status).code, "recall failed, execute error");
  proto::RecallMessageResponseHeader answer;
  answer.msg_id = handle->unique_key;
  answer.msg_region = b.config.regionId;
  r.answer<proto::RecallMessage>(answer);
}

}  // namespace rmq::broker

// SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE: checks in RocketMQ's order (remoting.md 12.1), the topic
// created when it must be, the properties as the broker stores them, then one put.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <deque>
#include <tuple>

#include "daemon/broker/attributes.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker/retry.h"
#include "daemon/broker/send_message.h"
#include "proto/batch.h"
#include "proto/codes.h"
#include "proto/properties.h"
#include "store/light_queues.h"

namespace rmq::broker {

using proto::ResponseCode;
namespace prop = proto::prop;

void refuse_unknown_topic(Request& r, std::string_view topic) {
  r.reply(
      ResponseCode::TOPIC_NOT_EXIST,
      fmt::format(
          "topic[{}] not exist, apply first please!\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ "
          "for further details.",
          topic));
}

void refuse_unknown_group(Request& r, std::string_view group) {
  r.reply(
      ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
      fmt::format(
          "subscription group [{}] does not exist\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ "
          "for further details.",
          group));
}

void refuse_send(Broker& b, Request& r, ResponseCode code, std::string_view remark) {
  b.stats.now.put_failures++;
  proto::SendRefusedHeader h{b.config.regionId, b.config.traceOn ? "true" : "false"};
  r.answer_with(code, h, remark);
}

// As Java's Boolean.parseBoolean.
static bool is_true(std::string_view text) {
  constexpr std::string_view yes = "true";
  return std::equal(text.begin(), text.end(), yes.begin(), yes.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

// As Java's NumberUtils.toInt() with a default of -1.
static int32_t priority_of(std::string_view text) {
  int64_t n = -1;
  return detail::parse_int(text, n) && n >= 0 && n <= INT32_MAX ? static_cast<int32_t>(n) : -1;
}

SendProperties store_properties(Broker& b, std::string_view from, std::string& text) {
  SendProperties out;
  text.clear();
  text.reserve(from.size() + 128);
  proto::PropertyReader reader(from);
  proto::Property p;
  while (reader.next(&p)) {
    if (p.name == prop::POP_CK || p.name == prop::CLUSTER || p.name == prop::MSG_REGION ||
        p.name == prop::TRACE_ON || p.name == prop::INNER_MULTI_QUEUE_OFFSET)
      continue;
    if (p.name == prop::UNIQ_KEY) {
      out.unique_key_at = text.size() + p.name.size() + 1;
      out.unique_key_bytes = p.value.size();
    }
    proto::append_property(text, p.name, p.value);
    if (p.name == prop::TAGS)
      out.tags_code = proto::tags_code_of(p.value);
    else if (p.name == prop::WAIT)
      out.wait = p.value != "false";
    else if (p.name == prop::TRAN_MSG)
      out.transaction = is_true(p.value);
    else if (p.name == prop::DELAY) {
      out.delay_level = b.delay_level_of(p.value);
      out.has_delay = true;
    } else if (p.name == prop::SHARDINGKEY)
      out.sharded = true;
    else if (p.name == prop::PRIORITY)
      out.priority = priority_of(p.value);
    else if (p.name == prop::LITE_TOPIC)
      out.lite = !p.value.empty();
    else if (p.name == prop::INNER_NUM)
      out.inner = true;
    else if (p.name.starts_with("TIMER_DEL"))
      out.timer = true;
    else if (p.name == prop::INNER_MULTI_DISPATCH)
      out.light = b.config.enableLmq;
  }
  if (out.unique_key_bytes == 0) {
    std::string key = b.unique_id();
    out.unique_key_at = text.size() + prop::UNIQ_KEY.size() + 1;
    out.unique_key_bytes = key.size();
    proto::append_property(text, prop::UNIQ_KEY, key);
  }
  proto::append_property(text, prop::MSG_REGION, b.config.regionId);
  proto::append_property(text, prop::TRACE_ON, b.config.traceOn ? "true" : "false");
  proto::append_property(text, prop::CLUSTER, b.config.brokerClusterName);
  return out;
}

// For a topic that is not there yet: what the store would refuse must not leave one behind. True: refused.
static bool refuse_without_room(Broker& b, Request& r, std::string_view topic) {
  const bool may_use_reserve = proto::is_retry_topic(topic);  // as message_of() says
  if (b.store.writable() && (may_use_reserve || !b.store.disk_full())) return false;
  const Refusal closed = refusal_of(b, store::PutMessageStatus::SERVICE_NOT_AVAILABLE);
  refuse_send(b, r, closed.code, closed.remark);
  return true;
}

Task<bool> check_send(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, SendOf what,
                      int32_t* queue_id) {
  const proto::TopicConfig* topic = b.topics.find(h.topic);
  if (topic == nullptr || b.topics.is_system(h.topic)) {
    if (auto wrong = proto::invalid_topic_remark(h.topic)) {
      refuse_send(b, r, ResponseCode::INVALID_PARAMETER, *wrong);
      co_return false;
    }
    if (proto::is_topic_forbidden_to_send(h.topic)) {
      refuse_send(b, r, ResponseCode::NO_PERMISSION, proto::forbidden_to_send_remark(h.topic));
      co_return false;
    }
  }
  if (topic == nullptr) {
    Result<void> made;
    const bool stored = what == SendOf::message;
    if (proto::is_retry_topic(h.topic)) {
      if (stored && refuse_without_room(b, r, h.topic)) co_return false;
      co_await b.ensure_topic(std::string(h.topic), 1, proto::perm::read | proto::perm::write,
                              h.unit_mode ? proto::topic_sys_flag::unit_sub : 0);
    } else {
      auto pattern = b.topics.pattern_for(h.topic, h.default_topic, h.default_topic_queue_nums, h.unit_mode);
      if (!pattern) {
        refuse_send(b, r, ResponseCode::TOPIC_NOT_EXIST,
                    fmt::format("topic[{}] not exist, apply first please!\nSee "
                                "https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.",
                                h.topic));
        co_return false;
      }
      if (stored && refuse_without_room(b, r, h.topic)) co_return false;
      auto changed = co_await b.change_topic(std::move(*pattern));
      if (!changed) made = std::unexpected(changed.error());
    }
    topic = b.topics.find(h.topic);
    if (made && topic == nullptr) {
      refuse_send(
          b, r, ResponseCode::TOPIC_NOT_EXIST,
          fmt::format("topic[{}] not exist: it was deleted while this message was on its way", h.topic));
      co_return false;
    }
    if (!made) {
      refuse_send(b, r, ResponseCode::SYSTEM_ERROR,
                  "the topic could not be created: its configuration cannot be written");
      co_return false;
    }
  }
  if (!proto::perm::is_writeable(static_cast<int32_t>(b.config.brokerPermission)) && topic->order) {
    refuse_send(b, r, ResponseCode::NO_PERMISSION,
                fmt::format("the broker[{}] sending message is forbidden", b.config.brokerIP1));
    co_return false;
  }
  if (h.queue_id >= std::max(topic->read_queue_nums, topic->write_queue_nums)) {
    refuse_send(
        b, r, ResponseCode::INVALID_PARAMETER,
        fmt::format(
            "request queueId[{}] is illegal, TopicConfig [topicName={}, readQueueNums={}, writeQueueNums={}] "
            "Producer: {}",
            h.queue_id, h.topic, topic->read_queue_nums, topic->write_queue_nums,
            r.connection().peer_text()));
    co_return false;
  }
  *queue_id = h.queue_id;
  if (h.queue_id < 0)
    *queue_id = static_cast<int32_t>(
        Loop::current().random().below(static_cast<uint64_t>(std::max(1, topic->write_queue_nums))));
  co_return true;
}

bool is_stored(const store::PutMessageResult& put) {
  return put.status == store::PutMessageStatus::PUT_OK ||
         put.status == store::PutMessageStatus::FLUSH_DISK_TIMEOUT;
}

store::MessageIn message_of(Broker& b, Request& r, const proto::SendMessageRequestHeader& h,
                            int32_t queue_id) {
  store::MessageIn m;
  m.topic = h.topic;
  m.queue_id = queue_id;
  m.flag = h.flag;
  m.sys_flag = h.sys_flag;
  m.born_timestamp_ms = h.born_timestamp;
  m.born_host = r.connection().peer();
  m.store_host = b.store_host;
  m.reconsume_times = h.reconsume_times;
  m.may_use_reserve = proto::is_retry_topic(h.topic);  // what a consumer could not consume
  return m;
}

namespace {

void answer_send(Broker& b, Request& r, const store::PutMessageResult& put, std::string_view ids,
                 int32_t queue_id, std::string_view unique_key, uint64_t messages,
                 std::string_view recall_handle = {}, std::string_view batch_key = {}) {
  Refusal outcome = refusal_of(b, put.status);
  bool stored = outcome.code == ResponseCode::SUCCESS || outcome.code == ResponseCode::FLUSH_DISK_TIMEOUT;
  if (!stored) return refuse_send(b, r, outcome.code, outcome.remark);
  b.stats.now.put_messages += messages;
  proto::SendMessageResponseHeader h;
  h.msg_id = ids;
  h.queue_id = queue_id;
  h.queue_offset = put.queue_offset;
  h.transaction_id = unique_key;
  if (!recall_handle.empty()) h.recall_handle = recall_handle;
  if (!batch_key.empty()) h.batch_uniq_id = batch_key;
  h.msg_region = b.config.regionId;
  h.trace_on = b.config.traceOn ? "true" : "false";
  r.answer<proto::SendMessage>(outcome.code, h, outcome.remark);
}

// What says something that it cannot mean must not be stored as if it were a plain message.
bool refuse_special(Broker& b, Request& r, const SendProperties& p) {
  if (p.inner) {
    refuse_send(
        b, r, ResponseCode::MESSAGE_ILLEGAL,
        "the message is illegal: only the broker makes a message of several (INNER_NUM, or sysFlag 0x80)");
    return true;
  }
  if (p.lite) {
    refuse_send(b, r, ResponseCode::MESSAGE_ILLEGAL,
                "the message is illegal: it is for a lite topic, and this rmqd has none");
    return true;
  }
  if (p.transaction && b.config.rejectTransactionMessage) {
    refuse_send(b, r, ResponseCode::NO_PERMISSION,
                fmt::format("the broker[{}] sending transaction message is forbidden", b.config.brokerIP1));
    return true;
  }
  if (p.delay_level < 0) {
    refuse_send(b, r, ResponseCode::MESSAGE_ILLEGAL,
                "the message is illegal: property DELAY is not a number");
    return true;
  }
  return false;
}

// Makes a half message of `m`. What a commit could not place is refused now.
store::PutMessageStatus prepare_half(Broker& b, store::MessageIn& m, std::string& text, int delay_level,
                                     std::string_view unique_key) {
  const TimerAsk ask = timer_ask_of(text, b.wall_ms(), b.wall_ms(), b.config.timerMaxDelaySec * 1000);
  if (delay_level == 0 && ask.what != TimerAsk::What::nothing) {
    if (!b.config.timerWheelEnable) return store::PutMessageStatus::WHEEL_TIMER_NOT_ENABLE;
    if (ask.what == TimerAsk::What::illegal) return store::PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL;
  }
  const bool has_room = b.transactions.prepare(m, text, unique_key);
  return has_room ? store::PutMessageStatus::PUT_OK : store::PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
}

// A message that is nothing but of a priority goes to the queue of that number, whatever queue its producer
// chose; of another kind it loses its priority (SendMessageProcessor of 5.5).
void place_by_priority(const Broker& b, const SendProperties& p, store::MessageIn& m, std::string& text) {
  const proto::TopicConfig* topic = b.topics.find(m.topic);
  if (p.transaction || p.has_delay || p.timer || p.sharded || topic == nullptr) {
    proto::remove_property(text, prop::PRIORITY);
    return;
  }
  m.queue_id = std::min(p.priority, std::max(0, topic->write_queue_nums - 1));
}

// True: refused. What waits for its time or for the end of its transaction must have room for its offsets
// later.
bool refuse_light(Broker& b, Request& r, std::string_view topic, std::string_view text) {
  auto list = proto::find_property(text, prop::INNER_MULTI_DISPATCH);
  if (!list || store::has_no_light_queues(topic)) return false;
  auto names = store::parse_light_queues(*list, topic);
  if (!names) {
    refuse_send(
        b, r, ResponseCode::MESSAGE_ILLEGAL,
        "the message is illegal: INNER_MULTI_DISPATCH must be names of light queues, which begin with "
        "%LMQ%, separated by commas, none of them twice or the topic itself");
    return true;
  }
  constexpr size_t offset_bytes = 21, other_bytes = 512;
  if (text.size() + names->size() * offset_bytes + other_bytes <= limits::properties_bytes_max) return false;
  Refusal no_room = refusal_of(b, store::PutMessageStatus::PROPERTIES_SIZE_EXCEEDED);
  refuse_send(b, r, no_room.code, no_room.remark);
  return true;
}

// A message without a key could never be compacted: it is refused, as by SendMessageProcessor. True: refused.
bool refuse_without_key(Broker& b, Request& r, std::string_view topic, std::string_view properties) {
  const proto::TopicConfig* config = b.topics.find(topic);
  if (config == nullptr || !is_compaction_topic(*config)) return false;
  const std::string_view keys = proto::find_property(properties, prop::KEYS).value_or(std::string_view{});
  if (keys.find_first_not_of(" \t\r\n\f\v") != std::string_view::npos) return false;
  refuse_send(b, r, ResponseCode::MESSAGE_ILLEGAL, "Required message key is missing");
  return true;
}

// ---- messages that are stored once (deduplication.h) ---------------------------------------------------

std::optional<DedupRule> dedup_rule_of(const Broker& b, std::string_view topic) {
  const proto::TopicConfig* config = b.topics.find(topic);
  return config == nullptr ? std::nullopt : DedupRule::of(*config);
}

// As the first one was answered, once that one is safe.
Task<void> answer_repeated(Broker& b, Request& r, const FirstMessage& first, std::string_view own_key) {
  store::PutMessageResult put;
  put.status = co_await b.store.confirmed(first.physical_offset + first.total_bytes);
  put.queue_offset = first.queue_offset;
  put.physical_offset = first.physical_offset;
  std::string unique_key(own_key), recall;
  auto extent = co_await b.store.record_at(first.physical_offset);
  auto record = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
  if (record) {
    unique_key = record->property(prop::UNIQ_KEY).value_or(own_key);
    int64_t out_ms = 0;
    if (detail::parse_int(record->property(prop::TIMER_OUT_MS).value_or(""), out_ms))
      recall = make_recall_handle(record->property(prop::REAL_TOPIC).value_or(""), b.config.brokerName,
                                  out_ms, unique_key);
  }
  char id[proto::offset_id_text_v6];
  size_t n = proto::format_offset_id(b.store_id_host, first.physical_offset, id);
  answer_send(b, r, put, {id, n}, first.queue_id, unique_key, 0, recall);
}

// Of a batch what is not there yet is stored, in one piece; `known` gets where each of them lies. Two batches
// with the same messages must not wait for each other: keys are claimed in one order.
Task<store::PutMessageResult> put_once(Broker& b, std::string_view topic, const DedupRule& rule,
                                       std::span<const store::MessageIn> messages,
                                       std::vector<FirstMessage>& known) {
  std::vector<size_t> order(messages.size());
  std::vector<std::string> texts(messages.size());
  for (size_t i = 0; i < order.size(); i++) {
    order[i] = i;
    texts[i] = rule.text_of(messages[i].properties);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t x, size_t y) { return std::tie(texts[x], x) < std::tie(texts[y], y); });
  std::vector<bool> fresh(messages.size(), true);
  std::vector<Deduplication::Key> keys(messages.size());
  std::vector<size_t> same_as(messages.size());
  for (size_t k = 0; k < order.size(); k++) {
    const size_t i = same_as[order[k]] = order[k];
    if (texts[i].empty()) continue;
    if (k > 0 && texts[order[k - 1]] == texts[i]) {
      same_as[i] = same_as[order[k - 1]];
      fresh[i] = false;
      continue;
    }
    auto claim = co_await b.dedup.claim(topic, rule, texts[i]);
    keys[i] = claim.key;
    fresh[i] = !claim.first;
    if (claim.first) known[i] = *claim.first;
  }
  std::vector<store::MessageIn> batch;
  for (size_t i = 0; i < messages.size(); i++)
    if (fresh[i]) batch.push_back(messages[i]);
  store::PutMessageResult put;
  put.status = store::PutMessageStatus::PUT_OK;
  if (!batch.empty()) put = co_await b.store.put_batch(batch);
  const bool stored = is_stored(put);
  for (size_t i = 0, k = 0; i < messages.size(); i++) {
    if (!fresh[i]) continue;
    if (stored) {
      known[i].physical_offset = put.physical_offsets[k];
      known[i].queue_offset = put.queue_offset + static_cast<int64_t>(k++);
      known[i].queue_id = messages[i].queue_id;
      known[i].store_timestamp_ms = put.store_timestamp_ms;
      known[i].total_bytes =
          static_cast<int32_t>(put.physical_offset + put.total_bytes - known[i].physical_offset);
    }
    if (!texts[i].empty()) b.dedup.settle(keys[i], stored ? &known[i] : nullptr);
  }
  if (!stored) co_return put;
  int64_t end = 0;
  for (size_t i = 0; i < messages.size(); i++) {
    known[i] = known[same_as[i]];
    end = std::max(end, known[i].physical_offset + known[i].total_bytes);
  }
  if (put.status == store::PutMessageStatus::PUT_OK) put.status = co_await b.store.confirmed(end);
  put.queue_offset = known[0].queue_offset;
  put.physical_offsets.clear();
  for (const FirstMessage& m : known) put.physical_offsets.push_back(m.physical_offset);
  co_return put;
}

Task<void> send_single(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, int32_t queue_id) {
  store::MessageIn m = message_of(b, r, h, queue_id);
  m.body = r.body();
  std::string text, dlq;
  SendProperties p = store_properties(b, h.properties.value_or(std::string_view{}), text);
  p.inner = p.inner || proto::sys_flag::is_inner_batch(h.sys_flag);
  const std::string unique_key(p.unique_key(text));
  if (proto::is_retry_topic(h.topic)) {
    p.transaction = false;  // TRAN_MSG is left from a transaction that was committed
    auto where = co_await route_retry(b, r.command.version, h, text, m.reconsume_times);
    if (!where) {
      refuse_send(
          b, r, ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
          fmt::format("subscription group not exist, {}", h.topic.substr(proto::names::retry_prefix.size())));
      co_return;
    }
    dlq = std::move(*where);
    if (!dlq.empty()) {
      m.topic = dlq;
      m.queue_id = 0;
      p.delay_level = 0;
      p.timer = false;
    }
  }
  if (refuse_without_key(b, r, h.topic, text)) co_return;
  if (p.priority >= 0) place_by_priority(b, p, m, text);
  if (refuse_special(b, r, p) || (p.light && refuse_light(b, r, m.topic, text))) co_return;
  if (m.body.empty()) co_return answer_send(b, r, {store::PutMessageStatus::MESSAGE_ILLEGAL}, {}, 0, {}, 0);
  auto rule = p.transaction || !dlq.empty() ? std::nullopt : dedup_rule_of(b, h.topic);
  const std::string dedup_text = rule ? rule->text_of(text) : std::string{};
  Deduplication::Claim claim;
  if (!dedup_text.empty()) {
    claim = co_await b.dedup.claim(h.topic, *rule, dedup_text);
    if (claim.first) co_return co_await answer_repeated(b, r, *claim.first, unique_key);
  }
  int32_t shown_queue = m.queue_id;
  const std::string topic(m.topic);
  m.properties = text;
  Broker::Placed placed;
  store::PutMessageResult put;
  put.status = store::PutMessageStatus::PUT_OK;
  if (p.transaction) {
    put.status = prepare_half(b, m, text, p.delay_level, unique_key);
  } else if (p.delay_level != 0 || p.timer) {
    put.status = b.place_delayed(m, text, p.delay_level, placed);
  }
  if (put.status == store::PutMessageStatus::PUT_OK) {
    put = co_await b.store.put(m, p.wait);
    b.delayed_put(placed, put);
    if (p.transaction) b.transactions.wake();
    const MessageType type = p.type();
    if (is_stored(put)) b.metrics.message_in(topic, type, 1, static_cast<uint64_t>(put.total_bytes));
    if (is_stored(put) && !dlq.empty())
      b.metrics.dead_letter(h.topic, h.topic.substr(proto::names::retry_prefix.size()));
  }
  if (!dedup_text.empty()) {
    FirstMessage first{put.physical_offset, put.queue_offset, put.store_timestamp_ms, shown_queue,
                       put.total_bytes};
    b.dedup.settle(claim.key, is_stored(put) ? &first : nullptr);
  }
  std::string recall;
  if (placed.timer && !proto::is_retry_topic(topic))
    recall = make_recall_handle(topic, b.config.brokerName, placed.deliver_ms, unique_key);
  char id[proto::offset_id_text_v6];
  size_t n = proto::format_offset_id(b.store_id_host, put.physical_offset, id);
  answer_send(b, r, put, {id, n}, shown_queue, unique_key, 1, recall);
}

// A batch goes to one queue at once: nothing in it can be delayed, or wait for the end of a transaction.
// True: answered.
bool refuse_special_in_batch(Broker& b, Request& r, std::string_view properties, int32_t sys_flag) {
  SendProperties found;
  found.inner = proto::sys_flag::is_inner_batch(sys_flag);
  proto::PropertyReader reader(properties);
  proto::Property p;
  while (reader.next(&p)) {
    if (p.name == prop::TRAN_MSG && is_true(p.value)) found.transaction = true;
    if (p.name == prop::INNER_NUM) found.inner = true;
    if (p.name == prop::DELAY) found.delay_level = b.delay_level_of(p.value);
    if (p.name.starts_with("TIMER_DEL")) found.timer = true;
    if (p.name == prop::INNER_MULTI_QUEUE_OFFSET) found.light = true;
  }
  if (!found.is_special()) return false;
  if (found.inner) return refuse_special(b, r, found);
  if (found.light) {
    refuse_send(b, r, ResponseCode::MESSAGE_ILLEGAL,
                "the message is illegal: INNER_MULTI_QUEUE_OFFSET is for the broker to say");
    return true;
  }
  refuse_send(b, r, ResponseCode::MESSAGE_ILLEGAL,
              "the message is illegal: a batch can be neither delayed nor part of a transaction");
  return true;
}

// A batch for a topic with queue.type=BatchCQ is one record of all its messages, which were looked at.
Task<void> send_inner_batch(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, int32_t queue_id,
                            int32_t messages) {
  std::string text;
  const SendProperties p = store_properties(b, h.properties.value_or(std::string_view{}), text);
  proto::set_property(text, prop::INNER_NUM, std::to_string(messages));
  store::MessageIn m = message_of(b, r, h, queue_id);
  m.sys_flag |= proto::sys_flag::need_unwrap | proto::sys_flag::inner_batch;
  m.body = r.body();
  m.properties = text;
  m.inner_messages = messages;
  const store::PutMessageResult put = co_await b.store.put(m, p.wait);
  if (is_stored(put))
    b.metrics.message_in(h.topic, p.type(), static_cast<uint64_t>(messages),
                         static_cast<uint64_t>(put.total_bytes));
  char id[proto::offset_id_text_v6];
  const size_t n = proto::format_offset_id(b.store_id_host, put.physical_offset, id);
  const std::string_view unique_key = p.unique_key(text);
  answer_send(b, r, put, {id, n}, queue_id, unique_key, static_cast<uint64_t>(messages), {}, unique_key);
}

Task<void> send_many(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, int32_t queue_id) {
  if (proto::is_retry_topic(h.topic)) {
    refuse_send(b, r, ResponseCode::MESSAGE_ILLEGAL,
                "batch request does not support retry group " + std::string(h.topic));
    co_return;
  }
  if (r.body().size() > static_cast<size_t>(b.config.maxMessageSize))
    co_return answer_send(b, r, {store::PutMessageStatus::MESSAGE_ILLEGAL}, {}, 0, {}, 0);
  if (refuse_special_in_batch(b, r, h.properties.value_or(std::string_view{}), h.sys_flag)) co_return;
  std::vector<store::MessageIn> messages;
  std::deque<std::string> without_handle;
  proto::BatchReader reader(r.body());
  proto::BatchMessage inner;
  for (;;) {
    auto more = reader.next(&inner);
    if (!more) {
      refuse_send(b, r, ResponseCode::SYSTEM_ERROR,
                  std::string("the batch is malformed: ") + more.error().where);
      co_return;
    }
    if (!*more) break;
    if (refuse_special_in_batch(b, r, inner.properties, 0)) co_return;
    if (refuse_without_key(b, r, h.topic, inner.properties)) co_return;
    messages.push_back(message_of(b, r, h, queue_id));
    messages.back().flag = inner.flag;
    messages.back().body = inner.body;
    messages.back().properties = inner.properties;
    if (!proto::find_property(inner.properties, prop::POP_CK)) continue;
    // Of a message that its sender has popped, and passes on: by it the copy could not be acknowledged.
    std::string& text = without_handle.emplace_back(inner.properties);
    proto::remove_property(text, prop::POP_CK);
    messages.back().properties = text;
  }
  if (messages.empty()) co_return answer_send(b, r, {store::PutMessageStatus::MESSAGE_ILLEGAL}, {}, 0, {}, 0);
  auto key = proto::find_property(h.properties.value_or(std::string_view{}), prop::UNIQ_KEY);
  std::string unique_key = key ? std::string(*key) : b.unique_id();
  // Without one, as producers of RocketMQ 4 send them, each message is a record as in other topics.
  if (key && b.store.is_batch_topic(h.topic)) {
    co_await send_inner_batch(b, r, h, queue_id, static_cast<int32_t>(messages.size()));
    co_return;
  }
  store::PutMessageResult put;
  if (auto rule = dedup_rule_of(b, h.topic)) {
    std::vector<FirstMessage> known(messages.size());
    put = co_await put_once(b, h.topic, *rule, messages, known);
  } else {
    put = co_await b.store.put_batch(messages);
  }
  const bool fifo =
      proto::find_property(h.properties.value_or(std::string_view{}), prop::SHARDINGKEY).has_value();
  if (is_stored(put))
    b.metrics.message_in(h.topic, fifo ? MessageType::fifo : MessageType::normal, messages.size(),
                         static_cast<uint64_t>(put.total_bytes));
  std::string ids;
  ids.reserve(put.physical_offsets.size() * (proto::offset_id_text_v4 + 1));
  for (int64_t at : put.physical_offsets) {
    if (!ids.empty()) ids += ',';
    proto::append_offset_id(ids, b.store_id_host, at);
  }
  answer_send(b, r, put, ids, queue_id, unique_key, messages.size());
}

// ---- the usual send ----------------------------------------------------------------------------------
//
// A single message to a topic that is there, without delay or transaction, is appended at once, and its frame
// is given back before it waits for the disk: what waits is small, and thousands wait at a time.

struct AppendedSend {
  static constexpr size_t key_bytes_max = 64;
  store::PutMessageResult put;
  int32_t queue_id = 0;
  bool wait = true;
  uint8_t key_bytes = 0;
  char key[key_bytes_max];
};

// False: nothing was done, the long way decides.
bool append_at_once(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, AppendedSend& out) {
  const proto::TopicConfig* topic = b.topics.find_plain(h.topic);
  if (topic == nullptr || h.batch || r.body().empty()) return false;
  if (h.queue_id < 0 || h.queue_id >= std::max(topic->read_queue_nums, topic->write_queue_nums)) return false;
  thread_local std::string text;
  SendProperties p = store_properties(b, h.properties.value_or(std::string_view{}), text);
  if (p.is_special() || proto::sys_flag::is_inner_batch(h.sys_flag) ||
      p.unique_key_bytes > AppendedSend::key_bytes_max)
    return false;
  store::MessageIn m = message_of(b, r, h, h.queue_id);
  m.body = r.body();
  m.properties = text;
  m.tags_code = p.tags_code;
  auto put = b.store.try_put(m);
  if (!put) return false;
  if (is_stored(*put)) b.metrics.message_in(h.topic, p.type(), 1, static_cast<uint64_t>(put->total_bytes));
  out.put = std::move(*put);
  out.queue_id = h.queue_id;
  out.wait = p.wait;
  out.key_bytes = static_cast<uint8_t>(p.unique_key_bytes);
  std::memcpy(out.key, text.data() + p.unique_key_at, p.unique_key_bytes);
  return true;
}

Task<void> finish_send(Broker& b, Request& r, AppendedSend s) {
  r.drop_frame();
  if (s.put.status == store::PutMessageStatus::PUT_OK && s.wait)
    s.put.status = co_await b.store.confirmed(s.put.physical_offset + s.put.total_bytes);
  char id[proto::offset_id_text_v6];
  size_t n = proto::format_offset_id(b.store_id_host, s.put.physical_offset, id);
  answer_send(b, r, s.put, {id, n}, s.queue_id, {s.key, s.key_bytes}, 1);
}

Task<void> send_the_long_way(Broker& b, Request& r, proto::SendMessageRequestHeader h) {
  int32_t queue_id = 0;
  bool good = co_await check_send(b, r, h, SendOf::message, &queue_id);
  if (!good) co_return;
  if (h.batch)
    co_await send_many(b, r, h, queue_id);
  else
    co_await send_single(b, r, h, queue_id);
}

}  // namespace

Task<void> send_message(Broker& b, Request& r, proto::SendMessageRequestHeader h) {
  AppendedSend appended;
  if (append_at_once(b, r, h, appended)) return finish_send(b, r, std::move(appended));
  return send_the_long_way(b, r, h);
}

Task<void> send_batch_message(Broker& b, Request& r, proto::SendMessageRequestHeader h) {
  h.batch = true;
  return send_message(b, r, h);
}

}  // namespace rmq::broker

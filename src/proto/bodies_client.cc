#include "proto/bodies_client.h"

#include <algorithm>

#include "proto/json_read.h"
#include "proto/record.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

namespace {

constexpr ConsumeType consume_types[] = {ConsumeType::CONSUME_ACTIVELY, ConsumeType::CONSUME_PASSIVELY,
                                         ConsumeType::CONSUME_POP};
constexpr MessageModel message_models[] = {MessageModel::BROADCASTING, MessageModel::CLUSTERING};
constexpr ConsumeFromWhere consume_from_wheres[] = {
    ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
    ConsumeFromWhere::CONSUME_FROM_MIN_OFFSET,
    ConsumeFromWhere::CONSUME_FROM_MAX_OFFSET,
    ConsumeFromWhere::CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere::CONSUME_FROM_TIMESTAMP};

}  // namespace

// Java names CONSUME_ACTIVELY "PULL" and so on elsewhere; on the wire the constants' names are used.
std::string_view name_of(ConsumeType v) {
  switch (v) {
    case ConsumeType::CONSUME_ACTIVELY:
      return "CONSUME_ACTIVELY";
    case ConsumeType::CONSUME_PASSIVELY:
      return "CONSUME_PASSIVELY";
    case ConsumeType::CONSUME_POP:
      return "CONSUME_POP";
  }
  return {};
}
std::string_view name_of(MessageModel v) {
  switch (v) {
    case MessageModel::BROADCASTING:
      return "BROADCASTING";
    case MessageModel::CLUSTERING:
      return "CLUSTERING";
  }
  return {};
}
std::string_view name_of(ConsumeFromWhere v) {
  switch (v) {
    case ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET:
      return "CONSUME_FROM_LAST_OFFSET";
    case ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST:
      return "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST";
    case ConsumeFromWhere::CONSUME_FROM_MIN_OFFSET:
      return "CONSUME_FROM_MIN_OFFSET";
    case ConsumeFromWhere::CONSUME_FROM_MAX_OFFSET:
      return "CONSUME_FROM_MAX_OFFSET";
    case ConsumeFromWhere::CONSUME_FROM_FIRST_OFFSET:
      return "CONSUME_FROM_FIRST_OFFSET";
    case ConsumeFromWhere::CONSUME_FROM_TIMESTAMP:
      return "CONSUME_FROM_TIMESTAMP";
  }
  return {};
}

// ------------------------------------------------------------------------------- queues, subscriptions

static void read_queue(Value v, MessageQueue& out) {
  v["topic"].read(out.topic);
  v["brokerName"].read(out.broker_name);
  v["queueId"].read(out.queue_id);
}

Result<MessageQueue> MessageQueue::parse(std::string_view json) {
  return read_body<MessageQueue>(json, read_queue);
}

static void write_queue(JsonWriter& w, const MessageQueue& q) {
  w.begin_object();
  w.member("brokerName", q.broker_name);
  w.member("queueId", q.queue_id);
  w.member("topic", q.topic);
  w.end_object();
}

std::string MessageQueue::to_json() const {
  JsonWriter w;
  write_queue(w, *this);
  return w.take();
}

static void read_queue_table(Value v, MessageQueueTable& out) {
  if (v.is_array()) {  // the form for C++ clients
    return v.each([&](Value e) {
      MessageQueue q;
      read_queue(e, q);
      e["offset"].read(out[q]);
    });
  }
  v.members([&](std::string_view key, Value offset) {
    auto q = MessageQueue::parse(key);
    if (!q) return v.bad();
    offset.read(out[*q]);
  });
}

// Bare object keys whatever the style: see the header.
static void write_queue_table(JsonWriter& w, const MessageQueueTable& t) {
  w.begin_object();
  for (const auto& [q, offset] : t) {
    w.key_object(q.to_json());
    w.number(offset);
  }
  w.end_object();
}

static void write_queues(JsonWriter& w, const std::vector<MessageQueue>& queues) {
  w.begin_array();
  for (const MessageQueue& q : queues) write_queue(w, q);
  w.end_array();
}

static void read_queues(Value v, std::vector<MessageQueue>& out) {
  v.each([&](Value e) { read_queue(e, out.emplace_back()); });
}

static std::string_view trim(std::string_view s) {  // String.trim: everything up to a blank
  while (!s.empty() && static_cast<unsigned char>(s.front()) <= ' ') s.remove_prefix(1);
  while (!s.empty() && static_cast<unsigned char>(s.back()) <= ' ') s.remove_suffix(1);
  return s;
}

template <class T>
static void sort_unique(std::vector<T>& v) {
  std::ranges::sort(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

Result<SubscriptionData> SubscriptionData::build(std::string_view topic, std::string_view sub_string,
                                                 std::string_view expression_type) {
  SubscriptionData d;
  d.topic = topic;
  d.sub_string = sub_string;
  if (!expression_type.empty()) d.expression_type = expression_type;
  if (!d.is_tag_type()) {
    if (sub_string.empty()) return fail(Errc::bad_input, "subscription without an expression");
    return d;
  }
  if (sub_string.empty() || sub_string == sub_all) {
    d.sub_string = sub_all;
    return d;
  }
  bool any_piece = false;
  for (size_t at = 0; at <= sub_string.size();) {
    size_t end = std::min(sub_string.find("||", at), sub_string.size());
    std::string_view piece = sub_string.substr(at, end - at);
    any_piece |= !piece.empty();
    std::string_view tag = trim(piece);
    if (!tag.empty()) {
      d.tags_set.emplace_back(tag);
      d.code_set.push_back(java_hash(tag));
    }
    at = end + 2;
  }
  if (!any_piece) return fail(Errc::bad_input, "subString split error");
  sort_unique(d.tags_set);
  sort_unique(d.code_set);
  return d;
}

static void read_subscription(Value v, SubscriptionData& d) {
  v["topic"].read(d.topic);
  v["subString"].read(d.sub_string);
  v["tagsSet"].read(d.tags_set);
  v["codeSet"].read(d.code_set);
  v["subVersion"].read(d.sub_version);
  v["expressionType"].read(d.expression_type);
  v["classFilterMode"].read(d.class_filter_mode);
  sort_unique(d.tags_set);
  sort_unique(d.code_set);
}

Result<SubscriptionData> SubscriptionData::parse(std::string_view json) {
  return read_body<SubscriptionData>(json, read_subscription);
}

void SubscriptionData::write(JsonWriter& w) const {
  w.begin_object();
  w.member("classFilterMode", class_filter_mode);
  w.key("codeSet");
  w.begin_array();
  for (int32_t c : code_set) w.number(c);
  w.end_array();
  w.member("expressionType", expression_type);
  w.member("subString", sub_string);
  w.member("subVersion", sub_version);
  w.key("tagsSet");
  w.begin_array();
  for (const std::string& t : tags_set) w.text(t);
  w.end_array();
  w.member("topic", topic);
  w.end_object();
}

std::string SubscriptionData::to_json(JsonStyle style) const {
  JsonWriter w(style);
  write(w);
  return w.take();
}

// ------------------------------------------------------------------------------------------ heartbeats

static void read_consumer(Value v, ConsumerData& c) {
  v["groupName"].read(c.group_name);
  v["consumeType"].read_enum(c.consume_type, consume_types);
  v["messageModel"].read_enum(c.message_model, message_models);
  v["consumeFromWhere"].read_enum(c.consume_from_where, consume_from_wheres);
  v["subscriptionDataSet"].each(
      [&](Value s) { read_subscription(s, c.subscription_data_set.emplace_back()); });
  v["unitMode"].read(c.unit_mode);
}

Result<HeartbeatData> HeartbeatData::parse(std::string_view json) {
  return read_body<HeartbeatData>(json, [](Value v, HeartbeatData& d) {
    v["clientID"].read(d.client_id);
    v["producerDataSet"].each([&](Value p) { p["groupName"].read(d.producer_groups.emplace_back()); });
    v["consumerDataSet"].each([&](Value c) { read_consumer(c, d.consumers.emplace_back()); });
    v["heartbeatFingerprint"].read(d.heartbeat_fingerprint);
    v["withoutSub"].read(d.without_sub);
  });
}

static void write_consumer(JsonWriter& w, const ConsumerData& c) {
  w.begin_object();
  w.member("consumeFromWhere", name_of(c.consume_from_where));
  w.member("consumeType", name_of(c.consume_type));
  w.member("groupName", c.group_name);
  w.member("messageModel", name_of(c.message_model));
  w.key("subscriptionDataSet");
  w.begin_array();
  for (const SubscriptionData& s : c.subscription_data_set) s.write(w);
  w.end_array();
  w.member("unitMode", c.unit_mode);
  w.end_object();
}

std::string HeartbeatData::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.member("clientID", client_id);
  w.key("consumerDataSet");
  w.begin_array();
  for (const ConsumerData& c : consumers) write_consumer(w, c);
  w.end_array();
  w.member("heartbeatFingerprint", heartbeat_fingerprint);
  w.key("producerDataSet");
  w.begin_array();
  for (const std::string& g : producer_groups) {
    w.begin_object();
    w.member("groupName", g);
    w.end_object();
  }
  w.end_array();
  w.member("withoutSub", without_sub);
  w.end_object();
  return w.take();
}

Result<CheckClientRequestBody> CheckClientRequestBody::parse(std::string_view json) {
  return read_body<CheckClientRequestBody>(json, [](Value v, CheckClientRequestBody& b) {
    v["clientId"].read(b.client_id);
    v["group"].read(b.group);
    v["namespace"].read(b.name_space);
    if (Value s = v["subscriptionData"]; s.present()) read_subscription(s, b.subscription_data.emplace());
  });
}

Result<ConsumerListBody> ConsumerListBody::parse(std::string_view json) {
  return read_body<ConsumerListBody>(
      json, [](Value v, ConsumerListBody& b) { v["consumerIdList"].read(b.consumer_id_list); });
}

std::string ConsumerListBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("consumerIdList");
  w.begin_array();
  for (const std::string& id : consumer_id_list) w.text(id);
  w.end_array();
  w.end_object();
  return w.take();
}

// ------------------------------------------------------------------------------------- locks and resets

static void read_lock_body(Value v, LockBatchRequestBody& b) {
  v["consumerGroup"].read(b.consumer_group);
  v["clientId"].read(b.client_id);
  v["onlyThisBroker"].read(b.only_this_broker);
  read_queues(v["mqSet"], b.mq_set);
}

Result<LockBatchRequestBody> LockBatchRequestBody::parse(std::string_view json) {
  return read_body<LockBatchRequestBody>(json, read_lock_body);
}

Result<QueueLocks> QueueLocks::parse(std::string_view json) {
  return read_body<QueueLocks>(json, [](Value v, QueueLocks& out) {
    v["locks"].each([&](Value one) {
      QueueLocks::Held& h = out.locks.emplace_back();
      read_lock_body(one["by"], h.by);
      one["renewedMs"].read(h.renewed_ms);
    });
  });
}

std::string QueueLocks::to_json() const {
  JsonWriter w(JsonStyle::pretty);
  w.begin_object();
  w.key("locks");
  w.begin_array();
  for (const Held& h : locks) {
    w.begin_object();
    w.key("by");
    w.raw(h.by.to_json());
    w.member("renewedMs", h.renewed_ms);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.take();
}

std::string LockBatchRequestBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.member("clientId", client_id);
  w.member("consumerGroup", consumer_group);
  w.key("mqSet");
  write_queues(w, mq_set);
  w.member("onlyThisBroker", only_this_broker);
  w.end_object();
  return w.take();
}

Result<LockBatchResponseBody> LockBatchResponseBody::parse(std::string_view json) {
  return read_body<LockBatchResponseBody>(
      json, [](Value v, LockBatchResponseBody& b) { read_queues(v["lockOKMQSet"], b.lock_ok_mq_set); });
}

std::string LockBatchResponseBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("lockOKMQSet");
  write_queues(w, lock_ok_mq_set);
  w.end_object();
  return w.take();
}

Result<ResetOffsetBody> ResetOffsetBody::parse(std::string_view json) {
  return read_body<ResetOffsetBody>(
      json, [](Value v, ResetOffsetBody& b) { read_queue_table(v["offsetTable"], b.offset_table); });
}

// A writer of the style with bare object keys: only strict style quotes them, and no peer reads that here.
static JsonStyle with_bare_keys(JsonStyle style) {
  return style == JsonStyle::strict ? JsonStyle::fastjson : style;
}

std::string ResetOffsetBody::to_json(JsonStyle style) const {
  JsonWriter w(with_bare_keys(style));
  w.begin_object();
  w.key("offsetTable");
  write_queue_table(w, offset_table);
  w.end_object();
  return w.take();
}

std::string ResetOffsetBody::to_json_for_cpp() const {
  JsonWriter w;
  w.begin_object();
  w.key("offsetTable");
  w.begin_array();
  for (const auto& [q, offset] : offset_table) {
    w.begin_object();
    w.member("brokerName", q.broker_name);
    w.member("offset", offset);
    w.member("queueId", q.queue_id);
    w.member("topic", q.topic);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.take();
}

Result<GetConsumerStatusBody> GetConsumerStatusBody::parse(std::string_view json) {
  return read_body<GetConsumerStatusBody>(json, [](Value v, GetConsumerStatusBody& b) {
    read_queue_table(v["messageQueueTable"], b.message_queue_table);
    v["consumerTable"].members(
        [&](std::string_view id, Value t) { read_queue_table(t, b.consumer_table[std::string(id)]); });
  });
}

std::string GetConsumerStatusBody::to_json(JsonStyle style) const {
  JsonWriter w(with_bare_keys(style));
  w.begin_object();
  w.key("consumerTable");
  w.members(consumer_table, [&](const auto& table) { write_queue_table(w, table); });
  w.key("messageQueueTable");
  write_queue_table(w, message_queue_table);
  w.end_object();
  return w.take();
}

// ------------------------------------------------------------------------------------------ assignment

Result<QueryAssignmentRequestBody> QueryAssignmentRequestBody::parse(std::string_view json) {
  return read_body<QueryAssignmentRequestBody>(json, [](Value v, QueryAssignmentRequestBody& b) {
    v["topic"].read(b.topic);
    v["consumerGroup"].read(b.consumer_group);
    v["clientId"].read(b.client_id);
    v["strategyName"].read(b.strategy_name);
    v["messageModel"].read_enum(b.message_model, message_models);
  });
}

std::string QueryAssignmentResponseBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  if (assignments) {
    w.key("messageQueueAssignments");
    w.begin_array();
    for (const MessageQueueAssignment& a : *assignments) {
      w.begin_object();
      w.key("messageQueue");
      write_queue(w, a.message_queue);
      w.member("mode", a.mode);
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
  return w.take();
}

static void read_mode(Value v, SetMessageRequestModeRequestBody& b) {
  v["topic"].read(b.topic);
  v["consumerGroup"].read(b.consumer_group);
  v["mode"].read(b.mode);
  v["popShareQueueNum"].read(b.pop_share_queue_num);
}

Result<SetMessageRequestModeRequestBody> SetMessageRequestModeRequestBody::parse(std::string_view json) {
  return read_body<SetMessageRequestModeRequestBody>(json, read_mode);
}

static void write_mode(JsonWriter& w, const SetMessageRequestModeRequestBody& b) {
  w.begin_object();
  w.member("consumerGroup", b.consumer_group);
  w.member("mode", b.mode);
  w.member("popShareQueueNum", b.pop_share_queue_num);
  w.member("topic", b.topic);
  w.end_object();
}

std::string SetMessageRequestModeRequestBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  write_mode(w, *this);
  return w.take();
}

Result<MessageRequestModes> MessageRequestModes::parse(std::string_view json) {
  return read_body<MessageRequestModes>(json, [](Value v, MessageRequestModes& b) {
    v["messageRequestModeMap"].members([&](std::string_view topic, Value groups) {
      groups.members([&](std::string_view group, Value mode) {
        SetMessageRequestModeRequestBody& m = b.table[std::string(topic)][std::string(group)];
        read_mode(mode, m);
        m.topic = topic;
        m.consumer_group = group;
      });
    });
  });
}

std::string MessageRequestModes::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("messageRequestModeMap");
  w.members(table, [&](const auto& groups) {
    w.members(groups, [&](const SetMessageRequestModeRequestBody& mode) { write_mode(w, mode); });
  });
  w.end_object();
  return w.take();
}

}  // namespace rmq::proto

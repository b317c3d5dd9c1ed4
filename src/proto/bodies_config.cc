#include "proto/bodies_config.h"

#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

namespace {

std::string_view filter_type_name(bool multi) {
  return multi ? "MULTI_TAG" : "SINGLE_TAG";
}

template <class Map>
void read_text_map(Value v, Map& out) {
  v.members([&](std::string_view k, Value e) { e.read(out[std::string(k)]); });
}

template <class Map>
void write_text_map(JsonWriter& w, const Map& m) {
  w.begin_object();
  for (const auto& [k, v] : m) w.member(k, v);
  w.end_object();
}

// A key that is a number: bare in fastjson's text, quoted otherwise.
template <class T>
bool number_of(std::string_view key, T* out) {
  auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), *out);
  return ec == std::errc() && end == key.data() + key.size();
}

void read_version(Value v, DataVersion& d) {
  v["stateVersion"].read(d.state_version);
  v["timestamp"].read(d.timestamp_ms);
  // Java keeps an AtomicLong; some of its writers show it as an object with a value.
  Value counter = v["counter"];
  if (Value inner = counter["value"]; inner.present()) counter = inner;
  counter.read(d.counter);
}

template <class T>
std::string written(const T& value, JsonStyle style) {
  JsonWriter w(style);
  value.write(w);
  return w.take();
}

}  // namespace

// --------------------------------------------------------------------------------------- data version

Result<DataVersion> DataVersion::parse(std::string_view json) {
  return read_body<DataVersion>(json, read_version);
}

void DataVersion::write(JsonWriter& w) const {
  w.begin_object();
  w.member("counter", counter);
  w.member("stateVersion", state_version);
  w.member("timestamp", timestamp_ms);
  w.end_object();
}

Result<ChangeList> ChangeList::parse(std::string_view json) {
  return read_body<ChangeList>(json, [](Value v, ChangeList& l) { v["changes"].read(l.changes); });
}

std::string ChangeList::to_json() const {
  JsonWriter w;
  w.begin_object();
  w.key("changes");
  w.begin_array();
  for (const std::string& c : changes) w.text(c);
  w.end_array();
  w.end_object();
  return w.take();
}

std::string DataVersion::to_json(JsonStyle style) const {
  return written(*this, style);
}

// --------------------------------------------------------------------------------------------- topics

static void read_topic(Value v, TopicConfig& c) {
  std::string filter;
  v["topicName"].read(c.topic_name);
  v["readQueueNums"].read(c.read_queue_nums);
  v["writeQueueNums"].read(c.write_queue_nums);
  v["perm"].read(c.perm);
  v["topicFilterType"].read(filter);
  c.multi_tag = filter == "MULTI_TAG" || filter == "1";
  v["topicSysFlag"].read(c.topic_sys_flag);
  v["order"].read(c.order);
  read_text_map(v["attributes"], c.attributes);
}

Result<TopicConfig> TopicConfig::parse(std::string_view json) {
  return read_body<TopicConfig>(json, read_topic);
}

void TopicConfig::write(JsonWriter& w) const {
  w.begin_object();
  w.key("attributes");
  write_text_map(w, attributes);
  w.member("order", order);
  w.member("perm", perm);
  w.member("readQueueNums", read_queue_nums);
  w.member("topicFilterType", filter_type_name(multi_tag));
  w.member("topicName", topic_name);
  w.member("topicSysFlag", topic_sys_flag);
  w.member("writeQueueNums", write_queue_nums);
  w.end_object();
}

std::string TopicConfig::to_json(JsonStyle style) const {
  return written(*this, style);
}

std::string TopicConfig::to_line() const {
  JsonWriter w;
  write_text_map(w, attributes);
  std::string s = topic_name;
  for (int32_t n : {read_queue_nums, write_queue_nums, perm}) s += " " + std::to_string(n);
  s += " ";
  s += filter_type_name(multi_tag);
  return s + " " + w.take();
}

Result<TopicConfig> TopicConfig::parse_line(std::string_view line) {
  std::string_view parts[6];
  for (size_t i = 0; i < 6; ++i) {
    size_t end =
        i == 5 ? line.size() : std::min(line.find(' '), line.size());  // the attributes may hold blanks
    parts[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  TopicConfig c;
  c.topic_name = parts[0];
  if (c.topic_name.empty() || !number_of(parts[1], &c.read_queue_nums) ||
      !number_of(parts[2], &c.write_queue_nums) || !number_of(parts[3], &c.perm) || parts[4].empty()) {
    return fail(Errc::bad_input, "topic configuration line");
  }
  c.multi_tag = parts[4] == "MULTI_TAG";
  if (!parts[5].empty()) {
    TRY_VAR(attributes, (read_body<std::map<std::string, std::string>>(
                            parts[5], [](Value v, auto& out) { read_text_map(v, out); })));
    c.attributes = std::move(attributes);
  }
  return c;
}

static void read_topic_table(Value v, TopicConfigTable& out) {
  v.members([&](std::string_view name, Value t) {
    TopicConfig& c = out[std::string(name)];
    c.topic_name = name;
    read_topic(t, c);
  });
}

void json_read::read_topics(Value v, TopicConfigSerializeWrapper& out) {
  v.expect_object();
  read_version(v["dataVersion"], out.data_version);
  read_topic_table(v["topicConfigTable"], out.topic_config_table);
  if (Value m = v["mappingDataVersion"]; m.present()) read_version(m, out.mapping_data_version.emplace());
  out.topic_queue_mapping_info_map = v["topicQueueMappingInfoMap"].raw();
  out.topic_queue_mapping_detail_map = v["topicQueueMappingDetailMap"].raw();
}

Result<TopicConfigSerializeWrapper> TopicConfigSerializeWrapper::parse(std::string_view json) {
  return read_body<TopicConfigSerializeWrapper>(json, json_read::read_topics);
}

void TopicConfigSerializeWrapper::write(JsonWriter& w) const {
  auto raw_object = [&](const char* name, const std::string& json) {
    w.key(name);
    w.raw(json.empty() ? "{}" : std::string_view(json));
  };
  w.begin_object();
  w.key("dataVersion");
  data_version.write(w);
  if (mapping_data_version) {
    w.key("mappingDataVersion");
    mapping_data_version->write(w);
  }
  w.key("topicConfigTable");
  w.members(topic_config_table, [&](const auto& config) { config.write(w); });
  if (mapping_data_version) {
    raw_object("topicQueueMappingDetailMap", topic_queue_mapping_detail_map);
    raw_object("topicQueueMappingInfoMap", topic_queue_mapping_info_map);
  }
  w.end_object();
}

std::string TopicConfigSerializeWrapper::to_json(JsonStyle style) const {
  return written(*this, style);
}

Result<TopicConfigList> TopicConfigList::parse(std::string_view json) {
  return read_body<TopicConfigList>(json, [](Value v, TopicConfigList& l) {
    v["topicConfigList"].each([&](Value t) { read_topic(t, l.topic_config_list.emplace_back()); });
  });
}

std::string TopicConfigList::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("topicConfigList");
  w.begin_array();
  for (const TopicConfig& c : topic_config_list) c.write(w);
  w.end_array();
  w.end_object();
  return w.take();
}

// --------------------------------------------------------------------------------------------- groups

static void read_retry_policy(Value v, GroupRetryPolicy& p) {
  std::string type;
  v["type"].read(type);
  p.exponential = type == "EXPONENTIAL";
  if (Value e = v["exponentialRetryPolicy"]; e.present()) {
    auto& out = p.exponential_retry_policy.emplace();
    e["initial"].read(out.initial_ms);
    e["max"].read(out.max_ms);
    e["multiplier"].read(out.multiplier);
  }
  if (Value c = v["customizedRetryPolicy"]; c.present()) c["next"].read(p.customized_next_ms.emplace());
}

static void write_retry_policy(JsonWriter& w, const GroupRetryPolicy& p) {
  w.begin_object();
  if (p.customized_next_ms) {
    w.key("customizedRetryPolicy");
    w.begin_object();
    w.key("next");
    w.begin_array();
    for (int64_t n : *p.customized_next_ms) w.number(n);
    w.end_array();
    w.end_object();
  }
  if (p.exponential_retry_policy) {
    w.key("exponentialRetryPolicy");
    w.begin_object();
    w.member("initial", p.exponential_retry_policy->initial_ms);
    w.member("max", p.exponential_retry_policy->max_ms);
    w.member("multiplier", p.exponential_retry_policy->multiplier);
    w.end_object();
  }
  w.member("type", p.exponential ? "EXPONENTIAL" : "CUSTOMIZED");
  w.end_object();
}

static void read_group(Value v, SubscriptionGroupConfig& c) {
  v["groupName"].read(c.group_name);
  v["consumeEnable"].read(c.consume_enable);
  v["consumeFromMinEnable"].read(c.consume_from_min_enable);
  v["consumeBroadcastEnable"].read(c.consume_broadcast_enable);
  v["consumeMessageOrderly"].read(c.consume_message_orderly);
  v["retryQueueNums"].read(c.retry_queue_nums);
  v["retryMaxTimes"].read(c.retry_max_times);
  read_retry_policy(v["groupRetryPolicy"], c.group_retry_policy);
  v["brokerId"].read(c.broker_id);
  v["whichBrokerWhenConsumeSlowly"].read(c.which_broker_when_consume_slowly);
  v["notifyConsumerIdsChangedEnable"].read(c.notify_consumer_ids_changed_enable);
  v["groupSysFlag"].read(c.group_sys_flag);
  v["consumeTimeoutMinute"].read(c.consume_timeout_minute);
  if (Value set = v["subscriptionDataSet"]; set.present()) {
    auto& out = c.subscription_data_set.emplace();
    set.each([&](Value s) {
      auto& d = out.emplace_back();
      s["topic"].read(d.topic);
      s["expressionType"].read(d.expression_type);
      s["expression"].read(d.expression);
      s["version"].read(d.version);
    });
  }
  read_text_map(v["attributes"], c.attributes);
}

Result<SubscriptionGroupConfig> SubscriptionGroupConfig::parse(std::string_view json) {
  return read_body<SubscriptionGroupConfig>(json, read_group);
}

void SubscriptionGroupConfig::write(JsonWriter& w) const {
  w.begin_object();
  w.key("attributes");
  write_text_map(w, attributes);
  w.member("brokerId", broker_id);
  w.member("consumeBroadcastEnable", consume_broadcast_enable);
  w.member("consumeEnable", consume_enable);
  w.member("consumeFromMinEnable", consume_from_min_enable);
  w.member("consumeMessageOrderly", consume_message_orderly);
  w.member("consumeTimeoutMinute", consume_timeout_minute);
  w.member("groupName", group_name);
  w.key("groupRetryPolicy");
  write_retry_policy(w, group_retry_policy);
  w.member("groupSysFlag", group_sys_flag);
  w.member("notifyConsumerIdsChangedEnable", notify_consumer_ids_changed_enable);
  w.member("retryMaxTimes", retry_max_times);
  w.member("retryQueueNums", retry_queue_nums);
  if (subscription_data_set) {
    w.key("subscriptionDataSet");
    w.begin_array();
    for (const SimpleSubscriptionData& s : *subscription_data_set) {
      w.begin_object();
      w.member("expression", s.expression);
      w.member("expressionType", s.expression_type);
      w.member("topic", s.topic);
      w.member("version", s.version);
      w.end_object();
    }
    w.end_array();
  }
  w.member("whichBrokerWhenConsumeSlowly", which_broker_when_consume_slowly);
  w.end_object();
}

std::string SubscriptionGroupConfig::to_json(JsonStyle style) const {
  return written(*this, style);
}

Result<SubscriptionGroupWrapper> SubscriptionGroupWrapper::parse(std::string_view json) {
  return read_body<SubscriptionGroupWrapper>(json, [](Value v, SubscriptionGroupWrapper& out) {
    read_version(v["dataVersion"], out.data_version);
    v["subscriptionGroupTable"].members([&](std::string_view name, Value g) {
      SubscriptionGroupConfig& c = out.subscription_group_table[std::string(name)];
      c.group_name = name;
      read_group(g, c);
    });
    v["forbiddenTable"].members([&](std::string_view group, Value topics) {
      auto& bits = out.forbidden_table[std::string(group)];
      topics.members([&](std::string_view topic, Value b) { b.read(bits[std::string(topic)]); });
    });
  });
}

std::string SubscriptionGroupWrapper::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("dataVersion");
  data_version.write(w);
  w.key("forbiddenTable");
  w.members(forbidden_table, [&](const auto& topics) { write_text_map(w, topics); });
  w.key("subscriptionGroupTable");
  w.members(subscription_group_table, [&](const auto& config) { config.write(w); });
  w.end_object();
  return w.take();
}

Result<SubscriptionGroupList> SubscriptionGroupList::parse(std::string_view json) {
  return read_body<SubscriptionGroupList>(json, [](Value v, SubscriptionGroupList& l) {
    v["groupConfigList"].each([&](Value g) { read_group(g, l.group_config_list.emplace_back()); });
  });
}

std::string SubscriptionGroupList::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("groupConfigList");
  w.begin_array();
  for (const SubscriptionGroupConfig& c : group_config_list) c.write(w);
  w.end_array();
  w.end_object();
  return w.take();
}

// ------------------------------------------------------------------------------------- offsets, tables

template <class Table>
static void read_number_table(Value v, Table& out) {
  v.members([&](std::string_view key, Value e) {
    typename Table::key_type k{};
    if (!number_of(key, &k)) return v.bad();
    e.read(out[k]);
  });
}

template <class Table>
static void write_number_table(JsonWriter& w, const Table& t) {
  w.begin_object();
  for (const auto& [k, v] : t) {
    w.key_int(k);
    w.number(v);
  }
  w.end_object();
}

Result<ConsumerOffsetWrapper> ConsumerOffsetWrapper::parse(std::string_view json) {
  return read_body<ConsumerOffsetWrapper>(json, [](Value v, ConsumerOffsetWrapper& out) {
    read_version(v["dataVersion"], out.data_version);
    v["offsetTable"].members([&](std::string_view key, Value queues) {
      read_number_table(queues, out.offset_table[std::string(key)]);
    });
    v["lmqOffsetTable"].members([&](std::string_view key, Value offset) {
      if (!out.lmq_offset_table) out.lmq_offset_table.emplace();
      offset.read((*out.lmq_offset_table)[std::string(key)]);
    });
  });
}

std::string ConsumerOffsetWrapper::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("dataVersion");
  data_version.write(w);
  if (lmq_offset_table) {
    w.key("lmqOffsetTable");
    w.begin_object();
    for (const auto& [key, offset] : *lmq_offset_table) {
      w.key(key);
      w.number(offset);
    }
    w.end_object();
  }
  w.key("offsetTable");
  w.members(offset_table, [&](const auto& queues) { write_number_table(w, queues); });
  w.end_object();
  return w.take();
}

Result<DelayOffsetWrapper> DelayOffsetWrapper::parse(std::string_view json) {
  return read_body<DelayOffsetWrapper>(json, [](Value v, DelayOffsetWrapper& out) {
    read_version(v["dataVersion"], out.data_version);
    read_number_table(v["offsetTable"], out.offset_table);
    v["deliveredOffset"].read(out.delivered_offset);
  });
}

std::string DelayOffsetWrapper::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("dataVersion");
  data_version.write(w);
  if (delivered_offset) w.member("deliveredOffset", *delivered_offset);
  w.key("offsetTable");
  write_number_table(w, offset_table);
  w.end_object();
  return w.take();
}

Result<TimerDelivered> TimerDelivered::parse(std::string_view json) {
  return read_body<TimerDelivered>(json, [](Value v, TimerDelivered& out) {
    v["marker"].read(out.marker);
    v["done"].read(out.done);
    v["javaLastReadTimeMs"].read(out.java_last_read_ms);
    v["javaTimerQueueOffset"].read(out.java_queue_offset);
  });
}

std::string TimerDelivered::to_json() const {
  JsonWriter w(JsonStyle::pretty);
  w.begin_object();
  w.member("marker", marker);
  w.member("done", done);
  if (java_last_read_ms) w.member("javaLastReadTimeMs", *java_last_read_ms);
  if (java_queue_offset) w.member("javaTimerQueueOffset", *java_queue_offset);
  w.end_object();
  return w.take();
}

Result<TimerMetrics> TimerMetrics::parse(std::string_view json) {
  return read_body<TimerMetrics>(json, [](Value v, TimerMetrics& out) {
    read_version(v["dataVersion"], out.data_version);
    v["timingCount"].members([&](std::string_view topic, Value one) {
      Count& c = out.timing_count[std::string(topic)];
      one["count"].read(c.count);
      one["timeStamp"].read(c.time_stamp);
    });
  });
}

std::string TimerMetrics::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("dataVersion");
  data_version.write(w);
  w.key("timingCount");
  w.members(timing_count, [&](const Count& c) {
    w.begin_object();
    w.member("count", c.count);
    w.member("timeStamp", c.time_stamp);
    w.end_object();
  });
  w.end_object();
  return w.take();
}

Result<KVTable> KVTable::parse(std::string_view json) {
  return read_body<KVTable>(json, [](Value v, KVTable& out) { read_text_map(v["table"], out.table); });
}

std::string KVTable::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("table");
  write_text_map(w, table);
  w.end_object();
  return w.take();
}

Result<KVConfigWrapper> KVConfigWrapper::parse(std::string_view json) {
  return read_body<KVConfigWrapper>(json, [](Value v, KVConfigWrapper& out) {
    v["configTable"].members(
        [&](std::string_view space, Value kv) { read_text_map(kv, out.config_table[std::string(space)]); });
  });
}

std::string KVConfigWrapper::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("configTable");
  w.members(config_table, [&](const auto& kv) { write_text_map(w, kv); });
  w.end_object();
  return w.take();
}

}  // namespace rmq::proto

#include "proto/bodies_stats.h"

#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

namespace {

// Tables keyed by a queue have bare object keys in every style that a peer reads.
JsonStyle bare(JsonStyle style) {
  return style == JsonStyle::strict ? JsonStyle::fastjson : style;
}

template <class T, class F>
void read_queue_table(Value v, std::map<MessageQueue, T>& out, F read_entry) {
  v.members([&](std::string_view key, Value e) {
    auto q = MessageQueue::parse(key);
    if (!q) return v.bad();
    read_entry(e, out[*q]);
  });
}

template <class T, class F>
void write_queue_table(JsonWriter& w, const std::map<MessageQueue, T>& t, F write_entry) {
  w.begin_object();
  for (const auto& [q, entry] : t) {
    w.key_object(q.to_json());
    w.begin_object();
    write_entry(entry);
    w.end_object();
  }
  w.end_object();
}

void read_connections(Value v, std::vector<Connection>& out) {
  v.each([&](Value c) {
    Connection& to = out.emplace_back();
    c["clientId"].read(to.client_id);
    c["clientAddr"].read(to.client_addr);
    c["language"].read(to.language);
    c["version"].read(to.version);
  });
}

void write_connections(JsonWriter& w, const std::vector<Connection>& all) {
  w.key("connectionSet");
  w.begin_array();
  for (const Connection& c : all) {
    w.begin_object();
    w.member("clientAddr", c.client_addr);
    w.member("clientId", c.client_id);
    w.member("language", c.language);
    w.member("version", c.version);
    w.end_object();
  }
  w.end_array();
}

}  // namespace

Result<TopicStatsTable> TopicStatsTable::parse(std::string_view json) {
  return read_body<TopicStatsTable>(json, [](Value v, TopicStatsTable& t) {
    read_queue_table(v["offsetTable"], t.offset_table, [](Value e, TopicOffset& o) {
      e["minOffset"].read(o.min_offset);
      e["maxOffset"].read(o.max_offset);
      e["lastUpdateTimestamp"].read(o.last_update_timestamp_ms);
    });
    v["topicPutTps"].read(t.topic_put_tps);
  });
}

std::string TopicStatsTable::to_json(JsonStyle style) const {
  JsonWriter w(bare(style));
  w.begin_object();
  w.key("offsetTable");
  write_queue_table(w, offset_table, [&](const TopicOffset& o) {
    w.member("lastUpdateTimestamp", o.last_update_timestamp_ms);
    w.member("maxOffset", o.max_offset);
    w.member("minOffset", o.min_offset);
  });
  w.member("topicPutTps", topic_put_tps);
  w.end_object();
  return w.take();
}

static void read_consume_stats(Value v, ConsumeStats& s) {
  read_queue_table(v["offsetTable"], s.offset_table, [](Value e, OffsetWrapper& o) {
    e["brokerOffset"].read(o.broker_offset);
    e["consumerOffset"].read(o.consumer_offset);
    e["pullOffset"].read(o.pull_offset);
    e["lastTimestamp"].read(o.last_timestamp_ms);
  });
  v["consumeTps"].read(s.consume_tps);
}

Result<ConsumeStats> ConsumeStats::parse(std::string_view json) {
  return read_body<ConsumeStats>(json, read_consume_stats);
}

void ConsumeStats::write(JsonWriter& w) const {
  w.begin_object();
  w.member("consumeTps", consume_tps);
  w.key("offsetTable");
  write_queue_table(w, offset_table, [&](const OffsetWrapper& o) {
    w.member("brokerOffset", o.broker_offset);
    w.member("consumerOffset", o.consumer_offset);
    w.member("lastTimestamp", o.last_timestamp_ms);
    w.member("pullOffset", o.pull_offset);
  });
  w.end_object();
}

std::string ConsumeStats::to_json(JsonStyle style) const {
  JsonWriter w(bare(style));
  write(w);
  return w.take();
}

Result<ConsumeStatsList> ConsumeStatsList::parse(std::string_view json) {
  return read_body<ConsumeStatsList>(json, [](Value v, ConsumeStatsList& l) {
    v["brokerAddr"].read(l.broker_addr);
    v["consumeStatsList"].each([&](Value groups) {
      auto& to = l.consume_stats_list.emplace_back();
      groups.members([&](std::string_view group, Value stats) {
        auto& all = to[std::string(group)];
        stats.each([&](Value s) { read_consume_stats(s, all.emplace_back()); });
      });
    });
    v["totalDiff"].read(l.total_diff);
    v["totalInflightDiff"].read(l.total_inflight_diff);
  });
}

std::string ConsumeStatsList::to_json(JsonStyle style) const {
  JsonWriter w(bare(style));
  w.begin_object();
  w.member("brokerAddr", broker_addr);
  w.key("consumeStatsList");
  w.begin_array();
  for (const auto& groups : consume_stats_list) {
    w.begin_object();
    for (const auto& [group, stats] : groups) {
      w.key(group);
      w.begin_array();
      for (const ConsumeStats& s : stats) s.write(w);
      w.end_array();
    }
    w.end_object();
  }
  w.end_array();
  w.member("totalDiff", total_diff);
  w.member("totalInflightDiff", total_inflight_diff);
  w.end_object();
  return w.take();
}

std::string QueryCorrectionOffsetBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("correctionOffsets");
  w.begin_object();
  for (const auto& [queue, offset] : correction_offsets) {
    w.key_int(queue);
    w.number(offset);
  }
  w.end_object();
  w.end_object();
  return w.take();
}

Result<ConsumerConnection> ConsumerConnection::parse(std::string_view json) {
  std::map<std::string, std::string> subscriptions;
  TRY_VAR(out, read_body<ConsumerConnection>(json, [&](Value v, ConsumerConnection& c) {
            read_connections(v["connectionSet"], c.connection_set);
            static constexpr ConsumeType types[] = {ConsumeType::CONSUME_ACTIVELY,
                                                    ConsumeType::CONSUME_PASSIVELY, ConsumeType::CONSUME_POP};
            static constexpr MessageModel models[] = {MessageModel::BROADCASTING, MessageModel::CLUSTERING};
            static constexpr ConsumeFromWhere wheres[] = {
                ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET,
                ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
                ConsumeFromWhere::CONSUME_FROM_MIN_OFFSET,
                ConsumeFromWhere::CONSUME_FROM_MAX_OFFSET,
                ConsumeFromWhere::CONSUME_FROM_FIRST_OFFSET,
                ConsumeFromWhere::CONSUME_FROM_TIMESTAMP};
            v["consumeType"].read_enum(c.consume_type, types);
            v["messageModel"].read_enum(c.message_model, models);
            v["consumeFromWhere"].read_enum(c.consume_from_where, wheres);
            v["subscriptionTable"].members(
                [&](std::string_view t, Value s) { subscriptions[std::string(t)] = s.raw(); });
          }));
  for (const auto& [topic, text] : subscriptions) {
    TRY_VAR(s, SubscriptionData::parse(text));
    out.subscription_table[topic] = std::move(s);
  }
  return std::move(out);
}

std::string ConsumerConnection::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  write_connections(w, connection_set);
  w.member("consumeFromWhere", name_of(consume_from_where));
  w.member("consumeType", name_of(consume_type));
  w.member("messageModel", name_of(message_model));
  w.key("subscriptionTable");
  w.members(subscription_table, [&](const auto& s) { s.write(w); });
  w.end_object();
  return w.take();
}

Result<ProducerConnection> ProducerConnection::parse(std::string_view json) {
  return read_body<ProducerConnection>(
      json, [](Value v, ProducerConnection& c) { read_connections(v["connectionSet"], c.connection_set); });
}

std::string ProducerConnection::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  write_connections(w, connection_set);
  w.end_object();
  return w.take();
}

Result<ProducerTableInfo> ProducerTableInfo::parse(std::string_view json) {
  return read_body<ProducerTableInfo>(json, [](Value v, ProducerTableInfo& t) {
    v["data"].members([&](std::string_view group, Value producers) {
      auto& out = t.data[std::string(group)];
      producers.each([&](Value p) {
        ProducerInfo& to = out.emplace_back();
        p["clientId"].read(to.client_id);
        p["remoteIP"].read(to.remote_ip);
        p["language"].read(to.language);
        p["version"].read(to.version);
        p["lastUpdateTimestamp"].read(to.last_update_timestamp_ms);
      });
    });
  });
}

std::string ProducerTableInfo::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("data");
  w.begin_object();
  for (const auto& [group, producers] : data) {
    w.key(group);
    w.begin_array();
    for (const ProducerInfo& p : producers) {
      w.begin_object();
      w.member("clientId", p.client_id);
      w.member("language", p.language);
      w.member("lastUpdateTimestamp", p.last_update_timestamp_ms);
      w.member("remoteIP", p.remote_ip);
      w.member("version", p.version);
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
  w.end_object();
  return w.take();
}

Result<GroupList> GroupList::parse(std::string_view json) {
  return read_body<GroupList>(json, [](Value v, GroupList& l) { v["groupList"].read(l.group_list); });
}

std::string GroupList::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("groupList");
  w.begin_array();
  for (const std::string& g : group_list) w.text(g);
  w.end_array();
  w.end_object();
  return w.take();
}

Result<BrokerStatsData> BrokerStatsData::parse(std::string_view json) {
  return read_body<BrokerStatsData>(json, [](Value v, BrokerStatsData& d) {
    auto read = [&](std::string_view name, BrokerStatsItem& i) {
      v[name]["avgpt"].read(i.avgpt);
      v[name]["sum"].read(i.sum);
      v[name]["tps"].read(i.tps);
    };
    read("statsDay", d.day);
    read("statsHour", d.hour);
    read("statsMinute", d.minute);
  });
}

std::string BrokerStatsData::to_json(JsonStyle style) const {
  JsonWriter w(style);
  auto write = [&](std::string_view name, const BrokerStatsItem& i) {
    w.key(name);
    w.begin_object();
    w.member("avgpt", i.avgpt);
    w.member("sum", i.sum);
    w.member("tps", i.tps);
    w.end_object();
  };
  w.begin_object();
  write("statsDay", day);
  write("statsHour", hour);
  write("statsMinute", minute);
  w.end_object();
  return w.take();
}

std::string QuerySubscriptionResponseBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.member("group", group);
  if (subscription_data) {
    w.key("subscriptionData");
    subscription_data->write(w);
  }
  w.member("topic", topic);
  w.end_object();
  return w.take();
}

}  // namespace rmq::proto

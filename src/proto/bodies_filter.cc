#include "proto/bodies_filter.h"

#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

namespace {

void read_filter(Value v, ConsumerFilterData& d) {
  v["consumerGroup"].read(d.consumer_group);
  v["topic"].read(d.topic);
  v["expression"].read(d.expression);
  v["expressionType"].read(d.expression_type);
  v["bornTime"].read(d.born_time_ms);
  v["deadTime"].read(d.dead_time_ms);
  v["clientVersion"].read(d.client_version);
  v["bloomFilterData"]["bitNum"].read(d.bloom_filter_data.bit_num);
  v["bloomFilterData"]["bitPos"].read(d.bloom_filter_data.bit_pos);
}

void write_filter(JsonWriter& w, const ConsumerFilterData& d) {
  w.begin_object();
  w.key("bloomFilterData");
  w.begin_object();
  w.member("bitNum", d.bloom_filter_data.bit_num);
  w.key("bitPos");
  w.begin_array();
  for (int32_t bit : d.bloom_filter_data.bit_pos) w.number(bit);
  w.end_array();
  w.end_object();
  w.member("bornTime", d.born_time_ms);
  w.member("clientVersion", d.client_version);
  w.member("consumerGroup", d.consumer_group);
  w.member("deadTime", d.dead_time_ms);
  w.member("expression", d.expression);
  w.member("expressionType", d.expression_type);
  w.member("topic", d.topic);
  w.end_object();
}

}  // namespace

Result<ConsumerFilterWrapper> ConsumerFilterWrapper::parse(std::string_view json) {
  return read_body<ConsumerFilterWrapper>(json, [](Value v, ConsumerFilterWrapper& out) {
    v["filterDataByTopic"].members([&](std::string_view topic, Value t) {
      Groups& groups = out.filter_data_by_topic[std::string(topic)];
      t["groupFilterData"].members([&](std::string_view group, Value g) {
        ConsumerFilterData& d = groups[std::string(group)];
        d.topic = topic;
        d.consumer_group = group;
        read_filter(g, d);
      });
    });
  });
}

std::string ConsumerFilterWrapper::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("filterDataByTopic");
  w.begin_object();
  for (const auto& [topic, groups] : filter_data_by_topic) {
    w.key(topic);
    w.begin_object();
    w.key("groupFilterData");
    w.members(groups, [&](const ConsumerFilterData& d) { write_filter(w, d); });
    w.member("topic", topic);
    w.end_object();
  }
  w.end_object();
  w.end_object();
  return w.take();
}

}  // namespace rmq::proto

#include "proto/bodies_export.h"

#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

// The tables have the names that they have in topics.json and subscriptionGroup.json.
static Result<MetadataTables> parse_tables(std::string_view json) {
  TRY_VAR(topics, TopicConfigSerializeWrapper::parse(json));
  TRY_VAR(groups, SubscriptionGroupWrapper::parse(json));
  return MetadataTables{std::move(topics.topic_config_table), std::move(groups.subscription_group_table)};
}

void MetadataExport::add(std::string_view broker, MetadataTables tables) {
  for (const auto& [name, topic] : tables.topic_config_table) {
    auto [at, is_new] = all.topic_config_table.emplace(name, topic);
    if (is_new) continue;
    at->second.read_queue_nums += topic.read_queue_nums;
    at->second.write_queue_nums += topic.write_queue_nums;
  }
  for (const auto& [name, group] : tables.subscription_group_table) {
    auto [at, is_new] = all.subscription_group_table.emplace(name, group);
    if (!is_new) at->second.retry_queue_nums += group.retry_queue_nums;
  }
  brokers[std::string(broker)] = std::move(tables);
}

Result<MetadataExport> MetadataExport::parse(std::string_view json) {
  std::map<std::string, std::string> texts;
  TRY_VAR(out, read_body<MetadataExport>(json, [&](Value v, MetadataExport& e) {
            v["exportTime"].read(e.export_time_ms);
            v["brokers"].members([&](std::string_view name, Value b) { texts[std::string(name)] = b.raw(); });
          }));
  TRY_VAR(all, parse_tables(json));
  out.all = std::move(all);
  for (const auto& [name, text] : texts) {
    TRY_VAR(tables, parse_tables(text));
    out.brokers[name] = std::move(tables);
  }
  return std::move(out);
}

static void write_tables(JsonWriter& w, const MetadataTables& t) {
  w.key("subscriptionGroupTable");
  w.members(t.subscription_group_table, [&](const SubscriptionGroupConfig& g) { g.write(w); });
  w.key("topicConfigTable");
  w.members(t.topic_config_table, [&](const TopicConfig& c) { c.write(w); });
}

std::string MetadataExport::to_json() const {
  JsonWriter w(JsonStyle::pretty);
  w.begin_object();
  w.key("brokers");
  w.members(brokers, [&](const MetadataTables& t) {
    w.begin_object();
    write_tables(w, t);
    w.end_object();
  });
  w.member("exportTime", export_time_ms);
  write_tables(w, all);
  w.end_object();
  return w.take();
}

}  // namespace rmq::proto

#include "daemon/broker/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "daemon/broker/deduplication.h"
#include "daemon/config_table.h"

namespace rmq::broker {

namespace {

// Values that RocketMQ knows and this broker does not serve: a topic that has one would not be what it says.
struct UnservedAttribute {
  std::string_view name, value;
  const char* why;
};
constexpr UnservedAttribute unserved_attributes[] = {
    {"queue.type", "RocksDBCQ", "this rmqd has no ConsumeQueues in RocksDB (queue.type=RocksDBCQ)"},
    {"message.type", "LITE", "this rmqd has no lite topics (message.type=LITE)"},
};

}  // namespace

const char* why_unserved(std::string_view name, std::string_view value) {
  for (const UnservedAttribute& u : unserved_attributes)
    if (u.name == name && u.value == value) return u.why;
  return nullptr;
}

namespace {

struct AttributeRule {
  std::string_view name;
  bool changeable;
  std::set<std::string_view> values;  // empty: a number
  int64_t min = 0, max = 0;
};
// TopicAttributes and SubscriptionGroupAttributes of 5.5.0 that mean something here, and our own; others are
// refused.
const AttributeRule topic_rules[] = {
    {"queue.type", false, {"BatchCQ", "SimpleCQ", "RocksDBCQ"}},
    {"cleanup.policy", false, {"DELETE", "COMPACTION"}},
    {"message.type",
     true,
     {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "LITE", "PRIORITY"}},
    {"dedup.key", true, {"NONE", "UNIQ_KEY", "KEYS"}},
    {"dedup.window.ms", true, {}, dedup_window_ms_min, dedup_window_ms_max},
    {"discard.policy", true, {"none", "age", "fifo", "lru"}},
    {"discard.age.ms", true, {}, 1, INT64_MAX},
    {"discard.bytes", true, {}, 1, INT64_MAX},
};
const AttributeRule group_rules[] = {
    {"priority.factor", true, {}, 0, priority_factor_default},
};

bool is_legal(const AttributeRule& rule, std::string_view value) {
  if (!rule.values.empty()) return rule.values.contains(value);
  int64_t n = 0;
  return detail::parse_int(value, n) && n >= rule.min && n <= rule.max;
}

const AttributeRule* find_rule(AttributesOf of, std::string_view key) {
  const auto rules = of == AttributesOf::topic ? std::span<const AttributeRule>(topic_rules)
                                               : std::span<const AttributeRule>(group_rules);
  auto found = std::ranges::find(rules, key, &AttributeRule::name);
  return found == rules.end() ? nullptr : &*found;
}

// One item of the text into key and value; the value of a deletion is absent.
std::optional<std::string> split_item(std::string_view item, bool& deletes, std::string_view& key,
                                      std::string_view& value) {
  size_t eq = item.find('=');
  if (eq != std::string_view::npos) {
    key = item.substr(0, eq);
    value = item.substr(eq + 1);
    if (key.find('+') == std::string_view::npos)
      return "add/alter attribute format is wrong: " + std::string(key);
    deletes = false;
  } else {
    key = item;
    if (key.find('-') == std::string_view::npos)
      return "delete attribute format is wrong: " + std::string(key);
    deletes = true;
  }
  key.remove_prefix(1);
  if (key.find_first_of("+-") != std::string_view::npos || key.empty())
    return "kv string format wrong: " + std::string(item);
  return std::nullopt;
}

using Attributes = std::map<std::string, std::string>;

bool has(const Attributes& attributes, const char* name, std::string_view value) {
  auto found = attributes.find(name);
  return found != attributes.end() && found->second == value;
}

bool is_compaction(const Attributes& attributes) {
  return has(attributes, "cleanup.policy", "COMPACTION");
}

bool is_batch(const Attributes& attributes) {
  return has(attributes, "queue.type", "BatchCQ");
}

}  // namespace

const char* why_not_together(const std::map<std::string, std::string>& attributes) {
  if (!is_batch(attributes)) return nullptr;
  if (is_compaction(attributes))
    return "a topic with queue.type=BatchCQ cannot have cleanup.policy=COMPACTION: a record of it is of many "
           "keys";
  const auto dedup = attributes.find("dedup.key");
  if (dedup != attributes.end() && dedup->second != "NONE")
    return "a topic with queue.type=BatchCQ cannot have dedup.key: a record of it is of many messages";
  return nullptr;
}

std::optional<std::string> alter_attributes(AttributesOf of, std::string_view text, bool creating,
                                            std::map<std::string, std::string>& current) {
  std::map<std::string, std::string> next = current;
  std::set<std::string> seen;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) continue;
    bool deletes = false;
    std::string_view key, value;
    if (auto wrong = split_item(item, deletes, key, value)) return wrong;
    std::string k(key);
    if (!seen.insert(k).second) return "key duplication: " + k;
    const AttributeRule* rule = find_rule(of, key);
    if (rule == nullptr && key.starts_with("lite.")) return "this rmqd has no lite topics (" + k + ")";
    if (rule == nullptr) return "unsupported key: " + k;
    if (!creating && !rule->changeable) return "attempt to update an unchangeable attribute. key: " + k;
    if (deletes) {
      if (creating) return "only add attribute is supported while creating topic. key: " + k;
      if (!current.contains(k)) return "attempt to delete a nonexistent key: " + k;
      next.erase(k);
      continue;
    }
    if (!is_legal(*rule, value))
      return rule->values.empty()
                 ? fmt::format("value of {} is not in range({}, {}): {}", k, rule->min, rule->max, value)
                 : "value is not in set: " + std::string(value);
    if (const char* why = why_unserved(key, value)) return why;
    next[k] = std::string(value);
  }
  auto discards = next.find("discard.policy");
  if (is_compaction(next) && discards != next.end() && discards->second != "none")
    return "a topic with cleanup.policy=COMPACTION keeps the latest message of each key, discard.policy must "
           "be none";
  if (const char* why = why_not_together(next)) return why;
  current = std::move(next);
  return std::nullopt;
}

bool is_compaction_topic(const proto::TopicConfig& topic) {
  return is_compaction(topic.attributes);
}

bool is_batch_topic(const proto::TopicConfig& topic) {
  return is_batch(topic.attributes);
}

bool is_priority_topic(const proto::TopicConfig& topic) {
  auto type = topic.attributes.find("message.type");
  return type != topic.attributes.end() && type->second == "PRIORITY";
}

int64_t priority_factor_of(const proto::SubscriptionGroupConfig& group) {
  auto factor = group.attributes.find("priority.factor");
  int64_t n = 0;
  return factor != group.attributes.end() && detail::parse_int(factor->second, n) ? n
                                                                                  : priority_factor_default;
}

}  // namespace rmq::broker

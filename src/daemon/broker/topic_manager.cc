#include "daemon/broker/topic_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/attributes.h"
#include "daemon/broker/deduplication.h"
#include "proto/codes.h"
#include "store/light_queues.h"

namespace rmq::broker {

namespace names = proto::names;
namespace perm = proto::perm;

TopicManager::TopicManager(Disk& disk, std::string path, const BrokerConfig& config, int delay_levels)
    : LoggedTable(disk, std::move(path), Durability::on_media), config_(config), delay_levels_(delay_levels) {
  light_.read_queue_nums = light_.write_queue_nums = 1;
  light_.perm = perm::read | perm::write;
}

const proto::TopicConfig* TopicManager::find(std::string_view topic) const {
  auto it = topics_.find(topic);
  if (it != topics_.end()) return &it->second;
  if (!config_.enableLmq || !store::is_light_queue(topic)) return nullptr;
  light_.topic_name = topic;
  return &light_;
}

const proto::TopicConfig* TopicManager::find_plain(std::string_view topic) const {
  auto it = topics_.find(topic);
  return it == topics_.end() || !it->second.plain ? nullptr : &it->second;
}

void TopicManager::add(proto::TopicConfig c) {
  std::string name = c.topic_name;
  bool plain = !is_system(name) && !proto::is_retry_topic(name) && !c.order && !DedupRule::of(c) &&
               !is_compaction_topic(c) && !is_batch_topic(c);
  topics_.insert_or_assign(std::move(name), KnownTopic{std::move(c), plain});
}

bool TopicManager::is_system(std::string_view topic) const {
  return proto::is_system_topic(topic) || system_.contains(topic);
}

std::vector<std::string> TopicManager::system_topics() const {
  std::vector<std::string> out;
  for (const auto& [name, c] : topics_)
    if (is_system(name)) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

bool TopicManager::put(proto::TopicConfig c, int64_t now_ms) {
  if (config_.enableLmq && store::is_light_queue(c.topic_name)) return false;
  auto it = topics_.find(c.topic_name);
  if (it != topics_.end() && static_cast<const proto::TopicConfig&>(it->second) == c) return false;
  const std::string name = c.topic_name, text = c.to_json();
  add(std::move(c));
  note_change(name, now_ms);
  note(front_of('T', version_) + text);
  return true;
}

bool TopicManager::remove(std::string_view topic, int64_t now_ms) {
  auto it = topics_.find(topic);
  if (it == topics_.end()) return false;
  topics_.erase(it);
  note_change(topic, now_ms);
  note(front_of('D', version_).append(topic));
  return true;
}

void TopicManager::note_change(std::string_view topic, int64_t now_ms) {
  constexpr size_t names_max = 20'000;
  version_.next(now_ms);
  change_count_++;
  last_changed_.emplace_back(topic);
  if (last_changed_.size() > names_max) last_changed_.pop_front();
}

void TopicManager::changed(int64_t now_ms) {
  version_.next(now_ms);
  change_count_++;
  last_changed_.clear();  // none of them tells enough now
  note(front_of('V', version_));
}

std::optional<std::vector<std::string>> TopicManager::changed_since(uint64_t since) const {
  const uint64_t changes = change_count_ - since;
  if (changes > last_changed_.size()) return std::nullopt;
  std::vector<std::string> names(last_changed_.end() - static_cast<ptrdiff_t>(changes), last_changed_.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<proto::TopicConfig> TopicManager::pattern_for(std::string_view topic,
                                                            std::string_view default_topic,
                                                            int32_t client_queues, bool unit) const {
  const proto::TopicConfig* pattern = find(default_topic);
  if (pattern == nullptr) return std::nullopt;
  int32_t pattern_perm = pattern->perm;
  // Without automatic creation TBW102 is no pattern, even where an older topics.json still says so.
  if (default_topic == names::TBW102 && !config_.autoCreateTopicEnable) pattern_perm &= ~perm::inherit;
  if (!perm::is_inherited(pattern_perm)) return std::nullopt;
  proto::TopicConfig c;
  c.topic_name = std::string(topic);
  int32_t queues = std::clamp(client_queues, 0, pattern->write_queue_nums);
  c.read_queue_nums = c.write_queue_nums = queues;
  c.perm = pattern_perm & ~perm::inherit;
  c.multi_tag = pattern->multi_tag;
  c.topic_sys_flag = unit ? proto::topic_sys_flag::unit : 0;
  return c;
}

void TopicManager::add_system_topics(int64_t now_ms) {
  auto add_one = [&](std::string name, int32_t queues, int32_t p) {
    system_.insert(name);
    proto::TopicConfig c;
    c.topic_name = std::move(name);
    c.read_queue_nums = c.write_queue_nums = queues;
    c.perm = p;
    put(std::move(c), now_ms);
  };
  const int32_t rw = perm::read | perm::write;
  add_one(std::string(names::SELF_TEST_TOPIC), 1, rw);
  if (config_.autoCreateTopicEnable)
    add_one(std::string(names::TBW102), static_cast<int32_t>(config_.defaultTopicQueueNums),
            rw | perm::inherit);
  add_one(std::string(names::BenchmarkTest), 1024, rw);
  add_one(config_.brokerClusterName, 16, perm::inherit | (config_.clusterTopicEnable ? rw : 0));
  add_one(config_.brokerName, 1, perm::inherit | (config_.brokerTopicEnable ? rw : 0));
  add_one(std::string(names::OFFSET_MOVED_EVENT), 1, rw);
  add_one(std::string(names::SCHEDULE_TOPIC_XXXX), delay_levels_, rw);
  if (config_.traceTopicEnable) add_one(config_.msgTraceTopicName, 1, rw);
  add_one(config_.brokerClusterName + "_" + std::string(names::reply_topic_suffix), 1, rw);
  add_one(std::string(names::revive_log_prefix) + config_.brokerClusterName, 8, rw);
  add_one(std::string(names::sync_broker_member_prefix) + config_.brokerName, 1, perm::inherit);
  if (config_.timerWheelEnable) add_one(std::string(names::rmq_sys_wheel_timer), 1, rw);
  add_one(std::string(names::rmq_sys_delivered), 3, rw);
  add_one(std::string(names::RMQ_SYS_TRANS_HALF_TOPIC), 1, rw);
  add_one(std::string(names::RMQ_SYS_TRANS_OP_HALF_TOPIC), 1, rw);
  // Those that the file brought were looked at before their names were known.
  for (auto& [name, t] : topics_) t.plain = t.plain && !is_system(name);
}

proto::TopicConfigSerializeWrapper TopicManager::snapshot() const {
  proto::TopicConfigSerializeWrapper w;
  w.data_version = version_;
  for (const auto& [name, c] : topics_) w.topic_config_table.emplace(name, c);
  return w;
}

std::string TopicManager::render() const {
  return snapshot().to_json(proto::JsonStyle::pretty);
}

Task<Result<std::vector<std::string>>> read_batch_topics(Disk& disk, std::string path,
                                                         const BrokerConfig& config) {
  std::vector<std::string> names;
  TopicManager topics(disk, std::move(path), config, 0);
  auto read = co_await topics.peek("BatchCQ");
  if (!read && read.error().code == Errc::corrupt) co_return fail(Errc::corrupt, "config/topics.json");
  if (!read) co_return std::unexpected(read.error());
  for (const auto& [name, c] : topics.all())
    if (is_batch_topic(c)) names.push_back(name);
  co_return names;
}

Result<void> TopicManager::parse(std::string_view text) {
  TRY_VAR(w, proto::TopicConfigSerializeWrapper::parse(text));
  for (const auto& [name, c] : w.topic_config_table) {
    for (const auto& [attribute, value] : c.attributes)
      if (const char* why = why_unserved(attribute, value)) return fail(Errc::unsupported, why);
    if (const char* why = why_not_together(c.attributes)) return fail(Errc::unsupported, why);
  }
  version_ = w.data_version;
  for (auto& [name, c] : w.topic_config_table) add(std::move(c));
  return {};
}

bool TopicManager::apply(std::string_view change) {
  const char what = take_front(change, version_);
  if (what == 'T') {
    auto c = proto::TopicConfig::parse(change);
    if (c) add(std::move(*c));
    return c.has_value();
  }
  if (auto it = topics_.find(change); what == 'D' && it != topics_.end()) topics_.erase(it);
  return what == 'D' || what == 'V';
}

}  // namespace rmq::broker

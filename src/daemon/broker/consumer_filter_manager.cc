#include "daemon/broker/consumer_filter_manager.h"

#include <algorithm>

#include "base/log.h"
#include "filter/bloom_filter.h"
#include "uring/loop.h"

namespace rmq::broker {

const ConsumerFilterManager::Filter* ConsumerFilterManager::find(std::string_view topic,
                                                                 std::string_view group) const {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return nullptr;
  auto g = t->second.find(group);
  return g == t->second.end() ? nullptr : &g->second;
}

ConsumerFilterManager::Filter* ConsumerFilterManager::find_to_change(std::string_view topic,
                                                                     std::string_view group) {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return nullptr;
  auto g = t->second.find(group);
  return g == t->second.end() ? nullptr : &g->second;
}

std::string_view ConsumerFilterManager::why_refused(std::string_view topic, std::string_view group) const {
  auto g = refused_.find(group);
  if (g == refused_.end()) return {};
  auto t = g->second.find(topic);
  return t == g->second.end() ? std::string_view() : t->second.reason;
}

std::expected<ExpressionRef, filter::CompileError> ConsumerFilterManager::compile(std::string_view expression,
                                                                                  std::string_view type) {
  if (type == proto::sql92) return expressions_.get(expression);
  filter::CompileError e;
  e.reason = "an expression of a type that is neither TAG nor SQL92";
  return std::unexpected(std::move(e));
}

void ConsumerFilterManager::register_group(std::string_view group,
                                           const std::vector<proto::SubscriptionData>& subscriptions,
                                           int64_t now_ms) {
  for (const proto::SubscriptionData& s : subscriptions) register_one(group, s, now_ms);
  auto known = topics_of_.find(group);
  if (known == topics_of_.end()) return;
  for (const std::string& topic : known->second) {
    auto same = [&](const proto::SubscriptionData& s) { return s.topic == topic; };
    if (std::none_of(subscriptions.begin(), subscriptions.end(), same)) set_dead(topic, group, now_ms);
  }
}

void ConsumerFilterManager::register_one(std::string_view group, const proto::SubscriptionData& s,
                                         int64_t now_ms) {
  if (s.is_tag_type() || s.sub_string.empty()) return;
  Filter* old = find_to_change(s.topic, group);
  if (old != nullptr && s.sub_version < old->data.client_version) return;
  const bool same = old != nullptr && old->data.expression == s.sub_string &&
                    old->data.expression_type == s.expression_type;
  if (same || (old != nullptr && s.sub_version == old->data.client_version)) {
    changed_ = changed_ || old->data.is_dead() || s.sub_version != old->data.client_version;
    old->data.client_version = s.sub_version;
    old->data.dead_time_ms = 0;
    return;
  }
  auto expression = compile(s.sub_string, s.expression_type);
  if (!expression) return refuse(group, s, expression.error().to_string());
  if (auto ignored = (*expression)->expression().ignored_from())
    log(LogLevel::warning, ids::filter_end_ignored,
        "the end of a consumer group's filter is no part of it and counts for nothing",
        {{"GROUP", group},
         {"TOPIC", s.topic},
         {"FROM", "line " + std::to_string(ignored->line) + ", column " + std::to_string(ignored->column)}});
  if (auto refused = refused_.find(group); refused != refused_.end()) refused->second.erase(s.topic);
  Filter f;
  f.data.consumer_group = group;
  f.data.topic = s.topic;
  f.data.expression = s.sub_string;
  f.data.expression_type = s.expression_type;
  f.data.born_time_ms = now_ms;
  f.data.client_version = s.sub_version;
  f.data.bloom_filter_data.bit_num = filter::BloomFilter::bits;
  f.data.bloom_filter_data.bit_pos = filter::BloomFilter::positions(std::string(group) + "#" + s.topic);
  f.expression = std::move(*expression);
  topics_of_[std::string(group)].insert(s.topic);
  topics_[s.topic].insert_or_assign(std::string(group), std::move(f));
  changed_ = true;
}

// Each member says it again with each heartbeat; the journal has it once.
void ConsumerFilterManager::refuse(std::string_view group, const proto::SubscriptionData& s,
                                   std::string reason) {
  if (auto t = topics_.find(s.topic); t != topics_.end())
    if (auto g = t->second.find(group); g != t->second.end()) t->second.erase(g), changed_ = true;
  Refused& known = refused_[std::string(group)][s.topic];
  if (known.client_version == s.sub_version && known.reason == reason) return;
  log(LogLevel::warning, ids::filter_refused, "a consumer group's filter is no SQL92 expression",
      {{"GROUP", group}, {"TOPIC", s.topic}, {"REASON", reason}});
  known = {s.sub_version, std::move(reason)};
}

void ConsumerFilterManager::set_dead(std::string_view topic, std::string_view group, int64_t now_ms) {
  Filter* f = find_to_change(topic, group);
  if (f == nullptr || f->data.is_dead()) return;
  f->data.dead_time_ms = std::max(now_ms, f->data.born_time_ms);
  changed_ = true;
}

void ConsumerFilterManager::unregister_group(std::string_view group, int64_t now_ms) {
  if (auto refused = refused_.find(group); refused != refused_.end()) refused_.erase(refused);
  auto known = topics_of_.find(group);
  if (known == topics_of_.end()) return;
  for (const std::string& topic : known->second) set_dead(topic, group, now_ms);
}

Task<void> ConsumerFilterManager::clean_and_save(int64_t now_ms) {
  auto too_old = [&](const Filter& f) {
    return f.data.is_dead() && now_ms - f.data.dead_time_ms >= clean_after_ms_;
  };
  for (auto& [topic, groups] : topics_)
    changed_ |= std::erase_if(groups, [&](const auto& g) { return too_old(g.second); }) != 0;
  std::erase_if(topics_, [](const auto& t) { return t.second.empty(); });
  if (!std::exchange(changed_, false)) co_return;
  topics_of_.clear();
  for (const auto& [topic, groups] : topics_)
    for (const auto& [group, f] : groups) topics_of_[group].insert(topic);
  [[maybe_unused]] auto saved = co_await save();
}

std::string ConsumerFilterManager::render() const {
  proto::ConsumerFilterWrapper w;
  for (const auto& [topic, groups] : topics_)
    for (const auto& [group, f] : groups) w.filter_data_by_topic[topic].emplace(group, f.data);
  return w.to_json(proto::JsonStyle::fastjson);
}

// Nobody is there yet after a start: all are dead since then, and alive again with their heartbeats.
Result<void> ConsumerFilterManager::parse(std::string_view text) {
  TRY_VAR(w, proto::ConsumerFilterWrapper::parse(text));
  const int64_t now_ms = Loop::current().wall_ms();
  for (auto& [topic, groups] : w.filter_data_by_topic) {
    for (auto& [group, data] : groups) {
      auto expression = compile(data.expression, data.expression_type);
      if (!expression) continue;
      Filter f{std::move(data), std::move(*expression)};
      if (!f.data.is_dead()) f.data.dead_time_ms = std::max(now_ms, f.data.born_time_ms);
      topics_of_[group].insert(topic);
      topics_[topic].insert_or_assign(group, std::move(f));
    }
  }
  return {};
}

}  // namespace rmq::broker

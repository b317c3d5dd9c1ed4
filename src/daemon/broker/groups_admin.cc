// Consumer groups: create, change, delete, list, and how far they are (remoting.md 16.2, 16.3).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "daemon/broker/attributes.h"
#include "daemon/broker/handlers.h"
#include "proto/bodies_admin.h"
#include "proto/bodies_route.h"
#include "proto/bodies_stats.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;

// The attributes of a request are changes ({"+key":"value"}), as a topic's are; an error text.
static std::optional<std::string> take_attributes(const Broker& b, proto::SubscriptionGroupConfig& c) {
  const auto* old = b.groups.find(c.group_name);
  std::string changes;
  for (const auto& [key, value] : c.attributes)
    changes += (changes.empty() ? "" : ",") + key + (key.starts_with('-') ? "" : "=" + value);
  c.attributes = old == nullptr ? std::map<std::string, std::string>{} : old->attributes;
  return alter_attributes(AttributesOf::group, changes, old == nullptr, c.attributes);
}

Task<void> update_and_create_group(Broker& b, Request& r, proto::EmptyHeader) {
  auto c = proto::SubscriptionGroupConfig::parse(r.frame().body_text());
  if (!c)
    co_return r.reply(ResponseCode::INVALID_PARAMETER,
                      std::string("the group's configuration cannot be read: ") + c.error().where);
  if (auto wrong = proto::invalid_group_remark(c->group_name))
    co_return r.reply(ResponseCode::INVALID_PARAMETER, *wrong);
  std::string name = c->group_name;
  if (auto wrong = take_attributes(b, *c)) co_return r.reply(ResponseCode::SYSTEM_ERROR, *wrong);
  if (b.groups.put(std::move(*c), b.wall_ms())) {
    log(LogLevel::notice, ids::group_changed, "consumer group created or changed",
        {{"GROUP", name}, {"CLIENT", r.connection().peer_text()}});
    auto saved = co_await b.groups.save();
    if (!saved)
      co_return r.reply(ResponseCode::SYSTEM_ERROR, "the group cannot be kept: " + to_string(saved.error()));
  }
  r.reply(ResponseCode::SUCCESS);
}

// All of them or none.
Task<void> update_and_create_group_list(Broker& b, Request& r, proto::EmptyHeader) {
  auto list = proto::SubscriptionGroupList::parse(r.frame().body_text());
  if (!list)
    co_return r.reply(ResponseCode::INVALID_PARAMETER,
                      std::string("the list of groups cannot be read: ") + list.error().where);
  for (proto::SubscriptionGroupConfig& c : list->group_config_list) {
    if (auto wrong = proto::invalid_group_remark(c.group_name))
      co_return r.reply(ResponseCode::INVALID_PARAMETER, *wrong);
    if (auto wrong = take_attributes(b, c)) co_return r.reply(ResponseCode::SYSTEM_ERROR, *wrong);
  }
  bool changed = false;
  for (proto::SubscriptionGroupConfig& c : list->group_config_list) {
    const std::string name = c.group_name;
    if (!b.groups.put(std::move(c), b.wall_ms())) continue;
    log(LogLevel::notice, ids::group_changed, "consumer group created or changed",
        {{"GROUP", name}, {"CLIENT", r.connection().peer_text()}});
    changed = true;
  }
  Result<void> saved;
  if (changed) saved = co_await b.groups.save();
  if (!saved)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, "the groups cannot be kept: " + to_string(saved.error()));
  r.reply(ResponseCode::SUCCESS);
}

// Whether a group may read a topic by its registered subscription; `readable` changes it.
Task<void> update_and_get_group_forbidden(Broker& b, Request& r, proto::UpdateGroupForbiddenRequestHeader h) {
  proto::GroupForbidden body{std::string(h.group), std::string(h.topic), true};
  if (h.readable && b.groups.find(h.group) == nullptr) co_return refuse_unknown_group(r, h.group);
  if (h.readable && b.groups.set_read_forbidden(h.group, h.topic, !*h.readable, b.wall_ms())) {
    log(LogLevel::notice, ids::group_changed,
        *h.readable ? "a group may read a topic again" : "a group may not read a topic any more",
        {{"GROUP", h.group}, {"TOPIC", h.topic}, {"CLIENT", r.connection().peer_text()}});
    auto saved = co_await b.groups.save();
    if (!saved)
      co_return r.reply(ResponseCode::SYSTEM_ERROR, "the group cannot be kept: " + to_string(saved.error()));
  }
  body.readable = !b.groups.is_read_forbidden(body.group, body.topic);
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

Task<void> delete_group(Broker& b, Request& r, proto::DeleteSubscriptionGroupRequestHeader h) {
  bool existed = b.groups.remove(h.group_name, b.wall_ms());
  b.metrics.forget_group(h.group_name);
  if (h.clean_offset) {
    b.offsets.remove_group(h.group_name);
    auto kept = co_await b.offsets.kept(b.offsets.last_change());
    if (!kept) co_return refuse_unkept_offsets(r, kept.error());
  }
  if (existed) {
    log(LogLevel::notice, ids::group_changed, "consumer group deleted",
        {{"GROUP", h.group_name}, {"CLIENT", r.connection().peer_text()}});
    auto saved = co_await b.groups.save();
    if (!saved)
      co_return r.reply(ResponseCode::SYSTEM_ERROR,
                        "the deletion cannot be kept: " + to_string(saved.error()));
  }
  r.reply(ResponseCode::SUCCESS);
}

void get_all_group_config(Broker& b, Request& r, proto::GetAllSubscriptionGroupRequestHeader h) {
  constexpr int32_t split_metadata_size = 2000;
  proto::SubscriptionGroupWrapper w = b.groups.snapshot();
  proto::GetAllSubscriptionGroupResponseHeader answer{
      static_cast<int32_t>(w.subscription_group_table.size())};
  if (h.group_seq || h.max_group_num || h.data_version) {
    int32_t from = std::max(0, h.group_seq.value_or(0));
    int32_t most = std::clamp(h.max_group_num.value_or(split_metadata_size), 1, split_metadata_size);
    auto asked = h.data_version ? proto::DataVersion::parse(*h.data_version)
                                : Result<proto::DataVersion>(w.data_version);
    if (!asked || *asked != w.data_version) from = 0;
    proto::SubscriptionGroupTable part;
    int32_t i = 0;
    for (auto& [name, c] : w.subscription_group_table) {
      if (i >= from && i < from + most) part.emplace(name, std::move(c));
      i++;
    }
    w.subscription_group_table = std::move(part);
  }
  r.answer<proto::GetAllSubscriptiongroupConfig>(answer, w.to_json());
}

void get_group_config(Broker& b, Request& r, proto::GetSubscriptionGroupConfigRequestHeader h) {
  const auto* g = b.groups.find(h.group);
  if (g == nullptr)
    return r.reply(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
                   fmt::format("No group in this broker. group: {}", h.group));
  r.reply(ResponseCode::SUCCESS, {}, g->to_json());
}

static std::vector<std::string> topics_of_list(const proto::GetConsumeStatsRequestHeader& h) {
  std::vector<std::string> out;
  std::string_view list = h.topic_list.value_or(std::string_view{});
  while (!list.empty()) {
    size_t semicolon = list.find(';');
    if (semicolon != 0) out.emplace_back(list.substr(0, semicolon));
    list = semicolon == std::string_view::npos ? std::string_view{} : list.substr(semicolon + 1);
  }
  return out;
}

// Whoever is online and subscribes, but not to this topic. A pull consumer of queues that it was given
// subscribes to nothing, and consumes all the same.
static bool subscribes_elsewhere(const Broker& b, std::string_view group, std::string_view topic) {
  const ConsumerGroupInfo* online = b.clients.consumers(group);
  return online != nullptr && !online->subscriptions.empty() && online->subscription(topic) == nullptr;
}

// False: there is no such topic.
static Task<bool> add_consume_stats(Broker& b, proto::ConsumeStats& out, std::string group,
                                    std::string topic) {
  const proto::TopicConfig* c = b.topics.find(topic);
  if (c == nullptr) co_return false;
  out.consume_tps += b.stats_items.get_tps(topic, group, b.now_ns());
  const int32_t queues = c->read_queue_nums;
  for (int32_t q = 0; q < queues; q++) {
    proto::OffsetWrapper o;
    o.broker_offset = std::max<int64_t>(0, b.store.max_offset(topic, q));
    o.consumer_offset = std::max<int64_t>(0, b.offsets.query(group, topic, q).value_or(0));
    o.pull_offset = std::max(o.consumer_offset, b.offsets.pulled(group, topic, q));
    if (o.consumer_offset > 0)
      o.last_timestamp_ms =
          std::max<int64_t>(0, co_await b.store.store_time(topic, q, o.consumer_offset - 1));
    out.offset_table[{topic, b.config.brokerName, q}] = o;
  }
  co_return true;
}

// Of a list of topics whatever the group subscribes to, as RocketMQ has it.
Task<void> get_consume_stats(Broker& b, Request& r, proto::GetConsumeStatsRequestHeader h) {
  proto::ConsumeStats body;
  std::vector<std::string> topics = topics_of_list(h);
  if (topics.empty()) {
    if (h.topic && !h.topic->empty())
      topics.emplace_back(*h.topic);
    else
      topics = b.offsets.topics_of(h.consumer_group);
    std::erase_if(topics, [&](const auto& t) { return subscribes_elsewhere(b, h.consumer_group, t); });
  }
  for (const std::string& topic : topics)
    co_await add_consume_stats(b, body, std::string(h.consumer_group), topic);
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

Task<void> get_broker_consume_stats(Broker& b, Request& r, proto::GetBrokerConsumeStatsRequestHeader h) {
  proto::ConsumeStatsList body;
  body.broker_addr = b.address_text();
  std::vector<std::string> groups;
  for (const auto& [name, g] : b.groups.all()) groups.push_back(name);
  for (const std::string& group : groups) {
    std::vector<proto::ConsumeStats>& of_group = body.consume_stats_list.emplace_back()[group];
    for (const std::string& topic : b.offsets.topics_of(group)) {
      const proto::TopicConfig* c = b.topics.find(topic);
      if (c == nullptr || (h.is_order && !c->order) || subscribes_elsewhere(b, group, topic)) continue;
      proto::ConsumeStats stats;
      bool shown = co_await add_consume_stats(b, stats, group, topic);
      if (!shown) continue;
      for (const auto& [queue, o] : stats.offset_table) {
        body.total_diff += o.broker_offset - o.consumer_offset;
        body.total_inflight_diff += o.pull_offset - o.consumer_offset;
      }
      of_group.push_back(std::move(stats));
    }
  }
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

void query_topic_consume_by_who(Broker& b, Request& r, proto::QueryTopicConsumeByWhoRequestHeader h) {
  std::set<std::string> groups;
  for (const auto& [name, g] : b.clients.all_consumers())
    if (g.subscription(h.topic) != nullptr) groups.insert(name);
  for (std::string& g : b.offsets.groups_of(h.topic)) groups.insert(std::move(g));
  r.reply(ResponseCode::SUCCESS, {}, proto::GroupList{{groups.begin(), groups.end()}}.to_json());
}

void query_topics_by_consumer(Broker& b, Request& r, proto::QueryTopicsByConsumerRequestHeader h) {
  proto::TopicList list;
  list.topic_list = b.offsets.topics_of(h.group);
  std::sort(list.topic_list.begin(), list.topic_list.end());
  list.broker_addr = b.address_text();
  r.reply(ResponseCode::SUCCESS, {}, list.to_json());
}

void query_subscription_by_consumer(Broker& b, Request& r,
                                    proto::QuerySubscriptionByConsumerRequestHeader h) {
  proto::QuerySubscriptionResponseBody body;
  body.group = std::string(h.group);
  body.topic = std::string(h.topic.value_or(std::string_view{}));
  const ConsumerGroupInfo* g = b.clients.consumers(h.group);
  if (const auto* s = g == nullptr ? nullptr : g->subscription(body.topic)) body.subscription_data = *s;
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

}  // namespace rmq::broker

// Topics: create, change, delete, list, statistics (remoting.md 16.1).
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/broker/attributes.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker/pop/pop_handle.h"
#include "proto/bodies_route.h"
#include "proto/bodies_stats.h"
#include "proto/codes.h"
#include "store/light_queues.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

std::optional<std::string> wrong_topic(const Broker& b, const proto::TopicConfig& c) {
  if (auto wrong = proto::invalid_topic_remark(c.topic_name)) return wrong;
  if (b.topics.is_system(c.topic_name)) return proto::system_topic_remark(c.topic_name);
  for (int32_t n : {c.read_queue_nums, c.write_queue_nums})
    if (n < 0 || n > limits::queues_per_topic_max)
      return fmt::format("a topic has from 0 to {} queues, not {}", limits::queues_per_topic_max, n);
  // A topic with another perm would be stored by the reference and then be of no use to anybody.
  if (c.perm != 0 && (c.perm < 2 || c.perm > 7 || c.perm == 3 || c.perm == 5 || c.perm == 7))
    return fmt::format("perm {} is not one of 0 (none), 2 (write), 4 (read), 6 (both)", c.perm);
  return std::nullopt;
}

// Changes to a topic's attributes instead of its attributes; a refusal in RocketMQ's words.
std::optional<Refusal> take_attributes(const Broker& b, std::string_view changes, proto::TopicConfig& c) {
  const proto::TopicConfig* old = b.topics.find(c.topic_name);
  c.attributes.clear();
  if (old != nullptr) c.attributes = old->attributes;
  if (auto wrong = alter_attributes(AttributesOf::topic, changes, old == nullptr, c.attributes))
    return Refusal{ResponseCode::SYSTEM_ERROR, *wrong};
  const auto is_mixed = [](const proto::TopicConfig& t) {
    auto type = t.attributes.find("message.type");
    return type != t.attributes.end() && type->second == "MIXED";
  };
  if (!b.config.enableMixedMessageType && is_mixed(c) && (old == nullptr || !is_mixed(*old)))
    return Refusal{ResponseCode::INVALID_PARAMETER, "MIXED message type is not supported."};
  return std::nullopt;
}

}  // namespace

Task<void> update_and_create_topic(Broker& b, Request& r, proto::CreateTopicRequestHeader h) {
  proto::TopicConfig c;
  c.topic_name = std::string(h.topic);
  c.read_queue_nums = h.read_queue_nums;
  c.write_queue_nums = h.write_queue_nums;
  c.perm = h.perm;
  c.multi_tag = h.topic_filter_type == "MULTI_TAG";
  c.topic_sys_flag = h.topic_sys_flag.value_or(0);
  c.order = h.order;
  if (auto wrong = wrong_topic(b, c)) co_return r.reply(ResponseCode::INVALID_PARAMETER, *wrong);
  if (auto wrong = take_attributes(b, h.attributes.value_or(std::string_view{}), c))
    co_return r.reply(wrong->code, wrong->remark);
  auto changed = co_await b.change_topic(std::move(c));
  if (!changed)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, "the topic cannot be kept: " + to_string(changed.error()));
  r.reply(ResponseCode::SUCCESS);
}

// The attributes of a list's topic are changes too: {"+key":"value","-key":""}.
static std::string attribute_changes(const proto::TopicConfig& c) {
  std::string text;
  for (const auto& [key, value] : c.attributes) {
    if (!text.empty()) text += ',';
    text += key.starts_with('-') ? key : key + "=" + value;
  }
  return text;
}

// All topics are looked at before any is made. RocketMQ leaves the rest of the list undone when one of its
// topics is as it was already; here every topic is as the list says.
Task<void> update_and_create_topic_list(Broker& b, Request& r, proto::EmptyHeader) {
  auto list = proto::TopicConfigList::parse(r.frame().body_text());
  if (!list)
    co_return r.reply(ResponseCode::INVALID_PARAMETER,
                      std::string("the list of topics cannot be read: ") + list.error().where);
  for (proto::TopicConfig& c : list->topic_config_list) {
    if (auto wrong = wrong_topic(b, c))
      co_return r.reply(ResponseCode::INVALID_PARAMETER, c.topic_name + ": " + *wrong);
    if (auto wrong = take_attributes(b, attribute_changes(c), c))
      co_return r.reply(wrong->code, c.topic_name + ": " + wrong->remark);
  }
  auto changed = co_await b.change_topics(std::move(list->topic_config_list));
  if (!changed)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, "the topics cannot be kept: " + to_string(changed.error()));
  r.reply(ResponseCode::SUCCESS);
}

// What was popped from the topic and not acknowledged goes with it.
static std::vector<std::string> pop_retry_topics_of(const Broker& b, std::string_view topic) {
  std::vector<std::string> out;
  if (proto::is_retry_topic(topic)) return out;
  for (const std::string& group : b.offsets.groups_of(topic))
    for (bool v2 : {false, true})
      if (std::string t = pop_retry_topic(group, topic, v2); b.topics.find(t) != nullptr)
        out.push_back(std::move(t));
  return out;
}

Task<void> delete_topic(Broker& b, Request& r, proto::DeleteTopicRequestHeader h) {
  if (h.topic.find_first_not_of(" \t") == std::string_view::npos)
    co_return r.reply(ResponseCode::INVALID_PARAMETER, "The specified topic is blank.");
  if (b.topics.is_system(h.topic))
    co_return r.reply(ResponseCode::INVALID_PARAMETER, proto::system_topic_remark(h.topic));
  std::vector<std::string> retries = pop_retry_topics_of(b, h.topic);
  bool existed = b.topics.remove(h.topic, b.wall_ms());
  for (const std::string& t : retries) existed = b.topics.remove(t, b.wall_ms()) || existed;
  b.offsets.remove_topic(h.topic);
  for (const std::string& t : retries) b.offsets.remove_topic(t);
  auto kept = co_await b.offsets.kept(b.offsets.last_change());
  if (!kept) co_return refuse_unkept_offsets(r, kept.error());
  b.dedup.topic_deleted(h.topic);
  b.metrics.forget_topic(h.topic);
  for (const std::string& t : retries) b.metrics.forget_topic(t);
  if (existed) {
    log(LogLevel::notice, ids::topic_changed, "topic deleted",
        {{"TOPIC", h.topic}, {"CLIENT", r.connection().peer_text()}});
    auto saved = co_await b.topics.save();
    if (!saved)
      co_return r.reply(ResponseCode::SYSTEM_ERROR,
                        "the deletion cannot be kept: " + to_string(saved.error()));
  }
  // A topic of this name that somebody makes from here on starts with empty queues.
  if (b.topics.find(h.topic) == nullptr || store::is_light_queue(h.topic))
    co_await b.store.delete_topic(std::string(h.topic));
  for (std::string& t : retries)
    if (b.topics.find(t) == nullptr) co_await b.store.delete_topic(std::move(t));
  r.reply(ResponseCode::SUCCESS);
}

// With a paging field: a part of the topics in order of their names, as 5.3 and newer brokers ask for.
void get_all_topic_config(Broker& b, Request& r, proto::GetAllTopicConfigRequestHeader h) {
  constexpr int32_t split_metadata_size = 2000;
  proto::TopicConfigSerializeWrapper w = b.topics.snapshot();
  proto::GetAllTopicConfigResponseHeader answer{static_cast<int32_t>(w.topic_config_table.size())};
  if (h.topic_seq || h.max_topic_num || h.data_version) {
    int32_t from = std::max(0, h.topic_seq.value_or(0));
    int32_t most = std::clamp(h.max_topic_num.value_or(split_metadata_size), 1, split_metadata_size);
    auto asked = h.data_version ? proto::DataVersion::parse(*h.data_version)
                                : Result<proto::DataVersion>(w.data_version);
    if (!asked || *asked != w.data_version) from = 0;
    proto::TopicConfigTable part;
    int32_t i = 0;
    for (auto& [name, c] : w.topic_config_table) {
      if (i >= from && i < from + most) part.emplace(name, std::move(c));
      i++;
    }
    w.topic_config_table = std::move(part);
  }
  w.mapping_data_version = proto::DataVersion{};
  w.topic_queue_mapping_info_map = w.topic_queue_mapping_detail_map = "{}";
  r.answer<proto::GetAllTopicConfig>(answer, w.to_json());
}

void get_topic_config(Broker& b, Request& r, proto::GetTopicConfigRequestHeader h) {
  const proto::TopicConfig* c = b.topics.find(h.topic);
  if (c == nullptr)
    return r.reply(ResponseCode::TOPIC_NOT_EXIST, fmt::format("No topic in this broker. topic: {}", h.topic));
  r.reply(ResponseCode::SUCCESS, {}, c->to_json());
}

Task<void> get_topic_stats_info(Broker& b, Request& r, proto::GetTopicStatsInfoRequestHeader h) {
  const proto::TopicConfig* c = b.topics.find(h.topic);
  if (c == nullptr) co_return refuse_unknown_topic(r, h.topic);
  proto::TopicStatsTable body;
  const int32_t queues = std::max(c->read_queue_nums, c->write_queue_nums);
  for (int32_t q = 0; q < queues; q++) {
    proto::TopicOffset o;
    o.min_offset = std::max<int64_t>(0, b.store.min_offset(h.topic, q));
    o.max_offset = b.store.max_offset(h.topic, q);
    if (o.max_offset > 0)
      o.last_update_timestamp_ms =
          std::max<int64_t>(0, co_await b.store.store_time(h.topic, q, o.max_offset - 1));
    body.offset_table[{std::string(h.topic), b.config.brokerName, q}] = o;
  }
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

void get_system_topic_list(Broker& b, Request& r, proto::EmptyHeader) {
  proto::TopicList list;
  list.topic_list = b.topics.system_topics();
  r.reply(ResponseCode::SUCCESS, {}, list.to_json());
}

}  // namespace rmq::broker

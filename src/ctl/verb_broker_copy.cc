// rmqctl broker copy: topics and groups of one broker are made at another one, for a broker that takes the
// place of the first. Groups come before topics, and get their positions with each topic, since clients come
// as soon as the topic is registered.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/admin_calls.h"
#include "ctl/broker_work.h"
#include "ctl/queue_scan.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

class Copying {
 public:
  Copying(Context& c, Channel& from, Channel& to) : c_(c), from_(from), to_(to) {}
  Outcome<void> run();

 private:
  Outcome<void> choose();
  Outcome<std::vector<std::string>> consumers_of(const std::string& topic);
  Outcome<void> copy_group(const proto::SubscriptionGroupConfig& group);
  Outcome<void> copy_topic(const proto::TopicConfig& topic);
  Outcome<void> set_positions(const proto::TopicConfig& topic);
  void row(const char* kind, const std::string& name, std::string_view result) {
    rows_.add({Cell::text(kind), Cell::text(name), Cell::text(result)});
  }

  Context& c_;
  Channel &from_, &to_;
  proto::TopicConfigTable topics_, topics_there_;
  proto::SubscriptionGroupTable groups_, groups_there_;
  Table rows_{{{"KIND", "kind"}, {"NAME", "name"}, {"RESULT", "result"}}};
  size_t refused_ = 0;
};

// Those that are not brokers' own; with --topic that one and its groups.
Outcome<void> Copying::choose() {
  TRY_VAR(servers, server_names(c_));
  TRY_VAR(topics, topics_at(from_));
  TRY_VAR(groups, groups_at(from_));
  std::erase_if(topics, [&](const auto& t) { return is_made_by_brokers(t.first, servers); });
  std::erase_if(groups, [&](const auto& g) { return is_group_of_brokers(g.first); });
  if (const std::string& wanted = c_.options().topic; !wanted.empty()) {
    if (!topics.contains(wanted))
      return fail(Exit::refused, fmt::format("the {} has no topic \"{}\"", from_.peer().to_string(), wanted));
    std::erase_if(topics, [&](const auto& t) { return t.first != wanted; });
    TRY_VAR(consumers, consumers_of(wanted));
    std::erase_if(groups, [&](const auto& g) {
      return std::find(consumers.begin(), consumers.end(), g.first) == consumers.end();
    });
  }
  topics_ = std::move(topics);
  groups_ = std::move(groups);
  TRY_VAR(topics_there, topics_at(to_));
  TRY_VAR(groups_there, groups_at(to_));
  topics_there_ = std::move(topics_there);
  groups_there_ = std::move(groups_there);
  return {};
}

Outcome<std::vector<std::string>> Copying::consumers_of(const std::string& topic) {
  proto::QueryTopicConsumeByWhoRequestHeader h;
  h.topic = topic;
  TRY_VAR(reply, from_.ask<proto::QueryTopicConsumeByWho>(h));
  TRY_VAR(list, parse_body<proto::GroupList>(from_, reply, "QUERY_TOPIC_CONSUME_BY_WHO"));
  return std::move(list.group_list);
}

Outcome<void> Copying::copy_group(const proto::SubscriptionGroupConfig& group) {
  if (groups_there_.contains(group.group_name)) {
    row("group", group.group_name, "there already");
    return {};
  }
  TRY_VAR(reply, to_.call<proto::UpdateAndCreateSubscriptiongroup>({}, group.to_json()));
  if (!reply.ok()) refused_++;
  row("group", group.group_name, reply.ok() ? "made" : to_.refusal(reply).error().text);
  return {};
}

Outcome<void> Copying::copy_topic(const proto::TopicConfig& topic) {
  if (topics_there_.contains(topic.topic_name)) {
    row("topic", topic.topic_name, "there already");
    return set_positions(topic);
  }
  std::string attributes;
  for (const auto& [name, value] : topic.attributes)
    attributes += fmt::format("{}+{}={}", attributes.empty() ? "" : ",", name, value);
  auto made = put_topic_at(to_, topic, attributes);
  if (!made && made.error().exit != Exit::refused) return made;
  row("topic", topic.topic_name, made ? "made" : made.error().text);
  if (!made) {
    refused_++;
    return {};
  }
  return set_positions(topic);
}

// Without a position a group that begins at the end would miss what came before its consumers did.
Outcome<void> Copying::set_positions(const proto::TopicConfig& topic) {
  TRY_VAR(consumers, consumers_of(topic.topic_name));
  for (const std::string& group : consumers) {
    if (is_group_of_brokers(group)) continue;
    int32_t set = 0;
    for (int32_t q = 0; q < topic.read_queue_nums; q++) {
      TRY_VAR(position, committed_offset(to_, group, topic.topic_name, q, -1));
      if (position >= 0) continue;
      TRY_VAR(begin, queue_offset<proto::GetMinOffset>(to_, topic.topic_name, q));
      proto::UpdateConsumerOffsetRequestHeader h;
      h.consumer_group = group;
      h.topic = topic.topic_name;
      h.queue_id = q;
      h.commit_offset = std::max<int64_t>(begin, 0);
      TRY(to_.ask<proto::UpdateConsumerOffset>(h));
      set++;
    }
    row("position", fmt::format("{} in {}", group, topic.topic_name),
        set == 0 ? std::string("there already")
                 : fmt::format("the beginning of {} queue{}", set, set == 1 ? "" : "s"));
  }
  return {};
}

Outcome<void> Copying::run() {
  TRY(choose());
  size_t topics = 0, groups = 0;
  for (const auto& [name, topic] : topics_) topics += !topics_there_.contains(name);
  for (const auto& [name, group] : groups_) groups += !groups_there_.contains(name);
  if (topics + groups != 0)
    TRY(c_.confirm(fmt::format("{} topics and {} groups will be made at {}; clients will come to it.", topics,
                               groups, to_.peer().to_string())));
  for (const auto& [name, group] : groups_) TRY(copy_group(group));
  for (const auto& [name, topic] : topics_) TRY(copy_topic(topic));
  c_.print_table(rows_);
  if (refused_ == 0) return {};
  return fail(Exit::refused, fmt::format("the {} refused {} of them", to_.peer().to_string(), refused_));
}

}  // namespace

Outcome<void> copy_broker(Context& c) {
  TRY_VAR(from, c.broker_named(c.arg(0)));
  TRY_VAR(to, c.broker_named(c.arg(1)));
  if (from.address == to.address) return fail(Exit::usage, "broker copy: FROM and TO are one broker");
  TRY_VAR(source, c.broker_at(from.address, from.name));
  TRY_VAR(target, c.broker_at(to.address, to.name));
  return Copying(c, *source, *target).run();
}

}  // namespace rmq::ctl

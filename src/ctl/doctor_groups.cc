// The doctor's checks of consumer groups: members that do not want the same, queues that nobody has.
//
// Brokers do not know who has which queue, consumers do: each is asked through a broker
// (GET_CONSUMER_RUNNING_INFO). What looks wrong is looked at again a moment later, since groups share their
// queues anew whenever a member comes or goes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <thread>

#include "ctl/admin_calls.h"
#include "ctl/doctor.h"
#include "proto/bodies_config.h"
#include "proto/headers_admin.h"
#include "proto/headers_push.h"

namespace rmq::ctl {

namespace {

constexpr const char* no_members = "group-without-members";
constexpr size_t groups_max = 500, members_asked_max = 100, abandoned_shown = 3;
constexpr auto settle_time = std::chrono::milliseconds(3000);

using Subscriptions = std::map<std::string, std::string>;  // topic to what is wanted of it

Subscriptions subscriptions_of(const proto::ConsumerRunningInfo& info) {
  Subscriptions out;
  for (const proto::SubscriptionData& s : info.subscription_set)
    if (!proto::is_retry_topic(s.topic))
      out[s.topic] = s.is_tag_type() ? s.sub_string : s.expression_type + ": " + s.sub_string;
  return out;
}

std::string text_of(const Subscriptions& s, const std::string& topic) {
  auto it = s.find(topic);
  return it == s.end() ? "nothing" : "\"" + it->second + "\"";
}

}  // namespace

std::optional<Doctor::Group> Doctor::group_at(Channel& broker, const std::string& name) {
  auto online = members_at(broker, name);
  if (!online || !*online) return std::nullopt;
  Group out;
  out.name = name;
  out.is_broadcast = (*online)->message_model == proto::MessageModel::BROADCASTING;
  out.pops = (*online)->consume_type == proto::ConsumeType::CONSUME_POP;
  for (const proto::Connection& c : (*online)->connection_set) {
    Member m{c.client_id, std::nullopt};
    if (out.members.size() < members_asked_max) {
      proto::GetConsumerRunningInfoRequestHeader h;
      h.consumer_group = name;
      h.client_id = m.client_id;
      auto reply = broker.call<proto::GetConsumerRunningInfo>(h);
      if (reply && reply->ok())
        if (auto info = proto::ConsumerRunningInfo::parse(reply->body())) m.info = std::move(*info);
    }
    out.members.push_back(std::move(m));
  }
  return out;
}

std::optional<Finding> Doctor::subscription_mismatch(const Group& g) const {
  const Member* first = nullptr;
  for (const Member& m : g.members) {
    if (!m.info) continue;
    if (first == nullptr) {
      first = &m;
      continue;
    }
    const Subscriptions a = subscriptions_of(*first->info), b = subscriptions_of(*m.info);
    if (a == b) continue;
    std::set<std::string> topics;
    for (const auto& [topic, wanted] : a) topics.insert(topic);
    for (const auto& [topic, wanted] : b) topics.insert(topic);
    std::erase_if(topics, [&](const std::string& t) { return text_of(a, t) == text_of(b, t); });
    const std::string& topic = *topics.begin();
    return Finding{
        Grade::problem, "subscription-mismatch", "group " + g.name,
        fmt::format("its members want different messages, so some are lost for it: of topic {}, {} wants {}, "
                    "{} wants {}",
                    topic, first->client_id, text_of(a, topic), m.client_id, text_of(b, topic)),
        "All consumers of a group must subscribe to the same topics with the same expressions: what is in a "
        "member's queues and not wanted by it is passed over. Give consumers that want something else a "
        "group "
        "of their own. During a roll-out this goes away by itself."};
  }
  return std::nullopt;
}

std::vector<proto::MessageQueue> Doctor::queues_of(const std::string& topic) {
  auto [it, is_new] = queues_.try_emplace(topic);
  if (!is_new) return it->second;
  auto route = c_.route(topic);
  if (!route) return it->second;
  for (const proto::QueueData& q : route->queue_datas) {
    if (!proto::perm::is_readable(q.perm)) continue;
    for (int32_t i = 0; i < q.read_queue_nums; i++) it->second.push_back({topic, q.broker_name, i});
  }
  return it->second;
}

std::optional<Finding> Doctor::queues_without_owner(const Group& g) {
  if (g.is_broadcast || g.pops || g.members.empty()) return std::nullopt;
  std::set<proto::MessageQueue> owned;
  std::set<std::string> topics;
  for (const Member& m : g.members) {
    if (!m.info) return std::nullopt;  // it may have them
    for (const auto& [queue, state] : m.info->mq_table)
      if (!state.dropped) owned.insert(queue);
    for (const auto& [topic, wanted] : subscriptions_of(*m.info)) topics.insert(topic);
  }
  std::vector<proto::MessageQueue> missing;
  size_t all = 0;
  for (const std::string& topic : topics)
    for (const proto::MessageQueue& q : queues_of(topic)) {
      all++;
      if (!owned.contains(q)) missing.push_back(q);
    }
  if (!missing.empty())
    return Finding{
        Grade::problem, "queues-without-owner", "group " + g.name,
        fmt::format(
            "none of its members consumes {} of its {} queues, messages there wait: queue {} of topic "
            "{} at {}{}",
            missing.size(), all, missing.front().queue_id, missing.front().topic, missing.front().broker_name,
            missing.size() == 1 ? "" : ", and others"),
        fmt::format(
            "\"rmqctl group running {}\" shows who has which queue. Usual causes: members with different "
            "allocation strategies or subscriptions, two with the same client id (instanceName), a member "
            "that hangs. Restarting the consumers shares the queues anew.",
            g.name)};
  if (all != 0 && g.members.size() > all)
    return Finding{Grade::note, "queues-without-owner", "group " + g.name,
                   fmt::format("{} members share {} queues: {} of them have nothing to do", g.members.size(),
                               all, g.members.size() - all),
                   "Give the topic more queues (rmqctl topic update --queues), or the group fewer members."};
  return std::nullopt;
}

std::vector<Finding> Doctor::group_findings(const Group& g) {
  std::vector<Finding> out;
  if (auto f = subscription_mismatch(g)) out.push_back(std::move(*f));
  if (auto f = queues_without_owner(g)) out.push_back(std::move(*f));
  return out;
}

void Doctor::look_at_group(const Group& g, Channel& broker) {
  std::vector<Finding> found = group_findings(g);
  const bool is_wrong =
      std::any_of(found.begin(), found.end(), [](const Finding& f) { return f.grade == Grade::problem; });
  if (is_wrong) {
    std::this_thread::sleep_for(settle_time);
    queues_.clear();
    auto again = group_at(broker, g.name);
    found = again ? group_findings(*again) : std::vector<Finding>{};
  }
  std::move(found.begin(), found.end(), std::back_inserter(findings_));
  const auto silent =
      std::count_if(g.members.begin(), g.members.end(), [](const Member& m) { return !m.info; });
  if (silent != 0)
    add(Grade::note, "consumers", "group " + g.name,
        fmt::format("{} of {} members do not tell what they consume", silent, g.members.size()),
        "Clients for other languages than Java often cannot: compare their subscriptions by hand.");
}

int64_t Doctor::lag_at(Channel& broker, const std::string& name) {
  proto::GetConsumeStatsRequestHeader h;
  h.consumer_group = name;
  auto reply = broker.call<proto::GetConsumeStats>(h);
  if (!reply || !reply->ok()) return 0;
  auto stats = proto::ConsumeStats::parse(reply->body());
  int64_t out = 0;
  if (stats)
    for (const auto& [queue, o] : stats->offset_table)
      out += std::max<int64_t>(0, o.broker_offset - o.consumer_offset);
  return out;
}

// The largest lags first, and few of them: where many were left behind, one cure is for all.
void Doctor::look_at_groups_without_members(const std::map<std::string, int64_t>& lags) {
  std::vector<std::pair<int64_t, std::string>> waiting;
  for (const auto& [name, lag] : lags)
    if (lag > 0) waiting.emplace_back(lag, name);
  std::sort(waiting.rbegin(), waiting.rend());
  for (size_t i = 0; i < std::min(waiting.size(), abandoned_shown); i++) {
    const auto& [lag, name] = waiting[i];
    add(Grade::warning, no_members, "group " + name,
        fmt::format("no consumer of it is connected, and {} messages wait for it", format_number(lag)),
        fmt::format("Start its consumers. If it is not needed any more: rmqctl group delete {}", name));
  }
  if (waiting.size() > abandoned_shown)
    add(Grade::note, no_members, "consumer groups",
        fmt::format("{} more groups have messages and no consumer", waiting.size() - abandoned_shown),
        "rmqctl group list");
}

void Doctor::look_at_groups() {
  std::set<std::string> seen;
  std::map<std::string, int64_t> lags;  // of groups without a member, over the brokers
  size_t online = 0;
  for (const BrokerSeen& b : brokers_) {
    if (b.node.id != 0) continue;
    auto channel = c_.broker_at(b.node.address, b.node.name);
    if (!channel) continue;
    auto reply = (*channel)->ask<proto::GetAllSubscriptiongroupConfig>({});
    auto groups = reply ? parse_body<proto::SubscriptionGroupWrapper>(**channel, *reply, "the groups")
                        : Outcome<proto::SubscriptionGroupWrapper>(std::unexpected(reply.error()));
    if (!groups) {
      add(Grade::problem, "consumers", b.subject(), groups.error().text, "Look at its journal.");
      continue;
    }
    for (const auto& [name, config] : groups->subscription_group_table) {
      if (is_group_of_brokers(name) || seen.size() >= groups_max || seen.contains(name)) continue;
      auto group = group_at(**channel, name);
      if (!group) {
        if (lags.size() < groups_max || lags.contains(name)) lags[name] += lag_at(**channel, name);
        continue;
      }
      seen.insert(name);
      online++;
      look_at_group(*group, **channel);
    }
  }
  if (brokers_.empty()) return;
  for (const std::string& name : seen) lags.erase(name);  // it is connected to another broker
  look_at_groups_without_members(lags);
  const bool none_wrong = std::none_of(findings_.begin(), findings_.end(), [](const Finding& f) {
    return f.subject.starts_with("group ") && f.grade >= Grade::warning && f.check != no_members;
  });
  if (none_wrong)
    add(Grade::ok, "consumers", "consumer groups",
        fmt::format("{} have consumers that agree with each other, and every queue has one", online));
  if (seen.size() >= groups_max)
    add(Grade::note, "consumers", "consumer groups",
        fmt::format("only {} of them were looked at", groups_max));
}

}  // namespace rmq::ctl

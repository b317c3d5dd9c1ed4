#include "ctl/top_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ctl/print.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/headers_admin.h"
#include "proto/headers_client.h"
#include "proto/headers_offset.h"

namespace rmq::ctl {

namespace {

constexpr size_t asked_max = 300;  // topics and groups of a broker, each time
constexpr size_t in_flight = 32;
constexpr int64_t unreachable_again_ms = 10'000;
constexpr double disk_filling = 0.85;  // diskSpaceCleanForciblyRatio, unless it is set otherwise

std::optional<double> number_of(const std::map<std::string, std::string, std::less<>>& values,
                                std::string_view key) {
  auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  double v = 0;
  auto [end, wrong] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
  return wrong == std::errc{} ? std::optional(v) : std::nullopt;
}

// Sends request(name) for all names, several at a time, and gives each answer to take(name, reply).
template <class Request, class Take>
Outcome<void> ask_each(Channel& broker, const std::vector<std::string>& names, Request request, Take take) {
  std::vector<int32_t> opaques(names.size());
  for (size_t sent = 0, done = 0; done < names.size(); done++) {
    for (; sent < names.size() && sent < done + in_flight; sent++) {
      TRY_VAR(opaque, request(broker, names[sent]));
      opaques[sent] = opaque;
    }
    TRY_VAR(reply, broker.wait(opaques[done]));
    if (reply.ok()) take(names[done], reply);
  }
  return {};
}

std::vector<std::string> first_of(std::vector<std::string> names, size_t& passed_over) {
  std::sort(names.begin(), names.end());
  if (names.size() > asked_max) passed_over += names.size() - asked_max;
  names.resize(std::min(names.size(), asked_max));
  return names;
}

}  // namespace

std::optional<double> TopSampler::rate(std::map<std::string, Offsets>& before, const std::string& name,
                                       int64_t sum, int64_t now_ms) {
  auto [it, is_new] = before.try_emplace(name, Offsets{sum, now_ms});
  const Offsets was = std::exchange(it->second, Offsets{sum, now_ms});
  if (is_new || now_ms <= was.at_ms) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, sum - was.sum)) * 1000 /
         static_cast<double>(now_ms - was.at_ms);
}

TopBroker TopSampler::broker(Context& c, const BrokerNode& node) {
  TopBroker out;
  out.name = node.id == 0 ? node.name : fmt::format("{} ({})", node.name, node.id);
  out.address = node.address;
  auto known = unreachable_.find(node.address);
  if (known != unreachable_.end() && Context::now_ms() < known->second.again_ms) {
    out.trouble = "unreachable";
    out.why = known->second.why;
    return out;
  }
  auto channel = c.broker_at(node.address, node.name);
  if (!channel) {
    out.trouble = "unreachable";
    out.why = channel.error().text;
    unreachable_[node.address] = {Context::now_ms() + unreachable_again_ms, out.why};
    return out;
  }
  unreachable_.erase(node.address);
  auto reply = (*channel)->ask<proto::GetBrokerRuntimeInfo>({});
  auto table = reply ? proto::KVTable::parse(reply->body()) : rmq::fail(Errc::closed, "no answer");
  if (!table) {
    out.trouble = "no answer";
    out.why = reply ? "what it answers makes no sense" : reply.error().text;
    return out;
  }
  const auto& t = table->table;
  out.in_rate = number_of(t, "putTps").value_or(0);
  auto transferred = number_of(t, "getTransferredTps");
  out.out_rate = transferred ? *transferred : number_of(t, "getTransferedTps").value_or(0);
  if (t.contains("rmqdVersion")) out.flush_ms = number_of(t, "putLatency99");
  if (out.flush_ms == 0.0) out.flush_ms.reset();  // nothing was written yet
  out.disk_used = number_of(t, "commitLogDiskRatio");
  out.boot_ms = static_cast<int64_t>(number_of(t, "bootTimestamp").value_or(0));
  if (auto reason = t.find("storeNotWritableReason"); reason != t.end() && !reason->second.empty()) {
    out.trouble = "refuses sends";
    out.why = with_readable_bytes(reason->second);
  } else if (out.disk_used.value_or(0) >= disk_filling) {
    out.trouble = "disk filling";
    out.why = fmt::format("{:.0f} % of the store's disk is in use; where it is full, producers are refused",
                          *out.disk_used * 100);
  }
  return out;
}

Outcome<void> TopSampler::add_topics(Channel& broker, Table& into, TopSample& out) {
  TRY_VAR(reply, broker.ask<proto::GetAllTopicConfig>({}));
  auto all = proto::TopicConfigSerializeWrapper::parse(reply.body());
  if (!all) return broker.malformed("the topics", all.error());
  std::vector<std::string> names;
  // What brokers make for themselves is not shown.
  const auto is_own = [&](const std::string& name) {
    return proto::is_system_topic(name) || proto::is_retry_topic(name) || name == out.cluster ||
           name == out.cluster + "_REPLY_TOPIC" || name == out.brokers.back().name;
  };
  for (const auto& [name, config] : all->topic_config_table)
    if (!is_own(name)) names.push_back(name);
  return ask_each(
      broker, first_of(std::move(names), out.topics_passed_over),
      [](Channel& b, const std::string& name) {
        proto::GetTopicStatsInfoRequestHeader h;
        h.topic = name;
        return b.start<proto::GetTopicStatsInfo>(h);
      },
      [&](const std::string& name, const Reply& r) {
        auto stats = proto::TopicStatsTable::parse(r.body());
        if (!stats) return;
        Parts& p = into[name];
        for (const auto& [queue, o] : stats->offset_table) {
          p.sum += o.max_offset;
          p.rest += o.max_offset - o.min_offset;
          p.queues++;
        }
      });
}

Outcome<void> TopSampler::add_groups(Channel& broker, Table& into, TopSample& out) {
  TRY_VAR(reply, broker.ask<proto::GetAllSubscriptiongroupConfig>({}));
  auto all = proto::SubscriptionGroupWrapper::parse(reply.body());
  if (!all) return broker.malformed("the groups", all.error());
  std::vector<std::string> names;
  for (const auto& [name, config] : all->subscription_group_table)
    if (!proto::is_system_group(name) && name != proto::names::TOOLS_CONSUMER) names.push_back(name);
  names = first_of(std::move(names), out.groups_passed_over);
  TRY(ask_each(
      broker, names,
      [](Channel& b, const std::string& name) {
        proto::GetConsumeStatsRequestHeader h;
        h.consumer_group = name;
        return b.start<proto::GetConsumeStats>(h);
      },
      [&](const std::string& name, const Reply& r) {
        auto stats = proto::ConsumeStats::parse(r.body());
        if (!stats || stats->offset_table.empty()) return;
        Parts& p = into[name];
        p.has_offsets = true;
        for (const auto& [queue, o] : stats->offset_table) {
          p.sum += o.consumer_offset;
          p.rest += std::max<int64_t>(0, o.broker_offset - o.consumer_offset);
        }
      }));
  return ask_each(
      broker, names,
      [](Channel& b, const std::string& name) {
        proto::GetConsumerConnectionListRequestHeader h;
        h.consumer_group = name;
        return b.start<proto::GetConsumerConnectionList>(h);
      },
      [&](const std::string& name, const Reply& r) {
        auto online = proto::ConsumerConnection::parse(r.body());
        if (!online) return;
        Parts& p = into[name];
        p.members = std::max(p.members, static_cast<int64_t>(online->connection_set.size()));
      });
}

Outcome<TopSample> TopSampler::take(Context& c) {
  TRY_VAR(nodes, c.brokers());
  TopSample out;
  Table topics, groups;
  for (const BrokerNode& node : nodes) {
    if (out.cluster.empty()) out.cluster = node.cluster;
    if (out.cluster != node.cluster) out.cluster = "several clusters";
    out.brokers.push_back(broker(c, node));
    TopBroker& b = out.brokers.back();
    if (node.id != 0 || b.trouble == "unreachable" || b.trouble == "no answer") continue;
    TRY_VAR(channel, c.broker_at(node.address, node.name));
    auto asked = add_topics(*channel, topics, out);
    if (asked) asked = add_groups(*channel, groups, out);
    if (!asked) {
      b.trouble = "no answer";
      b.why = asked.error().text;
    }
  }
  out.at_ms = Context::now_ms();
  for (const auto& [name, p] : topics)
    out.topics.push_back({name, rate(topics_, name, p.sum, out.at_ms), p.queues, p.rest});
  for (const auto& [name, p] : groups)
    out.groups.push_back({name, p.has_offsets ? rate(groups_, name, p.sum, out.at_ms) : std::nullopt,
                          p.members, p.rest, p.has_offsets});
  std::sort(out.topics.begin(), out.topics.end(), [](const TopTopic& a, const TopTopic& b) {
    const double x = a.in_rate.value_or(0), y = b.in_rate.value_or(0);
    return x != y ? x > y : a.name < b.name;
  });
  std::sort(out.groups.begin(), out.groups.end(), [](const TopGroup& a, const TopGroup& b) {
    return a.lag != b.lag ? a.lag > b.lag : a.name < b.name;
  });
  return out;
}

}  // namespace rmq::ctl

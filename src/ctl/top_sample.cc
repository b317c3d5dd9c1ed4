#include "ctl/top_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "ctl/admin_calls.h"
#include "ctl/print.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/headers_admin.h"
#include "proto/headers_client.h"
#include "proto/headers_offset.h"

namespace rmq::ctl {

namespace {

constexpr size_t topics_asked_max = 1'000;  // of a broker, each time
constexpr size_t groups_asked_max = 300;
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

}  // namespace

std::vector<std::string> TopTurn::next(const std::vector<std::string>& names,
                                       const std::vector<std::string>& first, size_t max) {
  if (names.size() <= max) return names;
  std::set<std::string> out;
  for (const std::string& name : first) {
    if (out.size() >= max / 2) break;
    if (std::binary_search(names.begin(), names.end(), name)) out.insert(name);
  }
  auto it = std::upper_bound(names.begin(), names.end(), last_);
  for (size_t seen = 0; out.size() < max && seen < names.size(); seen++, ++it) {
    if (it == names.end()) it = names.begin();
    out.insert(*it);
    last_ = *it;
  }
  return {out.begin(), out.end()};
}

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
    out.why = fmt::format("nobody answers at {}: {}", node.address, connect_reason(channel.error()));
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

// Names are sorted, and so is what comes out.
const std::vector<std::string>& TopSampler::choose(Asked& a, const std::vector<std::string>& names,
                                                   const std::vector<std::string>& first, size_t max,
                                                   size_t& passed_over) {
  std::erase_if(a.known, [&](const auto& e) {  // it was deleted
    return !std::binary_search(names.begin(), names.end(), e.first);
  });
  a.now = a.turn.next(names, first, max);
  passed_over += names.size() - a.now.size();
  return a.now;
}

Outcome<void> TopSampler::ask_topics(Channel& broker, Asked& a, TopSample& out) {
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
      broker, choose(a, names, busiest_, topics_asked_max, out.topics_passed_over),
      [](Channel& b, const std::string& name) {
        proto::GetTopicStatsInfoRequestHeader h;
        h.topic = name;
        return b.start<proto::GetTopicStatsInfo>(h);
      },
      [&](const std::string& name, const Reply& r) {
        auto stats = proto::TopicStatsTable::parse(r.body());
        if (!stats) return;
        Parts& p = a.known[name];
        p = {};
        for (const auto& [queue, o] : stats->offset_table) {
          p.sum += o.max_offset;
          p.rest += o.max_offset - o.min_offset;
          p.queues++;
        }
      });
}

Outcome<void> TopSampler::ask_groups(Channel& broker, Asked& a, TopSample& out) {
  TRY_VAR(reply, broker.ask<proto::GetAllSubscriptiongroupConfig>({}));
  auto all = proto::SubscriptionGroupWrapper::parse(reply.body());
  if (!all) return broker.malformed("the groups", all.error());
  std::vector<std::string> names;
  for (const auto& [name, config] : all->subscription_group_table)
    if (!proto::is_system_group(name) && name != proto::names::TOOLS_CONSUMER) names.push_back(name);
  names = choose(a, names, laggards_, groups_asked_max, out.groups_passed_over);
  TRY(ask_each(
      broker, names,
      [](Channel& b, const std::string& name) {
        proto::GetConsumeStatsRequestHeader h;
        h.consumer_group = name;
        return b.start<proto::GetConsumeStats>(h);
      },
      [&](const std::string& name, const Reply& r) {
        auto stats = proto::ConsumeStats::parse(r.body());
        a.known.erase(name);
        if (!stats || stats->offset_table.empty()) return;
        Parts& p = a.known[name];
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
        Parts& p = a.known[name];
        p.members = std::max(p.members, static_cast<int64_t>(online->connection_set.size()));
      });
}

// Of those that any broker was asked about, over all of them.
TopSampler::Table TopSampler::sum_of(Asked OfBroker::* what) const {
  Table out;
  for (const auto& [address, b] : brokers_)
    for (const std::string& name : (b.*what).now)
      if ((b.*what).known.contains(name)) out.try_emplace(name);
  for (const auto& [address, b] : brokers_)
    for (const auto& [name, p] : (b.*what).known) {
      auto it = out.find(name);
      if (it == out.end()) continue;
      it->second.sum += p.sum;
      it->second.queues += p.queues;
      it->second.rest += p.rest;
      it->second.members = std::max(it->second.members, p.members);
      it->second.has_offsets = it->second.has_offsets || p.has_offsets;
    }
  return out;
}

Outcome<TopSample> TopSampler::take(Context& c) {
  TRY_VAR(nodes, c.brokers());
  TopSample out;
  for (auto& [address, b] : brokers_) b.topics.now.clear(), b.groups.now.clear();
  for (const BrokerNode& node : nodes) {
    if (out.cluster.empty()) out.cluster = node.cluster;
    if (out.cluster != node.cluster) out.cluster = "several clusters";
    out.brokers.push_back(broker(c, node));
    TopBroker& b = out.brokers.back();
    if (node.id != 0 || b.trouble == "unreachable" || b.trouble == "no answer") continue;
    TRY_VAR(channel, c.broker_at(node.address, node.name));
    OfBroker& of = brokers_[node.address];
    auto asked = ask_topics(*channel, of.topics, out);
    if (asked) asked = ask_groups(*channel, of.groups, out);
    if (!asked) {
      b.trouble = "no answer";
      b.why = asked.error().text;
    }
  }
  out.at_ms = Context::now_ms();
  for (const auto& [name, p] : sum_of(&OfBroker::topics))
    out.topics.push_back({name, rate(topics_, name, p.sum, out.at_ms), p.queues, p.rest});
  for (const auto& [name, p] : sum_of(&OfBroker::groups))
    out.groups.push_back({name, p.has_offsets ? rate(groups_, name, p.sum, out.at_ms) : std::nullopt,
                          p.members, p.rest, p.has_offsets});
  std::sort(out.topics.begin(), out.topics.end(), [](const TopTopic& a, const TopTopic& b) {
    const double x = a.in_rate.value_or(0), y = b.in_rate.value_or(0);
    return x != y ? x > y : a.name < b.name;
  });
  std::sort(out.groups.begin(), out.groups.end(), [](const TopGroup& a, const TopGroup& b) {
    return a.lag != b.lag ? a.lag > b.lag : a.name < b.name;
  });
  busiest_.clear();
  laggards_.clear();
  for (const TopTopic& t : out.topics)
    if (t.in_rate.value_or(0) > 0) busiest_.push_back(t.name);
  for (const TopGroup& g : out.groups)
    if (g.lag > 0) laggards_.push_back(g.name);
  return out;
}

}  // namespace rmq::ctl

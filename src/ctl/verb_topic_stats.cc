// rmqctl topic stats and units: rates and counts of topics and of the groups that consume them, and the units
// of a ConsumeQueue of a running broker.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "proto/bodies_admin.h"
#include "proto/bodies_stats.h"
#include "proto/headers_admin.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

namespace {

struct Rate {
  double tps = 0;  // over the last minute
  int64_t day = 0;
};

// Of one broker. One that has counted nothing says so by an error code, which is 0.
Outcome<void> add_rate(Channel& broker, std::string_view name, std::string_view key, Rate* out) {
  proto::ViewBrokerStatsDataRequestHeader h;
  h.stats_name = name;
  h.stats_key = key;
  TRY_VAR(reply, broker.call<proto::ViewBrokerStatsData>(h));
  if (reply.code() == proto::ResponseCode::SYSTEM_ERROR) return {};
  if (!reply.ok()) return broker.refusal(reply);
  TRY_VAR(data, parse_body<proto::BrokerStatsData>(broker, reply, "VIEW_BROKER_STATS_DATA"));
  out->tps += data.minute.tps;
  // A window that is not full yet counts nothing.
  out->day += data.day.sum ? data.day.sum : data.hour.sum ? data.hour.sum : data.minute.sum;
  return {};
}

struct GroupRate {
  Rate out;
  int64_t lag = 0;
};

struct TopicRate {
  Rate in;
  std::map<std::string, GroupRate> groups;
};

Outcome<void> add_group(Channel& broker, const std::string& topic, const std::string& group, GroupRate* out) {
  TRY(add_rate(broker, "GROUP_GET_NUMS", topic + "@" + group, &out->out));
  proto::GetConsumeStatsRequestHeader h;
  h.consumer_group = group;
  h.topic = topic;
  TRY_VAR(reply, broker.call<proto::GetConsumeStats>(h));
  if (!reply.ok()) return {};  // it has no offsets there
  TRY_VAR(stats, parse_body<proto::ConsumeStats>(broker, reply, "GET_CONSUME_STATS"));
  for (const auto& [queue, o] : stats.offset_table)
    if (queue.topic == topic) out->lag += o.broker_offset - o.consumer_offset;
  return {};
}

Outcome<void> add_broker(Context& c, const BrokerNode& b, const std::string& topic, TopicRate* out) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  TRY(add_rate(*channel, "TOPIC_PUT_NUMS", topic, &out->in));
  proto::QueryTopicConsumeByWhoRequestHeader h;
  h.topic = topic;
  TRY_VAR(reply, channel->ask<proto::QueryTopicConsumeByWho>(h));
  TRY_VAR(groups, parse_body<proto::GroupList>(*channel, reply, "QUERY_TOPIC_CONSUME_BY_WHO"));
  for (const std::string& group : groups.group_list)
    TRY(add_group(*channel, topic, group, &out->groups[group]));
  return {};
}

Outcome<TopicRate> rate_of(Context& c, const std::string& topic, Silent* silent) {
  TopicRate out;
  TRY_VAR(holders, holders_of(c, topic));
  for (const BrokerNode& b : holders) {
    if (silent->has(b.address)) continue;
    auto added = add_broker(c, b, topic, &out);
    if (!added && !silent->passes_over(b.address, added.error())) return std::unexpected(added.error());
  }
  return out;
}

void add_rows(Table& t, const std::string& topic, const TopicRate& r, bool active_only) {
  auto is_active = [](const Rate& rate) { return rate.tps > 0 || rate.day > 0; };
  bool shown = false;
  for (const auto& [group, g] : r.groups) {
    if (active_only && !is_active(r.in) && !is_active(g.out)) continue;
    shown = true;
    t.add({Cell::text(topic), Cell::text(group), Cell::integer(g.lag), Cell::real(r.in.tps),
           Cell::real(g.out.tps), Cell::integer(r.in.day), Cell::integer(g.out.day)});
  }
  if (!shown && (!active_only || is_active(r.in)))
    t.add({Cell::text(topic), Cell::none(), Cell::none(), Cell::real(r.in.tps), Cell::none(),
           Cell::integer(r.in.day), Cell::none()});
}

Outcome<std::vector<std::string>> topics_of(Context& c) {
  if (c.has_arg(0)) return std::vector<std::string>{c.arg(0)};
  TRY_VAR(ns, c.namesrv());
  TRY_VAR(reply, ns->ask<proto::GetAllTopicListFromNameserver>({}));
  TRY_VAR(body, parse_body<proto::TopicList>(*ns, reply, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"));
  std::vector<std::string> topics = std::move(body.topic_list);
  if (!c.options().all) {
    TRY_VAR(servers, server_names(c));
    std::erase_if(topics, [&](const std::string& t) { return is_made_by_brokers(t, servers); });
  }
  std::sort(topics.begin(), topics.end());
  return topics;
}

Outcome<void> stats(Context& c) {
  TRY_VAR(topics, topics_of(c));
  Table t({{"TOPIC", "topic"},
           {"GROUP", "group"},
           {"LAG", "accumulation"},
           {"IN/s", "inTps"},
           {"OUT/s", "outTps"},
           {"IN 24h", "inMsg24Hour"},
           {"OUT 24h", "outMsg24Hour"}});
  const bool is_part = !c.options().broker.empty() || !c.options().cluster.empty();
  size_t found = 0;
  Silent silent;
  for (const std::string& topic : topics) {
    auto rate = rate_of(c, topic, &silent);
    const bool is_gone =
        !rate && rate.error().response_code == static_cast<int32_t>(proto::ResponseCode::TOPIC_NOT_EXIST);
    if (is_gone && !c.has_arg(0)) continue;  // deleted since the list was made, or not there
    if (!rate) return std::unexpected(rate.error());
    found++;
    add_rows(t, topic, *rate, c.options().active);
  }
  if (is_part && found == 0) return fail(Exit::refused, "no master there has a topic");
  c.print_table(t);
  return silent.result();
}

// Refused: the broker has no unit there.
Outcome<proto::QueryConsumeQueueResponseBody> units_at(Channel& broker,
                                                       const proto::QueryConsumeQueueRequestHeader& h) {
  TRY_VAR(reply, broker.ask<proto::QueryConsumeQueue>(h));
  // Behind the end there is no body, and the remark says so.
  if (reply.body().empty())
    return fail(Exit::refused, fmt::format("{}: {}", broker.peer().to_string(), reply.command.remark));
  TRY_VAR(body, parse_body<proto::QueryConsumeQueueResponseBody>(broker, reply, "QUERY_CONSUME_QUEUE"));
  if (body.queue_data.empty())
    return fail(Exit::refused,
                fmt::format("{}: there is no unit at offset {}; the queue begins at {} and ends at {}",
                            broker.peer().to_string(), h.index, body.min_queue_index, body.max_queue_index));
  return std::move(body);
}

Outcome<void> units(Context& c) {
  const Options& o = c.options();
  TRY_VAR(queue, parse_number(c.arg(1), "the number of a queue", INT32_MAX));
  TRY_VAR(from, parse_number(c.arg(2), "a queue offset"));
  std::vector<BrokerNode> brokers;
  if (o.broker.find(':') != std::string::npos) {
    brokers.push_back({"", "", o.broker, 0});
  } else {
    TRY_VAR(route, c.route(c.arg(0)));
    brokers = topic_holders(route, o);
  }
  if (brokers.empty()) return fail(Exit::refused, fmt::format("no master there has topic {}", c.arg(0)));
  Table t({{brokers.size() > 1 ? "BROKER" : "", "brokerName"},
           {"OFFSET", "queueOffset"},
           {"COMMITLOG", "physicOffset"},
           {"SIZE", "physicSize"},
           {"TAGS CODE", "tagsCode"},
           {o.group.empty() ? "" : "TAKEN", "eval"},
           {"REMARK", "msg"}});
  std::optional<Failure> none;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    proto::QueryConsumeQueueRequestHeader h;
    h.topic = c.arg(0);
    h.queue_id = static_cast<int32_t>(queue);
    h.index = from;
    h.count = static_cast<int32_t>(o.count.value_or(10));
    if (!o.group.empty()) h.consumer_group = o.group;
    auto body = units_at(*channel, h);
    if (!body && body.error().exit != Exit::refused) return std::unexpected(body.error());
    // A queue without units is usual at one of several brokers.
    if (!body && brokers.size() > 1) c.note(body.error().text);
    if (!body) {
      none = body.error();
      continue;
    }
    int64_t offset = from;
    for (const proto::ConsumeQueueData& d : body->queue_data)
      t.add({Cell::text(b.name.empty() ? b.address : b.name), Cell::integer(offset++),
             Cell::integer(d.physic_offset), Cell::integer(d.physic_size), Cell::integer(d.tags_code),
             Cell::boolean(d.eval), Cell::text(d.msg)});
    if (!o.json)
      c.note(fmt::format("{}the queue begins at {} and ends at {}", brokers.size() > 1 ? b.name + ": " : "",
                         body->min_queue_index, body->max_queue_index));
  }
  if (t.rows() == 0 && brokers.size() > 1)
    return fail(Exit::refused, fmt::format("no broker has a unit at offset {} of queue {}", from, queue));
  if (t.rows() == 0) return std::unexpected(*none);
  c.print_table(t);
  return {};
}

constexpr OptionSpec stats_options[] = {
    {"-a,--all", nullptr, &Options::all, "also the topics of the system, of retries and of dead letters"},
    {"--active", nullptr, &Options::active, "only where something was sent or consumed in 24 hours"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only what this broker has counted"},
    {"-c,--cluster", "NAME", &Options::cluster, "only what this cluster has counted"},
};
constexpr OptionSpec unit_options[] = {
    {"--count", "N", &Options::count, "N units (default 10; brokers give 1024 at most)", 1, 1024},
    {"-g,--group", "GROUP", &Options::group, "whether the subscription of this group takes the message"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "only in this cluster"},
};

constexpr Verb verbs[] = {
    {"topic stats", "[TOPIC]", 0, 1, stats_options, stats,
     "show how much is sent to topics, and consumed by each group",
     "IN/s and OUT/s are messages a second over the last minute; IN 24h and OUT 24h count the last 24 hours, "
     "as "
     "far as the brokers run that long. LAG is what the group has not confirmed of the topic.",
     true},
    {"topic units", "TOPIC QUEUE OFFSET", 3, 3, unit_options, units,
     "show the units of a ConsumeQueue: where its messages lie",
     "From OFFSET on. COMMITLOG is the physical offset of the message, SIZE its bytes. For a message that "
     "should be there and is not.",
     true},
};

}  // namespace

std::span<const Verb> topic_stats_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

// rmqctl topic: list, create, update, delete topics; where their queues are and what is in them.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "ctl/topic_scale.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/fastjson.h"
#include "proto/headers_admin.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

namespace {

// Groups that consume the topic, at any broker that has it.
Outcome<std::vector<std::string>> groups_of(Context& c, const std::string& topic,
                                            const proto::TopicRouteData& route) {
  std::set<std::string> out;
  proto::QueryTopicConsumeByWhoRequestHeader h;
  h.topic = topic;
  for (const BrokerNode& b : topic_holders(route, {})) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY_VAR(reply, channel->ask<proto::QueryTopicConsumeByWho>(h));
    TRY_VAR(body, parse_body<proto::GroupList>(*channel, reply, "QUERY_TOPIC_CONSUME_BY_WHO"));
    out.insert(body.group_list.begin(), body.group_list.end());
  }
  return std::vector<std::string>(out.begin(), out.end());
}

Outcome<void> add_topic_row(Context& c, Table& t, const std::string& topic,
                            const proto::TopicRouteData& route) {
  int64_t read = 0, write = 0;
  int32_t perm = 0;
  std::vector<std::string> brokers;
  for (const proto::QueueData& q : route.queue_datas) {
    read += q.read_queue_nums;
    write += q.write_queue_nums;
    perm |= q.perm;
    brokers.push_back(q.broker_name);
  }
  std::sort(brokers.begin(), brokers.end());
  std::vector<Cell> row = {Cell::text(topic), Cell::integer(read), Cell::integer(write),
                           Cell::text(permission_name(perm)), Cell::list(std::move(brokers))};
  if (c.options().groups) {
    TRY_VAR(groups, groups_of(c, topic, route));
    row.push_back(Cell::list(std::move(groups)));
  }
  t.add(std::move(row));
  return {};
}

Outcome<void> list(Context& c) {
  TRY_VAR(ns, c.namesrv());
  TRY_VAR(reply, ns->ask<proto::GetAllTopicListFromNameserver>({}));
  TRY_VAR(body, parse_body<proto::TopicList>(*ns, reply, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"));
  TRY_VAR(servers, server_names(c));
  std::vector<std::string>& topics = body.topic_list;
  std::sort(topics.begin(), topics.end());
  if (!c.options().all) std::erase_if(topics, [&](const auto& t) { return is_made_by_brokers(t, servers); });
  std::vector<Table::Column> columns = {{"TOPIC", "topic"},
                                        {"READ", "readQueueNums"},
                                        {"WRITE", "writeQueueNums"},
                                        {"PERM", "perm"},
                                        {"BROKERS", "brokerNames"}};
  if (c.options().groups) columns.push_back({"GROUPS", "groups"});
  Table t(std::move(columns));
  for (const std::string& topic : topics) {
    auto route = c.route(topic);
    // Deleted since the list was made.
    if (!route && route.error().response_code == static_cast<int32_t>(proto::ResponseCode::TOPIC_NOT_EXIST))
      continue;
    if (!route) return std::unexpected(route.error());
    TRY(add_topic_row(c, t, topic, *route));
  }
  c.print_table(t);
  return {};
}

// What the command line says over what is there. `attributes` becomes the text that the broker takes.
Outcome<void> apply_options(const Options& o, proto::TopicConfig* config, std::string* attributes) {
  if (o.queues) config->read_queue_nums = config->write_queue_nums = static_cast<int32_t>(*o.queues);
  if (o.read_queues) config->read_queue_nums = static_cast<int32_t>(*o.read_queues);
  if (o.write_queues) config->write_queue_nums = static_cast<int32_t>(*o.write_queues);
  if (!o.perm.empty()) {
    auto perm = parse_permission(o.perm);
    if (!perm) return fail(Exit::usage, fmt::format("--perm {}: it must be rw, r, w or none", o.perm));
    config->perm = *perm;
  }
  if (!o.order.empty()) {
    if (o.order != "true" && o.order != "false")
      return fail(Exit::usage, fmt::format("--order {}: it must be true or false", o.order));
    config->order = o.order == "true";
  }
  for (const std::string& a : o.attributes) {
    bool removes = a.starts_with('-');
    if (!removes && a.find('=') == std::string::npos)
      return fail(Exit::usage,
                  fmt::format("--attribute {}: it must be NAME=VALUE, or -NAME to remove it", a));
    *attributes +=
        fmt::format("{}{}{}", attributes->empty() ? "" : ",", removes || a.starts_with('+') ? "" : "+", a);
  }
  return {};
}

enum class Put : uint8_t { create, update, either };

// Looks at every broker before it changes the first: a refusal for what is there must not leave half a
// change.
Outcome<void> put(Context& c, Put how) {
  const std::string& topic = c.arg(0);
  if (auto wrong = proto::invalid_topic_remark(topic)) return fail(Exit::usage, *wrong);
  TRY_VAR(brokers, c.target_brokers());
  std::vector<std::pair<Channel*, proto::TopicConfig>> changes;
  std::string attributes;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY_VAR(there, topic_config_at(*channel, topic));
    if (there && how == Put::create)
      return fail(Exit::refused,
                  fmt::format("topic {} exists already at {}; \"rmqctl topic update\" changes it", topic,
                              channel->peer().to_string()));
    if (!there && how == Put::update) continue;
    proto::TopicConfig config = there.value_or(proto::TopicConfig{});
    if (!there) config.read_queue_nums = config.write_queue_nums = 8;  // as mqadmin
    config.topic_name = topic;
    attributes.clear();
    TRY(apply_options(c.options(), &config, &attributes));
    changes.emplace_back(channel, std::move(config));
  }
  if (changes.empty())
    return fail(Exit::refused,
                fmt::format("there is no topic \"{}\"; \"rmqctl topic create\" makes it", topic));
  Table t({{"BROKER", "broker"},
           {"TOPIC", "topic"},
           {"READ", "readQueueNums"},
           {"WRITE", "writeQueueNums"},
           {"PERM", "perm"},
           {"ORDER", "order"}});
  return Undone().change(c, std::move(changes), t, [&](const auto& change) -> Outcome<void> {
    const auto& [channel, config] = change;
    TRY(put_topic_at(*channel, config, attributes));
    t.add({Cell::text(to_string(channel->peer().address)), Cell::text(topic),
           Cell::integer(config.read_queue_nums), Cell::integer(config.write_queue_nums),
           Cell::text(permission_name(config.perm)), Cell::boolean(config.order)});
    return {};
  });
}

Outcome<void> create(Context& c) {
  return put(c, Put::create);
}
Outcome<void> update(Context& c) {
  return put(c, c.options().upsert ? Put::either : Put::update);
}

Outcome<void> forget_at_namesrvs(Context& c, const std::string& topic) {
  TRY_VAR(servers, c.all_namesrvs());
  for (Channel* ns : servers) {
    proto::DeleteTopicFromNamesrvRequestHeader h;
    h.topic = topic;
    if (!c.options().cluster.empty()) h.cluster_name = c.options().cluster;
    TRY(ns->ask<proto::DeleteTopicInNamesrv>(h));
    proto::DeleteKvConfigRequestHeader order;
    order.name_space = proto::names::order_topic_namespace;
    order.key = topic;
    TRY(ns->ask<proto::DeleteKvConfig>(order));
  }
  return {};
}

Outcome<void> remove(Context& c) {
  const std::string& topic = c.arg(0);
  TRY_VAR(brokers, holders_of(c, topic));
  TRY(c.confirm(fmt::format("Topic {} and all its messages at {} broker{} will be deleted.", topic,
                            brokers.size(), brokers.size() == 1 ? "" : "s")));
  Table t({{"BROKER", "brokerName"}, {"DELETED", "topic"}});
  const auto delete_at = [&](const BrokerNode& b) -> Outcome<void> {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    proto::DeleteTopicRequestHeader h;
    h.topic = topic;
    TRY(channel->ask<proto::DeleteTopicInBroker>(h));
    t.add({Cell::text(b.name), Cell::text(topic)});
    return {};
  };
  TRY(Undone().change(c, brokers, t, delete_at));
  // The name server learns it from the brokers when only some of them lose the topic, also because one
  // failed.
  return c.options().broker.empty() ? forget_at_namesrvs(c, topic) : Outcome<void>();
}

Outcome<void> show_route(Context& c) {
  TRY_VAR(route, c.route(c.arg(0)));
  if (c.options().json) {
    c.print(route.to_json(proto::JsonStyle::strict) + "\n");
    return {};
  }
  Table t({{"CLUSTER", "cluster"},
           {"BROKER", "brokerName"},
           {"READ", "readQueueNums"},
           {"WRITE", "writeQueueNums"},
           {"PERM", "perm"},
           {"ADDRESSES", "brokerAddrs"}});
  for (const proto::QueueData& q : route.queue_datas) {
    std::string cluster;
    std::vector<std::string> addresses;
    for (const proto::BrokerData& b : route.broker_datas) {
      if (b.broker_name != q.broker_name) continue;
      cluster = b.cluster;
      for (const auto& [id, address] : b.broker_addrs) addresses.push_back(fmt::format("{}={}", id, address));
    }
    t.add({Cell::text(cluster), Cell::text(q.broker_name), Cell::integer(q.read_queue_nums),
           Cell::integer(q.write_queue_nums), Cell::text(permission_name(q.perm)),
           Cell::list(std::move(addresses))});
  }
  c.print_table(t);
  return {};
}

Outcome<proto::TopicStatsTable> offsets_at(Context& c, const BrokerNode& b, const std::string& topic) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  proto::GetTopicStatsInfoRequestHeader h;
  h.topic = topic;
  TRY_VAR(reply, channel->ask<proto::GetTopicStatsInfo>(h));
  return parse_body<proto::TopicStatsTable>(*channel, reply, "GET_TOPIC_STATS_INFO");
}

Outcome<void> status(Context& c) {
  const std::string& topic = c.arg(0);
  TRY_VAR(holders, holders_of(c, topic));
  Table t({{"BROKER", "brokerName"},
           {"QUEUE", "queueId"},
           {"MIN", "minOffset"},
           {"MAX", "maxOffset"},
           {"MESSAGES", "messages"},
           {"LAST STORED", "lastUpdateTimestamp"}});
  int64_t total = 0;
  Silent silent;
  for (const BrokerNode& b : holders) {
    auto stats = offsets_at(c, b, topic);
    if (!stats && silent.passes_over(b.address, stats.error())) continue;
    if (!stats) return std::unexpected(stats.error());
    for (const auto& [queue, offset] : stats->offset_table) {
      int64_t messages = offset.max_offset - offset.min_offset;
      total += messages;
      t.add({Cell::text(queue.broker_name), Cell::integer(queue.queue_id), Cell::integer(offset.min_offset),
             Cell::integer(offset.max_offset), Cell::integer(messages),
             Cell::moment(offset.last_update_timestamp_ms)});
    }
  }
  auto all = silent.result();
  if (!all && t.rows() == 0) return all;
  c.print_table(t);
  if (!c.options().json) c.print(fmt::format("{} messages\n", format_number(total)));
  return all;
}

constexpr OptionSpec list_options[] = {
    {"-a,--all", nullptr, &Options::all, "also the topics of the system, of retries and of dead letters"},
    {"--groups", nullptr, &Options::groups, "with the consumer groups of each"},
};
constexpr OptionSpec put_options[] = {
    {"--queues", "N", &Options::queues, "read and write queues of each broker (default 8 for a new topic)", 1,
     65535},
    {"-r,--read-queues", "N", &Options::read_queues, "read queues of each broker", 0, 65535},
    {"-w,--write-queues", "N", &Options::write_queues, "write queues of each broker", 0, 65535},
    {"-p,--perm", "PERM", &Options::perm, "rw, r, w or none"},
    {"-o,--order", "BOOL", &Options::order, "true: queues keep their places when a broker is away"},
    {"-a,--attribute", "NAME=VALUE", &Options::attributes,
     "an attribute, for example message.type=FIFO; -NAME removes one; repeatable"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};
constexpr OptionSpec update_options[] = {
    put_options[0],
    put_options[1],
    put_options[2],
    put_options[3],
    put_options[4],
    put_options[5],
    put_options[6],
    put_options[7],
    {"--create", nullptr, &Options::upsert, "create it where it is not there"},
};
constexpr OptionSpec scale_options[] = {
    {"--queues", "N", &Options::queues, "read and write queues that each broker is to have", 1, 65535},
    {"--skip-group", "GROUP", &Options::skip_groups,
     "do not wait for this group; what it has not consumed of the surplus queues is lost to it; repeatable"},
    {"--settle", "DURATION", &Options::settle,
     "how long the surplus queues must have got nothing before they go (default 40s: producers ask for "
     "routes "
     "each 30s)"},
    {"-y,--yes", nullptr, &Options::yes, "also when messages are there that no group is known to consume"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "only in this cluster"},
};
constexpr OptionSpec delete_options[] = {
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "only in this cluster"},
};
constexpr OptionSpec status_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "only this cluster"},
};

constexpr Verb verbs[] = {
    {"topic list", "", 0, 0, list_options, list, "list topics with their queues",
     "READ and WRITE count the queues of all brokers.", true},
    {"topic create", "TOPIC", 1, 1, put_options, create, "create a topic",
     "At all masters, when the name server knows one cluster only."},
    {"topic update", "TOPIC", 1, 1, update_options, update,
     "change a topic; what is not given stays as it is", ""},
    {"topic scale", "TOPIC", 1, 1, scale_options, scale_topic,
     "change the number of queues without losing a message",
     "More queues: the read numbers grow first, then the write numbers. Fewer: the write numbers shrink "
     "first, "
     "so that producers leave the surplus queues; then it waits until every consumer group that is online or "
     "has offsets has consumed them to their ends, and nothing came for --settle; then the read numbers "
     "shrink. A message that comes at the last moment makes them queues again. Progress is on standard "
     "error. It may be stopped at any time (exit code 1): the same command goes on, and one with the old "
     "number goes back. A group that is offline holds it up until it comes back, or is given with "
     "--skip-group."},
    {"topic delete", "TOPIC", 1, 1, delete_options, remove, "delete a topic and its messages",
     "Asks first on a terminal; without a terminal it needs --yes."},
    {"topic route", "TOPIC", 1, 1, {}, show_route, "show which brokers have a topic's queues", "", true},
    {"topic status", "TOPIC", 1, 1, status_options, status, "show the offsets of a topic's queues", "", true},
};

}  // namespace

std::span<const Verb> topic_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

// rmqctl group: consumer groups, who is in them and how far behind they are.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "ctl/group_members.h"
#include "ctl/group_offsets.h"
#include "ctl/lists.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/fastjson.h"
#include "proto/headers_admin.h"
#include "proto/headers_client.h"
#include "proto/headers_offset.h"

namespace rmq::ctl {

namespace {

struct Lag {
  std::map<proto::MessageQueue, proto::OffsetWrapper> queues;
  double tps = 0;
  int64_t behind() const {
    int64_t out = 0;
    for (const auto& [queue, o] : queues) out += o.broker_offset - o.consumer_offset;
    return out;
  }
};

// Of one broker. A broker that never heard of the group or topic contributes nothing.
Outcome<void> add_lag(Channel& broker, std::string_view group, const std::string& topic, Lag* out) {
  proto::GetConsumeStatsRequestHeader h;
  h.consumer_group = group;
  if (!topic.empty()) h.topic = topic;
  TRY_VAR(reply, broker.call<proto::GetConsumeStats>(h));
  using enum proto::ResponseCode;
  if (reply.code() == TOPIC_NOT_EXIST || reply.code() == SUBSCRIPTION_GROUP_NOT_EXIST) return {};
  if (!reply.ok()) return broker.refusal(reply);
  TRY_VAR(stats, parse_body<proto::ConsumeStats>(broker, reply, "GET_CONSUME_STATS"));
  out->tps += stats.consume_tps;
  out->queues.insert(stats.offset_table.begin(), stats.offset_table.end());
  return {};
}

Outcome<std::vector<Channel*>> masters(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  std::vector<Channel*> out;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    out.push_back(channel);
  }
  return out;
}

// The same for a change: those that can be reached.
Outcome<std::vector<Channel*>> masters_to_change(Context& c, Undone* undone) {
  TRY_VAR(brokers, c.target_brokers());
  std::vector<Channel*> out;
  TRY(undone->keep_those(&brokers, [&](const BrokerNode& b) -> Outcome<void> {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    out.push_back(channel);
    return {};
  }));
  return out;
}

// What `f` has to say of each. One that does not answer is taken out of `brokers`.
template <class F>
Outcome<void> ask_each(std::vector<Channel*>* brokers, Silent* silent, F f) {
  for (auto it = brokers->begin(); it != brokers->end();) {
    auto done = f(**it);
    if (!done && !silent->passes_over(to_string((*it)->peer().address), done.error())) return done;
    it = done ? it + 1 : brokers->erase(it);
  }
  return brokers->empty() ? silent->result() : Outcome<void>();
}

// masters() of those that can be reached.
Outcome<std::vector<Channel*>> reachable_masters(Context& c, Silent* silent) {
  TRY_VAR(brokers, c.target_brokers());
  std::vector<Channel*> out;
  for (const BrokerNode& b : brokers) {
    auto channel = c.broker_at(b.address, b.name);
    if (!channel && !silent->passes_over(b.address, channel.error())) return std::unexpected(channel.error());
    if (channel) out.push_back(*channel);
  }
  if (out.empty()) return std::unexpected(silent->result().error());
  return out;
}

Outcome<std::vector<Cell>> row_of(const std::vector<Channel*>& brokers, const std::string& group) {
  std::set<std::string> members;
  std::string type, model;
  Lag lag;
  for (Channel* b : brokers) {
    TRY_VAR(online, members_at(*b, group));
    TRY(add_lag(*b, group, "", &lag));
    if (!online) continue;
    for (const proto::Connection& m : online->connection_set) members.insert(m.client_id);
    type = online->consume_type == proto::ConsumeType::CONSUME_PASSIVELY ? "push"
           : online->consume_type == proto::ConsumeType::CONSUME_POP     ? "pop"
                                                                         : "pull";
    model = online->message_model == proto::MessageModel::BROADCASTING ? "broadcast" : "cluster";
  }
  return std::vector<Cell>{Cell::text(group),   Cell::integer(static_cast<int64_t>(members.size())),
                           Cell::text(type),    Cell::text(model),
                           Cell::real(lag.tps), Cell::integer(lag.behind())};
}

Outcome<void> list(Context& c) {
  Silent silent;
  TRY_VAR(brokers, reachable_masters(c, &silent));
  std::set<std::string> groups;
  TRY(ask_each(&brokers, &silent, [&](Channel& b) -> Outcome<void> {
    TRY_VAR(some, groups_at(b));
    for (const auto& [name, config] : some) groups.insert(name);
    return {};
  }));
  Table t({{"GROUP", "group"},
           {"MEMBERS", "members"},
           {"TYPE", "consumeType"},
           {"MODEL", "messageModel"},
           {"TPS", "consumeTps"},
           {"LAG", "diffTotal"}});
  for (const std::string& group : groups) {
    if (!c.options().all && is_group_of_brokers(group)) continue;
    TRY_VAR(row, row_of(brokers, group));
    t.add(std::move(row));
  }
  c.print_table(t);
  return silent.result();
}

Outcome<void> check_group_exists(const std::vector<Channel*>& brokers, const std::string& group) {
  for (Channel* b : brokers) {
    TRY_VAR(groups, groups_at(*b));
    if (groups.contains(group)) return {};
  }
  return fail(Exit::refused, fmt::format("there is no consumer group \"{}\"", group));
}

Outcome<void> lag(Context& c) {
  if (!c.has_arg(0)) return list(c);
  const std::string& group = c.arg(0);
  Silent silent;
  TRY_VAR(brokers, reachable_masters(c, &silent));
  Lag sum;
  TRY(ask_each(&brokers, &silent, [&](Channel& b) { return add_lag(b, group, c.options().topic, &sum); }));
  if (sum.queues.empty()) TRY(silent.result());  // who knows what that one has
  if (sum.queues.empty()) TRY(check_group_exists(brokers, group));
  if (sum.queues.empty() && !c.options().topic.empty())
    return fail(Exit::refused,
                fmt::format("group {} has no place in a topic \"{}\"", group, c.options().topic));
  const bool with_clients = c.options().more;
  const auto owners = with_clients ? owners_of(c, group) : std::map<proto::MessageQueue, std::string>{};
  Table t({{"TOPIC", "topic"},
           {"BROKER", "brokerName"},
           {"QUEUE", "queueId"},
           {"BROKER OFFSET", "brokerOffset"},
           {"GROUP OFFSET", "consumerOffset"},
           {"LAG", "diff"},
           {"IN FLIGHT", "inflight"},
           {"LAST CONSUMED", "lastTimestamp"},
           {with_clients ? "CLIENT" : "", "clientId"}});
  auto owner = [&](const proto::MessageQueue& q) {
    auto found = owners.find(q);
    return found == owners.end() ? Cell::none() : Cell::text(found->second);
  };
  for (const auto& [q, o] : sum.queues)
    t.add({Cell::text(q.topic), Cell::text(q.broker_name), Cell::integer(q.queue_id),
           Cell::integer(o.broker_offset), Cell::integer(o.consumer_offset),
           Cell::integer(o.broker_offset - o.consumer_offset),
           Cell::integer(std::max<int64_t>(0, o.pull_offset - o.consumer_offset)),
           Cell::moment(o.last_timestamp_ms), owner(q)});
  c.print_table(t);
  if (!c.options().json)
    c.print(
        fmt::format("{} messages behind, {:.2f} consumed a second\n", format_number(sum.behind()), sum.tps));
  return silent.result();
}

Outcome<void> members(Context& c) {
  const std::string& group = c.arg(0);
  TRY_VAR(brokers, masters(c));
  Table t({{"CLIENT", "clientId"},
           {"ADDRESS", "clientAddr"},
           {"LANGUAGE", "language"},
           {"VERSION", "version"},
           {"SUBSCRIPTIONS", "subscriptions"}});
  std::set<std::string> seen;
  for (Channel* b : brokers) {
    TRY_VAR(online, members_at(*b, group));
    if (!online) continue;
    std::vector<std::string> subscriptions;
    for (const auto& [topic, s] : online->subscription_table)
      subscriptions.push_back(fmt::format("{}:{}", topic, s.sub_string));
    for (const proto::Connection& m : online->connection_set)
      if (seen.insert(m.client_id).second)
        t.add({Cell::text(m.client_id), Cell::text(m.client_addr), Cell::text(m.language),
               Cell::text(proto::version_name(m.version)), Cell::list(subscriptions)});
  }
  if (t.rows() == 0) TRY(check_group_exists(brokers, group));
  c.print_table(t);
  return {};
}

// The retry policy comes as the JSON that brokers keep it in.
Outcome<proto::SubscriptionGroupConfig> config_of(const Options& o) {
  proto::SubscriptionGroupConfig config;
  if (!o.retry_policy.empty()) {
    auto parsed =
        proto::SubscriptionGroupConfig::parse(fmt::format("{{\"groupRetryPolicy\":{}}}", o.retry_policy));
    if (!parsed)
      return fail(Exit::usage,
                  fmt::format("--retry-policy {}: {}", o.retry_policy, rmq::to_string(parsed.error())));
    config = std::move(*parsed);
  }
  config.group_name = o.args[0];
  if (auto wrong = proto::invalid_group_remark(config.group_name)) return fail(Exit::usage, *wrong);
  if (!o.order.empty() && o.order != "true" && o.order != "false")
    return fail(Exit::usage, fmt::format("--order {}: it must be true or false", o.order));
  config.consume_enable = !o.disabled;
  config.consume_broadcast_enable = !o.no_broadcast;
  config.consume_from_min_enable = !o.no_from_min;
  config.consume_message_orderly = o.order == "true";
  config.notify_consumer_ids_changed_enable = !o.no_notify;
  if (o.retry_max) config.retry_max_times = static_cast<int32_t>(*o.retry_max);
  if (o.retry_queues) config.retry_queue_nums = static_cast<int32_t>(*o.retry_queues);
  config.broker_id = o.broker_id.value_or(config.broker_id);
  config.which_broker_when_consume_slowly =
      o.slow_broker_id.value_or(config.which_broker_when_consume_slowly);
  for (std::string_view all : o.attributes)
    for (std::string_view a = all; !a.empty();) {
      const std::string_view one = a.substr(0, a.find(','));
      a.remove_prefix(std::min(a.size(), one.size() + 1));
      const auto eq = one.find('=');
      if (!one.starts_with('-') && eq == std::string_view::npos)
        return fail(Exit::usage,
                    fmt::format("--attribute {}: it must be NAME=VALUE, or -NAME to remove it", one));
      const bool is_signed = one.starts_with('-') || one.starts_with('+');
      const std::string name = (is_signed ? "" : "+") + std::string(one.substr(0, eq));
      config.attributes[name] = eq == std::string_view::npos ? "" : std::string(one.substr(eq + 1));
    }
  return config;
}

Outcome<void> create(Context& c) {
  TRY_VAR(config, config_of(c.options()));
  Undone undone;
  TRY_VAR(brokers, masters_to_change(c, &undone));
  Table t({{"BROKER", "broker"}, {"GROUP", "group"}});
  return undone.change(c, brokers, t, [&](Channel* b) -> Outcome<void> {
    TRY(b->ask<proto::UpdateAndCreateSubscriptiongroup>({}, config.to_json()));
    t.add({Cell::text(to_string(b->peer().address)), Cell::text(config.group_name)});
    return {};
  });
}

Outcome<void> remove(Context& c) {
  const std::string& group = c.arg(0);
  Undone undone;
  TRY_VAR(brokers, masters_to_change(c, &undone));
  size_t online = 0;
  TRY(undone.keep_those(&brokers, [&](Channel* b) -> Outcome<void> {
    TRY_VAR(some, members_at(*b, group));
    if (some) online = std::max(online, some->connection_set.size());
    return {};
  }));
  TRY(check_group_exists(brokers, group));
  TRY(c.confirm(fmt::format("Group {} ({} members online){} will be deleted.", group, online,
                            c.options().keep_offsets ? "" : " and its offsets")));
  Table t({{"BROKER", "broker"}, {"DELETED", "group"}});
  return undone.change(c, brokers, t, [&](Channel* b) -> Outcome<void> {
    proto::DeleteSubscriptionGroupRequestHeader h;
    h.group_name = group;
    h.clean_offset = h.remove_offset = !c.options().keep_offsets;
    TRY(b->ask<proto::DeleteSubscriptiongroup>(h));
    t.add({Cell::text(to_string(b->peer().address)), Cell::text(group)});
    return {};
  });
}

constexpr OptionSpec where_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};
constexpr OptionSpec list_options[] = {
    {"-a,--all", nullptr, &Options::all, "also the groups of the system"},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec lag_options[] = {
    {"-t,--topic", "TOPIC", &Options::topic, "only this topic"},
    {"-a,--all", nullptr, &Options::all, "without GROUP: also the groups of the system"},
    {"--clients", nullptr, &Options::more, "with the consumer that has each queue, as consumers tell it"},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec create_options[] = {
    {"--retry-max", "N", &Options::retry_max,
     "deliveries before a message goes to the dead letters (default 16)", 0, 10'000},
    {"-o,--order", "BOOL", &Options::order, "true: the group consumes in order"},
    {"--no-broadcast", nullptr, &Options::no_broadcast, "refuse consumers that want every message each"},
    {"--disabled", nullptr, &Options::disabled, "refuse pulls of the group for now"},
    {"--no-from-min", nullptr, &Options::no_from_min, "set consumeFromMinEnable to false"},
    {"--no-notify", nullptr, &Options::no_notify, "do not tell members when others come and go"},
    {"--retry-queues", "N", &Options::retry_queues, "queues of the group's retry topic (default 1)", 1,
     65535},
    {"--retry-policy", "JSON", &Options::retry_policy,
     "delays between deliveries, as brokers keep them: "
     "{\"type\":\"CUSTOMIZED\",\"customizedRetryPolicy\":{\"next\":[1000,5000]}}"},
    {"--attribute", "NAME=VALUE", &Options::attributes, "an attribute; -NAME removes one; repeatable"},
    {"--broker-id", "N", &Options::broker_id, "the replica that members read from (default 0, the master)", 0,
     INT64_MAX},
    {"--slow-broker-id", "N", &Options::slow_broker_id,
     "the replica that members are sent to when they are far behind (default 1)", 0, INT64_MAX},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec delete_options[] = {
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
    {"--keep-offsets", nullptr, &Options::keep_offsets,
     "a group of this name will go on where this one stood"},
    where_options[0],
    where_options[1],
};

constexpr OptionSpec move_options[] = {
    {"-q,--queue", "N", &Options::queue, "only queue N of each broker", 0, 65535},
    {"-y,--yes", nullptr, &Options::yes, "also when the group has members online"},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec clone_options[] = {move_options[1], where_options[0], where_options[1]};

constexpr OptionSpec mode_options[] = {
    {"-q,--share", "N", &Options::queues, "with pop: how many members share a queue (default: all of them)",
     0, 65535},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec running_options[] = {
    {"-s,--jstack", nullptr, &Options::jstack, "with the stacks of its threads, from Java clients"},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec consume_options[] = {move_options[1], where_options[0], where_options[1]};

constexpr Verb verbs[] = {
    {"group list", "", 0, 0, list_options, list, "list consumer groups, with members online and lag", "",
     true},
    {"group lag", "[GROUP]", 0, 1, lag_options, lag, "show how far a group is behind, queue by queue",
     "LAG is what the group has not confirmed yet, IN FLIGHT what of it was pulled already. Without GROUP: "
     "the "
     "list of groups.",
     true},
    {"group members", "GROUP", 1, 1, where_options, members, "list the consumers of a group that are online",
     "", true},
    {"group show", "GROUP", 1, 1, where_options, show_group, "show the configuration of a consumer group", "",
     true},
    {"group running", "GROUP [CLIENT]", 1, 2, running_options, show_running,
     "show what the members of a group are at: queues, caches, rates",
     "Each member is asked, through a broker. Clients that cannot tell end it with their reason.", true},
    {"group consume", "GROUP ID [CLIENT]", 2, 3, consume_options, consume_one,
     "have a member consume one message now, and tell how that went",
     "ID is an offset message id. For a message that a group fails on: the exception comes back as REMARK. "
     "No "
     "offset changes. It is asked before; --yes answers. Without CLIENT: any member."},
    {"group mode", "GROUP TOPIC MODE", 3, 3, mode_options, set_group_mode,
     "let a group consume a topic by pull or by pop",
     "MODE is pull or pop. Push consumers that ask the broker for their queues follow within seconds."},
    {"group create", "GROUP", 1, 1, create_options, create, "create a consumer group, or set it anew",
     "Brokers create groups on their own when a consumer comes, unless they are configured not to."},
    {"group load", "FILE", 1, 1, where_options, load_groups, "create or change the groups of a JSON list",
     "FILE holds an array of groups as \"cluster export\" and brokers write them; what a group does not say "
     "is "
     "the default. In one request for each broker."},
    {"group reset", "GROUP TOPIC POSITION", 3, 3, move_options, reset_group,
     "let a group go on from another place in a topic",
     "POSITION is earliest, latest, a time (\"2026-11-30 04:05\", \"10m ago\", milliseconds since 1970), or "
     "with --queue an offset. The brokers remember it: consumers that are online go on there with their next "
     "pull, within seconds, and what they commit until then does not count; others go on there when they "
     "come. A member that is online holds it up until it is confirmed or --yes is given."},
    {"group skip", "GROUP TOPIC", 2, 2, move_options, skip_group,
     "let a group pass over what is in a topic now", "As group reset to latest."},
    {"group clone", "GROUP NEW_GROUP TOPIC", 3, 3, clone_options, clone_group,
     "let a group stand where another one stands in a topic",
     "Offsets are copied at the brokers, queue by queue."},
    {"group delete", "GROUP", 1, 1, delete_options, remove, "delete a consumer group and its offsets",
     "Asks first on a terminal; without a terminal it needs --yes."},
};

}  // namespace

std::span<const Verb> group_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

// rmqctl broker lag and replicas: how far all groups of a broker are behind, and how far its replicas are.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/admin_calls.h"
#include "proto/bodies_admin.h"
#include "proto/bodies_stats.h"
#include "proto/headers_admin.h"
#include "proto/headers_ha.h"

namespace rmq::ctl {

namespace {

std::string who(const BrokerNode& b) {
  return b.name.empty() ? b.address : b.name;
}

Outcome<proto::ConsumeStatsList> stats_of(Context& c, const BrokerNode& b) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  proto::GetBrokerConsumeStatsRequestHeader h;
  h.is_order = c.options().orderly;
  TRY_VAR(reply, channel->ask<proto::GetBrokerConsumeStats>(h));
  return parse_body<proto::ConsumeStatsList>(*channel, reply, "GET_BROKER_CONSUME_STATS");
}

Outcome<void> lag(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  Table t({{brokers.size() > 1 ? "BROKER" : "", "brokerName"},
           {"TOPIC", "topic"},
           {"GROUP", "group"},
           {"QUEUE", "queueId"},
           {"BROKER OFFSET", "brokerOffset"},
           {"GROUP OFFSET", "consumerOffset"},
           {"LAG", "diff"},
           {"LAST CONSUMED", "lastTimestamp"}});
  int64_t total = 0;
  Silent silent;
  for (const BrokerNode& b : brokers) {
    auto body = stats_of(c, b);
    if (!body && silent.passes_over(b.address, body.error())) continue;
    if (!body) return std::unexpected(body.error());
    total += body->total_diff;
    for (const auto& groups : body->consume_stats_list)
      for (const auto& [group, all] : groups)
        for (const proto::ConsumeStats& stats : all)
          for (const auto& [q, o] : stats.offset_table) {
            const int64_t behind = o.broker_offset - o.consumer_offset;
            if (behind < c.options().min_lag.value_or(0)) continue;
            t.add({Cell::text(who(b)), Cell::text(q.topic), Cell::text(group), Cell::integer(q.queue_id),
                   Cell::integer(o.broker_offset), Cell::integer(o.consumer_offset), Cell::integer(behind),
                   Cell::moment(o.last_timestamp_ms)});
          }
  }
  auto all = silent.result();
  if (!all && t.rows() == 0) return all;
  c.print_table(t);
  if (!c.options().json) c.print(fmt::format("{} messages behind\n", format_number(total)));
  return all;
}

// What a master says of its replicas; a replica says how far it is itself.
void add_replicas(Table& t, const BrokerNode& b, const proto::HARuntimeInfo& info) {
  auto row = [&](Cell replica, Cell acknowledged, Cell behind, Cell speed, Cell state) {
    t.add({Cell::text(who(b)), Cell::text(info.master ? "master" : "replica"), std::move(replica),
           Cell::integer(info.master_commit_log_max_offset), std::move(acknowledged), std::move(behind),
           std::move(speed), std::move(state)});
  };
  if (!info.master) {
    const proto::HAClientRuntimeInfo& own = info.ha_client_runtime_info;
    row(Cell::text(own.master_addr), Cell::integer(own.max_offset),
        Cell::bytes(std::max<int64_t>(0, own.master_flush_offset - own.max_offset)),
        Cell::bytes(own.transferred_byte_in_second),
        Cell::text(own.master_addr.empty() ? "no master" : "reads"));
    return;
  }
  for (const proto::HAConnectionInfo& r : info.ha_connection_info)
    row(Cell::text(r.addr), Cell::integer(r.slave_ack_offset), Cell::bytes(r.diff),
        Cell::bytes(r.transferred_byte_in_second), Cell::text(r.in_sync ? "in sync" : "behind"));
  if (info.ha_connection_info.empty())
    row(Cell::none(), Cell::none(), Cell::none(), Cell::none(), Cell::text("no replica"));
}

Outcome<void> replicas(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  Table t({{"BROKER", "brokerName"},
           {"ROLE", "role"},
           {"PEER", "addr"},
           {"LOG END", "masterCommitLogMaxOffset"},
           {"CONFIRMED", "slaveAckOffset"},
           {"BEHIND", "diff"},
           {"PER SECOND", "transferredByteInSecond"},
           {"STATE", "state"}});
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY_VAR(reply, channel->ask<proto::GetBrokerHaStatus>({}));
    TRY_VAR(info, parse_body<proto::HARuntimeInfo>(*channel, reply, "GET_BROKER_HA_STATUS"));
    add_replicas(t, b, info);
  }
  c.print_table(t);
  return {};
}

constexpr OptionSpec lag_options[] = {
    {"--min-lag", "N", &Options::min_lag, "only queues where a group is behind by N messages or more", 0,
     INT64_MAX},
    {"--orderly", nullptr, &Options::orderly, "only groups that consume in order"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "the masters of this cluster"},
};
constexpr OptionSpec where_options[] = {lag_options[2], lag_options[3]};

constexpr Verb verbs[] = {
    {"broker lag", "", 0, 0, lag_options, lag,
     "show how far every group of a broker is behind, queue by queue",
     "Topics that nobody has consumed are not there. \"group lag\" is about one group, over all brokers.",
     true},
    {"broker replicas", "", 0, 0, where_options, replicas, "show how far the replicas of a broker are",
     "CONFIRMED is the physical offset up to which a replica has the CommitLog.", true},
};

}  // namespace

std::span<const Verb> broker_lag_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

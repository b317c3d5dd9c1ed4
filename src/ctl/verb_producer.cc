// rmqctl producer: who is connected to send.

#include <map>

#include "ctl/context.h"
#include "proto/bodies_stats.h"
#include "proto/codes.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

Outcome<void> list(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  // A producer is connected to each broker that it sends to.
  std::map<std::pair<std::string, std::string>, proto::ProducerInfo> all;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY_VAR(reply, channel->ask<proto::GetAllProducerInfo>({}));
    TRY_VAR(body, parse_body<proto::ProducerTableInfo>(*channel, reply, "GET_ALL_PRODUCER_INFO"));
    for (const auto& [group, producers] : body.data)
      for (const proto::ProducerInfo& p : producers) {
        proto::ProducerInfo& known = all[{group, p.client_id}];
        if (p.last_update_timestamp_ms >= known.last_update_timestamp_ms) known = p;
      }
  }
  Table t({{"GROUP", "group"},
           {"CLIENT", "clientId"},
           {"ADDRESS", "clientAddr"},
           {"LANGUAGE", "language"},
           {"VERSION", "version"},
           {"LAST HEARTBEAT", "lastUpdateTimestamp"}});
  for (const auto& [key, p] : all)
    if (!c.has_arg(0) || c.arg(0) == key.first)
      t.add({Cell::text(key.first), Cell::text(p.client_id), Cell::text(p.remote_ip), Cell::text(p.language),
             Cell::text(proto::version_name(p.version)), Cell::moment(p.last_update_timestamp_ms)});
  c.print_table(t);
  return {};
}

constexpr OptionSpec where_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};

constexpr Verb verbs[] = {
    {"producer list", "[GROUP]", 0, 1, where_options, list, "list the producers that are connected",
     "A producer tells its group with its first message or heartbeat; one that only sends one-way is not "
     "seen.",
     true},
};

}  // namespace

std::span<const Verb> producer_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

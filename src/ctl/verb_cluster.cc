// rmqctl cluster: the brokers that the name server knows, with what they say of themselves.

#include <fmt/format.h>

#include <charconv>

#include "ctl/context.h"
#include "proto/bodies_config.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

// The first number of a value like "12.5 10.1 9.9"; nothing when there is none.
std::optional<double> first_number(const Values& values, std::string_view key) {
  auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  double v = 0;
  auto [end, ec] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
  if (ec != std::errc()) return std::nullopt;
  return v;
}

Cell real_or_none(const Values& values, std::string_view key) {
  auto v = first_number(values, key);
  return v ? Cell::real(*v) : Cell::none();
}

// What was counted between two readings of a counter.
Cell between(const Values& values, std::string_view now, std::string_view morning) {
  auto a = first_number(values, now), b = first_number(values, morning);
  return a && b ? Cell::integer(static_cast<int64_t>(*a - *b)) : Cell::none();
}

std::vector<Cell> row_of(const BrokerNode& b, const Values& values, bool more) {
  auto text = [&](std::string_view key) {
    auto it = values.find(key);
    return it == values.end() ? Cell::none() : Cell::text(it->second);
  };
  auto out_tps = real_or_none(values, "getTransferredTps");
  if (out_tps.kind == Cell::Kind::none) out_tps = real_or_none(values, "getTransferedTps");
  auto disk = first_number(values, "commitLogDiskRatio");
  auto boot = first_number(values, "bootTimestamp");
  std::vector<Cell> row = {Cell::text(b.cluster),
                           Cell::text(b.name),
                           Cell::integer(b.id),
                           Cell::text(b.address),
                           text("brokerVersionDesc"),
                           real_or_none(values, "putTps"),
                           out_tps,
                           between(values, "msgPutTotalTodayNow", "msgPutTotalTodayMorning"),
                           between(values, "msgGetTotalTodayNow", "msgGetTotalTodayMorning"),
                           disk ? Cell::integer(static_cast<int64_t>(*disk * 100)) : Cell::none(),
                           boot ? Cell::moment(static_cast<int64_t>(*boot)) : Cell::none()};
  if (more) {
    row.push_back(between(values, "msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning"));
    row.push_back(between(values, "msgGetTotalTodayMorning", "msgGetTotalYesterdayMorning"));
  }
  return row;
}

Outcome<Values> runtime_of(Context& c, const BrokerNode& b) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  TRY_VAR(reply, channel->ask<proto::GetBrokerRuntimeInfo>({}));
  TRY_VAR(body, parse_body<proto::KVTable>(*channel, reply, "GET_BROKER_RUNTIME_INFO"));
  return std::move(body.table);
}

// A broker that does not answer is shown all the same, and the exit code tells of it.
Outcome<void> cluster(Context& c) {
  TRY_VAR(brokers, c.brokers());
  std::vector<Table::Column> columns = {
      {"CLUSTER", "cluster"},    {"BROKER", "brokerName"},  {"ID", "brokerId"},
      {"ADDRESS", "brokerAddr"}, {"VERSION", "version"},    {"IN/s", "inTps"},
      {"OUT/s", "outTps"},       {"IN TODAY", "inToday"},   {"OUT TODAY", "outToday"},
      {"DISK %", "diskPercent"}, {"SINCE", "bootTimestamp"}};
  if (c.options().more)
    columns.insert(columns.end(), {{"IN YESTERDAY", "inYesterday"}, {"OUT YESTERDAY", "outYesterday"}});
  Table t(std::move(columns));
  std::optional<Failure> first_failure;
  for (const BrokerNode& b : brokers) {
    auto values = runtime_of(c, b);
    if (!values && !first_failure) first_failure = values.error();
    t.add(row_of(b, values ? *values : Values{}, c.options().more));
  }
  c.print_table(t);
  if (first_failure) return std::unexpected(*first_failure);
  if (brokers.empty()) c.note("no broker is registered at the name server");
  return {};
}

constexpr OptionSpec cluster_options[] = {
    {"-c,--cluster", "NAME", &Options::cluster, "only this cluster"},
    {"-m,--more", nullptr, &Options::more, "with the counts of yesterday"},
};

constexpr Verb verbs[] = {
    {"cluster", "", 0, 0, cluster_options, cluster, "list the brokers of the cluster",
     "Asks the name server for its brokers and each broker for its state. IN/s and OUT/s are messages a "
     "second "
     "over the last ten seconds.",
     true},
    {"cluster list", "", 0, 0, cluster_options, cluster, "the same", "", true},
};

}  // namespace

std::span<const Verb> cluster_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

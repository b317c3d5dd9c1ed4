// rmqctl broker: a broker's runtime values and its configuration.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/admin_calls.h"
#include "ctl/broker_work.h"
#include "ctl/context.h"
#include "proto/bodies_config.h"
#include "proto/fastjson.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

Outcome<std::vector<KeyValue>> runtime_of(Context& c, const BrokerNode& b) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  return runtime_values_at(*channel);
}

Outcome<std::vector<KeyValue>> config_of(Context& c, const BrokerNode& b) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  return config_values_at(*channel);
}

using Getter = Outcome<std::vector<KeyValue>> (*)(Context&, const BrokerNode&);

// Key and value of each broker; with keys given only those, and one that is not there is a failure.
Outcome<void> show_values(Context& c, Getter get, std::span<const std::string> keys) {
  TRY_VAR(brokers, c.target_brokers());
  Table t({{brokers.size() > 1 ? "BROKER" : "", "brokerName"}, {"KEY", "key"}, {"VALUE", "value"}});
  Silent silent;
  for (const BrokerNode& b : brokers) {
    auto values = get(c, b);
    if (!values && silent.passes_over(b.address, values.error())) continue;
    if (!values) return std::unexpected(values.error());
    for (const std::string& key : keys)
      if (std::none_of(values->begin(), values->end(), [&](const KeyValue& v) { return v.key == key; }))
        return fail(Exit::refused,
                    fmt::format("broker {} has no \"{}\"", b.name.empty() ? b.address : b.name, key));
    for (const KeyValue& v : *values)
      if (keys.empty() || std::find(keys.begin(), keys.end(), v.key) != keys.end())
        t.add({Cell::text(b.name.empty() ? b.address : b.name), Cell::text(v.key), Cell::text(v.value)});
  }
  if (t.rows() != 0) c.print_table(t);
  return silent.result();
}

Outcome<void> status(Context& c) {
  return show_values(c, runtime_of, c.options().args);
}
Outcome<void> config(Context& c) {
  return show_values(c, config_of, c.options().args);
}

// Brokers pass over keys that they do not know: only the new value, read back, tells.
Outcome<void> set_config_of(Context& c, const BrokerNode& b, Table* t) {
  const std::string &key = c.arg(0), &value = c.arg(1);
  auto find = [&](const std::vector<KeyValue>& values) {
    return std::find_if(values.begin(), values.end(), [&](const KeyValue& v) { return v.key == key; });
  };
  std::string who = b.name.empty() ? b.address : b.name;
  TRY_VAR(before, config_of(c, b));
  auto old = find(before);
  if (old == before.end())
    return fail(Exit::refused, fmt::format("broker {} has no configuration key \"{}\"", who, key));
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  TRY_VAR(waits, change_config_at<proto::UpdateBrokerConfig>(c, *channel, key, value));
  TRY_VAR(after, config_of(c, b));
  auto now = find(after);
  if (!waits && (now == after.end() || (now->value != value && now->value == old->value)))
    return fail(Exit::refused, fmt::format("broker {} answered that it set {}, but it still is \"{}\"", who,
                                           key, now == after.end() ? "" : now->value));
  t->add({Cell::text(who), Cell::text(key), Cell::text(old->value),
          Cell::text(now == after.end() ? "" : now->value), Cell::text(waits ? value : "")});
  return {};
}

Outcome<void> config_set(Context& c) {
  const std::string& key = c.arg(0);
  if (!is_property_key(key)) return fail(Exit::usage, fmt::format("\"{}\" is not a configuration key", key));
  TRY_VAR(brokers, c.target_brokers());
  Table t({{"BROKER", "brokerName"},
           {"KEY", "key"},
           {"BEFORE", "before"},
           {"NOW", "value"},
           {"AFTER A RESTART", "valueAfterRestart"}});
  return Undone().change(c, brokers, t, [&](const BrokerNode& b) { return set_config_of(c, b, &t); });
}

std::string names_of(const std::vector<BrokerNode>& brokers) {
  std::string out;
  for (const BrokerNode& b : brokers)
    out += (out.empty() ? "" : ", ") + (b.name.empty() ? b.address : b.name);
  return out;
}

// What each of them takes away, for who is asked.
template <class Command>
constexpr const char* what_goes = "";
template <>
constexpr const char* what_goes<proto::DeleteExpiredCommitlog> =
    "Messages that are older than fileReservedTime will be deleted, at any hour,";
template <>
constexpr const char* what_goes<proto::CleanExpiredConsumequeue> =
    "Queues without a message will be taken away, with the offsets of their groups set to 0,";
template <>
constexpr const char* what_goes<proto::CleanUnusedTopic> =
    "Queues and offsets of topics that do not exist any more will be taken away";

template <class Command>
Outcome<void> ask_to_clean(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  TRY(c.confirm(fmt::format("{} at {}.", what_goes<Command>, names_of(brokers))));
  Table t({{"BROKER", "brokerName"}, {"RESULT", "result"}});
  return Undone().change(c, brokers, t, [&](const BrokerNode& b) -> Outcome<void> {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY(channel->ask<Command>({}));
    t.add({Cell::text(b.name.empty() ? b.address : b.name), Cell::text("done")});
    return {};
  });
}

constexpr OptionSpec broker_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "the masters of this cluster"},
};
constexpr OptionSpec clean_options[] = {
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
    broker_options[0],
    broker_options[1],
};
constexpr OptionSpec copy_options[] = {
    {"-t,--topic", "TOPIC", &Options::topic, "only this topic, and the groups that consume it"},
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
};
constexpr OptionSpec drain_options[] = {
    {"--skip-group", "GROUP", &Options::skip_groups,
     "do not wait for this group; what it has not consumed stays at the broker; repeatable"},
    {"--settle", "DURATION", &Options::settle,
     "how long producers have to leave (default 40s: they ask for routes each 30s)"},
    {"--timeout", "DURATION", &Options::wait, "give up waiting after so long (default: never)"},
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
};
constexpr const char* which_broker =
    "Without --broker and --cluster: all masters, when the name server knows one cluster only.";

constexpr Verb verbs[] = {
    {"broker status", "[KEY...]", 0, 1000, broker_options, status, "show a broker's runtime values",
     which_broker, true},
    {"broker config", "[KEY...]", 0, 1000, broker_options, config, "show a broker's configuration",
     which_broker, true},
    {"broker config get", "[KEY...]", 0, 1000, broker_options, config, "the same", "", true},
    {"broker config set", "KEY VALUE", 2, 2, broker_options, config_set,
     "change a configuration value of a running broker",
     "The broker keeps it in its configuration. What takes effect at its next start only is kept as well, "
     "which "
     "is told. A value that the broker did not take is an error, although the protocol reports success "
     "then."},
    {"broker copy", "FROM TO", 2, 2, copy_options, copy_broker,
     "make a broker's topics and groups at another one",
     "FROM and TO are names, or HOST:PORT. Topics come with their queues, permission and attributes, groups "
     "with their whole configuration; what TO has already stays as it is there. A group that has consumed a "
     "topic at FROM is set to the beginning of the topic's queues at TO, where it has no position yet, so "
     "that it misses nothing that is sent there. No message is copied. Producers and consumers come to TO "
     "within half a minute. Safe to repeat."},
    {"broker drain", "BROKER", 1, 1, drain_options, drain_broker,
     "lead producers away from a broker and wait until consumers have emptied it",
     "First the name servers tell producers of no queue there (namesrv wipe-write); after --settle the "
     "broker "
     "registers itself as read-only (brokerPermission 4), which outlives restarts. Then it waits until every "
     "group has consumed all, transactions are ended, delayed messages are delivered, and nothing has come "
     "for "
     "--settle. Progress is on standard error. It may be stopped at any time (exit code 1): the same command "
     "goes on. A group with messages left whose consumers are gone holds it up until they come back, or is "
     "given with --skip-group. Dead letters stay; they are listed at the end. The way back: \"broker config "
     "set "
     "brokerPermission 6 --broker BROKER\", and \"namesrv add-write BROKER\" where that comes too late."},
    {"broker delete-expired", "", 0, 0, clean_options, ask_to_clean<proto::DeleteExpiredCommitlog>,
     "delete old CommitLog files now",
     "Files whose messages are all older than fileReservedTime are deleted at any hour, not only at those of "
     "deleteWhen. The broker begins at once and goes on in the background."},
    {"broker clean-queues", "", 0, 0, clean_options, ask_to_clean<proto::CleanExpiredConsumequeue>,
     "take away queues of which no message is left",
     "What is sent to such a queue afterwards has offsets from 0 on; groups that consumed it are set back to "
     "0."},
    {"broker clean-topics", "", 0, 0, clean_options, ask_to_clean<proto::CleanUnusedTopic>,
     "take away the queues of topics that do not exist any more", which_broker},
};

}  // namespace

std::span<const Verb> broker_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

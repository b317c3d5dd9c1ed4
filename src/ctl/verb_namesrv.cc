// rmqctl namesrv: the configuration of name servers, their KV config, and whether producers may write to a
// broker. Name servers do not talk to each other, so what changes is said to each of them.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "proto/bodies_config.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

namespace {

std::string address_of(const Channel* ns) {
  return to_string(ns->peer().address);
}

Outcome<void> config(Context& c) {
  TRY_VAR(servers, c.all_namesrvs());
  Table t({{servers.size() > 1 ? "NAME SERVER" : "", "namesrvAddr"}, {"KEY", "key"}, {"VALUE", "value"}});
  const auto& keys = c.options().args;
  for (Channel* ns : servers) {
    TRY_VAR(reply, ns->ask<proto::GetNamesrvConfig>({}));
    const std::vector<KeyValue> values = parse_properties(reply.body());
    for (const std::string& key : keys)
      if (std::none_of(values.begin(), values.end(), [&](const KeyValue& v) { return v.key == key; }))
        return fail(Exit::refused, fmt::format("the {} has no \"{}\"", ns->peer().to_string(), key));
    for (const KeyValue& v : values)
      if (keys.empty() || std::find(keys.begin(), keys.end(), v.key) != keys.end())
        t.add({Cell::text(address_of(ns)), Cell::text(v.key), Cell::text(v.value)});
  }
  c.print_table(t);
  return c.all_told();
}

Outcome<void> config_set(Context& c) {
  const std::string& key = c.arg(0);
  if (!is_property_key(key)) return fail(Exit::usage, fmt::format("\"{}\" is not a configuration key", key));
  TRY_VAR(servers, c.all_namesrvs());
  Table t({{"NAME SERVER", "namesrvAddr"}, {"KEY", "key"}, {"NOW", "value"}});
  for (Channel* ns : servers) {
    TRY(change_config_at<proto::UpdateNamesrvConfig>(c, *ns, key, c.arg(1)));
    // Keys that a name server does not know it passes over: only the value, read back, tells.
    TRY_VAR(reply, ns->ask<proto::GetNamesrvConfig>({}));
    const std::vector<KeyValue> values = parse_properties(reply.body());
    auto now = std::find_if(values.begin(), values.end(), [&](const KeyValue& v) { return v.key == key; });
    if (now == values.end())
      return fail(Exit::refused,
                  fmt::format("the {} has no configuration key \"{}\"", ns->peer().to_string(), key));
    t.add({Cell::text(address_of(ns)), Cell::text(key), Cell::text(now->value)});
  }
  c.print_table(t);
  return c.all_told();
}

Outcome<void> kv_list(Context& c) {
  TRY_VAR(ns, c.namesrv());
  proto::GetKvListByNamespaceRequestHeader h;
  h.name_space = c.arg(0);
  TRY_VAR(reply, ns->call<proto::GetKvlistByNamespace>(h));
  Table t({{"KEY", "key"}, {"VALUE", "value"}});
  if (reply.code() != proto::ResponseCode::QUERY_NOT_FOUND) {  // that is an empty one
    if (!reply.ok()) return ns->refusal(reply);
    TRY_VAR(body, parse_body<proto::KVTable>(*ns, reply, "GET_KVLIST_BY_NAMESPACE"));
    for (const auto& [key, value] : body.table) t.add({Cell::text(key), Cell::text(value)});
  }
  c.print_table(t);
  return {};
}

Outcome<void> told(Context& c, const std::vector<Channel*>& servers, const char* what) {
  Table t({{"NAME SERVER", "namesrvAddr"}, {"RESULT", "result"}});
  for (const Channel* ns : servers) t.add({Cell::text(address_of(ns)), Cell::text(what)});
  c.print_table(t);
  return c.all_told();
}

Outcome<void> kv_set(Context& c) {
  TRY_VAR(servers, c.all_namesrvs());
  proto::PutKvConfigRequestHeader h;
  h.name_space = c.arg(0);
  h.key = c.arg(1);
  h.value = c.arg(2);
  for (Channel* ns : servers) TRY(ns->ask<proto::PutKvConfig>(h));
  return told(c, servers, "set");
}

Outcome<void> kv_delete(Context& c) {
  TRY_VAR(servers, c.all_namesrvs());
  proto::DeleteKvConfigRequestHeader h;
  h.name_space = c.arg(0);
  h.key = c.arg(1);
  for (Channel* ns : servers) TRY(ns->ask<proto::DeleteKvConfig>(h));
  return told(c, servers, "deleted");
}

// None of them is a name that was misspelt: nobody would be kept from anything.
Outcome<void> check_broker_is_known(const std::vector<Channel*>& servers, const std::string& broker) {
  for (Channel* ns : servers) {
    TRY_VAR(reply, ns->ask<proto::GetBrokerClusterInfo>({}));
    TRY_VAR(info, parse_body<proto::ClusterInfo>(*ns, reply, "GET_BROKER_CLUSTER_INFO"));
    if (info.broker_addr_table.contains(broker)) return {};
  }
  return fail(Exit::refused, fmt::format("the name server knows no broker \"{}\"", broker));
}

Outcome<void> wipe_write(Context& c) {
  const std::string& broker = c.arg(0);
  TRY_VAR(servers, c.all_namesrvs());
  TRY(check_broker_is_known(servers, broker));
  TRY(c.confirm(
      fmt::format("Producers will find no way to broker {} any more, for any topic, until \"namesrv "
                  "add-write\".",
                  broker)));
  Table t({{"NAME SERVER", "namesrvAddr"}, {"BROKER", "brokerName"}, {"TOPICS", "wipeTopicCount"}});
  for (Channel* ns : servers) {
    proto::WipeWritePermOfBrokerRequestHeader h;
    h.broker_name = broker;
    TRY_VAR(reply, ns->ask<proto::WipeWritePermOfBroker>(h));
    auto answer = proto::WipeWritePermOfBroker::decode_response(reply.command);
    if (!answer) return ns->malformed("WIPE_WRITE_PERM_OF_BROKER", {Errc::bad_input, 0, "its header"});
    t.add({Cell::text(address_of(ns)), Cell::text(broker), Cell::integer(answer->wipe_topic_count)});
  }
  c.print_table(t);
  return c.all_told();
}

Outcome<void> add_write(Context& c) {
  const std::string& broker = c.arg(0);
  TRY_VAR(servers, c.all_namesrvs());
  TRY(check_broker_is_known(servers, broker));
  Table t({{"NAME SERVER", "namesrvAddr"}, {"BROKER", "brokerName"}, {"TOPICS", "addTopicCount"}});
  for (Channel* ns : servers) {
    proto::AddWritePermOfBrokerRequestHeader h;
    h.broker_name = broker;
    TRY_VAR(reply, ns->ask<proto::AddWritePermOfBroker>(h));
    auto answer = proto::AddWritePermOfBroker::decode_response(reply.command);
    if (!answer) return ns->malformed("ADD_WRITE_PERM_OF_BROKER", {Errc::bad_input, 0, "its header"});
    t.add({Cell::text(address_of(ns)), Cell::text(broker), Cell::integer(answer->add_topic_count)});
  }
  c.print_table(t);
  return c.all_told();
}

constexpr OptionSpec wipe_options[] = {{"-y,--yes", nullptr, &Options::yes, "do not ask"}};

constexpr Verb verbs[] = {
    {"namesrv config",
     "[KEY...]",
     0,
     1000,
     {},
     config,
     "show the configuration of the name servers",
     "",
     true},
    {"namesrv config set",
     "KEY VALUE",
     2,
     2,
     {},
     config_set,
     "change a configuration value of running name servers",
     "At every name server of -n."},
    {"namesrv kv list",
     "NAMESPACE",
     1,
     1,
     {},
     kv_list,
     "list what a namespace of the KV config holds",
     "ORDER_TOPIC_CONFIG is the one that brokers and clients know: topics with a global order.",
     true},
    {"namesrv kv set",
     "NAMESPACE KEY VALUE",
     3,
     3,
     {},
     kv_set,
     "set a value of the KV config",
     "At every name server of -n."},
    {"namesrv kv delete",
     "NAMESPACE KEY",
     2,
     2,
     {},
     kv_delete,
     "delete a value of the KV config",
     "At every name server of -n."},
    {"namesrv wipe-write", "BROKER", 1, 1, wipe_options, wipe_write,
     "keep producers away from a broker, for all topics",
     "Before work at a broker: consumers go on and empty it. BROKER is its name. It is asked before; --yes "
     "answers. It is undone when the broker registers a change of its topics (a consumer's first retry is "
     "one), and when the name server is restarted; \"broker drain\" makes it last."},
    {"namesrv add-write", "BROKER", 1, 1, {}, add_write, "let producers come to a broker again", ""},
};

}  // namespace

std::span<const Verb> namesrv_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

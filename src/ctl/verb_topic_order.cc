// rmqctl topic order, allocate and load: where the queues of a topic with a global order are, who would get
// which queue, and topics from a list.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/context.h"
#include "ctl/lists.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

namespace {

// "broker-a:4;broker-b:4": which brokers have how many queues of the topic, also while one is away.
bool is_order_text(std::string_view text) {
  if (text.empty()) return false;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto colon = part.rfind(':');
    if (colon == 0 || colon == std::string_view::npos || colon + 1 == part.size()) return false;
    if (part.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos) return false;
  }
  return true;
}

Outcome<void> order_get(Context& c) {
  TRY_VAR(servers, c.all_namesrvs());
  Table t({{servers.size() > 1 ? "NAME SERVER" : "", "namesrvAddr"},
           {"TOPIC", "topic"},
           {"QUEUES", "orderConf"}});
  proto::GetKvConfigRequestHeader h;
  h.name_space = proto::names::order_topic_namespace;
  h.key = c.arg(0);
  for (Channel* ns : servers) {
    TRY_VAR(reply, ns->call<proto::GetKvConfig>(h));
    if (reply.code() == proto::ResponseCode::QUERY_NOT_FOUND) continue;
    if (!reply.ok()) return ns->refusal(reply);
    auto answer = proto::GetKvConfig::decode_response(reply.command);
    if (!answer) return ns->malformed("GET_KV_CONFIG", {Errc::bad_input, 0, "its header"});
    t.add({Cell::text(to_string(ns->peer().address)), Cell::text(c.arg(0)),
           Cell::text(answer->value.value_or(""))});
  }
  if (t.rows() == 0)
    return fail(Exit::refused, fmt::format("topic {} has no global order; \"rmqctl topic order put {} "
                                           "BROKER:QUEUES;...\" gives it one",
                                           c.arg(0), c.arg(0)));
  c.print_table(t);
  return {};
}

Outcome<void> told(Context& c, const std::vector<Channel*>& servers, const char* what) {
  Table t({{"NAME SERVER", "namesrvAddr"}, {"TOPIC", "topic"}, {"RESULT", "result"}});
  for (const Channel* ns : servers)
    t.add({Cell::text(to_string(ns->peer().address)), Cell::text(c.arg(0)), Cell::text(what)});
  c.print_table(t);
  return c.all_told();
}

Outcome<void> order_put(Context& c) {
  if (!is_order_text(c.arg(1)))
    return fail(
        Exit::usage,
        fmt::format("\"{}\" does not name brokers with their queues (broker-a:4;broker-b:4)", c.arg(1)));
  TRY_VAR(servers, c.all_namesrvs());
  proto::PutKvConfigRequestHeader h;
  h.name_space = proto::names::order_topic_namespace;
  h.key = c.arg(0);
  h.value = c.arg(1);
  for (Channel* ns : servers) TRY(ns->ask<proto::PutKvConfig>(h));
  return told(c, servers, "set");
}

Outcome<void> order_delete(Context& c) {
  TRY_VAR(servers, c.all_namesrvs());
  proto::DeleteKvConfigRequestHeader h;
  h.name_space = proto::names::order_topic_namespace;
  h.key = c.arg(0);
  for (Channel* ns : servers) TRY(ns->ask<proto::DeleteKvConfig>(h));
  return told(c, servers, "deleted");
}

struct Queue {
  std::string broker;
  int32_t id = 0;
};

// Clients as one argument each, or several in one separated by commas.
std::vector<std::string> clients_of(const std::vector<std::string>& args) {
  std::vector<std::string> out;
  for (size_t i = 1; i < args.size(); i++)
    for (std::string_view rest = args[i]; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (!one.empty()) out.emplace_back(one);
    }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// As push consumers divide queues unless they are told otherwise: the queues in order of broker and id, cut
// into runs as equal as can be, to the clients in the order of their ids.
Outcome<void> allocate(Context& c) {
  TRY_VAR(route, c.route(c.arg(0)));
  std::vector<Queue> queues;
  for (const proto::QueueData& q : route.queue_datas)
    for (int32_t id = 0; proto::perm::is_readable(q.perm) && id < q.read_queue_nums; id++)
      queues.push_back({q.broker_name, id});
  std::sort(queues.begin(), queues.end(), [](const Queue& a, const Queue& b) {
    return std::tie(a.broker, a.id) < std::tie(b.broker, b.id);
  });
  const std::vector<std::string> clients = clients_of(c.options().args);
  if (clients.empty()) return fail(Exit::usage, "topic allocate: no client is named");
  Table t({{"CLIENT", "clientId"}, {"COUNT", "count"}, {"QUEUES", "queues"}});
  size_t at = 0;
  for (size_t i = 0; i < clients.size(); i++) {
    const size_t share = queues.size() / clients.size() + (i < queues.size() % clients.size() ? 1 : 0);
    std::vector<std::string> own;
    for (size_t end = at + share; at < end; at++)
      own.push_back(fmt::format("{}/{}", queues[at].broker, queues[at].id));
    t.add({Cell::text(clients[i]), Cell::integer(static_cast<int64_t>(share)), Cell::list(std::move(own))});
  }
  c.print_table(t);
  return {};
}

constexpr OptionSpec load_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};

constexpr Verb verbs[] = {
    {"topic load", "FILE", 1, 1, load_options, load_topics, "create or change the topics of a JSON list",
     "FILE holds an array of topics as \"cluster export\" and brokers write them; what a topic does not say "
     "is "
     "the default. In one request for each broker."},
    {"topic order get",
     "TOPIC",
     1,
     1,
     {},
     order_get,
     "show which brokers have how many queues of a topic with a global order",
     "",
     true},
    {"topic order put",
     "TOPIC BROKER:QUEUES;...",
     2,
     2,
     {},
     order_put,
     "give a topic a global order: its queues stay these, also while a broker is away",
     "Producers that choose a queue by a key go on with the same one; what is for a queue of a broker that "
     "is "
     "away fails until it is back. At every name server of -n."},
    {"topic order delete",
     "TOPIC",
     1,
     1,
     {},
     order_delete,
     "let a topic have the queues of the brokers that are there",
     "At every name server of -n."},
    {"topic allocate",
     "TOPIC CLIENT...",
     2,
     1000,
     {},
     allocate,
     "show which consumer would get which queues",
     "As consumers divide them unless they are told otherwise; nobody has to be online. CLIENT is a client "
     "id; "
     "several may be in one argument, separated by commas. A client without a queue is one too many."},
};

}  // namespace

std::span<const Verb> topic_order_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

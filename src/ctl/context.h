// What a verb's function gets: its options, the servers, and where output goes. Connections are made when
// they are first needed and kept until the program ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/channel.h"
#include "ctl/print.h"
#include "ctl/verb.h"
#include "proto/bodies_route.h"

namespace rmq::ctl {

// A broker of the cluster, as the name server knows it.
struct BrokerNode {
  std::string cluster, name, address;
  int64_t id = 0;
};

class Context {
 public:
  Context(const Verb& verb, Options options) : verb_(verb), options_(std::move(options)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Verb& verb() const { return verb_; }
  const Options& options() const { return options_; }
  const std::string& arg(size_t i) const { return options_.args[i]; }
  bool has_arg(size_t i) const { return i < options_.args.size(); }

  // What -n or NAMESRV_ADDR names, else the usual one of this host.
  Outcome<std::vector<Address>> namesrv_list() const;
  // The first name server of the list that takes a connection.
  Outcome<Channel*> namesrv();
  // All of them: what must be told to each (deleted routes). Fails only when none is reachable.
  Outcome<std::vector<Channel*>> all_namesrvs();
  // For the end of what is for each of them: a failure when all_namesrvs() did not reach one.
  Outcome<void> all_told() const;
  // A broker by "host:port". `name` is for messages and may be empty.
  Outcome<Channel*> broker_at(const std::string& address, std::string_view name = {});
  // A connection of its own, for verbs that keep requests waiting at the server.
  Outcome<Channel> new_channel(const std::string& address, std::string_view name);

  Outcome<proto::ClusterInfo> cluster_info();
  // Every broker, sorted; with --cluster only those of it.
  Outcome<std::vector<BrokerNode>> brokers();
  // The masters that a change goes to, by --broker (a name or host:port), --cluster, or, when there is one
  // cluster only, all of it.
  Outcome<std::vector<BrokerNode>> target_brokers();
  // The master of that name, or the broker at that address, as the name server knows it.
  Outcome<BrokerNode> broker_named(const std::string& name_or_address);
  // TOPIC_NOT_EXIST stays a Failure with that response_code.
  Outcome<proto::TopicRouteData> route(std::string_view topic);

  int64_t timeout_ms();  // of one request
  static int64_t now_ms();

  // Output. print() goes to stdout, note() to stderr as "rmqctl: text".
  void print(std::string_view text);
  void note(std::string_view text);
  void print_table(const Table& t);  // as JSON with --json
  // False when stdout failed (disk full): main turns that into an exit code.
  bool flush();
  static bool stdin_is_terminal();
  static bool stderr_is_terminal();
  // Asks on the terminal; --yes answers. Without both: a Failure that says to pass --yes.
  Outcome<void> confirm(std::string_view question);

  // A duration that the command line gave for `option`, or `otherwise` when it gave none.
  Outcome<int64_t> duration_ms(std::string_view text, const char* option, int64_t otherwise);
  // A moment, likewise: milliseconds since 1970.
  static Outcome<int64_t> moment_ms(std::string_view text, const char* option, int64_t otherwise);

 private:
  const Verb& verb_;
  Options options_;
  std::map<std::string, std::unique_ptr<Channel>> channels_;  // by address
  Channel* namesrv_ = nullptr;
  std::string unreached_;  // name servers, separated by ", "
};

// Parses an answer's body. `what` names it for the message: "the route".
template <class Body>
Outcome<Body> parse_body(const Channel& channel, const Reply& reply, std::string_view what) {
  auto body = Body::parse(reply.body());
  if (!body) return channel.malformed(what, body.error());
  return std::move(*body);
}

// The address that requests go to: the master's, else the smallest id's. Null when there is none.
const std::string* main_address(const proto::BrokerData& b);

}  // namespace rmq::ctl

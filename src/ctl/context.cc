// Idea: see context.h.

#include "ctl/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/time.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

static constexpr int64_t default_timeout_ms = 5'000;

int64_t Context::now_ms() {
  return system_wall_ms();
}

Outcome<int64_t> Context::duration_ms(std::string_view text, const char* option, int64_t otherwise) {
  if (text.empty()) return otherwise;
  auto ms = parse_duration_ms(text);
  if (!ms || *ms == 0)
    return fail(Exit::usage, fmt::format("{} {}: not a duration (500ms, 3s, 2m, 1h)", option, text));
  return *ms;
}

Outcome<int64_t> Context::moment_ms(std::string_view text, const char* option, int64_t otherwise) {
  if (text.empty()) return otherwise;
  auto at = parse_time_ms(text, now_ms());
  if (!at)
    return fail(
        Exit::usage,
        fmt::format("{} {}: not a time (\"2026-11-30 04:05\", \"10m ago\", @MILLISECONDS)", option, text));
  return *at;
}

int64_t Context::timeout_ms() {
  return parse_duration_ms(options_.timeout).value_or(default_timeout_ms);
}

Outcome<std::vector<Address>> Context::namesrv_list() const {
  return parse_name_servers(options_.namesrv.empty() ? "127.0.0.1:9876" : options_.namesrv);
}

Outcome<Channel*> Context::namesrv() {
  if (namesrv_) return namesrv_;
  TRY_VAR(list, namesrv_list());
  std::string reasons;
  for (const Address& a : list) {
    auto& kept = channels_[to_string(a)];
    if (kept) return namesrv_ = kept.get();  // a broker that is a name server, too
    auto c = Channel::connect({a, "name server"}, timeout_ms());
    if (c) {
      kept = std::make_unique<Channel>(std::move(*c));
      namesrv_ = kept.get();
      return namesrv_;
    }
    if (list.size() == 1) return std::unexpected(c.error());
    auto& text = c.error().text;
    auto reason = text.find(": ");
    reasons += fmt::format("{}{} ({})", reasons.empty() ? "" : ", ", to_string(a),
                           text.substr(reason + 2, text.rfind("; ") - reason - 2));
  }
  return fail(
      Exit::unreachable,
      fmt::format("no name server can be reached: {}; check that one runs, and the addresses given by "
                  "-n or NAMESRV_ADDR",
                  reasons));
}

Outcome<std::vector<Channel*>> Context::all_namesrvs() {
  TRY(namesrv());
  TRY_VAR(list, namesrv_list());
  std::vector<Channel*> out;
  for (const Address& a : list) {
    auto& kept = channels_[to_string(a)];
    if (!kept) {
      auto c = Channel::connect({a, "name server"}, timeout_ms());
      if (!c) {
        note(c.error().text);
        unreached_ += (unreached_.empty() ? "" : ", ") + to_string(a);
        continue;
      }
      kept = std::make_unique<Channel>(std::move(*c));
    }
    out.push_back(kept.get());
  }
  return out;
}

Outcome<void> Context::all_told() const {
  if (unreached_.empty()) return {};
  return fail(Exit::unreachable,
              fmt::format("not every name server was reached: {} is left out", unreached_));
}

Outcome<Channel> Context::new_channel(const std::string& address, std::string_view name) {
  auto a = parse_address(address, 0);
  if (!a) return fail(Exit::usage, fmt::format("\"{}\" is not the address of a broker (host:port)", address));
  std::string what = name.empty() ? "broker" : fmt::format("broker {}", name);
  return Channel::connect({*a, what}, timeout_ms());
}

Outcome<Channel*> Context::broker_at(const std::string& address, std::string_view name) {
  auto& kept = channels_[address];
  if (!kept) {
    TRY_VAR(c, new_channel(address, name));
    kept = std::make_unique<Channel>(std::move(c));
  }
  return kept.get();
}

Outcome<proto::ClusterInfo> Context::cluster_info() {
  TRY_VAR(ns, namesrv());
  TRY_VAR(reply, ns->ask<proto::GetBrokerClusterInfo>({}));
  return parse_body<proto::ClusterInfo>(*ns, reply, "GET_BROKER_CLUSTER_INFO");
}

Outcome<std::vector<BrokerNode>> Context::brokers() {
  TRY_VAR(info, cluster_info());
  std::vector<BrokerNode> out;
  for (const auto& [name, data] : info.broker_addr_table) {
    if (!options_.cluster.empty() && data.cluster != options_.cluster) continue;
    for (const auto& [id, address] : data.broker_addrs) out.push_back({data.cluster, name, address, id});
  }
  if (out.empty() && !options_.cluster.empty() && !info.cluster_addr_table.contains(options_.cluster))
    return fail(Exit::refused, fmt::format("the name server knows no cluster \"{}\"", options_.cluster));
  std::sort(out.begin(), out.end(), [](const BrokerNode& a, const BrokerNode& b) {
    return std::tie(a.cluster, a.name, a.id) < std::tie(b.cluster, b.name, b.id);
  });
  return out;
}

Outcome<std::vector<BrokerNode>> Context::target_brokers() {
  const std::string& wanted = options_.broker;
  if (wanted.find(':') != std::string::npos) return std::vector<BrokerNode>{{"", "", wanted, 0}};
  TRY_VAR(all, brokers());
  std::vector<BrokerNode> out;
  std::vector<std::string> clusters;
  for (const BrokerNode& b : all) {
    if (clusters.empty() || clusters.back() != b.cluster) clusters.push_back(b.cluster);
    if (wanted.empty() ? b.id == 0 : b.name == wanted && (out.empty() || out.back().name != b.name))
      out.push_back(b);
  }
  if (out.empty() && !wanted.empty())
    return fail(Exit::refused, fmt::format("the name server knows no broker \"{}\"", wanted));
  if (out.empty()) return fail(Exit::refused, "no broker is registered at the name server");
  if (wanted.empty() && clusters.size() > 1)
    return fail(Exit::usage, fmt::format("there are several clusters, choose with --cluster: {}",
                                         fmt::join(clusters, ", ")));
  return out;
}

Outcome<BrokerNode> Context::broker_named(const std::string& name_or_address) {
  TRY_VAR(all, brokers());
  for (const BrokerNode& b : all)
    if ((b.name == name_or_address && b.id == 0) || b.address == name_or_address) return b;
  return fail(Exit::refused, fmt::format("the name server knows no broker \"{}\"", name_or_address));
}

Outcome<proto::TopicRouteData> Context::route(std::string_view topic) {
  TRY_VAR(ns, namesrv());
  proto::GetRouteInfoRequestHeader h;
  h.topic = topic;
  h.accept_standard_json_only = true;
  TRY_VAR(reply, ns->call<proto::GetRouteinfoByTopic>(h));
  if (reply.code() == proto::ResponseCode::TOPIC_NOT_EXIST)
    return fail(Exit::refused,
                fmt::format("there is no topic \"{}\" (TOPIC_NOT_EXIST (17) by the {})", topic,
                            ns->peer().to_string()),
                reply.command.code);
  if (!reply.ok()) return ns->refusal(reply);
  return parse_body<proto::TopicRouteData>(*ns, reply, "GET_ROUTEINFO_BY_TOPIC");
}

void Context::print(std::string_view text) {
  fwrite(text.data(), 1, text.size(), stdout);
}

void Context::note(std::string_view text) {
  fflush(stdout);
  fmt::print(stderr, "rmqctl: {}\n", printable(text));
}

void Context::print_table(const Table& t) {
  print(options_.json ? t.to_json() : t.to_text(now_ms()));
}

bool Context::flush() {
  return fflush(stdout) == 0 && !ferror(stdout);
}
bool Context::stdin_is_terminal() {
  return isatty(STDIN_FILENO);
}
bool Context::stderr_is_terminal() {
  return isatty(STDERR_FILENO);
}

Outcome<void> Context::confirm(std::string_view question) {
  if (options_.yes) return {};
  if (!stdin_is_terminal() || !stderr_is_terminal())
    return fail(Exit::usage, fmt::format("{} There is no terminal to ask: pass --yes to do it", question));
  fmt::print(stderr, "{} [y/N] ", printable(question));
  char answer[16] = {};
  bool yes = fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
  if (!yes) return fail(Exit::refused, "nothing was changed");
  return {};
}

const std::string* main_address(const proto::BrokerData& b) {
  return b.broker_addrs.empty() ? nullptr : &b.broker_addrs.begin()->second;
}

}  // namespace rmq::ctl

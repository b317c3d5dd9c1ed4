#include "daemon/broker/registration.h"

#include "base/crc.h"
#include "base/log.h"
#include "daemon/broker/broker.h"
#include "proto/bodies_route.h"
#include "proto/headers_namesrv.h"

namespace rmq::broker {

Registration::Registration(Broker& broker, Net& net) : broker_(broker) {
  std::string_view rest = broker.config.namesrvAddr;
  while (!rest.empty()) {
    size_t semicolon = rest.find(';');
    std::string_view one = rest.substr(0, semicolon);
    rest = semicolon == std::string_view::npos ? std::string_view{} : rest.substr(semicolon + 1);
    if (!one.empty()) servers_.push_back(std::make_unique<Server>(net, std::string(one)));
  }
}

void Registration::start(Scope& scope) {
  scope.spawn(loop());
}

Task<void> Registration::loop() {
  while (!broker_.stopping.is_set()) {
    co_await register_all();
    bool all = true;
    for (const auto& s : servers_) all &= s->reached;
    // A name server that could not be reached is tried sooner than the period.
    int64_t pause_ms = broker_.config.registerNameServerPeriod;
    if (!all) pause_ms = std::min<int64_t>(pause_ms, 5'000);
    co_await broker_.stopping.wait_for(pause_ms * ns_per_ms);
  }
}

std::string Registration::body_of(const proto::TopicConfig* only) const {
  proto::RegisterBrokerBody body;
  proto::TopicConfigSerializeWrapper& w = body.topic_config_wrapper;
  if (only != nullptr) {
    w.data_version = broker_.topics.data_version();
    w.topic_config_table.emplace(only->topic_name, *only);
  } else {
    w = broker_.topics.snapshot();
  }
  // A broker that may not be read or written shows that in each of its topics.
  int32_t allowed =
      static_cast<int32_t>(broker_.config.brokerPermission) | proto::perm::inherit | proto::perm::priority;
  for (auto& [name, c] : w.topic_config_table) c.perm &= allowed;
  w.mapping_data_version = proto::DataVersion{};
  w.topic_queue_mapping_info_map = w.topic_queue_mapping_detail_map = "{}";
  body.filter_server_list.emplace();
  return body.to_json();
}

Task<void> Registration::register_all() {
  std::string body = body_of(nullptr);
  Scope scope;
  for (auto& s : servers_) scope.spawn(register_at(*s, body, false));
  co_await scope.join();
  registered_once_ = true;
}

Task<void> Registration::register_topic(proto::TopicConfig topic) {
  if (servers_.empty()) co_return;
  std::string body = body_of(&topic);
  Scope scope;
  for (auto& s : servers_) scope.spawn(register_at(*s, body, true));
  co_await scope.join();
}

// A name server that does not know us yet refuses a body with one topic: then it gets everything.
Task<void> Registration::register_at(Server& s, const std::string& body, bool one_topic) {
  bool done = co_await register_once(s, body);
  if (done || !one_topic) co_return;
  const std::string all = body_of(nullptr);
  co_await register_once(s, all);
}

Task<bool> Registration::register_once(Server& s, const std::string& body) {
  const BrokerConfig& c = broker_.config;
  std::string ha = c.brokerIP1 + ":" + std::to_string(c.listenPort + 1);
  proto::RegisterBrokerRequestHeader h;
  h.broker_name = c.brokerName;
  h.broker_addr = broker_.address_text();
  h.cluster_name = c.brokerClusterName;
  h.ha_server_addr = ha;
  h.broker_id = c.brokerId;
  h.enable_acting_master = false;
  h.body_crc32 = static_cast<int32_t>(body_crc(as_bytes(body)));  // UtilAll.crc32: without the top bit
  int64_t deadline = Loop::current().now_ns() + c.registerBrokerTimeoutMills * ns_per_ms;
  auto answer = co_await s.client.call<proto::RegisterBroker>(h, body, deadline);
  if (!answer) {
    note(s, false, to_string(answer.error()));
    co_return false;
  }
  const proto::RemotingCommand& a = (*answer)->command;
  bool good = a.response_code() == proto::ResponseCode::SUCCESS;
  note(s, good, good ? std::string_view{} : a.remark);
  co_return good;
}

void Registration::note(Server& s, bool reached, std::string_view reason) {
  if (s.known && s.reached == reached) return;
  s.known = true;
  s.reached = reached;
  if (stopped_) return;
  if (reached)
    log(LogLevel::notice, ids::namesrv_registered, "registered with a name server",
        {{"NAMESRV", s.client.address()}});
  else
    log(LogLevel::warning, ids::namesrv_unreachable,
        "a name server cannot be reached or refuses: clients that ask it find no route to this broker",
        {{"NAMESRV", s.client.address()}, {"REASON", reason}});
}

Task<Result<std::optional<proto::TopicRouteData>>> Registration::topic_route(std::string topic) {
  Error last{Errc::closed, 0, "no name server"};
  for (auto& s : servers_) {
    proto::GetRouteInfoRequestHeader h;
    h.topic = topic;
    h.accept_standard_json_only = true;
    const int64_t deadline = Loop::current().now_ns() + 3 * ns_per_s;
    auto answer = co_await s->client.call<proto::GetRouteinfoByTopic>(h, {}, deadline);
    if (!answer) {
      last = answer.error();
      continue;
    }
    if ((*answer)->command.response_code() == proto::ResponseCode::TOPIC_NOT_EXIST)
      co_return std::optional<proto::TopicRouteData>{};
    auto route = proto::TopicRouteData::parse((*answer)->frame.body_text());
    if (route) co_return std::optional<proto::TopicRouteData>(std::move(*route));
    last = route.error();
  }
  co_return std::unexpected(last);
}

Task<void> Registration::unregister_at(Server& s) {
  if (!s.reached) co_return;
  const BrokerConfig& c = broker_.config;
  proto::UnregisterBrokerRequestHeader h;
  h.broker_name = c.brokerName;
  h.broker_addr = broker_.address_text();
  h.cluster_name = c.brokerClusterName;
  h.broker_id = c.brokerId;
  int64_t deadline = Loop::current().now_ns() + 3 * ns_per_s;
  auto answer = co_await s.client.call<proto::UnregisterBroker>(h, {}, deadline);
  if (!answer)
    log(LogLevel::debug, "a name server did not take our goodbye", {{"NAMESRV", s.client.address()}});
}

Task<void> Registration::unregister_all() {
  stopped_ = true;
  Scope scope;
  for (auto& s : servers_) scope.spawn(unregister_at(*s));
  co_await scope.join();
}

Task<void> Registration::stop() {
  stopped_ = true;
  for (auto& s : servers_) co_await s->client.stop();
}

size_t Registration::reached() const {
  size_t n = 0;
  for (const auto& s : servers_) n += s->reached ? 1 : 0;
  return n;
}

std::string Registration::status() const {
  return std::to_string(reached()) + " of " + std::to_string(servers_.size()) + " name servers";
}

}  // namespace rmq::broker

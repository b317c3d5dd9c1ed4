#include "daemon/broker/registration.h"

#include <algorithm>

#include "base/crc.h"
#include "base/log.h"
#include "daemon/broker/broker.h"
#include "proto/bodies_route.h"
#include "proto/headers_namesrv.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

constexpr int64_t meet_ns = 3 * ns_per_s;
constexpr int64_t retry_first_ns = 100 * ns_per_ms, retry_ns = ns_per_s, retry_refused_ns = 5 * ns_per_s;
constexpr size_t part_bytes = 512u << 10;  // a few milliseconds of rmq-namesrvd's time
constexpr size_t frame_bytes = 8u << 20;   // half of what any name server takes
constexpr size_t sent_always_bytes = 256u
                                     << 10;  // so little goes to others as a sign of life, as with RocketMQ
constexpr uint32_t beats_max = 10;           // then they get everything again

// No less than its JSON takes in a registration.
size_t bytes_of(const proto::TopicConfig& c) {
  size_t bytes = 192 + 2 * c.topic_name.size();
  for (const auto& [key, value] : c.attributes) bytes += 8 + 6 * (key.size() + value.size());
  return bytes;
}

}  // namespace

Registration::Registration(Broker& broker, Net& net)
    : broker_(broker),
      ha_address_(broker.config.brokerIP1 + ":" + std::to_string(broker.config.listenPort + 1)) {
  std::string_view rest = broker_.config.namesrvAddr;
  while (!rest.empty()) {
    size_t semicolon = rest.find(';');
    std::string_view one = rest.substr(0, semicolon);
    rest = semicolon == std::string_view::npos ? std::string_view{} : rest.substr(semicolon + 1);
    if (!one.empty()) servers_.push_back(std::make_unique<Server>(net, std::string(one)));
  }
}

// ---- when --------------------------------------------------------------------------------------------

void Registration::start(Scope& scope) {
  for (auto& s : servers_) scope.spawn(keep(*s));
}

Task<void> Registration::keep(Server& s) {
  int64_t pause_ns = retry_first_ns;
  while (!broker_.stopping.is_set() && !stopped_) {
    s.wake.reset();
    co_await update(s);
    if (s.reached) {
      pause_ns = retry_first_ns;
      co_await s.wake.wait_for(broker_.config.registerNameServerPeriod * ns_per_ms);
    } else {
      if (s.refused) pause_ns = retry_refused_ns;
      co_await broker_.stopping.wait_for(pause_ns);
      pause_ns = std::min(2 * pause_ns, retry_ns);
    }
  }
}

Task<void> Registration::tell_changes() {
  Scope scope;
  for (auto& s : servers_)
    if (s->reached || !s->known) scope.spawn(update(*s));
  co_await scope.join();
}

// One at a time; who comes meanwhile is served by the next, all together.
Task<void> Registration::update(Server& s) {
  const uint64_t mine = ++s.wanted;
  co_await s.turn.acquire();
  if (s.served < mine) {
    s.served = s.wanted;
    co_await bring_up_to_date(s);
  }
  s.turn.release();
}

Task<void> Registration::bring_up_to_date(Server& s) {
  Outcome outcome = Outcome::again;
  for (int i = 0; i < 3 && outcome == Outcome::again && !stopped_; i++) {
    if (!s.client.is_open() || s.met != s.client.opened()) {
      bool met = co_await meet(s);
      if (!met) co_return;
    }
    if (!s.held)
      outcome = co_await tell_all(s);
    else if (s.takes_differences)
      outcome = co_await tell_difference(s);
    else
      outcome = co_await tell_other(s);
    // Over a connection that was opened meanwhile it may have been told less than it needs.
    if (outcome == Outcome::done && s.met != s.client.opened()) outcome = Outcome::again;
    if (outcome == Outcome::again) s.held.reset();
  }
  if (stopped_) co_return;
  if (outcome == Outcome::done) note(s, true, {});
  if (outcome == Outcome::again) note(s, false, "it does not keep what it is told");
}

// ---- what --------------------------------------------------------------------------------------------

int64_t Registration::deadline() const {
  return Loop::current().now_ns() + broker_.config.registerBrokerTimeoutMills * ns_per_ms;
}

proto::RegisterBrokerRequestHeader Registration::header() const {
  const BrokerConfig& c = broker_.config;
  proto::RegisterBrokerRequestHeader h;
  h.broker_name = c.brokerName;
  h.broker_addr = broker_.address_text();
  h.cluster_name = c.brokerClusterName;
  h.ha_server_addr = ha_address_;
  h.broker_id = c.brokerId;
  h.enable_acting_master = false;
  return h;
}

proto::QueryDataVersionRequestHeader Registration::version_query() const {
  const BrokerConfig& c = broker_.config;
  proto::QueryDataVersionRequestHeader h;
  h.broker_name = c.brokerName;
  h.broker_addr = broker_.address_text();
  h.cluster_name = c.brokerClusterName;
  h.broker_id = c.brokerId;
  // Of a slave the name server takes topics by turns, so it gets all of them each time.
  if (c.brokerId == 0) h.offers_differences = true;
  return h;
}

// Of those that there are; the others are deleted.
proto::RegisterBrokerBody Registration::body_of(std::span<const std::string> names) const {
  proto::RegisterBrokerBody body;
  proto::TopicConfigSerializeWrapper& w = body.topic_config_wrapper;
  w.data_version = broker_.topics.data_version();
  // A broker that may not be read or written shows that in each of its topics.
  const int32_t allowed =
      static_cast<int32_t>(broker_.config.brokerPermission) | proto::perm::inherit | proto::perm::priority;
  const auto& all = broker_.topics.all();
  for (const std::string& name : names) {
    auto it = all.find(name);
    if (it == all.end()) {
      body.deleted_topics.push_back(name);
      continue;
    }
    auto& c = w.topic_config_table.emplace(name, it->second).first->second;
    c.perm &= allowed;
  }
  w.mapping_data_version = proto::DataVersion{};
  w.topic_queue_mapping_info_map = w.topic_queue_mapping_detail_map = "{}";
  body.filter_server_list.emplace();
  return body;
}

// Names of all topics, as they go together into one request each.
std::vector<Registration::Names> Registration::parts_for(const Server& s) const {
  const BrokerConfig& c = broker_.config;
  const size_t bytes_max = s.takes_differences ? part_bytes : frame_bytes;
  const size_t topics_max = !s.takes_differences && c.enableSplitRegistration
                                ? static_cast<size_t>(c.splitRegistrationSize)
                                : SIZE_MAX;
  std::vector<Names> out(1);
  size_t bytes = 0;
  for (const auto& [name, topic] : broker_.topics.all()) {
    const size_t more = bytes_of(topic);
    // A first request with one topic would be refused.
    if (out.back().size() >= topics_max || (bytes + more > bytes_max && out.back().size() > 1)) {
      out.emplace_back();
      bytes = 0;
    }
    out.back().push_back(name);
    bytes += more;
  }
  return out;
}

// Asks a name server, over a connection that is new, what it has and whether it takes differences.
Task<bool> Registration::meet(Server& s) {
  const proto::QueryDataVersionRequestHeader h = version_query();
  std::string body = broker_.topics.data_version().to_json();
  const int64_t by_ns = std::min(deadline(), Loop::current().now_ns() + meet_ns);
  auto answer = co_await s.client.call<proto::QueryDataVersion>(h, std::move(body), by_ns);
  if (!answer || !s.client.wake_at_close(s.wake)) {
    note(s, false, answer ? "the connection was closed" : to_string(answer.error()));
    co_return false;
  }
  s.met = s.client.opened();
  const proto::RemotingCommand& a = (*answer)->command;
  const auto response = proto::QueryDataVersion::decode_response(a);
  s.takes_differences =
      a.response_code() == ResponseCode::SUCCESS && response && response->takes_differences.value_or(false);
  const auto has = proto::DataVersion::parse((*answer)->frame.body_text());
  if (!s.takes_differences || !has || (s.held && s.held->version != *has)) s.held.reset();
  co_return true;
}

Task<Registration::Outcome> Registration::send(Server& s, proto::RegisterBrokerRequestHeader h,
                                               std::string body) {
  h.body_crc32 = static_cast<int32_t>(body_crc(as_bytes(body)));  // UtilAll.crc32: without the top bit
  auto answer = co_await s.client.call<proto::RegisterBroker>(h, std::move(body), deadline());
  if (!answer) {
    note(s, false, to_string(answer.error()));
    co_return Outcome::failed;
  }
  const proto::RemotingCommand& a = (*answer)->command;
  if (a.response_code() == ResponseCode::SUCCESS) co_return Outcome::done;
  const auto response = proto::RegisterBroker::decode_response(a);
  // What it has was less than the difference, or than the one topic, needs.
  if (s.held || (response && response->wants_whole.value_or(false))) co_return Outcome::again;
  note(s, false, a.remark);
  s.refused = true;
  co_return Outcome::failed;
}

Task<Registration::Outcome> Registration::tell_all(Server& s) {
  const uint64_t change_count = broker_.topics.change_count();
  const std::vector<Names> parts = parts_for(s);
  proto::DataVersion version;
  for (size_t i = 0; i < parts.size(); i++) {
    proto::RegisterBrokerBody body = body_of(parts[i]);
    body.deleted_topics.clear();  // since `parts` were made; the next difference has them
    proto::RegisterBrokerRequestHeader h = header();
    version = body.topic_config_wrapper.data_version;
    if (s.takes_differences && parts.size() > 1) {
      h.part = static_cast<int32_t>(i + 1);
      h.parts = static_cast<int32_t>(parts.size());
    } else if (i + 1 < parts.size()) {
      // Apache's name server takes a topic that it has only from a version that it does not have.
      body.topic_config_wrapper.data_version.counter = -++parts_sent_;
    }
    std::string text = body.to_json();
    Outcome outcome = co_await send(s, h, std::move(text));
    if (outcome != Outcome::done) co_return outcome;
    if (stopped_) co_return Outcome::failed;  // after the goodbye nothing more is said
  }
  s.held = Held{change_count, version};  // no more than this: topics may have changed after their part
  s.beats = 0;
  co_return Outcome::done;
}

Task<Registration::Outcome> Registration::tell_difference(Server& s) {
  const auto names = broker_.topics.changed_since(s.held->change_count);
  if (!names) co_return Outcome::again;
  const Held next{broker_.topics.change_count(), broker_.topics.data_version()};
  std::string body = body_of(*names).to_json();
  if (body.size() > frame_bytes) co_return Outcome::again;
  const std::string base = s.held->version.to_json();
  proto::RegisterBrokerRequestHeader h = header();
  h.difference_of = base;
  Outcome outcome = co_await send(s, h, std::move(body));
  if (outcome == Outcome::done) s.held = next;
  co_return outcome;
}

Task<Registration::Outcome> Registration::tell_other(Server& s) {
  const auto names = broker_.topics.changed_since(s.held->change_count);
  if (!names) co_return Outcome::again;
  if (names->empty()) {
    Outcome outcome = co_await show_life(s);
    co_return outcome;
  }
  const Held next{broker_.topics.change_count(), broker_.topics.data_version()};
  proto::RegisterBrokerBody body = body_of(*names);
  body.deleted_topics.clear();
  std::string text = body.to_json();
  if (text.size() > frame_bytes) co_return Outcome::again;
  Outcome outcome = co_await send(s, header(), std::move(text));
  if (outcome == Outcome::done) s.held = next;
  co_return outcome;
}

// RocketMQ's broker sends everything each time. So do we where that is little; else the name server is asked
// whether it has the same data version, which is a sign of life to it, too.
Task<Registration::Outcome> Registration::show_life(Server& s) {
  size_t bytes = 0;
  for (const auto& [name, topic] : broker_.topics.all()) bytes += bytes_of(topic);
  if (bytes <= sent_always_bytes || ++s.beats >= beats_max) co_return Outcome::again;
  std::string body = broker_.topics.data_version().to_json();
  auto answer = co_await s.client.call<proto::QueryDataVersion>(version_query(), std::move(body), deadline());
  if (!answer) {
    note(s, false, to_string(answer.error()));
    co_return Outcome::failed;
  }
  const proto::RemotingCommand& a = (*answer)->command;
  const auto response = proto::QueryDataVersion::decode_response(a);
  const bool same = a.response_code() == ResponseCode::SUCCESS && response && !response->changed;
  co_return same ? Outcome::done : Outcome::again;
}

void Registration::note(Server& s, bool reached, std::string_view reason) {
  s.refused = false;
  if (!reached) {
    s.held.reset();
    s.wake.set();
  }
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
  if (!s.client.is_open()) co_return;
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
  for (auto& s : servers_) s->wake.set();
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

#include "daemon/namesrv/name_server.h"

#include <algorithm>

#include "base/log.h"
#include "base/memory_limit.h"
#include "daemon/remoting_client.h"
#include "proto/headers_push.h"

namespace rmq::namesrv {

namespace {

// For requests and answers of all connections together. Route tables are small beside it: a broker's 70,000
// topics come in a frame of 8 MB, and go as a list of 3 MB.
uint64_t net_memory_bytes() {
  constexpr uint64_t least = 128 << 20, most = 1 << 30;
  const uint64_t usable = usable_memory_bytes();
  return usable == 0 ? most : std::clamp(usable / 4, least, most);
}

}  // namespace

NameServer::NameServer(NamesrvConfig config, Disk& disk, Net& net, ConfigSource source)
    : config_(std::move(config)),
      source_(std::move(source)),
      keeper_(disk, source_.file, own_config_path(config_)),
      net_(net),
      kv_(disk, config_.kvConfigPath),
      start_ns_(Loop::current().now_ns()) {
  net_memory.set_limit(net_memory_bytes());
  config_took_effect();
}

void NameServer::config_took_effect() {
  routes_.set_options({.support_acting_master = config_.supportActingMaster,
                       .delete_missing_topics = config_.deleteTopicWithBrokerRegistration});
}

Task<Result<void>> NameServer::load() {
  return kv_.load();
}

void NameServer::start(Event& stop, Scope& scope) {
  scope_ = &scope;
  scope.spawn(scan(stop));
}

Task<void> NameServer::scan(Event& stop) {
  for (;;) {
    bool stopped = co_await stop.wait_for(config_.scanNotActiveBrokerInterval * ns_per_ms);
    if (stopped) break;
    std::vector<RouteTable::Gone> gone = routes_.expire(Loop::current().now_ns());
    for (const auto& g : gone)
      if (auto c = channels_.find(g.channel); c != channels_.end()) c->second->close();
    brokers_left(gone, "silent for too long");
  }
  scope_ = nullptr;
}

void NameServer::closed(const std::shared_ptr<Connection>& c) {
  auto it = channels_.find(reinterpret_cast<Channel>(c.get()));
  if (it == channels_.end()) return;
  const Channel channel = it->first;
  channels_.erase(it);
  brokers_left(routes_.channel_closed(channel), "connection closed");
}

void NameServer::brokers_left(const std::vector<RouteTable::Gone>& gone, const char* why) {
  for (const auto& g : gone) {
    log(LogLevel::notice, ids::broker_expired, "broker removed",
        {{"CLUSTER", g.cluster}, {"BROKER", g.broker_name}, {"ADDRESS", g.broker_addr}, {"REASON", why}});
    if (g.min_id_changed && g.enable_acting_master) tell_min_id(g.cluster, g.broker_name, g.broker_addr, {});
  }
}

// All members are told that one left; of a new smallest id everybody else.
void NameServer::tell_min_id(std::string_view cluster, std::string_view broker_name, std::string offline_addr,
                             std::string ha_addr) {
  if (!config_.notifyMinBrokerIdChanged || scope_ == nullptr) return;
  const auto addrs = routes_.member_group(cluster, broker_name).broker_addrs;
  if (addrs.empty()) return;
  const bool to_all = !offline_addr.empty() || addrs.size() == 1;
  const auto& [min_id, min_addr] = *addrs.begin();
  for (const auto& [id, addr] : addrs)
    if (to_all || id != min_id) scope_->spawn(tell_min_id_to(addr, min_id, min_addr, offline_addr, ha_addr));
}

Task<void> NameServer::tell_min_id_to(std::string to, int64_t min_id, std::string min_addr,
                                      std::string offline_addr, std::string ha_addr) {
  RemotingClient client(net_, to);
  proto::NotifyMinBrokerIdChange::Request header;
  header.min_broker_id = min_id;
  header.min_broker_addr = min_addr;
  if (!offline_addr.empty()) header.offline_broker_addr = offline_addr;
  if (!ha_addr.empty()) header.ha_broker_addr = ha_addr;
  const int64_t deadline_ns = Loop::current().now_ns() + 3 * ns_per_s;
  auto answer = co_await client.call<proto::NotifyMinBrokerIdChange>(header, {}, deadline_ns);
  if (!answer)
    log(LogLevel::debug, "broker was not told of the new smallest id",
        {{"ADDRESS", to}, {"REASON", to_string(answer.error())}});
  co_await client.stop();
}

}  // namespace rmq::namesrv

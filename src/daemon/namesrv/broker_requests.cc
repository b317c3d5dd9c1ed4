// Requests of brokers, and about them.
#include "base/crc.h"
#include "base/log.h"
#include "daemon/namesrv/name_server.h"

namespace rmq::namesrv {

using proto::ResponseCode;

namespace {

constexpr int64_t timeout_default_ms = 120'000;
constexpr int64_t timeout_max_ms = 86'400'000;
using Extent = RouteTable::Extent;

// Of everything that a registration says. Never 0.
uint64_t fingerprint_of(Request& r, const proto::RegisterBroker::Request& h) {
  uint64_t f = 14'695'981'039'346'656'037ULL;
  auto mix = [&](uint64_t v) { f = (f ^ v) * 1'099'511'628'211ULL + (f >> 32); };
  auto mix_text = [&](std::string_view s) { mix(std::hash<std::string_view>{}(s)); };
  mix_text(as_text(r.body()));
  mix_text(h.broker_name);
  mix_text(h.ha_server_addr);
  mix(static_cast<uint64_t>(h.broker_id));
  mix(static_cast<uint64_t>(h.heartbeat_timeout_millis.value_or(0)));
  mix(h.enable_acting_master ? 1 + *h.enable_acting_master : 0);
  mix_text(h.zone_name.value_or(std::string_view()));
  mix(h.zone_name.has_value());
  mix(h.compressed);
  mix(static_cast<uint64_t>(r.command.version));
  return f == 0 ? 1 : f;
}

RouteTable::Registration registration_of(const proto::RegisterBroker::Request& h, Channel channel) {
  RouteTable::Registration out;
  out.cluster = h.cluster_name;
  out.broker_name = h.broker_name;
  out.broker_addr = h.broker_addr;
  out.ha_server_addr = h.ha_server_addr;
  out.broker_id = h.broker_id;
  int64_t timeout_ms = h.heartbeat_timeout_millis.value_or(timeout_default_ms);
  out.timeout_ns = std::clamp<int64_t>(timeout_ms, 1, timeout_max_ms) * ns_per_ms;
  out.enable_acting_master = h.enable_acting_master;
  out.zone_name = h.zone_name;
  out.channel = channel;
  return out;
}

// False: the header makes no sense.
bool take_extent(const proto::RegisterBroker::Request& h, RouteTable::Registration& out) {
  if (h.difference_of) {
    auto base = proto::DataVersion::parse(*h.difference_of);
    if (!base || h.part || h.parts) return false;
    out.extent = Extent::difference;
    out.base = *base;
    return true;
  }
  if (!h.part && !h.parts) return true;
  const int32_t part = h.part.value_or(0), parts = h.parts.value_or(0);
  if (part < 1 || part > parts) return false;
  if (parts == 1) return true;
  out.extent = part == 1 ? Extent::first_part : part == parts ? Extent::last_part : Extent::next_part;
  return true;
}

}  // namespace

void NameServer::register_broker(Request& r, proto::RegisterBroker::Request h) {
  if (h.body_crc32 != 0 && static_cast<uint32_t>(h.body_crc32 & 0x7fffffff) != body_crc(r.body()))
    return r.reply(ResponseCode::SYSTEM_ERROR, "crc32 not match");
  if (h.broker_name.empty() || h.broker_addr.empty() || h.cluster_name.empty())
    return r.reply(ResponseCode::SYSTEM_ERROR, "register broker failed");
  const Channel channel = reinterpret_cast<Channel>(&r.connection());
  const int64_t now_ns = Loop::current().now_ns();
  RouteTable::Registration registration = registration_of(h, channel);
  if (!take_extent(h, registration))
    return r.reply(ResponseCode::SYSTEM_ERROR, "register broker failed, it is no part and no difference");
  const bool is_whole = registration.extent == Extent::whole;
  const uint64_t fingerprint = is_whole ? fingerprint_of(r, h) : 0;
  if (is_whole)
    if (auto same = routes_.refresh_if_same(registration, fingerprint, now_ns))
      return answer_registration(r, *same);

  auto body = proto::RegisterBrokerBody::parse_any(as_text(r.body()), h.compressed, r.command.version);
  if (!body)
    return r.reply(ResponseCode::SYSTEM_ERROR,
                   "register broker failed, the body cannot be read: " + to_string(body.error()));
  auto done = routes_.register_broker(registration, *body, now_ns);
  if (done.outcome == RouteTable::Registered::Outcome::done) {
    routes_.set_fingerprint(h.cluster_name, h.broker_addr, fingerprint);
    channels_.try_emplace(channel, r.connection().shared_from_this());
    if (done.is_new)
      log(LogLevel::notice, ids::broker_registered, "broker registered",
          {{"CLUSTER", h.cluster_name},
           {"BROKER", h.broker_name},
           {"ADDRESS", h.broker_addr},
           {"CLIENT", r.connection().peer_text()}});
  }
  answer_registration(r, done);
  if (done.min_id_changed) tell_min_id(h.cluster_name, h.broker_name, {}, std::string(h.ha_server_addr));
}

void NameServer::answer_registration(Request& r, const RouteTable::Registered& done) {
  using Outcome = RouteTable::Registered::Outcome;
  if (done.outcome == Outcome::refused) return r.reply(ResponseCode::SYSTEM_ERROR, "register broker failed");
  proto::RegisterBroker::Response header;
  if (done.outcome == Outcome::incomplete) {
    header.wants_whole = true;
    return r.answer<proto::RegisterBroker>(ResponseCode::SYSTEM_ERROR, header,
                                           "register broker failed, what it builds upon is not here");
  }
  if (!done.master_addr.empty()) {
    header.master_addr = done.master_addr;
    header.ha_server_addr = done.ha_server_addr;
  }
  const KvConfig::Table* orders =
      config_.returnOrderTopicConfigToBroker ? kv_.find(proto::names::order_topic_namespace) : nullptr;
  if (orders == nullptr) return r.answer<proto::RegisterBroker>(header);
  r.answer<proto::RegisterBroker>(header, proto::KVTable{*orders}.to_json());
}

void NameServer::unregister_broker(Request& r, proto::UnregisterBroker::Request h) {
  auto gone = routes_.unregister_broker(h.cluster_name, h.broker_name, h.broker_addr);
  r.reply(ResponseCode::SUCCESS);
  if (gone) brokers_left({std::move(*gone)}, "unregistered");
}

void NameServer::broker_heartbeat(Request& r, proto::BrokerHeartbeat::Request h) {
  routes_.heartbeat(h.cluster_name, h.broker_addr, Loop::current().now_ns());
  r.reply(ResponseCode::SUCCESS);
}

void NameServer::query_data_version(Request& r, proto::QueryDataVersion::Request h) {
  auto asked = proto::DataVersion::parse(as_text(r.body()));
  if (!asked) return r.reply(ResponseCode::SYSTEM_ERROR, "the data version cannot be read");
  const proto::DataVersion* held = routes_.data_version(h.cluster_name, h.broker_addr);
  proto::QueryDataVersion::Response header;
  header.changed = held == nullptr || !(*held == *asked);
  if (h.offers_differences.value_or(false)) header.takes_differences = true;
  routes_.heartbeat(h.cluster_name, h.broker_addr, Loop::current().now_ns());
  r.answer<proto::QueryDataVersion>(header, held == nullptr ? std::string() : held->to_json());
}

void NameServer::wipe_write_perm(Request& r, proto::WipeWritePermOfBroker::Request h) {
  int32_t count = routes_.wipe_write_perm(h.broker_name);
  log(LogLevel::notice, ids::config_changed, "write permission of a broker wiped",
      {{"BROKER", h.broker_name}, {"CLIENT", r.connection().peer_text()}});
  r.answer<proto::WipeWritePermOfBroker>({.wipe_topic_count = count});
}

void NameServer::add_write_perm(Request& r, proto::AddWritePermOfBroker::Request h) {
  int32_t count = routes_.add_write_perm(h.broker_name);
  log(LogLevel::notice, ids::config_changed, "write permission of a broker added",
      {{"BROKER", h.broker_name}, {"CLIENT", r.connection().peer_text()}});
  r.answer<proto::AddWritePermOfBroker>({.add_topic_count = count});
}

void NameServer::get_broker_member_group(Request& r, proto::GetBrokerMemberGroup::Request h) {
  r.reply(ResponseCode::SUCCESS, {}, routes_.member_group(h.cluster_name, h.broker_name).to_response_json());
}

void NameServer::get_broker_cluster_info(Request& r, proto::GetBrokerClusterInfo::Request) {
  r.reply(ResponseCode::SUCCESS, {}, routes_.cluster_info().to_json());
}

}  // namespace rmq::namesrv

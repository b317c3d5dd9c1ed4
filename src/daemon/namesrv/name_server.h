// The name server: which brokers there are, which topics they have, and the KV config. It keeps its routes
// in memory, from what brokers register; name servers never talk to each other. All on one loop. A request
// that changes only memory is served without a suspension, so requests take effect in the order in which they
// came, over all connections.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/config.h"
#include "daemon/config_keeper.h"
#include "daemon/connection.h"
#include "daemon/namesrv/config_source.h"
#include "daemon/namesrv/kv_config.h"
#include "daemon/namesrv/route_table.h"
#include "proto/headers_namesrv.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq::namesrv {

class NameServer : public Service {
 public:
  // `disk` holds the KV config at config.kvConfigPath. `net` is for notifyMinBrokerIdChanged only: brokers
  // are told at their own address. Both outlive the name server. `source` is where `config` came from, for
  // changes at run time.
  NameServer(NamesrvConfig config, Disk& disk, Net& net, ConfigSource source);
  NameServer(NamesrvConfig config, Disk& disk, Net& net)
      : NameServer(config, disk, net, ConfigSource{config, {}, {}}) {}

  // Reads the KV config; then the name server can serve. Errc::corrupt: the file makes no sense.
  Task<Result<void>> load();
  // Looks for silent brokers until `stop`; what runs belongs to `scope`, which must be joined before the name
  // server dies, and after its connections are closed.
  void start(Event& stop, Scope& scope);

  Task<void> serve(Request& request) override;
  void closed(const std::shared_ptr<Connection>& c) override;
  void answered(const Request& r, proto::ResponseCode code) override;

  const NamesrvConfig& config() const { return config_; }
  // Keys that may change at run time have the values of `next` from now on.
  void take_config(const NamesrvConfig& next);
  RouteTable& routes() { return routes_; }
  const KvConfig& kv() const { return kv_; }
  // How many requests were answered, by request and response code.
  using Answers = std::map<std::pair<int32_t, int32_t>, uint64_t>;
  const Answers& answers() const { return answers_; }

  // ---- handlers, bound to request codes in routes.cc ----
  // broker_requests.cc
  void register_broker(Request& r, proto::RegisterBroker::Request h);
  void unregister_broker(Request& r, proto::UnregisterBroker::Request h);
  void broker_heartbeat(Request& r, proto::BrokerHeartbeat::Request h);
  void query_data_version(Request& r, proto::QueryDataVersion::Request h);
  void wipe_write_perm(Request& r, proto::WipeWritePermOfBroker::Request h);
  void add_write_perm(Request& r, proto::AddWritePermOfBroker::Request h);
  void get_broker_member_group(Request& r, proto::GetBrokerMemberGroup::Request h);
  void get_broker_cluster_info(Request& r, proto::GetBrokerClusterInfo::Request h);
  // topic_requests.cc
  void get_route(Request& r, proto::GetRouteinfoByTopic::Request h);
  void register_topic(Request& r, proto::RegisterTopicInNamesrv::Request h);
  void delete_topic(Request& r, proto::DeleteTopicInNamesrv::Request h);
  void get_all_topics(Request& r, proto::GetAllTopicListFromNameserver::Request h);
  void get_topics_by_cluster(Request& r, proto::GetTopicsByCluster::Request h);
  void get_system_topics(Request& r, proto::GetSystemTopicListFromNs::Request h);
  void get_unit_topics(Request& r, proto::GetUnitTopicList::Request h);
  void get_unit_sub_topics(Request& r, proto::GetHasUnitSubTopicList::Request h);
  void get_unit_sub_ununit_topics(Request& r, proto::GetHasUnitSubUnunitTopicList::Request h);
  // config_requests.cc
  Task<void> put_kv_config(Request& r, proto::PutKvConfig::Request h);
  void get_kv_config(Request& r, proto::GetKvConfig::Request h);
  Task<void> delete_kv_config(Request& r, proto::DeleteKvConfig::Request h);
  void get_kv_list(Request& r, proto::GetKvlistByNamespace::Request h);
  Task<void> update_config(Request& r, proto::UpdateNamesrvConfig::Request h);
  void get_config(Request& r, proto::GetNamesrvConfig::Request h);

 private:
  void answer_registration(Request& r, const RouteTable::Registered& done);
  void brokers_left(const std::vector<RouteTable::Gone>& gone, const char* why);
  std::string_view order_conf(std::string_view topic) const;
  void answer_topics(Request& r, std::vector<std::string> topics, bool is_enabled);
  void config_took_effect();
  Task<void> scan(Event& stop);
  void tell_min_id(std::string_view cluster, std::string_view broker_name, std::string offline_addr,
                   std::string ha_addr);
  Task<void> tell_min_id_to(std::string to, int64_t min_id, std::string min_addr, std::string offline_addr,
                            std::string ha_addr);

  NamesrvConfig config_;
  const ConfigSource source_;
  ConfigKeeper keeper_;
  Net& net_;
  KvConfig kv_;
  RouteTable routes_;
  std::unordered_map<Channel, std::shared_ptr<Connection>> channels_;  // that registered a broker
  Answers answers_;
  const int64_t start_ns_;
  Scope* scope_ = nullptr;
};

}  // namespace rmq::namesrv

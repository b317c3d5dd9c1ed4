// The request codes of the name server.
#include "daemon/routes.h"

#include "daemon/namesrv/name_server.h"

namespace rmq::namesrv {

namespace {
using N = NameServer;
// clang-format off
using Served = RouteList<
    Route<proto::PutKvConfig, &N::put_kv_config>,
    Route<proto::GetKvConfig, &N::get_kv_config>,
    Route<proto::DeleteKvConfig, &N::delete_kv_config>,
    Route<proto::GetKvlistByNamespace, &N::get_kv_list>,
    Route<proto::RegisterBroker, &N::register_broker>,
    Route<proto::UnregisterBroker, &N::unregister_broker>,
    Route<proto::GetRouteinfoByTopic, &N::get_route>,
    Route<proto::GetBrokerClusterInfo, &N::get_broker_cluster_info>,
    Route<proto::WipeWritePermOfBroker, &N::wipe_write_perm>,
    Route<proto::AddWritePermOfBroker, &N::add_write_perm>,
    Route<proto::GetAllTopicListFromNameserver, &N::get_all_topics>,
    Route<proto::DeleteTopicInNamesrv, &N::delete_topic>,
    Route<proto::RegisterTopicInNamesrv, &N::register_topic>,
    Route<proto::GetTopicsByCluster, &N::get_topics_by_cluster>,
    Route<proto::GetSystemTopicListFromNs, &N::get_system_topics>,
    Route<proto::GetUnitTopicList, &N::get_unit_topics>,
    Route<proto::GetHasUnitSubTopicList, &N::get_unit_sub_topics>,
    Route<proto::GetHasUnitSubUnunitTopicList, &N::get_unit_sub_ununit_topics>,
    Route<proto::UpdateNamesrvConfig, &N::update_config>,
    Route<proto::GetNamesrvConfig, &N::get_config>,
    Route<proto::QueryDataVersion, &N::query_data_version>,
    Route<proto::GetBrokerMemberGroup, &N::get_broker_member_group>,
    Route<proto::BrokerHeartbeat, &N::broker_heartbeat>>;
// clang-format on
using Table = Routes<NameServer, Served,
                     NotServed<proto::SendCommands, proto::PullCommands, proto::OffsetCommands,
                               proto::ClientCommands, proto::TransactionCommands, proto::PushCommands,
                               proto::PopCommands, proto::HaCommands, proto::AdminCommands>>;
}  // namespace

Task<void> NameServer::serve(Request& request) {
  return Table::serve(*this, request);
}

}  // namespace rmq::namesrv

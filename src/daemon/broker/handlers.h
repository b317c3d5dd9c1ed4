// The handlers of the broker, by family; routes.cc binds them to request codes. Each gets a header whose
// required fields are there, and answers (unless the request is one-way). All run on the store's loop.
#pragma once

#include "daemon/broker/broker.h"
#include "proto/command_table.h"

namespace rmq::broker {

// send_message.cc
Task<void> send_message(Broker& b, Request& r, proto::SendMessageRequestHeader h);
Task<void> send_batch_message(Broker& b, Request& r, proto::SendMessageRequestHeader h);
// reply_message.cc
Task<void> send_reply_message(Broker& b, Request& r, proto::SendMessageRequestHeader h);
// end_transaction.cc
Task<void> end_transaction(Broker& b, Request& r, proto::EndTransactionRequestHeader h);
Task<void> resume_check_half_message(Broker& b, Request& r, proto::ResumeCheckHalfMessageRequestHeader h);
// send_back.cc
Task<void> consumer_send_msg_back(Broker& b, Request& r, proto::ConsumerSendMsgBackRequestHeader h);
// recall_message.cc
Task<void> recall_message(Broker& b, Request& r, proto::RecallMessageRequestHeader h);
// pull_message.cc
Task<void> pull_message(Broker& b, Request& r, proto::PullMessageRequestHeader h);
Task<void> lite_pull_message(Broker& b, Request& r, proto::PullMessageRequestHeader h);
Task<void> view_message_by_id(Broker& b, Request& r, proto::ViewMessageRequestHeader h);
// pop/pop_message.cc
Task<void> pop_message(Broker& b, Request& r, proto::PopMessageRequestHeader h);
// pop/peek_message.cc
Task<void> peek_message(Broker& b, Request& r, proto::PeekMessageRequestHeader h);
// pop/ack_message.cc
Task<void> ack_message(Broker& b, Request& r, proto::AckMessageRequestHeader h);
Task<void> batch_ack_message(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> change_message_invisibletime(Broker& b, Request& r, proto::ChangeInvisibleTimeRequestHeader h);
// pop/notification.cc
Task<void> notification(Broker& b, Request& r, proto::NotificationRequestHeader h);
void polling_info(Broker& b, Request& r, proto::PollingInfoRequestHeader h);
void pop_rollback(Broker& b, Request& r, proto::EmptyHeader h);
// pop/assignment.cc
Task<void> query_assignment(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> set_message_request_mode(Broker& b, Request& r, proto::EmptyHeader h);
void get_all_message_request_mode(Broker& b, Request& r, proto::EmptyHeader h);
// query_message.cc
Task<void> query_message(Broker& b, Request& r, proto::QueryMessageRequestHeader h);
// offsets.cc
Task<void> query_consumer_offset(Broker& b, Request& r, proto::QueryConsumerOffsetRequestHeader h);
Task<void> update_consumer_offset(Broker& b, Request& r, proto::UpdateConsumerOffsetRequestHeader h);
void get_max_offset(Broker& b, Request& r, proto::GetMaxOffsetRequestHeader h);
void get_min_offset(Broker& b, Request& r, proto::GetMinOffsetRequestHeader h);
Task<void> search_offset_by_timestamp(Broker& b, Request& r, proto::SearchOffsetRequestHeader h);
Task<void> get_earliest_msg_storetime(Broker& b, Request& r, proto::GetEarliestMsgStoretimeRequestHeader h);
void get_all_consumer_offset(Broker& b, Request& r, proto::EmptyHeader h);
void get_all_delay_offset(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> clone_group_offset(Broker& b, Request& r, proto::CloneGroupOffsetRequestHeader h);
Task<void> reset_offset(Broker& b, Request& r, proto::ResetOffsetRequestHeader h);
void query_correction_offset(Broker& b, Request& r, proto::QueryCorrectionOffsetRequestHeader h);
// clients.cc
Task<void> heart_beat(Broker& b, Request& r, proto::EmptyHeader h);
void unregister_client(Broker& b, Request& r, proto::UnregisterClientRequestHeader h);
void check_client_config(Broker& b, Request& r, proto::EmptyHeader h);
void get_consumer_list_by_group(Broker& b, Request& r, proto::GetConsumerListByGroupRequestHeader h);
Task<void> lock_batch_mq(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> unlock_batch_mq(Broker& b, Request& r, proto::EmptyHeader h);
void get_consumer_connection_list(Broker& b, Request& r, proto::GetConsumerConnectionListRequestHeader h);
void get_producer_connection_list(Broker& b, Request& r, proto::GetProducerConnectionListRequestHeader h);
void get_all_producer_info(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> get_consumer_running_info(Broker& b, Request& r, proto::GetConsumerRunningInfoRequestHeader h);
Task<void> get_consumer_status(Broker& b, Request& r, proto::GetConsumerStatusRequestHeader h);
Task<void> consume_message_directly(Broker& b, Request& r, proto::ConsumeMessageDirectlyRequestHeader h);
// queues_admin.cc
Task<void> query_consume_queue(Broker& b, Request& r, proto::QueryConsumeQueueRequestHeader h);
Task<void> query_consume_time_span(Broker& b, Request& r, proto::QueryConsumeTimeSpanRequestHeader h);
// topics_admin.cc
Task<void> update_and_create_topic(Broker& b, Request& r, proto::CreateTopicRequestHeader h);
Task<void> update_and_create_topic_list(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> delete_topic(Broker& b, Request& r, proto::DeleteTopicRequestHeader h);
void get_all_topic_config(Broker& b, Request& r, proto::GetAllTopicConfigRequestHeader h);
void get_topic_config(Broker& b, Request& r, proto::GetTopicConfigRequestHeader h);
Task<void> get_topic_stats_info(Broker& b, Request& r, proto::GetTopicStatsInfoRequestHeader h);
void get_system_topic_list(Broker& b, Request& r, proto::EmptyHeader h);
// groups_admin.cc
Task<void> update_and_create_group(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> update_and_create_group_list(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> update_and_get_group_forbidden(Broker& b, Request& r, proto::UpdateGroupForbiddenRequestHeader h);
Task<void> delete_group(Broker& b, Request& r, proto::DeleteSubscriptionGroupRequestHeader h);
void get_all_group_config(Broker& b, Request& r, proto::GetAllSubscriptionGroupRequestHeader h);
void get_group_config(Broker& b, Request& r, proto::GetSubscriptionGroupConfigRequestHeader h);
Task<void> get_consume_stats(Broker& b, Request& r, proto::GetConsumeStatsRequestHeader h);
Task<void> get_broker_consume_stats(Broker& b, Request& r, proto::GetBrokerConsumeStatsRequestHeader h);
void query_topic_consume_by_who(Broker& b, Request& r, proto::QueryTopicConsumeByWhoRequestHeader h);
void query_topics_by_consumer(Broker& b, Request& r, proto::QueryTopicsByConsumerRequestHeader h);
void query_subscription_by_consumer(Broker& b, Request& r, proto::QuerySubscriptionByConsumerRequestHeader h);
// disk_admin.cc
void delete_expired_commitlog(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> clean_expired_consumequeue(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> clean_unused_topic(Broker& b, Request& r, proto::EmptyHeader h);
// timer_metrics.cc
void get_timer_check_point(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> get_timer_metrics(Broker& b, Request& r, proto::EmptyHeader h);
// broker_admin.cc
Task<void> get_broker_runtime_info(Broker& b, Request& r, proto::EmptyHeader h);
void get_broker_ha_status(Broker& b, Request& r, proto::EmptyHeader h);
void view_broker_stats_data(Broker& b, Request& r, proto::ViewBrokerStatsDataRequestHeader h);
// config_admin.cc
void get_broker_config(Broker& b, Request& r, proto::EmptyHeader h);
Task<void> update_broker_config(Broker& b, Request& r, proto::EmptyHeader h);

// Pieces that several families use.
// What RECALL_MESSAGE takes for the message of that unique key.
std::string make_recall_handle(std::string_view topic, std::string_view broker_name, int64_t deliver_ms,
                               std::string_view unique_key);
// The message of that key that is due then does not come any more, or never was, when this is PUT_OK;
// WHEEL_TIMER_MSG_ILLEGAL: it is too late. The texts must stay until it resolves.
Task<store::PutMessageResult> recall(Broker& b, std::string_view topic, std::string_view unique_key,
                                     int64_t deliver_ms, Address born_host);
// TOPIC_NOT_EXIST with RocketMQ's remark.
void refuse_unknown_topic(Request& r, std::string_view topic);
void refuse_unkept_offsets(Request& r, const Error& e);
void refuse_unknown_group(Request& r, std::string_view group);

}  // namespace rmq::broker

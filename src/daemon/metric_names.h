// Every metric by name: type, labels, and what it says. From these rows come the lines # HELP and # TYPE of
// the exporter's page and the manual page rmqd-metrics.7. Names that begin with rocketmq_ are those of Apache
// RocketMQ 5's own Prometheus exporter, with its labels and buckets, so that its dashboards work; the others
// are ours, and keep to Prometheus' base units.
#pragma once

#include <cstdint>
#include <string_view>

namespace rmq {

enum class MetricType : uint8_t { counter, gauge, histogram };

struct MetricFamily {
  std::string_view name;
  MetricType type;
  std::string_view labels;  // its own, separated by blanks
  std::string_view help;
};

// clang-format off
#define RMQ_PROCESS_METRICS(X)                                                                               \
  X(build_info, "rmqd_build_info", gauge, "version", "1; the version is the label.")                         \
  X(ready, "rmqd_ready", gauge, "", "1: it serves; 0: what /health/ready says.")                             \
  X(connections, "rmqd_connections", gauge, "port", "Open connections of clients, brokers and tools.")       \
  X(closed_connections, "rmqd_closed_connections_total", counter, "reason",                                  \
    "Connections that were closed or not taken because of: malformed_frame, idle, no_memory, too_many, "     \
    "accept_failed.")                                                                                        \
  X(ring_enters, "rmqd_ring_enters_total", counter, "", "System calls io_uring_enter.")                      \
  X(ring_in_flight, "rmqd_ring_operations_in_flight", gauge, "",                                             \
    "Operations that the kernel holds, waiting receives and accepts included.")                              \
  X(loop_turns, "rmqd_loop_turns_total", counter, "", "Turns of the event loop.")                            \
  X(receive_buffers, "rmqd_receive_buffers", gauge, "", "Receive buffers given to the kernel, in all.")      \
  X(receive_buffers_free, "rmqd_receive_buffers_free", gauge, "", "Receive buffers that hold nothing.")      \
  X(receive_shortages, "rmqd_receive_buffer_shortages_total", counter, "",                                   \
    "Receives that found no free buffer and had to wait.")                                                   \
  X(log_lines_lost, "rmqd_log_lines_lost_total", counter, "reason",                                          \
    "Lines that did not go to the journal: rate (more than 20 of one event in 10 seconds), queue (the "      \
    "journal did not take them in time).")                                                                   \
  X(http_requests, "rmqd_http_requests_total", counter, "code", "Answers of this exporter by HTTP status.")  \
  X(http_turned_away, "rmqd_http_turned_away_total", counter, "",                                            \
    "Connections to this exporter beyond its limit.")                                                        \
  X(series_left_out, "rmqd_series_left_out", gauge, "metric",                                                \
    "Series of that metric that are not on this page: more than metricsOtelCardinalityLimit, or not "        \
    "known in time.")                                                                                        \
  X(scrape_duration, "rmqd_scrape_duration_seconds", gauge, "", "How long the page before this one took.")   \
  X(process_start, "process_start_time_seconds", gauge, "", "Start of the process since the epoch.")         \
  X(process_cpu, "process_cpu_seconds_total", counter, "", "Processor time, user and system.")               \
  X(process_resident, "process_resident_memory_bytes", gauge, "", "Resident memory.")                        \
  X(process_virtual, "process_virtual_memory_bytes", gauge, "", "Virtual memory.")                           \
  X(process_fds, "process_open_fds", gauge, "", "Open file descriptors.")                                    \
  X(process_max_fds, "process_max_fds", gauge, "", "Limit of open file descriptors.")

#define RMQ_NAMESRV_METRICS(X)                                                                               \
  X(namesrv_brokers, "rmqd_namesrv_brokers", gauge, "", "Brokers that are registered.")                      \
  X(namesrv_topics, "rmqd_namesrv_topics", gauge, "", "Topics that have a route.")                           \
  X(namesrv_requests, "rmqd_namesrv_requests_total", counter, "request_code response_code",                  \
    "Requests that were answered.")

#define RMQ_BROKER_METRICS(X)                                                                                \
  X(processor_watermark, "rocketmq_processor_watermark", gauge, "processor",                                 \
    "Requests at work, by the family of their code; waiting pulls are not among them.")                      \
  X(broker_permission, "rocketmq_broker_permission", gauge, "", "brokerPermission: 4 read, 2 write.")        \
  X(topic_number, "rocketmq_topic_number", gauge, "", "Topics, those of the system included.")               \
  X(group_number, "rocketmq_consumer_group_number", gauge, "", "Consumer groups.")                           \
  X(messages_in, "rocketmq_messages_in_total", counter, "topic message_type is_system",                      \
    "Messages that producers sent and that were stored; message_type: normal, fifo, delay, transaction.")    \
  X(throughput_in, "rocketmq_throughput_in_total", counter, "topic message_type is_system",                  \
    "Bytes of their records.")                                                                               \
  X(message_size, "rocketmq_message_size", histogram, "topic message_type is_system",                        \
    "Bytes of a record.")                                                                                    \
  X(messages_out, "rocketmq_messages_out_total", counter, "topic consumer_group is_system is_retry",         \
    "Messages that consumers were given.")                                                                   \
  X(throughput_out, "rocketmq_throughput_out_total", counter, "topic consumer_group is_system is_retry",     \
    "Bytes of their records.")                                                                               \
  X(topic_create, "rocketmq_topic_create_execution_time_milliseconds", histogram,                            \
    "invocation_status is_system", "Time to create or change a topic.")                                      \
  X(group_create, "rocketmq_consumer_group_create_execution_time_milliseconds", histogram,                   \
    "invocation_status", "Time to create or change a consumer group.")                                       \
  X(producer_connections, "rocketmq_producer_connections", gauge, "language version protocol_type",          \
    "Producers, by group and connection.")                                                                   \
  X(consumer_connections, "rocketmq_consumer_connections", gauge,                                            \
    "consumer_group language version consume_mode protocol_type is_system", "Consumers, by connection.")     \
  X(lag_messages, "rocketmq_consumer_lag_messages", gauge, "consumer_group topic is_retry is_system",        \
    "Messages of the topic that the group has not acknowledged. Of a group without members: of topics that " \
    "it has an offset in, where there are such messages.")                                                   \
  X(lag_latency, "rocketmq_consumer_lag_latency_milliseconds", gauge,                                        \
    "consumer_group topic is_retry is_system", "Age of the oldest of them; 0: there is none.")               \
  X(inflight_messages, "rocketmq_consumer_inflight_messages", gauge,                                         \
    "consumer_group topic is_retry is_system", "Messages that the group was given and has not acknowledged.")\
  X(queueing_latency, "rocketmq_consumer_queueing_latency_milliseconds", gauge,                              \
    "consumer_group topic is_retry is_system", "Age of the oldest message that it was not given yet.")       \
  X(ready_messages, "rocketmq_consumer_ready_messages", gauge, "consumer_group topic is_retry is_system",    \
    "Messages that it was not given yet.")                                                                   \
  X(offline_lags_left_out, "rmqd_offline_lags_left_out", gauge, "",                                          \
    "Pairs of topic and group without members that lag and are not shown: more than 5000.")                  \
  X(send_to_dlq, "rocketmq_send_to_dlq_messages_total", counter, "consumer_group topic is_system",           \
    "Messages of the topic that became dead letters of the group.")                                          \
  X(half_messages, "rocketmq_half_messages", gauge, "topic", "Half messages whose transaction is open.")     \
  X(commit_messages, "rocketmq_commit_messages_total", counter, "topic", "Transactions that were committed.")\
  X(rollback_messages, "rocketmq_rollback_messages_total", counter, "topic",                                 \
    "Transactions that were rolled back.")                                                                   \
  X(finish_latency, "rocketmq_finish_message_latency_milliseconds", histogram, "topic",                      \
    "Time from a half message's birth to its commit; in seconds, although RocketMQ's name says otherwise.")  \
  X(rpc_latency, "rocketmq_rpc_latency_milliseconds", histogram,                                             \
    "request_code response_code is_long_polling result protocol_type",                                       \
    "Time from a request's arrival to its answer.")                                                          \
  X(storage_size, "rocketmq_storage_size_bytes", gauge, "storage_type storage_medium",                       \
    "Space in use on the store's file system.")                                                              \
  X(flush_behind, "rocketmq_storage_flush_behind_bytes", gauge, "storage_type storage_medium",               \
    "Bytes of the log that are not on stable storage yet.")                                                  \
  X(dispatch_behind, "rocketmq_storage_dispatch_behind_bytes", gauge, "storage_type storage_medium",         \
    "Bytes of the log that consumers cannot see yet.")                                                       \
  X(reserve_time, "rocketmq_storage_message_reserve_time_milliseconds", gauge,                               \
    "storage_type storage_medium", "Age of the oldest message.")                                             \
  X(timer_enqueue_lag, "rocketmq_timer_enqueue_lag", gauge, "storage_type storage_medium",                   \
    "Messages of any delay that a start has still to read.")                                                 \
  X(timer_enqueue_latency, "rocketmq_timer_enqueue_latency_milliseconds", gauge,                             \
    "storage_type storage_medium", "0: messages of any delay are pending as soon as they are stored.")       \
  X(timer_dequeue_lag, "rocketmq_timer_dequeue_lag", gauge, "storage_type storage_medium",                   \
    "Messages of any delay that are due and not delivered yet.")                                             \
  X(timer_dequeue_latency, "rocketmq_timer_dequeue_latency_milliseconds", gauge,                             \
    "storage_type storage_medium", "How late the first of them is.")                                         \
  X(timing_messages, "rocketmq_timing_messages", gauge, "storage_type storage_medium topic",                 \
    "Messages of any delay that are pending, by the topic that they are for.")                               \
  X(timer_enqueue, "rocketmq_timer_enqueue_total", counter, "storage_type storage_medium topic",             \
    "Messages of any delay that were taken.")                                                                \
  X(timer_dequeue, "rocketmq_timer_dequeue_total", counter, "storage_type storage_medium topic",             \
    "Messages of any delay that were delivered.")                                                            \
  X(delay_latency, "rocketmq_delay_message_latency_seconds", histogram, "storage_type storage_medium topic", \
    "The delays that messages of any delay ask for.")                                                        \
  X(pop_offset_buffer, "rocketmq_pop_offset_buffer_size", gauge, "", "Queues that groups pop from.")         \
  X(pop_checkpoint_buffer, "rocketmq_pop_checkpoint_buffer_size", gauge, "",                                 \
    "Checkpoints: pops that are not acknowledged as a whole.")                                               \
  X(pop_revive_lag, "rocketmq_pop_revive_lag_milliseconds", gauge, "queue_id",                               \
    "Checkpoints whose time is up and whose messages are not in the retry topic yet: a number, although "    \
    "RocketMQ's name says otherwise.")                                                                       \
  X(pop_revive_latency, "rocketmq_pop_revive_latency_milliseconds", gauge, "queue_id",                       \
    "How long the first of them has been waiting.")                                                          \
  X(pop_revive_retry, "rocketmq_pop_revive_retry_messages_total", counter,                                   \
    "consumer_group topic put_status", "Messages that were popped, not acknowledged, and put to the retry "  \
    "topic.")                                                                                                \
  X(flush_latency, "rmqd_flush_latency_seconds", histogram, "",                                              \
    "Time of one write of the log: to stable storage with SYNC_FLUSH, to the kernel with ASYNC_FLUSH.")      \
  X(batch_messages, "rmqd_commit_batch_messages", histogram, "", "Messages in one write of the log.")        \
  X(batch_bytes, "rmqd_commit_batch_bytes", histogram, "", "Bytes of messages in one write of the log.")     \
  X(memory_limit, "rmqd_memory_limit_bytes", gauge, "part",                                                  \
    "What a part of the memory may take: process (memoryLimit), log, requests, answers, deduplication.")     \
  X(memory_used, "rmqd_memory_used_bytes", gauge, "part", "What it takes: log, requests, answers, timers.")  \
  X(log_syncs, "rmqd_log_syncs_total", counter, "", "Syncs of the log besides its writes (ASYNC_FLUSH).")    \
  X(log_write_bytes, "rmqd_log_write_bytes_total", counter, "", "Bytes written to the log, whole blocks.")   \
  X(log_reads, "rmqd_log_reads_total", counter, "", "Reads of the log from the disk.")                       \
  X(log_read_bytes, "rmqd_log_read_bytes_total", counter, "", "Bytes that were read.")                       \
  X(cache_hits, "rmqd_log_cache_hits_total", counter, "",                                                    \
    "Messages for consumers that were in the log's memory.")                                                 \
  X(cache_misses, "rmqd_log_cache_misses_total", counter, "",                                                \
    "Messages for consumers that had to be read from the disk.")                                             \
  X(puts_waited, "rmqd_puts_waited_total", counter, "",                                                      \
    "Sends that had to wait for memory or for the log's next file.")                                         \
  X(log_bytes, "rmqd_log_bytes", gauge, "", "Length of the log.")                                            \
  X(store_queues, "rmqd_queues", gauge, "", "Queues that have or had messages.")                             \
  X(unwritten_units, "rmqd_unwritten_units", gauge, "",                                                      \
    "Units of ConsumeQueues that are not in their files yet.")                                               \
  X(index_behind, "rmqd_index_behind_bytes", gauge, "", "Bytes of the log that the key index lacks.")        \
  X(files_deleted, "rmqd_files_deleted_total", counter, "kind", "Old files: commitlog, consumequeue, index.")\
  X(store_failures, "rmqd_store_failures_total", counter, "what",                                            \
    "I/O errors that did not end the broker: index, delete, compaction.")                                    \
  X(compaction_copied, "rmqd_compaction_copied_messages_total", counter, "",                                 \
    "Messages of compacted topics that were copied to their logs.")                                          \
  X(compaction_removed, "rmqd_compaction_removed_messages_total", counter, "",                               \
    "Messages that a compaction left out: there is a later one of their key.")                               \
  X(disk_total, "rmqd_disk_bytes", gauge, "directory", "Size of the file system.")                           \
  X(disk_free, "rmqd_disk_free_bytes", gauge, "directory", "Free for rmqd.")                                 \
  X(disk_reserved, "rmqd_disk_reserved_bytes", gauge, "", "diskReservedBytes: with less, sends are refused.")\
  X(takes_messages, "rmqd_takes_messages", gauge, "", "1; 0: sends are refused, the journal says why.")      \
  X(refused, "rmqd_refused_requests_total", counter, "reason",                                               \
    "Requests that were refused, by RocketMQ's response code.")                                              \
  X(waiting_pulls, "rmqd_waiting_pulls", gauge, "", "Pulls that wait for messages.")                         \
  X(waiting_pops, "rmqd_waiting_pops", gauge, "", "POP requests and notifications that wait.")               \
  X(unconsumed_deleted, "rmqd_unconsumed_deleted_messages_total", counter, "consumer_group",                 \
    "Messages that were deleted or discarded before the group had consumed them.")                           \
  X(dedup_known, "rmqd_deduplication_known_messages", gauge, "", "Messages whose repetition would be known.")\
  X(dedup_repeated, "rmqd_deduplication_repeated_total", counter, "", "Sends that were repetitions.")        \
  X(dedup_forgotten, "rmqd_deduplication_forgotten_total", counter, "",                                      \
    "Messages that were forgotten before their window ended.")                                               \
  X(transaction_checks, "rmqd_transaction_checks_total", counter, "", "Questions to producers.")             \
  X(transactions_given_up, "rmqd_transactions_given_up_total", counter, "", "Transactions nobody ended.")    \
  X(timers_in_memory, "rmqd_timers_in_memory", gauge, "", "Pending messages of any delay in memory.")        \
  X(timers_recalled, "rmqd_timers_recalled_total", counter, "", "Messages of any delay that were recalled.") \
  X(name_servers, "rmqd_name_servers", gauge, "state", "Name servers: reached, unreachable.")                \
  X(recovery_duration, "rmqd_recovery_duration_seconds", gauge, "", "Time of the recovery at the start.")    \
  X(recovered_records, "rmqd_recovered_records", gauge, "", "Messages that it checked.")
// clang-format on

namespace metric {
#define X(id, name, type, labels, help) \
  inline constexpr MetricFamily id{name, MetricType::type, labels, help};
RMQ_PROCESS_METRICS(X)
RMQ_NAMESRV_METRICS(X)
RMQ_BROKER_METRICS(X)
#undef X
}  // namespace metric

}  // namespace rmq

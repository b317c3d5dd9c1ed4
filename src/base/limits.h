// Every fixed limit of the program by name. What an operator may change is a configuration key instead
// (daemon/config.cc); what the protocol or the file formats fix stands here with its source.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rmq::limits {

inline constexpr size_t frame_bytes_max = 16'777'216;   // remoting: com.rocketmq.remoting.frameMaxLength
inline constexpr size_t properties_bytes_max = 32'767;  // a signed 16-bit length in every reader
inline constexpr size_t topic_bytes_max = 127;          // Validators.TOPIC_MAX_LENGTH
inline constexpr size_t long_topic_bytes_max = 255;     // retry and dead-letter topics
inline constexpr size_t group_bytes_max = 120;          // Validators.CHARACTER_MAX_LENGTH of groups
inline constexpr int32_t queues_per_topic_max = 65'536;
inline constexpr size_t filter_expression_bytes_max = 64u << 10;
inline constexpr uint32_t filter_depth_max = 500;  // parentheses and operators within each other
inline constexpr uint32_t filter_properties_max = 128;

inline constexpr uint32_t connections_max = 20'000;
inline constexpr uint32_t requests_in_flight_per_connection = 4'096;
inline constexpr size_t unsent_bytes_per_connection = 64u << 20;  // then we stop reading from that socket
inline constexpr size_t unsent_share_min = 64u << 10;  // of one connection, however little memory is left
inline constexpr size_t held_frame_bytes_free = 64u << 10;  // of an unfinished frame, also then
inline constexpr uint32_t waiting_pulls_max = 200'000;
inline constexpr size_t pop_checkpoint_bytes = 128;    // of memory, and 4 for each message of a sparse one
inline constexpr size_t pop_checkpoints_min = 10'000;  // may be outstanding however little memory there is
inline constexpr uint32_t waiting_pops_of_group_max = 1'024;  // popPollingSize
inline constexpr size_t offline_lags_max = 5'000;  // pairs of topic and group without members that are shown
inline constexpr size_t offline_pairs_at_once = 100'000;  // and so many are looked at in one scrape
inline constexpr uint32_t http_connections_max = 32;      // of metrics and health
inline constexpr size_t http_head_bytes_max = 8u << 10;
inline constexpr uint32_t mailbox_messages_max = 65'536;
inline constexpr uint32_t log_lines_queued_max = 4'096;

inline constexpr int32_t idle_connection_seconds = 120;  // NettyServerConfig.serverChannelMaxIdleTimeSeconds

}  // namespace rmq::limits

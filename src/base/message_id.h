// Journal message ids. Each event that an operator may act on has one, with an entry in
// packaging/systemd/rmqd.catalog that tells what happened and what to do; tests/tidy holds the two together.
#pragma once

#include <cstdint>

namespace rmq {

struct MessageId {
  const char* hex;   // 32 hex digits, MESSAGE_ID= in the journal
  const char* name;  // short name, EVENT= in the journal; the rate limit counts by it
};

// clang-format off
#define RMQ_MESSAGE_IDS(X)                                                                              \
  X(broker_started,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0101", "broker-started")                        \
  X(broker_stopped,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0102", "broker-stopped")                        \
  X(namesrv_started,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0103", "namesrv-started")                       \
  X(namesrv_stopped,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0104", "namesrv-stopped")                       \
  X(start_failed,          "3a6d1f0be2e94c0f9d0a7c1a5b7e0105", "start-failed")                          \
  X(config_invalid,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0106", "config-invalid")                        \
  X(kernel_unsuitable,     "3a6d1f0be2e94c0f9d0a7c1a5b7e0107", "kernel-unsuitable")                     \
  X(store_recovered,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0201", "store-recovered")                       \
  X(store_torn_tail,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0202", "store-torn-tail")                       \
  X(store_corrupt,         "3a6d1f0be2e94c0f9d0a7c1a5b7e0203", "store-corrupt")                         \
  X(store_write_failed,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0204", "store-write-failed")                    \
  X(config_file_fallback,  "3a6d1f0be2e94c0f9d0a7c1a5b7e0205", "config-file-fallback")                  \
  X(config_file_unwritable,"3a6d1f0be2e94c0f9d0a7c1a5b7e0206", "config-file-unwritable")                \
  X(changes_replayed,      "3a6d1f0be2e94c0f9d0a7c1a5b7e0207", "changes-replayed")                      \
  X(changes_foreign,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0208", "changes-foreign")                       \
  X(store_quarantined,     "3a6d1f0be2e94c0f9d0a7c1a5b7e0209", "store-quarantined")                     \
  X(offsets_cut,           "3a6d1f0be2e94c0f9d0a7c1a5b7e0210", "offsets-cut")                           \
  X(store_index_damaged,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0211", "store-index-damaged")                   \
  X(store_index_failed,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0212", "store-index-failed")                    \
  X(store_queue_damaged,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0213", "store-queue-damaged")                   \
  X(store_file_deleted,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0221", "store-file-deleted")                    \
  X(store_queue_file_deleted, "3a6d1f0be2e94c0f9d0a7c1a5b7e0222", "store-queue-file-deleted")           \
  X(store_delete_failed,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0223", "store-delete-failed")                   \
  X(store_delete_held,     "3a6d1f0be2e94c0f9d0a7c1a5b7e0224", "store-delete-held")                     \
  X(store_disk_full,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0225", "store-disk-full")                       \
  X(store_disk_writable,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0226", "store-disk-writable")                   \
  X(store_compaction_failed, "3a6d1f0be2e94c0f9d0a7c1a5b7e0228", "store-compaction-failed")             \
  X(config_file_written,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0227", "config-file-written")                   \
  X(metrics_served,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0108", "metrics-served")                        \
  X(metrics_unavailable,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0109", "metrics-unavailable")                   \
  X(peer_malformed_frame,  "3a6d1f0be2e94c0f9d0a7c1a5b7e0301", "peer-malformed-frame")                  \
  X(peer_limit,            "3a6d1f0be2e94c0f9d0a7c1a5b7e0302", "peer-limit")                            \
  X(peer_idle,             "3a6d1f0be2e94c0f9d0a7c1a5b7e0303", "peer-idle")                             \
  X(request_refused,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0304", "request-refused")                       \
  X(namesrv_unreachable,   "3a6d1f0be2e94c0f9d0a7c1a5b7e0401", "namesrv-unreachable")                   \
  X(namesrv_registered,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0402", "namesrv-registered")                    \
  X(broker_registered,     "3a6d1f0be2e94c0f9d0a7c1a5b7e0403", "broker-registered")                     \
  X(broker_expired,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0404", "broker-expired")                        \
  X(topic_changed,         "3a6d1f0be2e94c0f9d0a7c1a5b7e0501", "topic-changed")                         \
  X(group_changed,         "3a6d1f0be2e94c0f9d0a7c1a5b7e0502", "group-changed")                         \
  X(config_changed,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0503", "config-changed")                        \
  X(config_needs_restart,  "3a6d1f0be2e94c0f9d0a7c1a5b7e0507", "config-needs-restart")                  \
  X(config_reloaded,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0508", "config-reloaded")                       \
  X(reload_refused,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0509", "reload-refused")                        \
  X(delivery_failed,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0603", "delivery-failed")                       \
  X(clock_set,             "3a6d1f0be2e94c0f9d0a7c1a5b7e0602", "clock-set")                             \
  X(dedup_full,            "3a6d1f0be2e94c0f9d0a7c1a5b7e0506", "dedup-full")                            \
  X(config_useless,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0505", "config-useless")                        \
  X(transaction_given_up,  "3a6d1f0be2e94c0f9d0a7c1a5b7e0504", "transaction-given-up")                  \
  X(clean_requested,       "3a6d1f0be2e94c0f9d0a7c1a5b7e0521", "clean-requested")                       \
  X(queue_dropped,         "3a6d1f0be2e94c0f9d0a7c1a5b7e0522", "queue-dropped")                         \
  X(messages_discarded,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0523", "messages-discarded")                    \
  X(unconsumed_deleted,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0524", "unconsumed-deleted")                    \
  X(filter_refused,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0531", "filter-refused")                        \
  X(filter_end_ignored,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0532", "filter-end-ignored")                    \
  X(filters_unreadable,    "3a6d1f0be2e94c0f9d0a7c1a5b7e0533", "filters-unreadable")                    \
  X(log_lines_lost,        "3a6d1f0be2e94c0f9d0a7c1a5b7e0601", "log-lines-lost")
// clang-format on

namespace ids {
#define X(id, hex, text) inline constexpr MessageId id{hex, text};
RMQ_MESSAGE_IDS(X)
#undef X
}  // namespace ids

}  // namespace rmq

// QUERY_MESSAGE: look-ups by key, unique key or, for clients of 5.5, tag (indexType T). The store checks each
// candidate against its record, so the answer holds no others that only share a hash, as RocketMQ's may.
#include <algorithm>

#include "daemon/broker/handlers.h"

namespace rmq::broker {

using proto::ResponseCode;

Task<void> query_message(Broker& b, Request& r, proto::QueryMessageRequestHeader h) {
  int64_t max = h.unique_key_query.value_or(false) ? b.config.defaultQueryMaxNum : h.max_num;
  max = std::min(max, b.config.maxMsgsNumBatch);
  auto kind = h.index_type == "T" ? store::KeyKind::tags : store::KeyKind::key;
  auto found = co_await b.store.query_message(h.topic, h.key, static_cast<int32_t>(max), h.begin_timestamp,
                                              h.end_timestamp, kind);
  if (!found) co_return r.reply(ResponseCode::SYSTEM_ERROR, to_string(found.error()));
  proto::QueryMessageResponseHeader header;
  header.index_last_update_timestamp = found->index_last_update_timestamp_ms;
  header.index_last_update_phyoffset = found->index_last_update_physical;
  const bool any = !found->records.empty();
  r.answer<proto::QueryMessage>(any ? ResponseCode::SUCCESS : ResponseCode::QUERY_NOT_FOUND, header,
                                any ? "" : "can not find message, maybe time range not correct",
                                std::move(found->records), found->byte_count);
}

}  // namespace rmq::broker

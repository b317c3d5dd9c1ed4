#include "proto/bodies_admin.h"

namespace rmq::proto {

std::string QueryConsumeQueueResponseBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  if (filter_data) w.member("filterData", *filter_data);
  w.member("maxQueueIndex", max_queue_index);
  w.member("minQueueIndex", min_queue_index);
  w.key("queueData");
  w.begin_array();
  for (const ConsumeQueueData& d : queue_data) {
    w.begin_object();
    w.member("eval", d.eval);
    if (!d.msg.empty()) w.member("msg", d.msg);
    w.member("physicOffset", d.physic_offset);
    w.member("physicSize", d.physic_size);
    w.member("tagsCode", d.tags_code);
    w.end_object();
  }
  w.end_array();
  if (subscription_data) {
    w.key("subscriptionData");
    subscription_data->write(w);
  }
  w.end_object();
  return w.take();
}

std::string QueryConsumeTimeSpanBody::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("consumeTimeSpanSet");
  w.begin_array();
  for (const QueueTimeSpan& s : consume_time_span_set) {
    w.begin_object();
    w.member("consumeTimeStamp", s.consume_ms);
    w.member("delayTime", s.delay_ms);
    w.member("maxTimeStamp", s.max_ms);
    w.key("messageQueue");
    w.raw(s.message_queue.to_json());
    w.member("minTimeStamp", s.min_ms);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.take();
}

std::string GroupForbidden::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.member("group", group);
  w.member("readable", readable);
  w.member("topic", topic);
  w.end_object();
  return w.take();
}

std::string HARuntimeInfo::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("haClientRuntimeInfo");
  w.begin_object();
  w.member("activated", false);
  for (const char* none : {"lastReadTimestamp", "lastWriteTimestamp", "masterFlushOffset", "maxOffset",
                           "transferredByteInSecond"})
    w.member(none, int64_t{0});
  w.end_object();
  w.key("haConnectionInfo");
  w.begin_array();
  w.end_array();
  w.member("inSyncSlaveNums", int32_t{0});
  w.member("master", true);
  w.member("masterCommitLogMaxOffset", master_commit_log_max_offset);
  w.end_object();
  return w.take();
}

}  // namespace rmq::proto

#include "proto/bodies_admin.h"

#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

Result<QueryConsumeQueueResponseBody> QueryConsumeQueueResponseBody::parse(std::string_view json) {
  return read_body<QueryConsumeQueueResponseBody>(json, [](Value v, QueryConsumeQueueResponseBody& b) {
    v["filterData"].read(b.filter_data);
    v["queueData"].each([&](Value d) {
      ConsumeQueueData& to = b.queue_data.emplace_back();
      d["physicOffset"].read(to.physic_offset);
      d["physicSize"].read(to.physic_size);
      d["tagsCode"].read(to.tags_code);
      d["eval"].read(to.eval);
      d["msg"].read(to.msg);
    });
    v["maxQueueIndex"].read(b.max_queue_index);
    v["minQueueIndex"].read(b.min_queue_index);
  });
}

Result<HARuntimeInfo> HARuntimeInfo::parse(std::string_view json) {
  return read_body<HARuntimeInfo>(json, [](Value v, HARuntimeInfo& i) {
    v["master"].read(i.master);
    v["masterCommitLogMaxOffset"].read(i.master_commit_log_max_offset);
    v["inSyncSlaveNums"].read(i.in_sync_slave_nums);
    v["haConnectionInfo"].each([&](Value c) {
      HAConnectionInfo& to = i.ha_connection_info.emplace_back();
      c["addr"].read(to.addr);
      c["slaveAckOffset"].read(to.slave_ack_offset);
      c["diff"].read(to.diff);
      c["inSync"].read(to.in_sync);
      c["transferredByteInSecond"].read(to.transferred_byte_in_second);
      c["transferFromWhere"].read(to.transfer_from_where);
    });
    Value own = v["haClientRuntimeInfo"];
    HAClientRuntimeInfo& to = i.ha_client_runtime_info;
    own["masterAddr"].read(to.master_addr);
    own["transferredByteInSecond"].read(to.transferred_byte_in_second);
    own["maxOffset"].read(to.max_offset);
    own["masterFlushOffset"].read(to.master_flush_offset);
    own["lastReadTimestamp"].read(to.last_read_timestamp_ms);
    own["lastWriteTimestamp"].read(to.last_write_timestamp_ms);
  });
}

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

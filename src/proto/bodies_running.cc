#include "proto/bodies_running.h"

#include <iterator>

#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

static void read_queue(Value v, ProcessQueueInfo& q) {
  v["commitOffset"].read(q.commit_offset);
  v["cachedMsgCount"].read(q.cached_msg_count);
  v["cachedMsgSizeInMiB"].read(q.cached_msg_size_in_mib);
  v["locked"].read(q.locked);
  v["droped"].read(q.dropped);  // RocketMQ's spelling
  v["lastPullTimestamp"].read(q.last_pull_timestamp_ms);
  v["lastConsumeTimestamp"].read(q.last_consume_timestamp_ms);
}

static void read_status(Value v, ConsumeStatus& s) {
  v["pullRT"].read(s.pull_rt);
  v["pullTPS"].read(s.pull_tps);
  v["consumeRT"].read(s.consume_rt);
  v["consumeOKTPS"].read(s.consume_ok_tps);
  v["consumeFailedTPS"].read(s.consume_failed_tps);
  v["consumeFailedMsgs"].read(s.consume_failed_msgs);
}

Result<ConsumerRunningInfo> ConsumerRunningInfo::parse(std::string_view json) {
  return read_body<ConsumerRunningInfo>(json, [](Value v, ConsumerRunningInfo& info) {
    v["properties"].members(
        [&](std::string_view key, Value p) { p.read(info.properties[std::string(key)]); });
    v["subscriptionSet"].each([&](Value s) {
      SubscriptionData& d = info.subscription_set.emplace_back();
      s["topic"].read(d.topic);
      s["subString"].read(d.sub_string);
      s["expressionType"].read(d.expression_type);
      s["subVersion"].read(d.sub_version);
    });
    v["mqTable"].members([&](std::string_view key, Value q) {
      auto queue = MessageQueue::parse(key);
      if (!queue) return v.bad();
      read_queue(q, info.mq_table[*queue]);
    });
    v["statusTable"].members(
        [&](std::string_view topic, Value s) { read_status(s, info.status_table[std::string(topic)]); });
    v["jstack"].read(info.jstack);
  });
}

// CMResult in the order of the reference: clients that are not Java's tell the place in it.
constexpr std::string_view consume_results[] = {"CR_SUCCESS", "CR_LATER",           "CR_ROLLBACK",
                                                "CR_COMMIT",  "CR_THROW_EXCEPTION", "CR_RETURN_NULL"};

Result<ConsumeMessageDirectlyResult> ConsumeMessageDirectlyResult::parse(std::string_view json) {
  return read_body<ConsumeMessageDirectlyResult>(json, [](Value v, ConsumeMessageDirectlyResult& r) {
    v["consumeResult"].read(r.consume_result);
    if (const std::string& told = r.consume_result;
        told.size() == 1 && told[0] >= '0' && told[0] < '0' + static_cast<int>(std::size(consume_results)))
      r.consume_result = consume_results[told[0] - '0'];
    v["remark"].read(r.remark);
    v["order"].read(r.order);
    v["spentTimeMills"].read(r.spent_time_ms);
  });
}

}  // namespace rmq::proto

// Consumer offsets and queue offsets (remoting.md 12.4), and what operators do with them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "daemon/broker/handlers.h"
#include "proto/bodies_client.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;
using Boundary = store::MessageStore::Boundary;

Task<void> query_consumer_offset(Broker& b, Request& r, proto::QueryConsumerOffsetRequestHeader h) {
  if (auto known = b.offsets.query(h.consumer_group, h.topic, h.queue_id)) {
    r.answer<proto::QueryConsumerOffset>({*known});
    co_return;
  }
  const int64_t end = b.store.max_offset(h.topic, h.queue_id);
  // A young queue, whose first message is still hot: the group begins at 0 whatever it asks for. It must not
  // miss what was sent while it started.
  if (h.set_zero_if_not_found.value_or(true) && b.store.min_offset(h.topic, h.queue_id) == 0) {
    auto first = co_await b.store.queue_unit(h.topic, h.queue_id, 0);
    if (first && b.store.in_memory(first->physical_offset)) {
      r.answer<proto::QueryConsumerOffset>({0});
      co_return;
    }
  }
  b.clients.keep_end(h.consumer_group, &r.connection(), h.topic, h.queue_id, end);
  r.reply(ResponseCode::QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first");
}

Task<void> update_consumer_offset(Broker& b, Request& r, proto::UpdateConsumerOffsetRequestHeader h) {
  if (b.topics.find(h.topic) == nullptr)
    co_return r.reply(ResponseCode::TOPIC_NOT_EXIST, fmt::format("Topic {} not exist!", h.topic));
  if (b.groups.find(h.consumer_group) == nullptr)
    co_return r.reply(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
                      fmt::format("Group {} not exist!", h.consumer_group));
  if (!h.queue_id)
    co_return r.reply(ResponseCode::INVALID_PARAMETER, fmt::format("QueueId is null, topic is {}", h.topic));
  if (!h.commit_offset)
    co_return r.reply(ResponseCode::INVALID_PARAMETER, fmt::format("Offset is null, topic is {}", h.topic));
  bool counted = b.offsets.commit(h.consumer_group, h.topic, *h.queue_id, *h.commit_offset);
  auto kept = co_await b.offsets.kept(b.offsets.last_change());
  if (!kept) co_return refuse_unkept_offsets(r, kept.error());
  r.reply(ResponseCode::SUCCESS, counted ? "" : "Offset has been previously reset");
}

void refuse_unkept_offsets(Request& r, const Error& e) {
  r.reply(ResponseCode::SYSTEM_ERROR, "consumer offsets cannot be written to disk: " + to_string(e));
}

void get_max_offset(Broker& b, Request& r, proto::GetMaxOffsetRequestHeader h) {
  const int64_t end = b.store.max_offset(h.topic, h.queue_id);
  const auto kept = b.clients.take_end(&r.connection(), h.topic, h.queue_id);
  r.answer<proto::GetMaxOffset>({kept ? std::min(*kept, end) : end});
}

void get_min_offset(Broker& b, Request& r, proto::GetMinOffsetRequestHeader h) {
  r.answer<proto::GetMinOffset>({std::max<int64_t>(0, b.store.min_offset(h.topic, h.queue_id))});
}

// In a batch topic as RocketMQ's BatchConsumeQueue says it: the first message of a record, for a time behind
// all of them that of the last record, and UPPER differs among records of the same time only.
static Task<int64_t> offset_by_time(Broker& b, std::string topic, int32_t queue_id, int64_t timestamp_ms,
                                    Boundary boundary) {
  const int64_t max = b.store.max_offset(topic, queue_id);
  const bool empty = max <= std::max<int64_t>(0, b.store.min_offset(topic, queue_id));
  if (!b.store.is_batch_topic(topic) || empty)
    co_return co_await b.store.search_offset(topic, queue_id, timestamp_ms, boundary);
  const int64_t last_ms = co_await b.store.store_time(topic, queue_id, max - 1);
  if (timestamp_ms >= last_ms) co_return co_await b.store.record_begin(topic, queue_id, max - 1);
  if (boundary == Boundary::UPPER) {
    const int64_t last = co_await b.store.search_offset(topic, queue_id, timestamp_ms, boundary);
    const int64_t ms = co_await b.store.store_time(topic, queue_id, last);
    if (ms == timestamp_ms) co_return co_await b.store.record_begin(topic, queue_id, last);
  }
  co_return co_await b.store.search_offset(topic, queue_id, timestamp_ms, Boundary::LOWER);
}

Task<void> search_offset_by_timestamp(Broker& b, Request& r, proto::SearchOffsetRequestHeader h) {
  std::string boundary(h.boundary_type.value_or("lower"));
  std::transform(boundary.begin(), boundary.end(), boundary.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  int64_t offset = co_await offset_by_time(b, std::string(h.topic), h.queue_id, h.timestamp,
                                           boundary == "upper" ? Boundary::UPPER : Boundary::LOWER);
  r.answer<proto::SearchOffsetByTimestamp>({offset});
}

Task<void> get_earliest_msg_storetime(Broker& b, Request& r, proto::GetEarliestMsgStoretimeRequestHeader h) {
  int64_t ms = co_await b.store.earliest_store_time(h.topic, h.queue_id);
  r.answer<proto::GetEarliestMsgStoretime>({ms});
}

void get_all_consumer_offset(Broker& b, Request& r, proto::EmptyHeader) {
  r.reply(ResponseCode::SUCCESS, {}, b.offsets.snapshot().to_json());
}

void get_all_delay_offset(Broker& b, Request& r, proto::EmptyHeader) {
  r.reply(ResponseCode::SUCCESS, {}, b.schedule.snapshot().to_json());
}

Task<void> clone_group_offset(Broker& b, Request& r, proto::CloneGroupOffsetRequestHeader h) {
  if (auto wrong = proto::invalid_group_remark(h.dest_group))
    co_return r.reply(ResponseCode::INVALID_PARAMETER, *wrong);
  std::vector<std::string> topics;
  if (h.topic && !h.topic->empty())
    topics.emplace_back(*h.topic);
  else
    topics = b.offsets.topics_of(h.src_group);
  // Members that are at work must not commit over it; they learn it as they learn a reset.
  const bool as_reset = b.config.useServerSideResetOffset && b.clients.consumers(h.dest_group) != nullptr;
  for (const std::string& t : topics) {
    const proto::TopicConfig* topic = b.topics.find(t);
    if (topic == nullptr || proto::is_retry_topic(t)) continue;
    b.offsets.copy(h.src_group, h.dest_group, t, as_reset);
    for (int32_t q = 0; q < topic->read_queue_nums; q++) b.long_polling.wake(t, q);
    b.pop.on_reset(t, h.dest_group);
  }
  auto kept = co_await b.offsets.kept(b.offsets.last_change());
  if (!kept) co_return refuse_unkept_offsets(r, kept.error());
  r.reply(ResponseCode::SUCCESS);
}

// The least offset of each queue that any group has, without those of `filterGroups` (which the reference
// deletes here, for ever). Long.MAX_VALUE where `compareGroup` is behind all others: nothing to correct.
void query_correction_offset(Broker& b, Request& r, proto::QueryCorrectionOffsetRequestHeader h) {
  const std::string without = "," + std::string(h.filter_groups.value_or(std::string_view{})) + ",";
  proto::QueryCorrectionOffsetBody body;
  for (const std::string& group : b.offsets.groups_of(h.topic)) {
    if (without.find("," + group + ",") != std::string::npos) continue;
    const OffsetManager::Queues* queues = b.offsets.queues(group, h.topic);
    if (queues == nullptr) continue;
    for (const auto& [q, offset] : *queues) {
      if (offset < std::max<int64_t>(0, b.store.min_offset(h.topic, q))) continue;
      int64_t& least = body.correction_offsets.try_emplace(q, offset).first->second;
      least = std::min(least, offset);
    }
  }
  if (const OffsetManager::Queues* compared = b.offsets.queues(h.compare_group, h.topic))
    for (auto& [q, least] : body.correction_offsets)
      if (auto own = compared->find(q); own != compared->end() && least > own->second) least = INT64_MAX;
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

namespace {

// With useServerSideResetOffset=false: the members that are online are told, and move by themselves.
Task<void> reset_at_clients(Broker& b, Request& r, const proto::ResetOffsetRequestHeader& h, int32_t queues) {
  const ConsumerGroupInfo* online = b.clients.consumers(h.group);
  if (online == nullptr)
    co_return r.reply(
        ResponseCode::CONSUMER_NOT_ONLINE,
        fmt::format("Consumer not online, so can not reset offset, Group: {} Topic: {} Timestamp: {}",
                    h.group, h.topic, h.timestamp));
  proto::ResetOffsetBody body;
  for (int32_t q = 0; q < queues; q++) {
    auto current = b.offsets.query(h.group, h.topic, q);
    if (!current)
      co_return r.reply(ResponseCode::SYSTEM_ERROR,
                        fmt::format("THe consumer group <{}> not exist", h.group));
    int64_t target = b.store.max_offset(h.topic, q);
    if (h.timestamp >= 0)
      target = co_await offset_by_time(b, std::string(h.topic), q, h.timestamp, Boundary::LOWER);
    if (!h.is_force) target = std::min(target, *current);
    body.offset_table[{std::string(h.topic), b.config.brokerName, q}] = target;
  }
  online = b.clients.consumers(h.group);  // it may have left meanwhile
  if (online != nullptr) {
    for (const auto& [q, target] : body.offset_table)
      b.offsets.note_told(h.group, h.topic, q.queue_id, target);
    for (const auto& [c, channel] : online->channels) {
      std::string frame;
      const bool cpp = channel.language == proto::LanguageCode::CPP;
      proto::ResetConsumerClientOffset::append_request(
          frame, c->next_opaque(), h, cpp ? body.to_json_for_cpp() : body.to_json(), proto::flag_oneway);
      c->push(frame);
    }
  }
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

}  // namespace

// INVOKE_BROKER_TO_RESET_OFFSET on the server's side: remembered here, seen by the next pull of each queue.
Task<void> reset_offset(Broker& b, Request& r, proto::ResetOffsetRequestHeader h) {
  const proto::TopicConfig* topic = b.topics.find(h.topic);
  if (topic == nullptr) co_return refuse_unknown_topic(r, h.topic);
  if (b.groups.find(h.group) == nullptr) co_return refuse_unknown_group(r, h.group);
  if (!b.config.useServerSideResetOffset) {
    const int32_t write_queues = topic->write_queue_nums;
    co_await reset_at_clients(b, r, h, write_queues);
    co_return;
  }
  const int32_t only = h.queue_id.value_or(-1), queues = topic->read_queue_nums;
  if (only >= queues)
    co_return r.reply(ResponseCode::INVALID_PARAMETER,
                      fmt::format("queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}]", only,
                                  h.topic, queues));
  proto::ResetOffsetBody body;
  for (int32_t q = only < 0 ? 0 : only; q < (only < 0 ? queues : only + 1); q++) {
    int64_t min = std::max<int64_t>(0, b.store.min_offset(h.topic, q)), max = b.store.max_offset(h.topic, q);
    int64_t target = max;
    if (only >= 0 && h.offset.value_or(-1) >= 0) {
      target = *h.offset;
      if (target < min || target > max + 1)
        co_return r.reply(
            ResponseCode::SYSTEM_ERROR,
            fmt::format("Target offset {} not in consume queue range [{}-{}]", target, min, max));
    } else if (h.timestamp >= 0) {
      target = co_await offset_by_time(b, std::string(h.topic), q, h.timestamp, Boundary::LOWER);
    }
    body.offset_table[{std::string(h.topic), b.config.brokerName, q}] = target;
  }
  for (const auto& [q, target] : body.offset_table) {
    b.offsets.set_reset(h.group, h.topic, q.queue_id, target);
    b.long_polling.wake(h.topic, q.queue_id);  // whoever waits there learns it at once
  }
  b.pop.on_reset(h.topic, h.group);
  auto kept = co_await b.offsets.kept(b.offsets.last_change());
  if (!kept) co_return refuse_unkept_offsets(r, kept.error());
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

}  // namespace rmq::broker

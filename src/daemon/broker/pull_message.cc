// PULL_MESSAGE and LITE_PULL_MESSAGE: checks in RocketMQ's order (remoting.md 12.3), the filter, one read of
// the store; nothing found and allowed to wait: long polling, then the read again. And VIEW_MESSAGE_BY_ID.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/handlers.h"
#include "daemon/broker/subscription_filter.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;
using store::GetMessageStatus;
namespace flags = proto::pull_sys_flag;

namespace {

constexpr const char* faq = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

void refuse(Request& r, ResponseCode code, std::string_view remark,
            std::optional<int32_t> forbidden_type = {}) {
  proto::PullMessageResponseHeader h;
  h.forbidden_type = forbidden_type;
  r.answer<proto::PullMessage>(code, h, remark);
}

// With filterSupportRetry the expression of a retry topic does not count, those of the original topics do;
// tags do count. The group is the one that the topic is of, as in RocketMQ.
bool take_filter(Broker& b, Request& r, std::string_view topic,
                 std::expected<SubscriptionFilter, Refusal> found, SubscriptionFilter& filter) {
  if (!found) {
    refuse(r, found.error().code, found.error().remark);
    return false;
  }
  filter = std::move(*found);
  if (b.config.filterSupportRetry && filter.by_expression() && proto::is_retry_topic(topic)) {
    const std::string_view group = topic.substr(proto::names::retry_prefix.size());
    filter = SubscriptionFilter::of_retries(b.filters, group.substr(0, group.find('+')));
  }
  return true;
}

// The subscription that the request carries or that the group's heartbeat brought. False: answered.
bool find_subscription(Broker& b, Request& r, const proto::PullMessageRequestHeader& h,
                       const proto::SubscriptionGroupConfig& group, SubscriptionFilter& filter) {
  if ((h.sys_flag & flags::subscription) != 0) {
    auto found = filter_of_request(b, h.topic, h.subscription.value_or(std::string_view{}),
                                   h.expression_type.value_or(std::string_view{}));
    return take_filter(b, r, h.topic, std::move(found), filter);
  }
  const ConsumerGroupInfo* g = b.clients.consumers(h.consumer_group);
  if (g == nullptr) {
    refuse(r, ResponseCode::SUBSCRIPTION_NOT_EXIST, std::string("the consumer's group info not exist") + faq);
    return false;
  }
  if (g->message_model == proto::MessageModel::BROADCASTING && !group.consume_broadcast_enable) {
    refuse(r, ResponseCode::NO_PERMISSION,
           fmt::format("the consumer group[{}] can not consume by broadcast way", h.consumer_group), 4);
    return false;
  }
  if (b.groups.is_read_forbidden(h.consumer_group, h.topic)) {
    refuse(r, ResponseCode::NO_PERMISSION,
           fmt::format("the consumer group[{}] is forbidden for topic[{}]", h.consumer_group, h.topic), 5);
    return false;
  }
  const proto::SubscriptionData* s = g->subscription(h.topic);
  if (s == nullptr) {
    refuse(r, ResponseCode::SUBSCRIPTION_NOT_EXIST,
           std::string("the consumer's subscription not exist") + faq);
    return false;
  }
  if (s->sub_version < h.sub_version) {
    refuse(r, ResponseCode::SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest");
    return false;
  }
  return take_filter(b, r, h.topic, filter_of_group(b, h.consumer_group, *s, h.sub_version), filter);
}

// Group, topic, queue, subscription. False: answered.
bool check_pull(Broker& b, Request& r, const proto::PullMessageRequestHeader& h, SubscriptionFilter& filter) {
  if (!proto::perm::is_readable(static_cast<int32_t>(b.config.brokerPermission))) {
    refuse(r, ResponseCode::NO_PERMISSION,
           fmt::format("the broker[{}] pulling message is forbidden", b.config.brokerIP1), 1);
    return false;
  }
  const auto* group = b.groups.find_or_create(h.consumer_group, b.wall_ms());
  if (group == nullptr) {
    refuse(r, ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
           fmt::format("subscription group [{}] does not exist, {}", h.consumer_group, faq + 1));
    return false;
  }
  b.save_new_groups();
  if (!group->consume_enable) {
    refuse(r, ResponseCode::NO_PERMISSION,
           fmt::format("subscription group no permission, {}", h.consumer_group), 2);
    return false;
  }
  const proto::TopicConfig* topic = b.topics.find(h.topic);
  if (topic == nullptr) {
    refuse(r, ResponseCode::TOPIC_NOT_EXIST,
           fmt::format("topic[{}] not exist, apply first please!{}", h.topic, faq));
    return false;
  }
  if (!proto::perm::is_readable(topic->perm)) {
    refuse(r, ResponseCode::NO_PERMISSION, fmt::format("the topic[{}] pulling message is forbidden", h.topic),
           3);
    return false;
  }
  if (h.queue_id < 0 || h.queue_id >= topic->read_queue_nums) {
    refuse(r, ResponseCode::INVALID_PARAMETER,
           fmt::format("queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] consumer:[{}]",
                       h.queue_id, h.topic, topic->read_queue_nums, r.connection().peer_text()));
    return false;
  }
  if (!find_subscription(b, r, h, *group, filter)) return false;
  if (b.config.rejectPullConsumerEnable) {
    const ConsumerGroupInfo* g = b.clients.consumers(h.consumer_group);
    if (g == nullptr || !g->channels.contains(&r.connection())) {
      refuse(r, ResponseCode::SUBSCRIPTION_NOT_EXIST,
             std::string("the consumer's group info not exist") + faq);
      return false;
    }
  }
  return true;
}

ResponseCode code_of(GetMessageStatus s, int64_t asked_offset) {
  switch (s) {
    case GetMessageStatus::FOUND:
      return ResponseCode::SUCCESS;
    case GetMessageStatus::NO_MATCHED_MESSAGE:
    case GetMessageStatus::MESSAGE_WAS_REMOVING:
      return ResponseCode::PULL_RETRY_IMMEDIATELY;
    case GetMessageStatus::NO_MATCHED_LOGIC_QUEUE:
    case GetMessageStatus::NO_MESSAGE_IN_QUEUE:
      return asked_offset != 0 ? ResponseCode::PULL_OFFSET_MOVED : ResponseCode::PULL_NOT_FOUND;
    case GetMessageStatus::OFFSET_FOUND_NULL:
    case GetMessageStatus::OFFSET_OVERFLOW_ONE:
      return ResponseCode::PULL_NOT_FOUND;
    case GetMessageStatus::OFFSET_OVERFLOW_BADLY:
    case GetMessageStatus::OFFSET_TOO_SMALL:
    case GetMessageStatus::OFFSET_RESET:
      return ResponseCode::PULL_OFFSET_MOVED;
  }
  return ResponseCode::SYSTEM_ERROR;
}

void answer_pull(Broker& b, Request& r, const proto::PullMessageRequestHeader& h,
                 store::GetMessageResult& g) {
  proto::PullMessageResponseHeader header;
  header.next_begin_offset = g.next_begin_offset;
  header.min_offset = g.min_offset;
  header.max_offset = g.max_offset;
  header.topic_sys_flag = 0;
  header.group_sys_flag = 0;
  // Extents keep whole pieces of log memory: when too much is kept for peers that are slow, they get copies.
  const bool pressed = b.store.stats().memory_bytes > b.store.options().memory_bytes / 4 * 5;
  if (g.status == GetMessageStatus::FOUND) {
    b.stats.now.get_found++;
    b.stats.now.get_transferred += g.message_count;
    b.stats_items.add(StatsKind::group_get, h.topic, h.consumer_group, g.message_count, g.byte_count,
                      b.now_ns());
    b.metrics.messages_out(h.topic, h.consumer_group, g.message_count, g.byte_count);
  } else {
    b.stats.now.get_missed++;
  }
  const ResponseCode code = code_of(g.status, h.queue_offset);
  if (!pressed)
    return r.answer<proto::PullMessage>(code, header, store::name_of(g.status), std::move(g.extents),
                                        g.byte_count);
  std::string copy;
  copy.reserve(g.byte_count);
  for (const store::LogExtent& e : g.extents) copy += as_text(e.bytes());
  r.answer<proto::PullMessage>(code, header, store::name_of(g.status), copy);
}

bool answer_reset(Broker& b, Request& r, const proto::PullMessageRequestHeader& h) {
  auto reset = b.offsets.take_reset(h.consumer_group, h.topic, h.queue_id, h.queue_offset);
  if (!reset) return false;
  store::GetMessageResult g;
  g.status = GetMessageStatus::OFFSET_RESET;
  g.next_begin_offset = *reset;
  g.min_offset = std::max<int64_t>(0, b.store.min_offset(h.topic, h.queue_id));
  g.max_offset = b.store.max_offset(h.topic, h.queue_id);
  answer_pull(b, r, h, g);
  return true;
}

}  // namespace

Task<void> pull_message(Broker& b, Request& r, proto::PullMessageRequestHeader h) {
  SubscriptionFilter filter;
  if (!check_pull(b, r, h, filter)) co_return;
  b.discard.note_read(h.topic);
  if (answer_reset(b, r, h)) co_return;
  b.offsets.note_pull(h.consumer_group, h.topic, h.queue_id, h.queue_offset);
  const bool commits = (h.sys_flag & flags::commit_offset) != 0;
  if (commits) b.offsets.commit(h.consumer_group, h.topic, h.queue_id, h.commit_offset);
  const uint64_t commit = b.offsets.last_change();
  int64_t wait_ms = b.config.longPollingEnable ? h.suspend_timeout_millis : b.config.shortPollingTimeMills;
  bool may_wait = (h.sys_flag & flags::suspend) != 0 && wait_ms > 0;
  const int64_t deadline_ns = b.now_ns() + std::min<int64_t>(wait_ms, 3'600'000) * ns_per_ms;
  const int32_t max = std::max(1, h.max_msg_nums);
  const size_t room = static_cast<size_t>(b.config.maxTransferBytesOnMessageInMemory);
  bool passed = false;
  for (;;) {
    if (!r.try_take_room(room)) co_await r.take_room(room);
    if (!r.connection().is_open()) co_return;
    store::GetMessageResult g =
        co_await b.store.get(h.topic, h.queue_id, h.queue_offset, max, filter.wanted());
    b.offsets.note_pulled(h.consumer_group, h.topic, h.queue_id, g.next_begin_offset);
    if (passed && g.status == GetMessageStatus::OFFSET_OVERFLOW_ONE)
      g.status = GetMessageStatus::NO_MATCHED_MESSAGE;  // messages came, none for this one
    bool nothing = code_of(g.status, h.queue_offset) == ResponseCode::PULL_NOT_FOUND &&
                   g.status != GetMessageStatus::OFFSET_FOUND_NULL;
    if (!nothing || !may_wait || b.stopping.is_set() || !b.long_polling.has_room()) {
      // Written while the store was read. When it cannot be written, messages go on; the journal has it.
      if (commits && !b.offsets.is_kept(commit)) [[maybe_unused]]
        auto kept = co_await b.offsets.kept(commit);
      co_return answer_pull(b, r, h, g);
    }
    r.give_room_back();
    if (b.store.max_offset(h.topic, h.queue_id) > h.queue_offset) continue;  // it came while we read
    r.give_slot_back();
    const SubscriptionFilter waited_with = filter;
    Polled polled =
        co_await b.long_polling.wait(r.connection(), h.topic, h.queue_id, waited_with.wanted(), deadline_ns);
    if (polled.end == PollEnd::closed) co_return;
    if (polled.end == PollEnd::timed_out) may_wait = false;
    // Topic and group may be others by now, or gone. So may the group's subscription: what is passed over by
    // the old one would be lost.
    if (!check_pull(b, r, h, filter)) co_return;
    if (answer_reset(b, r, h)) co_return;
    // What came and was judged then is not judged again.
    const bool is_same = waited_with.identity() != nullptr && waited_with.identity() == filter.identity();
    if (!is_same || polled.unwanted_to <= h.queue_offset) continue;
    h.queue_offset = polled.unwanted_to;
    passed = true;
  }
}

Task<void> lite_pull_message(Broker& b, Request& r, proto::PullMessageRequestHeader h) {
  if (b.config.litePullMessageEnable) {
    co_await pull_message(b, r, h);
    co_return;
  }
  refuse(r, ResponseCode::NO_PERMISSION,
         fmt::format("the broker[{}] for lite pull consumer is forbidden", b.config.brokerIP1), 1);
}

Task<void> view_message_by_id(Broker& b, Request& r, proto::ViewMessageRequestHeader h) {
  auto record = co_await b.store.record_at(h.offset);
  if (!record)
    co_return r.reply(ResponseCode::SYSTEM_ERROR,
                      fmt::format("can not find message by the offset, {}", h.offset));
  size_t bytes = record->bytes().size();
  std::vector<store::LogExtent> body;
  body.push_back(std::move(*record));
  r.answer<proto::ViewMessageById>(ResponseCode::SUCCESS, {}, {}, std::move(body), bytes);
}

}  // namespace rmq::broker

#include "daemon/broker/pop/pop_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;

static constexpr const char* faq =
    "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

std::optional<Refusal> refusal_of_pop(Broker& b, Request& r, std::string_view topic, std::string_view group,
                                      int32_t queue_id) {
  const proto::TopicConfig* t = b.topics.find(topic);
  if (t == nullptr)
    return Refusal{ResponseCode::TOPIC_NOT_EXIST,
                   fmt::format("topic[{}] not exist, apply first please! \n{}", topic, faq)};
  if (!proto::perm::is_readable(t->perm))
    return Refusal{ResponseCode::NO_PERMISSION,
                   fmt::format("the topic[{}] peeking message is forbidden", topic)};
  if (queue_id >= t->read_queue_nums)
    return Refusal{
        ResponseCode::INVALID_PARAMETER,
        fmt::format("queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] consumer:[{}]",
                    queue_id, topic, t->read_queue_nums, r.connection().peer_text())};
  const proto::SubscriptionGroupConfig* g = b.groups.find_or_create(group, b.wall_ms());
  if (g == nullptr)
    return Refusal{ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
                   fmt::format("subscription group [{}] does not exist, {}", group, faq)};
  b.save_new_groups();
  if (!g->consume_enable)
    return Refusal{ResponseCode::NO_PERMISSION, fmt::format("subscription group no permission, {}", group)};
  return std::nullopt;
}

int64_t poll_deadline_ns(const Broker& b, int64_t born_ms, int64_t poll_ms, int64_t now_ms) {
  constexpr int64_t longest_ms = 3'600'000, early_ms = 50;
  const int64_t waited_ms = born_ms <= 0 ? 0 : std::max<int64_t>(0, now_ms - born_ms);
  const int64_t left_ms =
      std::clamp<int64_t>(poll_ms, 0, longest_ms) - std::min(waited_ms, longest_ms) - early_ms;
  return b.now_ns() + std::max<int64_t>(0, left_ms) * ns_per_ms;
}

bool polling_has_room(const Broker& b, const PopPolling& p, std::string_view topic, std::string_view group,
                      int32_t queue_id) {
  const uint32_t all = b.long_polling.waiting() + b.pop.polling.waiting() + b.pop.notifications.waiting();
  return all < limits::waiting_pulls_max &&
         p.waiting_for(topic, group, queue_id) <= limits::waiting_pops_of_group_max;
}

void refuse_unkept_pops(Request& r, const Error& e) {
  r.reply(ResponseCode::SYSTEM_ERROR, "what was popped cannot be written to disk: " + to_string(e));
}

}  // namespace rmq::broker

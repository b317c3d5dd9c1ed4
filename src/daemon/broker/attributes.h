// Attributes of topics and groups: which there are, how a request changes them, and what some of them say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proto/bodies_config.h"

namespace rmq::broker {

enum class AttributesOf : uint8_t { topic, group };

// "+k=v,-k2" applied to `current`; an error text, in RocketMQ's words where it has some. `creating`: the
// topic or group is new. Errors leave `current` unchanged.
std::optional<std::string> alter_attributes(AttributesOf of, std::string_view text, bool creating,
                                            std::map<std::string, std::string>& current);

// Why a topic with this attribute of RocketMQ's would not be here what it says; null: it would. Static.
const char* why_unserved(std::string_view name, std::string_view value);

// Why this rmqd does not serve a topic with all of these; null: it does. Static.
const char* why_not_together(const std::map<std::string, std::string>& attributes);

// queue.type=BatchCQ: what a producer sends as a batch is one record, which takes as many queue offsets as it
// has messages.
bool is_batch_topic(const proto::TopicConfig& topic);
// cleanup.policy=COMPACTION: each message must have KEYS, and the latest one of each stays.
bool is_compaction_topic(const proto::TopicConfig& topic);
// message.type=PRIORITY: POP gives messages of queues with a higher id first.
bool is_priority_topic(const proto::TopicConfig& topic);
// priority.factor: so many of a hundred POP requests of the group do so.
inline constexpr int64_t priority_factor_default = 100;
int64_t priority_factor_of(const proto::SubscriptionGroupConfig& group);

}  // namespace rmq::broker

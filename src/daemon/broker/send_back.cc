// CONSUMER_SEND_MSG_BACK and plain sends to retry topics (remoting.md 12.1 and 12.2, storage.md 13).
//
// What a retry adds to a message's properties may not fit any more: they end at 32,767 bytes. RocketMQ
// refuses such a message, and it stays with its consumer for ever. Here it loses what consumers can do
// without; where even that is not enough for a delayed retry, it becomes a dead letter at once, which needs
// less.
#include <fmt/format.h>

#include "base/limits.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker/retry.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

using proto::ResponseCode;
namespace prop = proto::prop;

namespace {

constexpr int32_t read_write = proto::perm::read | proto::perm::write;
constexpr int32_t first_retry_level = 3;  // a first retry comes after 10 s

// What a message can lose when its properties are too long, first what says least. A broker gives the first
// three anew to whatever is sent; the timer's are of a delay that is over.
constexpr std::string_view spare_properties[] = {prop::CLUSTER,
                                                 prop::MSG_REGION,
                                                 prop::TRACE_ON,
                                                 prop::WAIT,
                                                 prop::TIMER_ENQUEUE_MS,
                                                 prop::TIMER_DEQUEUE_MS,
                                                 prop::TIMER_ROLL_TIMES,
                                                 prop::RECONSUME_TIME,
                                                 prop::MAX_RECONSUME_TIMES,
                                                 prop::DELAY,
                                                 prop::ORIGIN_MESSAGE_ID};

size_t entry_bytes(std::string_view name, size_t value_bytes) {
  return name.size() + value_bytes + 2;
}

// What Broker::place_delayed() adds for a message of that place.
size_t delay_adds(std::string_view properties, std::string_view topic, int32_t queue_id) {
  size_t more = entry_bytes(prop::REAL_TOPIC, topic.size()) +
                entry_bytes(prop::REAL_QID, std::to_string(queue_id).size());
  for (std::string_view name : {prop::REAL_TOPIC, prop::REAL_QID})
    if (auto there = proto::find_property(properties, name))
      more -= std::min(more, entry_bytes(name, there->size()));
  return more;
}

// Drops spare properties until `more` bytes have room, too. False: they do not all the same. Without a delay
// nobody needs DELAY; with one it would be there again.
bool make_room(std::string& properties, size_t more, bool delayed) {
  for (std::string_view name : spare_properties) {
    if (properties.size() + more <= limits::properties_bytes_max) break;
    if (delayed && name == prop::DELAY) continue;
    proto::remove_property(properties, name);
  }
  return properties.size() + more <= limits::properties_bytes_max;
}

// A dead letter can do without its topic's name, if it must: it is at hand and says all else.
void make_room_for_dead(std::string& properties) {
  if (!make_room(properties, 0, false)) proto::remove_property(properties, prop::RETRY_TOPIC);
  const bool one_too_long = properties.size() == limits::properties_bytes_max + 1;
  if (one_too_long && properties.back() == proto::property_separator) properties.pop_back();
}

int32_t max_times(const proto::SubscriptionGroupConfig& g, int32_t client_version,
                  const std::optional<int32_t>& asked) {
  if (client_version >= proto::mq_version::V3_4_9 && asked) return *asked;
  return g.retry_max_times;
}

struct BackMessage {
  std::string topic;
  int32_t queue_id = 0;
  std::string properties;
  int32_t reconsume_times = 0;
  int delay_level = 0;
};

// The new message's place and properties. `record` is the one that could not be consumed.
BackMessage make_back(Broker& b, const proto::ConsumerSendMsgBackRequestHeader& h,
                      const proto::SubscriptionGroupConfig& g, const proto::RecordView& record, bool dead) {
  BackMessage m;
  m.reconsume_times = record.reconsume_times + 1;
  m.properties = std::string(record.properties);
  proto::remove_property(m.properties, prop::INNER_MULTI_QUEUE_OFFSET);  // of the record that it was
  if (!proto::find_property(m.properties, prop::RETRY_TOPIC))
    proto::set_property(m.properties, prop::RETRY_TOPIC, record.topic);
  if (!proto::find_property(m.properties, prop::ORIGIN_MESSAGE_ID))
    proto::set_property(m.properties, prop::ORIGIN_MESSAGE_ID,
                        proto::make_offset_id(record.store_host, record.physical_offset));
  proto::set_property(m.properties, prop::WAIT, "false");
  if (dead) {
    m.topic = proto::dlq_topic_of(h.group);
    proto::set_property(m.properties, prop::DELAY, "0");
  } else {
    m.topic = proto::retry_topic_of(h.group);
    m.queue_id =
        static_cast<int32_t>(Loop::current().random().below(static_cast<uint64_t>(g.retry_queue_nums)));
    int32_t level = h.delay_level == 0 ? first_retry_level + record.reconsume_times : h.delay_level;
    m.delay_level = std::min(level, b.delay_levels.count());
    proto::set_property(m.properties, prop::DELAY, std::to_string(level));
  }
  return m;
}

}  // namespace

Task<void> consumer_send_msg_back(Broker& b, Request& r, proto::ConsumerSendMsgBackRequestHeader h) {
  const proto::SubscriptionGroupConfig* found = b.groups.find_or_create(h.group, b.wall_ms());
  if (found == nullptr) co_return refuse_unknown_group(r, h.group);
  b.save_new_groups();
  const proto::SubscriptionGroupConfig group = *found;  // it may change while we wait
  if (!proto::perm::is_writeable(static_cast<int32_t>(b.config.brokerPermission)))
    co_return r.reply(ResponseCode::NO_PERMISSION,
                      fmt::format("the broker[{}] sending message is forbidden", b.config.brokerIP1));
  if (group.retry_queue_nums <= 0) co_return r.reply(ResponseCode::SUCCESS);
  auto extent = co_await b.store.record_at(h.offset);
  if (!extent)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, fmt::format("look message by offset failed, {}", h.offset));
  auto record = proto::parse_record(extent->bytes());
  if (!record)
    co_return r.reply(ResponseCode::SYSTEM_ERROR, fmt::format("look message by offset failed, {}", h.offset));
  // All messages of the record would come again. The client sends its one as a new message then, as it does
  // when RocketMQ's broker answers this.
  if (proto::sys_flag::is_inner_batch(record->sys_flag))
    co_return r.reply(ResponseCode::SYSTEM_ERROR, store::name_of(store::PutMessageStatus::MESSAGE_ILLEGAL));
  bool dead = h.delay_level < 0 ||
              record->reconsume_times >= max_times(group, r.command.version, h.max_reconsume_times);
  BackMessage back = make_back(b, h, group, *record, dead);
  if (!dead && !make_room(back.properties, delay_adds(back.properties, back.topic, back.queue_id), true)) {
    dead = true;
    back = make_back(b, h, group, *record, dead);
  }
  if (dead) make_room_for_dead(back.properties);
  co_await b.ensure_topic(back.topic, dead ? 1 : group.retry_queue_nums, read_write,
                          h.unit_mode && !dead ? proto::topic_sys_flag::unit_sub : 0);
  store::MessageIn m = copy_of(*record, b.store_host);
  m.topic = back.topic;
  m.queue_id = back.queue_id;
  m.reconsume_times = back.reconsume_times;
  // Answered when it is safe: the consumer then forgets the message.
  store::PutMessageResult put = co_await b.put(m, back.properties, back.delay_level);
  Refusal outcome = refusal_of(b, put.status);
  if (outcome.code == ResponseCode::SUCCESS || outcome.code == ResponseCode::FLUSH_DISK_TIMEOUT) {
    const std::string_view origin = record->property(prop::RETRY_TOPIC).value_or(record->topic);
    if (dead)
      b.metrics.dead_letter(origin, h.group);
    else
      b.stats_items.add(StatsKind::send_back, origin, h.group, 1, record->size, b.now_ns());
    co_return r.reply(ResponseCode::SUCCESS);
  }
  r.reply(ResponseCode::SYSTEM_ERROR, store::name_of(put.status));
}

Task<std::optional<std::string>> route_retry(Broker& b, int32_t client_version,
                                             const proto::SendMessageRequestHeader& h,
                                             std::string& properties, int32_t reconsume_times) {
  std::string_view group = h.topic.substr(proto::names::retry_prefix.size());
  const proto::SubscriptionGroupConfig* g = b.groups.find_or_create(group, b.wall_ms());
  if (g == nullptr) co_return std::nullopt;
  b.save_new_groups();
  bool dead = reconsume_times > max_times(*g, client_version, h.max_reconsume_times) ||
              b.locks.any_held(group, b.now_ns());
  if (!dead) dead = !make_room(properties, delay_adds(properties, h.topic, h.queue_id), true);
  if (!dead) co_return std::string{};
  std::string dlq = proto::dlq_topic_of(group);
  co_await b.ensure_topic(dlq, 1, read_write);
  proto::set_property(properties, prop::DELAY, "-1");
  make_room_for_dead(properties);
  co_return dlq;
}

}  // namespace rmq::broker

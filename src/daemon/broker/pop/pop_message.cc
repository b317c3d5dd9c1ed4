// POP_MESSAGE (remoting.md 13): messages of any queue of a topic and of its retry topic, each invisible to
// the rest of the group for a while. Checks in RocketMQ's order; nothing found and allowed to wait:
// PopPolling, then all of it again.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/broker/attributes.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker/pop/pop_handle.h"
#include "daemon/broker/pop/pop_requests.h"
#include "daemon/broker/pop/record_walk.h"
#include "daemon/broker/subscription_filter.h"
#include "proto/codes.h"
#include "proto/properties.h"
#include "store/light_queues.h"

namespace rmq::broker {

using proto::ResponseCode;
using store::GetMessageStatus;
using QueuePointer = PopTable::QueuePointer;

namespace {

constexpr int32_t messages_max = 32;
constexpr int64_t longest_invisible_ms = int64_t{3650} * 86'400'000;

// What one round over the queues has found.
struct Popped {
  explicit Popped(const proto::PopMessageRequestHeader& header, const Broker& b)
      : h(header),
        most(static_cast<size_t>(std::max(1, header.max_msg_nums))),
        most_bytes(static_cast<uint64_t>(b.config.maxTransferBytesOnMessageInMemory)),
        pop_time_ms(b.wall_ms()),
        visible_ms(b.due_clock.wall_ms_up() +
                   std::clamp<int64_t>(header.invisible_time, 0, longest_invisible_ms)) {}

  bool is_full() const { return count >= most || bytes >= most_bytes; }

  const proto::PopMessageRequestHeader& h;
  const size_t most;
  const uint64_t most_bytes;
  const int64_t pop_time_ms, visible_ms;
  const store::MessageFilter* filter = nullptr;
  size_t count = 0;
  uint64_t bytes = 0;
  int64_t rest = 0;
  bool moved = false;  // an offset did, so there may be something behind it
  int64_t free_ms =
      INT64_MAX;  // then a queue that is blocked now is free, unless somebody acknowledges before
  std::vector<QueuePointer> busy;  // queues that others were reading
  std::string start_info, offset_info, order_info;
  std::vector<store::LogExtent> extents;
  std::string rewritten;  // records that do not go out as they lie in the log
};

int32_t revive_queue_of(const proto::PopMessageRequestHeader& h) {
  return h.order ? pop_order_revive_queue : 0;
}

// ---- one queue -----------------------------------------------------------------------------------------

// A message of a retry topic goes out under the topic that was asked for, with its handle.
void append_as_original(std::string& out, const proto::RecordView& record, const Popped& p,
                        const PopHandle& handle) {
  std::string properties(record.properties);
  proto::set_property(properties, proto::prop::POP_CK, handle.encode());
  proto::RecordFields f;
  f.topic = p.h.topic;
  f.body = record.body;
  f.properties = properties;
  f.queue_id = record.queue_id;
  f.flag = record.flag;
  f.sys_flag = record.sys_flag;
  f.queue_offset = record.queue_offset;
  f.physical_offset = record.physical_offset;
  f.born_timestamp_ms = record.born_timestamp_ms;
  f.born_host = record.born_host;
  f.store_timestamp_ms = record.store_timestamp_ms;
  f.store_host = record.store_host;
  f.reconsume_times = record.reconsume_times;
  f.prepared_transaction_offset = record.prepared_transaction_offset;
  const size_t begin = out.size(), size = proto::record_size(f);
  out.resize(begin + size);
  proto::encode_record(f, MutableBytes(reinterpret_cast<std::byte*>(out.data()) + begin, size),
                       record.body_crc);
}

void append_retries(Broker& b, Popped& p, const PopQueue& q, int64_t start,
                    const store::GetMessageResult& g) {
  const std::string all = joined(g.extents, g.byte_count);
  PopHandle handle;
  handle.start_offset = start;
  handle.pop_time_ms = p.pop_time_ms;
  handle.invisible_ms = p.h.invisible_time;
  handle.revive_queue = revive_queue_of(p.h);
  handle.mark = retry_mark_of(q.topic);
  handle.broker_name = b.config.brokerName;
  handle.queue_id = q.queue_id;
  for (Bytes rest = as_bytes(all); !rest.empty();) {
    auto record = proto::parse_record(rest);
    check(record.has_value());
    handle.offset = record->queue_offset;
    // Where the handle has no room the client makes it of the answer's info texts.
    if (record->properties.size() + handle.encode().size() + 10 <= limits::properties_bytes_max)
      append_as_original(p.rewritten, *record, p, handle);
    else
      p.rewritten += as_text(rest.first(record->size));
    rest = rest.subspan(record->size);
  }
}

// In a light queue a message has another offset than in the queue of its topic.
int64_t offset_in(std::string_view topic, const proto::RecordView& record) {
  const std::vector<store::LightPlace> places = store::light_places_of(record);
  auto here = std::ranges::find(places, topic, &store::LightPlace::queue);
  return here == places.end() ? record.queue_offset : here->offset;
}

// The queue offsets of what was found.
std::vector<int64_t> offsets_of(const PopQueue& q, const store::GetMessageResult& g) {
  std::vector<int64_t> out;
  if (store::is_light_queue(q.topic)) {
    const std::string all = joined(g.extents, g.byte_count);
    for (Bytes rest = as_bytes(all); !rest.empty();) {
      auto record = proto::parse_record(rest);
      check(record.has_value());
      out.push_back(offset_in(q.topic, *record));
      rest = rest.subspan(record->size);
    }
    return out;
  }
  RecordWalk walk(g.extents);
  while (auto offset = walk.next()) out.push_back(*offset);
  return out;
}

// What take() relies on. False: something on the disk was damaged, and is no record, or none of this place.
bool is_sound(const PopQueue& q, int64_t start, const store::GetMessageResult& g) {
  const bool is_light = store::is_light_queue(q.topic);
  size_t records = 0;
  std::string cut;  // the front of a record, of which the rest is in the next extent
  for (const store::LogExtent& e : g.extents) {
    Bytes rest = e.bytes();
    if (!cut.empty()) rest = as_bytes(cut += as_text(rest));
    while (!rest.empty()) {
      auto record = proto::parse_record(rest);
      if (!record && record.error().code == Errc::limit) break;
      if (!record) return false;
      const int64_t at = record->queue_offset;
      if (!is_light && (at < start || at - start > UINT32_MAX)) return false;
      records++;
      rest = rest.subspan(record->size);
    }
    cut = std::string(as_text(rest));
  }
  return cut.empty() && records <= g.message_count;
}

// Messages that were acknowledged do not come again with those before them.
void drop_acknowledged(Popped& p, std::string_view topic, const OrderInfo* last, store::GetMessageResult& g,
                       std::vector<int64_t>& offsets) {
  if (last == nullptr || last->acknowledged == 0) return;
  const std::string all = joined(g.extents, g.byte_count);
  std::vector<int64_t> left;
  for (Bytes rest = as_bytes(all); !rest.empty();) {
    auto record = proto::parse_record(rest);
    check(record.has_value());
    bool done = false;
    const int64_t offset = offset_in(topic, *record);
    for (size_t i = 0; i < last->messages.size(); i++)
      done = done || (last->is_acknowledged(i) && last->messages[i].offset == offset);
    if (!done) {
      left.push_back(offset);
      p.rewritten += as_text(rest.first(record->size));
    }
    rest = rest.subspan(record->size);
  }
  g.extents.clear();
  offsets = std::move(left);
}

// What was acknowledged from `start` on stays known until all before it is.
void keep_acknowledged(OrderInfo& order, const OrderInfo* last, int64_t start) {
  if (last == nullptr || last->acknowledged == 0) return;
  std::vector<OrderInfo::Message> done = last->acknowledged_from(start);
  std::vector<OrderInfo::Message> all;
  std::ranges::merge(order.messages, done, std::back_inserter(all), {}, &OrderInfo::Message::offset,
                     &OrderInfo::Message::offset);
  check(all.size() <= OrderInfo::messages_max);
  for (size_t i = 0; i < all.size(); i++) {
    if (!std::ranges::binary_search(done, all[i].offset, {}, &OrderInfo::Message::offset)) continue;
    order.acknowledged |= uint64_t{1} << i;
    if (all[i].offset == order.end) order.end++;
  }
  order.messages = std::move(all);
}

// The queue is blocked until these are acknowledged or visible again.
void pop_in_order(Broker& b, Popped& p, PopQueue& q, int64_t start, const store::GetMessageResult& g,
                  const std::vector<int64_t>& offsets) {
  auto order = std::make_unique<OrderInfo>();
  order->attempt_id = std::string(p.h.attempt_id.value_or(std::string_view{}));
  order->pop_time_ms = p.pop_time_ms;
  order->end = g.next_begin_offset;
  const char mark = retry_mark_of(q.topic);
  const bool same_attempt = q.order && !order->attempt_id.empty() && q.order->attempt_id == order->attempt_id;
  int32_t least = offsets.empty() ? 0 : INT32_MAX;
  for (int64_t offset : offsets) {
    OrderInfo::Message m{offset, p.visible_ms, 0};
    if (q.order)
      for (const OrderInfo::Message& before : q.order->messages)
        if (before.offset == offset) m.consumed = before.consumed + (same_attempt ? 0 : 1);
    if (m.consumed > 0) append_offset_order_count(p.order_info, mark, q.queue_id, offset, m.consumed);
    least = std::min(least, m.consumed);
    order->messages.push_back(m);
  }
  if (!offsets.empty()) append_queue_order_count(p.order_info, mark, q.queue_id, least);
  keep_acknowledged(*order, q.order.get(), start);
  q.order = std::move(order);
  q.next = q.order->next_offset();
  b.pop.table.order_changed(q);
}

// How many records of the queue may be read now.
int32_t most_of(const Popped& p, const PopQueue& q) {
  auto most = static_cast<int64_t>(p.most - p.count);
  if (p.h.order && q.order) {
    const size_t known = q.order->acknowledged_from(q.next).size();
    most = std::min(most, static_cast<int64_t>(OrderInfo::messages_max - known));
  }
  return static_cast<int32_t>(most);
}

void go_on_at(PopTable& table, PopQueue& q, int64_t next) {
  if (!q.order) return table.move_to(q, next);
  q.order.reset();
  q.next = next;
  table.order_changed(q);
}

// There is nothing to pop before `next`. What is behind it and was popped in order keeps what is known of it.
void go_on_behind(PopTable& table, PopQueue& q, int64_t next) {
  if (!q.order || next <= q.next) return go_on_at(table, q, next);
  q.order->drop_before(next);
  q.next = q.order->next_offset();
  table.order_changed(q);
}

// Without order. What an OrderInfo has from the queue's next offset on stays known.
void pop_freely(Broker& b, const Popped& p, PopQueue& q, int64_t start, int64_t next,
                const std::vector<int64_t>& offsets) {
  b.pop.table.popped(q, start, next, p.pop_time_ms, p.visible_ms, offsets);
  if (q.order) {
    q.order->drop_before(next);
    q.next = q.order->next_offset();
    b.pop.table.order_changed(q);
  }
  b.pop.look_again();
}

void take(Broker& b, Popped& p, PopQueue& q, int64_t start, store::GetMessageResult& g) {
  std::vector<int64_t> offsets = offsets_of(q, g);
  const char mark = retry_mark_of(q.topic);
  drop_acknowledged(p, q.topic, q.order.get(), g, offsets);
  if (p.h.order) {
    pop_in_order(b, p, q, start, g, offsets);
    p.moved = true;
  } else if (offsets.empty()) {
    go_on_behind(b.pop.table, q, g.next_begin_offset);
    p.moved = true;
  } else {
    pop_freely(b, p, q, start, g.next_begin_offset, offsets);
  }
  if (offsets.empty()) return;
  append_start_offset(p.start_info, mark, q.queue_id, start);
  begin_msg_offsets(p.offset_info, mark, q.queue_id);
  for (size_t i = 0; i < offsets.size(); i++) append_msg_offset(p.offset_info, i == 0, offsets[i]);
  p.count += offsets.size();
  p.bytes += g.byte_count;
  b.metrics.popped(p.h.topic, p.h.consumer_group, mark != '0', offsets.size(), g.byte_count);
  if (mark != '0' && !b.config.popResponseReturnActualRetryTopic)
    append_retries(b, p, q, start, g);
  else
    std::move(g.extents.begin(), g.extents.end(), std::back_inserter(p.extents));
}

void pass_over(Broker& b, PopQueue& q, int64_t next) {
  const std::string queue = std::to_string(q.queue_id), offset = std::to_string(next - 1);
  log(LogLevel::error, ids::delivery_failed, "a damaged message cannot be popped, it is passed over",
      {{"TOPIC", q.topic}, {"GROUP", q.group}, {"QUEUE", queue}, {"OFFSET", offset}});
  go_on_behind(b.pop.table, q, next);
}

Task<void> read_queue(Broker& b, Popped& p, QueuePointer q) {
  int32_t most = most_of(p, *q);
  for (int attempt = 0; attempt < 2; attempt++) {
    const uint32_t epoch = q->epoch;
    if (b.store.is_batch_topic(q->topic)) {  // a record comes as a whole, at the offset of its first message
      const int64_t begin = co_await b.store.record_begin(q->topic, q->queue_id, q->next);
      if (q->epoch == epoch && begin < q->next) go_on_at(b.pop.table, *q, begin);
    }
    const int64_t start = q->next;
    store::GetMessageResult g = co_await b.store.get(q->topic, q->queue_id, start, most, p.filter);
    // Somebody has reset it, or acknowledged the first of what was popped in order: what was read is not what
    // comes next.
    if (q->epoch != epoch || q->next != start) {
      p.moved = true;
      p.rest += std::max<int64_t>(0, g.max_offset - q->next);
      co_return;
    }
    const bool elsewhere =
        g.status == GetMessageStatus::OFFSET_TOO_SMALL || g.status == GetMessageStatus::OFFSET_OVERFLOW_BADLY;
    if (elsewhere && attempt == 0) {
      go_on_behind(b.pop.table, *q, g.next_begin_offset);
      continue;
    }
    const bool found = g.status == GetMessageStatus::FOUND;
    const bool sound = !found || is_sound(*q, start, g);
    if (!sound && most > 1) {  // one by one up to it
      most = 1;
      attempt--;
      continue;
    }
    p.rest += std::max<int64_t>(0, g.max_offset - g.next_begin_offset);
    if (!sound) {
      pass_over(b, *q, g.next_begin_offset);
      p.moved = true;
    } else if (found) {
      take(b, p, *q, start, g);
    } else if (g.next_begin_offset > start && !elsewhere) {
      go_on_behind(b.pop.table, *q, g.next_begin_offset);
      p.moved = true;
    }
    b.offsets.note_pulled(q->group, q->topic, q->queue_id, q->next);
    co_return;
  }
}

// Blocked: messages that were popped in order are invisible still. The same attempt gets them once more.
bool is_blocked(const Broker& b, const PopQueue& q, std::optional<std::string_view> attempt,
                int64_t& free_ms) {
  if (!q.order) return false;
  if (attempt && !attempt->empty() && *attempt == q.order->attempt_id) return false;
  const int64_t until = q.order->blocked_until_ms();
  if (until <= b.due_clock.wall_ms()) return false;
  free_ms = std::min(free_ms, until);
  return true;
}

Task<void> pop_queue(Broker& b, Popped& p, std::string topic, int32_t queue_id) {
  QueuePointer q = co_await b.pop.open(std::string(p.h.consumer_group), topic, queue_id, p.h.init_mode);
  if (!q) co_return;
  [[maybe_unused]] auto reset = b.offsets.take_reset(p.h.consumer_group, topic, queue_id);
  const int64_t max = b.store.max_offset(topic, queue_id);
  const int64_t rest = std::max<int64_t>(0, max - q->next);
  if (q->busy) {
    p.busy.push_back(q);
    if (!p.h.order) p.rest += rest;
    co_return;
  }
  const auto attempt = p.h.order ? p.h.attempt_id : std::nullopt;
  if (is_blocked(b, *q, attempt, p.free_ms)) co_return;
  const bool too_many = !p.h.order && b.config.enablePopMessageThreshold &&
                        static_cast<int64_t>(q->outstanding()) > b.config.popInflightMessageThreshold;
  if (too_many || p.is_full()) {
    p.rest += rest;
    co_return;
  }
  if (q->next == max) co_return;
  q->busy = true;
  co_await read_queue(b, p, q);
  q->busy = false;
  // Who found it busy meanwhile gets the rest.
  if (q->next < b.store.max_offset(topic, queue_id) && !p.h.order)
    b.pop.polling.wake_one(p.h.topic, p.h.consumer_group, topic == p.h.topic ? queue_id : -1);
}

// ---- all queues ------------------------------------------------------------------------------------------

// In the order of their ids from `first` on, or in that of their priorities.
Task<void> pop_topic(Broker& b, Popped& p, std::string topic, std::optional<uint64_t> first) {
  const proto::TopicConfig* c = b.topics.find(topic);
  const auto queues = c == nullptr ? 0 : static_cast<uint64_t>(c->read_queue_nums);
  const bool from_last = !first && b.config.priorityOrderAsc;
  for (uint64_t i = 0; i < queues; i++) {
    const uint64_t q = from_last ? queues - 1 - i : (first.value_or(0) + i) % queues;
    co_await pop_queue(b, p, topic, static_cast<int32_t>(q));
  }
}

bool goes_by_priority(const Broker& b, const proto::PopMessageRequestHeader& h, uint64_t random) {
  const proto::TopicConfig* topic = b.topics.find(h.topic);
  const proto::SubscriptionGroupConfig* group = b.groups.find(h.consumer_group);
  if (h.order || topic == nullptr || group == nullptr || !is_priority_topic(*topic)) return false;
  return static_cast<int64_t>(random) < priority_factor_of(*group);
}

Task<void> pop_all(Broker& b, Popped& p) {
  std::vector<std::string> retries;
  if (!p.h.order) retries = b.pop.retry_topics(p.h.consumer_group, p.h.topic);
  const uint64_t random = Loop::current().random().below(100);
  const bool by_priority = goes_by_priority(b, p.h, random);
  const int64_t retries_of_hundred =
      by_priority ? b.config.popFromRetryProbabilityForPriority : b.config.popFromRetryProbability;
  const bool retries_first = static_cast<int64_t>(random) < retries_of_hundred;
  const std::optional<uint64_t> first = by_priority ? std::nullopt : std::optional(random);
  for (const std::string& t : retries)
    if (retries_first) co_await pop_topic(b, p, t, first);
  if (p.h.queue_id < 0)
    co_await pop_topic(b, p, std::string(p.h.topic), first);
  else
    co_await pop_queue(b, p, std::string(p.h.topic), p.h.queue_id);
  for (const std::string& t : retries)
    if (!retries_first && !p.is_full()) co_await pop_topic(b, p, t, first);
}

void answer_pop(Broker& b, Request& r, ResponseCode code, Popped& p, const char* reason = nullptr) {
  proto::PopMessageResponseHeader header;
  header.pop_time = p.pop_time_ms;
  header.invisible_time = p.h.invisible_time;
  header.revive_qid = revive_queue_of(p.h);
  header.rest_num = p.rest;
  header.start_offset_info = p.start_info;
  header.msg_offset_info = p.offset_info;
  if (p.h.order) header.order_count_info = p.order_info;
  const GetMessageStatus status =
      code == ResponseCode::SUCCESS ? GetMessageStatus::FOUND : GetMessageStatus::NO_MESSAGE_IN_QUEUE;
  const char* remark = reason != nullptr ? reason : store::name_of(status);
  if (code == ResponseCode::SUCCESS) {
    b.stats.now.get_found++;
    b.stats.now.get_transferred += p.count;
    b.stats_items.add(StatsKind::group_get, p.h.topic, p.h.consumer_group, p.count, p.bytes, b.now_ns());
  } else {
    b.stats.now.get_missed++;
  }
  if (p.rewritten.empty()) {
    size_t bytes = 0;
    for (const store::LogExtent& e : p.extents) bytes += e.bytes().size();
    return r.answer<proto::PopMessage>(code, header, remark, std::move(p.extents), bytes);
  }
  const std::string body = joined(p.extents, p.bytes) + p.rewritten;
  r.answer<proto::PopMessage>(code, header, remark, body);
}

// Nothing found, and nothing that would be found now.
bool may_sleep(const Popped& p) {
  if (p.moved && p.rest > 0) return false;
  return std::ranges::all_of(p.busy, [](const QueuePointer& q) { return q->busy; });
}

bool check_pop(Broker& b, Request& r, const proto::PopMessageRequestHeader& h, int64_t now_ms) {
  auto refuse = [&](ResponseCode code, std::string_view remark) {
    r.answer<proto::PopMessage>(code, {}, remark);
    return false;
  };
  const std::string broker = fmt::format("the broker[{}] ", b.config.brokerIP1);
  const int64_t waited_ms = h.born_time <= 0 ? 0 : now_ms - h.born_time;
  if (waited_ms - 500 > std::max<int64_t>(0, h.poll_time))
    return refuse(ResponseCode::POLLING_TIMEOUT, broker + "pop message is timeout too much");
  if (!proto::perm::is_readable(static_cast<int32_t>(b.config.brokerPermission)))
    return refuse(ResponseCode::NO_PERMISSION, broker + "pop message is forbidden");
  if (h.max_msg_nums > messages_max)
    return refuse(ResponseCode::INVALID_PARAMETER, broker + "pop message's num is greater than 32");
  auto refusal = refusal_of_pop(b, r, h.topic, h.consumer_group, h.queue_id);
  return !refusal || refuse(refusal->code, refusal->remark);
}

}  // namespace

Task<void> pop_message(Broker& b, Request& r, proto::PopMessageRequestHeader h) {
  const int64_t now_ms = b.wall_ms();
  if (!check_pop(b, r, h, now_ms)) co_return;
  auto filter = filter_of_request(b, h.topic, h.exp.value_or(std::string_view{}),
                                  h.exp_type.value_or(std::string_view{}));
  if (!filter) co_return r.answer<proto::PopMessage>(filter.error().code, {}, filter.error().remark);
  b.discard.note_read(h.topic);
  const int64_t deadline_ns = poll_deadline_ns(b, h.born_time, h.poll_time, now_ms);
  const auto room = static_cast<size_t>(b.config.maxTransferBytesOnMessageInMemory);
  bool may_wait = h.poll_time > 0, woken = false;
  for (;;) {
    if (!r.try_take_room(room)) {
      // That takes as long as the client likes, who may be gone before: others may have what woke this one.
      if (woken) b.pop.polling.wake_group(h.topic, h.consumer_group);
      co_await r.take_room(room);
    }
    if (!r.connection().is_open()) co_return;
    b.look_at_clock();
    Popped p(h, b);
    p.filter = filter->wanted();
    if (b.pop.is_full())
      co_return answer_pop(b, r, ResponseCode::POLLING_FULL, p,
                           "more messages are popped and not acknowledged than memoryLimit allows");
    co_await pop_all(b, p);
    if (p.count > 0) {
      auto kept = co_await b.pop.table.kept(b.pop.table.last_change());
      if (!kept) co_return refuse_unkept_pops(r, kept.error());
      co_return answer_pop(b, r, ResponseCode::SUCCESS, p);
    }
    r.give_room_back();
    if (!may_sleep(p)) {
      co_await Yield{};
      continue;
    }
    if (!may_wait || b.stopping.is_set() || b.now_ns() >= deadline_ns)
      co_return answer_pop(b, r, ResponseCode::POLLING_TIMEOUT, p);
    if (!polling_has_room(b, b.pop.polling, h.topic, h.consumer_group, h.queue_id))
      co_return answer_pop(b, r, ResponseCode::POLLING_FULL, p, "too many requests wait");
    r.give_slot_back();
    int64_t wake_ns = deadline_ns;
    if (p.free_ms != INT64_MAX)
      wake_ns = std::min(wake_ns, b.now_ns() + (p.free_ms - b.due_clock.wall_ms()) * ns_per_ms);
    PollEnd end = co_await b.pop.polling.wait(r.connection(), h.topic, h.consumer_group, h.queue_id,
                                              filter->wanted(), wake_ns);
    if (end == PollEnd::closed) co_return;
    woken = end == PollEnd::arrived;
    if (end == PollEnd::timed_out && b.now_ns() >= deadline_ns) may_wait = false;
    if (!check_pop(b, r, h, now_ms)) co_return;  // topic and group may be others by now, or gone
  }
}

}  // namespace rmq::broker

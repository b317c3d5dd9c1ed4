// Idea: see topic_reader.h.

#include "ctl/topic_reader.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>

#include "proto/headers_offset.h"

namespace rmq::ctl {

static constexpr int64_t hold_ms = 15'000;   // how long the broker may hold a pull: as push consumers ask for
static constexpr int64_t grace_ms = 15'000;  // and how much later its answer may come
static constexpr int32_t messages_max = 32;  // of one pull; brokers give no more

Outcome<TopicReader> TopicReader::open(Context& c, ReadPlan plan) {
  TopicReader out(c, std::move(plan));
  auto subscription = proto::SubscriptionData::build(out.plan_.topic, out.plan_.tags);
  if (!subscription)
    return fail(Exit::usage, fmt::format("--tag {}: not a tag expression (TagA || TagB)", out.plan_.tags));
  out.tags_ = subscription->tags_set;
  TRY_VAR(route, c.route(out.plan_.topic));
  TRY(out.add_queues(route));
  for (Cursor& q : out.cursors_) TRY(out.place(q));
  return out;
}

Outcome<size_t> TopicReader::channel_of(const std::string& address, const std::string& broker) {
  for (const Cursor& q : cursors_)
    if (q.address == address) return q.channel;
  TRY_VAR(channel, c_->new_channel(address, broker));
  channels_.push_back(std::move(channel));
  return channels_.size() - 1;
}

Outcome<void> TopicReader::add_queues(const proto::TopicRouteData& route) {
  std::map<std::string_view, const std::string*> addresses;
  for (const proto::BrokerData& b : route.broker_datas) addresses[b.broker_name] = main_address(b);
  for (const proto::QueueData& data : route.queue_datas) {
    auto address = addresses.find(data.broker_name);
    if (address == addresses.end() || !address->second || !proto::perm::is_readable(data.perm)) continue;
    if (!plan_.broker.empty() && plan_.broker != data.broker_name && plan_.broker != *address->second)
      continue;
    for (int32_t id = 0; id < data.read_queue_nums; id++) {
      if (plan_.queue && *plan_.queue != id) continue;
      Cursor q;
      q.broker = data.broker_name;
      q.address = *address->second;
      q.queue_id = id;
      TRY_VAR(channel, channel_of(q.address, q.broker));
      q.channel = channel;
      cursors_.push_back(std::move(q));
    }
  }
  if (!cursors_.empty()) return {};
  return fail(Exit::refused, fmt::format("topic {} has no such readable queue; see \"rmqctl topic route {}\"",
                                         plan_.topic, plan_.topic));
}

Outcome<std::optional<int64_t>> TopicReader::group_offset(Cursor& q) {
  proto::QueryConsumerOffsetRequestHeader h;
  h.consumer_group = plan_.group;
  h.topic = plan_.topic;
  h.queue_id = q.queue_id;
  h.set_zero_if_not_found = false;
  Channel& channel = channels_[q.channel];
  TRY_VAR(reply, channel.call<proto::QueryConsumerOffset>(h));
  if (reply.code() == proto::ResponseCode::QUERY_NOT_FOUND) return std::nullopt;
  if (!reply.ok()) return channel.refusal(reply);
  auto answer = proto::QueryConsumerOffset::decode_response(reply.command);
  if (!answer) return fail(Exit::bad_input, proto::remark_of(answer.error()));
  return answer->offset;
}

template <class C>
static Outcome<int64_t> ask_offset(Channel& channel, const typename C::Request& h) {
  TRY_VAR(reply, channel.ask<C>(h));
  auto answer = C::decode_response(reply.command);
  if (!answer)
    return fail(Exit::bad_input, fmt::format("{}: malformed answer: {}", channel.peer().to_string(),
                                             proto::remark_of(answer.error())));
  return answer->offset;
}

Outcome<int64_t> TopicReader::start_of(Cursor& q, int64_t min) {
  if (plan_.last > 0) return std::max(min, q.max - plan_.last);
  if (!plan_.from && plan_.use_offsets) {
    TRY_VAR(offset, group_offset(q));
    if (offset && *offset >= 0) return *offset;
  }
  Position from = plan_.from.value_or(Position{});
  switch (from.kind) {
    case Position::Kind::earliest:
      return min;
    case Position::Kind::latest:
      return q.max;
    case Position::Kind::offset:
      return std::clamp(from.value, min, q.max);
    case Position::Kind::time:
      break;
  }
  proto::SearchOffsetRequestHeader h;
  h.topic = plan_.topic;
  h.queue_id = q.queue_id;
  h.timestamp = from.value;
  return ask_offset<proto::SearchOffsetByTimestamp>(channels_[q.channel], h);
}

Outcome<void> TopicReader::place(Cursor& q) {
  proto::GetMinOffsetRequestHeader min_header;
  min_header.topic = plan_.topic;
  min_header.queue_id = q.queue_id;
  proto::GetMaxOffsetRequestHeader max_header;
  max_header.topic = plan_.topic;
  max_header.queue_id = q.queue_id;
  TRY_VAR(min, ask_offset<proto::GetMinOffset>(channels_[q.channel], min_header));
  TRY_VAR(max, ask_offset<proto::GetMaxOffset>(channels_[q.channel], max_header));
  q.max = q.end = max;
  TRY_VAR(start, start_of(q, std::max<int64_t>(min, 0)));
  q.next = q.handled = start;
  return {};
}

Outcome<void> TopicReader::pull(Cursor& q) {
  proto::PullMessageRequestHeader h;
  h.consumer_group = plan_.group;
  h.topic = plan_.topic;
  h.queue_id = q.queue_id;
  h.queue_offset = q.next;
  h.max_msg_nums = messages_max;
  h.sys_flag = proto::pull_sys_flag::subscription;
  h.subscription = plan_.sql.empty() ? plan_.tags : plan_.sql;
  h.expression_type = plan_.sql.empty() ? "TAG" : "SQL92";
  q.waiting = plan_.follow && q.next >= q.max;
  if (q.waiting) {
    h.sys_flag |= proto::pull_sys_flag::suspend;
    h.suspend_timeout_millis = hold_ms;
  }
  Channel& channel = channels_[q.channel];
  TRY_VAR(opaque, channel.start<proto::PullMessage>(h));
  q.opaque = opaque;
  q.answer_by = Deadline::after_ms(q.waiting ? hold_ms + grace_ms : channel.timeout_ms());
  return {};
}

std::optional<TopicReader::Item> TopicReader::pop_oldest() {
  Cursor* oldest = nullptr;
  for (Cursor& q : cursors_) {
    if (q.buffer.empty()) {
      if (q.waiting || is_finished(q)) continue;
      return std::nullopt;  // what it will give may be older than what is here
    }
    if (!oldest || q.buffer.front().message.record.store_timestamp_ms <
                       oldest->buffer.front().message.record.store_timestamp_ms)
      oldest = &q;
  }
  if (!oldest) return std::nullopt;
  Item out = std::move(oldest->buffer.front());
  oldest->buffer.pop_front();
  oldest->handled = oldest->buffer.empty() ? oldest->next : out.message.record.queue_offset + 1;
  return out;
}

Outcome<std::optional<TopicReader::Item>> TopicReader::next(std::optional<Deadline> deadline) {
  for (;;) {
    bool all_finished = true;
    for (Cursor& q : cursors_) {
      if (!q.buffer.empty() || q.opaque != 0) all_finished = false;
      if (!q.buffer.empty() || q.opaque != 0 || is_finished(q)) continue;
      all_finished = false;
      TRY(pull(q));
    }
    if (auto item = pop_oldest()) return item;
    if (all_finished || stop_asked()) return std::nullopt;
    if (deadline && deadline->left_ms() == 0) return std::nullopt;
    TRY(wait_for_answers(deadline));
  }
}

Outcome<void> TopicReader::check_patience() const {
  for (const Cursor& q : cursors_) {
    if (q.opaque == 0 || q.answer_by.left_ms() > 0) continue;
    return fail(Exit::unreachable, fmt::format("{}: no answer to a pull of queue {}",
                                               channels_[q.channel].peer().to_string(), q.queue_id));
  }
  return {};
}

Outcome<void> TopicReader::wait_for_answers(std::optional<Deadline> deadline) {
  int64_t wait_ms = 1000;
  if (deadline) wait_ms = std::min(wait_ms, deadline->left_ms());
  std::vector<pollfd> fds;
  for (const Channel& c : channels_) fds.push_back({c.fd(), POLLIN, 0});
  int n = poll(fds.data(), fds.size(), static_cast<int>(wait_ms));
  if (n <= 0) return check_patience();
  for (size_t i = 0; i < fds.size(); i++)
    if (fds[i].revents) TRY(drain(i));
  return {};
}

Outcome<void> TopicReader::drain(size_t channel) {
  for (;;) {
    TRY_VAR(reply, channels_[channel].take());
    if (!reply.frame) return {};
    auto q = std::find_if(cursors_.begin(), cursors_.end(), [&](const Cursor& c) {
      return c.channel == channel && c.opaque == reply.command.opaque;
    });
    if (q == cursors_.end()) continue;
    q->opaque = 0;
    TRY(handle(static_cast<size_t>(q - cursors_.begin()), std::move(reply)));
  }
}

bool TopicReader::wanted(const Message& m) const {
  if (tags_.empty()) return true;  // all of them, or SQL
  return std::find(tags_.begin(), tags_.end(), m.property(proto::prop::TAGS)) != tags_.end();
}

Outcome<void> TopicReader::moved(Cursor& q, int64_t to) {
  // A group whose offset was reset is told so by its first pull, also when it begins there. Once.
  if (to == q.next && !q.told) {
    q.told = true;
    return {};
  }
  if (to == q.next)
    return fail(Exit::bad_input,
                fmt::format("{} says that offset {} of queue {} is not there, and points to it",
                            channels_[q.channel].peer().to_string(), to, q.queue_id));
  c_->note(
      fmt::format("{}/{}: offset {} is not there, reading goes on at {}", q.broker, q.queue_id, q.next, to));
  q.next = q.handled = to;
  return {};
}

Outcome<void> TopicReader::handle(size_t cursor, Reply reply) {
  using enum proto::ResponseCode;
  Cursor& q = cursors_[cursor];
  Channel& channel = channels_[q.channel];
  proto::ResponseCode code = reply.code();
  if (code != SUCCESS && code != PULL_NOT_FOUND && code != PULL_RETRY_IMMEDIATELY &&
      code != PULL_OFFSET_MOVED)
    return channel.refusal(reply);
  auto h = proto::PullMessage::decode_response(reply.command);
  if (!h)
    return fail(Exit::bad_input, fmt::format("{}: malformed answer to a pull: {}", channel.peer().to_string(),
                                             proto::remark_of(h.error())));
  q.max = h->max_offset;
  if (code == PULL_OFFSET_MOVED) return moved(q, h->next_begin_offset);
  q.told = false;
  if (code == PULL_NOT_FOUND) {
    q.end = std::min(q.end, q.next);
    return {};
  }
  if (h->next_begin_offset <= q.next)
    return fail(Exit::bad_input, fmt::format("{} does not get beyond offset {} of queue {}",
                                             channel.peer().to_string(), q.next, q.queue_id));
  int64_t limit = plan_.follow ? INT64_MAX : q.end;
  q.next = std::min(h->next_begin_offset, limit);
  auto owner = std::make_shared<Reply>(std::move(reply));
  TRY_VAR(messages, parse_messages(owner->frame.body(), q.broker));
  for (Message& m : messages)
    if (m.record.queue_offset < limit && wanted(m)) q.buffer.push_back({std::move(m), owner, cursor});
  if (q.buffer.empty()) q.handled = q.next;
  return {};
}

}  // namespace rmq::ctl

// rmqctl group reset, skip and clone: where consumer groups stand, set by a person.

#include <fmt/format.h>

#include "ctl/admin_calls.h"
#include "ctl/group_offsets.h"
#include "ctl/text.h"
#include "proto/bodies_client.h"
#include "proto/headers_admin.h"
#include "proto/headers_push.h"

namespace rmq::ctl {

namespace {

struct Target {
  int64_t timestamp_ms = 0;  // -1: the end
  std::optional<int64_t> offset;
};

// Numbers: with --queue an offset, without it milliseconds since 1970, as mqadmin has them.
Outcome<Target> target_of(Context& c, const std::string& text) {
  auto p = parse_position(text, Context::now_ms());
  if (!p)
    return fail(
        Exit::usage,
        fmt::format(
            "{}: where to must be earliest, latest, a time (\"2026-11-30 04:05\", \"10m ago\"), or with "
            "--queue an offset",
            text));
  switch (p->kind) {
    case Position::Kind::earliest:
      return Target{0, {}};
    case Position::Kind::latest:
      return Target{-1, {}};
    case Position::Kind::time:
      return Target{p->value, {}};
    case Position::Kind::offset:
      break;
  }
  if (c.options().queue) return Target{0, p->value};
  return Target{p->value, {}};
}

// The masters that have the topic, without those that cannot be reached.
Outcome<std::vector<Channel*>> brokers_of(Context& c, const std::string& topic, Undone* undone) {
  TRY_VAR(holders, holders_of(c, topic));
  std::vector<Channel*> out;
  TRY(undone->keep_those(&holders, [&](const BrokerNode& b) -> Outcome<void> {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    out.push_back(channel);
    return {};
  }));
  return out;
}

// Members are at all brokers: those that do not answer are taken out, and the others know as much.
Outcome<void> confirm_when_online(Context& c, std::vector<Channel*>* brokers, Undone* undone,
                                  const std::string& group, std::string_view what) {
  size_t online = 0;
  TRY(undone->keep_those(brokers, [&](Channel* b) -> Outcome<void> {
    TRY_VAR(members, members_at(*b, group));
    if (members) online = std::max(online, members->connection_set.size());
    return {};
  }));
  if (online == 0) return {};
  return c.confirm(fmt::format("Group {} has {} members online, which {}.", group, online, what));
}

Outcome<void> move_to(Context& c, const Target& target, std::string_view what) {
  const std::string &group = c.arg(0), &topic = c.arg(1);
  Undone undone;
  TRY_VAR(brokers, brokers_of(c, topic, &undone));
  TRY(confirm_when_online(c, &brokers, &undone, group, what));
  Table t({{"BROKER", "brokerName"}, {"QUEUE", "queueId"}, {"OFFSET", "offset"}});
  return undone.change(c, brokers, t, [&](Channel* b) -> Outcome<void> {
    proto::ResetOffsetRequestHeader h;
    h.topic = topic;
    h.group = group;
    h.timestamp = target.timestamp_ms;
    h.is_force = true;
    h.offset = target.offset;
    if (c.options().queue) h.queue_id = static_cast<int32_t>(*c.options().queue);
    TRY_VAR(reply, b->ask<proto::InvokeBrokerToResetOffset>(h));
    TRY_VAR(body, parse_body<proto::ResetOffsetBody>(*b, reply, "INVOKE_BROKER_TO_RESET_OFFSET"));
    for (const auto& [queue, offset] : body.offset_table)
      t.add({Cell::text(queue.broker_name), Cell::integer(queue.queue_id), Cell::integer(offset)});
    return {};
  });
}

}  // namespace

Outcome<void> reset_group(Context& c) {
  TRY_VAR(target, target_of(c, c.arg(2)));
  return move_to(c, target, "will go on from there within seconds");
}

Outcome<void> skip_group(Context& c) {
  return move_to(c, Target{-1, {}}, "will not get what is there now");
}

Outcome<void> clone_group(Context& c) {
  const std::string &from = c.arg(0), &to = c.arg(1), &topic = c.arg(2);
  if (auto wrong = proto::invalid_group_remark(to)) return fail(Exit::usage, *wrong);
  Undone undone;
  TRY_VAR(brokers, brokers_of(c, topic, &undone));
  TRY(confirm_when_online(c, &brokers, &undone, to, "may commit other offsets over the copied ones"));
  Table t({{"BROKER", "broker"}, {"FROM", "srcGroup"}, {"TO", "destGroup"}, {"TOPIC", "topic"}});
  return undone.change(c, brokers, t, [&](Channel* b) -> Outcome<void> {
    proto::CloneGroupOffsetRequestHeader h;
    h.src_group = from;
    h.dest_group = to;
    h.topic = topic;
    TRY(b->ask<proto::CloneGroupOffset>(h));
    t.add({Cell::text(to_string(b->peer().address)), Cell::text(from), Cell::text(to), Cell::text(topic)});
    return {};
  });
}

}  // namespace rmq::ctl

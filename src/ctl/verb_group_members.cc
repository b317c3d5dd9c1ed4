// rmqctl group show, mode, running, consume: what a group is configured to, what its members are at, and one
// message given to a member to see what becomes of it.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "ctl/group_members.h"
#include "proto/bodies_config.h"
#include "proto/bodies_running.h"
#include "proto/fastjson.h"
#include "proto/headers_admin.h"
#include "proto/headers_client.h"
#include "proto/headers_push.h"
#include "proto/message_id.h"

namespace rmq::ctl {

namespace {

std::string delays_text(const proto::GroupRetryPolicy& p) {
  if (p.exponential) {
    const proto::ExponentialRetryPolicy e =
        p.exponential_retry_policy.value_or(proto::ExponentialRetryPolicy{});
    return fmt::format("{} times {} up to {}", format_span_ms(e.initial_ms), e.multiplier,
                       format_span_ms(e.max_ms));
  }
  if (!p.customized_next_ms) return "the broker's delay levels";
  std::string out;
  for (int64_t ms : *p.customized_next_ms) out += (out.empty() ? "" : " ") + format_span_ms(ms);
  return out;
}

struct Member {
  Channel* broker = nullptr;
  std::string client_id;
};

// Each member once, with a broker that it is connected to. `wanted`: only that one; empty: all.
Outcome<std::vector<Member>> members_of(Context& c, const std::string& group, const std::string& wanted) {
  TRY_VAR(brokers, c.target_brokers());
  std::vector<Member> out;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY_VAR(online, members_at(*channel, group));
    if (!online) continue;
    for (const proto::Connection& m : online->connection_set) {
      const bool known =
          std::any_of(out.begin(), out.end(), [&](const Member& o) { return o.client_id == m.client_id; });
      if (!known && (wanted.empty() || wanted == m.client_id)) out.push_back({channel, m.client_id});
    }
  }
  if (out.empty())
    return fail(Exit::refused, wanted.empty() ? fmt::format("nobody of the group {} is online", group)
                                              : fmt::format("{} is no member of the group {}, or not online",
                                                            wanted, group));
  return out;
}

Outcome<proto::ConsumerRunningInfo> running_info(const Member& m, const std::string& group, bool jstack) {
  proto::GetConsumerRunningInfoRequestHeader h;
  h.consumer_group = group;
  h.client_id = m.client_id;
  h.jstack_enable = jstack;
  TRY_VAR(reply, m.broker->ask<proto::GetConsumerRunningInfo>(h));
  // The Go client says what is wrong in the remark of a success without a body: a rate of it that is no
  // number yet.
  if (reply.body().empty() && !reply.command.remark.empty())
    return fail(Exit::refused, fmt::format("{} does not tell what it is at: {}", m.client_id,
                                           one_line_remark(reply.command.remark)));
  return parse_body<proto::ConsumerRunningInfo>(*m.broker, reply, "GET_CONSUMER_RUNNING_INFO");
}

Table queues_of(const proto::ConsumerRunningInfo& info) {
  Table t({{"TOPIC", "topic"},
           {"BROKER", "brokerName"},
           {"QUEUE", "queueId"},
           {"OFFSET", "commitOffset"},
           {"CACHED", "cachedMsgCount"},
           {"LOCKED", "locked"},
           {"LAST PULL", "lastPullTimestamp"},
           {"LAST CONSUMED", "lastConsumeTimestamp"}});
  for (const auto& [q, p] : info.mq_table)
    t.add({Cell::text(q.topic), Cell::text(q.broker_name), Cell::integer(q.queue_id),
           Cell::integer(p.commit_offset), Cell::integer(p.cached_msg_count), Cell::boolean(p.locked),
           Cell::moment(p.last_pull_timestamp_ms), Cell::moment(p.last_consume_timestamp_ms)});
  return t;
}

Table rates_of(const proto::ConsumerRunningInfo& info) {
  Table t({{"TOPIC", "topic"},
           {"SUBSCRIPTION", "subString"},
           {"PULLED/s", "pullTPS"},
           {"PULL ms", "pullRT"},
           {"CONSUMED/s", "consumeOKTPS"},
           {"CONSUME ms", "consumeRT"},
           {"FAILED/s", "consumeFailedTPS"},
           {"FAILED IN THE HOUR", "consumeFailedMsgs"}});
  for (const proto::SubscriptionData& s : info.subscription_set) {
    auto found = info.status_table.find(s.topic);
    const proto::ConsumeStatus r = found == info.status_table.end() ? proto::ConsumeStatus{} : found->second;
    t.add({Cell::text(s.topic), Cell::text(s.sub_string), Cell::real(r.pull_tps), Cell::real(r.pull_rt),
           Cell::real(r.consume_ok_tps), Cell::real(r.consume_rt), Cell::real(r.consume_failed_tps),
           Cell::integer(r.consume_failed_msgs)});
  }
  return t;
}

void write_running(proto::JsonWriter& w, const std::string& client_id,
                   const proto::ConsumerRunningInfo& info) {
  w.begin_object();
  w.member("clientId", client_id);
  w.key("properties");
  w.begin_object();
  for (const auto& [key, value] : info.properties) w.member(key, value);
  w.end_object();
  w.key("topics");
  rates_of(info).write_json(w);
  w.key("queues");
  queues_of(info).write_json(w);
  if (!info.jstack.empty()) w.member("jstack", info.jstack);
  w.end_object();
}

}  // namespace

Outcome<void> show_group(Context& c) {
  const std::string& group = c.arg(0);
  TRY_VAR(brokers, c.target_brokers());
  Table t({{brokers.size() > 1 ? "BROKER" : "", "brokerName"}, {"KEY", "key"}, {"VALUE", "value"}});
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    proto::GetSubscriptionGroupConfigRequestHeader h;
    h.group = group;
    TRY_VAR(reply, channel->ask<proto::GetSubscriptiongroupConfig>(h));
    TRY_VAR(g, parse_body<proto::SubscriptionGroupConfig>(*channel, reply, "GET_SUBSCRIPTIONGROUP_CONFIG"));
    const std::string who = b.name.empty() ? b.address : b.name;
    auto add = [&](const char* key, Cell value) {
      t.add({Cell::text(who), Cell::text(key), std::move(value)});
    };
    add("consumeEnable", Cell::boolean(g.consume_enable));
    add("consumeBroadcastEnable", Cell::boolean(g.consume_broadcast_enable));
    add("consumeMessageOrderly", Cell::boolean(g.consume_message_orderly));
    add("retryMaxTimes", Cell::integer(g.retry_max_times));
    add("retryQueueNums", Cell::integer(g.retry_queue_nums));
    add("retryDelays", Cell::text(delays_text(g.group_retry_policy)));
    add("consumeTimeoutMinute", Cell::integer(g.consume_timeout_minute));
    add("notifyConsumerIdsChangedEnable", Cell::boolean(g.notify_consumer_ids_changed_enable));
    for (const auto& [name, value] : g.attributes) add(name.c_str(), Cell::text(value));
  }
  c.print_table(t);
  return {};
}

Outcome<void> set_group_mode(Context& c) {
  proto::SetMessageRequestModeRequestBody body;
  body.consumer_group = c.arg(0);
  body.topic = c.arg(1);
  body.mode = c.arg(2) == "pop" || c.arg(2) == "POP" ? "POP" : "PULL";
  if (body.mode == "PULL" && c.arg(2) != "pull" && c.arg(2) != "PULL")
    return fail(Exit::usage, fmt::format("\"{}\" is neither pull nor pop", c.arg(2)));
  body.pop_share_queue_num = static_cast<int32_t>(c.options().queues.value_or(0));
  TRY_VAR(brokers, c.target_brokers());
  Table t({{"BROKER", "brokerName"}, {"GROUP", "group"}, {"TOPIC", "topic"}, {"MODE", "mode"}});
  return Undone().change(c, brokers, t, [&](const BrokerNode& b) -> Outcome<void> {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY(channel->ask<proto::SetMessageRequestMode>({}, body.to_json()));
    t.add({Cell::text(b.name.empty() ? b.address : b.name), Cell::text(body.consumer_group),
           Cell::text(body.topic), Cell::text(body.mode)});
    return {};
  });
}

std::map<proto::MessageQueue, std::string> owners_of(Context& c, const std::string& group) {
  std::map<proto::MessageQueue, std::string> out;
  auto members = members_of(c, group, "");
  if (!members) return out;
  for (const Member& m : *members)
    if (auto info = running_info(m, group, false))
      for (const auto& [queue, state] : info->mq_table)
        if (!state.dropped) out[queue] = m.client_id;
  return out;
}

Outcome<void> show_running(Context& c) {
  const std::string& group = c.arg(0);
  TRY_VAR(members, members_of(c, group, c.has_arg(1) ? c.arg(1) : ""));
  proto::JsonWriter w(proto::JsonStyle::strict);
  w.begin_array();
  for (const Member& m : members) {
    TRY_VAR(info, running_info(m, group, c.options().jstack));
    if (c.options().json) {
      write_running(w, m.client_id, info);
      continue;
    }
    c.print(fmt::format("{}\n", printable(m.client_id)));
    for (const auto& [key, value] : info.properties)
      c.print(fmt::format("  {} = {}\n", printable(key), printable(value)));
    c.print("\n" + rates_of(info).to_text(Context::now_ms()) + "\n" +
            queues_of(info).to_text(Context::now_ms()));
    if (!info.jstack.empty()) c.print("\n" + printable_lines(info.jstack));
    c.print("\n");
  }
  w.end_array();
  if (c.options().json) c.print(w.take() + "\n");
  return {};
}

Outcome<void> consume_one(Context& c) {
  const std::string& group = c.arg(0);
  const std::string& id = c.arg(1);
  auto parts = proto::parse_offset_id(id);
  if (!parts)
    return fail(Exit::usage, fmt::format("\"{}\" is not an offset message id (32 or 56 hex digits)", id));
  TRY_VAR(members, members_of(c, group, c.has_arg(2) ? c.arg(2) : ""));
  TRY(c.confirm(fmt::format("{} will consume the message once more, whatever its group has consumed already.",
                            members.front().client_id)));
  // The broker that has the message passes it on, so the member must be connected to that one.
  TRY_VAR(channel, c.broker_at(parts->store_host.to_string()));
  proto::ConsumeMessageDirectlyRequestHeader h;
  h.consumer_group = group;
  h.client_id = members.front().client_id;
  h.msg_id = id;
  TRY_VAR(reply, channel->ask<proto::ConsumeMessageDirectly>(h));
  TRY_VAR(result,
          parse_body<proto::ConsumeMessageDirectlyResult>(*channel, reply, "CONSUME_MESSAGE_DIRECTLY"));
  Table t(
      {{"CLIENT", "clientId"}, {"RESULT", "consumeResult"}, {"MS", "spentTimeMills"}, {"REMARK", "remark"}});
  t.add({Cell::text(members.front().client_id), Cell::text(result.consume_result),
         Cell::integer(result.spent_time_ms), Cell::text(result.remark)});
  c.print_table(t);
  return {};
}

}  // namespace rmq::ctl

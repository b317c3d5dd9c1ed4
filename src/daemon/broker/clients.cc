// Heartbeats, leaving, who is connected, queue locks (remoting.md 12.6, 12.7, 16.3), and requests that are
// relayed to a client.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/broker/handlers.h"
#include "proto/bodies_client.h"
#include "proto/bodies_stats.h"
#include "proto/codes.h"
#include "proto/message_id.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

constexpr int64_t relay_timeout_ns = 10 * ns_per_s;
constexpr int64_t ask_all_ns = 3 * ns_per_s;  // who asks for it waits 5 s

ClientChannel channel_of(Broker& b, Request& r, std::string client_id) {
  ClientChannel c;
  c.connection = r.connection().shared_from_this();
  c.client_id = std::move(client_id);
  c.language = r.command.language;
  c.version = r.command.version;
  c.last_update_ns = b.now_ns();
  c.last_update_wall_ms = b.wall_ms();
  return c;
}

proto::Connection shown(const ClientChannel& c) {
  return {c.client_id, c.connection->peer_text(), std::string(proto::name_of(c.language)), c.version};
}

// The group of a consumer's entry, with its retry topic. Null: the entry is left out silently.
Task<const proto::SubscriptionGroupConfig*> prepare_group(Broker& b, const proto::ConsumerData& data) {
  const proto::SubscriptionGroupConfig* g = b.groups.find_or_create(data.group_name, b.wall_ms());
  if (g == nullptr) co_return nullptr;
  b.save_new_groups();
  co_await b.ensure_topic(proto::retry_topic_of(data.group_name), g->retry_queue_nums,
                          proto::perm::read | proto::perm::write,
                          data.unit_mode ? proto::topic_sys_flag::unit_sub : 0);
  co_return b.groups.find(data.group_name);
}

}  // namespace

Task<void> heart_beat(Broker& b, Request& r, proto::EmptyHeader) {
  auto beat = proto::HeartbeatData::parse(r.frame().body_text());
  if (!beat || beat->client_id.empty()) {
    r.reply(ResponseCode::SYSTEM_ERROR, "the heartbeat's body cannot be read");
    co_return;
  }
  bool version2 = beat->heartbeat_fingerprint != 0, sub_change = !version2;
  for (const proto::ConsumerData& data : beat->consumers) {
    if (b.config.rejectPullConsumerEnable && data.consume_type == proto::ConsumeType::CONSUME_ACTIVELY)
      continue;
    const proto::SubscriptionGroupConfig* g = co_await prepare_group(b, data);
    if (g == nullptr || !r.connection().is_open()) continue;
    const ConsumerGroupInfo* before = b.clients.consumers(data.group_name);
    if (version2)
      sub_change |= before == nullptr || before->heartbeat_fingerprint != beat->heartbeat_fingerprint;
    b.clients.register_consumer(data, channel_of(b, r, beat->client_id), beat->without_sub,
                                beat->heartbeat_fingerprint, g->notify_consumer_ids_changed_enable);
    if (!beat->without_sub)
      b.filters.register_group(data.group_name, data.subscription_data_set, b.wall_ms());
  }
  if (r.connection().is_open())
    for (const std::string& group : beat->producer_groups)
      b.clients.register_producer(group, channel_of(b, r, beat->client_id));
  r.answer<proto::HeartBeat>({true, sub_change});
}

void unregister_client(Broker& b, Request& r, proto::UnregisterClientRequestHeader h) {
  if (h.producer_group) b.clients.unregister_producer(*h.producer_group, &r.connection());
  if (h.consumer_group) {
    const auto* g = b.groups.find(*h.consumer_group);
    b.clients.unregister_consumer(*h.consumer_group, &r.connection(),
                                  g == nullptr || g->notify_consumer_ids_changed_enable);
  }
  r.reply(ResponseCode::SUCCESS);
}

void check_client_config(Broker& b, Request& r, proto::EmptyHeader) {
  auto body = proto::CheckClientRequestBody::parse(r.frame().body_text());
  if (!body) return r.reply(ResponseCode::SYSTEM_ERROR, "the body cannot be read");
  const auto& s = body->subscription_data;
  if (!s || s->is_tag_type()) return r.reply(ResponseCode::SUCCESS);
  if (!b.config.enablePropertyFilter)
    return r.reply(ResponseCode::SYSTEM_ERROR,
                   "The broker does not support consumer to filter message by " + s->expression_type);
  auto compiled = b.filters.compile(s->sub_string, s->expression_type);
  if (!compiled)
    return r.reply(ResponseCode::SUBSCRIPTION_PARSE_FAILED,
                   "Invalid MessageSelector. " + compiled.error().to_string());
  r.reply(ResponseCode::SUCCESS);
}

void get_consumer_list_by_group(Broker& b, Request& r, proto::GetConsumerListByGroupRequestHeader h) {
  const ConsumerGroupInfo* g = b.clients.consumers(h.consumer_group);
  if (g == nullptr)
    return r.reply(ResponseCode::SYSTEM_ERROR,
                   fmt::format("no consumer for this group, {}", h.consumer_group));
  r.reply(ResponseCode::SUCCESS, g->list_body());
}

Task<void> lock_batch_mq(Broker& b, Request& r, proto::EmptyHeader) {
  auto body = proto::LockBatchRequestBody::parse(r.frame().body_text());
  if (!body) co_return r.reply(ResponseCode::SYSTEM_ERROR, "the body cannot be read");
  const ConsumerGroupInfo* g = b.clients.consumers(body->consumer_group);
  const bool member = g != nullptr && g->channel_of(body->client_id) != nullptr;
  proto::LockBatchResponseBody granted{
      b.locks.lock(body->consumer_group, body->client_id, body->mq_set, member, b.now_ns())};
  co_await b.locks.save_changes();
  r.reply(ResponseCode::SUCCESS, {}, granted.to_json());
}

Task<void> unlock_batch_mq(Broker& b, Request& r, proto::EmptyHeader) {
  auto body = proto::LockBatchRequestBody::parse(r.frame().body_text());
  if (!body) co_return r.reply(ResponseCode::SYSTEM_ERROR, "the body cannot be read");
  b.locks.unlock(body->consumer_group, body->client_id, body->mq_set);
  co_await b.locks.save_changes();
  r.reply(ResponseCode::SUCCESS);
}

void get_consumer_connection_list(Broker& b, Request& r, proto::GetConsumerConnectionListRequestHeader h) {
  const ConsumerGroupInfo* g = b.clients.consumers(h.consumer_group);
  if (g == nullptr)
    return r.reply(ResponseCode::CONSUMER_NOT_ONLINE,
                   fmt::format("the consumer group[{}] not online", h.consumer_group));
  proto::ConsumerConnection body;
  for (const auto& [c, channel] : g->channels) body.connection_set.push_back(shown(channel));
  body.subscription_table.insert(g->subscriptions.begin(), g->subscriptions.end());
  body.consume_type = g->consume_type;
  body.message_model = g->message_model;
  body.consume_from_where = g->consume_from_where;
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

void get_producer_connection_list(Broker& b, Request& r, proto::GetProducerConnectionListRequestHeader h) {
  auto it = b.clients.all_producers().find(h.producer_group);
  if (it == b.clients.all_producers().end())
    return r.reply(ResponseCode::SYSTEM_ERROR,
                   fmt::format("the producer group[{}] not exist", h.producer_group));
  proto::ProducerConnection body;
  for (const auto& [c, channel] : it->second) body.connection_set.push_back(shown(channel));
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

void get_all_producer_info(Broker& b, Request& r, proto::EmptyHeader) {
  proto::ProducerTableInfo body;
  for (const auto& [group, channels] : b.clients.all_producers())
    for (const auto& [c, channel] : channels)
      body.data[group].push_back({channel.client_id, channel.connection->peer_text(),
                                  std::string(proto::name_of(channel.language)), channel.version,
                                  channel.last_update_wall_ms});
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

namespace {

Task<void> ask_for_status(std::shared_ptr<Connection> client, std::string id,
                          proto::GetConsumerStatusRequestHeader h, int64_t deadline_ns,
                          proto::GetConsumerStatusBody& out) {
  const int32_t opaque = client->next_opaque();
  std::string frame;
  proto::GetConsumerStatusFromClient::append_request(frame, opaque, h);
  auto answer = co_await client->call(std::move(frame), opaque, deadline_ns);
  if (!answer || (*answer)->command.response_code() != ResponseCode::SUCCESS) co_return;
  auto body = proto::GetConsumerStatusBody::parse((*answer)->frame.body_text());
  if (body) out.consumer_table[id] = std::move(body->message_queue_table);
}

}  // namespace

// Where each member is, as it says itself; who does not answer in time is left out.
Task<void> get_consumer_status(Broker& b, Request& r, proto::GetConsumerStatusRequestHeader h) {
  const ConsumerGroupInfo* g = b.clients.consumers(h.group);
  if (g == nullptr)
    co_return r.reply(ResponseCode::SYSTEM_ERROR,
                      fmt::format("No Any Consumer online in the consumer group: [{}]", h.group));
  const std::string_view only = h.client_addr.value_or(std::string_view{});
  proto::GetConsumerStatusBody body;
  Scope asking;
  std::vector<ClientChannel> members;  // some may leave meanwhile
  for (const auto& [c, channel] : g->channels) members.push_back(channel);
  for (const ClientChannel& channel : members) {
    if (!only.empty() && channel.client_id != only) continue;
    asking.spawn(ask_for_status(channel.connection, channel.client_id, h, b.now_ns() + ask_all_ns, body));
  }
  co_await asking.join();
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

// Asks a member of the group what the request asks, and answers with what it says.
template <class Cmd>
static Task<void> relay(Broker& b, Request& r, const typename Cmd::Request& h, std::string client_id,
                        std::string_view body) {
  const ConsumerGroupInfo* g = b.clients.consumers(h.consumer_group);
  const ClientChannel* channel = g == nullptr ? nullptr : g->channel_of(client_id);
  if (channel == nullptr)
    co_return r.reply(ResponseCode::SYSTEM_ERROR,
                      fmt::format("The Consumer <{}> <{}> not online", h.consumer_group, client_id));
  std::shared_ptr<Connection> client = channel->connection;
  int32_t opaque = client->next_opaque();
  std::string frame;
  Cmd::append_request(frame, opaque, h, body);
  auto answer = co_await client->call(std::move(frame), opaque, b.now_ns() + relay_timeout_ns);
  if (!answer)
    co_return r.reply(
        ResponseCode::CONSUME_MSG_TIMEOUT,
        fmt::format("consumer <{}> <{}> {}", h.consumer_group, client_id, to_string(answer.error())));
  r.reply((*answer)->command.response_code(), (*answer)->command.remark, (*answer)->frame.body_text());
}

Task<void> get_consumer_running_info(Broker& b, Request& r, proto::GetConsumerRunningInfoRequestHeader h) {
  co_await relay<proto::GetConsumerRunningInfo>(b, r, h, std::string(h.client_id), r.frame().body_text());
}

// The member consumes one stored message, whatever its offset says, and tells how that went.
Task<void> consume_message_directly(Broker& b, Request& r, proto::ConsumeMessageDirectlyRequestHeader h) {
  const auto id = proto::parse_offset_id(h.msg_id.value_or(std::string_view{}));
  if (!id) co_return r.reply(ResponseCode::INVALID_PARAMETER, "msgId is not the id of a stored message");
  auto record = co_await b.store.record_at(id->physical_offset);
  if (!record)
    co_return r.reply(ResponseCode::SYSTEM_ERROR,
                      fmt::format("can not find message by offset: {}", id->physical_offset));
  h.broker_name = b.config.brokerName;
  const proto::TopicConfig* topic = b.topics.find(h.topic.value_or(std::string_view{}));
  if (topic != nullptr) h.topic_sys_flag = topic->topic_sys_flag;
  const proto::SubscriptionGroupConfig* group = b.groups.find(h.consumer_group);
  if (group != nullptr) h.group_sys_flag = group->group_sys_flag;
  const std::string client_id(h.client_id.value_or(std::string_view{}));
  co_await relay<proto::ConsumeMessageDirectly>(b, r, h, client_id, as_text(record->bytes()));
}

}  // namespace rmq::broker

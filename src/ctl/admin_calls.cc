#include "ctl/admin_calls.h"

#include <algorithm>
#include <array>

#include "proto/headers_admin.h"
#include "proto/headers_client.h"

namespace rmq::ctl {

bool Silent::passes_over(const std::string& address, const Failure& f) {
  if (f.exit != Exit::unreachable) return false;
  failures_.emplace(address, f.text);
  return true;
}

Outcome<void> Silent::result() const {
  if (failures_.empty()) return {};
  std::string text;
  for (const auto& [address, why] : failures_) text += (text.empty() ? "" : "; ") + why;
  return fail(Exit::unreachable, std::move(text));
}

Outcome<void> Undone::result() const {
  if (failures_.empty()) return {};
  Failure all = failures_.front();
  for (size_t i = 1; i < failures_.size(); i++) all.text += "; " + failures_[i].text;
  return std::unexpected(std::move(all));
}

// Lines of "key=value" as Java writes properties: comments, escapes of '=', ':', '\' and \uXXXX.
static std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    char c = text[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
  }
  return out;
}

std::vector<KeyValue> parse_properties(std::string_view text) {
  std::vector<KeyValue> out;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    auto eq = line.find('=');
    if (line.empty() || line[0] == '#' || line[0] == '!' || eq == std::string_view::npos) continue;
    out.push_back({std::string(line.substr(0, eq)), unescaped(line.substr(eq + 1))});
  }
  return out;
}

std::string property_line(std::string_view key, std::string_view value) {
  std::string out = std::string(key) + "=";
  for (char c : value) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\n";
}

bool is_property_key(std::string_view key) {
  return !key.empty() && key.find_first_of("=:# \n\\") == std::string_view::npos;
}

Outcome<std::vector<KeyValue>> runtime_values_at(Channel& broker) {
  TRY_VAR(reply, broker.ask<proto::GetBrokerRuntimeInfo>({}));
  TRY_VAR(body, parse_body<proto::KVTable>(broker, reply, "GET_BROKER_RUNTIME_INFO"));
  std::vector<KeyValue> out;
  for (auto& [key, value] : body.table) out.push_back({key, value});
  return out;
}

Outcome<std::vector<KeyValue>> config_values_at(Channel& broker) {
  TRY_VAR(reply, broker.ask<proto::GetBrokerConfig>({}));
  return parse_properties(reply.body());
}

std::string_view value_of(const std::vector<KeyValue>& values, std::string_view key) {
  auto found = std::find_if(values.begin(), values.end(), [&](const KeyValue& v) { return v.key == key; });
  return found == values.end() ? std::string_view() : std::string_view(found->value);
}

// "cannot reach PEER at ADDRESS: REASON; ADVICE"
std::string connect_reason(const Failure& f) {
  const std::string_view text = f.text;
  const auto from = text.find(": "), to = text.rfind("; ");
  if (f.exit != Exit::unreachable || from == std::string_view::npos || to == std::string_view::npos ||
      to < from)
    return f.text;
  return std::string(text.substr(from + 2, to - from - 2));
}

Outcome<std::optional<proto::TopicConfig>> topic_config_at(Channel& broker, std::string_view topic) {
  proto::GetTopicConfigRequestHeader h;
  h.topic = topic;
  TRY_VAR(reply, broker.call<proto::GetTopicConfig>(h));
  if (reply.code() == proto::ResponseCode::TOPIC_NOT_EXIST) return std::nullopt;
  if (!reply.ok()) return broker.refusal(reply);
  TRY_VAR(config, parse_body<proto::TopicConfig>(broker, reply, "GET_TOPIC_CONFIG"));
  return std::move(config);
}

Outcome<void> put_topic_at(Channel& broker, const proto::TopicConfig& config, const std::string& attributes) {
  proto::CreateTopicRequestHeader h;
  h.topic = config.topic_name;
  h.default_topic = proto::names::TBW102;
  h.read_queue_nums = config.read_queue_nums;
  h.write_queue_nums = config.write_queue_nums;
  h.perm = config.perm;
  h.topic_filter_type = config.multi_tag ? "MULTI_TAG" : "SINGLE_TAG";
  h.topic_sys_flag = config.topic_sys_flag;
  h.order = config.order;
  if (!attributes.empty()) h.attributes = attributes;
  TRY(broker.ask<proto::UpdateAndCreateTopic>(h));
  return {};
}

std::vector<BrokerNode> topic_holders(const proto::TopicRouteData& route, const Options& o) {
  std::vector<BrokerNode> out;
  for (const proto::BrokerData& b : route.broker_datas) {
    auto master = b.broker_addrs.find(0);
    if (master == b.broker_addrs.end()) continue;
    if (!o.cluster.empty() && b.cluster != o.cluster) continue;
    if (!o.broker.empty() && b.broker_name != o.broker && master->second != o.broker) continue;
    out.push_back({b.cluster, b.broker_name, master->second, 0});
  }
  return out;
}

Outcome<std::vector<BrokerNode>> holders_of(Context& c, const std::string& topic) {
  TRY_VAR(route, c.route(topic));
  auto out = topic_holders(route, c.options());
  if (out.empty())
    return fail(Exit::refused, "no master there has topic " + topic,
                static_cast<int32_t>(proto::ResponseCode::TOPIC_NOT_EXIST));
  return out;
}

Outcome<std::optional<proto::ConsumerConnection>> members_at(Channel& broker, std::string_view group) {
  proto::GetConsumerConnectionListRequestHeader h;
  h.consumer_group = group;
  TRY_VAR(reply, broker.call<proto::GetConsumerConnectionList>(h));
  if (reply.code() == proto::ResponseCode::CONSUMER_NOT_ONLINE) return std::nullopt;
  if (!reply.ok()) return broker.refusal(reply);
  TRY_VAR(body, parse_body<proto::ConsumerConnection>(broker, reply, "GET_CONSUMER_CONNECTION_LIST"));
  return std::move(body);
}

Outcome<proto::TopicConfigTable> topics_at(Channel& broker) {
  TRY_VAR(reply, broker.ask<proto::GetAllTopicConfig>({}));
  TRY_VAR(body, parse_body<proto::TopicConfigSerializeWrapper>(broker, reply, "GET_ALL_TOPIC_CONFIG"));
  return std::move(body.topic_config_table);
}

Outcome<proto::SubscriptionGroupTable> groups_at(Channel& broker) {
  TRY_VAR(reply, broker.ask<proto::GetAllSubscriptiongroupConfig>({}));
  TRY_VAR(body,
          parse_body<proto::SubscriptionGroupWrapper>(broker, reply, "GET_ALL_SUBSCRIPTIONGROUP_CONFIG"));
  return std::move(body.subscription_group_table);
}

bool is_made_by_brokers(std::string_view topic, const std::vector<std::string>& servers) {
  return proto::is_system_topic(topic) || proto::is_retry_topic(topic) || proto::is_dlq_topic(topic) ||
         topic.ends_with(proto::names::reply_topic_suffix) || topic.ends_with("_REPLY_TOPIC") ||
         std::find(servers.begin(), servers.end(), topic) != servers.end();
}

bool is_group_of_brokers(std::string_view group) {
  static constexpr std::array builtin = {
      proto::names::TOOLS_CONSUMER,        proto::names::FILTERSRV_CONSUMER,
      proto::names::SELF_TEST_C_GROUP,     std::string_view("CID_ONS-HTTP-PROXY"),
      std::string_view("CID_ONSAPI_PULL"), std::string_view("CID_ONSAPI_PERMISSION"),
      std::string_view("CID_ONSAPI_OWNER")};
  return proto::is_system_group(group) || std::find(builtin.begin(), builtin.end(), group) != builtin.end();
}

Outcome<std::vector<std::string>> server_names(Context& c) {
  TRY_VAR(info, c.cluster_info());
  std::vector<std::string> out;
  for (const auto& [cluster, names] : info.cluster_addr_table) {
    out.push_back(cluster);
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

Outcome<std::vector<Behind>> behind_at(Channel& broker, const std::string& group, const std::string& topic) {
  proto::GetConsumeStatsRequestHeader h;
  h.consumer_group = group;
  // By the list also of a group whose members subscribe to other topics now; brokers before 5.4 know it not.
  if (!topic.empty()) h.topic = h.topic_list = topic;
  TRY_VAR(reply, broker.call<proto::GetConsumeStats>(h));
  using enum proto::ResponseCode;
  if (reply.code() == TOPIC_NOT_EXIST || reply.code() == SUBSCRIPTION_GROUP_NOT_EXIST)
    return std::vector<Behind>{};
  if (!reply.ok()) return broker.refusal(reply);
  TRY_VAR(stats, parse_body<proto::ConsumeStats>(broker, reply, "GET_CONSUME_STATS"));
  std::vector<Behind> out;
  for (const auto& [queue, offsets] : stats.offset_table) {
    if ((!topic.empty() && queue.topic != topic) || offsets.broker_offset <= offsets.consumer_offset)
      continue;
    TRY_VAR(min, queue_offset<proto::GetMinOffset>(broker, queue.topic, queue.queue_id));
    const int64_t left = offsets.broker_offset - std::max(offsets.consumer_offset, min);
    if (left > 0) out.push_back({queue, left});
  }
  return out;
}

}  // namespace rmq::ctl

#include "ctl/lists.h"

#include <fmt/format.h>

#include "ctl/files.h"
#include "proto/bodies_config.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

// The array of a file as the member of a request's body.
template <class Body>
Outcome<Body> list_of(const std::string& path, std::string_view member) {
  TRY_VAR(text, read_file(path));
  auto body = Body::parse(fmt::format("{{\"{}\":{}}}", member, text));
  if (!body)
    return fail(Exit::bad_input,
                fmt::format("{} does not hold a JSON array of them: {}", path, rmq::to_string(body.error())));
  return std::move(*body);
}

template <class Command, class Body>
Outcome<void> tell(Context& c, const Body& body, size_t count, const char* what, const char* member) {
  TRY_VAR(brokers, c.target_brokers());
  Table t({{"BROKER", "brokerName"}, {what, member}});
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    TRY(channel->ask<Command>({}, body.to_json()));
    t.add({Cell::text(b.name.empty() ? b.address : b.name), Cell::integer(static_cast<int64_t>(count))});
  }
  c.print_table(t);
  return {};
}

}  // namespace

Outcome<void> load_topics(Context& c) {
  TRY_VAR(body, list_of<proto::TopicConfigList>(c.arg(0), "topicConfigList"));
  for (const proto::TopicConfig& t : body.topic_config_list)
    if (auto wrong = proto::invalid_topic_remark(t.topic_name))
      return fail(Exit::bad_input, fmt::format("{}: {}", c.arg(0), *wrong));
  return tell<proto::UpdateAndCreateTopicList>(c, body, body.topic_config_list.size(), "TOPICS", "topics");
}

Outcome<void> load_groups(Context& c) {
  TRY_VAR(body, list_of<proto::SubscriptionGroupList>(c.arg(0), "groupConfigList"));
  for (const proto::SubscriptionGroupConfig& g : body.group_config_list)
    if (auto wrong = proto::invalid_group_remark(g.group_name))
      return fail(Exit::bad_input, fmt::format("{}: {}", c.arg(0), *wrong));
  return tell<proto::UpdateAndCreateSubscriptiongroupList>(c, body, body.group_config_list.size(), "GROUPS",
                                                           "groups");
}

}  // namespace rmq::ctl

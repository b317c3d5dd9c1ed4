// rmqctl message: one message by its id, by its unique id, by a key or by its place in a queue.

#include <fmt/format.h>

#include "ctl/context.h"
#include "ctl/message_view.h"
#include "ctl/queue_scan.h"
#include "proto/fastjson.h"
#include "proto/headers_pull.h"
#include "proto/message_id.h"

namespace rmq::ctl {

namespace {

struct Found {
  Reply owner;
  std::vector<Message> messages;
};

Outcome<void> show(Context& c, const std::vector<Message>& messages) {
  if (c.options().json) {
    proto::JsonWriter w(proto::JsonStyle::strict);
    w.begin_array();
    for (const Message& m : messages) write_message_json(w, m);
    w.end_array();
    c.print(w.take() + "\n");
    return {};
  }
  for (size_t i = 0; i < messages.size(); i++) {
    if (i > 0) c.print("\n");
    c.print(message_page(messages[i], Context::now_ms(), c.options().hex));
  }
  return {};
}

// The id itself says at which broker and where in its CommitLog the message lies.
Outcome<void> by_offset_id(Context& c, const std::string& id) {
  auto parts = proto::parse_offset_id(id);
  if (!parts)
    return fail(Exit::usage,
                fmt::format("\"{}\" is not an offset message id (32 or 56 hex digits); for a key or "
                            "a unique id add --topic",
                            id));
  const std::string& broker = c.options().broker;
  TRY_VAR(channel, c.broker_at(broker.empty() ? parts->store_host.to_string() : broker));
  proto::ViewMessageRequestHeader h;
  if (!c.options().topic.empty()) h.topic = c.options().topic;
  h.offset = parts->physical_offset;
  TRY_VAR(reply, channel->ask<proto::ViewMessageById>(h));
  TRY_VAR(messages, parse_messages(reply.frame.body(), ""));
  if (messages.empty()) return fail(Exit::refused, fmt::format("there is no message {}", id));
  return show(c, messages);
}

// Index look-ups give what has the same hash; which of them has the key is for the client to see.
bool has_key(const Message& m, std::string_view key, bool unique) {
  if (unique) return m.property(proto::prop::UNIQ_KEY) == key;
  std::string_view keys = m.property(proto::prop::KEYS);
  while (!keys.empty()) {
    auto end = keys.find(' ');
    if (keys.substr(0, end) == key) return true;
    keys = end == std::string_view::npos ? std::string_view() : keys.substr(end + 1);
  }
  return false;
}

Outcome<void> look_up(Context& c, const std::string& topic, std::string_view key, bool unique,
                      std::vector<Found>* out) {
  TRY_VAR(route, c.route(topic));
  TRY_VAR(from, Context::moment_ms(c.options().from, "--from", 0));
  TRY_VAR(to, Context::moment_ms(c.options().to, "--to", INT64_MAX));
  for (const proto::BrokerData& b : route.broker_datas) {
    const std::string* address = main_address(b);
    if (!address) continue;
    TRY_VAR(channel, c.broker_at(*address, b.broker_name));
    proto::QueryMessageRequestHeader h;
    h.topic = topic;
    h.key = key;
    h.max_num = static_cast<int32_t>(c.options().count.value_or(64));
    h.begin_timestamp = from;
    h.end_timestamp = to;
    if (unique) h.unique_key_query = true;
    TRY_VAR(reply, channel->call<proto::QueryMessage>(h));
    if (reply.code() == proto::ResponseCode::QUERY_NOT_FOUND) continue;
    if (!reply.ok()) return channel->refusal(reply);
    TRY_VAR(messages, parse_messages(reply.frame.body(), b.broker_name));
    std::erase_if(messages, [&](const Message& m) { return !has_key(m, key, unique); });
    if (!messages.empty()) out->push_back({std::move(reply), std::move(messages)});
  }
  return {};
}

Outcome<void> message(Context& c) {
  const Options& o = c.options();
  const std::string& id = c.arg(0);
  if (o.topic.empty()) return by_offset_id(c, id);
  std::vector<Found> found;
  TRY(look_up(c, o.topic, id, true, &found));
  if (found.empty()) TRY(look_up(c, o.topic, id, false, &found));
  // Offset ids look like unique ids; and a message may not be indexed.
  if (found.empty() && proto::parse_offset_id(id)) {
    if (auto by_id = by_offset_id(c, id); by_id) return by_id;
  }
  if (found.empty())
    return fail(Exit::refused, fmt::format("topic {} has no message with the id or key \"{}\"", o.topic, id));
  std::vector<Message> all;
  for (Found& f : found)
    for (Message& m : f.messages) all.push_back(std::move(m));
  return show(c, all);
}

Outcome<BrokerNode> broker_of(Context& c, const std::string& topic, const std::string& name) {
  if (name.find(':') != std::string::npos) return BrokerNode{"", "", name, 0};
  TRY_VAR(route, c.route(topic));
  for (const proto::BrokerData& b : route.broker_datas)
    if (const std::string* address = main_address(b); address && b.broker_name == name)
      return BrokerNode{b.cluster, name, *address, 0};
  return fail(Exit::refused, fmt::format("broker {} does not have topic {}", name, topic));
}

Outcome<void> message_at(Context& c) {
  TRY_VAR(broker, broker_of(c, c.arg(0), c.arg(1)));
  TRY_VAR(queue, parse_number(c.arg(2), "the number of a queue", INT32_MAX));
  TRY_VAR(offset, parse_number(c.arg(3), "a queue offset"));
  TRY_VAR(scan, QueueScan::open(c, broker, c.arg(0), static_cast<int32_t>(queue), offset));
  TRY_VAR(item, scan.next());
  if (!item || item->message.record.queue_offset != offset)
    return fail(
        Exit::refused,
        fmt::format("there is no message at offset {}; the queue ends at {}{}", offset, scan.queue_end(),
                    scan.queue_begin() > offset ? fmt::format(" and begins at {}", scan.queue_begin())
                                                : std::string()));
  std::vector<Message> one;
  one.push_back(std::move(item->message));
  return show(c, one);
}

constexpr OptionSpec message_options[] = {
    {"-t,--topic", "TOPIC", &Options::topic, "look for a unique id or a key, in this topic"},
    {"-b,--broker", "HOST:PORT", &Options::broker, "ask this broker instead of the one that the id names"},
    {"--count", "N", &Options::count, "of a key at most N messages of each broker (default 64)", 1, 10'000},
    {"--from", "TIME", &Options::from, "of a key: only what was stored from then on"},
    {"--to", "TIME", &Options::to, "of a key: only what was stored until then"},
    {"--hex", nullptr, &Options::hex, "show the body as hex, also when it is text"},
};
constexpr OptionSpec at_options[] = {
    {"--hex", nullptr, &Options::hex, "show the body as hex, also when it is text"},
};

constexpr Verb verbs[] = {
    {"message", "ID", 1, 1, message_options, message,
     "show a message by its id or a key, with everything in it",
     "ID is an offset message id (as send prints it; it names the broker and the place in its CommitLog), "
     "or, "
     "with --topic, a unique id (UNIQ_KEY) or a key (KEYS)."},
    {"message at", "TOPIC BROKER QUEUE OFFSET", 4, 4, at_options, message_at,
     "show the message at an offset of a queue", "BROKER is a name, or HOST:PORT."},
};

}  // namespace

std::span<const Verb> message_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

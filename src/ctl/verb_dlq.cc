// rmqctl dlq: messages that a consumer group gave up on, and sending them again. What was sent again carries
// where it came from (DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID) and its unique id; by these a repeated resend
// sees what is done already, whoever did it.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "ctl/admin_calls.h"
#include "ctl/broker_work.h"
#include "ctl/context.h"
#include "ctl/queue_scan.h"
#include "ctl/sender.h"
#include "proto/bodies_config.h"
#include "proto/codes.h"
#include "proto/fastjson.h"
#include "proto/headers_admin.h"
#include "proto/headers_pull.h"
#include "proto/headers_send.h"
#include "proto/properties.h"

namespace rmq::ctl {

namespace {

namespace names = proto::names;
namespace prop = proto::prop;
using proto::ResponseCode;

constexpr int64_t progress_every_ms = 500;
constexpr int32_t same_key_max = 64;

// ---- listing -----------------------------------------------------------------------------------------

Outcome<std::set<std::string>> dead_letter_topics(Context& c, const BrokerNode& b) {
  TRY_VAR(channel, c.broker_at(b.address, b.name));
  TRY_VAR(topics, topics_at(*channel));
  std::set<std::string> out;
  for (const auto& [name, config] : topics)
    if (proto::is_dlq_topic(name)) out.insert(name);
  return out;
}

Outcome<void> list(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  Table t({{"GROUP", "group"},
           {"MESSAGES", "messages"},
           {"OLDEST", "oldestTimestamp"},
           {"NEWEST", "newestTimestamp"},
           {"BROKER", "brokerName"},
           {"", "topic"}});
  for (const BrokerNode& b : brokers) {
    TRY_VAR(topics, dead_letter_topics(c, b));
    for (const std::string& topic : topics) {
      TRY_VAR(oldest, QueueScan::open(c, b, topic, 0, 0));
      if (oldest.begin() == oldest.end()) continue;
      TRY_VAR(newest, QueueScan::open(c, b, topic, 0, oldest.end() - 1));
      TRY_VAR(first, oldest.next());
      TRY_VAR(last, newest.next());
      t.add({Cell::text(topic.substr(names::dlq_prefix.size())), Cell::integer(oldest.end() - oldest.begin()),
             first ? Cell::moment(first->message.record.store_timestamp_ms) : Cell::none(),
             last ? Cell::moment(last->message.record.store_timestamp_ms) : Cell::none(), Cell::text(b.name),
             Cell::text(topic)});
    }
  }
  c.print_table(t);
  return {};
}

// ---- choosing ----------------------------------------------------------------------------------------

struct Choice {
  int64_t from_ms = 0, to_ms = INT64_MAX;
  std::set<std::string, std::less<>> ids;  // empty: all

  bool takes(const Message& m) const {
    if (m.record.store_timestamp_ms < from_ms || m.record.store_timestamp_ms > to_ms) return false;
    return ids.empty() || ids.contains(m.property(prop::UNIQ_KEY)) || ids.contains(m.offset_id());
  }
};

Outcome<int64_t> moment_of(std::string_view text, const char* option, int64_t otherwise) {
  if (text.empty()) return otherwise;
  auto ms = parse_time_ms(text, Context::now_ms());
  if (!ms)
    return fail(Exit::usage, fmt::format("{} {}: it must be a time, like \"2026-11-30 04:05\" or \"10m ago\"",
                                         option, text));
  return *ms;
}

Outcome<Choice> choice_of(Context& c) {
  const Options& o = c.options();
  Choice choice;
  TRY_VAR(from, moment_of(o.from, "--from", 0));
  TRY_VAR(to, moment_of(o.to, "--to", INT64_MAX));
  choice.from_ms = from;
  choice.to_ms = to;
  for (size_t i = 1; c.has_arg(i); i++) choice.ids.insert(c.arg(i));
  return choice;
}

// Calls `take` with every chosen message, broker by broker, oldest first.
template <class Take>
Outcome<void> each_chosen(Context& c, const Choice& choice, Take take) {
  if (auto wrong = proto::invalid_group_remark(c.arg(0))) return fail(Exit::usage, "GROUP: " + *wrong);
  TRY_VAR(brokers, c.target_brokers());
  for (const BrokerNode& b : brokers) {
    TRY_VAR(scan, QueueScan::open(c, b, proto::dlq_topic_of(c.arg(0)), 0, 0));
    for (;;) {
      TRY_VAR(item, scan.next());
      if (!item || stop_asked()) break;
      if (choice.takes(item->message)) TRY(take(item->message));
    }
  }
  return {};
}

Outcome<void> show(Context& c) {
  TRY_VAR(choice, choice_of(c));
  int64_t left = c.options().count.value_or(INT64_MAX);
  const bool pages = !choice.ids.empty() && !c.options().json;
  return each_chosen(c, choice, [&](const Message& m) -> Outcome<void> {
    if (left-- <= 0) return {};
    c.print(c.options().json ? message_json_line(m)
            : pages          ? message_page(m, Context::now_ms(), c.options().hex)
                             : message_line(m));
    return {};
  });
}

// ---- sending again -----------------------------------------------------------------------------------

// Not of the message itself: what its way through retries and brokers left on it.
bool is_left_out(std::string_view name) {
  static constexpr std::string_view out[] = {prop::RETRY_TOPIC,
                                             prop::ORIGIN_MESSAGE_ID,
                                             prop::RECONSUME_TIME,
                                             prop::MAX_RECONSUME_TIMES,
                                             prop::DELAY,
                                             prop::REAL_TOPIC,
                                             prop::REAL_QID,
                                             prop::WAIT,
                                             prop::MIN_OFFSET,
                                             prop::MAX_OFFSET,
                                             prop::CLUSTER,
                                             prop::MSG_REGION,
                                             prop::TRACE_ON,
                                             prop::TRAN_MSG,
                                             prop::PGROUP,
                                             prop::TRANSACTION_ID,
                                             prop::DLQ_ORIGIN_TOPIC,
                                             prop::DLQ_ORIGIN_MESSAGE_ID,
                                             prop::POP_CK,
                                             prop::FIRST_POP_TIME,
                                             "CONSUME_START_TIME"};
  return name.starts_with("TIMER_") || std::find(std::begin(out), std::end(out), name) != std::end(out);
}

class Resender {
 public:
  Resender(Context& c, int64_t chosen) : c_(c), chosen_(chosen) {}

  Outcome<void> resend(const Message& m) {
    auto done = try_resend(m);
    if (!done) {
      if (done.error().exit == Exit::unreachable || no_index_) return std::unexpected(done.error());
      failed_++;
      c_.note(fmt::format("message {}: {}", m.offset_id(), done.error().text));
    } else if (*done) {
      sent_++;
    } else {
      repeated_++;
    }
    progress();
    return {};
  }

  Outcome<void> finish() {
    if (Context::stderr_is_terminal()) fmt::print(stderr, "\r\x1b[K");
    if (c_.options().json) {
      proto::JsonWriter w(proto::JsonStyle::strict);
      w.begin_object();
      w.member("chosen", chosen_);
      w.member("failed", failed_);
      w.member("resent", sent_);
      w.member("resentBefore", repeated_);
      w.end_object();
      c_.print(w.take() + "\n");
    } else {
      c_.print(fmt::format("{} sent again, {} had been before, {} failed, of {}\n", sent_, repeated_, failed_,
                           chosen_));
    }
    if (failed_ > 0) return fail(Exit::refused, fmt::format("{} messages could not be sent again", failed_));
    if (sent_ + repeated_ < chosen_)
      return fail(Exit::refused, "stopped; the same command goes on with the rest");
    return {};
  }

 private:
  // False: it had been sent before.
  Outcome<bool> try_resend(const Message& m) {
    std::string topic(m.property(prop::RETRY_TOPIC));
    std::string key(m.property(prop::UNIQ_KEY));
    if (topic.empty())
      return fail(Exit::refused, "it does not say its topic (RETRY_TOPIC); read it with \"rmqctl dlq show\"");
    if (key.empty())
      return fail(Exit::refused,
                  "it has no unique id (UNIQ_KEY), by which to see whether it was sent before");
    TRY_VAR(before, was_resent(topic, key, m.offset_id()));
    if (before) return false;
    TRY(send(m, topic));
    return true;
  }

  Outcome<bool> was_resent(const std::string& topic, const std::string& key, const std::string& id) {
    auto route = c_.route(topic);
    if (!route && route.error().response_code == static_cast<int32_t>(ResponseCode::TOPIC_NOT_EXIST))
      return false;
    if (!route) return std::unexpected(route.error());
    for (const proto::BrokerData& b : route->broker_datas) {
      const std::string* address = main_address(b);
      if (address == nullptr) continue;
      TRY_VAR(channel, c_.broker_at(*address, b.broker_name));
      TRY(look_for_index(*channel, *address, b.broker_name));
      proto::QueryMessageRequestHeader h;
      h.topic = topic;
      h.key = key;
      h.max_num = same_key_max;
      h.end_timestamp = INT64_MAX;
      h.unique_key_query = true;
      TRY_VAR(reply, channel->call<proto::QueryMessage>(h));
      if (reply.code() == ResponseCode::QUERY_NOT_FOUND) continue;
      if (!reply.ok()) return channel->refusal(reply);
      TRY_VAR(messages, parse_messages(reply.frame.body(), b.broker_name));
      for (const Message& m : messages)
        if (m.property(prop::UNIQ_KEY) == key && m.property(prop::DLQ_ORIGIN_MESSAGE_ID) == id) return true;
    }
    return false;
  }

  // A broker without an index finds nothing: a repeated resend would double everything.
  Outcome<void> look_for_index(Channel& channel, const std::string& address, const std::string& broker) {
    if (indexed_.contains(address)) return {};
    TRY_VAR(reply, channel.ask<proto::GetBrokerConfig>({}));
    const std::string config = "\n" + std::string(reply.body());
    no_index_ = config.find("\nmessageIndexEnable=false") != std::string::npos;
    if (no_index_)
      return fail(Exit::refused,
                  fmt::format("broker {} keeps no index (messageIndexEnable=false), by which to see what was "
                              "sent again before",
                              broker));
    indexed_.insert(address);
    return {};
  }

  Outcome<void> send(const Message& m, const std::string& topic) {
    auto target = targets_.find(topic);
    if (target == targets_.end()) {
      TRY_VAR(found, write_target(c_, topic));
      target = targets_.emplace(topic, std::move(found)).first;
    }
    std::string properties;
    proto::PropertyReader reader(m.record.properties);
    proto::Property p;
    while (reader.next(&p))
      if (!is_left_out(p.name)) proto::append_property(properties, p.name, p.value);
    proto::append_property(properties, prop::DLQ_ORIGIN_TOPIC, proto::dlq_topic_of(c_.arg(0)));
    proto::append_property(properties, prop::DLQ_ORIGIN_MESSAGE_ID, m.offset_id());
    const std::vector<WriteQueue>& queues = target->second.queues;
    const WriteQueue& q = queues[next_++ % queues.size()];
    TRY_VAR(channel, c_.broker_at(q.address, q.broker));
    auto h = send_header(topic, q, properties, Context::now_ms());
    h.flag = m.record.flag;
    // The body goes as it was stored, compressed or not.
    h.sys_flag = m.record.sys_flag & (proto::sys_flag::compressed | proto::sys_flag::multi_tags |
                                      proto::sys_flag::compression_mask);
    TRY_VAR(reply, channel->call<proto::SendMessageV2>(h, as_text(m.record.body)));
    if (!is_stored(reply.code())) return channel->refusal(reply);
    return {};
  }

  void progress() {
    int64_t now_ms = Context::now_ms();
    if (!Context::stderr_is_terminal() || now_ms - shown_ms_ < progress_every_ms) return;
    shown_ms_ = now_ms;
    fmt::print(stderr, "\r\x1b[K{} of {}", sent_ + repeated_ + failed_, chosen_);
  }

  Context& c_;
  int64_t chosen_;
  std::map<std::string, WriteTarget> targets_;
  std::set<std::string> indexed_;  // addresses of brokers that can be asked for keys
  bool no_index_ = false;
  size_t next_ = 0;
  int64_t sent_ = 0, repeated_ = 0, failed_ = 0, shown_ms_ = 0;
};

Outcome<void> resend(Context& c) {
  const Options& o = c.options();
  const bool some = c.has_arg(1) || !o.from.empty() || !o.to.empty();
  if (some == o.all)
    return fail(Exit::usage, "dlq resend: say which: message ids, --from and --to, or --all");
  TRY_VAR(choice, choice_of(c));
  std::map<std::string, int64_t> topics;
  int64_t chosen = 0;
  TRY(each_chosen(c, choice, [&](const Message& m) -> Outcome<void> {
    chosen++;
    topics[std::string(m.property(prop::RETRY_TOPIC))]++;
    return {};
  }));
  if (chosen == 0)
    return fail(Exit::refused, fmt::format("group {} has no such dead letters; see \"rmqctl dlq show {}\"",
                                           c.arg(0), c.arg(0)));
  std::string where;
  for (const auto& [topic, count] : topics)
    where += fmt::format("{}{} to {}", where.empty() ? "" : ", ", count, topic.empty() ? "(unknown)" : topic);
  TRY(c.confirm(fmt::format("{} messages are to be sent again, to every group that consumes their topic: {}.",
                            chosen, where)));
  watch_for_stop();
  Resender resender(c, chosen);
  TRY(each_chosen(c, choice, [&](const Message& m) { return resender.resend(m); }));
  return resender.finish();
}

constexpr OptionSpec list_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};
constexpr OptionSpec show_options[] = {
    {"--from", "TIME", &Options::from, "only what became a dead letter at that time or later"},
    {"--to", "TIME", &Options::to, "only what became a dead letter at that time or earlier"},
    {"--count", "N", &Options::count, "end after N messages", 1, INT64_MAX},
    {"-b,--broker", "NAME", &Options::broker, "at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
    {"--hex", nullptr, &Options::hex, "show the body as hex, also when it is text"},
};
constexpr OptionSpec resend_options[] = {
    {"--from", "TIME", &Options::from, "what became a dead letter at that time or later"},
    {"--to", "TIME", &Options::to, "what became a dead letter at that time or earlier"},
    {"-a,--all", nullptr, &Options::all, "every dead letter of the group"},
    {"-b,--broker", "NAME", &Options::broker, "the dead letters at this broker, to topics at this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "the dead letters at the masters of this cluster"},
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
};

constexpr Verb verbs[] = {
    {"dlq list", "", 0, 0, list_options, list, "list consumer groups that have dead letters",
     "A message that a group failed to consume retryMaxTimes times (16) goes to the topic %DLQ%GROUP and "
     "stays "
     "there until the log's retention takes it.",
     true},
    {"dlq show", "GROUP [ID...]", 1, 1000, show_options, show, "show dead letters of a consumer group",
     "A line each; with IDs (message ids or offset message ids) a page each. With --json one object a line. "
     "RETRY_TOPIC is the topic that a message was sent to."},
    {"dlq resend", "GROUP [ID...]", 1, 1000, resend_options, resend,
     "send dead letters again, to the topics that they came from",
     "Chosen by IDs (message ids or offset message ids), by time, or all. Each is a new message with the "
     "body, "
     "keys, tags and properties of the old one, which stays where it is. All groups that consume the topic "
     "get "
     "it, not only GROUP. It is asked before; --yes answers. Safe to repeat, also after it was interrupted: "
     "what was sent again before is found by its unique id and left out (this needs messageIndexEnable)."},
};

}  // namespace

Outcome<std::map<std::string, int64_t>> dead_letters_at(Context& c, const BrokerNode& broker) {
  TRY_VAR(topics, dead_letter_topics(c, broker));
  std::map<std::string, int64_t> out;
  for (const std::string& topic : topics) {
    TRY_VAR(scan, QueueScan::open(c, broker, topic, 0, 0));
    if (scan.end() > scan.begin())
      out.emplace(topic.substr(names::dlq_prefix.size()), scan.end() - scan.begin());
  }
  return out;
}

std::span<const Verb> dlq_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

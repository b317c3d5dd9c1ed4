// rmqctl timer: messages of any delay that are still to come, and recalling them by hand. Works by what lies
// in the timer topic, so it needs nothing but pulls and RECALL_MESSAGE, which Apache's broker has too.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <unordered_set>

#include "base/base64.h"
#include "ctl/broker_work.h"
#include "ctl/context.h"
#include "ctl/queue_scan.h"
#include "proto/codes.h"
#include "proto/fastjson.h"
#include "proto/headers_send.h"

namespace rmq::ctl {

namespace {

namespace names = proto::names;
namespace prop = proto::prop;

struct PendingMessage {
  std::string broker, address;
  std::string unique_key, topic, offset_id;
  int64_t deliver_ms = 0;
  int64_t stored_ms = 0;
  int64_t offset = 0, body_bytes = 0;

  std::string recall_key() const { return topic + "+" + unique_key; }
};

int64_t number_of(std::string_view text) {
  int64_t n = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  return ec == std::errc{} && end == text.data() + text.size() ? n : 0;
}

// What is left of the timer topic of one broker when all that is past, recalled or stored again is gone.
Outcome<void> add_pending(Context& c, const BrokerNode& broker, std::vector<PendingMessage>* out) {
  TRY_VAR(scan, QueueScan::open(c, broker, std::string(names::rmq_sys_wheel_timer), 0, 0));
  const int64_t now_ms = Context::now_ms();
  std::vector<PendingMessage> found;
  std::unordered_set<std::string> recalled;
  for (;;) {
    TRY_VAR(item, scan.next());
    if (!item) break;
    const Message& m = item->message;
    const int64_t deliver_ms = number_of(m.property(prop::TIMER_OUT_MS));
    if (deliver_ms <= now_ms) continue;
    if (std::string_view key = m.property(prop::TIMER_DEL_UNIQKEY); !key.empty()) {
      recalled.emplace(key);
      continue;
    }
    found.push_back({broker.name, broker.address, std::string(m.property(prop::UNIQ_KEY)),
                     std::string(m.property(prop::REAL_TOPIC)), m.offset_id(), deliver_ms,
                     m.record.store_timestamp_ms, m.record.queue_offset,
                     static_cast<int64_t>(m.record.body.size())});
  }
  // The newest copy of a message that was stored again comes first.
  std::unordered_set<std::string> seen;
  for (auto it = found.rbegin(); it != found.rend(); ++it)
    if (!recalled.contains(it->recall_key()) && seen.insert(it->recall_key()).second)
      out->push_back(std::move(*it));
  return {};
}

Outcome<std::vector<PendingMessage>> pending(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  std::vector<PendingMessage> out;
  for (const BrokerNode& b : brokers) TRY(add_pending(c, b, &out));
  if (!c.options().topic.empty())
    std::erase_if(out, [&](const PendingMessage& p) { return p.topic != c.options().topic; });
  std::sort(out.begin(), out.end(), [](const PendingMessage& a, const PendingMessage& b) {
    return std::tie(a.deliver_ms, a.offset) < std::tie(b.deliver_ms, b.offset);
  });
  return out;
}

Outcome<void> list(Context& c) {
  TRY_VAR(all, pending(c));
  const auto most = static_cast<size_t>(c.options().count.value_or(100));
  Table t({{"MESSAGE ID", "msgId"},
           {"TOPIC", "topic"},
           {"DELIVERY", "deliverTimestamp"},
           {"STORED", "storeTimestamp"},
           {"SIZE", "bodySize"},
           {"BROKER", "brokerName"},
           {"", "offsetMsgId"},
           {"", "queueOffset"}});
  for (size_t i = 0; i < std::min(all.size(), most); i++) {
    const PendingMessage& p = all[i];
    t.add({Cell::text(p.unique_key), Cell::text(p.topic), Cell::moment(p.deliver_ms),
           Cell::moment(p.stored_ms), Cell::bytes(p.body_bytes), Cell::text(p.broker),
           Cell::text(p.offset_id), Cell::integer(p.offset)});
  }
  c.print_table(t);
  if (!c.options().json && all.size() > most)
    c.print(fmt::format("The first {} of {} messages; --count N shows more.\n", most, all.size()));
  return {};
}

Outcome<PendingMessage> find_pending(Context& c, const std::string& id) {
  TRY_VAR(all, pending(c));
  for (PendingMessage& p : all)
    if (p.unique_key == id || p.offset_id == id) return std::move(p);
  return fail(Exit::refused,
              fmt::format("no message that is to be delivered later has the message id {}: it has "
                          "been delivered or recalled, or is at another broker; see \"rmqctl timer "
                          "list\"",
                          id));
}

Outcome<void> show(Context& c) {
  TRY_VAR(p, find_pending(c, c.arg(0)));
  TRY_VAR(scan, QueueScan::open(c, {{}, p.broker, p.address}, std::string(names::rmq_sys_wheel_timer), 0,
                                p.offset));
  TRY_VAR(item, scan.next());
  if (!item || item->message.record.queue_offset != p.offset)
    return fail(Exit::refused, fmt::format("message {} has just gone", p.unique_key));
  if (c.options().json)
    c.print(message_json_line(item->message));
  else
    c.print(message_page(item->message, Context::now_ms(), c.options().hex));
  return {};
}

Outcome<void> cancel(Context& c) {
  TRY_VAR(p, find_pending(c, c.arg(0)));
  TRY(c.confirm(fmt::format("Message {} for topic {} is due at {} and will not be delivered.", p.unique_key,
                            p.topic, format_moment(p.deliver_ms, Context::now_ms()))));
  TRY_VAR(channel, c.broker_at(p.address, p.broker));
  // Apache's broker rounds down to seconds, and takes a full second for the one before.
  int64_t named_ms = p.deliver_ms % 1000 == 0 ? p.deliver_ms + 1 : p.deliver_ms;
  std::string handle =
      base64url_encode(fmt::format("v1 {} {} {} {}", p.topic, p.broker, named_ms, p.unique_key));
  proto::RecallMessageRequestHeader h;
  h.producer_group = "rmqctl";
  h.topic = p.topic;
  h.recall_handle = handle;
  TRY(channel->ask<proto::RecallMessage>(h));
  if (c.options().json) {
    proto::JsonWriter w(proto::JsonStyle::strict);
    w.begin_object();
    w.member("msgId", p.unique_key);
    w.member("recalled", true);
    w.end_object();
    c.print(w.take() + "\n");
    return {};
  }
  c.print(fmt::format("{} recalled\n", p.unique_key));
  return {};
}

constexpr OptionSpec list_options[] = {
    {"-t,--topic", "TOPIC", &Options::topic, "only messages for this topic"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
    {"--count", "N", &Options::count, "show at most N messages (default 100)", 1, 10'000'000},
};
constexpr OptionSpec show_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
    {"--hex", nullptr, &Options::hex, "show the body as hex, also when it is text"},
};
constexpr OptionSpec cancel_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
};

constexpr Verb verbs[] = {
    {"timer list", "", 0, 0, list_options, list, "list messages that are to be delivered later",
     "Messages of any delay (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS), those that are due next "
     "first. "
     "The whole timer topic of the broker is read for it.",
     true},
    {"timer show", "ID", 1, 1, show_options, show, "show a message that is to be delivered later",
     "ID is the message id (UNIQ_KEY) or the offset message id, as \"timer list\" shows them."},
    {"timer cancel", "ID", 1, 1, cancel_options, cancel, "recall a message that is to be delivered later",
     "It is asked before; --yes answers. The broker must take recalls (recallMessageEnable)."},
};

}  // namespace

Outcome<int64_t> pending_timers_at(Context& c, const BrokerNode& broker) {
  std::vector<PendingMessage> pending;
  TRY(add_pending(c, broker, &pending));
  return static_cast<int64_t>(pending.size());
}

std::span<const Verb> timer_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

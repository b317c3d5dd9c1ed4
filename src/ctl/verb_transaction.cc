// rmqctl transaction: half messages that nobody has ended yet, and ending them by hand. Works by what the
// broker keeps in its half and op topics, so it needs nothing but pulls and END_TRANSACTION, which Apache's
// broker has too.

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ctl/broker_work.h"
#include "ctl/context.h"
#include "ctl/queue_scan.h"
#include "proto/codes.h"
#include "proto/fastjson.h"
#include "proto/headers_transaction.h"

namespace rmq::ctl {

namespace {

namespace names = proto::names;
namespace prop = proto::prop;

struct OpenHalf {
  BrokerNode broker;
  QueueScan::Item item;

  const Message& message() const { return item.message; }
  std::string_view property(std::string_view name) const { return item.message.property(name); }
  // Message ids are what the producer knows; both name it.
  bool is(std::string_view id) const {
    return property(prop::UNIQ_KEY) == id || property(prop::TRANSACTION_ID) == id ||
           message().offset_id() == id;
  }
};

int64_t number_of(std::string_view text, int64_t otherwise) {
  int64_t n = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  return ec == std::errc{} && end == text.data() + text.size() ? n : otherwise;
}

// Offsets in the half topic that op records name: "12,15,".
Outcome<std::unordered_set<int64_t>> ended_at(Context& c, const BrokerNode& broker) {
  TRY_VAR(channel, c.broker_at(broker.address, broker.name));
  TRY_VAR(from,
          committed_offset(*channel, names::CID_RMQ_SYS_TRANS, names::RMQ_SYS_TRANS_OP_HALF_TOPIC, 0, 0));
  TRY_VAR(scan, QueueScan::open(c, broker, std::string(names::RMQ_SYS_TRANS_OP_HALF_TOPIC), 0, from));
  std::unordered_set<int64_t> out;
  for (;;) {
    TRY_VAR(item, scan.next());
    if (!item) return out;
    std::string_view body = item->message.body;
    while (!body.empty()) {
      std::string_view one = body.substr(0, body.find(','));
      body.remove_prefix(std::min(body.size(), one.size() + 1));
      if (int64_t offset = number_of(one, -1); offset >= 0) out.insert(offset);
    }
  }
}

// Oldest first. Half messages are read before op records: what ends meanwhile is not shown.
Outcome<void> add_open(Context& c, const BrokerNode& broker, std::vector<OpenHalf>* out) {
  TRY_VAR(channel, c.broker_at(broker.address, broker.name));
  TRY_VAR(from, committed_offset(*channel, names::CID_RMQ_SYS_TRANS, names::RMQ_SYS_TRANS_HALF_TOPIC, 0, 0));
  TRY_VAR(scan, QueueScan::open(c, broker, std::string(names::RMQ_SYS_TRANS_HALF_TOPIC), 0, from));
  std::map<int64_t, QueueScan::Item> halves;
  std::unordered_map<int64_t, int64_t> newest;  // of the copies of a half message, by its first offset
  for (;;) {
    TRY_VAR(item, scan.next());
    if (!item) break;
    // A copy that was made for a question takes the place of the older ones.
    const int64_t offset = item->message.record.queue_offset;
    const int64_t first = number_of(item->message.property(prop::TRAN_PREPARED_QUEUE_OFFSET), offset);
    auto [older, is_new] = newest.try_emplace(first, offset);
    if (!is_new) halves.erase(std::exchange(older->second, offset));
    halves.emplace(offset, std::move(*item));
  }
  TRY_VAR(ended, ended_at(c, broker));
  for (auto& [offset, item] : halves)
    if (!ended.contains(offset)) out->push_back({broker, std::move(item)});
  return {};
}

Outcome<std::vector<OpenHalf>> open_halves(Context& c) {
  const Options& o = c.options();
  TRY_VAR(brokers, c.target_brokers());
  std::vector<OpenHalf> out;
  for (const BrokerNode& b : brokers) TRY(add_open(c, b, &out));
  std::erase_if(out, [&](const OpenHalf& h) {
    return (!o.topic.empty() && h.property(prop::REAL_TOPIC) != o.topic) ||
           (!o.group.empty() && h.property(prop::PGROUP) != o.group);
  });
  return out;
}

Outcome<void> list(Context& c) {
  TRY_VAR(halves, open_halves(c));
  Table t({{"MESSAGE ID", "msgId"},
           {"TOPIC", "topic"},
           {"GROUP", "producerGroup"},
           {"SENT", "bornTimestamp"},
           {"CHECKS", "checkTimes"},
           {"SIZE", "bodySize"},
           {"BROKER", "brokerName"},
           {"", "offsetMsgId"},
           {"", "queueOffset"}});
  for (const OpenHalf& h : halves) {
    const proto::RecordView& r = h.message().record;
    t.add({Cell::text(h.property(prop::UNIQ_KEY)), Cell::text(h.property(prop::REAL_TOPIC)),
           Cell::text(h.property(prop::PGROUP)), Cell::moment(r.born_timestamp_ms),
           Cell::integer(number_of(h.property(prop::TRANSACTION_CHECK_TIMES), 0)),
           Cell::bytes(static_cast<int64_t>(r.body.size())), Cell::text(h.broker.name),
           Cell::text(h.message().offset_id()), Cell::integer(r.queue_offset)});
  }
  c.print_table(t);
  return {};
}

Outcome<OpenHalf> find_open(Context& c, const std::string& id) {
  TRY_VAR(halves, open_halves(c));
  for (OpenHalf& h : halves)
    if (h.is(id)) return std::move(h);
  return fail(Exit::refused, fmt::format("no open transaction has the message id {}: it has ended, or is at "
                                         "another broker; see \"rmqctl transaction list\"",
                                         id));
}

Outcome<void> show(Context& c) {
  TRY_VAR(half, find_open(c, c.arg(0)));
  if (c.options().json)
    c.print(message_json_line(half.message()));
  else
    c.print(message_page(half.message(), Context::now_ms(), c.options().hex));
  return {};
}

Outcome<void> end_by_hand(Context& c, bool commit) {
  TRY_VAR(half, find_open(c, c.arg(0)));
  TRY(c.confirm(fmt::format(
      "Message {} of producer group {} for topic {} was sent {} and is to be {}; its producer is not asked.",
      half.property(prop::UNIQ_KEY), half.property(prop::PGROUP), half.property(prop::REAL_TOPIC),
      format_ago(half.message().record.born_timestamp_ms, Context::now_ms()),
      commit ? "given to consumers" : "dropped for good")));
  proto::EndTransactionRequestHeader h;
  h.topic = half.property(prop::REAL_TOPIC);
  h.producer_group = half.property(prop::PGROUP);
  h.tran_state_table_offset = half.message().record.queue_offset;
  h.commit_log_offset = half.message().record.physical_offset;
  h.commit_or_rollback = commit ? proto::sys_flag::transaction_commit : proto::sys_flag::transaction_rollback;
  h.from_transaction_check = true;  // the producer's own time is over
  h.msg_id = half.property(prop::UNIQ_KEY);
  h.transaction_id = half.property(prop::TRANSACTION_ID);
  TRY_VAR(channel, c.broker_at(half.broker.address, half.broker.name));
  TRY_VAR(reply, channel->ask<proto::EndTransaction>(h));
  if (!reply.command.remark.empty())
    return fail(Exit::refused, fmt::format("nothing was done: {}", reply.command.remark));
  c.print(fmt::format("{} {}\n", half.property(prop::UNIQ_KEY), commit ? "committed" : "rolled back"));
  return {};
}
Outcome<void> commit(Context& c) {
  return end_by_hand(c, true);
}
Outcome<void> rollback(Context& c) {
  return end_by_hand(c, false);
}

// ---- what was set aside --------------------------------------------------------------------------------

// Messages that the broker has stopped asking for, with that id. A message may have been set aside more than
// once; the last time counts.
Outcome<std::optional<OpenHalf>> find_set_aside(Context& c, const std::string& id) {
  TRY_VAR(brokers, c.target_brokers());
  std::optional<OpenHalf> out;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(scan, QueueScan::open(c, b, std::string(names::TRANS_CHECK_MAX_TIME_TOPIC), 0, 0));
    for (;;) {
      TRY_VAR(item, scan.next());
      if (!item) break;
      OpenHalf half{b, std::move(*item)};
      if (half.is(id)) out = std::move(half);
    }
  }
  return out;
}

Outcome<void> resume(Context& c) {
  const std::string& id = c.arg(0);
  TRY_VAR(half, find_set_aside(c, id));
  if (!half)
    return fail(Exit::refused,
                fmt::format("no transaction with the message id {} was set aside; those are in "
                            "the topic {}, \"rmqctl transaction list\" shows the open ones",
                            id, names::TRANS_CHECK_MAX_TIME_TOPIC));
  const std::string offset_id = half->message().offset_id();
  proto::ResumeCheckHalfMessageRequestHeader h;
  h.topic = half->property(prop::REAL_TOPIC);
  h.msg_id = offset_id;
  TRY_VAR(channel, c.broker_at(half->broker.address, half->broker.name));
  TRY_VAR(reply, channel->ask<proto::ResumeCheckHalfMessage>(h));
  const std::string_view remark = reply.command.remark;
  if (!remark.empty())
    c.print(fmt::format("{}: {}\n", half->property(prop::UNIQ_KEY), remark));
  else
    c.print(fmt::format("{} is open again; its producers will be asked\n", half->property(prop::UNIQ_KEY)));
  return {};
}

constexpr OptionSpec list_options[] = {
    {"-t,--topic", "TOPIC", &Options::topic, "only messages for this topic"},
    {"-g,--group", "GROUP", &Options::group, "only those of this producer group"},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};
constexpr OptionSpec show_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
    {"--hex", nullptr, &Options::hex, "show the body as hex, also when it is text"},
};
constexpr OptionSpec resume_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
};
constexpr OptionSpec end_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "at this broker; with an address no name server is asked"},
    {"-c,--cluster", "NAME", &Options::cluster, "at the masters of this cluster"},
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
};

constexpr Verb verbs[] = {
    {"transaction list", "", 0, 0, list_options, list, "list transactions that nobody has ended yet",
     "A transactional message that its producer has neither committed nor rolled back, oldest first, with "
     "how often the producer was asked for it. Those that the broker has stopped asking for are in the topic "
     "TRANS_CHECK_MAX_TIME_TOPIC; \"transaction resume\" brings one back.",
     true},
    {"transaction show", "ID", 1, 1, show_options, show, "show the message of an open transaction",
     "ID is the message id (UNIQ_KEY) or the offset message id, as \"transaction list\" shows them."},
    {"transaction commit", "ID", 1, 1, end_options, commit,
     "give the message of an open transaction to consumers",
     "In place of the producer, when that is gone for good. It is asked before; --yes answers."},
    {"transaction rollback", "ID", 1, 1, end_options, rollback, "drop the message of an open transaction",
     "In place of the producer, when that is gone for good. It is asked before; --yes answers."},
    {"transaction resume", "ID", 1, 1, resume_options, resume,
     "have producers asked again about a transaction that was set aside",
     "For a message that the broker put into TRANS_CHECK_MAX_TIME_TOPIC because nobody knew its state. It is "
     "open again, with all its checks before it, and can be committed, rolled back and listed like others. "
     "Safe to repeat: rmqd brings each back once."},
};

}  // namespace

Outcome<int64_t> open_transactions_at(Context& c, const BrokerNode& broker) {
  std::vector<OpenHalf> open;
  TRY(add_open(c, broker, &open));
  return static_cast<int64_t>(open.size());
}

std::span<const Verb> transaction_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

// rmqctl consume: prints messages of a topic, once through or following, with or without a group's offsets.

#include <fmt/format.h>

#include <deque>
#include <map>

#include "ctl/context.h"
#include "ctl/topic_reader.h"
#include "filter/sql_expression.h"
#include "proto/headers_client.h"
#include "proto/headers_offset.h"

namespace rmq::ctl {

namespace {

// Exists at every broker and is never given offsets: pulls in its name leave no trace.
constexpr std::string_view traceless_group = proto::names::TOOLS_CONSUMER;
constexpr int64_t commit_every = 1000;  // messages

// Brokers ignore what follows a complete expression; whoever types it should know.
Outcome<void> check_sql(const std::string& sql) {
  if (sql.empty()) return {};
  auto e = filter::SqlExpression::compile(sql);
  if (!e) return fail(Exit::usage, "--sql: " + e.error().to_string());
  if (auto from = (*e)->ignored_from())
    return fail(Exit::usage,
                fmt::format("--sql: line {}, column {}: the expression is complete before that; there is no "
                            "LIKE, no arithmetic and no function",
                            from->line, from->column));
  return {};
}

Outcome<ReadPlan> plan_of(Context& c) {
  const Options& o = c.options();
  ReadPlan plan;
  plan.topic = c.arg(0);
  plan.use_offsets = !o.group.empty();
  plan.group = o.group.empty() ? std::string(traceless_group) : o.group;
  if (!o.from.empty()) {
    plan.from = parse_position(o.from, Context::now_ms());
    if (!plan.from)
      return fail(Exit::usage,
                  fmt::format("--from {}: it must be earliest, latest, a queue offset, or a time "
                              "(\"2026-11-30 04:05\", \"10m ago\")",
                              o.from));
  }
  if (o.last && plan.from) return fail(Exit::usage, "consume: --last and --from exclude each other");
  if (!o.sql.empty() && !o.tag.empty())
    return fail(Exit::usage, "consume: --tag and --sql exclude each other");
  if (!o.to.empty() && (!o.group.empty() || o.follow || !o.wait.empty()))
    return fail(Exit::usage, "consume: --to is for what is there, without --group, --follow and --timeout");
  plan.last = o.last.value_or(0);
  plan.broker = o.broker;
  plan.queue = o.queue;
  if (!o.tag.empty()) plan.tags = o.tag;
  plan.sql = o.sql;
  TRY(check_sql(o.sql));
  // With --last the history comes first, whole; then it follows.
  plan.follow = (o.follow || !o.wait.empty()) && !o.last;
  return plan;
}

// Offsets are committed from outside of the group: with members online that would take messages from them.
Outcome<void> check_group_is_idle(Context& c, const TopicReader& reader, const std::string& group) {
  if (auto wrong = proto::invalid_group_remark(group)) return fail(Exit::usage, "--group: " + *wrong);
  std::string last;
  for (const auto& q : reader.cursors()) {
    if (q.address == last) continue;
    last = q.address;
    TRY_VAR(channel, c.broker_at(q.address, q.broker));
    proto::GetConsumerListByGroupRequestHeader h;
    h.consumer_group = group;
    TRY_VAR(reply, channel->call<proto::GetConsumerListByGroup>(h));
    if (!reply.ok()) continue;  // "no consumer for this group"
    TRY_VAR(list, parse_body<proto::ConsumerListBody>(*channel, reply, "GET_CONSUMER_LIST_BY_GROUP"));
    if (list.consumer_id_list.empty()) continue;
    TRY(c.confirm(
        fmt::format("Group {} has {} members online; reading with its offsets takes messages from them.",
                    group, list.consumer_id_list.size())));
  }
  return {};
}

class Committer {
 public:
  Committer(Context& c, const TopicReader& reader) : c_(c), reader_(reader) {
    for (const auto& q : reader.cursors()) committed_.push_back(q.handled);
  }
  Outcome<void> commit() {
    if (c_.options().group.empty()) return {};
    // What is committed was printed: a full disk behind a pipe must not lose messages.
    if (!c_.flush()) return fail(Exit::refused, "cannot write to standard output; offsets are not committed");
    for (size_t i = 0; i < committed_.size(); i++) {
      const auto& q = reader_.cursors()[i];
      if (q.handled == committed_[i]) continue;
      proto::UpdateConsumerOffsetRequestHeader h;
      h.consumer_group = c_.options().group;
      h.topic = c_.arg(0);
      h.queue_id = q.queue_id;
      h.commit_offset = q.handled;
      TRY_VAR(channel, c_.broker_at(q.address, q.broker));
      TRY(channel->ask<proto::UpdateConsumerOffset>(h));
      committed_[i] = q.handled;
    }
    return {};
  }

 private:
  Context& c_;
  const TopicReader& reader_;
  std::vector<int64_t> committed_;
};

// With --by-tag they are counted instead.
using TagCounts = std::map<std::string, int64_t, std::less<>>;

void print_tag_counts(Context& c, const TagCounts& counts) {
  Table t({{"TAG", "tag"}, {"MESSAGES", "messages"}});
  for (const auto& [tag, count] : counts)
    t.add({tag.empty() ? Cell::none() : Cell::text(tag), Cell::integer(count)});
  c.print_table(t);
}

void print_message(Context& c, const Message& m, TagCounts* tags) {
  const Options& o = c.options();
  if (o.by_tag) {
    ++(*tags)[std::string(m.property(proto::prop::TAGS))];
  } else if (o.json) {
    c.print(message_json_line(m));
  } else if (o.body_only) {
    c.print(m.body + "\n");
  } else {
    c.print(message_line(m));
  }
}

// With --last: reads to the ends and prints what came last.
Outcome<int64_t> print_last(Context& c, TopicReader& reader, TagCounts* tags) {
  auto last = static_cast<size_t>(*c.options().last);
  std::deque<TopicReader::Item> kept;
  for (;;) {
    TRY_VAR(item, reader.next(std::nullopt));
    if (!item) break;
    kept.push_back(std::move(*item));
    if (kept.size() > last) kept.pop_front();
  }
  for (const auto& item : kept) print_message(c, item.message, tags);
  return static_cast<int64_t>(kept.size());
}

// How many, how long to wait for one, and where to stop.
struct Limits {
  int64_t count = INT64_MAX, wait_ms = 0, end_ms = INT64_MAX;
};

Outcome<int64_t> print_messages(Context& c, TopicReader& reader, Committer& committer, const Limits& limits,
                                TagCounts* tags) {
  int64_t printed = 0, uncommitted = 0;
  auto deadline = [&] {
    return limits.wait_ms ? std::optional(Deadline::after_ms(limits.wait_ms)) : std::nullopt;
  };
  auto until = deadline();
  while (printed < limits.count && !stop_asked()) {
    bool idle = uncommitted > 0;
    TRY_VAR(item, reader.next(idle ? std::optional(Deadline{0}) : until));
    // They come by store time.
    if (item && item->message.record.store_timestamp_ms > limits.end_ms) break;
    if (item) {
      print_message(c, item->message, tags);
      printed++;
      until = deadline();
      if (++uncommitted < commit_every) continue;
    }
    TRY(committer.commit());
    c.flush();
    uncommitted = 0;
    if (!item && !idle) break;
  }
  TRY(committer.commit());
  return printed;
}

Outcome<void> consume(Context& c) {
  const Options& o = c.options();
  TRY_VAR(plan, plan_of(c));
  Limits limits{.count = o.count.value_or(INT64_MAX)};
  TRY_VAR(wait_ms, c.duration_ms(o.wait, "--timeout", 0));
  TRY_VAR(end_ms, Context::moment_ms(o.to, "--to", INT64_MAX));
  limits.wait_ms = wait_ms;
  limits.end_ms = end_ms;
  TagCounts tags;
  TRY_VAR(reader, TopicReader::open(c, plan));
  if (!o.group.empty()) TRY(check_group_is_idle(c, reader, o.group));
  watch_for_stop();
  Committer committer(c, reader);
  bool follow = o.follow || wait_ms > 0;
  if (o.last) {
    TRY(print_last(c, reader, &tags));
    TRY(committer.commit());
    c.flush();
    if (!follow && o.by_tag) print_tag_counts(c, tags);
    if (!follow) return {};
    reader.follow();
  }
  TRY_VAR(printed, print_messages(c, reader, committer, limits, &tags));
  if (o.by_tag) print_tag_counts(c, tags);
  if (o.count && wait_ms > 0 && printed < *o.count && !stop_asked())
    return fail(Exit::refused,
                fmt::format("only {} of {} messages came within {}", printed, *o.count, o.wait));
  return {};
}

constexpr OptionSpec consume_options[] = {
    {"-f,--follow", nullptr, &Options::follow, "at the end wait for more, until Ctrl-C"},
    {"--from", "POSITION", &Options::from,
     "begin at earliest (default), latest, a queue offset, or a time: \"2026-11-30 04:05\", \"10m ago\", "
     "@MILLISECONDS"},
    {"--to", "TIME", &Options::to, "end with what was stored until then"},
    {"--last", "N", &Options::last, "begin with the last N messages of the topic", 1, 1'000'000},
    {"--count", "N", &Options::count, "end after N messages", 1, INT64_MAX},
    {"--timeout", "DURATION", &Options::wait,
     "wait for messages, and end when none came for that long; with --count exit code 1 when fewer came"},
    {"-g,--group", "GROUP", &Options::group,
     "begin where this consumer group stands and commit its offsets as messages are printed"},
    {"--tag", "EXPRESSION", &Options::tag, "only messages with this tag; several: \"TagA || TagB\""},
    {"--sql", "EXPRESSION", &Options::sql, "only messages whose properties match this SQL92 expression"},
    {"-q,--queue", "N", &Options::queue, "only queue N of each broker", 0, 65535},
    {"-b,--broker", "NAME", &Options::broker, "only the queues of this broker"},
    {"--body", nullptr, &Options::body_only, "print bodies only, each with a newline behind"},
    {"--by-tag", nullptr, &Options::by_tag, "do not print messages, but how many have which tag"},
    {"-y,--yes", nullptr, &Options::yes, "with --group: also when the group has members online"},
};

constexpr Verb verbs[] = {
    {"consume", "TOPIC", 1, 1, consume_options, consume, "print the messages of a topic",
     "Prints what is there, by store time over all queues, and ends; with --follow it goes on as messages "
     "arrive. "
     "Without --group nothing at the broker changes. With --group offsets are committed, but no group is "
     "joined: "
     "all queues are read, and the group's retry topic is not. A line is broker/queue @offset, store time, "
     "[tag] "
     "and body; a body that is not text is shown as hex. With --json one object a line."},
};

}  // namespace

std::span<const Verb> consume_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

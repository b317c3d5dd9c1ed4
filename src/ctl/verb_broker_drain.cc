// rmqctl broker drain: a broker is emptied without anybody noticing, so that it can be switched off.
// Producers learn from the name servers that its queues take nothing; when they have had time for that the
// broker registers itself as read-only, which outlives a restart of either; then consumers empty it. All that
// is known about how far it has come lies in the broker, so it may be stopped at any time and begun again.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/time.h"
#include "ctl/admin_calls.h"
#include "ctl/broker_work.h"
#include "proto/headers_admin.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

namespace {

constexpr int64_t look_every_ms = 1'000;  // at most; more often when producers have less time than that
constexpr int64_t progress_every_ms = 5'000;
// Producers ask for routes each 30 s; until then they may send to the queues that they knew.
constexpr int64_t settle_default_ms = 40'000;
// A look finds what moves from one place to another, but for what moves while it looks.
constexpr int empty_looks = 2;

int64_t monotonic_ms() {
  return system_mono_ns() / ns_per_ms;
}

// What somebody has still to do with.
struct Left {
  std::string what, name;
  int64_t messages = 0;
  int64_t members = -1;  // of a group
};

std::string text_of(const Left& l) {
  if (l.members < 0) return fmt::format("{} {}", format_number(l.messages), l.what);
  return fmt::format("group {} has {} messages left{}", l.name, format_number(l.messages),
                     l.members == 0 ? " and nobody online" : "");
}

class Draining {
 public:
  Draining(Context& c, BrokerNode node, Channel& broker) : c_(c), node_(std::move(node)), broker_(broker) {}
  Outcome<void> run();

 private:
  Outcome<bool> is_read_only();
  Outcome<void> wipe_write_permission();
  Outcome<int64_t> stored();
  Outcome<void> look_for_producers();
  Outcome<void> wait_for_producers();
  Outcome<void> add_groups(std::vector<Left>* out);
  Outcome<void> add_delayed(std::vector<Left>* out);
  Outcome<std::vector<Left>> left(bool all);
  Outcome<void> wait_until_empty();
  Outcome<void> stopped();
  bool is_quiet() const { return monotonic_ms() - moved_ms_ >= settle_ms_; }
  bool must_stop() { return stop_asked() || (give_up_ms_ != 0 && monotonic_ms() - began_ms_ >= give_up_ms_); }
  void pause() {
    if (!must_stop())
      poll(nullptr, 0, static_cast<int>(std::clamp<int64_t>(settle_ms_ / 2, 10, look_every_ms)));
  }
  void say(std::string_view text, bool urgent);
  Outcome<void> print_result(std::vector<Left> rows, bool empty);

  Context& c_;
  const BrokerNode node_;
  Channel& broker_;
  const int64_t began_ms_ = monotonic_ms();
  int64_t settle_ms_ = settle_default_ms, give_up_ms_ = 0;
  int64_t stored_ = -1, moved_ms_ = 0;  // what stored() said last, and when it said something else before
  std::vector<std::string> servers_;
  std::set<std::string> broadcasts_;  // groups that keep their offsets to themselves: said once
  std::string said_;
  int64_t said_ms_ = 0;
};

Outcome<bool> Draining::is_read_only() {
  TRY_VAR(config, config_values_at(broker_));
  int32_t perm = proto::perm::write;
  const std::string_view text = value_of(config, "brokerPermission");
  std::from_chars(text.data(), text.data() + text.size(), perm);
  return !proto::perm::is_writeable(perm);
}

Outcome<void> Draining::wipe_write_permission() {
  TRY_VAR(servers, c_.all_namesrvs());
  for (Channel* ns : servers) {
    proto::WipeWritePermOfBrokerRequestHeader h;
    h.broker_name = node_.name;
    TRY(ns->ask<proto::WipeWritePermOfBroker>(h));
  }
  return {};
}

// How many messages its topics ever had, without those that come from consumers (retries, dead letters).
Outcome<int64_t> Draining::stored() {
  TRY_VAR(topics, topics_at(broker_));
  int64_t out = 0;
  for (const auto& [name, config] : topics) {
    if (is_made_by_brokers(name, servers_)) continue;
    proto::GetTopicStatsInfoRequestHeader h;
    h.topic = name;
    TRY_VAR(reply, broker_.call<proto::GetTopicStatsInfo>(h));
    if (reply.code() == proto::ResponseCode::TOPIC_NOT_EXIST) continue;
    if (!reply.ok()) return broker_.refusal(reply);
    TRY_VAR(stats, parse_body<proto::TopicStatsTable>(broker_, reply, "GET_TOPIC_STATS_INFO"));
    for (const auto& [queue, offset] : stats.offset_table) out += offset.max_offset;
  }
  return out;
}

Outcome<void> Draining::look_for_producers() {
  TRY_VAR(now, stored());
  if (now != stored_) moved_ms_ = monotonic_ms();
  stored_ = now;
  return {};
}

// Deliveries of delayed messages look like producers, so it does not wait for silence for ever.
Outcome<void> Draining::wait_for_producers() {
  const int64_t from_ms = monotonic_ms();
  TRY(look_for_producers());
  while (!is_quiet() && monotonic_ms() - from_ms < 5 * settle_ms_) {
    say("waiting for producers to leave", false);
    pause();
    if (must_stop()) return {};
    TRY(look_for_producers());
  }
  TRY(broker_.ask<proto::UpdateBrokerConfig>({}, property_line("brokerPermission", "4")));
  TRY_VAR(done, is_read_only());
  if (!done)
    return fail(Exit::refused,
                fmt::format("broker {} answered that it set brokerPermission, but did not", node_.name));
  say("is read-only", true);
  said_ms_ = 0;  // what is left is news
  return {};
}

Outcome<void> Draining::add_groups(std::vector<Left>* out) {
  TRY_VAR(groups, groups_at(broker_));
  const auto& skipped = c_.options().skip_groups;
  for (const auto& [group, config] : groups) {
    if (is_group_of_brokers(group) || std::find(skipped.begin(), skipped.end(), group) != skipped.end())
      continue;
    TRY_VAR(behind, behind_at(broker_, group, ""));
    Left l{"messages", group, 0, 0};
    for (const Behind& b : behind) l.messages += b.messages;
    if (l.messages == 0) continue;
    TRY_VAR(online, members_at(broker_, group));
    if (online && online->message_model == proto::MessageModel::BROADCASTING) {
      if (broadcasts_.insert(group).second)
        c_.note(fmt::format(
            "group {} broadcasts: its members keep their offsets to themselves, and are not waited for",
            group));
      continue;
    }
    l.members = online ? static_cast<int64_t>(online->connection_set.size()) : 0;
    out->push_back(std::move(l));
  }
  return {};
}

// Messages with a delay level: scheduleMessageOffset_<level> is "delivered,all".
Outcome<void> Draining::add_delayed(std::vector<Left>* out) {
  TRY_VAR(values, runtime_values_at(broker_));
  int64_t waiting = 0;
  for (const KeyValue& v : values) {
    if (!v.key.starts_with("scheduleMessageOffset_")) continue;
    const auto comma = v.value.find(',');
    int64_t delivered = 0, all = 0;
    if (comma == std::string::npos) continue;
    std::from_chars(v.value.data(), v.value.data() + comma, delivered);
    std::from_chars(v.value.data() + comma + 1, v.value.data() + v.value.size(), all);
    waiting += std::max<int64_t>(0, all - delivered);
  }
  if (waiting != 0) out->push_back({"messages with a delay level", "", waiting});
  return {};
}

// What is cheap to know first; the rest when that is nothing, or `all` is wanted.
Outcome<std::vector<Left>> Draining::left(bool all) {
  std::vector<Left> out;
  TRY(add_delayed(&out));
  TRY(add_groups(&out));
  if (!out.empty() && !all) return out;
  TRY_VAR(open, open_transactions_at(c_, node_));
  if (open != 0) out.push_back({"open transactions", "", open});
  TRY_VAR(timers, pending_timers_at(c_, node_));
  if (timers != 0) out.push_back({"messages to be delivered later", "", timers});
  return out;
}

Outcome<void> Draining::wait_until_empty() {
  for (int looks = 0;;) {
    TRY(look_for_producers());
    TRY_VAR(rows, left(false));
    looks = rows.empty() && is_quiet() ? looks + 1 : 0;
    if (looks == empty_looks) return print_result({}, true);
    std::string text;
    for (const Left& l : rows) text += (text.empty() ? "" : ", ") + text_of(l);
    if (text.empty() && !is_quiet()) text = "all is consumed; waiting whether more comes";
    if (!text.empty()) say(text, false);
    pause();
    if (must_stop()) return stopped();
  }
}

Outcome<void> Draining::stopped() {
  TRY_VAR(rows, left(true));
  TRY(print_result(std::move(rows), false));
  return fail(
      Exit::refused,
      fmt::format("stopped: consumers go on; \"rmqctl broker drain {}\" goes on waiting, \"rmqctl broker "
                  "config set brokerPermission 6 --broker {}\" and \"rmqctl namesrv add-write {}\" go back",
                  node_.name, node_.name, node_.name));
}

// A line when there is news, at most each few seconds.
void Draining::say(std::string_view text, bool urgent) {
  const int64_t now = monotonic_ms();
  if (!urgent && (said_ == text || (!said_.empty() && now - said_ms_ < progress_every_ms))) return;
  said_ = text;
  said_ms_ = now;
  c_.note(fmt::format("{}: {}", node_.name, text));
}

Outcome<void> Draining::print_result(std::vector<Left> rows, bool empty) {
  TRY_VAR(dead, dead_letters_at(c_, node_));
  for (const auto& [group, messages] : dead) rows.push_back({"dead letters", group, messages});
  Table t({{"LEFT", "what"}, {"GROUP", "group"}, {"MESSAGES", "messages"}, {"MEMBERS", "members"}});
  for (const Left& l : rows)
    t.add({Cell::text(l.what), Cell::text(l.name), Cell::integer(l.messages),
           l.members < 0 ? Cell::none() : Cell::integer(l.members)});
  if (c_.options().json || t.rows() != 0) c_.print_table(t);
  if (!c_.options().json && empty)
    c_.print(fmt::format("{} is empty: nobody needs it any more\n", node_.name));
  return {};
}

Outcome<void> Draining::run() {
  TRY_VAR(settle_ms, c_.duration_ms(c_.options().settle, "--settle", settle_default_ms));
  settle_ms_ = settle_ms;
  TRY_VAR(give_up_ms, c_.duration_ms(c_.options().wait, "--timeout", 0));
  give_up_ms_ = give_up_ms;
  TRY_VAR(servers, server_names(c_));
  servers_ = std::move(servers);
  TRY_VAR(read_only, is_read_only());
  if (!read_only) TRY(c_.confirm(fmt::format("Producers will be led away from broker {}.", node_.name)));
  watch_for_stop();
  TRY(wipe_write_permission());
  if (!read_only) TRY(wait_for_producers());
  return must_stop() ? stopped() : wait_until_empty();
}

}  // namespace

Outcome<void> drain_broker(Context& c) {
  TRY_VAR(node, c.broker_named(c.arg(0)));
  TRY_VAR(channel, c.broker_at(node.address, node.name));
  return Draining(c, node, *channel).run();
}

}  // namespace rmq::ctl

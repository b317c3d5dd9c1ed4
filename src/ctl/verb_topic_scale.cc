// rmqctl topic scale: more or fewer queues without losing a message. More: consumers get the queues before
// producers do. Fewer: producers leave the surplus queues (write numbers), every consumer group empties them,
// then consumers leave them (read numbers). All that is known about how far it has come lies in the topic's
// configuration and the groups' offsets, so it may be stopped at any time and begun again.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/time.h"
#include "ctl/admin_calls.h"
#include "ctl/topic_scale.h"
#include "proto/headers_admin.h"
#include "proto/headers_offset.h"

namespace rmq::ctl {

namespace {

constexpr int64_t look_every_ms = 500;
constexpr int64_t progress_every_ms = 5'000;
// Producers ask for routes each 30 s; until then they may send to the queues that they knew.
constexpr int64_t settle_default_ms = 40'000;

// The topic at one broker.
struct Holder {
  Channel* broker = nullptr;
  std::string name;
  proto::TopicConfig config;
  int32_t read_before = 0, write_before = 0;
  std::map<int32_t, int64_t> ends;  // of the surplus queues, as last seen
  int64_t moved_ms = 0;             // when an end was seen to move, or was seen first
  bool has_surplus(int32_t queues) const { return config.read_queue_nums > queues; }
};

// What a group has not consumed of the surplus queues.
struct Pending {
  std::string group;
  int64_t messages = 0;
  size_t queues = 0;
};

int64_t monotonic_ms() {
  return system_mono_ns() / ns_per_ms;
}

class Scaling {
 public:
  Scaling(Context& c, int32_t queues) : c_(c), topic_(c.arg(0)), queues_(queues) {}
  Outcome<void> run();

 private:
  Outcome<void> find_holders();
  Outcome<void> set(Holder& h, int32_t read, int32_t write);
  Outcome<void> begin();
  Outcome<void> look_at_ends(Holder& h);
  Outcome<std::set<std::string>> groups_of(Holder& h);
  Outcome<std::optional<Pending>> pending_of(Holder& h, const std::string& group);
  Outcome<std::vector<Pending>> pending(Holder& h, bool* nobody);
  Outcome<bool> is_drained(Holder& h);
  Outcome<bool> finish(Holder& h);
  Outcome<void> wait_until_drained();
  Outcome<void> confirm_that_nobody_reads(Holder& h);
  void say(const Holder& h, std::string_view text, bool urgent);
  void print_result();

  Context& c_;
  const std::string& topic_;
  const int32_t queues_;
  int64_t settle_ms_ = settle_default_ms;
  std::vector<Holder> holders_;
  std::set<std::string> broadcasts_;  // groups that keep their offsets to themselves: said once
  bool nobody_confirmed_ = false;
  std::map<std::string, std::string> said_;
  int64_t said_ms_ = 0;
};

Outcome<void> Scaling::find_holders() {
  TRY_VAR(route, c_.route(topic_));
  for (const BrokerNode& b : topic_holders(route, c_.options())) {
    TRY_VAR(channel, c_.broker_at(b.address, b.name));
    TRY_VAR(there, topic_config_at(*channel, topic_));
    if (!there) continue;
    Holder h;
    h.broker = channel;
    h.name = b.name;
    h.config = std::move(*there);
    h.read_before = h.config.read_queue_nums;
    h.write_before = h.config.write_queue_nums;
    holders_.push_back(std::move(h));
  }
  if (holders_.empty()) return fail(Exit::refused, fmt::format("no master there has topic {}", topic_));
  return {};
}

Outcome<void> Scaling::set(Holder& h, int32_t read, int32_t write) {
  if (h.config.read_queue_nums == read && h.config.write_queue_nums == write) return {};
  h.config.read_queue_nums = read;
  h.config.write_queue_nums = write;
  return put_topic_at(*h.broker, h.config, {});
}

// Read numbers up first, then write numbers to where they belong.
Outcome<void> Scaling::begin() {
  for (Holder& h : holders_) {
    TRY(set(h, std::max(h.config.read_queue_nums, queues_), h.config.write_queue_nums));
    TRY(set(h, h.config.read_queue_nums, queues_));
    h.moved_ms = monotonic_ms();
  }
  return {};
}

Outcome<void> Scaling::look_at_ends(Holder& h) {
  for (int32_t q = queues_; q < h.config.read_queue_nums; q++) {
    TRY_VAR(end, queue_offset<proto::GetMaxOffset>(*h.broker, topic_, q));
    int64_t& known = h.ends.try_emplace(q, end).first->second;
    if (known != end) h.moved_ms = monotonic_ms();
    known = end;
  }
  return {};
}

// Those that have offsets there or are online, without those that are not to be waited for.
Outcome<std::set<std::string>> Scaling::groups_of(Holder& h) {
  proto::QueryTopicConsumeByWhoRequestHeader header;
  header.topic = topic_;
  TRY_VAR(reply, h.broker->ask<proto::QueryTopicConsumeByWho>(header));
  TRY_VAR(list, parse_body<proto::GroupList>(*h.broker, reply, "QUERY_TOPIC_CONSUME_BY_WHO"));
  std::set<std::string> out;
  for (const std::string& group : list.group_list) {
    const auto& skipped = c_.options().skip_groups;
    if (std::find(skipped.begin(), skipped.end(), group) != skipped.end()) continue;
    TRY_VAR(online, members_at(*h.broker, group));
    if (online && online->message_model == proto::MessageModel::BROADCASTING) {
      if (broadcasts_.insert(group).second)
        c_.note(
            fmt::format("group {} broadcasts: its members keep their offsets to themselves, and are not "
                        "waited for",
                        group));
      continue;
    }
    out.insert(group);
  }
  return out;
}

// Nothing: the group has nothing to do with the topic, or nothing is left for it.
Outcome<std::optional<Pending>> Scaling::pending_of(Holder& h, const std::string& group) {
  TRY_VAR(behind, behind_at(*h.broker, group, topic_));
  Pending p{group, 0, 0};
  for (const Behind& b : behind) {
    if (b.queue.queue_id < queues_) continue;
    p.messages += b.messages;
    p.queues++;
  }
  if (p.messages == 0) return std::nullopt;
  return p;
}

Outcome<std::vector<Pending>> Scaling::pending(Holder& h, bool* nobody) {
  TRY_VAR(groups, groups_of(h));
  *nobody = groups.empty();
  std::vector<Pending> out;
  for (const std::string& group : groups) {
    TRY_VAR(p, pending_of(h, group));
    if (p) out.push_back(std::move(*p));
  }
  return out;
}

// Without any group the messages there would only be out of reach.
Outcome<void> Scaling::confirm_that_nobody_reads(Holder& h) {
  if (nobody_confirmed_) return {};
  int64_t messages = 0;
  for (const auto& [queue, end] : h.ends) {
    TRY_VAR(min, queue_offset<proto::GetMinOffset>(*h.broker, topic_, queue));
    messages += end - std::max<int64_t>(min, 0);
  }
  if (messages == 0) return {};
  TRY(c_.confirm(
      fmt::format("No consumer group to wait for: the {} messages in queues {} to {} of {} will be "
                  "out of reach.",
                  format_number(messages), queues_, h.config.read_queue_nums - 1, h.name)));
  nobody_confirmed_ = true;
  return {};
}

Outcome<bool> Scaling::is_drained(Holder& h) {
  TRY(look_at_ends(h));
  bool nobody = false;
  TRY_VAR(left, pending(h, &nobody));
  if (nobody) TRY(confirm_that_nobody_reads(h));
  if (!left.empty()) {
    std::string text;
    for (const Pending& p : left)
      text += fmt::format("{}{} has {} messages left in {} queue{}", text.empty() ? "" : ", ", p.group,
                          format_number(p.messages), p.queues, p.queues == 1 ? "" : "s");
    say(h, text, false);
    return false;
  }
  const int64_t settled_in = h.moved_ms + settle_ms_ - monotonic_ms();
  if (settled_in <= 0) return true;
  say(h, "all groups are done, producers may still have the old route", false);
  return false;
}

// Takes the queues from the consumers, and gives them back when a message came in between. True: it is done.
Outcome<bool> Scaling::finish(Holder& h) {
  const int32_t read = h.config.read_queue_nums;
  TRY(set(h, queues_, queues_));
  for (const auto& [queue, end] : h.ends) {
    TRY_VAR(now, queue_offset<proto::GetMaxOffset>(*h.broker, topic_, queue));
    if (now == end) continue;
    say(h, fmt::format("a message came to queue {} at the last moment: it is a queue again", queue), true);
    TRY(set(h, read, queues_));
    h.moved_ms = monotonic_ms();
    return false;
  }
  return true;
}

Outcome<void> Scaling::wait_until_drained() {
  for (;;) {
    bool all = true;
    for (Holder& h : holders_) {
      if (!h.has_surplus(queues_)) continue;
      TRY_VAR(drained, is_drained(h));
      bool done = false;
      if (drained) {
        TRY_VAR(finished, finish(h));
        done = finished;
        if (done) say(h, fmt::format("has {} queues", queues_), true);
      }
      all = all && done;
    }
    if (all) return {};
    if (!stop_asked()) poll(nullptr, 0, static_cast<int>(look_every_ms));
    if (stop_asked()) break;
  }
  int32_t most = 0;
  for (const Holder& h : holders_) most = std::max(most, h.config.read_queue_nums);
  return fail(
      Exit::refused,
      fmt::format("stopped: nothing is sent to the queues from {} on any more, consumers still read them. "
                  "\"rmqctl topic scale {} --queues {}\" goes on, with --queues {} it goes back",
                  queues_, topic_, queues_, most));
}

// A line for each broker when there is news, at most each few seconds.
void Scaling::say(const Holder& h, std::string_view text, bool urgent) {
  std::string& last = said_[h.name];
  const int64_t now = monotonic_ms();
  if (!urgent && (last == text || (!last.empty() && now - said_ms_ < progress_every_ms))) return;
  last = text;
  said_ms_ = now;
  c_.note(fmt::format("{}: {}", h.name, text));
}

void Scaling::print_result() {
  Table t({{"BROKER", "brokerName"},
           {"READ BEFORE", "readQueueNumsBefore"},
           {"WRITE BEFORE", "writeQueueNumsBefore"},
           {"READ", "readQueueNums"},
           {"WRITE", "writeQueueNums"}});
  for (const Holder& h : holders_)
    t.add({Cell::text(h.name), Cell::integer(h.read_before), Cell::integer(h.write_before),
           Cell::integer(h.config.read_queue_nums), Cell::integer(h.config.write_queue_nums)});
  c_.print_table(t);
}

Outcome<void> Scaling::run() {
  TRY_VAR(settle_ms, c_.duration_ms(c_.options().settle, "--settle", settle_default_ms));
  settle_ms_ = settle_ms;
  TRY(find_holders());
  watch_for_stop();
  TRY(begin());
  TRY(wait_until_drained());
  print_result();
  return {};
}

}  // namespace

Outcome<void> scale_topic(Context& c) {
  if (!c.options().queues) return fail(Exit::usage, "topic scale: --queues N says how many there are to be");
  return Scaling(c, static_cast<int32_t>(*c.options().queues)).run();
}

}  // namespace rmq::ctl

// rmqctl cluster import: topics and groups of an export, made at running brokers. A plan is made from what is
// there, shown, and done in requests of many; at the end what is there is compared again, so that a broker
// which answered well and did less is found out.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "ctl/files.h"
#include "ctl/metadata.h"
#include "proto/bodies_export.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

constexpr size_t metadata_bytes_max = 1u << 30;
constexpr size_t in_one_request = 200;

bool is_directory(const std::string& path) {
  struct stat s{};
  return stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}
bool is_there(const std::string& path) {
  struct stat s{};
  return stat(path.c_str(), &s) == 0;
}

Outcome<proto::MetadataExport> read_one(const std::string& path) {
  TRY_VAR(text, read_file(path, metadata_bytes_max));
  auto parsed = proto::MetadataExport::parse(text);
  if (!parsed)
    return fail(Exit::bad_input, fmt::format("{} is no export: {}", path, rmq::to_string(parsed.error())));
  const proto::MetadataTables& t = parsed->all;
  if (t.topic_config_table.empty() && t.subscription_group_table.empty())
    return fail(Exit::bad_input,
                fmt::format("{} holds no topicConfigTable and no subscriptionGroupTable", path));
  return std::move(*parsed);
}

// metadata.json, else the tables in files of their own.
Outcome<proto::MetadataExport> read_export(Context& c) {
  const std::string& path = c.arg(0);
  if (!is_directory(path)) return read_one(path);
  const std::string whole = path + "/" + std::string(metadata_file);
  if (is_there(whole)) return read_one(whole);
  proto::MetadataExport out;
  bool found = false;
  for (const char* name : {"topics.json", "topic.json", "subscriptionGroup.json"}) {
    const std::string file = path + "/" + name;
    if (!is_there(file)) continue;
    found = true;
    TRY_VAR(one, read_one(file));
    out.all.topic_config_table.merge(one.all.topic_config_table);
    out.all.subscription_group_table.merge(one.all.subscription_group_table);
  }
  if (!found)
    return fail(
        Exit::unreadable,
        fmt::format("{} holds neither metadata.json nor topics.json nor subscriptionGroup.json", path));
  return out;
}

// What all brokers of the export have together: the largest queue numbers, as sums fit no broker.
proto::MetadataTables together(const proto::MetadataExport& e) {
  if (e.brokers.empty()) return e.all;
  proto::MetadataTables out;
  for (const auto& [broker, tables] : e.brokers) {
    for (const auto& [name, topic] : tables.topic_config_table) {
      proto::TopicConfig& t = out.topic_config_table.emplace(name, topic).first->second;
      t.read_queue_nums = std::max(t.read_queue_nums, topic.read_queue_nums);
      t.write_queue_nums = std::max(t.write_queue_nums, topic.write_queue_nums);
    }
    out.subscription_group_table.insert(tables.subscription_group_table.begin(),
                                        tables.subscription_group_table.end());
  }
  return out;
}

enum class Action : uint8_t { create, change, stay };

template <class Config>
struct Step {
  Config config;  // as it is to be
  Action action = Action::create;
  std::string what;
};

// One broker's share of the plan.
struct Plan {
  BrokerNode broker;
  Channel* channel = nullptr;
  std::vector<Step<proto::TopicConfig>> topics;
  std::vector<Step<proto::SubscriptionGroupConfig>> groups;
  size_t same = 0;
};

std::string attributes_text(const std::map<std::string, std::string>& all) {
  std::string out;
  for (const auto& [name, value] : all) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out.empty() ? "none" : out;
}

std::string difference(const proto::TopicConfig& have, const proto::TopicConfig& want) {
  std::string out;
  auto add = [&](std::string_view name, const auto& a, const auto& b) {
    if (a != b) out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", name, a, b);
  };
  add("read", have.read_queue_nums, want.read_queue_nums);
  add("write", have.write_queue_nums, want.write_queue_nums);
  add("perm", permission_name(have.perm), permission_name(want.perm));
  add("order", have.order, want.order);
  add("attributes", attributes_text(have.attributes), attributes_text(want.attributes));
  add("topicSysFlag", have.topic_sys_flag, want.topic_sys_flag);
  return out;
}

std::string difference(const proto::SubscriptionGroupConfig& have,
                       const proto::SubscriptionGroupConfig& want) {
  std::string out;
  auto add = [&](std::string_view name, const auto& a, const auto& b) {
    if (a != b) out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", name, a, b);
  };
  add("consumeEnable", have.consume_enable, want.consume_enable);
  add("consumeFromMinEnable", have.consume_from_min_enable, want.consume_from_min_enable);
  add("consumeBroadcastEnable", have.consume_broadcast_enable, want.consume_broadcast_enable);
  add("consumeMessageOrderly", have.consume_message_orderly, want.consume_message_orderly);
  add("retryQueueNums", have.retry_queue_nums, want.retry_queue_nums);
  add("retryMaxTimes", have.retry_max_times, want.retry_max_times);
  add("consumeTimeoutMinute", have.consume_timeout_minute, want.consume_timeout_minute);
  add("brokerId", have.broker_id, want.broker_id);
  add("whichBrokerWhenConsumeSlowly", have.which_broker_when_consume_slowly,
      want.which_broker_when_consume_slowly);
  add("notifyConsumerIdsChangedEnable", have.notify_consumer_ids_changed_enable,
      want.notify_consumer_ids_changed_enable);
  add("attributes", attributes_text(have.attributes), attributes_text(want.attributes));
  if (!(have.group_retry_policy == want.group_retry_policy))
    out += fmt::format("{}groupRetryPolicy", out.empty() ? "" : ", ");
  return out;
}

// What it will be: never with fewer queues than it has.
proto::TopicConfig wanted(const proto::TopicConfig* have, proto::TopicConfig want) {
  if (!have) return want;
  want.read_queue_nums = std::max(want.read_queue_nums, have->read_queue_nums);
  want.write_queue_nums = std::max(want.write_queue_nums, have->write_queue_nums);
  return want;
}
proto::SubscriptionGroupConfig wanted(const proto::SubscriptionGroupConfig*,
                                      proto::SubscriptionGroupConfig want) {
  return want;
}

std::string made_of(const proto::TopicConfig& t) {
  return fmt::format("{} read, {} write queues, {}", t.read_queue_nums, t.write_queue_nums,
                     permission_name(t.perm));
}
std::string made_of(const proto::SubscriptionGroupConfig& g) {
  return fmt::format("{} deliveries", g.retry_max_times);
}

template <class T>
void compare(const std::map<std::string, T, std::less<>>& have,
             const std::map<std::string, T, std::less<>>& want, bool update, std::vector<Step<T>>* steps,
             size_t* same) {
  for (const auto& [name, config] : want) {
    auto there = have.find(name);
    const T* old = there == have.end() ? nullptr : &there->second;
    Step<T> step{wanted(old, config), Action::create, ""};
    step.what = old ? difference(*old, step.config) : made_of(step.config);
    if (old && step.what.empty()) {
      ++*same;
      continue;
    }
    if (old) step.action = update ? Action::change : Action::stay;
    steps->push_back(std::move(step));
  }
}

Outcome<void> make_plan(Context& c, const proto::MetadataTables& tables,
                        const std::vector<std::string>& servers, Plan* plan) {
  const Options& o = c.options();
  plan->topics.clear();
  plan->groups.clear();
  plan->same = 0;
  proto::MetadataTables want = tables;
  std::erase_if(want.topic_config_table, [&](const auto& t) {
    const bool of_a_group = proto::is_retry_topic(t.first) || proto::is_dlq_topic(t.first);
    return o.groups || (!of_a_group && is_made_by_brokers(t.first, servers));
  });
  std::erase_if(want.subscription_group_table,
                [&](const auto& g) { return o.topics_only || is_group_of_brokers(g.first); });
  TRY_VAR(topics, topics_at(*plan->channel));
  TRY_VAR(groups, groups_at(*plan->channel));
  compare(topics, want.topic_config_table, o.upsert, &plan->topics, &plan->same);
  compare(groups, want.subscription_group_table, o.upsert, &plan->groups, &plan->same);
  return {};
}

const char* name_of(Action a) {
  switch (a) {
    case Action::create:
      return "create";
    case Action::change:
      return "change";
    case Action::stay:
      return "differs";
  }
  return "";
}

struct Counts {
  size_t create = 0, change = 0, stay = 0, same = 0;
  size_t to_do() const { return create + change; }
};

Counts show_plan(Context& c, const std::vector<Plan>& plans) {
  Counts out;
  Table t(
      {{"BROKER", "brokerName"}, {"KIND", "kind"}, {"NAME", "name"}, {"ACTION", "action"}, {"WHAT", "what"}});
  auto add = [&](const Plan& p, const char* kind, const std::string& name, Action a,
                 const std::string& what) {
    t.add({Cell::text(p.broker.name.empty() ? p.broker.address : p.broker.name), Cell::text(kind),
           Cell::text(name), Cell::text(name_of(a)), Cell::text(what)});
    (a == Action::create ? out.create : a == Action::change ? out.change : out.stay)++;
  };
  for (const Plan& p : plans) {
    for (const auto& s : p.topics) add(p, "topic", s.config.topic_name, s.action, s.what);
    for (const auto& s : p.groups) add(p, "group", s.config.group_name, s.action, s.what);
    out.same += p.same;
  }
  if (t.rows() > 0 || c.options().json) c.print_table(t);
  if (!c.options().json)
    c.print(fmt::format(
        "{} to create, {} to change, {} that differ and stay, {} as they should be\n",
        format_number(static_cast<int64_t>(out.create)), format_number(static_cast<int64_t>(out.change)),
        format_number(static_cast<int64_t>(out.stay)), format_number(static_cast<int64_t>(out.same))));
  return out;
}

// Attributes are told as changes: every one that is to be is added.
template <class T>
T as_request(T config) {
  std::map<std::string, std::string> changes;
  for (auto& [name, value] : config.attributes) changes["+" + name] = value;
  config.attributes = std::move(changes);
  return config;
}

class Progress {
 public:
  Progress(Context& c, size_t total) : c_(c), total_(total) {}
  void add(size_t n) {
    done_ += n;
    if (Context::now_ms() < next_ms_) return;
    next_ms_ = Context::now_ms() + 1000;
    c_.note(fmt::format("{} of {} done", done_, total_));
  }

 private:
  Context& c_;
  size_t total_, done_ = 0;
  int64_t next_ms_ = Context::now_ms() + 1000;
};

template <class Command, class Body, class T>
Outcome<void> send_steps(Channel& broker, const std::vector<Step<T>>& steps, std::vector<T> Body::* list,
                         Progress* progress) {
  Body body;
  auto flush = [&]() -> Outcome<void> {
    if ((body.*list).empty()) return {};
    TRY(broker.ask<Command>({}, body.to_json()));
    progress->add((body.*list).size());
    (body.*list).clear();
    return {};
  };
  for (const Step<T>& s : steps) {
    if (stop_asked()) return fail(Exit::refused, "stopped; the same command goes on");
    if (s.action == Action::stay) continue;
    (body.*list).push_back(as_request(s.config));
    if ((body.*list).size() == in_one_request) TRY(flush());
  }
  return flush();
}

}  // namespace

Outcome<void> import_metadata(Context& c) {
  if (c.options().topics_only && c.options().groups)
    return fail(Exit::usage, "cluster import: --topics and --groups exclude each other");
  TRY_VAR(exported, read_export(c));
  if (exported.brokers.empty() && exported.export_time_ms > 0)
    c.note("an export of mqadmin: if it is of several brokers, its queue numbers are their sums");
  TRY_VAR(targets, c.target_brokers());
  std::vector<std::string> servers;
  for (const BrokerNode& b : targets) servers.insert(servers.end(), {b.cluster, b.name});
  for (const auto& [name, tables] : exported.brokers) servers.push_back(name);
  const proto::MetadataTables others = together(exported);
  auto tables_of = [&](const BrokerNode& b) -> const proto::MetadataTables& {
    auto own = exported.brokers.find(b.name);
    return own == exported.brokers.end() ? others : own->second;
  };
  std::vector<Plan> plans;
  for (const BrokerNode& b : targets) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    Plan& plan = plans.emplace_back();
    plan.broker = b;
    plan.channel = channel;
    TRY(make_plan(c, tables_of(b), servers, &plan));
  }
  const Counts counts = show_plan(c, plans);
  if (c.options().dry_run || counts.to_do() == 0) return {};
  TRY(c.confirm(fmt::format("{} topics and groups will be created, {} changed, at {} broker{}.",
                            counts.create, counts.change, plans.size(), plans.size() == 1 ? "" : "s")));
  watch_for_stop();
  Progress progress(c, counts.to_do());
  for (Plan& p : plans) {
    TRY((send_steps<proto::UpdateAndCreateTopicList>(*p.channel, p.topics,
                                                     &proto::TopicConfigList::topic_config_list, &progress)));
    TRY((send_steps<proto::UpdateAndCreateSubscriptiongroupList>(
        *p.channel, p.groups, &proto::SubscriptionGroupList::group_config_list, &progress)));
    TRY(make_plan(c, tables_of(p.broker), servers, &p));
    for (const auto& s : p.topics)
      if (s.action != Action::stay)
        return fail(Exit::refused, fmt::format("{} did not do what it answered to: topic {}: {}",
                                               p.channel->peer().to_string(), s.config.topic_name, s.what));
    for (const auto& s : p.groups)
      if (s.action != Action::stay)
        return fail(Exit::refused, fmt::format("{} did not do what it answered to: group {}: {}",
                                               p.channel->peer().to_string(), s.config.group_name, s.what));
  }
  if (!c.options().json)
    c.print(fmt::format("{} done\n", format_number(static_cast<int64_t>(counts.to_do()))));
  return {};
}

}  // namespace rmq::ctl

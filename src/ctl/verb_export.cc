// rmqctl cluster export: topics and groups, configurations and figures of running brokers as files, under the
// names and in the form of mqadmin's exports. The way back for topics and groups is "cluster import".

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "ctl/admin_calls.h"
#include "ctl/context.h"
#include "ctl/files.h"
#include "ctl/metadata.h"
#include "proto/bodies_export.h"
#include "proto/fastjson.h"
#include "proto/headers_admin.h"

namespace rmq::ctl {

namespace {

struct Source {
  std::string cluster, name;
  int64_t id = 0;
  Channel* channel = nullptr;
};

// A broker that is given by its address says its names itself.
Outcome<std::vector<Source>> sources_of(Context& c) {
  TRY_VAR(brokers, c.target_brokers());
  std::vector<Source> out;
  for (const BrokerNode& b : brokers) {
    TRY_VAR(channel, c.broker_at(b.address, b.name));
    Source s{b.cluster, b.name, b.id, channel};
    if (s.name.empty()) {
      TRY_VAR(config, config_values_at(*channel));
      s.name = value_of(config, "brokerName");
      if (s.name.empty()) s.name = b.address;
      s.cluster = value_of(config, "brokerClusterName");
    }
    out.push_back(std::move(s));
  }
  return out;
}

// What brokers make for themselves every broker has; retry and dead letter topics come with --all.
proto::MetadataTables wanted_of(const Options& o, proto::TopicConfigTable topics,
                                proto::SubscriptionGroupTable groups,
                                const std::vector<std::string>& servers) {
  std::erase_if(topics, [&](const auto& t) {
    const bool of_a_group = proto::is_retry_topic(t.first) || proto::is_dlq_topic(t.first);
    return o.groups || (of_a_group ? !o.all : is_made_by_brokers(t.first, servers));
  });
  std::erase_if(groups, [&](const auto& g) { return o.topics_only || is_group_of_brokers(g.first); });
  return {std::move(topics), std::move(groups)};
}

struct Written {
  std::string file, what;
};

Outcome<Written> export_metadata(Context& c, const std::vector<Source>& sources) {
  std::vector<std::string> servers;
  for (const Source& s : sources) servers.insert(servers.end(), {s.cluster, s.name});
  proto::MetadataExport out;
  out.export_time_ms = Context::now_ms();
  for (const Source& s : sources) {
    TRY_VAR(topics, topics_at(*s.channel));
    TRY_VAR(groups, groups_at(*s.channel));
    out.add(s.name, wanted_of(c.options(), std::move(topics), std::move(groups), servers));
  }
  const std::string file = c.arg(0) + "/" + std::string(metadata_file);
  TRY(write_file(file, out.to_json() + "\n"));
  return Written{file, fmt::format("{} topics, {} groups", out.all.topic_config_table.size(),
                                   out.all.subscription_group_table.size())};
}

Outcome<Written> export_configs(Context& c, const std::vector<Source>& sources) {
  size_t namesrvs = 0;
  if (auto list = c.namesrv_list()) namesrvs = list->size();
  proto::JsonWriter w(proto::JsonStyle::pretty);
  w.begin_object();
  w.key("brokerConfigs");
  w.begin_object();
  size_t masters = 0;
  for (const Source& s : sources) {
    masters += s.id == 0 ? 1 : 0;
    TRY_VAR(values, config_values_at(*s.channel));
    w.key(s.name);
    w.begin_object();
    for (const KeyValue& v : values) w.member(v.key, v.value);
    w.end_object();
  }
  w.end_object();
  w.key("clusterScale");
  w.begin_object();
  w.member("masterBrokerSize", static_cast<int64_t>(masters));
  w.member("namesrvSize", static_cast<int64_t>(namesrvs));
  w.member("slaveBrokerSize", static_cast<int64_t>(sources.size() - masters));
  w.end_object();
  w.end_object();
  const std::string file = c.arg(0) + "/configs.json";
  TRY(write_file(file, w.take() + "\n"));
  return Written{
      file, fmt::format("the configuration of {} broker{}", sources.size(), sources.size() == 1 ? "" : "s")};
}

double number_at(const std::vector<KeyValue>& values, std::string_view key) {
  const std::string_view text = value_of(values, key);
  double v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return v;
}

struct Totals {
  double in_tps = 0, out_tps = 0, in_day = 0, out_day = 0;
};

// Of one broker, with the member names of mqadmin's report, and all that it says of itself besides.
Outcome<void> write_metrics(proto::JsonWriter& w, const Source& s, Totals* totals) {
  TRY_VAR(values, runtime_values_at(*s.channel));
  TRY_VAR(topics, topics_at(*s.channel));
  TRY_VAR(groups, groups_at(*s.channel));
  const Totals own{
      number_at(values, "putTps"), number_at(values, "getTransferredTps"),
      number_at(values, "msgPutTotalTodayMorning") - number_at(values, "msgPutTotalYesterdayMorning"),
      number_at(values, "msgGetTotalTodayMorning") - number_at(values, "msgGetTotalYesterdayMorning")};
  totals->in_tps += own.in_tps;
  totals->out_tps += own.out_tps;
  totals->in_day += own.in_day;
  totals->out_day += own.out_day;
  w.key(s.name);
  w.begin_object();
  w.key("runtime");
  w.begin_object();
  for (const KeyValue& v : values) w.member(v.key, v.value);
  w.end_object();
  w.key("runtimeQuota");
  w.begin_object();
  w.key("diskRatio");
  w.begin_object();
  w.member("commitLogDiskRatio", value_of(values, "commitLogDiskRatio"));
  w.member("consumeQueueDiskRatio", value_of(values, "consumeQueueDiskRatio"));
  w.end_object();
  w.member("groupSize", static_cast<int64_t>(groups.size()));
  w.member("messageAverageSize", value_of(values, "putMessageAverageSize"));
  w.key("oneDayNum");
  w.begin_object();
  w.member("normalOneDayInNum", static_cast<int64_t>(own.in_day));
  w.member("normalOneDayOutNum", static_cast<int64_t>(own.out_day));
  w.end_object();
  w.member("topicSize", static_cast<int64_t>(topics.size()));
  w.key("tps");
  w.begin_object();
  w.member("normalInTps", own.in_tps);
  w.member("normalOutTps", own.out_tps);
  w.end_object();
  w.end_object();
  w.key("runtimeVersion");
  w.begin_object();
  w.member("rocketmqVersion", value_of(values, "brokerVersionDesc"));
  w.end_object();
  w.end_object();
  return {};
}

Outcome<Written> export_metrics(Context& c, const std::vector<Source>& sources) {
  proto::JsonWriter w(proto::JsonStyle::pretty);
  Totals totals;
  w.begin_object();
  w.key("evaluateReport");
  w.begin_object();
  for (const Source& s : sources) TRY(write_metrics(w, s, &totals));
  w.end_object();
  w.key("totalData");
  w.begin_object();
  w.key("totalOneDayNum");
  w.begin_object();
  w.member("normalOneDayInNum", static_cast<int64_t>(totals.in_day));
  w.member("normalOneDayOutNum", static_cast<int64_t>(totals.out_day));
  w.end_object();
  w.key("totalTps");
  w.begin_object();
  w.member("totalNormalInTps", totals.in_tps);
  w.member("totalNormalOutTps", totals.out_tps);
  w.end_object();
  w.end_object();
  w.end_object();
  const std::string file = c.arg(0) + "/metrics.json";
  TRY(write_file(file, w.take() + "\n"));
  return Written{file,
                 fmt::format("the figures of {} broker{}", sources.size(), sources.size() == 1 ? "" : "s")};
}

constexpr struct {
  std::string_view name;
  Outcome<Written> (*write)(Context&, const std::vector<Source>&);
} parts[] = {{"metadata", export_metadata}, {"configs", export_configs}, {"metrics", export_metrics}};

Outcome<void> export_cluster(Context& c) {
  const Options& o = c.options();
  for (const std::string& name : o.only)
    if (std::none_of(std::begin(parts), std::end(parts), [&](const auto& p) { return p.name == name; }))
      return fail(Exit::usage, fmt::format("--only {}: it must be metadata, configs or metrics", name));
  if (o.topics_only && o.groups)
    return fail(Exit::usage, "cluster export: --topics and --groups exclude each other");
  TRY_VAR(sources, sources_of(c));
  TRY(make_directory(c.arg(0)));
  Table t({{"FILE", "file"}, {"HOLDS", "holds"}});
  for (const auto& part : parts) {
    if (!o.only.empty() && std::find(o.only.begin(), o.only.end(), part.name) == o.only.end()) continue;
    if (Context::stderr_is_terminal()) c.note(fmt::format("reading {}", part.name));
    TRY_VAR(written, part.write(c, sources));
    t.add({Cell::text(written.file), Cell::text(written.what)});
  }
  c.print_table(t);
  return {};
}

constexpr OptionSpec where_options[] = {
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only this broker"},
    {"-c,--cluster", "NAME", &Options::cluster, "the masters of this cluster"},
};
constexpr OptionSpec export_options[] = {
    {"--only", "WHAT", &Options::only, "only metadata, configs or metrics; repeatable"},
    {"--topics", nullptr, &Options::topics_only, "of the metadata only topics"},
    {"--groups", nullptr, &Options::groups, "of the metadata only consumer groups"},
    {"-a,--all", nullptr, &Options::all, "with the topics of retries and of dead letters"},
    where_options[0],
    where_options[1],
};
constexpr OptionSpec import_options[] = {
    {"--dry-run", nullptr, &Options::dry_run, "show what would be done, and do nothing"},
    {"--update", nullptr, &Options::upsert, "change what is there already and differs, too"},
    {"--topics", nullptr, &Options::topics_only, "only topics"},
    {"--groups", nullptr, &Options::groups, "only consumer groups"},
    {"-y,--yes", nullptr, &Options::yes, "do not ask"},
    where_options[0],
    where_options[1],
};

constexpr Verb verbs[] = {
    {"cluster export", "DIR", 1, 1, export_options, export_cluster,
     "write topics, groups, configurations and figures of running brokers to files",
     "metadata.json: topics and consumer groups, for \"cluster import\". configs.json: every configuration "
     "value. "
     "metrics.json: what brokers say of themselves now. Names and form are those of mqadmin's exports; "
     "metadata.json has each broker's own tables besides. No message and no offset is exported. Files that "
     "are "
     "there are replaced, each whole."},
    {"cluster import", "DIR", 1, 1, import_options, import_metadata,
     "make topics and groups of an export at running brokers",
     "DIR holds the metadata.json of \"cluster export\" or of mqadmin's exportMetadata, or the files "
     "topics.json "
     "and subscriptionGroup.json of a store's directory config; DIR may also be such a file. First it shows "
     "what "
     "it will create and change at which broker, then it asks; --yes answers. What is there already and "
     "differs "
     "is shown, and stays unless --update is given; a topic's queue numbers never become less (topic scale "
     "does "
     "that). At the end it reads back what the brokers have. Safe to repeat. A broker gets the tables that "
     "the "
     "export has under its name; others get what all brokers of the export have together, with the largest "
     "queue "
     "numbers."},
};

}  // namespace

std::span<const Verb> export_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

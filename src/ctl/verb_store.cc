// rmqctl store check: a store's directory is looked through offline. The checking itself is
// store/offline/check.h; here are the progress line, the report and the judgement of config/*.json.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <span>
#include <string>

#include "base/time.h"
#include "ctl/context.h"
#include "ctl/store_verbs.h"
#include "daemon/import_config.h"
#include "proto/bodies_config.h"
#include "proto/fastjson.h"
#include "store/offline/check.h"

namespace rmq::ctl {

namespace offline = store::offline;

Failure store_failure(const std::string& root, const Error& e) {
  if (e.code == Errc::exists)
    return {Exit::refused,
            fmt::format("a broker has {} open: stop it first, or pass --live to look all the same", root), 0};
  if (e.code == Errc::unsupported)
    return {Exit::unreadable, fmt::format("{} is a store of another kind: {}", root, e.where), 0};
  if (e.code == Errc::not_found)
    return {Exit::unreadable, fmt::format("{} is not a store: it has no commitlog directory", root), 0};
  return {Exit::unreadable, fmt::format("{} cannot be read: {}", root, rmq::to_string(e)), 0};
}

namespace {

constexpr size_t config_bytes_max = 1u << 20;

class Helper final : public offline::CheckHelper {
 public:
  explicit Helper(bool show) : show_(show), began_ns_(system_mono_ns()) {}

  bool on_progress(uint64_t done_bytes, uint64_t all_bytes) override {
    int64_t now_ns = system_mono_ns();
    done_bytes_ = done_bytes;
    if (!show_ || now_ns - shown_ns_ < 200 * ns_per_ms) return true;
    shown_ns_ = now_ns;
    fmt::print(stderr, "\r{:3} %  {}/s \x1b[K", all_bytes == 0 ? 100 : done_bytes * 100 / all_bytes,
               format_bytes(static_cast<int64_t>(bytes_per_second())));
    fflush(stderr);
    return true;
  }
  void end_progress() const {
    if (show_) fmt::print(stderr, "\r\x1b[K");
  }

  std::string judge_config(std::string_view name, std::string_view content) override {
    if (!proto::normalise_fastjson(content)) return "it is no JSON";
    if (name == "topics.json") return judge_topics(content);
    Result<void> known;
    if (name == "subscriptionGroup.json") known = parsed<proto::SubscriptionGroupWrapper>(content);
    if (name == "consumerOffset.json") known = parsed<proto::ConsumerOffsetWrapper>(content);
    if (name == "delayOffset.json") known = parsed<proto::DelayOffsetWrapper>(content);
    return known ? "" : rmq::to_string(known.error());
  }
  // The changes are the broker's (topic_manager.h): "T <timestamp> <counter> <configuration>" puts a topic,
  // "D ... <name>" deletes one.
  void topics_changed(std::span<const std::string> changes) override {
    for (const std::string& change : changes) apply(change);
  }
  bool topic_exists(std::string_view name) override { return topics_.contains(name); }

  double seconds() const { return static_cast<double>(system_mono_ns() - began_ns_) / ns_per_s; }
  double bytes_per_second() const {
    double s = seconds();
    return s > 0 ? static_cast<double>(done_bytes_) / s : 0;
  }

 private:
  template <class Body>
  static Result<void> parsed(std::string_view content) {
    TRY(Body::parse(content));
    return {};
  }
  void apply(std::string_view change) {
    size_t begin = 0;
    for (int field = 0; field < 3 && begin <= change.size(); field++) begin = change.find(' ', begin) + 1;
    const std::string_view text = change.substr(std::min(begin, change.size()));
    if (change.starts_with("T ")) {
      auto config = proto::TopicConfig::parse(text);
      if (config) topics_.insert(config->topic_name);
    } else if (auto it = topics_.find(text); change.starts_with("D ") && it != topics_.end()) {
      topics_.erase(it);
    }
  }
  std::string judge_topics(std::string_view content) {
    auto body = proto::TopicConfigSerializeWrapper::parse(content);
    if (!body) return rmq::to_string(body.error());
    for (const auto& [name, config] : body->topic_config_table) topics_.insert(name);
    return "";
  }

  const bool show_;
  const int64_t began_ns_;
  int64_t shown_ns_ = 0;
  uint64_t done_bytes_ = 0;
  std::set<std::string, std::less<>> topics_;
};

const char* severity_name(offline::Severity s) {
  return s == offline::Severity::damage ? "damage" : "note";
}

const char* writer_name(offline::Writer w) {
  return w == offline::Writer::rmqd ? "rmqd" : w == offline::Writer::rocketmq ? "RocketMQ" : "none";
}

std::string state_text(const offline::CheckReport& r) {
  if (r.stopped) return "stopped in order";
  if (r.running == offline::Writer::none) return "looked at while a broker has it open";
  return fmt::format("{} was killed, or runs", writer_name(r.running));
}

std::string finding_line(const offline::Finding& f) {
  return fmt::format("{:<7} {:<12} {}{}: {}\n", severity_name(f.severity), offline::name_of(f.kind), f.path,
                     f.offset >= 0 ? fmt::format(" @{}", f.offset) : "", f.text);
}

std::string findings_text(const offline::Findings& findings) {
  std::string out;
  for (auto severity : {offline::Severity::damage, offline::Severity::note}) {
    uint64_t kept = 0;
    for (const offline::Finding& f : findings.kept()) {
      if (f.severity != severity) continue;
      out += finding_line(f);
      kept++;
    }
    uint64_t more = findings.count(severity) - kept;
    if (more != 0)
      out += fmt::format("{:<7} and {} more like these\n", severity_name(severity),
                         format_number(static_cast<int64_t>(more)));
  }
  return out.empty() ? out : out + "\n";
}

std::string report_text(const offline::CheckReport& r, const std::string& root, const Helper& h) {
  std::string out = findings_text(r.findings);
  auto line = [&](std::string_view name, std::string value) {
    out += fmt::format("{:<16}{}\n", name, value);
  };
  auto n = [](uint64_t v) { return format_number(static_cast<int64_t>(v)); };
  line("Store", root);
  line("State", state_text(r));
  line("CommitLog", fmt::format("{} files, {} records ({}), offsets {} to {}", n(r.log_files), n(r.records),
                                format_bytes(static_cast<int64_t>(r.record_bytes)), r.log_begin, r.log_end));
  line("ConsumeQueues", fmt::format("{} in {} topics, {} files, {} units", n(r.queues.queues),
                                    n(r.queues.topics), n(r.queues.files), n(r.queues.units)));
  if (r.queues.set_aside != 0)
    line("", fmt::format("{} blank units for records that were set aside", n(r.queues.set_aside)));
  if (r.queues.pending != 0)
    line("", fmt::format("{} records whose units a broker makes at its start", n(r.queues.pending)));
  if (r.queues.deleted_topic_records != 0)
    line("", fmt::format("{} records of deleted topics", n(r.queues.deleted_topic_records)));
  if (r.queues.batch_queues != 0)
    line("", fmt::format("{} of type BatchCQ, {} units of RocketMQ's", n(r.queues.batch_queues),
                         n(r.queues.batch_units)));
  if (r.index.files != 0)
    line("Index", fmt::format("{} files, {} entries", n(r.index.files), n(r.index.entries)));
  if (r.index.unindexed != 0)
    line("", fmt::format("{} records with keys are behind its end", n(r.index.unindexed)));
  if (r.compaction.queues != 0)
    line("Compacted", fmt::format("{} queues, {} files, {} records", n(r.compaction.queues),
                                  n(r.compaction.files), n(r.compaction.records)));
  if (r.torn_bytes != 0) line("Behind the end", format_bytes(static_cast<int64_t>(r.torn_bytes)));
  line("Configuration", fmt::format("{} files", n(r.config_files)));
  line("Looked through", fmt::format("in {:.1f} s, {}/s", h.seconds(),
                                     format_bytes(static_cast<int64_t>(h.bytes_per_second()))));
  line("Result",
       r.clean() ? "clean" : fmt::format("{} damages", n(r.findings.count(offline::Severity::damage))));
  return out;
}

void write_findings(proto::JsonWriter& w, const offline::Findings& findings) {
  w.key("findings");
  w.begin_array();
  for (const offline::Finding& f : findings.kept()) {
    w.begin_object();
    w.member("severity", severity_name(f.severity));
    w.member("kind", offline::name_of(f.kind));
    w.member("path", std::string_view(f.path));
    if (f.offset >= 0) w.member("offset", f.offset);
    w.member("text", std::string_view(f.text));
    w.end_object();
  }
  w.end_array();
  w.member("damages", static_cast<int64_t>(findings.count(offline::Severity::damage)));
  w.member("notes", static_cast<int64_t>(findings.count(offline::Severity::note)));
}

std::string report_json(const offline::CheckReport& r, const std::string& root, const Helper& h) {
  proto::JsonWriter w(proto::JsonStyle::strict);
  auto number = [&](const char* name, uint64_t v) { w.member(name, static_cast<int64_t>(v)); };
  w.begin_object();
  w.member("store", std::string_view(root));
  w.member("clean", r.clean());
  w.member("stopped", r.stopped);
  w.member("leftBy", writer_name(r.running));
  number("logFiles", r.log_files);
  number("logFileBytes", r.log_file_bytes);
  number("minOffset", r.log_begin);
  number("maxOffset", r.log_end);
  number("records", r.records);
  number("recordBytes", r.record_bytes);
  number("transactionRecords", r.transaction_records);
  number("tornBytes", r.torn_bytes);
  w.member("firstStoreTimestamp", r.first_store_ms);
  w.member("lastStoreTimestamp", r.last_store_ms);
  number("topics", r.queues.topics);
  number("queues", r.queues.queues);
  number("queueFiles", r.queues.files);
  number("units", r.queues.units);
  number("expiredUnits", r.queues.expired);
  number("setAsideUnits", r.queues.set_aside);
  number("pendingUnits", r.queues.pending);
  number("queueRestarts", r.queues.restarts);
  number("deletedTopicRecords", r.queues.deleted_topic_records);
  number("batchQueues", r.queues.batch_queues);
  number("batchUnits", r.queues.batch_units);
  number("indexFiles", r.index.files);
  number("indexEntries", r.index.entries);
  number("expiredIndexEntries", r.index.expired);
  number("unindexedRecords", r.index.unindexed);
  number("compactedQueues", r.compaction.queues);
  number("compactionFiles", r.compaction.files);
  number("compactedRecords", r.compaction.records);
  number("configFiles", r.config_files);
  write_findings(w, r.findings);
  w.member("seconds", h.seconds());
  w.member("bytesPerSecond", h.bytes_per_second());
  w.end_object();
  return w.take() + "\n";
}

Outcome<void> check(Context& c) {
  const Options& o = c.options();
  offline::CheckOptions options;
  options.root = c.arg(0);
  options.commit_log_dir = o.commit_log;
  options.live = o.live;
  if (o.index_slots) options.index_layout.slots = static_cast<uint32_t>(*o.index_slots);
  if (o.index_entries) options.index_layout.entries = static_cast<uint32_t>(*o.index_entries);
  options.kept_of_each = static_cast<size_t>(o.count.value_or(20));
  Helper helper(Context::stderr_is_terminal());
  auto report = offline::check_store(options, helper);
  helper.end_progress();
  if (!report) return std::unexpected(store_failure(options.root, report.error()));
  c.print(o.json ? report_json(*report, options.root, helper) : report_text(*report, options.root, helper));
  if (report->clean()) return {};
  return fail(Exit::damaged, fmt::format("{} is damaged: {} findings", options.root,
                                         report->findings.count(offline::Severity::damage)));
}

Outcome<void> write_output(const std::string& path, const std::string& text) {
  FILE* f = fopen(path.c_str(), "wxe");
  if (f == nullptr)
    return fail(Exit::refused, fmt::format("{} cannot be made: {}{}", path, strerror(errno),
                                           errno == EEXIST ? "; nothing is overwritten" : ""));
  bool good = fwrite(text.data(), 1, text.size(), f) == text.size();
  good = fclose(f) == 0 && good;
  if (!good) return fail(Exit::refused, fmt::format("{} cannot be written: {}", path, strerror(errno)));
  return {};
}

Outcome<void> import_config(Context& c) {
  const std::string& path = c.arg(0);
  auto text = offline::read_small_file(path, config_bytes_max);
  if (!text)
    return fail(Exit::unreadable, fmt::format("{} cannot be read: {}", path, rmq::to_string(text.error())));
  ImportedConfig imported = import_broker_config(*text, path);
  const std::string& output = c.options().output;
  if (!output.empty()) {
    TRY(write_output(output, imported.toml));
    c.note(fmt::format("{} has {} settings of {}", output, imported.taken, path));
  } else {
    c.print(imported.toml);
  }
  for (const std::string& r : imported.refused) c.note("refused: " + r);
  if (imported.refused.empty()) return {};
  return fail(Exit::refused, fmt::format("{} settings of {} are refused: rmqd would do otherwise",
                                         imported.refused.size(), path));
}

constexpr OptionSpec check_options[] = {
    {"--commit-log", "DIR", &Options::commit_log, "where the CommitLog is, when storePathCommitLog moved it"},
    {"--count", "N", &Options::count, "show at most N findings of each kind (default 20); all are counted", 1,
     1'000'000},
    {"--index-slots", "N", &Options::index_slots, "maxHashSlotNum of the broker (default 5000000)", 1,
     INT32_MAX},
    {"--index-entries", "N", &Options::index_entries, "maxIndexNum of the broker (default 20000000)", 1,
     INT32_MAX},
    {"--live", nullptr, &Options::live,
     "also when a broker has the store open; what it writes meanwhile may be reported"},
};

constexpr OptionSpec dump_options[] = {
    {"--commit-log", "DIR", &Options::commit_log, "where the CommitLog is, when storePathCommitLog moved it"},
    {"--from", "OFFSET", &Options::from,
     "begin at this physical offset, or the first record behind it; with --consume-queue at this queue "
     "offset"},
    {"--count", "N", &Options::count, "show at most N", 1, INT64_MAX},
    {"-t,--topic", "TOPIC", &Options::topic, "only records of this topic"},
    {"--queue", "N", &Options::queue, "only records of this queue", 0, INT32_MAX},
    {"--consume-queue", "TOPIC/QUEUE", &Options::consume_queue,
     "show the units of this ConsumeQueue instead"},
    {"--live", nullptr, &Options::live, "also when a broker has the store open"},
};

constexpr OptionSpec import_options[] = {
    {"-o,--output", "FILE", &Options::output,
     "write it there instead of to standard output; FILE must be new"},
};

constexpr Verb verbs[] = {
    {"store check", "DIR", 1, 1, check_options, check,
     "verify the directory of a stopped broker, ours or RocketMQ's",
     "Looks at every record of the CommitLog (size, magic, CRC, fields, offsets), at every ConsumeQueue unit "
     "against its record and the other way round, at the index, at both checkpoints and at the configuration "
     "files. "
     "Nothing is changed. A store that a killed broker left is judged by what its next start makes of it: "
     "notes say what that will be. Exit code 0: clean, 2: damaged, 66: it cannot be read or is a store of "
     "another kind, 1: a broker has it open."},
    {"store dump", "DIR", 1, 1, dump_options, store_dump, "show the records of a store's CommitLog, or units",
     "A line a record: physical offset, size, topic/queue @ queue offset, time stored, tags, keys, the first "
     "of the body. With --json a document a line, with everything. Exit code 2: places without a valid "
     "record "
     "were passed over, standard error says which."},
    {"store import-config", "FILE", 1, 1, import_options, import_config,
     "turn a RocketMQ broker's properties file into rmqd.toml",
     "Every setting that rmqd has is converted. The others stand in comments, each with the reason why rmqd "
     "has "
     "no use for it. A setting without which the broker would do something else for its clients (access "
     "control, replication, RocksDB queues), or a value that rmqd does not take, is refused: the rest is "
     "converted all the same, the exit code is 1."},
};

}  // namespace

std::span<const Verb> store_verbs() {
  return verbs;
}

}  // namespace rmq::ctl

// The table that rmqctl is: each verb with its words, arguments, options, function and help. Dispatch, help
// texts, completion words and the man page come from it. What mqadmin calls a verb: mqadmin.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ctl/outcome.h"

namespace rmq::ctl {

class Context;

// Everything that a command line can say; which members an invocation sets is up to its verb's options.
struct Options {
  std::vector<std::string> args;  // the plain arguments behind the verb
  // For every verb.
  std::string namesrv;
  std::string timeout;
  bool json = false;
  bool watch = false;  // of verbs that list
  std::string interval;
  bool jstack = false;
  // Which servers and what.
  std::string broker, cluster, topic, group;
  bool yes = false, all = false;
  // Topics and groups.
  std::optional<int64_t> queues, read_queues, write_queues, retry_max, retry_queues, broker_id,
      slow_broker_id;
  std::string perm, order;
  std::vector<std::string> attributes;
  bool upsert = false;  // create or update
  bool keep_offsets = false, no_broadcast = false, disabled = false, no_from_min = false, no_notify = false;
  std::string retry_policy;
  bool groups = false, topics_only = false;
  std::vector<std::string> skip_groups;
  std::string settle;
  // Sending.
  std::string tag, file, delay;
  std::vector<std::string> keys, properties;
  std::optional<int64_t> queue, delay_level, count, batch, topics;
  bool lines = false;
  // Reading.
  std::string from, to, sql, wait;  // wait: --timeout of verbs that wait for messages
  std::optional<int64_t> last;
  bool follow = false, hex = false, body_only = false, by_tag = false;
  // Looking.
  bool more = false, active = false, orderly = false;
  std::optional<int64_t> min_lag;
  // Export and import.
  std::vector<std::string> only;
  bool dry_run = false;
  // Load.
  std::optional<int64_t> connections, window, max_messages;
  std::string size, duration;
  // Stores.
  std::string commit_log, consume_queue, output;
  std::optional<int64_t> index_slots, index_entries;
  bool live = false;
};

// One option of a verb. `names` as CLI11 takes them ("-n,--namesrv"); flags have no `value`.
struct OptionSpec {
  using Member = std::variant<bool Options::*, std::string Options::*, std::optional<int64_t> Options::*,
                              std::vector<std::string> Options::*>;
  const char* names;
  const char* value;
  Member member;
  const char* help;
  int64_t min = 0, max = INT64_MAX;  // of numbers
};

struct Verb {
  const char* words;      // "topic create"
  const char* arguments;  // "TOPIC [KEY...]", for help
  int arguments_min, arguments_max;
  std::span<const OptionSpec> options;
  Outcome<void> (*run)(Context&);
  const char* summary;  // one line
  const char* help;     // paragraphs
  bool lists = false;   // shows a state, so that it can be shown again and again (--watch)
};

std::span<const Verb> verb_table();
std::span<const OptionSpec> global_options();
// Those of the verb itself, and what verbs that list have besides.
std::vector<const OptionSpec*> own_options(const Verb& verb);
// By words. Null when there is none.
const Verb* find_verb(std::string_view words);

// The families, each in its file; verb_table() puts them together.
std::span<const Verb> cluster_verbs();
std::span<const Verb> export_verbs();
std::span<const Verb> broker_verbs();
std::span<const Verb> broker_lag_verbs();
std::span<const Verb> topic_verbs();
std::span<const Verb> topic_order_verbs();
std::span<const Verb> topic_stats_verbs();
std::span<const Verb> latency_verbs();
std::span<const Verb> group_verbs();
std::span<const Verb> producer_verbs();
std::span<const Verb> namesrv_verbs();
std::span<const Verb> send_verbs();
std::span<const Verb> consume_verbs();
std::span<const Verb> message_verbs();
std::span<const Verb> message_trace_verbs();
std::span<const Verb> transaction_verbs();
std::span<const Verb> timer_verbs();
std::span<const Verb> dlq_verbs();
std::span<const Verb> bench_verbs();
std::span<const Verb> store_verbs();
std::span<const Verb> doctor_verbs();
std::span<const Verb> top_verbs();

}  // namespace rmq::ctl

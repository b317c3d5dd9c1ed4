// The table that rmqctl is: each verb with its words, arguments, options, function and help. Dispatch, help
// texts, completion words and the man page come from it. mqadmin's name of a verb works as an alias, with
// mqadmin's options for what is a plain argument here.
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
  std::optional<int64_t> queues, read_queues, write_queues, retry_max;
  std::string perm, order;
  std::vector<std::string> attributes;
  bool upsert = false;  // set by the alias updateTopic: create or update
  bool keep_offsets = false, no_broadcast = false, disabled = false;
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
  bool follow = false, hex = false, body_only = false;
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
  // mqadmin's name of it, and which of mqadmin's options stand for the plain arguments, in order.
  const char* mqadmin = "";
  const char* mqadmin_arguments = "";
  bool lists = false;  // shows a state, so that it can be shown again and again (--watch)
};

// What mqadmin calls a verb. `arguments` are mqadmin's options that stand for the plain arguments, in order;
// one behind "!" takes a value that means nothing here.
struct MqadminName {
  const char* name = "";
  const Verb* verb = nullptr;
  const char* arguments = "";
};
// All of them, sorted as the verbs are; some verbs have several.
std::span<const MqadminName> mqadmin_names();
// In any case of letters. Null when there is none.
const MqadminName* find_mqadmin_name(std::string_view name);

std::span<const Verb> verb_table();
std::span<const OptionSpec> global_options();
// Those of the verb itself, and what verbs that list have besides.
std::vector<const OptionSpec*> own_options(const Verb& verb);
// By words, or by mqadmin's name. Null when there is none.
const Verb* find_verb(std::string_view words);

// The families, each in its file; verb_table() puts them together.
std::span<const Verb> cluster_verbs();
std::span<const Verb> broker_verbs();
std::span<const Verb> topic_verbs();
std::span<const Verb> group_verbs();
std::span<const Verb> producer_verbs();
std::span<const Verb> namesrv_verbs();
std::span<const Verb> send_verbs();
std::span<const Verb> consume_verbs();
std::span<const Verb> message_verbs();
std::span<const Verb> transaction_verbs();
std::span<const Verb> timer_verbs();
std::span<const Verb> dlq_verbs();
std::span<const Verb> bench_verbs();
std::span<const Verb> store_verbs();
std::span<const Verb> doctor_verbs();
std::span<const Verb> top_verbs();

}  // namespace rmq::ctl

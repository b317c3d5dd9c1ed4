// From argv to a verb and its Options, or to one line that says what is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "ctl/outcome.h"
#include "ctl/verb.h"

namespace rmq::ctl {

struct MqadminCommand;

struct Invocation {
  const Verb* verb = nullptr;
  Options options;
  // Set instead of the verb for "help", "--help", "--version" and the dumps: what to print.
  std::string text;
};

// `args` without the program's name. Reads no environment: the caller puts NAMESRV_ADDR in.
Outcome<Invocation> parse_command_line(std::vector<std::string> args);
// The same for the program called mqadmin: its command lines, which know verbs by mqadmin's names only.
// Nothing is asked, as mqadmin never asks.
Outcome<Invocation> parse_mqadmin_line(std::vector<std::string> args);

std::string help_overview();
std::string help_of_mqadmin();
std::string help_of_mqadmin(const MqadminCommand& command);
std::string help_of(const Verb& verb);
// For "rmqctl help topic": the verbs that begin with these words, empty when there is none.
std::string help_of_family(std::string_view words);
// troff for rmqctl(1).
std::string man_of_verbs();
// One completion a line: verbs and options, "topic create", "topic create --queues".
std::string completion_words();

}  // namespace rmq::ctl

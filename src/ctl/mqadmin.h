// The commands of Apache RocketMQ's mqadmin, 5.5.0: for each the verb that does it, with every option that it
// has there, or the reason why it is not done. A command line of mqadmin is turned into one of rmqctl's; what
// it prints is rmqctl's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/outcome.h"

namespace rmq::ctl {

struct MqadminCommand {
  // "queryMsgById -d" is what another verb does of queryMsgById: with that option.
  const char* name;
  // Words of the verb, then options that are always given, where the command's own do not say otherwise.
  // Empty: see `refusal`.
  const char* verb;
  // Its options there and what they are here, separated by blanks: "-t,--topic=1". All have -n and -h
  // besides. Behind the "=":
  //   1          the first plain argument; 1:text has a value when it is not given
  //   --queues   its value goes to this option
  //   @1, @--to  the same, a moment as mqadmin writes it (milliseconds, yyyy-MM-dd#HH:mm:ss:SSS, now)
  //   s--x, ms--x  the same, a number of seconds, of milliseconds
  //   ?--x, !--x this flag when the value is true, when it is false; ~--x: the flag unless the value is true,
  //              also when it is not given
  //   +--x       a flag there and here
  //   $          the value is the last word of the verb
  //   *          not done: refused; ?*: refused when it is true; +*: a flag that is refused
  //   nothing    a value that means nothing here; +: a flag that means nothing here
  // Of several that go to one place the last one in this order counts.
  const char* options;
  const char* refusal;  // why not, and what to use instead
};

std::span<const MqadminCommand> mqadmin_commands();
// In any case of letters. Null when there is none.
const MqadminCommand* find_mqadmin_command(std::string_view name);

// An option of a row, taken apart.
struct MqadminOption {
  std::vector<std::string_view> names;
  std::string_view target;
  bool takes_value = true;
};
std::vector<MqadminOption> options_of(const MqadminCommand& command);

// A command line in rmqctl's form.
struct Translated {
  std::string words;                   // of the verb
  std::vector<std::string> arguments;  // plain ones, which may begin with "-"
  std::vector<std::string> options;    // as rmqctl takes them; what mqadmin does not know is passed on
};
// `args` are what stands behind the command's name. Exit::usage for a command or an option that is not done,
// and for an option without its value.
Outcome<Translated> translate(const MqadminCommand& command, const std::vector<std::string>& args);

// Names of the commands that do this verb, for help.
std::vector<std::string_view> mqadmin_names_of(std::string_view words);

}  // namespace rmq::ctl

// Help, completion words and the man page: all of it printed from the verb table.

#include <fmt/format.h>

#include <algorithm>

#include "ctl/command_line.h"
#include "ctl/mqadmin.h"
#include "ctl/print.h"

namespace rmq::ctl {

namespace {

std::string option_text(const OptionSpec& o) {
  std::string names = o.names;
  for (auto at = names.find(','); at != std::string::npos; at = names.find(',', at + 2))
    names.insert(at + 1, " ");
  if (!names.starts_with("-") || names[1] == '-') names.insert(0, "    ");
  return o.value ? names + " " + o.value : names;
}

std::string usage_text(const Verb& v) {
  std::string out = v.words;
  if (*v.arguments) out += std::string(" ") + v.arguments;
  return out;
}

// Breaks at blanks so that lines, each after `indent`, stay below 79 columns. Newlines in `text` stay.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    if (text.front() == '\n') {
      out += '\n';
      column = 0;
      text.remove_prefix(1);
      continue;
    }
    auto end = text.find_first_of(" \n");
    std::string_view word = text.substr(0, end);
    if (column > 0 && column + 1 + display_width(word) > 78) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out.append(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      column++;
    }
    out += word;
    column += display_width(word);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end);
    if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  return out + "\n";
}

std::string option_lines(std::span<const OptionSpec* const> options) {
  std::string out;
  for (const OptionSpec* o : options) {
    std::string names = "  " + option_text(*o);
    std::string help = wrapped(o->help, 30);
    if (names.size() < 29) {
      out += names + help.substr(names.size());
    } else {
      out += names + "\n" + help;
    }
  }
  return out;
}

std::string troff(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
      out += c;
      if (c == '\n') out += ".br\n";
    }
  }
  return out;
}

std::string man_option(const OptionSpec& o) {
  std::string names = o.names;
  for (auto at = names.find(','); at != std::string::npos; at = names.find(',', at + 2))
    names.insert(at + 1, " ");
  std::string head = "\\fB" + troff(names) + "\\fR";
  if (o.value) head += " \\fI" + troff(o.value) + "\\fR";
  return fmt::format(".TP\n{}\n{}\n", head, troff(o.help));
}

}  // namespace

std::string help_overview() {
  std::string out =
      "rmqctl [OPTION...] VERB [ARGUMENT...]\n"
      "Looks after RocketMQ brokers, topics and groups; sends and reads messages.\n\n";
  for (const Verb& v : verb_table()) {
    std::string usage = "  " + usage_text(v);
    out += usage.size() < 38 ? fmt::format("{:<38}{}\n", usage, v.summary)
                             : fmt::format("{}\n{:38}{}\n", usage, "", v.summary);
  }
  out += "\nFor every verb:\n";
  std::vector<const OptionSpec*> options;
  for (const OptionSpec& o : global_options()) options.push_back(&o);
  out += option_lines(options);
  out +=
      "\n\"rmqctl help VERB\" tells more about one. Exit codes: 0 done, 1 a server refused,\n"
      "2 a store is damaged, 64 wrong usage, 65 malformed input, 66 a store or file cannot be read,\n"
      "69 no server could be reached.\n";
  return out;
}

std::string help_of_mqadmin() {
  std::string out =
      "mqadmin COMMAND [OPTION...]\n"
      "Commands of Apache RocketMQ's mqadmin, done by rmqctl: the same names and options, rmqctl's "
      "output.\n\n";
  std::string others;
  for (const MqadminCommand& m : mqadmin_commands()) {
    if (*m.refusal) {
      others += (others.empty() ? "" : ", ") + std::string(m.name);
      continue;
    }
    const std::string_view verb = m.verb;
    out += fmt::format("  {:<26}rmqctl {}\n", m.name, verb.substr(0, verb.find(" --")));
  }
  out += "\nNot done; each says why when it is called:\n" + wrapped(others, 2);
  return out + "\n\"mqadmin help COMMAND\" tells more about one.\n";
}

// What an option of mqadmin's is here, in words.
static std::string meaning_of(std::string_view target) {
  if (target.empty() || target == "+") return "taken, without a meaning here";
  if (target == "$") return "the last word";
  if (target == "*" || target == "+*") return "not done";
  if (target == "?*") return "not done when true";
  const char kind = target[0];
  const std::string_view here = target.substr(std::min(target.find_first_not_of("@?!~+sm"), target.size()));
  if (here[0] >= '1' && here[0] <= '9') return fmt::format("plain argument {}", here[0]);
  return fmt::format("{}{}", here,
                     kind == '?'   ? " when true"
                     : kind == '!' ? " when false"
                     : kind == '~' ? " unless true"
                                   : "");
}

std::string help_of_mqadmin(const MqadminCommand& command) {
  if (*command.refusal) return fmt::format("{} is not done.\n{}", command.name, wrapped(command.refusal, 0));
  std::string_view words = command.verb;
  words = words.substr(0, words.find(" --"));
  std::string out =
      fmt::format("mqadmin {} is \"rmqctl {}\", with mqadmin's options:\n", command.name, command.verb);
  for (const MqadminOption& o : options_of(command)) {
    const std::string names = fmt::format("{}{}", fmt::join(o.names, ", "), o.takes_value ? " VALUE" : "");
    const std::string other = fmt::format("{} {}", command.name, o.names[0]);
    out += fmt::format(
        "  {:<44}{}\n", names,
        find_mqadmin_command(other) ? fmt::format("mqadmin help \"{}\"", other) : meaning_of(o.target));
  }
  const Verb* verb = find_verb(words);
  return out + "\n" + (verb ? help_of(*verb) : help_of_family(words));
}

std::string help_of(const Verb& v) {
  std::string out = fmt::format("rmqctl {}\n{}\n", usage_text(v), wrapped(v.summary, 0));
  if (*v.help) out += wrapped(v.help, 0) + "\n";
  auto options = own_options(v);
  if (!options.empty()) out += "Options:\n" + option_lines(options) + "\n";
  std::vector<const OptionSpec*> rest;
  for (const OptionSpec& o : global_options()) {
    bool own = std::any_of(options.begin(), options.end(),
                           [&](const OptionSpec* mine) { return std::string_view(mine->names) == o.names; });
    if (!own) rest.push_back(&o);
  }
  out += "For every verb:\n" + option_lines(rest);
  if (auto names = mqadmin_names_of(v.words); !names.empty())
    out += fmt::format("\nmqadmin calls it {}; that works too, with mqadmin's options.\n",
                       fmt::join(names, ", "));
  return out;
}

std::string help_of_family(std::string_view words) {
  std::string out;
  for (const Verb& v : verb_table()) {
    std::string_view mine = v.words;
    if (mine != words && !mine.starts_with(std::string(words) + " ")) continue;
    std::string usage = "  " + usage_text(v);
    out += usage.size() < 38 ? fmt::format("{:<38}{}\n", usage, v.summary)
                             : fmt::format("{}\n{:38}{}\n", usage, "", v.summary);
  }
  return out;
}

std::string man_of_verbs() {
  std::string out;
  for (const Verb& v : verb_table()) {
    out += fmt::format(".SS \"{}\"\n", troff(usage_text(v)));
    out += troff(v.summary) + ".\n";
    if (*v.help) out += ".PP\n" + troff(v.help) + "\n";
    for (std::string_view name : mqadmin_names_of(v.words))
      out += fmt::format(".PP\nmqadmin calls it \\fB{}\\fR; that name works too.\n", troff(name));
    for (const OptionSpec* o : own_options(v)) out += man_option(*o);
  }
  out += ".SS \"Options of every verb\"\n";
  for (const OptionSpec& o : global_options()) out += man_option(o);
  return out;
}

std::string completion_words() {
  std::string out;
  auto option = [&](std::string_view words, const OptionSpec& o) {
    std::string_view names = o.names;
    out += fmt::format("{}{}{}\n", words, words.empty() ? "" : " ", names.substr(names.rfind(',') + 1));
  };
  for (const OptionSpec& o : global_options()) option("", o);
  for (const Verb& v : verb_table()) {
    out += std::string(v.words) + "\n";
    for (const OptionSpec* o : own_options(v)) option(v.words, *o);
  }
  return out;
}

}  // namespace rmq::ctl

// Idea: see command_line.h. The words of the verb are found first (global options may stand before and
// between them), then CLI11 gets the rest with exactly the options of that verb. CLI11 reports by exceptions;
// they end here, as Failures of one line.

#include "ctl/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>

#include "ctl/mqadmin.h"

namespace rmq::ctl {

namespace {

static constexpr OptionSpec globals[] = {
    {"-n,--namesrv", "HOST:PORT", &Options::namesrv,
     "name servers, several separated by ';' (default: $NAMESRV_ADDR, else 127.0.0.1:9876)"},
    {"--json", nullptr, &Options::json, "answer in JSON, for programs"},
    {"--timeout", "DURATION", &Options::timeout, "how long to wait for a server (500ms, 3s; default 5s)"},
};

static constexpr OptionSpec of_lists[] = {
    {"--watch", nullptr, &Options::watch, "show it again and again, until Ctrl-C"},
    {"--interval", "DURATION", &Options::interval, "with --watch: how often (default 2s)"},
};

bool takes_value(const OptionSpec& o) {
  return o.value != nullptr;
}

bool has_name(const OptionSpec& o, std::string_view name) {
  std::string_view names = o.names;
  while (!names.empty()) {
    auto end = names.find(',');
    if (names.substr(0, end) == name) return true;
    names = end == std::string_view::npos ? std::string_view() : names.substr(end + 1);
  }
  return false;
}

// The global options that this verb has not made its own.
std::vector<const OptionSpec*> options_of(const Verb& verb) {
  std::vector<const OptionSpec*> out = own_options(verb);
  for (const OptionSpec& g : globals) {
    std::string_view names = g.names;
    std::string_view last = names.substr(names.rfind(',') + 1);
    bool own = std::any_of(verb.options.begin(), verb.options.end(),
                           [&](const OptionSpec& o) { return has_name(o, last); });
    if (!own) out.push_back(&g);
  }
  return out;
}

// Indexes in `args` of words that are not global options or their values, up to the first other option.
std::vector<size_t> leading_words(const std::vector<std::string>& args) {
  std::vector<size_t> out;
  for (size_t i = 0; i < args.size(); i++) {
    std::string_view a = args[i];
    if (!a.starts_with('-') || a == "-") {
      out.push_back(i);
      continue;
    }
    auto g = std::find_if(std::begin(globals), std::end(globals),
                          [&](const OptionSpec& o) { return has_name(o, a.substr(0, a.find('='))); });
    bool attached = a.starts_with("-n") && a.size() > 2 && a[1] != '-';
    if (g == std::end(globals) && !attached) break;
    if (g != std::end(globals) && takes_value(*g) && a.find('=') == std::string_view::npos) i++;
  }
  return out;
}

void bind(CLI::App& app, const OptionSpec& spec, Options& o) {
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(o.*member)>;
        if constexpr (std::is_same_v<Value, bool>) {
          app.add_flag(spec.names, o.*member);
        } else {
          CLI::Option* option = app.add_option(spec.names, o.*member);
          if constexpr (std::is_same_v<Value, std::optional<int64_t>>)
            option->check(CLI::Range(spec.min, spec.max));
          if constexpr (std::is_same_v<Value, std::vector<std::string>>)
            option->allow_extra_args(false);  // one value for each time that it is given
        }
      },
      spec.member);
}

// CLI11's text as the end of one line of ours.
std::string reason_of(const CLI::ParseError& e) {
  std::string out = e.what();
  std::replace(out.begin(), out.end(), '\n', ' ');
  while (!out.empty() && (out.back() == ' ' || out.back() == '.')) out.pop_back();
  return out;
}

std::string words_of(const std::vector<std::string>& args, const std::vector<size_t>& at, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; i++) out += (i ? " " : "") + args[at[i]];
  return out;
}

struct Found {
  const Verb* verb = nullptr;
  const MqadminCommand* command = nullptr;  // instead of a verb
  size_t words = 0;
};

Found find_in(const std::vector<std::string>& args, const std::vector<size_t>& at) {
  for (size_t n = std::min<size_t>(at.size(), 3); n > 0; n--) {
    std::string words = words_of(args, at, n);
    if (const Verb* v = find_verb(words)) return {v, nullptr, n};
  }
  return {nullptr, find_mqadmin_command(args[at[0]]), 1};
}

// A family named without its verb, or something unknown.
std::unexpected<Failure> no_such_verb(const std::vector<std::string>& args, const std::vector<size_t>& at) {
  std::string family = args[at[0]];
  std::string choices;
  for (const Verb& v : verb_table()) {
    std::string_view words = v.words;
    if (!words.starts_with(family + " ")) continue;
    choices += (choices.empty() ? "" : ", ") + std::string(words.substr(family.size() + 1));
  }
  if (choices.empty())
    return fail(Exit::usage, fmt::format("there is no verb \"{}\"; \"rmqctl help\" lists them", family));
  if (at.size() < 2) return fail(Exit::usage, fmt::format("{} what? One of: {}", family, choices));
  return fail(Exit::usage, fmt::format("{} has no \"{}\"; one of: {}", family, args[at[1]], choices));
}

Outcome<void> check_arguments(const Verb& verb, const Options& o) {
  auto given = static_cast<int>(o.args.size());
  std::string_view form = verb.arguments;
  if (given < verb.arguments_min)
    return fail(Exit::usage,
                fmt::format("{}: missing arguments; it is \"rmqctl {} {}\"", verb.words, verb.words, form));
  if (given > verb.arguments_max)
    return fail(Exit::usage, fmt::format("{}: \"{}\" is too much; it is \"rmqctl {}{}{}\"", verb.words,
                                         o.args[static_cast<size_t>(verb.arguments_max)], verb.words,
                                         form.empty() ? "" : " ", form));
  return {};
}

Outcome<Invocation> parse_verb(const Verb& verb, std::vector<std::string> rest,
                               std::vector<std::string> arguments) {
  Invocation out{&verb, {}, {}};
  CLI::App app;
  app.set_help_flag();
  app.allow_windows_style_options(false);
  bool help = false;
  app.add_flag("-h,--help", help);
  for (const OptionSpec* o : options_of(verb)) bind(app, *o, out.options);
  app.add_option("args", out.options.args);
  try {
    std::reverse(rest.begin(), rest.end());  // CLI11 takes them from the back
    app.parse(std::move(rest));
  } catch (const CLI::ParseError& e) {
    if (!help)
      return fail(Exit::usage,
                  fmt::format("{}: {} (see \"rmqctl help {}\")", verb.words, reason_of(e), verb.words));
  }
  if (help) {
    out.text = help_of(verb);
    return out;
  }
  out.options.args.insert(out.options.args.begin(), arguments.begin(), arguments.end());
  TRY(check_arguments(verb, out.options));
  return out;
}

// One of its options says which of several verbs it is, and says none of them.
std::unexpected<Failure> no_such_choice(const MqadminCommand& command) {
  std::string option, choices;
  for (const MqadminOption& o : options_of(command))
    if (o.target == "$") option = o.names[0];
  for (const Verb& v : verb_table())
    if (std::string_view words = v.words; words.starts_with(std::string(command.verb) + " "))
      choices += (choices.empty() ? "" : ", ") + std::string(words.substr(words.rfind(' ') + 1));
  return fail(Exit::usage, fmt::format("{}: {} must be one of {}", command.name, option, choices));
}

Outcome<Invocation> parse_mqadmin(const MqadminCommand& command, const std::vector<std::string>& args) {
  TRY_VAR(t, translate(command, args));
  if (std::find(t.options.begin(), t.options.end(), "--help") != t.options.end())
    return Invocation{nullptr, {}, help_of_mqadmin(command)};
  const Verb* verb = find_verb(t.words);
  if (!verb) return no_such_choice(command);
  return parse_verb(*verb, std::move(t.options), std::move(t.arguments));
}

Outcome<Invocation> parse_help(const std::vector<std::string>& words) {
  Invocation out;
  if (words.empty()) {
    out.text = help_overview();
    return out;
  }
  std::string all = fmt::format("{}", fmt::join(words, " "));
  if (const Verb* v = find_verb(all)) out.text = help_of(*v);
  std::string family = help_of_family(all);
  const MqadminCommand* command = find_mqadmin_command(all);
  if (out.text.empty() && command) out.text = help_of_mqadmin(*command);
  if (out.text.empty()) out.text = family;
  if (out.text.empty())
    return fail(Exit::usage, fmt::format("there is no verb \"{}\"; \"rmqctl help\" lists them", all));
  return out;
}

}  // namespace

std::span<const OptionSpec> global_options() {
  return globals;
}

std::vector<const OptionSpec*> own_options(const Verb& verb) {
  std::vector<const OptionSpec*> out;
  for (const OptionSpec& o : verb.options) out.push_back(&o);
  if (verb.lists)
    for (const OptionSpec& o : of_lists) out.push_back(&o);
  return out;
}

const Verb* find_verb(std::string_view words) {
  for (const Verb& v : verb_table())
    if (words == v.words) return &v;
  return nullptr;
}

Outcome<Invocation> parse_command_line(std::vector<std::string> args) {
  Invocation out;
  if (args.empty()) return fail(Exit::usage, "what shall I do? \"rmqctl help\" lists the verbs");
  std::string_view first = args[0];
  if (first == "-h" || first == "--help") out.text = help_overview();
  if (first == "-V" || first == "--version") out.text = "rmqctl " RMQD_VERSION "\n";
  if (first == "--dump-verbs-man") out.text = man_of_verbs();
  if (first == "--dump-completion") out.text = completion_words();
  if (!out.text.empty()) return out;
  auto at = leading_words(args);
  if (at.empty()) return fail(Exit::usage, "a verb is missing; \"rmqctl help\" lists them");
  if (args[at[0]] == "help") {
    std::vector<std::string> words;
    for (size_t i = 1; i < at.size(); i++) words.push_back(args[at[i]]);
    return parse_help(words);
  }
  Found found = find_in(args, at);
  if (!found.verb && !found.command) {
    std::string family = help_of_family(args[at[0]]);
    bool help =
        std::any_of(args.begin(), args.end(), [](const auto& a) { return a == "--help" || a == "-h"; });
    if (!help || family.empty()) return no_such_verb(args, at);
    out.text = family;
    return out;
  }
  std::vector<std::string> rest;
  for (size_t i = 0; i < args.size(); i++)
    if (std::find(at.begin(), at.begin() + static_cast<long>(found.words), i) ==
        at.begin() + static_cast<long>(found.words))
      rest.push_back(std::move(args[i]));
  return found.command ? parse_mqadmin(*found.command, rest) : parse_verb(*found.verb, std::move(rest), {});
}

Outcome<Invocation> parse_mqadmin_line(std::vector<std::string> args) {
  Invocation out;
  const bool help = !args.empty() && args[0] == "help";
  if (help) args.erase(args.begin());
  if (args.empty() || args[0] == "-h") {
    out.text = help_of_mqadmin();
    return out;
  }
  const MqadminCommand* command = find_mqadmin_command(args[0]);
  if (command == nullptr)
    return fail(Exit::usage,
                fmt::format("mqadmin has no command \"{}\"; \"mqadmin\" alone lists them", args[0]));
  if (help) {
    out.text = help_of_mqadmin(*command);
    return out;
  }
  args.erase(args.begin());
  TRY_VAR(parsed, parse_mqadmin(*command, args));
  out = std::move(parsed);
  out.options.yes = true;
  return out;
}

}  // namespace rmq::ctl

// Configuration as a table: a row a key, with the field that it sets, its range, whether it may change at
// run time, and its help. From the rows come the TOML reader, `-o key=value`, `--help`, the man page, the
// answer to GET_BROKER_CONFIG and the effect of UPDATE_BROKER_CONFIG. Keys are RocketMQ's own names where
// RocketMQ has the thing.
//
// Defaults are those of a default-constructed config struct.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rmq {

template <class C>
struct ConfigKey {
  std::string_view name;
  std::variant<bool C::*, int64_t C::*, std::string C::*> member;
  std::string_view help;
  int64_t min = INT64_MIN, max = INT64_MAX;  // for numbers
  std::string_view choices = {};             // for texts: "A|B", empty: anything
  bool run_time = false;                     // UPDATE_BROKER_CONFIG applies it at once
};

// What is wrong with a configuration, for a person: "/etc/rmqd/rmqd.toml:12: …". Empty: nothing is.
using ConfigErrors = std::vector<std::string>;

// Keys that a table lacks and that are no mistake: those of a RocketMQ broker that rmqd has no use for.
// Passed over, unless going without them would be dangerous.
struct ForeignKeys {
  const char* (*why_without)(std::string_view key) = nullptr;  // null for a key that is not one of those
  // Why the setting is an error all the same; null when no harm is done without it.
  const char* (*why_refused)(std::string_view key, std::string_view value) = nullptr;
  std::vector<std::string>* found = nullptr;  // gets "place: 'key' has no effect: reason"; may be null
  // False: not one of those.
  bool take(const std::string& place, std::string_view key, std::string_view value,
            ConfigErrors& errors) const {
    const char* reason = why_without == nullptr ? nullptr : why_without(key);
    if (reason == nullptr) return false;
    std::string text = place + ": '" + std::string(key) + "' ";
    if (const char* refused = why_refused(key, value); refused != nullptr)
      errors.push_back(text + "cannot be honoured: " + refused);
    else if (found != nullptr)
      found->push_back(text + "has no effect: " + reason);
    return true;
  }
};

namespace detail {
// Parsed (key, value as text, line) triples of a TOML file; nested tables and arrays are errors.
struct ConfigEntry {
  std::string key, value;
  int line = 0;
  char kind = 's';  // b: boolean, i: integer, s: string
};
std::vector<ConfigEntry> read_toml(const std::string& path, ConfigErrors& errors);
// The same of text that was read already; `path` is for the errors.
std::vector<ConfigEntry> read_toml_text(std::string_view text, const std::string& path, ConfigErrors& errors);
std::string toml_string(std::string_view value);  // in quotes
// A TOML file of plain keys with one of them set: in its line, whose comment stays; else below the line that
// shows its default ("#key = ..."); else at the end. All other lines stay as they are.
std::string with_toml_key(std::string_view text, std::string_view key, std::string_view literal);
bool parse_bool(std::string_view text, bool& out);
bool parse_int(std::string_view text, int64_t& out);
bool is_choice(std::string_view choices, std::string_view value);
std::string closest(std::string_view key, std::span<const std::string_view> known);
std::string roff_escape(std::string_view s);
}  // namespace detail

// Sets one key from text. The answer is empty, or says what is wrong without naming a place.
template <class C>
std::string config_set(std::span<const ConfigKey<C>> table, C& c, std::string_view key,
                       std::string_view value);

// The value of a key as text.
template <class C>
std::string config_get(const ConfigKey<C>& k, const C& c) {
  if (auto* b = std::get_if<bool C::*>(&k.member)) return c.*(*b) ? "true" : "false";
  if (auto* i = std::get_if<int64_t C::*>(&k.member)) return std::to_string(c.*(*i));
  return c.*std::get<std::string C::*>(k.member);
}

// The key's value as a TOML file writes it.
template <class C>
std::string config_literal(const ConfigKey<C>& k, const C& c) {
  std::string value = config_get(k, c);
  return std::holds_alternative<std::string C::*>(k.member) ? detail::toml_string(value) : value;
}

template <class C>
const ConfigKey<C>* config_find(std::span<const ConfigKey<C>> table, std::string_view key) {
  for (const auto& k : table)
    if (k.name == key) return &k;
  return nullptr;
}

template <class C>
std::string config_set(std::span<const ConfigKey<C>> table, C& c, std::string_view key,
                       std::string_view value) {
  const ConfigKey<C>* k = config_find(table, key);
  if (k == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& row : table) names.push_back(row.name);
    std::string near = detail::closest(key, names);
    return "unknown key '" + std::string(key) + "'" + (near.empty() ? "" : " (did you mean '" + near + "'?)");
  }
  std::string quoted = "'" + std::string(key) + "' ";
  if (auto* b = std::get_if<bool C::*>(&k->member)) {
    bool v;
    if (!detail::parse_bool(value, v))
      return quoted + "must be true or false, not '" + std::string(value) + "'";
    c.*(*b) = v;
  } else if (auto* i = std::get_if<int64_t C::*>(&k->member)) {
    int64_t v;
    if (!detail::parse_int(value, v))
      return quoted + "must be a whole number, not '" + std::string(value) + "'";
    if (v < k->min || v > k->max)
      return quoted + "must be from " + std::to_string(k->min) + " to " + std::to_string(k->max) + ", not " +
             std::to_string(v);
    c.*(*i) = v;
  } else {
    if (!k->choices.empty() && !detail::is_choice(k->choices, value))
      return quoted + "must be one of " + std::string(k->choices) + ", not '" + std::string(value) + "'";
    c.*std::get<std::string C::*>(k->member) = std::string(value);
  }
  return {};
}

// Sets what a TOML file says. Every mistake of the file is reported, not only the first.
template <class C>
void config_take(std::span<const ConfigKey<C>> table, C& c, const std::vector<detail::ConfigEntry>& entries,
                 const std::string& path, ConfigErrors& errors, const ForeignKeys& foreign = {}) {
  for (const detail::ConfigEntry& e : entries) {
    std::string at = path + ":" + std::to_string(e.line) + ": ";
    const ConfigKey<C>* k = config_find(table, e.key);
    if (k == nullptr && foreign.take(path + ":" + std::to_string(e.line), e.key, e.value, errors)) continue;
    char wanted = 's';
    if (k != nullptr) wanted = k->member.index() == 0 ? 'b' : k->member.index() == 1 ? 'i' : 's';
    if (k != nullptr && wanted != e.kind) {
      errors.push_back(at + "'" + e.key + "' must be a " +
                       (wanted == 'b'   ? "boolean (true or false, without quotes)"
                        : wanted == 'i' ? "number (without quotes)"
                                        : "string (in quotes)"));
      continue;
    }
    std::string wrong = config_set(table, c, e.key, e.value);
    if (!wrong.empty()) errors.push_back(at + wrong);
  }
}

// Reads a TOML file into `c`.
template <class C>
void config_load(std::span<const ConfigKey<C>> table, C& c, const std::string& path, ConfigErrors& errors,
                 const ForeignKeys& foreign = {}) {
  config_take(table, c, detail::read_toml(path, errors), path, errors, foreign);
}
template <class C>
void config_load_text(std::span<const ConfigKey<C>> table, C& c, std::string_view text,
                      const std::string& path, ConfigErrors& errors, const ForeignKeys& foreign = {}) {
  config_take(table, c, detail::read_toml_text(text, path, errors), path, errors, foreign);
}

// The key=value settings of a command line, the later one winning.
template <class C>
void config_take_settings(std::span<const ConfigKey<C>> table, C& c, std::span<const std::string> settings,
                          ConfigErrors& errors, const ForeignKeys& foreign = {}) {
  for (const std::string& s : settings) {
    size_t equals = s.find('=');
    std::string_view key = std::string_view(s).substr(0, equals);
    if (equals != std::string::npos && config_find(table, key) == nullptr &&
        foreign.take("-o " + s, key, std::string_view(s).substr(equals + 1), errors))
      continue;
    std::string wrong = equals == std::string::npos
                            ? "must be key=value"
                            : config_set(table, c, std::string_view(s).substr(0, equals),
                                         std::string_view(s).substr(equals + 1));
    if (!wrong.empty()) errors.push_back("-o " + s + ": " + wrong);
  }
}

// The configuration of a command line: defaults, then the file (empty: none), then the settings.
template <class C>
ConfigErrors config_read(std::span<const ConfigKey<C>> table, C& c, const std::string& file,
                         std::span<const std::string> settings, const ForeignKeys& foreign = {}) {
  ConfigErrors errors;
  if (!file.empty()) config_load(table, c, file, errors, foreign);
  config_take_settings(table, c, settings, errors, foreign);
  return errors;
}

// "key=value\n" of every key, sorted: the body of GET_BROKER_CONFIG.
template <class C>
std::vector<std::pair<std::string, std::string>> config_list(std::span<const ConfigKey<C>> table,
                                                             const C& c) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& k : table) out.emplace_back(std::string(k.name), config_get(k, c));
  std::sort(out.begin(), out.end());
  return out;
}

// For `--help` of the keys ("key (default)  help"), and as roff for the man page.
template <class C>
std::string config_help(std::span<const ConfigKey<C>> table) {
  std::string out;
  const C defaults{};
  for (const auto& k : table) {
    std::string v = config_get(k, defaults);
    out += "  " + std::string(k.name) + " = " + (v.empty() ? "\"\"" : v) + "\n      " + std::string(k.help) +
           "\n";
  }
  return out;
}
template <class C>
std::string config_roff(std::span<const ConfigKey<C>> table) {
  std::string out;
  const C defaults{};
  for (const auto& k : table) {
    std::string v = config_get(k, defaults);
    out += ".TP\n.BR " + std::string(k.name) + " \" = " + (v.empty() ? "(empty)" : detail::roff_escape(v)) +
           "\"\n" + detail::roff_escape(k.help) + "\n";
    if (!k.choices.empty()) out += "One of " + detail::roff_escape(k.choices) + ".\n";
    if (k.member.index() == 1 && k.min != INT64_MIN)
      out += "From " + std::to_string(k.min) + " to " + std::to_string(k.max) + ".\n";
    if (k.run_time) out += "Can be changed while running.\n";
  }
  return out;
}

}  // namespace rmq

#include "daemon/config_table.h"

#include <toml++/toml.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace rmq::detail {

static void take_entry(const std::string& path, std::string_view key, const toml::node& node,
                       ConfigErrors& errors, std::vector<ConfigEntry>& out) {
  ConfigEntry e{std::string(key), {}, static_cast<int>(node.source().begin.line), 's'};
  if (auto* b = node.as_boolean()) {
    e.kind = 'b';
    e.value = b->get() ? "true" : "false";
  } else if (auto* i = node.as_integer()) {
    e.kind = 'i';
    e.value = std::to_string(i->get());
  } else if (auto* s = node.as_string()) {
    e.value = s->get();
  } else {
    errors.push_back(path + ":" + std::to_string(e.line) + ": '" + e.key +
                     "' must be a string, a whole number, true or false");
    return;
  }
  out.push_back(std::move(e));
}

static std::vector<ConfigEntry> entries_of(const toml::table& t, const std::string& path,
                                           ConfigErrors& errors) {
  std::vector<ConfigEntry> out;
  for (auto&& [key, node] : t) take_entry(path, key.str(), node, errors, out);
  return out;
}

static void add_parse_error(const toml::parse_error& e, const std::string& path, ConfigErrors& errors) {
  uint32_t line = e.source().begin.line;
  errors.push_back(path + (line != 0 ? ":" + std::to_string(line) : "") + ": " +
                   std::string(e.description()));
}

std::vector<ConfigEntry> read_toml(const std::string& path, ConfigErrors& errors) {
  try {
    if (!std::filesystem::is_directory(path)) return entries_of(toml::parse_file(path), path, errors);
    errors.push_back(path + ": is a directory, not a configuration file");
  } catch (const toml::parse_error& e) {
    add_parse_error(e, path, errors);
  }
  return {};
}

std::vector<ConfigEntry> read_toml_text(std::string_view text, const std::string& path,
                                        ConfigErrors& errors) {
  try {
    return entries_of(toml::parse(text, path), path, errors);
  } catch (const toml::parse_error& e) {
    add_parse_error(e, path, errors);
  }
  return {};
}

std::string toml_string(std::string_view value) {
  std::string out = "\"";
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", byte);
      out += escape;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

static std::string_view without_blanks(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

// Where the value of `key = value  # comment` begins in the line; npos: another line.
static size_t value_of_line(std::string_view line, std::string_view key) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::string_view::npos;
  std::string_view name = without_blanks(line.substr(0, equals));
  if (name.size() >= 2 && (name.front() == '"' || name.front() == '\'') && name.back() == name.front())
    name = name.substr(1, name.size() - 2);
  if (name != key) return std::string_view::npos;
  return std::min(line.find_first_not_of(" \t", equals + 1), line.size());
}

// The end of a value on one line.
static size_t value_end(std::string_view line, size_t begin) {
  if (begin < line.size() && (line[begin] == '"' || line[begin] == '\'')) {
    for (size_t i = begin + 1; i < line.size(); i++) {
      if (line[begin] == '"' && line[i] == '\\')
        i++;
      else if (line[i] == line[begin])
        return i + 1;
    }
  }
  size_t end = std::min(line.find('#', begin), line.size());
  while (end > begin && (line[end - 1] == ' ' || line[end - 1] == '\t' || line[end - 1] == '\r')) end--;
  return end;
}

std::string with_toml_key(std::string_view text, std::string_view key, std::string_view literal) {
  const std::string whole = std::string(key) + " = " + std::string(literal) + "\n";
  size_t below = std::string_view::npos;  // the end of the line that shows the default
  for (size_t at = 0; at < text.size();) {
    const size_t newline = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, newline - at);
    if (size_t v = value_of_line(line, key); v != std::string_view::npos) {
      std::string out(text.substr(0, at + v));
      out += literal;
      return out += text.substr(at + value_end(line, v));
    }
    const std::string_view bare = without_blanks(line);
    if (bare.starts_with('#') && value_of_line(bare.substr(1), key) != std::string_view::npos)
      below = std::min(newline + 1, text.size());
    at = newline + 1;
  }
  const size_t where = below == std::string_view::npos ? text.size() : below;
  std::string out(text.substr(0, where));
  if (!out.empty() && out.back() != '\n') out += '\n';
  out += whole;
  return out += text.substr(where);
}

bool parse_bool(std::string_view text, bool& out) {
  if (text != "true" && text != "false") return false;
  out = text == "true";
  return true;
}

bool parse_int(std::string_view text, int64_t& out) {
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool is_choice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
  return false;
}

static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      bool same = std::tolower(a[i - 1]) == std::tolower(b[j - 1]);
      size_t best = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b.size()];
}

std::string closest(std::string_view key, std::span<const std::string_view> known) {
  size_t best = 4;  // further away is another word
  std::string_view found;
  if (key.size() > 64) return {};
  for (std::string_view k : known)
    if (size_t d = edit_distance(key, k); d < best) {
      best = d;
      found = k;
    }
  return std::string(found);
}

std::string roff_escape(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '"')
      out += "\\(dq";
    else
      out += c;
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

}  // namespace rmq::detail

#include "daemon/config_table.h"

#include <toml++/toml.h>

#include <charconv>
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

std::vector<ConfigEntry> read_toml(const std::string& path, ConfigErrors& errors) {
  std::vector<ConfigEntry> out;
  try {
    if (std::filesystem::is_directory(path)) {
      errors.push_back(path + ": is a directory, not a configuration file");
      return {};
    }
    toml::table t = toml::parse_file(path);
    for (auto&& [key, node] : t) take_entry(path, key.str(), node, errors, out);
  } catch (const toml::parse_error& e) {
    uint32_t line = e.source().begin.line;
    errors.push_back(path + (line != 0 ? ":" + std::to_string(line) : "") + ": " +
                     std::string(e.description()));
  }
  return out;
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

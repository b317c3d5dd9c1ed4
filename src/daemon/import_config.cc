#include "daemon/import_config.h"

#include <algorithm>
#include <map>

#include "daemon/config.h"
#include "daemon/java_properties.h"
#include "daemon/rocketmq_keys.h"

namespace rmq {

namespace {

// Older spellings of keys.
constexpr std::pair<std::string_view, std::string_view> renamed[] = {
    {"mapedFileSizeCommitLog", "mappedFileSizeCommitLog"},
    {"mapedFileSizeConsumeQueue", "mappedFileSizeConsumeQueue"},
};

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 32 : c);
  return out;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  return s;
}

std::string toml_text(std::string_view s) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7f) {
      out += "\\u00";
      out += hex[u >> 4];
      out += hex[u & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

// RocketMQ reads its file as ISO-8859-1, whatever it was written in: a directory that it has made by a name
// of UTF-8 is found by what became of that name.
std::string from_latin1(std::string_view s) {
  std::string out;
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (u >= 0x80) out += static_cast<char>(0xc0 | (u >> 6));
    out += u < 0x80 ? c : static_cast<char>(0x80 | (u & 0x3f));
  }
  return out;
}

// For a comment: no line breaks.
std::string on_one_line(std::string_view s) {
  std::string out(s);
  std::replace_if(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return out;
}

class Import {
 public:
  void take(std::string_view name, std::string_view raw) {
    std::string_view key = name, value = trimmed(raw);
    for (auto [old, now] : renamed)
      if (key == old) key = now;
    if (const char* why = why_refused(key, value)) return refuse(name, value, why);
    const ConfigKey<BrokerConfig>* k = config_find(broker_config_table(), key);
    if (k == nullptr) {
      left_out_ +=
          "# " + on_one_line(name) + " = " + on_one_line(value) + "\n#     " + why_without(name) + "\n";
      return;
    }
    convert(*k, name, value);
  }

  // What RocketMQ does when nothing is said, where rmqd does otherwise.
  void note_defaults() {
    struct Different {
      std::string_view key, text;
    };
    static constexpr Different all[] = {
        {"flushDiskType", "RocketMQ answers before a message is on disk (ASYNC_FLUSH) when nothing is said"},
        {"storePathRootDir", "RocketMQ's own default is the directory store in the home of its user"},
    };
    for (const Different& d : all) {
      const ConfigKey<BrokerConfig>* k = config_find(broker_config_table(), d.key);
      if (values_.contains(std::string(d.key)) || k == nullptr) continue;
      defaults_ += "# " + std::string(d.key) + " = " + toml_text(config_get(*k, BrokerConfig{})) +
                   "\n#     " + std::string(d.text) + "\n";
    }
  }

  ImportedConfig result(std::string_view from) && {
    out_.toml = "# Made from " + on_one_line(from) + ", a configuration of RocketMQ.\n\n";
    for (const auto& [key, value] : values_) out_.toml += key + " = " + value + "\n";
    section("Refused: rmqd does not do this.", refused_);
    section("Not said there; this is rmqd's default.", defaults_);
    section("Left out.", left_out_);
    out_.taken = values_.size();
    return std::move(out_);
  }

 private:
  void convert(const ConfigKey<BrokerConfig>& k, std::string_view name, std::string_view value) {
    bool is_bool = k.member.index() == 0;
    std::string text = is_bool ? lower(value) : std::string(value);
    if (k.name == "storePathCommitLog" && value.find(',') != std::string_view::npos)
      return refuse(name, value, "rmqd keeps the CommitLog in one directory");
    BrokerConfig probe;
    std::string wrong = config_set(broker_config_table(), probe, k.name, text);
    if (!wrong.empty()) return refuse(name, value, wrong);
    values_[std::string(k.name)] = k.member.index() == 2 ? toml_text(text) : config_get(k, probe);
  }

  void refuse(std::string_view name, std::string_view value, std::string_view why) {
    std::string setting = on_one_line(name) + " = " + on_one_line(value);
    out_.refused.push_back(setting + ": " + std::string(why));
    refused_ += "# " + setting + "\n#     " + std::string(why) + "\n";
  }

  void section(std::string_view title, const std::string& lines) {
    if (!lines.empty()) out_.toml += "\n# " + std::string(title) + "\n" + lines;
  }

  ImportedConfig out_;
  std::map<std::string, std::string> values_;  // what rmqd.toml says, by key
  std::string refused_, defaults_, left_out_;
};

}  // namespace

ImportedConfig import_broker_config(std::string_view properties, std::string_view from) {
  // Of a key that comes twice the last one counts.
  std::map<std::string, std::string> settings;
  for (auto& [key, value] : parse_properties(from_latin1(properties))) settings[key] = value;
  Import import;
  for (const auto& [key, value] : settings) import.take(key, value);
  import.note_defaults();
  return std::move(import).result(from);
}

}  // namespace rmq

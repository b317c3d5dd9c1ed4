// A change of the configuration that a request asks for, the same for broker and name server: which keys it
// means, what can be applied at once, what is to be kept for the next start.
#pragma once

#include <algorithm>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config_keeper.h"
#include "daemon/config_table.h"
#include "daemon/java_properties.h"
#include "daemon/reload.h"
#include "proto/codes.h"
#include "proto/remarks.h"

namespace rmq {

template <class C>
struct ConfigUpdate {
  C next;                                       // with the keys that can be applied now
  std::vector<ConfigKeeper::Setting> settings;  // all of it, to keep
  std::string needs_restart;                    // "key, key": of those that cannot be applied
  std::vector<ConfigChange> waiting;            // the same, for the journal
  std::string on_command_line;                  // of those that -o sets, which wins at the next start

  // Only the keys that were asked for: others may have been changed by somebody else meanwhile.
  void apply_to(std::span<const ConfigKey<C>> table, C& c) const {
    for (const ConfigKeeper::Setting& s : settings) {
      const ConfigKey<C>* k = config_find(table, s.key);
      if (k != nullptr && k->run_time) config_set(table, c, s.key, config_get(*k, next));
    }
  }
  // For the one who asked; empty when all of it took effect for good.
  std::string remark(const std::string& kept_in) const {
    std::string out;
    if (!needs_restart.empty())
      out = needs_restart + ": kept in " + kept_in + ", " + std::string(proto::needs_restart_remark);
    if (!on_command_line.empty())
      out += (out.empty() ? "" : "; ") + on_command_line +
             ": set by -o on the command line, which wins at the next start";
    return out;
  }
};

struct ConfigRefusal {
  proto::ResponseCode code;
  std::string remark;
};

namespace detail {
inline void add_name(std::string& list, std::string_view name) {
  list += list.empty() ? "" : ", ";
  list += name;
}
inline bool is_set_by(std::span<const std::string> settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(),
                     [key](std::string_view s) { return s.substr(0, s.find('=')) == key; });
}
}  // namespace detail

// `at_next_start`: what a start would find now. Tools send back all that they were told, so a key counts only
// when its value is another one than now or than it would be then. Keys that the table lacks are ignored, as
// RocketMQ does. `forbidden`: "a|b|c".
template <class C>
std::expected<ConfigUpdate<C>, ConfigRefusal> config_update(std::span<const ConfigKey<C>> table, const C& now,
                                                            const C& at_next_start,
                                                            std::span<const std::string> command_line,
                                                            std::string_view forbidden,
                                                            const Properties& pairs) {
  ConfigUpdate<C> update{now, {}, {}, {}, {}};
  C all = now;
  for (const auto& [key, value] : pairs) {
    if (detail::is_choice(forbidden, key))
      return std::unexpected(
          ConfigRefusal{proto::ResponseCode::NO_PERMISSION, "Can not update config in black list."});
    const ConfigKey<C>* k = config_find(table, key);
    if (k == nullptr) continue;
    const std::string wrong = config_set(table, all, key, value);
    if (!wrong.empty()) return std::unexpected(ConfigRefusal{proto::ResponseCode::INVALID_PARAMETER, wrong});
    const bool changes = config_get(*k, now) != value;
    if (!changes && config_get(*k, at_next_start) == value) continue;
    if (k->run_time) {
      config_set(table, update.next, key, value);
    } else if (changes) {
      detail::add_name(update.needs_restart, key);
      update.waiting.push_back({key, config_get(*k, now), value, false});
    }
    if (detail::is_set_by(command_line, key)) detail::add_name(update.on_command_line, key);
    update.settings.push_back({key, config_literal(*k, all)});
  }
  return update;
}

// "a;b" of a black list and the keys that are always on it, as config_update() takes them.
inline std::string forbidden_keys(std::string_view always, std::string_view black_list) {
  std::string out = std::string(always) + "|" + std::string(black_list);
  std::replace(out.begin(), out.end(), ';', '|');
  return out;
}

}  // namespace rmq

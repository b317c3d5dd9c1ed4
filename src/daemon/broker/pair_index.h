// Which groups there are with a topic, and which topics with a group, where something is kept by
// "topic@group": so all of a topic or of a group is found without a look at everything else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/text_map.h"

namespace rmq::broker {

class PairIndex {
 public:
  // Once is enough; again does nothing.
  void add(std::string_view topic, std::string_view group) {
    insert(groups_, topic, group);
    insert(topics_, group, topic);
  }
  void remove(std::string_view topic, std::string_view group) {
    erase(groups_, topic, group);
    erase(topics_, group, topic);
  }
  std::vector<std::string> groups_of(std::string_view topic) const { return of(groups_, topic); }
  std::vector<std::string> topics_of(std::string_view group) const { return of(topics_, group); }
  bool empty() const { return groups_.empty() && topics_.empty(); }

 private:
  using Table = TextMap<TextSet>;
  static void insert(Table& t, std::string_view key, std::string_view other) {
    auto it = t.find(key);
    if (it == t.end()) it = t.emplace(std::string(key), TextSet{}).first;
    if (it->second.find(other) == it->second.end()) it->second.emplace(other);
  }
  static void erase(Table& t, std::string_view key, std::string_view other) {
    auto it = t.find(key);
    if (it == t.end()) return;
    if (auto o = it->second.find(other); o != it->second.end()) it->second.erase(o);
    if (it->second.empty()) t.erase(it);
  }
  static std::vector<std::string> of(const Table& t, std::string_view key) {
    auto it = t.find(key);
    if (it == t.end()) return {};
    return {it->second.begin(), it->second.end()};
  }
  Table groups_;  // by topic
  Table topics_;  // by group
};

}  // namespace rmq::broker

// The properties of one message by name: read once, for all expressions that look at the message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rmq::filter {

// Calls f(name, value) for each entry as MessageDecoder.string2messageProperties reads them: entries without
// name or value do not count, of equal names the last one does.
template <class F>
void for_each_property(std::string_view rest, F f) {
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\x02'), rest.size());
    std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    size_t split = entry.find('\x01');
    if (split == std::string_view::npos || split == 0 || split + 1 >= entry.size()) continue;
    f(entry.substr(0, split), entry.substr(split + 1));
  }
}

class PropertyTable {
 public:
  // Forgets what it had. `properties` is copied, and its memory used again by the next.
  void read(std::string_view properties);
  // Empty: there is no such property. `hash` is that of the name. Valid until the next read().
  std::string_view find(std::string_view name, size_t hash) const;
  static size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

 private:
  struct Entry {
    size_t hash;
    std::string_view name, value;
  };
  size_t slot_of(std::string_view name, size_t hash) const;
  std::string text_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // index of the entry + 1; a power of two of them, at least half free
};

}  // namespace rmq::filter

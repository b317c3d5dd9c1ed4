#include "filter/property_table.h"

#include <algorithm>
#include <bit>

namespace rmq::filter {

// Where the name stands, or would.
size_t PropertyTable::slot_of(std::string_view name, size_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t s = hash & mask;; s = (s + 1) & mask) {
    if (slots_[s] == 0) return s;
    const Entry& e = entries_[slots_[s] - 1];
    if (e.hash == hash && e.name == name) return s;
  }
}

void PropertyTable::read(std::string_view properties) {
  text_.assign(properties);
  entries_.clear();
  for_each_property(text_, [&](std::string_view name, std::string_view value) {
    entries_.push_back({hash_of(name), name, value});
  });
  slots_.assign(std::bit_ceil(2 * entries_.size() + 2), 0);
  for (uint32_t i = 0; i < entries_.size(); i++)
    slots_[slot_of(entries_[i].name, entries_[i].hash)] = i + 1;  // of equal names the last one
}

std::string_view PropertyTable::find(std::string_view name, size_t hash) const {
  if (slots_.empty()) return {};
  const uint32_t at = slots_[slot_of(name, hash)];
  return at == 0 ? std::string_view() : entries_[at - 1].value;
}

}  // namespace rmq::filter

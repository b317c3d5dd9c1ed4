#include "store/index_keys.h"

namespace rmq::store {

StoredProperties stored_properties(std::string_view properties) {
  StoredProperties out;
  for (std::string_view rest = properties; !rest.empty();) {
    size_t end = rest.find('\x02');
    std::string_view entry = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    size_t split = entry.find('\x01');
    if (split == std::string_view::npos || split + 1 == entry.size()) continue;
    std::string_view name = entry.substr(0, split), value = entry.substr(split + 1);
    if (name == proto::prop::TAGS) out.tags = value;
    if (name == proto::prop::KEYS) out.keys = value;
    if (name == proto::prop::UNIQ_KEY) out.unique_key = value;
  }
  return out;
}

bool has_key(const StoredProperties& p, KeyKind kind, std::string_view key) {
  if (key.empty()) return false;
  if (kind == KeyKind::tags) return p.tags == key;
  if (p.unique_key == key) return true;
  for (std::string_view rest = p.keys; !rest.empty();) {
    size_t end = rest.find(' ');
    if (rest.substr(0, end) == key) return true;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return false;
}

int32_t hash_of_look_up(std::string_view topic, KeyKind kind, std::string_view key) {
  if (kind == KeyKind::key) return index_hash(topic, key);
  std::string in_its_space("T#");
  return index_hash(topic, in_its_space += key);
}

}  // namespace rmq::store

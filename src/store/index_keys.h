// Which keys of a message are indexed: UNIQ_KEY, each word of KEYS (blanks separate them), and TAGS in a
// space of its own, unless it is the record of a rolled back transaction. (RocketMQ does so from 5.5 on,
// before that without TAGS.) Keys of one message may be equal: each word counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/index_format.h"
#include "store/types.h"

namespace rmq::store {

// The properties that the store looks at, found in one pass. Empty: not there. Of equal names the last
// counts.
struct StoredProperties {
  std::string_view tags, keys, unique_key;
};
StoredProperties stored_properties(std::string_view properties);

inline bool is_indexed(int32_t sys_flag) {
  return proto::sys_flag::transaction_of(sys_flag) != proto::sys_flag::transaction_rollback;
}

// Calls `take(hash)` for each key.
template <class Take>
uint32_t each_index_hash(std::string_view topic, const StoredProperties& p, Take take) {
  uint32_t count = 0;
  const int32_t topic_hash = proto::java_hash("#", proto::java_hash(topic));
  auto one = [&](std::string_view key) {
    if (key.empty()) return;
    take(index_hash_of(proto::java_hash(key, topic_hash)));
    count++;
  };
  one(p.unique_key);
  for (std::string_view rest = p.keys; !rest.empty();) {
    size_t end = rest.find(' ');
    one(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  if (!p.tags.empty()) {
    take(index_hash_of(proto::java_hash(p.tags, proto::java_hash("T#", topic_hash))));
    count++;
  }
  return count;
}

// Whether a look-up of `key` is for this message.
bool has_key(const StoredProperties& p, KeyKind kind, std::string_view key);
int32_t hash_of_look_up(std::string_view topic, KeyKind kind, std::string_view key);

}  // namespace rmq::store

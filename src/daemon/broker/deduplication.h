// De-duplication, which RocketMQ does not have: a topic with the attribute dedup.key stores a message only
// once within a window of time (dedup.window.ms), however often its producer sends it. Two messages are the
// same when they have the same UNIQ_KEY, or the same KEYS, in the same topic; a client that sends again after
// a lost answer keeps both. The repeated send is answered as the first was, with the ids of the first.
//
// Known are hashes, in memory, as many as dedupMemoryBytes hold: then the oldest are forgotten first. A start
// reads the queues of such topics back to the begin of the window, so the window survives a crash. Half
// messages of transactions are left out (END_TRANSACTION counts once anyhow, and what was rolled back may be
// sent again).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/broker/text_map.h"
#include "proto/bodies_config.h"
#include "store/message_store.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

struct DedupRule {
  enum class Key : uint8_t { UNIQ_KEY, KEYS };
  Key key = Key::UNIQ_KEY;
  int64_t window_ms = 0;

  // Of a topic; nothing when its messages are not de-duplicated.
  static std::optional<DedupRule> of(const proto::TopicConfig& topic);
  // The text by which a message with these properties is known; empty: it has none, and is stored each time.
  // A dead letter that is sent again (DLQ_ORIGIN_MESSAGE_ID) is another message than the one that it was.
  std::string text_of(std::string_view properties) const;
};

inline constexpr int64_t dedup_window_ms_usual = 600'000;
inline constexpr int64_t dedup_window_ms_min = 1'000, dedup_window_ms_max = 604'800'000;

// Where the first one of equal messages lies.
struct FirstMessage {
  int64_t physical_offset = -1;
  int64_t queue_offset = -1;
  int64_t store_timestamp_ms = 0;
  int32_t queue_id = 0;
  int32_t total_bytes = 0;
};

// On the broker's loop.
class Deduplication {
 public:
  struct Key {
    std::array<uint64_t, 2> words{};
    bool operator==(const Key&) const = default;
  };

  explicit Deduplication(Broker& b);
  // Reads the windows of all topics that have one; until then claims wait.
  void start(Scope& scope);
  void stop();

  // What came of a claim. Without `first` the caller is the first, and must settle() the key after the put,
  // whatever came of it; with it the message was stored already.
  struct Claim {
    Key key;
    std::optional<FirstMessage> first;
  };
  // Claims a key before a put. Waits for whoever is storing the same message now. A topic that is deleted
  // meanwhile is another one from then on, for those who wait as well.
  Task<Claim> claim(std::string_view topic, const DedupRule& rule, std::string_view text);
  // `first` null: it was not stored, the next one may.
  void settle(const Key& key, const FirstMessage* first);
  // What was known of the topic is forgotten.
  void topic_deleted(std::string_view topic);

  size_t known() const { return known_.size(); }
  uint64_t answered() const { return answered_; }    // repeated sends
  uint64_t forgotten() const { return forgotten_; }  // within their window, for lack of memory

  static constexpr size_t bytes_per_key = 160;  // of memory, about

 private:
  struct KeyHash {
    size_t operator()(const Key& k) const { return static_cast<size_t>(k.words[0]); }
  };
  struct Known {
    FirstMessage first;
    int64_t until_ns = 0;  // the window's end
    bool settled = false;
  };
  struct Age {
    Key key;
    int64_t until_ns;
  };
  static bool ends_later(const Age& a, const Age& b) { return a.until_ns > b.until_ns; }

  Key key_of(std::string_view topic, std::string_view text) const;
  void insert(const Key& key, const FirstMessage& first, int64_t until_ns);
  void forget_old();
  void drop_oldest_age();
  Task<void> load();
  Task<void> load_queue(std::string_view topic, int32_t queue_id, int64_t longest_ms);
  struct Loading {
    std::span<const store::QueueUnit> units;
    size_t next = 0;
  };
  Task<void> load_some(Loading& loading);
  Task<void> load_unit(const store::QueueUnit& unit);

  Broker& broker_;
  std::unordered_map<Key, Known, KeyHash> known_;
  // The oldest in front; a start reads queue by queue, and keeps a heap until it is done.
  std::deque<Age> ages_;
  TextMap<uint64_t> generations_;  // of topics that were deleted
  const std::string salt_;         // nobody outside can make two keys alike
  bool loaded_ = false;
  bool stopping_ = false;
  uint64_t answered_ = 0, forgotten_ = 0;
  Event settled_;
};

}  // namespace rmq::broker

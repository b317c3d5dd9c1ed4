// The topics of this broker: their configuration, the ones that exist from the start, creation by the first
// send, and topics.json with its log. Changes of the log, each with the data version that it made: "T
// <version> <configuration>", "D <version> <topic>", and "V <version> " where no topic has changed.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/logged_table.h"
#include "daemon/broker/text_map.h"
#include "daemon/config.h"
#include "proto/bodies_config.h"

namespace rmq::broker {

// `plain`: a send to it needs no look at its name. Kept by TopicManager.
struct KnownTopic : proto::TopicConfig {
  bool plain = false;
};

// The topics with queue.type=BatchCQ of a topics.json and its log, for the store, which has to know them
// before it is opened. Nothing is changed.
Task<Result<std::vector<std::string>>> read_batch_topics(Disk& disk, std::string path,
                                                         const BrokerConfig& config);

class TopicManager : public LoggedTable {
 public:
  TopicManager(Disk& disk, std::string path, const BrokerConfig& config, int delay_levels);

  // Null when unknown. The pointer is good until the next change, of a light queue until the next find():
  // each name of one is a topic with one queue, of which no table knows.
  const proto::TopicConfig* find(std::string_view topic) const;
  // The same for a topic that is neither of the system nor a retry or order topic, nor de-duplicated, nor
  // compacted or of type BatchCQ; null for those.
  const proto::TopicConfig* find_plain(std::string_view topic) const;
  const TextMap<KnownTopic>& all() const { return topics_; }
  const proto::DataVersion& data_version() const { return version_; }

  // True: the name belongs to the system (storage.md 12.2): no admin request changes or deletes it.
  bool is_system(std::string_view topic) const;
  // Sorted names of the system topics that exist here.
  std::vector<std::string> system_topics() const;

  // Adds or replaces in memory; the caller then awaits save() and registers. False: equal to what was there.
  bool put(proto::TopicConfig c, int64_t now_ms);
  bool remove(std::string_view topic, int64_t now_ms);
  // What the name servers are told of all topics has changed, though the topics have not.
  void changed(int64_t now_ms);
  // How often anything was changed since the start.
  uint64_t change_count() const { return change_count_; }
  // Names of the topics that were changed or removed since change_count() was `since`, each once. Nothing: it
  // is too long ago, any may have been.
  std::optional<std::vector<std::string>> changed_since(uint64_t since) const;

  // The configuration for a topic that a send creates after the pattern of `default_topic`, or a reason why
  // not (TopicConfigManager.createTopicInSendMessageMethod).
  std::optional<proto::TopicConfig> pattern_for(std::string_view topic, std::string_view default_topic,
                                                int32_t client_queues, bool unit) const;
  // Topics that exist from the start; call after load(), and again when the configuration has changed.
  void add_system_topics(int64_t now_ms);

  proto::TopicConfigSerializeWrapper snapshot() const;

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;
  bool apply(std::string_view change) override;

 private:
  const BrokerConfig& config_;
  const int delay_levels_;
  void add(proto::TopicConfig c);
  void note_change(std::string_view topic, int64_t now_ms);
  TextMap<KnownTopic> topics_;
  TextSet system_;
  mutable proto::TopicConfig light_;
  proto::DataVersion version_;
  uint64_t change_count_ = 0;
  std::deque<std::string> last_changed_;  // a name for each of the last changes
};

}  // namespace rmq::broker

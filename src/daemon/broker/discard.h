// Discard policies: topics whose old messages go before fileReservedTime, by age, by bytes (FIFO), or because
// nobody has read them for longest (LRU). A topic says it by attributes (discard.policy, discard.age.ms,
// discard.bytes), or the broker's keys (discardPolicy, discardAgeMills, discardBytes) do for all that do not,
// but for topics of the system, retry and dead-letter topics.
//
// All topics share one log, in which time and offsets ascend together. So what is discarded of a topic is all
// that lies below one offset of the log: its queues begin at their first message above it. That offset is
// kept in config/discardedBelow.json, written before it takes effect; a topic that is deleted and made again
// has larger ones. The messages cannot be pulled any more at once; their space comes back when nothing in a
// file of the log is needed by any queue. (discardPolicy=fifo for the whole broker deletes files of the log,
// as retention does.)
//
// Whatever moves a queue's beginning, policy or retention: messages that a group had not consumed are counted
// here, by group, and said in the journal.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/persisted_table.h"
#include "daemon/broker/text_map.h"
#include "proto/bodies_config.h"
#include "store/types.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

class DiscardService : public PersistedTable, public store::QueueListener {
 public:
  DiscardService(Broker& broker, Disk& disk, std::string path);

  // Reads what was discarded before, and applies it. Before the broker serves.
  Task<Result<void>> load();
  void start(Scope& scope);

  // Somebody pulls from it.
  void note_read(std::string_view topic) {
    if (lru_) read_now(topic);
  }
  // Messages that were deleted or discarded before a group had consumed them, since the start.
  const std::map<std::string, uint64_t, std::less<>>& lost_by_group() const { return lost_; }

  void on_min_moved(std::string_view topic, int32_t queue_id, int64_t from, int64_t to) override;

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;

 private:
  enum class Kind : uint8_t { none, age, fifo, lru };
  struct Policy {
    Kind kind = Kind::none;
    int64_t age_ms = 0;
    uint64_t bytes = 0;
  };
  // Bytes of a topic's records, by their place in the log; counted from the units of its queues.
  struct Counted {
    uint64_t bucket_bytes = 0;
    std::map<uint64_t, uint64_t> buckets;
    std::map<int32_t, int64_t> next;  // by queue: the first offset that is not counted
    uint64_t total = 0;
  };
  struct Move {
    std::string topic;
    int32_t queue_id;
    int64_t from, to;
  };
  using Cuts = std::map<std::string, int64_t, std::less<>>;  // topic to offset of the log

  Policy policy_of(const proto::TopicConfig& c) const;
  Task<void> run();
  Task<void> round();
  Task<int64_t> cut_by_age(std::string topic, int64_t age_ms);
  Task<int64_t> cut_by_bytes(std::string topic, uint64_t bytes);
  Task<void> cut_by_reading(std::vector<std::string> topics, Cuts& cuts);
  Task<bool> count(std::string topic, Counted& c);
  void forget_below(Counted& c, int64_t physical);
  Task<void> apply(Cuts cuts);
  Task<void> count_lost();
  void settle();
  void read_now(std::string_view topic);
  int64_t sure_wall_ms() const;

  Broker& broker_;
  Cuts below_;
  std::map<std::string, Counted, std::less<>> counted_;
  TextMap<int64_t> read_ns_;
  std::vector<Move> moves_;
  std::map<std::string, uint64_t, std::less<>> lost_;
  int64_t started_ns_ = 0;
  bool lru_ = false;
};

}  // namespace rmq::broker

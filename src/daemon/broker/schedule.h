// Delayed messages by level. A message with DELAY=n lies in queue n-1 of SCHEDULE_TOPIC_XXXX, whose units
// hold the time to deliver instead of a tags code; a task a level reads its queue in order and puts what is
// due into the real topics, in batches, each message once (delivery.h). How far each level has come is kept
// in delayOffset.json, by RocketMQ's rules: after a stop in order it is exact, so either broker goes on where
// the other stopped.
//
// A level is a delay, and measured on the monotonic clock while the broker runs (due_clock.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/delivery.h"
#include "daemon/broker/due_clock.h"
#include "daemon/broker/persisted_table.h"
#include "proto/bodies_config.h"
#include "store/message_store.h"

namespace rmq::broker {

class Broker;

// messageDelayLevel parsed: "1s 5s …", milliseconds by level; level 1 is at index 0.
struct DelayLevels {
  std::vector<int64_t> delay_ms;
  int count() const { return static_cast<int>(delay_ms.size()); }
  // Errc::bad_input: not numbers with s, m, h or d, or none.
  static Result<DelayLevels> parse(std::string_view text);
};

class ScheduleService : public DeliveryProgress {
 public:
  ScheduleService(Broker& broker, Disk& disk, std::string path);
  // The file, and what was delivered since it was written. Before anything is put into the store.
  Task<Result<void>> load();
  // A task a level and one that saves; they end with the broker's `stopping` and stop().
  void start(Scope& scope);
  void stop();
  // Nothing is delivered any more: brings the file up to date.
  Task<void> close();

  // The queue offset from which the level goes on.
  int64_t offset_of(int level) const;
  proto::DelayOffsetWrapper snapshot() const;

  // Around each put into the level's queue, in the order of the puts. The tags code of the message comes out.
  int64_t begin_put(int level);
  void put_refused(int level);
  // A message has come into a level's queue.
  void arrived(int32_t queue_id);
  // The wall clock was set.
  void clock_stepped();
  // Physical offset of the oldest message that waits; INT64_MAX: none does.
  Task<int64_t> needed_from() const;

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;
  void freeze() override;

 private:
  struct Level {
    int64_t delay_ms = 0;  // 0: the level is configured no more, the queue still has messages
    int64_t arriving = 0;  // puts under way
    int64_t run_from = 0;  // queue offsets below are of earlier runs
    QueueBases bases;
    Event wake;
    size_t batch_max = 0;
  };
  enum class Outcome : uint8_t { delivered, nothing_due, failed };

  Level& level_of(int level) { return *levels_[static_cast<size_t>(level) - 1]; }
  Result<void> take_marker(const Delivery::Found& found);
  void clamp_to_queues();
  int64_t due_ns(const Level& l, int64_t offset, int64_t deliver_ms) const;
  Task<void> run_level(int level);
  Task<Outcome> deliver_due(int level, int64_t& wait_ns);
  Task<Result<int64_t>> collect(int level, std::vector<DueMessage>& due, int64_t& wait_ns);
  Task<Outcome> deliver(int level, std::vector<DueMessage>& due, int64_t next);
  void move_to(int level, int64_t offset);

  Delivery delivery_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::map<int32_t, int64_t> offsets_;
  int64_t marker_ = 0;                        // queue offset; markers below it are in offsets_
  std::map<int32_t, int64_t> saved_offsets_;  // as the file shall be
  int64_t saved_marker_ = 0;
  proto::DataVersion version_;
  int64_t started_ns_ = 0;
  uint64_t moved_ = 0;
};

}  // namespace rmq::broker

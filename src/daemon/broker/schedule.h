// Delayed messages by level. A message with DELAY=n lies in queue n-1 of SCHEDULE_TOPIC_XXXX, whose units
// hold the time to deliver instead of a tags code; a task a level reads its queue in order and puts each
// message into its real topic when its time has come. Progress is kept in delayOffset.json, by RocketMQ's
// rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

class ScheduleService : public PersistedTable {
 public:
  ScheduleService(Broker& broker, Disk& disk, std::string path)
      : PersistedTable(disk, std::move(path)), broker_(broker) {}
  // A task a level and one that saves; they end with the broker's `stopping`.
  void start(Scope& scope);
  // The queue offset from which the level goes on.
  int64_t offset_of(int level) const;
  proto::DelayOffsetWrapper snapshot() const;
  // A message has come into the level's queue.
  void wake(int level);

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;

 private:
  Task<void> run_level(int level);
  Task<bool> deliver(int level, const store::QueueUnit& unit);
  Task<void> save_often();

  Broker& broker_;
  std::map<int32_t, int64_t> offsets_;
  std::vector<std::unique_ptr<Event>> wake_;
  proto::DataVersion version_;
  uint64_t moved_ = 0;
  bool dirty_ = false;
};

}  // namespace rmq::broker

// Delayed messages on a machine that crashes: what was sent, when it may come, what came. A life is one run
// of the broker (store, tables, delivery; no network) on a simulated disk that outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker_world.h"
#include "proto/properties.h"

namespace rmq::broker {

struct DelayedSend {
  std::string properties;  // DELAY or TIMER_*, in the stored form
  int64_t at_ms = 0;       // after the start of the life
  int64_t delay_ms = 0;    // it may not come earlier than that after it was sent
  size_t body_bytes = 20;
  int64_t recall_ms = -1;  // after the start of the life it is recalled; -1: not
};

struct SentMessage {
  int64_t due_ms = 0;  // true time
  bool acknowledged = false;
  bool recalled = false;  // and that was answered
  bool perhaps = false;   // nobody knows whether it was recalled
};

// True time, milliseconds: the wall clock as it would be if nobody set it.
struct DelayModel {
  std::vector<SentMessage> sent;
  std::vector<std::string> errors;
  int64_t lived_ms = 0;  // before this life
  uint64_t rolled = 0;   // messages that were put again

  void error(std::string text) { errors.push_back(std::move(text)); }
};

struct DelayLife {
  uint64_t seed = 1;
  std::vector<DelayedSend> sends;
  int64_t last_ms = 40'000;  // the life ends then, or when all has come
  uint64_t crash_at = 0;     // point of the disk
  uint64_t wall_steps = 0;   // per million turns
  int64_t down_ms = 0;       // before it
  bool final = false;        // what must have come has come at its end
  size_t entries_max = 0;    // of timers in memory; 0: as configured
  BrokerConfig config = test_config();
};

// What it needs of the life before; its end, as the next life finds it.
struct DelayMachine {
  sim::DiskImage image = sim::empty_image();
  uint64_t points = 0;   // of the last life
  bool crashed = false;  // it was cut short
};

void live(DelayModel& model, DelayMachine& machine, const DelayLife& life, const sim::CrashFate& fate);

}  // namespace rmq::broker

// Delayed messages on a machine that crashes: what was sent, when it may come, what came. A life is one run
// of the broker (store, tables, delivery; no network) on a simulated disk that outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "crash_lives.h"
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

struct DelayModel {
  std::vector<SentMessage> sent;
  uint64_t rolled = 0;  // messages that were put again
};

struct DelayLife : LifePlan {
  std::vector<DelayedSend> sends;
  int64_t last_ms = 40'000;  // the life ends then, or when all has come
  bool final = false;        // what must have come has come at its end
  size_t entries_max = 0;    // of timers in memory; 0: as configured
};

void live(DelayModel& model, Machine& machine, const DelayLife& life, const sim::CrashFate& fate);

}  // namespace rmq::broker

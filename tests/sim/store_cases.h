// What the crash tests and the command line run: one small workload that ends at a given crash point with
// every fate, and random lives by seed.
#pragma once

#include <cstdint>

#include "sim/store_life.h"

namespace rmq::sim {

struct PointCase {
  store::FlushDiskType flush = store::FlushDiskType::SYNC_FLUSH;
  uint64_t seed = 1;
  bool deletes = false;  // retention runs beside the workload
  uint64_t point = 0;    // of the workload, from 1; 0: the workload runs to its end and stops in order
  // Crash also at every point of the recovery: for one of the fates, or for all (much more work).
  enum class Nested : uint8_t { none, one, all } nested = Nested::none;
  bool verbose = false;
  std::vector<DroppedSync> dropped_syncs;  // for a test of the oracle
};

// The number of crash points of the workload without a crash.
uint64_t count_points(const PointCase& c);
// Files of the log that retention takes then.
uint64_t count_deleted(const PointCase& c);
// Empty: all is well.
Errors check_point(const PointCase& c);
std::string command_of(const PointCase& c);

struct SeedOutcome {
  Errors errors;
  uint64_t trace_hash = 0;  // of all lives
  uint32_t lives = 0;
  uint64_t messages = 0;
  uint64_t faults = 0;
};
// `planted`: of all lives but the last ones, for a test of the oracle.
SeedOutcome run_seed(uint64_t seed, bool verbose, const std::vector<DroppedSync>& planted = {});
std::string command_of_seed(uint64_t seed);

}  // namespace rmq::sim

// One life of a store on a simulated machine: it opens on what the last life left, is checked against the
// model, takes messages from producers while consumers read, and ends: in order, by kill -9, by a power cut
// at a chosen moment, or by an I/O error that it cannot survive. What the machine finds next comes out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/sim_disk.h"
#include "sim/store_model.h"

namespace rmq::sim {

struct LifePlan {
  enum class End : uint8_t { shutdown, power_cut, process_kill };
  uint64_t seed = 1;
  LoopOptions loop;
  DiskPlan disk;  // with crash_at: the end comes there, or at the latest when the work is done
  store::StoreOptions store;
  uint32_t producers = 0;
  uint32_t calls_per_producer = 0;
  uint32_t consumers = 0;
  size_t body_bytes_max = 0;
  int64_t pause_ns_max = 2 * ns_per_ms;  // of a producer between its calls
  bool check_leftovers = false;          // once it is open: deleted files have left nothing behind
  bool may_fail = false;                 // faults are planned: the store may refuse to open or to go on
  End end = End::power_cut;
  std::vector<CrashFate> fates;  // images of the end that are wanted; not for process_kill
};

// /data is there, and nothing in it: the directory above the store's belongs to the operator.
DiskImage new_machine();

// What a store opens on: an image, or after kill -9 of the process the disk itself.
struct Machine {
  DiskImage image = new_machine();
  std::optional<DiskState> state;
};

struct LifeResult {
  bool opened = false;
  bool crashed = false;      // before the plan's work was done
  Dump dump;                 // when opened
  uint64_t points = 0;       // crash points of the disk that were passed
  uint64_t open_points = 0;  // of them before the store was open
  uint64_t log_files_deleted = 0;
  uint64_t trace_hash = 0;
  std::vector<DiskImage> images;   // one per fate
  std::optional<DiskState> state;  // process_kill
  DiskCounters disk;
  Errors errors;
};

LifeResult live(Model& model, Machine from, const LifePlan& plan);

// Small files and short intervals, so that a hundred messages meet everything.
store::StoreOptions small_store(store::FlushDiskType flush);
// Retention looks every few milliseconds; with `deletes` also at the log, else only at what points into it.
void add_retention(store::StoreOptions& o, int64_t reserved_ms, bool deletes);

}  // namespace rmq::sim

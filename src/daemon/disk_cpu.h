// DiskCpu: where a disk has one queue of requests, one CPU takes its interrupts, and the kernel finishes a
// write with O_DSYNC in a worker that is bound to that CPU: what was flushed is not seen before a client that
// computes there lets the worker in. So the event loop stays on that CPU: while it waits for the disk, the
// CPU is free. Disks with a queue for each CPU (NVMe) finish where the write was sent; for them, and where a
// directory's disk cannot be told, nothing is done.
//
// Files of sysfs and procfs are read as they are: they do not wait for a device. Sources: block/blk-mq.c
// (blk_mq_complete_need_ipi), fs/iomap/direct-io.c, Documentation/ABI/testing/sysfs-kernel-irq and
// sysfs-block of Linux; Documentation/scheduler/sched-stats.rst for the time in a run queue.
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "uring/sync.h"

namespace rmq {

// The interrupts of one disk, counted by CPU.
class DiskInterrupts {
 public:
  // Of the disk that holds `path`. None: it has several queues, or none, or cannot be told. `sys`: /sys, or
  // what stands for it in a test.
  static std::optional<DiskInterrupts> of(const std::string& path, const std::string& sys = "/sys");

  const std::string& disk() const { return disk_; }
  // The CPU that took four fifths or more of the interrupts since the last call, or since this was made.
  // -1: there were too few to tell. -2: they were spread.
  int busiest_cpu();

 private:
  std::string disk_;                // vda
  std::vector<std::string> files_;  // one for each interrupt: its counts by CPU
  std::vector<uint64_t> counts_;    // by CPU, when last looked at
};

inline constexpr int too_few_interrupts = -1, spread_interrupts = -2;

// Keeps the calling thread on a CPU, within what it was allowed when this was made. Where that CPU has too
// much to do, so that the thread waits for it two fifths of the time, it is let go: for a minute, twice as
// long each time, an hour at most.
class StayOnCpu {
 public:
  explicit StayOnCpu(std::string schedstat = "/proc/thread-self/schedstat");
  // To be called every few seconds by that thread, at `now_ns` (monotonic), with what busiest_cpu() said.
  // Returns the CPU that it stays on, or -1: any.
  int look(int cpu, int64_t now_ns);
  void let_go();
  // Why the last change could not be made; 0: it was made.
  int error() const { return error_; }

 private:
  bool waits_too_long(int64_t now_ns);
  void free_for_a_while(int64_t now_ns);

  std::string schedstat_;
  cpu_set_t allowed_;
  int on_ = -1;
  int error_ = 0;
  uint64_t waited_ns_ = 0;  // in the run queue, as last read
  int64_t looked_ns_ = 0;
  int64_t free_until_ns_ = 0;
  int64_t free_for_ns_ = 60 * ns_per_s;
};

// What decides, all of it looked at every two seconds; it belongs to the caller and outlives the task.
struct StayAtDisk {
  std::string path;            // of the log
  const bool& wanted;          // diskCpuAffinity
  const uint64_t& log_writes;  // so far; with less than 50 a second any CPU will do
  std::string sys = "/sys";
};
// Keeps the loop of this thread there until `stop`. Says the first change in the journal.
Task<void> stay_at_disk(StayAtDisk what, Event& stop);

}  // namespace rmq

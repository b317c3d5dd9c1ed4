// Watermarks: whether the disks of the store have room for new messages. Looked at each second, and when a
// file
// could not be had. Producers are refused while one of these holds, and served again when none does:
// - more of a disk is in use than diskSpaceWarningLevelRatio;
// - less is free than diskReservedBytes;
// - the log's next file cannot be made and the last one is full: there is no room for it above the reserve;
// - ConsumeQueue files cannot grow: the file system said ENOSPC. Their units wait in memory.
// Everything else goes on. What must not be lost because producers were too fast (messages that consumers
// give back, delayed ones that are due) may use what is reserved: MessageIn::may_use_reserve.
#pragma once

#include <optional>
#include <string>

#include "store/types.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq::store {

class DiskWatch {
 public:
  DiskWatch(Disk& disk, const StoreOptions& o);

  // Looks once; then each second until stop().
  Task<void> start(Scope& tasks);
  void stop() { stop_.set(); }
  void set_options(const RetentionOptions& o) { rules_ = o; }
  void set_listener(FailureListener* l);

  bool full() const { return shortage_.has_value(); }
  const std::string& reason() const { return reason_; }  // for a person; "" unless full()

  // Whether a file of the log may be made: there is room for it, and unless `urgent` the reserve stays free.
  Task<bool> may_make_log_file(bool urgent);
  // The log cannot go on in a next file; or it can again.
  void set_log_stuck(bool stuck);
  void set_queues_stuck(bool stuck);

 private:
  Task<void> run();
  Task<void> look();
  void judge();
  std::optional<DiskShortage> worst() const;

  struct Place {
    std::string dir;
    DiskSpace space;
  };

  Disk& disk_;
  const uint64_t log_file_bytes_;
  RetentionOptions rules_;
  Place log_, root_;
  bool looked_ = false;
  bool log_stuck_ = false, queues_stuck_ = false;
  std::optional<DiskShortage> shortage_;
  std::string reason_;
  FailureListener* listener_ = nullptr;
  Event stop_;
};

}  // namespace rmq::store

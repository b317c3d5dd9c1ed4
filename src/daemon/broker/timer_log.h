// RocketMQ's own index of timer messages, as its broker reads it at a start: timerlog (storage.md 11.2). rmqd
// has another (timer.h) and writes this one only when it stops, so that RocketMQ finds what is pending. The
// timerwheel beside it is made by RocketMQ from the timerlog; one that is there is removed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "uring/io.h"

namespace rmq::broker {

class TimerLogWriter {
 public:
  static constexpr uint64_t file_bytes = 104'857'600;                // mappedFileSizeTimerLog
  static constexpr int64_t precision_ms = 1000;                      // timerPrecisionMs
  static constexpr int64_t roll_window_ms = 172'800 * precision_ms;  // timerRollWindowSlot
  static constexpr size_t unit_bytes = 52;
  // Bits of `magic`.
  static constexpr int32_t normal = 1, roll = 2, remove = 4;

  // Files in and below `root`. `now_ms` is rounded down to the second: RocketMQ goes on from there.
  TimerLogWriter(Disk& disk, std::string root, int64_t now_ms);
  ~TimerLogWriter();
  int64_t read_from_ms() const { return read_from_ms_; }

  // Removes the files that are there.
  Task<Result<void>> begin();
  // A message that is to come, in the order of the queue. What is overdue comes at once; what is further off
  // than RocketMQ's wheel reaches is looked at again before, as there.
  Task<Result<void>> add(int64_t deliver_ms, bool is_recall, int64_t physical, int32_t bytes);
  // Names a message that is done: RocketMQ goes on behind the last message that the timerlog names.
  Task<Result<void>> add_done(int64_t physical, int32_t bytes);
  // All is on stable storage. The position behind the last unit comes out.
  Task<Result<int64_t>> finish();

 private:
  Task<Result<void>> append(int64_t slot_ms, int32_t magic, int64_t physical, int32_t bytes);
  Task<Result<void>> open_file();
  Task<Result<void>> close_file();
  Task<Result<void>> write_out();

  Disk& disk_;
  const std::string root_;
  const int64_t read_from_ms_;
  std::unique_ptr<File> file_;
  uint64_t base_ = 0;     // of the file
  uint64_t written_ = 0;  // in it
  std::string buffer_;
  std::unordered_map<int64_t, int64_t> last_in_slot_;
};

}  // namespace rmq::broker

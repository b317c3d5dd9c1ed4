// Offload: one thread beside a ring for the few calls that io_uring cannot do at our floor and that block:
// directory listing, ftruncate, statvfs, name resolution. Nothing of the message path goes through it.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "uring/sync.h"
#include "uring/wakeup.h"

namespace rmq {

class Offload final : private Wakeup {
 public:
  // Owns its input and output, because whoever asked may stop waiting before it ran.
  class Job {
   public:
    virtual ~Job() = default;
    virtual void work() = 0;  // on the worker; may block

   private:
    friend class Offload;
    Event done_;  // the ring's side
  };

  explicit Offload(Ring& ring) : Wakeup(ring) {}
  ~Offload();  // waits for the job that runs; drops the others

  // True: the job ran. False: the deadline came first and its result will be dropped, or too many jobs wait.
  Task<bool> run(std::shared_ptr<Job> job, int64_t deadline_ns = no_deadline);

 private:
  static constexpr size_t jobs_max = 1024;
  void on_wake() override;
  void work_loop();

  std::mutex mutex_;  // guards the next four
  std::condition_variable wanted_;
  std::deque<std::shared_ptr<Job>> todo_;
  std::vector<std::shared_ptr<Job>> done_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace rmq

// Signals: SIGTERM, SIGINT and SIGHUP as something to await on a ring.
#pragma once

#include <sys/signalfd.h>

#include "uring/ring.h"

namespace rmq {

class Signals final : private Completion {
 public:
  // Keeps these signals from the process's default action. In main, before any thread is made: threads
  // inherit it. Also ignores SIGPIPE.
  static void block();

  explicit Signals(Ring& ring);  // after block()
  ~Signals();                    // nobody waits
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal's number. One that came while nobody waited is kept; the same twice may be one.
  // 0: close() was called.
  Task<int> next();
  void close();

 private:
  void arm();
  void on_completion(int32_t result, uint32_t flags) override;

  Ring& ring_;
  int fd_;
  bool armed_ = false;
  bool closed_ = false;
  int pending_ = 0;
  signalfd_siginfo info_{};
  WaitList waiting_;
};

}  // namespace rmq

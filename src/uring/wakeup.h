// Wakeup: how another thread reaches a ring. An eventfd whose read is always in flight on the ring; who
// writes it makes the ring's thread call on_wake() in one of its next turns.
#pragma once

#include "uring/ring.h"

namespace rmq {

class Wakeup : private Completion {
 public:
  explicit Wakeup(Ring& ring);
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  void wake();  // any thread, never blocks

 protected:
  ~Wakeup();  // on the ring's thread
  // On the ring's thread, after one or more wake(). Fires waiters, resumes nothing.
  virtual void on_wake() = 0;

 private:
  void arm();
  void on_completion(int32_t result, uint32_t flags) override;

  Ring& ring_;
  int fd_;
  uint64_t count_ = 0;  // the read's target
};

}  // namespace rmq

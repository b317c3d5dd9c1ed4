// Signals as something to await.
#include "uring/signals.h"

#include <signal.h>

#include "ring_fixture.h"

namespace rmq {
namespace {

class SignalsTest : public RingTest {
 protected:
  SignalsTest() {
    pthread_sigmask(SIG_SETMASK, nullptr, &before_);
    Signals::block();
  }
  ~SignalsTest() override { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  sigset_t before_;
};

Task<void> kill_later(int signal) {
  co_await sleep_for(5 * ns_per_ms);
  raise(signal);
}
Task<void> hear_signals(Ring& r) {
  Signals s(r);
  raise(SIGHUP);
  int heard = co_await s.next();
  EXPECT_EQ(heard, SIGHUP);
  Scope scope;
  scope.spawn(kill_later(SIGTERM));
  heard = co_await s.next();
  EXPECT_EQ(heard, SIGTERM);
  scope.spawn(kill_later(SIGINT));
  heard = co_await s.next();
  EXPECT_EQ(heard, SIGINT);
  co_await scope.join();
}
TEST_F(SignalsTest, AreHeardWheneverTheyCome) {
  run(hear_signals(*ring_));
}

Task<void> close_later(Signals& s) {
  co_await sleep_for(5 * ns_per_ms);
  s.close();
}
Task<void> hear_close(Ring& r) {
  Signals s(r);
  Scope scope;
  scope.spawn(close_later(s));
  int heard = co_await s.next();
  EXPECT_EQ(heard, 0);
  co_await scope.join();
}
TEST_F(SignalsTest, CloseEndsTheWait) {
  run(hear_close(*ring_));
}

TEST_F(SignalsTest, ABrokenPipeDoesNotKill) {
  int fd[2];
  ASSERT_EQ(pipe(fd), 0);
  close(fd[0]);
  EXPECT_EQ(write(fd[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(fd[1]);
}

}  // namespace
}  // namespace rmq

// The turns of a ring, single operations, deadlines, cancelling, and the thread beside it.
#include "uring/ring.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "ring_fixture.h"
#include "uring/iov.h"
#include "uring/offload.h"

namespace rmq {
namespace {

class Ring_ : public RingTest {};
class SmallRing : public RingTest {
 protected:
  SmallRing() : RingTest({.sq_entries = 4, .cq_entries = 8, .completions_per_turn = 4}) {}
};

struct Pipe {
  Pipe() { check(::pipe2(fd, O_CLOEXEC) == 0); }
  ~Pipe() {
    ::close(fd[0]);
    ::close(fd[1]);
  }
  void put(char c) { check(::write(fd[1], &c, 1) == 1); }
  int fd[2];
};

Task<void> million_nops(long& sum) {
  for (int i = 0; i < 1'000'000; i++) {
    Op op;
    io_uring_prep_nop(op.sqe());
    int32_t r = co_await op;
    sum += r + 1;
  }
}
TEST_F(Ring_, AMillionAwaitsUseNoStack) {
  long sum = 0;
  run(million_nops(sum));
  EXPECT_EQ(sum, 1'000'000);
}

Task<void> nop(int& done) {
  Op op;
  io_uring_prep_nop(op.sqe());
  int32_t r = co_await op;
  EXPECT_EQ(r, 0);
  done++;
}
Task<void> spawn_nops(int n, int& done) {
  Scope s;
  for (int i = 0; i < n; i++) s.spawn(nop(done));
  co_await s.join();
}
TEST_F(SmallRing, AFullQueueSubmitsAndGoesOn) {
  int done = 0;
  run(spawn_nops(1000, done));
  EXPECT_EQ(done, 1000);
}
TEST_F(Ring_, ABatchIsOneSystemCall) {
  int done = 0;
  run(spawn_nops(200, done));
  EXPECT_EQ(done, 200);
  EXPECT_LE(ring_->enters(), 2u);
}

Task<void> read_char(int fd, std::string& got) {
  char c = 0;
  Op op;
  io_uring_prep_read(op.sqe(), fd, &c, 1, 0);
  int32_t n = co_await op;
  EXPECT_EQ(n, 1);
  got += c;
}
// All reads are armed before the first byte comes: 500 completions at once for a queue of 8.
Task<void> overflow(std::string& got) {
  Pipe p;
  Scope s;
  for (int i = 0; i < 500; i++) s.spawn(read_char(p.fd[0], got));
  co_await sleep_for(ns_per_ms);
  std::string all(500, 'x');
  EXPECT_EQ(::write(p.fd[1], all.data(), all.size()), 500);
  co_await s.join();
}
TEST_F(SmallRing, CompletionsBeyondTheQueueAreNotLost) {
  std::string got;
  run(overflow(got));
  EXPECT_EQ(got.size(), 500u);
}

Task<void> note_turn(Ring& r, std::vector<uint64_t>& turns) {
  Op op;
  io_uring_prep_nop(op.sqe());
  co_await op;
  turns.push_back(r.turns());
}
Task<void> note_turns(Ring& r, std::vector<uint64_t>& turns) {
  Scope s;
  for (int i = 0; i < 4; i++) s.spawn(note_turn(r, turns));
  co_await s.join();
}
TEST(RingTurn, IsBounded) {
  Result<std::unique_ptr<Ring>> r =
      Ring::create({.sq_entries = 8, .cq_entries = 16, .completions_per_turn = 2});
  ASSERT_TRUE(r);
  std::vector<uint64_t> turns;
  (*r)->run(note_turns(**r, turns));
  ASSERT_EQ(turns.size(), 4u);
  EXPECT_EQ(turns[0], turns[1]);
  EXPECT_EQ(turns[2], turns[1] + 1);
  EXPECT_EQ(turns[3], turns[2]);
}

Task<void> yield_often() {
  for (int i = 0; i < 1000; i++) co_await Yield();
}
TEST_F(Ring_, TurnsWithoutWorkForTheKernelDoNotCallIt) {
  run(yield_often());
  EXPECT_EQ(ring_->enters(), 0u);
}

// The deadline's read is gone afterwards: the byte goes to the next one.
Task<void> deadline_then_byte(Ring& r) {
  Pipe p;
  char c = 0;
  {
    Op op;
    io_uring_prep_read(op.sqe(), p.fd[0], &c, 1, 0);
    int64_t before_ns = r.now_ns();
    int32_t n = co_await op.finish_by(before_ns + 20 * ns_per_ms);
    EXPECT_EQ(n, -ETIME);
    EXPECT_GE(r.now_ns(), before_ns + 20 * ns_per_ms);
  }
  p.put('a');
  Op op;
  io_uring_prep_read(op.sqe(), p.fd[0], &c, 1, 0);
  int32_t n = co_await op.finish_by(r.now_ns() + 10 * ns_per_s);
  EXPECT_EQ(n, 1);
  EXPECT_EQ(c, 'a');
}
TEST_F(Ring_, AnOperationEndsAtItsDeadline) {
  run(deadline_then_byte(*ring_));
  EXPECT_EQ(ring_->in_flight(), 0u);
}

class NoteDone final : public Completion {
 public:
  void on_completion(int32_t r, uint32_t) override {
    result = r;
    calls++;
  }
  int32_t result = 1;
  int calls = 0;
};
void start_read(Ring& r, NoteDone& read, char& into, Pipe& p) {
  io_uring_sqe e{};
  io_uring_prep_read(&e, p.fd[0], &into, 1, 0);
  r.start(e, read);
}
Task<void> cancel_both(Ring& r, NoteDone& read, NoteDone& cancel, char& into, Pipe& p) {
  start_read(r, read, into, p);
  co_await sleep_for(ns_per_ms);
  r.cancel(read, cancel);
  while (r.in_flight() != 0) co_await sleep_for(ns_per_ms);
}
TEST_F(Ring_, CancelGivesBothCompletions) {
  Pipe p;
  NoteDone read;
  NoteDone cancel;
  char c = 0;
  run(cancel_both(*ring_, read, cancel, c, p));
  EXPECT_EQ(read.calls, 1);
  EXPECT_EQ(read.result, -ECANCELED);
  EXPECT_EQ(cancel.calls, 1);
  EXPECT_EQ(cancel.result, 0);
}

TEST_F(Ring_, CancelNowDropsTheResultAndKeepsThatOfOthers) {
  Pipe p;
  Pipe other;
  NoteDone dropped;
  NoteDone kept;
  char c = 0;
  start_read(*ring_, dropped, c, p);
  other.put('k');
  start_read(*ring_, kept, c, other);
  ring_->cancel_now(dropped);
  run(yield_often());
  EXPECT_EQ(dropped.calls, 0);
  EXPECT_EQ(kept.calls, 1);
  EXPECT_EQ(c, 'k');
}

TEST_F(Ring_, ClosesInTheBackgroundBeforeItDies) {
  int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ring_->close_fd(fd);
  ring_.reset();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

int alarms = 0;
void on_alarm(int) {
  alarms++;
}
Task<void> sleep_long(Ring& r) {
  int64_t until_ns = r.now_ns() + 100 * ns_per_ms;
  co_await sleep_until(until_ns);
  EXPECT_GE(r.now_ns(), until_ns);
}
TEST_F(Ring_, SignalsInterruptTheWaitWithoutHarm) {
  struct sigaction act{};
  struct sigaction before{};
  act.sa_handler = on_alarm;
  sigaction(SIGALRM, &act, &before);
  itimerval every{{0, 5'000}, {0, 5'000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  run(sleep_long(*ring_));
  itimerval off{};
  setitimer(ITIMER_REAL, &off, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(alarms, 2);
}

TEST(SystemRandom, DiffersFromRunToRun) {
  SystemRandom a;
  SystemRandom b;
  EXPECT_NE(a.next(), b.next());
  EXPECT_NE(a.next(), a.next());
}

// ---- IovCursor ---------------------------------------------------------------------------------------

std::string take(IovCursor& c, size_t n) {
  std::string all;
  for (const iovec& v : c.next()) all.append(static_cast<const char*>(v.iov_base), v.iov_len);
  all.resize(std::min(n, all.size()));
  c.advance(all.size());
  return all;
}
TEST(IovCursor, GoesOnInsideABuffer) {
  std::vector<iovec> v{iov(""), iov("abc"), iov(""), iov("defg"), iov("h"), iov("")};
  for (size_t step = 1; step <= 8; step++) {
    IovCursor c(v);
    std::string got;
    while (!c.empty()) got += take(c, step);
    EXPECT_EQ(got, "abcdefgh") << step;
  }
  EXPECT_EQ(v[1].iov_len, 3u);  // the caller's are not touched
  EXPECT_TRUE(IovCursor(std::span(v).first(1)).empty());
}
TEST(IovCursor, OffersNoMoreThanACallTakes) {
  std::vector<iovec> v(IOV_MAX + 5, iov("x"));
  IovCursor c(v);
  EXPECT_EQ(c.next().size(), size_t{IOV_MAX});
  EXPECT_FALSE(c.is_last());
  c.advance(IOV_MAX);
  EXPECT_EQ(c.next().size(), 5u);
  EXPECT_TRUE(c.is_last());
}

// ---- Offload -----------------------------------------------------------------------------------------

class TellThread final : public Offload::Job {
 public:
  void work() override { on = std::this_thread::get_id(); }
  std::thread::id on;
};
Task<void> run_jobs(Ring& r) {
  for (int i = 0; i < 100; i++) {
    auto job = std::make_shared<TellThread>();
    bool ran = co_await r.offload().run(job);
    EXPECT_TRUE(ran);
    EXPECT_NE(job->on, std::thread::id());
    EXPECT_NE(job->on, std::this_thread::get_id());
  }
}
TEST_F(Ring_, JobsRunOnAnotherThread) {
  run(run_jobs(*ring_));
}

class WaitForGo final : public Offload::Job {
 public:
  explicit WaitForGo(std::atomic<bool>& go) : go_(go) {}
  void work() override { go_.wait(false); }

 private:
  std::atomic<bool>& go_;
};
Task<void> give_up(Ring& r, std::atomic<bool>& go) {
  auto slow = std::make_shared<WaitForGo>(go);
  std::weak_ptr<WaitForGo> seen = slow;
  bool ran = co_await r.offload().run(std::move(slow), r.now_ns() + 5 * ns_per_ms);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(seen.expired());  // the worker still has it
  go = true;
  go.notify_all();
  auto quick = std::make_shared<TellThread>();
  ran = co_await r.offload().run(quick);
  EXPECT_TRUE(ran);
  EXPECT_TRUE(seen.expired());
}
TEST_F(Ring_, WhoWaitsForAJobMayGiveUp) {
  std::atomic<bool> go{false};
  run(give_up(*ring_, go));
}

}  // namespace
}  // namespace rmq

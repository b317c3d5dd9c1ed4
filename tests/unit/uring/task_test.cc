// Task, Loop, Event, Semaphore, Queue and Scope on a loop that has only timers and a clock of its own.
#include <gtest/gtest.h>

#include <vector>

#include "uring/sync.h"

namespace rmq {
namespace {

struct TestClock : Clock {
  int64_t now = 1'000;
  int64_t mono_ns() override { return now; }
  int64_t wall_ms() override { return now / ns_per_ms; }
};
struct TestRandom : Random {
  uint64_t next() override { return 4; }
};
class TestLoop : public Loop {
 public:
  TestLoop() : Loop(clock_, random_) {}
  void poll(int64_t deadline_ns) override {
    check(deadline_ns != no_deadline);  // would hang
    if (deadline_ns > clock_.now) clock_.now = deadline_ns;
  }
  TestClock clock_;
  TestRandom random_;
};

Task<int> answer(int x) {
  co_return x;
}
Task<int> later(int x) {
  co_await sleep_for(10);
  co_return x;
}

Task<void> million(long& sum) {
  for (int i = 0; i < 1'000'000; i++) sum += co_await answer(1);
}
TEST(Task, AwaitsThatFinishAtOnceUseNoStack) {
  TestLoop loop;
  long sum = 0;
  loop.run(million(sum));
  EXPECT_EQ(sum, 1'000'000);
}

Task<void> million_suspended(long& sum) {
  for (int i = 0; i < 1'000'000; i++) {
    co_await Yield();
    sum += co_await answer(1);
  }
}
Task<void> nested(long& sum) {
  co_await million_suspended(sum);
}
TEST(Task, AwaitsThatSuspendUseNoStack) {
  TestLoop loop;
  long sum = 0;
  loop.run(nested(sum));
  EXPECT_EQ(sum, 1'000'000);
}

Task<void> sleeper(int ns, std::vector<int>& out) {
  co_await sleep_for(ns);
  out.push_back(ns);
}
Task<void> sleepers(std::vector<int>& out) {
  Scope scope;
  for (int ns : {50, 10, 90, 30, 10, 70}) scope.spawn(sleeper(ns, out));
  EXPECT_EQ(scope.running(), 6u);
  co_await scope.join();
}
TEST(Loop, TimersFireInOrderOfTheirDeadlines) {
  TestLoop loop;
  std::vector<int> out;
  loop.run(sleepers(out));
  EXPECT_EQ(out, (std::vector<int>{10, 10, 30, 50, 70, 90}));
}

Task<void> wait_both(Event& e, std::vector<bool>& out) {
  out.push_back(co_await e.wait_for(100));
  out.push_back(co_await e.wait_for(1'000'000));
  out.push_back(co_await e.wait());
}
Task<void> event_root(std::vector<bool>& out) {
  Event e;
  Scope scope;
  scope.spawn(wait_both(e, out));
  co_await sleep_for(500);
  e.set();
  co_await scope.join();
}
TEST(Event, DeadlineOrSetWhicheverIsFirst) {
  TestLoop loop;
  std::vector<bool> out;
  loop.run(event_root(out));
  EXPECT_EQ(out, (std::vector<bool>{false, true, true}));
  EXPECT_LT(loop.clock_.now, 10'000);
}

Task<void> use_slot(Semaphore& s, int id, std::vector<int>& order) {
  co_await s.acquire();
  order.push_back(id);
  co_await sleep_for(10);
  s.release();
}
Task<void> slots(std::vector<int>& order, uint32_t& left) {
  Semaphore s(2);
  Scope scope;
  for (int i = 0; i < 6; i++) scope.spawn(use_slot(s, i, order));
  EXPECT_EQ(order.size(), 2u);
  EXPECT_FALSE(s.try_acquire());
  co_await scope.join();
  left = s.free_slots();
}
TEST(Semaphore, GivesSlotsInOrderAndGetsAllBack) {
  TestLoop loop;
  std::vector<int> order;
  uint32_t left = 0;
  loop.run(slots(order, left));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(left, 2u);
}

Task<void> consume(Queue<int>& q, std::vector<int>& got) {
  for (;;) {
    auto v = co_await q.pop();
    if (!v) break;
    got.push_back(*v);
  }
}
Task<void> queue_root(std::vector<int>& got) {
  Queue<int> q(3);
  Scope scope;
  for (int i = 0; i < 3; i++) EXPECT_TRUE(q.push(i));
  EXPECT_FALSE(q.push(9)) << "bounded";
  scope.spawn(consume(q, got));
  EXPECT_TRUE(q.push(3));
  q.close();
  EXPECT_FALSE(q.push(4)) << "closed";
  co_await scope.join();
}
TEST(Queue, KeepsOrderBoundsAndDrainsAfterClose) {
  TestLoop loop;
  std::vector<int> got;
  loop.run(queue_root(got));
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Task, ValueComesFromASuspendedChild) {
  TestLoop loop;
  struct Run {
    static Task<void> go(int& x) { x = co_await later(7); }
  };
  int x = 0;
  loop.run(Run::go(x));
  EXPECT_EQ(x, 7);
}

}  // namespace
}  // namespace rmq

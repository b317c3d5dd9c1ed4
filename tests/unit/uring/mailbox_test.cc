// Mailbox: many sending threads, one ring.
#include "uring/mailbox.h"

#include <memory>
#include <thread>

#include "ring_fixture.h"

namespace rmq {
namespace {

class MailboxTest : public RingTest {};

TEST_F(MailboxTest, RefusesWhenFull) {
  Mailbox<int> box(*ring_, 4);
  for (int lap = 0; lap < 5; lap++) {
    for (int i = 0; i < 4; i++) EXPECT_TRUE(box.push(10 * lap + i));
    EXPECT_FALSE(box.push(99));
    for (int i = 0; i < 4; i++) EXPECT_EQ(box.try_pop(), 10 * lap + i);
    EXPECT_EQ(box.try_pop(), std::nullopt);
  }
}

TEST_F(MailboxTest, ARefusedValueStaysWithItsSender) {
  Mailbox<std::unique_ptr<int>> box(*ring_, 1);
  EXPECT_TRUE(box.push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(box.push(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST_F(MailboxTest, DestroysWhatNobodyTook) {
  auto value = std::make_shared<int>(1);
  {
    Mailbox<std::shared_ptr<int>> box(*ring_, 8);
    EXPECT_TRUE(box.push(value));
    EXPECT_TRUE(box.push(value));
    EXPECT_EQ(value.use_count(), 3);
  }
  EXPECT_EQ(value.use_count(), 1);
}

Task<void> drain_closed(Mailbox<int>& box) {
  std::optional<int> v = co_await box.pop();
  EXPECT_EQ(v, 1);
  v = co_await box.pop();
  EXPECT_EQ(v, std::nullopt);
}
TEST_F(MailboxTest, WhatCameBeforeTheCloseIsDelivered) {
  Mailbox<int> box(*ring_, 4);
  EXPECT_TRUE(box.push(1));
  box.close();
  EXPECT_FALSE(box.push(2));
  run(drain_closed(box));
}

Task<void> wait_for_close(Mailbox<int>& box) {
  std::optional<int> v = co_await box.pop();
  EXPECT_EQ(v, std::nullopt);
}
TEST_F(MailboxTest, CloseWakesTheConsumer) {
  Mailbox<int> box(*ring_, 4);
  std::thread closer([&box] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    box.close();
  });
  run(wait_for_close(box));
  closer.join();
}

struct Item {
  uint32_t sender;
  uint32_t number;
};
constexpr uint32_t senders = 4;
constexpr uint32_t items_each = 100'000;

void send_items(Mailbox<Item>& box, uint32_t sender) {
  for (uint32_t i = 0; i < items_each; i++) {
    while (!box.push(Item{sender, i})) std::this_thread::yield();
    if (i % 1000 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));  // lets the consumer sleep
  }
}
Task<void> take_items(Mailbox<Item>& box, std::vector<uint32_t>& next) {
  for (uint32_t n = 0; n < senders * items_each; n++) {
    std::optional<Item> v = co_await box.pop();
    check(v.has_value());
    if (v->number != next[v->sender]) ADD_FAILURE() << "out of order";
    next[v->sender] = v->number + 1;
  }
}
TEST_F(MailboxTest, ManySendersEachInOrderNothingLost) {
  Mailbox<Item> box(*ring_, 256);
  std::vector<std::thread> threads;
  for (uint32_t s = 0; s < senders; s++) threads.emplace_back(send_items, std::ref(box), s);
  std::vector<uint32_t> next(senders, 0);
  run(take_items(box, next));
  for (std::thread& t : threads) t.join();
  for (uint32_t n : next) EXPECT_EQ(n, items_each);
  EXPECT_EQ(box.try_pop().has_value(), false);
}

// Each side sleeps before each message: a lost wake-up hangs here.
constexpr int rounds = 20'000;
Task<void> return_balls(Mailbox<int>& in, Mailbox<int>*& out) {
  for (int i = 0; i < rounds; i++) {
    std::optional<int> v = co_await in.pop();
    check(v.has_value());
    EXPECT_TRUE(out->push(*v));
  }
}
Task<void> serve_balls(Mailbox<int>& in, Mailbox<int>& out) {
  for (int i = 0; i < rounds; i++) {
    EXPECT_TRUE(out.push(i));
    std::optional<int> v = co_await in.pop();
    EXPECT_EQ(v, i);
  }
}
TEST_F(MailboxTest, TwoRingsWakeEachOther) {
  Mailbox<int> ours(*ring_, 2);
  std::atomic<Mailbox<int>*> theirs{nullptr};
  std::atomic<bool> over{false};
  std::thread other([&] {
    Result<std::unique_ptr<Ring>> r = Ring::create();
    check(r.has_value());
    Mailbox<int> mine(**r, 2);
    theirs = &mine;
    theirs.notify_all();
    Mailbox<int>* back = &ours;
    (*r)->run(return_balls(mine, back));
    over.wait(false);
  });
  theirs.wait(nullptr);
  run(serve_balls(ours, *theirs.load()));
  over = true;
  over.notify_all();
  other.join();
}

}  // namespace
}  // namespace rmq

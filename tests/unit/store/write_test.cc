// Writing under pressure and in trouble: order, limits, back-pressure, async flush, failures, deletion.
#include <algorithm>

#include "machine.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

struct Puts {
  std::vector<PutMessageResult> results;
  std::vector<size_t> finished;  // in this order
};

Task<void> put_one(Ctx& c, Puts& p, size_t i, size_t bytes) {
  std::string body = std::to_string(i) + std::string(bytes, 'x');
  MessageIn m = Ctx::message("T", static_cast<int32_t>(i % 3), body);
  p.results[i] = co_await c.store->put(m);
  p.finished.push_back(i);
}

Task<void> many_at_once(Ctx& c) {
  Puts p;
  p.results.resize(600);
  Scope s;
  for (size_t i = 0; i < 600; i++) s.spawn(put_one(c, p, i, 9'000));  // 5 MB: over unflushed_bytes_max
  EXPECT_LE(c.store->max_physical_offset() - c.store->flushed_offset(),
            static_cast<int64_t>(c.store->options().unflushed_bytes_max));
  co_await s.join();
  for (size_t i = 0; i < 600; i++) {
    EXPECT_EQ(p.results[i].status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(p.results[i].queue_offset, static_cast<int64_t>(i / 3));
    if (i > 0) {
      EXPECT_GT(p.results[i].physical_offset, p.results[i - 1].physical_offset) << "arrival is log order";
    }
  }
  EXPECT_GT(c.store->stats().puts_waited, 0u);
  EXPECT_LT(c.store->stats().log_writes, 100u) << "group commit";
}

TEST(Write, BackPressureKeepsTheOrder) {
  for (FlushDiskType f : {FlushDiskType::SYNC_FLUSH, FlushDiskType::ASYNC_FLUSH}) {
    Machine m;
    m.options.flush = f;
    m.run(many_at_once);
    m.run(nullptr);
    EXPECT_TRUE(m.recovery.clean);
  }
}

// A put that has not been answered need not be there, one that has must be.
TEST(Write, NothingIsConfirmedBeforeItIsSafe) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        auto r = co_await c.store->put(Ctx::message("T", 0, "unsafe"), false);
        EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        EXPECT_EQ(c.store->confirm_offset(), 0);
        EXPECT_EQ(c.store->max_offset("T", 0), 0) << "not visible yet";
        auto g = co_await c.store->get("T", 0, 0, 32, nullptr);
        EXPECT_EQ(g.status, GetMessageStatus::NO_MESSAGE_IN_QUEUE);
      },
      End::power_lost);
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_physical_offset(), 0);
    co_return;
  });
}

class Arrivals final : public ArrivalListener {
 public:
  void on_arrival(const Arrival& a) override {
    seen.push_back(std::string(a.topic) + "/" + std::to_string(a.queue_id) + "@" +
                   std::to_string(a.queue_offset));
    visible = visible && a.queue_offset < store->max_offset(a.topic, a.queue_id);
    answered_before += puts_answered;
  }
  MessageStore* store = nullptr;
  std::vector<std::string> seen;
  bool visible = true;
  int puts_answered = 0, answered_before = 0;
};

TEST(Write, ArrivalComesBeforeTheAnswer) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    Arrivals a;
    a.store = c.store;
    c.store->set_arrival_listener(&a);
    co_await c.put("T", 0, "a");
    a.puts_answered = 1;
    EXPECT_EQ(a.seen, (std::vector<std::string>{"T/0@0"}));
    EXPECT_EQ(a.answered_before, 0);
    std::vector<MessageIn> batch(2, Ctx::message("U", 4, "b"));
    co_await c.store->put_batch(batch);
    EXPECT_EQ(a.seen, (std::vector<std::string>{"T/0@0", "U/4@0", "U/4@1"}));
    EXPECT_TRUE(a.visible);
    c.store->set_arrival_listener(nullptr);
  });
}

Task<void> wait_put(Ctx& c, PutMessageResult& r, bool& done) {
  r = co_await c.store->put(Ctx::message("T", 0, "held"));
  done = true;
}

TEST(Write, AHeldConfirmOffsetHoldsEverything) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    auto first = co_await c.put("T", 0, "first");
    c.store->hold_confirm_offset(first.total_bytes);
    PutMessageResult r;
    bool done = false;
    Scope s;
    s.spawn(wait_put(c, r, done));
    co_await sleep_for(ns_per_s);
    EXPECT_FALSE(done);
    EXPECT_EQ(c.store->max_offset("T", 0), 1);
    EXPECT_GT(c.store->flushed_offset(), c.store->confirm_offset());
    auto not_yet = co_await c.store->record_at(first.total_bytes);
    EXPECT_FALSE(not_yet.has_value());
    c.store->hold_confirm_offset(std::nullopt);
    co_await s.join();
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(c.store->max_offset("T", 0), 2);
  });
}

Task<void> put_pair(Ctx& c, bool& done) {
  std::vector<MessageIn> batch(2, Ctx::message("T", 0, "one of two"));
  auto r = co_await c.store->put_batch(batch);
  EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  done = true;
}

TEST(Write, ABatchIsConfirmedAsAWhole) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        auto first = co_await c.put("T", 0, "one of two");
        c.store->hold_confirm_offset(2 * int64_t{first.total_bytes});  // in the middle of it
        bool done = false;
        Scope s;
        s.spawn(put_pair(c, done));
        co_await sleep_for(ns_per_s);
        EXPECT_EQ(c.store->max_offset("T", 0), 1) << "not a part of it";
        EXPECT_EQ(c.store->confirm_offset(), first.total_bytes);
        c.store->hold_confirm_offset(std::nullopt);
        co_await s.join();
        EXPECT_TRUE(done);
        EXPECT_EQ(c.store->max_offset("T", 0), 3);
      },
      End::kill);
  m.run([](Ctx& c) -> Task<void> {
    auto last = co_await c.store->record_at(c.store->stats().recovery.last_record);
    CO_ASSERT(last.has_value());
    EXPECT_EQ(c.store->stats().recovery.last_record + static_cast<int64_t>(last->bytes().size()),
              c.store->max_physical_offset());
  });
}

TEST(Write, APutThatWaitsTooLongIsTold) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    c.store->hold_confirm_offset(0);
    PutMessageResult r;
    bool done = false;
    Scope s;
    s.spawn(wait_put(c, r, done));
    co_await s.join();
    EXPECT_EQ(r.status, PutMessageStatus::FLUSH_DISK_TIMEOUT);
    EXPECT_EQ(r.queue_offset, 0) << "it is stored all the same";
    c.store->hold_confirm_offset(std::nullopt);
    EXPECT_EQ(c.store->max_offset("T", 0), 1);
  });
}

TEST(Write, AsyncFlushConfirmsWhatIsWritten) {
  Machine m;
  m.options.flush = FlushDiskType::ASYNC_FLUSH;
  m.run(
      [](Ctx& c) -> Task<void> {
        auto r = co_await c.put("T", 0, "a");
        EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        EXPECT_EQ(c.store->confirm_offset(), r.total_bytes);
        EXPECT_EQ(c.store->flushed_offset(), 0);
        EXPECT_EQ(c.disk.counters().media_writes > 0, true);  // start-up and zeros
        co_await sleep_for(600 * ns_per_ms);
        EXPECT_EQ(c.store->flushed_offset(), r.total_bytes);
        co_await c.put("T", 0, "b");
      },
      End::kill);
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("T", 0), 2) << "a killed process loses nothing";
    co_return;
  });
}

TEST(Write, AsyncFlushKeepsAPrefixWhenThePowerGoes) {
  for (End end : {End::power_lost, End::power_torn}) {
    for (uint64_t seed = 1; seed < 20; seed++) {
      Machine m;
      m.seed = seed;
      m.options.flush = FlushDiskType::ASYNC_FLUSH;
      m.run(
          [](Ctx& c) -> Task<void> {
            for (int i = 0; i < 100; i++) {
              co_await c.put("T", 0, std::to_string(i) + std::string(3000, 'x'));
              if (i == 40) co_await sleep_for(2 * ns_per_s);
            }
          },
          end);
      m.run([](Ctx& c) -> Task<void> {
        int64_t max = c.store->max_offset("T", 0);
        EXPECT_GE(max, 41);
        for (int64_t o = 0; o < max; o++) {
          auto r = co_await c.store->get("T", 0, o, 1, nullptr);
          auto b = bodies_of(r);
          CO_ASSERT(b.size() == 1);
          EXPECT_EQ(b[0].substr(0, b[0].find('x')), std::to_string(o));
        }
      });
    }
  }
}

class Failure final : public FailureListener {
 public:
  void on_store_failed(const Error& e) override {
    times++;
    code = e.code;
  }
  int times = 0;
  Errc code{};
};

Task<void> failing_write(Ctx& c) {
  Failure f;
  c.store->set_failure_listener(&f);
  auto good = co_await c.put("T", 0, "good");
  EXPECT_EQ(good.status, PutMessageStatus::PUT_OK);
  c.disk.plan().faults.push_back({sim::FaultKind::io_error, sim::OpKind::write, "commitlog", 1, 1});
  auto bad = co_await c.put("T", 0, "bad");
  EXPECT_EQ(bad.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
  EXPECT_FALSE(c.store->writable());
  EXPECT_NE(std::string(c.store->not_writable_reason()), "");
  auto later = co_await c.put("T", 0, "later");  // the disk would take it now
  EXPECT_EQ(later.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
  EXPECT_EQ(f.times, 1);
  EXPECT_EQ(f.code, Errc::io);
  auto r = co_await c.store->get("T", 0, 0, 32, nullptr);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"good"})) << "reading goes on";
  c.store->set_failure_listener(nullptr);
}

TEST(Write, AFailedWriteIsFinal) {
  Machine m;
  m.run(failing_write);
  EXPECT_TRUE(m.exists("abort"));
  m.run([](Ctx& c) -> Task<void> {
    auto r = co_await c.put("T", 0, "goes on");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  });
  EXPECT_FALSE(m.recovery.clean);
}

TEST(Write, AFailedSyncIsFinal) {
  Machine m;
  m.options.flush = FlushDiskType::ASYNC_FLUSH;
  m.run([](Ctx& c) -> Task<void> {
    co_await c.put("T", 0, "a");
    c.disk.plan().faults.push_back({sim::FaultKind::io_error, sim::OpKind::sync, "commitlog", 1, 1});
    co_await sleep_for(2 * ns_per_s);
    EXPECT_FALSE(c.store->writable());
    auto r = co_await c.put("T", 0, "b");
    EXPECT_EQ(r.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
    // The index wants the log synced, too, and the kernel would say that it is.
    co_await sleep_for(60 * ns_per_s);
    EXPECT_LT(c.store->flushed_offset(), c.store->max_physical_offset());
  });
}

TEST(Write, AFullDiskRefusesWhatNeedsANewFile) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    c.disk.plan().faults.push_back(
        {sim::FaultKind::no_space, sim::OpKind::allocate, "commitlog", 1, 1'000'000});
    PutMessageResult r;
    for (int i = 0; i < 2000 && (i == 0 || r.status == PutMessageStatus::PUT_OK); i++)
      r = co_await c.put("T", 0, std::string(5000, 'x'));
    EXPECT_EQ(r.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
    EXPECT_TRUE(c.store->disk_full());
    EXPECT_NE(std::string(c.store->not_writable_reason()).find("next CommitLog file"), std::string::npos)
        << c.store->not_writable_reason();
    c.disk.plan().faults.clear();
    co_await sleep_for(2 * ns_per_s);
    r = co_await c.put("T", 0, std::string(5000, 'x'));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK) << "there is room again";
  });
  m.run(nullptr);
  EXPECT_TRUE(m.recovery.clean);
}

Task<void> illegal(Ctx& c) {
  using enum PutMessageStatus;
  std::string ok_topic(127, 't'), long_topic(128, 't'), dlq = "%DLQ%" + std::string(150, 'g');
  std::string retry = "%RETRY%" + std::string(248, 'g'), over = "%RETRY%" + std::string(249, 'g');
  std::string big(4097, 'b'), properties(32'768, 'p');
  struct Case {
    std::string_view topic, body, properties;
    int32_t queue;
    PutMessageStatus want;
  };
  const Case cases[] = {
      {ok_topic, "b", "", 0, PUT_OK},
      {long_topic, "b", "", 0, MESSAGE_ILLEGAL},
      {dlq, "b", "", 0, MESSAGE_ILLEGAL},
      {retry, "b", "", 0, PUT_OK},
      {over, "b", "", 0, MESSAGE_ILLEGAL},
      {"T", "", "", 0, MESSAGE_ILLEGAL},
      {"", "b", "", 0, MESSAGE_ILLEGAL},
      {"T", "b", "", -1, MESSAGE_ILLEGAL},
      {"T", big, "", 0, MESSAGE_ILLEGAL},
      {"T", "b", properties, 0, PROPERTIES_SIZE_EXCEEDED},
      {"T", std::string_view(big).substr(1), std::string_view(properties).substr(1), 0, PUT_OK},
  };
  c.store->set_max_message_bytes(4096);
  for (const Case& k : cases) {
    auto r = co_await c.put(k.topic, k.queue, k.body, k.properties);
    EXPECT_EQ(r.status, k.want) << k.topic.substr(0, 8) << k.topic.size() << " " << k.body.size();
  }
  auto none = co_await c.store->put_batch({});
  EXPECT_EQ(none.status, MESSAGE_ILLEGAL);
}

TEST(Write, IllegalMessages) {
  Machine m;
  m.run(illegal);
}

Task<void> keep_putting(Ctx& c, bool& stop, int& count) {
  while (!stop) {
    auto r = co_await c.put("D", count % 4, "m" + std::to_string(count));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    count++;
  }
}

TEST(Write, DeletingATopicUnderPuts) {
  for (uint64_t seed = 1; seed < 15; seed++) {
    Machine m;
    m.seed = seed;
    m.options.queue_write_interval_ms = 20;
    m.options.checkpoint_interval_ms = 50;
    m.run(
        [](Ctx& c) -> Task<void> {
          bool stop = false;
          int count = 0;
          Scope s;
          for (int i = 0; i < 3; i++) s.spawn(keep_putting(c, stop, count));
          for (int i = 0; i < 5; i++) {
            co_await sleep_for(70 * ns_per_ms);
            co_await c.store->delete_topic("D");
          }
          co_await c.put("D", 9, "last of all");
          stop = true;
          co_await s.join();
          co_await sleep_for(300 * ns_per_ms);
          // What is left is consistent: offsets from 0, dense, readable.
          for (int q = 0; q < 4; q++) {
            int64_t max = c.store->max_offset("D", q);
            for (int64_t o = 0; o < max;) {
              auto r = co_await c.store->get("D", q, o, 32, nullptr);
              CO_ASSERT(r.status == GetMessageStatus::FOUND);
              o = r.next_begin_offset;
            }
          }
        },
        seed % 2 == 0 ? End::stop : End::kill);
    m.run([](Ctx& c) -> Task<void> {
      EXPECT_EQ(c.store->max_offset("D", 9), 1);
      co_return;
    });
  }
}

TEST(Write, ADeletedTopicIsGone) {
  Machine m;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await c.put("D", 0, "a");
        co_await c.put("E", 0, "b");
        co_await sleep_for(7 * ns_per_s);
        co_await c.store->delete_topic("D");
        EXPECT_EQ(c.store->topics_with_queues(), (std::vector<std::string>{"E"}));
        EXPECT_EQ(c.store->min_offset("D", 0), -1);
        co_await sleep_for(ns_per_s);
      },
      End::kill);
  EXPECT_FALSE(m.exists("consumequeue/D/0/00000000000000000000"));
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->topics_with_queues(), (std::vector<std::string>{"E"}));
    auto r = co_await c.put("D", 0, "new");
    EXPECT_EQ(r.queue_offset, 0);
  });
  EXPECT_FALSE(m.recovery.queues_rebuilt);
}

// Without O_DIRECT the same promises hold.
TEST(Write, AFileSystemWithoutDirectIo) {
  Machine m;
  m.plan.supports_direct = false;
  m.run(many_at_once, End::power_lost);
  EXPECT_FALSE(m.stats.direct_io);
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("T", 0), 200);
    co_return;
  });
}

// Zeros are written ahead, and a stop remembers how far.
TEST(Write, ZerosAhead) {
  Machine m;
  m.options.commit_log_file_bytes = 4u << 20;
  m.options.zero_ahead_bytes = 1u << 20;
  m.run([](Ctx& c) -> Task<void> {
    co_await sleep_for(ns_per_s);
    EXPECT_EQ(c.store->stats().zeroed_bytes, 1u << 20);
    for (int i = 0; i < 150; i++) co_await c.put("T", 0, std::string(5000, 'x'));
    co_await sleep_for(ns_per_s);
  });
  uint64_t zeroed = m.stats.zeroed_bytes;
  EXPECT_GT(zeroed, (1u << 20) + (1u << 18));
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await sleep_for(ns_per_s);
        EXPECT_LT(c.store->stats().zeroed_bytes, 1u << 19) << "most is still there from the run before";
        co_await c.put("T", 0, "x");
        co_await sleep_for(10 * ns_per_s);
      },
      End::kill);
  m.run([](Ctx& c) -> Task<void> {
    co_await sleep_for(ns_per_s);
    EXPECT_LT(c.store->stats().zeroed_bytes, 1u << 19) << "also after a kill";
  });
}

TEST(Write, TheNextFileIsReadyBeforeItIsNeeded) {
  for (uint64_t zero_ahead_bytes : {256u << 10, 0u}) {
    Machine m;
    m.options.zero_ahead_bytes = zero_ahead_bytes;
    m.run([](Ctx& c) -> Task<void> {
      for (int i = 0; i < 600; i++) co_await c.put("T", 0, std::string(5000, 'x'));
      EXPECT_EQ(c.store->stats().puts_waited, 0u);
    });
  }
}

// A batch larger than half a file, before the file is half full: nobody has made the next one yet.
TEST(Write, ABatchThatNeedsTheNextFileEarly) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    co_await c.put("T", 0, std::string(300'000, 'x'));
    std::string part(100'000, 'p');
    std::vector<MessageIn> batch(8, Ctx::message("T", 0, part));
    auto r = co_await c.store->put_batch(batch);
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(r.physical_offset, 1 << 20);
  });
}

// A write of zeros that is under way where the next message goes: the message waits for it.
TEST(Write, ZerosNeverOverwriteMessages) {
  Machine m;
  m.plan.slow_ns = 500 * ns_per_ms;
  m.plan.faults.push_back({sim::FaultKind::slow, sim::OpKind::write, "commitlog", 1, 1});
  m.run(
      [](Ctx& c) -> Task<void> {
        EXPECT_EQ(c.store->stats().zeroed_bytes, 0u) << "or this tests nothing";
        auto r = co_await c.put("T", 0, "stays");
        EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        co_await sleep_for(ns_per_s);
      },
      End::power_lost);
  m.plan.faults.clear();
  m.run([](Ctx& c) -> Task<void> {
    auto r = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"stays"}));
  });
}

// Appends overtake the zeros again and again, also near the ends of files.
TEST(Write, AppendsFasterThanZeros) {
  for (uint64_t seed = 1; seed < 4; seed++) {
    Machine m;
    m.seed = seed;
    m.options.commit_log_file_bytes = 1u << 20;
    m.options.memory_bytes = 32u << 20;
    m.options.zero_ahead_bytes = 1u << 20;
    m.plan.write_ns_max = 20 * ns_per_ms;
    m.run(
        [](Ctx& c) -> Task<void> {
          Puts p;
          p.results.resize(600);
          Scope s;
          for (size_t i = 0; i < 600; i++) {
            s.spawn(put_one(c, p, i, 9'000));
            bool pause = i % 20 == 19;
            if (pause) co_await sleep_for(static_cast<int64_t>(c.loop.random().below(40)) * ns_per_ms);
          }
          co_await s.join();
        },
        End::power_lost);
    m.run([](Ctx& c) -> Task<void> {
      uint64_t seen = 0;
      for (int q = 0; q < 3; q++) {
        for (int64_t o = 0; o < c.store->max_offset("T", q);) {
          auto r = co_await c.store->get("T", q, o, 32, nullptr);
          CO_ASSERT(r.status == GetMessageStatus::FOUND);
          seen += bodies_of(r).size();
          o = r.next_begin_offset;
        }
      }
      EXPECT_EQ(seen, 600u);
    });
  }
}

TEST(Write, TopicsAreNoPaths) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    for (std::string_view t : {"..", ".", "a/b", "/etc", "../../x"}) {
      auto r = co_await c.put(t, 0, "b");
      EXPECT_EQ(r.status, PutMessageStatus::MESSAGE_ILLEGAL) << t;
    }
  });
}

}  // namespace
}  // namespace rmq::store::test

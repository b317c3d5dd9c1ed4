// Pulls: the statuses and next offsets of RocketMQ's getMessage, limits, filters, old messages, times.
#include <algorithm>

#include "machine.h"

namespace rmq::store::test {
namespace {

Task<void> statuses(Ctx& c) {
  for (int i = 0; i < 5; i++) co_await c.put("T", 0, "m" + std::to_string(i));
  struct Case {
    const char* topic;
    int32_t queue;
    int64_t offset;
    GetMessageStatus status;
    int64_t next, min, max;
  };
  const Case cases[] = {
      {"T", 0, 0, GetMessageStatus::FOUND, 5, 0, 5},
      {"T", 0, 4, GetMessageStatus::FOUND, 5, 0, 5},
      {"T", 0, 5, GetMessageStatus::OFFSET_OVERFLOW_ONE, 5, 0, 5},
      {"T", 0, 6, GetMessageStatus::OFFSET_OVERFLOW_BADLY, 5, 0, 5},
      {"T", 0, -1, GetMessageStatus::OFFSET_TOO_SMALL, 0, 0, 5},
      {"T", 1, 0, GetMessageStatus::NO_MESSAGE_IN_QUEUE, 0, 0, 0},
      {"T", 70'000, 7, GetMessageStatus::NO_MESSAGE_IN_QUEUE, 0, 0, 0},
      {"none", 0, 3, GetMessageStatus::NO_MESSAGE_IN_QUEUE, 0, 0, 0},
  };
  for (const Case& k : cases) {
    auto r = co_await c.store->get(k.topic, k.queue, k.offset, 32, nullptr);
    EXPECT_EQ(r.status, k.status) << k.topic << k.queue << " " << k.offset;
    EXPECT_EQ(r.next_begin_offset, k.next) << k.topic << k.queue << " " << k.offset;
    EXPECT_EQ(r.min_offset, k.min) << k.offset;
    EXPECT_EQ(r.max_offset, k.max) << k.offset;
  }
  EXPECT_EQ(c.store->min_offset("T", 0), 0);
  EXPECT_EQ(c.store->max_offset("T", 0), 5);
  EXPECT_EQ(c.store->min_offset("none", 0), -1);
  EXPECT_EQ(c.store->max_offset("none", 0), 0);
  co_await c.put("T", 70'000, "far");
  auto far = co_await c.store->get("T", 70'000, 0, 1, nullptr);
  EXPECT_EQ(bodies_of(far), (std::vector<std::string>{"far"}));
  EXPECT_EQ(c.store->topics_with_queues(), (std::vector<std::string>{"T"}));
}

TEST(Read, Statuses) {
  Machine m;
  m.run(statuses);
}

Task<void> limits(Ctx& c) {
  for (int i = 0; i < 50; i++) co_await c.put("T", 0, "m" + std::to_string(i));
  auto all = co_await c.store->get("T", 0, 0, 1000, nullptr);
  EXPECT_EQ(all.message_count, 32u);
  EXPECT_EQ(all.next_begin_offset, 32);
  auto some = co_await c.store->get("T", 0, 10, 7, nullptr);
  EXPECT_EQ(some.message_count, 7u);
  EXPECT_EQ(bodies_of(some)[0], "m10");
  auto none = co_await c.store->get("T", 0, 0, 0, nullptr);
  EXPECT_EQ(none.message_count, 1u) << "never less than one";
  std::string big(100'000, 'b');
  for (int i = 0; i < 5; i++) co_await c.put("B", 0, big);
  auto bytes = co_await c.store->get("B", 0, 0, 32, nullptr);
  EXPECT_EQ(bytes.message_count, 2u) << "256 KiB";
  std::string huge(300'000, 'h');
  co_await c.put("H", 0, huge);
  co_await c.put("H", 0, huge);
  auto one = co_await c.store->get("H", 0, 0, 32, nullptr);
  EXPECT_EQ(one.message_count, 1u) << "one that is over the limit alone";
}

TEST(Read, Limits) {
  Machine m;
  m.run(limits);
}

TEST(Read, LimitsOfWhatIsOld) {
  Machine m;
  m.options.in_memory_distance_bytes = 100'000;
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 40; i++) co_await c.put("T", 0, "m");
    std::string big(90'000, 'b');
    co_await c.put("U", 0, big);
    auto hot = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(hot.message_count, 32u);
    co_await c.put("U", 0, big);
    EXPECT_FALSE(c.store->in_memory(0));
    auto cold = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(cold.message_count, 8u);
  });
}

class Tag final : public MessageFilter {
 public:
  explicit Tag(int64_t code) : code_(code) {}
  bool matches_tags_code(int64_t c) const override { return c == code_; }

 private:
  int64_t code_;
};

class BodyIs final : public MessageFilter {
 public:
  explicit BodyIs(std::string_view b) : body_(b) {}
  bool matches_tags_code(int64_t) const override { return true; }
  bool needs_record() const override { return true; }
  bool matches_record(Bytes record) const override {
    auto v = proto::parse_record(record, proto::CrcCheck::verify);
    return v && as_text(v->body) == body_;
  }

 private:
  std::string_view body_;
};

Task<void> filters(Ctx& c) {
  for (int i = 0; i < 1500; i++)
    co_await c.put("T", 0, "m" + std::to_string(i),
                   i == 3 || i == 5 || i == 1499 ? "TAGS\x01"
                                                   "a\x02"
                                                 : "");
  Tag a('a');
  auto r = co_await c.store->get("T", 0, 0, 32, &a);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"m3", "m5"}));
  EXPECT_EQ(r.next_begin_offset, 800) << "scans 800 units at least";
  auto s = co_await c.store->get("T", 0, 10, 32, &a);
  EXPECT_EQ(s.status, GetMessageStatus::NO_MATCHED_MESSAGE);
  EXPECT_EQ(s.next_begin_offset, 810);
  auto f = co_await c.store->get("T", 0, 500, 32, &a);
  EXPECT_EQ(f.status, GetMessageStatus::NO_MATCHED_MESSAGE);
  EXPECT_EQ(f.next_begin_offset, 1000) << "not beyond one file of units";
  auto e = co_await c.store->get("T", 0, 1000, 32, &a);
  EXPECT_EQ(bodies_of(e), (std::vector<std::string>{"m1499"}));
  BodyIs b("m42");
  auto w = co_await c.store->get("T", 0, 40, 32, &b);
  EXPECT_EQ(bodies_of(w), (std::vector<std::string>{"m42"}));
}

TEST(Read, Filters) {
  Machine m;
  m.run(filters);
}

// More log than memory: old messages come from the files, and what a slow reader holds stays as it was.
Task<void> write_much(Ctx& c) {
  auto held = co_await c.put("T", 0, "first");
  EXPECT_EQ(held.status, PutMessageStatus::PUT_OK);
  for (int i = 1; i <= 3000; i++) co_await c.put("T", i % 2, std::to_string(i) + std::string(4000, 'x'));
}
Task<void> read_all(Ctx& c) {
  auto first = co_await c.store->get("T", 0, 0, 1, nullptr);
  for (int q = 0; q < 2; q++) {
    int64_t o = 0, seen = 0;
    while (o < c.store->max_offset("T", q)) {
      auto r = co_await c.store->get("T", q, o, 32, nullptr);
      CO_ASSERT(r.status == GetMessageStatus::FOUND);
      for (const std::string& b : bodies_of(r)) {
        int64_t i = q == 1 ? seen * 2 + 1 : seen * 2;
        if (i != 0) {
          EXPECT_EQ(b.substr(0, b.find('x')), std::to_string(i));
        }
        seen++;
      }
      o = r.next_begin_offset;
    }
    EXPECT_EQ(seen, q == 0 ? 1501 : 1500);
  }
  EXPECT_GT(c.store->stats().get_misses, 0u);
  EXPECT_LE(c.store->stats().memory_bytes, c.store->options().memory_bytes + (3u << 20));
  EXPECT_EQ(bodies_of(first), (std::vector<std::string>{"first"}));
}
TEST(Read, OldMessages) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    co_await write_much(c);
    co_await read_all(c);
  });
  m.run(read_all);
  EXPECT_GE(m.stats.log_read_bytes, 12u << 20);
}

Task<void> single_records(Ctx& c) {
  auto a = co_await c.put("T", 0, "one");
  std::string big(1u << 19, 'b');  // crosses chunks when it starts late in one
  auto b = co_await c.put("T", 0, big);
  auto x = co_await c.store->record_at(b.physical_offset);
  CO_ASSERT(x.has_value());
  auto v = proto::parse_record(x->bytes(), proto::CrcCheck::verify);
  CO_ASSERT(v.has_value());
  EXPECT_EQ(v->body.size(), big.size());
  for (int64_t bad : {int64_t{-1}, a.physical_offset + 1, b.physical_offset - 1,
                      c.store->max_physical_offset(), int64_t{1} << 40}) {
    auto none = co_await c.store->record_at(bad);
    CO_ASSERT(!none.has_value());
    EXPECT_EQ(none.error().code, Errc::not_found) << bad;
  }
}
TEST(Read, SingleRecords) {
  Machine m;
  m.options.commit_log_file_bytes = (1u << 20) + (1u << 16);  // chunks of 64 KiB
  m.run(single_records);
}

// Store times t1,t1,t1,t3,t3; the table of remoting.md 12.4.
struct Times {
  static inline int64_t t1 = 0, t3 = 0;
};
Task<void> search_table(Ctx& c) {
  using enum MessageStore::Boundary;
  int64_t t1 = Times::t1, t3 = Times::t3, t2 = (t1 + t3) / 2;
  struct Case {
    MessageStore::Boundary b;
    int64_t when, want;
  };
  for (auto [b, when, want] : {Case{LOWER, t1, 0},
                               {UPPER, t1, 2},
                               {LOWER, t2, 3},
                               {UPPER, t2, 2},
                               {LOWER, t3, 3},
                               {UPPER, t3, 4},
                               {LOWER, t1 - 10, 0},
                               {UPPER, t1 - 10, 0},
                               {LOWER, t3 + 1, 5},
                               {UPPER, t3 + 1, 4},
                               {LOWER, 0, 0}}) {
    auto got = co_await c.store->search_offset("S", 0, when, b);
    EXPECT_EQ(got, want) << (b == LOWER ? "lower t1+" : "upper t1+") << when - t1;
  }
  auto empty = co_await c.store->search_offset("S", 1, t1, UPPER);
  EXPECT_EQ(empty, 0);
  auto first = co_await c.store->earliest_store_time("S", 0);
  EXPECT_EQ(first, t1);
  auto last = co_await c.store->store_time("S", 0, 4);
  EXPECT_EQ(last, t3);
  auto none = co_await c.store->store_time("S", 0, 5);
  EXPECT_EQ(none, -1);
  auto unknown = co_await c.store->earliest_store_time("none", 0);
  EXPECT_EQ(unknown, -1);
}
TEST(Read, Times) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    std::vector<MessageIn> three(3, Ctx::message("S", 0, "a")), two(2, Ctx::message("S", 0, "b"));
    auto a = co_await c.store->put_batch(three);
    co_await sleep_for(100 * ns_per_ms);
    auto b = co_await c.store->put_batch(two);
    Times::t1 = a.store_timestamp_ms;
    Times::t3 = b.store_timestamp_ms;
    EXPECT_LT(Times::t1 + 50, Times::t3);
    co_await search_table(c);
  });
  m.run(search_table);
}

// Several queue files, runs of equal times across their borders: against counting one by one.
Task<void> search_everywhere(Ctx& c) {
  using enum MessageStore::Boundary;
  const int64_t max = c.store->max_offset("S", 2);
  CO_ASSERT(max > 60);
  std::vector<int64_t> times;
  for (int64_t i = 0; i < max; i++) {
    int64_t t = co_await c.store->store_time("S", 2, i);
    times.push_back(t);
  }
  for (int64_t t = times.front() - 2; t <= times.back() + 2; t++) {
    auto lower = co_await c.store->search_offset("S", 2, t, LOWER);
    EXPECT_EQ(lower, std::lower_bound(times.begin(), times.end(), t) - times.begin());
    auto upper = co_await c.store->search_offset("S", 2, t, UPPER);
    EXPECT_EQ(upper,
              std::max<int64_t>(std::upper_bound(times.begin(), times.end(), t) - times.begin() - 1, 0));
  }
}
TEST(Read, TimesInSeveralFiles) {
  Machine m;
  m.options.consume_queue_file_units = 8;
  m.run([](Ctx& c) -> Task<void> {
    for (size_t n = 1; n <= 12; n++) {
      std::vector<MessageIn> equal(n, Ctx::message("S", 2, "a"));
      co_await c.store->put_batch(equal);
      co_await sleep_for(static_cast<int64_t>(n % 4) * 3 * ns_per_ms);
    }
    co_await search_everywhere(c);
  });
  m.run(search_everywhere, End::power_lost);
  m.run(search_everywhere);
}

Task<void> follow_log(Ctx& c) {
  for (int i = 0; i < 300; i++) co_await c.put("T", 0, std::string(5000, 'x'));
  int64_t end = c.store->flushed_offset();
  std::string all, step(100'000, '\0');
  MutableBytes into(reinterpret_cast<std::byte*>(step.data()), step.size());
  for (;;) {
    auto n = co_await c.store->read_log(static_cast<int64_t>(all.size()), into);
    CO_ASSERT(n.has_value());
    if (*n == 0) break;
    all.append(step.data(), *n);
  }
  EXPECT_EQ(static_cast<int64_t>(all.size()), end);
  uint64_t records = 0;
  for (size_t at = 0; at < all.size();) {
    auto front = proto::record_front(as_bytes(all).subspan(at));
    CO_ASSERT(front.has_value());
    if (front->is_message()) records++;
    CO_ASSERT(front->size > 0);
    at += front->size;
  }
  EXPECT_EQ(records, 300u);
}
TEST(Read, TheLogItself) {
  Machine m;
  m.run(follow_log);
}

// A unit that a start does not look at, in the midst of a file: it is passed over, and nobody waits for it.
TEST(Read, AUnitThatCannotBeIsPassedOver) {
  Machine m;
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 1500; i++) co_await c.put("T", 0, "m" + std::to_string(i));
  });
  m.damage("consumequeue/T/0/00000000000000000000", 20 * 700, std::string(20, '\x3a'));
  m.run([](Ctx& c) -> Task<void> {
    auto r = co_await c.store->get("T", 0, 700, 32, nullptr);
    EXPECT_EQ(r.next_begin_offset, 701 + r.message_count);
    r = co_await c.store->get("T", 0, 701, 1, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"m701"}));
  });
  EXPECT_FALSE(m.recovery.queues_rebuilt);
}

class DamageHeard : public FailureListener {
 public:
  void on_store_failed(const Error& e) override { ADD_FAILURE() << to_string(e); }
  void on_queue_damaged(std::string_view topic, int32_t queue, int64_t offset) override {
    heard.push_back(std::string(topic) + "-" + std::to_string(queue) + "@" + std::to_string(offset));
  }
  std::vector<std::string> heard;
};

// That is told, once, and the next start makes the queues anew, after a stop and after a kill.
TEST(Read, AUnitThatCannotBeIsToldAndMadeAgain) {
  for (End end : {End::stop, End::kill}) {
    Machine m;
    m.run([](Ctx& c) -> Task<void> {
      for (int i = 0; i < 1500; i++) co_await c.put("T", 0, "m" + std::to_string(i));
    });
    m.damage("consumequeue/T/0/00000000000000000000", 20 * 700, std::string(20, '\x3a'));
    m.run(
        [](Ctx& c) -> Task<void> {
          DamageHeard listener;
          c.store->set_failure_listener(&listener);
          for (int64_t at : {600, 700, 701, 700}) co_await c.store->get("T", 0, at, 1, nullptr);
          EXPECT_EQ(listener.heard, (std::vector<std::string>{"T-0@700"}));
          co_await sleep_for(ns_per_s);
          c.store->set_failure_listener(nullptr);
        },
        end);
    m.run([](Ctx& c) -> Task<void> {
      auto r = co_await c.store->get("T", 0, 700, 1, nullptr);
      EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"m700"}));
    });
    EXPECT_TRUE(m.recovery.queues_rebuilt);
    m.run(nullptr);
    EXPECT_FALSE(m.recovery.queues_rebuilt);
  }
}

}  // namespace
}  // namespace rmq::store::test

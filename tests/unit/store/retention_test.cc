// Old files go when they should, with all that points into them, and nothing else does.
#include <map>

#include "machine.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr int64_t minute_ns = 60 * ns_per_s, hour_ns = 60 * minute_ns;
constexpr int64_t hour_ms = 3'600'000;
constexpr uint32_t every_hour = 0xffffff;
constexpr uint64_t log_file = 8192;
constexpr int per_file = 8;  // messages in a file of the log

struct Told : FailureListener {
  void on_store_failed(const Error& e) override { failed = true; }
  void on_index_damaged(const char* reason) override { damaged = reason; }
  void on_file_deleted(const DeletedFile& f) override {
    std::string name(f.path);
    deleted.push_back(name);
    reasons[f.reason]++;
    bytes += f.bytes;
    if (name.find("/commitlog/") != std::string::npos) log_ages_ms.push_back(f.age_ms);
  }
  void on_delete_failed(std::string_view path, const Error& e) override { failures++; }
  void on_delete_held(int64_t clock_jump_ms) override { jumps_ms.push_back(clock_jump_ms); }
  bool failed = false;
  std::string damaged;
  std::vector<std::string> deleted;
  std::map<DeleteReason, int> reasons;
  std::vector<int64_t> log_ages_ms, jumps_ms;
  uint64_t bytes = 0;
  int failures = 0;
};
Told told;

class Small : public Machine {
 public:
  Small() {
    options.commit_log_file_bytes = log_file;
    options.consume_queue_file_units = 10;
    options.index_entries = 20;
    options.index_slots = 16;
    options.checkpoint_interval_ms = 1000;
    options.retention.delete_hours = every_hour;
    options.retention.file_reserved_ms = hour_ms;
    told = {};
  }
  std::vector<std::string> files(const std::string& dir) const {
    std::vector<std::string> out;
    for (const std::string& p : image.files())
      if (p.starts_with("/store/" + dir)) out.push_back(p.substr(7));
    return out;
  }
};

// `count` messages, one each `pause_ns`, into two queues.
Task<void> put_some(Ctx& c, int from, int count, int64_t pause_ns) {
  for (int i = from; i < from + count; i++) {
    std::string properties = "UNIQ_KEY\x01u" + std::to_string(i) + "\x02";
    auto r = co_await c.put("T", i % 2, std::to_string(i) + std::string(900, ' '), properties);
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    co_await sleep_for(pause_ns);
  }
}

Task<std::vector<int>> numbers(Ctx& c, int queue) {
  std::vector<int> out;
  int64_t offset = c.store->min_offset("T", queue);
  for (;;) {
    auto r = co_await c.store->get("T", queue, offset, 32, nullptr);
    if (r.status != GetMessageStatus::FOUND) break;
    for (const std::string& b : bodies_of(r)) out.push_back(std::stoi(b));
    offset = r.next_begin_offset;
  }
  co_return out;
}

// What is there is the end of the sequence, from `*first` on.
Task<void> check_rest(Ctx& c, int count, int* first) {
  *first = count;
  for (int queue : {0, 1}) {
    std::vector<int> n = co_await numbers(c, queue);
    if (n.empty()) continue;
    *first = std::min(*first, n.front());
    for (size_t i = 0; i < n.size(); i++) EXPECT_EQ(n[i], n[0] + static_cast<int>(i) * 2);
    EXPECT_EQ(n.back() / 2, (count - 1 - (queue + count + 1) % 2) / 2);
    EXPECT_EQ(c.store->min_offset("T", queue), n[0] / 2);
  }
}

Task<void> ten_hours(Ctx& c) {
  c.store->set_failure_listener(&told);
  co_await put_some(c, 0, 120, 5 * minute_ns);
  int first = 0;
  co_await check_rest(c, 120, &first);
  // A file goes when its newest message is an hour old: one file's time later at most.
  EXPECT_LE(first, 120 - 12);
  EXPECT_GE(first, 120 - 12 - 2 * per_file);
  auto r = co_await c.store->get("T", 0, 3, 32, nullptr);
  EXPECT_EQ(r.status, GetMessageStatus::OFFSET_TOO_SMALL);
  EXPECT_EQ(r.next_begin_offset, c.store->min_offset("T", 0));
  auto gone = co_await c.store->record_at(0);
  EXPECT_FALSE(gone);
  auto found = co_await c.store->query_message("T", "u119", 10, 0, INT64_MAX);
  EXPECT_TRUE(found && found->records.size() == 1);
  found = co_await c.store->query_message("T", "u5", 10, 0, INT64_MAX);
  EXPECT_TRUE(found && found->records.empty());
  c.store->set_failure_listener(nullptr);
}

TEST(Retention, OldFilesGoWithAllThatPointsIntoThem) {
  Small m;
  m.run(ten_hours);
  std::vector<std::string> log = m.files("commitlog/");
  EXPECT_LE(log.size(), 5u);
  EXPECT_EQ(told.reasons[DeleteReason::delete_when], static_cast<int>(told.log_ages_ms.size()));
  EXPECT_GE(told.log_ages_ms.size(), 10u);
  for (int64_t age : told.log_ages_ms) EXPECT_GE(age, hour_ms);
  EXPECT_EQ(m.stats.log_files_deleted, told.log_ages_ms.size());
  EXPECT_LE(m.files("consumequeue/T/0/").size(), 2u);
  EXPECT_GE(m.stats.queue_files_deleted, 6u);
  EXPECT_LE(m.files("index/").size(), 3u);
  EXPECT_GE(m.stats.index_files_deleted, 3u);
  EXPECT_EQ(told.failures, 0);
  EXPECT_TRUE(told.jumps_ms.empty());
  for (End end : {End::kill, End::power_lost, End::stop}) {
    m.run(
        [](Ctx& c) -> Task<void> {
          c.store->set_failure_listener(&told);
          int first = 0;
          co_await check_rest(c, 120, &first);
          EXPECT_GT(first, 80);
          c.store->set_failure_listener(nullptr);
        },
        end);
    EXPECT_EQ(m.files("commitlog/"), log);
    EXPECT_FALSE(m.recovery.queues_rebuilt);
  }
  EXPECT_EQ(told.damaged, "");
}

TEST(Retention, TheFileInUseStays) {
  Small m;
  m.options.retention.file_reserved_ms = 0;
  m.run([](Ctx& c) -> Task<void> {
    co_await put_some(c, 0, 3, minute_ns);
    c.store->delete_expired();
    co_await sleep_for(hour_ns);
    EXPECT_EQ(c.store->min_physical_offset(), 0);
    std::vector<int> n = co_await numbers(c, 0);
    EXPECT_EQ(n.size(), 2u);
  });
}

// A recovery begins at the last checkpoint: what it needs stays.
TEST(Retention, WhatARecoveryNeedsStays) {
  Small m;
  m.options.retention.file_reserved_ms = 0;
  m.options.checkpoint_interval_ms = 100 * 3'600'000;
  m.run(
      [](Ctx& c) -> Task<void> {
        co_await put_some(c, 0, 50, minute_ns);
        EXPECT_EQ(c.store->min_physical_offset(), 0);
      },
      End::power_lost);
  m.run([](Ctx& c) -> Task<void> {
    co_await sleep_for(hour_ns);
    EXPECT_GT(c.store->min_physical_offset(), 0) << "the start has written a checkpoint";
  });
}

TEST(Retention, OnlyInTheHoursOfDeleteWhenOrWhenAsked) {
  Small m;
  m.options.retention.delete_hours = 0;
  m.run([](Ctx& c) -> Task<void> {
    c.store->set_failure_listener(&told);
    co_await put_some(c, 0, 40, minute_ns);
    co_await sleep_for(3 * hour_ns);
    EXPECT_EQ(c.store->min_physical_offset(), 0);
    c.store->delete_expired();
    co_await sleep_for(minute_ns);
    EXPECT_EQ(c.store->min_physical_offset(), static_cast<int64_t>(4 * log_file));
    EXPECT_EQ(told.reasons[DeleteReason::manual], 4);
    // 20 rounds, then it is over.
    co_await sleep_for(hour_ns);
    co_await put_some(c, 40, 40, minute_ns);
    co_await sleep_for(3 * hour_ns);
    EXPECT_EQ(c.store->min_physical_offset(), static_cast<int64_t>(4 * log_file));
    RetentionOptions rules = c.store->options().retention;
    rules.delete_hours = every_hour;
    c.store->set_retention(rules);
    co_await sleep_for(minute_ns);
    EXPECT_EQ(c.store->min_physical_offset(), static_cast<int64_t>(9 * log_file));
    c.store->set_failure_listener(nullptr);
  });
}

TEST(Retention, AFullDisk) {
  Small m;
  m.options.retention.delete_hours = 0;
  m.options.index = false;
  m.options.retention.warning_percent = 100;
  m.plan.capacity_bytes = 40 * log_file;
  m.run([](Ctx& c) -> Task<void> {
    c.store->set_failure_listener(&told);
    co_await put_some(c, 0, 30 * per_file, 100 * ns_per_ms);  // above 75 %, all young
    EXPECT_EQ(c.store->min_physical_offset(), 0);
    co_await sleep_for(2 * hour_ns);
    EXPECT_GT(told.reasons[DeleteReason::disk_used], 0);
    EXPECT_EQ(told.reasons[DeleteReason::disk_forcibly], 0);
    auto space = co_await c.disk.space("/store");
    CO_ASSERT(space.has_value());
    EXPECT_LT(space->total_bytes - space->free_bytes, 31 * log_file) << "down to 75 %, ten files at a time";
    EXPECT_GT(space->total_bytes - space->free_bytes, 20 * log_file);
    // Faster than it expires: above 85 % the oldest go, whatever their age.
    for (int i = 0; i < 60; i++) {
      co_await put_some(c, 240 + i * per_file, per_file, 100 * ns_per_ms);
      co_await sleep_for(10 * ns_per_s);
      space = co_await c.disk.space("/store");
      EXPECT_LT(space->total_bytes - space->free_bytes, 37 * log_file);
    }
    EXPECT_GT(told.reasons[DeleteReason::disk_forcibly], 0);
    int first = 0;
    co_await check_rest(c, 240 + 60 * per_file, &first);
    EXPECT_LT(first, 240 + 60 * per_file - 25 * per_file) << "no more than was needed";
    c.store->set_failure_listener(nullptr);
  });
}

TEST(Retention, FullDiskWithoutForce) {
  Small m;
  m.options.retention.delete_hours = 0;
  m.options.retention.clean_forcibly = false;
  m.options.retention.warning_percent = 100;
  m.options.index = false;
  m.plan.capacity_bytes = 40 * log_file;
  m.run([](Ctx& c) -> Task<void> {
    co_await put_some(c, 0, 36 * per_file, 100 * ns_per_ms);
    co_await sleep_for(30 * minute_ns);
    EXPECT_EQ(c.store->min_physical_offset(), 0);
  });
}

// A wall clock that jumps ahead makes nothing old.
TEST(Retention, AClockThatJumpsForward) {
  Small m;
  m.run([](Ctx& c) -> Task<void> {
    c.store->set_failure_listener(&told);
    co_await put_some(c, 0, 40, ns_per_s);
    c.loop.sim_clock().step_wall(365 * 24 * hour_ms);
    co_await put_some(c, 40, 40, ns_per_s);
    co_await sleep_for(50 * minute_ns);
    EXPECT_EQ(c.store->min_physical_offset(), 0);
    EXPECT_TRUE(told.deleted.empty());
    CO_ASSERT(told.jumps_ms.size() == 1);
    EXPECT_NEAR(static_cast<double>(told.jumps_ms[0]), 365.0 * 24 * hour_ms, 2);
    co_await sleep_for(15 * minute_ns);  // now they are an hour old
    EXPECT_GE(c.store->min_physical_offset(), static_cast<int64_t>(8 * log_file));
    c.store->set_failure_listener(nullptr);
  });
}

// One that was ahead and is set right leaves messages of the future: they grow old all the same.
TEST(Retention, AClockThatWasAhead) {
  Small m;
  m.run([](Ctx& c) -> Task<void> {
    co_await put_some(c, 0, 40, ns_per_s);
    c.loop.sim_clock().step_wall(-365 * 24 * hour_ms);
    co_await put_some(c, 40, 40, ns_per_s);
    co_await sleep_for(50 * minute_ns);
    EXPECT_EQ(c.store->min_physical_offset(), 0);
    co_await sleep_for(15 * minute_ns);
    EXPECT_GE(c.store->min_physical_offset(), static_cast<int64_t>(8 * log_file));
  });
}

Task<void> read_first(Ctx& c, GetMessageResult& r) {
  r = co_await c.store->get("T", 0, 0, 1, nullptr);
}

// A read that is under way when its file goes ends well, and what was read stays.
TEST(Retention, ReadersKeepWhatTheyRead) {
  Small m;
  m.run([](Ctx& c) -> Task<void> { co_await put_some(c, 0, 40, ns_per_s); });
  m.options.memory_bytes = 0;
  m.options.retention.first_clean_ms = 1000;
  m.options.retention.file_reserved_ms = 0;
  m.run([](Ctx& c) -> Task<void> {
    GetMessageResult kept = co_await c.store->get("T", 1, 0, 1, nullptr);
    co_await sleep_for(900 * ns_per_ms);
    c.disk.plan().slow_per_million = 1'000'000;
    c.disk.plan().slow_ns = 2 * ns_per_s;
    GetMessageResult slow;
    Scope reading;
    reading.spawn(read_first(c, slow));
    co_await sleep_for(500 * ns_per_ms);
    c.disk.plan().slow_per_million = 0;
    co_await reading.join();
    EXPECT_EQ(bodies_of(slow).size(), 1u);
    co_await sleep_for(minute_ns);
    EXPECT_GT(c.store->min_physical_offset(), 0);
    EXPECT_EQ(bodies_of(kept).size(), 1u);
  });
}

TEST(Retention, AFailedRemovalIsTriedAgain) {
  for (sim::OpKind op : {sim::OpKind::remove, sim::OpKind::sync_dir}) {
    Small m;
    m.options.index = false;
    m.run([](Ctx& c) -> Task<void> { co_await put_some(c, 0, 60, ns_per_s); });
    m.plan.faults.push_back(
        {.kind = sim::FaultKind::io_error, .op = op, .path_part = "/commitlog", .nth = 3, .times = 2});
    m.run(
        [](Ctx& c) -> Task<void> {
          c.store->set_failure_listener(&told);
          co_await sleep_for(2 * hour_ns);
          EXPECT_TRUE(c.store->writable());
          EXPECT_FALSE(told.failed);
          EXPECT_GT(told.failures, 0);
          c.store->set_failure_listener(nullptr);
        },
        End::power_lost);
    m.plan.faults.clear();
    m.run([](Ctx& c) -> Task<void> {
      co_await sleep_for(2 * hour_ns);
      int first = 0;
      co_await check_rest(c, 60, &first);
      EXPECT_EQ(c.store->min_physical_offset(), static_cast<int64_t>(7 * log_file));
    });
    EXPECT_EQ(m.files("commitlog/").size(), 1u);
  }
}

// A queue all of whose messages have gone ends where it ended, also when a crash makes all queues anew.
TEST(Retention, ExpiredQueuesKeepTheirEnd) {
  Small m;
  m.run(
      [](Ctx& c) -> Task<void> {
        for (int i = 0; i < 5; i++) co_await c.put("Old", 3, "old");
        co_await put_some(c, 0, 60, 5 * minute_ns);
        EXPECT_EQ(c.store->min_offset("Old", 3), 5);
        EXPECT_EQ(c.store->max_offset("Old", 3), 5);
        auto r = co_await c.store->get("Old", 3, 2, 32, nullptr);
        EXPECT_EQ(r.status, GetMessageStatus::OFFSET_TOO_SMALL);
        EXPECT_EQ(r.next_begin_offset, 5);
        co_return;
      },
      End::power_lost);
  m.remove_files("consumequeue/T/1/");  // the checkpoint's sums are wrong now
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("Old", 3), 5);
    auto expired = c.store->expired_queues();
    CO_ASSERT(expired.size() == 1);
    EXPECT_EQ(expired[0].topic, "Old");
    auto r = co_await c.put("Old", 3, "new");
    EXPECT_EQ(r.queue_offset, 5);
    auto got = co_await c.store->get("Old", 3, 5, 32, nullptr);
    EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"new"}));
    EXPECT_TRUE(c.store->expired_queues().empty());
  });
  EXPECT_TRUE(m.recovery.queues_rebuilt);
}

TEST(Retention, DroppingExpiredQueues) {
  Small m;
  static int told_gone = 0;
  told_gone = 0;
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 5; i++) co_await c.put("Old", 3, "old");
    // Named: GCC 12 destroys such arguments twice in a statement with co_await.
    const MessageStore::QueueName old_queue{"Old", 3};
    const std::function<void()> gone = [] { told_gone++; };
    bool dropped = co_await c.store->drop_expired_queue(old_queue, gone);
    EXPECT_FALSE(dropped) << "it has messages";
    co_await put_some(c, 0, 60, 5 * minute_ns);
    dropped = co_await c.store->drop_expired_queue(old_queue, gone);
    EXPECT_TRUE(dropped);
    EXPECT_EQ(told_gone, 1);
    EXPECT_EQ(c.store->max_offset("Old", 3), 0);
    dropped = co_await c.store->drop_expired_queue(old_queue, nullptr);
    EXPECT_FALSE(dropped) << "there is none";
    auto r = co_await c.put("Old", 3, "new");
    EXPECT_EQ(r.queue_offset, 0);
  });
  EXPECT_EQ(m.files("consumequeue/Old/").size(), 1u);
  m.run([](Ctx& c) -> Task<void> {
    auto got = co_await c.store->get("Old", 3, 0, 32, nullptr);
    EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"new"}));
  });
  EXPECT_TRUE(m.recovery.clean);
}

}  // namespace
}  // namespace rmq::store::test

// A disk without room: producers are refused and told why, all else goes on, and it ends by itself.
#include "store/disk_watch.h"
#include "machine.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr uint64_t log_file = 64u << 10;

struct Told : FailureListener {
  void on_store_failed(const Error& e) override { failed = true; }
  void on_disk_full(const DiskShortage& s, std::string_view reason) override {
    full++;
    last = s;
    text = reason;
  }
  void on_disk_writable(std::string_view mount_point, uint64_t free_bytes) override { writable++; }
  bool failed = false;
  int full = 0, writable = 0;
  DiskShortage last;
  std::string text;
};
Told told;

class Small : public Machine {
 public:
  Small() {
    options.commit_log_file_bytes = log_file;
    options.consume_queue_file_units = 100;
    options.index = false;
    options.checkpoint_interval_ms = 1000;
    options.retention.warning_percent = 100;
    told = {};
  }
};

void hear(Ctx& c) {
  c.store->set_failure_listener(&told);
}

Task<PutMessageResult> put_urgent(Ctx& c, int queue, std::string body) {
  MessageIn m = Ctx::message("Back", queue, body);
  m.may_use_reserve = true;
  co_return co_await c.store->put(m);
}

// A file of somebody else; 0: it goes.
Task<void> take_room(Ctx& c, uint64_t bytes) {
  if (bytes == 0) {
    auto removed = co_await c.disk.remove("/ballast");
    EXPECT_TRUE(removed);
    co_return;
  }
  auto f = co_await c.disk.open("/ballast", {.write = true, .create = true});
  CO_ASSERT(f.has_value());
  auto r = co_await (*f)->truncate(bytes);
  EXPECT_TRUE(r);
  co_await (*f)->close();
}

Task<uint64_t> free_bytes(Ctx& c) {
  auto s = co_await c.disk.space("/store");
  co_return s ? s->free_bytes : 0;
}

// Sends, one batch and one alone, are refused; reads are not.
Task<void> only_sends_are_refused(Ctx& c, int64_t there) {
  auto r = co_await c.put("T", 0, "refused");
  EXPECT_EQ(r.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
  MessageIn m = Ctx::message("T", 0, "refused");
  r = co_await c.store->put_batch(std::span(&m, 1));
  EXPECT_EQ(r.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
  auto at_once = c.store->try_put(m);
  EXPECT_TRUE(at_once && at_once->status == PutMessageStatus::SERVICE_NOT_AVAILABLE);
  EXPECT_TRUE(c.store->writable()) << "it has not failed";
  EXPECT_TRUE(c.store->disk_full());
  EXPECT_EQ(c.store->max_offset("T", 0), there);
  auto got = co_await c.store->get("T", 0, 0, 32, nullptr);
  EXPECT_EQ(got.status, GetMessageStatus::FOUND);
}

TEST(DiskWatch, TheReserveInBytes) {
  Small m;
  m.plan.capacity_bytes = 10 << 20;
  m.options.retention.reserved_bytes = 2 << 20;
  m.run([](Ctx& c) -> Task<void> {
    hear(c);
    auto r = co_await c.put("T", 0, "first");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    uint64_t free = co_await free_bytes(c);
    co_await take_room(c, free - (2u << 20) + 4096);
    co_await sleep_for(1500 * ns_per_ms);
    co_await only_sends_are_refused(c, 1);
    EXPECT_EQ(told.full, 1);
    EXPECT_EQ(told.last.mount_point, "/");
    EXPECT_EQ(told.last.limit_bytes, 2u << 20);
    EXPECT_LT(told.last.free_bytes, 2u << 20);
    EXPECT_GT(told.last.free_bytes, 2'000'000u);
    EXPECT_EQ(told.text, std::string("the file system at / has ") + std::to_string(told.last.free_bytes) +
                             " bytes free, the limit is 2097152 bytes (diskReservedBytes)");
    EXPECT_EQ(c.store->not_writable_reason(), told.text);
    r = co_await put_urgent(c, 0, "what a consumer gives back");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    co_await take_room(c, 0);
    co_await sleep_for(1500 * ns_per_ms);
    EXPECT_EQ(told.writable, 1);
    EXPECT_STREQ(c.store->not_writable_reason(), "");
    r = co_await c.put("T", 0, "again");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(r.queue_offset, 1);
    // The rules may change while it runs.
    RetentionOptions rules = c.store->options().retention;
    rules.reserved_bytes = 100 << 20;
    c.store->set_retention(rules);
    co_await sleep_for(1500 * ns_per_ms);
    co_await only_sends_are_refused(c, 2);
    c.store->set_failure_listener(nullptr);
  });
}

TEST(DiskWatch, TheWarningLevel) {
  Small m;
  m.plan.capacity_bytes = 10 << 20;
  m.options.retention.warning_percent = 90;
  m.run([](Ctx& c) -> Task<void> {
    hear(c);
    co_await c.put("T", 0, "first");
    uint64_t free = co_await free_bytes(c);
    co_await take_room(c, free - (1u << 20) - 8192);  // 90 % are no more than 90 %
    co_await sleep_for(1500 * ns_per_ms);
    auto r = co_await c.put("T", 0, "second");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    co_await take_room(c, free - (1u << 20) + 8192);
    co_await sleep_for(1500 * ns_per_ms);
    co_await only_sends_are_refused(c, 2);
    EXPECT_NE(told.text.find("diskSpaceWarningLevelRatio"), std::string::npos) << told.text;
    c.store->set_failure_listener(nullptr);
  });
}

// The next file of the log is not made from the reserve: sends go on until the last file is full. What may
// use the reserve gets a file.
TEST(DiskWatch, TheNextFileLeavesTheReserve) {
  Small m;
  m.plan.capacity_bytes = 2 << 20;
  m.options.retention.reserved_bytes = 256 << 10;
  m.run([](Ctx& c) -> Task<void> {
    hear(c);
    PutMessageResult r;
    int64_t count = 0;
    for (; count < 10'000; count++) {
      r = co_await c.put("T", 0, std::string(3000, 'x'));
      if (r.status != PutMessageStatus::PUT_OK) break;
    }
    EXPECT_EQ(r.status, PutMessageStatus::SERVICE_NOT_AVAILABLE);
    uint64_t free = co_await free_bytes(c);
    EXPECT_GE(free, 256u << 10);
    EXPECT_LT(free, (256u << 10) + log_file);
    EXPECT_NE(told.text.find("room for the next CommitLog file"), std::string::npos) << told.text;
    EXPECT_EQ(told.last.limit_bytes, (256u << 10) + log_file);
    co_await only_sends_are_refused(c, count);
    for (int i = 0; i < 40; i++) {
      r = co_await put_urgent(c, 0, std::string(3000, 'y'));
      EXPECT_EQ(r.status, PutMessageStatus::PUT_OK) << i;
    }
    co_await only_sends_are_refused(c, count);
    RetentionOptions rules = c.store->options().retention;
    rules.reserved_bytes = 0;
    c.store->set_retention(rules);
    co_await sleep_for(3 * ns_per_s);
    r = co_await c.put("T", 0, std::string(3000, 'x'));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_GE(told.writable, 1);
    EXPECT_FALSE(told.failed);
    c.store->set_failure_listener(nullptr);
  });
}

// ConsumeQueue files that cannot grow: units wait in memory, a checkpoint waits, and nothing is lost, also
// when the machine goes down and comes up on the full disk.
TEST(DiskWatch, ConsumeQueuesThatCannotGrow) {
  Small m;
  m.run(
      [](Ctx& c) -> Task<void> {
        hear(c);
        co_await c.put("T", 0, "first");
        co_await sleep_for(3 * ns_per_s);
        c.disk.plan().faults.push_back(
            {sim::FaultKind::no_space, sim::OpKind::write, "/consumequeue/", 1, 1'000'000});
        c.disk.plan().faults.push_back(
            {sim::FaultKind::no_space, sim::OpKind::open, "/consumequeue/Back", 1, 1'000'000});
        auto r = co_await c.put("T", 0, "second");
        EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        co_await sleep_for(5 * ns_per_s);
        EXPECT_FALSE(told.failed);
        EXPECT_EQ(told.full, 1);
        EXPECT_NE(told.text.find("ConsumeQueue files cannot grow"), std::string::npos) << told.text;
        co_await only_sends_are_refused(c, 2);
        for (int i = 0; i < 5; i++) {
          r = co_await put_urgent(c, i, "back " + std::to_string(i));
          EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
        }
        co_await sleep_for(5 * ns_per_s);
        auto got = co_await c.store->get("Back", 3, 0, 32, nullptr);
        EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"back 3"}));
        c.store->set_failure_listener(nullptr);
      },
      End::power_lost);
  m.plan.faults = {{sim::FaultKind::no_space, sim::OpKind::write, "/consumequeue/", 1, 1'000'000},
                   {sim::FaultKind::no_space, sim::OpKind::write, "/abort", 1, 1'000'000}};
  m.run([](Ctx& c) -> Task<void> {
    hear(c);
    co_await sleep_for(5 * ns_per_s);
    EXPECT_FALSE(told.failed);
    for (int i = 0; i < 5; i++) {
      auto got = co_await c.store->get("Back", i, 0, 32, nullptr);
      EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"back " + std::to_string(i)}));
    }
    co_await only_sends_are_refused(c, 2);
    c.disk.plan().faults.clear();
    co_await sleep_for(5 * ns_per_s);
    auto r = co_await c.put("T", 0, "third");
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(r.queue_offset, 2);
    EXPECT_EQ(told.writable, 1);
    c.store->set_failure_listener(nullptr);
  });
  m.plan.faults.clear();
  m.run([](Ctx& c) -> Task<void> {
    auto got = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(bodies_of(got), (std::vector<std::string>{"first", "second", "third"}));
    EXPECT_EQ(c.store->max_offset("Back", 4), 1);
  });
  EXPECT_TRUE(m.recovery.clean);
}

}  // namespace
}  // namespace rmq::store::test

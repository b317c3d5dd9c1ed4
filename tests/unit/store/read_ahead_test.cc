// Consumers that lag behind: how much they read of the disk for what they get, what they leave to others.
#include <algorithm>
#include <map>
#include <utility>

#include "machine.h"
#include "uring/sync.h"

namespace rmq::store::test {
namespace {

constexpr size_t body_bytes = 1000;

std::string body(int64_t i) {
  std::string s = std::to_string(i);
  return s + std::string(body_bytes - s.size(), 'x');
}

// `messages` in queue 0 of `topic`, each followed by `others` in other queues of another topic.
Task<void> fill(Ctx& c, std::string topic, int64_t messages, int others) {
  std::vector<std::string> bodies;
  std::vector<MessageIn> batch;
  for (int64_t i = 0; i < messages; i++) {
    bodies.clear();
    batch.clear();
    bodies.push_back(body(i));
    batch.push_back(Ctx::message(topic, 0, bodies.back()));
    for (int k = 0; k < others; k++) batch.push_back(Ctx::message("Others", k % 4, bodies.back()));
    auto r = co_await c.store->put_batch(batch);
    CO_ASSERT(r.status == PutMessageStatus::PUT_OK);
  }
}

// Reads queue 0 of `topic` from `from` to `to` as a consumer does that works a moment on what it gets, and
// checks every body.
Task<void> consume(Ctx& c, std::string topic, int64_t from, int64_t to, int64_t pause_ns = ns_per_ms) {
  for (int64_t o = from; o < to;) {
    auto r = co_await c.store->get(topic, 0, o, 32, nullptr);
    CO_ASSERT(r.status == GetMessageStatus::FOUND);
    int64_t i = o;
    for (const std::string& b : bodies_of(r)) EXPECT_EQ(b, body(i++));
    CO_ASSERT(r.next_begin_offset == i);
    o = i;
    if (pause_ns != 0) co_await sleep_for(pause_ns);
  }
}

Machine machine() {
  Machine m;
  m.options.in_memory_distance_bytes = 64u << 10;  // eight messages a pull, as for what is on disk
  return m;
}

TEST(ReadAhead, ABacklogInLongReadsAheadOfItsReader) {
  Machine m = machine();
  m.run([](Ctx& c) -> Task<void> {
    co_await fill(c, "T", 12'000, 0);
    const StoreStats before = c.store->stats();
    co_await consume(c, "T", 0, 8'000);
    const StoreStats& after = c.store->stats();
    uint64_t reads = after.log_reads - before.log_reads, bytes = after.log_read_bytes - before.log_read_bytes;
    EXPECT_LT(reads, 40u) << "some short ones, then 512 KiB each";
    EXPECT_LT(bytes, 8'000u * 1200 + (2u << 20)) << "everything once, and what is ahead";
    EXPECT_LT(after.get_misses - before.get_misses, 6u) << "of 1,000 pulls: the others do not wait";
  });
}

TEST(ReadAhead, OnlyItsMessagesOfAQueueWithFew) {
  Machine m = machine();
  m.run([](Ctx& c) -> Task<void> {
    co_await fill(c, "T", 64, 249);  // one in 250 KiB
    const StoreStats before = c.store->stats();
    co_await consume(c, "T", 0, 40);
    const StoreStats& after = c.store->stats();
    EXPECT_GE(after.log_reads - before.log_reads, 38u);
    EXPECT_LE(after.log_read_bytes - before.log_read_bytes, 64u * 8192);
  });
}

class OneTag final : public MessageFilter {
 public:
  bool matches_tags_code(int64_t c) const override { return c == 'a'; }
};

TEST(ReadAhead, OnlyWhatTheFilterWants) {
  Machine m = machine();
  m.run([](Ctx& c) -> Task<void> {
    for (int i = 0; i < 2000; i++) {
      std::string b(4000, 'x');
      auto r = co_await c.put("T", 0, b,
                              i % 100 == 0 ? "TAGS\x01"
                                             "a\x02"
                                           : "");
      CO_ASSERT(r.status == PutMessageStatus::PUT_OK);
    }
    const StoreStats before = c.store->stats();
    OneTag a;
    uint64_t got = 0;
    for (int64_t o = 0; o < 1000;) {
      auto r = co_await c.store->get("T", 0, o, 32, &a);
      CO_ASSERT(r.status == GetMessageStatus::FOUND);
      got += r.message_count;
      o = r.next_begin_offset;
    }
    EXPECT_GE(got, 10u);
    EXPECT_LE(c.store->stats().log_read_bytes - before.log_read_bytes, 20u * 8192);
  });
}

TEST(ReadAhead, ManyReadersShareTheMemory) {
  Machine m = machine();
  m.run([](Ctx& c) -> Task<void> {
    co_await fill(c, "T", 12'000, 0);
    const uint64_t before = c.store->stats().log_read_bytes;
    {
      Scope readers;
      for (int64_t i = 0; i < 200; i++) readers.spawn(consume(c, "T", i * 40, i * 40 + 160));
      while (readers.running() != 0) {
        EXPECT_LE(c.store->stats().memory_bytes, c.store->options().memory_bytes + (2u << 20));
        co_await sleep_for(ns_per_ms);
      }
      co_await readers.join();
    }
    // Each message is wanted four times, 38 MiB in all.
    EXPECT_LE(c.store->stats().log_read_bytes - before, 60u << 20);
  });
}

TEST(ReadAhead, TheTailStaysInMemory) {
  Machine m = machine();
  m.run([](Ctx& c) -> Task<void> {
    co_await fill(c, "T", 12'000, 0);
    co_await consume(c, "T", 0, 3'000);
    const uint64_t reads = c.store->stats().log_reads;
    co_await consume(c, "T", 11'000, 12'000);
    EXPECT_EQ(c.store->stats().log_reads, reads);
  });
}

TEST(ReadAhead, AcrossARestartAndFiles) {
  Machine m = machine();
  m.options.commit_log_file_bytes = 256u << 10;
  m.run([](Ctx& c) -> Task<void> { co_await fill(c, "T", 3'000, 1); });
  m.run([](Ctx& c) -> Task<void> { co_await consume(c, "T", 0, 3'000); });
  EXPECT_GT(m.stats.get_messages, 2'999u);
}

TEST(ReadAhead, ADeletedTopicEndsIt) {
  Machine m = machine();
  m.run([](Ctx& c) -> Task<void> {
    co_await fill(c, "T", 8'000, 0);
    Scope s;
    co_await consume(c, "T", 0, 160);
    s.spawn(c.store->delete_topic("T"));
    auto r = co_await c.store->get("T", 0, 160, 32, nullptr);
    EXPECT_EQ(r.status, GetMessageStatus::NO_MESSAGE_IN_QUEUE);
    co_await s.join();
  });
}

// A disk that counts how many reads of the log are under way, and lets them take a millisecond each.
class CountedFile final : public File {
 public:
  CountedFile(std::unique_ptr<File> f, uint32_t& now, uint32_t& most, uint32_t& count)
      : f_(std::move(f)), now_(now), most_(most), count_(count) {}
  Task<Result<size_t>> read(uint64_t offset, MutableBytes into) override {
    now_++;
    most_ = std::max(most_, now_);
    count_++;
    co_await sleep_for(ns_per_ms);
    auto r = co_await f_->read(offset, into);
    now_--;
    co_return r;
  }
  Task<Result<void>> write(uint64_t o, std::span<const iovec> v, Durability d) override {
    return f_->write(o, v, d);
  }
  Task<Result<void>> sync() override { return f_->sync(); }
  Task<Result<void>> allocate(uint64_t o, uint64_t n) override { return f_->allocate(o, n); }
  Task<Result<void>> truncate(uint64_t n) override { return f_->truncate(n); }
  Task<Result<uint64_t>> size() override { return f_->size(); }
  Task<Result<void>> lock() override { return f_->lock(); }
  Task<void> close() override { return f_->close(); }

 private:
  std::unique_ptr<File> f_;
  uint32_t &now_, &most_, &count_;
};

class CountedDisk final : public Disk {
 public:
  explicit CountedDisk(Disk& d) : d_(d) {}
  Task<Result<std::unique_ptr<File>>> open(std::string path, OpenHow how) override {
    bool log = path.find("/commitlog/") != std::string::npos;
    auto f = co_await d_.open(std::move(path), how);
    if (!f || !log) co_return f;
    std::unique_ptr<File> counted = std::make_unique<CountedFile>(std::move(*f), now, most, count);
    co_return counted;
  }
  Task<Result<void>> make_dirs(std::string p) override { return d_.make_dirs(std::move(p)); }
  Task<Result<std::vector<DirEntry>>> list(std::string p) override { return d_.list(std::move(p)); }
  Task<Result<void>> remove(std::string p) override { return d_.remove(std::move(p)); }
  Task<Result<void>> rename(std::string a, std::string b) override {
    return d_.rename(std::move(a), std::move(b));
  }
  Task<Result<void>> sync_dir(std::string p) override { return d_.sync_dir(std::move(p)); }
  Task<Result<DiskSpace>> space(std::string p) override { return d_.space(std::move(p)); }
  uint32_t now = 0, most = 0, count = 0;

 private:
  Disk& d_;
};

Task<void> produce(Ctx& c, const bool& end) {
  const std::string text = body(0);
  while (!end) {
    std::vector<MessageIn> batch(128, Ctx::message("Others", 0, text));
    auto r = co_await c.store->put_batch(batch);
    CO_ASSERT(r.status == PutMessageStatus::PUT_OK);
  }
}

// The part of the time in which one long read was under way, for a reader who never pauses.
Task<void> share_of_reads(SimLoop& loop, SimDisk& disk, StoreOptions options, bool producer, double& share) {
  CountedDisk counted(disk);
  auto opened = co_await MessageStore::open(counted, options, nullptr);
  CO_ASSERT(opened.has_value());
  Ctx c{loop, disk, opened->get(), {}};
  co_await fill(c, "T", 24'000, 0);
  Scope others;
  bool end = false;
  if (producer) others.spawn(produce(c, end));
  co_await consume(c, "T", 0, 500, 0);  // it is known as one who reads on
  counted.count = 0;
  const int64_t from_ns = loop.clock().mono_ns();
  co_await consume(c, "T", 500, 16'000, 0);
  const int64_t took_ns = loop.clock().mono_ns() - from_ns;
  share = static_cast<double>(counted.count * ns_per_ms) / static_cast<double>(took_ns);
  end = true;
  co_await others.join();
  co_await c.store->shutdown();
}

TEST(ReadAhead, RestsWhileMessagesComeIn) {
  double alone = 0, beside = 0;
  for (bool producer : {false, true}) {
    Machine m = machine();
    m.options.memory_bytes = 8u << 20;  // room for long reads while the tail goes on
    SimLoop loop(1);
    SimDisk disk(loop, {}, sim::empty_image());
    loop.run(share_of_reads(loop, disk, m.options, producer, producer ? beside : alone));
  }
  EXPECT_GT(alone, 0.7) << "nobody else wants the disk";
  EXPECT_LT(beside, 0.25) << "a tenth of the time, after a beginning";
}

Task<void> few_at_a_time(SimLoop& loop, SimDisk& disk, StoreOptions options) {
  CountedDisk counted(disk);
  auto opened = co_await MessageStore::open(counted, options, nullptr);
  CO_ASSERT(opened.has_value());
  Ctx c{loop, disk, opened->get(), {}};
  co_await fill(c, "T", 12'000, 0);
  counted.most = 0;
  {
    Scope readers;
    for (int64_t i = 0; i < 20; i++) readers.spawn(consume(c, "T", i * 400, i * 400 + 400));
    co_await readers.join();
  }
  EXPECT_GE(counted.most, 2u);
  EXPECT_LE(counted.most, 18u) << "two long ones, sixteen short ones";
  co_await c.store->shutdown();
}

TEST(ReadAhead, FewReadsAtATime) {
  Machine m = machine();
  SimLoop loop(1);
  SimDisk disk(loop, {}, sim::empty_image());
  loop.run(few_at_a_time(loop, disk, m.options));
}

}  // namespace
}  // namespace rmq::store::test

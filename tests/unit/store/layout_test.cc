// What the files look like, byte for byte, against bytes made by hand from RocketMQ's description.
#include "base/crc.h"
#include "machine.h"

namespace rmq::store::test {
namespace {

std::string be(uint64_t v, size_t n) {
  std::string s;
  while (n-- != 0) s += static_cast<char>(v >> (8 * n));
  return s;
}

struct Expected {
  std::string topic, body, properties;
  uint32_t queue_id = 0;
  uint64_t queue_offset = 0, physical_offset = 0, store_ms = 0;
  uint32_t sys_flag = 0;
};

// RocketMQ's message record, V1 or V2 by the topic's length; hosts as Ctx::message sets them.
std::string record_bytes(const Expected& e) {
  bool v2 = e.topic.size() > 127;
  std::string s = be(v2 ? 0xDAA320AB : 0xDAA320A7, 4);
  s += be(crc32(as_bytes(e.body)) & 0x7fffffff, 4) + be(e.queue_id, 4) + be(0, 4);
  s += be(e.queue_offset, 8) + be(e.physical_offset, 8) + be(e.sys_flag, 4);
  s += be(1'700'000'000'000, 8) + std::string("\x0a\x00\x00\x01", 4) + be(4000, 4);
  s += be(e.store_ms, 8) + std::string("\x7f\x00\x00\x01", 4) + be(10911, 4);
  s += be(0, 4) + be(0, 8) + be(e.body.size(), 4) + e.body;
  s += be(e.topic.size(), v2 ? 2 : 1) + e.topic + be(e.properties.size(), 2) + e.properties;
  return be(s.size() + 4, 4) + s;
}

std::string unit(uint64_t physical, uint32_t bytes, uint64_t tags) {
  return be(physical, 8) + be(bytes, 4) + be(tags, 8);
}

uint64_t store_ms_of(const std::string& log, size_t at) {
  uint64_t v = 0;
  for (size_t i = 0; i < 8; i++) v = v << 8 | static_cast<unsigned char>(log[at + 56 + i]);
  return v;
}

const std::string long_topic = "%RETRY%" + std::string(150, 'g');

Task<void> put_some(Ctx& c) {
  co_await c.put("T", 3, "hello",
                 "TAGS\x01"
                 "a\x02K\x01v\x02");
  co_await c.put(long_topic, 0, "v2");
  std::vector<MessageIn> batch{Ctx::message("T", 3, "b1"), Ctx::message("T", 3, "b2"),
                               Ctx::message("T", 3, "b3")};
  auto r = co_await c.store->put_batch(batch);
  EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  EXPECT_EQ(r.queue_offset, 1);
  CO_ASSERT(r.physical_offsets.size() == 3);
  EXPECT_EQ(r.physical_offsets[0], r.physical_offset);
  EXPECT_EQ(r.physical_offsets[1] - r.physical_offsets[0], 94);
  EXPECT_EQ(r.physical_offsets[2] - r.physical_offsets[1], 94);
  EXPECT_EQ(r.total_bytes, 3 * 94);
}

TEST(Layout, CommitLogRecords) {
  Machine m;
  m.run(put_some);
  std::string log = m.file("commitlog/00000000000000000000");
  ASSERT_EQ(log.size(), 1u << 20);
  std::string want = record_bytes({"T", "hello",
                                   "TAGS\x01"
                                   "a\x02K\x01v\x02",
                                   3, 0, 0, store_ms_of(log, 0)});
  want += record_bytes({long_topic, "v2", "", 0, 0, want.size(), store_ms_of(log, want.size())});
  uint64_t batch_ms = store_ms_of(log, want.size());
  for (uint64_t i = 1; i <= 3; i++)
    want += record_bytes({"T", "b" + std::to_string(i), "", 3, i, want.size(), batch_ms});
  EXPECT_EQ(log.substr(0, want.size()), want);
  EXPECT_EQ(log.find_first_not_of('\0', want.size()), std::string::npos) << "zeros behind the last record";
}

TEST(Layout, ConsumeQueueUnits) {
  Machine m;
  m.run(put_some);
  std::string q = m.file("consumequeue/T/3/00000000000000000000");
  ASSERT_EQ(q.size(), 1000u * 20);
  uint64_t first = 91 + 5 + 1 + 11, second = 92 + 2 + long_topic.size();
  std::string want = unit(0, static_cast<uint32_t>(first), 'a');
  for (uint64_t i = 0; i < 3; i++) want += unit(first + second + 94 * i, 94, 0);
  EXPECT_EQ(q.substr(0, want.size()), want);
  EXPECT_EQ(q.find_first_not_of('\0', want.size()), std::string::npos);
  EXPECT_EQ(m.file("consumequeue/" + long_topic + "/0/00000000000000000000").substr(0, 20),
            unit(first, static_cast<uint32_t>(second), 0));
}

Task<void> hosts_and_types(Ctx& c) {
  MessageIn m6 = Ctx::message("T", 0, "six");
  m6.born_host = *Address::parse("[2001:db8::1]:5");
  auto a = co_await c.store->put(m6);
  EXPECT_EQ(a.total_bytes, 91 + 12 + 3 + 1);
  MessageIn half = Ctx::message("T", 0, "half");
  half.sys_flag = proto::sys_flag::transaction_prepared;
  auto b = co_await c.store->put(half);
  EXPECT_EQ(b.queue_offset, 0);
  MessageIn commit = Ctx::message("T", 0, "commit");
  commit.sys_flag = proto::sys_flag::transaction_commit;
  auto d = co_await c.store->put(commit);
  EXPECT_EQ(d.queue_offset, 1);
  MessageIn delayed = Ctx::message("T", 0, "delayed",
                                   "TAGS\x01"
                                   "a\x02");
  delayed.tags_code = 1'700'000'123'456;
  co_await c.store->put(delayed);
  auto r = co_await c.store->get("T", 0, 0, 32, nullptr);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"six", "commit", "delayed"}));
  auto u = co_await c.store->queue_unit("T", 0, 2);
  CO_ASSERT(u.has_value());
  EXPECT_EQ(u->tags_code, 1'700'000'123'456);
  std::string bytes = bytes_of(r);
  auto v = proto::parse_record(as_bytes(bytes));
  CO_ASSERT(v.has_value());
  EXPECT_EQ(v->sys_flag, proto::sys_flag::bornhost_v6);
  EXPECT_TRUE(v->born_host.v6);
}

// Prepared and rolled back messages are in the log but in no queue, and say offset 0; also after recovery.
TEST(Layout, TransactionTypesAndHosts) {
  Machine m;
  m.run(hosts_and_types, End::kill);
  m.run([](Ctx& c) -> Task<void> {
    EXPECT_EQ(c.store->max_offset("T", 0), 3);
    auto r = co_await c.store->get("T", 0, 0, 32, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{"six", "commit", "delayed"}));
  });
  EXPECT_EQ(m.recovery.records, 4u);
}

// A record whose size is such that `left` bytes of the 1 MiB file are left behind it, then one more.
struct Boundary {
  static int left;
  static Task<void> run(Ctx& c) {
    std::string fill(20'000, 'f');
    size_t file = c.store->options().commit_log_file_bytes;
    while (file - static_cast<size_t>(c.store->max_physical_offset()) > 50'000) co_await c.put("T", 0, fill);
    size_t at = static_cast<size_t>(c.store->max_physical_offset());
    std::string body(file - at - 92 - static_cast<size_t>(left), 'e');
    auto last = co_await c.put("T", 0, body);
    auto next = co_await c.put("T", 0, "next");
    EXPECT_EQ(last.status, PutMessageStatus::PUT_OK);
    EXPECT_EQ(next.status, PutMessageStatus::PUT_OK);
    bool fits = left >= 8;  // the blank record must always have room
    EXPECT_EQ(last.physical_offset, static_cast<int64_t>(fits ? at : file)) << left;
    int64_t after_last = last.physical_offset + last.total_bytes;
    EXPECT_EQ(next.physical_offset, fits ? static_cast<int64_t>(file) : after_last) << left;
    co_await check_all(c);
  }
  static Task<void> check_all(Ctx& c) {
    int64_t max = c.store->max_offset("T", 0);
    auto r = co_await c.store->get("T", 0, max - 2, 32, nullptr);
    auto bodies = bodies_of(r);
    CO_ASSERT(bodies.size() == 2);
    EXPECT_EQ(bodies[0][0], 'e');
    EXPECT_EQ(bodies[1], "next");
    uint64_t found = 0;
    for (int64_t o = 0; o < max;) {
      auto part = co_await c.store->get("T", 0, o, 32, nullptr);
      CO_ASSERT(part.status == GetMessageStatus::FOUND);
      found += bodies_of(part).size();
      o = part.next_begin_offset;
    }
    EXPECT_EQ(found, static_cast<uint64_t>(max));
  }
};
int Boundary::left = 0;

TEST(Layout, FileEnds) {
  for (int left = 0; left <= 20; left++) {
    Machine m;
    Boundary::left = left;
    m.run(Boundary::run, left % 2 == 0 ? End::stop : End::kill);
    std::string log = m.file("commitlog/00000000000000000000");
    size_t blank_left = left >= 8 ? static_cast<size_t>(left) : 0;
    if (blank_left != 0) {
      EXPECT_EQ(log.substr(log.size() - blank_left, 8), be(blank_left, 4) + be(0xCBD43194, 4)) << left;
      EXPECT_EQ(log.find_first_not_of('\0', log.size() - blank_left + 8), std::string::npos);
    }
    EXPECT_TRUE(m.exists("commitlog/00000000000001048576"));
    m.run(Boundary::check_all, End::power_lost);
    m.run(Boundary::check_all);
  }
}

Task<void> batch_at_the_end(Ctx& c) {
  std::string fill(60'000, 'f');
  for (int i = 0; i < 17; i++) co_await c.put("T", 0, fill);
  std::string part(15'000, 'p');
  std::vector<MessageIn> batch(3, Ctx::message("T", 1, part));
  auto r = co_await c.store->put_batch(batch);
  EXPECT_EQ(r.physical_offset, 1 << 20);  // the first of them would have fit
  EXPECT_EQ(r.physical_offsets[2], (1 << 20) + 2 * 15'092);
  std::vector<MessageIn> too_big(70, Ctx::message("T", 1, part));
  auto no = co_await c.store->put_batch(too_big);
  EXPECT_EQ(no.status, PutMessageStatus::MESSAGE_ILLEGAL);
}

TEST(Layout, ABatchIsNeverCut) {
  Machine m;
  m.run(batch_at_the_end);
}

}  // namespace
}  // namespace rmq::store::test

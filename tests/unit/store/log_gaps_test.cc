// Files of the log that are missing or cut short, and damagedLog = QUARANTINE: the rest is served, each
// message at its offset, and no offset is given twice.
#include <algorithm>

#include "machine.h"

namespace rmq::store::test {
namespace {

constexpr int queues = 3;
constexpr int messages = 6000;  // some 900 KB
constexpr uint64_t file_bytes = 128u << 10;

std::string body_of(int i) {
  return "body " + std::to_string(i) + std::string(static_cast<size_t>(i % 90), 'x');
}
std::string log_file(uint64_t n) {
  const std::string digits = std::to_string(n * file_bytes);
  return "commitlog/" + std::string(20 - digits.size(), '0') + digits;
}

std::vector<int64_t> places;  // of the messages, by number
Task<void> many_messages(Ctx& c) {
  places.clear();
  for (int i = 0; i < messages; i++) {
    auto r = co_await c.put("T", i % queues, body_of(i));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    places.push_back(r.physical_offset);
  }
}

std::vector<std::pair<int64_t, int64_t>> lost;  // of the log
bool is_lost(int64_t at, int64_t bytes) {
  return std::ranges::any_of(lost, [&](const auto& l) { return at < l.second && at + bytes > l.first; });
}
// A consumer gets every message that is not lost, in order, and comes to the end.
Task<void> the_rest_is_there(Ctx& c) {
  CO_ASSERT(c.store != nullptr);
  for (int q = 0; q < queues; q++) {
    std::vector<std::string> want, got;
    for (int i = q; i < messages; i += queues)
      if (!is_lost(places[static_cast<size_t>(i)], 91 + 1 + static_cast<int64_t>(body_of(i).size())))
        want.push_back(body_of(i));
    EXPECT_LT(want.size(), static_cast<size_t>(messages / queues));
    for (int64_t at = 0; at < messages / queues;) {
      auto r = co_await c.store->get("T", q, at, 32, nullptr);
      CO_ASSERT(r.next_begin_offset > at);
      at = r.next_begin_offset;
      for (std::string& body : bodies_of(r)) got.push_back(std::move(body));
    }
    EXPECT_TRUE(got == want) << q << ": " << got.size() << " of " << want.size();
    EXPECT_GE(c.store->max_offset("T", q), messages / queues);
  }
}
int64_t next_offset = 0;
Task<void> the_rest_and_one_more(Ctx& c) {
  co_await the_rest_is_there(c);
  CO_ASSERT(c.store != nullptr);
  auto r = co_await c.put("T", 1, "more");
  EXPECT_EQ(r.queue_offset, next_offset++);
}

struct Gaps : Machine {
  explicit Gaps(End end) {
    options.commit_log_file_bytes = file_bytes;
    run(many_messages, end);
    EXPECT_TRUE(exists(log_file(6)));
    next_offset = messages / queues;
  }
  void lose_file(uint64_t n) {
    remove_files(log_file(n));
    lost.emplace_back(n * file_bytes, (n + 1) * file_bytes);
  }
  void expect_set_aside() {
    const DiskImage before = copy();
    EXPECT_EQ(try_open(), Errc::corrupt);
    image = before;
    options.damaged_log = DamagedLog::QUARANTINE;
    // Starts that are cut down on their way.
    for (const uint64_t at : {5u, 40u, 80u, 160u, 320u}) {
      plan.crash_at = at;
      run(nullptr, End::power_lost);
    }
    plan.crash_at = 0;
    run(the_rest_and_one_more, End::kill);
    EXPECT_FALSE(quarantined.empty());
    quarantined.clear();
    options.damaged_log = DamagedLog::REFUSE;
    run(the_rest_and_one_more);
    remove_files("rmqd.checkpoint");
    run(the_rest_and_one_more);
    remove_files("consumequeue/");
    run(the_rest_and_one_more);
    EXPECT_TRUE(quarantined.empty()) << "once is enough";
    lost.clear();
  }
};

TEST(LogGaps, AFileThatIsMissing) {
  for (End end : {End::stop, End::kill}) {
    Gaps m(end);
    m.lose_file(2);
    m.lose_file(3);
    m.lose_file(5);
    m.cut(log_file(4), 0);
    lost.emplace_back(4 * file_bytes, 5 * file_bytes);
    m.expect_set_aside();
  }
}

TEST(LogGaps, AFileThatIsCutShort) {
  for (const uint64_t left : {0u, 3u, 4096u, 50'000u, 130'500u}) {
    SCOPED_TRACE(left);
    Gaps m(End::stop);
    m.cut(log_file(1), left);
    lost.emplace_back(file_bytes + left, 2 * file_bytes);
    m.expect_set_aside();
  }
}

// The newest messages: what the queues know of them keeps their offsets from being given again.
TEST(LogGaps, TheLastFiles) {
  for (End end : {End::stop, End::kill}) {
    Gaps m(end);
    m.run(nullptr, end);  // all is known to be durable
    for (uint64_t n = 5; m.exists(log_file(n)); n++) m.lose_file(n);
    m.expect_set_aside();
  }
}

// As RocketMQ leaves it: nothing says what was durable.
TEST(LogGaps, InADirectoryOfRocketMq) {
  Gaps m(End::stop);
  m.remove_files("rmqd.checkpoint");
  m.lose_file(4);
  m.expect_set_aside();
}

}  // namespace
}  // namespace rmq::store::test

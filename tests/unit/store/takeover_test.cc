// A directory that RocketMQ stopped in order and of which ConsumeQueue files are missing: it has no
// checkpoint of ours, and its own says nothing of which queues there are.
#include "machine.h"

namespace rmq::store::test {
namespace {

constexpr int queues = 3;
constexpr int messages = 6000;  // some 900 KB: several files of the log

std::string body_of(int i) {
  return "body " + std::to_string(i) + std::string(static_cast<size_t>(i % 90), 'x');
}

Task<void> many_messages(Ctx& c) {
  for (int i = 0; i < messages; i++) {
    auto r = co_await c.put("T", i % queues, body_of(i));
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
    // A queue whose few messages are in the middle of the log.
    if (i > 300 && i < 305) co_await c.put("Rare", 7, body_of(i));
  }
}

Task<void> all_are_there(Ctx& c) {
  std::vector<int64_t> next(queues, 0);
  for (int i = 0; i < messages; i++) {
    auto r = co_await c.store->get("T", i % queues, next[static_cast<size_t>(i % queues)]++, 1, nullptr);
    EXPECT_EQ(bodies_of(r), (std::vector<std::string>{body_of(i)}));
  }
  auto r = co_await c.store->get("Rare", 7, 0, 32, nullptr);
  EXPECT_EQ(bodies_of(r), (std::vector<std::string>{body_of(301), body_of(302), body_of(303), body_of(304)}));
  auto put = co_await c.put("Rare", 7, "more");
  EXPECT_EQ(put.queue_offset, 4);
}

struct RocketMqStore : Machine {
  RocketMqStore() {
    options.commit_log_file_bytes = 128u << 10;
    run(many_messages);
    EXPECT_TRUE(exists("commitlog/00000000000000262144"));
    remove_files("rmqd.checkpoint");
  }
};

TEST(Takeover, AWholeDirectoryIsTakenAsItIs) {
  RocketMqStore m;
  m.run(all_are_there);
  EXPECT_FALSE(m.recovery.queues_rebuilt);
  EXPECT_EQ(m.recovery.records, 0u);
}

TEST(Takeover, AQueueWhoseFilesAreGoneIsMadeAgain) {
  for (const char* lost :
       {"consumequeue/Rare", "consumequeue/Rare/7", "consumequeue/T/0", "consumequeue/T"}) {
    SCOPED_TRACE(lost);
    RocketMqStore m;
    m.remove_files(lost);
    m.run(all_are_there);
    EXPECT_TRUE(m.recovery.queues_rebuilt);
  }
}

// Garbage where no start looks: neither at the ends of a file nor at the ends of the queue.
TEST(Takeover, AUnitThatIsNotTheRecordsIsFound) {
  const std::string file = "consumequeue/T/1/00000000000000000000";
  for (const int at : {7, 11}) {  // the lowest bytes of the physical offset and of the size
    SCOPED_TRACE(at);
    RocketMqStore m;
    std::string unit = m.file(file).substr(500 * 20, 20);
    unit[static_cast<size_t>(at)] = static_cast<char>(unit[static_cast<size_t>(at)] ^ 1);
    unit[5] = static_cast<char>(unit[5] ^ (at == 7 ? 1 : 0));  // 65,536 bytes away
    m.damage(file, 500 * 20, unit);
    m.run(all_are_there);
    EXPECT_TRUE(m.recovery.queues_rebuilt);
  }
}

}  // namespace
}  // namespace rmq::store::test

// Light queues in the store: offsets in the record, units in the files, made again from the log, and what
// store check says of them.
#include "store/light_queues.h"
#include "offline_dir.h"

namespace rmq::store::test {
namespace {

std::string to(std::string_view names) {
  return "INNER_MULTI_DISPATCH\x01" + std::string(names) + "\x02";
}

Machine machine() {
  Machine m;
  m.options.light_queues_max = 100;
  return m;
}

TEST(LightQueues, Names) {
  auto names = parse_light_queues("%LMQ%a,%LMQ%b", "T");
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string_view>{"%LMQ%a", "%LMQ%b"}));
  EXPECT_TRUE(parse_light_queues("", "T")->empty());
  const std::string long_name = "%LMQ%" + std::string(122, 'x'), too_long = long_name + "x";
  EXPECT_TRUE(parse_light_queues(long_name, "T"));
  for (std::string_view wrong :
       {"a", "%LMQ%", "%LMQ%a,,%LMQ%b", "%LMQ%a,%LMQ%a", "%LMQ%a/b", "%LMQ%a, %LMQ%b", "T", too_long.c_str()})
    EXPECT_FALSE(parse_light_queues(wrong, "T")) << wrong;
  EXPECT_FALSE(parse_light_queues("%LMQ%a", "%LMQ%a"));
}

// The record's own lists count, and nothing that a record may not have.
TEST(LightQueues, PlacesOfARecord) {
  auto places = [](std::string_view topic, std::string_view properties) {
    proto::RecordView r;
    r.topic = topic;
    r.properties = properties;
    std::string out;
    for (const LightPlace& p : light_places_of(r))
      out += std::string(p.queue) + "=" + std::to_string(p.offset) + " ";
    return out;
  };
  const std::string both = to("%LMQ%a,%LMQ%b") + "INNER_MULTI_QUEUE_OFFSET\x01" + "3,4\x02";
  EXPECT_EQ(places("T", both), "%LMQ%a=3 %LMQ%b=4 ");
  for (std::string_view topic : {"%RETRY%g", "%DLQ%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX",
                                 "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"})
    EXPECT_EQ(places(topic, both), "") << topic;
  EXPECT_EQ(places("T", to("%LMQ%a")), "") << "nobody said where";
  EXPECT_EQ(places("T", to("%LMQ%a,x") + "INNER_MULTI_QUEUE_OFFSET\x01" + "-1,4\x02"), "");
}

Task<void> write_some(Ctx& c) {
  for (int i = 0; i < 30; i++) {
    const std::string names = to(i % 2 == 0 ? "%LMQ%a,%LMQ%b" : "%LMQ%b");
    const std::string body = "m" + std::to_string(i);
    auto r = co_await c.put("T", i % 3, body, names);
    EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  }
}
Task<std::string> all_of(Ctx& c, std::string topic) {
  std::string out;
  int64_t at = 0;
  while (at < c.store->max_offset(topic, 0)) {
    GetMessageResult g = co_await c.store->get(topic, 0, at, 32, nullptr);
    if (g.status != GetMessageStatus::FOUND) break;
    for (const std::string& body : bodies_of(g)) out += body + " ";
    at = g.next_begin_offset;
  }
  co_return out;
}
Task<void> expect_all(Ctx& c) {
  std::string even, all;
  for (int i = 0; i < 30; i++) {
    const std::string body = "m" + std::to_string(i) + " ";
    all += body;
    if (i % 2 == 0) even += body;
  }
  std::string a = co_await all_of(c, "%LMQ%a");
  std::string b = co_await all_of(c, "%LMQ%b");
  EXPECT_EQ(a, even);
  EXPECT_EQ(b, all);
}

TEST(LightQueues, AreThereAfterEveryEnd) {
  for (End end : {End::stop, End::kill, End::power_lost, End::power_torn}) {
    Machine m = machine();
    m.run(write_some, end);
    m.run(expect_all);
    EXPECT_FALSE(m.recovery.queues_rebuilt);
    {
      OfflineDir d(m);
      offline::CheckReport r = checked(d);
      EXPECT_EQ(r.findings.count(offline::Severity::damage), 0u) << text_of(r);
    }
    // Of the log alone, also by a store that makes no new ones.
    m.remove_files("consumequeue");
    m.options.light_queues_max = 0;
    m.run(expect_all);
    EXPECT_TRUE(m.recovery.queues_rebuilt);
  }
}

TEST(LightQueues, AWrongUnitIsFound) {
  Machine m = machine();
  m.run(write_some);
  OfflineDir d(m);
  d.write("consumequeue/%LMQ%b/0/00000000000000000000", 20 * 3, std::string_view("\0\0\0\0\0\0\0\7", 8));
  offline::CheckReport r = checked(d);
  EXPECT_GT(r.findings.count(offline::Severity::damage), 0u) << text_of(r);
}

Task<void> in_a_batch(Ctx& c) {
  const std::string names = to("%LMQ%a");
  std::vector<MessageIn> batch;
  batch.push_back(Ctx::message("%LMQ%a", 0, "direct"));
  batch.push_back(Ctx::message("T", 0, "by name", names));
  batch.push_back(Ctx::message("%LMQ%a", 0, "again"));
  batch.push_back(Ctx::message("T", 0, "twice", names));
  PutMessageResult r = co_await c.store->put_batch(batch);
  EXPECT_EQ(r.status, PutMessageStatus::PUT_OK);
  std::string all = co_await all_of(c, "%LMQ%a");
  EXPECT_EQ(all, "direct by name again twice ");
  auto last = co_await c.store->record_at(r.physical_offsets[3]);
  CO_ASSERT(last.has_value());
  auto record = proto::parse_record(last->bytes());
  CO_ASSERT(record.has_value());
  const std::vector<LightPlace> places = light_places_of(*record);
  EXPECT_TRUE(places.size() == 1 && places[0].offset == 3) << record->properties;
}
TEST(LightQueues, OffsetsWithinABatch) {
  Machine m = machine();
  m.run(in_a_batch);
}

}  // namespace
}  // namespace rmq::store::test

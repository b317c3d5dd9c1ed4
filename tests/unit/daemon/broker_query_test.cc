// Looking up messages through the whole broker, simulated: by key, by unique key, by time.
#include "broker_world.h"
#include "proto/properties.h"

namespace rmq::broker {
namespace {

std::string props(const sim::Ext& p) {
  std::string out;
  for (auto& [k, v] : p) proto::append_property(out, k, v);
  return out;
}

Task<Answer> query(World& w, std::string_view topic, std::string_view key, int max, int64_t begin = 0,
                   int64_t end = INT64_MAX, std::string_view more = "", std::string_view value = "true") {
  return w.call(RequestCode::QUERY_MESSAGE, {{"topic", topic},
                                             {"key", key},
                                             {"maxNum", std::to_string(max)},
                                             {"beginTimestamp", std::to_string(begin)},
                                             {"endTimestamp", std::to_string(end)},
                                             {more, value}});
}
Task<Answer> query_unique(World& w, std::string_view topic, std::string_view key, int max) {
  return query(w, topic, key, max, 0, INT64_MAX, "_UNIQUE_KEY_QUERY");
}

Task<void> by_key(World& w) {
  for (int i = 0; i < 70; i++) {
    std::string p = props({{"KEYS", "all k" + std::to_string(i % 7)}, {"UNIQ_KEY", "U" + std::to_string(i)}});
    auto sent = co_await w.send("T", "m" + std::to_string(i), p);
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
  auto got = co_await query(w, "T", "k3", 3);
  EXPECT_EQ(code_of(got), 0) << remark(got);
  EXPECT_EQ(bodies(got), "m52,m59,m66");
  got = co_await query(w, "T", "all", 2147483647);
  auto found = records(got);
  EXPECT_EQ(found.size(), 64u) << "maxMsgsNumBatch";
  if (found.size() != 64) co_return;
  EXPECT_EQ(as_text(found.front().body), "m6");
  EXPECT_EQ(ext(got, "indexLastUpdateTimestamp"), std::to_string(found.back().store_timestamp_ms));
  EXPECT_EQ(ext(got, "indexLastUpdatePhyoffset"), std::to_string(found.back().physical_offset));
  w.config.maxMsgsNumBatch = 5;
  got = co_await query(w, "T", "all", 100);
  EXPECT_EQ(records(got).size(), 5u);
  for (const char* key : {"none", ""}) {
    got = co_await query(w, "T", key, 10);
    EXPECT_EQ(code_of(got), 22);
    EXPECT_EQ(remark(got), "can not find message, maybe time range not correct");
  }
  got = co_await query(w, "T", "k3", 3, 10, 5);
  EXPECT_EQ(code_of(got), 22);
  got = co_await query(w, "Unknown", "k3", 3);
  EXPECT_EQ(code_of(got), 22);
  got = co_await query(w, "T", "k3", 0);
  EXPECT_EQ(code_of(got), 22);
}
TEST(BrokerQuery, ByKey) {
  simulate({by_key});
}

Task<void> by_unique_key(World& w) {
  for (int i = 0; i < 40; i++) {
    auto sent = co_await w.send("T", "m" + std::to_string(i), props({{"UNIQ_KEY", "same"}}));
    EXPECT_EQ(code_of(sent), 0);
  }
  auto got = co_await query_unique(w, "T", "same", 1);
  EXPECT_EQ(records(got).size(), 32u) << "defaultQueryMaxNum, whatever was asked for";
  w.config.defaultQueryMaxNum = 2;
  got = co_await query_unique(w, "T", "same", 1);
  EXPECT_EQ(bodies(got), "m38,m39");
  got = co_await query_unique(w, "T", "other", 1);
  EXPECT_EQ(code_of(got), 22);
}
Task<void> after_a_restart(World& w) {
  auto got = co_await query(w, "T", "same", 3);
  EXPECT_EQ(bodies(got), "m37,m38,m39");
}
Task<void> by_tag(World& w) {
  for (const char* tag : {"a", "b", "a"}) {
    auto sent = co_await w.send("T", tag, props({{"TAGS", tag}, {"KEYS", "b"}}));
    EXPECT_EQ(code_of(sent), 0);
  }
  auto got = co_await query(w, "T", "b", 10, 0, INT64_MAX, "indexType", "T");
  EXPECT_EQ(bodies(got), "b");
  got = co_await query(w, "T", "b", 10, 0, INT64_MAX, "indexType", "K");
  EXPECT_EQ(bodies(got), "a,b,a");
}
TEST(BrokerQuery, ByTag) {
  simulate({by_tag});
}

TEST(BrokerQuery, ByUniqueKeyAndAfterARestart) {
  simulate({by_unique_key, after_a_restart});
}

// The delivered copy is found under its own topic, and says it again when it is delivered.
Task<void> delayed(World& w) {
  auto sent = co_await w.send("T", "later", props({{"DELAY", "1"}, {"KEYS", "kk"}, {"UNIQ_KEY", "U"}}));
  EXPECT_EQ(code_of(sent), 0);
  auto got = co_await query(w, "T", "kk", 10);
  EXPECT_EQ(code_of(got), 22);
  co_await sleep_for(3 * ns_per_s);
  got = co_await query(w, "T", "kk", 10);
  EXPECT_EQ(bodies(got), "later");
}
TEST(BrokerQuery, DelayedMessages) {
  simulate({delayed});
}

Task<std::string> search(World& w, int64_t ms, std::string_view boundary) {
  auto got = co_await w.call(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP,
                             {{"topic", "T"},
                              {"queueId", "0"},
                              {"timestamp", std::to_string(ms)},
                              {boundary.empty() ? "" : "boundaryType", boundary}});
  co_return code_of(got) == 0 ? ext(got, "offset") : remark(got);
}

Task<void> by_time(World& w) {
  std::string found = co_await search(w, 5, "upper");
  EXPECT_EQ(found, "0") << "an unknown queue";
  std::vector<int64_t> at;
  for (int i = 0; i < 3; i++) {
    auto sent = co_await w.send("T", "m");
    EXPECT_EQ(code_of(sent), 0);
    auto got = co_await w.pull("T", i);
    auto r = records(got);
    EXPECT_EQ(r.size(), 1u);
    if (r.empty()) co_return;
    at.push_back(r[0].store_timestamp_ms);
    co_await sleep_for(50 * ns_per_ms);
  }
  struct Case {
    int64_t ms;
    const char* boundary;
    const char* want;
  };
  const std::vector<Case> cases{
      {at[0], "", "0"},          {at[1], "lower", "1"},     {at[1], "LOWER", "1"},
      {at[1], "upper", "1"},     {at[1] + 1, "lower", "2"}, {at[1] + 1, "Upper", "1"},
      {at[2] + 1, "lower", "3"}, {at[2] + 1, "upper", "2"}, {at[0] - 1, "lower", "0"},
      {at[0] - 1, "upper", "0"}, {-1, "lower", "0"},        {-1, "upper", "0"}};
  for (const Case& c : cases) {
    found = co_await search(w, c.ms, c.boundary);
    EXPECT_EQ(found, c.want) << c.ms - at[0] << " " << c.boundary;
  }
  auto earliest =
      co_await w.call(RequestCode::GET_EARLIEST_MSG_STORETIME, {{"topic", "T"}, {"queueId", "0"}});
  EXPECT_EQ(ext(earliest, "timestamp"), std::to_string(at[0]));
  earliest = co_await w.call(RequestCode::GET_EARLIEST_MSG_STORETIME, {{"topic", "T"}, {"queueId", "1"}});
  EXPECT_EQ(ext(earliest, "timestamp"), "-1");
}
TEST(BrokerQuery, ByTime) {
  simulate({by_time});
}

}  // namespace
}  // namespace rmq::broker

// What operators do to groups and topics through the whole broker, simulated: resets while consumers run,
// fewer queues while messages are on their way to them, statistics.
#include "broker_world.h"
#include "proto/bodies_stats.h"

namespace rmq::broker {
namespace {

Task<Answer> set_queues(World& w, std::string_view queues) {
  return w.call(RequestCode::UPDATE_AND_CREATE_TOPIC, {{"topic", "T"},
                                                       {"defaultTopic", "TBW102"},
                                                       {"readQueueNums", queues},
                                                       {"writeQueueNums", queues},
                                                       {"perm", "6"},
                                                       {"topicFilterType", "SINGLE_TAG"},
                                                       {"topicSysFlag", "0"},
                                                       {"order", "false"}});
}

// Sent to queue 3 of 4, delivered when there are 2.
Task<void> fewer_queues(World& w) {
  auto a = co_await set_queues(w, "4");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("T", "by level",
                      "DELAY\1"
                      "2\2",
                      "3");
  a = co_await w.send("T", "by timer",
                      "TIMER_DELAY_SEC\1"
                      "8\2",
                      "3");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  auto half = co_await w.peer->call(w.request(RequestCode::SEND_MESSAGE_V2,
                                              {{"a", "pg"},
                                               {"b", "T"},
                                               {"c", "TBW102"},
                                               {"d", "4"},
                                               {"e", "3"},
                                               {"f", "4"},
                                               {"g", "1"},
                                               {"h", "0"},
                                               {"i", "TRAN_MSG\1true\2PGROUP\1pg\2UNIQ_KEY\1K\2"},
                                               {"j", "0"}},
                                              "half"));
  EXPECT_EQ(code_of(half), 0) << remark(half);
  auto id = proto::parse_offset_id(ext(half, "msgId"));
  a = co_await set_queues(w, "2");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  const std::string physical = std::to_string(id ? id->physical_offset : -1),
                    offset = ext(half, "queueOffset");
  a = co_await w.call(RequestCode::END_TRANSACTION, {{"topic", "T"},
                                                     {"producerGroup", "pg"},
                                                     {"tranStateTableOffset", offset},
                                                     {"commitLogOffset", physical},
                                                     {"commitOrRollback", "8"},
                                                     {"fromTransactionCheck", "false"},
                                                     {"msgId", "K"}});
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(20 * ns_per_s);
  EXPECT_EQ(w.store->max_offset("T", 3), 0);
  EXPECT_EQ(w.store->max_offset("T", 1), 3) << "where consumers read them";
}
TEST(BrokerAdmin, MessagesOnTheirWayFindAQueueThatIsLeft) {
  simulate({fewer_queues});
}

}  // namespace
}  // namespace rmq::broker

// What a store that loses its oldest files looks like to clients, and what an operator may say about it.
#include "broker_world.h"
#include "daemon/broker_config.h"

namespace rmq::broker {
namespace {

TEST(BrokerDisk, HoursOfDeleteWhen) {
  EXPECT_EQ(hours_of("04"), 1u << 4);
  EXPECT_EQ(hours_of("0;23;7"), 1u | 1u << 23 | 1u << 7);
  EXPECT_EQ(hours_of(""), 0u);
  for (const char* wrong : {"24", "-1", "4,5", "four", "04;x"}) EXPECT_FALSE(hours_of(wrong)) << wrong;
  BrokerConfig c = test_config();
  c.deleteWhen = "4am";
  ConfigErrors errors;
  complete_broker_config(c, false, true, errors);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("deleteWhen"), std::string::npos) << errors[0];
}

Task<void> old_messages_go(World& w) {
  for (int i = 0; i < 30; i++) {
    auto sent = co_await w.send("T", std::to_string(i) + std::string(90'000, '.'));
    EXPECT_EQ(code_of(sent), 0) << remark(sent);
  }
  auto set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, "fileReservedTime=1\ndeleteWhen=25\n");
  EXPECT_EQ(code_of(set), 29);
  EXPECT_EQ(w.store->options().retention.file_reserved_ms, 72 * 3'600'000) << "all or nothing";
  std::string every_hour = "0";
  for (int h = 1; h < 24; h++) every_hour += ";" + std::to_string(h);
  set = co_await w.call(RequestCode::UPDATE_BROKER_CONFIG, {},
                        "fileReservedTime=1\ndeleteWhen=" + every_hour + "\n");
  EXPECT_EQ(code_of(set), 0) << remark(set);
  co_await sleep_for(2 * 3600 * ns_per_s);
  // The connection was silent for longer than channelExpiredTimeout.
  co_await w.peer->close();
  w.peer = co_await sim::Peer::connect(w.client_net, "10.0.0.1", 10911);
  auto min = co_await w.call(RequestCode::GET_MIN_OFFSET, {{"topic", "T"}, {"queueId", "0"}});
  const std::string offset = ext(min, "offset");
  EXPECT_EQ(offset, "22") << "two files of 11 messages";
  auto pulled = co_await w.pull("T", 3);
  EXPECT_EQ(code_of(pulled), 21) << remark(pulled);
  EXPECT_EQ(remark(pulled), "OFFSET_TOO_SMALL");
  EXPECT_EQ(ext(pulled, "nextBeginOffset"), offset);
  EXPECT_EQ(ext(pulled, "minOffset"), offset);
  pulled = co_await w.pull("T", 22);
  EXPECT_EQ(code_of(pulled), 0) << remark(pulled);
}
TEST(BrokerDisk, OldMessagesGo) {
  simulate({old_messages_go});
}

}  // namespace
}  // namespace rmq::broker

// Open half messages while the log grows and loses its oldest files.
#include <string>
#include <vector>

#include "transaction_client.h"

namespace rmq::broker {
namespace {

// Half messages in the oldest file of the log move on before retention could take it.
Task<void> old_halves(World& w) {
  auto sent = co_await w.send("T", "old", half_properties("K1"));
  const std::string filler(90'000, 'f');
  for (int i = 0; i < 45; i++) co_await w.send("F", filler);
  co_await sleep_for(3 * ns_per_s);
  EXPECT_EQ(w.broker.transactions.open(), 1u);
  EXPECT_EQ(w.store->max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0), 2) << "rewritten once";
  auto a = co_await end(w, place_of(sent), commit);
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(remark(a), "");
  EXPECT_EQ(w.store->max_offset("T", 0), 1);
}
TEST(BrokerTransaction, RewrittenOutOfTheOldestFile) {
  simulate({old_halves});
}

// More of them than move on at a time; the log may lose its oldest files meanwhile, and does.
Task<void> many_old_halves(World& w) {
  constexpr int many = 1500;
  std::string frames;
  for (int i = 0; i < many; i++) frames += w.send_frame("T", "x", half_properties(std::to_string(i)));
  co_await w.peer->send(std::move(frames));
  std::vector<HalfPlace> places;
  for (int i = 0; i < many; i++) {
    auto a = co_await w.peer->next();
    places.push_back(place_of(a));
  }
  const std::string filler(90'000, 'f');
  for (int i = 0; i < 60; i++) co_await w.send("F", filler);
  co_await sleep_for(60 * ns_per_s);
  EXPECT_GT(w.store->min_physical_offset(), 0);
  EXPECT_EQ(w.broker.transactions.open(), static_cast<size_t>(many));
  for (const HalfPlace& p : places) {
    auto a = co_await end(w, p, commit);
    if (code_of(a) != 0 || !remark(a).empty()) co_return ADD_FAILURE() << "lost: " << remark(a);
  }
  EXPECT_EQ(w.store->max_offset("T", 0), many);
}
TEST(BrokerTransaction, TheLogIsKeptForWhatIsOpen) {
  BrokerConfig c = test_config();
  c.discardPolicy = "fifo";
  c.discardBytes = 2 << 20;
  simulate({many_old_halves}, c);
}

}  // namespace
}  // namespace rmq::broker

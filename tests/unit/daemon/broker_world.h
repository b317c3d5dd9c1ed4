// For tests of the broker: the whole of it on one simulated machine — store, tables, both ports and a name
// server — and a client host that speaks frames.
#pragma once

#include <functional>
#include <type_traits>

#include "daemon/broker/broker.h"
#include "daemon/broker_config.h"
#include "daemon/namesrv/name_server.h"
#include "sim/sim_disk.h"
#include "sim_peer.h"

namespace rmq::broker {

using proto::RequestCode;
using proto::ResponseCode;
using sim::Ext;
using sim::Peer;
using Answer = std::unique_ptr<RemoteAnswer>;

inline BrokerConfig test_config() {
  BrokerConfig c;
  c.brokerName = "b";
  c.brokerIP1 = "10.0.0.1";
  c.namesrvAddr = "10.0.0.1:9876";
  c.storePathRootDir = "/store";
  c.mappedFileSizeCommitLog = 1 << 20;
  c.mappedFileSizeConsumeQueue = 20'000;
  c.maxMessageSize = 100'000;
  c.maxHashSlotNum = 1000;
  c.maxIndexNum = 10'000;
  c.dedupMemoryBytes = 1 << 20;
  return c;
}

// One run of the broker on a disk that outlives it.
struct World {
  World(sim::SimNetwork& network, Disk& d, BrokerConfig c, std::unique_ptr<store::MessageStore> s,
        ConfigSource source = {})
      : config(std::move(c)),
        disk(d),
        server_net(network, "10.0.0.1"),
        client_net(network, "10.0.0.2"),
        names(namesrv_config_of(config), disk, server_net),
        names_server(server_net, names),
        store(std::move(s)),
        broker(config, disk, server_net, *store, std::move(source)),
        server(server_net, broker),
        vip_server(server_net, broker) {}

  BrokerConfig config;
  Disk& disk;
  sim::SimNet server_net, client_net;
  namesrv::NameServer names;
  Server names_server;
  std::unique_ptr<store::MessageStore> store;
  Broker broker;
  Server server, vip_server;
  Event stop;
  Scope scope;
  std::unique_ptr<Peer> peer;
  int32_t opaque = 0;

  std::string request(RequestCode code, Ext ext, std::string_view body = {}, int32_t flag = 0) {
    return sim::request_frame(static_cast<int32_t>(code), ++opaque, ext, body, flag);
  }
  Task<Answer> call(RequestCode code, Ext ext, std::string_view body = {}) {
    return peer->call(request(code, ext, body));
  }
  // UPDATE_AND_CREATE_TOPIC, with as many queues to write as to read.
  std::string topic_frame(std::string_view name, std::string_view queues, std::string_view attributes = {},
                          std::string_view perm = "6", std::string_view order = "false") {
    return request(RequestCode::UPDATE_AND_CREATE_TOPIC, {{"topic", name},
                                                          {"defaultTopic", "TBW102"},
                                                          {"readQueueNums", queues},
                                                          {"writeQueueNums", queues},
                                                          {"perm", perm},
                                                          {"topicFilterType", "SINGLE_TAG"},
                                                          {"topicSysFlag", "0"},
                                                          {"order", order},
                                                          {"attributes", attributes}});
  }
  Task<Answer> put_topic(std::string_view name, std::string_view queues, std::string_view attributes = {}) {
    return peer->call(topic_frame(name, queues, attributes));
  }
  std::string send_frame(std::string_view topic, std::string_view body, std::string_view properties = {},
                         std::string_view queue = "0", std::string_view reconsume = "0") {
    return request(RequestCode::SEND_MESSAGE_V2,
                   {{"a", "pg"},
                    {"b", topic},
                    {"c", "TBW102"},
                    {"d", "4"},
                    {"e", queue},
                    {"f", "0"},
                    {"g", "1"},
                    {"h", "0"},
                    {"i", properties},
                    {"j", reconsume}},
                   body);
  }
  Task<Answer> send(std::string_view topic, std::string_view body, std::string_view properties = {},
                    std::string_view queue = "0", std::string_view reconsume = "0") {
    return peer->call(send_frame(topic, body, properties, queue, reconsume));
  }
  // `body`: messages one behind the other, as proto::append_batch_message() makes them.
  std::string batch_frame(std::string_view topic, std::string_view body, std::string_view queue = "0",
                          std::string_view properties = {}) {
    return request(RequestCode::SEND_BATCH_MESSAGE,
                   {{"a", "pg"},
                    {"b", topic},
                    {"c", "TBW102"},
                    {"d", "4"},
                    {"e", queue},
                    {"f", "0"},
                    {"g", "1"},
                    {"h", "0"},
                    {"i", properties},
                    {"m", "true"}},
                   body);
  }
  std::string pull_frame(std::string_view topic, int64_t offset, std::string_view subscription = "*",
                         int64_t suspend_ms = 0, std::string_view group = "g", int32_t more_flags = 0,
                         int64_t commit = 0) {
    int32_t flags = 4 | (suspend_ms > 0 ? 2 : 0) | more_flags;
    return request(RequestCode::PULL_MESSAGE, {{"consumerGroup", group},
                                               {"topic", topic},
                                               {"queueId", "0"},
                                               {"queueOffset", std::to_string(offset)},
                                               {"maxMsgNums", "32"},
                                               {"sysFlag", std::to_string(flags)},
                                               {"commitOffset", std::to_string(commit)},
                                               {"suspendTimeoutMillis", std::to_string(suspend_ms)},
                                               {"subscription", subscription},
                                               {"subVersion", "0"},
                                               {"expressionType", "TAG"}});
  }
  Task<Answer> pull(std::string_view topic, int64_t offset, std::string_view subscription = "*",
                    std::string_view group = "g") {
    return peer->call(pull_frame(topic, offset, subscription, 0, group));
  }
};

inline int32_t code_of(const Answer& a) {
  return a ? a->command.code : -1;
}
inline std::string remark(const Answer& a) {
  return a ? std::string(a->command.remark) : "no answer";
}
inline std::string ext(const Answer& a, std::string_view name) {
  return a ? std::string(a->command.ext.value_or(name, "absent")) : "no answer";
}
inline std::string body_text(const Answer& a) {
  return a ? std::string(a->frame.body_text()) : "no answer";
}
// The records of a pull answer.
inline std::vector<proto::RecordView> records(const Answer& a) {
  std::vector<proto::RecordView> out;
  Bytes rest = a ? a->frame.body() : Bytes{};
  while (!rest.empty()) {
    auto r = proto::parse_record(rest, proto::CrcCheck::verify);
    check(r.has_value());
    out.push_back(*r);
    rest = rest.subspan(r->size);
  }
  return out;
}
inline std::string bodies(const Answer& a) {
  std::string out;
  for (const auto& r : records(a)) out += (out.empty() ? "" : ",") + std::string(as_text(r.body));
  return out;
}

// One run that a crash of the disk may cut short anywhere, without a name server: opens, loads, and gives the
// serving broker to `work`, which ends soon after the disk has crashed. What could not be opened or loaded
// comes out.
template <class... Args>
Task<Result<void>> run_until_crash(sim::SimNetwork& network, Disk& disk, BrokerConfig config,
                                   Task<void> (*work)(World&, Args...), std::type_identity_t<Args>... args) {
  auto opened = co_await open_store(disk, config, nullptr);
  if (!opened) co_return std::unexpected(opened.error());
  World w(network, disk, std::move(config), std::move(*opened));
  auto loaded = co_await w.broker.load();
  if (loaded) {
    [[maybe_unused]] auto listening = co_await w.server.listen("10.0.0.1", 10911);
    w.broker.start();
    w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
    co_await work(w, args...);
    co_await w.peer->close();
  }
  w.stop.set();
  co_await w.broker.stop();
  co_await w.server.stop();
  co_await w.broker.save_all();
  co_await w.scope.join();
  co_await w.store->shutdown();
  co_return loaded;
}

template <class... Args>
Task<void> until_crash(sim::SimNetwork& network, sim::SimDisk& disk, BrokerConfig config,
                       Task<void> (*work)(World&, sim::SimDisk&, Args...),
                       std::type_identity_t<Args>... args) {
  [[maybe_unused]] auto result =
      co_await run_until_crash<sim::SimDisk&, Args...>(network, disk, config, work, disk, args...);
}

// Such a run on a disk of its own that freezes at `point` (0: never). `image` gets what a crash leaves of it,
// when it came to that. How many points the run had comes out.
template <class... Args>
uint64_t crash_run(uint64_t seed, uint64_t point, const sim::CrashFate& fate, sim::DiskImage& image,
                   BrokerConfig config, Task<void> (*work)(World&, sim::SimDisk&, Args...),
                   std::type_identity_t<Args>... args) {
  sim::SimLoop loop(seed);
  sim::SimNetwork network(loop);
  sim::DiskPlan plan;
  plan.crash_at = point;
  sim::SimDisk disk(loop, plan);
  loop.run(until_crash<Args...>(network, disk, std::move(config), work, args...));
  if (disk.crashed()) image = disk.crash_image(fate);
  return disk.points();
}

using Scenario = Task<void> (*)(World&);

inline Task<void> run_world(sim::SimNetwork& network, Disk& disk, BrokerConfig config, Scenario scenario,
                            ConfigSource source) {
  auto opened = co_await open_store(disk, config, nullptr);
  EXPECT_TRUE(opened) << (opened ? "" : to_string(opened.error()));
  if (!opened) co_return;
  World w(network, disk, config, std::move(*opened), std::move(source));
  auto listening = co_await w.names_server.listen("10.0.0.1", 9876);
  EXPECT_TRUE(listening);
  w.names.start(w.stop, w.scope);
  auto loaded = co_await w.broker.load();
  EXPECT_TRUE(loaded);
  listening = co_await w.server.listen("10.0.0.1", 10911);
  EXPECT_TRUE(listening);
  listening = co_await w.vip_server.listen("10.0.0.1", 10909);
  EXPECT_TRUE(listening);
  w.broker.start();
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 10911);
  co_await scenario(w);
  co_await w.peer->close();
  w.stop.set();
  co_await w.broker.stop();
  co_await w.server.stop();
  co_await w.vip_server.stop();
  co_await w.names_server.stop();
  co_await w.broker.save_all();
  co_await w.scope.join();
  co_await w.store->shutdown();
}

inline Task<void> run_worlds(sim::SimNetwork& network, Disk& disk, BrokerConfig config,
                             std::vector<Scenario> scenarios) {
  const ConfigSource no_file;
  for (Scenario s : scenarios) co_await run_world(network, disk, config, s, no_file);
}

// A crash at every point of `work`, of which nothing or all of what was not synced stays; then `after`,
// twice.
inline void crash_at_every_point(const BrokerConfig& config, Task<void> (*work)(World&, sim::SimDisk&),
                                 Scenario after) {
  auto crash_at = [&](uint64_t point, sim::DiskImage& image) {
    const auto fate = point % 2 == 0 ? sim::CrashFate::all_lost(point) : sim::CrashFate::all_kept(point);
    return crash_run(7, point, fate, image, config, work);
  };
  sim::DiskImage image;
  const uint64_t points = crash_at(0, image);
  for (uint64_t point = 1; point <= points; point++) {
    crash_at(point, image);
    sim::SimLoop loop(point);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {}, image);
    loop.run(run_worlds(network, disk, config, {after, after}));
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "at point " << point << " of " << points;
      return;
    }
  }
}

// Runs the scenarios one after the other, each with a broker that was started anew on the same disk.
inline void simulate(std::vector<Scenario> scenarios, BrokerConfig config = test_config()) {
  for (uint64_t seed = 1; seed <= 2; seed++) {
    sim::SimLoop loop(seed);
    sim::SimNetwork network(loop);
    sim::SimDisk disk(loop, {});
    loop.run(run_worlds(network, disk, config, scenarios));
    EXPECT_TRUE(disk.violations().empty());
  }
}

}  // namespace rmq::broker

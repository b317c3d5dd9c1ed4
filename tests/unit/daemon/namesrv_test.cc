// The name server over the wire, on a simulated network and disk.
#include <zlib.h>

#include "base/crc.h"
#include "daemon/namesrv/name_server.h"
#include "sim/sim_disk.h"
#include "sim_peer.h"
#include "store/whole_file.h"

namespace rmq::namesrv {
namespace {

using proto::RequestCode;
using proto::ResponseCode;
using sim::Ext;
using sim::Peer;
using Answer = std::unique_ptr<RemoteAnswer>;

struct World {
  World(sim::SimLoop& loop, NamesrvConfig config)
      : network(loop), disk(loop, {}), names(config, disk, server_net), server(server_net, names) {}
  sim::SimNetwork network;
  sim::SimDisk disk;
  sim::SimNet server_net{network, "10.0.0.1"}, client_net{network, "10.0.0.2"};
  NameServer names;
  Server server;
  Event stop;
  Scope scope;
  std::unique_ptr<Peer> peer;
  int32_t opaque = 0;

  Task<Answer> call(RequestCode code, const Ext& ext, std::string_view body = {},
                    int32_t version = proto::mq_version::ours) {
    return peer->call(request(code, ext, body, version));
  }
  std::string request(RequestCode code, const Ext& ext, std::string_view body = {},
                      int32_t version = proto::mq_version::ours, int32_t flag = 0) {
    return sim::request_frame(static_cast<int32_t>(code), ++opaque, ext, body, flag, version);
  }
};

using Scenario = Task<void> (*)(World&);
Task<void> run_scenario(World& w, Scenario scenario) {
  auto loaded = co_await w.names.load();
  EXPECT_TRUE(loaded);
  auto listening = co_await w.server.listen("10.0.0.1", 9876);
  EXPECT_TRUE(listening);
  w.names.start(w.stop, w.scope);
  w.peer = co_await Peer::connect(w.client_net, "10.0.0.1", 9876);
  co_await scenario(w);
  co_await w.peer->close();
  w.stop.set();
  co_await w.server.stop();
  co_await w.scope.join();
}
void simulate(Scenario scenario, NamesrvConfig config = {}) {
  for (uint64_t seed = 1; seed <= 3; seed++) {
    sim::SimLoop loop(seed);
    World w(loop, config);
    loop.run(run_scenario(w, scenario));
  }
}

int32_t code_of(const Answer& a) {
  return a ? a->command.code : -1;
}
std::string body_text(const Answer& a) {
  return a ? std::string(a->frame.body_text()) : "no answer";
}
std::string remark(const Answer& a) {
  return a ? std::string(a->command.remark) : "no answer";
}
std::string ext(const Answer& a, std::string_view name) {
  return a ? std::string(a->command.ext.value_or(name, "absent")) : "no answer";
}

proto::RegisterBrokerBody two_topics(std::string_view first = "T") {
  proto::RegisterBrokerBody b;
  b.topic_config_wrapper.data_version = {0, 1000, 1};
  for (std::string name : {std::string(first), std::string("TBW102")}) {
    proto::TopicConfig c;
    c.topic_name = name;
    c.read_queue_nums = c.write_queue_nums = 8;
    b.topic_config_wrapper.topic_config_table[name] = c;
  }
  b.filter_server_list.emplace();
  return b;
}

Task<Answer> register_at(World& w, Peer& p, std::string_view addr, std::string body,
                         std::string_view compressed, int32_t version) {
  std::string crc = std::to_string(body_crc(as_bytes(body)));
  return p.call(w.request(RequestCode::REGISTER_BROKER,
                          {{"brokerName", "b"},
                           {"brokerAddr", addr},
                           {"clusterName", "c"},
                           {"haServerAddr", "ha:1"},
                           {"brokerId", "0"},
                           {"bodyCrc32", crc},
                           {"compressed", compressed}},
                          body, version));
}
Task<Answer> register_plain(World& w) {
  return register_at(w, *w.peer, "1.1.1.1:1", two_topics().to_json(), "false", proto::mq_version::ours);
}
Task<Answer> route(World& w, std::string_view topic, int32_t version = proto::mq_version::ours) {
  return w.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, {{"topic", topic}}, {}, version);
}

Task<void> registers(World& w) {
  struct Form {
    std::string body;
    const char* compressed;
    int32_t version;
  };
  const Form forms[] = {
      {two_topics().to_json(), "false", proto::mq_version::ours},
      {*two_topics().to_compressed(), "true", proto::mq_version::ours},
      {two_topics().topic_config_wrapper.to_json(), "false", proto::mq_version::V3_0_11 - 1},
  };
  for (const Form& f : forms) {
    Answer a = co_await register_at(w, *w.peer, "1.1.1.1:1", f.body, f.compressed, f.version);
    EXPECT_EQ(code_of(a), 0) << remark(a);
    EXPECT_EQ(ext(a, "masterAddr"), "absent");
    Answer r = co_await route(w, "TBW102");
    EXPECT_NE(body_text(r).find(R"("readQueueNums":8)"), std::string::npos) << body_text(r);
    Task<Answer> u_call =
        w.call(RequestCode::UNREGISTER_BROKER,
               {{"brokerName", "b"}, {"brokerAddr", "1.1.1.1:1"}, {"clusterName", "c"}, {"brokerId", "0"}});
    Answer u = co_await u_call;
    EXPECT_EQ(code_of(u), 0);
    Answer gone = co_await route(w, "TBW102");
    EXPECT_EQ(code_of(gone), 17) << "at once";
  }
}
TEST(NameServer, TakesEveryFormOfRegistration) {
  simulate(registers);
}

Task<void> bounded(World& w) {
  Answer a = co_await register_plain(w);
  EXPECT_EQ(code_of(a), 0);
  EXPECT_LE(w.names.net_memory.limit(), uint64_t{1} << 30);
}
TEST(NameServer, PeersThatTakeNoAnswersHoldBoundedMemory) {
  simulate(bounded);
}

Task<void> bad_registrations(World& w) {
  Task<Answer> crc_call = w.call(RequestCode::REGISTER_BROKER,
                                 {{"brokerName", "b"},
                                  {"brokerAddr", "1.1.1.1:1"},
                                  {"clusterName", "c"},
                                  {"haServerAddr", ""},
                                  {"brokerId", "0"},
                                  {"bodyCrc32", "5"}},
                                 two_topics().to_json());
  Answer crc = co_await crc_call;
  EXPECT_EQ(code_of(crc), 1);
  EXPECT_EQ(remark(crc), "crc32 not match");
  for (std::string body : {std::string("{\"topicConfig"), std::string("nonsense")}) {
    Answer a = co_await register_at(w, *w.peer, "1.1.1.1:1", body, "false", proto::mq_version::ours);
    EXPECT_EQ(code_of(a), 1);
    Answer z = co_await register_at(w, *w.peer, "1.1.1.1:1", body, "true", proto::mq_version::ours);
    EXPECT_EQ(code_of(z), 1);
  }
  Task<Answer> missing_call = w.call(RequestCode::REGISTER_BROKER, {{"brokerName", "b"}});
  Answer missing = co_await missing_call;
  EXPECT_EQ(code_of(missing), 1);
  EXPECT_EQ(remark(missing), "the custom field <brokerAddr> is null");
  Task<Answer> invalid_call =
      w.call(RequestCode::UNREGISTER_BROKER,
             {{"brokerName", "b"}, {"brokerAddr", "1.1.1.1:1"}, {"clusterName", "c"}, {"brokerId", "x"}});
  Answer invalid = co_await invalid_call;
  EXPECT_EQ(code_of(invalid), 1);
  EXPECT_EQ(remark(invalid), "the custom field <brokerId> is invalid");
}
TEST(NameServer, RefusesBadRegistrations) {
  simulate(bad_registrations);
}

Task<void> unknown_codes(World& w) {
  for (int32_t code : {10, 36, 40'000, -1}) {
    Answer a = co_await w.peer->call(sim::request_frame(code, -5));
    EXPECT_EQ(code_of(a), 3);
    EXPECT_EQ(a->command.opaque, -5);
    EXPECT_EQ(remark(a), " request type " + std::to_string(code) + " not supported");
  }
}
TEST(NameServer, OtherCodesAreNotSupported) {
  simulate(unknown_codes);
}

Task<void> styles(World& w) {
  Answer a = co_await register_plain(w);
  EXPECT_EQ(code_of(a), 0);
  Answer now = co_await route(w, "T", 401);
  EXPECT_NE(body_text(now).find(R"({"0":"1.1.1.1:1"})"), std::string::npos) << body_text(now);
  Answer old = co_await route(w, "T", 400);
  EXPECT_NE(body_text(old).find(R"({0:"1.1.1.1:1"})"), std::string::npos) << body_text(old);
  Task<Answer> asked_call = w.call(RequestCode::GET_ROUTEINFO_BY_TOPIC,
                                   {{"topic", "T"}, {"acceptStandardJsonOnly", "true"}}, {}, 300);
  Answer asked = co_await asked_call;
  EXPECT_EQ(body_text(asked), body_text(now));
  Answer none = co_await route(w, "nope");
  EXPECT_EQ(code_of(none), 17);
  EXPECT_EQ(remark(none),
            "No topic route info in name server for the topic: nope\n"
            "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.");
}
TEST(NameServer, WritesRoutesAsTheClientReadsThem) {
  simulate(styles);
}

Task<void> zones(World& w) {
  for (const char* zone : {"z1", "z2"}) {
    std::string addr = std::string("1.1.1.1:") + zone[1];
    Task<Answer> a_call = w.call(RequestCode::REGISTER_BROKER,
                                 {{"brokerName", zone},
                                  {"brokerAddr", addr},
                                  {"clusterName", "c"},
                                  {"haServerAddr", ""},
                                  {"brokerId", "0"},
                                  {"__ZONE_NAME", zone}},
                                 two_topics().to_json());
    Answer a = co_await a_call;
    EXPECT_EQ(code_of(a), 0);
  }
  Task<Answer> a_call = w.call(RequestCode::GET_ROUTEINFO_BY_TOPIC,
                               {{"topic", "T"}, {"__ZONE_MODE", "true"}, {"__ZONE_NAME", "Z1"}});
  Answer a = co_await a_call;
  auto data = proto::TopicRouteData::parse(body_text(a));
  EXPECT_TRUE(data && data->broker_datas.size() == 1 && data->broker_datas[0].broker_name == "z1");
  EXPECT_TRUE(data && data->queue_datas.size() == 1);
  EXPECT_NE(body_text(a).find("{0:"), std::string::npos) << "bare, whatever the version";
}
TEST(NameServer, FiltersByZone) {
  simulate(zones);
}

Task<void> closes(World& w) {
  auto p = co_await Peer::connect(w.client_net, "10.0.0.1", 9876);
  Answer a = co_await register_at(w, *p, "1.1.1.1:1", two_topics().to_json(), "false", 513);
  EXPECT_EQ(code_of(a), 0);
  Answer there = co_await route(w, "T");
  EXPECT_EQ(code_of(there), 0);
  co_await p->close();
  co_await sleep_for(10 * ns_per_ms);
  Answer gone = co_await route(w, "T");
  EXPECT_EQ(code_of(gone), 17);
}
TEST(NameServer, ForgetsABrokerWhoseConnectionCloses) {
  simulate(closes);
}

// A connection that stays busy with other requests does not keep a silent broker.
Task<void> expires(World& w) {
  auto p = co_await Peer::connect(w.client_net, "10.0.0.1", 9876);
  Answer a = co_await register_at(w, *p, "1.1.1.1:1", two_topics().to_json(), "false", 513);
  EXPECT_EQ(code_of(a), 0);
  for (int i = 0; i < 11; i++) {
    co_await sleep_for(10 * ns_per_s);
    Answer busy = co_await p->call(w.request(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}));
    EXPECT_EQ(code_of(busy), 0);
  }
  Answer there = co_await route(w, "T");
  EXPECT_EQ(code_of(there), 0) << "after 110 s";
  co_await sleep_for(25 * ns_per_s);
  Answer gone = co_await route(w, "T");
  EXPECT_EQ(code_of(gone), 17) << "after 135 s";
  Answer dead = co_await p->next();
  EXPECT_TRUE(dead == nullptr && p->is_closed()) << "its connection is closed";
  co_await p->close();
}
TEST(NameServer, ForgetsASilentBroker) {
  simulate(expires);
}

Task<void> heartbeats(World& w) {
  Answer a = co_await register_plain(w);
  EXPECT_EQ(code_of(a), 0);
  for (int i = 0; i < 30; i++) {
    co_await sleep_for(10 * ns_per_s);
    Task<Answer> beat_call = w.call(RequestCode::BROKER_HEARTBEAT,
                                    {{"clusterName", "c"}, {"brokerAddr", "1.1.1.1:1"}, {"brokerName", "b"}});
    Answer beat = co_await beat_call;
    EXPECT_EQ(code_of(beat), 0);
  }
  Answer there = co_await route(w, "T");
  EXPECT_EQ(code_of(there), 0);
  Ext who = {{"clusterName", "c"}, {"brokerAddr", "1.1.1.1:1"}, {"brokerName", "b"}, {"brokerId", "0"}};
  proto::DataVersion same{0, 1000, 1}, other{0, 1001, 2};
  Answer q = co_await w.call(RequestCode::QUERY_DATA_VERSION, who, same.to_json());
  EXPECT_EQ(ext(q, "changed"), "false");
  EXPECT_EQ(body_text(q), same.to_json());
  Answer changed = co_await w.call(RequestCode::QUERY_DATA_VERSION, who, other.to_json());
  EXPECT_EQ(ext(changed, "changed"), "true");
  Task<Answer> unknown_call =
      w.call(RequestCode::QUERY_DATA_VERSION,
             {{"clusterName", "c"}, {"brokerAddr", "9.9.9.9:1"}, {"brokerName", "b"}, {"brokerId", "0"}},
             same.to_json());
  Answer unknown = co_await unknown_call;
  EXPECT_EQ(ext(unknown, "changed"), "true");
  EXPECT_EQ(body_text(unknown), "");
}
TEST(NameServer, HeartbeatsKeepABroker) {
  simulate(heartbeats);
}

// Who does not ask for rmqd's own way of registering is told nothing of it; who asks can go it.
Task<void> differences(World& w) {
  const std::string version = proto::DataVersion{0, 1000, 1}.to_json();
  const Ext who = {{"clusterName", "c"}, {"brokerAddr", "1.1.1.1:1"}, {"brokerName", "b"}, {"brokerId", "0"}};
  Answer plain = co_await w.call(RequestCode::QUERY_DATA_VERSION, who, version);
  EXPECT_EQ(ext(plain, "rmqdTakesDifferences"), "absent");
  Task<Answer> offer_call = w.call(RequestCode::QUERY_DATA_VERSION,
                                   {{"clusterName", "c"},
                                    {"brokerAddr", "1.1.1.1:1"},
                                    {"brokerName", "b"},
                                    {"brokerId", "0"},
                                    {"rmqdOffersDifferences", "true"}},
                                   version);
  Answer offer = co_await offer_call;
  EXPECT_EQ(ext(offer, "rmqdTakesDifferences"), "true");
  auto send = [&w](std::string_view name, std::string_view value, std::string_view parts, std::string body) {
    return w.call(RequestCode::REGISTER_BROKER,
                  {{"brokerName", "b"},
                   {"brokerAddr", "1.1.1.1:1"},
                   {"clusterName", "c"},
                   {"haServerAddr", "ha:1"},
                   {"brokerId", "0"},
                   {name, value},
                   {parts.empty() ? "x" : "rmqdParts", parts}},
                  body);
  };
  const std::string body = two_topics().to_json();
  struct Wrong {
    const char *name, *value, *parts;
  };
  const Wrong wrongs[] = {{"rmqdPart", "0", "2"},
                          {"rmqdPart", "3", "2"},
                          {"rmqdPart", "1", ""},
                          {"rmqdDifferenceOf", "nonsense", ""},
                          {"rmqdDifferenceOf", version.c_str(), "2"}};
  for (const Wrong& wrong : wrongs) {
    Answer a = co_await send(wrong.name, wrong.value, wrong.parts, body);
    EXPECT_EQ(code_of(a), 1) << wrong.name << " " << wrong.value;
    EXPECT_EQ(ext(a, "rmqdWantsWhole"), "absent");
  }
  const Wrong unfounded[] = {{"rmqdPart", "2", "2"}, {"rmqdDifferenceOf", version.c_str(), ""}};
  for (const Wrong& u : unfounded) {
    Answer a = co_await send(u.name, u.value, u.parts, body);
    EXPECT_EQ(code_of(a), 1);
    EXPECT_EQ(ext(a, "rmqdWantsWhole"), "true") << "the broker is not known here: " << u.name;
  }
  Answer first = co_await send("rmqdPart", "1", "2", body);
  Answer second = co_await send("rmqdPart", "2", "2", two_topics("Second").to_json());
  EXPECT_EQ(code_of(first) + code_of(second), 0);
  proto::RegisterBrokerBody more = two_topics("Third");
  more.topic_config_wrapper.data_version = {0, 2000, 2};
  Answer third = co_await send("rmqdDifferenceOf", version, "", more.to_json());
  EXPECT_EQ(code_of(third), 0) << remark(third);
  for (const char* t : {"T", "Second", "Third"}) {
    Answer there = co_await route(w, t);
    EXPECT_EQ(code_of(there), 0) << t;
  }
}
TEST(NameServer, TakesPartsAndDifferencesFromWhoAsks) {
  simulate(differences);
}

Task<void> topics(World& w) {
  Answer a = co_await register_plain(w);
  EXPECT_EQ(code_of(a), 0);
  Task<Answer> r_call = w.call(RequestCode::REGISTER_TOPIC_IN_NAMESRV, {{"topic", "N"}},
                               R"({"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2,)"
                               R"("topicSysFlag":1,"writeQueueNums":2}]})");
  Answer r = co_await r_call;
  EXPECT_EQ(code_of(r), 0);
  Answer units = co_await w.call(RequestCode::GET_UNIT_TOPIC_LIST, {});
  EXPECT_EQ(body_text(units), R"({"topicList":["N"]})");
  Task<Answer> d_call = w.call(RequestCode::DELETE_TOPIC_IN_NAMESRV, {{"topic", "N"}});
  Answer d = co_await d_call;
  EXPECT_EQ(code_of(d), 0);
  Answer all = co_await w.call(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {});
  auto list = proto::TopicList::parse(body_text(all));
  EXPECT_EQ(list->topic_list.size(), 2u) << body_text(all);
  Task<Answer> of_c_call = w.call(RequestCode::GET_TOPICS_BY_CLUSTER, {{"cluster", "c"}});
  Answer of_c = co_await of_c_call;
  EXPECT_EQ(proto::TopicList::parse(body_text(of_c))->topic_list.size(), 2u);
  Task<Answer> of_x_call = w.call(RequestCode::GET_TOPICS_BY_CLUSTER, {{"cluster", "x"}});
  Answer of_x = co_await of_x_call;
  EXPECT_EQ(body_text(of_x), R"({"topicList":[]})");
  Answer system = co_await w.call(RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_NS, {});
  EXPECT_EQ(body_text(system), R"({"brokerAddr":"1.1.1.1:1","topicList":["b","c"]})");
  Answer cluster = co_await w.call(RequestCode::GET_BROKER_CLUSTER_INFO, {});
  EXPECT_EQ(body_text(cluster),
            R"({"brokerAddrTable":{"b":{"brokerAddrs":{0:"1.1.1.1:1"},"brokerName":"b","cluster":"c",)"
            R"("enableActingMaster":false}},"clusterAddrTable":{"c":["b"]}})");
  Task<Answer> members_call =
      w.call(RequestCode::GET_BROKER_MEMBER_GROUP, {{"clusterName", "c"}, {"brokerName", "b"}});
  Answer members = co_await members_call;
  EXPECT_EQ(body_text(members),
            R"({"brokerMemberGroup":{"brokerAddrs":{0:"1.1.1.1:1"},"brokerName":"b","cluster":"c"}})");
  Task<Answer> wipe_call = w.call(RequestCode::WIPE_WRITE_PERM_OF_BROKER, {{"brokerName", "b"}});
  Answer wipe = co_await wipe_call;
  EXPECT_EQ(ext(wipe, "wipeTopicCount"), "2");
  Task<Answer> add_call = w.call(RequestCode::ADD_WRITE_PERM_OF_BROKER, {{"brokerName", "b"}});
  Answer add = co_await add_call;
  EXPECT_EQ(ext(add, "addTopicCount"), "2");
}
TEST(NameServer, TopicsAndCluster) {
  simulate(topics);
}

Task<void> kv(World& w) {
  Ext item = {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", "T"}, {"value", "b:4"}};
  Answer a = co_await register_plain(w);
  Answer plain = co_await route(w, "T");
  EXPECT_EQ(body_text(plain).find("orderTopicConf"), std::string::npos);
  Answer put = co_await w.call(RequestCode::PUT_KV_CONFIG, item);
  EXPECT_EQ(code_of(put), 0);
  Answer ordered = co_await route(w, "T");
  EXPECT_NE(body_text(ordered).find(R"("orderTopicConf":"b:4")"), std::string::npos) << body_text(ordered);
  Answer again = co_await register_plain(w);
  EXPECT_EQ(body_text(again), R"({"table":{"T":"b:4"}})")
      << "brokers are told, also by an unchanged registration";
  Task<Answer> get_call =
      w.call(RequestCode::GET_KV_CONFIG, {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", "T"}});
  Answer get = co_await get_call;
  EXPECT_EQ(ext(get, "value"), "b:4");
  Task<Answer> list_call =
      w.call(RequestCode::GET_KVLIST_BY_NAMESPACE, {{"namespace", "ORDER_TOPIC_CONFIG"}});
  Answer list = co_await list_call;
  EXPECT_EQ(body_text(list), R"({"table":{"T":"b:4"}})");
  // Acknowledged is on disk, whatever happens now.
  auto image = w.disk.crash_image(sim::CrashFate::all_lost(1));
  EXPECT_NE(image.read_file("/kv.json").value_or("").find("b:4"), std::string::npos);
  Task<Answer> del_call =
      w.call(RequestCode::DELETE_KV_CONFIG, {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", "T"}});
  Answer del = co_await del_call;
  EXPECT_EQ(code_of(del), 0);
  Task<Answer> none_call =
      w.call(RequestCode::GET_KV_CONFIG, {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", "T"}});
  Answer none = co_await none_call;
  EXPECT_EQ(code_of(none), 22);
  EXPECT_EQ(remark(none), "No config item, Namespace: ORDER_TOPIC_CONFIG Key: T");
  Answer after = co_await route(w, "T");
  EXPECT_EQ(body_text(after), body_text(plain));
  Task<Answer> unknown_call = w.call(RequestCode::GET_KVLIST_BY_NAMESPACE, {{"namespace", "X"}});
  Answer unknown = co_await unknown_call;
  EXPECT_EQ(code_of(unknown), 22);
}
TEST(NameServer, KvConfigIsDurableAndShowsInRoutes) {
  NamesrvConfig c;
  c.kvConfigPath = "/kv.json";
  c.orderMessageEnable = true;
  simulate(kv, c);
}

Task<void> config(World& w) {
  auto update = [&](std::string_view body) { return w.call(RequestCode::UPDATE_NAMESRV_CONFIG, {}, body); };
  Answer before = co_await w.call(RequestCode::GET_NAMESRV_CONFIG, {});
  EXPECT_NE(body_text(before).find("\nenableTopicList=true\n"), std::string::npos) << body_text(before);
  Answer off = co_await update("#x\nenableTopicList = false\nenableAllTopicList:false\nsomeJavaKey=1\n");
  EXPECT_EQ(code_of(off), 0) << remark(off);
  for (RequestCode c : {RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode::GET_UNIT_TOPIC_LIST}) {
    Answer a = co_await w.call(c, {});
    EXPECT_EQ(code_of(a), 1);
    EXPECT_EQ(remark(a), "disable");
  }
  for (const char* key :
       {"kvConfigPath=/x", "configBlackList=", "configStorePath=/x", "rocketmqHome=/x", "logLevel=debug"}) {
    Answer a = co_await update("enableTopicList=true\n" + std::string(key));
    EXPECT_EQ(code_of(a), 16) << key;
    EXPECT_EQ(remark(a), "Can not update config in black list.");
  }
  Answer fixed = co_await update("listenPort=1");
  EXPECT_EQ(code_of(fixed), 1) << "needs a restart";
  Answer same = co_await update("listenPort=9876");
  EXPECT_EQ(code_of(same), 0) << "no change";
  Answer wrong = co_await update("enableTopicList=true\nwaitSecondsForService=-3\n");
  EXPECT_EQ(code_of(wrong), 29);
  EXPECT_FALSE(w.names.config().enableTopicList) << "all or nothing";
  auto kept = co_await store::read_whole(w.disk, "/var/lib/rmq-namesrvd/namesrv.toml");
  EXPECT_TRUE(kept);
  if (kept) EXPECT_NE(kept->find("\nenableTopicList = false\n"), std::string::npos) << *kept;
}
TEST(NameServer, ConfigOfItsOwn) {
  NamesrvConfig c;
  c.configBlackList = "some;logLevel";
  simulate(config, c);
}

Task<void> not_ready(World& w) {
  Answer a = co_await register_plain(w);
  Answer early = co_await route(w, "T");
  EXPECT_EQ(code_of(early), 1);
  EXPECT_EQ(remark(early), "name server not ready");
  co_await sleep_for(46 * ns_per_s);
  Answer late = co_await route(w, "T");
  EXPECT_EQ(code_of(late), 0);
}
TEST(NameServer, MayWaitBeforeItServes) {
  NamesrvConfig c;
  c.needWaitForService = true;
  simulate(not_ready, c);
}

Task<void> order_of_changes(World& w) {
  Answer a = co_await register_plain(w);
  // In one write: what is asked last sees all that was changed before.
  std::string frames;
  for (int i = 0; i < 50; i++) {
    std::string topic = "P" + std::to_string(i);
    auto b = two_topics(topic);
    b.topic_config_wrapper.topic_config_table.erase("TBW102");
    b.topic_config_wrapper.data_version = {0, 1001 + i, 2 + i};
    frames += w.request(RequestCode::REGISTER_BROKER,
                        {{"brokerName", "b"},
                         {"brokerAddr", "1.1.1.1:1"},
                         {"clusterName", "c"},
                         {"haServerAddr", ""},
                         {"brokerId", "0"}},
                        b.to_json(), proto::mq_version::ours, proto::flag_oneway);
    frames += w.request(RequestCode::GET_ROUTEINFO_BY_TOPIC, {{"topic", topic}});
  }
  bool sent = co_await w.peer->send(frames);
  EXPECT_TRUE(sent);
  for (int i = 0; i < 50; i++) {
    Answer r = co_await w.peer->next();
    EXPECT_EQ(code_of(r), 0) << i;
  }
}
TEST(NameServer, RequestsTakeEffectInTheirOrder) {
  simulate(order_of_changes);
}

// A broker that hears of the new smallest id.
struct FakeBroker : Service {
  std::vector<std::string> heard;
  Task<void> serve(Request& r) override {
    EXPECT_EQ(r.command.request_code(), RequestCode::NOTIFY_MIN_BROKER_ID_CHANGE);
    heard.push_back(std::string(r.command.ext.value_or("minBrokerId", "?")) + " " +
                    std::string(r.command.ext.value_or("minBrokerAddr", "?")) + " " +
                    std::string(r.command.ext.value_or("offlineBrokerAddr", "-")));
    r.reply(ResponseCode::SUCCESS);
    co_return;
  }
};
Task<void> min_id(World& w) {
  FakeBroker slave_service;
  Server slave(w.client_net, slave_service);
  auto listening = co_await slave.listen("10.0.0.2", 1001);
  EXPECT_TRUE(listening);
  auto master = co_await Peer::connect(w.client_net, "10.0.0.1", 9876);
  for (auto [id, addr, peer] :
       {std::tuple{"1", "10.0.0.2:1001", w.peer.get()}, std::tuple{"0", "10.0.0.2:1000", master.get()}}) {
    Task<Answer> a_call = peer->call(w.request(RequestCode::REGISTER_BROKER,
                                               {{"brokerName", "b"},
                                                {"brokerAddr", addr},
                                                {"clusterName", "c"},
                                                {"haServerAddr", ""},
                                                {"brokerId", id},
                                                {"enableActingMaster", "true"}},
                                               two_topics().to_json()));
    Answer a = co_await a_call;
    EXPECT_EQ(code_of(a), 0);
  }
  co_await sleep_for(ns_per_s);
  co_await master->close();
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(slave_service.heard,
            (std::vector<std::string>{"0 10.0.0.2:1000 -", "1 10.0.0.2:1001 10.0.0.2:1000"}));
  co_await slave.stop();
}
TEST(NameServer, TellsWhenTheSmallestIdChanges) {
  NamesrvConfig c;
  c.notifyMinBrokerIdChanged = true;
  simulate(min_id, c);
}

}  // namespace
}  // namespace rmq::namesrv

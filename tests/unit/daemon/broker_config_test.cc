// Changes of the broker's configuration at run time: what is applied, what is kept and where, what is
// refused.
#include <cerrno>

#include "broker_world.h"
#include "store/whole_file.h"

namespace rmq::broker {
namespace {

// A disk on which one directory cannot be written, as /etc below systemd's ProtectSystem=strict.
class PartlyReadOnly : public Disk {
 public:
  PartlyReadOnly(Disk& below, std::string read_only) : below_(below), read_only_(std::move(read_only)) {}
  Task<Result<std::unique_ptr<File>>> open(std::string path, OpenHow how) override {
    if (how.write && path.starts_with(read_only_)) return refuse();
    return below_.open(std::move(path), how);
  }
  Task<Result<void>> make_dirs(std::string path) override { return below_.make_dirs(std::move(path)); }
  Task<Result<std::vector<DirEntry>>> list(std::string path) override { return below_.list(std::move(path)); }
  Task<Result<void>> remove(std::string path) override { return below_.remove(std::move(path)); }
  Task<Result<void>> rename(std::string a, std::string b) override {
    return below_.rename(std::move(a), std::move(b));
  }
  Task<Result<void>> sync_dir(std::string path) override { return below_.sync_dir(std::move(path)); }
  Task<Result<DiskSpace>> space(std::string path) override { return below_.space(std::move(path)); }

 private:
  static Task<Result<std::unique_ptr<File>>> refuse() { co_return fail_errno(EROFS, "open"); }
  Disk& below_;
  const std::string read_only_;
};

const std::string etc_file = "/etc/rmqd/rmqd.toml";
const std::string own_file = "/store/config/rmqd.toml";
constexpr const char* text =
    "# The broker of the warehouse.\n"
    "brokerName = \"b\"\n"
    "brokerIP1 = \"10.0.0.1\"\n"
    "namesrvAddr = \"10.0.0.1:9876\"\n"
    "storePathRootDir = \"/store\"  # on the big disk\n"
    "fileReservedTime = 48  # two days, says the auditor\n"
    "#maxMessageSize = 4194304\n";

Task<std::string> content(Disk& disk, std::string path) {
  auto read = co_await store::read_whole(disk, std::move(path));
  co_return read ? *read : "not there";
}

Task<Answer> update(World& w, std::string_view properties) {
  return w.call(RequestCode::UPDATE_BROKER_CONFIG, {}, properties);
}
Task<void> with_broker(sim::SimNetwork& network, Disk& disk, Disk& writable, Scenario steps) {
  auto made = co_await writable.make_dirs("/etc/rmqd");
  EXPECT_TRUE(made);
  auto written = co_await store::write_whole(writable, etc_file, text);
  EXPECT_TRUE(written);
  ConfigSource source{etc_file, {"traceOn=false"}, false};
  ConfigErrors errors;
  const BrokerConfig config = broker_config_of(source, text, "", errors);
  EXPECT_TRUE(errors.empty());
  co_await run_world(network, disk, config, steps, source);
}

void run(Scenario steps, bool read_only) {
  sim::SimLoop loop(1);
  sim::SimNetwork network(loop);
  sim::SimDisk disk(loop, {});
  PartlyReadOnly partly(disk, "/etc");
  loop.run(with_broker(network, read_only ? static_cast<Disk&>(partly) : disk, disk, steps));
}

Task<void> kept_with_comments(World& w) {
  auto a = co_await update(w, "fileReservedTime=24\nmaxMessageSize=1000000\nnobodyKnows=1\n");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.config.fileReservedTime, 24);
  std::string now = co_await content(w.disk, etc_file);
  std::string want(text);
  want.replace(want.find("= 48"), 4, "= 24");
  EXPECT_EQ(now, want + "maxMessageSize = 1000000\n");
  testing::internal::CaptureStderr();
  a = co_await update(w, "flushDiskType=ASYNC_FLUSH\ntransactionCheckMax=5\n");
  std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("flushDiskType"), std::string::npos) << "that it waits for a restart";
  EXPECT_EQ(told.find("a request was refused"), std::string::npos) << told;
  EXPECT_EQ(code_of(a), 1) << "one of them needs a restart";
  EXPECT_EQ(remark(a), "flushDiskType: kept in /etc/rmqd/rmqd.toml, needs a restart to take effect");
  EXPECT_EQ(w.config.flushDiskType, "SYNC_FLUSH");
  EXPECT_EQ(w.config.transactionCheckMax, 5);
  a = co_await update(w, "flushDiskType=SYNC_FLUSH\n");
  EXPECT_EQ(code_of(a), 0) << "it is so now, and is to be so after the next start";
  now = co_await content(w.disk, etc_file);
  EXPECT_NE(now.find("flushDiskType = \"SYNC_FLUSH\"\n"), std::string::npos) << now;
  a = co_await update(w, "traceOn=true\n");
  EXPECT_EQ(code_of(a), 0);
  EXPECT_EQ(remark(a), "traceOn: set by -o on the command line, which wins at the next start");
}
TEST(BrokerConfigAtRunTime, IsKeptInTheFileWithItsComments) {
  run(kept_with_comments, false);
}

Task<void> refused(World& w) {
  for (const char* wrong :
       {"fileReservedTime=24\nbrokerConfigPath=/x\n", "fileReservedTime=24\nconfigBlackList=\n",
        "fileReservedTime=24\nmaxMessageSize=many\n", "fileReservedTime=24\ndeleteWhen=25\n",
        "fileReservedTime=24\nmappedFileSizeCommitLog=4097\n"}) {
    auto a = co_await update(w, wrong);
    EXPECT_NE(code_of(a), 0) << wrong;
    EXPECT_EQ(w.config.fileReservedTime, 48) << wrong;
    std::string now = co_await content(w.disk, etc_file);
    EXPECT_EQ(now, text) << wrong;
  }
  // Every message would have it among its properties.
  for (const char* wrong : {"a\\u0001b", "a\\nb"}) {
    std::string properties = "regionId=" + std::string(wrong) + "\n";
    auto a = co_await update(w, properties);
    EXPECT_EQ(code_of(a), 29) << wrong;
  }
  const std::string long_one = "regionId=" + std::string(256, 'x') + "\n";
  auto a = co_await update(w, long_one);
  EXPECT_EQ(code_of(a), 29) << remark(a);
  a = co_await update(w, "msgTraceTopicName=a b\n");
  EXPECT_EQ(code_of(a), 29) << remark(a);
  std::string now = co_await content(w.disk, etc_file);
  EXPECT_EQ(now, text);
  a = co_await w.call(RequestCode::GET_BROKER_CONFIG, {});
  a = co_await update(w, body_text(a));
  EXPECT_NE(code_of(a), 0) << "configBlackList is among it";
}
TEST(BrokerConfigAtRunTime, WhatIsRefusedChangesNothing) {
  run(refused, false);
}

Task<void> in_its_own_file(World& w) {
  auto a = co_await update(w, "fileReservedTime=24\n");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  EXPECT_EQ(w.config.fileReservedTime, 24);
  std::string etc = co_await content(w.disk, etc_file);
  EXPECT_EQ(etc, text);
  std::string own = co_await content(w.disk, own_file);
  EXPECT_NE(own.find("\nfileReservedTime = 24\n"), std::string::npos) << own;
  ConfigErrors errors;
  const BrokerConfig next = broker_config_of(w.broker.config_source, etc, own, errors);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(next.fileReservedTime, 24);
}
TEST(BrokerConfigAtRunTime, IsKeptBesideTheStoreWhenTheFileCannotBeWritten) {
  run(in_its_own_file, true);
}

// Whoever is told by the name server has it without waiting for the next period.
Task<void> seen_by_clients(World& w) {
  auto a = co_await w.send("T", "x");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  auto perm_at_namesrv = [&w] {
    const auto route = w.names.routes().route_data("T", "");
    return !route || route->queue_datas.empty() ? -1 : route->queue_datas.front().perm;
  };
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(perm_at_namesrv(), 6);
  a = co_await update(w, "brokerPermission=4\n");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  co_await sleep_for(ns_per_s);
  EXPECT_EQ(perm_at_namesrv(), 4);
  a = co_await update(w, "brokerPermission=6\nautoCreateTopicEnable=false\n");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.send("U", "x");
  EXPECT_EQ(code_of(a), 17);
  a = co_await update(w, "autoCreateTopicEnable=true\ndefaultTopicQueueNums=2\n");
  a = co_await w.send("U", "x");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  const proto::TopicConfig* c = w.broker.topics.find("U");
  EXPECT_TRUE(c != nullptr && c->write_queue_nums == 2);
}
TEST(BrokerConfigAtRunTime, NameServersLearnWhatConcernsThem) {
  run(seen_by_clients, false);
}

Task<void> transfer_limit(World& w) {
  for (int i = 0; i < 5; i++) co_await w.send("T", "x");
  auto a = co_await w.pull("T", 0);
  EXPECT_EQ(records(a).size(), 5u);
  a = co_await update(w, "maxTransferCountOnMessageInMemory=2\n");
  EXPECT_EQ(code_of(a), 0) << remark(a);
  a = co_await w.pull("T", 0);
  EXPECT_EQ(records(a).size(), 2u);
}
TEST(BrokerConfigAtRunTime, LimitsOfAnswersHoldAtOnce) {
  run(transfer_limit, false);
}

}  // namespace
}  // namespace rmq::broker

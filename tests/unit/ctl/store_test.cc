// rmqctl store: reports, exit codes and dumps of a small store that is written here byte by byte.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/crc.h"
#include "ctl/program.h"
#include "json.h"
#include "proto/properties.h"
#include "proto/record.h"
#include "ran.h"
#include "store/format.h"

namespace rmq::ctl {
namespace {

namespace fs = std::filesystem;

struct Json {
  explicit Json(const std::string& text) { EXPECT_TRUE(document.parse(text)) << text; }
  int64_t number(const std::string& name) { return document.integer("/" + name); }
  std::string text(const std::string& name) { return document.text("/" + name); }
  JsonDocument document;
};

size_t lines_of(const std::string& s) {
  return static_cast<size_t>(std::count(s.begin(), s.end(), '\n'));
}

class Store : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path().string() + "/rmqctl-store-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    put("Orders", 0, "first", "red", "k1 k2");
    put("Orders", 1, "second", "", "");
    put("Other", 0, "third\n", "blue", "");
    log_.resize(65'536);
    write("commitlog/00000000000000000000", log_);
    for (auto& [name, units] : queues_) {
      units.resize(20'000);
      write("consumequeue/" + name + "/00000000000000000000", units);
    }
    write("config/topics.json", R"({"dataVersion":{"counter":1},"topicConfigTable":{"Orders":{}}})");
    write("config/consumerOffset.json", R"({"offsetTable":{"Orders@g":{0:1,1:0}}})");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& topic, int32_t queue, std::string_view body, std::string_view tag,
           std::string_view keys) {
    std::string properties;
    if (!tag.empty()) proto::append_property(properties, proto::prop::TAGS, tag);
    if (!keys.empty()) proto::append_property(properties, proto::prop::KEYS, keys);
    std::string& units = queues_[topic + "/" + std::to_string(queue)];
    proto::RecordFields f;
    f.topic = topic;
    f.body = as_bytes(body);
    f.properties = properties;
    f.queue_id = queue;
    f.queue_offset = static_cast<int64_t>(units.size() / store::unit_bytes);
    f.physical_offset = static_cast<int64_t>(log_.size());
    f.born_timestamp_ms = f.store_timestamp_ms = 1'700'000'000'000;
    std::string record(proto::record_size(f), '\0');
    proto::encode_record(f, {reinterpret_cast<std::byte*>(record.data()), record.size()});
    std::string unit(store::unit_bytes, '\0');
    store::encode_unit(reinterpret_cast<std::byte*>(unit.data()),
                       {f.physical_offset, static_cast<int32_t>(record.size()), proto::tags_code_of(tag)});
    units += unit;
    log_ += record;
  }
  void write(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name, std::ios::binary) << content;
  }
  void flip(size_t at) {
    log_[at] = static_cast<char>(log_[at] ^ 1);
    write("commitlog/00000000000000000000", log_);
  }

  std::string root_, log_;
  std::map<std::string, std::string> queues_;
};

TEST_F(Store, CleanIsZero) {
  Ran r = run({"store", "check", root_});
  EXPECT_EQ(r.exit, 0) << r.out << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_NE(r.out.find("3 records"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("Result          clean"), std::string::npos) << r.out;
  Ran j = run({"store", "check", root_, "--json"});
  EXPECT_EQ(j.exit, 0);
  Json json(j.out);
  EXPECT_EQ(json.text("store"), root_);
  EXPECT_EQ(json.number("records"), 3);
  EXPECT_EQ(json.number("units"), 3);
  EXPECT_EQ(json.number("configFiles"), 2);
  EXPECT_EQ(json.number("damages"), 0);
}

TEST_F(Store, DamageIsTwoAndNamed) {
  flip(88);  // the first body
  Ran r = run({"store", "check", root_});
  EXPECT_EQ(r.exit, 2);
  EXPECT_EQ(lines_of(r.err), 1u) << r.err;
  EXPECT_TRUE(r.err.starts_with("rmqctl: " + root_ + " is damaged")) << r.err;
  EXPECT_NE(r.out.find("damage  log_record   commitlog/00000000000000000000 @0: record body CRC"),
            std::string::npos)
      << r.out;
  Ran j = run({"store", "check", root_, "--json"});
  EXPECT_EQ(j.exit, 2);
  EXPECT_EQ(Json(j.out).number("damages"), 1);
}

TEST_F(Store, BrokenConfigurationIsDamage) {
  write("config/topics.json", "{\"topicConfigTable\":");
  Ran r = run({"store", "check", root_});
  EXPECT_EQ(r.exit, 2);
  EXPECT_NE(r.out.find("damage  config       config/topics.json"), std::string::npos) << r.out;
}

// A broker that was killed right after it deleted a topic: its topics.json has it, its log of changes not.
TEST_F(Store, TopicsAreThoseOfTheFileAndItsLog) {
  const std::string file = R"({"dataVersion":{"counter":1},"topicConfigTable":{"Orders":{},"Other":{}}})";
  write("config/topics.json", file);
  fs::remove_all(root_ + "/consumequeue/Orders");
  EXPECT_EQ(run({"store", "check", root_}).exit, 2);
  const auto line = [](const std::string& change) {
    return fmt::format("{:08x} {}\n", crc32(as_bytes(change)), change);
  };
  const std::string deleted = line("D 1700000000000 2 Orders");
  write("config/topics.json.log", line("J 00000000 12") + deleted);
  EXPECT_EQ(run({"store", "check", root_}).exit, 2) << "of another file";
  const std::string begin = line(fmt::format("J {:08x} {}", crc32(as_bytes(file)), file.size()));
  write("config/topics.json.log", deleted + begin);
  EXPECT_EQ(run({"store", "check", root_}).exit, 2) << "of before that file";
  write("config/topics.json.log", begin + deleted);
  Ran r = run({"store", "check", root_});
  EXPECT_EQ(r.exit, 0) << r.out << r.err;
  write("config/topics.json.log", begin + deleted + line(R"(T 1700000000000 3 {"topicName":"Orders"})"));
  EXPECT_EQ(run({"store", "check", root_}).exit, 2) << "made anew";
}

TEST_F(Store, UnreadableIs66) {
  for (const char* verb : {"check", "dump"}) {
    Ran none = run({"store", verb, root_ + "/nothing"});
    EXPECT_EQ(none.exit, 66) << verb;
    EXPECT_EQ(lines_of(none.err), 1u) << none.err;
  }
  write("consumequeue_rocksdb/CURRENT", "MANIFEST-000001\n");
  for (const char* verb : {"check", "dump"}) {
    Ran foreign = run({"store", verb, root_});
    EXPECT_EQ(foreign.exit, 66) << verb;
    EXPECT_NE(foreign.err.find("RocksDB"), std::string::npos) << foreign.err;
  }
}

TEST_F(Store, DumpShowsRecords) {
  Ran r = run({"store", "dump", root_});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(lines_of(r.out), 3u) << r.out;
  EXPECT_NE(r.out.find("Orders/0 @0"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("[red] (k1 k2) first\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("third\\n\n"), std::string::npos) << r.out;
  EXPECT_EQ(lines_of(run({"store", "dump", root_, "--topic", "Orders"}).out), 2u);
  EXPECT_EQ(lines_of(run({"store", "dump", root_, "--topic", "Orders", "--queue", "1"}).out), 1u);
  EXPECT_EQ(lines_of(run({"store", "dump", root_, "--count", "1"}).out), 1u);
  Ran from = run({"store", "dump", root_, "--from", "1", "--count", "1"});
  EXPECT_EQ(from.exit, 0) << "it begins at the next record";
  EXPECT_NE(from.out.find("second"), std::string::npos) << from.out;
  EXPECT_EQ(run({"store", "dump", root_, "--from", "65536"}).exit, 1);
  EXPECT_EQ(run({"store", "dump", root_, "--from", "x"}).exit, 64);
  Ran j = run({"store", "dump", root_, "--json", "--count", "1"});
  EXPECT_EQ(Json(j.out).text("body"), "first");
  EXPECT_EQ(Json(j.out).text("topic"), "Orders");
}

TEST_F(Store, DumpPassesOverDamage) {
  flip(88);
  Ran r = run({"store", "dump", root_});
  EXPECT_EQ(r.exit, 2);
  EXPECT_EQ(lines_of(r.out), 2u) << r.out;
  EXPECT_NE(r.err.find("no valid record from 0 to "), std::string::npos) << r.err;
}

TEST_F(Store, DumpShowsUnits) {
  Ran r = run({"store", "dump", root_, "--consume-queue", "Orders/0"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(lines_of(r.out), 1u) << r.out;
  EXPECT_NE(r.out.find("112785"), std::string::npos) << "the hash of red: " << r.out;
  Json json(run({"store", "dump", root_, "--consume-queue", "Orders/1", "--json"}).out);
  EXPECT_EQ(json.number("queueOffset"), 0);
  EXPECT_EQ(run({"store", "dump", root_, "--consume-queue", "Orders/7"}).exit, 1);
  EXPECT_EQ(run({"store", "dump", root_, "--consume-queue", "Orders"}).exit, 64);
}

TEST_F(Store, ImportsConfiguration) {
  write("broker.conf", "brokerName=b\nlistenPort=10931\nsendMessageThreadPoolNums=4\n");
  Ran r = run({"store", "import-config", root_ + "/broker.conf"});
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_NE(r.out.find("\nlistenPort = 10931\n"), std::string::npos) << r.out;
  std::string to = root_ + "/rmqd.toml";
  Ran w = run({"store", "import-config", root_ + "/broker.conf", "--output", to});
  EXPECT_EQ(w.exit, 0) << w.err;
  EXPECT_EQ(w.out, "");
  EXPECT_EQ(fs::file_size(to), r.out.size());
  EXPECT_EQ(run({"store", "import-config", root_ + "/broker.conf", "--output", to}).exit, 1)
      << "nothing is overwritten";
  write("broker.conf", "storeType=defaultRocksDB\n");
  Ran refused = run({"store", "import-config", root_ + "/broker.conf"});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_NE(refused.err.find("refused: storeType = defaultRocksDB"), std::string::npos) << refused.err;
  EXPECT_EQ(run({"store", "import-config", root_ + "/none"}).exit, 66);
}

}  // namespace
}  // namespace rmq::ctl

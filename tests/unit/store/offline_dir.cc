#include "offline_dir.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace rmq::store::test {

namespace fs = std::filesystem;

OfflineDir::OfflineDir(const Machine& m) {
  std::string pattern = fs::temp_directory_path().string() + "/rmq-offline-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  root_ = pattern;
  for (const std::string& p : m.image.files())
    if (p.starts_with("/store/")) replace(p.substr(7), m.file(p.substr(7)));
}

OfflineDir::~OfflineDir() {
  fs::remove_all(root_);
}

std::string OfflineDir::read(const std::string& name) const {
  std::ifstream f(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

void OfflineDir::replace(const std::string& name, std::string_view content) const {
  fs::create_directories(fs::path(path(name)).parent_path());
  std::ofstream f(path(name), std::ios::binary | std::ios::trunc);
  f.write(content.data(), static_cast<std::streamsize>(content.size()));
  EXPECT_TRUE(f.good()) << name;
}

void OfflineDir::write(const std::string& name, uint64_t at, std::string_view bytes) const {
  std::fstream f(path(name), std::ios::binary | std::ios::in | std::ios::out);
  f.seekp(static_cast<std::streamoff>(at));
  f.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(f.good()) << name;
}

void OfflineDir::flip(const std::string& name, uint64_t at) const {
  std::string all = read(name);
  ASSERT_LT(at, all.size()) << name;
  char c = static_cast<char>(all[at] ^ 1);
  write(name, at, {&c, 1});
}

void OfflineDir::cut(const std::string& name, uint64_t bytes) const {
  fs::resize_file(path(name), bytes);
}
void OfflineDir::remove(const std::string& name) const {
  EXPECT_GT(fs::remove_all(path(name)), 0u) << name;
}
void OfflineDir::rename(const std::string& from, const std::string& to) const {
  fs::rename(path(from), path(to));
}

uint64_t OfflineDir::hash() const {
  std::set<std::string> names;
  for (const auto& e : fs::recursive_directory_iterator(root_)) names.insert(e.path().string());
  uint64_t h = 0;
  for (const std::string& n : names)
    h = h * 31 + std::hash<std::string>()(n + (fs::is_directory(n) ? "" : read(n.substr(root_.size() + 1))));
  return h;
}

offline::CheckOptions options_of(const OfflineDir& d) {
  offline::CheckOptions o;
  o.root = d.root();
  o.index_layout = {.slots = 1000, .entries = 10'000};
  return o;
}

Result<offline::CheckReport> check(const OfflineDir& d, TestHelper& helper) {
  return offline::check_store(options_of(d), helper);
}

offline::CheckReport checked(const OfflineDir& d) {
  TestHelper helper;
  helper.topics = {"T", "U", "Delayed", "SCHEDULE_TOPIC_XXXX"};
  auto r = check(d, helper);
  EXPECT_TRUE(r) << to_string(r.error());
  return r ? std::move(*r) : offline::CheckReport(1);
}

std::string text_of(const offline::CheckReport& r) {
  std::string out;
  for (const offline::Finding& f : r.findings.kept())
    out += std::string(f.severity == offline::Severity::damage ? "damage " : "note ") +
           offline::name_of(f.kind) + " " + f.path + " @" + std::to_string(f.offset) + ": " + f.text + "\n";
  return out;
}

}  // namespace rmq::store::test

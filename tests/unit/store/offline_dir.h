// A store that a simulated machine has written, as files of a temporary directory, for the offline tools.
#pragma once

#include <set>
#include <string>

#include "machine.h"
#include "store/offline/check.h"

namespace rmq::store::test {

class OfflineDir {
 public:
  explicit OfflineDir(const Machine& m);
  ~OfflineDir();
  OfflineDir(const OfflineDir&) = delete;
  OfflineDir& operator=(const OfflineDir&) = delete;

  const std::string& root() const { return root_; }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string read(const std::string& name) const;
  void write(const std::string& name, uint64_t at, std::string_view bytes) const;  // makes the file, too
  void replace(const std::string& name, std::string_view content) const;
  void flip(const std::string& name, uint64_t at) const;  // one bit
  void cut(const std::string& name, uint64_t bytes) const;
  void remove(const std::string& name) const;  // a file, or a directory with everything in it
  void rename(const std::string& from, const std::string& to) const;
  uint64_t hash() const;  // of all names and contents

 private:
  std::string root_;
};

// Judges configuration files by their first character; topics.json has the topics of `topics`.
class TestHelper : public offline::CheckHelper {
 public:
  bool on_progress(uint64_t done, uint64_t all) override {
    last_done = done;
    last_all = all;
    return !stop;
  }
  std::string judge_config(std::string_view, std::string_view content) override {
    return content.starts_with('{') ? "" : "it is no JSON";
  }
  void topics_changed(std::span<const std::string>) override {}
  bool topic_exists(std::string_view name) override { return topics.contains(std::string(name)); }
  std::set<std::string> topics;
  bool stop = false;
  uint64_t last_done = 0, last_all = 0;
};

offline::CheckOptions options_of(const OfflineDir& d);  // with the sizes that a Machine has
Result<offline::CheckReport> check(const OfflineDir& d, TestHelper& helper);
// The report of a check that must run; its findings as text, for messages.
offline::CheckReport checked(const OfflineDir& d);
std::string text_of(const offline::CheckReport& r);

}  // namespace rmq::store::test

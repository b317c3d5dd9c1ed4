// A simulated machine for the tests of the store: one disk image that lives from run to run. Each run opens
// the store on it, lets a test do something, and stops in order or is cut off.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/record.h"
#include "sim/sim_disk.h"
#include "sim/sim_loop.h"
#include "store/message_store.h"

namespace rmq::store::test {

using sim::CrashFate;
using sim::DiskImage;
using sim::DiskPlan;
using sim::SimDisk;
using sim::SimLoop;

// In a coroutine, where ASSERT_* cannot return.
#define CO_ASSERT(cond)               \
  do {                                \
    bool co_assert_ = (cond);         \
    EXPECT_TRUE(co_assert_) << #cond; \
    if (!co_assert_) co_return;       \
  } while (0)

enum class End : uint8_t {
  stop,        // shutdown()
  kill,        // kill -9: what resolved is there, nothing is tidied up
  power_lost,  // what was not synced is lost
  power_torn,  // ... or torn by sector
};

struct Ctx {
  SimLoop& loop;
  SimDisk& disk;
  MessageStore* store = nullptr;  // null when it did not open
  Result<void> opened;

  Task<PutMessageResult> put(std::string_view topic, int32_t queue, std::string_view body,
                             std::string_view properties = "") {
    MessageIn m = message(topic, queue, body, properties);
    co_return co_await store->put(m);
  }
  static MessageIn message(std::string_view topic, int32_t queue, std::string_view body,
                           std::string_view properties = "");
};

using Body = Task<void> (*)(Ctx&);

class Machine : public RecoveryProgress {
 public:
  Machine();
  void run(Body body, End end = End::stop);
  // Does not open: Errc, or none when it opens.
  std::optional<Errc> try_open();

  DiskImage copy() const;                           // damage() changes an image itself
  std::string file(const std::string& path) const;  // below the root; "" when missing
  bool exists(const std::string& path) const;
  void damage(const std::string& path, uint64_t at, std::string_view bytes);
  void cut(const std::string& path, uint64_t bytes);                 // leaves so many
  void remove_files(const std::string& prefix);                      // below the root
  void rename_file(const std::string& from, const std::string& to);  // into a directory that is made

  StoreOptions options;
  DiskPlan plan;
  DiskImage image;
  uint64_t seed = 1;
  RecoveryStats recovery;  // of the last run
  StoreStats stats;
  int64_t damaged_at = -1, next_valid = -1;
  std::vector<std::pair<int64_t, int64_t>> quarantined;  // of all runs
  std::vector<int> per_cents;

 private:
  void on_progress(int per_cent, int64_t) override { per_cents.push_back(per_cent); }
  void on_damage(int64_t at, int64_t next) override {
    damaged_at = at;
    next_valid = next;
  }
  void on_quarantine(int64_t from, int64_t to) override { quarantined.emplace_back(from, to); }
  static Task<void> drive(Machine& m, Ctx& c, Body body, End end);
  std::optional<Errc> last_error_;
};

// All bodies that one get() answers, by parsing the extents in order.
std::vector<std::string> bodies_of(const GetMessageResult& r);
std::string bytes_of(const GetMessageResult& r);

}  // namespace rmq::store::test

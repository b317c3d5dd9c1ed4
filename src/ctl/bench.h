// The load generator: one thread, epoll, many connections with a window of requests each. It measures the
// broker, so a request costs it little: frames are made once per request slot and patched (opaque is the
// slot's number, born time and id change), and answers are read by proto's codecs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ctl/context.h"
#include "proto/command.h"

namespace rmq::ctl {

// Latencies in buckets whose width is at most 1/64 of their value, from 1 us to an hour.
class Histogram {
 public:
  void add(int64_t us);
  void clear() { *this = Histogram(); }
  int64_t count() const { return count_; }
  int64_t max_us() const { return max_; }
  // The latency that `part` (0..1) of the requests did not exceed, rounded up to its bucket's end.
  int64_t percentile_us(double part) const;

 private:
  static constexpr uint32_t sub_bits = 6;
  static constexpr size_t buckets_max = 27u << sub_bits;
  static size_t bucket_of(uint64_t us);
  static uint64_t end_of(size_t bucket);
  std::array<uint32_t, buckets_max> counts_{};
  int64_t count_ = 0;
  int64_t max_ = 0;
};

struct BenchResult {
  double seconds = 0;
  int64_t requests = 0, messages = 0, bytes = 0;
  Histogram latency;
  std::map<int32_t, int64_t> refused;  // response code → requests
  double cpu_seconds = 0;              // of this program: near one per second means that it is the bottleneck
};

// One request in flight, or about to be.
struct Slot {
  std::string frame;  // patched before each use
  int64_t sent_ns = 0;
  int32_t queue_id = 0;
  int64_t offset = 0;  // pulls: the next one
};

// What the kinds of load differ in.
class Workload {
 public:
  virtual ~Workload() = default;
  // Makes the slot's first frame. Opaques are of ten digits, so that frames keep their length.
  virtual void prepare(Slot& slot, size_t number, size_t connection, int32_t opaque) = 0;
  virtual void patch(Slot& slot, int64_t now_ms) = 0;
  // True when the answer is what was asked for; adds to messages and bytes.
  virtual bool take(Slot& slot, const proto::RemotingCommand& answer, size_t body_bytes, BenchResult* r) = 0;
};

struct BenchPlan {
  std::vector<std::string> addresses;  // connections go to each in turn
  size_t connections = 16;
  size_t window = 8;  // requests in flight on each
  int64_t duration_ms = 10'000;
  int64_t requests_max = INT64_MAX;  // no more than that, also before the time is over
  const char* counted = "messages";  // what BenchResult::messages are
  const char* unit = "msg/s";
};

// Runs the load. Ctrl-C ends it early with the result so far. Failures of the connections end it.
Outcome<BenchResult> run_bench(Context& c, const BenchPlan& plan, Workload& load);

}  // namespace rmq::ctl

// What the store costs alone: `window` puts in flight on one ring, then pulls of 32 over all of it.
//   store_bench DIR [window=128] [messages=500000] [body bytes=1024] [sync|async] [queues=8] [zeros ahead,
//   MiB]
// DIR is used for a store and left there; give an empty directory on the disk to measure. CPU is that of the
// store's thread, kernel time included; what io_uring does in kernel workers is not in it.
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "store/message_store.h"
#include "uring/disk.h"
#include "uring/ring.h"
#include "uring/sync.h"

namespace rmq::store {
namespace {

struct Options {
  std::string dir;
  uint64_t window = 128;
  uint64_t messages = 500'000;
  size_t body_bytes = 1024;
  bool sync = true;
  int32_t queues = 8;
  uint64_t zero_mib = 0;
};

struct Cpu {
  double user_us, system_us;
};
Cpu thread_cpu() {
  rusage r{};
  getrusage(RUSAGE_THREAD, &r);
  auto us = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return {us(r.ru_utime), us(r.ru_stime)};
}

struct Meter {
  int64_t wall_ns = system_mono_ns();
  Cpu began = thread_cpu();
  void print(const char* what, uint64_t messages) const {
    double s = static_cast<double>(system_mono_ns() - wall_ns) / 1e9, n = static_cast<double>(messages);
    Cpu now = thread_cpu();
    printf(
        "%-6s %9.0f msg/s, CPU per message: user %.3f us, system %.3f us  (%" PRIu64 " messages, %.2f s)\n",
        what, n / s, (now.user_us - began.user_us) / n, (now.system_us - began.system_us) / n, messages, s);
  }
};

Task<void> producer(MessageStore& store, const Options& o, uint64_t& left, int32_t queue) {
  std::string body(o.body_bytes, 'x');
  MessageIn m;
  m.topic = "BenchmarkTopic";
  m.properties =
      "UNIQ_KEY\x01"
      "7F0000010000000000000000000000FF\x02WAIT\x01true\x02TAGS\x01tag\x02";
  m.queue_id = queue;
  m.body = as_bytes(body);
  m.store_host.port = 10911;
  while (left != 0) {
    left--;
    auto r = co_await store.put(m);
    if (r.status == PutMessageStatus::PUT_OK) continue;
    fprintf(stderr, "put: %s\n", name_of(r.status));
    exit(1);
  }
}

Task<void> consume(MessageStore& store, const Options& o, uint64_t& seen) {
  for (int32_t q = 0; q < o.queues; q++) {
    for (int64_t at = std::max<int64_t>(store.min_offset("BenchmarkTopic", q), 0);
         at < store.max_offset("BenchmarkTopic", q);) {
      auto r = co_await store.get("BenchmarkTopic", q, at, 32, nullptr);
      check(r.status == GetMessageStatus::FOUND);
      seen += r.message_count;
      at = r.next_begin_offset;
    }
  }
}

void print_stats(const StoreStats& s) {
  printf("log writes %" PRIu64 ", %.1f KiB each; puts that waited %" PRIu64 "; zeroed %" PRIu64 " MiB\n",
         s.log_writes, static_cast<double>(s.log_write_bytes) / 1024 / static_cast<double>(s.log_writes),
         s.puts_waited, s.zeroed_bytes >> 20);
  printf("log write latency, us (upper bound: count):");
  for (size_t i = 0; i < s.log_write.buckets.size(); i++)
    if (s.log_write.buckets[i] != 0) printf(" %u: %" PRIu64, 1u << i, s.log_write.buckets[i]);
  printf("\n");
}

Task<void> run(Disk& disk, const Options& o) {
  StoreOptions so;
  so.root = o.dir;
  if (o.zero_mib != 0) so.zero_ahead_bytes = o.zero_mib << 20;
  so.flush = o.sync ? FlushDiskType::SYNC_FLUSH : FlushDiskType::ASYNC_FLUSH;
  int64_t began_ns = system_mono_ns();
  auto opened = co_await MessageStore::open(disk, so, nullptr);
  if (!opened) {
    fprintf(stderr, "open: %s\n", to_string(opened.error()).c_str());
    exit(1);
  }
  MessageStore& store = **opened;
  printf("opened in %.1f ms, direct I/O %s\n", static_cast<double>(system_mono_ns() - began_ns) / 1e6,
         store.stats().direct_io ? "yes" : "no");
  // Zeros ahead, as in a broker that has been up for a moment.
  for (uint64_t before = 1; before != store.stats().zeroed_bytes;) {
    before = store.stats().zeroed_bytes;
    co_await sleep_for(300 * ns_per_ms);
  }
  Meter put;
  uint64_t left = o.messages;
  {
    Scope producers;
    for (uint64_t i = 0; i < o.window; i++)
      producers.spawn(producer(store, o, left, static_cast<int32_t>(i) % o.queues));
    co_await producers.join();
  }
  put.print(o.sync ? "sync" : "async", o.messages);
  print_stats(store.stats());
  Meter get;
  uint64_t seen = 0;
  co_await consume(store, o, seen);
  get.print("pull", seen);
  co_await store.shutdown();
}

}  // namespace
}  // namespace rmq::store

int main(int argc, char** argv) {
  rmq::store::Options o;
  if (argc < 2) {
    fprintf(stderr, "usage: store_bench DIR [window] [messages] [body bytes] [sync|async] [queues] [MiB]\n");
    return 64;
  }
  o.dir = argv[1];
  if (argc > 2) o.window = strtoull(argv[2], nullptr, 10);
  if (argc > 3) o.messages = strtoull(argv[3], nullptr, 10);
  if (argc > 4) o.body_bytes = strtoull(argv[4], nullptr, 10);
  if (argc > 5) o.sync = std::string_view(argv[5]) != "async";
  if (argc > 6) o.queues = static_cast<int32_t>(strtol(argv[6], nullptr, 10));
  if (argc > 7) o.zero_mib = strtoull(argv[7], nullptr, 10);
  auto ring = rmq::Ring::create();
  if (!ring) {
    fprintf(stderr, "%s\n", to_string(ring.error()).c_str());
    return 1;
  }
  rmq::UringDisk disk(**ring);
  (*ring)->run(rmq::store::run(disk, o));
  return 0;
}

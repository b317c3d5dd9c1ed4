// The simulator itself: that a seed repeats a run, that the disk forgets exactly what it may forget, and
// that streams behave as io.h says.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "sim/sim_disk.h"
#include "sim/sim_net.h"

namespace rmq::sim {
namespace {

struct AlignedBlock {
  explicit AlignedBlock(char fill, size_t blocks = 1)
      : bytes(blocks * disk_block_bytes), p(static_cast<char*>(std::aligned_alloc(disk_block_bytes, bytes))) {
    check(p != nullptr);
    std::fill_n(p, bytes, fill);
  }
  ~AlignedBlock() { std::free(p); }
  AlignedBlock(const AlignedBlock&) = delete;
  AlignedBlock& operator=(const AlignedBlock&) = delete;
  iovec vec() { return {p, bytes}; }
  MutableBytes out() { return {reinterpret_cast<std::byte*>(p), bytes}; }
  size_t bytes;
  char* p;
};

Task<Result<std::unique_ptr<File>>> make_file(SimDisk& d, std::string path) {
  CO_TRY(co_await d.make_dirs("/s"));
  CO_TRY(co_await d.sync_dir("/"));
  auto f = co_await d.open(path, {.write = true, .create = true, .direct = true});
  CO_TRY(co_await d.sync_dir("/s"));
  co_return std::move(f);
}

Task<Result<void>> write_block(File& f, uint64_t block, char fill, Durability durability) {
  AlignedBlock b(fill);
  iovec v = b.vec();
  CO_TRY(co_await f.write(block * disk_block_bytes, {&v, 1}, durability));
  co_return Result<void>{};
}

// ---- durability --------------------------------------------------------------------------------------

Task<void> media_then_plain(SimDisk& d) {
  auto f = co_await make_file(d, "/s/a");
  EXPECT_TRUE(f);
  EXPECT_TRUE(co_await write_block(**f, 0, 'A', Durability::on_media));
  EXPECT_TRUE(co_await write_block(**f, 1, 'B', Durability::none));
  d.crash_now();
  EXPECT_FALSE(co_await write_block(**f, 2, 'C', Durability::on_media));
  co_await (*f)->close();
}
TEST(SimDisk, KeepsWhatIsOnMediaAndMayLoseTheRest) {
  SimLoop loop(1);
  SimDisk d(loop, {});
  loop.run(media_then_plain(d));
  auto lost = d.crash_image(CrashFate::all_lost(1)).read_file("/s/a");
  ASSERT_TRUE(lost);
  EXPECT_EQ(*lost, std::string(4096, 'A'));
  auto kept = d.crash_image(CrashFate::all_kept(1)).read_file("/s/a");
  EXPECT_EQ(*kept, std::string(4096, 'A') + std::string(4096, 'B')) << "and never what came after the crash";
  bool saw_torn = false, saw_garbage = false;
  for (uint64_t seed = 0; seed < 50; seed++) {
    for (auto fate : {CrashFate::all_torn(seed), CrashFate::all_garbage(seed)}) {
      auto s = *d.crash_image(fate).read_file("/s/a");
      EXPECT_EQ(s.substr(0, 4096), std::string(4096, 'A'));
      std::string tail = s.size() < 8192 ? "" : s.substr(4096);
      bool only_old_and_new = tail.find_first_not_of(std::string_view("B\0", 2)) == std::string::npos;
      EXPECT_TRUE(only_old_and_new || fate.garbage != 0);
      saw_torn |= tail.find('B') != std::string::npos && tail.find('\0') != std::string::npos;
      saw_garbage |= !only_old_and_new;
    }
  }
  EXPECT_TRUE(saw_torn);
  EXPECT_TRUE(saw_garbage);
  EXPECT_TRUE(d.violations().empty());
}

// The second half of a durable block is rewritten, the first half with the same bytes.
Task<void> rewrite_tail(SimDisk& d) {
  auto f = co_await make_file(d, "/s/a");
  EXPECT_TRUE(co_await write_block(**f, 0, 'A', Durability::on_media));
  AlignedBlock b('A');
  std::fill_n(b.p + 700, 4096 - 700, 'B');
  iovec v = b.vec();
  d.plan().crash_at = d.points() + 1;  // in flight
  EXPECT_FALSE(co_await (*f)->write(0, {&v, 1}, Durability::on_media));
  EXPECT_TRUE(d.crashed());
  co_await (*f)->close();
}
TEST(SimDisk, BytesThatARewriteDoesNotChangeSurviveUnlessHarsh) {
  SimLoop loop(2);
  SimDisk d(loop, {});
  loop.run(rewrite_tail(d));
  bool changed = false, harsh_spoils = false;
  for (uint64_t seed = 0; seed < 50; seed++) {
    CrashFate f = CrashFate::all_garbage(seed);
    auto s = *d.crash_image(f).read_file("/s/a");
    EXPECT_EQ(s.substr(0, 700), std::string(700, 'A'));
    changed |= s.substr(700) != std::string(4096 - 700, 'A');
    f.harsh = true;
    harsh_spoils |= d.crash_image(f).read_file("/s/a")->substr(0, 700) != std::string(700, 'A');
  }
  EXPECT_TRUE(changed);
  EXPECT_TRUE(harsh_spoils);
}

Task<void> sync_covers(SimDisk& d, bool fails) {
  auto f = co_await make_file(d, "/s/a");
  EXPECT_TRUE(co_await (*f)->allocate(0, 65536));
  for (uint64_t i = 0; i < 8; i++) EXPECT_TRUE(co_await write_block(**f, i, 'A', Durability::none));
  if (fails) d.plan().faults.push_back({.kind = FaultKind::io_error, .op = OpKind::sync});
  auto r = co_await (*f)->sync();
  EXPECT_EQ(r.has_value(), !fails);
  if (fails) {
    EXPECT_TRUE(co_await (*f)->sync()) << "the second one lies";
  }
  EXPECT_TRUE(co_await write_block(**f, 9, 'B', Durability::none));
  d.crash_now();
  co_await (*f)->close();
}
TEST(SimDisk, SyncSavesWhatResolvedBefore) {
  SimLoop loop(3);
  SimDisk d(loop, {});
  loop.run(sync_covers(d, false));
  auto s = *d.crash_image(CrashFate::all_lost(1)).read_file("/s/a");
  ASSERT_EQ(s.size(), 65536u);
  EXPECT_EQ(s.substr(0, 8 * 4096), std::string(8 * 4096, 'A'));
  EXPECT_EQ(s.substr(8 * 4096), std::string(8 * 4096, '\0'));
}
TEST(SimDisk, FailedSyncLosesDataThatALaterSyncDoesNotBring) {
  SimLoop loop(3);
  SimDisk d(loop, {});
  loop.run(sync_covers(d, true));
  auto s = *d.crash_image(CrashFate::all_lost(1)).read_file("/s/a");
  EXPECT_NE(s.substr(0, std::min<size_t>(s.size(), 8 * 4096)), std::string(8 * 4096, 'A'));
}

Task<void> names(SimDisk& d) {
  auto f = co_await make_file(d, "/s/old");
  EXPECT_TRUE(co_await write_block(**f, 0, 'A', Durability::on_media));
  co_await (*f)->close();
  auto g = co_await d.open("/s/new", {.write = true, .create = true});
  EXPECT_TRUE(co_await write_block(**g, 0, 'B', Durability::on_media));
  co_await (*g)->close();
  EXPECT_TRUE(co_await d.rename("/s/old", "/s/older"));
  EXPECT_TRUE(co_await d.rename("/s/new", "/s/old"));
  auto missing = co_await d.open("/s/new", {});
  EXPECT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::not_found);
  auto there = co_await d.open("/s/old", {.create = true, .exclusive = true});
  EXPECT_EQ(there.error().code, Errc::exists);
  auto entries = co_await d.list("/s");
  EXPECT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[1].name, "older");
  d.crash_now();
}
TEST(SimDisk, UnsyncedDirectoryChangesMayComeBack) {
  SimLoop loop(4);
  SimDisk d(loop, {});
  loop.run(names(d));
  EXPECT_EQ(d.crash_image(CrashFate::all_lost(0)).files(), (std::vector<std::string>{"/s/old"}));
  auto kept = d.crash_image(CrashFate::all_kept(0));
  EXPECT_EQ(kept.files(), (std::vector<std::string>{"/s/old", "/s/older"}));
  EXPECT_EQ(kept.read_file("/s/old")->at(0), 'B');
  std::set<std::vector<std::string>> outcomes;
  for (uint64_t seed = 0; seed < 100; seed++) {
    auto files = d.crash_image(CrashFate::mixed(seed)).files();
    outcomes.insert(files);
    EXPECT_FALSE(files.empty());
  }
  EXPECT_GE(outcomes.size(), 3u);
}

Task<void> kill_then_cut(SimDisk& d) {
  auto f = co_await make_file(d, "/s/a");
  EXPECT_TRUE(co_await write_block(**f, 0, 'A', Durability::none));
  d.crash_now();
}
Task<void> look(SimDisk& d, bool sync) {
  auto f = co_await d.open("/s/a", {.write = true, .direct = true});
  EXPECT_TRUE(f);
  AlignedBlock b('x');
  EXPECT_EQ(*co_await (*f)->read(0, b.out()), 4096u);
  EXPECT_EQ(b.p[17], 'A') << "the page cache survives the process";
  if (sync) {
    EXPECT_TRUE(co_await (*f)->sync());
  }
  co_await (*f)->close();
}
TEST(SimDisk, AKilledProcessLeavesUnsyncedBytes) {
  for (bool sync : {false, true}) {
    DiskState state;
    {
      SimLoop loop(5);
      SimDisk d(loop, {});
      loop.run(kill_then_cut(d));
      state = d.take_state(1);
    }
    SimLoop loop(6);
    SimDisk d(loop, {}, std::move(state));
    loop.run(look(d, sync));
    EXPECT_EQ(d.crash_image(CrashFate::all_lost(0)).read_file("/s/a")->size(), sync ? 4096u : 0u);
  }
}

Task<void> misuse(SimDisk& d) {
  auto f = co_await make_file(d, "/s/a");
  AlignedBlock b('A');
  iovec v{b.p + 512, 512};
  EXPECT_FALSE(co_await (*f)->write(0, {&v, 1}, Durability::none));
  EXPECT_EQ(d.violations().size(), 1u);
  v = b.vec();
  EXPECT_FALSE(co_await (*f)->write(512, {&v, 1}, Durability::none));
  EXPECT_FALSE(co_await (*f)->read(0, b.out().first(100)));
  EXPECT_EQ(d.violations().size(), 3u);
  Scope scope;
  struct Run {
    static Task<void> go(File& file, iovec& part) {
      EXPECT_TRUE(co_await file.write(0, {&part, 1}, Durability::none));
    }
  };
  scope.spawn(Run::go(**f, v));
  b.p[5] = 'x';
  co_await scope.join();
  EXPECT_EQ(d.violations().size(), 4u) << "the buffer changed";
}
TEST(SimDisk, ReportsMisuse) {
  SimLoop loop(7);
  SimDisk d(loop, {});
  loop.run(misuse(d));
}

Task<void> faults(SimDisk& d) {
  auto f = co_await make_file(d, "/s/a");
  d.plan().faults = {{.kind = FaultKind::no_space, .op = OpKind::write, .nth = 2},
                     {.kind = FaultKind::slow, .op = OpKind::write, .nth = 3}};
  EXPECT_TRUE(co_await write_block(**f, 0, 'A', Durability::none));
  auto r = co_await write_block(**f, 1, 'A', Durability::none);
  EXPECT_EQ(r.error().code, Errc::no_space);
  int64_t before = Loop::current().now_ns();
  EXPECT_TRUE(co_await write_block(**f, 2, 'A', Durability::none));
  EXPECT_GE(Loop::current().now_ns() - before, d.plan().slow_ns);
  d.plan().capacity_bytes = 20'000;
  EXPECT_EQ((co_await (*f)->allocate(0, 65536)).error().code, Errc::no_space);
  EXPECT_EQ((co_await d.space("/"))->free_bytes, 20'000u - 3 * 4096u);
  d.plan().faults = {{.kind = FaultKind::read_only, .op = OpKind::write, .nth = 1}};
  EXPECT_EQ((co_await write_block(**f, 3, 'A', Durability::none)).error().sys, EROFS);
  EXPECT_EQ((co_await (*f)->sync()).error().sys, EROFS);
  EXPECT_EQ((co_await d.remove("/s/a")).error().sys, EROFS);
  AlignedBlock b('x');
  EXPECT_TRUE(co_await (*f)->read(0, b.out())) << "reading goes on";
}
TEST(SimDisk, Faults) {
  SimLoop loop(8);
  SimDisk d(loop, {});
  loop.run(faults(d));
}

// ---- the network, and repeating a run ----------------------------------------------------------------

Task<void> finish(std::unique_ptr<Stream>& s) {
  s->close();
  co_await s->closed();
}
Task<void> echo(std::unique_ptr<Stream> s) {
  for (;;) {
    auto b = co_await s->recv(no_deadline);
    if (!b) break;
    iovec v{const_cast<std::byte*>(b->bytes().data()), b->bytes().size()};
    auto sent = co_await s->send({&v, 1});
    if (!sent) break;
  }
  co_await finish(s);
}
Task<void> serve(std::unique_ptr<Listener>& l) {
  Scope scope;
  for (;;) {
    auto s = co_await l->accept();
    if (!s) break;
    scope.spawn(echo(std::move(*s)));
  }
  co_await scope.join();
}
struct Outcome {
  int whole = 0, broken = 0, refused = 0;
};
Task<void> client(SimNet& net, uint16_t port, size_t bytes, Outcome& out) {
  auto s = co_await net.connect("10.0.0.1", port, Loop::current().now_ns() + ns_per_s);
  if (!s) {
    out.refused++;
    co_return;
  }
  std::string text;
  while (text.size() < bytes) text += std::to_string(text.size());
  iovec v{text.data(), text.size()};
  Scope scope;
  struct Run {
    static Task<void> send(Stream& stream, iovec& part) {
      auto r = co_await stream.send({&part, 1});
      (void)r;  // a reset shows at the reader
    }
  };
  scope.spawn(Run::send(**s, v));
  std::string back;
  while (back.size() < text.size()) {
    auto b = co_await (*s)->recv(Loop::current().now_ns() + 10 * ns_per_s);
    if (!b) {
      EXPECT_EQ(b.error().code, Errc::closed);
      break;
    }
    back += as_text(b->bytes());
  }
  (*s)->close();
  co_await scope.join();
  EXPECT_EQ(back, text.substr(0, back.size()));
  (back == text ? out.whole : out.broken)++;
  co_await (*s)->closed();
}
Task<void> net_root(SimNetwork& network, size_t bytes, Outcome& out) {
  SimNet server(network, "10.0.0.1"), peer(network, "10.0.0.2");
  auto l = co_await server.listen("", 0);
  EXPECT_TRUE(l);
  Scope scope;
  scope.spawn(serve(*l));
  Scope clients;
  for (int i = 0; i < 10; i++) clients.spawn(client(peer, (*l)->local().port, bytes, out));
  co_await clients.join();
  (*l)->close();
  co_await scope.join();
  co_await (*l)->closed();
  clients.spawn(client(peer, (*l)->local().port, 10, out));
  co_await clients.join();
}
uint64_t run_net(uint64_t seed, NetPlan plan, size_t bytes, Outcome& out) {
  SimLoop loop(seed, {.wall_steps_per_million = 1000});
  SimNetwork network(loop, plan);
  loop.run(net_root(network, bytes, out));
  return loop.trace_hash();
}
TEST(SimNet, EchoesThroughSmallWindows) {
  Outcome out;
  run_net(1, {.window_bytes = 1000}, 20'000, out);
  EXPECT_EQ(out.whole, 10);
  EXPECT_EQ(out.refused, 1) << "the listener is closed";
}
TEST(SimNet, ResetsBreakSomeConnections) {
  Outcome out;
  for (uint64_t seed = 0; seed < 10; seed++) run_net(seed, {.reset_per_million = 50'000}, 3'000, out);
  EXPECT_GT(out.broken, 0);
  EXPECT_GT(out.whole, 0);
}
Task<void> bound_root(SimNetwork& network) {
  SimNet server(network, "10.0.0.1"), peer(network, "10.0.0.2");
  auto l = co_await server.bind("10.0.0.1", 9876);
  EXPECT_FALSE(co_await server.bind("", 9876)) << "in use";
  auto c = co_await peer.connect("10.0.0.1", 9876, no_deadline);
  EXPECT_TRUE(!c && c.error().sys == ECONNREFUSED);
  EXPECT_TRUE((*l)->listen());
  c = co_await peer.connect("10.0.0.1", 9876, no_deadline);
  auto s = co_await (*l)->accept();
  co_await finish(*s);
  co_await finish(*c);
  (*l)->close();
  co_await (*l)->closed();
}
TEST(SimNet, BoundIsNotListening) {
  SimLoop loop(1);
  SimNetwork network(loop);
  loop.run(bound_root(network));
}

TEST(SimLoop, SameSeedSameTrace) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 20; seed++) {
    Outcome a, b;
    NetPlan plan{.reset_per_million = 10'000};
    uint64_t hash = run_net(seed, plan, 5'000, a);
    EXPECT_EQ(hash, run_net(seed, plan, 5'000, b)) << "seed " << seed;
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 20u) << "and other seeds give other runs";
}

Task<void> recv_root(SimNetwork& network) {
  SimNet server(network, "10.0.0.1"), peer(network, "10.0.0.2");
  auto l = co_await server.listen("10.0.0.1", 9876);
  EXPECT_FALSE(co_await server.listen("", 9876)) << "in use";
  auto c = co_await peer.connect("10.0.0.1", 9876, no_deadline);
  auto s = co_await (*l)->accept();
  EXPECT_EQ((*s)->peer(), (*c)->local());
  auto nothing = co_await (*s)->recv(Loop::current().now_ns() + ns_per_ms);
  EXPECT_EQ(nothing.error().code, Errc::timeout);
  std::string text = "last words";
  iovec v{text.data(), text.size()};
  EXPECT_TRUE(co_await (*c)->send({&v, 1}));
  co_await finish(*c);
  std::string got;
  for (;;) {
    auto b = co_await (*s)->recv(no_deadline);
    if (!b) break;
    got += as_text(b->bytes());
  }
  EXPECT_EQ(got, text) << "an orderly close loses nothing";
  co_await finish(*s);
  (*l)->close();
  co_await (*l)->closed();
}
TEST(SimNet, CloseDeliversTimeoutsTell) {
  SimLoop loop(1);
  SimNetwork network(loop);
  loop.run(recv_root(network));
}

}  // namespace
}  // namespace rmq::sim

// For crash tests of the broker: several lives of one machine, each ended by a crash of its disk, or in
// order; at each point of a small workload, and by seed.
//
// RMQ_SIM_SEEDS=N tries so many seeds, from RMQ_SIM_FIRST=N on; RMQ_SIM_POINT=N repeats one point. With
// RMQ_SIM_LOG=1 the journal of the lives is shown.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/log.h"
#include "broker_world.h"

namespace rmq::broker {

// What becomes of what was not synced: each fate in turn.
inline sim::CrashFate fate_of(uint64_t n) {
  constexpr sim::CrashFate (*fates[])(uint64_t) = {sim::CrashFate::mixed, sim::CrashFate::all_kept,
                                                   sim::CrashFate::all_lost, sim::CrashFate::all_torn,
                                                   sim::CrashFate::all_garbage};
  return fates[n % 5](n);
}

// The first ten, a line each.
inline std::string text_of(const std::vector<std::string>& errors) {
  std::string s;
  for (size_t i = 0; i < errors.size() && i < 10; i++) s += "\n  " + errors[i];
  return s;
}

// ---- lives -------------------------------------------------------------------------------------------

// What outlives a life, and what was wrong in all of them.
struct Machine {
  sim::DiskImage image = sim::empty_image();
  std::vector<std::string> errors{};
  int64_t lived_ms = 0;  // true time before this life
  uint64_t points = 0;   // of the last life's disk
  void error(std::string text) { errors.push_back(std::move(text)); }
};

struct LifePlan {
  uint64_t seed = 1;
  uint64_t crash_at = 0;    // point of the disk; 0: it ends in order
  uint64_t wall_steps = 0;  // of the wall clock, per million turns
  int64_t down_ms = 0;      // before it
  BrokerConfig config = test_config();
};

// A life while it runs.
struct LifeNow {
  Machine& machine;
  sim::SimLoop& loop;
  sim::SimDisk& disk;
  // Milliseconds of the wall clock as it would be if nobody set it.
  int64_t true_ms() const { return machine.lived_ms + (loop.clock().mono_ns() - ns_per_s) / ns_per_ms; }
  // False: the disk has crashed; what is seen or answered from here on counts for nothing.
  bool counts() const { return !disk.crashed(); }
};

template <class... Args>
Task<void> run_life(sim::SimNetwork& network, LifeNow& now, BrokerConfig config,
                    Task<void> (*work)(World&, LifeNow&, Args...), std::type_identity_t<Args>... args) {
  auto started =
      co_await run_until_crash<LifeNow&, Args...>(network, now.disk, std::move(config), work, now, args...);
  if (!started && now.counts()) now.machine.error("cannot start: " + to_string(started.error()));
}

// One life, with `work` as what its clients do; `fate` of its disk, for the next one.
template <class... Args>
void live(Machine& machine, const LifePlan& plan, const sim::CrashFate& fate,
          Task<void> (*work)(World&, LifeNow&, Args...), std::type_identity_t<Args>... args) {
  machine.lived_ms += plan.down_ms;
  sim::LoopOptions options;
  options.wall_steps_per_million = plan.wall_steps;
  options.start_wall_step_ms = machine.lived_ms;
  sim::SimLoop loop(plan.seed, options);
  sim::SimNetwork network(loop);
  sim::DiskPlan disk_plan;
  disk_plan.crash_at = plan.crash_at;
  sim::SimDisk disk(loop, disk_plan, machine.image);
  LifeNow now{machine, loop, disk};
  loop.run(run_life<Args...>(network, now, plan.config, work, args...));
  machine.points = disk.points();
  for (const std::string& v : disk.violations()) machine.error("disk: " + v);
  if (!disk.crashed()) disk.crash_now();
  machine.image = disk.crash_image(fate);
  machine.lived_ms = now.true_ms() + 1;  // begun ones count: time never goes back
}

// Small files, and nothing that the workload does not need.
inline BrokerConfig crash_config() {
  BrokerConfig c = test_config();
  c.namesrvAddr = "";
  c.messageIndexEnable = false;
  c.maxMessageSize = 50'000;
  c.mappedFileSizeCommitLog = 128 << 10;
  return c;
}

// A life that crashes at `point`, one after it that does at `again` unless that is 0, and a last one in which
// everything must come: live_one(model, machine, life, fate) lives each.
template <class Model, class Life, class LiveOne>
std::vector<std::string> crash_lives(const Life& first, uint64_t point, uint64_t again, int64_t down_step_ms,
                                     LiveOne live_one) {
  Model model;
  Machine machine;
  Life life = first;
  life.crash_at = point;
  live_one(model, machine, life, fate_of(point));
  Life next = first;
  next.sends = 0;
  next.down_ms = static_cast<int64_t>(point % 3) * down_step_ms;
  if (again != 0) {
    next.seed = first.seed + 1;
    next.crash_at = again;
    live_one(model, machine, next, fate_of(point + again));
  }
  next.crash_at = 0;
  next.seed = first.seed + 2;
  next.final = true;
  next.last_ms = 60'000;
  live_one(model, machine, next, fate_of(0));
  return machine.errors;
}

// What was answered until now is on stable storage: with ASYNC_FLUSH a crash may take it before. False: there
// was a crash.
inline Task<bool> is_safe_now(World& w, LifeNow& now) {
  const int64_t end = w.store->max_physical_offset();
  while (now.counts() && w.store->writable() && w.store->flushed_offset() < end)
    co_await sleep_for(5 * ns_per_ms);
  co_return now.counts() && w.store->flushed_offset() >= end;
}

// Calls seen(record) for what lies in the queue from `offset` on; where it ends comes out.
template <class F>
Task<int64_t> each_record(World& w, LifeNow& now, std::string topic, int32_t queue_id, int64_t offset,
                          F seen) {
  for (;;) {
    auto r = co_await w.store->get(topic, queue_id, offset, 32, nullptr);
    if (r.status != store::GetMessageStatus::FOUND || !now.counts()) co_return offset;
    std::string all;
    for (const auto& e : r.extents) all += as_text(e.bytes());
    for (Bytes rest = as_bytes(all); !rest.empty();) {
      auto record = proto::parse_record(rest, proto::CrcCheck::verify);
      check(record.has_value());
      seen(*record);
      rest = rest.subspan(record->size);
    }
    offset = r.next_begin_offset;
  }
}

// A topic with `queues` queues to read and as many to write.
inline Task<void> make_topic(World& w, LifeNow& now, std::string name, int queues, std::string attributes) {
  const std::string count = std::to_string(queues);
  auto a = co_await w.put_topic(name, count, attributes);
  if (now.counts() && code_of(a) != 0) now.machine.error("no topic: " + remark(a));
}

// What one producer of a run does: so many sends, one of `batch_each` of them a batch, with pauses.
template <class R>
struct Producing {
  Task<void> (*send_alone)(R&, Peer&, Random&);
  Task<void> (*send_batch)(R&, Peer&, Random&);
  uint64_t batch_each = 4;
  uint64_t pause_ms_below = 300;
};

template <class R>
Task<void> produce(R& r, Producing<R> p, std::unique_ptr<Peer> peer, uint64_t seed) {
  sim::SimRandom random(seed);
  for (int i = 0; i < r.plan.sends && r.now->counts(); i++) {
    if (random.below(p.batch_each) == 0)
      co_await p.send_batch(r, *peer, random);
    else
      co_await p.send_alone(r, *peer, random);
    if (random.below(3) == 0)
      co_await sleep_for(static_cast<int64_t>(random.below(p.pause_ms_below)) * ns_per_ms);
  }
  co_await peer->close();
}

// Three producers at once, until they are done or the disk has crashed.
template <class R>
Task<void> produce_by_three(R& r, Producing<R> p) {
  Scope scope;
  for (uint64_t i = 0; i < 3 && r.now->counts(); i++) {
    auto peer = co_await Peer::connect(r.world->client_net, "10.0.0.1", 10911);
    scope.spawn(produce(r, p, std::move(peer), r.plan.seed * 3 + i));
  }
  co_await scope.join();
}

// ---- trying many -------------------------------------------------------------------------------------

inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// errors_of(seed) for `usual` seeds, or as many as are wanted. How many were tried comes out.
template <class F>
uint64_t each_seed(uint64_t usual, F errors_of) {
  if (std::getenv("RMQ_SIM_LOG") == nullptr) log_set_level(LogLevel::error);
  const uint64_t first = number_from("RMQ_SIM_FIRST", 1), count = number_from("RMQ_SIM_SEEDS", usual);
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 3; seed++) {
    const std::vector<std::string> errors = errors_of(seed);
    if (errors.empty()) continue;
    failures++;
    ADD_FAILURE() << "seed " << seed << text_of(errors);
  }
  return count;
}

// errors_of(point, again) for each point of a workload that has so many; `again`: a point of the life after,
// or 0.
template <class F>
void each_point(uint64_t points, const char* what, F errors_of) {
  log_set_level(LogLevel::error);
  const uint64_t wanted = number_from("RMQ_SIM_POINT", 0);
  int failures = 0;
  for (uint64_t point = 1; point <= points && failures < 3; point++) {
    if (wanted != 0 && point != wanted) continue;
    const uint64_t again = point % 4 == 1 ? 1 + (point * 7) % 160 : 0;
    const std::vector<std::string> errors = errors_of(point, again);
    if (errors.empty()) continue;
    failures++;
    ADD_FAILURE() << what << " point " << point << " again " << again << text_of(errors);
  }
}

}  // namespace rmq::broker

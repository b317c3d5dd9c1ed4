// SimLoop: the Loop of a simulation. Nothing waits for real: poll() moves a clock of its own to the next
// simulated completion or timer. One seed decides latencies, the order of completions, faults and steps of
// the wall clock, so a run is repeated by its seed. Every event goes into trace_hash(): two runs with one
// seed must give one hash, else something in the program depends on what a seed cannot repeat (addresses,
// the machine's clock, the order of a hash map).
//
// Order: completions that are due in the same turn are shuffled, because io_uring promises none between
// different operations. What the program makes ready itself (its wait lists, timers) keeps its order.
#pragma once

#include <coroutine>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "uring/loop.h"

namespace rmq::sim {

// splitmix64: small, and every seed is a good one.
class SimRandom final : public Random {
 public:
  explicit SimRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() override {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  int64_t between(int64_t low, int64_t high) {  // both ends included
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
  }
  bool chance(uint64_t of_a_million) { return of_a_million != 0 && below(1'000'000) < of_a_million; }

 private:
  uint64_t state_;
};

class SimClock final : public Clock {
 public:
  int64_t mono_ns() override { return mono_ns_; }
  int64_t wall_ms() override { return wall_base_ms_ + mono_ns_ / ns_per_ms; }
  void advance_to(int64_t mono_ns) { mono_ns_ = std::max(mono_ns_, mono_ns); }
  void step_wall(int64_t ms) { wall_base_ms_ += ms; }

 private:
  int64_t mono_ns_ = ns_per_s;
  int64_t wall_base_ms_ = 1'800'000'000'000;
};

struct LoopOptions {
  uint64_t wall_steps_per_million = 0;  // chance per turn that the wall clock steps, up to an hour either way
  int64_t start_wall_step_ms = 0;       // a later run of the same machine starts later
  uint64_t turns_max = 200'000'000;     // a program that never comes to rest is a failure
  bool verbose = false;                 // every event on stderr
};

class SimLoop;

// One simulated operation: completes once, at its time, unless cancel() comes first.
class SimEvent {
 public:
  SimEvent() = default;
  SimEvent(const SimEvent&) = delete;
  SimEvent& operator=(const SimEvent&) = delete;
  virtual ~SimEvent() { check(!scheduled_); }  // the "kernel" still holds it: its owner died too early

 protected:
  virtual void happen(SimLoop& loop) = 0;  // inside poll(): may make coroutines ready, not run them

 private:
  friend class SimLoop;
  bool scheduled_ = false;
  int64_t at_ns_ = 0;
  uint64_t sequence_ = 0;
};

class SimLoop final : public Loop {
 public:
  explicit SimLoop(uint64_t seed, LoopOptions options = {});
  ~SimLoop() override;

  void schedule(SimEvent& e, int64_t after_ns);
  void cancel(SimEvent& e);

  SimRandom& chooser() { return chooser_; }  // the simulator's own decisions; the program has random()
  SimClock& sim_clock() { return clock_; }

  // Into the hash, and on stderr when verbose.
  void trace(std::string_view what, std::string_view name, uint64_t a = 0, uint64_t b = 0);
  uint64_t trace_hash() const { return hash_; }

 protected:
  void poll(int64_t deadline_ns) override;

 private:
  void maybe_step_wall();
  void mix(uint64_t v);

  const LoopOptions options_;
  SimClock clock_;
  SimRandom random_;
  SimRandom chooser_;
  std::set<std::tuple<int64_t, uint64_t, SimEvent*>> due_;  // by time, then by order of scheduling
  uint64_t sequence_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

// Awaitable: the time an operation takes. Always suspends, as real operations do.
class [[nodiscard]] Delay final : public SimEvent {
 public:
  Delay(SimLoop& loop, int64_t ns) : loop_(loop), ns_(ns) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    coroutine_ = h;
    loop_.schedule(*this, ns_);
  }
  void await_resume() const noexcept {}

 protected:
  void happen(SimLoop& loop) override { loop.ready(coroutine_); }

 private:
  SimLoop& loop_;
  int64_t ns_;
  std::coroutine_handle<> coroutine_;
};

// What a failing simulation prints so that one can repeat it; also when a check() of the program aborts.
void set_repeat_hint(std::string command);
const std::string& repeat_hint();

}  // namespace rmq::sim

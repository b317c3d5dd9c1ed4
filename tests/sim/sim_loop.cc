#include "sim/sim_loop.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <vector>

namespace rmq::sim {

namespace {
// A turn of a real loop costs time too, and completions gather meanwhile.
constexpr int64_t turn_ns_max = 5 * ns_per_us;
constexpr int64_t gather_ns_max = 40 * ns_per_us;

std::string& hint_storage() {
  static std::string hint;
  return hint;
}

void on_abort(int) {
  const std::string& h = hint_storage();
  if (h.empty()) return;
  std::string_view lead = "repeat with: ";
  if (write(2, lead.data(), lead.size()) < 0 || write(2, h.data(), h.size()) < 0 || write(2, "\n", 1) < 0)
    return;
}
}  // namespace

void set_repeat_hint(std::string command) {
  if (hint_storage().empty()) std::signal(SIGABRT, on_abort);
  hint_storage() = std::move(command);
}
const std::string& repeat_hint() {
  return hint_storage();
}

SimLoop::SimLoop(uint64_t seed, LoopOptions options)
    : Loop(clock_, random_), options_(options), random_(seed * 2 + 1), chooser_(seed * 2 + 2) {
  clock_.step_wall(options.start_wall_step_ms);
}

SimLoop::~SimLoop() {
  check(due_.empty());
}

void SimLoop::schedule(SimEvent& e, int64_t after_ns) {
  check(!e.scheduled_);
  e.scheduled_ = true;
  e.at_ns_ = clock_.mono_ns() + std::max<int64_t>(after_ns, 0);
  e.sequence_ = sequence_++;
  due_.emplace(e.at_ns_, e.sequence_, &e);
}

void SimLoop::cancel(SimEvent& e) {
  if (!e.scheduled_) return;
  e.scheduled_ = false;
  check(due_.erase({e.at_ns_, e.sequence_, &e}) == 1);
}

void SimLoop::mix(uint64_t v) {
  hash_ ^= v;
  hash_ *= 0x100000001b3ULL;
  hash_ ^= hash_ >> 29;
}

void SimLoop::trace(std::string_view what, std::string_view name, uint64_t a, uint64_t b) {
  mix(static_cast<uint64_t>(clock_.mono_ns()));
  for (char c : what) mix(static_cast<unsigned char>(c));
  for (char c : name) mix(static_cast<unsigned char>(c));
  mix(a);
  mix(b);
  if (options_.verbose)
    std::fprintf(stderr, "%14.6f ms  %-12.*s %.*s %llu %llu\n",
                 static_cast<double>(clock_.mono_ns()) / static_cast<double>(ns_per_ms),
                 static_cast<int>(what.size()), what.data(), static_cast<int>(name.size()), name.data(),
                 static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
}

void SimLoop::maybe_step_wall() {
  if (!chooser_.chance(options_.wall_steps_per_million)) return;
  int64_t step_ms = chooser_.between(-3'600'000, 3'600'000);
  clock_.step_wall(step_ms);
  trace("wall step", "", static_cast<uint64_t>(step_ms));
}

void SimLoop::poll(int64_t deadline_ns) {
  check(turns() < options_.turns_max);
  int64_t now = clock_.mono_ns() + chooser_.between(0, turn_ns_max);
  int64_t next = due_.empty() ? no_deadline : std::get<0>(*due_.begin());
  int64_t until = std::min(deadline_ns, next);
  check(until != no_deadline);  // everybody waits for somebody and nothing is under way: stuck for ever
  if (until > now) now = until + (next <= deadline_ns ? chooser_.between(0, gather_ns_max) : 0);
  clock_.advance_to(now);
  maybe_step_wall();

  std::vector<SimEvent*> batch;
  while (!due_.empty() && std::get<0>(*due_.begin()) <= now) {
    batch.push_back(std::get<2>(*due_.begin()));
    batch.back()->scheduled_ = false;
    due_.erase(due_.begin());
  }
  for (size_t i = batch.size(); i > 1; i--) std::swap(batch[i - 1], batch[chooser_.below(i)]);
  for (SimEvent* e : batch) {
    mix(e->sequence_);
    e->happen(*this);
  }
}

}  // namespace rmq::sim

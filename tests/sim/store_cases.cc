#include "sim/store_cases.h"

#include <cstdio>

namespace rmq::sim {

namespace {

using End = LifePlan::End;
using store::FlushDiskType;

void add(Errors& to, const std::string& where, Errors from) {
  for (std::string& e : from) to.push_back(where + ": " + std::move(e));
}

std::vector<CrashFate> point_fates(uint64_t seed) {
  return {CrashFate::all_lost(seed), CrashFate::all_kept(seed), CrashFate::all_torn(seed),
          CrashFate::all_garbage(seed), CrashFate::mixed(seed)};
}
constexpr const char* fate_names[] = {"lost", "kept", "torn", "garbage", "mixed"};

LifePlan small_life(const PointCase& c) {
  LifePlan p;
  p.seed = c.seed;
  p.store = small_store(c.flush);
  p.store.append_property_crc = c.seed % 2 == 0;
  if (c.deletes) {
    p.store.commit_log_file_bytes = 16u << 10;
    p.store.consume_queue_file_units = 4;
    add_retention(p.store, 3, false);
  }
  p.disk.slow_per_million = 0;
  return p;
}

LifePlan workload_of(const PointCase& c) {
  LifePlan p = small_life(c);
  if (c.deletes) add_retention(p.store, 3, true);
  p.producers = 4;
  p.calls_per_producer = c.deletes ? 12 : 7;
  if (c.deletes) p.pause_ns_max = 150 * ns_per_ms;
  p.consumers = 1;
  p.body_bytes_max = c.deletes ? 9'000 : 20'000;
  p.end = c.point == 0 ? End::shutdown : End::power_cut;
  p.disk.crash_at = c.point;
  p.disk.dropped_syncs = c.dropped_syncs;
  p.fates = point_fates(c.seed * 1000 + c.point);
  p.loop.verbose = c.verbose;
  return p;
}

// Opens, and ends at once.
struct Reopened {
  LifeResult life;
  Model model;
};
Reopened reopen(const PointCase& c, const Model& model, const DiskImage& image, LifePlan plan) {
  plan.loop.verbose = c.verbose;
  plan.loop.start_wall_step_ms = 60'000;
  Model m = model;
  LifeResult r = live(m, {.image = image}, plan);
  return {std::move(r), std::move(m)};
}

// The first recovery ended at any of its points: what the next one finds must be the same.
void check_nested(const PointCase& c, const Model& model, const DiskImage& image, const Dump& expected,
                  uint64_t open_points, Errors& errors) {
  for (uint64_t k = 1; k <= open_points; k++) {
    LifePlan p = small_life(c);
    p.disk.crash_at = k;
    p.fates = {CrashFate::mixed(k)};
    if (c.nested == PointCase::Nested::all) p.fates.push_back(CrashFate::all_garbage(k));
    Reopened cut = reopen(c, model, image, p);
    std::string where = "recovery cut at its point " + std::to_string(k);
    add(errors, where, cut.life.errors);
    if (cut.life.opened) return;
    for (const DiskImage& i : cut.life.images) {
      LifePlan q = small_life(c);
      Reopened again = reopen(c, cut.model, i, q);
      add(errors, where + ", next one", again.life.errors);
      if (again.life.dump != expected)
        errors.push_back(where +
                         ": the next one finds something else: " + difference(again.life.dump, expected));
      if (!errors.empty()) return;
    }
  }
}

// Opens `image`, then again, then goes on writing, then crashes once more.
void check_image(const PointCase& c, const Model& model, const DiskImage& image, uint64_t fate_index,
                 Errors& errors) {
  const uint64_t salt = c.seed + fate_index;
  LifePlan p = small_life(c);
  p.seed = c.seed + 1;
  p.fates = {CrashFate::all_lost(salt), CrashFate::mixed(salt)};
  Reopened first = reopen(c, model, image, p);
  add(errors, "first recovery", first.life.errors);
  if (!first.life.opened || !errors.empty()) {
    if (errors.empty()) errors.push_back("first recovery: did not open");
    return;
  }
  bool nested = c.nested == PointCase::Nested::all ||
                (c.nested == PointCase::Nested::one && fate_index == c.point % std::size(fate_names));
  if (nested) check_nested(c, model, image, first.life.dump, first.life.open_points, errors);

  p.end = End::shutdown;
  p.check_leftovers = c.deletes;
  Reopened second = reopen(c, first.model, first.life.images[0], p);
  add(errors, "second recovery", second.life.errors);
  if (second.life.dump != first.life.dump)
    errors.push_back("a second recovery finds something else than the first: " +
                     difference(second.life.dump, first.life.dump));
  Reopened third = reopen(c, second.model, second.life.images[0], p);
  add(errors, "after a stop in order", third.life.errors);
  if (third.life.dump != first.life.dump) errors.push_back("a stop in order changes what is there");

  LifePlan more = small_life(c);
  more.seed = c.seed + 2 + salt;
  more.producers = 2;
  more.calls_per_producer = 4;
  more.body_bytes_max = 9'000;
  more.fates = {CrashFate::mixed(salt)};
  Reopened fourth = reopen(c, first.model, first.life.images[1], more);
  add(errors, "going on", fourth.life.errors);
  Reopened last = reopen(c, fourth.model, fourth.life.images[0], small_life(c));
  add(errors, "after going on", last.life.errors);
}

const char* flag_of(FlushDiskType f) {
  return f == FlushDiskType::SYNC_FLUSH ? "sync" : "async";
}

}  // namespace

uint64_t count_points(const PointCase& c) {
  PointCase whole = c;
  whole.point = 0;
  Model model(c.seed);
  return live(model, {}, workload_of(whole)).points;
}

uint64_t count_deleted(const PointCase& c) {
  PointCase whole = c;
  whole.point = 0;
  Model model(c.seed);
  return live(model, {}, workload_of(whole)).log_files_deleted;
}

std::string command_of(const PointCase& c) {
  return std::string("./dev sim --flush ") + flag_of(c.flush) + " --workload " + std::to_string(c.seed) +
         " --point " + std::to_string(c.point) + (c.deletes ? " --deletes" : "") +
         (c.nested != PointCase::Nested::none ? " --nested" : "") + " -v";
}

Errors check_point(const PointCase& c) {
  set_repeat_hint(command_of(c));
  Errors errors;
  Model model(c.seed);
  LifeResult r = live(model, {}, workload_of(c));
  add(errors, "workload", std::move(r.errors));
  for (size_t i = 0; i < r.images.size(); i++) {
    Errors of_image;
    check_image(c, model, r.images[i], i, of_image);
    add(errors, std::string("fate ") + fate_names[i], std::move(of_image));
  }
  return errors;
}

// ---- by seed -----------------------------------------------------------------------------------------

namespace {

store::StoreOptions random_store(SimRandom& r) {
  store::StoreOptions o =
      small_store(r.below(2) == 0 ? FlushDiskType::SYNC_FLUSH : FlushDiskType::ASYNC_FLUSH);
  constexpr uint64_t file_bytes[] = {64u << 10, 192u << 10, 1u << 20, 4u << 20};
  constexpr uint32_t units[] = {4, 16, 50, 1000};
  o.commit_log_file_bytes = file_bytes[r.below(4)];
  o.consume_queue_file_units = units[r.below(4)];
  o.flush_interval_ms = static_cast<uint32_t>(1 + r.below(100));
  if (r.below(2) == 0) o.memory_bytes = 4u << 20;
  if (r.below(2) == 0) o.unflushed_bytes_max = 8u << 20;
  if (r.below(2) == 0) o.zero_ahead_bytes = r.below(3) * (300u << 10);
  o.queue_write_interval_ms = static_cast<uint32_t>(1 + r.below(50));
  o.checkpoint_interval_ms = static_cast<uint32_t>(1 + r.below(200));
  o.sync_all_queues_min = static_cast<uint32_t>(1 + r.below(8));
  constexpr uint32_t slots[] = {1, 16, 5000, 20'000};
  constexpr uint32_t entries[] = {5, 24, 300, 100'000};
  o.index_slots = slots[r.below(4)];
  o.index_entries = entries[r.below(4)];
  o.index_idle_ms = static_cast<uint32_t>(1 + r.below(50));
  o.index_safe = r.below(4) == 0;
  add_retention(o, r.between(0, 60), r.below(3) == 0);
  o.append_property_crc = r.below(3) == 0;
  return o;
}

// Options that one may change between two starts.
void change_options(SimRandom& r, store::StoreOptions& o) {
  store::StoreOptions other = random_store(r);
  if (r.below(3) == 0) o.flush = other.flush;
  if (r.below(4) == 0) o.append_property_crc = other.append_property_crc;
  if (r.below(3) == 0) o.zero_ahead_bytes = other.zero_ahead_bytes;
  if (r.below(3) == 0) o.memory_bytes = other.memory_bytes;
  if (r.below(3) == 0) o.index_idle_ms = other.index_idle_ms;
  if (r.below(8) == 0) o.index_entries = other.index_entries;
}

void add_faults(SimRandom& r, LifePlan& p) {
  p.may_fail = true;
  switch (r.below(6)) {
    case 0:
      p.disk.write_error_per_million = 3'000;
      break;
    case 1:
      p.disk.sync_error_per_million = 10'000;
      break;
    case 2:
      p.disk.read_error_per_million = 3'000;
      break;
    case 3:
      p.disk.capacity_bytes = p.store.commit_log_file_bytes * (1 + r.below(3)) + r.below(100'000);
      break;
    default: {
      constexpr FaultKind kinds[] = {FaultKind::io_error, FaultKind::no_space, FaultKind::short_io,
                                     FaultKind::read_only};
      constexpr OpKind ops[] = {OpKind::write, OpKind::sync, OpKind::allocate, OpKind::any, OpKind::open};
      constexpr const char* paths[] = {"", "/commitlog", "/consumequeue", "checkpoint", "index"};
      Fault f;
      f.kind = kinds[r.below(4)];
      f.op = ops[r.below(5)];
      f.path_part = paths[r.below(5)];
      f.nth = 1 + r.below(60);
      p.disk.faults.push_back(f);
    }
  }
}

LifePlan random_life(SimRandom& r, const store::StoreOptions& o, bool verbose) {
  LifePlan p;
  p.seed = r.next();
  p.store = o;
  p.loop.verbose = verbose;
  p.loop.wall_steps_per_million = r.below(3) == 0 ? 2'000 : 0;
  p.loop.start_wall_step_ms = r.between(-3'600'000, 3'600'000);
  p.producers = static_cast<uint32_t>(1 + r.below(12));
  p.calls_per_producer = static_cast<uint32_t>(r.below(20));
  p.consumers = static_cast<uint32_t>(r.below(4));
  p.body_bytes_max = std::min<size_t>(o.commit_log_file_bytes / 3, 300'000) / (1 + r.below(4));
  p.pause_ns_max = r.between(ns_per_us, 20 * ns_per_ms);
  p.disk.supports_direct = r.below(5) != 0;
  p.disk.slow_per_million = r.below(2) == 0 ? 3'000 : 0;
  p.disk.slow_ns = r.between(ns_per_ms, 300 * ns_per_ms);
  constexpr End ends[] = {End::power_cut, End::power_cut, End::process_kill, End::shutdown};
  p.end = ends[r.below(4)];
  if (p.end != End::shutdown && r.below(4) != 0) p.disk.crash_at = 1 + r.below(r.below(3) == 0 ? 40 : 600);
  CrashFate f = CrashFate::mixed(r.next());
  f.kept = static_cast<uint32_t>(r.below(4));
  f.lost = static_cast<uint32_t>(r.below(4));
  f.torn = static_cast<uint32_t>(r.below(3));
  f.garbage = static_cast<uint32_t>(r.below(3));
  if (f.kept + f.lost + f.torn + f.garbage == 0) f.torn = 1;
  p.fates = {f};
  if (r.below(3) == 0) add_faults(r, p);
  return p;
}

// The last one: nothing disturbs it, so everything that must be there can be read.
LifePlan last_life(SimRandom& r, const store::StoreOptions& o, bool verbose) {
  LifePlan p;
  p.seed = r.next();
  p.store = o;
  add_retention(p.store, o.retention.file_reserved_ms, false);
  p.check_leftovers = true;
  p.loop.verbose = verbose;
  p.end = End::shutdown;
  p.fates = {CrashFate::all_lost(1)};
  return p;
}

const char* name_of(End e) {
  return e == End::shutdown ? "shutdown" : e == End::power_cut ? "power cut" : "process killed";
}

}  // namespace

std::string command_of_seed(uint64_t seed) {
  return "./dev sim --seed " + std::to_string(seed) + " -v";
}

SeedOutcome run_seed(uint64_t seed, bool verbose, const std::vector<DroppedSync>& planted) {
  set_repeat_hint(command_of_seed(seed));
  SimRandom r(seed);
  SeedOutcome out;
  Model model(seed);
  Machine machine;
  store::StoreOptions options = random_store(r);
  const uint64_t lives = 2 + r.below(4);
  auto live_one = [&](const LifePlan& p, const char* name) {
    LifeResult life = live(model, std::move(machine), p);
    std::string where = "life " + std::to_string(++out.lives) + " (" + name + ")";
    if (verbose)
      std::fprintf(stderr, "---- %s: opened %d, %llu points, %zu messages so far\n", where.c_str(),
                   life.opened, static_cast<unsigned long long>(life.points), model.messages.size());
    add(out.errors, where, std::move(life.errors));
    out.trace_hash = out.trace_hash * 31 + life.trace_hash;
    out.faults += life.disk.faults;
    machine = {};
    if (!life.images.empty()) machine.image = std::move(life.images[0]);
    machine.state = std::move(life.state);
    return life;
  };
  for (uint64_t i = 0; i < lives && out.errors.empty(); i++) {
    LifePlan p = random_life(r, options, verbose);
    p.disk.dropped_syncs = planted;
    live_one(p, name_of(p.end));
    change_options(r, options);
  }
  if (out.errors.empty()) {
    Dump one = live_one(last_life(r, options, verbose), "look").dump;
    Dump two = live_one(last_life(r, options, verbose), "look again").dump;
    if (one != two) out.errors.push_back("opening twice shows different things");
  }
  out.messages = model.messages.size();
  return out;
}

}  // namespace rmq::sim

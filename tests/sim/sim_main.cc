// `./dev sim`: crash simulation of the store from the command line.
//   sim [SEED]                   200 seeds, or that one
//   sim --seeds N [--first S]    N seeds from S on (1)
//   sim --seed S [-v]            one seed; -v shows every event
//   sim --every-point [--flush sync|async] [--workload W] [--deletes] [--nested]
//                                a small workload, crashed at every point; --deletes: under retention
//   sim --point P [...]          at that one
// Ends with 1 when a check failed; the command that repeats it is printed with each failure.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "sim/store_cases.h"

namespace rmq::sim {
namespace {

struct Arguments {
  uint64_t seeds = 200, first = 1;
  std::optional<uint64_t> seed, point;
  bool every_point = false, verbose = false, bad = false;
  PointCase point_case;
};

std::optional<uint64_t> number(const char* text) {
  uint64_t v = 0;
  if (text == nullptr) return std::nullopt;
  auto [end, ec] = std::from_chars(text, text + std::strlen(text), v);
  if (ec != std::errc{} || *end != '\0' || end == text) return std::nullopt;
  return v;
}

Arguments parse(char** arg) {
  Arguments a;
  auto take = [&](auto& into) {
    std::optional<uint64_t> v = number(*arg);
    if (v) {
      into = *v;
      arg++;
    }
    a.bad = a.bad || !v;
  };
  while (*arg != nullptr) {
    std::string_view s = *arg++;
    if (s == "--seeds")
      take(a.seeds);
    else if (s == "--first")
      take(a.first);
    else if (s == "--seed")
      take(a.seed);
    else if (s == "--point")
      take(a.point);
    else if (s == "--workload")
      take(a.point_case.seed);
    else if (s == "--every-point")
      a.every_point = true;
    else if (s == "--deletes")
      a.point_case.deletes = true;
    else if (s == "--nested")
      a.point_case.nested = PointCase::Nested::all;
    else if (s == "-v")
      a.verbose = true;
    else if (s == "--flush" && *arg != nullptr) {
      s = *arg++;
      a.bad = a.bad || (s != "sync" && s != "async");
      a.point_case.flush = s == "sync" ? store::FlushDiskType::SYNC_FLUSH : store::FlushDiskType::ASYNC_FLUSH;
    } else {
      arg--;
      take(a.seed);
      if (a.bad) break;
    }
  }
  a.point_case.verbose = a.verbose;
  return a;
}

bool report(const Errors& errors, const std::string& command) {
  if (errors.empty()) return true;
  for (size_t i = 0; i < errors.size() && i < 20; i++) std::printf("FAILED %s\n", errors[i].c_str());
  std::printf("repeat with: %s\n", command.c_str());
  return false;
}

int run_points(PointCase c, std::optional<uint64_t> only) {
  uint64_t failed = 0, points = count_points(c);
  for (c.point = only.value_or(0); c.point <= points; c.point++) {
    failed += !report(check_point(c), command_of(c));
    if (only) break;
  }
  std::printf("%llu points, %llu failed", static_cast<unsigned long long>(only ? 1 : points + 1),
              static_cast<unsigned long long>(failed));
  if (c.deletes)
    std::printf("; retention takes %llu files of the log", static_cast<unsigned long long>(count_deleted(c)));
  std::printf("\n");
  return failed != 0;
}

int run_seeds(const Arguments& a) {
  uint64_t first = a.seed.value_or(a.first), count = a.seed ? 1 : a.seeds;
  uint64_t failed = 0, lives = 0, messages = 0;
  for (uint64_t i = 0; i < count; i++) {
    SeedOutcome o = run_seed(first + i, a.verbose);
    lives += o.lives;
    messages += o.messages;
    failed += !report(o.errors, command_of_seed(first + i));
    if (a.seed) std::printf("trace hash %016llx\n", static_cast<unsigned long long>(o.trace_hash));
  }
  std::printf("%llu seeds, %llu lives, %llu messages, %llu failed\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(lives), static_cast<unsigned long long>(messages),
              static_cast<unsigned long long>(failed));
  return failed != 0;
}

}  // namespace
}  // namespace rmq::sim

int main(int, char** argv) {
  using namespace rmq::sim;
  Arguments a = parse(argv + 1);
  if (a.bad) {
    std::fprintf(stderr,
                 "usage: sim [SEED | --seed S | --seeds N [--first S]] [-v]\n"
                 "       sim --every-point | --point P [--flush sync|async] [--workload W] [--deletes] "
                 "[--nested] [-v]\n");
    return 2;
  }
  if (a.every_point || a.point) return run_points(a.point_case, a.point);
  return run_seeds(a);
}

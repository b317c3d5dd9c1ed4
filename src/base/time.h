// The machine's two clocks. Code that the simulator runs never calls these: it asks the Clock of its Loop
// (uring/io.h). They are here for start-up, the command line and the implementation of that Clock.
#pragma once

#include <cstdint>
#include <string>

namespace rmq {

inline constexpr int64_t ns_per_us = 1'000;
inline constexpr int64_t ns_per_ms = 1'000'000;
inline constexpr int64_t ns_per_s = 1'000'000'000;

int64_t system_mono_ns();  // CLOCK_MONOTONIC
int64_t system_wall_ms();  // CLOCK_REALTIME, milliseconds since 1970

// Local time, "2026-11-30 04:05:06.789"; and the same as digits only, as index files are named.
std::string format_wall_ms(int64_t ms);
std::string format_wall_digits(int64_t ms);
int local_hour(int64_t ms);  // 0 to 23, of local time

}  // namespace rmq

// What must hold, in every build type. A failed check is a bug of ours: the process aborts, systemd starts
// it again and recovery decides. One condition per check, so that the line says which.
#pragma once

#include <source_location>

namespace rmq {

[[noreturn]] void check_failed(const char* text, std::source_location at = std::source_location::current());

}  // namespace rmq

#define check(cond)                                   \
  do {                                                \
    if (!(cond)) [[unlikely]]                         \
      ::rmq::check_failed(#cond);                     \
  } while (0)

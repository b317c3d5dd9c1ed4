// What must hold, in every build type. A failed check is a bug of ours: the process aborts, systemd starts
// it again and recovery decides. One condition per check: the line says which.
#pragma once

#include <source_location>

namespace rmq {

[[noreturn]] void check_failed(std::source_location at);

// A function, not a macro: libraries have members of this name.
inline void check(bool holds, std::source_location at = std::source_location::current()) {
  if (!holds) [[unlikely]]
    check_failed(at);
}

}  // namespace rmq

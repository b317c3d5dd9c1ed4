// How a verb of rmqctl ends: well, or with a Failure that carries the exit code and one line for stderr. The
// line is made where the facts are known (which address, which code, which argument), and printed once, by
// main. Unlike rmq::Error a Failure may allocate: this is a program for people.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "base/result.h"

namespace rmq::ctl {

// sysexits(3) where it has a word for it. Documented in rmqctl(1): scripts depend on them.
enum class Exit : int {
  ok = 0,
  refused = 1,       // a server refused or failed, or what was asked for is not there
  damaged = 2,       // store check: the store is not as it should be
  usage = 64,        // EX_USAGE: the command line is wrong
  bad_input = 65,    // EX_DATAERR: a file, standard input or an answer is malformed
  unreadable = 66,   // EX_NOINPUT: a store or a file cannot be read, or is of a kind that we do not know
  unreachable = 69,  // EX_UNAVAILABLE: no server, or the connection broke
};

struct Failure {
  Exit exit = Exit::refused;
  std::string text;           // one line, without "rmqctl: " and without a full stop
  int32_t response_code = 0;  // when a server refused
};

template <class T>
using Outcome = std::expected<T, Failure>;

inline std::unexpected<Failure> fail(Exit exit, std::string text, int32_t response_code = 0) {
  return std::unexpected(Failure{exit, std::move(text), response_code});
}

}  // namespace rmq::ctl

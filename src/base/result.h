// Failures as values. A function that can fail for reasons outside the program (I/O, input, a limit)
// returns Result<T>; nothing of ours throws. An Error allocates nothing: a code, the errno where there
// was one, and a static string that names the place or the reason.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace rmq {

enum class Errc : uint8_t {
  io,           // the kernel said no: Error::sys holds errno
  closed,       // the peer or we closed it
  timeout,      // a deadline passed
  cancelled,    // a stop was asked for
  bad_input,    // what a peer, a file or a person gave is malformed
  limit,        // a named limit of base/limits.h or of the configuration
  no_space,     // the disk is full or below its reserve
  not_found,    //
  exists,       //
  corrupt,      // data on disk fails its check
  unsupported,  // the kernel or the format lacks or has something that we cannot do with
};

struct Error {
  Errc code;
  int sys = 0;             // errno, 0 where there was none
  const char* where = "";  // static storage only
};

template <class T>
using Result = std::expected<T, Error>;

// An error value to return: `return fail(Errc::bad_input, "frame length");`
inline std::unexpected<Error> fail(Errc code, const char* where, int sys = 0) {
  return std::unexpected(Error{code, sys, where});
}
// From a negative result of a system call or a ring completion (`-errno`).
std::unexpected<Error> fail_errno(int err, const char* where);

// One line for the log: "where: reason (errno text)".
std::string to_string(const Error& e);
const char* name_of(Errc c);

}  // namespace rmq

// Passes a failure up unchanged. TRY is for Result<void>; TRY_VAR(name, expr) names the value. The CO_
// forms are for coroutines. Each holds at most one co_await, as a plain call.
#define TRY(expr)                                   \
  do {                                              \
    if (auto try_r_ = (expr); !try_r_) [[unlikely]] \
      return std::unexpected(try_r_.error());       \
  } while (0)
#define TRY_VAR(name, expr)                         \
  auto name##_result_ = (expr);                     \
  if (!name##_result_) [[unlikely]]                 \
    return std::unexpected(name##_result_.error()); \
  auto& name = *name##_result_
#define CO_TRY(expr)                             \
  do {                                           \
    auto try_r_ = expr;                          \
    if (!try_r_) [[unlikely]]                    \
      co_return std::unexpected(try_r_.error()); \
  } while (0)
#define CO_TRY_VAR(name, expr)                         \
  auto name##_result_ = expr;                          \
  if (!name##_result_) [[unlikely]]                    \
    co_return std::unexpected(name##_result_.error()); \
  auto& name = *name##_result_

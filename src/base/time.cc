#include "base/time.h"

#include <fmt/format.h>
#include <time.h>

#include <string>

#include "base/check.h"
#include "base/result.h"

namespace rmq {

static int64_t read_clock_ns(clockid_t id) {
  timespec t{};
  check(clock_gettime(id, &t) == 0);
  return t.tv_sec * ns_per_s + t.tv_nsec;
}

int64_t system_mono_ns() {
  return read_clock_ns(CLOCK_MONOTONIC);
}
int64_t system_wall_ms() {
  return read_clock_ns(CLOCK_REALTIME) / ns_per_ms;
}

static tm local(int64_t ms) {
  time_t s = ms / 1000;
  tm t{};
  localtime_r(&s, &t);
  return t;
}

std::string format_wall_ms(int64_t ms) {
  tm t = local(ms);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                     t.tm_hour, t.tm_min, t.tm_sec, ms % 1000);
}

std::string format_wall_digits(int64_t ms) {
  tm t = local(ms);
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}{:03}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                     t.tm_hour, t.tm_min, t.tm_sec, ms % 1000);
}

int local_hour(int64_t ms) {
  return local(ms).tm_hour;
}

const char* name_of(Errc c) {
  switch (c) {
    case Errc::io:
      return "I/O error";
    case Errc::closed:
      return "closed";
    case Errc::timeout:
      return "timed out";
    case Errc::cancelled:
      return "cancelled";
    case Errc::bad_input:
      return "malformed input";
    case Errc::limit:
      return "over a limit";
    case Errc::no_space:
      return "no space left";
    case Errc::not_found:
      return "not found";
    case Errc::exists:
      return "exists already";
    case Errc::corrupt:
      return "corrupt data";
    case Errc::unsupported:
      return "not supported";
  }
  return "unknown";
}

std::string to_string(const Error& e) {
  if (e.sys == 0) return fmt::format("{}: {}", e.where, name_of(e.code));
  char buf[128];
  const char* text = strerror_r(e.sys, buf, sizeof buf);
  return fmt::format("{}: {}", e.where, text);
}

std::unexpected<Error> fail_errno(int err, const char* where) {
  if (err < 0) err = -err;
  switch (err) {
    case ENOSPC:
    case EDQUOT:
      return fail(Errc::no_space, where, err);
    case ENOENT:
      return fail(Errc::not_found, where, err);
    case EEXIST:
      return fail(Errc::exists, where, err);
    case ECANCELED:
      return fail(Errc::cancelled, where, err);
    case ETIME:
    case ETIMEDOUT:
      return fail(Errc::timeout, where, err);
    case ECONNRESET:
    case EPIPE:
      return fail(Errc::closed, where, err);
    case EOPNOTSUPP:
    case ENOSYS:
      return fail(Errc::unsupported, where, err);
    default:
      return fail(Errc::io, where, err);
  }
}

}  // namespace rmq

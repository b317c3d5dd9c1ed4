// What people type, as values: durations, moments, positions in a queue, addresses, permissions. Everything
// here is pure; the current time is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/outcome.h"

namespace rmq::ctl {

struct Address {
  std::string host;  // a name or a number, without brackets
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
};
std::string to_string(const Address& a);  // "host:9876", "[::1]:9876"

// "host:port", "[v6]:port"; the port may be left out when `default_port` is not 0.
std::optional<Address> parse_address(std::string_view text, uint16_t default_port);
// Separated by ';' or ','. Exit::usage with the part that is wrong.
Outcome<std::vector<Address>> parse_name_servers(std::string_view text);

// "250ms", "3s", "1.5m", "2h", "1d"; a number without a unit is seconds. Milliseconds, never negative.
std::optional<int64_t> parse_duration_ms(std::string_view text);

// "2026-11-30", "2026-11-30 04:05", "2026-11-30T04:05:06.789", with "Z" or "+02:00" behind (else local time);
// "@1700000000000" (ms since 1970); "10m ago", "10m" (that long before now); "now". Milliseconds since 1970.
std::optional<int64_t> parse_time_ms(std::string_view text, int64_t now_ms);

// A plain argument that is a number from 0 to `max`: "4711" is not `what`.
Outcome<int64_t> parse_number(std::string_view text, std::string_view what, int64_t max = INT64_MAX);

// Where to begin to read a queue.
struct Position {
  enum class Kind : uint8_t { earliest, latest, offset, time } kind = Kind::earliest;
  int64_t value = 0;  // the offset, or ms since 1970
  bool operator==(const Position&) const = default;
};
// "earliest", "latest", a queue offset ("123"), or a moment as above.
std::optional<Position> parse_position(std::string_view text, int64_t now_ms);

// "rw", "r", "w", "none" or RocketMQ's number (6, 4, 2, 0).
std::optional<int32_t> parse_permission(std::string_view text);
std::string permission_name(int32_t perm);  // "rw", "r-", "-w", "--"

// "64k", "4 MiB", "100": bytes, powers of 1024.
std::optional<int64_t> parse_bytes(std::string_view text);

}  // namespace rmq::ctl

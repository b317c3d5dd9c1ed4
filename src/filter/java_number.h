// Numbers in property values as Java reads them: Integer.valueOf, Long.valueOf and Double.valueOf of the
// JDK's library documentation, which is what RocketMQ compares with. Texts are UTF-8. Nothing allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rmq::filter {

// A sign or none, then decimal digits of any script in the Basic Multilingual Plane (Character.digit), no
// blanks. Nothing: not such a number, or out of range.
std::optional<int32_t> java_int(std::string_view text);
std::optional<int64_t> java_long(std::string_view text);
// Blanks and control characters around it are fine; NaN, Infinity, a decimal or hexadecimal floating-point
// number, with f, F, d or D behind it or not. What is too large is infinite, what is too small is zero.
std::optional<double> java_double(std::string_view text);

// Double.compareTo: -1, 0 or 1. -0.0 is less than 0.0; NaN equals itself and is greater than all others.
int java_compare(double a, double b);

}  // namespace rmq::filter

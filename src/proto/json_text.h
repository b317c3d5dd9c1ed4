// Private to proto: escaping and unescaping of JSON strings, and the repair of invalid UTF-8.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rmq::proto::json_text {

// Unescapes in place; `text` is what stands between the quotes, `escape` the position of its first backslash.
// The result begins at text.data(). Nothing when an escape is malformed. A lone surrogate becomes U+FFFD.
std::optional<std::string_view> unescape_in_place(char* text, size_t size, size_t escape);

// Bytes that `s` needs between quotes at most, and writing it: returns the end.
constexpr size_t escaped_max(size_t size) {
  return 6 * size;
}
// True when `s` can be copied as it is: no control characters, quotes, backslashes, and valid UTF-8.
bool is_plain(std::string_view s);
char* write_escaped(std::string_view s, char* out);

// With every invalid byte replaced by U+FFFD.
std::string repaired_utf8(std::string_view s);
bool is_valid_utf8(std::string_view s);
// Appends a code point as UTF-8.
void append_utf8(std::string& out, char32_t c);

}  // namespace rmq::proto::json_text

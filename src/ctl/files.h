// Small files that verbs read and write: bodies, lists of topics, exports.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "ctl/outcome.h"

namespace rmq::ctl {

// What a frame can carry, and so what a file that becomes a request may hold.
inline constexpr size_t file_bytes_max = 16u << 20;

// Exit::bad_input when it cannot be read or is larger than `bytes_max`. `name` is for the message.
Outcome<std::string> read_all(FILE* f, std::string_view name, size_t bytes_max = file_bytes_max);
Outcome<std::string> read_file(const std::string& path, size_t bytes_max = file_bytes_max);

// Makes the directory and what leads to it where it is not there.
Outcome<void> make_directory(const std::string& path);
// All of the text or none of it: under a name of its own until it is on disk.
Outcome<void> write_file(const std::string& path, std::string_view text);

}  // namespace rmq::ctl

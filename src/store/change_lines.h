// The lines of a log of changes (change_log.h), for the broker and for who reads a stopped store:
// "<crc32> <change>\n", the change with \\ and \n for a backslash and an end of line. docs/formats.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rmq::store {

void append_change_line(std::string& out, std::string_view change);
// The changes that a file of that content holds, oldest first, up to the first line that is not whole.
std::vector<std::string> changes_of(std::string_view content);

}  // namespace rmq::store

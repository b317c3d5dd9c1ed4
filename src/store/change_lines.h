// The lines of a log of changes (change_log.h), for the broker and for who reads a stopped store:
// "<crc32> <change>\n", the change with \\ and \n for a backslash and an end of line. docs/formats.md.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rmq::store {

void append_change_line(std::string& out, std::string_view change);
// The changes that a file of that content holds, oldest first, up to the first line that is not whole.
std::vector<std::string> changes_of(std::string_view content);

// The line that names a table's file: "J <crc32> <bytes>". The changes behind it were made to that file.
std::string line_of_file(std::string_view content);
// The first of `changes` that is not in the table's file of that content: the one behind the last line that
// names it. changes.size(): they belong to another file. An older backup is named by none; all are newer.
size_t first_change_since(const std::vector<std::string>& changes, std::string_view content,
                          bool from_backup);

}  // namespace rmq::store

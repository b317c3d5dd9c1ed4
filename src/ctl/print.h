// What people read, and what programs read: aligned tables that print themselves as JSON too, sizes, times,
// bytes as text or hex. Output is collected in strings; only Output touches stdout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rmq::proto {
class JsonWriter;
}

namespace rmq::ctl {

std::string format_bytes(int64_t bytes);  // "17 B", "1.5 KiB", "3.2 GiB"
// "34172928 bytes" in a text as "32.6 MiB": brokers give their reasons in bytes, for programs.
std::string with_readable_bytes(std::string_view text);
std::string format_number(int64_t n);                   // "1,234,567"
std::string format_span_ms(int64_t ms);                 // "850ms", "12s", "3m 20s", "2h 5m", "4d 3h"
std::string format_ago(int64_t at_ms, int64_t now_ms);  // "10m ago", "just now", "in 5m"
// "2026-11-30 04:05:06.789 (10m ago)"; "-" for 0 and negative times.
std::string format_moment(int64_t at_ms, int64_t now_ms);

// Valid UTF-8 without control characters other than tab, newline, carriage return.
bool is_readable_text(std::string_view s);
std::string format_hex(std::string_view bytes);  // "00ff10"
std::string hex_dump(std::string_view bytes);    // lines of offset, 16 bytes, characters
std::string format_base64(std::string_view bytes);
// One line for a terminal: readable text as it is, with \n, \r, \t and \\ escaped; else "hex:00ff...".
std::string one_line(std::string_view body);

// What others have given (names, ids, remarks), for a terminal: control characters and bytes that are no
// UTF-8 are escaped as \n, \r, \t or \x1b, so that nobody's name clears a screen or makes a row of its own.
std::string printable(std::string_view text);
// The same for text of several lines.
std::string printable_lines(std::string_view text);

// A value of a table: knows how a person and how a program wants to see it.
struct Cell {
  enum class Kind : uint8_t { none, text, integer, real, boolean, moment_ms, bytes, list } kind = Kind::none;
  std::string text_value;
  int64_t number = 0;
  double fraction = 0;
  std::vector<std::string> items;

  static Cell none() { return {}; }
  static Cell text(std::string_view v) { return {Kind::text, std::string(v), 0, 0, {}}; }
  static Cell integer(int64_t v) { return {Kind::integer, {}, v, 0, {}}; }
  static Cell real(double v) { return {Kind::real, {}, 0, v, {}}; }
  static Cell boolean(bool v) { return {Kind::boolean, {}, v, 0, {}}; }
  static Cell moment(int64_t ms) { return {Kind::moment_ms, {}, ms, 0, {}}; }
  static Cell bytes(int64_t v) { return {Kind::bytes, {}, v, 0, {}}; }
  static Cell list(std::vector<std::string> v) { return {Kind::list, {}, 0, 0, std::move(v)}; }

  std::string to_text(int64_t now_ms) const;
  void to_json(proto::JsonWriter& w) const;
  bool right_aligned() const { return kind == Kind::integer || kind == Kind::real || kind == Kind::bytes; }
};

// Columns have a heading for people and a member name for programs. A column whose heading is empty is only
// in the JSON.
class Table {
 public:
  struct Column {
    std::string heading, member;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row);
  size_t rows() const { return rows_.size(); }
  const std::vector<std::vector<Cell>>& cells() const { return rows_; }
  std::string to_text(int64_t now_ms) const;
  void write_json(proto::JsonWriter& w) const;  // an array of objects
  std::string to_json() const;                  // the same as a document with a newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Columns of terminal cells that `utf8` takes (one for each code point; wide characters are not known).
size_t display_width(std::string_view utf8);

}  // namespace rmq::ctl

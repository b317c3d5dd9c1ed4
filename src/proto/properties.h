// The properties text of a message: name 0x01 value 0x02 name 0x01 value 0x02 ... A reader that tolerates
// what MessageDecoder.string2messageProperties tolerates, and an editor that keeps the order of what it
// keeps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proto/record.h"  // find_property

namespace rmq::proto {

inline constexpr char name_value_separator = '\x01';
inline constexpr char property_separator = '\x02';

struct Property {
  std::string_view name;
  std::string_view value;
};

// Walks the entries: `PropertyReader r(text); Property p; while (r.next(&p)) ...`. Entries without a name or
// a value, or of fewer than 3 bytes, are passed over. Of equal names the last one counts to RocketMQ.
class PropertyReader {
 public:
  explicit PropertyReader(std::string_view text) : rest_(text) {}
  bool next(Property* out);

 private:
  std::string_view rest_;
};

// Appends one entry with its closing 0x02. Name and value must hold neither separator: see is_property_text.
void append_property(std::string& text, std::string_view name, std::string_view value);
bool is_property_text(std::string_view s);  // not empty, free of 0x01 and 0x02
// Replaces the value in its place, or appends; a missing last 0x02 is added before.
void set_property(std::string& text, std::string_view name, std::string_view value);
// True when there was one. All entries of that name go.
bool remove_property(std::string& text, std::string_view name);

// Writes `text` to `out` (appended) as a plain send stores it, in one pass: entries whose name is in `drop`
// left out, broken entries left out, every entry closed by 0x02.
void append_without(std::string& out, std::string_view text, std::initializer_list<std::string_view> drop);

}  // namespace rmq::proto

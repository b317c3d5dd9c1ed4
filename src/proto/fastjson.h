// JSON as RocketMQ speaks it. Its bodies come from fastjson, whose text is not always JSON: maps with numbers
// or objects as keys are written with the bare key ({0:"a"}, {{"queueId":0}:1}), and its reader takes
// unquoted and single-quoted names. Reading: such text is turned into standard JSON, then simdjson reads it.
// Writing: a small writer over RapidJSON that can write bare keys, and the strict form for route answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rmq::proto {

// Turns fastjson's text into standard JSON: bare and single-quoted names quoted, object keys turned into
// strings that hold their JSON (compact), single-quoted strings requoted, control characters in strings
// escaped, comments and trailing commas dropped. Standard JSON comes out with the same meaning. Nesting is
// limited to 64. Errc::bad_input when even this reading makes no sense of it.
Result<std::string> normalise_fastjson(std::string_view text);

enum class JsonStyle : uint8_t {
  fastjson,  // compact, number and object keys bare, UTF-8 as it is: what RocketMQ's peers expect
  strict,    // compact, every key quoted, everything beyond ASCII as \uXXXX (fastjson's BrowserCompatible)
  pretty,    // fastjson's form of files: one member a line, tabs, no blank after the colon
};

// Writes one document. Members come out in the order of the calls; RocketMQ's is alphabetical. Invalid UTF-8
// becomes U+FFFD. Calls that do not make a document are bugs.
class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style = JsonStyle::fastjson);
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void key_int(int64_t number);            // bare, or quoted in strict style
  void key_object(std::string_view json);  // an object as key: bare, or a string in strict style
  void text(std::string_view value);
  void number(int64_t value);
  void number(int32_t value) { number(static_cast<int64_t>(value)); }
  void real(double value);  // always with a fraction, as Java writes doubles
  void boolean(bool value);
  void null();
  void raw(std::string_view json);  // a value that is JSON already

  void member(std::string_view name, std::string_view value) { key(name), text(value); }
  void member(std::string_view name, const char* value) { key(name), text(value); }
  void member(std::string_view name, int32_t value) { key(name), number(value); }
  void member(std::string_view name, int64_t value) { key(name), number(value); }
  void member(std::string_view name, double value) { key(name), real(value); }
  void member(std::string_view name, bool value) { key(name), boolean(value); }
  // An object with a member for each entry of a map of names: value(v) writes the entry's.
  template <class Map, class F>
  void members(const Map& entries, F value) {
    begin_object();
    for (const auto& [name, v] : entries) {
      key(name);
      value(v);
    }
    end_object();
  }

  JsonStyle style() const { return style_; }
  std::string take();  // the finished document; the writer is empty again

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  JsonStyle style_;
};

}  // namespace rmq::proto

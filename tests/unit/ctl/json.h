// Reads the JSON that rmqctl prints, strictly: what this takes, any program takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rmq::ctl {

class JsonDocument {
 public:
  JsonDocument();
  ~JsonDocument();
  bool parse(std::string_view text);  // exactly one document
  // By JSON pointer, "/0/name". A value of another type, or none, fails the test and gives zero.
  int64_t integer(std::string_view pointer);
  double real(std::string_view pointer);
  bool boolean(std::string_view pointer);
  std::string text(std::string_view pointer);
  bool is_null(std::string_view pointer);
  bool has(std::string_view pointer);
  size_t size(std::string_view pointer);  // of an array

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rmq::ctl

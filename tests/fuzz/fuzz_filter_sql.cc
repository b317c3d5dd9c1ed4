// Expressions and properties from any bytes: the first byte 0 splits them. No read outside, an error has a
// place inside the text, and what compiles gives the same verdict twice.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "filter/java_number.h"
#include "filter/sql_expression.h"

using namespace rmq;
using namespace rmq::filter;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view all(reinterpret_cast<const char*>(data), size);
  size_t split = all.find('\0');
  std::string_view text = all.substr(0, split);
  std::string_view properties = split == std::string_view::npos ? std::string_view() : all.substr(split + 1);
  (void)java_int(properties);
  (void)java_long(properties);
  auto d = java_double(properties);
  if (d) check(java_compare(*d, *d) == 0);
  auto e = SqlExpression::compile(text);
  if (!e) {
    check(e.error().line >= 1);
    check(e.error().column >= 1);
    check(e.error().column <= text.size() + 1);
    check(!e.error().reason.empty());
    return 0;
  }
  check((*e)->text() == text);
  Verdict v = (*e)->evaluate(properties);
  check((*e)->evaluate(properties) == v);
  return 0;
}

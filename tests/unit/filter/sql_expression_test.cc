// What is ours alone about expressions: places and reasons of errors, limits, sharing of nodes. What they
// match is in verdicts_test.cc.
#include "filter/sql_expression.h"

#include <gtest/gtest.h>

namespace rmq::filter {
namespace {

std::string error_of(std::string_view text) {
  auto e = SqlExpression::compile(text);
  return e ? "none" : e.error().to_string();
}

TEST(SqlExpression, ErrorsNamePlaceAndReason) {
  EXPECT_EQ(error_of("n > "),
            "line 1, column 5: the expression ends where a property, a literal or ( must follow");
  EXPECT_EQ(error_of(""),
            "line 1, column 1: the expression ends where a property, a literal or ( must follow");
  EXPECT_EQ(error_of("a = 1 AND\n  OR b"),
            "line 2, column 3: OR where a property, a literal or ( must follow");
  EXPECT_EQ(error_of("a = 5 && b = 6"),
            "line 1, column 7: a character that nothing in an expression begins with");
  EXPECT_EQ(error_of("'é' = a AND b = 'x"), "line 1, column 17: a string without its closing quote");
  EXPECT_EQ(error_of("(a = 5"), "line 1, column 7: the expression ends where ) or an operator must follow");
  EXPECT_EQ(error_of("a IN (5)"), "line 1, column 7: 5 where a string in single quotes must follow");
  EXPECT_EQ(error_of("a IN ('5' 'b')"), "line 1, column 11: 'b' where , or ) must follow");
  EXPECT_EQ(error_of("5 IN ('5')"), "line 1, column 1: only a property can be asked for with IN");
  EXPECT_EQ(error_of("a BETWEEN 5 AND 1"),
            "line 1, column 17: the second value of BETWEEN is less than the first");
  EXPECT_EQ(error_of("a > 'x'"),
            "line 1, column 5: only numbers, properties and what is made of them can be compared by size");
  EXPECT_EQ(error_of("a = NULL"),
            "line 1, column 5: NULL cannot be compared: IS NULL or IS NOT NULL asks for it");
  EXPECT_EQ(error_of("a = 9223372036854775808"), "line 1, column 5: an integer beyond 9223372036854775807");
  EXPECT_EQ(error_of("a > 0.0"), "line 1, column 5: a floating-point number must be greater than 0");
  EXPECT_EQ(error_of("a > 1e999"), "line 1, column 5: a number too large for a double");
  EXPECT_EQ(error_of("a = 5 AND 7"), "line 1, column 11: this is no condition: it is neither true nor false");
  EXPECT_EQ(error_of("a = 5 /* x"), "line 1, column 7: a comment without its end");
  EXPECT_EQ(error_of("a IS 5"), "line 1, column 6: 5 where NULL or NOT NULL must follow");
  EXPECT_EQ(error_of("x CONTAINS " + std::string(60, 'y')),
            "line 1, column 12: " + std::string(40, 'y') + "... where a string in single quotes must follow");
}

TEST(SqlExpression, SaysWhatItIgnores) {
  auto e = SqlExpression::compile("a = 1\n LIKE 'x'");
  ASSERT_TRUE(e);
  ASSERT_TRUE((*e)->ignored_from());
  EXPECT_EQ((*e)->ignored_from()->line, 2u);
  EXPECT_EQ((*e)->ignored_from()->column, 2u);
  e = SqlExpression::compile("a = 1 /* all of it */ ");
  ASSERT_TRUE(e);
  EXPECT_FALSE((*e)->ignored_from());
}

std::string repeated(std::string_view s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; i++) out += s;
  return out;
}

TEST(SqlExpression, DepthIsLimited) {
  const size_t deep = limits::filter_depth_max - 10;
  auto e = SqlExpression::compile(repeated("(", deep) + "a = 1" + repeated(")", deep));
  ASSERT_TRUE(e) << e.error().to_string();
  EXPECT_TRUE(
      (*e)->matches("a\1"
                    "1\2"));
  e = SqlExpression::compile(repeated("NOT ", deep) + "(a = 1)");
  ASSERT_TRUE(e) << e.error().to_string();
  EXPECT_TRUE(
      (*e)->matches("a\1"
                    "1\2"));
  for (const std::string& s :
       {repeated("(", 1000) + "a" + repeated(")", 1000), repeated("NOT ", 1000) + "a",
        repeated("-", 1000) + "a = 1", "a" + repeated(" = a", 1000), "a" + repeated(" IS NULL", 1000),
        "a" + repeated(" CONTAINS 'x'", 1000), repeated("(", 30'000), repeated("a IN ('x') = (", 3000)})
    EXPECT_NE(error_of(s).find("nested more than 500 deep"), std::string::npos) << s.substr(0, 20);
}

TEST(SqlExpression, ChainsAreLimitedByLengthAlone) {
  std::string chain = "a = 0";
  for (int i = 1; i < 3000; i++) chain += " OR a = " + std::to_string(i);
  auto e = SqlExpression::compile(chain);
  ASSERT_TRUE(e) << e.error().to_string();
  EXPECT_TRUE(
      (*e)->matches("a\1"
                    "2999\2"));
  EXPECT_FALSE(
      (*e)->matches("a\1"
                    "3000\2"));
  std::string list = "a IN ('0'";
  for (int i = 1; i < 5000; i++) list += ",'" + std::to_string(i) + "'";
  e = SqlExpression::compile(list + ")");
  ASSERT_TRUE(e) << e.error().to_string();
  EXPECT_TRUE(
      (*e)->matches("a\1"
                    "4999\2"));
  EXPECT_FALSE(
      (*e)->matches("a\1"
                    "5000\2"));
  EXPECT_EQ(error_of("a = '" + std::string(limits::filter_expression_bytes_max, 'x') + "'"),
            "line 1, column 1: longer than 65536 bytes");
}

TEST(SqlExpression, PropertiesAreLimitedByNumber) {
  std::string text = "p0 = 1", properties;
  for (uint32_t i = 1; i < limits::filter_properties_max; i++) text += " AND p" + std::to_string(i) + " = 1";
  for (uint32_t i = 0; i < limits::filter_properties_max; i++)
    properties += "p" + std::to_string(i) +
                  "\1"
                  "1\2";
  auto e = SqlExpression::compile(text + " AND p0 = 1");
  ASSERT_TRUE(e) << e.error().to_string();
  EXPECT_EQ((*e)->properties().size(), limits::filter_properties_max);
  EXPECT_TRUE((*e)->matches(properties));
  EXPECT_NE(error_of(text + " AND more = 1").find("more than 128 different properties"), std::string::npos);
}

TEST(SqlExpression, KeepsItsOwnText) {
  std::string text = "a = 'it''s' AND b IN ('z', 'y')";
  auto e = SqlExpression::compile(text);
  ASSERT_TRUE(e);
  std::fill(text.begin(), text.end(), '#');
  EXPECT_EQ((*e)->text(), "a = 'it''s' AND b IN ('z', 'y')");
  EXPECT_TRUE((*e)->matches("a\1it's\2b\1y\2"));
}

}  // namespace
}  // namespace rmq::filter

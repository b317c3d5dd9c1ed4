// Expressions, numbers and Bloom filter positions against what RocketMQ 5.5.0's own classes say
// (verdicts/verdicts.txt, made by verdicts/Verdicts.java, which tells the format).
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "filter/bloom_filter.h"
#include "filter/java_number.h"
#include "filter/property_table.h"
#include "filter/sql_expression.h"

namespace rmq::filter {
namespace {

using Fields = std::vector<std::string>;

std::string unescaped(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i] == '\\') {
      out += static_cast<char>(std::stoi(std::string(s.substr(i + 2, 2)), nullptr, 16));
      i += 3;
    } else {
      out += s[i];
    }
  }
  return out;
}

std::vector<Fields> lines_of(char kind) {
  std::vector<Fields> out;
  std::ifstream in(RMQ_VERDICTS_FILE);
  for (std::string line; std::getline(in, line);) {
    if (line[0] != kind) continue;
    Fields f;
    for (size_t at = 2;;) {
      size_t tab = line.find('\t', at);
      f.push_back(line.substr(at, tab - at));
      if (tab == std::string::npos) break;
      at = tab + 1;
    }
    f[0] = unescaped(f[0]);
    out.push_back(std::move(f));
  }
  return out;
}

char letter(Verdict v) {
  return v == Verdict::yes ? 'y' : v == Verdict::no ? 'n' : v == Verdict::unknown ? 'u' : 'f';
}

TEST(Verdicts, Expressions) {
  const std::vector<Fields> properties = lines_of('P'), expressions = lines_of('E');
  ASSERT_GT(properties.size(), 20u);
  ASSERT_GT(expressions.size(), 1000u);
  PropertyTable table;
  int with_needed = 0;
  for (const Fields& f : expressions) {
    auto compiled = SqlExpression::compile(f[0]);
    std::string got, by_table;
    if (compiled)
      for (const Fields& p : properties) {
        got += letter((*compiled)->evaluate(p[0]));
        table.read(p[0]);
        by_table += letter((*compiled)->evaluate(table));
      }
    else
      got = by_table = "-";
    EXPECT_EQ(got, f[1]) << f[0] << (compiled ? "" : "\n" + compiled.error().to_string());
    EXPECT_EQ(by_table, f[1]) << f[0];
    if (!compiled || !(*compiled)->needed()) continue;
    with_needed++;
    const NeededValue& needed = *(*compiled)->needed();
    for (size_t i = 0; i < properties.size(); i++) {
      table.read(properties[i][0]);
      const auto value = table.find(needed.property, PropertyTable::hash_of(needed.property));
      const bool has =
          needed.number ? java_long(value) == needed.number : value == needed.text && !value.empty();
      if (!has) EXPECT_NE(got[i], 'y') << f[0] << " says that it needs " << needed.property;
    }
  }
  EXPECT_GT(with_needed, 20);
}

TEST(NeededValues, OfEqualitiesThatMustHold) {
  const auto needed = [](const char* text) -> std::string {
    auto e = SqlExpression::compile(text);
    if (!e) return "wrong";
    const auto& n = (*e)->needed();
    if (!n) return "none";
    return std::string(n->property) + "=" + (n->number ? std::to_string(*n->number) : std::string(n->text));
  };
  EXPECT_EQ(needed("a = 5"), "a=5");
  EXPECT_EQ(needed("5 = a"), "a=5");
  EXPECT_EQ(needed("a = 5000000000"), "a=5000000000");
  EXPECT_EQ(needed("b > 2 AND (c IS NULL AND a = 'x')"), "a=x");
  EXPECT_EQ(needed("a = 'x' OR b = 1"), "none");
  EXPECT_EQ(needed("NOT (a = 'x')"), "none");
  EXPECT_EQ(needed("a <> 'x'"), "none");
  EXPECT_EQ(needed("a = b"), "none");
  EXPECT_EQ(needed("a = 1.5"), "none");
}

std::string text_of(auto number) {
  return number ? std::to_string(*number) : "-";
}

TEST(Verdicts, Numbers) {
  const std::vector<Fields> numbers = lines_of('N');
  ASSERT_GT(numbers.size(), 500u);
  for (const Fields& f : numbers) {
    EXPECT_EQ(text_of(java_int(f[0])), f[1]) << f[0];
    EXPECT_EQ(text_of(java_long(f[0])), f[2]) << f[0];
    auto d = java_double(f[0]);
    char bits[20] = "-";
    if (d)
      std::snprintf(bits, sizeof bits, "%016lx", static_cast<unsigned long>(std::bit_cast<uint64_t>(*d)));
    EXPECT_EQ(std::string(bits), f[3]) << f[0];
  }
}

TEST(Verdicts, BloomFilterPositions) {
  const std::vector<Fields> lines = lines_of('B');
  ASSERT_GT(lines.size(), 4u);
  EXPECT_EQ(lines[0][1], std::to_string(BloomFilter::bits));
  EXPECT_EQ(lines[0][2], std::to_string(BloomFilter::hashes));
  for (size_t i = 1; i < lines.size(); i++) {
    std::string got;
    for (int32_t p : BloomFilter::positions(lines[i][0])) got += (got.empty() ? "" : ",") + std::to_string(p);
    EXPECT_EQ(got, lines[i][1]) << lines[i][0];
  }
}

}  // namespace
}  // namespace rmq::filter

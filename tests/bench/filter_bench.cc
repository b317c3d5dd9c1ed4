// SQL92 expressions over the properties of a message as the Java client sends it. items_per_second is what
// counts: the aim is 2 million a second on one core.
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.h"
#include "filter/property_table.h"
#include "filter/sql_expression.h"

namespace rmq::filter {

static std::string properties_of(bool more) {
  std::string out =
      "UNIQ_KEY\x01"
      "7F0000010B4C18B4AAC200000001AABB\x02"
      "CLUSTER\x01"
      "DefaultCluster\x02"
      "MSG_REGION\x01"
      "DefaultRegion\x02"
      "TRACE_ON\x01"
      "true\x02"
      "WAIT\x01"
      "true\x02"
      "KEYS\x01order-4711\x02TAGS\x01TagA\x02region\x01"
      "eu-central\x02"
      "amount\x01"
      "250\x02"
      "price\x01"
      "19.95\x02"
      "vip\x01true\x02";
  if (more)
    for (int i = 0; i < 20; i++)
      out += "header-" + std::to_string(i) + "\x01value of header " + std::to_string(i) + "\x02";
  return out;
}

static void evaluate(benchmark::State& state, const char* text, bool more) {
  auto e = SqlExpression::compile(text);
  check(e.has_value());
  const std::string properties = properties_of(more);
  uint64_t matched = 0;
  for (auto _ : state) matched += (*e)->matches(properties) ? 1 : 0;
  benchmark::DoNotOptimize(matched);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(evaluate, equal, "region = 'eu-central'", false);
BENCHMARK_CAPTURE(evaluate, number, "amount > 100", false);
BENCHMARK_CAPTURE(evaluate, five,
                  "region = 'eu-central' AND amount BETWEEN 100 AND 1000 AND price > 9.5 AND vip = TRUE",
                  false);
BENCHMARK_CAPTURE(evaluate, in_ten,
                  "region IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'eu-central') OR TAGS = 'TagB'",
                  false);
BENCHMARK_CAPTURE(evaluate, parts,
                  "region STARTSWITH 'eu-' AND KEYS CONTAINS '4711' AND region NOT ENDSWITH 'west'", false);
BENCHMARK_CAPTURE(evaluate, missing, "colour IS NULL AND NOT (size > 5)", false);
BENCHMARK_CAPTURE(evaluate, five_of_many,
                  "region = 'eu-central' AND amount BETWEEN 100 AND 1000 AND price > 9.5 AND vip = TRUE",
                  true);

// Many expressions look at one message: its properties are read once. Items are evaluations.
static void thousand(benchmark::State& state) {
  std::vector<std::shared_ptr<const SqlExpression>> all;
  for (int i = 0; i < 1000; i++) {
    auto e = SqlExpression::compile("region = 'eu-" + std::to_string(i) + "' AND amount > 100");
    check(e.has_value());
    all.push_back(std::move(*e));
  }
  const std::string properties = properties_of(false);
  uint64_t matched = 0;
  PropertyTable table;
  for (auto _ : state) {
    table.read(properties);
    for (const auto& e : all) matched += e->evaluate(table) == Verdict::yes ? 1 : 0;
  }
  benchmark::DoNotOptimize(matched);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(all.size()));
}
BENCHMARK(thousand);

static void compile(benchmark::State& state) {
  for (auto _ : state) {
    auto e = SqlExpression::compile(
        "region = 'eu-central' AND amount BETWEEN 100 AND 1000 AND price > 9.5 AND vip = TRUE");
    benchmark::DoNotOptimize(e->get());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(compile);

}  // namespace rmq::filter

BENCHMARK_MAIN();

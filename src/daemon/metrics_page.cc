#include "daemon/metrics_page.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/check.h"
#include "daemon/config_table.h"

namespace rmq {

namespace {

constexpr MetricFamily process_rows[] = {
#define X(id, ...) metric::id,
    RMQ_PROCESS_METRICS(X)
#undef X
};
constexpr MetricFamily namesrv_rows[] = {
#define X(id, ...) metric::id,
    RMQ_NAMESRV_METRICS(X)
#undef X
};
constexpr MetricFamily broker_rows[] = {
#define X(id, ...) metric::id,
    RMQ_BROKER_METRICS(X)
#undef X
};

std::string_view name_of(MetricType t) {
  switch (t) {
    case MetricType::counter:
      return "counter";
    case MetricType::gauge:
      return "gauge";
    case MetricType::histogram:
      return "histogram";
  }
  return "untyped";
}

void append_value(std::string& out, std::string_view value) {
  for (char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

void append_labels(std::string& out, MetricLabels labels) {
  for (const MetricLabel& l : labels) {
    if (!out.empty() && out.back() != '{') out += ',';
    out += l.name;
    out += "=\"";
    append_value(out, l.value);
    out += '"';
  }
}

// As RocketMQ's exporter writes them ("1.0"), so that queries by bound find them.
std::string bound_text(double b) {
  return b == std::floor(b) && b < 1e7 ? fmt::format("{:.1f}", b) : fmt::format("{}", b);
}

}  // namespace

std::string MetricsPage::labels_text(MetricLabels labels) {
  std::string out;
  append_labels(out, labels);
  return out;
}

void MetricsPage::family(const MetricFamily& f) {
  family_ = &f;
  series_ = 0;
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", f.name, f.help, f.name,
                 name_of(f.type));
}

bool MetricsPage::one_more() {
  if (series_++ < series_max_ || family_ == &metric::series_left_out) return true;
  leave_out();
  return false;
}

void MetricsPage::begin_sample(std::string_view suffix, MetricLabels labels, std::string_view le) {
  text_ += family_->name;
  text_ += suffix;
  const bool of_the_process = family_->name.starts_with("process_");
  const size_t open = text_.size();
  text_ += '{';
  if (!of_the_process) text_ += common_;
  append_labels(text_, labels);
  if (!le.empty()) append_labels(text_, {{"le", le}});
  if (text_.size() == open + 1)
    text_.pop_back();
  else
    text_ += '}';
}

void MetricsPage::end_sample(std::string_view number) {
  text_ += ' ';
  text_ += number;
  text_ += '\n';
}

void MetricsPage::sample(MetricLabels labels, uint64_t value) {
  if (!one_more()) return;
  begin_sample({}, labels);
  const fmt::format_int text(value);
  end_sample({text.data(), text.size()});
}

void MetricsPage::sample(MetricLabels labels, int64_t value) {
  if (!one_more()) return;
  begin_sample({}, labels);
  const fmt::format_int text(value);
  end_sample({text.data(), text.size()});
}

void MetricsPage::sample(MetricLabels labels, double value) {
  if (!one_more()) return;
  begin_sample({}, labels);
  end_sample(fmt::format("{}", value));
}

void MetricsPage::histogram(MetricLabels labels, std::span<const double> bounds,
                            std::span<const uint64_t> counts, double sum) {
  check(counts.size() == bounds.size() + 1);
  if (!one_more()) return;
  uint64_t count = 0;
  for (size_t i = 0; i < counts.size(); i++) {
    count += counts[i];
    begin_sample("_bucket", labels, i < bounds.size() ? bound_text(bounds[i]) : "+Inf");
    end_sample(fmt::to_string(count));
  }
  begin_sample("_sum", labels);
  end_sample(fmt::format("{}", sum));
  begin_sample("_count", labels);
  end_sample(fmt::to_string(count));
}

Task<void> MetricsPage::flush() {
  co_await out_.write(text_);
  text_.clear();
}

Task<void> MetricsPage::finish() {
  family(metric::series_left_out);
  for (const auto& [name, count] : left_out_) sample({{"metric", name}}, count);
  co_await flush();
}

std::string metrics_roff() {
  std::string out;
  const auto section = [&](std::string_view title, std::span<const MetricFamily> rows) {
    out += fmt::format(".SS {}\n", title);
    for (const MetricFamily& f : rows) {
      out += fmt::format(".TP\n.BR {} \" ({})\"\n{}\n", f.name, name_of(f.type), detail::roff_escape(f.help));
      if (!f.labels.empty()) out += fmt::format("Labels: {}.\n", detail::roff_escape(f.labels));
    }
  };
  section("The broker", broker_rows);
  section("The name server", namesrv_rows);
  section("Both", process_rows);
  return out;
}

}  // namespace rmq

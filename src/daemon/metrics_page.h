// A page of metrics in Prometheus' text format, written as it goes out: a family at a time, and in pieces, so
// that neither memory nor the loop is held for long however many series there are. Of one family only so many
// series are shown; how many were left out is a series of its own at the end.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "daemon/http_server.h"
#include "daemon/metric_histogram.h"
#include "daemon/metric_names.h"
#include "uring/task.h"

namespace rmq {

struct MetricLabel {
  std::string_view name, value;
};
using MetricLabels = std::initializer_list<MetricLabel>;

class MetricsPage {
 public:
  // `series_max`: of one family.
  MetricsPage(HttpReply& out, uint64_t series_max) : out_(out), series_max_(series_max) {}

  // Labels of all samples from here on, but of those of process_…: `name="value",…`, made by labels_text().
  void set_common_labels(std::string text) { common_ = std::move(text); }
  static std::string labels_text(MetricLabels labels);

  // All samples of the family follow, before the next family.
  void family(const MetricFamily& f);
  void sample(MetricLabels labels, uint64_t value);
  void sample(MetricLabels labels, int64_t value);
  void sample(MetricLabels labels, double value);
  void sample(MetricLabels labels, int value) { sample(labels, static_cast<int64_t>(value)); }
  template <class T>
  void only(const MetricFamily& f, T value) {
    family(f);
    sample({}, value);
  }
  // `counts` has one more than `bounds`.
  void histogram(MetricLabels labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                 double sum);
  template <size_t N>
  void histogram(MetricLabels labels, const std::array<double, N>& bounds, const MetricHistogram<N>& h) {
    histogram(labels, std::span<const double>(bounds), std::span<const uint64_t>(h.counts), h.sum);
  }
  // A series of the current family that cannot be shown.
  void leave_out(uint64_t series = 1) { left_out_[family_->name] += series; }

  // In loops over many series: `if (page.is_full()) co_await page.flush();`. What the loop goes over must
  // not change meanwhile.
  bool is_full() const { return text_.size() >= flush_bytes; }
  Task<void> flush();
  // Nobody reads the page any more.
  bool is_broken() const { return out_.is_broken(); }
  // What was left out, and the last piece.
  Task<void> finish();

 private:
  static constexpr size_t flush_bytes = 32u << 10;
  bool one_more();
  void begin_sample(std::string_view suffix, MetricLabels labels, std::string_view le = {});
  void end_sample(std::string_view number);

  HttpReply& out_;
  const uint64_t series_max_;
  std::string common_;
  std::string text_;
  const MetricFamily* family_ = nullptr;
  uint64_t series_ = 0;
  std::map<std::string_view, uint64_t> left_out_;
};

// Something that has metrics. write() runs on the loop, between other tasks.
class MetricsSource {
 public:
  virtual ~MetricsSource() = default;
  virtual Task<void> write(MetricsPage& page) = 0;
};

// All rows as a manual page's list, for the build.
std::string metrics_roff();

}  // namespace rmq

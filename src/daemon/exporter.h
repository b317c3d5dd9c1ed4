// The exporter: /metrics for Prometheus, /health/live and /health/ready for whoever supervises the daemon, on
// an HTTP port of its own. It is up before the store is recovered and until the daemon ends. A port that is
// taken keeps nobody from being served: it is said in the journal and tried again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/http_server.h"
#include "daemon/metrics_page.h"
#include "uring/sync.h"

namespace rmq {

struct ExporterOptions {
  bool enabled = false;
  std::string host;
  uint16_t port = 0;
  uint64_t series_max = 0;  // of one metric
};

// Of a BrokerConfig or a NamesrvConfig.
template <class C>
ExporterOptions exporter_options_of(const C& c) {
  return {c.metricsExporterType == "PROM", c.metricsPromExporterHost,
          static_cast<uint16_t>(c.metricsPromExporterPort),
          static_cast<uint64_t>(c.metricsOtelCardinalityLimit)};
}

class Exporter : private HttpService {
 public:
  Exporter(Net& net, ExporterOptions options) : options_(std::move(options)), server_(net, *this) {}

  // Serves until `stop`; spawn it.
  Task<void> run(Event& stop);
  // What /health/ready says. Empty: it is ready.
  void set_not_ready(std::string why) { not_ready_ = std::move(why); }
  const std::string& not_ready() const { return not_ready_; }

  // What is on the page, in this order. `labels`: of all its samples (MetricsPage::labels_text()).
  void add(MetricsSource& source, std::string labels);
  // Resolves soon, when no page is being made of it any more; then it may die. Connections are closed.
  Task<void> remove(MetricsSource& source);

  uint16_t port() const { return server_.port(); }

 private:
  struct Source {
    MetricsSource* source;
    std::string labels;
  };
  Task<void> get(std::string_view path, HttpReply& reply) override;
  Task<void> write_page(HttpReply& reply);
  void write_own(MetricsPage& page) const;

  const ExporterOptions options_;
  HttpServer server_;
  std::string not_ready_ = "starting";
  std::vector<Source> sources_;
  Semaphore one_page_{1};
  int64_t page_ns_ = 0;  // of the last one
};

}  // namespace rmq

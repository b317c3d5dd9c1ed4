#include "daemon/exporter.h"

#include <algorithm>

#include "base/log.h"

namespace rmq {

static constexpr int64_t listen_again_ns = 10 * ns_per_s;
static constexpr std::string_view plain_text = "text/plain; charset=utf-8";
static constexpr std::string_view prometheus_text = "text/plain; version=0.0.4; charset=utf-8";

Task<void> Exporter::run(Event& stop) {
  if (!options_.enabled) co_return;
  bool said = false;
  while (!stop.is_set()) {
    auto listening = co_await server_.listen(options_.host, options_.port);
    if (listening) {
      log(said ? LogLevel::notice : LogLevel::info, ids::metrics_served,
          "metrics and health are served at " + options_.host + ":" + std::to_string(server_.port()));
      co_await stop.wait();
      break;
    }
    if (!said)
      log(LogLevel::warning, ids::metrics_unavailable,
          "metrics and health are not served: cannot listen at " + options_.host + ":" +
              std::to_string(options_.port),
          {{"REASON", to_string(listening.error())}});
    said = true;
    co_await stop.wait_for(listen_again_ns);
  }
  co_await server_.stop();
}

void Exporter::add(MetricsSource& source, std::string labels) {
  sources_.push_back({&source, std::move(labels)});
}

Task<void> Exporter::remove(MetricsSource& source) {
  server_.close_connections();  // who takes a page slowly holds nobody up
  co_await one_page_.acquire();
  std::erase_if(sources_, [&](const Source& s) { return s.source == &source; });
  one_page_.release();
}

void Exporter::write_own(MetricsPage& page) const {
  page.only(metric::ready, not_ready_.empty() ? 1 : 0);
  page.family(metric::http_requests);
  server_.each_count(
      [&](int status, uint64_t count) { page.sample({{"code", std::to_string(status)}}, count); });
  page.only(metric::http_turned_away, server_.turned_away());
  page.only(metric::scrape_duration, static_cast<double>(page_ns_) / static_cast<double>(ns_per_s));
}

Task<void> Exporter::write_page(HttpReply& reply) {
  co_await one_page_.acquire();
  const int64_t began_ns = Loop::current().clock().mono_ns();
  MetricsPage page(reply, options_.series_max);
  co_await reply.begin(prometheus_text);
  std::string labels;
  for (size_t i = 0; i < sources_.size() && !page.is_broken(); i++) {
    if (i == 0) labels = sources_[i].labels;
    page.set_common_labels(sources_[i].labels);
    co_await sources_[i].source->write(page);
  }
  page.set_common_labels(labels);
  write_own(page);
  co_await page.finish();
  page_ns_ = Loop::current().clock().mono_ns() - began_ns;
  one_page_.release();
}

Task<void> Exporter::get(std::string_view path, HttpReply& reply) {
  if (path == "/metrics") {
    co_await write_page(reply);
  } else if (path == "/health/live") {
    co_await reply.send(200, plain_text, "live\n");
  } else if (path == "/health/ready") {
    const std::string text = not_ready_.empty() ? "ready\n" : not_ready_ + "\n";
    co_await reply.send(not_ready_.empty() ? 200 : 503, plain_text, text);
  } else if (path == "/") {
    co_await reply.send(200, plain_text, "/metrics\n/health/live\n/health/ready\n");
  }
}

}  // namespace rmq

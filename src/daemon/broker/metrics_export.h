// The broker's part of the exporter's page.
#pragma once

#include "daemon/broker/consumer_lag.h"
#include "daemon/broker/metrics.h"
#include "daemon/config.h"
#include "daemon/metrics_page.h"

namespace rmq::broker {

class Broker;

class BrokerExport : public MetricsSource {
 public:
  explicit BrokerExport(Broker& b) : broker_(b), lag_(b) {}
  Task<void> write(MetricsPage& page) override;

  // Of all samples: cluster, node_type and node_id, as RocketMQ's, and those of the key metricsLabel.
  static std::string labels(const BrokerConfig& c);

 private:
  using Rpc = BrokerMetrics::Rpc;
  Task<void> write_traffic(MetricsPage& page);
  Task<void> write_pairs(MetricsPage& page);
  Task<void> write_transactions(MetricsPage& page);
  Task<void> write_timers(MetricsPage& page);
  Task<void> write_lag(MetricsPage& page);
  Task<void> write_connections(MetricsPage& page);
  Task<void> write_rpc(MetricsPage& page);
  Task<void> write_store(MetricsPage& page);
  void write_broker(MetricsPage& page) const;
  void write_pop(MetricsPage& page) const;
  void write_log(MetricsPage& page) const;
  void write_memory(MetricsPage& page) const;
  void write_services(MetricsPage& page) const;

  Broker& broker_;
  ConsumerLagCalculator lag_;
};

}  // namespace rmq::broker

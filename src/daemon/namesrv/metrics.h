// The name server's part of the exporter's page.
#pragma once

#include "daemon/metrics_page.h"

namespace rmq::namesrv {

class NameServer;

class NamesrvExport : public MetricsSource {
 public:
  explicit NamesrvExport(NameServer& names) : names_(names) {}
  Task<void> write(MetricsPage& page) override;

 private:
  NameServer& names_;
};

}  // namespace rmq::namesrv

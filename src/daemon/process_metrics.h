// What a process tells of itself: ring, connections, memory, descriptors. For both daemons.
#pragma once

#include <vector>

#include "daemon/metrics_page.h"
#include "daemon/server.h"
#include "uring/recv_pool.h"
#include "uring/ring.h"

namespace rmq {

class ProcessMetrics : public MetricsSource {
 public:
  // Of a daemon on that ring; /proc is read through `disk`.
  ProcessMetrics(Ring& ring, RecvPool& pool, Disk& disk);
  // A server whose connections are counted, and its service with the faults of peers. Both must outlive
  // this, or the next clear_servers().
  void add(const Server& server, const Service& service) { servers_.push_back({&server, &service}); }
  void clear_servers() { servers_.clear(); }

  Task<void> write(MetricsPage& page) override;

 private:
  struct Served {
    const Server* server;
    const Service* service;
  };
  void write_servers(MetricsPage& page) const;
  void write_ring(MetricsPage& page) const;
  Task<void> write_process(MetricsPage& page);

  Ring& ring_;
  RecvPool& pool_;
  Disk& disk_;
  const int64_t started_ms_;
  std::vector<Served> servers_;
};

}  // namespace rmq

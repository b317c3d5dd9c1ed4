// The verbs of all families in the order of the help.

#include "ctl/verb.h"

namespace rmq::ctl {

std::span<const Verb> verb_table() {
  static const std::vector<Verb> all = [] {
    std::vector<Verb> out;
    for (auto family : {cluster_verbs(), export_verbs(),  broker_verbs(),        broker_lag_verbs(),
                        namesrv_verbs(), topic_verbs(),   topic_order_verbs(),   topic_stats_verbs(),
                        latency_verbs(), group_verbs(),   producer_verbs(),      send_verbs(),
                        consume_verbs(), message_verbs(), message_trace_verbs(), transaction_verbs(),
                        timer_verbs(),   dlq_verbs(),     bench_verbs(),         store_verbs(),
                        doctor_verbs(),  top_verbs()})
      out.insert(out.end(), family.begin(), family.end());
    return out;
  }();
  return all;
}

}  // namespace rmq::ctl

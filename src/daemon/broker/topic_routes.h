// Where a topic's queues are, on all brokers of the cluster: asked of the name servers, kept for a moment.
// Whoever asks while an answer is on its way shares it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/text_map.h"
#include "proto/bodies_client.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

class TopicRoutes {
 public:
  static constexpr int64_t kept_ns = 1'000'000'000;
  static constexpr size_t topics_max = 10'000;  // kept; then the oldest knowledge goes

  explicit TopicRoutes(Broker& broker) : broker_(broker) {}

  // Each queue that may be read, sorted by topic, broker, queue. Nothing: no name server that answers knows
  // the topic, and this broker has none of that name. Without name servers: this broker's own.
  Task<std::optional<std::vector<proto::MessageQueue>>> readable_queues(std::string topic);

 private:
  struct Known {
    std::optional<std::vector<proto::MessageQueue>> queues;
    int64_t asked_ns = 0;
    bool asking = false;
    Event answered;
  };
  std::optional<std::vector<proto::MessageQueue>> own_queues(std::string_view topic) const;
  void forget_old(int64_t now_ns);

  Broker& broker_;
  TextMap<std::shared_ptr<Known>> known_;
};

}  // namespace rmq::broker

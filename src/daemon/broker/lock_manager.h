// Queue locks of orderly consumers (LOCK_BATCH_MQ): one owner a queue and group; a lock that is not renewed
// for 60 s is free. In memory only, on the monotonic clock: after a restart the first to ask owns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/text_map.h"
#include "proto/bodies_client.h"

namespace rmq::broker {

class LockManager {
 public:
  static constexpr int64_t lock_lives_ns = 60'000'000'000;  // rocketmq.broker.rebalance.lockMaxLiveTime

  // The queues of `wanted` that `client_id` owns now.
  std::vector<proto::MessageQueue> lock(std::string_view group, std::string_view client_id,
                                        const std::vector<proto::MessageQueue>& wanted, int64_t now_ns);
  void unlock(std::string_view group, std::string_view client_id,
              const std::vector<proto::MessageQueue>& queues);
  // True: somebody of the group holds a lock that has not run out.
  bool any_held(std::string_view group, int64_t now_ns) const;
  // Drops what ran out.
  void sweep(int64_t now_ns);

 private:
  struct Lock {
    std::string client_id;
    int64_t renewed_ns = 0;
  };
  TextMap<std::map<proto::MessageQueue, Lock>> groups_;
};

}  // namespace rmq::broker

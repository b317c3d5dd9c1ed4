// Queue locks of orderly consumers (LOCK_BATCH_MQ): one owner a queue and group; a lock that is not renewed
// for 60 s is free. On the monotonic clock.
//
// Who owns what is in config/queueLocks.json before a grant is answered, and renewals some seconds later: a
// client goes on with a queue for 30 s after its last renewal, whatever became of the broker, and nobody else
// may have the queue meanwhile. RocketMQ forgets its locks, and lets two consumers work on one queue then. A
// lock of somebody who was no member of the group when it asked is not kept: no consumer of RocketMQ's is
// that.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/persisted_table.h"
#include "daemon/broker/text_map.h"
#include "proto/bodies_client.h"

namespace rmq::broker {

class LockManager : public PersistedTable {
 public:
  static constexpr int64_t lock_lives_ns = 60'000'000'000;  // rocketmq.broker.rebalance.lockMaxLiveTime

  LockManager(Disk& disk, std::string path) : PersistedTable(disk, std::move(path)) {}

  // The queues of `wanted` that `client_id` owns now. Answered after save_changes(). `member`: the group
  // knows the client by a heartbeat.
  std::vector<proto::MessageQueue> lock(std::string_view group, std::string_view client_id,
                                        const std::vector<proto::MessageQueue>& wanted, bool member,
                                        int64_t now_ns);
  void unlock(std::string_view group, std::string_view client_id,
              const std::vector<proto::MessageQueue>& queues);
  // True: somebody of the group holds a lock that has not run out.
  bool any_held(std::string_view group, int64_t now_ns) const;
  // Drops what ran out.
  void sweep(int64_t now_ns);
  // Resolves when the file says who owns what, or could not be written (the journal has it).
  Task<void> save_changes();
  // The same with the times of renewals. The owner calls it every 10 s.
  Task<void> save_renewals();

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;

 private:
  struct Lock {
    std::string client_id;
    int64_t renewed_ns = 0;
    bool kept = false;  // over a restart
  };
  TextMap<std::map<proto::MessageQueue, Lock>> groups_;
  bool changed_ = false;
  bool renewed_ = false;
  int saving_ = 0;  // a grant that is being saved is not answered to anybody before
};

}  // namespace rmq::broker

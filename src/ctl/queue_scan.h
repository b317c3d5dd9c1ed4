// Reads one queue of one broker from an offset to an offset, by plain pulls that leave no trace: for verbs
// that must see everything in order (op records, dead letters), system topics included. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "ctl/context.h"
#include "ctl/message_view.h"

namespace rmq::ctl {

class QueueScan {
 public:
  struct Item {
    Message message;
    std::shared_ptr<Reply> owner;  // of what the message views
  };
  // From `from` (or the queue's first message) up to the end that the queue has now. A topic that the broker
  // does not have is an empty queue.
  static Outcome<QueueScan> open(Context& c, const BrokerNode& broker, std::string topic, int32_t queue_id,
                                 int64_t from);
  // Nothing: the end.
  Outcome<std::optional<Item>> next();
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  // Of the queue, wherever the scan begins.
  int64_t queue_begin() const { return queue_begin_; }
  int64_t queue_end() const { return queue_end_; }

 private:
  QueueScan(Channel& channel, std::string broker, std::string topic, int32_t queue_id)
      : channel_(&channel), broker_(std::move(broker)), topic_(std::move(topic)), queue_id_(queue_id) {}
  Outcome<void> pull();

  Channel* channel_;
  std::string broker_, topic_;
  int32_t queue_id_;
  int64_t begin_ = 0, at_ = 0, end_ = 0, queue_begin_ = 0, queue_end_ = 0;
  std::deque<Item> buffer_;
};

// What a group has committed for a queue; `otherwise` when it has not.
Outcome<int64_t> committed_offset(Channel& broker, std::string_view group, std::string_view topic,
                                  int32_t queue_id, int64_t otherwise);

}  // namespace rmq::ctl

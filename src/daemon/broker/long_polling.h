// Pulls that found nothing wait here, by topic and queue, until a message arrives that they want, their time
// is up, or their connection closes. The store tells of arrivals on the same loop.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "daemon/broker/text_map.h"
#include "daemon/connection.h"
#include "store/message_store.h"

namespace rmq::broker {

enum class PollEnd : uint8_t { arrived, timed_out, closed };

class LongPolling : public store::ArrivalListener {
 public:
  // False: no more may wait now.
  bool has_room() const { return waiting_ < limits::waiting_pulls_max; }
  // `filter` (null: everything) decides which arrivals wake; it must outlive the wait.
  Task<PollEnd> wait(Connection& c, std::string_view topic, int32_t queue_id,
                     const store::MessageFilter* filter, int64_t deadline_ns);
  void on_arrival(const store::Arrival& a) override;
  void wake_all();
  uint32_t waiting() const { return waiting_; }

 private:
  struct Poll {
    int32_t queue_id;
    const store::MessageFilter* filter;
    Event wake;
    bool arrived = false;
  };
  TextMap<std::vector<Poll*>> topics_;
  uint32_t waiting_ = 0;
};

}  // namespace rmq::broker

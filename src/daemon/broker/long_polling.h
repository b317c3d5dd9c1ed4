// Pulls that found nothing wait here, by topic and queue, until a message arrives that they want, their time
// is up, or their connection closes. The store tells of arrivals on the same loop. Coming, going and being
// woken cost the same however many wait: each queue has a list, and who was woken is in none.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/limits.h"
#include "daemon/broker/text_map.h"
#include "daemon/connection.h"
#include "store/message_store.h"

namespace rmq::broker {

enum class PollEnd : uint8_t { arrived, timed_out, closed };

class LongPolling {
 public:
  // False: no more may wait now.
  bool has_room() const { return waiting_ < limits::waiting_pulls_max; }
  // `filter` (null: everything) decides which arrivals wake; it must outlive the wait.
  Task<PollEnd> wait(Connection& c, std::string_view topic, int32_t queue_id,
                     const store::MessageFilter* filter, int64_t deadline_ns);
  // Of a message that has become visible; its record is in `store`.
  void on_arrival(const store::Arrival& a, store::MessageStore& store);
  // Those that wait at that queue look again: something else than a message has come for them.
  void wake(std::string_view topic, int32_t queue_id);
  void wake_all();
  uint32_t waiting() const { return waiting_; }

 private:
  struct Poll {
    const store::MessageFilter* filter;
    Event wake;
    bool arrived = false;
    bool listed = false;
    Poll* next = nullptr;
    Poll* previous = nullptr;
  };
  using Queues = std::unordered_map<int32_t, Poll*>;  // the first of each list; empty lists are not there
  struct Arrived;
  void insert(std::string_view topic, int32_t queue_id, Poll& p);
  void remove(std::string_view topic, int32_t queue_id, Poll& p);

  TextMap<Queues> topics_;
  uint32_t waiting_ = 0;
  std::string scratch_;  // a record that does not lie in one piece
};

}  // namespace rmq::broker

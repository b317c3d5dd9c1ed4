// Pulls that found nothing wait here, by topic and queue, until a message arrives that they want, their time
// is up, or their connection closes. The store tells of arrivals on the same loop. Coming, going and being
// woken cost the same however many wait: each queue has a list, and who was woken is in none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/limits.h"
#include "daemon/broker/text_map.h"
#include "daemon/connection.h"
#include "store/message_store.h"

namespace rmq::broker {

enum class PollEnd : uint8_t { arrived, timed_out, closed };

// A message that has become visible, for whoever waits: its record is looked at once, and only when a filter
// asks for it. Both must outlive it.
class ArrivedMessage {
 public:
  ArrivedMessage(const store::Arrival& a, store::MessageStore& store) : arrival(a), store_(store) {}
  // Null: everything is wanted.
  bool wanted_by(const store::MessageFilter* f);

  const store::Arrival& arrival;

 private:
  store::MessageStore& store_;
  std::string scratch_;  // a record that does not lie in one piece
  Bytes record_;
  bool looked_ = false;
};

class LongPolling {
 public:
  // False: no more may wait now.
  bool has_room() const { return waiting_ < limits::waiting_pulls_max; }
  // `filter` (null: everything) decides which arrivals wake; it must outlive the wait.
  Task<PollEnd> wait(Connection& c, std::string_view topic, int32_t queue_id,
                     const store::MessageFilter* filter, int64_t deadline_ns);
  void on_arrival(ArrivedMessage& m);
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
  void insert(std::string_view topic, int32_t queue_id, Poll& p);
  void remove(std::string_view topic, int32_t queue_id, Poll& p);

  TextMap<Queues> topics_;
  uint32_t waiting_ = 0;
};

}  // namespace rmq::broker

// POP requests and notifications that found nothing wait here, by topic and group, first come first woken: an
// arrival wakes one of each group that wants it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "daemon/broker/long_polling.h"
#include "daemon/broker/text_map.h"
#include "daemon/connection.h"
#include "store/message_store.h"

namespace rmq::broker {

class PopPolling {
 public:
  uint32_t waiting() const { return waiting_; }
  // Waits for messages of that queue, -1: of any. `filter` (null: everything) decides which arrivals wake; it
  // must outlive the wait, as the texts must.
  Task<PollEnd> wait(Connection& c, std::string_view topic, std::string_view group, int32_t queue_id,
                     const store::MessageFilter* filter, int64_t deadline_ns);
  // How many wait for exactly that queue, or for any with -1.
  uint32_t waiting_for(std::string_view topic, std::string_view group, int32_t queue_id) const;

  void on_arrival(ArrivedMessage& m);
  // There may be something in that queue for one of the group, -1: in any.
  void wake_one(std::string_view topic, std::string_view group, int32_t queue_id);
  // All of the group that wait for the topic look again.
  void wake_group(std::string_view topic, std::string_view group);
  void wake_all();

 private:
  struct Poll {
    int32_t queue_id = -1;
    const store::MessageFilter* filter = nullptr;
    Event wake;
    bool arrived = false;
    bool listed = false;
    Poll* next = nullptr;
    Poll* previous = nullptr;
  };
  struct List {
    Poll* first = nullptr;
    Poll* last = nullptr;
  };
  using Groups = std::map<std::string, List, std::less<>>;
  List& list_of(std::string_view topic, std::string_view group);
  static void insert(List& l, Poll& p);
  static void remove(List& l, Poll& p);
  // `m` null: whoever waits for the queue.
  static void wake(List& l, int32_t queue_id, ArrivedMessage* m);

  TextMap<Groups> topics_;
  uint32_t waiting_ = 0;
};

}  // namespace rmq::broker

// Pulls that found nothing wait here, by topic and queue, until a message arrives that they want, their time
// is up, or their connection closes. The store tells of arrivals on the same loop. Coming, going and being
// woken cost the same however many wait: each queue has a list, and who was woken is in none. Those whose
// filters say the same stand together, found by what a message must have for them: a message is judged once
// for each expression that may want it, and not at all by those that need another value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/limits.h"
#include "daemon/broker/text_map.h"
#include "daemon/connection.h"
#include "filter/property_table.h"
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
  // Its properties; null: the record is not in memory.
  const filter::PropertyTable* properties();

  const store::Arrival& arrival;

 private:
  Bytes record();
  store::MessageStore& store_;
  std::string scratch_;  // a record that does not lie in one piece
  Bytes record_;
  bool looked_ = false;
  filter::PropertyTable properties_;
  bool has_properties_ = false;
};

// How a wait ended. Of the messages that came meanwhile none below `unwanted_to`, a queue offset, was wanted;
// 0: none came, or the first was wanted.
struct Polled {
  PollEnd end = PollEnd::timed_out;
  int64_t unwanted_to = 0;
};

class LongPolling {
 public:
  // False: no more may wait now.
  bool has_room() const { return waiting_ < limits::waiting_pulls_max; }
  // `filter` (null: everything) decides which arrivals wake; it must outlive the wait.
  Task<Polled> wait(Connection& c, std::string_view topic, int32_t queue_id,
                    const store::MessageFilter* filter, int64_t deadline_ns);
  void on_arrival(ArrivedMessage& m);
  // Those that wait at that queue look again: something else than a message has come for them.
  void wake(std::string_view topic, int32_t queue_id);
  void wake_all();
  uint32_t waiting() const { return waiting_; }

 private:
  struct Poll;
  struct List {
    Poll* first = nullptr;
  };
  struct Poll {
    const store::MessageFilter* filter;
    Event wake;
    bool arrived = false;
    List* list = nullptr;  // null: woken
    Poll* next = nullptr;
    Poll* previous = nullptr;
    int64_t unwanted_to = 0;
  };
  // Those with an identity, a list for each; and the lists by what their filter needs.
  class Alike {
   public:
    List& list_of(const store::MessageFilter& f);
    void forget(const store::MessageFilter& f);  // its list is empty
    // The lists that may want the message.
    void find(ArrivedMessage& m, std::vector<List*>& out);
    auto& lists() { return lists_; }
    bool empty() const { return lists_.empty(); }

   private:
    using Some = std::unordered_set<List*>;
    struct ByValue {
      size_t name_hash = 0;
      std::unordered_map<int64_t, Some> numbers;
      TextMap<Some> texts;
    };
    Some& place_of(const store::MessageFilter& f);
    std::unordered_map<const void*, List> lists_;
    TextMap<ByValue> needing_;  // by the property's name
    Some others_;
  };
  struct Queue {
    List each;                     // judged one by one
    std::unique_ptr<Alike> alike;  // made when it is needed
    int64_t arrived_to = 0;        // all messages below have been judged by all that wait
    bool empty() const { return each.first == nullptr && (alike == nullptr || alike->empty()); }
  };
  using Queues = std::unordered_map<int32_t, Queue>;  // empty ones are not there
  static bool has_identity(const Poll& p) { return p.filter != nullptr && p.filter->identity() != nullptr; }
  Queue* find(std::string_view topic, int32_t queue_id);
  void insert(std::string_view topic, int32_t queue_id, Poll& p);
  void remove(std::string_view topic, int32_t queue_id, Poll& p);
  void forget_if_empty(std::string_view topic, int32_t queue_id);
  static void unlink(Poll& p);
  static void wake_all_of(List& l, int64_t unwanted_to);
  static void wake_all_of(Queue& q);

  TextMap<Queues> topics_;
  uint32_t waiting_ = 0;
  std::vector<List*> found_;  // memory of on_arrival()
};

}  // namespace rmq::broker

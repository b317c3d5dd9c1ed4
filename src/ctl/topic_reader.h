// Reads the queues of a topic by plain pulls, without joining a group: several queues at once, their messages
// merged by store time while there is history to read, and as they arrive after that. Every queue has at most
// one pull in flight; at its end the pull waits at the broker (long polling). One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/context.h"
#include "ctl/message_view.h"
#include "ctl/text.h"
#include "proto/bodies_client.h"
#include "proto/bodies_route.h"
#include "proto/headers_pull.h"

namespace rmq::ctl {

struct ReadPlan {
  std::string topic;
  std::string group;         // whose name pulls carry
  bool use_offsets = false;  // begin where that group stands, unless `from` says otherwise
  std::optional<Position> from;
  int64_t last = 0;  // instead: that many offsets before each queue's end
  bool follow = false;
  std::string broker;            // name or address; empty: all
  std::optional<int64_t> queue;  // empty: all
  std::string tags = "*", sql;
};

class TopicReader {
 public:
  struct Item {
    Message message;
    std::shared_ptr<Reply> owner;  // of what the message views
    size_t cursor = 0;
  };
  struct Cursor {
    std::string broker, address;
    int32_t queue_id = 0;
    size_t channel = 0;
    int64_t next = 0;      // the offset of the next pull
    int64_t end = 0;       // without follow: where to stop
    int64_t max = 0;       // the queue's end as last heard
    int64_t handled = 0;   // everything below was given out or filtered away
    int32_t opaque = 0;    // of the pull in flight, 0: none
    bool waiting = false;  // that pull is held by the broker
    bool told = false;     // the last answer was that the group's offset was reset to where we are
    Deadline answer_by;
    std::deque<Item> buffer;
  };

  static Outcome<TopicReader> open(Context& c, ReadPlan plan);

  // The next message; nothing when all queues are read to their ends, the deadline has passed, or a stop was
  // asked for (channel.h).
  Outcome<std::optional<Item>> next(std::optional<Deadline> deadline);
  // From here on goes on behind the ends.
  void follow() { plan_.follow = true; }
  const std::vector<Cursor>& cursors() const { return cursors_; }

 private:
  TopicReader(Context& c, ReadPlan plan) : c_(&c), plan_(std::move(plan)) {}
  Outcome<void> add_queues(const proto::TopicRouteData& route);
  Outcome<size_t> channel_of(const std::string& address, const std::string& broker);
  Outcome<void> place(Cursor& q);
  Outcome<int64_t> start_of(Cursor& q, int64_t min);
  Outcome<std::optional<int64_t>> group_offset(Cursor& q);
  bool is_finished(const Cursor& q) const { return !plan_.follow && q.next >= q.end; }
  Outcome<void> pull(Cursor& q);
  std::optional<Item> pop_oldest();
  Outcome<void> wait_for_answers(std::optional<Deadline> deadline);
  Outcome<void> drain(size_t channel);
  Outcome<void> handle(size_t cursor, Reply reply);
  Outcome<void> moved(Cursor& q, int64_t to);
  Outcome<void> check_patience() const;
  bool wanted(const Message& m) const;

  Context* c_;
  ReadPlan plan_;
  std::vector<std::string> tags_;
  std::vector<Cursor> cursors_;
  std::vector<Channel> channels_;
};

}  // namespace rmq::ctl

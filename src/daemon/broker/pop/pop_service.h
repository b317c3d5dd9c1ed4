// POP: messages that are given out one by one, each invisible to others until it is acknowledged or its time
// is up. What was given out is in PopTable; who waits for messages, in PopPolling; and a task brings what
// nobody acknowledged in time to the retry topic, once, whatever crashes.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/delivery.h"
#include "daemon/broker/pop/java_pops.h"
#include "daemon/broker/pop/pop_polling.h"
#include "daemon/broker/pop/pop_table.h"

namespace rmq::broker {

class Broker;

class PopService {
 public:
  PopService(Broker& broker, Disk& disk, std::string path, Durability durability, OffsetManager& offsets);

  // What RocketMQ's broker left in a file. After the offsets.
  Task<void> load() { return java_.load(); }
  void start(Scope& scope);
  void stop();
  void on_arrival(ArrivedMessage& m);
  // Somebody else has set an offset of the group in that topic or retry topic: whoever waits looks again.
  void on_reset(std::string_view topic, std::string_view group);

  // The queue's state; made when it is not there: at the group's consumer offset, or where `init_mode` says
  // (0: the first message, else the newest; RocketMQ's ConsumeInitMode). Null: topic or group are not there
  // (any more), and nothing is to be known of them; or the group cannot be brought to disk.
  Task<PopTable::QueuePointer> open(std::string group, std::string topic, int32_t queue_id,
                                    int32_t init_mode);
  // At a start: the queue ends at `max`. What was popped behind it is forgotten. True: there was such.
  bool queue_ends(std::string_view group, std::string_view topic, int32_t queue_id, int64_t max);
  // The checkpoint of a handle; null: there is none. A RocketMQ broker may have given the handle before rmqd
  // took its directory over: then it resolves when that is known.
  Task<PopTable::QueuePointer> queue_of_handle(std::string group, std::string topic, int32_t queue_id,
                                               PopCheckpoint::Key key);
  // Where the next pop of the queue reads, without making anything.
  int64_t next_offset(std::string_view group, std::string_view topic, int32_t queue_id) const;
  // As many checkpoints are there as memory allows: no more messages are given out now.
  bool is_full() const;

  PopTable table;
  PopPolling polling;        // POP_MESSAGE
  PopPolling notifications;  // NOTIFICATION
  // A checkpoint has come that may be due before all others.
  void look_again() { changed_.notify(); }
  // Retry topics to read for a topic and group: of the form that new ones get, then of the other when there
  // is one (without retrieveMessageFromPopRetryTopicV1 not of the older form). RocketMQ leaves messages
  // behind in the newer form when enableRetryTopicV2 is taken back.
  std::vector<std::string> retry_topics(std::string_view group, std::string_view topic) const;

 private:
  // Messages of a checkpoint that are to go to the retry topic.
  struct Revival {
    PopTable::QueuePointer queue;
    PopCheckpoint::Key key;
    uint32_t epoch = 0;
    std::string retry_topic;
    std::vector<DueMessage> messages;
    std::vector<uint32_t> bits;  // of the messages
  };
  struct Copies {
    std::vector<store::MessageIn> messages;
    uint32_t bits = 0;
  };
  // A message whose copy may be there.
  struct Origin {
    PopTable::QueuePointer queue;
    PopCheckpoint::Key key;
    uint32_t bit = 0;
    int64_t physical = 0;
  };
  // Copies that are in the log but perhaps not on stable storage.
  struct Placed {
    PopTable::QueuePointer queue;
    PopCheckpoint::Key key;
    uint32_t bits = 0;
    int64_t end = 0;  // physical, of the last copy
  };

  Task<void> run();
  Task<void> finish_interrupted();
  Task<std::vector<Origin>> origins_of(PopTable::QueuePointer q, PopCheckpoint::Key key);
  Task<std::set<int64_t>> copied_since(std::string topic, int64_t from);
  std::vector<Revival> take_due();
  Task<void> revive(std::vector<Revival> all);
  Task<Result<bool>> read_compacted(const PopQueue& q, DueMessage& m);
  Task<Result<void>> read(Revival& r);
  Task<bool> make_retry_topic(std::string topic);
  Copies compose(Revival& r, size_t& from, size_t most);
  Task<bool> put_copies(Revival& r);
  void wake_for(const PopQueue& q, size_t messages);
  void settle_placed();
  void give_back(const Revival& r);
  bool is_wanted(const PopQueue& q) const;

  Broker& broker_;
  JavaPops java_;
  Event changed_;
  std::vector<Placed> placed_;
  bool stopping_ = false;
};

}  // namespace rmq::broker

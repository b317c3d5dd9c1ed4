// What was popped and not acknowledged yet, for each queue of a topic and group: small, in memory, and every
// change of it in a log, so that what was answered survives whatever happens.
//
// A queue has the offset from which the next pop reads, and checkpoints: the messages of one pop that are
// invisible until a time. A checkpoint is named by its start offset and pop time, which are in the client's
// handle. An acknowledgement clears a bit of it; another invisible time moves a message to a checkpoint of
// its own. What is still there when the time has come goes to the retry topic (pop_revive.h). Queues that are
// popped in order have the messages of the last pop in an OrderInfo instead; they stay in their queue.
//
// The group's consumer offset, as the table of consumer offsets shows it, follows: it is the first offset
// that is not acknowledged. So who knows nothing of this table (the Java broker on the same directory) gives
// messages again, and loses none. When he has written offsets since, they count and not what is here; see
// offsets_read().
//
// Changes of the log, and lines of the file: docs/formats.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/broker/logged_table.h"
#include "daemon/broker/offset_manager.h"
#include "daemon/broker/text_map.h"

namespace rmq::broker {

struct PopQueue;

struct PopCheckpoint {
  using Key = std::pair<int64_t, int64_t>;  // start offset, pop time in ms
  static constexpr size_t messages_max = 32;
  static constexpr uint32_t not_due = UINT32_MAX;

  PopQueue* queue = nullptr;
  const Key* key = nullptr;
  int64_t visible_ms = 0;              // wall clock: then what is pending comes again
  int64_t revive_from = 0;             // while reviving: the retry queue's end when that began
  std::unique_ptr<uint32_t[]> places;  // offset of each message behind the start; null: 0, 1, 2, …
  uint32_t pending = 0;                // bit i: message i is not acknowledged
  uint32_t heap_index = not_due;
  uint8_t count = 0;      // messages
  bool reviving = false;  // its pending messages are on their way to the retry topic

  uint32_t place(size_t i) const { return places ? places[i] : static_cast<uint32_t>(i); }
  // The bit of the message that lies so far behind the start; 0: it has none.
  uint32_t bit_of(int64_t place) const;
};

// Messages of a queue that were popped in order, and are to be acknowledged before others come.
struct OrderInfo {
  static constexpr size_t messages_max = 64;
  struct Message {
    int64_t offset = 0;
    int64_t visible_ms = 0;
    int32_t consumed = 0;  // how often it was popped before
  };
  std::string attempt_id;
  int64_t pop_time_ms = 0;
  int64_t end = 0;                // where the queue goes on behind them
  uint64_t acknowledged = 0;      // bits by place in `messages`
  std::vector<Message> messages;  // by offset; those of earlier pops that are acknowledged stay among them

  bool is_acknowledged(size_t i) const { return (acknowledged >> i & 1) != 0; }
  // The acknowledged ones from `start` on: they must not come again with those before them.
  std::vector<Message> acknowledged_from(int64_t start) const;
  // Nothing of it is needed any more.
  bool is_over() const;
  // Messages before that offset are none of it any more, and the queue does not go on before it.
  void drop_before(int64_t offset);
  // The queue ends there: messages from it on are lost.
  void drop_from(int64_t offset);
  // The first offset that is not acknowledged, or the end.
  int64_t next_offset() const;
  // The first time at which the queue is free; at most now: it is free now.
  int64_t blocked_until_ms() const;
};

struct PopQueue {
  std::string topic, group;
  int32_t queue_id = 0;
  uint32_t id = 0;   // in the log
  int64_t next = 0;  // where the next pop reads
  std::map<PopCheckpoint::Key, PopCheckpoint> checkpoints;
  std::unique_ptr<OrderInfo> order;
  bool busy = false;   // a pop is reading it
  uint32_t epoch = 0;  // changes when somebody else sets the offset, or the queue goes

  // The consumer offset: the first that is not acknowledged.
  int64_t first_unacknowledged() const;
  size_t outstanding() const;
};

class PopTable : public LoggedTable, public OffsetFollower {
 public:
  using QueuePointer = std::shared_ptr<PopQueue>;
  PopTable(Disk& disk, std::string path, Durability durability, OffsetManager& offsets);

  bool empty() const { return by_id_.empty(); }
  // Null: nobody has popped from it.
  QueuePointer find(std::string_view group, std::string_view topic, int32_t queue_id) const;
  // A queue that is not there yet, to be read from `next` on.
  QueuePointer add(std::string_view group, std::string_view topic, int32_t queue_id, int64_t next);

  void move_to(PopQueue& q, int64_t next);
  // The messages at `offsets`, from `start` on, are popped; the queue goes on at `next`.
  PopCheckpoint& popped(PopQueue& q, int64_t start, int64_t next, int64_t pop_time_ms, int64_t visible_ms,
                        std::span<const int64_t> offsets);
  // Those bits of the checkpoint need not come again. True: some of them were pending.
  bool acknowledge(PopQueue& q, PopCheckpoint::Key key, uint32_t bits);
  // One message, which is pending, gets a checkpoint of its own.
  void change_invisible(PopQueue& q, PopCheckpoint::Key key, int64_t offset, int64_t pop_time_ms,
                        int64_t visible_ms);
  // What is pending goes into the retry queue, behind that offset.
  void begin_revive(PopQueue& q, PopCheckpoint::Key key, int64_t retry_offset);
  // It did not: it is due again at that time.
  void put_off(PopQueue& q, PopCheckpoint::Key key, int64_t visible_ms);
  // The queue's OrderInfo has been changed, or its offset with it.
  void order_changed(PopQueue& q);

  // The checkpoint that is due first; null: there is none.
  PopCheckpoint* first_due() const { return heap_.empty() ? nullptr : heap_.front(); }
  // Out of that order, until put_off() or its end.
  void take_due(PopCheckpoint& c) { heap_remove(c); }
  // Checkpoints whose messages were on their way to the retry topic when the broker stopped.
  std::vector<std::pair<QueuePointer, PopCheckpoint::Key>> interrupted() const;

  size_t checkpoints() const { return checkpoints_; }
  size_t queues() const { return by_id_.size(); }
  // Checkpoints that are due at that time; `most` when there are that many or more.
  size_t due_count(int64_t wall_ms, size_t most) const;
  size_t outstanding() const { return outstanding_; }
  // Folds when the log has grown beyond twice the file.
  Task<void> fold_if_long();

  // OffsetFollower.
  void offsets_read(const std::string& file) override;
  Task<void> offsets_to_be_written(std::string file) override;
  void offset_set(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset) override;
  void offsets_removed(std::string_view key) override;
  bool sets_are_kept() const override { return is_kept(last_set_); }
  Task<Result<void>> sets_kept() override { return kept(last_set_); }

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;
  bool apply(std::string_view change) override;

 private:
  using Queues = std::map<int32_t, QueuePointer>;
  QueuePointer insert(std::string_view key, int32_t queue_id, uint32_t id, int64_t next);
  void remove(PopQueue& q);
  void clear(PopQueue& q, int64_t next);
  PopCheckpoint& insert_checkpoint(PopQueue& q, PopCheckpoint::Key key, PopCheckpoint c);
  void clear_bits(PopQueue& q, PopCheckpoint::Key key, uint32_t bits);
  void follow(const PopQueue& q);
  void note_files(std::string there, std::string next);

  bool apply_checkpoint(PopQueue& q, std::string_view rest);
  bool apply_order(PopQueue& q, std::string_view rest);
  bool apply_change(PopQueue& q, PopCheckpoint::Key key, std::string_view rest);
  bool apply_to(PopQueue& q, char what, std::string_view rest);
  void mark_reviving(PopCheckpoint& c, int64_t retry_offset);

  void heap_add(PopCheckpoint& c);
  void heap_remove(PopCheckpoint& c);
  void heap_place(size_t i, PopCheckpoint* c);
  void heap_up(size_t i);
  void heap_down(size_t i);

  OffsetManager& offsets_;
  TextMap<Queues> groups_;  // by topic@group
  std::map<uint32_t, QueuePointer> by_id_;
  uint32_t last_id_ = 0;
  uint64_t last_set_ = 0;  // the change that somebody else's offset made
  size_t checkpoints_ = 0, outstanding_ = 0;
  std::vector<PopCheckpoint*> heap_;  // the first due in front
  // Files of consumer offsets that this table goes with, as LoggedTable names them: the one that was there
  // last, and the one that was to be written then.
  std::pair<std::string, std::string> offset_files_;
  mutable size_t file_bytes_ = 0;
};

}  // namespace rmq::broker

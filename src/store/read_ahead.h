// Consumers that read old messages. A reader is known by what it asks for next: a queue and an offset; who
// comes back for exactly that reads on, nobody has to say so. The ConsumeQueue tells where the messages are
// that he will want, so only those are read, with what lies between them when that is little, and while he is
// served from one stretch of the log the next one is on its way. Stretches are short at first and double; all
// readers together get the memory that old log has for itself, each an equal part.
//
// So a consumer of a huge backlog costs some long reads and no memory of the tail; and however many there
// are, they wait for each other and not the log's writes for them (CommitLog::load()).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "store/commit_log.h"
#include "store/queue_files.h"

namespace rmq::store {

// Units of one queue, one after the other: from memory where they are there, else from a block of a file.
class UnitCursor {
 public:
  UnitCursor(QueueFiles& files, ConsumeQueue& q) : files_(files), q_(q) {}
  bool get(int64_t offset, QueueUnit& u) const;
  Task<Result<void>> load(int64_t offset);

 private:
  QueueFiles& files_;
  ConsumeQueue& q_;
  std::shared_ptr<UnitBlock> block_;
};

class ReadAhead {
 public:
  ReadAhead(CommitLog& log, QueueFiles& files) : log_(log), files_(files) {}

  // One get(): where it began, and what it found out about its reader.
  struct Get {
    Get(ReadAhead& a, ConsumeQueue& queue, int64_t from, const MessageFilter* wanted)
        : ahead(a), q(queue), begin(from), filter(wanted) {}
    ~Get() {
      if (has_slot) ahead.slots_.release();
    }
    Get(const Get&) = delete;
    Get& operator=(const Get&) = delete;
    ReadAhead& ahead;
    ConsumeQueue& q;
    const int64_t begin;
    const MessageFilter* filter;  // null: all messages
    int64_t asked = 0;            // messages below that offset were asked of the disk
    bool old = false;             // old messages were answered
    bool has_slot = false;
  };
  // For a get that is about to wait for the disk; only so many do at a time.
  bool try_enter(Get& g);
  Task<void> enter(Get& g);
  // Brings the log from `physical`, within the message of `offset`, into memory; with it, in the same read,
  // messages behind it that this reader will want.
  Task<Result<void>> load(Get& g, int64_t offset, uint64_t physical, uint64_t end);
  // The get has answered old messages; its reader is expected at `next`.
  void passed(const Get& g, int64_t next);
  // No get() is running any more. Resolves when nothing is on its way.
  Task<void> stop();
  size_t readers() const { return readers_.size(); }

 private:
  struct Key {
    uint64_t uid;
    int64_t next;
    auto operator<=>(const Key&) const = default;
  };
  struct Reader {
    uint64_t window_bytes = 0;
    int64_t asked = 0;    // as in Get
    int64_t trigger = 0;  // when the reader has come so far it is time for the next stretch
    int64_t seen_ns = 0;
    bool reading = false;  // on his behalf, ahead of him
    std::list<Key>::iterator lru;
  };
  using Readers = std::map<Key, std::shared_ptr<Reader>>;
  struct Stretch {
    uint64_t begin = 0, end = 0;  // physical
    int64_t next = 0;             // offset of the first message behind it
  };
  uint64_t window_max() const;
  Task<Stretch> plan(ConsumeQueue& q, int64_t offset, uint64_t window_bytes, const MessageFilter* filter);
  Task<void> read_stretch(ConsumeQueue& q, Stretch s);
  Task<void> read_on(QueueRef q, std::shared_ptr<Reader> reader);
  void expire(int64_t now_ns);
  void forget(Readers::iterator it);

  CommitLog& log_;
  QueueFiles& files_;
  Readers readers_;
  std::list<Key> lru_;  // most recent first
  static constexpr uint32_t waiting_max = 64;
  Semaphore slots_{waiting_max};
  Scope tasks_;
};

}  // namespace rmq::store

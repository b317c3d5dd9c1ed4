// Delivering each delayed message once, whatever crashes. What is due goes into the log as one batch: a
// marker that names what it delivers, in the topic rmq_sys_delivered, and the copies behind it. A crash keeps
// the log up to some record, so of all batches only the last one of the log can be there in part; a start
// looks how many of its copies are there, and the others are delivered again. How far delivery has come is
// written to a file now and then, and may lag: the markers since then say the rest.
//
// docs/formats.md has the marker byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/broker/persisted_table.h"
#include "proto/record.h"
#include "store/message_store.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

struct DeliveryMarker {
  // Delay levels: the next queue offset of each level when this batch is done, from level 1 on, and the level
  // that the batch is of.
  std::vector<int64_t> next;
  int32_t level = 0;
  std::vector<int64_t> copied;   // queue offsets; the copies follow in this order
  std::vector<int64_t> dropped;  // done without a copy
  store::CopyGuard guard;        // one for each of `copied`

  std::string encode() const;
  static std::optional<DeliveryMarker> decode(Bytes body);
};

// A message of a system topic that is due, and what becomes of it.
struct DueMessage {
  int64_t offset = 0;  // in its queue
  store::QueueUnit unit;
  store::LogExtent extent;  // the record; empty: there is none any more
  proto::RecordView record;
  std::string properties;  // of the copy, where they are others than the record's
};

// The batches of one kind of delivery: a queue of rmq_sys_delivered. On the broker's loop.
class Delivery {
 public:
  Delivery(Broker& broker, int32_t queue) : broker_(broker), queue_(queue) {}

  // One batch at a time: who composes a marker holds this until its put has resolved.
  Semaphore& turn() { return turn_; }
  struct Put {
    store::PutMessageStatus status = store::PutMessageStatus::UNKNOWN_ERROR;
    bool done = false;      // it is in the log, and comes out in full or as the log's last batch
    int64_t marker = -1;    // its queue offset
    int64_t physical = -1;  // of the marker
    int64_t end = -1;       // physical, of the last copy
  };
  // `copies` in the order of the marker's `copied`, which gets its guard here.
  Task<Put> put(const DeliveryMarker& unguarded, std::span<const store::MessageIn> copies);

  struct Found {
    DeliveryMarker marker;
    int64_t queue_offset = 0;
    size_t copies = 0;  // so many of marker.copied are there
  };
  // Markers of the queue from this queue offset on. Only the copies of the last are looked for.
  Task<Result<std::vector<Found>>> read_from(int64_t queue_offset);
  // The last marker at or behind that offset.
  Task<Result<std::optional<Found>>> read_last(int64_t queue_offset);

 private:
  Task<Result<std::optional<Found>>> read_one(const store::QueueUnit& unit, int64_t offset, bool last);
  Task<Result<size_t>> count_copies(const proto::RecordView& marker, size_t wanted);

  Broker& broker_;
  const int32_t queue_;
  Semaphore turn_{1};
};

// A file that says how far a kind of delivery has come. It may lag, for the markers since then say the rest,
// but what it says must be on stable storage.
class DeliveryProgress : public PersistedTable {
 public:
  DeliveryProgress(Broker& broker, Disk& disk, std::string path)
      : PersistedTable(disk, std::move(path)), broker_(broker) {}

 protected:
  // What render() gives from now on.
  virtual void freeze() = 0;
  // Writes the file once all that it says was delivered is on stable storage. False: not written.
  Task<bool> save_safe();
  // Does so every 10 s (flushDelayOffsetInterval) when `dirty_`, until the broker stops.
  Task<void> save_often();

  Broker& broker_;
  bool dirty_ = false;
};

// Resolves when all that was appended before the call is on stable storage; false: the store has failed.
Task<bool> flushed_so_far(store::MessageStore& store);

// Reads the records of these units, several at a time where they are on disk. Fails when one cannot be read.
Task<Result<void>> read_due(store::MessageStore& store, std::vector<DueMessage>& due);

// The message that is put when `due` is delivered to that queue: all but place and time of storage as it was.
// Views into `due`.
store::MessageIn copy_of(const DueMessage& due, const Address& store_host, std::string_view topic,
                         int32_t queue_id);

// Where a delayed message wants to go: REAL_TOPIC and REAL_QID. Nothing: it says none that there may be.
struct RealQueue {
  std::string_view topic;
  int32_t queue_id = 0;
};
std::optional<RealQueue> real_queue_of(const proto::RecordView& record);

}  // namespace rmq::broker

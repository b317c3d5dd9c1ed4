// What the store was given, and what it must still have. The model knows every message that was ever put,
// what the store answered, and what a consumer has seen; a Dump is everything a store shows after it has
// opened. check_recovered() compares the two: this is the oracle of the crash tests.
//
// - Sync flush: what was acknowledged, or seen by a consumer, is there: same offsets, same bytes.
// - Async flush after a power cut: what is there is a prefix of the order of appending, at least up to the
//   flushed offset that the store had published; after kill -9 of the process alone, everything acknowledged.
// - One thing the record format cannot tell, without enabledAppendPropCRC: garbage within the properties (its
//   CRC covers the body alone). It is accepted in a message that nobody was promised and only after a crash
//   that makes garbage; from then on the message is what was found.
// - The log holds messages in the order of the calls, each once, nothing that was never put, and nothing
//   that an earlier recovery had already found missing.
// - Retention may have taken files from the log's front, whose messages are older than fileReservedTime.
// - The offsets of a queue never begin again: it ends where it ended when the store was last open, or later,
//   also when the log has nothing of it any more.
// - Each ConsumeQueue has exactly the units that the log implies, dense from its first offset, and a pull
//   from there gives the log's bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "sim/sim_loop.h"
#include "store/message_store.h"

namespace rmq::sim {

inline constexpr int32_t model_queues_per_topic = 3;

struct Message {
  uint64_t id = 0;  // also the first eight bytes of the body; grows with the order of the calls
  std::string topic, properties, body;
  int32_t queue_id = 0, flag = 0, sys_flag = 0, reconsume_times = 0;
  int64_t born_timestamp_ms = 0, prepared_transaction_offset = 0;
  Address born_host, store_host;

  int64_t physical_offset = -1, queue_offset = -1;  // once the store has said them
  bool acknowledged = false;                        // PUT_OK of a put that waited
  bool seen = false;                                // a consumer got it
  bool gone = false;                                // refused, or not there after a recovery
  int64_t put_ns = -1;                              // when it was put in this life, by its monotonic clock
  bool old = false;                                 // retention may have deleted it

  bool has_unit() const;  // half and rolled-back messages of transactions have none
  store::MessageIn in() const;
};

struct QueueDump {
  std::string topic;
  int32_t queue_id = 0;
  int64_t min_offset = 0, max_offset = 0;
  std::vector<std::tuple<int64_t, int32_t, int64_t>> units;  // physical offset, bytes, tags code
  std::string pulled;                                        // all records, as get() gave them
  bool operator==(const QueueDump&) const = default;
};

struct Dump {
  int64_t min_physical = 0, max_physical = 0;
  std::string log;  // between the two
  std::vector<QueueDump> queues;
  bool operator==(const Dump&) const = default;
};

// The first thing in which they differ, for a person.
std::string difference(const Dump& is, const Dump& was);

// What happened to the machine since the store was last open.
enum class Since : uint8_t { nothing, process_killed, power_cut };

struct Model {
  explicit Model(uint64_t s) : random(s), seed(s) {}

  // The next message, not yet put.
  Message& make(size_t body_bytes_max);
  // A new life begins: `dump` is what there is now; it has to stay.
  void settle(const Dump& dump);
  // A life ends: of what was put in it, retention may have taken what is that old.
  void grow_old(int64_t now_ns, int64_t reserved_ms);

  SimRandom random;
  uint64_t seed;
  std::deque<Message> messages;                             // by id
  std::map<std::pair<std::string, int32_t>, int64_t> ends;  // of queues, as they were seen
  int64_t flushed_floor = 0;                                // the store said: on stable storage below this
  bool sync_flush = true;
  bool property_crc = false;  // records have the CRC of all of their bytes
  Since since = Since::nothing;
  bool garbage = false;  // since then: unsynced blocks may hold anything
};

using Errors = std::vector<std::string>;

// Everything that an idle store shows. Errors of reading go into `errors`.
Task<void> take_dump(store::MessageStore& s, Dump& out, Errors& errors);

void check_recovered(const Model& model, const Dump& dump, Errors& errors);

// The messages in bytes that hold records back to back; for a record that is no message of the model, or
// differs from it, an error.
std::vector<const Message*> messages_in(const Model& model, std::string_view records, Errors& errors);

}  // namespace rmq::sim

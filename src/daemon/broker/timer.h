// Messages of any delay. Such a message lies in rmq_sys_wheel_timer, queue 0, as in RocketMQ; its unit holds
// the time to deliver as tags code (store/format.h), so the queue is the index on disk, and a start reads 20
// bytes a message. In memory are 16 bytes for each of those that are due next, at most a sixteenth of
// memoryLimit; when more are pending, those due last are left to the queue and read again in time.
//
// What is due is delivered in batches, each message once (delivery.h). Which messages are done is a set of
// queue offsets, in the file config/timerDelivered.json and the markers that are newer.
//
// A message that is still pending when the log ages is put again, at the log's end, by a batch whose marker
// says that the old one is done: so it outlives the log's retention.
//
// A recalled message: a message of its own with TIMER_DEL_UNIQKEY, as in RocketMQ, which is there when the
// time comes. One loop, the broker's. timer.cc has what comes in and the files, timer_run.cc what goes out,
// timer_java.cc what RocketMQ's broker left and needs, timer_metrics.cc what is told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/broker/delivery.h"
#include "daemon/broker/due_clock.h"
#include "daemon/broker/persisted_table.h"
#include "daemon/broker/timer_properties.h"
#include "daemon/broker/timer_set.h"
#include "proto/bodies_config.h"
#include "store/message_store.h"

namespace rmq::broker {

class Broker;
class TimerLogWriter;

class TimerService : public DeliveryProgress {
 public:
  TimerService(Broker& broker, Disk& disk, std::string path);
  // The file, what was delivered since, and what RocketMQ's broker did before or between (config/timercheck).
  // Before anything is put into the store.
  Task<Result<void>> load();
  // Reads what is pending, then delivers; until the broker's `stopping` and stop().
  void start(Scope& scope);
  void stop();
  // Nothing is delivered any more: brings the file up to date, and RocketMQ's.
  Task<void> close();

  // Makes a timer message of one that is put: its place, properties and tags code. `properties` must outlive
  // the put. False: no room for what delivery adds to the properties. After it, in the same order, the put;
  // put_refused() when it did not come into the log.
  bool begin_put(store::MessageIn& m, std::string& properties, const TimerAsk& ask);
  void put_refused() { arriving_--; }
  // A message has come into the queue.
  void arrived(const store::Arrival& a);
  // The wall clock was set.
  void clock_stepped();

  // Whether a message that is due then can be recalled still.
  bool can_recall(int64_t deliver_ms) const;
  // The latest time of any message that has waited in this run: timerMaxDelaySec may have been longer.
  int64_t latest_ms() const { return latest_ms_; }
  // Whether the recall with that queue offset came in time.
  bool holds_recall(int64_t deliver_ms, int64_t offset) const;

  // Messages for RocketMQ's revive log are not delivered but wait for pop/java_pops.h, who takes them out:
  // those that came since the last call, by queue offset. After `scanned` all that were there at the start
  // are among them.
  std::vector<int64_t> take_for_pops();
  Event scanned;
  // They are done, without a copy, and that is on stable storage. False: it could not be written.
  Task<bool> drop(std::vector<int64_t> offsets);
  bool is_done(int64_t offset) const { return done_.contains(offset); }

  // Physical offset of the oldest message that is not done; INT64_MAX: all are.
  Task<int64_t> needed_from() const;

  struct Stats {
    uint64_t delivered = 0, recalled = 0, rolled = 0;
    size_t in_memory = 0, memory_bytes = 0;
    int64_t first_pending = 0;  // queue offset
    int64_t late_ms = 0;        // of what is due and was not delivered yet
    size_t due = 0;             // how many are, up to 100,000
    int64_t unread = 0;         // messages of the queue that a start has still to read
  };
  Stats stats() const;
  // How many wait, by real topic. The first call reads their records, and may answer with what it has by
  // then.
  Task<const proto::TimerMetrics*> pending_by_topic();
  // The same without waiting: what is counted by now.
  const proto::TimerMetrics& counted_by_topic();
  // RocketMQ's TimerCheckpoint as of now.
  std::string java_check() const;
  // For tests: messages in memory; what is due so soon is not put again when the log ages.
  void set_memory_max(size_t entries) { entries_max_ = entries; }
  void set_roll_spare(int64_t ms) { roll_spare_ms_ = ms; }

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;
  void freeze() override;

 private:
  struct JavaCheck {  // of config/timercheck
    int64_t last_read_ms = 0;
    int64_t queue_offset = 0;
    bool operator==(const JavaCheck&) const = default;
  };
  struct Rolls {  // RocketMQ puts a message again now and then, and forgets where the old one lies
    int64_t offset;
    int64_t times;
  };
  struct Recalls {  // of one time to deliver
    std::vector<int64_t> offsets;
    size_t read = 0;  // of so many of them the key is in `keys`
    std::unordered_set<std::string> keys;
  };
  static constexpr PendingTimer no_horizon{INT64_MAX, INT64_MAX};

  // RocketMQ's files
  Task<Result<void>> read_java_check();
  std::string java_check_bytes(const JavaCheck& check, int64_t log_end) const;
  Task<Result<void>> write_java_log(TimerLogWriter& log, int64_t end);
  Task<Result<void>> hand_over();

  // what comes in, and the files
  void take_marker(const Delivery::Found& found);
  int64_t due_ms(const store::TimerTag& tag, int64_t offset) const;
  void insert(const store::TimerTag& tag, int64_t offset);

  // what goes out
  Task<void> run();
  Task<bool> scan();
  Task<Result<void>> scan_some(int64_t& at, int64_t end, int64_t from_ms);
  Task<Result<void>> scan_records(std::vector<DueMessage>& due);
  void look_at(const DueMessage& d);
  Task<void> look_at_unknown();
  Task<bool> deliver_due();
  Task<Result<void>> take_due(std::vector<DueMessage>& due, std::vector<PendingTimer>& taken);
  Task<Result<void>> read_recalls(Recalls& r);
  Task<Result<bool>> is_recalled(const proto::RecordView& record, std::string_view real_topic,
                                 int64_t deliver_ms);
  Task<Result<std::optional<store::MessageIn>>> prepare(DueMessage& d, bool roll);
  Task<Result<bool>> put_batch(std::vector<DueMessage>& due, std::optional<int64_t> roll_base);
  void finished(const std::vector<DueMessage>& due, const DeliveryMarker& marker, const Delivery::Put& put,
                bool roll);
  Task<bool> is_old(const store::QueueUnit& unit, int64_t offset);
  void begin_roll(int64_t copies, int64_t base_ns);
  void roll_refused(int64_t copies);
  Task<bool> roll_from(int64_t& at);
  Task<void> roll_old();

  // how many wait
  Task<void> count_pending();
  Task<bool> count_some();
  void count(std::string_view real_topic, int64_t change);
  void count_done(const DueMessage& d);

  Delivery delivery_;
  DoneSet done_;
  TimerHeap heap_;
  PendingTimer horizon_ = no_horizon;  // what is due then or later is only in the queue
  size_t entries_max_ = 0;
  std::map<int64_t, Recalls> recalls_;  // by time to deliver
  std::vector<int64_t> recalls_over_;   // of the batch that is on its way
  std::vector<int64_t> unknown_;        // offsets of messages that came without a tag
  std::vector<int64_t> for_pops_;       // of the revive log

  QueueBases bases_;
  int64_t arriving_ = 0;
  int64_t latest_ms_ = 0;
  int64_t roll_spare_ms_ = 60'000;
  int64_t run_from_ = 0;  // queue offsets below are of earlier runs
  int64_t scan_end_ = 0;  // and these come by the scan
  bool scanned_ = false;
  bool rescan_ = false;
  size_t batch_max_ = 0;

  int64_t marker_ = 0;             // queue offset; markers below it are in done_
  std::optional<JavaCheck> java_;  // as it was when it was last taken into account
  bool java_new_ = false;          // and has to be now
  bool java_behind_ = true;        // messages are done of which RocketMQ's files do not know
  std::unordered_map<uint64_t, Rolls> java_rolls_;
  std::string frozen_;  // what the file shall be
  uint64_t delivered_ = 0, recalled_ = 0, rolled_ = 0;
  Event wake_;

  proto::TimerMetrics counts_;  // of queue offsets below counted_to_
  bool counting_ = false;
  int64_t counted_to_ = 0;
  Event count_wake_, counted_;
};

}  // namespace rmq::broker

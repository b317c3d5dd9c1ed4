// The broker: its tables, its services, and the steps that handlers share. Everything runs on one loop, the
// store's. Handlers are free functions, a file a family (send_message.cc, pull_message.cc, …), bound to
// request codes in routes.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/client_manager.h"
#include "daemon/broker/consumer_filter_manager.h"
#include "daemon/broker/deduplication.h"
#include "daemon/broker/discard.h"
#include "daemon/broker/due_clock.h"
#include "daemon/broker/group_manager.h"
#include "daemon/broker/lock_manager.h"
#include "daemon/broker/long_polling.h"
#include "daemon/broker/metrics.h"
#include "daemon/broker/offset_manager.h"
#include "daemon/broker/pop/pop_service.h"
#include "daemon/broker/pop/request_modes.h"
#include "daemon/broker/refusal_log.h"
#include "daemon/broker/registration.h"
#include "daemon/broker/schedule.h"
#include "daemon/broker/stats.h"
#include "daemon/broker/stats_items.h"
#include "daemon/broker/timer.h"
#include "daemon/broker/topic_manager.h"
#include "daemon/broker/topic_routes.h"
#include "daemon/broker/transactions.h"
#include "daemon/broker_config.h"
#include "daemon/config.h"
#include "daemon/config_keeper.h"
#include "daemon/connection.h"
#include "proto/message_id.h"
#include "store/message_store.h"
#include "uring/io.h"

namespace rmq::broker {

// The store of this configuration, which knows of the topics with queue.type=BatchCQ that topics.json has.
Task<Result<std::unique_ptr<store::MessageStore>>> open_store(Disk& disk, const BrokerConfig& config,
                                                              store::RecoveryProgress* progress);

class Broker : public Service, private store::ArrivalListener {
 public:
  // All of them must outlive the broker. `config` has its names and addresses filled in; `source` is where it
  // came from, for changes at run time.
  Broker(BrokerConfig& config, Disk& disk, Net& net, store::MessageStore& store, ConfigSource source = {});

  // Reads the tables; then the broker can serve.
  Task<Result<void>> load();
  // Registers with the name servers, delivers delayed messages, saves offsets: until stop().
  void start();
  // Answers waiting pulls, says goodbye to the name servers, ends its own tasks. Then close the connections
  // and call save_all().
  Task<void> stop();
  Task<void> save_all();

  Task<void> serve(Request& request) override;
  // For people: why a request code is not served. Empty: nothing to say beyond that.
  static std::string_view why_not_served(int32_t code);
  void closed(const std::shared_ptr<Connection>& c) override;
  void answered(const Request& r, proto::ResponseCode code) override {
    metrics.answered(r, code, now_ns());
    if (code != proto::ResponseCode::SUCCESS && !r.is_done()) refusals.note(r, code, now_ns());
  }
  void at_work(const Request& r, int change) override { metrics.at_work(r.command.code, change); }

  // ---- what handlers share ----
  // Adds or changes a topic in the table; resolves when it is on disk and every name server knows it or
  // failed. False: unchanged.
  Task<Result<bool>> change_topic(proto::TopicConfig c);
  // The same for many, with one registration.
  Task<Result<void>> change_topics(std::vector<proto::TopicConfig> all);
  // A retry or dead-letter topic, created with these values when it is missing. Resolves when the name
  // servers know it; it goes to disk soon after, because losing it loses nothing: the next use makes it
  // again.
  Task<void> ensure_topic(std::string name, int32_t queues, int32_t perm, int32_t sys_flag = 0);
  // A group that find_or_create() made goes to disk soon.
  void save_new_groups();
  // Hands changed run-time keys of `config` to the parts that keep copies of them, and tells the name servers
  // what concerns them.
  void apply_config();

  // Where a message goes that is delayed by level (above 0) or by what the properties ask of the timer, with
  // what it has to have there. Called right before its put, and after that delayed_put() with what came out.
  // PUT_OK: `m` and `properties` are changed for it, or left as they are when nothing is delayed; else the
  // status to answer with. `properties` must outlive the put, as `placed`, which says which it was. `taken`:
  // the delay was taken with a half message; what the configuration says by now does not refuse it.
  struct Placed {
    int level = 0;
    bool timer = false;
    int64_t deliver_ms = 0;  // of the timer
    std::string topic;       // that it is for, of the timer
  };
  store::PutMessageStatus place_delayed(store::MessageIn& m, std::string& properties, int level,
                                        Placed& placed, bool taken = false);
  void delayed_put(const Placed& placed, const store::PutMessageResult& result);
  // All of it, with the level that DELAY says.
  Task<store::PutMessageResult> put_delayed(store::MessageIn message, std::string& properties,
                                            bool wait = true);
  // Stores a message, with a level above 0 delayed by it.
  Task<store::PutMessageResult> put(store::MessageIn message, std::string& properties, int delay_level,
                                    bool wait = true);
  // Level (from 1 on) of the value of DELAY, 0 for none; -1: not a number.
  int delay_level_of(std::string_view delay) const;

  // The queue for a message that was meant for `queue_id` some time ago: the same, or, when the topic has
  // fewer queues by now and consumers do not read that one any more, one that they do.
  int32_t queue_by_now(std::string_view topic, int32_t queue_id) const;

  // Before a due time is made or compared: those who keep some are told when the wall clock was set.
  void look_at_clock();

  int64_t wall_ms() const { return Loop::current().wall_ms(); }
  int64_t now_ns() const { return Loop::current().now_ns(); }
  std::string unique_id();
  const std::string& address_text() const { return address_text_; }  // brokerIP1:listenPort

  BrokerConfig& config;
  const ConfigSource config_source;
  ConfigKeeper config_keeper;
  Disk& disk;
  Net& net;
  store::MessageStore& store;
  DelayLevels delay_levels;
  TopicManager topics;
  GroupManager groups;
  OffsetManager offsets;
  ClientManager clients;
  ConsumerFilterManager filters;
  LockManager locks;
  LongPolling long_polling;
  DueClock due_clock;
  Registration registration;
  ScheduleService schedule;
  TransactionService transactions;
  TimerService timers;
  Deduplication dedup;
  DiscardService discard;
  PopService pop;
  RequestModes request_modes;
  TopicRoutes routes;
  BrokerStats stats;
  StatsItemSet stats_items;
  BrokerMetrics metrics;
  RefusalLog refusals;
  proto::DataVersion config_version;
  Address store_host;
  proto::Host store_id_host;  // the same, for message ids
  const int64_t boot_wall_ms;
  Event stopping;

 private:
  void on_arrival(const store::Arrival& a) override;
  Task<void> once_a_second();
  Task<void> fold_offsets();
  Task<void> fold_soon(LoggedTable& table);
  Task<void> keep_filters();
  Task<void> fold_pops();
  Task<void> save_groups();
  void look_for_cut_queues();
  Task<void> save_topics();
  Task<Result<void>> load_compacted_topics();
  // Before a topic is put: when it is new, and compacted or of type BatchCQ, the store has to know.
  Task<Result<void>> prepare_new_topic(const proto::TopicConfig& c);
  Task<void> look_for_silent_clients();
  Task<void> keep_what_waits();
  Task<void> save_what_a_full_disk_kept();

  std::string address_text_;
  int64_t registered_permission_ = 0;  // brokerPermission as the name servers were told it
  proto::UniqueIdMaker unique_ids_;
  Scope scope_;
};

// ResponseCode and remark of a put that did not give PUT_OK (storage.md 2.2).
struct Refusal {
  proto::ResponseCode code;
  std::string remark;
};
Refusal refusal_of(const Broker& b, store::PutMessageStatus s);

proto::Host to_host(const Address& a);
Address to_address(const proto::Host& h);
// A message with the contents of a record; views into it. Topic and queue are the caller's to set.
store::MessageIn copy_of(const proto::RecordView& record, const Address& store_host);

}  // namespace rmq::broker

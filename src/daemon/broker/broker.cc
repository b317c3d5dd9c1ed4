#include "daemon/broker/broker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "base/log.h"
#include "daemon/broker/attributes.h"
#include "daemon/broker_config.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

using proto::ResponseCode;
using store::PutMessageStatus;

proto::Host to_host(const Address& a) {
  proto::Host h;
  h.v6 = a.v6;
  h.port = a.port;
  std::memcpy(h.address.data(), a.ip, h.address_bytes());
  return h;
}

Address to_address(const proto::Host& h) {
  Address a;
  a.v6 = h.v6;
  a.port = static_cast<uint16_t>(h.port);
  std::memcpy(a.ip, h.address.data(), h.address_bytes());
  return a;
}

store::MessageIn copy_of(const proto::RecordView& record, const Address& store_host) {
  store::MessageIn m;
  m.may_use_reserve = true;  // its original was taken: what follows from that goes on when the disk is full
  m.flag = record.flag;
  m.sys_flag = record.sys_flag;
  m.born_timestamp_ms = record.born_timestamp_ms;
  m.born_host = to_address(record.born_host);
  m.store_host = store_host;
  m.reconsume_times = record.reconsume_times;
  m.body = record.body;
  m.properties = record.properties;
  m.was_stored = true;
  return m;
}

static std::string config_path(const BrokerConfig& c, const char* file) {
  return c.storePathRootDir + "/config/" + file;
}

Task<Result<std::unique_ptr<store::MessageStore>>> open_store(Disk& disk, const BrokerConfig& config,
                                                              store::RecoveryProgress* progress) {
  store::StoreOptions options = store_options_of(config);
  std::string file = config_path(config, "topics.json");
  CO_TRY_VAR(topics, co_await read_batch_topics(disk, std::move(file), config));
  options.batch_topics = std::move(topics);
  co_return co_await store::MessageStore::open(disk, std::move(options), progress);
}

static const char* offset_file(bool light_queues) {
  return light_queues ? "lmqConsumerOffset.json" : "consumerOffset.json";
}
static std::string address_of(const BrokerConfig& c) {
  bool v6 = c.brokerIP1.find(':') != std::string::npos;
  return (v6 ? "[" + c.brokerIP1 + "]" : c.brokerIP1) + ":" + std::to_string(c.listenPort);
}
// A change that was answered is as safe as a message.
static Durability durability_of(const store::MessageStore& s) {
  return s.options().flush == store::FlushDiskType::SYNC_FLUSH ? Durability::on_media : Durability::none;
}
static Address parsed(const std::string& text) {
  auto a = Address::parse(text);
  check(a.has_value());  // the configuration was checked
  return *a;
}

Broker::Broker(BrokerConfig& c, Disk& d, Net& n, store::MessageStore& s, ConfigSource source)
    : config(c),
      config_source(std::move(source)),
      config_keeper(d, config_source.file, own_config_path(c)),
      disk(d),
      net(n),
      store(s),
      delay_levels(DelayLevels::parse(c.messageDelayLevel).value_or(DelayLevels{})),
      topics(d, config_path(c, "topics.json"), c, delay_levels.count()),
      groups(d, config_path(c, "subscriptionGroup.json"), c),
      offsets(d, config_path(c, offset_file(c.enableLmq)), durability_of(s), c.enableLmq),
      filters(d, config_path(c, "consumerFilter.json"), config.filterDataCleanTimeSpan),
      locks(d, config_path(c, "queueLocks.json")),
      due_clock(Loop::current().clock()),
      registration(*this, n),
      schedule(*this, d, config_path(c, "delayOffset.json")),
      transactions(*this),
      timers(*this, d, config_path(c, "timerDelivered.json")),
      dedup(*this),
      discard(*this, d, config_path(c, "discardedBelow.json")),
      pop(*this, d, config_path(c, "popOutstanding.json"), durability_of(s), offsets),
      request_modes(d, config_path(c, "messageRequestMode.json")),
      routes(*this),
      stats_items(c.brokerClusterName, Loop::current().now_ns()),
      store_host(parsed(address_of(c))),
      store_id_host(to_host(store_host)),
      boot_wall_ms(Loop::current().wall_ms()),
      address_text_(address_of(c)),
      registered_permission_(c.brokerPermission),
      unique_ids_(to_host(store_host), static_cast<uint16_t>(getpid()),
                  static_cast<uint32_t>(Loop::current().random().next())) {
  store.set_arrival_listener(this);
  clients.set_on_last_left([this](std::string_view group) { filters.unregister_group(group, wall_ms()); });
  if (c.memoryLimit > 0) net_memory.set_limit(net_memory_bytes_of(c));
}

Task<Result<void>> Broker::load() {
  CO_TRY(co_await topics.load());
  for (const auto& [name, c] : topics.all())
    if (is_batch_topic(c) && !store.is_batch_topic(name)) CO_TRY(co_await store.add_batch_topic(name));
  CO_TRY(co_await load_compacted_topics());
  CO_TRY(co_await groups.load());
  CO_TRY(co_await pop.table.load());  // before the offsets, which it follows
  CO_TRY(co_await offsets.take_over(disk, config_path(config, offset_file(!config.enableLmq))));
  CO_TRY(co_await offsets.load());
  co_await pop.load();
  // Heartbeats bring again what is lost here.
  auto filters_loaded = co_await filters.load();
  if (!filters_loaded)
    log(LogLevel::warning, ids::filters_unreadable, "consumerFilter.json cannot be read and is passed over",
        {{"FILE", filters.path()}, {"REASON", to_string(filters_loaded.error())}});
  CO_TRY(co_await request_modes.load());
  CO_TRY(co_await locks.load());
  CO_TRY(co_await schedule.load());
  CO_TRY(co_await discard.load());
  CO_TRY(co_await timers.load());
  store.set_needed_from(0);  // until start() has looked
  topics.add_system_topics(wall_ms());
  groups.add_system_groups(wall_ms());
  co_await topics.fold();
  co_await groups.fold();
  CO_TRY(co_await topics.save());
  CO_TRY(co_await groups.save());
  co_return Result<void>{};
}

// Offsets behind the end of their queue are of messages that the loss of power took (ASYNC_FLUSH), or a
// damaged log: what comes to those offsets now is something else, and the group has not had it.
void Broker::look_for_cut_queues() {
  size_t cut = 0;
  std::string example;
  const proto::ConsumerOffsetWrapper all = offsets.snapshot();
  for (const auto& [key, queues] : all.offset_table) {
    const size_t at = key.find('@');
    if (at == std::string::npos) continue;
    const std::string_view topic = std::string_view(key).substr(0, at);
    const std::string_view group = std::string_view(key).substr(at + 1);
    for (const auto& [queue_id, offset] : queues) {
      const int64_t max = store.max_offset(topic, queue_id);
      const bool popped = pop.queue_ends(group, topic, queue_id, max);
      if (!popped && offset <= max) continue;
      if (!popped) offsets.cut(group, topic, queue_id, max);
      if (cut++ == 0) example = fmt::format("{}, queue {}: {} of {}", key, queue_id, offset, max);
    }
  }
  if (cut > 0)
    log(LogLevel::warning, ids::offsets_cut, "consumer offsets behind the end of their queues were set to it",
        {{"COUNT", std::to_string(cut)}, {"EXAMPLE", example}});
}

void Broker::start() {
  look_for_cut_queues();
  registration.start(scope_);
  schedule.start(scope_);
  discard.start(scope_);
  transactions.start(scope_);
  timers.start(scope_);
  dedup.start(scope_);
  pop.start(scope_);
  scope_.spawn(clients.tell_members(stopping));
  scope_.spawn(once_a_second());
  scope_.spawn(fold_offsets());
  scope_.spawn(fold_soon(topics));
  scope_.spawn(fold_soon(groups));
  scope_.spawn(keep_filters());
  scope_.spawn(fold_pops());
  scope_.spawn(look_for_silent_clients());
  scope_.spawn(keep_what_waits());
  scope_.spawn(save_what_a_full_disk_kept());
}

Task<void> Broker::stop() {
  stopping.set();
  topics.to_fold().notify();
  groups.to_fold().notify();
  schedule.stop();
  transactions.stop();
  timers.stop();
  dedup.stop();
  pop.stop();
  clients.stop();
  long_polling.wake_all();
  co_await registration.unregister_all();
  co_await registration.stop();
  co_await scope_.join();
}

Task<void> Broker::save_all() {
  co_await scope_.join();
  co_await topics.close();
  co_await groups.close();
  co_await offsets.close();
  co_await filters.clean_and_save(wall_ms());
  co_await pop.table.close();  // after the offsets, whose file it names
  co_await schedule.close();
  co_await timers.close();
  store.set_arrival_listener(nullptr);
  store.set_queue_listener(nullptr);
}

// ---- tasks that run beside ---------------------------------------------------------------------------

Task<void> Broker::once_a_second() {
  uint64_t seconds = 0;
  proto::DataVersion topics_counted, groups_counted;
  for (;;) {
    bool stop = co_await stopping.wait_for(ns_per_s);
    if (stop) co_return;
    stats.sample();
    stats.flush.sample(store.stats().log_write);
    if (++seconds % 10 != 0) continue;
    stats_items.sample(now_ns());
    if (topics.data_version() == topics_counted && groups.data_version() == groups_counted) continue;
    topics_counted = topics.data_version();
    groups_counted = groups.data_version();
    metrics.forget_where([&](std::string_view topic) { return topics.find(topic) != nullptr; },
                         [&](std::string_view group) { return groups.find(group) != nullptr; });
  }
}

Task<void> Broker::fold_offsets() {
  for (;;) {
    bool stop = co_await stopping.wait_for(config.flushConsumerOffsetInterval * ns_per_ms);
    if (stop) co_return;
    co_await offsets.fold();
  }
}

// Whoever reads the files, as RocketMQ would, sees a change soon. They take the longer the more there is: a
// twentieth of the time at most is spent on them while changes come, and a full disk is tried seldom.
Task<void> Broker::fold_soon(LoggedTable& table) {
  constexpr int64_t pause_min_ns = 200 * ns_per_ms, pause_failed_ns = 5 * ns_per_s;
  for (int64_t pause_ns = pause_min_ns; !stopping.is_set();) {
    co_await table.to_fold().wait();  // stop() notifies
    bool stop = co_await stopping.wait_for(pause_ns);
    if (stop) co_return;
    const int64_t began_ns = now_ns();
    co_await table.fold();
    pause_ns = std::max(pause_min_ns, 20 * (now_ns() - began_ns));
    if (table.to_fold().is_set()) pause_ns = std::max(pause_ns, pause_failed_ns);
  }
}

Task<void> Broker::keep_filters() {
  for (;;) {
    bool stop = co_await stopping.wait_for(10 * ns_per_s);
    if (stop) co_return;
    co_await filters.clean_and_save(wall_ms());
  }
}

Task<void> Broker::fold_pops() {
  for (;;) {
    bool stop = co_await stopping.wait_for(ns_per_s);
    if (stop) co_return;
    co_await pop.table.fold_if_long();
  }
}

Task<void> Broker::look_for_silent_clients() {
  for (;;) {
    bool stop = co_await stopping.wait_for(10 * ns_per_s);
    if (stop) co_return;
    clients.close_silent(now_ns(), config.channelExpiredTimeout * ns_per_ms);
    locks.sweep(now_ns());
    co_await locks.save_renewals();
  }
}

Task<void> Broker::save_what_a_full_disk_kept() {
  for (;;) {
    bool stop = co_await stopping.wait_for(5 * ns_per_s);
    if (stop) co_return;
    co_await filters.save_again();
    co_await schedule.save_again();
    co_await discard.save_again();
    co_await request_modes.save_again();
    co_await locks.save_again();
  }
}

// Delayed messages that are still to come, and half messages that are open, do not go with old files of the
// log. Those of the timer and of transactions move on to newer ones before (timer.h, transactions.h). What is
// needed only moves forward, so an older answer is a safe one.
Task<void> Broker::keep_what_waits() {
  for (;;) {
    int64_t levels = co_await schedule.needed_from();
    int64_t timer = co_await timers.needed_from();
    store.set_needed_from(std::min({levels, timer, transactions.needed_from()}));
    bool stop = co_await stopping.wait_for(5 * ns_per_s);
    if (stop) co_return;
  }
}

void Broker::save_new_groups() {
  if (groups.take_unsaved()) scope_.spawn(save_groups());
}

Task<void> Broker::save_groups() {
  [[maybe_unused]] auto saved = co_await groups.save();
}

void Broker::closed(const std::shared_ptr<Connection>& c) {
  auto notify = [](const void* self, std::string_view group) {
    const auto* g = static_cast<const Broker*>(self)->groups.find(group);
    return g == nullptr || g->notify_consumer_ids_changed_enable;
  };
  clients.remove_connection(c.get(), notify, this);
}

void Broker::apply_config() {
  config_version.next(wall_ms());
  store.set_run_time_options(store_options_of(config));
  store.set_retention(retention_options_of(config));
  log_set_level(log_level_of(config.logLevel));
  const proto::DataVersion before = topics.data_version();
  topics.add_system_topics(wall_ms());  // TBW102, when topics are made automatically from now on
  if (config.brokerPermission != registered_permission_) topics.changed(wall_ms());
  registered_permission_ = config.brokerPermission;
  if (topics.data_version() == before) return;
  scope_.spawn(save_topics());
  scope_.spawn(registration.tell_changes());
}

// ---- shared steps ------------------------------------------------------------------------------------

static void log_topic(const proto::TopicConfig& c) {
  log(LogLevel::notice, ids::topic_changed, "topic created or changed",
      {{"TOPIC", c.topic_name},
       {"QUEUES", fmt::format("{} read, {} write", c.read_queue_nums, c.write_queue_nums)}});
}

Task<Result<void>> Broker::load_compacted_topics() {
  std::vector<std::string> compacted;
  for (const auto& [name, c] : topics.all())
    if (config.enableCompaction && is_compaction_topic(c)) compacted.push_back(name);
  co_return co_await store.set_compacted_topics(std::move(compacted));
}

Task<Result<void>> Broker::prepare_new_topic(const proto::TopicConfig& c) {
  if (topics.find(c.topic_name) != nullptr) co_return Result<void>{};
  if (is_batch_topic(c)) co_return co_await store.add_batch_topic(c.topic_name);
  if (store.is_batch_topic(c.topic_name))
    co_return fail(Errc::bad_input, "a topic of that name with queue.type=BatchCQ is being deleted");
  if (!config.enableCompaction || !is_compaction_topic(c)) co_return Result<void>{};
  co_return co_await store.add_compacted_topic(c.topic_name);
}

Task<Result<bool>> Broker::change_topic(proto::TopicConfig c) {
  const proto::TopicConfig copy = c;
  CO_TRY(co_await prepare_new_topic(c));
  if (!topics.put(std::move(c), wall_ms())) co_return false;
  log_topic(copy);
  Scope registering;
  registering.spawn(registration.tell_changes());
  auto saved = co_await topics.save();
  co_await registering.join();
  if (!saved) co_return std::unexpected(saved.error());
  co_return true;
}

Task<Result<void>> Broker::change_topics(std::vector<proto::TopicConfig> all) {
  bool changed = false;
  for (proto::TopicConfig& c : all) {
    const proto::TopicConfig copy = c;
    CO_TRY(co_await prepare_new_topic(c));
    if (!topics.put(std::move(c), wall_ms())) continue;
    log_topic(copy);
    changed = true;
  }
  if (!changed) co_return Result<void>{};
  Scope registering;
  registering.spawn(registration.tell_changes());
  auto saved = co_await topics.save();
  co_await registering.join();
  co_return saved;
}

Task<void> Broker::ensure_topic(std::string name, int32_t queues, int32_t perm, int32_t sys_flag) {
  if (topics.find(name) != nullptr) co_return;
  proto::TopicConfig c;
  c.topic_name = std::move(name);
  c.read_queue_nums = c.write_queue_nums = queues;
  c.perm = perm;
  c.topic_sys_flag = sys_flag;
  topics.put(c, wall_ms());
  log_topic(c);
  scope_.spawn(save_topics());
  co_await registration.tell_changes();
}

Task<void> Broker::save_topics() {
  [[maybe_unused]] auto saved = co_await topics.save();
}

std::string Broker::unique_id() {
  return unique_ids_.next(wall_ms());
}

int Broker::delay_level_of(std::string_view text) const {
  if (text.empty()) return 0;
  int64_t level = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (ec != std::errc{} || end != text.data() + text.size()) return -1;
  if (level <= 0) return 0;
  return static_cast<int>(std::min<int64_t>(level, delay_levels.count()));
}

PutMessageStatus Broker::place_delayed(store::MessageIn& m, std::string& properties, int level,
                                       Placed& placed, bool taken) {
  if (level > 0) {
    for (std::string_view t :
         {proto::prop::TIMER_DELAY_MS, proto::prop::TIMER_DELAY_SEC, proto::prop::TIMER_DELIVER_MS})
      proto::remove_property(properties, t);
    // A level beyond the last is the last from here on, as with RocketMQ.
    if (const std::string n = std::to_string(level);
        proto::find_property(properties, proto::prop::DELAY) != n)
      proto::set_property(properties, proto::prop::DELAY, n);
    proto::set_property(properties, proto::prop::REAL_TOPIC, m.topic);
    proto::set_property(properties, proto::prop::REAL_QID, std::to_string(m.queue_id));
    m.topic = proto::names::SCHEDULE_TOPIC_XXXX;
    m.queue_id = level - 1;
    m.tags_code = schedule.begin_put(level);
    placed.level = level;
    m.properties = properties;
    return PutMessageStatus::PUT_OK;
  }
  look_at_clock();
  constexpr int64_t any_delay_ms = int64_t{200} * 365 * 86'400'000;  // twice what can be configured
  TimerAsk ask = timer_ask_of(properties, due_clock.wall_ms(), due_clock.wall_ms_up(),
                              taken ? any_delay_ms : config.timerMaxDelaySec * 1000);
  m.properties = properties;
  if (ask.what == TimerAsk::What::nothing) return PutMessageStatus::PUT_OK;
  if (!config.timerWheelEnable && !taken) return PutMessageStatus::WHEEL_TIMER_NOT_ENABLE;
  if (ask.what == TimerAsk::What::illegal) return PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL;
  if (ask.what == TimerAsk::What::now) return PutMessageStatus::PUT_OK;
  std::string real_topic(m.topic);
  if (!timers.begin_put(m, properties, ask)) return PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
  placed.topic = std::move(real_topic);
  placed.timer = true;
  placed.deliver_ms = ask.deliver_ms;
  return PutMessageStatus::PUT_OK;
}

void Broker::delayed_put(const Placed& placed, const store::PutMessageResult& result) {
  if (placed.timer && result.queue_offset >= 0) {
    stats.now.timers_taken++;
    metrics.timer_taken(placed.topic, placed.deliver_ms - due_clock.wall_ms());
  }
  if (result.queue_offset >= 0) return;
  if (placed.level > 0) schedule.put_refused(placed.level);
  if (placed.timer) timers.put_refused();
}

Task<store::PutMessageResult> Broker::put_delayed(store::MessageIn m, std::string& properties, bool wait) {
  auto delay = proto::find_property(properties, proto::prop::DELAY);
  Placed placed;
  PutMessageStatus status = place_delayed(m, properties, delay ? delay_level_of(*delay) : 0, placed);
  if (status != PutMessageStatus::PUT_OK) co_return store::PutMessageResult{status};
  store::PutMessageResult result = co_await store.put(m, wait);
  delayed_put(placed, result);
  co_return result;
}

Task<store::PutMessageResult> Broker::put(store::MessageIn m, std::string& properties, int level, bool wait) {
  m.properties = properties;
  Placed placed;
  if (level > 0) place_delayed(m, properties, level, placed);
  store::PutMessageResult result = co_await store.put(m, wait);
  delayed_put(placed, result);
  co_return result;
}

int32_t Broker::queue_by_now(std::string_view topic, int32_t queue_id) const {
  const proto::TopicConfig* c = topics.find(topic);
  if (c == nullptr || queue_id < c->read_queue_nums || c->write_queue_nums <= 0) return queue_id;
  return queue_id % c->write_queue_nums;
}

void Broker::look_at_clock() {
  if (!due_clock.look()) return;
  log(LogLevel::notice, ids::clock_set, "the wall clock has been set",
      {{"WALL_MS", std::to_string(due_clock.wall_ms())}});
  schedule.clock_stepped();
  timers.clock_stepped();
}

void Broker::on_arrival(const store::Arrival& a) {
  ArrivedMessage m(a, store);
  long_polling.on_arrival(m);
  pop.on_arrival(m);
  stats_items.add(StatsKind::topic_put, a.topic, {}, static_cast<uint64_t>(a.messages),
                  static_cast<uint64_t>(a.bytes), now_ns());
  using proto::names::rmq_sys_wheel_timer, proto::names::SCHEDULE_TOPIC_XXXX;
  static_assert(SCHEDULE_TOPIC_XXXX.size() == rmq_sys_wheel_timer.size());
  if (a.topic.size() != rmq_sys_wheel_timer.size()) return;
  if (a.topic == SCHEDULE_TOPIC_XXXX) schedule.arrived(a.queue_id);
  if (a.topic == rmq_sys_wheel_timer) timers.arrived(a);
}

Refusal refusal_of(const Broker& b, PutMessageStatus s) {
  switch (s) {
    case PutMessageStatus::PUT_OK:
      return {ResponseCode::SUCCESS, {}};
    case PutMessageStatus::FLUSH_DISK_TIMEOUT:
      return {ResponseCode::FLUSH_DISK_TIMEOUT, {}};
    case PutMessageStatus::MESSAGE_ILLEGAL:
    case PutMessageStatus::PROPERTIES_SIZE_EXCEEDED:
      return {ResponseCode::MESSAGE_ILLEGAL,
              fmt::format("the message is illegal, maybe msg body or properties length not matched. msg body "
                          "length limit {}B, msg properties length limit 32KB.",
                          b.config.maxMessageSize)};
    case PutMessageStatus::SERVICE_NOT_AVAILABLE:
      return {
          ResponseCode::SERVICE_NOT_AVAILABLE,
          fmt::format(
              "service not available now: {}. It may be caused by one of the following reasons: the "
              "broker's disk is full, messages are put to the slave, message store has been shut down, etc.",
              b.store.not_writable_reason())};
    case PutMessageStatus::CREATE_MAPPED_FILE_FAILED:
      return {ResponseCode::SYSTEM_ERROR, "create mapped file failed, server is busy or broken."};
    case PutMessageStatus::OS_PAGE_CACHE_BUSY:
      return {ResponseCode::SYSTEM_BUSY, "[PC_SYNCHRONIZED]broker busy, start flow control for a while"};
    case PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL:
      return {ResponseCode::MESSAGE_ILLEGAL,
              fmt::format(
                  "timer message illegal, the delay time should not be bigger than the max delay {}ms; or "
                  "if set del msg, the delay time should be bigger than the current time",
                  b.config.timerMaxDelaySec * 1000)};
    case PutMessageStatus::WHEEL_TIMER_NOT_ENABLE:
      return {ResponseCode::SYSTEM_ERROR, "accurate timer message is not enabled, timerWheelEnable is false"};
    case PutMessageStatus::LMQ_CONSUME_QUEUE_NUM_EXCEEDED:
      return {
          ResponseCode::SYSTEM_ERROR,
          fmt::format("[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]broker config enableLmq and enableMultiDispatch, lmq "
                      "consumeQueue num exceed maxLmqConsumeQueueNum, which is {}",
                      b.config.maxLmqConsumeQueueNum)};
    case PutMessageStatus::UNKNOWN_ERROR:
      break;
  }
  return {ResponseCode::SYSTEM_ERROR, "UNKNOWN_ERROR"};
}

}  // namespace rmq::broker

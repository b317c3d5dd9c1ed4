// The timer service: reading what is pending, delivering what is due, putting old messages again.
#include <algorithm>
#include <charconv>

#include "base/limits.h"
#include "base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/timer.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

namespace prop = proto::prop;
using store::TimerKind;

namespace {
constexpr std::string_view topic = store::timer_topic;
constexpr size_t batch_messages_max = 512;
constexpr size_t batch_bytes_max = 512u << 10;  // or one message
constexpr int64_t look_ns = 500 * ns_per_ms;    // to see the wall clock being set
constexpr int64_t after_failure_ns = 1 * ns_per_s;
constexpr int64_t roll_look_ns = 10 * ns_per_s;
constexpr int64_t roll_files_min = 2;   // fewer files of the log: it is not about to be deleted
constexpr int64_t span_max = 16 << 20;  // bits of DoneSet: 2 MiB, or 8 for each message that waits
constexpr int64_t ms_per_hour = 3'600'000;
constexpr int64_t overlap_ms = 1000;  // of a scan with what is in memory

uint64_t hash_of(std::string_view a, std::string_view b, int64_t c) {
  uint64_t h = std::hash<std::string_view>{}(a) * 0x9e3779b97f4a7c15ULL;
  h ^= std::hash<std::string_view>{}(b) + (h << 6) + (h >> 2);
  return h ^ (static_cast<uint64_t>(c) * 0x94d049bb133111ebULL);
}

int64_t number_or(std::optional<std::string_view> text, int64_t otherwise) {
  if (!text) return otherwise;
  int64_t n = 0;
  auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), n);
  return ec == std::errc{} && end == text->data() + text->size() ? n : otherwise;
}

// RocketMQ takes messages whose properties leave no room for what delivery tells of itself.
void set_if_room(std::string& properties, std::string_view name, const std::string& value) {
  const size_t before = properties.size();
  auto old = proto::find_property(properties, name);
  const std::string old_value(old.value_or(""));
  proto::set_property(properties, name, value);
  if (properties.size() <= limits::properties_bytes_max) return;
  if (old) return proto::set_property(properties, name, old_value);
  properties.resize(before);
}
}  // namespace

// ---- reading what is pending -------------------------------------------------------------------------

// A message whose unit does not say what it is: RocketMQ's, or one that somebody sent to the topic itself.
void TimerService::look_at(const DueMessage& d) {
  if (d.extent.bytes().empty()) return done_.add(d.offset);
  auto tag = store::timer_tag_of(d.record);
  if (!tag) return done_.add(d.offset);
  if (java_new_ && d.offset < java_->queue_offset && tag->deliver_ms < java_->last_read_ms)
    return done_.add(d.offset);
  auto key = d.record.property(prop::UNIQ_KEY), real = d.record.property(prop::REAL_TOPIC);
  if (key && real && tag->kind != TimerKind::recall) {
    int64_t times = number_or(d.record.property(prop::TIMER_ROLL_TIMES), 0);
    auto [it, first] = java_rolls_.try_emplace(hash_of(*key, *real, tag->deliver_ms), Rolls{d.offset, times});
    if (!first && it->second.times < times) {
      done_.add(it->second.offset);
      it->second = {d.offset, times};
    }
  }
  if (real && real->starts_with(store::revive_log_prefix)) return for_pops_.push_back(d.offset);
  if (tag->kind == TimerKind::recall && !scanned_) recalls_[tag->deliver_ms].offsets.push_back(d.offset);
  insert(*tag, d.offset);
}

Task<Result<void>> TimerService::scan_records(std::vector<DueMessage>& due) {
  CO_TRY(co_await read_due(broker_.store, due));
  for (const DueMessage& d : due) look_at(d);
  due.clear();
  co_return Result<void>{};
}

// Some units from `at` on; those that are due before `from_ms` are in memory already.
Task<Result<void>> TimerService::scan_some(int64_t& at, int64_t end, int64_t from_ms) {
  std::vector<store::QueueUnit> units(static_cast<size_t>(std::min<int64_t>(512, end - at)));
  CO_TRY_VAR(n, co_await broker_.store.queue_units(topic, 0, at, units));
  if (n == 0) co_return fail(Errc::not_found, "the timer queue ends early");
  std::vector<DueMessage> unclear;
  for (size_t i = 0; i < n; i++, at++) {
    if (done_.contains(at)) continue;
    if (store::is_blank(units[i])) {
      done_.add(at);
      continue;
    }
    auto tag = store::decode_timer_tag(units[i].tags_code);
    if (!tag) {
      unclear.push_back({at, units[i], {}, {}, {}});
      continue;
    }
    bool by_java = java_new_ && at < java_->queue_offset && tag->deliver_ms < java_->last_read_ms;
    if (by_java) {
      done_.add(at);
      continue;
    }
    if (tag->kind == TimerKind::recall && !scanned_) recalls_[tag->deliver_ms].offsets.push_back(at);
    if (due_ms(*tag, at) >= from_ms) insert(*tag, at);
  }
  co_return co_await scan_records(unclear);
}

// Fills the heap from the queue. False: stopped, or it could not be read, then it has to be done again.
Task<bool> TimerService::scan() {
  const bool all = !scanned_ || rescan_;
  const PendingTimer before = horizon_;
  const int64_t from_ms = all ? INT64_MIN : before.due_ms() - overlap_ms;
  if (scanned_) scan_end_ = broker_.store.max_offset(topic, 0);
  if (all) heap_.clear();
  if (!scanned_) recalls_.clear();
  rescan_ = false;
  horizon_ = no_horizon;
  int64_t at = std::max(done_.low(), broker_.store.min_offset(topic, 0));
  for (uint32_t turns = 1; at < scan_end_; turns++) {
    if (broker_.stopping.is_set()) co_return false;
    auto some = co_await scan_some(at, scan_end_, from_ms);
    if (!some) {
      rescan_ = all && scanned_;
      if (!all && before.before(horizon_)) horizon_ = before;
      log(LogLevel::warning, ids::delivery_failed,
          "the queue of timer messages cannot be read, it is tried again",
          {{"REASON", to_string(some.error())}});
      co_return false;
    }
    if (turns % 16 == 0) co_await Yield{};
  }
  if (!scanned_ && java_new_) dirty_ = true;
  scanned_ = true;
  scanned.set();
  java_new_ = false;
  java_rolls_.clear();
  co_return true;
}

// ---- delivering --------------------------------------------------------------------------------------

void TimerService::start(Scope& scope) {
  batch_max_ = batch_messages_max;
  scope.spawn(run());
  scope.spawn(roll_old());
  scope.spawn(save_often());
  scope.spawn(count_pending());
}

void TimerService::stop() {
  scanned.notify();
  wake_.set();
  count_wake_.set();
  counted_.set();
}

Task<void> TimerService::run() {
  while (!broker_.stopping.is_set()) {
    broker_.look_at_clock();
    bool few = horizon_.due != no_horizon.due && heap_.size() < entries_max_ / 4;
    if (!scanned_ || rescan_ || few) {
      bool done = co_await scan();
      if (!done) co_await broker_.stopping.wait_for(after_failure_ns);
      continue;
    }
    if (!unknown_.empty()) co_await look_at_unknown();
    int64_t now_ns = broker_.due_clock.mono_ns();
    int64_t due_ns = heap_.empty() ? INT64_MAX : heap_.top().due_ms() * ns_per_ms;
    if (!broker_.config.timerWheelEnable) due_ns = INT64_MAX;  // they wait, and outlive the log
    if (due_ns > now_ns) {
      co_await wake_.wait_for(std::min(due_ns - now_ns, look_ns));
      continue;
    }
    bool delivered = co_await deliver_due();
    if (!delivered) co_await broker_.stopping.wait_for(after_failure_ns);
  }
}

// Messages that came without a tag.
Task<void> TimerService::look_at_unknown() {
  std::vector<DueMessage> due;
  for (int64_t offset : std::exchange(unknown_, {})) {
    store::QueueUnit unit;
    auto n = co_await broker_.store.queue_units(topic, 0, offset, std::span(&unit, 1));
    if (n && *n == 1) due.push_back({offset, unit, {}, {}, {}});
  }
  auto read = co_await scan_records(due);
  if (!read) rescan_ = true;
}

std::vector<int64_t> TimerService::take_for_pops() {
  return std::exchange(for_pops_, {});
}

Task<bool> TimerService::drop(std::vector<int64_t> offsets) {
  co_await delivery_.turn().acquire();
  DeliveryMarker marker;
  marker.dropped = std::move(offsets);
  Delivery::Put put = co_await delivery_.put(marker, {});
  if (put.done) {
    for (int64_t offset : marker.dropped) {
      if (counting_ && offset < counted_to_ && !done_.contains(offset))
        count(std::string(proto::names::revive_log_prefix) + broker_.config.brokerClusterName, -1);
      done_.add(offset);
    }
    marker_ = put.marker + 1;
    dirty_ = java_behind_ = true;
  }
  delivery_.turn().release();
  if (!put.done) co_return false;
  bool safe = co_await flushed_so_far(broker_.store);
  co_return safe;
}

// Takes from the heap what is due, up to a batch. `taken`: what to give back when it fails.
Task<Result<void>> TimerService::take_due(std::vector<DueMessage>& due, std::vector<PendingTimer>& taken) {
  std::vector<PendingTimer> later;
  std::unordered_set<int64_t> offsets;
  size_t bytes = 0;
  Result<void> result;
  const int64_t now_ms = broker_.due_clock.mono_ns() / ns_per_ms;
  while (result && due.size() < batch_max_ && !heap_.empty() && heap_.top().due_ms() <= now_ms) {
    PendingTimer t = heap_.pop();
    if (done_.contains(t.offset) || !offsets.insert(t.offset).second) continue;
    taken.push_back(t);
    store::QueueUnit unit;
    auto n = co_await broker_.store.queue_units(topic, 0, t.offset, std::span(&unit, 1));
    const bool gone = !n && n.error().code == Errc::not_found;  // from the queue, with the log
    if (gone) unit = {0, store::blank_unit_size, 0};
    if (!n && !gone) {
      result = std::unexpected(n.error());
      break;
    }
    auto tag = store::decode_timer_tag(unit.tags_code);
    if (tag && tag->kind == TimerKind::recall && due_ms(*tag, t.offset) > now_ms) {  // the clock was set
      taken.pop_back();
      later.push_back(PendingTimer::make(due_ms(*tag, t.offset), false, t.offset));
      continue;
    }
    bytes += store::is_blank(unit) ? 0 : static_cast<size_t>(unit.bytes);
    if (bytes > batch_bytes_max && !due.empty()) {
      taken.pop_back();
      later.push_back(t);
      break;
    }
    due.push_back({t.offset, unit, {}, {}, {}});
  }
  for (const PendingTimer& t : later) heap_.push(t);
  co_return result;
}

Task<bool> TimerService::deliver_due() {
  std::vector<DueMessage> due;
  std::vector<PendingTimer> taken;
  auto good = co_await take_due(due, taken);
  if (good) good = co_await read_due(broker_.store, due);
  bool done = false;
  if (good && due.empty()) co_return true;
  if (good) {
    auto put = co_await put_batch(due, std::nullopt);
    good = put ? Result<void>{} : std::unexpected(put.error());
    done = put && *put;
  }
  if (!done)
    for (const PendingTimer& t : taken) heap_.push(t);
  if (!good)
    log(LogLevel::warning, ids::delivery_failed, "timer messages could not be read, it is tried again",
        {{"REASON", to_string(good.error())}});
  co_return done;
}

// Which messages the recalls of that time mean.
Task<Result<void>> TimerService::read_recalls(Recalls& r) {
  while (r.read < r.offsets.size()) {
    int64_t offset = r.offsets[r.read];
    store::QueueUnit unit;
    auto n = co_await broker_.store.queue_units(topic, 0, offset, std::span(&unit, 1));
    if (!n && n.error().code != Errc::not_found) co_return std::unexpected(n.error());
    if (n && *n == 1 && !store::is_blank(unit)) {
      auto extent = co_await broker_.store.record_at(unit.physical_offset);
      if (!extent && extent.error().code != Errc::not_found) co_return std::unexpected(extent.error());
      std::optional<std::string_view> key;
      if (extent) {
        auto record = proto::parse_record(extent->bytes());
        if (record) key = record->property(prop::TIMER_DEL_UNIQKEY);
      }
      if (key) r.keys.emplace(*key);
    }
    r.read++;
  }
  co_return Result<void>{};
}

// RocketMQ's handles name a millisecond more than the time that is stored, and its keys once were without
// topic.
Task<Result<bool>> TimerService::is_recalled(const proto::RecordView& record, std::string_view real_topic,
                                             int64_t deliver_ms) {
  auto key = record.property(prop::UNIQ_KEY);
  if (!key || recalls_.empty()) co_return false;
  for (int64_t at : {deliver_ms, deliver_ms - 1}) {
    auto it = recalls_.find(at);
    if (it == recalls_.end()) continue;
    CO_TRY(co_await read_recalls(it->second));
    const auto& keys = it->second.keys;
    if (keys.contains(timer_delete_key(real_topic, *key)) || keys.contains(std::string(*key))) co_return true;
  }
  co_return false;
}

// The copy of one message; nothing: it is done without one.
Task<Result<std::optional<store::MessageIn>>> TimerService::prepare(DueMessage& d, bool roll) {
  using None = std::optional<store::MessageIn>;
  if (d.extent.bytes().empty()) {
    log(LogLevel::error, ids::delivery_failed, "a timer message is not in the log any more, it is lost",
        {{"OFFSET", std::to_string(d.offset)}});
    co_return None{};
  }
  auto tag = store::timer_tag_of(d.record);
  auto to = real_queue_of(d.record);
  if (!tag || !to) co_return None{};
  d.properties = std::string(d.record.properties);
  if (roll) {
    int64_t times = number_or(d.record.property(prop::TIMER_ROLL_TIMES), 0) + 1;
    set_if_room(d.properties, prop::TIMER_ROLL_TIMES, std::to_string(times));
    store::MessageIn m = copy_of(d, broker_.store_host, topic, 0);
    m.tags_code = store::encode_timer_tag(*tag);
    co_return m;
  }
  if (tag->kind == TimerKind::recall) {
    recalls_over_.push_back(tag->deliver_ms);
    co_return None{};
  }
  CO_TRY_VAR(gone, co_await is_recalled(d.record, to->topic, tag->deliver_ms));
  if (gone) {
    recalled_++;
    co_return None{};
  }
  set_if_room(d.properties, prop::TIMER_ENQUEUE_MS, std::to_string(d.record.store_timestamp_ms));
  set_if_room(d.properties, prop::TIMER_DEQUEUE_MS, std::to_string(broker_.wall_ms()));
  co_return copy_of(d, broker_.store_host, to->topic, broker_.queue_by_now(to->topic, to->queue_id));
}

// True: they are done. `roll_base`: not due, but to be put again, and with that base (QueueBases) as before.
Task<Result<bool>> TimerService::put_batch(std::vector<DueMessage>& due, std::optional<int64_t> roll_base) {
  const bool roll = roll_base.has_value();
  co_await delivery_.turn().acquire();
  recalls_over_.clear();
  DeliveryMarker marker;
  std::vector<store::MessageIn> copies;
  Result<void> good;
  for (DueMessage& d : due) {
    if (done_.contains(d.offset)) continue;  // it was put again, or delivered, meanwhile
    auto copy = co_await prepare(d, roll);
    if (!copy) {
      good = std::unexpected(copy.error());
      break;
    }
    if (*copy) copies.push_back(**copy);
    (*copy ? marker.copied : marker.dropped).push_back(d.offset);
  }
  Delivery::Put put;
  put.done = marker.copied.empty() && marker.dropped.empty();
  if (good && !put.done) {
    if (roll) begin_roll(static_cast<int64_t>(copies.size()), *roll_base);
    put = co_await delivery_.put(marker, copies);
    if (roll && !put.done) roll_refused(static_cast<int64_t>(copies.size()));
    bool illegal = put.status == store::PutMessageStatus::MESSAGE_ILLEGAL ||
                   put.status == store::PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
    if (illegal && marker.copied.size() == 1 && !roll) {
      log(LogLevel::error, ids::delivery_failed, "a timer message can never be delivered, it is passed over",
          {{"TOPIC", copies[0].topic}, {"REASON", store::name_of(put.status)}});
      marker.dropped.push_back(marker.copied[0]);
      marker.copied.clear();
      put = co_await delivery_.put(marker, {});
      illegal = false;
    }
    batch_max_ = illegal ? 1 : batch_messages_max;
    if (put.done)
      finished(due, marker, put, roll);
    else if (!illegal)
      log(LogLevel::warning, ids::delivery_failed, "timer messages could not be delivered, it is tried again",
          {{"REASON", store::name_of(put.status)}});
  }
  delivery_.turn().release();
  if (!good) co_return std::unexpected(good.error());
  co_return put.done;
}

void TimerService::finished(const std::vector<DueMessage>& due, const DeliveryMarker& marker,
                            const Delivery::Put& put, bool roll) {
  for (const DueMessage& d : due) {
    if (done_.contains(d.offset)) continue;
    count_done(d);
    const bool delivered = !roll && std::ranges::find(marker.copied, d.offset) != marker.copied.end();
    if (auto to = delivered ? real_queue_of(d.record) : std::nullopt)
      broker_.metrics.timer_delivered(to->topic);
  }
  for (int64_t offset : marker.copied) done_.add(offset);
  for (int64_t offset : marker.dropped) done_.add(offset);
  // A recall is due a while after all that it can mean.
  for (int64_t deliver_ms : std::exchange(recalls_over_, {})) recalls_.erase(deliver_ms);
  (roll ? rolled_ : delivered_) += marker.copied.size();
  if (!roll) broker_.stats.now.timers_delivered += marker.copied.size();
  marker_ = put.marker + 1;
  dirty_ = java_behind_ = true;
}

// ---- putting old messages again ----------------------------------------------------------------------

// Whether the message may lie in a part of the log that goes soon.
Task<bool> TimerService::is_old(const store::QueueUnit& unit, int64_t offset) {
  const store::MessageStore& s = broker_.store;
  const auto file_bytes = static_cast<int64_t>(s.options().commit_log_file_bytes);
  const int64_t first = s.min_physical_offset(), end = s.max_physical_offset();
  if (unit.physical_offset >= end - end % file_bytes) co_return false;  // in the newest file
  const int64_t span = s.max_offset(topic, 0) - offset;
  const auto waiting = static_cast<int64_t>(heap_.size());
  if (span > std::max(span_max, waiting * 8) && horizon_.due == no_horizon.due) co_return true;
  bool oldest_file = unit.physical_offset < first - first % file_bytes + file_bytes;
  if (oldest_file && end - first > roll_files_min * file_bytes) co_return true;
  int64_t stored_ms = co_await broker_.store.store_time(topic, 0, offset);
  co_return stored_ms >= 0 &&
      broker_.wall_ms() - stored_ms > broker_.config.fileReservedTime* ms_per_hour / 2;
}

// A delay that began before the wall clock was set goes on as it was: its copy has its base.
void TimerService::begin_roll(int64_t copies, int64_t base_ns) {
  const int64_t next = broker_.store.max_offset(topic, 0) + arriving_;
  arriving_ += copies;
  bases_.add(next, base_ns);
  bases_.add(next + copies, broker_.due_clock.base_ns());
}

void TimerService::roll_refused(int64_t copies) {
  arriving_ -= copies;
  bases_.add(broker_.store.max_offset(topic, 0) + arriving_, broker_.due_clock.base_ns());
}

// From `at` on, one batch, of one base. False: what comes now is young.
Task<bool> TimerService::roll_from(int64_t& at) {
  std::vector<store::QueueUnit> units(batch_messages_max);
  auto n = co_await broker_.store.queue_units(topic, 0, at, units);
  if (!n || *n == 0) co_return false;
  const int64_t soon_ms = broker_.due_clock.mono_ns() / ns_per_ms + roll_spare_ms_;
  std::vector<DueMessage> due;
  size_t bytes = 0;
  bool looked = false;
  const int64_t base_now = broker_.due_clock.base_ns();
  std::optional<int64_t> base;
  for (size_t i = 0; i < *n && bytes < batch_bytes_max; i++, at++) {
    if (done_.contains(at) || store::is_blank(units[i])) continue;
    if (!looked) {
      looked = true;  // its neighbours are as old
      bool old = co_await is_old(units[i], at);
      if (!old) co_return false;
    }
    auto tag = store::decode_timer_tag(units[i].tags_code);
    if (tag && due_ms(*tag, at) < soon_ms) continue;
    if (tag && tag->kind == TimerKind::delay) {
      const int64_t mine = at >= run_from_ ? bases_.base_ns(at) : base_now;
      if (base && *base != mine) break;
      base = mine;
    }
    bytes += static_cast<size_t>(units[i].bytes);
    due.push_back({at, units[i], {}, {}, {}});
  }
  if (due.empty()) co_return true;
  auto read = co_await read_due(broker_.store, due);
  if (!read) co_return false;
  auto put = co_await put_batch(due, base.value_or(base_now));
  co_return put && *put;
}

Task<void> TimerService::roll_old() {
  uint64_t rolled_before = 0;
  for (;;) {
    bool stop = co_await broker_.stopping.wait_for(roll_look_ns);
    if (stop) co_return;
    if (!scanned_) continue;
    int64_t at = std::max(done_.low(), broker_.store.min_offset(topic, 0));
    while (!broker_.stopping.is_set() && at < broker_.store.max_offset(topic, 0)) {
      bool more = co_await roll_from(at);
      if (!more) break;
    }
    // Their places in memory are no use any more.
    if (rolled_ - rolled_before > heap_.size() / 4) {
      rolled_before = rolled_;
      heap_.keep_if([this](const PendingTimer& t) { return !done_.contains(t.offset); });
    }
  }
}

}  // namespace rmq::broker

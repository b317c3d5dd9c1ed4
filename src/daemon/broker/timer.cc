// The timer service: what comes in, and its files. timer_run.cc has what goes out, timer_java.cc what
// RocketMQ sees.
#include "daemon/broker/timer.h"

#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "daemon/broker/broker.h"
#include "proto/bodies_config.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

namespace prop = proto::prop;
using store::TimerKind;

namespace {
constexpr std::string_view topic = store::timer_topic;
constexpr size_t added_properties_bytes = 120;  // TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS, TIMER_ROLL_TIMES
constexpr size_t entries_least = 10'000;
// A recall is forgotten so long after its time: messages of that time that are being put again have come
// then.
constexpr int64_t recall_grace_ms = 2000;
}  // namespace

TimerService::TimerService(Broker& broker, Disk& disk, std::string path)
    : DeliveryProgress(broker, disk, std::move(path)), delivery_(broker, 1) {
  entries_max_ =
      std::max(entries_least, static_cast<size_t>(broker.config.memoryLimit) / 16 / sizeof(PendingTimer));
}

// ---- files -------------------------------------------------------------------------------------------

void TimerService::take_marker(const Delivery::Found& found) {
  for (size_t i = 0; i < found.copies; i++) done_.add(found.marker.copied[i]);
  for (int64_t offset : found.marker.dropped) done_.add(offset);
  marker_ = found.queue_offset + 1;
}

Task<Result<void>> TimerService::load() {
  CO_TRY(co_await PersistedTable::load());
  done_.add_below(std::max<int64_t>(broker_.store.min_offset(topic, 0), 0));
  CO_TRY_VAR(markers, co_await delivery_.read_from(marker_));
  for (const Delivery::Found& f : markers) take_marker(f);
  CO_TRY(co_await read_java_check());
  scan_end_ = run_from_ = broker_.store.max_offset(topic, 0);
  bases_.add(0, broker_.due_clock.base_ns());
  // What is behind a batch that came into the log in part cannot be told from it for ever.
  bool torn = !markers.empty() && markers.back().copies < markers.back().marker.copied.size();
  dirty_ = !markers.empty();
  if (torn) {
    freeze();
    CO_TRY(co_await save());
  }
  co_return Result<void>{};
}

void TimerService::freeze() {
  proto::TimerDelivered d;
  d.marker = marker_;
  d.done = done_.encode();
  // Only a finished scan has taken RocketMQ's file into account.
  if (java_ && (scanned_ || !java_new_)) {
    d.java_last_read_ms = java_->last_read_ms;
    d.java_queue_offset = java_->queue_offset;
  }
  frozen_ = d.to_json();
}

std::string TimerService::render() const {
  return frozen_;
}

Result<void> TimerService::parse(std::string_view text) {
  TRY_VAR(d, proto::TimerDelivered::parse(text));
  auto done = DoneSet::decode(d.done);
  if (!done || d.marker < 0) return fail(Errc::bad_input, "timerDelivered.json: no set of offsets");
  done_ = std::move(*done);
  marker_ = d.marker;
  if (d.java_last_read_ms && d.java_queue_offset)
    java_ = JavaCheck{*d.java_last_read_ms, *d.java_queue_offset};
  return {};
}

// ---- messages come -----------------------------------------------------------------------------------

bool TimerService::begin_put(store::MessageIn& m, std::string& properties, const TimerAsk& ask) {
  proto::set_property(properties, prop::TIMER_OUT_MS, std::to_string(ask.deliver_ms));
  proto::set_property(properties, prop::REAL_TOPIC, m.topic);
  proto::set_property(properties, prop::REAL_QID, std::to_string(m.queue_id));
  if (properties.size() + added_properties_bytes > limits::properties_bytes_max) return false;
  m.properties = properties;
  m.topic = topic;
  m.queue_id = 0;
  m.tags_code = store::encode_timer_tag({ask.deliver_ms, ask.kind});
  arriving_++;
  return true;
}

// When by the monotonic clock, in milliseconds, rounded up.
int64_t TimerService::due_ms(const store::TimerTag& tag, int64_t offset) const {
  auto floor_ms = [](int64_t ns) { return ns >= 0 ? ns / ns_per_ms : -((-ns + ns_per_ms - 1) / ns_per_ms); };
  if (tag.kind == TimerKind::recall) return tag.deliver_ms - floor_ms(bases_.least_ns()) + recall_grace_ms;
  bool of_this_run = tag.kind == TimerKind::delay && offset >= run_from_;
  return tag.deliver_ms - floor_ms(of_this_run ? bases_.base_ns(offset) : broker_.due_clock.base_ns());
}

bool TimerService::can_recall(int64_t deliver_ms) const {
  int64_t earliest = deliver_ms - bases_.most_ns() / ns_per_ms;
  return broker_.due_clock.mono_ns() / ns_per_ms < earliest;
}

bool TimerService::holds_recall(int64_t deliver_ms, int64_t offset) const {
  auto it = recalls_.find(deliver_ms);
  return it != recalls_.end() && std::ranges::find(it->second.offsets, offset) != it->second.offsets.end();
}

void TimerService::insert(const store::TimerTag& tag, int64_t offset) {
  if (done_.contains(offset)) return;
  if (tag.kind != TimerKind::recall) latest_ms_ = std::max(latest_ms_, tag.deliver_ms);
  bool follows_wall =
      tag.kind == TimerKind::time_of_day || (tag.kind == TimerKind::delay && offset < run_from_);
  PendingTimer t = PendingTimer::make(due_ms(tag, offset), follows_wall, offset);
  if (!t.before(horizon_)) return;
  heap_.push(t);
  if (heap_.size() > entries_max_) horizon_ = heap_.forget_later_half();
}

void TimerService::arrived(const store::Arrival& a) {
  if (a.queue_id != 0) return;
  if (arriving_ > 0) arriving_--;
  if (a.queue_offset < scan_end_) return;
  auto tag = store::decode_timer_tag(a.tags_code);
  if (!tag) {
    unknown_.push_back(a.queue_offset);
    wake_.notify();
    return;
  }
  if (tag->kind == TimerKind::recall && can_recall(tag->deliver_ms))
    recalls_[tag->deliver_ms].offsets.push_back(a.queue_offset);
  insert(*tag, a.queue_offset);
  if (!heap_.empty() && heap_.top().offset == a.queue_offset) wake_.notify();
}

void TimerService::clock_stepped() {
  int64_t before = bases_.base_ns(INT64_MAX), now = broker_.due_clock.base_ns();
  bases_.add(broker_.store.max_offset(topic, 0) + arriving_, now);
  // Rounded towards later.
  int64_t step_ms = (now - before) / ns_per_ms - ((now - before) % ns_per_ms < 0 ? 1 : 0);
  heap_.shift_wall(-step_ms);
  if (horizon_.due != no_horizon.due) rescan_ = true;
  wake_.notify();
}

TimerService::Stats TimerService::stats() const {
  Stats s{delivered_, recalled_, rolled_, heap_.size(), heap_.bytes() + done_.bytes(), done_.low()};
  const int64_t now_ms = broker_.due_clock.mono_ns() / ns_per_ms;
  if (!heap_.empty()) s.late_ms = std::max<int64_t>(0, now_ms - heap_.top().due_ms());
  s.due = heap_.due_count(now_ms, 100'000);
  if (!scanned_) s.unread = scan_end_ - std::min(scan_end_, done_.low());
  return s;
}

Task<int64_t> TimerService::needed_from() const {
  std::vector<store::QueueUnit> units(64);
  int64_t at = std::max(done_.low(), broker_.store.min_offset(topic, 0));
  while (at < broker_.store.max_offset(topic, 0)) {
    auto n = co_await broker_.store.queue_units(topic, 0, at, units);
    if (!n || *n == 0) co_return 0;  // not known
    for (size_t i = 0; i < *n; i++, at++)
      if (!store::is_blank(units[i]) && !done_.contains(at)) co_return units[i].physical_offset;
  }
  co_return INT64_MAX;
}

}  // namespace rmq::broker

#include "daemon/broker/schedule.h"

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "daemon/broker/broker.h"
#include "proto/codes.h"
#include "proto/record.h"

namespace rmq::broker {

namespace {
constexpr int64_t idle_look_ns = 1 * ns_per_s;  // to see the wall clock being set
constexpr int64_t after_failure_ns = 1 * ns_per_s;
constexpr int64_t level_number_max = 100'000'000;  // 273 years of days: no overflow, no sense beyond
constexpr uint64_t moves_per_version = 200;        // delayOffsetUpdateVersionStep
constexpr size_t batch_messages_max = 512;
constexpr size_t batch_bytes_max = 512u << 10;  // or one message
constexpr int32_t queues_max = 256;             // of SCHEDULE_TOPIC_XXXX that are looked at
constexpr std::string_view topic = proto::names::SCHEDULE_TOPIC_XXXX;
}  // namespace

Result<DelayLevels> DelayLevels::parse(std::string_view text) {
  DelayLevels out;
  while (!text.empty()) {
    size_t blank = text.find(' ');
    std::string_view item = text.substr(0, blank);
    text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
    if (item.empty()) continue;
    int64_t n = 0;
    auto [end, ec] = std::from_chars(item.data(), item.data() + item.size(), n);
    if (ec != std::errc{} || n <= 0 || n > level_number_max || end != item.data() + item.size() - 1)
      return fail(Errc::bad_input, "messageDelayLevel: each level is a number with s, m, h or d");
    switch (*end) {
      case 's':
        n *= 1'000;
        break;
      case 'm':
        n *= 60'000;
        break;
      case 'h':
        n *= 3'600'000;
        break;
      case 'd':
        n *= 86'400'000;
        break;
      default:
        return fail(Errc::bad_input, "messageDelayLevel: the unit of a level is s, m, h or d");
    }
    out.delay_ms.push_back(n);
  }
  if (out.delay_ms.empty()) return fail(Errc::bad_input, "messageDelayLevel: no levels");
  return out;
}

ScheduleService::ScheduleService(Broker& broker, Disk& disk, std::string path)
    : DeliveryProgress(broker, disk, std::move(path)), delivery_(broker, 0) {}

// ---- how far delivery has come -----------------------------------------------------------------------

Result<void> ScheduleService::take_marker(const Delivery::Found& found) {
  const DeliveryMarker& m = found.marker;
  for (size_t i = 0; i < m.next.size(); i++) {
    auto level = static_cast<int32_t>(i + 1);
    int64_t next = m.next[i];
    if (level == m.level && found.copies < m.copied.size()) next = m.copied[found.copies];
    // The Java broker may have gone further since.
    int64_t& offset = offsets_[level];
    offset = std::max(offset, next);
  }
  marker_ = found.queue_offset + 1;
  return {};
}

// A queue may begin later (retention) or end earlier (files were lost) than the offset says.
void ScheduleService::clamp_to_queues() {
  for (auto& [level, offset] : offsets_) {
    int64_t min = std::max<int64_t>(broker_.store.min_offset(topic, level - 1), 0);
    int64_t max = broker_.store.max_offset(topic, level - 1);
    offset = std::clamp(offset, min, std::max(min, max));
  }
}

Task<Result<void>> ScheduleService::load() {
  CO_TRY(co_await PersistedTable::load());
  CO_TRY_VAR(found, co_await delivery_.read_last(marker_));
  if (found) CO_TRY(take_marker(*found));
  clamp_to_queues();
  int32_t queues = broker_.delay_levels.count();
  for (int32_t q = queues; q < queues_max; q++)
    if (broker_.store.max_offset(topic, q) > offset_of(q + 1)) queues = q + 1;
  started_ns_ = broker_.due_clock.mono_ns();
  for (int32_t q = 0; q < queues; q++) {
    auto l = std::make_unique<Level>();
    if (q < broker_.delay_levels.count()) l->delay_ms = broker_.delay_levels.delay_ms[static_cast<size_t>(q)];
    l->run_from = broker_.store.max_offset(topic, q);
    l->bases.add(0, broker_.due_clock.base_ns());
    l->batch_max = batch_messages_max;
    levels_.push_back(std::move(l));
  }
  // What is behind a batch that came into the log in part cannot be told from it for ever.
  if (found) {
    freeze();
    CO_TRY(co_await save());
  }
  co_return Result<void>{};
}

int64_t ScheduleService::offset_of(int level) const {
  auto it = offsets_.find(level);
  return it == offsets_.end() ? 0 : it->second;
}

void ScheduleService::move_to(int level, int64_t offset) {
  offsets_[level] = offset;
  dirty_ = true;
  if (++moved_ % moves_per_version == 0) version_.next(broker_.wall_ms());
}

void ScheduleService::freeze() {
  saved_offsets_ = offsets_;
  saved_marker_ = marker_;
}

Task<void> ScheduleService::close() {
  if (levels_.empty()) co_return;  // not loaded
  [[maybe_unused]] bool saved = co_await save_safe();
}

proto::DelayOffsetWrapper ScheduleService::snapshot() const {
  proto::DelayOffsetWrapper w;
  w.data_version = version_;
  w.offset_table = offsets_;
  return w;
}

std::string ScheduleService::render() const {
  proto::DelayOffsetWrapper w;
  w.data_version = version_;
  w.offset_table = saved_offsets_;
  w.delivered_offset = saved_marker_;
  return w.to_json(proto::JsonStyle::pretty);
}

Result<void> ScheduleService::parse(std::string_view text) {
  TRY_VAR(w, proto::DelayOffsetWrapper::parse(text));
  offsets_ = std::move(w.offset_table);
  std::erase_if(offsets_, [](const auto& entry) { return entry.first <= 0 || entry.second < 0; });
  version_ = w.data_version;
  marker_ = std::max<int64_t>(w.delivered_offset.value_or(0), 0);
  return {};
}

// ---- messages come -----------------------------------------------------------------------------------

int64_t ScheduleService::begin_put(int level) {
  broker_.look_at_clock();
  Level& l = level_of(level);
  l.arriving++;
  return broker_.due_clock.wall_ms_up() + l.delay_ms;
}

void ScheduleService::put_refused(int level) {
  level_of(level).arriving--;
}

void ScheduleService::arrived(int32_t queue_id) {
  if (queue_id < 0 || static_cast<size_t>(queue_id) >= levels_.size()) return;
  Level& l = *levels_[static_cast<size_t>(queue_id)];
  if (l.arriving > 0) l.arriving--;
  l.wake.notify();
}

void ScheduleService::clock_stepped() {
  for (size_t q = 0; q < levels_.size(); q++) {
    Level& l = *levels_[q];
    int64_t next = broker_.store.max_offset(topic, static_cast<int32_t>(q)) + l.arriving;
    l.bases.add(next, broker_.due_clock.base_ns());
  }
}

// ---- messages go -------------------------------------------------------------------------------------

void ScheduleService::start(Scope& scope) {
  for (size_t i = 0; i < levels_.size(); i++) scope.spawn(run_level(static_cast<int>(i + 1)));
  scope.spawn(save_often());
}

void ScheduleService::stop() {
  for (auto& l : levels_) l->wake.set();
}

// When, by the monotonic clock.
int64_t ScheduleService::due_ns(const Level& l, int64_t offset, int64_t deliver_ms) const {
  constexpr int64_t ms_max = INT64_MAX / ns_per_ms / 2;
  int64_t due = std::clamp<int64_t>(deliver_ms, 0, ms_max) * ns_per_ms - l.bases.base_ns(offset);
  // A time further off than the whole delay: the wall clock was set back between two runs.
  if (offset < l.run_from && l.delay_ms > 0) due = std::min(due, started_ns_ + l.delay_ms * ns_per_ms);
  return due;
}

Task<void> ScheduleService::run_level(int level) {
  Level& l = level_of(level);
  while (!broker_.stopping.is_set()) {
    broker_.look_at_clock();
    int64_t wait_ns = idle_look_ns;
    Outcome outcome = co_await deliver_due(level, wait_ns);
    if (outcome == Outcome::nothing_due)
      co_await l.wake.wait_for(std::min(wait_ns, idle_look_ns));
    else if (outcome == Outcome::failed)
      co_await broker_.stopping.wait_for(after_failure_ns);
  }
}

// Units of the level's queue that are due, from where it is; the offset behind them comes out. `wait_ns`:
// until the next one is due, when it is known.
Task<Result<int64_t>> ScheduleService::collect(int level, std::vector<DueMessage>& due, int64_t& wait_ns) {
  Level& l = level_of(level);
  const int32_t queue = level - 1;
  int64_t at = std::max(offset_of(level), broker_.store.min_offset(topic, queue));
  std::vector<store::QueueUnit> units(64);
  size_t bytes = 0;
  while (at < broker_.store.max_offset(topic, queue)) {
    CO_TRY_VAR(n, co_await broker_.store.queue_units(topic, queue, at, units));
    if (n == 0) break;
    const int64_t now = broker_.due_clock.mono_ns();
    for (size_t i = 0; i < n; i++) {
      bool blank = store::is_blank(units[i]);
      if (!blank) {
        int64_t left = due_ns(l, at, units[i].tags_code) - now;
        if (left > 0) wait_ns = left;
        bytes += static_cast<size_t>(units[i].bytes);
        bool full = due.size() >= l.batch_max || (bytes > batch_bytes_max && !due.empty());
        if (left > 0 || full) co_return at;
      }
      due.push_back({at++, units[i], {}, {}, {}});
    }
  }
  co_return at;
}

Task<ScheduleService::Outcome> ScheduleService::deliver_due(int level, int64_t& wait_ns) {
  std::vector<DueMessage> due;
  auto next = co_await collect(level, due, wait_ns);
  if (!next) co_return Outcome::failed;
  if (due.empty()) co_return Outcome::nothing_due;
  auto read = co_await read_due(broker_.store, due);
  if (!read) co_return Outcome::failed;
  co_return co_await deliver(level, due, *next);
}

Task<ScheduleService::Outcome> ScheduleService::deliver(int level, std::vector<DueMessage>& due,
                                                        int64_t next) {
  DeliveryMarker marker;
  std::vector<store::MessageIn> copies;
  for (const DueMessage& d : due) {
    std::optional<RealQueue> to;
    if (!d.extent.bytes().empty()) to = real_queue_of(d.record);
    if (to)
      copies.push_back(
          copy_of(d, broker_.store_host, to->topic, broker_.queue_by_now(to->topic, to->queue_id)));
    (to ? marker.copied : marker.dropped).push_back(d.offset);
  }
  if (copies.empty()) {
    move_to(level, next);
    co_return Outcome::delivered;
  }
  co_await delivery_.turn().acquire();
  for (size_t i = 1; i <= levels_.size(); i++) marker.next.push_back(offset_of(static_cast<int>(i)));
  marker.next[static_cast<size_t>(level) - 1] = next;
  marker.level = level;
  Delivery::Put put = co_await delivery_.put(marker, copies);
  if (put.done) {
    move_to(level, next);
    marker_ = put.marker + 1;
  }
  delivery_.turn().release();
  Level& l = level_of(level);
  if (put.done) {
    l.batch_max = batch_messages_max;
    co_return Outcome::delivered;
  }
  bool illegal = put.status == store::PutMessageStatus::MESSAGE_ILLEGAL ||
                 put.status == store::PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
  if (illegal && copies.size() > 1) {  // which one is it?
    l.batch_max = 1;
    co_return Outcome::delivered;
  }
  log(illegal ? LogLevel::error : LogLevel::warning, ids::delivery_failed,
      illegal ? "a delayed message can never be delivered, it is passed over"
              : "a delayed message could not be delivered, it is tried again",
      {{"TOPIC", copies[0].topic}, {"LEVEL", std::to_string(level)}, {"REASON", store::name_of(put.status)}});
  if (illegal) move_to(level, next);
  co_return illegal ? Outcome::delivered : Outcome::failed;
}

Task<int64_t> ScheduleService::needed_from() const {
  int64_t from = INT64_MAX;
  for (size_t q = 0; q < levels_.size(); q++) {
    auto queue = static_cast<int32_t>(q);
    int64_t at = std::max(offset_of(queue + 1), broker_.store.min_offset(topic, queue));
    if (at >= broker_.store.max_offset(topic, queue)) continue;
    auto unit = co_await broker_.store.queue_unit(topic, queue, at);
    if (unit) from = std::min(from, unit->physical_offset);
  }
  co_return from;
}

}  // namespace rmq::broker

#include "daemon/broker/schedule.h"

#include <charconv>

#include "base/log.h"
#include "daemon/broker/broker.h"
#include "proto/codes.h"
#include "proto/record.h"

namespace rmq::broker {

namespace {
constexpr int64_t idle_look_ns = 1 * ns_per_s;       // units may come from elsewhere than put()
constexpr int64_t after_failure_ns = 10 * ns_per_s;  // DELAY_FOR_A_PERIOD
constexpr int64_t save_interval_ns = 10 * ns_per_s;  // flushDelayOffsetInterval
constexpr int64_t level_number_max = 100'000'000;    // 273 years of days: no overflow, no sense beyond
constexpr uint64_t moves_per_version = 200;          // delayOffsetUpdateVersionStep
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

void ScheduleService::start(Scope& scope) {
  for (int level = 1; level <= broker_.delay_levels.count(); level++) {
    wake_.push_back(std::make_unique<Event>());
    scope.spawn(run_level(level));
  }
  scope.spawn(save_often());
}

int64_t ScheduleService::offset_of(int level) const {
  auto it = offsets_.find(level);
  return it == offsets_.end() ? 0 : it->second;
}

void ScheduleService::wake(int level) {
  if (static_cast<size_t>(level) <= wake_.size()) wake_[static_cast<size_t>(level) - 1]->notify();
}

Task<void> ScheduleService::run_level(int level) {
  Event& wake = *wake_[static_cast<size_t>(level) - 1];
  const int32_t queue = level - 1;
  const std::string_view topic = proto::names::SCHEDULE_TOPIC_XXXX;
  const int64_t delay_ms = broker_.delay_levels.delay_ms[static_cast<size_t>(queue)];
  while (!broker_.stopping.is_set()) {
    int64_t offset = std::max(offset_of(level), broker_.store.min_offset(topic, queue));
    auto unit = co_await broker_.store.queue_unit(topic, queue, offset);
    if (!unit) {
      co_await wake.wait_for(idle_look_ns);
      continue;
    }
    // A time further off than the whole delay comes from a clock that was set back: due now.
    int64_t left_ms = unit->tags_code - broker_.wall_ms();
    if (left_ms > 0 && left_ms <= delay_ms) {
      co_await broker_.stopping.wait_for(std::min<int64_t>(left_ms * ns_per_ms, idle_look_ns));
      continue;
    }
    bool done = co_await deliver(level, *unit);
    if (!done) {
      co_await broker_.stopping.wait_for(after_failure_ns);
      continue;
    }
    offsets_[level] = offset + 1;
    dirty_ = true;
    if (++moved_ % moves_per_version == 0) version_.next(broker_.wall_ms());
  }
}

// True: delivered, or nothing can ever be delivered of it.
Task<bool> ScheduleService::deliver(int level, const store::QueueUnit& unit) {
  auto extent = co_await broker_.store.record_at(unit.physical_offset);
  if (!extent) {
    if (extent.error().code == Errc::not_found) co_return true;
    co_return false;
  }
  auto record = proto::parse_record(extent->bytes());
  if (!record) co_return true;
  auto real_topic = record->property(proto::prop::REAL_TOPIC);
  auto real_queue = record->property(proto::prop::REAL_QID);
  if (!real_topic || !real_queue || *real_topic == proto::names::RMQ_SYS_TRANS_HALF_TOPIC) co_return true;
  store::MessageIn m;
  m.topic = *real_topic;
  std::from_chars(real_queue->data(), real_queue->data() + real_queue->size(), m.queue_id);
  m.flag = record->flag;
  m.sys_flag = record->sys_flag;
  m.born_timestamp_ms = record->born_timestamp_ms;
  m.born_host = to_address(record->born_host);
  m.store_host = broker_.store_host;
  m.reconsume_times = record->reconsume_times;
  m.body = record->body;
  m.properties = record->properties;
  auto put = co_await broker_.store.put(m);
  if (put.status == store::PutMessageStatus::PUT_OK) co_return true;
  log(LogLevel::warning, ids::request_refused, "a delayed message could not be delivered, it is tried again",
      {{"TOPIC", *real_topic}, {"LEVEL", std::to_string(level)}, {"REASON", store::name_of(put.status)}});
  co_return put.status == store::PutMessageStatus::MESSAGE_ILLEGAL;
}

Task<void> ScheduleService::save_often() {
  for (;;) {
    bool stop = co_await broker_.stopping.wait_for(save_interval_ns);
    if (stop) co_return;
    if (!std::exchange(dirty_, false)) continue;
    auto saved = co_await save();
    if (!saved) dirty_ = true;
  }
}

proto::DelayOffsetWrapper ScheduleService::snapshot() const {
  proto::DelayOffsetWrapper w;
  w.data_version = version_;
  w.offset_table = offsets_;
  return w;
}

std::string ScheduleService::render() const {
  return snapshot().to_json(proto::JsonStyle::pretty);
}

Result<void> ScheduleService::parse(std::string_view text) {
  TRY_VAR(w, proto::DelayOffsetWrapper::parse(text));
  offsets_ = std::move(w.offset_table);
  version_ = w.data_version;
  return {};
}

}  // namespace rmq::broker

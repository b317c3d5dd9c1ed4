// The timer service: what RocketMQ's broker did with the same directory, and what it needs to go on with it.
//
// RocketMQ's index of timer messages are files of its own, and config/timercheck says how far it came. A
// start looks whether that file is as it was left here; else a RocketMQ broker has run: it changes the
// beginning of the file and leaves the rest. An orderly stop writes all of it anew, for what is pending then;
// so RocketMQ delivers that once, by its own second.
#include <algorithm>
#include <array>

#include "base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/timer.h"
#include "daemon/broker/timer_log.h"

namespace rmq::broker {

using store::TimerKind;

namespace {
constexpr std::string_view topic = store::timer_topic;
constexpr size_t check_bytes = 4096;
constexpr size_t java_bytes = 56;  // what RocketMQ uses of them
constexpr size_t own_at = 64;      // there it says that the file is ours, and what it was when we wrote it
constexpr int64_t own_magic = 0x726d716474696d65;
constexpr size_t units_at_once = 512;

void put_number(std::string& out, int64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<uint64_t>(value) >> shift);
}
}  // namespace

// RocketMQ's TimerCheckpoint: lastReadTimeMs, lastTimerLogFlushPos, lastTimerQueueOffset, ….
Task<Result<void>> TimerService::read_java_check() {
  auto file = co_await broker_.disk.open(broker_.config.storePathRootDir + "/config/timercheck", {});
  if (!file && file.error().code == Errc::not_found) co_return Result<void>{};
  if (!file) co_return std::unexpected(file.error());
  std::array<std::byte, own_at + 24> head{};
  auto n = co_await (*file)->read(0, head);
  co_await (*file)->close();
  if (!n) co_return std::unexpected(n.error());
  if (*n < 24) co_return Result<void>{};
  ByteReader r(head);
  JavaCheck now, ours;
  now.last_read_ms = r.get<int64_t>();
  r.skip(8);
  now.queue_offset = r.get<int64_t>();
  r.skip(own_at - 24);
  const bool is_ours = r.get<int64_t>() == own_magic;
  ours.last_read_ms = r.get<int64_t>();
  ours.queue_offset = r.get<int64_t>();
  const bool left_by_us = is_ours && ours == now;
  java_new_ = java_ != now && !left_by_us;
  java_behind_ = !left_by_us;
  java_ = now;
  co_return Result<void>{};
}

// TimerCheckpoint whole: behind the three come masterTimerQueueOffset and a data version.
std::string TimerService::java_check_bytes(const JavaCheck& check, int64_t log_end) const {
  std::string out;
  put_number(out, check.last_read_ms);
  put_number(out, log_end);
  put_number(out, check.queue_offset);
  put_number(out, check.queue_offset);
  put_number(out, 0);
  put_number(out, check.last_read_ms);
  put_number(out, 0);
  out.resize(own_at);
  put_number(out, own_magic);
  put_number(out, check.last_read_ms);
  put_number(out, check.queue_offset);
  out.resize(check_bytes);
  return out;
}

std::string TimerService::java_check() const {
  JavaCheck now{broker_.wall_ms() / TimerLogWriter::precision_ms * TimerLogWriter::precision_ms,
                broker_.store.max_offset(topic, 0)};
  return java_check_bytes(now, 0).substr(0, java_bytes);
}

Task<Result<void>> TimerService::write_java_log(TimerLogWriter& log, int64_t end) {
  std::vector<store::QueueUnit> units(units_at_once);
  int64_t at = std::max(done_.low(), broker_.store.min_offset(topic, 0));
  store::QueueUnit last;
  bool last_is_done = true;
  while (at < end) {
    CO_TRY_VAR(n, co_await broker_.store.queue_units(topic, 0, at, units));
    if (n == 0) co_return fail(Errc::not_found, "the timer queue ends early");
    for (size_t i = 0; i < n && at < end; i++, at++) {
      last = units[i];
      last_is_done = done_.contains(at) || store::is_blank(units[i]);
      if (last_is_done) continue;
      auto tag = store::decode_timer_tag(units[i].tags_code);
      if (!tag) {  // RocketMQ's own: the record says it
        auto extent = co_await broker_.store.record_at(units[i].physical_offset);
        if (!extent) co_return std::unexpected(extent.error());
        auto record = proto::parse_record(extent->bytes());
        if (record) tag = store::timer_tag_of(*record);
      }
      last_is_done = !tag;
      if (tag)
        CO_TRY(co_await log.add(tag->deliver_ms, tag->kind == TimerKind::recall, last.physical_offset,
                                last.bytes));
    }
  }
  if (end > 0 && at == end && last_is_done && last.bytes == 0) {
    auto unit = co_await broker_.store.queue_unit(topic, 0, end - 1);
    if (unit) last = *unit;
  }
  if (last_is_done && last.bytes > 0 && !store::is_blank(last))
    CO_TRY(co_await log.add_done(last.physical_offset, last.bytes));
  co_return Result<void>{};
}

// Everything is delivered that will be, and all is on stable storage. Of a stop that is cut short RocketMQ
// finds either the old state, or one with which it reads the whole queue: then what was delivered comes again
// from it, but nothing is lost.
Task<Result<void>> TimerService::hand_over() {
  const std::string& root = broker_.config.storePathRootDir;
  const std::string path = root + "/config/timercheck";
  TimerLogWriter timer_log(broker_.disk, root, broker_.wall_ms());
  const JavaCheck check{timer_log.read_from_ms(), broker_.store.max_offset(topic, 0)};
  java_ = check;
  bool saved = co_await save_safe();
  if (!saved) co_return fail(Errc::io, "timerDelivered.json");
  const JavaCheck nothing;
  CO_TRY(co_await store::replace_file(broker_.disk, path, java_check_bytes(nothing, 0)));
  CO_TRY(co_await timer_log.begin());
  CO_TRY(co_await write_java_log(timer_log, check.queue_offset));
  CO_TRY_VAR(log_end, co_await timer_log.finish());
  co_return co_await store::replace_file(broker_.disk, path, java_check_bytes(check, log_end));
}

Task<void> TimerService::close() {
  const int64_t end = broker_.store.max_offset(topic, 0);
  const bool dirty = std::exchange(dirty_, false);
  const bool known = !java_new_ && java_ && java_->queue_offset == end && !dirty && !java_behind_;
  if (!scanned_ || known || (end == 0 && !java_)) {
    if (!dirty) co_return;
    [[maybe_unused]] bool saved = co_await save_safe();
    co_return;
  }
  auto done = co_await hand_over();
  if (!done && broker_.store.writable())
    log(LogLevel::warning, ids::config_file_unwritable,
        "a RocketMQ broker would deliver timer messages of this directory again that were delivered",
        {{"FILE", broker_.config.storePathRootDir + "/config/timercheck"},
         {"REASON", to_string(done.error())}});
}

}  // namespace rmq::broker

// What the store does in the background: puts that wait too long, units into their files, checkpoints.
#include "store/store_impl.h"

namespace rmq::store {

namespace {
constexpr uint64_t checkpoint_bytes_max = 512u << 20;  // of the log, between two checkpoints that take long
}  // namespace

// Puts that have waited too long. Whoever has waited longest is first in each list.
void MessageStore::Impl::expire(WaitList& list, int64_t now_ns) {
  while (!list.empty()) {
    auto& w = static_cast<PutWaiter&>(*list.front());
    if (now_ns - w.since_ns < options_.sync_flush_timeout_ms * ns_per_ms) return;
    Loop::current().fire(w, WaitResult::deadline);
  }
}

Task<void> MessageStore::Impl::watch_loop() {
  while (!stopping_) {
    if (puts_running_ == 0) {
      co_await watch_work_.wait();
      if (stopping_) co_return;
    }
    co_await watch_stop_.wait_for(500 * ns_per_ms);
    int64_t now_ns = Loop::current().now_ns();
    expire(room_waiters_, now_ns);
    expire(confirm_waiters_, now_ns);
  }
}

Task<void> MessageStore::Impl::queue_loop() {
  while (!stopping_ && !failed_) {
    if (table_.unwritten_units() == 0) {
      co_await queue_work_.wait();
      if (stopping_) co_return;
    }
    // Few units of many queues would make many small writes: they wait longer, a second a thousand queues.
    for (size_t rounds = 1; !queue_files_.write_soon() && !stopping_; rounds++) {
      bool woken = co_await queue_soon_.wait_for(options_.queue_write_interval_ms * ns_per_ms);
      if (woken || rounds * 1000 >= queue_files_.unwritten_queues()) break;
    }
    auto r = co_await queue_files_.write_all();
    if (!r) fail(r.error());
    disk_watch_.set_queues_stuck(queue_files_.no_space());
    admit_waiting();
    if (queue_files_.no_space()) co_await watch_stop_.wait_for(ns_per_s);
  }
}

// Says whether it could be done now.
Task<Result<bool>> MessageStore::Impl::save_checkpoint(bool clean) {
  OwnCheckpoint c;
  c.clean = clean;
  c.sync_flush = options_.flush == FlushDiskType::SYNC_FLUSH;
  c.property_crc = options_.append_property_crc;
  c.queues_durable = static_cast<int64_t>(confirm_);
  c.queue_count = queues_damaged_ ? OwnCheckpoint::queues_damaged : table_.used_queue_count();
  c.queue_units = table_.units_total();
  c.queue_sum = table_.weighted_sum();
  c.store_timestamp_ms = last_store_ms_;  // also of records without a unit, which nothing else remembers
  const int64_t confirmed_store_ms = confirmed_store_ms_;
  uint64_t deletions = deletions_;
  if (!c.sync_flush) CO_TRY(co_await log_.sync());
  CO_TRY_VAR(all, co_await queue_files_.sync_all());
  if (!all || deletions != deletions_) co_return false;
  if (clean) c.queue_begins = table_.sum_of_begins(static_cast<int64_t>(log_.segments().first_base()));
  c.log_durable = c.sync_flush ? static_cast<int64_t>(confirm_) : c.queues_durable;  // where a record ends
  c.zeroed_to = static_cast<int64_t>(log_.zeroed_offset());
  JavaCheckpoint j = checkpoint_files_.java().value_or(JavaCheckpoint{});
  j.physic_msg_timestamp = j.logics_msg_timestamp = confirmed_store_ms;
  j.confirm_phy_offset = c.queues_durable;
  j.index_msg_timestamp = index_.sealed_timestamp_ms().value_or(j.index_msg_timestamp);
  CO_TRY(co_await checkpoint_files_.save(c, j));
  checkpointed_ = static_cast<uint64_t>(c.queues_durable);
  stats_.checkpoints++;
  co_return true;
}

Task<void> MessageStore::Impl::checkpoint_loop() {
  int64_t pause_ns = 0;
  while (!stopping_ && !failed_) {
    bool idle = confirm_ == checkpointed_ && !checkpoint_wanted_;
    if (idle) {
      co_await checkpoint_work_.wait();
      if (stopping_) co_return;
    }
    // One that takes long, of many queues, comes less often, as long as a recovery has not too much to walk.
    const int64_t began_ns = Loop::current().now_ns();
    const int64_t interval_ns = options_.checkpoint_interval_ms * ns_per_ms;
    while (!checkpoint_wanted_ && !stopping_) {
      bool woken = co_await checkpoint_soon_.wait_for(interval_ns);
      int64_t waited_ns = Loop::current().now_ns() - began_ns;
      if (woken || waited_ns >= pause_ns || confirm_ - checkpointed_ >= checkpoint_bytes_max) break;
    }
    if (stopping_) co_return;
    checkpoint_wanted_ = false;
    const int64_t save_began_ns = Loop::current().now_ns();
    auto r = co_await save_checkpoint(false);
    pause_ns = 10 * (Loop::current().now_ns() - save_began_ns);
    if (!r)
      fail(r.error());
    else if (!*r) {
      // A deletion is going on, or there is no room for units.
      co_await checkpoint_soon_.wait_for((queue_files_.no_space() ? 1000 : 100) * ns_per_ms);
      checkpoint_wanted_ = true;
    }
    queue_files_.trim_idle(Loop::current().now_ns());
  }
}

}  // namespace rmq::store

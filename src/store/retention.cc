#include "store/retention.h"

#include <algorithm>
#include <array>

#include "base/time.h"
#include "proto/record.h"

namespace rmq::store {

namespace {
constexpr int64_t same_jump_ms = 60'000;  // a clock that is this much further off has jumped again
}  // namespace

RetentionOwner::~RetentionOwner() = default;

Retention::Retention(Disk& disk, const StoreOptions& o, StoreStats& stats, CommitLog& log, QueueTable& table,
                     QueueFiles& queues, QueueEnds& ends, IndexService& index, RetentionOwner& owner)
    : disk_(disk),
      options_(o),
      rules_(o.retention),
      stats_(stats),
      log_(log),
      table_(table),
      queues_(queues),
      ends_(ends),
      index_(index),
      owner_(owner) {}

void Retention::start(Scope& tasks) {
  opened_ns_ = Loop::current().now_ns();
  opened_wall_ms_ = Loop::current().wall_ms();
  tasks.spawn(run());
}

void Retention::stop() {
  stop_.set();
  soon_.set();
}

void Retention::set_options(const RetentionOptions& o) {
  rules_ = o;
}

void Retention::delete_expired() {
  manual_rounds_ = manual_delete_rounds;
  soon_.set();
}

Task<void> Retention::run() {
  int64_t wait_ms = rules_.first_clean_ms;
  while (!stop_.is_set()) {
    co_await soon_.wait_for(wait_ms * ns_per_ms);
    if (stop_.is_set()) co_return;
    soon_.reset();
    wait_ms = rules_.clean_interval_ms;
    co_await round();
  }
}

Task<void> Retention::round() {
  const bool manual = manual_rounds_ > 0;
  if (manual) manual_rounds_--;
  bool forcibly = false;
  if (log_.segments().removing()) {  // what a failure left half done
    bool gone = co_await delete_front(DeleteReason::delete_when, -1);
    if (!gone) co_return;
  }
  auto why = co_await reason_now(manual, forcibly);
  if (why && !stop_.is_set()) co_await delete_log_files(*why, forcibly);
  if (rules_.log_bytes_max != 0) co_await delete_beyond_bytes();
  if (reclaim_) co_await delete_unneeded();
  if (!stop_.is_set()) co_await follow_log();
}

// ---- the log -----------------------------------------------------------------------------------------

// Of the fuller one of the two file systems; rounded up, as df does.
Task<Result<uint32_t>> Retention::used_percent() {
  uint32_t most = 0;
  for (const std::string* dir : {&options_.commit_log_dir, &options_.root}) {
    CO_TRY_VAR(s, co_await disk_.space(*dir));
    const uint64_t total = std::max<uint64_t>(s.total_bytes, 1), used = total - s.free_bytes;
    most = std::max(most, static_cast<uint32_t>((used * 100 + total - 1) / total));
  }
  co_return most;
}

Task<std::optional<DeleteReason>> Retention::reason_now(bool manual, bool& forcibly) {
  auto used = co_await used_percent();
  if (!used) failed(options_.commit_log_dir, used.error());
  const uint32_t percent = used.value_or(0);
  forcibly = rules_.clean_forcibly && percent > rules_.clean_forcibly_percent;
  if (forcibly) co_return DeleteReason::disk_forcibly;
  if (percent > rules_.max_used_percent) co_return DeleteReason::disk_used;
  if (manual) co_return DeleteReason::manual;
  if ((rules_.delete_hours >> local_hour(Loop::current().wall_ms()) & 1) != 0)
    co_return DeleteReason::delete_when;
  co_return std::nullopt;
}

// The newest message of the oldest file is not younger than the first one of the next file.
Task<Result<Retention::Age>> Retention::age_of_front() {
  SegmentSet& files = log_.segments();
  const std::shared_ptr<Segment> front = files.at(0);
  const uint64_t next = front->base + files.file_bytes();
  std::array<std::byte, proto::record_bytes_min> head{};
  if (next + head.size() <= log_.written_offset()) CO_TRY(co_await log_.copy(next, head));
  auto record = proto::record_front(head);
  const int64_t now_ns = Loop::current().now_ns(), wall_ms = Loop::current().wall_ms();
  const int64_t run_ms = (now_ns - opened_ns_) / ns_per_ms;
  Age a;
  a.sure_ms = front->last_put_ns != 0 ? (now_ns - front->last_put_ns) / ns_per_ms : run_ms;
  a.wall_ms = a.sure_ms;
  if (!record || !record->is_message()) co_return a;
  const int64_t newest_ms = proto::record_store_timestamp(head);
  a.wall_ms = wall_ms - newest_ms;
  if (front->last_put_ns == 0)
    a.sure_ms = std::max(run_ms, std::min(wall_ms, opened_wall_ms_ + run_ms) - newest_ms);
  co_return a;
}

Task<void> Retention::delete_log_files(DeleteReason why, bool forcibly) {
  SegmentSet& files = log_.segments();
  for (uint32_t deleted = 0; deleted < rules_.batch_max && !stop_.is_set(); deleted++) {
    if (!may_delete_front()) break;
    auto age = co_await age_of_front();
    if (!age) {
      failed(files.path_of_front(), age.error());
      break;
    }
    const bool expired = age->sure_ms >= reserved_ms();
    if (!expired && age->wall_ms >= reserved_ms()) note_held();
    if (!expired && !forcibly) break;
    const DeleteReason reason = expired && forcibly ? DeleteReason::disk_used : why;
    bool gone = co_await delete_front(reason, age->sure_ms);
    if (!gone) break;
    co_await stop_.wait_for(rules_.log_pause_ms * ns_per_ms);
    if (!forcibly) continue;
    auto used = co_await used_percent();
    forcibly = used && *used > rules_.clean_forcibly_percent;
  }
}

bool Retention::may_delete_front() {
  SegmentSet& files = log_.segments();
  const uint64_t end = files.first_base() + files.file_bytes();
  return files.count() >= 2 && end <= log_.appended_offset() && end <= owner_.deletable_below();
}

Task<void> Retention::delete_beyond_bytes() {
  SegmentSet& files = log_.segments();
  while (!stop_.is_set() && may_delete_front() &&
         log_.appended_offset() - files.first_base() > rules_.log_bytes_max) {
    auto age = co_await age_of_front();
    bool gone = co_await delete_front(DeleteReason::log_bytes, age ? age->sure_ms : -1);
    if (!gone) co_return;
    co_await stop_.wait_for(rules_.log_pause_ms * ns_per_ms);
  }
}

Task<void> Retention::delete_unneeded() {
  SegmentSet& files = log_.segments();
  if (!may_delete_front()) co_return;
  auto needed_from = static_cast<int64_t>(owner_.deletable_below());
  for (const QueueRef& q : table_.all()) {
    auto front = co_await queues_.front_physical(*q);
    if (!front || stop_.is_set()) co_return;
    needed_from = std::min(needed_from, *front);
  }
  while (!stop_.is_set() && may_delete_front() &&
         static_cast<int64_t>(files.first_base() + files.file_bytes()) <= needed_from) {
    auto age = co_await age_of_front();
    bool gone = co_await delete_front(DeleteReason::discarded, age ? age->sure_ms : -1);
    if (!gone) co_return;
    co_await stop_.wait_for(rules_.log_pause_ms * ns_per_ms);
  }
}

Task<bool> Retention::delete_front(DeleteReason why, int64_t age_ms) {
  SegmentSet& files = log_.segments();
  const std::string path = files.path_of_front();
  // One that a failure left half done is out of the set already.
  const uint64_t log_min = files.first_base() + (files.removing() ? 0 : files.file_bytes());
  auto told = co_await ends_.log_will_begin_at(static_cast<int64_t>(log_min),
                                               static_cast<int64_t>(owner_.deletable_below()));
  // Without room: what the file gives back is the room for it.
  const bool later = !told && told.error().code == Errc::no_space;
  if (!told && !later) {
    failed(path, told.error());
    co_return false;
  }
  auto r = co_await files.remove_front(rules_.destroy_forcibly_ms * ns_per_ms, stop_);
  if (!r) {
    failed(path, r.error());
    co_return false;
  }
  if (later) told = co_await ends_.save();
  if (!told) failed(path, told.error());
  stats_.log_files_deleted++;
  if (listener_ != nullptr) listener_->on_file_deleted({path, files.file_bytes(), age_ms, why});
  co_return true;
}

void Retention::note_held() {
  const int64_t now_ns = Loop::current().now_ns();
  const int64_t jump_ms = Loop::current().wall_ms() - opened_wall_ms_ - (now_ns - opened_ns_) / ns_per_ms;
  if (jump_ms < told_jump_ms_ + same_jump_ms && told_jump_ms_ != 0) return;
  told_jump_ms_ = std::max<int64_t>(jump_ms, 1);
  if (listener_ != nullptr) listener_->on_delete_held(jump_ms);
}

void Retention::failed(std::string_view path, const Error& e) {
  stats_.delete_failures++;
  if (listener_ != nullptr) listener_->on_delete_failed(path, e);
}

// ---- what points into the log ------------------------------------------------------------------------

Task<void> Retention::follow_log() {
  const auto log_min = static_cast<int64_t>(log_.segments().first_base());
  if (cleaned_log_min_ == log_min) co_return;
  bool all = true;
  for (const QueueRef& q : table_.all()) {
    if (stop_.is_set()) co_return;
    auto r = co_await clean_queue(*q, log_min);
    if (queues_.front_waits(*q)) all = false;
    if (r) continue;
    all = false;
    failed("consumequeue/" + q->topic->name + "/" + std::to_string(q->id), r.error());
  }
  co_await clean_index(log_min);
  if (all) cleaned_log_min_ = log_min;
}

Task<Result<void>> Retention::clean_queue(ConsumeQueue& q, int64_t log_min) {
  CO_TRY(co_await queues_.correct_min(q, log_min));
  for (;;) {
    auto bytes = static_cast<uint64_t>(queues_.file_units()) * unit_bytes;
    CO_TRY_VAR(path, co_await queues_.remove_front(q));
    if (path.empty() && q.batch) {
      bytes = static_cast<uint64_t>(queues_.batch_file_bytes());
      CO_TRY_VAR(batch_path, co_await queues_.remove_batch_front(q, log_min));
      path = batch_path;
    }
    if (path.empty()) co_return Result<void>();
    stats_.queue_files_deleted++;
    if (listener_ != nullptr) listener_->on_file_deleted({path, bytes, -1, DeleteReason::log_deleted});
    bool stopped = co_await stop_.wait_for(rules_.queue_pause_ms * ns_per_ms);
    if (stopped) co_return Result<void>();
  }
}

Task<void> Retention::clean_index(int64_t log_min) {
  std::vector<std::string> removed;
  auto r = co_await index_.delete_before(log_min, &removed);
  stats_.index_files_deleted += removed.size();
  for (const std::string& path : removed)
    if (listener_ != nullptr)
      listener_->on_file_deleted({path, index_.file_bytes(), -1, DeleteReason::log_deleted});
  if (!r) failed(options_.root + "/index", r.error());
}

}  // namespace rmq::store

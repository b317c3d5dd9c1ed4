#include "store/queue_ends.h"

#include <algorithm>

#include "store/blocks.h"
#include "store/whole_file.h"

namespace rmq::store {

QueueEnds::QueueEnds(Disk& disk, const StoreOptions& o, QueueTable& table, QueueFiles& queues)
    : disk_(disk), path_(o.root + "/rmqd.ends"), table_(table), queues_(queues) {}

Task<Result<void>> QueueEnds::load() {
  known_.clear();
  log_begin_ = 0;
  auto text = co_await read_whole(disk_, path_);
  if (!text && text.error().code == Errc::not_found) co_return Result<void>();
  if (!text) co_return std::unexpected(text.error());
  const auto ends = decode_queue_ends(as_bytes(*text));
  if (!ends) co_return Result<void>();
  log_begin_ = ends->log_begin;
  for (const QueueEnd& e : ends->queues) known_[{e.topic, e.queue_id}] = e.offset;
  co_return Result<void>();
}

// The name changes from the old file to the new one at once.
Task<Result<void>> QueueEnds::replace(QueueEndsFile f) {
  CO_TRY(co_await write_whole(disk_, path_ + ".tmp", encode_queue_ends(f)));
  CO_TRY(co_await disk_.rename(path_ + ".tmp", path_));
  co_return co_await disk_.sync_dir(parent_of(path_));
}

int64_t QueueEnds::end_of(const std::string& topic, int32_t id) const {
  auto it = known_.find({topic, id});
  return it == known_.end() ? 0 : it->second;
}

Task<Result<void>> QueueEnds::clear() {
  if (known_.empty()) co_return Result<void>();
  known_.clear();
  log_begin_ = 0;
  co_return co_await write();
}

Task<Result<void>> QueueEnds::learn(int64_t log_min, bool all) {
  bool changed = false;
  for (const QueueRef& q : table_.all()) {
    if (q->max_offset == 0 || (q->last_physical_end > log_min && !all)) continue;
    int64_t& end = known_[{q->topic->name, q->id}];
    changed = changed || q->max_offset > end;
    end = std::max(end, q->max_offset);
  }
  if (!changed) co_return Result<void>();
  log_begin_ = std::max(log_begin_, log_min);
  QueueEndsFile f{log_begin_, {}};
  for (const auto& [key, end] : known_) f.queues.push_back({key.first, key.second, end});
  auto written = co_await replace(std::move(f));
  // A store on a full disk must come up; the queues' own files know as well.
  if (!written && written.error().code == Errc::no_space) written = {};
  co_return written;
}

namespace {
// Whether a unit in memory is of a record that lies in [log_min, durable). Units ascend in the log.
bool has_in_tail(const ConsumeQueue& q, int64_t log_min, int64_t durable) {
  int64_t lo = q.tail_first, hi = q.max_offset;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (decode_unit(q.tail_unit(mid)).physical_offset < log_min)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == q.max_offset) return false;
  const QueueUnit u = decode_unit(q.tail_unit(lo));
  return !is_blank(u) && u.physical_offset + u.bytes <= durable;
}
}  // namespace

// A record between `log_min` and `durable` stays in the log whatever happens, and says where its queue ends;
// unless messages behind it are lost.
Task<void> QueueEnds::look_at(ConsumeQueue& q, int64_t log_min, int64_t durable, bool& changed) {
  QueueRef keep(&q);
  int64_t end = q.max_offset;
  if (q.last_physical_end > log_min && !q.blank_end) {
    if (q.last_physical_end <= durable || has_in_tail(q, log_min, durable)) {
      changed = changed || q.end_floor > 0;
      q.end_floor = 0;
      co_return;
    }
    auto first = co_await queues_.first_above(q, log_min);
    end = first.value_or(q.min_offset);  // its file cannot be read: what is sure
  }
  changed = changed || end > q.end_floor;
  q.end_floor = std::max(q.end_floor, end);
}

Task<Result<void>> QueueEnds::log_will_begin_at(int64_t log_min, int64_t durable) {
  co_await writer_.acquire();
  bool changed = unsaved_ || log_min != log_begin_;
  for (const QueueRef& q : table_.all())
    if (!q->deleted) co_await look_at(*q, log_min, durable, changed);
  log_begin_ = log_min;
  Result<void> r;
  if (changed) r = co_await write();
  writer_.release();
  co_return r;
}

Task<Result<void>> QueueEnds::save() {
  co_await writer_.acquire();
  auto r = co_await write();
  writer_.release();
  co_return r;
}

Task<Result<void>> QueueEnds::forget(const std::vector<QueueRef>& queues) {
  const bool any =
      std::any_of(queues.begin(), queues.end(), [](const QueueRef& q) { return q->end_floor > 0; });
  if (!any && !unsaved_) co_return Result<void>();
  co_return co_await save();
}

Task<Result<void>> QueueEnds::write() {
  QueueEndsFile f{log_begin_, {}};
  for (const QueueRef& q : table_.all())
    if (q->end_floor > 0) f.queues.push_back({q->topic->name, q->id, q->end_floor});
  unsaved_ = true;
  auto written = co_await replace(std::move(f));
  if (written) unsaved_ = false;
  co_return written;
}

}  // namespace rmq::store

// ConsumeQueues while the log loses its oldest files: where a queue begins now, and which of its files nobody
// needs any more.
#include <algorithm>

#include "base/check.h"
#include "store/queue_files.h"

namespace rmq::store {

// The first offset in [from, to) whose unit is not blank, and that unit; `to`: all are. Units come from
// memory where they are there, and some hundred at a time from a file.
Task<Result<int64_t>> QueueFiles::skip_blanks(ConsumeQueue& q, int64_t from, int64_t to, QueueUnit& u) {
  std::vector<std::byte> some;
  int64_t some_first = 0, some_count = 0;
  for (int64_t o = from; o < to; o++) {
    if (o >= q.tail_first) {
      u = decode_unit(q.tail_unit(o));
    } else {
      if (o >= some_first + some_count) {
        const int64_t file_first = o - o % file_units_;
        // The first look is at one unit: most often it is enough.
        const int64_t want = some_count == 0 ? 1 : unit_block_units;
        some_first = o;
        some_count = std::min({want, to - o, q.written - o, file_first + file_units_ - o});
        some.assign(static_cast<size_t>(some_count) * unit_bytes, std::byte{0});
        CO_TRY_VAR(file, co_await file_of(q, file_first, false));
        std::shared_ptr<File> f = file;
        auto n = co_await f->read(static_cast<uint64_t>(o - file_first) * unit_bytes, some);
        if (!n) co_return std::unexpected(n.error());
      }
      u = decode_unit(some.data() + static_cast<size_t>(o - some_first) * unit_bytes);
    }
    if (!is_blank(u)) co_return o;
  }
  co_return to;
}

// The first offset from `from` on whose unit is not blank and whose record lies at or above `log_min`;
// max_offset when there is none. Records of a queue lie in the log in the order of its units.
Task<Result<int64_t>> QueueFiles::first_in_log(ConsumeQueue& q, int64_t from, int64_t log_min) {
  const int64_t end = q.max_offset;
  QueueUnit u;
  CO_TRY_VAR(first, co_await skip_blanks(q, from, end, u));
  if (first == end || u.physical_offset >= log_min) co_return first;
  int64_t lo = first + 1, hi = end;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    // Blank units stand for lost ones: the next that is none decides for them.
    CO_TRY_VAR(next, co_await skip_blanks(q, mid, hi, u));
    if (next == hi || u.physical_offset >= log_min)
      hi = mid;
    else
      lo = next + 1;
  }
  CO_TRY_VAR(found, co_await skip_blanks(q, lo, end, u));
  co_return found;
}

Task<Result<void>> QueueFiles::raise_min(ConsumeQueue& q, int64_t physical) {
  QueueRef keep(&q);
  if (q.deleted || q.min_offset >= q.max_offset) co_return Result<void>();
  auto found = co_await first_in_log(q, q.min_offset, physical);
  if (q.deleted) co_return Result<void>();  // its files may be gone, or its successor's
  if (!found) co_return std::unexpected(found.error());
  const int64_t from = q.min_offset;
  q.min_offset = std::max(from, *found);
  if (q.min_offset > from && listener_ != nullptr)
    listener_->on_min_moved(q.topic->name, q.id, from, q.min_offset);
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::correct_min(ConsumeQueue& q, int64_t log_min) {
  QueueRef keep(&q);
  if (q.min_for_log >= log_min) co_return Result<void>();
  CO_TRY(co_await raise_min(q, log_min));
  q.min_for_log = log_min;
  co_return Result<void>();
}

Task<Result<int64_t>> QueueFiles::front_physical(ConsumeQueue& q) {
  QueueRef keep(&q);
  const int64_t at = q.min_offset, end = q.max_offset;
  if (q.deleted || at >= end) co_return int64_t{INT64_MAX};
  if (q.front_at == at) co_return q.front_physical;
  QueueUnit u;
  auto found = co_await skip_blanks(q, at, end, u);
  if (q.deleted) co_return int64_t{INT64_MAX};
  if (!found) co_return std::unexpected(found.error());
  if (*found == end) co_return int64_t{0};  // blank ones only: nothing is known
  q.front_at = at;
  q.front_physical = u.physical_offset;
  co_return u.physical_offset;
}

bool QueueFiles::front_waits(const ConsumeQueue& q) const {
  const int64_t end = q.files_begin + file_units_;
  return !q.deleted && q.files_begin >= 0 && end <= q.min_offset && end < q.files_end && end > q.synced;
}

Task<Result<std::string>> QueueFiles::remove_front(ConsumeQueue& q) {
  QueueRef keep(&q);
  co_await writer_.acquire();
  const int64_t first = q.files_begin, end = first + file_units_;
  const bool needed = first < 0 || end > std::min(q.min_offset, q.synced) || end >= q.files_end;
  std::string path;
  Result<void> r;
  if (!q.deleted && !needed && !deleting_.contains(q.topic->name)) {
    path = path_of(q, first);
    q.files_begin = end;
    forget_file(q.uid, first);
    r = co_await disk_.remove(path);
    if (!r && r.error().code == Errc::not_found) r = {};
    // Before the next one: the files that are left must have no gap.
    if (r) r = co_await disk_.sync_dir(dir_of(q));
    if (!r) q.files_begin = first;
  }
  writer_.release();
  if (!r) co_return std::unexpected(r.error());
  co_return path;
}

}  // namespace rmq::store

// Finding out at the start what the ConsumeQueue files hold.
#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "store/queue_ends.h"
#include "store/segments.h"

namespace rmq::store {

struct QueueFiles::Listed {
  std::string topic;
  int32_t id;
  int64_t limit;
  int64_t log_min;
  bool cut;
  const QueueEnds& ends;
  const std::string& root;
  bool removed = false;  // it held no queue
};

namespace {
constexpr size_t load_workers = 16;
}  // namespace

// Units are looked for where others were read just before: one read brings as many as a block holds.
struct QueueFiles::Peek {
  static constexpr int64_t units_max = 200;
  int64_t first = 0;
  int64_t count = 0;  // 0: nothing was read yet
  std::vector<std::byte> units;
};

Task<Result<QueueUnit>> QueueFiles::read_unit(ConsumeQueue& q, int64_t offset, Peek& p) {
  if (offset < p.first || offset >= p.first + p.count) {
    int64_t file_first = offset - offset % file_units_;
    CO_TRY_VAR(file, co_await file_of(q, file_first, false));
    std::shared_ptr<File> f = file;
    p.first = offset - (offset - file_first) % Peek::units_max;
    p.count = std::min(Peek::units_max, file_first + file_units_ - p.first);
    p.units.assign(static_cast<size_t>(p.count) * unit_bytes, std::byte{0});
    auto n = co_await f->read(static_cast<uint64_t>(p.first - file_first) * unit_bytes, p.units);
    if (!n) co_return std::unexpected(n.error());
    // Beyond the file's end: as not written, also what is there of a last one.
    std::fill(p.units.begin() + static_cast<int64_t>(*n - *n % unit_bytes), p.units.end(), std::byte{0});
  }
  co_return decode_unit(p.units.data() + static_cast<size_t>(offset - p.first) * unit_bytes);
}

// How many units of one file, from its start, are of records that end at or below `limit`. Blank ones count.
// Units are written in order, so this is a point between two neighbours.
Task<Result<int64_t>> QueueFiles::count_below(ConsumeQueue& q, int64_t file_first, int64_t limit, Peek& p) {
  int64_t lo = 0, hi = file_units_;
  bool first = true;  // most queues are short: first the end of the first block
  while (lo < hi) {
    int64_t mid = std::exchange(first, false) ? std::min(hi, Peek::units_max) - 1 : lo + (hi - lo) / 2;
    CO_TRY_VAR(u, co_await read_unit(q, file_first + mid, p));
    bool below =
        u.physical_offset >= 0 && u.bytes > 0 && (is_blank(u) || u.physical_offset + u.bytes <= limit);
    if (below)
      lo = mid + 1;
    else
      hi = mid;
  }
  co_return lo;
}

// Files and rest of a file above max_offset: stale units must not be taken for good ones later. From the end
// on: wherever a crash comes, only the last file may be short, and the queue is good as it is.
Task<Result<void>> QueueFiles::cut_files(ConsumeQueue& q, std::vector<int64_t> files) {
  for (int64_t first : std::views::reverse(files)) {
    if (first + file_units_ <= q.max_offset) continue;
    if (first >= q.max_offset) {
      forget_file(q.uid, first);
      CO_TRY(co_await disk_.remove(path_of(q, first)));
      continue;
    }
    CO_TRY_VAR(file, co_await file_of(q, first, false));
    std::shared_ptr<File> f = file;
    CO_TRY(co_await f->truncate(static_cast<uint64_t>(q.max_offset - first) * unit_bytes));
    CO_TRY(co_await f->truncate(static_cast<uint64_t>(file_units_) * unit_bytes));
    cut_.emplace_back(QueueRef(&q), first);
  }
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::sync_file(ConsumeQueue& q, int64_t file_first) {
  CO_TRY_VAR(file, co_await file_of(q, file_first, false));
  std::shared_ptr<File> f = file;
  co_return co_await f->sync();
}

// Blank units at the end are of lost messages where rmqd.ends says that the queue reaches so far. Else they
// are the filling before a unit that no file has.
Task<Result<void>> QueueFiles::judge_blank_end(ConsumeQueue& q, const Listed& l, Peek& p) {
  QueueUnit last;
  int64_t at = q.max_offset;
  for (; at > q.files_begin; at--) {
    CO_TRY_VAR(unit, co_await read_unit(q, at - 1, p));
    last = unit;
    if (!is_blank(last)) break;
  }
  if (at == q.files_begin) {
    q.max_offset = 0;
    co_return Result<void>();
  }
  q.last_physical_end = last.physical_offset + last.bytes;
  q.max_offset = std::max(at, std::min(q.max_offset, l.ends.end_of(l.topic, l.id)));
  q.blank_end = q.max_offset > at;
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::find_ends(ConsumeQueue& q, const std::vector<int64_t>& files, Listed& l) {
  Peek peek;
  q.files_begin = files.front();
  q.files_end = files.back() + file_units_;
  for (size_t i = files.size(); i-- > 0;) {
    CO_TRY_VAR(count, co_await count_below(q, files[i], l.limit, peek));
    if (count == 0) continue;
    q.max_offset = files[i] + count;
    CO_TRY(co_await judge_blank_end(q, l, peek));
    break;
  }
  if (q.max_offset == 0) co_return Result<void>();
  // Of several files only the last can be partly used.
  while (q.files_end - file_units_ >= q.max_offset) q.files_end -= file_units_;
  q.written = q.tail_first = q.max_offset;
  q.min_offset = q.files_begin;
  CO_TRY_VAR(first, co_await read_unit(q, q.files_begin, peek));
  if (!is_blank(first) && first.physical_offset >= l.log_min) co_return Result<void>();
  CO_TRY_VAR(min, co_await first_in_log(q, q.files_begin, l.log_min));
  q.min_offset = min;
  co_return Result<void>();
}

// rmqd.ends says where the queue ends, and its files say something else.
bool QueueFiles::ends_otherwise(const ConsumeQueue& q, const Listed& l) const {
  const int64_t end = l.ends.end_of(l.topic, l.id);
  const bool expired = q.max_offset == 0 || q.last_physical_end <= l.log_min;
  if (end == 0 || !expired || l.ends.log_begin() > l.log_min) return false;
  // A log that lost files without us: its queues may have had more than we know.
  return l.ends.log_begin() == l.log_min ? q.max_offset != end : q.max_offset < end;
}

// Where a queue ends that the log has nothing of and rmqd.ends does not know (RocketMQ's, or of a time before
// that file) only its files say, and a crash may have left anything in what was not synced: units count as
// long as they are in order and below the log.
Task<Result<void>> QueueFiles::trim_disorder(ConsumeQueue& q, int64_t log_min, bool& trimmed) {
  constexpr int64_t unsynced_units_max = 65'536;
  Peek peek;
  int64_t good = std::max(q.files_begin, q.max_offset - unsynced_units_max), end = 0;
  QueueUnit last;
  while (good < q.max_offset) {
    CO_TRY_VAR(u, co_await read_unit(q, good, peek));
    const int64_t unit_end = u.physical_offset + u.bytes;
    const bool again = q.batch && u == last;  // the next message of the same record
    if (!is_blank(u) && !again && (u.bytes <= 0 || u.physical_offset < end || unit_end > log_min)) break;
    if (!is_blank(u)) end = unit_end;
    last = u;
    good++;
  }
  if (good == q.max_offset && q.min_offset == good) co_return Result<void>();
  // Nothing of it makes sense: as if it were not there.
  if (good == q.files_begin) good = 0;
  q.max_offset = q.written = q.tail_first = good;
  q.min_offset = good;
  q.last_physical_end = end;
  trimmed = true;
  if (good == 0) co_return Result<void>();
  while (q.files_end - file_units_ >= good && q.files_end - file_units_ > q.files_begin)
    q.files_end -= file_units_;
  co_return Result<void>();
}

// Each file is looked at where it begins and where it ends: units follow one another in the log. So a file of
// garbage, or of another queue, is no part of this one.
Task<Result<bool>> QueueFiles::in_order(ConsumeQueue& q, const Listed& l) {
  Peek p;
  int64_t end = 0;
  QueueUnit last;
  for (int64_t file = q.files_begin; file < q.max_offset; file += file_units_) {
    const int64_t file_end = std::min(file + file_units_, q.max_offset);
    for (int64_t at = file; at < file_end;) {
      CO_TRY_VAR(unit, co_await read_unit(q, at, p));
      if (!is_blank(unit) && !(q.batch && unit == last)) {
        const bool possible =
            unit.bytes > 0 && unit.physical_offset >= end && unit.physical_offset <= l.limit - unit.bytes;
        if (!possible) co_return false;
        end = unit.physical_offset + unit.bytes;
        last = unit;
      }
      // From the first block to the last one.
      const bool block_ends = at + 1 == p.first + p.count;
      at = block_ends ? std::max(at + 1, file + (file_end - 1 - file) / Peek::units_max * Peek::units_max)
                      : at + 1;
    }
  }
  co_return true;
}

Task<Result<void>> QueueFiles::load_queue(Listed& l) {
  ConsumeQueue& q = table_.get_or_create(l.topic, l.id);
  QueueRef keep(&q);
  std::string dir = dir_of(q);
  CO_TRY_VAR(entries, co_await disk_.list(dir));
  std::vector<int64_t> files;
  bool sane = true;
  uint64_t full = static_cast<uint64_t>(file_units_) * unit_bytes;
  for (auto& e : entries) {
    uint64_t at = 0;
    if (e.is_dir || !parse_file_name_20(e.name, at)) continue;
    int64_t first = static_cast<int64_t>(at / unit_bytes);
    bool last = &e == &entries.back();
    sane = sane && at % full == 0 && (e.bytes == full || (last && e.bytes < full));
    sane = sane && (files.empty() || files.back() + file_units_ == first);
    files.push_back(first);
  }
  if (sane && !files.empty()) CO_TRY(co_await find_ends(q, files, l));
  if (ends_otherwise(q, l)) {
    const int64_t end = l.ends.end_of(l.topic, l.id);
    forget(q.uid);
    q.max_offset = q.written = 0;
    q.files_begin = q.files_end = -1;
    table_.start_at(q, end);
    l.removed = true;
    co_return co_await remove_tree(dir);
  }
  bool cut = l.cut;
  const bool unsure = q.max_offset > 0 && q.last_physical_end <= l.log_min;
  if (unsure && l.ends.end_of(l.topic, l.id) == 0) CO_TRY(co_await trim_disorder(q, l.log_min, cut));
  if (sane && q.max_offset > 0 && !unsure) {
    CO_TRY_VAR(orderly, co_await in_order(q, l));
    sane = orderly;
  }
  damaged_ = damaged_ || !sane;
  if (!sane || files.empty() || q.max_offset == 0) {
    forget(q.uid);
    table_.detach_queue(q);
    // An empty file that begins at 0 says nothing: a loss of power brought back what a killed process had
    // deleted.
    const bool says_nothing = files.empty() || files.back() == 0;
    // Damaged ones go with all others, when no checkpoint vouches for what a crash leaves of them.
    l.removed = sane && (l.cut || says_nothing);
    if (l.removed) co_return co_await remove_tree(dir);
    co_return Result<void>();
  }
  if (cut) CO_TRY(co_await cut_files(q, files));
  table_.loaded(q);
  co_return Result<void>();
}

Task<void> QueueFiles::load_worker(std::vector<Listed>& all, size_t& next, Result<void>& result) {
  while (result && next < all.size()) {
    auto r = co_await load_queue(all[next++]);
    if (!r) result = r;
  }
}

// Directories that a crash has left empty, of queues and then of topics. None comes back later.
Task<Result<void>> QueueFiles::tidy(const std::vector<Listed>& all) {
  std::string last;
  for (const Listed& l : all) {
    if (!l.removed || l.topic == last) continue;
    last = l.topic;
    const std::string dir = l.root + "/" + l.topic;
    CO_TRY(co_await disk_.sync_dir(dir));
    CO_TRY_VAR(rest, co_await disk_.list(dir));
    if (rest.empty()) CO_TRY(co_await disk_.remove(dir));
    CO_TRY(co_await disk_.sync_dir(l.root));
  }
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::load(int64_t limit, int64_t log_min, bool cut, const QueueEnds& ends) {
  CO_TRY(co_await disk_.make_dirs(root_));
  CO_TRY(co_await remove_batch_of_others());
  damaged_ = false;
  std::vector<Listed> all;
  const std::array<const std::string*, 2> roots{&root_, &own_batch_root_};
  for (const std::string* root : roots) {
    auto topics = co_await disk_.list(*root);
    if (!topics && topics.error().code == Errc::not_found) continue;
    if (!topics) co_return std::unexpected(topics.error());
    bool removed = false;
    for (auto& t : *topics) {
      if (!t.is_dir || table_.is_batch_topic(t.name) != (root == &own_batch_root_)) continue;
      CO_TRY_VAR(ids, co_await disk_.list(*root + "/" + t.name));
      if (ids.empty()) {
        CO_TRY(co_await disk_.remove(*root + "/" + t.name));
        removed = true;
      }
      int32_t id = 0;
      for (auto& e : ids)
        if (e.is_dir && parse_queue_id(e.name, id))
          all.push_back({t.name, id, limit, log_min, cut, ends, *root});
    }
    // With what was in it before, if that was deleted by a process that was killed, it would come back.
    if (removed) CO_TRY(co_await disk_.sync_dir(*root));
  }
  Result<void> result;
  size_t next = 0;
  Scope workers;
  for (size_t i = 0; i < load_workers; i++) workers.spawn(load_worker(all, next, result));
  co_await workers.join();
  // All cuts first, then the syncs: the first one carries most of the others.
  bool one_by_one = true;
  if (result && cut_.size() >= options_.sync_all_queues_min) {
    result = co_await disk_.sync_all(root_);
    one_by_one = !result && result.error().code == Errc::unsupported;
    if (one_by_one) result = {};
  }
  for (auto& [q, first] : cut_) {
    if (!result || !one_by_one) break;
    result = co_await sync_file(*q, first);
  }
  cut_.clear();
  if (result) result = co_await tidy(all);
  co_return result;
}

}  // namespace rmq::store

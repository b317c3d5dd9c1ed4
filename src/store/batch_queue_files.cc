// The files of queues of batch topics (queue.type=BatchCQ), in which a record may be of several messages.
// Ours are in rmqd.batchqueue, in the form of all other queues: a unit for each message, those of one record
// equal, so that everything that reads queues by offset reads these. RocketMQ's are in batchconsumequeue, a
// unit of 46 bytes for each record; we write them beside ours, in the same steps, and read them only when a
// directory comes from RocketMQ. So it can take the directory back at any time.
#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "base/check.h"
#include "store/blocks.h"
#include "store/compaction_format.h"
#include "store/queue_files.h"
#include "store/segments.h"

namespace rmq::store {

namespace {

constexpr int64_t unit_size = static_cast<int64_t>(batch_unit_bytes);
constexpr int64_t import_units = 2048;  // read at a time
constexpr int64_t gap_max = 1'000'000;

Task<Result<BatchUnit>> read_batch_unit(File& f, int64_t at) {
  std::array<std::byte, batch_unit_bytes> bytes{};
  CO_TRY_VAR(n, co_await f.read(static_cast<uint64_t>(at), bytes));
  co_return n == bytes.size() ? decode_batch_unit(bytes.data()) : BatchUnit{};
}

Task<Result<std::vector<DirEntry>>> list_if_there(Disk& disk, std::string dir) {
  auto entries = co_await disk.list(dir);
  if (!entries && entries.error().code == Errc::not_found) co_return std::vector<DirEntry>();
  co_return entries;
}

}  // namespace

// RocketMQ's files of one queue.
struct QueueFiles::BatchListed {
  std::string topic;
  int32_t id = 0;
  std::string dir;
  std::vector<int64_t> files;  // where they begin, in bytes
  bool sane = true;
  int64_t end = 0;  // behind the last good unit, in bytes
  BatchUnit last;   // that unit; none: count is 0
};

std::string QueueFiles::batch_dir_of(const ConsumeQueue& q) const {
  return batch_root_ + "/" + q.topic->name + "/" + std::to_string(q.id);
}

// In the table of open files beside ours, whose numbers are not negative.
Task<Result<std::shared_ptr<File>>> QueueFiles::batch_file_of(ConsumeQueue& q, int64_t file_at, bool create) {
  const Key k{q.uid, -1 - file_at};
  auto it = files_.find(k);
  if (it != files_.end()) {
    files_lru_.splice(files_lru_.begin(), files_lru_, it->second.lru);
    co_return it->second.file;
  }
  const std::string dir = batch_dir_of(q);
  if (create) CO_TRY(co_await disk_.make_dirs(dir));
  auto opened = co_await disk_.open(dir + "/" + file_name_20(static_cast<uint64_t>(file_at)),
                                    {.write = true, .create = create});
  if (!opened) co_return std::unexpected(opened.error());
  std::shared_ptr<File> f = std::move(*opened);
  if (!q.deleted && file_at >= q.batch->files_begin) keep_open(k, f);
  co_return f;
}

// ---- writing -----------------------------------------------------------------------------------------

Task<Result<void>> QueueFiles::write_batch(ConsumeQueue& q) {
  BatchTail& t = *q.batch;
  while (!q.deleted && !t.waiting.empty()) {
    const int64_t file_at = t.at - t.at % batch_file_bytes_;
    const bool fresh = t.files_begin < 0 || file_at >= t.files_end;
    CO_TRY_VAR(file, co_await batch_file_of(q, file_at, fresh));
    std::shared_ptr<File> f = file;
    if (q.deleted) co_return Result<void>();
    if (fresh) {
      CO_TRY(co_await f->truncate(static_cast<uint64_t>(batch_file_bytes_)));
      if (t.files_begin < 0) t.files_begin = file_at;
      t.files_end = file_at + batch_file_bytes_;
      t.new_file = true;
    }
    const size_t bytes = std::min(t.waiting.size(), static_cast<size_t>(file_at + batch_file_bytes_ - t.at));
    // A copy: the units may move in memory while the write is in flight.
    std::vector<std::byte> buf(t.waiting.begin(), t.waiting.begin() + static_cast<int64_t>(bytes));
    iovec v{buf.data(), bytes};
    CO_TRY(co_await f->write(static_cast<uint64_t>(t.at - file_at), std::span(&v, 1), Durability::none));
    stats_.queue_writes++;
    stats_.queue_write_bytes += bytes;
    t.at += static_cast<int64_t>(bytes);
    table_.drop_waiting(q, bytes);
  }
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::sync_batch(ConsumeQueue& q) {
  BatchTail& t = *q.batch;
  const int64_t to = t.at;
  for (int64_t at = t.synced - t.synced % batch_file_bytes_; at < to; at += batch_file_bytes_) {
    CO_TRY_VAR(file, co_await batch_file_of(q, at, false));
    std::shared_ptr<File> f = file;
    CO_TRY(co_await f->sync());
  }
  if (t.new_file) {
    t.new_file = false;
    const std::string dir = batch_dir_of(q);
    CO_TRY(co_await disk_.sync_dir(dir));
    CO_TRY(co_await disk_.sync_dir(parent_of(dir)));
    CO_TRY(co_await disk_.sync_dir(batch_root_));
  }
  t.synced = std::max(t.synced, to);
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::make_batch_dirs() {
  CO_TRY(co_await disk_.make_dirs(own_batch_root_));
  CO_TRY(co_await disk_.make_dirs(batch_root_));
  co_return co_await disk_.sync_dir(options_.root);
}

// ---- loading -----------------------------------------------------------------------------------------

// What is there of topics that are none: they were deleted, or are of another type now. RocketMQ does not
// start with it.
Task<Result<void>> QueueFiles::remove_batch_of_others() {
  const std::array<std::string, 2> roots{own_batch_root_, batch_root_};
  for (const std::string& root : roots) {
    CO_TRY_VAR(topics, co_await list_if_there(disk_, root));
    bool removed = false;
    for (const DirEntry& t : topics) {
      if (!t.is_dir || table_.is_batch_topic(t.name)) continue;
      CO_TRY(co_await remove_tree(root + "/" + t.name));
      removed = true;
    }
    if (removed) CO_TRY(co_await disk_.sync_dir(root));
  }
  for (const std::string& topic : table_.batch_topics()) {
    const std::string dir = root_ + "/" + topic;
    CO_TRY_VAR(queues, co_await list_if_there(disk_, dir));
    if (queues.empty()) continue;
    CO_TRY(co_await remove_tree(dir));
    CO_TRY(co_await disk_.sync_dir(root_));
  }
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::list_batch_files(BatchListed& l) {
  CO_TRY_VAR(entries, co_await disk_.list(l.dir));
  for (const DirEntry& e : entries) {
    uint64_t name = 0;
    if (e.is_dir || !parse_file_name_20(e.name, name)) continue;
    const auto at = static_cast<int64_t>(name);
    const bool last = &e == &entries.back();  // a crash may have left it short
    const auto bytes = static_cast<int64_t>(e.bytes);
    l.sane = l.sane && at % batch_file_bytes_ == 0 &&
             (bytes == batch_file_bytes_ || (last && bytes < batch_file_bytes_));
    l.sane = l.sane && (l.files.empty() || l.files.back() + batch_file_bytes_ == at);
    l.files.push_back(at);
  }
  co_return Result<void>();
}

Task<Result<std::vector<QueueFiles::BatchListed>>> QueueFiles::list_batch() {
  std::vector<BatchListed> all;
  CO_TRY_VAR(topics, co_await list_if_there(disk_, batch_root_));
  for (const DirEntry& t : topics) {
    if (!t.is_dir) continue;
    CO_TRY_VAR(ids, co_await disk_.list(batch_root_ + "/" + t.name));
    for (const DirEntry& e : ids) {
      BatchListed l;
      if (!e.is_dir || !parse_queue_id(e.name, l.id)) continue;
      l.topic = t.name;
      l.dir = batch_root_ + "/" + t.name + "/" + e.name;
      CO_TRY(co_await list_batch_files(l));
      all.push_back(std::move(l));
    }
  }
  co_return all;
}

// Units are written in order: those of records that end at or below `limit` come first.
Task<Result<void>> QueueFiles::find_batch_end(BatchListed& l, int64_t limit) {
  l.end = l.files.empty() ? 0 : l.files.front();
  for (const int64_t begin : std::views::reverse(l.files)) {
    CO_TRY_VAR(f, co_await disk_.open(l.dir + "/" + file_name_20(static_cast<uint64_t>(begin)), {}));
    int64_t lo = 0, hi = batch_file_bytes_ / unit_size;
    while (lo < hi) {
      const int64_t mid = lo + (hi - lo) / 2;
      CO_TRY_VAR(u, co_await read_batch_unit(*f, mid * unit_size));
      if (u.is_message() && u.physical_offset + u.bytes <= limit) {
        lo = mid + 1;
        l.last = u;
      } else {
        hi = mid;
      }
    }
    co_await f->close();
    if (lo == 0) continue;
    l.end = begin + lo * unit_size;
    break;
  }
  co_return Result<void>();
}

// Files and rest of a file behind the last good unit, from the end on: as cut_files().
Task<Result<void>> QueueFiles::cut_batch(ConsumeQueue& q, const BatchListed& l) {
  for (const int64_t begin : std::views::reverse(l.files)) {
    if (begin + batch_file_bytes_ <= l.end) continue;
    if (begin >= l.end) {
      CO_TRY(co_await disk_.remove(l.dir + "/" + file_name_20(static_cast<uint64_t>(begin))));
      continue;
    }
    CO_TRY_VAR(file, co_await batch_file_of(q, begin, false));
    std::shared_ptr<File> f = file;
    CO_TRY(co_await f->truncate(static_cast<uint64_t>(l.end - begin)));
    CO_TRY(co_await f->truncate(static_cast<uint64_t>(batch_file_bytes_)));
    CO_TRY(co_await f->sync());
  }
  co_return co_await disk_.sync_dir(l.dir);
}

namespace {
// Where the queue goes on in RocketMQ's files. What lies behind `end` is written over.
void go_on_at(BatchTail& t, const std::vector<int64_t>& files, int64_t end, int64_t file_bytes) {
  t.at = t.synced = end;
  t.files_begin = t.files_end = -1;
  if (files.empty() || files.front() >= end) return;
  t.files_begin = files.front();
  t.files_end = (end + file_bytes - 1) / file_bytes * file_bytes;
}
}  // namespace

Task<Result<bool>> QueueFiles::load_batch(int64_t limit, int64_t log_min, bool cut) {
  CO_TRY_VAR(all, co_await list_batch());
  std::set<const ConsumeQueue*> found;
  for (BatchListed& l : all) {
    ConsumeQueue* q = table_.find(l.topic, l.id);
    if (q == nullptr) {  // the walk over the log makes it again
      CO_TRY(co_await remove_tree(l.dir));
      CO_TRY(co_await disk_.sync_dir(parent_of(l.dir)));
      continue;
    }
    if (!l.sane) co_return false;
    CO_TRY(co_await find_batch_end(l, limit));
    const int64_t next = l.last.base_offset + l.last.count;
    const bool same = next == q->max_offset && l.last.physical_offset + l.last.bytes == q->last_physical_end;
    const bool expired = q->last_physical_end <= log_min && next <= q->max_offset;
    if (!same && !expired) co_return false;
    if (cut) CO_TRY(co_await cut_batch(*q, l));
    go_on_at(*q->batch, l.files, l.end, batch_file_bytes_);
    found.insert(q);
  }
  for (const QueueRef& q : table_.all())
    if (q->batch && q->last_physical_end > log_min && !found.contains(q.get())) co_return false;
  co_return true;
}

Task<Result<void>> QueueFiles::remove_imported() {
  return empty_root(own_batch_root_);
}

Task<Result<bool>> QueueFiles::import_queue(const BatchListed& l, int64_t log_min) {
  std::vector<std::byte> buf;
  ConsumeQueue* q = nullptr;
  for (int64_t at = l.files.front(); at < l.end;) {
    const int64_t begin = at - at % batch_file_bytes_;
    const int64_t to = std::min({l.end, begin + batch_file_bytes_, at + import_units * unit_size});
    buf.assign(static_cast<size_t>(to - at), std::byte{0});
    CO_TRY_VAR(f, co_await disk_.open(l.dir + "/" + file_name_20(static_cast<uint64_t>(begin)), {}));
    CO_TRY_VAR(n, co_await f->read(static_cast<uint64_t>(at - begin), buf));
    co_await f->close();
    if (n != buf.size()) co_return false;
    for (size_t i = 0; i < buf.size(); i += batch_unit_bytes) {
      const BatchUnit u = decode_batch_unit(buf.data() + i);
      if (!u.is_message()) co_return false;
      if (q == nullptr) {
        q = &table_.get_or_create(l.topic, l.id);
        table_.start_at(*q, u.base_offset);
      }
      if (u.base_offset < q->max_offset || u.base_offset - q->max_offset > gap_max) co_return false;
      if (u.base_offset > q->max_offset)
        table_.push(*q, {0, blank_unit_size, 0}, u.base_offset - q->max_offset);
      table_.push(*q, {u.physical_offset, u.bytes, u.tags_code}, u.count);
      note_unwritten(*q);
    }
    if (write_soon()) CO_TRY(co_await write_all());
    at = to;
  }
  if (q == nullptr) co_return true;
  q->next_offset = q->max_offset;
  go_on_at(*q->batch, l.files, l.end, batch_file_bytes_);
  CO_TRY(co_await raise_min(*q, log_min));
  co_return true;
}

Task<Result<bool>> QueueFiles::import_batch(int64_t log_min) {
  CO_TRY_VAR(all, co_await list_batch());
  for (BatchListed& l : all) {
    if (l.files.empty()) continue;
    if (!l.sane) co_return false;
    CO_TRY(co_await find_batch_end(l, INT64_MAX));
    CO_TRY_VAR(good, co_await import_queue(l, log_min));
    if (!good) co_return false;
  }
  co_return true;
}

// ---- deleting ----------------------------------------------------------------------------------------

Task<Result<std::string>> QueueFiles::remove_batch_front(ConsumeQueue& q, int64_t log_min) {
  QueueRef keep(&q);
  if (!q.batch || q.deleted) co_return std::string();
  BatchTail& t = *q.batch;
  const int64_t begin = t.files_begin, end = begin + batch_file_bytes_;
  if (begin < 0 || end >= t.files_end || end > t.synced) co_return std::string();
  CO_TRY_VAR(file, co_await batch_file_of(q, begin, false));
  std::shared_ptr<File> f = file;
  CO_TRY_VAR(last, co_await read_batch_unit(*f, batch_file_bytes_ - unit_size));
  if (!last.is_message() || last.physical_offset >= log_min) co_return std::string();
  co_await writer_.acquire();
  std::string path;
  Result<void> r;
  if (!q.deleted && t.files_begin == begin && !deleting_.contains(q.topic->name)) {
    path = batch_dir_of(q) + "/" + file_name_20(static_cast<uint64_t>(begin));
    t.files_begin = end;
    forget_file(q.uid, -1 - begin);
    r = co_await disk_.remove(path);
    if (!r && r.error().code == Errc::not_found) r = {};
    if (r) r = co_await disk_.sync_dir(batch_dir_of(q));
    if (!r) t.files_begin = begin;
  }
  writer_.release();
  if (!r) co_return std::unexpected(r.error());
  co_return path;
}

}  // namespace rmq::store

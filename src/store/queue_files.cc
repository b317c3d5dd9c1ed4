#include "store/queue_files.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "store/blocks.h"
#include "store/compaction_format.h"
#include "store/segments.h"

namespace rmq::store {

QueueFiles::QueueFiles(Disk& disk, const StoreOptions& o, StoreStats& stats, QueueTable& table)
    : disk_(disk),
      options_(o),
      stats_(stats),
      table_(table),
      root_(o.root + "/consumequeue"),
      own_batch_root_(o.root + "/" + std::string(own_batch_queue_dir)),
      batch_root_(o.root + "/" + std::string(batch_queue_dir)),
      file_units_(o.consume_queue_file_units),
      batch_file_bytes_(int64_t{o.batch_queue_file_units} * static_cast<int64_t>(batch_unit_bytes)) {}

std::string QueueFiles::dir_of(const ConsumeQueue& q) const {
  return root_of(q) + "/" + q.topic->name + "/" + std::to_string(q.id);
}

std::string QueueFiles::path_of(const ConsumeQueue& q, int64_t file_first) const {
  return dir_of(q) + "/" + file_name_20(static_cast<uint64_t>(file_first) * unit_bytes);
}

// ---- open files --------------------------------------------------------------------------------------

void QueueFiles::keep_open(Key k, const std::shared_ptr<File>& f) {
  if (files_.contains(k)) return;
  files_lru_.push_front(k);
  files_.emplace(k, OpenFile{f, files_lru_.begin()});
  while (files_.size() > std::max(options_.open_queue_files_max, 16u)) {
    files_.erase(files_lru_.back());
    files_lru_.pop_back();
  }
}

Task<Result<std::shared_ptr<File>>> QueueFiles::file_of(ConsumeQueue& q, int64_t file_first, bool create) {
  Key k{q.uid, file_first};
  auto it = files_.find(k);
  if (it != files_.end()) {
    files_lru_.splice(files_lru_.begin(), files_lru_, it->second.lru);
    co_return it->second.file;
  }
  if (create) CO_TRY(co_await disk_.make_dirs(dir_of(q)));
  auto opened = co_await disk_.open(path_of(q, file_first), {.write = true, .create = create});
  if (!opened) co_return std::unexpected(opened.error());
  std::shared_ptr<File> f = std::move(*opened);
  bool removed = file_first < q.files_begin;  // meanwhile
  if (!q.deleted && !removed) keep_open(k, f);
  co_return f;
}

void QueueFiles::forget(uint64_t uid) {
  for (auto it = files_.lower_bound({uid, INT64_MIN}); it != files_.end() && it->first.uid == uid;) {
    files_lru_.erase(it->second.lru);
    it = files_.erase(it);
  }
  for (auto it = blocks_.lower_bound({uid, INT64_MIN}); it != blocks_.end() && it->first.uid == uid;) {
    blocks_lru_.erase(it->second.lru);
    it = blocks_.erase(it);
  }
}

void QueueFiles::forget_file(uint64_t uid, int64_t file_first) {
  if (auto it = files_.find({uid, file_first}); it != files_.end()) {
    files_lru_.erase(it->second.lru);
    files_.erase(it);
  }
  auto it = blocks_.lower_bound({uid, file_first});
  while (it != blocks_.end() && it->first.uid == uid && it->first.at < file_first + file_units_) {
    blocks_lru_.erase(it->second.lru);
    it = blocks_.erase(it);
  }
}

Task<void> QueueFiles::close() {
  unwritten_.clear();
  unsynced_.clear();
  busy_tails_.clear();
  blocks_.clear();
  blocks_lru_.clear();
  files_lru_.clear();
  std::map<Key, OpenFile> files = std::move(files_);
  files_.clear();
  for (auto& [k, f] : files) co_await f.file->close();
}

// ---- writing -----------------------------------------------------------------------------------------

void QueueFiles::note_unwritten(ConsumeQueue& q) {
  if (q.unwritten_listed || q.deleted) return;
  q.unwritten_listed = true;
  unwritten_.emplace_back(&q);
}

void QueueFiles::add(ConsumeQueue& q, const QueueUnit& u, int32_t messages, int64_t store_timestamp_ms) {
  if (q.batch && !q.deleted) {
    std::array<std::byte, batch_unit_bytes> unit;
    encode_batch_unit(unit.data(), {.physical_offset = u.physical_offset,
                                    .bytes = u.bytes,
                                    .tags_code = u.tags_code,
                                    .store_timestamp_ms = store_timestamp_ms,
                                    .base_offset = q.max_offset,
                                    .count = static_cast<int16_t>(messages)});
    table_.add_waiting(*q.batch, unit);
  }
  if (table_.push(q, u, messages)) note_unwritten(q);
}

// A queue that begins within a file: the units before its first one are blank, as in RocketMQ.
Task<Result<void>> QueueFiles::fill_blank(File& f, int64_t units) {
  constexpr int64_t step = 32'768;
  std::vector<std::byte> buf(static_cast<size_t>(std::min(units, step)) * unit_bytes);
  for (size_t at = 0; at < buf.size(); at += unit_bytes)
    encode_unit(buf.data() + at, {0, blank_unit_size, 0});
  for (int64_t at = 0; at < units; at += step) {
    iovec v{buf.data(), static_cast<size_t>(std::min(step, units - at)) * unit_bytes};
    CO_TRY(co_await f.write(static_cast<uint64_t>(at) * unit_bytes, std::span(&v, 1), Durability::none));
  }
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::write_some(ConsumeQueue& q, int64_t file_first, int64_t to) {
  bool fresh = file_first >= q.files_end;
  CO_TRY_VAR(file, co_await file_of(q, file_first, fresh));
  std::shared_ptr<File> f = file;
  if (fresh) {
    CO_TRY(co_await f->truncate(static_cast<uint64_t>(file_units_) * unit_bytes));
    if (q.written > file_first) CO_TRY(co_await fill_blank(*f, q.written - file_first));
    if (q.files_begin < 0) q.files_begin = file_first;
    q.files_end = file_first + file_units_;
    q.new_file = true;
  }
  // A copy: the units may move in memory while the write is in flight.
  int64_t from = q.written;
  size_t bytes = static_cast<size_t>(to - from) * unit_bytes;
  std::vector<std::byte> buf(q.tail_unit(from), q.tail_unit(from) + bytes);
  iovec v{buf.data(), bytes};
  uint64_t at = static_cast<uint64_t>(from - file_first) * unit_bytes;
  CO_TRY(co_await f->write(at, std::span(&v, 1), Durability::none));
  stats_.queue_writes++;
  stats_.queue_write_bytes += bytes;
  table_.was_written(q, to);
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::write_queue(ConsumeQueue& q) {
  while (!q.deleted && q.written < q.max_offset) {
    int64_t file_first = q.written - q.written % file_units_;
    CO_TRY(co_await write_some(q, file_first, std::min(q.max_offset, file_first + file_units_)));
  }
  if (q.batch) CO_TRY(co_await write_batch(q));
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::write_one(QueueRef& q) {
  q->unwritten_listed = false;
  if (q->deleted) co_return Result<void>();
  if (deleting_.contains(q->topic->name)) {  // files of its predecessor are still there
    note_unwritten(*q);
    co_return Result<void>();
  }
  auto r = co_await write_queue(*q);
  if (q->deleted) co_return Result<void>();
  if (!r && r.error().code != Errc::no_space) co_return r;
  if (!r) {  // nothing is lost: the same units are written again, over what part of them there may be
    no_space_ = true;
    note_unwritten(*q);
  }
  table_.trim(*q, table_.tail_bytes() > tail_bytes_max() ? 0 : tail_units_kept);
  if (!q->unsynced_listed) {
    q->unsynced_listed = true;
    unsynced_.push_back(q);
  }
  if (!q->busy_listed) {
    q->busy_listed = true;
    busy_tails_.push_back(q);
  }
  co_return Result<void>();
}

Task<void> QueueFiles::write_worker(std::vector<QueueRef>& all, size_t& next, Result<void>& result) {
  while (result && next < all.size()) {
    auto r = co_await write_one(all[next++]);
    if (!r) result = r;
  }
}

Task<Result<void>> QueueFiles::write_listed() {
  std::vector<QueueRef> now = std::move(unwritten_);
  unwritten_.clear();
  no_space_ = false;
  Result<void> result;
  size_t next = 0;
  Scope workers;
  for (size_t i = 0; i < std::min(queue_writers, now.size()); i++)
    workers.spawn(write_worker(now, next, result));
  co_await workers.join();
  co_return result;
}

Task<Result<void>> QueueFiles::write_all() {
  co_await writer_.acquire();
  auto r = co_await write_listed();
  writer_.release();
  co_return r;
}

Task<Result<void>> QueueFiles::sync_queue(ConsumeQueue& q) {
  int64_t from = q.synced - q.synced % file_units_;
  int64_t to = q.written;
  for (int64_t first = from; first < to; first += file_units_) CO_TRY(co_await sync_file(q, first));
  if (q.new_file) {
    q.new_file = false;
    std::string dir = dir_of(q);
    CO_TRY(co_await disk_.sync_dir(dir));
    CO_TRY(co_await disk_.sync_dir(parent_of(dir)));
    CO_TRY(co_await disk_.sync_dir(root_of(q)));
  }
  if (q.batch) CO_TRY(co_await sync_batch(q));
  q.synced = to;
  co_return Result<void>();
}

Task<Result<void>> QueueFiles::sync_listed(std::vector<QueueRef> queues) {
  for (QueueRef& q : queues) {
    if (q->deleted) continue;
    auto r = co_await sync_queue(*q);
    // A topic may be deleted and its files gone while we look for them.
    if (!r && !(q->deleted && r.error().code == Errc::not_found)) co_return r;
  }
  co_return Result<void>();
}

Task<Result<bool>> QueueFiles::sync_all() {
  co_await writer_.acquire();
  Result<void> r = co_await write_listed();
  if (r && no_space_) {
    writer_.release();
    co_return false;
  }
  std::vector<QueueRef> now = std::move(unsynced_);
  unsynced_.clear();
  std::vector<int64_t> to;
  for (QueueRef& q : now) {
    q->unsynced_listed = false;
    to.push_back(q->written);
  }
  if (r && now.size() < options_.sync_all_queues_min) {
    r = co_await sync_listed(std::move(now));
    now.clear();
  }
  writer_.release();
  if (r && !now.empty()) {
    // Takes long, so others may write meanwhile; what is safe then is what was written before.
    r = co_await disk_.sync_all(root_);
    const bool one_by_one = !r && r.error().code == Errc::unsupported;
    if (one_by_one) r = co_await sync_listed(now);
    for (size_t i = 0; i < now.size() && r && !one_by_one; i++) {
      if (now[i]->batch) {  // their directories may be on another file system
        std::vector<QueueRef> one{now[i]};
        r = co_await sync_listed(std::move(one));
        continue;
      }
      now[i]->synced = std::max(now[i]->synced, to[i]);
      if (now[i]->written == to[i]) now[i]->new_file = false;
    }
  }
  if (!r) co_return std::unexpected(r.error());
  co_return deleting_.empty();
}

void QueueFiles::trim_idle(int64_t now_ns) {
  std::vector<QueueRef> still;
  for (QueueRef& q : busy_tails_) {
    if (q->deleted) continue;
    if (q->unwritten() != 0 || now_ns - q->touched_ns < 10 * ns_per_s) {
      still.push_back(q);
      continue;
    }
    q->busy_listed = false;
    table_.trim(*q, 0);
  }
  busy_tails_ = std::move(still);
}

// ---- deleting ----------------------------------------------------------------------------------------

Task<Result<void>> QueueFiles::remove_tree(std::string dir) {
  auto entries = co_await disk_.list(dir);
  if (!entries) {
    if (entries.error().code == Errc::not_found) co_return Result<void>();
    co_return std::unexpected(entries.error());
  }
  for (auto& e : *entries) {
    std::string path = dir + "/" + e.name;
    if (e.is_dir)
      CO_TRY(co_await remove_tree(path));
    else
      CO_TRY(co_await disk_.remove(path));
  }
  co_return co_await disk_.remove(dir);
}

Task<Result<void>> QueueFiles::delete_topic(std::string topic, std::vector<QueueRef> queues) {
  auto mark = deleting_.insert(topic);
  co_await writer_.acquire();
  const bool batch = !queues.empty() && queues.front()->batch != nullptr;
  for (QueueRef& q : queues) forget(q->uid);
  queues.clear();
  Result<void> r;
  const std::vector<std::string> own{root_}, both{own_batch_root_, batch_root_};
  for (const std::string& root : batch ? both : own) {
    if (r) r = co_await remove_tree(root + "/" + topic);
    if (r) r = co_await disk_.sync_dir(root);
  }
  deleting_.erase(mark);
  writer_.release();
  co_return r;
}

Task<Result<void>> QueueFiles::remove_queue(ConsumeQueue& q) {
  const std::string dir = dir_of(q), batch = q.batch ? batch_dir_of(q) : std::string();
  forget(q.uid);
  table_.detach_queue(q);
  if (!batch.empty()) CO_TRY(co_await remove_tree(batch));
  co_return co_await remove_tree(dir);
}

Task<Result<bool>> QueueFiles::any() {
  const std::array<std::string, 3> roots{root_, own_batch_root_, batch_root_};
  for (const std::string& root : roots) {
    auto entries = co_await disk_.list(root);
    if (!entries && entries.error().code != Errc::not_found) co_return std::unexpected(entries.error());
    if (entries && !entries->empty()) co_return true;
  }
  co_return false;
}

Task<Result<void>> QueueFiles::delete_queue(QueueRef q) {
  const std::string topic = q->topic->name, dir = dir_of(*q), root = root_of(*q);
  const std::string batch = q->batch ? batch_dir_of(*q) : std::string();
  auto mark = deleting_.insert(topic);
  co_await writer_.acquire();
  forget(q->uid);
  Result<void> r = co_await remove_tree(dir);
  if (r) r = co_await disk_.sync_dir(root + "/" + topic);
  if (r && !batch.empty()) r = co_await remove_tree(batch);
  deleting_.erase(mark);
  writer_.release();
  co_return r;
}

Task<Result<void>> QueueFiles::remove_all() {
  for (const QueueRef& q : table_.all()) {
    forget(q->uid);
    table_.detach_queue(*q);
  }
  unwritten_.clear();
  unsynced_.clear();
  busy_tails_.clear();
  CO_TRY(co_await disk_.make_dirs(root_));
  CO_TRY(co_await empty_root(root_));
  CO_TRY(co_await empty_root(own_batch_root_));
  CO_TRY(co_await empty_root(batch_root_));
  co_return co_await disk_.sync_dir(options_.root);
}

Task<Result<void>> QueueFiles::empty_root(std::string root) {
  auto topics = co_await disk_.list(root);
  if (!topics && topics.error().code == Errc::not_found) co_return Result<void>();
  if (!topics) co_return std::unexpected(topics.error());
  for (const DirEntry& t : *topics) {
    const std::string dir = root + "/" + t.name;
    if (t.is_dir)
      CO_TRY(co_await remove_tree(dir));
    else
      CO_TRY(co_await disk_.remove(dir));
  }
  co_return co_await disk_.sync_dir(root);
}

// ---- reading -----------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<UnitBlock>>> QueueFiles::block_of(ConsumeQueue& q, int64_t offset) {
  check(offset < q.written);
  if (q.deleted) co_return fail(Errc::not_found, "deleted queue");
  int64_t file_first = offset - offset % file_units_;
  int64_t first = offset - (offset - file_first) % unit_block_units;
  Key k{q.uid, first};
  auto it = blocks_.find(k);
  if (it != blocks_.end() && offset < first + it->second.block->count) {
    blocks_lru_.splice(blocks_lru_.begin(), blocks_lru_, it->second.lru);
    co_return it->second.block;
  }
  QueueRef keep(&q);
  auto b = std::make_shared<UnitBlock>();
  b->first = first;
  b->count = std::min({unit_block_units, file_first + file_units_ - first, q.written - first});
  b->units.resize(static_cast<size_t>(b->count) * unit_bytes);
  CO_TRY_VAR(file, co_await file_of(q, file_first, false));
  std::shared_ptr<File> f = file;
  if (q.deleted) co_return fail(Errc::not_found, "deleted queue");  // it may be its successor's file
  auto n = co_await f->read(static_cast<uint64_t>(first - file_first) * unit_bytes, b->units);
  if (!n) co_return std::unexpected(n.error());
  if (*n != b->units.size()) co_return fail(Errc::corrupt, "a consumequeue file ends too early");
  stats_.queue_reads++;
  if (q.deleted) co_return b;
  it = blocks_.find(k);
  if (it != blocks_.end()) {
    it->second.block = b;
    co_return b;
  }
  blocks_lru_.push_front(k);
  blocks_.emplace(k, CachedBlock{b, blocks_lru_.begin()});
  if (blocks_.size() > unit_blocks_cached) {
    blocks_.erase(blocks_lru_.back());
    blocks_lru_.pop_back();
  }
  co_return b;
}

}  // namespace rmq::store

// Compaction: the full files of a queue are written anew without messages that have a later one of their key,
// and without those of an empty body that say that a key is gone.
#include <algorithm>
#include <unordered_map>

#include "store/blocks.h"
#include "store/compaction.h"
#include "store/config_file.h"
#include "store/format.h"
#include "store/whole_file.h"

namespace rmq::store {

namespace {

constexpr uint64_t rest_each_bytes = 1u << 20;
constexpr int64_t rest_times = 3;  // of the time that the work before took
constexpr int64_t rest_max_ns = 100 * ns_per_ms;
constexpr uint64_t entry_bytes = 96;  // of the table, besides the key

// RocketMQ's key is all of KEYS, not each of its words. Empty: the message has none.
std::string_view key_of(const proto::RecordView& v) {
  const std::string_view keys = v.property(proto::prop::KEYS).value_or(std::string_view());
  return keys.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos ? std::string_view() : keys;
}

std::string position_name(const CompactedQueue& q) {
  return q.topic + "_" + std::to_string(q.id);
}

std::vector<uint64_t> names_of(const std::vector<CompactedFilePtr>& files) {
  std::vector<uint64_t> out;
  for (const CompactedFilePtr& f : files) out.push_back(f->base);
  return out;
}

}  // namespace

// The latest offset of each key, of the messages from behind the last compaction up to `last`.
struct Compaction::KeyMap {
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> latest;
  int64_t after = -1;
  int64_t last = -1;
  uint64_t bytes = 0;

  bool keeps(const proto::RecordView& v) const {
    if (v.queue_offset > last) return true;
    const std::string_view key = key_of(v);
    if (key.empty()) return true;
    const auto it = latest.find(key);
    return (it == latest.end() || it->second <= v.queue_offset) && !v.body.empty();
  }
};

// Others come first: the store's loop, and the device.
Task<void> Compaction::rest(int64_t began_ns) {
  const uint64_t appended = log_.appended_offset();
  const bool busy = std::exchange(appended_at_rest_, appended) != appended;
  const int64_t worked_ns = Loop::current().now_ns() - began_ns;
  if (busy) co_await stop_.wait_for(std::clamp<int64_t>(rest_times * worked_ns, 0, rest_max_ns));
}

Task<Result<void>> Compaction::learn_keys(CompactedQueuePtr q, const std::vector<CompactedFilePtr>& files,
                                          KeyMap& keys) {
  for (const CompactedFilePtr& f : files) {
    if (f->last <= keys.after) continue;
    CO_TRY_VAR(log, co_await compacted_log_of(disk_, f));
    CompactedReader reader(log, f->end);
    uint64_t rested_at = 0;
    int64_t began_ns = Loop::current().now_ns();
    while (reader.position() < f->end && !given_up(*q)) {
      CO_TRY_VAR(record, co_await reader.next());
      auto v = proto::parse_record(record);
      if (!v) co_return fail(Errc::corrupt, "a record of compactionLog");
      if (v->queue_offset <= keys.after) continue;
      if (keys.bytes >= options_.compaction_map_bytes) co_return Result<void>();
      keys.last = v->queue_offset;
      if (const std::string_view key = key_of(*v); !key.empty()) {
        auto known = keys.latest.find(key);
        if (known == keys.latest.end()) {
          keys.bytes += key.size() + entry_bytes;
          known = keys.latest.emplace(std::string(key), 0).first;
        }
        known->second = v->queue_offset;
      }
      if (reader.bytes_read() - rested_at < rest_each_bytes) continue;
      co_await rest(began_ns);
      rested_at = reader.bytes_read();
      began_ns = Loop::current().now_ns();
    }
  }
  co_return Result<void>();
}

Task<Result<std::vector<CompactedFilePtr>>> Compaction::write_anew(CompactedQueuePtr q,
                                                                   const std::vector<CompactedFilePtr>& files,
                                                                   const KeyMap& keys, uint64_t& removed) {
  const CompactedPlace place = place_of(*q, true);
  CO_TRY(co_await remove_tree(place.log_dir));
  CO_TRY(co_await remove_tree(place.queue_dir));
  CompactionWriter w(disk_, place, Durability::none);
  for (const CompactedFilePtr& f : files) {
    CO_TRY_VAR(log, co_await compacted_log_of(disk_, f));
    CompactedReader reader(log, f->end);
    uint64_t rested_at = 0;
    int64_t began_ns = Loop::current().now_ns();
    while (reader.position() < f->end && !given_up(*q)) {
      CO_TRY_VAR(record, co_await reader.next());
      auto v = proto::parse_record(record, proto::CrcCheck::verify);
      if (!v) co_return fail(Errc::corrupt, "a record of compactionLog");
      if (keys.keeps(*v))
        CO_TRY(co_await w.add(record, *v));
      else
        removed++;
      if (reader.bytes_read() - rested_at < rest_each_bytes) continue;
      co_await rest(began_ns);
      rested_at = reader.bytes_read();
      began_ns = Loop::current().now_ns();
    }
  }
  CO_TRY(co_await w.seal());
  CO_TRY(co_await w.sync());
  std::vector<CompactedFilePtr> made = w.take_new();
  co_return std::move(made);
}

// Old and new files are there at the same time, and messages must still find room.
Task<Result<void>> Compaction::check_room(const std::vector<CompactedFilePtr>& files) {
  uint64_t bytes = options_.retention.reserved_bytes;
  for (const CompactedFilePtr& f : files) bytes += f->end + f->units * batch_unit_bytes;
  CO_TRY_VAR(space, co_await disk_.space(options_.root));
  if (space.free_bytes < bytes) co_return fail(Errc::no_space, "room for a compaction");
  co_return Result<void>();
}

Task<Result<void>> Compaction::compact(CompactedQueuePtr q) {
  std::vector<CompactedFilePtr> full = q->files;
  if (!full.empty()) full.pop_back();
  KeyMap keys;
  if (auto p = positions_.find(position_name(*q)); p != positions_.end()) keys.after = p->second;
  if (full.empty() || full.back()->last <= keys.after) co_return Result<void>();
  CO_TRY(co_await check_room(full));
  CO_TRY(co_await learn_keys(q, full, keys));
  if (given_up(*q)) co_return Result<void>();
  uint64_t removed = 0;
  auto written = co_await write_anew(q, full, keys, removed);
  Result<void> ready;
  CompactionSwap swap;
  std::vector<CompactedFilePtr> made;
  if (written) {
    made = std::move(*written);
    swap.topic = q->topic;
    swap.queue_id = q->id;
    swap.old_files = names_of(full);
    swap.new_files = names_of(made);
    // Fewer messages take no more files; files of another size may.
    const bool fits =
        made.empty() || made.back()->base + made.back()->log_bytes <= q->files[full.size()]->base;
    if (!fits) ready = fail(Errc::limit, "compacted files that are larger than the ones before");
  } else {
    ready = std::unexpected(written.error());
  }
  if (!ready || given_up(*q)) {
    co_await drop_made(*q);
    co_return ready;
  }
  CO_TRY(co_await announce(q, swap));
  CO_TRY(co_await replace(q, swap, full, made));
  positions_[position_name(*q)] = keys.last;
  stats_.compactions++;
  stats_.compaction_removed_messages += removed;
  co_return co_await save_positions();
}

// They are of no use, and the disk may be full; what stays a start removes.
Task<void> Compaction::drop_made(const CompactedQueue& q) {
  const CompactedPlace beside = place_of(q, true);
  [[maybe_unused]] auto log_gone = co_await remove_tree(beside.log_dir);
  [[maybe_unused]] auto queue_gone = co_await remove_tree(beside.queue_dir);
}

// From here on a start carries it through. A failure leaves no file that says so, or is final.
Task<Result<void>> Compaction::announce(CompactedQueuePtr q, CompactionSwap swap) {
  const std::string path = options_.root + "/" + std::string(compaction_swap_file);
  std::string text = encode_compaction_swap(swap);
  auto told = co_await write_whole(disk_, path, std::move(text));
  if (told) told = co_await disk_.sync_dir(parent_of(path));
  if (told) co_return told;
  // It must not be there when what it names is not any more.
  auto gone = co_await disk_.remove(path);
  if (gone || gone.error().code == Errc::not_found) gone = co_await disk_.sync_dir(parent_of(path));
  if (gone)
    co_await drop_made(*q);
  else
    owner_.compaction_failed(gone.error());
  co_return told;
}

// Who reads an old file has it open before its name is another's.
Task<Result<void>> Compaction::replace(CompactedQueuePtr q, CompactionSwap swap,
                                       std::vector<CompactedFilePtr> old,
                                       std::vector<CompactedFilePtr> made) {
  for (const CompactedFilePtr& f : made) f->keep_open = true;
  std::vector<CompactedFilePtr> files = made;
  files.insert(files.end(), q->files.begin() + static_cast<ptrdiff_t>(old.size()), q->files.end());
  q->files = std::move(files);
  Result<void> done;
  for (const CompactedFilePtr& f : old) {
    f->keep_open = true;
    if (done) done = co_await open_both(f);
  }
  if (done) done = co_await carry_through(swap);
  // From here on there is no way back, and none forward without it: a start goes on with it.
  if (!done) owner_.compaction_failed(done.error());
  if (!done) co_return done;
  const CompactedPlace place = place_of(*q, false);
  for (const CompactedFilePtr& f : made) {
    f->log_path = place.log_dir + "/" + file_name_20(f->base);
    f->queue_path = place.queue_dir + "/" + file_name_20(f->base);
    f->keep_open = false;
  }
  const CompactedPlace beside = place_of(*q, true);
  for (const std::string& dir : {beside.log_dir, beside.queue_dir}) {
    [[maybe_unused]] auto gone = co_await disk_.remove(dir);  // empty; a start removes it else
  }
  co_return Result<void>();
}

Task<Result<void>> Compaction::open_both(CompactedFilePtr f) {
  auto log = co_await compacted_log_of(disk_, f);
  if (!log) co_return std::unexpected(log.error());
  auto queue = co_await compacted_queue_of(disk_, f);
  if (!queue) co_return std::unexpected(queue.error());
  co_return Result<void>();
}

// May be done again, from whatever point.
Task<Result<void>> Compaction::carry_through(const CompactionSwap& s) {
  const std::string in = "/" + std::to_string(s.queue_id);
  for (const std::string& dir : {log_dir_of(s.topic) + in, queue_dir_of(s.topic) + in}) {
    const std::string beside = dir + "/" + std::string(compacting_subdir);
    for (uint64_t base : s.new_files) {
      const std::string name = "/" + file_name_20(base);
      auto moved = co_await disk_.rename(beside + name, dir + name);
      if (!moved && moved.error().code != Errc::not_found) co_return moved;
    }
    for (uint64_t base : s.old_files) {
      if (std::ranges::find(s.new_files, base) != s.new_files.end()) continue;
      auto gone = co_await disk_.remove(dir + "/" + file_name_20(base));
      if (!gone && gone.error().code != Errc::not_found) co_return gone;
    }
    for (const std::string& changed : {dir, beside}) {
      auto synced = co_await disk_.sync_dir(changed);
      if (!synced && synced.error().code != Errc::not_found) co_return synced;
    }
  }
  const std::string path = options_.root + "/" + std::string(compaction_swap_file);
  auto gone = co_await disk_.remove(path);
  if (!gone && gone.error().code != Errc::not_found) co_return gone;
  co_return co_await disk_.sync_dir(parent_of(path));
}

Task<Result<void>> Compaction::save_positions() {
  std::string text = encode_compaction_positions(positions_);
  co_return co_await replace_file(disk_, options_.root + "/" + std::string(compaction_positions_file),
                                  std::move(text));
}

// One queue after the other. What fails before anything is replaced has changed nothing.
Task<void> Compaction::compact_due() {
  for (const CompactedQueuePtr& q : all()) {
    if (stop_.is_set()) co_return;
    if (Loop::current().now_ns() < q->compact_at_ns || q->deleted) continue;
    co_await q->compacting.acquire();
    Result<void> r;
    if (!q->deleted) r = co_await compact(q);
    q->compacting.release();
    q->compact_at_ns = Loop::current().now_ns() + options_.compaction_interval_ms * ns_per_ms;
    if (r || q->deleted) continue;
    stats_.compaction_failures++;
    if (listener_ != nullptr) listener_->on_compaction_failed(q->topic, q->id, r.error());
  }
}

}  // namespace rmq::store

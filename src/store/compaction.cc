#include "store/compaction.h"

#include <algorithm>

#include "base/check.h"
#include "store/blocks.h"
#include "store/config_file.h"
#include "store/format.h"
#include "store/read_ahead.h"
#include "store/whole_file.h"

namespace rmq::store {

namespace {

constexpr int64_t idle_ns = 60 * ns_per_s;  // then a file is closed

Task<Result<std::vector<DirEntry>>> list_if_there(Disk& disk, std::string dir) {
  auto entries = co_await disk.list(std::move(dir));
  if (!entries && entries.error().code == Errc::not_found) co_return std::vector<DirEntry>();
  co_return entries;
}

}  // namespace

CompactionOwner::~CompactionOwner() = default;

int64_t CompactedQueue::first() const {
  for (const CompactedFilePtr& f : files)
    if (f->units != 0) return f->first;
  return -1;
}

Compaction::Compaction(Disk& disk, const StoreOptions& o, StoreStats& stats, QueueTable& table,
                       QueueFiles& queues, CommitLog& log, CompactionOwner& owner)
    : disk_(disk), options_(o), stats_(stats), table_(table), queues_(queues), log_(log), owner_(owner) {}
Compaction::~Compaction() = default;

std::string Compaction::log_dir_of(std::string_view topic) const {
  return options_.root + "/" + std::string(compaction_log_dir) + "/" + std::string(topic);
}
std::string Compaction::queue_dir_of(std::string_view topic) const {
  return options_.root + "/" + std::string(compaction_queue_dir) + "/" + std::string(topic);
}

CompactedPlace Compaction::place_of(const CompactedQueue& q, bool compacting) const {
  const std::string in =
      "/" + std::to_string(q.id) + (compacting ? "/" + std::string(compacting_subdir) : "");
  CompactedPlace p;
  p.log_dir = log_dir_of(q.topic) + in;
  p.queue_dir = queue_dir_of(q.topic) + in;
  p.queue_file_bytes = compaction_queue_file_bytes(options_.compaction_queue_file_bytes);
  p.log_file_bytes = compaction_log_file_bytes(options_.compaction_log_file_bytes, p.queue_file_bytes);
  return p;
}

CompactedQueuePtr Compaction::find(std::string_view topic, int32_t id) const {
  auto t = topics_.find(topic);
  if (t == topics_.end()) return nullptr;
  auto q = t->second.find(id);
  return q == t->second.end() ? nullptr : q->second;
}

static CompactedQueuePtr new_queue(std::string_view topic, int32_t id, uint32_t compaction_interval_ms) {
  auto q = std::make_shared<CompactedQueue>();
  q->topic = std::string(topic);
  q->id = id;
  q->compact_at_ns = Loop::current().now_ns() + compaction_interval_ms * ns_per_ms;
  return q;
}

CompactedQueuePtr Compaction::make_queue(std::string_view topic, int32_t id) {
  CompactedQueuePtr& q = topics_.find(topic)->second[id];
  if (q == nullptr) q = new_queue(topic, id, options_.compaction_interval_ms);
  return q;
}

std::vector<CompactedQueuePtr> Compaction::all() const {
  std::vector<CompactedQueuePtr> out;
  for (const auto& [topic, queues] : topics_)
    for (const auto& [id, q] : queues) out.push_back(q);
  return out;
}

// ---- at the start ------------------------------------------------------------------------------------

Task<Result<void>> Compaction::look() {
  CO_TRY_VAR(topics, co_await list_if_there(disk_, options_.root + "/" + std::string(compaction_log_dir)));
  for (const DirEntry& e : topics)
    if (e.is_dir) has_files_ = true;
  if (has_files_) needed_from_ = 0;
  co_return Result<void>();
}

Task<Result<void>> Compaction::set_topics(std::vector<std::string> topics, bool clean) {
  CO_TRY(co_await recover_swap());
  auto positions =
      co_await store::load_file(disk_, options_.root + "/" + std::string(compaction_positions_file), nullptr);
  if (positions) positions_ = decode_compaction_positions(positions->content);
  decltype(topics_) loaded;  // nothing is copied before all of it is known
  for (const std::string& topic : topics) {
    Queues& queues = loaded[topic];
    CO_TRY_VAR(entries, co_await list_if_there(disk_, log_dir_of(topic)));
    for (const DirEntry& e : entries) {
      int32_t id = 0;
      if (!e.is_dir || !parse_queue_id(e.name, id)) continue;
      const CompactedQueuePtr q = queues[id] = new_queue(topic, id, options_.compaction_interval_ms);
      CO_TRY(co_await load_queue(q, clean));
      CO_TRY(co_await follow(q));
    }
  }
  topics_ = std::move(loaded);
  needed_from_ = topics.empty() ? UINT64_MAX : 0;
  co_return Result<void>();
}

Task<Result<void>> Compaction::recover_swap() {
  const std::string path = options_.root + "/" + std::string(compaction_swap_file);
  auto text = co_await read_whole(disk_, path);
  if (!text && text.error().code == Errc::not_found) co_return Result<void>();
  if (!text) co_return std::unexpected(text.error());
  const auto swap = decode_compaction_swap(*text);
  if (swap) CO_TRY(co_await carry_through(*swap));
  auto gone = co_await disk_.remove(path);  // one that is not whole has begun nothing
  if (!gone && gone.error().code != Errc::not_found) co_return gone;
  co_return co_await disk_.sync_dir(options_.root + "/" + std::string(compaction_dir));
}

// RocketMQ renames files before it replaces them, and leaves those that somebody reads just then. When it was
// killed between, they may be the only ones: nobody knows.
Task<Result<void>> Compaction::remove_replaced(std::string dir, std::string beside, bool clean) {
  CO_TRY_VAR(entries, co_await list_if_there(disk_, dir));
  CO_TRY_VAR(made, co_await list_if_there(disk_, beside));
  for (const DirEntry& e : entries) {
    if (e.is_dir || !e.name.ends_with(".delete")) continue;
    if (!clean && !made.empty())
      co_return fail(Errc::corrupt, "RocketMQ was killed while it replaced files of compactionLog");
    CO_TRY(co_await disk_.remove(dir + "/" + e.name));
  }
  co_return Result<void>();
}

// Pairs of files by their names. What a crash left of the making of a file is nothing: it had no record yet.
Task<Result<void>> Compaction::load_queue(CompactedQueuePtr q, bool clean) {
  const CompactedPlace place = place_of(*q, false), beside = place_of(*q, true);
  CO_TRY(co_await remove_replaced(place.log_dir, beside.log_dir, clean));
  CO_TRY(co_await remove_replaced(place.queue_dir, beside.log_dir, clean));
  CO_TRY(co_await remove_tree(beside.log_dir));
  CO_TRY(co_await remove_tree(beside.queue_dir));
  CO_TRY_VAR(logs, co_await list_if_there(disk_, place.log_dir));
  CO_TRY_VAR(queues, co_await list_if_there(disk_, place.queue_dir));
  std::map<uint64_t, CompactedFilePtr> files;
  std::map<uint64_t, uint64_t> queue_bytes;
  uint64_t base = 0;
  for (const DirEntry& e : queues)
    if (!e.is_dir && parse_file_name_20(e.name, base)) queue_bytes[base] = e.bytes;
  for (const DirEntry& e : logs) {
    if (e.is_dir || !parse_file_name_20(e.name, base)) continue;
    auto f = std::make_shared<CompactedFile>();
    f->base = base;
    f->log_bytes = e.bytes;
    f->queue_bytes = queue_bytes.contains(base) ? queue_bytes[base] : place.queue_file_bytes;
    f->log_path = place.log_dir + "/" + e.name;
    f->queue_path = place.queue_dir + "/" + e.name;
    files[base] = f;
  }
  for (const auto& [at, bytes] : queue_bytes) {
    if (files.contains(at)) continue;
    if (at < (files.empty() ? 0 : files.rbegin()->first))
      co_return fail(Errc::corrupt, "a file of compactionLog is missing");
    CO_TRY(co_await disk_.remove(place.queue_dir + "/" + file_name_20(at)));
  }
  for (const auto& [at, f] : files) {
    const bool last = at == files.rbegin()->first;
    CO_TRY_VAR(some, co_await load_file(q, f, queue_bytes.contains(at), last, clean));
    if (some) q->files.push_back(f);
  }
  if (!q->files.empty()) q->copied = q->files.back()->last + 1;
  co_return Result<void>();
}

// False: it has no record, and is gone.
Task<Result<bool>> Compaction::load_file(CompactedQueuePtr q, CompactedFilePtr f, bool has_queue, bool last,
                                         bool clean) {
  Result<void> r;
  if (!has_queue)
    r = co_await remake_compacted_queue(disk_, f, q->topic, q->id, last && !clean);
  else if (last && !clean)
    r = co_await mend_compacted_file(disk_, f, q->topic, q->id);
  else
    r = co_await measure_compacted_file(disk_, f, q->topic, q->id);
  if (r && last && !clean) r = co_await make_whole_again(disk_, f, place_of(*q, false));
  if (!r) co_return std::unexpected(r.error());
  if (f->units != 0) {
    const bool in_order = q->files.empty() || f->first > q->files.back()->last;
    if (!in_order) co_return fail(Errc::corrupt, "files of compactionLog are not in order");
    co_return true;
  }
  f->log.reset();
  f->queue.reset();
  CO_TRY(co_await disk_.remove(f->queue_path));
  CO_TRY(co_await disk_.remove(f->log_path));
  co_return false;
}

// The queue knows less than its compacted log: with ASYNC_FLUSH a crash took the end of the CommitLog, or its
// files are lost. Offsets are never given twice: it goes on behind.
Task<Result<void>> Compaction::follow(CompactedQueuePtr q) {
  ConsumeQueue& cq = table_.get_or_create(q->topic, q->id);
  if (cq.max_offset >= q->copied) co_return Result<void>();
  if (cq.max_offset == 0 && cq.files_begin < 0) {
    table_.start_at(cq, q->copied);
    co_return Result<void>();
  }
  const int64_t physical_end = cq.last_physical_end;
  while (cq.max_offset < q->copied) {
    const QueueUnit blank{0, blank_unit_size, 0};
    if (table_.push(cq, blank)) queues_.note_unwritten(cq);
    if (queues_.write_soon()) CO_TRY(co_await queues_.write_all());
  }
  cq.next_offset = cq.max_offset;
  cq.last_physical_end = physical_end;
  co_return Result<void>();
}

// ---- topics ------------------------------------------------------------------------------------------

Task<Result<void>> Compaction::remove_tree(std::string dir) {
  CO_TRY_VAR(entries, co_await list_if_there(disk_, dir));
  for (const DirEntry& e : entries) {
    if (e.is_dir)
      CO_TRY(co_await remove_tree(dir + "/" + e.name));
    else
      CO_TRY(co_await disk_.remove(dir + "/" + e.name));
  }
  auto gone = co_await disk_.remove(dir);
  if (!gone && gone.error().code == Errc::not_found) co_return Result<void>();
  co_return gone;
}

// The queue files first: a crash leaves log files without them, of which a start makes others, should its
// list of topics still have this one. Queue files without their log file would be a loss.
Task<Result<void>> Compaction::remove_files_of(std::string topic) {
  for (const std::string& dir : {queue_dir_of(topic), log_dir_of(topic)}) {
    auto there = co_await disk_.list(dir);
    if (!there && there.error().code == Errc::not_found) continue;
    CO_TRY(co_await remove_tree(dir));
    CO_TRY(co_await disk_.sync_dir(parent_of(dir)));
  }
  const size_t known = std::erase_if(positions_, [&topic](const auto& p) {
    const size_t end = p.first.rfind('_');
    return p.first.substr(0, end) == topic;
  });
  if (known != 0) CO_TRY(co_await save_positions());
  co_return Result<void>();
}

Task<void> Compaction::begin_change(std::string topic) {
  while (changing_.contains(topic)) co_await changed_.wait();
  changing_.insert(std::move(topic));
}

void Compaction::end_change(const std::string& topic) {
  changing_.erase(topic);
  changed_.notify();
}

Task<Result<void>> Compaction::add_topic(std::string topic) {
  co_await begin_change(topic);
  Result<void> r;
  if (!has(topic)) {
    r = co_await remove_files_of(topic);
    if (r && topics_.empty()) needed_from_ = owner_.confirmed_offset();
    if (r) topics_[topic];
  }
  end_change(topic);
  co_return r;
}

Task<Result<void>> Compaction::delete_topic(std::string topic) {
  co_await begin_change(topic);
  Queues queues;
  if (auto found = topics_.find(topic); found != topics_.end()) {
    queues = std::move(found->second);
    topics_.erase(found);
    if (topics_.empty()) needed_from_ = UINT64_MAX;
  }
  for (const auto& [id, q] : queues) q->deleted = true;
  for (const auto& [id, q] : queues) {
    co_await q->copying.acquire();
    co_await q->compacting.acquire();
  }
  auto r = co_await remove_files_of(topic);
  end_change(topic);
  co_return r;
}

// ---- copying -----------------------------------------------------------------------------------------

void Compaction::start(Scope& tasks) {
  tasks.spawn(run_copies());
  tasks.spawn(run_compactions());
}

void Compaction::stop() {
  stop_.set();
}

Task<void> Compaction::run_copies() {
  for (;;) {
    const bool stopped = co_await stop_.wait_for(options_.checkpoint_interval_ms * ns_per_ms);
    if (stopped) co_return;
    [[maybe_unused]] bool copied = co_await copy_all();
    give_up_files();
  }
}

Task<void> Compaction::run_compactions() {
  const int64_t look_ns = std::min<int64_t>(options_.compaction_interval_ms * ns_per_ms, ns_per_s);
  for (;;) {
    const bool stopped = co_await stop_.wait_for(look_ns);
    if (stopped) co_return;
    co_await compact_due();
  }
}

// Files that nobody has read for a while.
void Compaction::give_up_files() {
  const int64_t now_ns = Loop::current().now_ns();
  for (const CompactedQueuePtr& q : all())
    for (const CompactedFilePtr& f : q->files) {
      if (f->keep_open || now_ns - f->used_ns < idle_ns) continue;
      f->log.reset();
      f->queue.reset();
    }
}

Task<void> Compaction::finish(bool copy) {
  if (copy && !topics_.empty()) {
    [[maybe_unused]] bool copied = co_await copy_all();
  }
  for (const CompactedQueuePtr& q : all()) q->files.clear();
}

// Whether all that was confirmed before is copied now. What finds no room waits in the CommitLog, and only
// that: else a full disk could not lose the files of the log whose room a copy needs.
Task<bool> Compaction::copy_all() {
  const uint64_t to = owner_.confirmed_offset();
  for (const auto& [topic, known] : topics_)
    for (int32_t id : table_.ids(topic)) make_queue(topic, id);
  uint64_t copied_to = to;
  for (const CompactedQueuePtr& q : all()) {
    auto r = co_await copy(q);
    if (r) continue;
    if (r.error().code != Errc::no_space) {
      owner_.compaction_failed(r.error());
      co_return false;
    }
    const uint64_t waits = co_await waits_from(q);
    copied_to = std::min(copied_to, waits);
  }
  if (needed_from_ != UINT64_MAX) needed_from_ = std::max(needed_from_, copied_to);
  co_return copied_to == to;
}

// Where in the log its first message lies that is not copied.
Task<uint64_t> Compaction::waits_from(CompactedQueuePtr q) {
  QueueRef from(table_.find(q->topic, q->id));
  if (!from || q->deleted) co_return UINT64_MAX;
  UnitCursor units(queues_, *from);
  for (int64_t o = std::max(q->copied, from->min_offset); o < from->max_offset; o++) {
    QueueUnit u;
    if (!units.get(o, u)) {
      auto loaded = co_await units.load(o);
      if (!loaded || !units.get(o, u)) co_return needed_from_;  // not known: as much as before
    }
    if (!is_blank(u) && u.bytes > 0) co_return static_cast<uint64_t>(u.physical_offset);
  }
  co_return UINT64_MAX;
}

Task<Result<void>> Compaction::copy(CompactedQueuePtr q) {
  if (q->deleted) co_return Result<void>();  // and nobody gives it back
  co_await q->copying.acquire();
  QueueRef from(table_.find(q->topic, q->id));
  Result<void> r;
  if (from && !q->deleted && q->copied < from->max_offset) r = co_await copy_some(q, from, from->max_offset);
  for (const CompactedFilePtr& f : q->files) q->copied = std::max(q->copied, f->last + 1);  // also of a part
  q->copying.release();
  co_return r;
}

Task<Result<void>> Compaction::copy_some(CompactedQueuePtr q, QueueRef from, int64_t to) {
  CompactionWriter w(disk_, place_of(*q, false), Durability::on_media);
  w.resume(q->files.empty() ? nullptr : q->files.back());
  UnitCursor units(queues_, *from);
  std::vector<std::byte> bytes;
  for (int64_t o = std::max(q->copied, from->min_offset); o < to && !q->deleted; o++) {
    QueueUnit u;
    if (!units.get(o, u)) {
      CO_TRY(co_await units.load(o));
      const bool there = units.get(o, u);
      check(there);
    }
    const bool lost = is_blank(u) || u.bytes <= 0 ||
                      static_cast<uint64_t>(u.physical_offset) < log_.segments().first_base();
    if (lost) continue;
    bytes.resize(static_cast<size_t>(u.bytes));
    CO_TRY(co_await log_.copy(static_cast<uint64_t>(u.physical_offset), bytes));
    auto record = proto::parse_record(bytes);
    if (!record || record->queue_offset != o) co_return fail(Errc::corrupt, "a record of a compacted topic");
    CO_TRY(co_await w.add(bytes, *record));
    for (CompactedFilePtr& f : w.take_new()) q->files.push_back(std::move(f));
    stats_.compaction_copied_messages++;
  }
  CO_TRY(co_await w.flush());
  q->copied = to;
  co_return Result<void>();
}

}  // namespace rmq::store

#include "store/recovery.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc.h"
#include "base/limits.h"
#include "store/blocks.h"
#include "store/light_queues.h"

namespace rmq::store {

namespace {
constexpr size_t run_bytes = 64u << 10;  // walked over between two looks at progress
constexpr size_t look_bytes = 1u << 20;
constexpr uint64_t zeros_enough = 8u << 20;  // more than one write, and than one record: nothing follows
constexpr int64_t gap_units_max = 1'000'000;

bool all_zero(Bytes b) {
  return b.empty() || (b[0] == std::byte{0} && std::memcmp(b.data(), b.data() + 1, b.size() - 1) == 0);
}

// True when a sector of the record at `physical` is all zero as far as `part` of the record lies in it.
bool misses_sector(Bytes record, std::string_view part, uint64_t physical) {
  constexpr uint64_t sector_bytes = 512;
  uint64_t at = physical + static_cast<uint64_t>(as_bytes(part).data() - record.data());
  for (const uint64_t end = at + part.size(); at < end;) {
    uint64_t edge = std::min(end, at - at % sector_bytes + sector_bytes);
    if (all_zero(record.subspan(at - physical, edge - at))) return true;
    at = edge;
  }
  return false;
}
}  // namespace

Recovery::Recovery(Disk& disk, const StoreOptions& o, StoreStats& stats, CommitLog& log, QueueTable& table,
                   QueueFiles& files, QueueEnds& ends, CheckpointFiles& checkpoint,
                   RecoveryProgress* progress)
    : disk_(disk),
      options_(o),
      root_(o.root),
      damaged_log_(o.damaged_log),
      stats_(stats),
      log_(log),
      table_(table),
      files_(files),
      ends_(ends),
      checkpoint_(checkpoint),
      progress_(progress) {}

// ---- walking -----------------------------------------------------------------------------------------

void Recovery::report() {
  if (progress_ == nullptr) return;
  uint64_t all = log_.segments().end_base() - from_;
  int per_cent = all == 0 ? 100 : static_cast<int>((pos_ - from_) * 100 / all);
  if (per_cent == last_per_cent_) return;
  last_per_cent_ = per_cent;
  progress_->on_progress(per_cent, static_cast<int64_t>(pos_));
}

// The CRC of a record is of the body alone, and the other fields give a torn record away, but for properties:
// a sector that the last write did not bring to the device is zero there, as the file was made. What else a
// device may leave there is told by the CRC of the whole record, where the writer gave it to each: all but
// those copies of older messages that have no room for it; and of a delivered message by the marker before
// it (delivered_topic), or a start would deliver it again beside what garbage has made of it. Only while the
// store time is the marker's: where a crash has taken copies, others lie in their place. Below the durable
// end nothing can be torn, and zeros are what somebody has sent.
bool Recovery::may_be_torn(const proto::RecordView& v, Bytes record) const {
  if (own_ == nullptr || clean_ || pos_ < static_cast<uint64_t>(own_->log_durable)) return false;
  const bool guarded = guarded_ < guard_.size() && v.store_timestamp_ms == guard_store_ms_;
  if (guarded && guard_[guarded_] != 0 && guard_[guarded_] != crc32(as_bytes(v.properties))) return true;
  const bool has_room = v.properties.size() + proto::property_crc_bytes + 1 <= limits::properties_bytes_max;
  if (own_->property_crc && checkpoint_.abort_is_ours() && !is_set_aside(v) &&
      !(v.property_crc ? proto::property_crc_fits(v, record) : !has_room))
    return true;
  return misses_sector(record, v.topic, pos_) || misses_sector(record, v.properties, pos_);
}

// The record that lies at pos_, when `bytes` from there on hold a good one.
std::optional<proto::RecordView> Recovery::valid_record(Bytes bytes) const {
  auto record = proto::parse_record(bytes, proto::CrcCheck::verify);
  bool valid = record && record->physical_offset == static_cast<int64_t>(pos_) && record->queue_id >= 0 &&
               legal_topic(record->topic) && !may_be_torn(*record, bytes);
  if (!valid) return std::nullopt;
  return *record;
}

void Recovery::passed(const proto::RecordView& v) {
  last_store_ms_ = std::max(last_store_ms_, v.store_timestamp_ms);
  passed_store_ms_ = v.store_timestamp_ms;
  stats_.recovery.records++;
  stats_.recovery.last_record = static_cast<int64_t>(pos_);
  pos_ += v.size;
  guarded_ = v.store_timestamp_ms == guard_store_ms_ ? guarded_ + 1 : guard_.size();
  if (v.topic != delivered_topic) return;
  guard_ = copy_guard_of(v.body);
  guard_store_ms_ = v.store_timestamp_ms;
  guarded_ = 0;
}

Task<Result<bool>> Recovery::step(LogWalker& w) {
  CO_TRY_VAR(head, co_await w.view(pos_, proto::record_bytes_min));
  auto front = proto::record_front(head);
  if (!front) co_return false;
  uint64_t file_bytes = log_.segments().file_bytes();
  uint64_t left = file_bytes - pos_ % file_bytes;
  if (front->is_blank()) {
    if (front->size != left) co_return false;
    pos_ += left;
    co_return true;
  }
  if (!front->is_message() || front->size + proto::blank_record_bytes > left) co_return false;
  CO_TRY_VAR(bytes, co_await w.view(pos_, front->size));
  auto record = valid_record(bytes);
  if (!record) co_return false;
  CO_TRY(co_await dispatch(*record));
  passed(*record);
  co_return true;
}

// Takes records as long as they lie in `bytes` as a whole and nothing about them is unusual; step() does the
// others. A rebuild is as fast as this.
void Recovery::run_over(Bytes bytes) {
  const uint64_t file_bytes = log_.segments().file_bytes();
  while (!files_.write_soon()) {
    auto front = proto::record_front(bytes);
    bool whole = front && front->is_message() && front->size <= bytes.size() &&
                 front->size + proto::blank_record_bytes <= file_bytes - pos_ % file_bytes;
    if (!whole) return;
    auto record = valid_record(bytes.first(front->size));
    if (!record || !dispatch_plain(*record)) return;
    bytes = bytes.subspan(record->size);
    passed(*record);
  }
}

// A record says another offset than the one its queue expects. Files that were lost in part: begin again
// from the log alone. While doing that: what the record says is right.
Task<Result<void>> Recovery::mend_order(ConsumeQueue& q, int64_t offset) {
  if (q.max_offset == 0 && q.files_begin < 0) {
    table_.start_at(q, offset);  // the first one that the log still has
    co_return Result<void>();
  }
  if (!rebuilding_ && !quarantined_) {
    rebuild_wanted_ = true;
    co_return Result<void>();
  }
  if (offset > q.max_offset && offset - q.max_offset <= gap_units_max) {
    while (q.max_offset < offset) table_.push(q, {0, blank_unit_size, 0});
    co_return Result<void>();
  }
  // The topic was deleted here and made again.
  std::string topic = q.topic->name;
  int32_t id = q.id;
  CO_TRY(co_await files_.remove_queue(q));
  table_.start_at(table_.get_or_create(topic, id), offset);
  co_return Result<void>();
}

// Gives the record its unit, or sees that it has or needs none. False: its queue expects another offset, or
// it is in light queues too.
bool Recovery::dispatch_plain(const proto::RecordView& v) {
  if (only_looking_) return true;
  if (!proto::sys_flag::is_visible(v.sys_flag)) return true;
  return light_places_of(v).empty() && dispatch_to_queue(v);
}

// False: its queue expects another offset.
bool Recovery::dispatch_to_queue(const proto::RecordView& v) {
  ConsumeQueue& q = table_.get_or_create(v.topic, v.queue_id);
  if (q.last_physical_end > v.physical_offset) return true;
  if (q.max_offset != v.queue_offset) return false;
  add_unit(q, v);
  return true;
}

void Recovery::add_unit(ConsumeQueue& q, const proto::RecordView& v) {
  files_.add(q, {v.physical_offset, static_cast<int32_t>(v.size), unit_tags_code(v, options_.delay_level_ms)},
             inner_messages_of(v), v.store_timestamp_ms);
  q.next_offset = q.max_offset;
}

Task<Result<void>> Recovery::dispatch(const proto::RecordView& v) {
  if (dispatch_plain(v)) co_return Result<void>();
  CO_TRY(co_await dispatch_mending(v));
  const std::vector<LightPlace> places = light_places_of(v);
  for (const LightPlace& p : places) {
    proto::RecordView there = v;
    there.topic = p.queue;
    there.queue_id = light_queue_id;
    there.queue_offset = p.offset;
    there.sys_flag &= ~proto::sys_flag::inner_batch;
    if (!rebuild_wanted_) CO_TRY(co_await dispatch_mending(there));
  }
  co_return Result<void>();
}

Task<Result<void>> Recovery::dispatch_mending(const proto::RecordView& v) {
  if (dispatch_to_queue(v)) co_return Result<void>();
  CO_TRY(co_await mend_order(table_.get_or_create(v.topic, v.queue_id), v.queue_offset));
  if (rebuild_wanted_) co_return Result<void>();
  add_unit(table_.get_or_create(v.topic, v.queue_id), v);
  co_return Result<void>();
}

Task<Result<void>> Recovery::walk(LogWalker& w) {
  for (;;) {
    report();
    CO_TRY_VAR(bytes, co_await w.view(pos_, proto::record_bytes_min));
    run_over(bytes.first(std::min(bytes.size(), run_bytes)));
    CO_TRY_VAR(found, co_await step(w));
    if (!found || rebuild_wanted_) co_return Result<void>();
    if (files_.write_soon()) CO_TRY(co_await files_.write_all());
  }
}

// ---- the queues --------------------------------------------------------------------------------------

// Queues that rmqd.ends knows begin where they ended. In a rebuild only when the walk is over: until then
// what the log has of a queue counts.
void Recovery::apply_ends(bool walked) {
  for (const auto& [queue, end] : ends_.known()) {
    ConsumeQueue& q = table_.get_or_create(queue.first, queue.second);
    if (q.max_offset == 0 && q.files_begin < 0) table_.start_at(q, end);
    // What came before was damaged, now or at a start before this one.
    const bool fill = walked && q.max_offset < end && end - q.max_offset <= gap_units_max;
    while (fill && q.max_offset < end) table_.push(q, {0, blank_unit_size, 0});
    if (fill) {
      q.next_offset = q.max_offset;
      files_.note_unwritten(q);
    }
    q.end_floor = end;
  }
}

// RocketMQ's own queues go when ours are made. Where a start is refused it must still find them: it never
// makes those of old messages again. So damage is looked for first.
Task<Result<void>> Recovery::look_before_rebuild() {
  if (damaged_log_ != DamagedLog::REFUSE || own_ != nullptr || checkpoint_.abort_is_ours())
    co_return Result<void>();
  CO_TRY_VAR(queues, co_await files_.any());
  if (!queues) co_return Result<void>();
  LogWalker w(log_.segments(), stats_, log_.memory_counter(), &ahead_);
  from_ = pos_ = log_.segments().first_base();
  passed_store_ms_ = INT64_MIN;
  const int64_t last_store_ms = last_store_ms_;
  only_looking_ = true;
  auto r = co_await walk(w);
  only_looking_ = false;
  last_store_ms_ = last_store_ms;
  if (r) r = co_await look_for_damage(w, false, false);
  if (r && valid_behind_ != 0) r = std::unexpected(damaged(valid_behind_));
  co_return r;
}

Task<Result<void>> Recovery::rebuild_all() {
  CO_TRY(co_await look_before_rebuild());
  rebuilding_ = true;
  rebuild_wanted_ = false;
  stats_.recovery.queues_rebuilt = true;
  from_ = pos_ = log_.segments().first_base();
  passed_store_ms_ = INT64_MIN;
  guard_ = {};
  guarded_ = 0;
  stats_.recovery.records = 0;
  const auto log_min = static_cast<int64_t>(from_);
  CO_TRY(co_await ends_.learn(log_min));  // before the files go that know it
  if (own_ == nullptr) co_return co_await files_.remove_all();
  // First of all the old checkpoint may not vouch for units that are made again and not safe yet: when only
  // some of a queue's files are gone, it looks as after a deletion of old ones.
  OwnCheckpoint c = *own_;
  c.clean = false;
  c.queues_durable = static_cast<int64_t>(from_);
  c.queue_count = c.queue_units = c.queue_sum = 0;
  if (ends_.log_begin() <= log_min) {
    c.queue_count = ends_.known().size();
    for (const auto& [queue, end] : ends_.known()) {
      c.queue_units += static_cast<uint64_t>(end);
      c.queue_sum += queue_weight(queue.first, queue.second) * static_cast<uint64_t>(end);
    }
  }
  CO_TRY(co_await checkpoint_.save(c, checkpoint_.java().value_or(JavaCheckpoint{})));
  co_return co_await files_.remove_all();
}

Task<Result<void>> Recovery::load_own() {
  int64_t log_min = static_cast<int64_t>(log_.segments().first_base());
  from_ = static_cast<uint64_t>(own_->queues_durable);
  CO_TRY(co_await files_.load(own_->queues_durable, log_min, !clean_, ends_));
  if (ends_.log_begin() <= log_min) apply_ends(false);
  CO_TRY_VAR(batches_fit, co_await files_.load_batch(own_->queues_durable, log_min, !clean_));
  // A queue that is lost and garbage that looks like another one may make the same count and sum.
  bool same = batches_fit && !files_.damaged() && table_.used_queue_count() == own_->queue_count &&
              table_.units_total() == own_->queue_units;
  same = same && (own_->queue_sum == 0 || table_.weighted_sum() == own_->queue_sum);
  // A first file that is missing looks like one that retention has deleted. After a crash it may have been.
  same = same && (!clean_ || own_->queue_begins == 0 || table_.sum_of_begins(log_min) == own_->queue_begins);
  if (!same) co_return co_await rebuild_all();
  last_store_ms_ = passed_store_ms_ = own_->store_timestamp_ms;
  co_return Result<void>();
}

// RocketMQ stopped in order: every record has its unit, so the newest one of all ends the log. Files of
// queues that it lost, or that were deleted, show in what their records are missing in the sum.
Task<Result<void>> Recovery::load_java() {
  SegmentSet& segments = log_.segments();
  const auto log_min = static_cast<int64_t>(segments.first_base());
  CO_TRY(co_await files_.remove_imported());
  CO_TRY(co_await files_.load(INT64_MAX, log_min, false, ends_));
  const bool damaged = files_.damaged();
  CO_TRY_VAR(imported, co_await files_.import_batch(log_min));
  if (damaged || !imported) co_return co_await rebuild_all();
  int64_t end = 0;
  for (const QueueRef& q : table_.all()) end = std::max(end, q->last_physical_end);
  from_ = static_cast<uint64_t>(end);
  if (from_ < segments.first_base() || from_ > segments.end_base()) co_return co_await rebuild_all();
  CO_TRY_VAR(whole, co_await all_accounted(from_));
  if (!whole) co_return co_await rebuild_all();
  last_store_ms_ = passed_store_ms_ = checkpoint_.java()->physic_msg_timestamp;
  co_return Result<void>();
}

// Files of the log were missing or cut short. What is left of the queues says where they ended, also those
// whose last messages are lost.
Task<Result<void>> Recovery::load_with_gaps() {
  const auto log_min = static_cast<int64_t>(log_.segments().first_base());
  if (own_ == nullptr) CO_TRY(co_await files_.remove_imported());
  CO_TRY(co_await files_.load(own_ != nullptr ? own_->queues_durable : INT64_MAX, log_min, false, ends_));
  CO_TRY(co_await ends_.learn(log_min, true));
  quarantined_ = true;
  for (const SegmentSet::Lost& l : log_.segments().bridged()) {
    stats_.recovery.quarantined_ranges++;
    stats_.recovery.quarantined_bytes += l.end - l.begin;
    if (progress_ != nullptr)
      progress_->on_quarantine(static_cast<int64_t>(l.begin), static_cast<int64_t>(l.end));
  }
  co_return co_await rebuild_all();
}

Task<Result<void>> Recovery::load_queues() {
  SegmentSet& segments = log_.segments();
  const auto& own = checkpoint_.own();
  if (own && static_cast<uint64_t>(own->log_durable) > segments.end_base())
    co_return fail(Errc::corrupt, "commitlog files are missing that the checkpoint knows of");
  if (own && static_cast<uint64_t>(own->queues_durable) >= segments.first_base()) own_ = &*own;
  clean_ = own_ != nullptr && own_->clean && !checkpoint_.abort_exists();
  stats_.recovery.clean = clean_;
  if (!segments.bridged().empty()) co_return co_await load_with_gaps();
  if (own_ != nullptr) co_return co_await load_own();
  if (!checkpoint_.abort_exists() && checkpoint_.java()) {
    stats_.recovery.clean = true;
    co_return co_await load_java();
  }
  // Only for queues of which the log has nothing any more.
  const auto log_min = static_cast<int64_t>(segments.first_base());
  CO_TRY(co_await files_.remove_imported());
  CO_TRY(co_await files_.load(INT64_MAX, log_min, false, ends_));
  [[maybe_unused]] auto imported = co_await files_.import_batch(log_min);
  co_return co_await rebuild_all();
}

// ---- the end -----------------------------------------------------------------------------------------

Task<Result<bool>> Recovery::record_valid(LogWalker& w, uint64_t at) {
  CO_TRY_VAR(head, co_await w.view(at, proto::record_bytes_min));
  auto front = proto::record_front(head);
  bool plausible = front && front->is_message() && head.size() >= proto::record_bytes_min &&
                   proto::record_physical_offset(head) == static_cast<int64_t>(at);
  if (!plausible) co_return false;
  CO_TRY_VAR(bytes, co_await w.view(at, front->size));
  auto record = proto::parse_record(bytes, proto::CrcCheck::verify);
  co_return record.has_value();
}

// A valid record at or behind this offset was written after all bytes at pos_ were safe.
Task<Result<uint64_t>> Recovery::proof_from(LogWalker& w) {
  uint64_t file_bytes = log_.segments().file_bytes();
  uint64_t file_end = pos_ - pos_ % file_bytes + file_bytes;
  CO_TRY_VAR(head, co_await w.view(pos_, proto::record_bytes_min));
  auto front = proto::record_front(head);
  uint64_t spot_end = pos_ + 1;
  if (front && front->is_message() && front->size <= file_end - pos_) {
    CO_TRY_VAR(bytes, co_await w.view(pos_, front->size));
    auto record = proto::parse_record(bytes, proto::CrcCheck::skip);
    if (record && record->physical_offset == static_cast<int64_t>(pos_)) spot_end += record->size - 1;
  }
  co_return std::min(align_up(spot_end) + log_write_bytes_max, file_end);
}

// Walks over what lies behind pos_: how far is there anything, and is there a record that proves damage?
Task<Result<void>> Recovery::look_behind(LogWalker& w, uint64_t proof_from) {
  uint64_t file_bytes = log_.segments().file_bytes();
  uint64_t file_end = pos_ - pos_ % file_bytes + file_bytes;
  uint64_t zeros = 0;
  for (uint64_t p = pos_; p < file_end && zeros < zeros_enough;) {
    bool search = p >= proof_from && valid_behind_ == 0;
    uint64_t to = !search && p < proof_from ? std::min(p + look_bytes, proof_from) : p + look_bytes;
    CO_TRY_VAR(all, co_await w.view(p, to - p));
    Bytes b = all.first(std::min<size_t>(all.size(), to - p));
    uint64_t next = p + b.size();
    if (all_zero(b)) {
      zeros += b.size();
      p = next;
      continue;
    }
    zeros = 0;
    size_t last = b.size();
    while (b[last - 1] == std::byte{0}) last--;
    nonzero_end_ = p + last;
    if (search) CO_TRY(co_await search_record(w, p, next));
    p = next;
  }
  for (uint64_t base = file_end; base < log_.segments().end_base(); base += file_bytes) {
    CO_TRY_VAR(valid, co_await record_valid(w, base));
    if (valid && valid_behind_ == 0 && base >= proof_from) valid_behind_ = base;
    if (valid) nonzero_end_ = base + 1;
  }
  co_return Result<void>();
}

// Sets valid_behind_ to the first valid record that starts in [from, to).
Task<Result<void>> Recovery::search_record(LogWalker& w, uint64_t from, uint64_t to) {
  static constexpr std::byte magic[] = {std::byte{0xDA}, std::byte{0xA3}, std::byte{0x20}};
  constexpr size_t magic_at = 4;
  for (uint64_t p = from; p < to;) {
    CO_TRY_VAR(all, co_await w.view(p, to - p + magic_at + sizeof magic));
    Bytes b = all.first(std::min<size_t>(all.size(), to - p + magic_at + sizeof magic));
    if (b.size() < magic_at + sizeof magic) break;
    Bytes rest = b.subspan(magic_at);
    const void* hit = memmem(rest.data(), rest.size(), magic, sizeof magic);
    if (hit == nullptr) break;
    uint64_t at = p + static_cast<uint64_t>(static_cast<const std::byte*>(hit) - rest.data());
    CO_TRY_VAR(valid, co_await record_valid(w, at));
    if (valid) {
      valid_behind_ = at;
      break;
    }
    p = at + 1;
  }
  co_return Result<void>();
}

Error Recovery::damaged(uint64_t next_valid) {
  if (progress_ != nullptr)
    progress_->on_damage(static_cast<int64_t>(pos_), static_cast<int64_t>(next_valid));
  return Error{Errc::corrupt, 0, "the commitlog is damaged before its end"};
}

// Store time up to which RocketMQ's checkpoint says that all was safe, where ours says nothing of what wrote
// last; of a stop in order that was all. INT64_MIN: nobody knows.
int64_t Recovery::vouched_until_ms() const {
  if (own_ != nullptr && checkpoint_.abort_is_ours()) return INT64_MIN;
  if (checkpoint_.java()) return checkpoint_.java()->physic_msg_timestamp;
  return checkpoint_.abort_exists() ? INT64_MIN : INT64_MAX;
}

// Forgets a record behind pos_ that is newer than what was vouched for; and one that is older than what lies
// before pos_: RocketMQ cuts a torn tail without zeros, and writes over what it has cut.
Task<Result<void>> Recovery::drop_unproven(LogWalker& w) {
  CO_TRY_VAR(head, co_await w.view(valid_behind_, proto::record_bytes_min));
  const int64_t store_ms = proto::record_store_timestamp(head);
  if (store_ms < passed_store_ms_ || store_ms > vouched_until_ms()) valid_behind_ = 0;
  co_return Result<void>();
}

// Sets nonzero_end_ and valid_behind_ by what lies behind pos_.
Task<Result<void>> Recovery::look_for_damage(LogWalker& w, bool below_durable, bool provable) {
  nonzero_end_ = pos_;
  valid_behind_ = 0;
  if (log_.segments().find(pos_) == nullptr) co_return Result<void>();
  uint64_t from = UINT64_MAX;
  if (below_durable) {
    from = pos_ + 1;
  } else if (provable) {
    CO_TRY_VAR(proof, co_await proof_from(w));
    from = proof;
  } else if (vouched_until_ms() != INT64_MIN) {
    from = pos_ + 1;
  }
  CO_TRY(co_await look_behind(w, from));
  if (valid_behind_ == 0 || below_durable || provable) co_return Result<void>();
  co_return co_await drop_unproven(w);
}

Task<Result<bool>> Recovery::finish_tail(LogWalker& w) {
  if (clean_ && pos_ == from_) co_return true;
  bool below_durable = own_ != nullptr && pos_ < static_cast<uint64_t>(own_->log_durable);
  bool provable = own_ != nullptr && own_->sync_flush && checkpoint_.abort_is_ours();
  CO_TRY(co_await look_for_damage(w, below_durable, provable));
  if (below_durable || valid_behind_ != 0) {
    if (damaged_log_ == DamagedLog::REFUSE) co_return std::unexpected(damaged(valid_behind_));
    if (valid_behind_ != 0) {
      CO_TRY(co_await quarantine(w));
      co_return false;
    }
    CO_TRY(co_await quarantine_tail(w));
  } else if (nonzero_end_ > pos_) {
    stats_.recovery.torn_at = static_cast<int64_t>(pos_);
    stats_.recovery.torn_bytes = nonzero_end_ - pos_;
  }
  CO_TRY(co_await sync_kept());
  // Of our own synced writes nothing can be behind zeros: the files are as they should be.
  if (provable && nonzero_end_ == pos_ && !below_durable) co_return true;
  cut_ = true;
  w.forget();
  co_await ahead_.join();  // of a file that may go
  CO_TRY(co_await log_.segments().cut(pos_));
  co_return true;
}

// The kernel may hold what a killed process wrote: nobody may see it before it is safe. Where a write or a
// sync of that process has failed, the kernel may also hold what it believes to be written and is not: no
// sync brings that to the device. So what the checkpoint does not vouch for is written once more, over
// itself; of a log with synchronous flush only the last write can be such.
Task<Result<void>> Recovery::sync_kept() {
  SegmentSet& segments = log_.segments();
  if (own_ != nullptr && pos_ > from_) {
    const bool all = !own_->sync_flush || pos_ - from_ <= log_write_bytes_max;
    CO_TRY(co_await write_again(all ? from_ : pos_ - log_write_bytes_max));
  }
  for (uint64_t p = from_; p < pos_;) {
    std::shared_ptr<Segment> s = segments.find(p);
    CO_TRY(co_await s->file->sync());
    p = s->base + segments.file_bytes();
  }
  co_return Result<void>();
}

// The blocks from that of `from` up to pos_.
Task<Result<void>> Recovery::write_again(uint64_t from) {
  SegmentSet& segments = log_.segments();
  LogMemory* m = LogMemory::create(log_write_bytes_max, log_.memory_counter());
  Result<void> r;
  for (uint64_t p = align_down(from); r && p < pos_;) {
    std::shared_ptr<Segment> s = segments.find(p);
    const uint64_t file_end = s->base + segments.file_bytes();
    const uint64_t want = std::min({log_write_bytes_max, align_up(pos_) - p, file_end - p});
    auto got = co_await s->file->read(p - s->base, {m->data(), want});
    if (!got) {
      r = std::unexpected(got.error());
      break;
    }
    std::memset(m->data() + *got, 0, want - *got);  // a file that was cut off in its last block
    std::vector<iovec> v;
    v.push_back({m->data(), want});
    r = co_await s->file->write(p - s->base, v, Durability::on_media);
    p += want;
  }
  m->unref();
  co_return r;
}

Task<Result<Recovery::Outcome>> Recovery::run() {
  auto out = co_await recover();
  co_await ahead_.join();
  if (out) CO_TRY(co_await log_.segments().keep_bridges());
  co_return out;
}

Task<Result<Recovery::Outcome>> Recovery::recover() {
  SegmentSet& segments = log_.segments();
  Outcome out;
  if (segments.empty()) {
    if (checkpoint_.own() && checkpoint_.own()->log_durable > 0)
      co_return fail(Errc::corrupt, "there are no commitlog files, but the checkpoint knows of some");
    stats_.recovery.clean = true;
    CO_TRY_VAR(queues, co_await files_.any());
    if (queues) CO_TRY(co_await files_.remove_all());
    CO_TRY(co_await ends_.clear());
    co_return out;
  }
  CO_TRY(co_await load_queues());
  LogWalker w(segments, stats_, log_.memory_counter(), &ahead_);
  pos_ = from_;
  for (bool done = false; !done;) {
    CO_TRY(co_await walk(w));
    if (rebuild_wanted_) {
      CO_TRY(co_await rebuild_all());
      CO_TRY(co_await walk(w));
    }
    CO_TRY_VAR(ended, co_await finish_tail(w));
    done = ended;
  }
  // A store that RocketMQ or an older rmqd wrote.
  CO_TRY(co_await ends_.learn(static_cast<int64_t>(segments.first_base())));
  apply_ends(true);
  ends_.forget_known();
  stats_.recovery.scanned_from = static_cast<int64_t>(from_);
  stats_.recovery.scanned_to = static_cast<int64_t>(pos_);
  out.end = pos_;
  out.zeroed_to = own_ != nullptr && !cut_ ? static_cast<uint64_t>(own_->zeroed_to) : pos_;
  out.last_store_timestamp_ms = last_store_ms_;
  co_return out;
}

}  // namespace rmq::store

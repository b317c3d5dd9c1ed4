#include "store/message_store.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
#include "proto/record.h"
#include "store/blocks.h"
#include "store/foreign.h"
#include "store/recovery.h"
#include "store/store_impl.h"

namespace rmq::store {

namespace {

constexpr size_t record_overhead_max = 64u << 10;  // a record is at most maxMessageSize and this
constexpr uint64_t zero_ahead_min = 64u << 10;

uint64_t physical_memory_bytes() {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 1ull << 30;
}

proto::Host host_of(const Address& a) {
  proto::Host h;
  std::memcpy(h.address.data(), a.ip, sizeof a.ip);
  h.port = a.port;
  h.v6 = a.v6;
  return h;
}

int64_t tags_code_of(const MessageIn& m, const StoredProperties& p) {
  return m.tags_code ? *m.tags_code : proto::tags_code_of(p.tags);
}

StoreOptions completed(StoreOptions o) {
  if (o.commit_log_dir.empty()) o.commit_log_dir = o.root + "/commitlog";
  if (o.zero_ahead_bytes != 0) o.zero_ahead_bytes = std::max(o.zero_ahead_bytes, zero_ahead_min);
  if (o.in_memory_distance_bytes == 0) o.in_memory_distance_bytes = physical_memory_bytes() / 5 * 2;
  return o;
}

proto::RecordFields fields_of(const MessageIn& m) {
  return {.topic = m.topic,
          .body = m.body,
          .properties = m.properties,
          .queue_id = m.queue_id,
          .flag = m.flag,
          .sys_flag = m.sys_flag,
          .born_timestamp_ms = m.born_timestamp_ms,
          .born_host = host_of(m.born_host),
          .store_host = host_of(m.store_host),
          .reconsume_times = m.reconsume_times,
          .prepared_transaction_offset = m.prepared_transaction_offset};
}

// The properties without __CRC32#, a name that is the store's: of a client it would be a lie, and a copy of
// an older message brings that one's. `room` holds them when there was one.
std::string_view without_crc(std::string_view properties, std::string& room) {
  const bool may_have = properties.find('#') != std::string_view::npos;  // the fast way to no
  if (!may_have || properties.find(proto::prop::CRC32) == std::string_view::npos) return properties;
  while (!properties.empty()) {
    const size_t end = std::min(properties.find('\x02'), properties.size() - 1) + 1;
    const std::string_view entry = properties.substr(0, end);
    properties.remove_prefix(end);
    if (entry.substr(0, entry.find_first_of("\x01\x02")) != proto::prop::CRC32) room += entry;
  }
  return room;
}

}  // namespace

MessageStore::Impl::Impl(Disk& disk, StoreOptions o)
    : disk_(disk),
      options_(completed(std::move(o))),
      disk_watch_(disk, options_),
      queue_files_(disk, options_, stats_, table_),
      queue_ends_(disk, options_, table_, queue_files_),
      checkpoint_files_(disk, options_.root),
      log_(disk, options_, stats_, *this),
      index_(disk, options_, stats_, log_),
      read_ahead_(log_, queue_files_),
      compaction_(disk, options_, stats_, table_, queue_files_, log_, *this),
      retention_(disk, options_, stats_, log_, table_, queue_files_, queue_ends_, index_, *this),
      pending_records_max_(std::max<uint64_t>(
          options_.waiting_bytes / 3 / (sizeof(PendingRecord) + hashes_per_record * 4), 256)),
      unwritten_units_max_(queue_files_.unwritten_units_max()) {}

MessageStore::Impl::~Impl() {
  for (; !pending_.empty(); pending_.pop()) {  // only after a failure
    if (pending_.front().queue == nullptr) continue;
    QueueRef q(pending_.front().queue);
    q->refs--;
  }
  for (; !pending_lights_.empty(); pending_lights_.pop()) {
    QueueRef q(pending_lights_.front().queue);
    q->refs--;
  }
}

// ---- opening -----------------------------------------------------------------------------------------

// The names of the directories themselves; the root's entries are synced with `abort`, before the first put.
// What is above the root may be none of ours to open.
Task<Result<void>> MessageStore::Impl::sync_parents() {
  std::string log_parent = parent_of(options_.commit_log_dir);
  if (log_parent != options_.root) CO_TRY(co_await disk_.sync_dir(log_parent));
  auto above = co_await disk_.sync_dir(parent_of(options_.root));
  if (!above && above.error().sys != EACCES && above.error().sys != EPERM) co_return above;
  co_return Result<void>();
}

Task<Result<void>> MessageStore::Impl::begin_log(uint64_t end, uint64_t zeroed_to, int64_t last_store_ms) {
  CO_TRY(co_await log_.begin_at(end, zeroed_to));
  confirm_ = end;
  last_store_ms_ = confirmed_store_ms_ = last_store_ms;
  first_store_ms_ = last_store_ms + 1;  // never that of a batch of which a crash has left the front
  auto saved = co_await save_checkpoint(false);
  if (!saved) co_return std::unexpected(saved.error());
  co_return Result<void>();
}

namespace {
Task<void> keep_result(Task<Result<void>> t, Result<void>& out) {
  out = co_await t;
}
}  // namespace

Task<Result<void>> MessageStore::Impl::open(RecoveryProgress* progress) {
  if (options_.commit_log_file_bytes == 0 || options_.commit_log_file_bytes % disk_block_bytes != 0)
    co_return rmq::fail(Errc::bad_input, "mappedFileSizeCommitLog is not a multiple of 4096");
  if (options_.consume_queue_file_units == 0)
    co_return rmq::fail(Errc::bad_input, "mappedFileSizeConsumeQueue is less than one unit");
  int64_t began_ns = Loop::current().clock().mono_ns();
  CO_TRY(co_await refuse_foreign(disk_, options_.root));
  CO_TRY(co_await disk_.make_dirs(options_.root));
  CO_TRY(co_await disk_.make_dirs(options_.commit_log_dir));
  CO_TRY(co_await disk_.make_dirs(options_.root + "/consumequeue"));
  CO_TRY(co_await begin_batch_topics());
  CO_TRY(co_await checkpoint_files_.lock());
  CO_TRY(co_await checkpoint_files_.load());
  auto loaded = co_await log_.segments().load(options_.damaged_log, checkpoint_files_.log_durable());
  if (const auto& lost = log_.segments().lost(); lost && progress != nullptr)
    progress->on_damage(static_cast<int64_t>(lost->begin), static_cast<int64_t>(lost->end));
  CO_TRY(loaded);
  CO_TRY(co_await queue_ends_.load());
  CO_TRY(co_await compaction_.look());
  Recovery recovery(disk_, options_, stats_, log_, table_, queue_files_, queue_ends_, checkpoint_files_,
                    progress);
  CO_TRY_VAR(out, co_await recovery.run());
  // Syncs that do not depend on each other run side by side: a file system then merges their commits.
  Result<void> marked, parents;
  Scope syncs;
  syncs.spawn(keep_result(checkpoint_files_.mark_running(), marked));
  syncs.spawn(keep_result(sync_parents(), parents));
  Result<void> begun = co_await begin_log(out.end, out.zeroed_to, out.last_store_timestamp_ms);
  co_await syncs.join();
  for (const Result<void>& r : {begun, marked, parents}) CO_TRY(r);
  co_await disk_watch_.start(own_tasks_);
  log_.start(tasks_);
  index_.start(out.end, {!checkpoint_files_.abort_exists(),
                         checkpoint_files_.index_safe_ms(out.last_store_timestamp_ms)});
  own_tasks_.spawn(checkpoint_loop());
  own_tasks_.spawn(queue_loop());
  own_tasks_.spawn(watch_loop());
  retention_.start(own_tasks_);
  compaction_.start(own_tasks_);
  if (options_.index_safe) co_await index_.complete();
  accepting_ = true;
  stats_.recovery.duration_ms = (Loop::current().clock().mono_ns() - began_ns) / ns_per_ms;
  if (progress != nullptr) progress->on_progress(100, static_cast<int64_t>(out.end));
  co_return Result<void>();
}

Task<Result<std::unique_ptr<MessageStore>>> MessageStore::open(Disk& disk, StoreOptions options,
                                                               RecoveryProgress* progress) {
  std::unique_ptr<MessageStore> store(new MessageStore(std::make_unique<Impl>(disk, std::move(options))));
  auto r = co_await store->impl_->open(progress);
  if (!r) {
    store->impl_->failed_ = true;  // nothing to write at the end
    co_await store->impl_->shutdown();
    co_return std::unexpected(r.error());
  }
  co_return store;
}

// ---- putting -----------------------------------------------------------------------------------------

proto::RecordFields MessageStore::Impl::record_fields(const MessageIn& m, std::string_view properties,
                                                      std::string& room) const {
  proto::RecordFields f = fields_of(m);
  f.properties = properties.empty() ? without_crc(m.properties, room) : properties;
  f.append_crc = options_.append_property_crc;
  // What was taken without it, or follows from that, must not be refused for it.
  if ((m.was_stored || m.may_use_reserve) && proto::properties_bytes(f) > limits::properties_bytes_max)
    f.append_crc = false;
  return f;
}

PutMessageStatus MessageStore::Impl::check_message(const MessageIn& m, size_t& bytes) const {
  constexpr std::string_view retry = "%RETRY%";
  bool long_ok = m.topic.starts_with(retry);
  size_t topic_max = long_ok ? limits::long_topic_bytes_max : limits::topic_bytes_max;
  bool sane = legal_topic(m.topic) && m.topic.size() <= topic_max && m.queue_id >= 0 && !m.body.empty();
  const bool limited = !m.was_stored;
  if (!sane || (limited && m.body.size() > options_.max_message_bytes))
    return PutMessageStatus::MESSAGE_ILLEGAL;
  std::string room;
  const proto::RecordFields f = record_fields(m, {}, room);
  if (proto::properties_bytes(f) > limits::properties_bytes_max)
    return PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
  const size_t n = proto::record_size(f);
  if (limited && n > options_.max_message_bytes + record_overhead_max)
    return PutMessageStatus::MESSAGE_ILLEGAL;
  bytes += n;
  const PutMessageStatus batch = check_inner_batch(m, proto::properties_bytes(f), bytes);
  if (m.inner_messages > 0 || batch != PutMessageStatus::PUT_OK) return batch;
  if (options_.light_queues_max == 0) return PutMessageStatus::PUT_OK;
  return check_light(m, proto::properties_bytes(f), bytes);
}

void MessageStore::Impl::append_one(const MessageIn& m, int64_t now_ms, PutWaiter& w,
                                    std::string_view properties) {
  PutMessageResult& r = *w.result;
  std::string room;
  proto::RecordFields f = record_fields(m, properties, room);
  ConsumeQueue* q =
      proto::sys_flag::is_visible(m.sys_flag) ? &table_.get_or_create(m.topic, m.queue_id) : nullptr;
  f.queue_offset = q != nullptr ? q->next_offset : 0;
  f.physical_offset = static_cast<int64_t>(log_.appended_offset());
  f.store_timestamp_ms = now_ms;
  size_t n = proto::record_size(f);
  size_t written = proto::encode_record(f, log_.record_memory(n));
  check(written == n);
  log_.appended(n);
  const StoredProperties p = stored_properties(f.properties);
  const int32_t messages = std::max(m.inner_messages, 1);
  uint32_t keys = 0;
  if (index_.enabled() && is_indexed(m.sys_flag))
    keys = each_index_hash(m.topic, p, [&](int32_t hash) { pending_hashes_.push(hash); });
  if (q != nullptr) {
    q->next_offset += messages;
    q->refs++;
  }
  const uint32_t lights = properties.empty() || m.inner_messages > 0 ? 0 : append_lights(m);
  pending_.push({log_.appended_offset(), w.end, q, f.queue_offset, tags_code_of(m, p), now_ms,
                 static_cast<int32_t>(n), messages, keys, lights});
  if (r.physical_offset < 0) {
    r.physical_offset = f.physical_offset;
    r.queue_offset = f.queue_offset;
  }
  if (w.batch) r.physical_offsets.push_back(f.physical_offset);
  stats_.puts++;
  stats_.put_bytes += n;
}

void MessageStore::Impl::append(PutWaiter& w) {
  int64_t now_ms = last_store_ms_ = std::max({last_store_ms_, first_store_ms_, Loop::current().wall_ms()});
  if (w.batch) w.result->physical_offsets.reserve(w.messages.size());
  std::vector<std::string> texts;
  if (options_.light_queues_max != 0 || w.messages[0].inner_messages > 0) texts = late_properties(w);
  log_.open_run(w.total_bytes);
  w.end = log_.appended_offset() + w.total_bytes;
  for (size_t i = 0; i < w.messages.size(); i++)
    append_one(w.messages[i], now_ms, w, texts.empty() ? std::string_view() : std::string_view(texts[i]));
  w.result->store_timestamp_ms = now_ms;
  w.result->total_bytes = static_cast<int32_t>(w.total_bytes);
  w.result->status = PutMessageStatus::PUT_OK;
  check(w.end == log_.appended_offset());
  w.appended = true;
  log_.kick();
}

// PUT_OK: the store takes messages, and from whoever sends this one.
PutMessageStatus MessageStore::Impl::open_for(const MessageIn& m) const {
  const bool open = accepting_ && !failed_ && (m.may_use_reserve || !disk_watch_.full());
  return open ? PutMessageStatus::PUT_OK : PutMessageStatus::SERVICE_NOT_AVAILABLE;
}

Task<bool> MessageStore::Impl::log_may_grow(bool urgent) {
  return disk_watch_.may_make_log_file(urgent);
}

// False: wait; or, with `refused` changed, there will be no room.
bool MessageStore::Impl::room_now(size_t bytes, bool urgent, PutMessageStatus& refused) {
  if (pending_.size() >= pending_records_max_ || queue_files_.unwritten_units() >= unwritten_units_max_)
    return false;
  if (pending_hashes_.size() >= pending_records_max_ * hashes_per_record) return false;
  if (pending_lights_.size() >= pending_records_max_) return false;
  switch (log_.room_for(bytes, urgent)) {
    case CommitLog::Room::ok:
      return true;
    case CommitLog::Room::wait:
      return false;
    case CommitLog::Room::no_space:
      refused = PutMessageStatus::SERVICE_NOT_AVAILABLE;
      return false;
    case CommitLog::Room::no_file:
      refused = PutMessageStatus::CREATE_MAPPED_FILE_FAILED;
      return false;
  }
  return false;
}

// Appends what waits for room, in order, on behalf of those who wait: the order in which they are resumed
// does not matter then.
void MessageStore::Impl::admit_waiting() {
  while (!room_waiters_.empty()) {
    auto& w = static_cast<PutWaiter&>(*room_waiters_.front());
    PutMessageStatus refused = PutMessageStatus::PUT_OK;
    if (room_now(w.total_bytes, w.messages[0].may_use_reserve, refused)) {
      append(w);
      if (w.wait) {
        room_waiters_.remove(w);
        confirm_waiters_.add(w);
        continue;
      }
    } else if (refused != PutMessageStatus::PUT_OK) {
      w.result->status = refused;
    } else {
      return;
    }
    Loop::current().fire(w, WaitResult::notified);
  }
}

namespace {
// Suspends a put: for room, or, when it is appended, for the confirm offset.
struct PutWait {
  WaitList& list;
  PutWaiter& waiter;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    waiter.coroutine = h;
    list.add(waiter);
  }
  void await_resume() const noexcept {}
};
}  // namespace

Task<PutMessageResult> MessageStore::Impl::put_all(std::span<const MessageIn> messages, bool batch,
                                                   bool wait) {
  PutMessageResult r;
  PutWaiter w;
  r.status = messages.empty() ? PutMessageStatus::MESSAGE_ILLEGAL : open_for(messages[0]);
  for (const MessageIn& m : messages)
    if (r.status == PutMessageStatus::PUT_OK) r.status = check_message(m, w.total_bytes);
  bool fits = w.total_bytes + proto::blank_record_bytes <= options_.commit_log_file_bytes;
  if (r.status == PutMessageStatus::PUT_OK && !fits) r.status = PutMessageStatus::MESSAGE_ILLEGAL;
  if (r.status != PutMessageStatus::PUT_OK) {
    stats_.put_failures++;
    co_return r;
  }
  w.messages = messages;
  w.result = &r;
  w.wait = wait;
  w.batch = batch;
  w.since_ns = Loop::current().now_ns();
  PutMessageStatus refused = PutMessageStatus::PUT_OK;
  if (room_waiters_.empty() && room_now(w.total_bytes, messages[0].may_use_reserve, refused)) append(w);
  if (refused != PutMessageStatus::PUT_OK) {
    r.status = refused;
    stats_.put_failures++;
    co_return r;
  }
  if (w.appended && !wait) co_return r;
  if (!w.appended) {
    r.status = PutMessageStatus::OS_PAGE_CACHE_BUSY;  // unless somebody has better news
    stats_.puts_waited++;
  }
  puts_running_++;
  if (watch_work_.has_waiters()) watch_work_.notify();
  PutWait waiting{w.appended ? confirm_waiters_ : room_waiters_, w};
  co_await waiting;
  if (--puts_running_ == 0 && !accepting_) calls_done_.notify();
  if (w.appended && wait && w.end > confirm_)
    r.status = failed_ ? PutMessageStatus::SERVICE_NOT_AVAILABLE : PutMessageStatus::FLUSH_DISK_TIMEOUT;
  if (!w.appended && failed_) r.status = PutMessageStatus::SERVICE_NOT_AVAILABLE;
  if (r.status != PutMessageStatus::PUT_OK) stats_.put_failures++;
  co_return r;
}

// ---- confirming --------------------------------------------------------------------------------------

std::optional<PutMessageResult> MessageStore::Impl::try_put(const MessageIn& m) {
  std::optional<PutMessageResult> r(std::in_place);
  PutWaiter w;
  r->status = open_for(m);
  if (r->status == PutMessageStatus::PUT_OK) r->status = check_message(m, w.total_bytes);
  bool fits = w.total_bytes + proto::blank_record_bytes <= options_.commit_log_file_bytes;
  if (r->status == PutMessageStatus::PUT_OK && !fits) r->status = PutMessageStatus::MESSAGE_ILLEGAL;
  if (r->status == PutMessageStatus::PUT_OK) {
    if (!room_waiters_.empty() || !room_now(w.total_bytes, m.may_use_reserve, r->status)) {
      if (r->status == PutMessageStatus::PUT_OK) return std::nullopt;
    } else {
      w.messages = std::span(&m, 1);
      w.result = &*r;
      append(w);
      return r;
    }
  }
  stats_.put_failures++;
  return r;
}

Task<PutMessageStatus> MessageStore::Impl::confirmed(uint64_t end) {
  if (end <= confirm_) co_return PutMessageStatus::PUT_OK;
  PutWaiter w;
  w.end = end;
  w.appended = true;
  w.since_ns = Loop::current().now_ns();
  puts_running_++;
  if (watch_work_.has_waiters()) watch_work_.notify();
  PutWait waiting{confirm_waiters_, w};
  co_await waiting;
  if (--puts_running_ == 0 && !accepting_) calls_done_.notify();
  if (end <= confirm_) co_return PutMessageStatus::PUT_OK;
  stats_.put_failures++;
  co_return failed_ ? PutMessageStatus::SERVICE_NOT_AVAILABLE : PutMessageStatus::FLUSH_DISK_TIMEOUT;
}

void MessageStore::Impl::dispatch_to_queue(ConsumeQueue* queue, int64_t queue_offset, int32_t messages,
                                           const PendingRecord& p, int64_t now_ns) {
  QueueRef q(queue);
  q->refs--;  // the ring's
  if (q->deleted) return;
  check(q->max_offset == queue_offset);
  int64_t physical = static_cast<int64_t>(p.end) - p.bytes;
  queue_files_.add(*q, {physical, p.bytes, p.tags_code}, messages, p.store_timestamp_ms);
  q->touched_ns = now_ns;
  if (arrivals_ != nullptr)
    arrivals_->on_arrival({q->topic->name, q->id, queue_offset, p.tags_code, p.store_timestamp_ms, physical,
                           p.bytes, messages});
}

// A record has been confirmed: whoever derives something from the log gets it, in the order of the log.
void MessageStore::Impl::dispatch(const PendingRecord& p, int64_t now_ns) {
  confirmed_store_ms_ = p.store_timestamp_ms;
  index_.add_record(static_cast<int64_t>(p.end) - p.bytes, p.store_timestamp_ms, p.keys);
  for (uint32_t i = 0; i < p.keys; i++, pending_hashes_.pop()) index_.add_hash(pending_hashes_.front());
  if (p.queue != nullptr) dispatch_to_queue(p.queue, p.queue_offset, p.messages, p, now_ns);
  for (uint32_t i = 0; i < p.lights; i++) {
    const PendingLight light = pending_lights_.front();
    pending_lights_.pop();
    dispatch_to_queue(light.queue, light.queue_offset, 1, p, now_ns);
  }
}

// The confirm offset moves from record to record. A write may end within one: it counts with the next.
void MessageStore::Impl::advance_confirm() {
  bool sync_flush = options_.flush == FlushDiskType::SYNC_FLUSH;
  uint64_t to = std::min(sync_flush ? log_.flushed_offset() : log_.written_offset(), hold_);
  if (to <= confirm_) return;
  int64_t now_ns = Loop::current().now_ns();
  while (!pending_.empty() && pending_.front().call_end <= to) {
    PendingRecord p = pending_.front();
    pending_.pop();
    confirm_ = p.end;
    dispatch(p, now_ns);
  }
  if (pending_.empty()) confirm_ = to;  // behind the last record a file may end
  index_.confirmed(confirm_);
  while (!confirm_waiters_.empty() && static_cast<PutWaiter*>(confirm_waiters_.front())->end <= confirm_)
    confirm_waiters_.wake_one();
  if (queue_work_.has_waiters()) queue_work_.notify();
  if (queue_files_.write_soon()) queue_soon_.notify();
  if (checkpoint_work_.has_waiters()) checkpoint_work_.notify();
}

void MessageStore::Impl::log_advanced() {
  advance_confirm();
  admit_waiting();
}

void MessageStore::Impl::log_failed(const Error& e) {
  fail(e);
}

void MessageStore::Impl::fail(const Error& e) {
  if (failed_) return;
  failed_ = true;
  reason_ = to_string(e);
  room_waiters_.wake_all();
  confirm_waiters_.wake_all();
  if (failures_ != nullptr) failures_->on_store_failed(e);
}

Task<void> MessageStore::Impl::delete_topic(std::string topic) {
  std::vector<QueueRef> queues = table_.detach(topic);
  table_.remove_batch_topic(topic);
  if (queues.empty() && !compaction_.may_have_files(topic)) co_return;
  deletions_++;
  deletions_running_++;
  auto r = co_await compaction_.delete_topic(topic);
  if (r) r = co_await forget_ends(queues);
  if (r && !queues.empty()) r = co_await queue_files_.delete_topic(std::move(topic), std::move(queues));
  queues_deleted(r);
}

// Where there is no room to say it, the file goes on to know them: at worst a queue of that name that a crash
// takes begins behind it.
Task<Result<void>> MessageStore::Impl::forget_ends(const std::vector<QueueRef>& queues) {
  auto r = co_await queue_ends_.forget(queues);
  if (!r && r.error().code == Errc::no_space) r = {};
  co_return r;
}

void MessageStore::Impl::queues_deleted(const Result<void>& r) {
  if (!r) fail(r.error());
  checkpoint_wanted_ = true;  // the sums over all queues are others now
  checkpoint_work_.notify();
  checkpoint_soon_.notify();
  if (--deletions_running_ == 0 && !accepting_) calls_done_.notify();
}

bool MessageStore::Impl::is_expired(const ConsumeQueue& q) {
  const auto log_min = static_cast<int64_t>(log_.segments().first_base());
  if (compaction_.has(q.topic->name)) return false;  // its messages are not in the log alone
  return q.max_offset > 0 && q.next_offset == q.max_offset && q.last_physical_end <= log_min &&
         q.min_offset == q.max_offset;
}

Task<bool> MessageStore::Impl::drop_expired_queue(QueueName name, std::function<void()> gone) {
  ConsumeQueue* found = table_.find(name.topic, name.queue_id);
  if (found == nullptr || !is_expired(*found)) co_return false;
  QueueRef q(found);
  table_.detach_queue(*q);
  if (gone) gone();
  deletions_++;
  deletions_running_++;
  const std::vector<QueueRef> queues{q};
  auto r = co_await forget_ends(queues);
  if (r) r = co_await queue_files_.delete_queue(std::move(q));
  queues_deleted(r);
  co_return r.has_value();
}

Task<void> MessageStore::Impl::shutdown() {
  accepting_ = false;
  while (puts_running_ != 0 || deletions_running_ != 0) co_await calls_done_.wait();
  auto stopped = co_await log_.stop();
  co_await tasks_.join();
  stopping_ = true;
  checkpoint_work_.set();
  checkpoint_soon_.set();
  queue_work_.set();
  queue_soon_.set();
  watch_work_.set();
  watch_stop_.set();
  retention_.stop();
  compaction_.stop();
  disk_watch_.stop();
  co_await own_tasks_.join();
  if (stopped && !failed_) advance_confirm();
  co_await compaction_.finish(stopped && !failed_);
  const bool index_is_safe = co_await index_.stop(!stopped || failed_);
  if (stopped && !failed_) {
    bool caught_up = confirm_ == log_.appended_offset();  // else a later start has to dispatch the rest
    auto saved = co_await save_checkpoint(caught_up);
    if (!saved) {
      fail(saved.error());
    } else if (*saved && caught_up && index_is_safe) {
      auto removed = co_await checkpoint_files_.mark_stopped();
      if (!removed) fail(removed.error());
    }
  }
  co_await read_ahead_.stop();
  co_await queue_files_.close();
  co_await log_.close();
  co_await checkpoint_files_.close();
}

// ---- the face ----------------------------------------------------------------------------------------

MessageStore::MessageStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageStore::~MessageStore() = default;

std::optional<PutMessageResult> MessageStore::try_put(const MessageIn& message) {
  return impl_->try_put(message);
}
Task<PutMessageStatus> MessageStore::confirmed(int64_t end) {
  return impl_->confirmed(static_cast<uint64_t>(end));
}
Task<PutMessageResult> MessageStore::put(const MessageIn& message, bool wait) {
  return impl_->put_all(std::span(&message, 1), false, wait);
}
Task<PutMessageResult> MessageStore::put_batch(std::span<const MessageIn> messages, bool wait) {
  return impl_->put_all(messages, true, wait);
}
Task<void> MessageStore::delete_topic(std::string topic) {
  return impl_->delete_topic(std::move(topic));
}
std::vector<MessageStore::QueueName> MessageStore::expired_queues() const {
  std::vector<QueueName> out;
  for (const QueueRef& q : impl_->table_.all())
    if (impl_->is_expired(*q)) out.push_back({q->topic->name, q->id});
  return out;
}
Task<bool> MessageStore::drop_expired_queue(QueueName name, std::function<void()> gone) {
  return impl_->drop_expired_queue(std::move(name), std::move(gone));
}
Task<Result<void>> MessageStore::discard_below(std::string topic, int32_t queue_id, int64_t physical) {
  QueueRef q(impl_->table_.find(topic, queue_id));
  if (!q) co_return Result<void>();
  const int64_t before = q->min_offset;
  auto r = co_await impl_->queue_files_.raise_min(*q, physical);
  if (q->min_offset != before) impl_->retention_.queues_moved();
  co_return r;
}
void MessageStore::set_reclaim(bool on) {
  impl_->retention_.set_reclaim(on);
}
void MessageStore::set_queue_listener(QueueListener* l) {
  impl_->queue_files_.set_listener(l);
}
void MessageStore::set_retention(const RetentionOptions& o) {
  impl_->options_.retention = o;
  impl_->retention_.set_options(o);
  impl_->disk_watch_.set_options(o);
}
void MessageStore::delete_expired() {
  impl_->retention_.delete_expired();
}

void MessageStore::set_needed_from(int64_t physical) {
  impl_->needed_from_ = static_cast<uint64_t>(physical);
}
int64_t MessageStore::min_physical_offset() const {
  return static_cast<int64_t>(impl_->log_.segments().first_base());
}
int64_t MessageStore::max_physical_offset() const {
  return static_cast<int64_t>(impl_->log_.appended_offset());
}
int64_t MessageStore::confirm_offset() const {
  return static_cast<int64_t>(impl_->confirm_);
}
int64_t MessageStore::flushed_offset() const {
  return static_cast<int64_t>(impl_->log_.flushed_offset());
}
void MessageStore::hold_confirm_offset(std::optional<int64_t> at_most) {
  impl_->hold_ = at_most ? static_cast<uint64_t>(*at_most) : UINT64_MAX;
  impl_->log_advanced();
}

void MessageStore::set_arrival_listener(ArrivalListener* l) {
  impl_->arrivals_ = l;
}
void MessageStore::set_failure_listener(FailureListener* l) {
  impl_->failures_ = l;
  impl_->index_.set_listener(l);
  impl_->retention_.set_listener(l);
  impl_->compaction_.set_listener(l);
  impl_->disk_watch_.set_listener(l);
}
void MessageStore::set_max_message_bytes(uint32_t bytes) {
  impl_->options_.max_message_bytes = bytes;
}
void MessageStore::set_run_time_options(const StoreOptions& o) {
  StoreOptions& own = impl_->options_;
  own.max_message_bytes = o.max_message_bytes;
  own.transfer_count_in_memory = o.transfer_count_in_memory;
  own.transfer_bytes_in_memory = o.transfer_bytes_in_memory;
  own.transfer_count_on_disk = o.transfer_count_on_disk;
  own.transfer_bytes_on_disk = o.transfer_bytes_on_disk;
  own.sync_flush_timeout_ms = o.sync_flush_timeout_ms;
}
const StoreStats& MessageStore::stats() const {
  impl_->stats_.queues = impl_->table_.queue_count();
  impl_->stats_.unwritten_units = impl_->table_.unwritten_units();
  impl_->stats_.memory_bytes = impl_->log_.memory_bytes();
  impl_->stats_.index_behind_bytes = impl_->index_.behind_bytes();
  return impl_->stats_;
}
bool MessageStore::writable() const {
  return !impl_->failed_ && impl_->accepting_;
}
bool MessageStore::disk_full() const {
  return impl_->disk_watch_.full();
}
const char* MessageStore::not_writable_reason() const {
  if (impl_->failed_) return impl_->reason_.c_str();
  if (!impl_->accepting_) return "the store is stopping";
  return impl_->disk_watch_.reason().c_str();
}
const StoreOptions& MessageStore::options() const {
  return impl_->options_;
}
Task<void> MessageStore::shutdown() {
  return impl_->shutdown();
}

}  // namespace rmq::store

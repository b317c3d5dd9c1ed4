#include "daemon/broker/transactions.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/limits.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/delivery.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

namespace names = proto::names;
namespace prop = proto::prop;

namespace {

constexpr int64_t idle_look_ns = 1 * ns_per_s;  // units may come from elsewhere than a send
constexpr int64_t after_failure_ns = 1 * ns_per_s;
constexpr size_t op_body_bytes = 4096;  // RocketMQ's transactionOpMsgMaxSize
constexpr int64_t units_at_once = 256;
constexpr size_t read_bytes_max = 1u << 20;  // of records at a time, or one
// What a check adds: four properties with their longest values and separators.
constexpr size_t check_properties_bytes = 160;

int64_t number_of(std::optional<std::string_view> text, int64_t otherwise) {
  if (!text) return otherwise;
  int64_t n = 0;
  auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), n);
  return ec == std::errc{} && end == text->data() + text->size() ? n : otherwise;
}

// When its first copy was stored. Of a copy that RocketMQ made only the producer's time is known, and so it
// is of what is made of that.
int64_t stored_ms(const proto::RecordView& r) {
  bool is_copy = r.property(prop::TRAN_PREPARED_QUEUE_OFFSET) || r.property(prop::TRANSACTION_CHECK_TIMES);
  return number_of(r.property(prop::TRANSACTION_STORE_TIME),
                   is_copy ? r.born_timestamp_ms : r.store_timestamp_ms);
}

// Records that come with an op record behind them, and name the half message by its physical offset.
bool ends_a_half(const proto::RecordView& r) {
  return proto::sys_flag::transaction_of(r.sys_flag) == proto::sys_flag::transaction_commit ||
         r.topic == names::TRANS_CHECK_MAX_TIME_TOPIC;
}

}  // namespace

void TransactionService::start(Scope& scope) {
  scope.spawn(follow_half_topic());
  scope.spawn(check_loop());
}

void TransactionService::stop() {
  stopping_ = true;
  half_arrived_.notify();
  read_.notify();
  ended_.notify();
  due_changed_.notify();
}

bool TransactionService::prepare(store::MessageIn& m, std::string& properties,
                                 std::string_view unique_key) const {
  const std::string key(unique_key);
  for (std::string_view p : {prop::TRANSACTION_CHECK_TIMES, prop::TRAN_PREPARED_QUEUE_OFFSET,
                             prop::TRANSACTION_STORE_TIME, prop::TRANSACTION_COPY_CRC})
    proto::remove_property(properties, p);
  proto::set_property(properties, prop::REAL_TOPIC, m.topic);
  proto::set_property(properties, prop::REAL_QID, std::to_string(m.queue_id));
  proto::set_property(properties, prop::TRANSACTION_ID, key);
  m.topic = names::RMQ_SYS_TRANS_HALF_TOPIC;
  m.queue_id = 0;
  m.sys_flag = proto::sys_flag::with_transaction(m.sys_flag, proto::sys_flag::transaction_none);
  m.properties = properties;
  return properties.size() + check_properties_bytes <= limits::properties_bytes_max;
}

// ---- what is open ------------------------------------------------------------------------------------

Task<void> TransactionService::follow_half_topic() {
  const store::MessageStore& s = broker_.store;
  int64_t begin =
      broker_.offsets.query(names::CID_RMQ_SYS_TRANS, names::RMQ_SYS_TRANS_HALF_TOPIC, 0).value_or(0);
  next_half_ = std::clamp(begin, std::max<int64_t>(0, s.min_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0)),
                          s.max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0));
  co_await read_ops();
  co_await read_resumes();
  while (!stopping_) {
    if (next_half_ >= s.min_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0) &&
        next_half_ < s.max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0)) {
      bool read = co_await read_halves();
      if (!read) co_await half_arrived_.wait_for(after_failure_ns);
      if (read_.has_waiters()) read_.notify();
      continue;
    }
    // The log may have lost its oldest files meanwhile.
    if (int64_t min = s.min_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0); next_half_ < min) {
      next_half_ = min;
      continue;
    }
    if (!loaded_) {
      co_await finish_last_batch();
      loaded_ = true;
      due_changed_.notify();
    }
    read_.notify();
    co_await half_arrived_.wait_for(idle_look_ns);
  }
}

// What lies in one of the two queues from there on, as much as one read of records should bring; how far it
// goes comes out. Not among it are half messages that are done, and of what is lost there is no record.
Task<Result<int64_t>> TransactionService::read_some(std::string_view topic, int64_t from,
                                                    std::vector<DueMessage>& into) {
  const int64_t count = std::clamp<int64_t>(broker_.store.max_offset(topic, 0) - from, 1, units_at_once);
  std::vector<store::QueueUnit> units(static_cast<size_t>(count));
  CO_TRY_VAR(n, co_await broker_.store.queue_units(topic, 0, from, units));
  if (n == 0) co_return fail(Errc::not_found, "the queue ends early");
  int64_t at = from;
  size_t bytes = 0;
  for (size_t i = 0; i < n && bytes < read_bytes_max; i++, at++) {
    const bool known = topic == names::RMQ_SYS_TRANS_HALF_TOPIC && done_.contains(at);
    if (store::is_blank(units[i]) || known) continue;
    bytes += static_cast<size_t>(units[i].bytes);
    into.push_back({at, units[i], {}, {}, {}});
  }
  CO_TRY(co_await read_due(broker_.store, into));
  co_return at;
}

Task<void> TransactionService::read_ops() {
  constexpr std::string_view topic = names::RMQ_SYS_TRANS_OP_HALF_TOPIC;
  int64_t at = broker_.offsets.query(names::CID_RMQ_SYS_TRANS, topic, 0).value_or(0);
  first_op_ = at = std::max(at, broker_.store.min_offset(topic, 0));
  while (!stopping_ && at < broker_.store.max_offset(topic, 0)) {
    std::vector<DueMessage> ops;
    auto end = co_await read_some(topic, at, ops);
    if (!end) {
      at = std::max(at, broker_.store.min_offset(topic, 0));
      co_await half_arrived_.wait_for(after_failure_ns);
      continue;
    }
    for (const DueMessage& op : ops)
      if (!op.extent.bytes().empty()) take_op(op.record, op.offset);
    at = *end;
  }
}

Task<void> TransactionService::read_resumes() {
  while (!stopping_) {
    auto found = co_await resumes_.read_from(0);
    if (!found) {
      co_await half_arrived_.wait_for(after_failure_ns);
      continue;
    }
    for (const Delivery::Found& f : *found)
      resumed_.insert(f.marker.copied.begin(),
                      f.marker.copied.begin() + static_cast<std::ptrdiff_t>(f.copies));
    co_return;
  }
}

// The body of an op record: queue offsets in the half topic, each followed by a comma.
std::vector<int64_t> TransactionService::read_op(const proto::RecordView& record) {
  std::vector<int64_t> out;
  // Only RocketMQ's have it.
  const bool by_java = record.property(prop::WAIT).has_value();
  std::string_view body = as_text(record.body);
  while (!body.empty()) {
    std::string_view one = body.substr(0, body.find(','));
    body.remove_prefix(std::min(body.size(), one.size() + 1));
    const int64_t half = number_of(one, -1);
    if (half < 0) continue;
    out.push_back(half);
    if (by_java) java_ends_.push_back({0, half, false, false});
  }
  return out;
}

void TransactionService::take_op(const proto::RecordView& record, int64_t queue_offset) {
  int64_t last = -1;
  for (int64_t half : read_op(record)) {
    if (half >= next_half_) done_.insert(half);
    last = std::max(last, half);
  }
  ops_.push_back({queue_offset, last});
}

// Those that come next, as far as there are any. False: try again.
Task<bool> TransactionService::read_halves() {
  std::vector<DueMessage> halves;
  auto end = co_await read_some(names::RMQ_SYS_TRANS_HALF_TOPIC, next_half_, halves);
  if (!end) co_return false;
  for (const DueMessage& h : halves) {
    if (h.extent.bytes().empty()) continue;
    bool whole = loaded_ || co_await is_whole(h.record, h.offset);
    if (whole) add(h.record, h.offset);
  }
  for (; next_half_ < *end; next_half_++) done_.erase(next_half_);
  co_return true;
}

// A copy that a crash damaged must not take the place of what it was made from, which is open then.
Task<bool> TransactionService::is_whole(const proto::RecordView& copy, int64_t queue_offset) {
  if (!has_good_properties(copy)) co_return false;
  int64_t origin = number_of(copy.property(prop::TRAN_PREPARED_QUEUE_OFFSET), queue_offset);
  auto older = current(origin, origin);
  if (older == open_.end()) co_return true;
  auto extent = co_await broker_.store.record_at(older->second.physical);
  auto record = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
  co_return record&& is_same_message(*record, copy) &&
      record->property(prop::REAL_TOPIC) == copy.property(prop::REAL_TOPIC) &&
      record->property(prop::REAL_QID) == copy.property(prop::REAL_QID);
}

void TransactionService::add(const proto::RecordView& record, int64_t queue_offset) {
  // What nobody could commit: a crash damaged it before it was acknowledged.
  if (!real_queue_of(record)) return;
  Half h;
  h.physical = record.physical_offset;
  h.bytes = static_cast<int32_t>(record.size);
  // As far as it is old already the wall clock decides, from now on the monotonic one.
  h.stored_ms = stored_ms(record);
  const int64_t reserved_ms = broker_.config.fileReservedTime * 3'600'000;
  int64_t age_ms = std::clamp<int64_t>(broker_.wall_ms() - h.stored_ms, 0, reserved_ms);
  h.given_up_ns = broker_.now_ns() + (reserved_ms - age_ms) * ns_per_ms;
  h.checks = static_cast<int32_t>(number_of(record.property(prop::TRANSACTION_CHECK_TIMES), 0));
  h.origin = number_of(record.property(prop::TRAN_PREPARED_QUEUE_OFFSET), queue_offset);
  h.due_ns = broker_.now_ns() + first_wait_ns(record);
  h.is_copy = record.property(prop::TRANSACTION_CHECK_TIMES) || h.origin != queue_offset;
  h.unplaced = h.is_copy && h.stored_ms == record.born_timestamp_ms;
  h.by_java = h.is_copy && !record.property(prop::TRANSACTION_COPY_CRC);
  if (h.unplaced || !loaded_) h.identity = half_identity(record);
  if (auto older = current(h.origin, h.origin); h.origin != queue_offset && older != open_.end()) {
    if (older->second.copying) early_.emplace(queue_offset, h);  // rewrite() opens it in a moment
    if (older->second.busy) return;  // or else an end is on its way, and that is the end of this one too
    if (!loaded_) superseded_.push_back(older->first);
    retire(older);
  }
  open_half(queue_offset, h, std::string(record.property(prop::PGROUP).value_or("")),
            std::string(record.property(prop::REAL_TOPIC).value_or("")));
}

void TransactionService::open_half(int64_t queue_offset, Half half, std::string group, std::string topic) {
  half.topic = &*topics_.try_emplace(std::move(topic)).first;
  half.topic->second++;
  half.group = &*groups_.try_emplace(std::move(group)).first;
  half.group->second.open++;
  if (half.origin != queue_offset) rewritten_[half.origin] = queue_offset;
  if (half.unplaced && half.identity != 0) unplaced_[half.identity] = half.origin;
  auto it = open_.emplace(queue_offset, half).first;
  schedule(it, half.due_ns);
}

void TransactionService::retire(Open::iterator it) {
  Half& h = it->second;
  schedule_.erase({h.due_ns, it->first});
  if (auto newest = rewritten_.find(h.origin); newest != rewritten_.end() && newest->second == it->first)
    rewritten_.erase(newest);
  if (auto known = unplaced_.find(h.identity); known != unplaced_.end() && known->second == h.origin)
    unplaced_.erase(known);
  if (--h.group->second.open == 0) groups_.erase(groups_.find(h.group->first));
  if (--h.topic->second == 0) topics_.erase(topics_.find(h.topic->first));
  open_.erase(it);
}

// A half message is asked about when it has been there for the time that its producer wants (immunity), or
// else transactionTimeOut; a rewritten one at the next interval.
int64_t TransactionService::first_wait_ns(const proto::RecordView& record) const {
  const BrokerConfig& c = broker_.config;
  bool asked = number_of(record.property(prop::TRANSACTION_CHECK_TIMES), 0) > 0;
  int64_t wait_ms = asked ? c.transactionCheckInterval : c.transactionTimeOut;
  int64_t since_ms = record.store_timestamp_ms;
  if (!asked) {
    int64_t immune_s = number_of(record.property(prop::CHECK_IMMUNITY_TIME_IN_SECONDS), -1);
    if (immune_s > 0) wait_ms = std::min(immune_s, c.fileReservedTime * 3600) * 1000;
    since_ms = stored_ms(record);
  }
  // Wall-clock time counts only between two runs of the broker; a step cannot make it longer than the wait.
  int64_t passed_ms = loaded_ && since_ms == record.store_timestamp_ms ? 0 : broker_.wall_ms() - since_ms;
  return (wait_ms - std::clamp<int64_t>(passed_ms, 0, wait_ms)) * ns_per_ms;
}

TransactionService::Open::iterator TransactionService::current(int64_t queue_offset, int64_t origin) {
  auto it = open_.find(queue_offset);
  if (it != open_.end()) return it;
  auto newest = rewritten_.find(origin);
  return newest == rewritten_.end() ? open_.find(origin) : open_.find(newest->second);
}

Task<TransactionService::Open::iterator> TransactionService::find(int64_t queue_offset, int64_t origin) {
  const int64_t all = broker_.store.max_offset(names::RMQ_SYS_TRANS_HALF_TOPIC, 0);
  while (!stopping_) {
    auto it = current(queue_offset, origin);
    auto newest = rewritten_.find(origin);
    bool to_be_read = next_half_ < all || (newest != rewritten_.end() && newest->second >= next_half_);
    if (it != open_.end() && it->second.busy) {
      co_await ended_.wait();
    } else if (it != open_.end() || (loaded_ && !to_be_read)) {
      co_return it;
    } else {
      half_arrived_.notify();
      co_await read_.wait();
    }
  }
  co_return open_.end();
}

// ---- what is written ---------------------------------------------------------------------------------

store::MessageIn TransactionService::op_record(const std::string& body) {
  static constexpr std::string_view done =
      "TAGS\x01"
      "d\x02";
  store::MessageIn m;
  m.may_use_reserve = true;  // it ends what was taken before
  m.topic = names::RMQ_SYS_TRANS_OP_HALF_TOPIC;
  m.born_timestamp_ms = broker_.wall_ms();
  m.born_host = m.store_host = broker_.store_host;
  m.properties = done;
  m.body = as_bytes(body);
  return m;
}

// Before the op record is put, so that its own place is not before the one that is remembered.
void TransactionService::note_op(int64_t half) {
  ops_.push_back({broker_.store.max_offset(names::RMQ_SYS_TRANS_OP_HALF_TOPIC, 0), half});
}

// All half messages below the first open one are done, and so are the op records that name only those. The
// half topic's offset is noted first: read with older op records it stays true.
void TransactionService::note_progress() {
  if (!loaded_) return;
  int64_t half = open_.empty() ? next_half_ : open_.begin()->first;
  while (!ops_.empty() && ops_.front().half < half) ops_.pop_front();
  int64_t op = ops_.empty() ? broker_.store.max_offset(names::RMQ_SYS_TRANS_OP_HALF_TOPIC, 0)
                            : ops_.front().queue_offset;
  OffsetManager& offsets = broker_.offsets;
  offsets.commit(names::CID_RMQ_SYS_TRANS, names::RMQ_SYS_TRANS_HALF_TOPIC, 0, half);
  offsets.commit(names::CID_RMQ_SYS_TRANS, names::RMQ_SYS_TRANS_OP_HALF_TOPIC, 0, op);
}

Task<void> TransactionService::find_cut_end(int64_t last_record) {
  auto last = co_await broker_.store.record_at(last_record);
  auto record = last ? proto::parse_record(last->bytes()) : std::unexpected(last.error());
  if (!record || !ends_a_half(*record)) co_return;
  auto extent = co_await broker_.store.record_at(record->prepared_transaction_offset);
  auto half = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
  if (!half || half->topic != names::RMQ_SYS_TRANS_HALF_TOPIC) co_return;
  const int64_t origin = number_of(half->property(prop::TRAN_PREPARED_QUEUE_OFFSET), half->queue_offset);
  auto it = current(half->queue_offset, origin);
  auto copied = it == open_.end() ? origin_of_copies(*half) : std::nullopt;
  if (copied) it = current(*copied, *copied);
  if (it == open_.end() || !is_same_message(*record, *half)) co_return;
  superseded_.push_back(it->first);
  retire(it);
}

// After a crash the log may end with a message that ended a half message, without its op record. Of copies
// that were being made for a check the older ones may still look open, and so may what RocketMQ left.
Task<void> TransactionService::finish_last_batch() {
  const store::RecoveryStats& recovered = broker_.store.stats().recovery;
  if (recovered.last_record >= 0) co_await find_cut_end(recovered.last_record);
  co_await settle_java_copies();
  const std::vector<int64_t> over = std::exchange(superseded_, {});
  for (size_t i = 0; i < over.size();) {
    std::string body;
    int64_t last = 0;
    for (; i < over.size() && body.size() < op_body_bytes; i++) {
      body += std::to_string(over[i]) + ",";
      last = std::max(last, over[i]);
    }
    note_op(last);
    store::MessageIn op = op_record(body);
    [[maybe_unused]] auto put = co_await broker_.store.put(op);  // else the next start finds them again
  }
}

}  // namespace rmq::broker

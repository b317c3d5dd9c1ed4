// Asking producers what became of their half messages.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/transactions.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

using store::PutMessageStatus;
namespace names = proto::names;
namespace prop = proto::prop;

namespace {
constexpr size_t batch_halves_max = 64;
constexpr size_t batch_bytes_max = 1u << 20;
constexpr uint32_t looked_at_once = 256;
constexpr size_t unparked_at_once = 1024;
constexpr size_t unsent_bytes_max = 1u << 20;  // a producer that does not read is not asked
constexpr int64_t longest_sleep_ns = 1 * ns_per_s;
constexpr int64_t after_failure_ns = 1 * ns_per_s;
constexpr int64_t nobody_there_ms = 5'000;  // until it is looked again for a producer of the group

bool is_appended(PutMessageStatus s) {
  return s == PutMessageStatus::PUT_OK || s == PutMessageStatus::FLUSH_DISK_TIMEOUT;
}
}  // namespace

void TransactionService::schedule(Open::iterator it, int64_t due_ns) {
  schedule_.erase({it->second.due_ns, it->first});
  it->second.due_ns = due_ns;
  schedule_.insert({due_ns, it->first});
  if (schedule_.begin()->second == it->first) due_changed_.notify();
}

void TransactionService::release(int64_t offset, int64_t again_in_ns) {
  auto it = open_.find(offset);
  it->second.busy = it->second.copying = false;
  schedule(it, broker_.now_ns() + again_in_ns);
  ended_.notify();
}

Task<void> TransactionService::check_loop() {
  int64_t progress_noted_ns = 0, unpark_at_ns = 0;
  bool more_to_rescue = false;
  while (!stopping_) {
    int64_t now_ns = broker_.now_ns();
    if (now_ns >= unpark_at_ns) {
      const int64_t patience_ms = std::min(broker_.config.transactionCheckInterval, nobody_there_ms);
      unpark_at_ns = now_ns + (unpark() ? 0 : patience_ms * ns_per_ms);
    }
    if (more_to_rescue || now_ns - progress_noted_ns >= longest_sleep_ns) {
      more_to_rescue = co_await rescue();
      note_progress();
      progress_noted_ns = now_ns;
    }
    if (loaded_ && !schedule_.empty() && schedule_.begin()->first <= now_ns) {
      co_await check_due();
      continue;
    }
    if (more_to_rescue) continue;
    int64_t until_ns = now_ns + longest_sleep_ns;
    if (loaded_ && !schedule_.empty()) until_ns = std::min(until_ns, schedule_.begin()->first);
    co_await due_changed_.wait_until(until_ns);
  }
  note_progress();
}

// As many of those whose time has come as go into one batch of each sort. Groups that are away may have many:
// the others of this thread have their turn in between.
Task<void> TransactionService::check_due() {
  DueBatch to_ask, given_up;
  bool more = true;
  for (uint32_t n = 1; more && !stopping_; n++) {
    more = co_await take_due(to_ask, given_up);
    if (n % looked_at_once != 0) continue;
    if (!to_ask.halves.empty() || !given_up.halves.empty()) break;
    co_await Yield{};
  }
  if (!to_ask.halves.empty()) co_await rewrite(std::move(to_ask.halves), true);
  if (!given_up.halves.empty()) co_await give_up(std::move(given_up.halves), nullptr);
}

// The next one whose time has come, if it is to be asked about or given up. False: none, or enough.
Task<bool> TransactionService::take_due(DueBatch& to_ask, DueBatch& given_up) {
  const BrokerConfig& c = broker_.config;
  if (schedule_.empty() || schedule_.begin()->first > broker_.now_ns()) co_return false;
  auto it = open_.find(schedule_.begin()->second);
  Half& h = it->second;
  const int64_t offset = it->first;
  if (h.busy) {  // its end is on its way
    schedule(it, broker_.now_ns() + after_failure_ns);
    co_return true;
  }
  const bool over = h.checks >= c.transactionCheckMax || broker_.now_ns() >= h.given_up_ns;
  if (!over && !has_producer(*h.group)) {
    h.group->second.parked.push_back(offset);
    schedule(it, h.given_up_ns);
    co_return true;
  }
  DueBatch& into = over ? given_up : to_ask;
  if (into.halves.size() >= batch_halves_max || into.bytes + static_cast<size_t>(h.bytes) > batch_bytes_max)
    if (!into.halves.empty()) co_return false;
  h.busy = true;
  schedule(it, broker_.now_ns() + c.transactionCheckInterval * ns_per_ms);
  into.bytes += static_cast<size_t>(h.bytes);
  int32_t checks = h.checks;
  auto extent = co_await broker_.store.record_at(h.physical);
  if (extent)
    into.halves.push_back({offset, checks, std::move(*extent)});
  else
    release(offset, c.transactionCheckInterval * ns_per_ms);
  co_return true;
}

bool TransactionService::has_producer(const Groups::value_type& group) const {
  auto it = broker_.clients.all_producers().find(group.first);
  if (it == broker_.clients.all_producers().end()) return false;
  return std::any_of(it->second.begin(), it->second.end(), [](const auto& p) {
    return p.second.connection->is_open() && p.second.connection->unsent_bytes() < unsent_bytes_max;
  });
}

// Groups may be away for long with many open; so they cost nothing until somebody of theirs is there. True:
// there are more to be looked at, when those have been asked about.
bool TransactionService::unpark() {
  const int64_t now_ns = broker_.now_ns();
  bool more = false;
  for (auto& group : groups_) {
    std::vector<int64_t>& parked = group.second.parked;
    if (parked.empty()) continue;
    if (!has_producer(group)) {
      if (parked.size() > 2 * group.second.open + unparked_at_once)
        std::erase_if(parked, [this](int64_t offset) { return !open_.contains(offset); });
      continue;
    }
    const auto end = parked.begin() + static_cast<std::ptrdiff_t>(std::min(parked.size(), unparked_at_once));
    for (auto at = parked.begin(); at != end; ++at)
      if (auto it = open_.find(*at); it != open_.end() && !it->second.busy) schedule(it, now_ns);
    parked.erase(parked.begin(), end);
    more = more || !parked.empty();
  }
  return more;
}

int64_t TransactionService::needed_from() const {
  if (!loaded_) return 0;
  return open_.empty() ? INT64_MAX : open_.begin()->second.physical;
}

// What lies in the oldest file of the log goes to its end: the file stays as long as something open is in it.
// True: there may be more.
Task<bool> TransactionService::rescue() {
  const store::MessageStore& s = broker_.store;
  const auto file_bytes = static_cast<int64_t>(s.options().commit_log_file_bytes);
  std::vector<Due> old;
  size_t bytes = 0;
  if (!loaded_ || s.max_physical_offset() - s.min_physical_offset() < 3 * file_bytes) co_return false;
  int64_t from = 0;
  while (old.size() < batch_halves_max && bytes < batch_bytes_max && !stopping_) {
    auto it = open_.lower_bound(from);
    if (it == open_.end() || it->second.physical >= s.min_physical_offset() + file_bytes) break;
    from = it->first + 1;
    if (it->second.busy) continue;
    it->second.busy = true;
    bytes += static_cast<size_t>(it->second.bytes);
    const int64_t offset = it->first, physical = it->second.physical;
    const int32_t checks = it->second.checks;
    auto extent = co_await broker_.store.record_at(physical);
    if (extent)
      old.push_back({offset, checks, std::move(*extent)});
    else
      release(offset, after_failure_ns);
  }
  if (old.empty()) co_return false;
  const int64_t first = old.front().offset;
  co_await rewrite(std::move(old), false);
  co_return !open_.contains(first);  // else it could not be written
}

// RocketMQ takes half messages whose properties leave no room for those of a copy. They are asked about where
// they are, and the checks of this run count; when their file of the log goes, they are set aside.
Task<void> TransactionService::handle_uncopied(Due due, const proto::RecordView& record, bool and_ask) {
  if (!and_ask) {
    std::vector<Due> one;
    one.push_back(std::move(due));
    co_await give_up(std::move(one), "its place in the log goes, and it is too long to be copied");
    co_return;
  }
  auto it = open_.find(due.offset);
  it->second.checks++;
  ask(it->second.group->first, record, record.properties, due.offset, it->second.physical,
      record.store_timestamp_ms);
  release(due.offset, broker_.config.transactionCheckInterval * ns_per_ms);
}

// Writes new copies of them, with one check more when they are asked about, and names the old ones done.
Task<void> TransactionService::rewrite(std::vector<Due> due, bool and_ask) {
  std::vector<std::string> properties;
  std::vector<proto::RecordView> records;
  std::vector<Due> copied;
  for (Due& d : due) {
    auto record = proto::parse_record(d.extent.bytes());
    check(record.has_value());  // it was one when it was read first
    const Half& half = open_.at(d.offset);
    std::string text = copied_properties(*record, half.origin, d.checks + (and_ask ? 1 : 0), half.stored_ms);
    if (text.size() > limits::properties_bytes_max) {
      co_await handle_uncopied(std::move(d), *record, and_ask);
      continue;
    }
    records.push_back(*record);
    properties.push_back(std::move(text));
    copied.push_back(std::move(d));
  }
  due = std::move(copied);
  if (due.empty()) co_return;
  std::vector<store::MessageIn> batch;
  std::string op_body;
  int64_t last = 0;
  for (size_t i = 0; i < due.size(); i++) {
    batch.push_back(copy_of(records[i], broker_.store_host));
    batch.back().topic = names::RMQ_SYS_TRANS_HALF_TOPIC;
    batch.back().properties = properties[i];
    open_.at(due[i].offset).copying = true;
    op_body += std::to_string(due[i].offset) + ",";
    last = std::max(last, due[i].offset);
  }
  batch.push_back(op_record(op_body));
  note_op(last);
  store::PutMessageResult put = co_await broker_.store.put_batch(batch);
  if (!is_appended(put.status)) {
    for (const Due& d : due) release(d.offset, after_failure_ns);
    co_return;
  }
  for (size_t i = 0; i < due.size(); i++) {
    auto it = open_.find(due[i].offset);
    std::string group = it->second.group->first, topic = it->second.topic->first;
    const int64_t origin = it->second.origin, offset = put.queue_offset + static_cast<int64_t>(i);
    const uint64_t identity = it->second.unplaced ? it->second.identity : 0;
    retire(it);
    // Until the copy is read, an end that names an older one finds its way.
    rewritten_[origin] = offset;
    if (identity != 0) unplaced_[identity] = origin;
    if (auto early = early_.extract(offset)) open_half(offset, early.mapped(), group, topic);
    if (and_ask)
      ask(group, records[i], properties[i], offset, put.physical_offsets[i], put.store_timestamp_ms);
  }
  ended_.notify();
  wake();
}

void TransactionService::ask(std::string_view group, const proto::RecordView& record,
                             std::string_view properties, int64_t queue_offset, int64_t physical,
                             int64_t store_timestamp_ms) {
  auto producers = broker_.clients.all_producers().find(group);
  if (producers == broker_.clients.all_producers().end()) return;
  size_t turn = groups_.try_emplace(std::string(group)).first->second.turn++;
  Connection* chosen = nullptr;
  for (size_t i = 0; i < producers->second.size() && chosen == nullptr; i++) {
    auto it = std::next(producers->second.begin(),
                        static_cast<std::ptrdiff_t>((turn + i) % producers->second.size()));
    const Connection& c = *it->second.connection;
    if (c.is_open() && c.unsent_bytes() < unsent_bytes_max) chosen = it->first;
  }
  if (chosen == nullptr) return;
  proto::RecordFields f;
  f.topic = record.property(prop::REAL_TOPIC).value_or("");
  int64_t queue = 0;
  detail::parse_int(record.property(prop::REAL_QID).value_or("0"), queue);
  f.queue_id = static_cast<int32_t>(queue);
  f.body = record.body;
  f.properties = properties;
  f.flag = record.flag;
  f.sys_flag = record.sys_flag;
  f.queue_offset = queue_offset;
  f.physical_offset = physical;
  f.born_timestamp_ms = record.born_timestamp_ms;
  f.born_host = record.born_host;
  f.store_timestamp_ms = store_timestamp_ms;
  f.store_host = broker_.store_id_host;
  f.reconsume_times = record.reconsume_times;
  std::string body(proto::record_size(f), '\0');
  proto::encode_record(f, {reinterpret_cast<std::byte*>(body.data()), body.size()});
  const std::string offset_id = proto::make_offset_id(broker_.store_id_host, physical);
  const std::string unique_key(record.property(prop::UNIQ_KEY).value_or(offset_id));
  proto::CheckTransactionStateRequestHeader h;
  h.topic = names::RMQ_SYS_TRANS_HALF_TOPIC;
  h.tran_state_table_offset = queue_offset;
  h.commit_log_offset = physical;
  h.msg_id = h.transaction_id = unique_key;
  h.offset_msg_id = offset_id;
  h.bname = broker_.config.brokerName;
  std::string frame;
  proto::CheckTransactionState::append_request(frame, chosen->next_opaque(), h, body, proto::flag_oneway);
  chosen->push(frame);
  checks_++;
}

// Out of the way, where an operator finds them: each is followed by the op record that ends it. `reason`: of
// those that did not have all their questions; nothing: they are too old.
Task<void> TransactionService::give_up(std::vector<Due> due, const char* reason) {
  std::vector<proto::RecordView> records;
  std::vector<std::string> properties, op_bodies;
  for (const Due& d : due) {
    auto record = proto::parse_record(d.extent.bytes());
    check(record.has_value());  // it was one when it was read first
    records.push_back(*record);
    std::string text(record->properties);
    proto::set_property(text, prop::TRAN_PREPARED_QUEUE_OFFSET, std::to_string(open_.at(d.offset).origin));
    if (text.size() > limits::properties_bytes_max) text = record->properties;
    properties.push_back(std::move(text));
    op_bodies.push_back(std::to_string(d.offset) + ",");
  }
  std::vector<store::MessageIn> batch;
  int64_t last = 0;
  for (size_t i = 0; i < due.size(); i++) {
    batch.push_back(copy_of(records[i], broker_.store_host));
    batch.back().topic = names::TRANS_CHECK_MAX_TIME_TOPIC;
    batch.back().prepared_transaction_offset = records[i].physical_offset;
    batch.back().properties = properties[i];
    batch.push_back(op_record(op_bodies[i]));
    last = std::max(last, due[i].offset);
  }
  co_await broker_.ensure_topic(std::string(names::TRANS_CHECK_MAX_TIME_TOPIC), 1,
                                proto::perm::read | proto::perm::write);
  note_op(last);
  store::PutMessageResult put = co_await broker_.store.put_batch(batch);
  for (size_t i = 0; i < due.size(); i++) {
    if (is_appended(put.status))
      gave_up(due[i], records[i], reason);
    else
      release(due[i].offset, after_failure_ns);
  }
  ended_.notify();
}

void TransactionService::gave_up(const Due& due, const proto::RecordView& record, const char* reason) {
  auto it = open_.find(due.offset);
  if (it->second.checks >= broker_.config.transactionCheckMax) reason = "no producer knew its state";
  given_up_++;
  log(LogLevel::warning, ids::transaction_given_up, "a transaction that nobody ended was set aside",
      {{"TOPIC", record.property(prop::REAL_TOPIC).value_or("")},
       {"GROUP", it->second.group->first},
       {"MSG_ID", record.property(prop::UNIQ_KEY).value_or("")},
       {"CHECKS", std::to_string(it->second.checks)},
       {"REASON", reason != nullptr ? reason : "it is older than fileReservedTime"}});
  retire(it);
}

}  // namespace rmq::broker

// END_TRANSACTION and RESUME_CHECK_HALF_MESSAGE (remoting.md 14 and 16.5).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "base/crc.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker/transactions.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

using proto::ResponseCode;
namespace names = proto::names;
namespace prop = proto::prop;

namespace {

EndOutcome no_such_half() {
  return {ResponseCode::SYSTEM_ERROR, "Find prepared transaction message failed"};
}

int64_t number_or(std::optional<std::string_view> text, int64_t otherwise) {
  int64_t n = 0;
  return text && detail::parse_int(*text, n) ? n : otherwise;
}

// What an end must fit. Empty: it does.
EndOutcome check_end(const proto::EndTransactionRequestHeader& h, const proto::RecordView& half,
                     int64_t now_ms) {
  int64_t immune_s = number_or(half.property(prop::CHECK_IMMUNITY_TIME_IN_SECONDS), -1);
  if (!h.from_transaction_check && immune_s >= 0 && now_ms - half.born_timestamp_ms > immune_s * 1000)
    return {ResponseCode::ILLEGAL_OPERATION,
            "Message commit fail [checkImmunityTime is over]; a check will decide about it"};
  if (half.property(prop::PGROUP).value_or("") != h.producer_group)
    return {ResponseCode::SYSTEM_ERROR, "The producer group wrong"};
  if (half.queue_offset != h.tran_state_table_offset)
    return {ResponseCode::SYSTEM_ERROR, "The transaction state table offset wrong"};
  if (half.physical_offset != h.commit_log_offset)
    return {ResponseCode::SYSTEM_ERROR, "The commit log offset wrong"};
  return {};
}

}  // namespace

static constexpr std::string_view of_copies[] = {prop::TRANSACTION_COPY_CRC, prop::TRAN_PREPARED_QUEUE_OFFSET,
                                                 prop::TRANSACTION_CHECK_TIMES, prop::TRANSACTION_STORE_TIME};

std::string committed_properties(const proto::RecordView& half) {
  std::string out(half.properties);
  for (std::string_view p : of_copies) proto::remove_property(out, p);
  for (std::string_view p : {prop::REAL_TOPIC, prop::REAL_QID}) proto::remove_property(out, p);
  return out;
}

// What is checked of a copy: not what RocketMQ changes in one that it makes of it.
static constexpr std::string_view unsigned_ones[] = {prop::TRANSACTION_COPY_CRC,
                                                     prop::TRANSACTION_CHECK_TIMES, prop::WAIT, prop::CRC32};
// What ends and delays change, beside what copies do.
static constexpr std::string_view of_places[] = {prop::TRANSACTION_COPY_CRC,
                                                 prop::TRANSACTION_CHECK_TIMES,
                                                 prop::WAIT,
                                                 prop::CRC32,
                                                 prop::TRANSACTION_STORE_TIME,
                                                 prop::TRAN_PREPARED_QUEUE_OFFSET,
                                                 prop::REAL_TOPIC,
                                                 prop::REAL_QID,
                                                 prop::DELAY,
                                                 prop::TIMER_DELAY_MS,
                                                 prop::TIMER_DELAY_SEC,
                                                 prop::TIMER_DELIVER_MS,
                                                 prop::TIMER_OUT_MS,
                                                 prop::INNER_MULTI_QUEUE_OFFSET};

// By name, of equal names the last, as RocketMQ reads them: it writes properties in an order of its own.
static std::string sorted_properties(std::string_view text, std::span<const std::string_view> without) {
  struct Entry {
    proto::Property p;
    size_t at;
  };
  std::vector<Entry> all;
  proto::PropertyReader reader(text);
  for (proto::Property p; reader.next(&p);)
    if (std::ranges::find(without, p.name) == without.end()) all.push_back({p, all.size()});
  std::ranges::sort(all, [](const Entry& a, const Entry& b) {
    return a.p.name != b.p.name ? a.p.name < b.p.name : a.at < b.at;
  });
  std::string out;
  for (size_t i = 0; i < all.size(); i++)
    if (i + 1 == all.size() || all[i + 1].p.name != all[i].p.name)
      proto::append_property(out, all[i].p.name, all[i].p.value);
  return out;
}

static std::string copy_crc(std::string_view properties) {
  return std::to_string(crc32(as_bytes(sorted_properties(properties, unsigned_ones))));
}

std::string copied_properties(const proto::RecordView& half, int64_t first_queue_offset, int32_t checks,
                              int64_t first_stored_ms) {
  std::string rest(half.properties);
  for (std::string_view p : of_copies) proto::remove_property(rest, p);
  proto::set_property(rest, prop::TRAN_PREPARED_QUEUE_OFFSET, std::to_string(first_queue_offset));
  if (checks > 0) proto::set_property(rest, prop::TRANSACTION_CHECK_TIMES, std::to_string(checks));
  proto::set_property(rest, prop::TRANSACTION_STORE_TIME, std::to_string(first_stored_ms));
  std::string out;
  proto::append_property(out, prop::TRANSACTION_COPY_CRC, copy_crc(rest));
  return out + rest;
}

bool has_good_properties(const proto::RecordView& half) {
  auto crc = half.property(prop::TRANSACTION_COPY_CRC);
  // RocketMQ's copies of what it took have neither.
  if (!crc) return !half.property(prop::TRANSACTION_STORE_TIME).has_value();
  return *crc == copy_crc(half.properties);
}

bool is_same_message(const proto::RecordView& a, const proto::RecordView& b) {
  return as_text(a.body) == as_text(b.body) &&
         sorted_properties(a.properties, of_places) == sorted_properties(b.properties, of_places);
}

Task<EndOutcome> TransactionService::end(proto::EndTransactionRequestHeader h) {
  auto extent = co_await broker_.store.record_at(h.commit_log_offset);
  // The first copy may be gone with its file of the log, when there is a newer one.
  if (!extent && h.commit_log_offset < broker_.store.min_physical_offset()) {
    auto newest = co_await find(h.tran_state_table_offset, h.tran_state_table_offset);
    if (newest == open_.end() || newest->first == h.tran_state_table_offset) co_return no_such_half();
    h.tran_state_table_offset = newest->first;
    h.commit_log_offset = newest->second.physical;
    extent = co_await broker_.store.record_at(h.commit_log_offset);
  }
  if (!extent) co_return no_such_half();
  auto record = proto::parse_record(extent->bytes());
  if (!record || record->topic != names::RMQ_SYS_TRANS_HALF_TOPIC) co_return no_such_half();
  EndOutcome wrong = check_end(h, *record, broker_.wall_ms());
  if (wrong.code != ResponseCode::SUCCESS) co_return wrong;
  int64_t origin = number_or(record->property(prop::TRAN_PREPARED_QUEUE_OFFSET), record->queue_offset);
  auto it = co_await find(record->queue_offset, origin);
  if (it == open_.end()) {
    auto copied = origin_of_copies(*record);
    if (copied) it = co_await find(*copied, *copied);
  }
  if (it == open_.end() && stopping_)
    co_return EndOutcome{ResponseCode::SYSTEM_ERROR, "the broker is stopping"};
  if (it == open_.end()) co_return EndOutcome{ResponseCode::SUCCESS, "the transaction has ended before"};
  co_return co_await end_half(it->first, *record,
                              h.commit_or_rollback == proto::sys_flag::transaction_commit);
}

// `record` is the copy that the producer named, or an older one of the same message: their contents are the
// same.
Task<EndOutcome> TransactionService::end_half(int64_t offset, const proto::RecordView& record, bool commit) {
  open_.at(offset).busy = true;
  const std::string op_body = std::to_string(offset) + ",";
  std::string topic(record.property(prop::REAL_TOPIC).value_or(""));
  std::string properties = committed_properties(record);
  store::MessageIn m = copy_of(record, broker_.store_host);
  m.topic = topic;
  m.queue_id =
      broker_.queue_by_now(topic, static_cast<int32_t>(number_or(record.property(prop::REAL_QID), 0)));
  m.sys_flag = proto::sys_flag::with_transaction(record.sys_flag, proto::sys_flag::transaction_commit);
  m.prepared_transaction_offset = record.physical_offset;
  m.properties = properties;
  Broker::Placed placed;  // a delay begins with the commit
  if (commit) {
    int level = std::max(broker_.delay_level_of(record.property(prop::DELAY).value_or("")), 0);
    auto status = broker_.place_delayed(m, properties, level, placed, true);
    if (status != store::PutMessageStatus::PUT_OK) {
      open_.at(offset).busy = false;
      ended_.notify();
      Refusal refused = refusal_of(broker_, status);
      co_return EndOutcome{refused.code, std::move(refused.remark)};
    }
  }
  std::vector<store::MessageIn> batch;
  if (commit) batch.push_back(m);
  batch.push_back(op_record(op_body));
  note_op(offset);
  store::PutMessageResult put = co_await broker_.store.put_batch(batch);
  broker_.delayed_put(placed, put);
  Refusal outcome = refusal_of(broker_, put.status);
  if (outcome.code == ResponseCode::FLUSH_DISK_TIMEOUT)
    outcome.code = ResponseCode::SUCCESS;  // it is appended
  auto it = open_.find(offset);
  check(it != open_.end());  // it was busy
  if (outcome.code == ResponseCode::SUCCESS) {
    retire(it);
    broker_.metrics.transaction_ended(topic, commit, broker_.wall_ms() - record.born_timestamp_ms);
  } else {
    it->second.busy = false;
  }
  ended_.notify();
  co_return EndOutcome{outcome.code, std::move(outcome.remark)};
}

Task<EndOutcome> TransactionService::resume(std::string_view topic, std::string_view offset_id) {
  auto id = proto::parse_offset_id(offset_id);
  if (!id) co_return EndOutcome{ResponseCode::INVALID_PARAMETER, "msgId is not the offset id of a message"};
  auto extent = co_await broker_.store.record_at(id->physical_offset);
  auto record = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
  if (!record || record->topic != names::TRANS_CHECK_MAX_TIME_TOPIC ||
      record->property(prop::REAL_TOPIC).value_or("") != topic)
    co_return EndOutcome{ResponseCode::SYSTEM_ERROR,
                         fmt::format("no message of topic {} with that id is in {}", topic,
                                     names::TRANS_CHECK_MAX_TIME_TOPIC)};
  while (!loaded_ && !stopping_) co_await read_.wait();
  if (stopping_) co_return EndOutcome{ResponseCode::SYSTEM_ERROR, "the broker is stopping"};
  co_return co_await put_back(*record);
}

// `record` lies in TRANS_CHECK_MAX_TIME_TOPIC. Its checks begin anew, and so does its time.
Task<EndOutcome> TransactionService::put_back(const proto::RecordView& record) {
  int64_t first = number_or(record.property(prop::TRAN_PREPARED_QUEUE_OFFSET), record.queue_offset);
  std::string properties = copied_properties(record, first, 0, broker_.wall_ms());
  std::vector<store::MessageIn> copies;
  copies.push_back(copy_of(record, broker_.store_host));
  copies[0].topic = names::RMQ_SYS_TRANS_HALF_TOPIC;
  copies[0].properties = properties;
  DeliveryMarker marker;
  marker.copied.push_back(record.queue_offset);
  Delivery::Put put;
  put.done = true;
  co_await resumes_.turn().acquire();
  const bool before = resumed_.contains(record.queue_offset);
  if (!before) put = co_await resumes_.put(marker, copies);
  if (put.done) resumed_.insert(record.queue_offset);
  resumes_.turn().release();
  if (before) co_return EndOutcome{ResponseCode::SUCCESS, "it was given its checks again before"};
  wake();
  if (put.done) co_return EndOutcome{};
  Refusal outcome = refusal_of(broker_, put.status);
  co_return EndOutcome{outcome.code, std::move(outcome.remark)};
}

// ---- requests ----------------------------------------------------------------------------------------

Task<void> end_transaction(Broker& b, Request& r, proto::EndTransactionRequestHeader h) {
  // "Unknown" is not answered: the producer is asked again.
  if (h.commit_or_rollback == proto::sys_flag::transaction_none) co_return;
  if (h.commit_or_rollback != proto::sys_flag::transaction_commit &&
      h.commit_or_rollback != proto::sys_flag::transaction_rollback)
    co_return r.reply(ResponseCode::INVALID_PARAMETER,
                      "commitOrRollback must be 0 (unknown), 8 (commit) or 12 (rollback)");
  EndOutcome outcome = co_await b.transactions.end(h);
  r.reply(outcome.code, outcome.remark);
}

Task<void> resume_check_half_message(Broker& b, Request& r, proto::ResumeCheckHalfMessageRequestHeader h) {
  if (!h.topic || !h.msg_id) co_return r.reply(ResponseCode::INVALID_PARAMETER, "topic and msgId are needed");
  EndOutcome outcome = co_await b.transactions.resume(*h.topic, *h.msg_id);
  r.reply(outcome.code, outcome.remark);
}

}  // namespace rmq::broker

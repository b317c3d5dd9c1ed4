// Half messages as RocketMQ leaves them. For a check it writes a half message anew, at the end of the half
// topic, and moves its offset on, behind the old one: no op record names that, and nothing in the new one
// says where the first lies. (Only while a producer's immunity time lasts it does, by
// TRAN_PREPARED_QUEUE_OFFSET.) So
//
// - an end that comes late names the first copy. RocketMQ commits it then, writes an op record for that
//   place, and asks about the copy all the same: the message is committed a second time. Here such an end is
//   that of the newest copy, and what RocketMQ's op records say of one copy is said of all;
// - after a kill RocketMQ's offset may be one of before the check. It asks about both then; here only the
//   newest copy is open.
//
// Copies are known by what RocketMQ takes over unchanged. Its op records have the property WAIT, ours not.
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/broker/broker.h"
#include "daemon/broker/transactions.h"
#include "proto/codes.h"

namespace rmq::broker {

namespace names = proto::names;
namespace prop = proto::prop;

namespace {
constexpr size_t readers = 16;  // reads of records at a time
constexpr int64_t after_failure_ns = 1 * ns_per_s;
constexpr int64_t clocks_differ_ms = 60'000;  // the producer's and the broker's
constexpr size_t ended_max = 200'000;         // op records older than these are not read
}  // namespace

// 0: it has no unique key.
uint64_t half_identity(const proto::RecordView& half) {
  const std::string_view key = half.property(prop::UNIQ_KEY).value_or("");
  if (key.empty()) return 0;
  std::string all;
  for (std::string_view name : {prop::PGROUP, prop::REAL_TOPIC, prop::REAL_QID}) {
    all += half.property(name).value_or("");
    all += '\x01';
  }
  (all += key) += '\x01';
  (all += half.born_host.to_string()) += '\x01';
  (all += std::to_string(half.born_timestamp_ms)) += '\x01';
  all += std::to_string(half.body_crc);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  check(EVP_Digest(all.data(), all.size(), digest, &bytes, EVP_sha256(), nullptr) == 1);
  uint64_t out = 0;
  std::memcpy(&out, digest, sizeof out);
  return out;
}

std::optional<int64_t> TransactionService::origin_of_copies(const proto::RecordView& older) const {
  if (unplaced_.empty()) return std::nullopt;
  auto it = unplaced_.find(half_identity(older));
  if (it == unplaced_.end() || it->second <= older.queue_offset) return std::nullopt;
  return it->second;
}

Task<void> TransactionService::read_some_ended(std::vector<Kin>& kin, size_t& next, bool& good) {
  while (next < kin.size() && good && !stopping_) {
    Kin& k = kin[next++];
    auto unit = co_await broker_.store.queue_unit(names::RMQ_SYS_TRANS_HALF_TOPIC, 0, k.offset);
    if (!unit) continue;
    auto extent = co_await broker_.store.record_at(unit->physical_offset);
    if (!extent && extent.error().code != Errc::not_found) good = false;
    auto record = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
    if (!record) continue;
    k.identity = half_identity(*record);
    k.is_copy = record->property(prop::TRANSACTION_CHECK_TIMES).has_value();
  }
}

// RocketMQ's offset in the op topic is behind what names copies that it has passed: of those that are open it
// may have ended older copies since they were sent.
Task<void> TransactionService::read_older_ops() {
  constexpr std::string_view topic = names::RMQ_SYS_TRANS_OP_HALF_TOPIC;
  int64_t sent_ms = INT64_MAX;
  for (const auto& [offset, h] : open_)
    if (h.by_java) sent_ms = std::min(sent_ms, h.stored_ms - clocks_differ_ms);
  if (sent_ms == INT64_MAX) co_return;
  int64_t at = co_await broker_.store.search_offset(topic, 0, sent_ms, store::MessageStore::Boundary::LOWER);
  while (!stopping_ && at < first_op_ && java_ends_.size() < ended_max) {
    std::vector<DueMessage> ops;
    at = std::max(at, broker_.store.min_offset(topic, 0));
    auto end = co_await read_some(topic, at, ops);
    if (!end) {
      co_await half_arrived_.wait_for(after_failure_ns);
      continue;
    }
    for (const DueMessage& op : ops)
      if (!op.extent.bytes().empty() && op.offset < first_op_) read_op(op.record);
    at = *end;
  }
}

// The half messages that RocketMQ's op records name. False: some cannot be read.
Task<bool> TransactionService::read_ended(std::vector<Kin>& kin) {
  size_t next = 0;
  bool good = true;
  Scope scope;
  for (size_t i = 0; i < std::min(readers, kin.size()); i++) scope.spawn(read_some_ended(kin, next, good));
  co_await scope.join();
  co_return good;
}

// Of those that are the same half message the newest is open, and none when one that is a copy, or from which
// copies were made, has ended. Before anybody is asked. Two messages that a producer sent with one unique key
// are two: their times differ.
Task<void> TransactionService::settle_java_copies() {
  co_await read_older_ops();
  std::vector<Kin> kin = std::exchange(java_ends_, {});
  if (open_.empty() || (kin.empty() && unplaced_.empty())) co_return;
  while (!stopping_) {
    bool read = co_await read_ended(kin);
    if (read) break;
    co_await half_arrived_.wait_for(after_failure_ns);
  }
  for (const auto& [offset, h] : open_) kin.push_back({h.identity, offset, true, h.is_copy});
  std::erase_if(kin, [](const Kin& k) { return k.identity == 0; });
  std::ranges::sort(kin, [](const Kin& a, const Kin& b) {
    return a.identity != b.identity ? a.identity < b.identity : a.offset < b.offset;
  });
  std::vector<int64_t> over;
  for (size_t begin = 0, end = 0; begin < kin.size(); begin = end) {
    bool has_ended = false;
    for (end = begin; end < kin.size() && kin[end].identity == kin[begin].identity; end++) {
      if (kin[end].is_open && kin[end].is_copy && has_ended) over.push_back(kin[end].offset);
      has_ended = has_ended || !kin[end].is_open;
    }
    bool has_copy = false;
    for (size_t i = end; i-- > begin;) {
      if (kin[i].is_open && has_copy) over.push_back(kin[i].offset);
      has_copy = has_copy || kin[i].is_copy;
    }
  }
  for (int64_t offset : over) {
    auto it = open_.find(offset);
    if (it == open_.end()) continue;
    superseded_.push_back(offset);
    retire(it);
  }
}

}  // namespace rmq::broker

// Topics with queue.type=BatchCQ: what a producer sends as a batch is one record of all its messages, which
// takes as many queue offsets (an inner batch). batch_queue_files.cc has their files.
#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
#include "store/store_impl.h"

namespace rmq::store {

PutMessageStatus MessageStore::Impl::check_inner_batch(const MessageIn& m, size_t properties_bytes,
                                                       size_t& bytes) const {
  if (m.inner_messages == 0 && table_.batch_topics().empty()) return PutMessageStatus::PUT_OK;
  // A start takes what says of itself that it is a batch for one.
  if (m.inner_messages == 0) {
    const bool says = table_.is_batch_topic(m.topic) &&
                      proto::find_property(m.properties, proto::prop::INNER_NUM).has_value() &&
                      proto::find_property(m.properties, proto::prop::INNER_BASE).has_value();
    return says ? PutMessageStatus::MESSAGE_ILLEGAL : PutMessageStatus::PUT_OK;
  }
  const bool sane = table_.is_batch_topic(m.topic) && m.inner_messages <= inner_messages_max &&
                    proto::sys_flag::is_visible(m.sys_flag);
  if (!sane) return PutMessageStatus::MESSAGE_ILLEGAL;
  constexpr size_t digits_max = 20;
  constexpr size_t more = proto::prop::INNER_BASE.size() + 3 + digits_max;
  if (properties_bytes + more > limits::properties_bytes_max)
    return PutMessageStatus::PROPERTIES_SIZE_EXCEEDED;
  bytes += more;
  return PutMessageStatus::PUT_OK;
}

Task<Result<void>> MessageStore::Impl::begin_batch_topics() {
  for (const std::string& topic : options_.batch_topics) table_.add_batch_topic(topic);
  if (!options_.batch_topics.empty()) CO_TRY(co_await queue_files_.make_batch_dirs());
  co_return Result<void>();
}

Task<Result<void>> MessageStore::Impl::add_batch_topic(std::string topic) {
  if (table_.is_batch_topic(topic)) co_return Result<void>();
  if (!table_.ids(topic).empty())
    co_return rmq::fail(Errc::bad_input, "there are queues of that name that are not of type BatchCQ");
  CO_TRY(co_await queue_files_.make_batch_dirs());
  if (!table_.ids(topic).empty())
    co_return rmq::fail(Errc::bad_input, "there are queues of that name that are not of type BatchCQ");
  table_.add_batch_topic(topic);
  co_return Result<void>();
}

Task<Result<int64_t>> MessageStore::Impl::record_end(UnitCursor& units, int64_t offset, QueueUnit u,
                                                     int64_t end) {
  if (is_blank(u)) co_return offset + 1;
  for (int64_t o = offset + 1; o < end; o++) {
    QueueUnit other;
    if (!units.get(o, other)) {
      CO_TRY(co_await units.load(o));
      bool there = units.get(o, other);
      check(there);
    }
    if (other.physical_offset != u.physical_offset || is_blank(other)) co_return o;
  }
  co_return end;
}

Task<int64_t> MessageStore::Impl::record_begin(std::string_view topic, int32_t queue_id, int64_t offset) {
  const ConsumeQueue* q = table_.find(topic, queue_id);
  if (q == nullptr || !q->batch) co_return offset;
  const auto at = co_await queue_unit(topic, queue_id, offset);
  if (!at) co_return offset;
  // The units of a record are next to each other.
  int64_t lo = std::max<int64_t>(0, offset - inner_messages_max), hi = offset;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    const auto u = co_await queue_unit(topic, queue_id, mid);
    if (u && u->physical_offset == at->physical_offset)
      hi = mid;
    else
      lo = mid + 1;
  }
  co_return lo;
}

// ---- the face ----------------------------------------------------------------------------------------

Task<Result<void>> MessageStore::add_batch_topic(std::string topic) {
  return impl_->add_batch_topic(std::move(topic));
}
bool MessageStore::is_batch_topic(std::string_view topic) const {
  return impl_->table_.is_batch_topic(topic);
}
Task<int64_t> MessageStore::record_begin(std::string_view topic, int32_t queue_id, int64_t offset) {
  return impl_->record_begin(topic, queue_id, offset);
}

}  // namespace rmq::store

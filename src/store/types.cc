#include "store/types.h"

#include <bit>
#include <cstdlib>

#include "base/check.h"

namespace rmq::store {

const char* name_of(PutMessageStatus s) {
  switch (s) {
    case PutMessageStatus::PUT_OK:
      return "PUT_OK";
    case PutMessageStatus::FLUSH_DISK_TIMEOUT:
      return "FLUSH_DISK_TIMEOUT";
    case PutMessageStatus::MESSAGE_ILLEGAL:
      return "MESSAGE_ILLEGAL";
    case PutMessageStatus::PROPERTIES_SIZE_EXCEEDED:
      return "PROPERTIES_SIZE_EXCEEDED";
    case PutMessageStatus::SERVICE_NOT_AVAILABLE:
      return "SERVICE_NOT_AVAILABLE";
    case PutMessageStatus::CREATE_MAPPED_FILE_FAILED:
      return "CREATE_MAPPED_FILE_FAILED";
    case PutMessageStatus::OS_PAGE_CACHE_BUSY:
      return "OS_PAGE_CACHE_BUSY";
    case PutMessageStatus::WHEEL_TIMER_MSG_ILLEGAL:
      return "WHEEL_TIMER_MSG_ILLEGAL";
    case PutMessageStatus::WHEEL_TIMER_NOT_ENABLE:
      return "WHEEL_TIMER_NOT_ENABLE";
    case PutMessageStatus::LMQ_CONSUME_QUEUE_NUM_EXCEEDED:
      return "LMQ_CONSUME_QUEUE_NUM_EXCEEDED";
    case PutMessageStatus::UNKNOWN_ERROR:
      return "UNKNOWN_ERROR";
  }
  return "UNKNOWN_ERROR";
}

const char* name_of(GetMessageStatus s) {
  switch (s) {
    case GetMessageStatus::FOUND:
      return "FOUND";
    case GetMessageStatus::NO_MATCHED_MESSAGE:
      return "NO_MATCHED_MESSAGE";
    case GetMessageStatus::MESSAGE_WAS_REMOVING:
      return "MESSAGE_WAS_REMOVING";
    case GetMessageStatus::OFFSET_FOUND_NULL:
      return "OFFSET_FOUND_NULL";
    case GetMessageStatus::OFFSET_OVERFLOW_BADLY:
      return "OFFSET_OVERFLOW_BADLY";
    case GetMessageStatus::OFFSET_OVERFLOW_ONE:
      return "OFFSET_OVERFLOW_ONE";
    case GetMessageStatus::OFFSET_TOO_SMALL:
      return "OFFSET_TOO_SMALL";
    case GetMessageStatus::NO_MATCHED_LOGIC_QUEUE:
      return "NO_MATCHED_LOGIC_QUEUE";
    case GetMessageStatus::NO_MESSAGE_IN_QUEUE:
      return "NO_MESSAGE_IN_QUEUE";
    case GetMessageStatus::OFFSET_RESET:
      return "OFFSET_RESET";
  }
  return "NO_MATCHED_MESSAGE";
}

const char* name_of(DeleteReason r) {
  switch (r) {
    case DeleteReason::delete_when:
      return "older than fileReservedTime";
    case DeleteReason::disk_used:
      return "older than fileReservedTime, and the disk is fuller than diskMaxUsedSpaceRatio";
    case DeleteReason::manual:
      return "older than fileReservedTime, and deletion was asked for";
    case DeleteReason::disk_forcibly:
      return "the disk is fuller than diskSpaceCleanForciblyRatio";
    case DeleteReason::log_bytes:
      return "the CommitLog is longer than discardBytes";
    case DeleteReason::discarded:
      return "all its messages were discarded";
    case DeleteReason::log_deleted:
      return "the CommitLog has none of its messages any more";
  }
  return "";
}

MessageFilter::~MessageFilter() = default;
ArrivalListener::~ArrivalListener() = default;
QueueListener::~QueueListener() = default;
FailureListener::~FailureListener() = default;
RecoveryProgress::~RecoveryProgress() = default;

LogMemory::LogMemory(std::byte* d, size_t n, std::shared_ptr<std::atomic<uint64_t>> live)
    : data_(d), bytes_(n), live_bytes_(std::move(live)) {
  live_bytes_->fetch_add(n, std::memory_order_relaxed);
}

LogMemory::~LogMemory() {
  std::free(data_);
  live_bytes_->fetch_sub(bytes_, std::memory_order_relaxed);
}

LogMemory* LogMemory::create(size_t bytes, std::shared_ptr<std::atomic<uint64_t>> live_bytes) {
  check(bytes % disk_block_bytes == 0);
  void* p = std::aligned_alloc(disk_block_bytes, bytes);
  check(p != nullptr);
  return new LogMemory(static_cast<std::byte*>(p), bytes, std::move(live_bytes));
}

void LogMemory::unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void LatencyHistogram::add_ns(int64_t ns) {
  uint64_t us = ns < 0 ? 0 : static_cast<uint64_t>(ns) / 1000;
  size_t i = static_cast<size_t>(std::bit_width(us));
  buckets[i < buckets.size() ? i : buckets.size() - 1]++;
  count++;
  sum_us += us;
}

void SizeHistogram::add(uint64_t value) {
  const auto i = value <= 1 ? size_t{0} : static_cast<size_t>(std::bit_width(value - 1));
  buckets[i < buckets.size() ? i : buckets.size() - 1]++;
  sum += value;
}

}  // namespace rmq::store

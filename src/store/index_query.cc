#include "store/index_query.h"

namespace rmq::store {

namespace {
constexpr int32_t window_entries_min = 204, window_entries_max = 3264;  // 4 KiB, 64 KiB
}

Task<Result<void>> IndexChain::read(uint64_t at, MutableBytes into) {
  if (file_ == nullptr) {
    CO_TRY_VAR(file, co_await disk_.open(index_->path(), {}));
    file_ = std::move(file);
  }
  CO_TRY_VAR(n, co_await file_->read(at, into));
  stats_.index_reads++;
  if (n != into.size()) co_return fail(Errc::corrupt, "an index file ends too early");
  co_return Result<void>();
}

Task<Result<void>> IndexChain::find_newest() {
  if (!index_->slot_in_memory(hash_, number_)) {
    const IndexLayout& l = index_->layout();
    std::byte bytes[index_slot_bytes];
    CO_TRY(co_await read(l.slot_at(l.slot_of(hash_)), bytes));
    number_ = load_be<int32_t>(bytes);
  }
  bool sane = number_ >= 0 && number_ < index_->header().count;
  if (!sane && index_->readable()) co_return fail(Errc::corrupt, "a slot of an index file makes no sense");
  if (!sane) number_ = 0;
  co_return Result<void>();
}

// The entry is the last one of the window: chains go down. The nearer the next one, the more at once.
Task<Result<void>> IndexChain::read_window(int32_t number) {
  bool near = window_entries_ != 0 && number < window_first_ && window_first_ - number < 4 * window_entries_;
  window_entries_ = near ? std::min(window_entries_ * 2, window_entries_max) : window_entries_min;
  window_first_ = std::max(number - window_entries_ + 1, 1);
  window_.resize(static_cast<size_t>(number - window_first_ + 1) * index_entry_bytes);
  co_return co_await read(index_->layout().entry_at(window_first_), window_);
}

Task<Result<IndexEntry>> IndexChain::entry(int32_t number) {
  IndexEntry e;
  if (index_->entry_in_memory(number, e)) co_return e;
  int32_t end = window_first_ + static_cast<int32_t>(window_.size() / index_entry_bytes);
  if (number < window_first_ || number >= end) CO_TRY(co_await read_window(number));
  size_t at = static_cast<size_t>(number - window_first_) * index_entry_bytes;
  co_return decode_index_entry(window_.data() + at);
}

Task<Result<bool>> IndexChain::next(IndexEntry& e) {
  if (number_ < 0) CO_TRY(co_await find_newest());
  while (number_ != 0 && index_->readable()) {
    CO_TRY_VAR(found, co_await entry(number_));
    const IndexHeader& h = index_->header();
    bool sane = found.hash >= 0 && found.previous >= 0 && found.previous < number_ && found.seconds >= 0 &&
                found.physical >= 0 && found.physical <= h.end_physical;
    if (!sane && index_->readable()) co_return fail(Errc::corrupt, "a chain of an index file is broken");
    if (!sane) co_return false;
    number_ = found.previous;
    if (found.hash != hash_) continue;
    e = found;
    co_return true;
  }
  co_return false;
}

Task<void> IndexChain::close() {
  if (file_ != nullptr) co_await file_->close();
  file_.reset();
}

}  // namespace rmq::store

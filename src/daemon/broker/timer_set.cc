#include "daemon/broker/timer_set.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/check.h"

namespace rmq::broker {

// ---- TimerHeap ---------------------------------------------------------------------------------------

void TimerHeap::push(const PendingTimer& t) {
  if (size_ == blocks_.size() * block_entries)
    blocks_.push_back(std::make_unique<PendingTimer[]>(block_entries));
  size_t i = size_++;
  while (i > 0) {
    size_t parent = (i - 1) / arity;
    if (!t.before(at(parent))) break;
    at(i) = at(parent);
    i = parent;
  }
  at(i) = t;
}

void TimerHeap::sift_down(size_t i) {
  const PendingTimer t = at(i);
  for (;;) {
    size_t first = i * arity + 1;
    if (first >= size_) break;
    size_t least = first;
    for (size_t c = first + 1; c < std::min(first + arity, size_); c++)
      if (at(c).before(at(least))) least = c;
    if (!at(least).before(t)) break;
    at(i) = at(least);
    i = least;
  }
  at(i) = t;
}

PendingTimer TimerHeap::pop() {
  check(size_ != 0);
  PendingTimer out = at(0);
  at(0) = at(--size_);
  if (size_ != 0) sift_down(0);
  trim();
  return out;
}

size_t TimerHeap::due_count(int64_t now_ms, size_t most) const {
  std::vector<size_t> to_look_at;
  if (size_ != 0) to_look_at.push_back(0);
  size_t due = 0;
  while (!to_look_at.empty() && due < most) {
    const size_t i = to_look_at.back();
    to_look_at.pop_back();
    if (blocks_[i / block_entries][i % block_entries].due_ms() > now_ms) continue;
    due++;
    for (size_t c = i * arity + 1; c < std::min(i * arity + 1 + arity, size_); c++) to_look_at.push_back(c);
  }
  return due;
}

void TimerHeap::trim() {
  size_t needed = (size_ + block_entries - 1) / block_entries;
  while (blocks_.size() > needed + 1) blocks_.pop_back();
}

void TimerHeap::clear() {
  size_ = 0;
  blocks_.clear();
}

void TimerHeap::heapify() {
  if (size_ < 2) return;
  for (size_t i = (size_ - 2) / arity + 1; i-- > 0;) sift_down(i);
}

void TimerHeap::shift_wall(int64_t ms) {
  for (size_t i = 0; i < size_; i++)
    if (at(i).follows_wall()) at(i).due += ms * 2;
  heapify();
}

PendingTimer TimerHeap::forget_later_half() {
  check(size_ != 0);
  std::vector<PendingTimer> sample;
  const size_t step = std::max<size_t>(1, size_ / 1000);
  for (size_t i = 0; i < size_; i += step) sample.push_back(at(i));
  auto middle = sample.begin() + static_cast<ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end(),
                   [](const PendingTimer& a, const PendingTimer& b) { return a.before(b); });
  PendingTimer horizon = *middle;
  if (!top().before(horizon)) horizon = PendingTimer::make(top().due_ms(), false, top().offset + 1);
  keep_if([&horizon](const PendingTimer& t) { return t.before(horizon); });
  return horizon;
}

// ---- DoneSet -----------------------------------------------------------------------------------------

bool DoneSet::contains(int64_t offset) const {
  if (offset < low_) return true;
  if (offset >= end()) return false;
  auto i = static_cast<uint64_t>(offset - base_);
  return (words_[i / 64] >> (i % 64) & 1) != 0;
}

void DoneSet::add(int64_t offset) {
  if (offset < low_) return;
  if (words_.empty()) base_ = low_ - low_ % 64;
  auto i = static_cast<uint64_t>(offset - base_);
  if (i / 64 >= words_.size()) words_.resize(i / 64 + 1);
  words_[i / 64] |= uint64_t{1} << (i % 64);
  if (offset == low_) move_low();
}

void DoneSet::add_below(int64_t offset) {
  if (offset <= low_) return;
  low_ = offset;
  move_low();
}

// From low_, which is done, to the first offset that is not.
void DoneSet::move_low() {
  while (!words_.empty() && low_ >= base_ + 64) {
    words_.pop_front();
    base_ += 64;
  }
  while (!words_.empty()) {
    uint64_t before = low_ > base_ ? (uint64_t{1} << (low_ - base_)) - 1 : 0;  // below low_ all are done
    int ones = std::countr_one(words_.front() | before);
    low_ = base_ + ones;
    if (ones < 64) return;
    words_.pop_front();
    base_ += 64;
  }
}

std::string DoneSet::encode() const {
  std::string bits;
  bits.reserve(words_.size() * 8 + 8);
  append_be<int64_t>(bits, base_);
  for (uint64_t w : words_) append_be<uint64_t>(bits, w);
  return std::to_string(low_) + " " + base64url_encode(bits);
}

std::optional<DoneSet> DoneSet::decode(std::string_view text) {
  DoneSet s;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), s.low_);
  if (ec != std::errc{} || s.low_ < 0 || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  auto bits = base64url_decode(text.substr(static_cast<size_t>(end - text.data()) + 1));
  if (!bits || bits->size() % 8 != 0 || bits->empty()) return std::nullopt;
  ByteReader r(*bits);
  s.base_ = r.get<int64_t>();
  if (s.base_ < 0 || s.base_ % 64 != 0) return std::nullopt;
  while (r.left() != 0) s.words_.push_back(r.get<uint64_t>());
  bool sane = s.words_.empty() || (s.low_ >= s.base_ && s.low_ < s.base_ + 64 && !s.contains(s.low_));
  if (!sane) return std::nullopt;
  return s;
}

}  // namespace rmq::broker

#include "daemon/broker/timer_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace rmq::broker {

namespace {
constexpr size_t blank_bytes = 16;  // at the end of a full file
constexpr int32_t blank_magic = static_cast<int32_t>(0xCBD43194);
constexpr size_t buffer_bytes = 1u << 20;
constexpr int64_t passed_ms = 86'400'000;  // a slot that nobody looks at any more

template <class T>
void put(std::string& out, T value) {
  for (int shift = 8 * (static_cast<int>(sizeof(T)) - 1); shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<uint64_t>(value) >> shift);
}

int64_t floor_to_slot(int64_t ms) {
  return ms / TimerLogWriter::precision_ms * TimerLogWriter::precision_ms;
}

Task<Result<void>> remove_all(Disk& disk, std::string dir, std::string_view prefix) {
  auto entries = co_await disk.list(dir);
  if (!entries && entries.error().code == Errc::not_found) co_return Result<void>{};
  if (!entries) co_return std::unexpected(entries.error());
  for (const DirEntry& e : *entries)
    if (!e.is_dir && e.name.starts_with(prefix)) CO_TRY(co_await disk.remove(dir + "/" + e.name));
  co_return co_await disk.sync_dir(dir);
}
}  // namespace

TimerLogWriter::TimerLogWriter(Disk& disk, std::string root, int64_t now_ms)
    : disk_(disk), root_(std::move(root)), read_from_ms_(floor_to_slot(now_ms)) {}

TimerLogWriter::~TimerLogWriter() = default;

Task<Result<void>> TimerLogWriter::begin() {
  CO_TRY(co_await remove_all(disk_, root_, "timerwheel"));
  co_return co_await remove_all(disk_, root_ + "/timerlog", "");
}

Task<Result<void>> TimerLogWriter::open_file() {
  const std::string dir = root_ + "/timerlog";
  CO_TRY(co_await disk_.make_dirs(dir));
  OpenHow how;
  how.write = how.create = how.truncate = true;
  CO_TRY_VAR(file, co_await disk_.open(fmt::format("{}/{:020}", dir, base_), how));
  file_ = std::move(file);
  written_ = 0;
  co_return Result<void>{};
}

Task<Result<void>> TimerLogWriter::write_out() {
  iovec v{buffer_.data(), buffer_.size()};
  if (buffer_.empty()) co_return Result<void>{};
  CO_TRY(co_await file_->write(written_, std::span(&v, 1), Durability::none));
  written_ += buffer_.size();
  buffer_.clear();
  co_return Result<void>{};
}

// RocketMQ wants files of their full size.
Task<Result<void>> TimerLogWriter::close_file() {
  auto done = co_await write_out();
  if (done) done = co_await file_->truncate(file_bytes);
  if (done) done = co_await file_->sync();
  co_await file_->close();
  file_.reset();
  co_return done;
}

Task<Result<void>> TimerLogWriter::append(int64_t slot_ms, int32_t magic, int64_t physical, int32_t bytes) {
  if (file_ && written_ + buffer_.size() + unit_bytes + blank_bytes > file_bytes) {
    put(buffer_, static_cast<int32_t>(file_bytes - written_ - buffer_.size()));
    put(buffer_, int64_t{0});
    put(buffer_, blank_magic);
    CO_TRY(co_await close_file());
    base_ += file_bytes;
  }
  if (!file_) CO_TRY(co_await open_file());
  const auto position = static_cast<int64_t>(base_ + written_ + buffer_.size());
  auto [last, is_first] = last_in_slot_.try_emplace(slot_ms, -1);
  put(buffer_, static_cast<int32_t>(unit_bytes));
  put(buffer_, last->second);
  put(buffer_, magic);
  put(buffer_, read_from_ms_);
  put(buffer_, static_cast<int32_t>(slot_ms - read_from_ms_));
  put(buffer_, physical);
  put(buffer_, bytes);
  put(buffer_, int32_t{0});  // the hash of the topic: for a count that RocketMQ makes anew by night
  put(buffer_, int64_t{0});
  last->second = position;
  if (buffer_.size() >= buffer_bytes) CO_TRY(co_await write_out());
  co_return Result<void>{};
}

Task<Result<void>> TimerLogWriter::add(int64_t deliver_ms, bool is_recall, int64_t physical, int32_t bytes) {
  int32_t magic = is_recall ? normal | remove : normal;
  int64_t slot_ms = std::max(floor_to_slot(deliver_ms), read_from_ms_);
  const int64_t beyond_ms = slot_ms - read_from_ms_ - roll_window_ms;
  if (beyond_ms >= 0) {
    magic |= roll;
    slot_ms = read_from_ms_ + (beyond_ms < roll_window_ms / 3 ? roll_window_ms / 2 : roll_window_ms);
  }
  co_return co_await append(slot_ms, magic, physical, bytes);
}

Task<Result<void>> TimerLogWriter::add_done(int64_t physical, int32_t bytes) {
  co_return co_await append(read_from_ms_ - passed_ms, normal, physical, bytes);
}

Task<Result<int64_t>> TimerLogWriter::finish() {
  const auto end = static_cast<int64_t>(base_ + written_ + buffer_.size());
  if (file_) {
    CO_TRY(co_await close_file());
    CO_TRY(co_await disk_.sync_dir(root_ + "/timerlog"));
    CO_TRY(co_await disk_.sync_dir(root_));
  }
  co_return end;
}

}  // namespace rmq::broker

#include "store/change_log.h"

#include <algorithm>
#include <array>

#include "store/blocks.h"
#include "store/change_lines.h"
#include "store/config_file.h"

namespace rmq::store {

namespace {

constexpr uint64_t zero_step_bytes = 256u << 10;
constexpr std::array<std::byte, 64u << 10> zeros{};

Task<Result<void>> write_zeros(File& f, uint64_t from, uint64_t to) {
  while (from < to) {
    size_t n = std::min<uint64_t>(to - from, zeros.size());
    iovec v{const_cast<std::byte*>(zeros.data()), n};
    CO_TRY(co_await f.write(from, {&v, 1}, Durability::none));
    from += n;
  }
  co_return Result<void>{};
}

}  // namespace

Task<Result<std::vector<std::string>>> ChangeLog::read() {
  std::vector<std::string> changes;
  auto f = co_await disk_.open(path_, {});
  if (!f && f.error().code == Errc::not_found) co_return changes;
  if (!f) co_return std::unexpected(f.error());
  std::string text;
  auto bytes = co_await (*f)->size();
  Result<size_t> n = size_t{0};
  if (bytes) {
    text.resize(*bytes);
    MutableBytes into(reinterpret_cast<std::byte*>(text.data()), text.size());
    n = co_await (*f)->read(0, into);
  }
  co_await (*f)->close();
  if (!bytes) co_return std::unexpected(bytes.error());
  if (!n) co_return std::unexpected(n.error());
  changes = changes_of({text.data(), *n});
  co_return changes;
}

Task<Result<void>> ChangeLog::replace(std::vector<std::string> changes) {
  check(!replacing_);
  replacing_ = true;
  const uint64_t number = added_;
  pending_.clear();
  while (writing_) co_await moved_.wait();
  std::string content;
  for (const std::string& c : changes) append_change_line(content, c);
  auto r = co_await write_new(std::move(content));
  replacing_ = false;
  if (r) {
    failed_ = false;
    written_ = std::max(written_, number);
  } else {
    fail_with(r.error());
  }
  moved_.notify();
  if (!pending_.empty() && !writing_) scope_.spawn(write_all());
  co_return r;
}

Task<Result<void>> ChangeLog::write_new(std::string content) {
  std::string temporary = path_ + ".tmp";
  const OpenHow how{.write = true, .create = true, .truncate = true};
  auto opened = co_await disk_.open(temporary, how);
  if (!opened && opened.error().code == Errc::not_found) {
    CO_TRY(co_await make_parent_dirs(disk_, path_));
    opened = co_await disk_.open(temporary, how);
  }
  if (!opened) co_return std::unexpected(opened.error());
  std::unique_ptr<File> f = std::move(*opened);
  const uint64_t size = content.size() + zero_step_bytes;
  iovec v{content.data(), content.size()};
  Result<void> r;
  if (!content.empty()) r = co_await f->write(0, {&v, 1}, Durability::none);
  if (r) r = co_await write_zeros(*f, content.size(), size);
  if (r) r = co_await f->sync();
  if (r) r = co_await disk_.rename(temporary, path_);
  if (r) r = co_await disk_.sync_dir(parent_of(path_));
  if (!r) {
    co_await f->close();
    co_return r;
  }
  std::swap(file_, f);
  if (f) co_await f->close();
  end_ = content.size();
  zeroed_ = size;
  co_return r;
}

uint64_t ChangeLog::add(std::string_view change) {
  added_++;
  if (replacing_ || (file_ && !failed_)) append_change_line(pending_, change);
  if (!pending_.empty() && !writing_ && !replacing_) scope_.spawn(write_all());
  return added_;
}

Task<bool> ChangeLog::written(uint64_t number) {
  while (number > written_ && !failed_ && (file_ || replacing_)) co_await moved_.wait();
  co_return number <= written_;
}

Task<void> ChangeLog::write_all() {
  writing_ = true;
  while (!pending_.empty() && !replacing_) {
    auto r = co_await write_pending();
    if (!r) fail_with(r.error());
    moved_.notify();
  }
  writing_ = false;
  moved_.notify();
}

Task<Result<void>> ChangeLog::write_pending() {
  std::string lines = std::exchange(pending_, {});
  const uint64_t number = added_;
  if (end_ + lines.size() > zeroed_) {
    uint64_t to = end_ + lines.size() + zero_step_bytes;
    CO_TRY(co_await write_zeros(*file_, zeroed_, to));
    if (durability_ == Durability::on_media) CO_TRY(co_await file_->sync());
    zeroed_ = to;
  }
  iovec v{lines.data(), lines.size()};
  CO_TRY(co_await file_->write(end_, {&v, 1}, durability_));
  end_ += lines.size();
  written_ = number;
  co_return Result<void>{};
}

void ChangeLog::fail_with(const Error& e) {
  failed_ = true;
  error_ = e;
  pending_.clear();
}

Task<void> ChangeLog::close(bool remove) {
  co_await scope_.join();
  if (file_) co_await file_->close();
  file_.reset();
  if (!remove) co_return;
  auto removed = co_await disk_.remove(path_);
  if (removed) [[maybe_unused]]
    auto synced = co_await disk_.sync_dir(parent_of(path_));
}

}  // namespace rmq::store

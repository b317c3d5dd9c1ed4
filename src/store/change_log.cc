#include "store/change_log.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/crc.h"
#include "store/blocks.h"
#include "store/config_file.h"

namespace rmq::store {

namespace {

constexpr size_t crc_text_bytes = 8;
constexpr uint64_t zero_step_bytes = 256u << 10;
constexpr std::array<std::byte, 64u << 10> zeros{};

// A line stays one whatever a name holds.
std::string escaped(std::string_view change) {
  std::string out;
  for (char c : change) {
    if (c == '\\' || c == '\n') out += '\\';
    out += c == '\n' ? 'n' : c;
  }
  return out;
}
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) i++;
    out += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return out;
}

void append_line(std::string& out, std::string_view change) {
  constexpr char digits[] = "0123456789abcdef";
  std::string safe;
  if (change.find_first_of("\\\n") != std::string_view::npos) change = safe = escaped(change);
  uint32_t crc = crc32(as_bytes(change));
  for (int shift = 28; shift >= 0; shift -= 4) out += digits[crc >> shift & 15];
  out += ' ';
  out += change;
  out += '\n';
}

// The change of a whole line without its end, nothing when it is not what was written.
std::string_view change_of(std::string_view line) {
  if (line.size() <= crc_text_bytes + 1 || line[crc_text_bytes] != ' ') return {};
  uint32_t crc = 0;
  auto [end, ec] = std::from_chars(line.data(), line.data() + crc_text_bytes, crc, 16);
  if (ec != std::errc{} || end != line.data() + crc_text_bytes) return {};
  std::string_view change = line.substr(crc_text_bytes + 1);
  return crc32(as_bytes(change)) == crc ? change : std::string_view{};
}

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

std::vector<std::string> changes_of(std::string_view content) {
  std::vector<std::string> changes;
  for (size_t end = content.find('\n'); end != std::string_view::npos; end = content.find('\n')) {
    std::string_view change = change_of(content.substr(0, end));
    if (change.empty()) break;
    changes.push_back(unescaped(change));
    content.remove_prefix(end + 1);
  }
  return changes;
}

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
  for (const std::string& c : changes) append_line(content, c);
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
  if (replacing_ || (file_ && !failed_)) append_line(pending_, change);
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

#include "daemon/broker/logged_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "store/change_lines.h"

namespace rmq::broker {

using store::line_of_file;

LoggedTable::LoggedTable(Disk& disk, std::string path, Durability durability)
    : PersistedTable(disk, std::move(path)), log_(disk, this->path() + ".log", durability) {}

Task<Result<void>> LoggedTable::load() {
  CO_TRY_VAR(file, co_await load_text());
  CO_TRY_VAR(changes, co_await log_.read());
  std::string text;
  if (file) text = std::move(file->content);
  if (file) CO_TRY(parse(text));
  const bool from_backup = file && file->from_backup;
  const size_t begin = store::first_change_since(changes, text, from_backup);
  if (begin == changes.size() && !changes.empty() && changes.back() != line_of_file(text))
    log(LogLevel::warning, ids::changes_foreign,
        "a log of changes belongs to another state of its file and was left aside",
        {{"FILE", path()}, {"CHANGES", std::to_string(changes.size())}});
  const size_t applied = replay(changes, begin);
  if (applied > 0)
    log(LogLevel::info, ids::changes_replayed, "changes since a file was written last were read from its log",
        {{"FILE", path()}, {"CHANGES", std::to_string(applied)}});
  loaded_ = true;
  file_line_ = line_of_file(text);
  after_read();
  dirty_ = dirty_ || applied > 0 || from_backup;
  if (dirty_)
    co_await fold();
  else [[maybe_unused]]
    auto begun = co_await begin_log(text);
  co_return Result<void>{};
}

// Nothing is said of what is wrong: load() will.
Task<Result<void>> LoggedTable::peek(std::string_view word) {
  auto file = co_await find_file();
  if (!file && file.error().code != Errc::not_found) co_return std::unexpected(file.error());
  CO_TRY_VAR(changes, co_await log_.read());
  const std::string text = file ? std::move(file->content) : std::string();
  const auto has_word = [word](std::string_view s) { return s.find(word) != s.npos; };
  if (!has_word(text) && std::ranges::none_of(changes, has_word)) co_return Result<void>{};
  if (file) CO_TRY(parse(text));
  replay(changes, store::first_change_since(changes, text, file && file->from_backup));
  co_return Result<void>{};
}

// The number of changes that were applied.
size_t LoggedTable::replay(const std::vector<std::string>& changes, size_t begin) {
  size_t applied = 0;
  for (size_t i = begin; i < changes.size(); i++)
    if (!changes[i].starts_with("J ") && apply(changes[i])) applied++;
  return applied;
}

Task<Result<void>> LoggedTable::begin_log(std::string_view file_text) {
  std::vector<std::string> changes;
  changes.push_back(line_of_file(file_text));
  std::move(since_.begin(), since_.end(), std::back_inserter(changes));
  since_.clear();
  folding_ = false;
  auto begun = co_await log_.replace(std::move(changes));
  full_ = !begun && begun.error().code == Errc::no_space;
  if (!begun) {
    touch();
    log(LogLevel::error, ids::config_file_unwritable, "cannot write a log of changes",
        {{"FILE", path() + ".log"}, {"REASON", to_string(begun.error())}});
  }
  co_return begun;
}

Task<void> LoggedTable::fold() {
  if (!dirty_) co_return;
  dirty_ = false;
  to_fold_.reset();
  const std::string text = render();
  folding_ = true;
  std::string line = line_of_file(text);
  uint64_t named = log_.add(line);
  for (std::string& change : beside_file()) {
    named = log_.add(change);
    since_.push_back(std::move(change));
  }
  co_await before_write(line);
  // When the log has failed, the file alone must do, and a log that is begun anew ends the failure.
  [[maybe_unused]] bool in_log = co_await log_.written(named);
  auto saved = co_await write(text);
  if (saved) {
    file_line_ = std::move(line);
    if (full_)
      log(LogLevel::notice, ids::config_file_written, "a configuration file is on disk again",
          {{"FILE", path()}});
    [[maybe_unused]] auto begun = co_await begin_log(text);
    co_return;
  }
  touch();  // said by write(); tried again at the next fold
  full_ = saved.error().code == Errc::no_space;
  folding_ = false;
  since_.clear();
}

Task<Result<void>> LoggedTable::kept(uint64_t change) {
  bool written = co_await log_.written(change);
  // On a full disk it is kept in memory until a fold can write it; the journal has it.
  const bool full = full_ || (log_.failed() && log_.error().code == Errc::no_space);
  if (!written && !full) co_return std::unexpected(log_.error());
  co_return Result<void>{};
}

void LoggedTable::note(std::string change) {
  touch();
  log_.add(change);
  if (folding_) since_.push_back(std::move(change));
}

std::string LoggedTable::front_of(char letter, const proto::DataVersion& v) {
  return fmt::format("{} {} {} ", letter, v.timestamp_ms, v.counter);
}

char LoggedTable::take_front(std::string_view& change, proto::DataVersion& v) {
  constexpr size_t letter_bytes = 2;
  if (change.size() <= letter_bytes || change[1] != ' ') return 0;
  const char *at = change.data() + letter_bytes, *const end = change.data() + change.size();
  proto::DataVersion next = v;
  for (int64_t* number : {&next.timestamp_ms, &next.counter}) {
    const auto [behind, wrong] = std::from_chars(at, end, *number);
    if (wrong != std::errc{} || behind == end || *behind != ' ') return 0;
    at = behind + 1;
  }
  const char letter = change[0];
  change.remove_prefix(static_cast<size_t>(at - change.data()));
  v = next;
  return letter;
}

Task<void> LoggedTable::close() {
  if (loaded_) co_await fold();
  co_await log_.close(loaded_ && !dirty_ && beside_file().empty());
}

}  // namespace rmq::broker

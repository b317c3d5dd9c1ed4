#include "daemon/broker/persisted_table.h"

#include "base/log.h"
#include "proto/fastjson.h"

namespace rmq::broker {

Task<Result<void>> PersistedTable::save() {
  uint64_t mine = ++wanted_;
  while (written_ < mine) {
    if (writing_) {
      co_await done_.wait();
      continue;
    }
    writing_ = true;
    uint64_t now = wanted_;
    auto r = co_await write(render());
    writing_ = false;
    const bool full = !r && r.error().code == Errc::no_space;
    unsaved_ = full || (unsaved_ && !r);
    if (r) written_ = now;
    done_.notify();
    if (full) co_return Result<void>{};
    if (!r) co_return r;
  }
  co_return Result<void>{};
}

Task<void> PersistedTable::save_again() {
  if (!unsaved_) co_return;
  auto saved = co_await save();
  if (saved && !unsaved_)
    log(LogLevel::notice, ids::config_file_written, "a configuration file is on disk again",
        {{"FILE", path_}});
}

Task<Result<void>> PersistedTable::write(std::string text) {
  auto r = co_await store::replace_file(disk_, path_, std::move(text));
  if (!r)
    log(LogLevel::error, ids::config_file_unwritable, "cannot write a configuration file",
        {{"FILE", path_}, {"REASON", to_string(r.error())}});
  co_return r;
}

static bool is_json(std::string_view text) {
  return proto::normalise_fastjson(text).has_value();
}

Task<Result<store::LoadedFile>> PersistedTable::find_file() {
  return store::load_file(disk_, path_, is_json);
}

Task<Result<std::optional<store::LoadedFile>>> PersistedTable::load_text() {
  auto file = co_await find_file();
  if (!file) {
    if (file.error().code == Errc::not_found) co_return std::optional<store::LoadedFile>{};
    co_return std::unexpected(file.error());
  }
  if (file->from_backup)
    log(LogLevel::error, ids::config_file_fallback,
        "a configuration file was missing or damaged, its backup was read: recent changes may be lost",
        {{"FILE", path_}});
  co_return std::optional<store::LoadedFile>(std::move(*file));
}

Task<Result<void>> PersistedTable::load() {
  CO_TRY_VAR(file, co_await load_text());
  if (!file) co_return Result<void>{};
  co_return parse(file->content);
}

}  // namespace rmq::broker

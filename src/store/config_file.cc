#include "store/config_file.h"
#include "store/blocks.h"
#include "store/whole_file.h"

#include <cerrno>
#include <utility>

namespace rmq::store {

namespace {

bool good(const std::string& content, bool (*valid)(std::string_view)) {
  return !content.empty() && (valid == nullptr || valid(content));
}

}  // namespace

Task<Result<void>> make_parent_dirs(Disk& disk, std::string path) {
  std::string above = parent_of(path);
  CO_TRY(co_await disk.make_dirs(above));
  while (above != "/" && above != ".") {  // any of them may be new
    above = parent_of(above);
    auto synced = co_await disk.sync_dir(above);
    if (!synced && synced.error().sys == EACCES) break;  // not one that we may have made
    CO_TRY(synced);
  }
  co_return Result<void>{};
}

Task<Result<void>> replace_file(Disk& disk, std::string path, std::string content) {
  std::string dir = parent_of(path);
  auto written = co_await write_whole(disk, path + ".tmp", content);
  if (!written && written.error().code == Errc::not_found) {  // the first file there
    CO_TRY(co_await make_parent_dirs(disk, path));
    written = co_await write_whole(disk, path + ".tmp", std::move(content));
  }
  if (!written) co_return written;
  auto kept = co_await disk.rename(path, path + ".bak");
  if (!kept && kept.error().code != Errc::not_found) co_return kept;
  CO_TRY(co_await disk.rename(path + ".tmp", path));
  co_return co_await disk.sync_dir(dir);
}

Task<Result<LoadedFile>> load_file(Disk& disk, std::string path, bool (*valid)(std::string_view)) {
  auto content = co_await read_whole(disk, path);
  bool missing = !content && content.error().code == Errc::not_found;
  if (!content && !missing) co_return std::unexpected(content.error());
  if (content && good(*content, valid)) co_return LoadedFile{std::move(*content), false};
  auto backup = co_await read_whole(disk, path + ".bak");
  bool no_backup = !backup && backup.error().code == Errc::not_found;
  if (!backup && !no_backup) co_return std::unexpected(backup.error());
  if (backup && good(*backup, valid)) co_return LoadedFile{std::move(*backup), true};
  if (missing && no_backup) co_return fail(Errc::not_found, "configuration file");
  co_return fail(Errc::corrupt, "configuration file");
}

}  // namespace rmq::store

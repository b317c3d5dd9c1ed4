#include "store/config_file.h"
#include "store/blocks.h"

#include <cerrno>
#include <utility>

namespace rmq::store {

namespace {

Task<Result<void>> write_whole(Disk& disk, std::string path, std::string content) {
  auto f = co_await disk.open(path, {.write = true, .create = true, .truncate = true});
  if (!f) co_return std::unexpected(f.error());
  iovec v{content.data(), content.size()};
  Result<void> r;
  if (!content.empty()) r = co_await (*f)->write(0, std::span(&v, 1), Durability::none);
  if (r) r = co_await (*f)->sync();
  co_await (*f)->close();
  co_return r;
}

Task<Result<std::string>> read_whole(Disk& disk, std::string path) {
  auto f = co_await disk.open(path, {});
  if (!f) co_return std::unexpected(f.error());
  std::string content;
  auto bytes = co_await (*f)->size();
  Result<size_t> n = size_t{0};
  if (bytes) {
    content.resize(*bytes);
    MutableBytes into(reinterpret_cast<std::byte*>(content.data()), content.size());
    n = co_await (*f)->read(0, into);
  }
  co_await (*f)->close();
  if (!bytes) co_return std::unexpected(bytes.error());
  if (!n) co_return std::unexpected(n.error());
  content.resize(*n);
  co_return content;
}

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

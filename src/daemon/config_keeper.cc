#include "daemon/config_keeper.h"

#include <algorithm>
#include <cerrno>

#include "daemon/config_table.h"
#include "store/config_file.h"
#include "store/whole_file.h"

namespace rmq {

namespace {

constexpr std::string_view own_file_heading =
    "# Settings that were changed while the daemon ran (mqadmin updateBrokerConfig, rmqctl broker config "
    "set).\n"
    "# They are read after the configuration file and win over it. Whoever moves them there may delete this\n"
    "# file.\n";

std::string with_settings(std::string text, const std::vector<ConfigKeeper::Setting>& settings) {
  for (const ConfigKeeper::Setting& s : settings) text = detail::with_toml_key(text, s.key, s.literal);
  return text;
}

bool may_not_write(const Error& e) {
  return e.sys == EROFS || e.sys == EACCES || e.sys == EPERM;
}

// A person's file is never away, not even for the moment of a crash; who could read it still can, and nobody
// else; and where a link leads to it, the link stays.
Task<Result<void>> replace(Disk& disk, std::string path, std::string text) {
  auto target = co_await disk.link_target(std::move(path));
  if (!target) co_return std::unexpected(target.error());
  path = std::move(*target);
  std::string next = path + ".tmp";
  auto written = co_await store::write_whole(disk, next, text, path);
  if (!written && written.error().code == Errc::not_found) {  // the first file there
    auto made = co_await store::make_parent_dirs(disk, path);
    if (!made) co_return made;
    written = co_await store::write_whole(disk, next, std::move(text), path);
  }
  if (!written) co_return written;
  auto renamed = co_await disk.rename(next, path);
  if (!renamed) co_return renamed;
  const size_t slash = path.rfind('/');
  std::string dir = ".";
  if (slash != std::string::npos) dir = path.substr(0, std::max<size_t>(slash, 1));
  co_return co_await disk.sync_dir(dir);
}

}  // namespace

Task<std::expected<std::string, std::string>> ConfigKeeper::text_of(std::string path) {
  if (path.empty()) co_return std::string();
  auto text = co_await store::read_whole(disk_, path);
  if (text) co_return std::move(*text);
  if (text.error().code == Errc::not_found) co_return std::string();
  co_return std::unexpected(path + " cannot be read: " + to_string(text.error()));
}

Task<std::expected<ConfigKeeper::Texts, std::string>> ConfigKeeper::read() {
  auto main_text = co_await text_of(main_file_);
  if (!main_text) co_return std::unexpected(std::move(main_text.error()));
  auto own_text = co_await text_of(own_file_);
  if (!own_text) co_return std::unexpected(std::move(own_text.error()));
  Texts texts{std::move(*main_text), std::move(*own_text)};
  co_return texts;
}

Task<std::expected<std::string, std::string>> ConfigKeeper::keep_one_by_one(
    const std::vector<Setting>& settings, const Check& check) {
  auto texts = co_await read();
  if (!texts) co_return std::unexpected(std::move(texts.error()));
  // What is in the file of its own wins, so there it goes once that file is there.
  bool own = main_file_.empty() || !texts->own.empty();
  for (;;) {
    const std::string& path = own ? own_file_ : main_file_;
    if (path.empty()) co_return std::unexpected(std::string("there is no configuration file"));
    std::string text = own ? texts->own : texts->main;
    if (own && text.empty()) text = own_file_heading;
    text = with_settings(std::move(text), settings);
    std::string wrong = own ? check(texts->main, text) : check(text, texts->own);
    if (!wrong.empty()) co_return std::unexpected(std::move(wrong));
    auto written = co_await replace(disk_, path, std::move(text));
    if (written) co_return path;
    if (own || own_file_.empty() || !may_not_write(written.error()))
      co_return std::unexpected(path + " cannot be written: " + to_string(written.error()));
    own = true;
  }
}

Task<std::expected<std::string, std::string>> ConfigKeeper::keep(std::vector<Setting> settings, Check check) {
  co_await one_.acquire();
  auto kept = co_await keep_one_by_one(settings, check);
  one_.release();
  co_return kept;
}

}  // namespace rmq

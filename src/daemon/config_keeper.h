// Changes of the configuration at run time, kept for the next start. They go into the configuration file,
// whose other lines and comments stay; where the daemon may not write that (a unit with a read-only /etc, as
// the package's), into a file of its own beside its state, which is read after the configuration file.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "uring/io.h"
#include "uring/sync.h"

namespace rmq {

class ConfigKeeper {
 public:
  // `main_file`: of the command line, empty for none. `own_file`: empty: changes that the main file cannot
  // take are not kept at all. `disk` must outlive it.
  ConfigKeeper(Disk& disk, std::string main_file, std::string own_file)
      : disk_(disk), main_file_(std::move(main_file)), own_file_(std::move(own_file)) {}

  struct Texts {
    std::string main, own;  // empty for a file that is not there
  };
  // Or why one of them cannot be read, for a person.
  Task<std::expected<Texts, std::string>> read();

  struct Setting {
    std::string key, literal;  // as TOML writes the value
  };
  // What both files would say; empty texts for files that are not there. The answer: what would be wrong with
  // it, empty for nothing.
  using Check = std::function<std::string(std::string_view main_text, std::string_view own_text)>;
  // The settings are on stable storage when it resolves; one call at a time works, others wait. The path of
  // the file that has them, or why they are not kept, for a person.
  Task<std::expected<std::string, std::string>> keep(std::vector<Setting> settings, Check check);

 private:
  Task<std::expected<std::string, std::string>> keep_one_by_one(const std::vector<Setting>& settings,
                                                                const Check& check);
  Task<std::expected<std::string, std::string>> text_of(std::string path);

  Disk& disk_;
  const std::string main_file_, own_file_;
  Semaphore one_{1};
};

}  // namespace rmq

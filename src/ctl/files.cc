#include "ctl/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace rmq::ctl {

Outcome<std::string> read_all(FILE* f, std::string_view name, size_t bytes_max) {
  std::string out;
  char buffer[64 << 10];
  while (size_t n = fread(buffer, 1, sizeof buffer, f)) {
    out.append(buffer, n);
    if (out.size() > bytes_max)
      return fail(Exit::bad_input, fmt::format("{} is larger than {} MiB", name, bytes_max >> 20));
  }
  if (ferror(f)) return fail(Exit::bad_input, fmt::format("cannot read {}: {}", name, strerror(errno)));
  return out;
}

Outcome<std::string> read_file(const std::string& path, size_t bytes_max) {
  FILE* f = fopen(path.c_str(), "re");
  if (!f) return fail(Exit::bad_input, fmt::format("cannot open {}: {}", path, strerror(errno)));
  auto out = read_all(f, path, bytes_max);
  fclose(f);
  return out;
}

Outcome<void> make_directory(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return fail(Exit::refused, fmt::format("cannot make directory {}: {}", path, failed.message()));
  return {};
}

Outcome<void> write_file(const std::string& path, std::string_view text) {
  const std::string under_way = path + ".tmp";
  FILE* f = fopen(under_way.c_str(), "we");
  bool good =
      f && fwrite(text.data(), 1, text.size(), f) == text.size() && fflush(f) == 0 && fsync(fileno(f)) == 0;
  int why = errno;
  if (f && fclose(f) != 0 && good) {
    good = false;
    why = errno;
  }
  if (good && rename(under_way.c_str(), path.c_str()) == 0) return {};
  if (good) why = errno;
  if (f) unlink(under_way.c_str());
  return fail(Exit::refused, fmt::format("cannot write {}: {}", path, strerror(why)));
}

}  // namespace rmq::ctl

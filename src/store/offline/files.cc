#include "store/offline/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "store/format.h"

namespace rmq::store::offline {

const char* name_of(Kind k) {
  switch (k) {
    case Kind::log_file:
      return "log_file";
    case Kind::log_record:
      return "log_record";
    case Kind::log_tail:
      return "log_tail";
    case Kind::queue_file:
      return "queue_file";
    case Kind::queue_order:
      return "queue_order";
    case Kind::unit_missing:
      return "unit_missing";
    case Kind::unit_wrong:
      return "unit_wrong";
    case Kind::unit_orphan:
      return "unit_orphan";
    case Kind::checkpoint:
      return "checkpoint";
    case Kind::index_file:
      return "index_file";
    case Kind::index_entry:
      return "index_entry";
    case Kind::config:
      return "config";
    case Kind::other:
      return "other";
  }
  return "";
}

// ---- findings ----------------------------------------------------------------------------------------

void Findings::add(Finding f) {
  uint64_t& n = counts_[{f.severity, f.kind}];
  if (n++ < kept_of_each_) kept_.push_back(std::move(f));
}

uint64_t Findings::count(Severity s, Kind k) const {
  auto it = counts_.find({s, k});
  return it == counts_.end() ? 0 : it->second;
}

uint64_t Findings::count(Severity s) const {
  uint64_t n = 0;
  for (const auto& [key, count] : counts_)
    if (key.first == s) n += count;
  return n;
}

// ---- reading -----------------------------------------------------------------------------------------

namespace {
std::unexpected<Error> failed(const char* where) {
  int e = errno;
  return std::unexpected(Error{e == ENOENT || e == ENOTDIR ? Errc::not_found : Errc::io, e, where});
}
}  // namespace

InFile::~InFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<InFile> InFile::open(const std::string& path) {
  InFile f;
  f.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (f.fd_ < 0) return failed("open");
  return f;
}

Result<size_t> InFile::read(uint64_t at, MutableBytes into) const {
  size_t done = 0;
  while (done < into.size()) {
    ssize_t n = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void InFile::will_need(uint64_t at, uint64_t bytes) const {
  ::posix_fadvise(fd_, static_cast<off_t>(at), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

std::optional<uint64_t> InFile::next_data(uint64_t at) const {
  off_t found = ::lseek(fd_, static_cast<off_t>(at), SEEK_DATA);
  if (found < 0) return errno == ENXIO ? std::nullopt : std::optional(at);
  return static_cast<uint64_t>(found);
}

bool all_zero(Bytes b) {
  return b.empty() || (b[0] == std::byte{0} && std::memcmp(b.data(), b.data() + 1, b.size() - 1) == 0);
}

Result<std::vector<Entry>> list_dir(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (dir == nullptr) return failed("list a directory");
  std::vector<Entry> out;
  for (;;) {
    errno = 0;
    const dirent* e = ::readdir(dir.get());
    if (e == nullptr && errno != 0) return failed("list a directory");
    if (e == nullptr) break;
    Entry entry{e->d_name, e->d_type == DT_DIR, 0};
    if (entry.name == "." || entry.name == "..") continue;
    struct stat s{};
    if (!entry.is_dir && ::fstatat(::dirfd(dir.get()), e->d_name, &s, 0) == 0) {
      entry.is_dir = S_ISDIR(s.st_mode);
      entry.bytes = static_cast<uint64_t>(s.st_size);
    }
    out.push_back(std::move(entry));
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return out;
}

Result<std::string> read_small_file(const std::string& path, size_t bytes_max) {
  TRY_VAR(file, InFile::open(path));
  struct stat s{};
  if (::fstat(file.fd(), &s) != 0) return failed("stat");
  if (static_cast<uint64_t>(s.st_size) > bytes_max) return fail(Errc::limit, "file size");
  std::string out(static_cast<size_t>(s.st_size), '\0');
  TRY_VAR(n, file.read(0, {reinterpret_cast<std::byte*>(out.data()), out.size()}));
  out.resize(n);
  return out;
}

Result<SharedLock> SharedLock::take(const std::string& root) {
  SharedLock out;
  auto file = InFile::open(root + "/lock");
  if (!file && file.error().code == Errc::not_found) return out;
  if (!file) return std::unexpected(file.error());
  struct flock l{};
  l.l_type = F_RDLCK;
  l.l_whence = SEEK_SET;
  // An open file description lock, as rmqd's: closing another descriptor of the file does not lose it.
  if (::fcntl(file->fd(), F_OFD_SETLK, &l) != 0) {
    if (errno == EAGAIN || errno == EACCES) return fail(Errc::exists, "lock", errno);
    if (errno != ENOLCK && errno != EINVAL) return failed("lock");
  }
  out.file_ = std::move(*file);
  return out;
}

// ---- foreign stores ----------------------------------------------------------------------------------

namespace {

bool holds_rocksdb(const std::string& dir) {
  return ::access((dir + "/" + std::string(rocksdb_file)).c_str(), F_OK) == 0;
}

}  // namespace

Result<void> refuse_foreign_store(const std::string& root) {
  TRY_VAR(entries, list_dir(root));
  for (const Entry& e : entries)
    if (e.is_dir && is_dledger_dir(e.name)) return fail(Errc::unsupported, dledger_reason);
  for (std::string_view dir : rocksdb_queue_dirs)
    if (holds_rocksdb(root + "/" + std::string(dir))) return fail(Errc::unsupported, rocksdb_queues_reason);
  if (auto configs = list_dir(root + "/config"); configs) {
    for (const Entry& e : *configs)
      if (e.is_dir && may_hold_rocksdb_config(e.name) && holds_rocksdb(root + "/config/" + e.name))
        return fail(Errc::unsupported, rocksdb_config_reason);
  }
  auto checkpoint = read_small_file(root + "/rmqd.checkpoint", 1 << 20);
  Bytes rest = checkpoint ? as_bytes(*checkpoint) : Bytes();
  for (; rest.size() >= own_checkpoint_slot_bytes; rest = rest.subspan(own_checkpoint_slot_bytes))
    if (is_later_checkpoint(rest.first(own_checkpoint_slot_bytes)))
      return fail(Errc::unsupported, later_version_reason);
  return {};
}

}  // namespace rmq::store::offline

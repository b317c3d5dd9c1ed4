#include "uring/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "uring/iov.h"
#include "uring/offload.h"

namespace rmq {

namespace {

constexpr mode_t file_mode = 0640;
constexpr mode_t dir_mode = 0750;
constexpr size_t bytes_per_op_max = size_t{1} << 30;  // the kernel stops short of 2 GiB

// The kernel asks for the same again; nothing was done.
bool again(int32_t result) {
  return result == -EINTR || result == -EAGAIN;
}

class TruncateJob final : public Offload::Job {
 public:
  TruncateJob(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  void work() override {
    do error = ::ftruncate(fd_, static_cast<off_t>(bytes_)) == 0 ? 0 : errno;
    while (error == EINTR);
  }
  int error = 0;

 private:
  int fd_;
  uint64_t bytes_;
};

class ListJob final : public Offload::Job {
 public:
  explicit ListJob(std::string path) : path_(std::move(path)) {}
  void work() override {
    DIR* d = ::opendir(path_.c_str());
    if (d == nullptr) {
      error = errno;
      return;
    }
    for (;;) {
      errno = 0;
      dirent* e = ::readdir(d);
      if (e == nullptr) {
        error = errno;
        break;
      }
      std::string_view name = e->d_name;
      if (name == "." || name == "..") continue;
      struct stat st{};
      if (::fstatat(dirfd(d), e->d_name, &st, 0) != 0) continue;  // gone since, or a dangling link
      bool is_dir = S_ISDIR(st.st_mode);
      entries.push_back({std::string(name), is_dir, is_dir ? 0 : static_cast<uint64_t>(st.st_size)});
    }
    ::closedir(d);
    std::sort(entries.begin(), entries.end(),
              [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  }
  int error = 0;
  std::vector<DirEntry> entries;

 private:
  std::string path_;
};

// The nearest directory above `path` that is the root of a mount; `path` itself where that cannot be told.
std::string mount_point_of(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string at(real);
  ::free(real);
  for (;;) {
    struct statx st{};
    if (::statx(AT_FDCWD, at.c_str(), 0, STATX_TYPE, &st) != 0) return path;
    if ((st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 || at == "/") return at;
    const size_t slash = at.rfind('/');
    at.resize(slash == 0 ? 1 : slash);
  }
}

class SpaceJob final : public Offload::Job {
 public:
  explicit SpaceJob(std::string path) : path_(std::move(path)) {}
  void work() override {
    struct statvfs s{};
    if (::statvfs(path_.c_str(), &s) != 0) {
      error = errno;
      return;
    }
    // As df does: what is kept for root counts neither as used nor as free.
    space.total_bytes = (uint64_t{s.f_blocks} - s.f_bfree + s.f_bavail) * s.f_frsize;
    space.free_bytes = uint64_t{s.f_bavail} * s.f_frsize;
    space.mount_point = mount_point_of(path_);
  }
  int error = 0;
  DiskSpace space;

 private:
  std::string path_;
};

class SyncAllJob final : public Offload::Job {
 public:
  explicit SyncAllJob(std::string path) : path_(std::move(path)) {}
  void work() override {
    int fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
      error = errno;
      return;
    }
    error = ::syncfs(fd) == 0 ? 0 : errno;
    ::close(fd);
  }
  int error = 0;

 private:
  std::string path_;
};

class LinkJob final : public Offload::Job {
 public:
  explicit LinkJob(std::string link) : path(std::move(link)) {}
  void work() override {
    for (int left = links_max; left > 0; left--) {
      char target[PATH_MAX];
      const ssize_t n = ::readlink(path.c_str(), target, sizeof target);
      if (n < 0) {
        // EINVAL: it is no link. Of what is not there whoever opens it hears.
        error = errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
        return;
      }
      const std::string_view to(target, static_cast<size_t>(n));
      const size_t dir_bytes = to.starts_with('/') ? 0 : path.rfind('/') + 1;  // npos + 1 is 0
      path.resize(dir_bytes);
      path += to;
    }
    error = ELOOP;
  }
  int error = 0;
  std::string path;

 private:
  static constexpr int links_max = 40;  // as the kernel follows
};

class AccessJob final : public Offload::Job {
 public:
  AccessJob(int fd, std::string from) : fd_(fd), from_(std::move(from)) {}
  void work() override {
    struct stat st{};
    if (::stat(from_.c_str(), &st) != 0) {
      error = errno;
      return;
    }
    const mode_t mode = st.st_mode & 0777;
    // Before the owner: of another's file we may not change the mode.
    error = ::fchmod(fd_, mode) == 0 ? 0 : errno;
    if (error != 0 || ::fchown(fd_, st.st_uid, st.st_gid) == 0) return;
    if (::fchown(fd_, static_cast<uid_t>(-1), st.st_gid) == 0) return;
    // A filter of system calls (our units have one) forbids even what changes nothing.
    struct stat ours{};
    if (::fstat(fd_, &ours) == 0 && ours.st_gid == st.st_gid) return;
    const mode_t as_others = (mode & S_IRWXO) << 3 | static_cast<mode_t>(~S_IRWXG);
    error = ::fchmod(fd_, mode & as_others) == 0 ? 0 : errno;
  }
  int error = 0;

 private:
  int fd_;
  std::string from_;
};

class UringFile final : public File {
 public:
  UringFile(Ring& ring, int fd, bool direct) : ring_(ring), fd_(fd), direct_(direct) {}
  ~UringFile() override {
    if (fd_ >= 0) ring_.close_fd(fd_);
  }

  Task<Result<size_t>> read(uint64_t offset, MutableBytes into) override;
  Task<Result<void>> write(uint64_t offset, std::span<const iovec> from, Durability d) override;
  Task<Result<void>> sync() override;
  Task<Result<void>> allocate(uint64_t offset, uint64_t bytes) override;
  Task<Result<void>> truncate(uint64_t bytes) override;
  Task<Result<uint64_t>> size() override;
  Task<Result<void>> lock() override;
  Task<Result<void>> take_access_of(std::string path) override;
  Task<void> close() override;

 private:
  Ring& ring_;
  int fd_;
  bool direct_;
};

Task<Result<size_t>> UringFile::read(uint64_t offset, MutableBytes into) {
  size_t done = 0;
  while (done < into.size()) {
    size_t want = std::min(into.size() - done, bytes_per_op_max);
    Op op;
    io_uring_prep_read(op.sqe(), fd_, into.data() + done, static_cast<unsigned>(want), offset + done);
    int32_t n = co_await op;
    if (again(n)) continue;
    if (n < 0) co_return fail_errno(n, "read");
    done += static_cast<size_t>(n);
    if (n == 0) break;
    // The end of a file that is no multiple of a block: going on from there would be refused.
    if (direct_ && static_cast<size_t>(n) % disk_block_bytes != 0) break;
  }
  co_return done;
}

Task<Result<void>> UringFile::write(uint64_t offset, std::span<const iovec> from, Durability d) {
  IovCursor left(from);
  while (!left.empty()) {
    std::span<const iovec> next = left.next();
    Op op;
    io_uring_prep_writev2(op.sqe(), fd_, next.data(), static_cast<unsigned>(next.size()), offset,
                          d == Durability::on_media ? RWF_DSYNC : 0);
    int32_t n = co_await op;
    if (again(n)) continue;
    if (n < 0) co_return fail_errno(n, "write");
    if (n == 0) co_return fail_errno(EIO, "write wrote nothing");
    left.advance(static_cast<size_t>(n));
    offset += static_cast<size_t>(n);
    bool aligned = static_cast<size_t>(n) % disk_block_bytes == 0;
    if (direct_ && !aligned && !left.empty()) co_return fail_errno(EIO, "write stopped inside a block");
  }
  co_return Result<void>();
}

Task<Result<void>> UringFile::sync() {
  for (;;) {
    Op op;
    io_uring_prep_fsync(op.sqe(), fd_, IORING_FSYNC_DATASYNC);
    int32_t r = co_await op;
    if (again(r)) continue;  // not begun: a failed sync says EIO or ENOSPC
    if (r < 0) co_return fail_errno(r, "fdatasync");
    co_return Result<void>();
  }
}

Task<Result<void>> UringFile::allocate(uint64_t offset, uint64_t bytes) {
  for (;;) {
    Op op;
    io_uring_prep_fallocate(op.sqe(), fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    int32_t r = co_await op;
    if (again(r)) continue;
    if (r < 0) co_return fail_errno(r, "fallocate");
    co_return Result<void>();
  }
}

Task<Result<void>> UringFile::truncate(uint64_t bytes) {
  auto job = std::make_shared<TruncateJob>(fd_, bytes);
  bool ran = co_await ring_.offload().run(job);
  if (!ran) co_return fail(Errc::limit, "ftruncate: too many jobs");
  if (job->error != 0) co_return fail_errno(job->error, "ftruncate");
  co_return Result<void>();
}

Task<Result<uint64_t>> UringFile::size() {
  for (;;) {
    struct statx st{};
    Op op;
    io_uring_prep_statx(op.sqe(), fd_, "", AT_EMPTY_PATH, STATX_SIZE, &st);
    int32_t r = co_await op;
    if (again(r)) continue;
    if (r < 0) co_return fail_errno(r, "statx");
    co_return uint64_t{st.stx_size};
  }
}

// An open file description lock: it conflicts with the POSIX locks of others, and closing another
// descriptor of the same file does not lose it. It does not block, so it needs no ring.
Task<Result<void>> UringFile::lock() {
  struct flock l{};
  l.l_type = F_WRLCK;
  l.l_whence = SEEK_SET;
  if (::fcntl(fd_, F_OFD_SETLK, &l) == 0) co_return Result<void>();
  if (errno == EAGAIN || errno == EACCES) co_return fail(Errc::exists, "file lock", errno);
  if (errno == ENOLCK || errno == EINVAL) co_return fail(Errc::unsupported, "file lock", errno);
  co_return fail_errno(errno, "file lock");
}

Task<Result<void>> UringFile::take_access_of(std::string path) {
  auto job = std::make_shared<AccessJob>(fd_, std::move(path));
  bool ran = co_await ring_.offload().run(job);
  if (!ran) co_return fail(Errc::limit, "fchmod: too many jobs");
  if (job->error != 0) co_return fail_errno(job->error, "fchmod");
  co_return Result<void>();
}

Task<void> UringFile::close() {
  if (fd_ < 0) co_return;
  Op op;
  io_uring_prep_close(op.sqe(), std::exchange(fd_, -1));
  co_await op;
}

Task<Result<int>> open_fd(std::string path, int flags, const char* where) {
  for (;;) {
    Op op;
    io_uring_prep_openat(op.sqe(), AT_FDCWD, path.c_str(), flags | O_CLOEXEC, file_mode);
    int32_t fd = co_await op;
    if (again(fd)) continue;
    if (fd < 0) co_return fail_errno(fd, where);
    co_return int{fd};
  }
}

// One component. An existing one is fine if it is a directory.
Task<Result<void>> make_dir(std::string path) {
  Op op;
  io_uring_prep_mkdirat(op.sqe(), AT_FDCWD, path.c_str(), dir_mode);
  int32_t r = co_await op;
  if (r >= 0) co_return Result<void>();
  if (r != -EEXIST) co_return fail_errno(r, "mkdir");
  struct statx st{};
  Op look;
  io_uring_prep_statx(look.sqe(), AT_FDCWD, path.c_str(), 0, STATX_TYPE, &st);
  int32_t seen = co_await look;
  if (seen < 0) co_return fail_errno(seen, "mkdir");
  if (!S_ISDIR(st.stx_mode)) co_return fail_errno(ENOTDIR, "mkdir");
  co_return Result<void>();
}

}  // namespace

Task<Result<std::unique_ptr<File>>> UringDisk::open(std::string path, OpenHow how) {
  int flags = how.write ? O_RDWR : O_RDONLY;
  if (how.create) flags |= O_CREAT;
  if (how.create && how.exclusive) flags |= O_EXCL;
  if (how.truncate) flags |= O_TRUNC;
  if (how.direct) flags |= O_DIRECT;
  Result<int> fd = co_await open_fd(std::move(path), flags, "open");
  if (!fd) {
    bool no_direct = how.direct && fd.error().sys == EINVAL;
    if (no_direct) co_return fail(Errc::unsupported, "open with O_DIRECT", EINVAL);
    co_return std::unexpected(fd.error());
  }
  std::unique_ptr<File> file = std::make_unique<UringFile>(ring_, *fd, how.direct);
  co_return file;
}

// Most are there: up only as far as one is missing, then down again.
Task<Result<void>> UringDisk::make_dirs(std::string path) {
  size_t end = path.size();
  for (bool down = false;;) {
    Result<void> made = co_await make_dir(path.substr(0, end));
    if (made && end == path.size()) co_return made;
    if (made) {
      down = true;
      end = std::min(path.find('/', end + 1), path.size());
      continue;
    }
    size_t above = path.rfind('/', end - 1);
    bool has_above = above != std::string::npos && above != 0;
    if (made.error().code != Errc::not_found || down || !has_above) co_return made;
    end = above;
  }
}

Task<Result<std::vector<DirEntry>>> UringDisk::list(std::string path) {
  auto job = std::make_shared<ListJob>(std::move(path));
  bool ran = co_await ring_.offload().run(job);
  if (!ran) co_return fail(Errc::limit, "list: too many jobs");
  if (job->error != 0) co_return fail_errno(job->error, "list");
  co_return std::move(job->entries);
}

Task<Result<void>> UringDisk::remove(std::string path) {
  int flags = 0;
  for (;;) {
    Op op;
    io_uring_prep_unlinkat(op.sqe(), AT_FDCWD, path.c_str(), flags);
    int32_t r = co_await op;
    if (again(r)) continue;
    if (r == -EISDIR && flags == 0) {
      flags = AT_REMOVEDIR;
      continue;
    }
    if (r < 0) co_return fail_errno(r, "remove");
    co_return Result<void>();
  }
}

Task<Result<void>> UringDisk::rename(std::string from, std::string to) {
  for (;;) {
    Op op;
    io_uring_prep_renameat(op.sqe(), AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0);
    int32_t r = co_await op;
    if (again(r)) continue;
    if (r < 0) co_return fail_errno(r, "rename");
    co_return Result<void>();
  }
}

Task<Result<void>> UringDisk::sync_dir(std::string path) {
  Result<int> fd = co_await open_fd(std::move(path), O_RDONLY | O_DIRECTORY, "open a directory");
  if (!fd) co_return std::unexpected(fd.error());
  int32_t r = -EINTR;
  while (again(r)) {
    Op op;
    io_uring_prep_fsync(op.sqe(), *fd, 0);
    r = co_await op;
  }
  Op close;
  io_uring_prep_close(close.sqe(), *fd);
  co_await close;
  if (r < 0) co_return fail_errno(r, "fsync of a directory");
  co_return Result<void>();
}

Task<Result<std::string>> UringDisk::link_target(std::string path) {
  auto job = std::make_shared<LinkJob>(std::move(path));
  bool ran = co_await ring_.offload().run(job);
  if (!ran) co_return fail(Errc::limit, "readlink: too many jobs");
  if (job->error != 0) co_return fail_errno(job->error, "readlink");
  co_return std::move(job->path);
}

Task<Result<void>> UringDisk::sync_all(std::string path) {
  auto job = std::make_shared<SyncAllJob>(std::move(path));
  bool ran = co_await ring_.offload().run(job);
  if (!ran) co_return fail(Errc::limit, "syncfs: too many jobs");
  if (job->error != 0) co_return fail_errno(job->error, "syncfs");
  co_return Result<void>();
}

Task<Result<DiskSpace>> UringDisk::space(std::string path) {
  auto job = std::make_shared<SpaceJob>(std::move(path));
  bool ran = co_await ring_.offload().run(job);
  if (!ran) co_return fail(Errc::limit, "statvfs: too many jobs");
  if (job->error != 0) co_return fail_errno(job->error, "statvfs");
  co_return job->space;
}

}  // namespace rmq

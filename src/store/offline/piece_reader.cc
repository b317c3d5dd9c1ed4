#include "store/offline/piece_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/check.h"
#include "store/offline/log_scan.h"

namespace rmq::store::offline {

namespace {
constexpr size_t block_bytes = 4096;
size_t whole_blocks(size_t bytes) {
  return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}
}  // namespace

// One file, as one thread has it open.
struct PieceReader::Source {
  ~Source() { close(); }
  void close() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  int open(bool past_cache) {
    close();
    direct = past_cache;
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
    if (fd < 0 && direct && errno == EINVAL) return open(false);
    return fd < 0 ? errno : 0;
  }
  std::string path;
  int fd = -1;
  bool direct = false;
};

PieceReader::PieceReader(const LogDir& dir, uint64_t from) : dir_(dir) {
  const LogFile* f = dir.find(from);
  check(f != nullptr);
  check((from - f->base) % block_bytes == 0);
  next_file_ = static_cast<size_t>(f - dir.files.data());
  next_at_ = from - f->base;
  for (Slot& s : slots_) {
    s.memory = static_cast<std::byte*>(std::aligned_alloc(block_bytes, slack_bytes + piece_bytes));
    check(s.memory != nullptr);
  }
  for (size_t i = 0; i < readers; i++) threads_.emplace_back([this] { run(); });
}

PieceReader::~PieceReader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  free_.notify_all();
  for (std::thread& t : threads_) t.join();
  for (Slot& s : slots_) std::free(s.memory);
}

// The next piece that nobody reads; false: there is none, or nobody wants it. With the lock.
bool PieceReader::claim(uint64_t& number, size_t& file) {
  while (next_file_ < dir_.files.size() && next_at_ >= dir_.files[next_file_].bytes) {
    next_file_++;
    next_at_ = 0;
  }
  if (stop_ || next_file_ == dir_.files.size()) return false;
  const LogFile& f = dir_.files[next_file_];
  number = asked_++;
  file = next_file_;
  Slot& s = slots_[number % slots];
  s.begin = f.base + next_at_;
  s.bytes = std::min<uint64_t>(piece_bytes, f.bytes - next_at_);
  s.error = 0;
  s.ready = false;
  next_at_ += s.bytes;
  return true;
}

int PieceReader::read(Source& s, uint64_t at, std::byte* to, size_t& bytes) {
  const size_t want = s.direct ? whole_blocks(bytes) : bytes;
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(s.fd, to + done, want - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && s.direct) {  // this file system cannot after all
      if (int error = s.open(false); error != 0) return error;
      return read(s, at, to, bytes);
    }
    if (n < 0) return errno;
    if (n == 0) break;
    done += static_cast<size_t>(n);
    if (s.direct && done % block_bytes != 0) break;  // the file's end
  }
  bytes = std::min(bytes, done);
  return 0;
}

void PieceReader::run() {
  Source source;
  size_t open_file = SIZE_MAX;
  std::unique_lock lock(mutex_);
  for (;;) {
    // The slot of the piece that was taken last is still looked at.
    free_.wait(lock, [this] { return stop_ || asked_ + 1 < std::max<uint64_t>(taken_, 1) + slots; });
    uint64_t number = 0;
    size_t file = 0;
    bool any = claim(number, file);
    if (!any) break;
    Slot& s = slots_[number % slots];
    lock.unlock();
    int error = 0;
    if (file != open_file) {
      source.path = dir_.path + "/" + dir_.files[file].name;
      error = source.open(true);
      open_file = file;
    }
    size_t bytes = s.bytes;
    if (error == 0) error = read(source, s.begin - dir_.files[file].base, s.memory + slack_bytes, bytes);
    lock.lock();
    s.bytes = error == 0 ? bytes : 0;
    s.error = error;
    s.ready = true;
    ready_.notify_one();
  }
  ready_.notify_one();
}

Result<PieceReader::Piece> PieceReader::front() {
  std::unique_lock lock(mutex_);
  Slot& s = slots_[taken_ % slots];
  auto ended = [this] {
    size_t file = next_file_;
    uint64_t at = next_at_;
    while (file < dir_.files.size() && at >= dir_.files[file].bytes) file++, at = 0;
    return file == dir_.files.size();
  };
  ready_.wait(lock, [&] { return (taken_ < asked_ && s.ready) || (taken_ == asked_ && ended()); });
  if (taken_ == asked_) return Piece{};
  if (s.error != 0) return std::unexpected(Error{Errc::io, s.error, "read"});
  return Piece{s.begin, {s.memory + slack_bytes, s.bytes}};
}

void PieceReader::pop() {
  {
    std::lock_guard lock(mutex_);
    taken_++;
  }
  free_.notify_all();
}

}  // namespace rmq::store::offline

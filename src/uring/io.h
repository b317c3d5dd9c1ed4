// The seam. Store and connections see only these interfaces; io_uring implements them (disk.cc, net.cc)
// and so does the simulator (tests/sim). Clock and Random are in loop.h.
//
// Every Task here belongs to the loop of the object's thread. Memory that is handed to a call must stay
// until the call resolves: the kernel owns it until then, also when somebody wants to stop.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "uring/task.h"

namespace rmq {

inline constexpr size_t disk_block_bytes = 4096;  // O_DIRECT: offset, length and memory are multiples of it

struct OpenHow {
  bool write = false;
  bool create = false;
  bool exclusive = false;  // with create: fails with Errc::exists
  bool truncate = false;
  bool direct = false;  // O_DIRECT; a file system without it gives Errc::unsupported
};

enum class Durability : uint8_t {
  none,      // in the page cache or the device's cache
  on_media,  // RWF_DSYNC: on stable storage when it resolves
};

// An open file. Destroying it without close() closes it behind the scenes, errors unseen.
class File {
 public:
  virtual ~File() = default;
  // Fills `into` from `offset`; the count is short only at the end of the file.
  virtual Task<Result<size_t>> read(uint64_t offset, MutableBytes into) = 0;
  // Writes all, or fails. After a failure the file's content in that range is unknown: never retry.
  virtual Task<Result<void>> write(uint64_t offset, std::span<const iovec> from, Durability d) = 0;
  virtual Task<Result<void>> sync() = 0;  // fdatasync. A failure is final, as for write.
  // Reserves [offset, offset+bytes) and makes the file at least that long (fallocate).
  virtual Task<Result<void>> allocate(uint64_t offset, uint64_t bytes) = 0;
  virtual Task<Result<void>> truncate(uint64_t bytes) = 0;
  virtual Task<Result<uint64_t>> size() = 0;
  // Takes the file for this process until it is closed; also keeps out holders of fcntl locks (Java's
  // FileLock). Never waits: Errc::exists when somebody else has it, Errc::unsupported without locks.
  virtual Task<Result<void>> lock() { co_return fail(Errc::unsupported, "file locks"); }
  // Gives it the mode of the file at `path`, and that one's owner and group as far as we may. Without the
  // group, that group's rights are those of others: nobody gets any by it. Errc::unsupported without modes.
  virtual Task<Result<void>> take_access_of(std::string path) {
    co_return fail(Errc::unsupported, "modes of files");
  }
  virtual Task<void> close() = 0;
};

struct DirEntry {
  std::string name;
  bool is_dir = false;
  uint64_t bytes = 0;
};

struct DiskSpace {
  uint64_t total_bytes = 0;  // used and free
  uint64_t free_bytes = 0;   // for us (f_bavail)
  std::string mount_point;   // where its file system is mounted
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual Task<Result<std::unique_ptr<File>>> open(std::string path, OpenHow how) = 0;
  virtual Task<Result<void>> make_dirs(std::string path) = 0;  // all missing parts; fine when it exists
  virtual Task<Result<std::vector<DirEntry>>> list(std::string path) = 0;   // sorted by name
  virtual Task<Result<void>> remove(std::string path) = 0;                  // a file or an empty directory
  virtual Task<Result<void>> rename(std::string from, std::string to) = 0;  // replaces `to`
  virtual Task<Result<void>> sync_dir(std::string path) = 0;
  // Where `path` leads when its last part is a symbolic link, or a chain of them: what rename() must replace
  // for the link to stay. Else `path` itself, also when nothing is there.
  virtual Task<Result<std::string>> link_target(std::string path) { co_return path; }
  // Everything that was written to the file system of `path` before is on stable storage when it resolves,
  // contents and names (syncfs): for many files at once. A failure is final, as for File::sync().
  // Errc::unsupported: sync them one by one.
  virtual Task<Result<void>> sync_all(std::string path) { co_return fail(Errc::unsupported, "syncfs"); }
  virtual Task<Result<DiskSpace>> space(std::string path) = 0;
};

// An IPv4 or IPv6 address with port, as RocketMQ's records hold it.
struct Address {
  bool v6 = false;
  uint16_t port = 0;
  unsigned char ip[16] = {};  // v4: the first four

  std::string ip_text() const;
  std::string text() const;  // "1.2.3.4:10911", "[::1]:10911"
  static Result<Address> parse(std::string_view ip_and_port);
  bool operator==(const Address&) const = default;
};

// Bytes that were received; gives them back to where they came from when it dies.
class RecvBuffer {
 public:
  using Release = void (*)(void* owner, uint32_t id);
  RecvBuffer() = default;
  RecvBuffer(Bytes b, Release r, void* owner, uint32_t id) : bytes_(b), release_(r), owner_(owner), id_(id) {}
  RecvBuffer(RecvBuffer&& o) noexcept { swap(o); }
  RecvBuffer& operator=(RecvBuffer&& o) noexcept {
    RecvBuffer t(std::move(o));
    swap(t);
    return *this;
  }
  ~RecvBuffer() {
    if (release_ != nullptr) release_(owner_, id_);
  }
  Bytes bytes() const { return bytes_; }

 private:
  void swap(RecvBuffer& o) noexcept {
    std::swap(bytes_, o.bytes_);
    std::swap(release_, o.release_);
    std::swap(owner_, o.owner_);
    std::swap(id_, o.id_);
  }
  Bytes bytes_;
  Release release_ = nullptr;
  void* owner_ = nullptr;
  uint32_t id_ = 0;
};

// A connected TCP stream. One reader and one writer at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  // At least one byte. The peer's end, our close() and errors are Errc::closed or Errc::io.
  // `deadline_ns`: Errc::timeout when nothing came until then.
  virtual Task<Result<RecvBuffer>> recv(int64_t deadline_ns) = 0;
  // All of it, or an error after which the stream is dead.
  virtual Task<Result<void>> send(std::span<const iovec> from) = 0;
  // Ends both directions: whoever waits in recv or send gets Errc::closed. Any number of times.
  virtual void close() = 0;
  // Resolves when the kernel holds nothing of this stream any more. Await before destroying.
  virtual Task<void> closed() = 0;
  virtual const Address& peer() const = 0;
  virtual const Address& local() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // Connections are refused until then; accept() comes after it. Call it once.
  virtual Result<void> listen() = 0;
  virtual Task<Result<std::unique_ptr<Stream>>> accept() = 0;
  virtual void close() = 0;         // accept gives Errc::closed
  virtual Task<void> closed() = 0;  // as Stream::closed
  virtual const Address& local() const = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  // Takes an address: nobody else gets it, and connections to it are refused until Listener::listen(). An
  // error when somebody has it. `host` is an address, or empty or "0.0.0.0" for all. Port 0 takes a free one,
  // which is kept only from listen() on. Connections of before, of another process too, do not keep us from
  // an address.
  virtual Task<Result<std::unique_ptr<Listener>>> bind(std::string host, uint16_t port) = 0;
  // Both at once.
  Task<Result<std::unique_ptr<Listener>>> listen(std::string host, uint16_t port);
  // `host` may be a name: it is resolved off the loop.
  virtual Task<Result<std::unique_ptr<Stream>>> connect(std::string host, uint16_t port,
                                                        int64_t deadline_ns) = 0;
};

}  // namespace rmq

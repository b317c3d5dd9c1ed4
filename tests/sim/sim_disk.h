// SimDisk: a disk in memory that forgets. What was written but not synced waits in a list; a crash decides
// for each block whether it is kept, lost, torn by sector or garbage, and which creations, renames, removals
// and size changes of unsynced directories and files come back. The outcome is a DiskImage, from which the
// next SimDisk starts.
//
// Crash: at the planned point (they are counted: begin and end of every operation that changes something)
// the disk freezes. Whatever is in flight or comes later fails with EIO and changes nothing, so the program
// winds down by its ordinary error paths and all its frames and memory are freed; nothing it does after the
// freeze can reach the image. A harness must not take for acknowledged what resolves while crashed(). From
// one frozen disk any number of images can be made, one per CrashFate.
//
// What a crash may do, and may not:
// - A write with Durability::on_media is on media when it has resolved, with the file at least long enough
//   for it. While in flight it may be kept, lost, torn or garbage, as every unsynced write.
// - sync() covers writes that resolved before it was called. A failed sync drops a part of what it should
//   have saved for ever, while reads still see it (the page cache calls it clean): never retry.
// - Sectors are 512 bytes and never mix two versions. Garbage replaces only bytes that some unsynced write
//   would have changed: a sector that is rewritten with the same bytes keeps them, and so do the equal bytes
//   of a sector that changes in part. Disks work so in practice (a sector is old or new; garbage stands
//   for stale or misdirected data of blocks that were never durable). CrashFate::harsh drops this promise.
// - Directory changes are atomic each (a rename is one), and may be lost in any combination, only those of
//   one file keep their order.
//
// Misuse the kernel would punish (alignment of O_DIRECT, a buffer that changes or a file that is closed
// under way) is collected in violations(): a test asserts that it is empty.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/sim_loop.h"
#include "uring/io.h"

namespace rmq::sim {

inline constexpr size_t sector_bytes = 512;

// Bytes of a file, sparse, sharing blocks with its copies.
class Content {
 public:
  uint64_t bytes() const { return bytes_; }
  void read(uint64_t offset, MutableBytes into) const;  // zeros where nothing is
  void write(uint64_t offset, Bytes from);              // grows when needed
  void resize(uint64_t bytes);
  uint64_t hash() const;

 private:
  using Block = std::array<std::byte, disk_block_bytes>;
  std::map<uint64_t, std::shared_ptr<Block>> blocks_;
  uint64_t bytes_ = 0;
};

struct Node;
using NodePtr = std::shared_ptr<Node>;

// A change that is not durable yet. Completed ones come first, in the order of completion.
struct Unsynced {
  enum class Kind : uint8_t { data, grow, truncate };
  Kind kind = Kind::data;
  uint64_t id = 0;
  uint64_t completed = 0;  // a stamp that grows with each completion; 0: in flight
  uint64_t offset = 0;     // grow, truncate: the new size
  std::vector<std::byte> data;
};

struct Node {
  bool is_dir = false;
  // A file: what reads see, what is on media, and the difference.
  Content visible, durable;
  std::vector<Unsynced> unsynced;
  // A directory: what lookups see, and what is on media.
  std::map<std::string, NodePtr> entries, durable_entries;
};

struct DirChange {
  NodePtr dir;
  std::string name;
  NodePtr target;  // null: the name goes
};
struct DirOp {
  uint64_t id = 0;
  NodePtr subject;  // the file or directory that is made, moved or removed
  std::vector<DirChange> changes;
};

// The root directory of a disk on which everything is durable.
struct DiskImage {
  NodePtr root;
  uint64_t hash() const;  // of all names and contents
  std::optional<std::string> read_file(const std::string& path) const;
  // For tests that damage files; false: no such file.
  bool write_file(const std::string& path, uint64_t offset, std::string_view bytes);
  std::vector<std::string> files() const;  // paths, sorted
};
DiskImage empty_image();

// A disk whose process was killed while the kernel lived on: what resolved is visible, but as little synced
// as before; a later crash may still lose it.
struct DiskState {
  NodePtr root;
  std::vector<DirOp> dir_ops;
  uint64_t next_stamp = 1;
};

// Weights of the four fates of an unsynced block, and of the outcomes of sizes and directory changes.
struct CrashFate {
  uint64_t seed = 0;
  uint32_t kept = 1, lost = 1, torn = 1, garbage = 1;
  bool harsh = false;
  static CrashFate all_lost(uint64_t seed) { return {seed, 0, 1, 0, 0}; }
  static CrashFate all_kept(uint64_t seed) { return {seed, 1, 0, 0, 0}; }
  static CrashFate all_torn(uint64_t seed) { return {seed, 0, 0, 1, 0}; }
  static CrashFate all_garbage(uint64_t seed) { return {seed, 0, 0, 0, 1}; }
  static CrashFate mixed(uint64_t seed) { return {seed, 1, 1, 1, 1}; }
};

enum class FaultKind : uint8_t {
  io_error,   // EIO; of a write nothing, a part or all may have landed
  no_space,   // ENOSPC; a part may have landed
  short_io,   // a write that lands in part, then EIO
  slow,       // takes `slow_ns`
  read_only,  // EROFS from here on for everything that changes something
};
enum class OpKind : uint8_t {
  any,
  open,
  read,
  write,
  sync,
  allocate,
  truncate,
  remove,
  rename,
  make_dir,
  sync_dir
};
const char* name_of(OpKind k);

struct Fault {
  FaultKind kind = FaultKind::io_error;
  OpKind op = OpKind::any;
  std::string path_part;  // of paths that contain it; empty: all
  uint64_t nth = 1;       // strikes at the nth such operation, counted from 1
  uint64_t times = 1;     // and at so many from there on
  uint64_t seen = 0;      // counter, for the disk
};

// A planted bug: these say that they brought data to stable storage, and did not. What a program without
// that call would do, for tests of the tests.
struct DroppedSync {
  OpKind op = OpKind::any;  // write: with Durability::on_media; sync; sync_dir; any: all of them
  std::string path_part;    // empty: all
};

struct DiskPlan {
  uint64_t crash_at = 0;  // point number, counted from 1; 0: never
  std::vector<Fault> faults;
  uint64_t read_error_per_million = 0, write_error_per_million = 0, sync_error_per_million = 0;
  uint64_t slow_per_million = 500;
  int64_t slow_ns = 200 * ns_per_ms;
  int64_t read_ns_max = 80 * ns_per_us, write_ns_max = 150 * ns_per_us, sync_ns_max = 900 * ns_per_us;
  uint64_t capacity_bytes = 1ULL << 40;
  bool supports_direct = true;
  std::vector<DroppedSync> dropped_syncs;
};

struct DiskCounters {
  uint64_t reads = 0, writes = 0, media_writes = 0, syncs = 0, dir_syncs = 0, all_syncs = 0, faults = 0;
  uint64_t bytes_read = 0, bytes_written = 0;
};

class SimDisk final : public Disk {
 public:
  SimDisk(SimLoop& loop, DiskPlan plan, const DiskImage& from = empty_image());  // copies `from`, cheaply
  SimDisk(SimLoop& loop, DiskPlan plan, DiskState from);
  ~SimDisk() override;

  Task<Result<std::unique_ptr<File>>> open(std::string path, OpenHow how) override;
  Task<Result<void>> make_dirs(std::string path) override;
  Task<Result<std::vector<DirEntry>>> list(std::string path) override;
  Task<Result<void>> remove(std::string path) override;
  Task<Result<void>> rename(std::string from, std::string to) override;
  Task<Result<void>> sync_dir(std::string path) override;
  Task<Result<void>> sync_all(std::string path) override;
  Task<Result<DiskSpace>> space(std::string path) override;

  uint64_t points() const { return points_; }  // so many crash points have passed
  bool crashed() const { return crashed_; }
  void crash_now();  // freezes the disk, as a crash point does
  // What the machine finds after the crash. Only when crashed(), or idle (nothing in flight) for a power
  // cut of a resting program. Any number of times.
  DiskImage crash_image(const CrashFate& fate) const;
  // Everything that resolved, as if it had been synced.
  DiskImage visible_image() const;
  // For a SimDisk that goes on after kill -9 of the process. Writes in flight landed or not, by seed. Only
  // when crashed() and no more in use.
  DiskState take_state(uint64_t seed);

  const std::vector<std::string>& violations() const { return violations_; }
  const DiskCounters& counters() const { return counters_; }
  DiskPlan& plan() { return plan_; }

 private:
  friend class SimFile;
  struct Found {
    NodePtr dir;  // null: a part of the path is missing
    std::string name;
    NodePtr node;  // null: no such entry
  };
  Found find(std::string_view path) const;
  // Counts a crash point and freezes the disk at the planned one. True: frozen.
  bool point(OpKind k, const std::string& path, const char* phase);
  std::optional<FaultKind> fault_for(OpKind k, const std::string& path, uint64_t per_million);
  int64_t latency(OpKind k, std::optional<FaultKind> fault);
  bool drops_sync(OpKind k, const std::string& path) const;
  std::optional<Error> error_of(std::optional<FaultKind> fault, const char* where);
  void apply(DirOp op);
  void violation(std::string text);
  bool has_room(const Node& n, uint64_t bytes) const;  // to make the file that long
  Task<Result<void>> change_dir(OpKind k, std::string path, std::string to);
  Result<void> make_dirs_now(const std::string& path);
  Result<void> remove_now(const std::string& path);
  Result<void> rename_now(const std::string& from, const std::string& to);
  void sync_dir_now(const NodePtr& dir, uint64_t up_to);
  Result<NodePtr> open_now(const std::string& path, OpenHow how);
  // Of one file, at completion.
  void land(Node& n, uint64_t id, size_t landed_bytes, Durability d);
  void add_size_change(Node& n, Unsynced::Kind k, uint64_t bytes);
  void sync_file_now(Node& n, uint64_t up_to);
  void sync_file_failed(Node& n, uint64_t up_to);
  void sync_tree(const NodePtr& n, const std::string& path, uint64_t up_to, bool failed);

  SimLoop& loop_;
  DiskPlan plan_;
  NodePtr root_;
  std::vector<DirOp> dir_ops_;  // not durable, in order
  std::vector<std::string> violations_;
  DiskCounters counters_;
  uint64_t points_ = 0;
  uint64_t next_stamp_ = 1;  // of operations and completions
  uint64_t open_files_ = 0;
  bool crashed_ = false;
  bool read_only_ = false;
};

}  // namespace rmq::sim

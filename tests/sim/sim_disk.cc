#include "sim/sim_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rmq::sim {

namespace {

constexpr int64_t frozen_ns = ns_per_us;  // a frozen disk answers at once
constexpr int64_t lookup_ns_max = 20 * ns_per_us;
constexpr std::byte unread{0xa5};  // in a reader's buffer until the read resolves

uint64_t hash_of(Bytes b) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (std::byte x : b) h = (h ^ static_cast<uint64_t>(x)) * 0x100000001b3ULL;
  return h;
}

std::vector<std::byte> gather(std::span<const iovec> from) {
  std::vector<std::byte> data;
  for (const iovec& v : from) {
    auto* p = static_cast<const std::byte*>(v.iov_base);
    data.insert(data.end(), p, p + v.iov_len);
  }
  return data;
}

bool aligned(uint64_t x) {
  return x % disk_block_bytes == 0;
}
bool aligned(const void* p) {
  return aligned(reinterpret_cast<uintptr_t>(p));
}

bool changes_something(OpKind k) {
  return k != OpKind::read && k != OpKind::open && k != OpKind::any;
}

}  // namespace

const char* name_of(OpKind k) {
  static constexpr const char* names[] = {"any",      "open",   "read",   "write",    "sync",    "allocate",
                                          "truncate", "remove", "rename", "make_dir", "sync_dir"};
  return names[static_cast<size_t>(k)];
}

// ---- content -----------------------------------------------------------------------------------------

void Content::read(uint64_t offset, MutableBytes into) const {
  while (!into.empty()) {
    uint64_t block = offset / disk_block_bytes;
    size_t at = offset % disk_block_bytes;
    size_t n = std::min(into.size(), disk_block_bytes - at);
    auto it = blocks_.find(block);
    if (it == blocks_.end())
      std::fill_n(into.begin(), n, std::byte{0});
    else
      std::memcpy(into.data(), it->second->data() + at, n);
    offset += n;
    into = into.subspan(n);
  }
}

void Content::write(uint64_t offset, Bytes from) {
  bytes_ = std::max(bytes_, offset + from.size());
  while (!from.empty()) {
    std::shared_ptr<Block>& b = blocks_[offset / disk_block_bytes];
    if (b == nullptr)
      b = std::make_shared<Block>();
    else if (b.use_count() > 1)
      b = std::make_shared<Block>(*b);
    size_t at = offset % disk_block_bytes;
    size_t n = std::min(from.size(), disk_block_bytes - at);
    std::memcpy(b->data() + at, from.data(), n);
    offset += n;
    from = from.subspan(n);
  }
}

void Content::resize(uint64_t bytes) {
  if (bytes < bytes_) {
    uint64_t whole = (bytes + disk_block_bytes - 1) / disk_block_bytes;
    blocks_.erase(blocks_.lower_bound(whole), blocks_.end());
    if (size_t at = bytes % disk_block_bytes; at != 0 && blocks_.contains(bytes / disk_block_bytes)) {
      std::array<std::byte, disk_block_bytes> zeros{};
      write(bytes, Bytes(zeros).first(disk_block_bytes - at));
    }
  }
  bytes_ = bytes;
}

uint64_t Content::hash() const {
  uint64_t h = bytes_;
  static constexpr Block zeros{};
  for (const auto& [index, block] : blocks_)
    if (*block != zeros) h = (h ^ index ^ hash_of(*block)) * 0x9e3779b97f4a7c15ULL;
  return h;
}

// ---- files -------------------------------------------------------------------------------------------

// What outlives the File object while an operation is under way.
struct OpenFile {
  SimDisk& disk;
  NodePtr node;
  std::string path;
  bool direct;
  bool writable;
  bool closed = false;
  uint32_t under_way = 0;
};

class SimFile final : public File {
 public:
  explicit SimFile(std::shared_ptr<OpenFile> o) : o_(std::move(o)) { o_->disk.open_files_++; }
  ~SimFile() override {
    if (o_->under_way != 0 && !o_->disk.crashed())
      o_->disk.violation(o_->path + ": destroyed while an operation is under way");
    o_->disk.open_files_--;
  }
  Task<Result<size_t>> read(uint64_t offset, MutableBytes into) override { return read(o_, offset, into); }
  Task<Result<void>> write(uint64_t offset, std::span<const iovec> from, Durability d) override {
    return write(o_, offset, from, d);
  }
  Task<Result<void>> sync() override { return sync(o_); }
  Task<Result<void>> allocate(uint64_t offset, uint64_t bytes) override {
    return resize(o_, OpKind::allocate, offset + bytes);
  }
  Task<Result<void>> truncate(uint64_t bytes) override { return resize(o_, OpKind::truncate, bytes); }
  Task<Result<uint64_t>> size() override { return size(o_); }
  Task<void> close() override { return close(o_); }

 private:
  using Open = std::shared_ptr<OpenFile>;
  static Task<Result<size_t>> read(Open o, uint64_t offset, MutableBytes into);
  static Task<Result<void>> write(Open o, uint64_t offset, std::span<const iovec> from, Durability d);
  static Task<Result<void>> sync(Open o);
  static Task<Result<void>> resize(Open o, OpKind k, uint64_t bytes);
  static Task<Result<uint64_t>> size(Open o);
  static Task<void> close(Open o);
  static Task<void> wait(Open o, int64_t ns);
  static bool write_is_legal(OpenFile& o, uint64_t offset, std::span<const iovec> from);
  static size_t landed_bytes(SimDisk& d, size_t bytes);

  Open o_;
};

Task<void> SimFile::wait(Open o, int64_t ns) {
  o->under_way++;
  co_await Delay(o->disk.loop_, o->disk.crashed_ ? frozen_ns : ns);
  o->under_way--;
}

Task<Result<size_t>> SimFile::read(Open o, uint64_t offset, MutableBytes into) {
  SimDisk& d = o->disk;
  if (o->closed) d.violation(o->path + ": read after close");
  std::fill(into.begin(), into.end(), unread);
  auto fault = d.fault_for(OpKind::read, o->path, d.plan_.read_error_per_million);
  co_await wait(o, d.latency(OpKind::read, fault));
  if (d.crashed_) co_return fail_errno(EIO, "simulated read");
  if (o->direct && !(aligned(offset) && aligned(into.size()) && aligned(into.data()))) {
    d.violation(o->path + ": O_DIRECT read is not aligned");
    co_return fail_errno(EINVAL, "simulated read");
  }
  if (auto e = d.error_of(fault, "simulated read")) co_return std::unexpected(*e);
  const Node& n = *o->node;
  size_t count =
      offset >= n.visible.bytes() ? 0 : std::min<uint64_t>(into.size(), n.visible.bytes() - offset);
  into = into.first(count);
  n.visible.read(offset, into);
  for (const Unsynced& u : n.unsynced) {  // a write in flight shows in any of its sectors, or not
    if (u.completed != 0 || u.kind != Unsynced::Kind::data) continue;
    for (size_t at = 0; at < u.data.size(); at += sector_bytes) {
      uint64_t from = u.offset + at;
      size_t bytes = std::min(sector_bytes, u.data.size() - at);
      if (from < offset || from + bytes > offset + count || d.loop_.chooser().below(2) == 0) continue;
      std::memcpy(into.data() + (from - offset), u.data.data() + at, bytes);
    }
  }
  d.counters_.reads++;
  d.counters_.bytes_read += count;
  d.loop_.trace("read", o->path, offset, hash_of(into));
  co_return count;
}

bool SimFile::write_is_legal(OpenFile& o, uint64_t offset, std::span<const iovec> from) {
  if (o.closed || !o.writable) {
    o.disk.violation(o.path + ": write to a file that is not open for it");
    return false;
  }
  bool ok = !o.direct || aligned(offset);
  for (const iovec& v : from) ok = ok && (!o.direct || (aligned(v.iov_len) && aligned(v.iov_base)));
  if (!ok) o.disk.violation(o.path + ": O_DIRECT write is not aligned");
  return ok;
}

// Of a write that fails: nothing, a part, or all.
size_t SimFile::landed_bytes(SimDisk& d, size_t bytes) {
  size_t sectors = bytes / sector_bytes;
  return d.loop_.chooser().below(sectors + 1) * sector_bytes;
}

Task<Result<void>> SimFile::write(Open o, uint64_t offset, std::span<const iovec> from,
                                  Durability durability) {
  SimDisk& d = o->disk;
  Node& n = *o->node;
  bool legal = write_is_legal(*o, offset, from);
  auto fault = d.fault_for(OpKind::write, o->path, d.plan_.write_error_per_million);
  Unsynced u;
  u.id = d.next_stamp_++;
  u.offset = offset;
  if (legal) u.data = gather(from);
  const uint64_t id = u.id;
  const size_t bytes = u.data.size();
  const uint64_t hash = hash_of(u.data);
  const bool reaches_disk = !d.crashed_ && legal && !d.read_only_;
  if (reaches_disk) n.unsynced.push_back(std::move(u));
  d.point(OpKind::write, o->path, "begin");
  co_await wait(o, d.latency(OpKind::write, fault));
  if (d.crashed_) co_return fail_errno(EIO, "simulated write");
  if (!legal) co_return fail_errno(EINVAL, "simulated write");
  if (hash_of(gather(from)) != hash) d.violation(o->path + ": the buffer changed while it was written");
  auto error = d.error_of(fault, "simulated write");
  if (!error && !d.has_room(n, offset + bytes)) error = fail_errno(ENOSPC, "simulated write").error();
  if (reaches_disk)
    d.land(n, id, error ? landed_bytes(d, bytes) : bytes,
           error || d.drops_sync(OpKind::write, o->path) ? Durability::none : durability);
  d.counters_.writes++;
  d.counters_.media_writes += durability == Durability::on_media;
  d.counters_.bytes_written += bytes;
  d.loop_.trace(durability == Durability::on_media ? "write media" : "write", o->path, offset, hash);
  if (d.point(OpKind::write, o->path, "end")) co_return fail_errno(EIO, "simulated write");
  if (error) co_return std::unexpected(*error);
  co_return Result<void>{};
}

Task<Result<void>> SimFile::sync(Open o) {
  SimDisk& d = o->disk;
  if (o->closed) d.violation(o->path + ": sync after close");
  const uint64_t up_to = d.next_stamp_++;
  auto fault = d.fault_for(OpKind::sync, o->path, d.plan_.sync_error_per_million);
  d.point(OpKind::sync, o->path, "begin");
  co_await wait(o, d.latency(OpKind::sync, fault));
  if (d.crashed_) co_return fail_errno(EIO, "simulated sync");
  auto error = d.error_of(fault, "simulated sync");
  if (error)
    d.sync_file_failed(*o->node, up_to);
  else if (!d.drops_sync(OpKind::sync, o->path))
    d.sync_file_now(*o->node, up_to);
  d.counters_.syncs++;
  d.loop_.trace("sync", o->path, error.has_value());
  if (d.point(OpKind::sync, o->path, "end")) co_return fail_errno(EIO, "simulated sync");
  if (error) co_return std::unexpected(*error);
  co_return Result<void>{};
}

Task<Result<void>> SimFile::resize(Open o, OpKind k, uint64_t bytes) {
  SimDisk& d = o->disk;
  if (o->closed || !o->writable) d.violation(o->path + ": resized while not open for writing");
  auto fault = d.fault_for(k, o->path, d.plan_.write_error_per_million);
  d.point(k, o->path, "begin");
  co_await wait(o, d.latency(k, fault));
  if (d.crashed_) co_return fail_errno(EIO, "simulated resize");
  if (auto e = d.error_of(fault, "simulated resize")) co_return std::unexpected(*e);
  if (k == OpKind::allocate && !d.has_room(*o->node, bytes))
    co_return fail_errno(ENOSPC, "simulated allocate");
  d.add_size_change(*o->node, k == OpKind::allocate ? Unsynced::Kind::grow : Unsynced::Kind::truncate, bytes);
  d.loop_.trace(name_of(k), o->path, bytes);
  if (d.point(k, o->path, "end")) co_return fail_errno(EIO, "simulated resize");
  co_return Result<void>{};
}

Task<Result<uint64_t>> SimFile::size(Open o) {
  co_await wait(o, lookup_ns_max);
  if (o->disk.crashed_) co_return fail_errno(EIO, "simulated size");
  co_return o->node->visible.bytes();
}

Task<void> SimFile::close(Open o) {
  if (o->under_way != 0 && !o->disk.crashed_)
    o->disk.violation(o->path + ": closed while an operation is under way");
  o->closed = true;
  co_await wait(o, lookup_ns_max);
}

// ---- what operations do when they complete -----------------------------------------------------------

void SimDisk::land(Node& n, uint64_t id, size_t landed_bytes, Durability d) {
  auto it = std::find_if(n.unsynced.begin(), n.unsynced.end(), [&](const Unsynced& u) { return u.id == id; });
  check(it != n.unsynced.end());
  Unsynced u = std::move(*it);
  n.unsynced.erase(it);
  u.data.resize(landed_bytes);
  if (u.data.empty()) return;
  u.completed = next_stamp_++;
  n.visible.write(u.offset, u.data);
  if (d == Durability::none) {
    auto first_in_flight = std::find_if(n.unsynced.begin(), n.unsynced.end(),
                                        [](const Unsynced& x) { return x.completed == 0; });
    n.unsynced.insert(first_in_flight, std::move(u));
    return;
  }
  bool cut = std::any_of(n.unsynced.begin(), n.unsynced.end(), [](const Unsynced& x) {
    return x.completed != 0 && x.kind == Unsynced::Kind::truncate;
  });
  if (cut) sync_file_now(n, u.completed);
  const uint64_t begin = u.offset, end = u.offset + u.data.size();
  std::vector<Unsynced> rest;  // older versions of the range are history
  for (Unsynced& x : n.unsynced) {
    uint64_t x_end = x.offset + x.data.size();
    if (x.completed == 0 || x.kind != Unsynced::Kind::data || x_end <= begin || x.offset >= end) {
      rest.push_back(std::move(x));
      continue;
    }
    if (x.offset < begin) {
      Unsynced left = x;
      left.data.resize(begin - x.offset);
      rest.push_back(std::move(left));
    }
    if (x_end > end) {
      x.data.erase(x.data.begin(), x.data.begin() + static_cast<ptrdiff_t>(end - x.offset));
      x.offset = end;
      rest.push_back(std::move(x));
    }
  }
  n.unsynced = std::move(rest);
  n.durable.write(u.offset, u.data);
}

void SimDisk::add_size_change(Node& n, Unsynced::Kind k, uint64_t bytes) {
  if (k == Unsynced::Kind::grow && bytes <= n.visible.bytes()) return;
  n.visible.resize(bytes);
  Unsynced u;
  u.kind = k;
  u.id = next_stamp_++;
  u.completed = next_stamp_++;
  u.offset = bytes;
  auto first_in_flight =
      std::find_if(n.unsynced.begin(), n.unsynced.end(), [](const Unsynced& x) { return x.completed == 0; });
  n.unsynced.insert(first_in_flight, std::move(u));
}

namespace {
void make_durable(Node& n, const Unsynced& u) {
  switch (u.kind) {
    case Unsynced::Kind::data:
      n.durable.write(u.offset, u.data);
      break;
    case Unsynced::Kind::grow:
      n.durable.resize(std::max(n.durable.bytes(), u.offset));
      break;
    case Unsynced::Kind::truncate:
      n.durable.resize(u.offset);
      break;
  }
}
}  // namespace

void SimDisk::sync_file_now(Node& n, uint64_t up_to) {
  std::erase_if(n.unsynced, [&](const Unsynced& u) {
    if (u.completed == 0 || u.completed > up_to) return false;
    make_durable(n, u);
    return true;
  });
}

void SimDisk::sync_file_failed(Node& n, uint64_t up_to) {
  std::erase_if(n.unsynced, [&](const Unsynced& u) {
    if (u.completed == 0 || u.completed > up_to) return false;
    if (loop_.chooser().below(2) == 0) make_durable(n, u);
    return true;
  });
}

// ---- faults and crash points -------------------------------------------------------------------------

void SimDisk::violation(std::string text) {
  loop_.trace("violation", text);
  violations_.push_back(std::move(text));
}

void SimDisk::crash_now() {
  if (!crashed_) loop_.trace("crash", "", points_);
  crashed_ = true;
}

bool SimDisk::point(OpKind k, const std::string& path, const char* phase) {
  if (crashed_) return true;
  points_++;
  loop_.trace(phase, path, static_cast<uint64_t>(k), points_);
  if (points_ == plan_.crash_at) crash_now();
  return crashed_;
}

std::optional<FaultKind> SimDisk::fault_for(OpKind k, const std::string& path, uint64_t per_million) {
  std::optional<FaultKind> found;
  if (crashed_) return found;
  for (Fault& f : plan_.faults) {
    if (f.op != OpKind::any && f.op != k) continue;
    if (path.find(f.path_part) == std::string::npos) continue;
    f.seen++;
    if (f.seen >= f.nth && f.seen - f.nth < f.times) found = f.kind;
  }
  if (!found && loop_.chooser().chance(per_million)) found = FaultKind::io_error;
  if (!found && loop_.chooser().chance(plan_.slow_per_million)) found = FaultKind::slow;
  if (found == FaultKind::read_only) read_only_ = true;
  if (read_only_ && changes_something(k)) found = FaultKind::read_only;
  if (found) {
    counters_.faults++;
    loop_.trace("fault", path, static_cast<uint64_t>(k), static_cast<uint64_t>(*found));
  }
  return found;
}

std::optional<Error> SimDisk::error_of(std::optional<FaultKind> fault, const char* where) {
  if (!fault) return std::nullopt;
  switch (*fault) {
    case FaultKind::slow:
      return std::nullopt;
    case FaultKind::io_error:
    case FaultKind::short_io:
      return fail_errno(EIO, where).error();
    case FaultKind::no_space:
      return fail_errno(ENOSPC, where).error();
    case FaultKind::read_only:
      return fail_errno(EROFS, where).error();
  }
  return std::nullopt;
}

int64_t SimDisk::latency(OpKind k, std::optional<FaultKind> fault) {
  if (fault == FaultKind::slow) return plan_.slow_ns;
  SimRandom& r = loop_.chooser();
  switch (k) {
    case OpKind::read:
      return r.between(ns_per_us, plan_.read_ns_max);
    case OpKind::write:
      return r.between(ns_per_us, plan_.write_ns_max);
    case OpKind::sync:
    case OpKind::sync_dir:
      return r.between(ns_per_us, plan_.sync_ns_max);
    default:
      return r.between(ns_per_us, lookup_ns_max);
  }
}

bool SimDisk::drops_sync(OpKind k, const std::string& path) const {
  for (const DroppedSync& d : plan_.dropped_syncs)
    if ((d.op == OpKind::any || d.op == k) && path.find(d.path_part) != std::string::npos) return true;
  return false;
}

namespace {
uint64_t bytes_below(const Node& n) {
  uint64_t sum = n.visible.bytes();
  for (const auto& [name, child] : n.entries) sum += bytes_below(*child);
  return sum;
}
}  // namespace

bool SimDisk::has_room(const Node& n, uint64_t bytes) const {
  if (bytes <= n.visible.bytes()) return true;
  return bytes_below(*root_) + (bytes - n.visible.bytes()) <= plan_.capacity_bytes;
}

// ---- directories -------------------------------------------------------------------------------------

SimDisk::SimDisk(SimLoop& loop, DiskPlan plan, DiskState from)
    : loop_(loop),
      plan_(std::move(plan)),
      root_(std::move(from.root)),
      dir_ops_(std::move(from.dir_ops)),
      next_stamp_(from.next_stamp) {}

SimDisk::~SimDisk() {
  check(open_files_ == 0);
}

SimDisk::Found SimDisk::find(std::string_view path) const {
  Found f{root_, "", root_};
  while (!path.empty()) {
    size_t end = std::min(path.find('/'), path.size());
    std::string part(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (f.node == nullptr || !f.node->is_dir) return {};
    f.dir = f.node;
    auto it = f.dir->entries.find(part);
    f.node = it == f.dir->entries.end() ? nullptr : it->second;
    f.name = std::move(part);
  }
  return f;
}

void SimDisk::apply(DirOp op) {
  op.id = next_stamp_++;
  for (const DirChange& c : op.changes) {
    if (c.target == nullptr)
      c.dir->entries.erase(c.name);
    else
      c.dir->entries[c.name] = c.target;
  }
  dir_ops_.push_back(std::move(op));
}

Result<NodePtr> SimDisk::open_now(const std::string& path, OpenHow how) {
  Found f = find(path);
  if (f.dir == nullptr) return fail_errno(ENOENT, "simulated open");
  if (f.node != nullptr && how.create && how.exclusive) return fail_errno(EEXIST, "simulated open");
  if (f.node == nullptr) {
    if (!how.create) return fail_errno(ENOENT, "simulated open");
    if (read_only_) return fail_errno(EROFS, "simulated open");
    f.node = std::make_shared<Node>();
    apply({0, f.node, {{f.dir, f.name, f.node}}});
  }
  if (f.node->is_dir) return fail_errno(EISDIR, "simulated open");
  if (how.write && read_only_) return fail_errno(EROFS, "simulated open");
  if (how.direct && !plan_.supports_direct) return fail(Errc::unsupported, "simulated open", EINVAL);
  if (how.truncate && f.node->visible.bytes() != 0) add_size_change(*f.node, Unsynced::Kind::truncate, 0);
  return f.node;
}

Task<Result<std::unique_ptr<File>>> SimDisk::open(std::string path, OpenHow how) {
  auto fault = fault_for(OpKind::open, path, 0);
  bool changes = how.truncate || (how.create && find(path).node == nullptr);
  if (changes) point(OpKind::open, path, "begin");
  co_await Delay(loop_, crashed_ ? frozen_ns : latency(OpKind::open, fault));
  if (crashed_) co_return fail_errno(EIO, "simulated open");
  if (auto e = error_of(fault, "simulated open")) co_return std::unexpected(*e);
  auto node = open_now(path, how);
  loop_.trace("open", path, node.has_value(), how.create);
  if (changes && point(OpKind::open, path, "end")) co_return fail_errno(EIO, "simulated open");
  if (!node) co_return std::unexpected(node.error());
  auto o = std::make_shared<OpenFile>(*this, *node, path, how.direct, how.write);
  std::unique_ptr<File> file = std::make_unique<SimFile>(std::move(o));
  co_return file;
}

Result<void> SimDisk::make_dirs_now(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    Found f = find(std::string_view(path).substr(0, end));
    if (f.node != nullptr && !f.node->is_dir) return fail_errno(ENOTDIR, "simulated mkdir");
    if (f.node == nullptr) {
      auto made = std::make_shared<Node>();
      made->is_dir = true;
      apply({0, made, {{f.dir, f.name, made}}});
    }
    if (end == std::string::npos) return {};
  }
}

Result<void> SimDisk::remove_now(const std::string& path) {
  Found f = find(path);
  if (f.node == nullptr) return fail_errno(ENOENT, "simulated remove");
  if (f.node->is_dir && !f.node->entries.empty()) return fail_errno(ENOTEMPTY, "simulated remove");
  apply({0, f.node, {{f.dir, f.name, nullptr}}});
  return {};
}

Result<void> SimDisk::rename_now(const std::string& from, const std::string& to) {
  Found f = find(from), t = find(to);
  if (f.node == nullptr || t.dir == nullptr) return fail_errno(ENOENT, "simulated rename");
  if (t.node != nullptr && t.node->is_dir != f.node->is_dir) return fail_errno(EISDIR, "simulated rename");
  if (t.node != nullptr && !t.node->entries.empty()) return fail_errno(ENOTEMPTY, "simulated rename");
  if (t.node == f.node) return {};
  apply({0, f.node, {{f.dir, f.name, nullptr}, {t.dir, t.name, f.node}}});
  return {};
}

Task<Result<void>> SimDisk::change_dir(OpKind k, std::string path, std::string to) {
  auto fault = fault_for(k, path, plan_.write_error_per_million);
  point(k, path, "begin");
  co_await Delay(loop_, crashed_ ? frozen_ns : latency(k, fault));
  if (crashed_) co_return fail_errno(EIO, "simulated directory change");
  if (auto e = error_of(fault, "simulated directory change")) co_return std::unexpected(*e);
  Result<void> r;
  if (k == OpKind::make_dir) r = make_dirs_now(path);
  if (k == OpKind::remove) r = remove_now(path);
  if (k == OpKind::rename) r = rename_now(path, to);
  loop_.trace(name_of(k), path, r.has_value());
  if (point(k, path, "end")) co_return fail_errno(EIO, "simulated directory change");
  co_return r;
}

Task<Result<void>> SimDisk::make_dirs(std::string path) {
  return change_dir(OpKind::make_dir, std::move(path), "");
}
Task<Result<void>> SimDisk::remove(std::string path) {
  return change_dir(OpKind::remove, std::move(path), "");
}
Task<Result<void>> SimDisk::rename(std::string from, std::string to) {
  return change_dir(OpKind::rename, std::move(from), std::move(to));
}

void SimDisk::sync_dir_now(const NodePtr& dir, uint64_t up_to) {
  std::erase_if(dir_ops_, [&](const DirOp& op) {
    bool touches =
        std::any_of(op.changes.begin(), op.changes.end(), [&](const DirChange& c) { return c.dir == dir; });
    if (!touches || op.id > up_to) return false;
    for (const DirChange& c : op.changes) {
      if (c.target == nullptr)
        c.dir->durable_entries.erase(c.name);
      else
        c.dir->durable_entries[c.name] = c.target;
    }
    return true;
  });
}

Task<Result<void>> SimDisk::sync_dir(std::string path) {
  const uint64_t up_to = next_stamp_++;
  auto fault = fault_for(OpKind::sync_dir, path, plan_.sync_error_per_million);
  point(OpKind::sync_dir, path, "begin");
  co_await Delay(loop_, crashed_ ? frozen_ns : latency(OpKind::sync_dir, fault));
  if (crashed_) co_return fail_errno(EIO, "simulated sync of a directory");
  if (auto e = error_of(fault, "simulated sync of a directory")) co_return std::unexpected(*e);
  Found f = find(path);
  if (f.node == nullptr) co_return fail_errno(ENOENT, "simulated sync of a directory");
  if (!f.node->is_dir) co_return fail_errno(ENOTDIR, "simulated sync of a directory");
  if (!drops_sync(OpKind::sync_dir, path)) sync_dir_now(f.node, up_to);
  counters_.dir_syncs++;
  loop_.trace("sync_dir", path);
  if (point(OpKind::sync_dir, path, "end")) co_return fail_errno(EIO, "simulated sync of a directory");
  co_return Result<void>{};
}

// Everything below, names and contents; of a sync that fails, each file as it happens.
void SimDisk::sync_tree(const NodePtr& n, const std::string& path, uint64_t up_to, bool failed) {
  if (!n->is_dir) {
    if (failed)
      sync_file_failed(*n, up_to);
    else if (!drops_sync(OpKind::sync, path))
      sync_file_now(*n, up_to);
    return;
  }
  if (!failed && !drops_sync(OpKind::sync_dir, path)) sync_dir_now(n, up_to);
  for (const auto& [name, child] : n->entries) sync_tree(child, path + "/" + name, up_to, failed);
}

Task<Result<void>> SimDisk::sync_all(std::string path) {
  const uint64_t up_to = next_stamp_++;
  auto fault = fault_for(OpKind::sync, path, plan_.sync_error_per_million);
  point(OpKind::sync, path, "begin");
  co_await Delay(loop_, crashed_ ? frozen_ns : latency(OpKind::sync, fault));
  if (crashed_) co_return fail_errno(EIO, "simulated syncfs");
  auto error = error_of(fault, "simulated syncfs");
  if (find(path).node == nullptr) co_return fail_errno(ENOENT, "simulated syncfs");
  sync_tree(root_, "", up_to, error.has_value());
  counters_.all_syncs++;
  loop_.trace("sync_all", path, error.has_value());
  if (point(OpKind::sync, path, "end")) co_return fail_errno(EIO, "simulated syncfs");
  if (error) co_return std::unexpected(*error);
  co_return Result<void>{};
}

Task<Result<std::vector<DirEntry>>> SimDisk::list(std::string path) {
  co_await Delay(loop_, crashed_ ? frozen_ns : latency(OpKind::open, std::nullopt));
  if (crashed_) co_return fail_errno(EIO, "simulated list");
  Found f = find(path);
  if (f.node == nullptr) co_return fail_errno(ENOENT, "simulated list");
  if (!f.node->is_dir) co_return fail_errno(ENOTDIR, "simulated list");
  std::vector<DirEntry> entries;
  for (const auto& [name, n] : f.node->entries) entries.push_back({name, n->is_dir, n->visible.bytes()});
  co_return entries;
}

Task<Result<DiskSpace>> SimDisk::space(std::string path) {
  co_await Delay(loop_, crashed_ ? frozen_ns : latency(OpKind::open, std::nullopt));
  if (crashed_) co_return fail_errno(EIO, "simulated space");
  if (find(path).node == nullptr) co_return fail_errno(ENOENT, "simulated space");
  uint64_t used = std::min(bytes_below(*root_), plan_.capacity_bytes);
  co_return DiskSpace{plan_.capacity_bytes, plan_.capacity_bytes - used, "/"};
}

}  // namespace rmq::sim

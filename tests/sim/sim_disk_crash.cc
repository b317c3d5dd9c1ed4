// What is left of a SimDisk after a crash, and images as values.
#include <algorithm>
#include <functional>
#include <set>

#include "sim/sim_disk.h"

namespace rmq::sim {

namespace {

enum class Fate : uint8_t { kept, lost, torn, garbage };

Fate pick_fate(const CrashFate& f, SimRandom& r) {
  uint64_t x = r.below(uint64_t{f.kept} + f.lost + f.torn + f.garbage);
  if (x < f.kept) return Fate::kept;
  x -= f.kept;
  if (x < f.lost) return Fate::lost;
  x -= f.lost;
  return x < f.torn ? Fate::torn : Fate::garbage;
}

struct Range {
  uint64_t begin, end;
};
Range cut_to(Range a, Range b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// One sector that unsynced writes touch: it ends as one of its versions, or as garbage.
struct DirtySector {
  uint64_t versions = 0;  // beside the durable one, in order
  uint64_t kept = 0;      // the last version that reached the media; 0: the durable one
  bool garbage = false;
  uint64_t applied = 0;
};
using DirtySectors = std::map<uint64_t, DirtySector>;

template <class F>
void each_sector(const Unsynced& u, F f) {
  Range all{u.offset, u.offset + u.data.size()};
  for (uint64_t s = all.begin / sector_bytes; s * sector_bytes < all.end; s++) {
    Range r = cut_to(all, {s * sector_bytes, (s + 1) * sector_bytes});
    f(s, r.begin, Bytes(u.data).subspan(r.begin - u.offset, r.end - r.begin));
  }
}

DirtySectors choose_sectors(const Node& n, const CrashFate& fate, SimRandom& r) {
  DirtySectors dirty;
  for (const Unsynced& u : n.unsynced)
    if (u.kind == Unsynced::Kind::data)
      each_sector(u, [&](uint64_t s, uint64_t, Bytes) { dirty[s].versions++; });
  uint64_t block = UINT64_MAX;
  Fate f = Fate::lost;
  for (auto& [s, d] : dirty) {
    if (s * sector_bytes / disk_block_bytes != block) f = pick_fate(fate, r);
    block = s * sector_bytes / disk_block_bytes;
    if (f == Fate::kept) d.kept = d.versions;
    if (f == Fate::torn || f == Fate::garbage) d.kept = r.below(d.versions + 1);
    d.garbage = f == Fate::garbage && r.below(2) == 0;
  }
  return dirty;
}

// Changes of the file's size get lost from some point on: the journal of a file system keeps their order.
size_t choose_size_changes(const Node& n, const CrashFate& fate, SimRandom& r) {
  size_t all = n.unsynced.size();
  switch (pick_fate(fate, r)) {
    case Fate::kept:
      return all;
    case Fate::lost:
      return 0;
    default:
      return r.below(all + 1);
  }
}

void spoil(const Node& n, Content& result, uint64_t sector, bool harsh, SimRandom& r) {
  std::array<std::byte, sector_bytes> before, now;
  std::array<bool, sector_bytes> differs{};
  uint64_t start = sector * sector_bytes;
  n.durable.read(start, before);
  result.read(start, now);
  if (harsh) differs.fill(true);
  for (const Unsynced& u : n.unsynced) {
    if (u.kind != Unsynced::Kind::data) continue;
    each_sector(u, [&](uint64_t s, uint64_t offset, Bytes version) {
      if (s != sector) return;
      for (size_t i = 0; i < version.size(); i++)
        if (version[i] != before[offset - start + i]) differs[offset - start + i] = true;
    });
  }
  for (size_t i = 0; i < sector_bytes; i++)
    if (differs[i]) now[i] = static_cast<std::byte>(r.next());
  uint64_t size = result.bytes();
  if (start >= size) return;
  result.write(start, Bytes(now).first(std::min<uint64_t>(sector_bytes, size - start)));
}

Content crashed_content(const Node& n, const CrashFate& fate, SimRandom& r) {
  Content result = n.durable;
  if (n.unsynced.empty()) return result;
  DirtySectors dirty = choose_sectors(n, fate, r);
  const size_t size_changes = choose_size_changes(n, fate, r);
  uint64_t bytes = result.bytes();
  for (size_t i = 0; i < n.unsynced.size(); i++) {
    const Unsynced& u = n.unsynced[i];
    bool size_kept = i < size_changes;
    if (u.kind == Unsynced::Kind::data) {
      each_sector(u, [&](uint64_t s, uint64_t offset, Bytes version) {
        DirtySector& d = dirty[s];
        if (++d.applied <= d.kept) result.write(offset, version);
      });
      if (size_kept) bytes = std::max(bytes, u.offset + u.data.size());
    } else if (size_kept && u.kind == Unsynced::Kind::grow) {
      bytes = std::max(bytes, u.offset);
    } else if (size_kept) {
      bytes = u.offset;
      if (result.bytes() > bytes) result.resize(bytes);
    }
  }
  result.resize(bytes);
  for (const auto& [s, d] : dirty)
    if (d.garbage) spoil(n, result, s, fate.harsh, r);
  return result;
}

// Which changes of directories reached the media.
class DirOutcome {
 public:
  DirOutcome(const CrashFate& fate, SimRandom& r) : fate_(fate), random_(r) {}
  void decide(const std::vector<DirOp>& ops) {
    for (const DirOp& op : ops) {
      bool kept = choose(op) && !lost_subjects_.contains(op.subject.get());
      if (!kept) lost_subjects_.insert(op.subject.get());
      if (kept) apply(op);
    }
  }
  const std::map<std::string, NodePtr>& entries(Node& dir) {
    return entries_.try_emplace(&dir, dir.durable_entries).first->second;
  }

 private:
  bool choose(const DirOp& op) {
    Node* dir = op.changes.front().dir.get();
    auto [it, is_new] = mood_.try_emplace(dir, Fate::lost);
    if (is_new) it->second = pick_fate(fate_, random_);
    switch (it->second) {
      case Fate::kept:
        return true;
      case Fate::lost:
        return false;
      case Fate::torn:
        return random_.below(2) == 0;
      case Fate::garbage:  // of a directory: the journal ends somewhere
        if (random_.below(3) == 0) it->second = Fate::lost;
        return it->second != Fate::lost;
    }
    return false;
  }
  void apply(const DirOp& op) {
    for (const DirChange& c : op.changes) {
      auto& e = entries_.try_emplace(c.dir.get(), c.dir->durable_entries).first->second;
      if (c.target == nullptr)
        e.erase(c.name);
      else
        e[c.name] = c.target;
    }
  }
  const CrashFate& fate_;
  SimRandom& random_;
  std::map<Node*, Fate> mood_;  // looked up only: the order of addresses decides nothing
  std::set<Node*> lost_subjects_;
  std::map<Node*, std::map<std::string, NodePtr>> entries_;
};

NodePtr clone(Node& n, const std::function<Content(const Node&)>& content,
              const std::function<const std::map<std::string, NodePtr>&(Node&)>& entries) {
  auto c = std::make_shared<Node>();
  c->is_dir = n.is_dir;
  if (!n.is_dir) {
    c->visible = content(n);
    c->durable = c->visible;
    return c;
  }
  for (const auto& [name, child] : entries(n)) c->entries[name] = clone(*child, content, entries);
  c->durable_entries = c->entries;
  return c;
}

DiskImage visible_copy(Node& root) {
  return {clone(
      root, [](const Node& n) { return n.visible; },
      [](Node& n) -> const std::map<std::string, NodePtr>& { return n.entries; })};
}

const Node* look_up(const NodePtr& root, const std::string& path) {
  const Node* n = root.get();
  for (size_t at = 0; at < path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    auto it = n->entries.find(part);
    if (it == n->entries.end()) return nullptr;
    n = it->second.get();
  }
  return n;
}

void list_files(const Node& n, const std::string& path, std::vector<std::string>& out) {
  for (const auto& [name, child] : n.entries) {
    if (child->is_dir)
      list_files(*child, path + "/" + name, out);
    else
      out.push_back(path + "/" + name);
  }
}

uint64_t hash_tree(const Node& n) {
  uint64_t h = n.is_dir ? 1 : n.visible.hash();
  for (const auto& [name, child] : n.entries) {
    for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    h = (h ^ hash_tree(*child)) * 0x9e3779b97f4a7c15ULL;
  }
  return h;
}

}  // namespace

SimDisk::SimDisk(SimLoop& loop, DiskPlan plan, const DiskImage& from)
    : loop_(loop), plan_(std::move(plan)), root_(visible_copy(*from.root).root) {}

DiskImage SimDisk::crash_image(const CrashFate& fate) const {
  SimRandom r(fate.seed ^ 0x5eed);
  DirOutcome dirs(fate, r);
  dirs.decide(dir_ops_);
  return {clone(
      *root_, [&](const Node& n) { return crashed_content(n, fate, r); },
      [&](Node& n) -> const std::map<std::string, NodePtr>& { return dirs.entries(n); })};
}

DiskImage SimDisk::visible_image() const {
  return visible_copy(*root_);
}

DiskState SimDisk::take_state(uint64_t seed) {
  check(crashed_);
  check(open_files_ == 0);
  SimRandom r(seed);
  std::function<void(Node&)> settle = [&](Node& n) {
    std::vector<uint64_t> in_flight;
    for (const Unsynced& u : n.unsynced)
      if (u.completed == 0) in_flight.push_back(u.id);
    for (uint64_t id : in_flight) {
      auto it = std::find_if(n.unsynced.begin(), n.unsynced.end(), [&](auto& u) { return u.id == id; });
      size_t bytes = it->data.size();
      land(n, id, r.below(2) == 0 ? bytes : r.below(bytes / sector_bytes + 1) * sector_bytes,
           Durability::none);
    }
    for (auto& [name, child] : n.entries) settle(*child);
  };
  settle(*root_);
  return {std::exchange(root_, empty_image().root), std::exchange(dir_ops_, {}), next_stamp_};
}

DiskImage empty_image() {
  auto root = std::make_shared<Node>();
  root->is_dir = true;
  return {root};
}

uint64_t DiskImage::hash() const {
  return hash_tree(*root);
}

std::vector<std::string> DiskImage::files() const {
  std::vector<std::string> out;
  list_files(*root, "", out);
  return out;
}

std::optional<std::string> DiskImage::read_file(const std::string& path) const {
  const Node* n = look_up(root, path);
  if (n == nullptr || n->is_dir) return std::nullopt;
  std::string s(n->visible.bytes(), '\0');
  n->visible.read(0, {reinterpret_cast<std::byte*>(s.data()), s.size()});
  return s;
}

bool DiskImage::write_file(const std::string& path, uint64_t offset, std::string_view bytes) {
  Node* n = const_cast<Node*>(look_up(root, path));
  if (n == nullptr || n->is_dir) return false;
  n->visible.write(offset, as_bytes(bytes));
  n->durable = n->visible;
  return true;
}

}  // namespace rmq::sim

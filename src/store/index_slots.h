// The slots of the IndexFile that is written, in memory, as they lie in the file: every new entry needs the
// old value of a slot at random. In chunks: one that nothing was put into for a while is written to the file
// and its memory given back, so an idle broker keeps none of it, and a busy one at most the table's size
// (20 MB for 5,000,000 slots). A chunk that is not in memory must be loaded before its slots are touched.
//
// After a crash the slots of that file mean nothing: they are made again from the entries (index_file.h).
#pragma once

#include <cstdint>
#include <vector>

#include "store/index_format.h"
#include "uring/io.h"

namespace rmq::store {

class IndexSlots {
 public:
  static constexpr size_t chunk_bytes = 16u << 10;

  explicit IndexSlots(const IndexLayout& layout) : layout_(layout) {}
  ~IndexSlots() { unmap(); }
  IndexSlots(const IndexSlots&) = delete;
  IndexSlots& operator=(const IndexSlots&) = delete;

  // Takes address space for the table. `all_zero`: every chunk counts as loaded; else none does.
  Result<void> map(bool all_zero);
  void unmap();
  bool is_mapped() const { return base_ != nullptr; }

  bool has(uint32_t slot) const { return base_ != nullptr && chunks_[chunk_of(slot)].resident; }
  int32_t get(uint32_t slot) const { return load_be<int32_t>(base_ + layout_.slot_at(slot)); }
  void set(uint32_t slot, int32_t number, int64_t now_ns) {
    store_be(base_ + layout_.slot_at(slot), number);
    Chunk& c = chunks_[chunk_of(slot)];
    c.dirty = true;
    c.touched_ns = now_ns;
  }
  void prefetch(uint32_t slot) const { __builtin_prefetch(base_ + layout_.slot_at(slot), 1); }

  Task<Result<void>> load(File& f, uint32_t slot, int64_t now_ns);
  void mark_all_dirty(int64_t now_ns);
  // Writes the dirty chunks that were not touched since `before_ns`; with `release` their memory, and that of
  // clean ones, goes. Nobody may call set() meanwhile.
  Task<Result<void>> write(File& f, int64_t before_ns, bool release);
  bool any_touched() const { return touched_chunks() != 0; }
  size_t touched_chunks() const;

 private:
  struct Chunk {
    bool resident = false;
    bool dirty = false;
    int64_t touched_ns = 0;  // 0: since it was loaded, or mapped, never
  };
  size_t chunk_of(uint32_t slot) const { return layout_.slot_at(slot) / chunk_bytes; }
  // The part of a chunk that holds slots: in front of it lies the header, behind it the entries.
  uint64_t begin_of(size_t chunk) const {
    return std::max<uint64_t>(chunk * chunk_bytes, index_header_bytes);
  }
  uint64_t end_of(size_t chunk) const {
    return std::min<uint64_t>((chunk + 1) * chunk_bytes, layout_.slots_end());
  }
  Task<Result<void>> write_run(File& f, size_t first, size_t end, std::vector<std::byte>& copy);

  const IndexLayout layout_;
  std::byte* base_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace rmq::store

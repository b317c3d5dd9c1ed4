#include "store/index_slots.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/check.h"

namespace rmq::store {

namespace {
constexpr size_t run_chunks_max = 16;  // 256 KiB in one write
}

Result<void> IndexSlots::map(bool all_zero) {
  check(base_ == nullptr);
  size_t count = (layout_.slots_end() + chunk_bytes - 1) / chunk_bytes;
  void* p = ::mmap(nullptr, count * chunk_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return fail_errno(errno, "memory for the slots of an index file");
  base_ = static_cast<std::byte*>(p);
  mapped_bytes_ = count * chunk_bytes;
  // A few messages must not fill the table with huge pages.
  ::madvise(base_, mapped_bytes_, MADV_NOHUGEPAGE);
  chunks_.assign(count, Chunk{all_zero, false, 0});
  return {};
}

void IndexSlots::unmap() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
  base_ = nullptr;
  mapped_bytes_ = 0;
  chunks_ = {};
}

Task<Result<void>> IndexSlots::load(File& f, uint32_t slot, int64_t now_ns) {
  size_t chunk = chunk_of(slot);
  uint64_t at = begin_of(chunk);
  size_t bytes = end_of(chunk) - at;
  // The chunk is not resident yet, so nobody looks into its memory.
  CO_TRY_VAR(n, co_await f.read(at, {base_ + at, bytes}));
  if (n != bytes) co_return fail(Errc::corrupt, "an index file ends too early");
  chunks_[chunk] = {true, false, now_ns};
  co_return Result<void>();
}

void IndexSlots::mark_all_dirty(int64_t now_ns) {
  for (Chunk& c : chunks_) c = {true, true, now_ns};
}

size_t IndexSlots::touched_chunks() const {
  return static_cast<size_t>(
      std::count_if(chunks_.begin(), chunks_.end(), [](const Chunk& c) { return c.touched_ns != 0; }));
}

Task<Result<void>> IndexSlots::write_run(File& f, size_t first, size_t end, std::vector<std::byte>& copy) {
  // A copy: the memory goes on changing while the kernel reads.
  uint64_t at = begin_of(first);
  copy.assign(base_ + at, base_ + end_of(end - 1));
  for (size_t i = first; i < end; i++) chunks_[i].dirty = false;
  iovec v{copy.data(), copy.size()};
  co_return co_await f.write(at, std::span(&v, 1), Durability::none);
}

Task<Result<void>> IndexSlots::write(File& f, int64_t before_ns, bool release) {
  std::vector<std::byte> copy;
  auto old = [&](size_t i) { return chunks_[i].touched_ns != 0 && chunks_[i].touched_ns <= before_ns; };
  for (size_t i = 0; i < chunks_.size();) {
    if (!old(i)) {
      i++;
      continue;
    }
    size_t end = i;
    while (end < chunks_.size() && end - i < run_chunks_max && old(end) && chunks_[end].dirty) end++;
    if (end > i) CO_TRY(co_await write_run(f, i, end, copy));
    end = std::max(end, i + 1);
    for (; i < end; i++) {
      if (!release) continue;
      ::madvise(base_ + i * chunk_bytes, chunk_bytes, MADV_DONTNEED);
      chunks_[i] = {};
    }
  }
  co_return Result<void>();
}

}  // namespace rmq::store

#include "uring/recv_pool.h"

#include <errno.h>
#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace rmq {

RecvPool::RecvPool(Ring& ring, RecvPoolOptions options)
    : ring_(ring),
      options_(options),
      group_(ring.next_buffer_group()),
      chunks_(new Chunk[options.buffers]),
      free_(options.buffers) {}

Result<std::unique_ptr<RecvPool>> RecvPool::create(Ring& ring, RecvPoolOptions o) {
  check(std::has_single_bit(o.buffers));
  check(o.buffers <= 32768);
  std::unique_ptr<RecvPool> p(new RecvPool(ring, o));
  // Anonymous pages: memory of buffers that were never filled is never there.
  constexpr int prot = PROT_READ | PROT_WRITE;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* entries = mmap(nullptr, o.buffers * sizeof(io_uring_buf), prot, flags, -1, 0);
  if (entries == MAP_FAILED) return fail_errno(errno, "mmap of the receive ring");
  p->entries_ = static_cast<io_uring_buf_ring*>(entries);
  void* memory = mmap(nullptr, size_t{o.buffers} * o.buffer_bytes, prot, flags, -1, 0);
  if (memory == MAP_FAILED) return fail_errno(errno, "mmap of receive buffers");
  p->memory_ = static_cast<std::byte*>(memory);

  io_uring_buf_reg reg{};
  reg.ring_addr = reinterpret_cast<uintptr_t>(entries);
  reg.ring_entries = o.buffers;
  reg.bgid = p->group_;
  int e = io_uring_register_buf_ring(ring.raw(), &reg, 0);
  if (e < 0) return fail_errno(e, "register a buffer ring");
  p->registered_ = true;
  io_uring_buf_ring_init(p->entries_);
  for (uint32_t i = 0; i < o.buffers; i++) {
    Chunk& c = p->chunks_[i];
    c.data = p->memory_ + size_t{i} * o.buffer_bytes;
    c.id = i;
    io_uring_buf_ring_add(p->entries_, c.data, o.buffer_bytes, static_cast<uint16_t>(i),
                          io_uring_buf_ring_mask(o.buffers), static_cast<int>(i));
  }
  io_uring_buf_ring_advance(p->entries_, static_cast<int>(o.buffers));
  return p;
}

RecvPool::~RecvPool() {
  if (registered_) {
    check(free_ == options_.buffers);
    check(heap_chunks_ == 0);
    check(first_starved_ == nullptr);
    if (scheduled_) ring_.cancel_now(*this);
    io_uring_unregister_buf_ring(ring_.raw(), group_);
  }
  if (memory_ != nullptr) munmap(memory_, size_t{options_.buffers} * options_.buffer_bytes);
  if (entries_ != nullptr) munmap(entries_, options_.buffers * sizeof(io_uring_buf));
}

RecvPool::Chunk* RecvPool::taken(uint32_t id, uint32_t bytes) {
  check(id < options_.buffers);
  check(bytes <= options_.buffer_bytes);
  check(free_ > 0);
  free_--;
  Chunk* c = &chunks_[id];
  c->bytes = bytes;
  c->next = nullptr;
  if (bytes != 0 && !scarce()) return c;
  Chunk* copy = nullptr;
  if (bytes != 0) {
    void* p = std::malloc(sizeof(Chunk) + bytes);
    check(p != nullptr);
    copy = new (p) Chunk{nullptr, static_cast<std::byte*>(p) + sizeof(Chunk), bytes, heap_chunk};
    std::memcpy(copy->data, c->data, bytes);
    heap_chunks_++;
  }
  put_back(id);
  return copy;
}

void RecvPool::put_back(uint32_t id) {
  check(free_ < options_.buffers);
  io_uring_buf_ring_add(entries_, chunks_[id].data, options_.buffer_bytes, static_cast<uint16_t>(id),
                        io_uring_buf_ring_mask(options_.buffers), 0);
  io_uring_buf_ring_advance(entries_, 1);
  free_++;
  if (first_starved_ != nullptr) schedule();
}

void RecvPool::give_back(Chunk* c) {
  if (c->id != heap_chunk) return put_back(c->id);
  heap_chunks_--;
  std::free(c);
}

RecvBuffer RecvPool::hand_out(Chunk* c) {
  Bytes bytes(c->data, c->bytes);
  if (c->id != heap_chunk) {
    return RecvBuffer(
        bytes, [](void* pool, uint32_t id) { static_cast<RecvPool*>(pool)->put_back(id); }, this, c->id);
  }
  heap_chunks_--;  // belongs to the buffer now, needs nothing of us any more
  return RecvBuffer(bytes, [](void* chunk, uint32_t) { std::free(chunk); }, c, 0);
}

void RecvPool::starve(Client& c) {
  if (c.starved_) return;
  times_starved_++;
  c.starved_ = true;
  c.prev_ = last_starved_;
  c.next_ = nullptr;
  (last_starved_ != nullptr ? last_starved_->next_ : first_starved_) = &c;
  last_starved_ = &c;
  schedule();
}

void RecvPool::unstarve(Client& c) {
  if (!c.starved_) return;
  c.starved_ = false;
  (c.prev_ != nullptr ? c.prev_->next_ : first_starved_) = c.next_;
  (c.next_ != nullptr ? c.next_->prev_ : last_starved_) = c.prev_;
}

// Arming goes through the ring once: streams that find nothing again come back here in another turn, not in
// a loop of this one.
void RecvPool::schedule() {
  if (scheduled_ || scarce()) return;
  scheduled_ = true;
  io_uring_sqe e{};
  io_uring_prep_nop(&e);
  ring_.start(e, *this);
}

void RecvPool::on_completion(int32_t, uint32_t) {
  scheduled_ = false;
  if (scarce()) return;  // the next buffer that comes back schedules again
  for (uint32_t n = free_; n > 0 && first_starved_ != nullptr; n--) {
    Client& c = *first_starved_;
    unstarve(c);
    c.rearm();
  }
  if (first_starved_ != nullptr) schedule();
}

}  // namespace rmq

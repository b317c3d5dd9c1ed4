// RecvPool: the memory that all streams of a ring receive into. A ring of provided buffers: the kernel takes
// one when bytes came, so an idle connection holds none. A received range is a Chunk; it lies in a provided
// buffer, or, when those get scarce because readers keep many, in an allocation of its own size, and the
// provided buffer goes back at once. So the kernel always finds buffers again, however many are kept.
//
// A receive that found none (-ENOBUFS) starves; starved streams are armed again in order once a quarter of
// the buffers is free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uring/io.h"
#include "uring/ring.h"

namespace rmq {

struct RecvPoolOptions {
  uint32_t buffers = 256;  // a power of two, at most 32768
  uint32_t buffer_bytes = 16 << 10;
};

class RecvPool final : private Completion {
 public:
  struct Chunk {
    Chunk* next = nullptr;
    std::byte* data = nullptr;
    uint32_t bytes = 0;
    uint32_t id = 0;
  };
  class Client {
   public:
    virtual void rearm() = 0;

   protected:
    virtual ~Client() = default;

   private:
    friend class RecvPool;
    Client* next_ = nullptr;
    Client* prev_ = nullptr;
    bool starved_ = false;
  };

  static Result<std::unique_ptr<RecvPool>> create(Ring& ring, RecvPoolOptions options);
  ~RecvPool();  // every chunk must be back

  uint16_t group() const { return group_; }
  // A completion said that buffer `id` holds `bytes` (0: nothing, it goes back and the result is null).
  Chunk* taken(uint32_t id, uint32_t bytes);
  void give_back(Chunk* c);
  // The same as a value that gives back by itself.
  RecvBuffer hand_out(Chunk* c);

  void starve(Client& c);
  void unstarve(Client& c);  // fine when it does not starve
  uint32_t buffers() const { return options_.buffers; }
  uint32_t free_buffers() const { return free_; }
  uint64_t times_starved() const { return times_starved_; }

 private:
  static constexpr uint32_t heap_chunk = UINT32_MAX;
  RecvPool(Ring& ring, RecvPoolOptions options);
  void put_back(uint32_t id);
  void schedule();
  void on_completion(int32_t, uint32_t) override;
  bool scarce() const { return free_ < options_.buffers / 4; }

  Ring& ring_;
  RecvPoolOptions options_;
  uint16_t group_;
  io_uring_buf_ring* entries_ = nullptr;
  std::byte* memory_ = nullptr;
  bool registered_ = false;
  std::unique_ptr<Chunk[]> chunks_;
  uint32_t free_;
  uint32_t heap_chunks_ = 0;
  bool scheduled_ = false;
  uint64_t times_starved_ = 0;
  Client* first_starved_ = nullptr;
  Client* last_starved_ = nullptr;
};

}  // namespace rmq

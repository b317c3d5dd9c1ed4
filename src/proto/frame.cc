#include "proto/frame.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define RMQ_POOL_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RMQ_POOL_BLOCKS 0
#endif
#endif
#ifndef RMQ_POOL_BLOCKS
#define RMQ_POOL_BLOCKS 1
#endif

namespace rmq::proto {

namespace {

// Sizes of pooled blocks and how many free ones a thread keeps: 2.4 MiB at most. A frame freed by another
// thread than the one that made it goes to that one's lists; full lists give back to malloc.
struct SizeClass {
  size_t bytes;
  size_t kept_max;
};
constexpr SizeClass classes[] = {{1 << 10, 256}, {4 << 10, 256}, {16 << 10, 32}, {64 << 10, 12}};
constexpr size_t trusted_bytes = 64 << 10;  // taken on a peer's word; beyond it the block grows with the data

struct FreeBlock {
  FreeBlock* next;
};

struct FreeLists {
  std::array<FreeBlock*, std::size(classes)> head{};
  std::array<size_t, std::size(classes)> count{};
  bool gone = false;  // the thread is ending: frames that die later free directly
  ~FreeLists() {
    gone = true;
    for (FreeBlock*& h : head) {
      while (h) std::free(std::exchange(h, h->next));
    }
  }
};
thread_local FreeLists lists;

std::byte* checked(void* p) {
  check(p != nullptr);
  return static_cast<std::byte*>(p);
}

}  // namespace

namespace detail {

std::byte* take_block(size_t bytes, size_t* capacity) {
  for (size_t i = 0; i < std::size(classes); ++i) {
    if (bytes > classes[i].bytes) continue;
    *capacity = classes[i].bytes;
    if (RMQ_POOL_BLOCKS && lists.head[i]) {
      FreeBlock* b = lists.head[i];
      lists.head[i] = b->next;
      --lists.count[i];
      return reinterpret_cast<std::byte*>(b);
    }
    return checked(std::malloc(classes[i].bytes));
  }
  *capacity = bytes;
  return checked(std::malloc(bytes));
}

void give_block(std::byte* block, size_t capacity) {
  if (RMQ_POOL_BLOCKS && !lists.gone) {
    for (size_t i = 0; i < std::size(classes); ++i) {
      if (capacity != classes[i].bytes) continue;
      if (lists.count[i] == classes[i].kept_max) break;
      auto* b = reinterpret_cast<FreeBlock*>(block);
      b->next = lists.head[i];
      lists.head[i] = b;
      ++lists.count[i];
      return;
    }
  }
  std::free(block);
}

}  // namespace detail

// Reads the two length words. True once the frame's block is there (its prefix copied).
Result<bool> FrameParser::read_prefix(Bytes& rest) {
  size_t n = std::min(rest.size(), frame_prefix_bytes - held_);
  std::memcpy(prefix_ + held_, rest.data(), n);
  held_ += n;
  rest = rest.subspan(n);
  if (held_ < 4) return false;
  auto length = load_be<int32_t>(prefix_);
  if (length < 4) return fail(Errc::bad_input, "frame length below 4");
  if (static_cast<size_t>(length) > frame_bytes_max_)
    return fail(Errc::bad_input, "frame length above the limit");
  if (held_ < frame_prefix_bytes) return false;
  auto word = load_be<uint32_t>(prefix_ + 4);
  if (word >> 24 > 1) return fail(Errc::bad_input, "frame serialize type");
  uint32_t header = word & 0xffffff;
  if (header > static_cast<uint32_t>(length) - 4)
    return fail(Errc::bad_input, "frame header longer than the frame");
  if (header == 0) return fail(Errc::bad_input, "frame without a header");
  frame_.bytes_ = static_cast<uint32_t>(length) + 4;
  frame_.header_bytes_ = header;
  frame_.type_ = static_cast<SerializeType>(word >> 24);
  size_t total = frame_.bytes_;
  size_t at_once =
      rest.size() >= total - held_ ? total : std::min(total, trusted_bytes - frame_padding_bytes);
  frame_.block_ = detail::take_block(at_once + frame_padding_bytes, &frame_.capacity_);
  std::memcpy(frame_.block_, prefix_, frame_prefix_bytes);
  return true;
}

// Makes room for `wanted` bytes and the padding, at least doubling up to the frame's size.
void FrameParser::grow(size_t wanted) {
  size_t need = wanted + frame_padding_bytes;
  if (need <= frame_.capacity_) return;
  size_t full = frame_.bytes_ + frame_padding_bytes;
  size_t capacity = std::min(full, std::max(need, 2 * frame_.capacity_));
  if (frame_.capacity_ > classes[std::size(classes) - 1].bytes) {
    frame_.block_ = checked(std::realloc(frame_.block_, capacity));
    frame_.capacity_ = capacity;
    return;
  }
  size_t got;
  std::byte* block = detail::take_block(capacity, &got);
  std::memcpy(block, frame_.block_, held_);
  detail::give_block(frame_.block_, frame_.capacity_);
  frame_.block_ = block;
  frame_.capacity_ = got;
}

Result<Frame> FrameParser::next(Bytes& rest) {
  if (failed_) return fail(Errc::bad_input, "frame after a malformed one");
  if (!frame_) {
    if (rest.empty()) return Frame();
    Result<bool> started = read_prefix(rest);
    if (!started) {
      failed_ = true;
      return std::unexpected(started.error());
    }
    if (!*started) return Frame();
  }
  size_t n = std::min(rest.size(), frame_.bytes_ - held_);
  grow(held_ + n);
  if (n) std::memcpy(frame_.block_ + held_, rest.data(), n);
  held_ += n;
  rest = rest.subspan(n);
  if (held_ < frame_.bytes_) return Frame();
  held_ = 0;
  return std::move(frame_);
}

Result<Frame> parse_frame(Bytes bytes) {
  FrameParser parser;
  TRY_VAR(frame, parser.next(bytes));
  if (!frame) return fail(Errc::bad_input, "frame is cut");
  if (!bytes.empty()) return fail(Errc::bad_input, "bytes behind the frame");
  return std::move(frame);
}

}  // namespace rmq::proto

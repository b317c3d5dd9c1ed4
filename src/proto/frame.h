// A frame of the remoting protocol as it came off a stream, and the parser that cuts a stream into frames.
//
//   int32 L | int32 (serialize type << 24 | header bytes) | header | body        L counts what follows it
//
// A Frame owns its bytes in one block with padding behind them (simdjson reads ahead), so whatever is decoded
// from it are views that live as long as the frame does. The one copy on the way in is receive buffer to
// frame. Blocks of usual sizes come from small free lists, one set a thread; a frame may die on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/result.h"
#include "proto/codes.h"

namespace rmq::proto {

inline constexpr size_t frame_prefix_bytes = 8;    // the two length words
inline constexpr size_t frame_padding_bytes = 64;  // readable behind every frame

namespace detail {
// A block of at least `bytes` from the calling thread's free list, else from malloc. Contents undefined.
std::byte* take_block(size_t bytes, size_t* capacity);
void give_block(std::byte* block, size_t capacity);
}  // namespace detail

class Frame {
 public:
  Frame() = default;
  Frame(Frame&& o) noexcept { swap(o); }
  Frame& operator=(Frame&& o) noexcept {
    Frame(std::move(o)).swap(*this);
    return *this;
  }
  ~Frame() {
    if (block_) detail::give_block(block_, capacity_);
  }

  SerializeType serialize_type() const { return type_; }
  // The header's bytes; the codec unescapes strings in place, so decode a frame once.
  std::span<char> header() { return {reinterpret_cast<char*>(block_) + frame_prefix_bytes, header_bytes_}; }
  std::string_view header() const {
    return {reinterpret_cast<const char*>(block_) + frame_prefix_bytes, header_bytes_};
  }
  Bytes body() const {
    return {block_ + frame_prefix_bytes + header_bytes_, bytes_ - frame_prefix_bytes - header_bytes_};
  }
  std::string_view body_text() const { return as_text(body()); }
  size_t bytes() const { return bytes_; }  // on the wire, both length words included
  explicit operator bool() const { return block_ != nullptr; }

 private:
  friend class FrameParser;
  void swap(Frame& o) noexcept {
    std::swap(block_, o.block_);
    std::swap(capacity_, o.capacity_);
    std::swap(bytes_, o.bytes_);
    std::swap(header_bytes_, o.header_bytes_);
    std::swap(type_, o.type_);
  }
  std::byte* block_ = nullptr;
  size_t capacity_ = 0;
  uint32_t bytes_ = 0;
  uint32_t header_bytes_ = 0;
  SerializeType type_ = SerializeType::json;
};

// Cuts a byte stream into frames. Feed what was received, in pieces of any size:
//
//   Bytes rest = received;
//   for (;;) {
//     auto frame = parser.next(rest);        // takes bytes off the front of `rest`
//     if (!frame) return close(frame.error());  // malformed; nothing more can come of this stream
//     if (!*frame) break;                    // `rest` is empty, more bytes are needed
//     handle(std::move(*frame));
//   }
//
// Errors (Errc::bad_input, `where` names the rule; the connection is to be closed without an answer): a
// length below 4 or above 16 MiB, an unknown serialize type, a header longer than the frame. Memory is never
// taken by a claimed length: beyond 64 KiB the block grows as bytes come. One thread at a time.
class FrameParser {
 public:
  explicit FrameParser(size_t frame_bytes_max = limits::frame_bytes_max)
      : frame_bytes_max_(frame_bytes_max) {}
  Result<Frame> next(Bytes& rest);
  // Bytes of an unfinished frame held here: a stream that ends while this is not 0 was cut.
  size_t held_bytes() const { return held_; }

 private:
  Result<bool> read_prefix(Bytes& rest);
  void grow(size_t wanted);

  size_t frame_bytes_max_;
  std::byte prefix_[frame_prefix_bytes];
  Frame frame_;      // being filled
  size_t held_ = 0;  // bytes received of the frame at hand, prefix included
  bool failed_ = false;
};

// One whole frame from memory (tests, the command line): Errc::bad_input when it is not exactly one.
Result<Frame> parse_frame(Bytes bytes);

}  // namespace rmq::proto

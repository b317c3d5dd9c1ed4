// Big-endian loads and stores (the byte order of everything RocketMQ writes), and bounded reading and
// writing over byte ranges. No allocation, any thread.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace rmq {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline Bytes as_bytes(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view as_text(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

template <std::integral T>
T load_be(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) > 1) v = std::byteswap(v);
  return v;
}

template <std::integral T>
void store_be(void* p, T v) {
  if constexpr (std::endian::native == std::endian::little && sizeof(T) > 1) v = std::byteswap(v);
  std::memcpy(p, &v, sizeof v);
}

template <std::integral T>
void append_be(std::string& out, T v) {
  char b[sizeof v];
  store_be(b, v);
  out.append(b, sizeof v);
}

// Reads forward through a byte range. After a read past the end ok() is false, every further read gives
// zero or empty, and the position stays: check once, at the end.
class ByteReader {
 public:
  explicit ByteReader(Bytes b) : data_(b) {}
  explicit ByteReader(std::string_view s) : data_(as_bytes(s)) {}

  template <std::integral T>
  T get() {
    if (!take(sizeof(T))) return T{};
    return load_be<T>(data_.data() + pos_ - sizeof(T));
  }
  std::string_view text(size_t n) {
    if (!take(n)) return {};
    return as_text(data_.subspan(pos_ - n, n));
  }
  bool skip(size_t n) { return take(n); }
  bool ok() const { return ok_; }
  size_t position() const { return pos_; }
  size_t left() const { return data_.size() - pos_; }

 private:
  bool take(size_t n) {
    if (!ok_ || n > left()) return ok_ = false;
    pos_ += n;
    return true;
  }
  Bytes data_;
  size_t pos_ = 0;
  bool ok_ = true;
};

// Writes forward into a range whose size the caller computed before: running over it is a bug.
class ByteWriter {
 public:
  explicit ByteWriter(MutableBytes b) : data_(b) {}
  template <std::integral T>
  void put(T v) {
    check(pos_ + sizeof v <= data_.size());
    store_be(data_.data() + pos_, v);
    pos_ += sizeof v;
  }
  void put_text(std::string_view s) {
    check(s.size() <= data_.size() - pos_);
    if (!s.empty()) std::memcpy(data_.data() + pos_, s.data(), s.size());
    pos_ += s.size();
  }
  size_t position() const { return pos_; }

 private:
  MutableBytes data_;
  size_t pos_ = 0;
};

}  // namespace rmq

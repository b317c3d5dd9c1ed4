// RemotingCommand: the header of a frame, decoded, and the writer of frames.
//
// Decoding allocates nothing: names and values of ext fields are views into the frame (JSON strings are
// unescaped in place), in a flat array that is searched from where the last search ended, because senders and
// header structs list fields in much the same order. Encoding appends to a string of the caller, so that many
// answers share one buffer; JSON members stand in the order in which Java writes them.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "proto/codes.h"
#include "proto/frame.h"

namespace rmq::proto {

struct ExtField {
  std::string_view name;
  std::string_view value;
};

class ExtFields {
 public:
  static constexpr size_t inline_count = 24;

  void add(std::string_view name, std::string_view value);
  // Null when absent. Of a name given twice the last one counts.
  const std::string_view* find(std::string_view name) const;
  std::string_view value_or(std::string_view name, std::string_view otherwise) const {
    const std::string_view* v = find(name);
    return v ? *v : otherwise;
  }
  std::span<const ExtField> all() const {
    return more_.empty() ? std::span<const ExtField>(first_.data(), count_)
                         : std::span<const ExtField>(more_);
  }
  size_t size() const { return more_.empty() ? count_ : more_.size(); }
  void clear() {
    count_ = hint_ = 0;
    seen_ = 0;
    more_.clear();
  }

 private:
  std::array<ExtField, inline_count> first_;
  size_t count_ = 0;
  std::vector<ExtField> more_;  // all of them, once they are more than inline_count
  uint64_t seen_ = 0;           // a bit a name, so that most absent names cost nothing
  mutable size_t hint_ = 0;     // where the next search begins
};

struct RemotingCommand {
  int32_t code = 0;
  int32_t opaque = 0;
  int32_t flag = 0;
  int32_t version = 0;
  LanguageCode language = LanguageCode::JAVA;
  SerializeType serialize_type = SerializeType::json;
  std::string_view remark;
  ExtFields ext;

  RequestCode request_code() const { return static_cast<RequestCode>(code); }
  ResponseCode response_code() const { return static_cast<ResponseCode>(code); }
  bool is_response() const { return flag & flag_response; }
  bool is_oneway() const { return flag & flag_oneway; }
};

// Decodes the header of `frame`, whose bytes the command then views: it lives no longer than the frame. Call
// once a frame (strings are unescaped in place). JSON: any order, unknown members ignored, values of ext
// fields may be any scalar, null is absent. ROCKETMQ: every length is checked; the 16-bit codes of POP
// requests are mapped back (200050 arrives as 3442). Errc::bad_input names the reason: close the connection.
Result<void> decode_command(Frame& frame, RemotingCommand* out);

// What stands in a header besides the ext fields.
struct CommandMeta {
  int32_t code = 0;
  int32_t opaque = 0;
  int32_t flag = 0;
  SerializeType serialize_type = SerializeType::json;
  std::string_view remark;  // default-constructed: none
  LanguageCode language = LanguageCode::JAVA;
  int32_t version = mq_version::ours;
};

inline CommandMeta response_to(const RemotingCommand& request, ResponseCode code,
                               std::string_view remark = {}) {
  return {.code = static_cast<int32_t>(code),
          .opaque = request.opaque,
          .flag = flag_response,
          .serialize_type = request.serialize_type,
          .remark = remark};
}
inline CommandMeta request_of(RequestCode code, int32_t opaque, int32_t flag = 0,
                              SerializeType type = SerializeType::json) {
  return {.code = static_cast<int32_t>(code), .opaque = opaque, .flag = flag, .serialize_type = type};
}

// Appends one frame to `out`: constructor, ext fields, finish(). The body is appended by the caller after it,
// or sent from where it lies: finish() is told its size. Invalid UTF-8 in values becomes U+FFFD.
// Throws nothing; `out` must outlive the writer and not be touched meanwhile.
class FrameWriter {
 public:
  FrameWriter(std::string& out, const CommandMeta& meta);
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, const char* value) { add(name, std::string_view(value)); }
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  void add(std::string_view name, T value) {
    char digits[24];
    auto [end, ec] = std::to_chars(digits, digits + sizeof digits, value);
    add_plain(name, {digits, static_cast<size_t>(end - digits)});
  }
  void add(std::string_view name, bool value) { add_plain(name, value ? "true" : "false"); }
  void finish(size_t body_bytes);

 private:
  void add_plain(std::string_view name, std::string_view value);  // no escapes needed
  char* room(size_t bytes);

  std::string& out_;
  const CommandMeta meta_;
  size_t start_;       // of the frame in out_
  size_t at_;          // where the next byte goes
  size_t ext_at_ = 0;  // binary: of the length of ext fields
  bool any_ext_ = false;
};

// The usual answers without a header struct, as a whole frame.
void append_response(std::string& out, const RemotingCommand& request, ResponseCode code,
                     std::string_view remark = {}, std::string_view body = {});
// " request type N not supported", code REQUEST_CODE_NOT_SUPPORTED.
void append_not_supported(std::string& out, const RemotingCommand& request);

}  // namespace rmq::proto

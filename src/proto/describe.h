// What a header struct is made of, said once. A struct lists its fields with `describe(field(...), ...)`;
// from that list come its decoder, its encoder for both serializations, the errors that name a field, and the
// rows of the command table (command_table.h). A plain member is required, std::optional is nullable, and
// defaulted() is a plain member that keeps its initial value when absent. Text members are views: after
// decoding into the frame, for encoding into whatever the caller keeps alive.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "proto/command.h"

namespace rmq::proto {

// What a field names, for access checks and metrics.
enum class Resource : uint8_t { none, topic, group, cluster };
// Which queue and limit of the daemon a request counts against.
enum class Admission : uint8_t {
  none,         // not handled by anything, or only ever sent by a server
  send,         //
  pull,         //
  lite_pull,    //
  query,        // message look-ups
  heartbeat,    //
  client,       // unregister, client configuration
  consumer,     // consumer lists, locks, assignment
  offset,       // consumer offsets
  transaction,  //
  ack,          // POP acknowledgements
  reply,        //
  admin,        //
  ha,           //
  route,        // name server: route queries
  namesrv,      // name server: everything else
  controller,   //
  push,         // server to client
};
std::string_view name_of(Admission a);

// SEND_MESSAGE_V2 and its kin write one letter for each name.
enum class Names : uint8_t { full, brief };

enum class FieldPresence : uint8_t { required, nullable, defaulted };
enum class FieldType : uint8_t { text, int32, int64, boolean };

template <class H, class T>
struct FieldOf {
  std::string_view full;
  std::string_view brief;  // same as full where there is none
  T H::* member;
  Resource resource;
  FieldPresence presence;
  constexpr std::string_view name(Names n) const { return n == Names::brief ? brief : full; }
};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class H, class T>
constexpr FieldOf<H, T> field(std::string_view full, std::string_view brief, T H::* member,
                              Resource r = Resource::none) {
  return {full, brief, member, r, is_optional<T>::value ? FieldPresence::nullable : FieldPresence::required};
}
template <class H, class T>
constexpr FieldOf<H, T> field(std::string_view full, T H::* member, Resource r = Resource::none) {
  return field(full, full, member, r);
}
template <class H, class T>
constexpr FieldOf<H, T> defaulted(std::string_view full, std::string_view brief, T H::* member,
                                  Resource r = Resource::none) {
  static_assert(!is_optional<T>::value);
  return {full, brief, member, r, FieldPresence::defaulted};
}
template <class H, class T>
constexpr FieldOf<H, T> defaulted(std::string_view full, T H::* member, Resource r = Resource::none) {
  return defaulted(full, full, member, r);
}
template <class... F>
constexpr std::tuple<F...> describe(F... f) {
  return {f...};
}

// A request or response without fields.
struct EmptyHeader {
  static constexpr auto fields = describe();
};

template <class H>
concept Header = requires { H::fields; } && std::default_initializable<H>;

// Why ext fields did not make a header. `field` is the wire name (static storage).
struct HeaderError {
  enum class Kind : uint8_t { missing, invalid } kind;
  std::string_view field;
};
// "the custom field <topic> is null", RocketMQ's text, or "the custom field <queueId> is invalid". The code
// to answer is SYSTEM_ERROR, as there.
std::string remark_of(const HeaderError& e);

namespace detail {

// Java's Integer.parseInt, Long.parseLong and Boolean.parseBoolean.
template <std::signed_integral T>
bool parse_value(std::string_view text, T* out) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return ec == std::errc() && end == text.data() + text.size();
}
inline bool parse_value(std::string_view text, bool* out) {
  *out = text.size() == 4 && (text[0] | 32) == 't' && (text[1] | 32) == 'r' && (text[2] | 32) == 'u' &&
         (text[3] | 32) == 'e';
  return true;
}
inline bool parse_value(std::string_view text, std::string_view* out) {
  *out = text;
  return true;
}
inline bool parse_value(std::string_view text, std::string* out) {
  out->assign(text);
  return true;
}
template <class T>
bool parse_value(std::string_view text, std::optional<T>* out) {
  return parse_value(text, &out->emplace());
}

template <class H, class T>
bool decode_field(const ExtFields& ext, const FieldOf<H, T>& f, Names names, H* out, HeaderError* error) {
  const std::string_view* v = ext.find(f.name(names));
  if (!v) {
    if (f.presence != FieldPresence::required) return true;
    *error = {HeaderError::Kind::missing, f.name(names)};
    return false;
  }
  if (parse_value(*v, &(out->*f.member))) return true;
  *error = {HeaderError::Kind::invalid, f.name(names)};
  return false;
}

template <class T>
void encode_value(FrameWriter& w, std::string_view name, const T& v) {
  w.add(name, v);
}
inline void encode_value(FrameWriter& w, std::string_view name, const std::string& v) {
  w.add(name, std::string_view(v));
}
template <class T>
void encode_value(FrameWriter& w, std::string_view name, const std::optional<T>& v) {
  if (v) encode_value(w, name, *v);
}

template <class T>
constexpr FieldType type_of() {
  if constexpr (is_optional<T>::value) {
    return type_of<typename T::value_type>();
  } else if constexpr (std::same_as<T, int32_t>) {
    return FieldType::int32;
  } else if constexpr (std::same_as<T, int64_t>) {
    return FieldType::int64;
  } else if constexpr (std::same_as<T, bool>) {
    return FieldType::boolean;
  } else {
    return FieldType::text;
  }
}

}  // namespace detail

template <Header H>
std::expected<H, HeaderError> decode_header(const ExtFields& ext, Names names = Names::full) {
  H h{};
  HeaderError error{};
  bool ok = std::apply(
      [&](const auto&... f) { return (detail::decode_field(ext, f, names, &h, &error) && ...); }, H::fields);
  if (!ok) return std::unexpected(error);
  return h;
}

template <Header H>
void encode_header(FrameWriter& w, const H& h, Names names = Names::full) {
  std::apply([&](const auto&... f) { (detail::encode_value(w, f.name(names), h.*f.member), ...); },
             H::fields);
}

// Appends a whole frame. With `body_bytes` and no body the caller sends the body itself, right behind.
template <Header H>
void append_frame(std::string& out, const CommandMeta& meta, const H& h, Names names, size_t body_bytes) {
  FrameWriter w(out, meta);
  encode_header(w, h, names);
  w.finish(body_bytes);
}
template <Header H>
void append_frame(std::string& out, const CommandMeta& meta, const H& h, Names names = Names::full,
                  std::string_view body = {}) {
  append_frame(out, meta, h, names, body.size());
  out.append(body);
}

// One row of the command table: a request code, its headers, what it counts against.
template <RequestCode Code, Header Req, Header Resp, Admission Class, Names Style = Names::full>
struct Command {
  static constexpr RequestCode code = Code;
  using Request = Req;
  using Response = Resp;
  static constexpr Admission admission = Class;
  static constexpr Names names = Style;

  static std::expected<Req, HeaderError> decode(const RemotingCommand& c) {
    return decode_header<Req>(c.ext, Style);
  }
  static std::expected<Resp, HeaderError> decode_response(const RemotingCommand& c) {
    return decode_header<Resp>(c.ext);
  }
  static void append_request(std::string& out, int32_t opaque, const Req& h, std::string_view body = {},
                             int32_t flag = 0, SerializeType type = SerializeType::json) {
    append_frame(out, request_of(Code, opaque, flag, type), h, Style, body);
  }
  // A whole answer; the response header goes with any code (PULL_MESSAGE sends it with 19, 20, 21 too).
  static void append_answer(std::string& out, const RemotingCommand& request, ResponseCode rc, const Resp& h,
                            std::string_view remark = {}, std::string_view body = {}) {
    append_frame(out, response_to(request, rc, remark), h, Names::full, body);
  }
  // The same without the body, which the caller sends behind it.
  static void append_answer_head(std::string& out, const RemotingCommand& request, ResponseCode rc,
                                 const Resp& h, std::string_view remark, size_t body_bytes) {
    append_frame(out, response_to(request, rc, remark), h, Names::full, body_bytes);
  }
};

template <class... Rows>
struct CommandList {
  static constexpr size_t size = sizeof...(Rows);
};
template <class... Lists>
struct join_lists;
template <class... A>
struct join_lists<CommandList<A...>> {
  using type = CommandList<A...>;
};
template <class... A, class... B, class... More>
struct join_lists<CommandList<A...>, CommandList<B...>, More...> {
  using type = typename join_lists<CommandList<A..., B...>, More...>::type;
};

}  // namespace rmq::proto

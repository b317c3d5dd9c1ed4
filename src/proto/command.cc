#include "proto/command.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "proto/json_text.h"

namespace rmq::proto {

namespace {

// One bit for a name; names that share a bit may be equal, others are not.
uint64_t name_bit(std::string_view n) {
  if (n.empty()) return 1;
  return uint64_t{1} << ((static_cast<unsigned char>(n.front()) + 3 * n.size() +
                          5 * static_cast<unsigned char>(n.back())) &
                         63);
}

}  // namespace

void ExtFields::add(std::string_view name, std::string_view value) {
  uint64_t bit = name_bit(name);
  if (seen_ & bit) {
    for (size_t i = 0; i < size(); ++i) {
      ExtField& f = more_.empty() ? first_[i] : more_[i];
      if (f.name == name) {
        f.value = value;
        return;
      }
    }
  }
  seen_ |= bit;
  if (more_.empty() && count_ < inline_count) {
    first_[count_++] = {name, value};
    return;
  }
  if (more_.empty()) more_.assign(first_.begin(), first_.end());
  more_.push_back({name, value});
}

const std::string_view* ExtFields::find(std::string_view name) const {
  std::span<const ExtField> f = all();
  if (hint_ < f.size() && f[hint_].name == name) return &f[hint_++].value;
  if (!(seen_ & name_bit(name))) return nullptr;
  size_t i = hint_ < f.size() ? hint_ : 0;
  for (size_t n = f.size(); n > 0; --n) {
    if (f[i].name == name) {
      hint_ = i + 1;
      return &f[i].value;
    }
    if (++i == f.size()) i = 0;
  }
  return nullptr;
}

// ---------------------------------------------------------------------------------------- JSON header

namespace {

namespace ondemand = simdjson::ondemand;

constexpr size_t usual_header_bytes_max = 1 << 20;  // the thread's parser keeps room for no more than that

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n' || s.back() == '\r' || s.back() == '\t'))
    s.remove_suffix(1);
  return s;
}

// Most values are a few bytes, for which a call costs more than the search.
const void* find_backslash(std::string_view s) {
  if (s.size() > 16) return std::memchr(s.data(), '\\', s.size());
  for (const char& c : s) {
    if (c == '\\') return &c;
  }
  return nullptr;
}

// The text of a scalar: of a string what is between its quotes, unescaped in place; else the token. `*null`
// tells the token null.
bool scalar_text(std::string_view token, std::string_view* out, bool* null) {
  token = trimmed(token);
  *null = token.size() == 4 && token == "null";
  if (token.empty() || token.front() == '[' || token.front() == '{') return false;
  if (token.front() != '"') {
    *out = token;
    return true;
  }
  if (token.size() < 2 || token.back() != '"') return false;
  std::string_view inside = token.substr(1, token.size() - 2);
  const void* escape = find_backslash(inside);
  if (!escape) {
    *out = inside;
    return true;
  }
  // The frame's own bytes, which nobody reads again.
  char* text = const_cast<char*>(inside.data());
  auto plain = json_text::unescape_in_place(text, inside.size(),
                                            static_cast<size_t>(static_cast<const char*>(escape) - text));
  if (!plain) return false;
  *out = *plain;
  return true;
}

// Names of members are short: their end is looked for byte by byte. The text is a closed string, stage 1 of
// simdjson saw to that.
std::string_view name_text(const char* raw) {
  const char* p = raw;
  while (*p != '"') p += *p == '\\' ? 2 : 1;
  return {raw, static_cast<size_t>(p - raw)};
}

bool int32_of(std::string_view token, int32_t* out) {
  std::string_view text;
  bool null;
  if (!scalar_text(token, &text, &null)) return false;
  if (null) return true;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return ec == std::errc() && end == text.data() + text.size();
}

// An object or an array as a value of an ext field: Java would hold its JSON text.
bool read_ext_container(ondemand::value value, char first, std::string_view name, ExtFields* ext) {
  std::string_view text;
  simdjson::error_code error;
  if (first == '{') {
    ondemand::object o;
    error = value.get_object().get(o);
    if (!error) error = o.raw_json().get(text);
  } else {
    ondemand::array a;
    error = value.get_array().get(a);
    if (!error) error = a.raw_json().get(text);
  }
  if (error) return false;
  ext->add(name, trimmed(text));
  return true;
}

bool read_ext_value(ondemand::value value, std::string_view name, ExtFields* ext) {
  std::string_view token = value.raw_json_token();
  if (!token.empty() && (token.front() == '{' || token.front() == '[')) {
    return read_ext_container(value, token.front(), name, ext);
  }
  std::string_view text;
  bool null;
  if (!scalar_text(token, &text, &null)) return false;
  if (!null) ext->add(name, text);
  return true;
}

Result<void> read_ext_fields(ondemand::value value, ExtFields* ext) {
  ondemand::json_type type;
  if (value.type().get(type)) return fail(Errc::bad_input, "JSON header: extFields");
  if (type == ondemand::json_type::null) return {};
  ondemand::object object;
  if (value.get_object().get(object)) return fail(Errc::bad_input, "JSON header: extFields is no object");
  for (auto member : object) {
    ondemand::raw_json_string key;
    ondemand::value v;
    if (member.key().get(key) || member.value().get(v))
      return fail(Errc::bad_input, "JSON header: ext field");
    std::string_view name = name_text(key.raw());
    bool null;
    if (name.find('\\') != std::string_view::npos &&
        !scalar_text({name.data() - 1, name.size() + 2}, &name, &null)) {
      return fail(Errc::bad_input, "JSON header: name of an ext field");
    }
    if (!read_ext_value(v, name, ext)) return fail(Errc::bad_input, "JSON header: value of an ext field");
  }
  return {};
}

Result<void> read_member(std::string_view name, ondemand::value value, RemotingCommand* out) {
  if (name == "extFields") return read_ext_fields(value, &out->ext);
  int32_t* number = name == "code"      ? &out->code
                    : name == "flag"    ? &out->flag
                    : name == "opaque"  ? &out->opaque
                    : name == "version" ? &out->version
                                        : nullptr;
  if (number) {
    if (!int32_of(value.raw_json_token(), number)) return fail(Errc::bad_input, "JSON header: a number");
    return {};
  }
  if (name != "language" && name != "remark") return {};
  std::string_view text;
  bool null;
  if (!scalar_text(value.raw_json_token(), &text, &null)) return fail(Errc::bad_input, "JSON header: a text");
  if (null) return {};
  if (name == "remark") {
    out->remark = text;
  } else {
    out->language = language_of(text);
  }
  return {};
}

Result<void> read_json_header(ondemand::parser& parser, std::span<char> header, RemotingCommand* out) {
  ondemand::document doc;
  simdjson::padded_string_view text(header.data(), header.size(), header.size() + frame_padding_bytes);
  if (parser.iterate(text).get(doc)) return fail(Errc::bad_input, "JSON header: not JSON");
  ondemand::object object;
  if (doc.get_object().get(object)) return fail(Errc::bad_input, "JSON header: no object");
  for (auto member : object) {
    ondemand::raw_json_string key;
    ondemand::value value;
    if (member.key().get(key) || member.value().get(value))
      return fail(Errc::bad_input, "JSON header: a member");
    TRY(read_member(name_text(key.raw()), value, out));
  }
  if (doc.current_location().error() != simdjson::OUT_OF_BOUNDS)
    return fail(Errc::bad_input, "JSON header: bytes behind the object");
  return {};
}

// -------------------------------------------------------------------------------------- binary header

// Codes beyond 16 bits come cut: 200050 as 3442. No code of their own lies where the cut ones arrive.
int32_t widened(int16_t code, int32_t flag) {
  constexpr int32_t cut = 3 * 65'536;
  if (flag & flag_response || code < 3'442 || code > 3'543) return code;
  return name_of(static_cast<RequestCode>(code + cut)).empty() ? code : code + cut;
}

Result<void> read_binary_ext(std::string_view block, ExtFields* ext) {
  ByteReader r(block);
  while (r.left() > 0) {
    auto name_bytes = r.get<int16_t>();
    if (!r.ok() || name_bytes < 0) return fail(Errc::bad_input, "ROCKETMQ header: length of a name");
    std::string_view name = r.text(static_cast<size_t>(name_bytes));
    auto value_bytes = r.get<int32_t>();
    if (!r.ok() || value_bytes < 0) return fail(Errc::bad_input, "ROCKETMQ header: length of a value");
    std::string_view value = r.text(static_cast<size_t>(value_bytes));
    if (!r.ok()) return fail(Errc::bad_input, "ROCKETMQ header: ext field longer than the header");
    if (!value.empty()) ext->add(name, value);  // an empty value is Java's null
  }
  return {};
}

Result<void> read_binary_header(std::string_view header, RemotingCommand* out) {
  ByteReader r(header);
  auto code = r.get<int16_t>();
  auto language = r.get<uint8_t>();
  out->version = r.get<int16_t>();
  out->opaque = r.get<int32_t>();
  out->flag = r.get<int32_t>();
  auto remark_bytes = r.get<int32_t>();
  if (!r.ok() || remark_bytes < 0) return fail(Errc::bad_input, "ROCKETMQ header: length of the remark");
  out->remark = r.text(static_cast<size_t>(remark_bytes));
  auto ext_bytes = r.get<int32_t>();
  if (!r.ok() || ext_bytes < 0) return fail(Errc::bad_input, "ROCKETMQ header: length of the ext fields");
  std::string_view block = r.text(static_cast<size_t>(ext_bytes));
  if (!r.ok()) return fail(Errc::bad_input, "ROCKETMQ header: ext fields longer than the header");
  out->code = widened(code, out->flag);
  out->language = language <= static_cast<uint8_t>(LanguageCode::NODE_JS)
                      ? static_cast<LanguageCode>(language)
                      : LanguageCode::OTHER;
  return read_binary_ext(block, &out->ext);
}

}  // namespace

Result<void> decode_command(Frame& frame, RemotingCommand* out) {
  out->code = out->opaque = out->flag = out->version = 0;
  out->language = LanguageCode::JAVA;
  out->remark = {};
  out->ext.clear();
  out->serialize_type = frame.serialize_type();
  std::span<char> header = frame.header();
  if (out->serialize_type == SerializeType::rocketmq)
    return read_binary_header({header.data(), header.size()}, out);
  if (header.size() > usual_header_bytes_max) {
    ondemand::parser own;
    return read_json_header(own, header, out);
  }
  static thread_local ondemand::parser parser;
  return read_json_header(parser, header, out);
}

// --------------------------------------------------------------------------------------------- writing

namespace {

constexpr size_t usual_frame_bytes = 384;

char* put(char* p, std::string_view s) {
  if (!s.empty()) std::memcpy(p, s.data(), s.size());
  return p + s.size();
}
char* put_int(char* p, int32_t v) {
  return std::to_chars(p, p + 12, v).ptr;
}

}  // namespace

FrameWriter::FrameWriter(std::string& out, const CommandMeta& meta)
    : out_(out), meta_(meta), start_(out.size()), at_(out.size()) {
  char* p = room(usual_frame_bytes);
  p += frame_prefix_bytes;
  if (meta_.serialize_type == SerializeType::json) {
    p = put(p, "{\"code\":");
    p = put_int(p, meta_.code);
    at_ = static_cast<size_t>(p - out_.data());
    return;
  }
  store_be(p, static_cast<int16_t>(meta_.code));
  p[2] = static_cast<char>(meta_.language);
  store_be(p + 3, static_cast<int16_t>(meta_.version));
  store_be(p + 5, meta_.opaque);
  store_be(p + 9, meta_.flag);
  store_be(p + 13, static_cast<int32_t>(meta_.remark.size()));
  at_ = static_cast<size_t>(p + 17 - out_.data());
  p = put(room(meta_.remark.size() + 4), meta_.remark);
  ext_at_ = static_cast<size_t>(p - out_.data());
  at_ = ext_at_ + 4;
}

// At least `bytes` writable bytes at at_.
char* FrameWriter::room(size_t bytes) {
  if (out_.size() - at_ < bytes) {
    size_t wanted = std::max({at_ + bytes, out_.size() + out_.size() / 2, out_.capacity()});
    out_.resize_and_overwrite(wanted, [](char*, size_t n) { return n; });
  }
  return out_.data() + at_;
}

void FrameWriter::add_plain(std::string_view name, std::string_view value) {
  char* p = room(name.size() + value.size() + 24);
  if (meta_.serialize_type == SerializeType::json) {
    p = put(p, any_ext_ ? std::string_view(",\"") : std::string_view(",\"extFields\":{\""));
    p = put(p, name);
    p = put(p, "\":\"");
    p = put(p, value);
    *p++ = '"';
    any_ext_ = true;
  } else if (!value.empty()) {
    store_be(p, static_cast<int16_t>(name.size()));
    p = put(p + 2, name);
    store_be(p, static_cast<int32_t>(value.size()));
    p = put(p + 4, value);
  }
  at_ = static_cast<size_t>(p - out_.data());
}

void FrameWriter::add(std::string_view name, std::string_view value) {
  bool json = meta_.serialize_type == SerializeType::json;
  if (!json || (json_text::is_plain(name) && json_text::is_plain(value))) return add_plain(name, value);
  char* p = room(json_text::escaped_max(name.size() + value.size()) + 24);
  p = put(p, any_ext_ ? std::string_view(",\"") : std::string_view(",\"extFields\":{\""));
  p = json_text::write_escaped(name, p);
  p = put(p, "\":\"");
  p = json_text::write_escaped(value, p);
  *p++ = '"';
  any_ext_ = true;
  at_ = static_cast<size_t>(p - out_.data());
}

void FrameWriter::finish(size_t body_bytes) {
  if (meta_.serialize_type == SerializeType::json) {
    char* p = room(json_text::escaped_max(meta_.remark.size()) + 160);
    p = put(p, any_ext_ ? std::string_view("},\"flag\":") : std::string_view(",\"flag\":"));
    p = put_int(p, meta_.flag);
    p = put(p, ",\"language\":\"");
    p = put(p, name_of(meta_.language));
    p = put(p, "\",\"opaque\":");
    p = put_int(p, meta_.opaque);
    if (meta_.remark.data()) {
      p = put(p, ",\"remark\":\"");
      p = json_text::write_escaped(meta_.remark, p);
      *p++ = '"';
    }
    p = put(p, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    p = put_int(p, meta_.version);
    *p++ = '}';
    at_ = static_cast<size_t>(p - out_.data());
  } else {
    store_be(out_.data() + ext_at_, static_cast<int32_t>(at_ - ext_at_ - 4));
  }
  size_t header = at_ - start_ - frame_prefix_bytes;
  check(header <= 0xffffff);
  check(body_bytes <= 0x7fffffff - header - 4);
  store_be(out_.data() + start_, static_cast<uint32_t>(4 + header + body_bytes));
  store_be(out_.data() + start_ + 4,
           static_cast<uint32_t>(header) | static_cast<uint32_t>(meta_.serialize_type) << 24);
  out_.resize(at_);
}

void append_response(std::string& out, const RemotingCommand& request, ResponseCode code,
                     std::string_view remark, std::string_view body) {
  FrameWriter w(out, response_to(request, code, remark));
  w.finish(body.size());
  out.append(body);
}

void append_not_supported(std::string& out, const RemotingCommand& request) {
  std::string remark = " request type " + std::to_string(request.code) + " not supported";
  append_response(out, request, ResponseCode::REQUEST_CODE_NOT_SUPPORTED, remark);
}

}  // namespace rmq::proto

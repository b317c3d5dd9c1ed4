// Both header codecs (the first byte says which): what decodes must come back the same after encoding in
// either serialization, and every row of the command table must cope with the ext fields.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "proto/command_table.h"
#include "proto/json_text.h"

using namespace rmq;
using namespace rmq::proto;

static Frame frame_of(SerializeType type, std::string_view header) {
  std::string s;
  append_be(s, static_cast<uint32_t>(4 + header.size()));
  append_be(s, static_cast<uint32_t>(type) << 24 | static_cast<uint32_t>(header.size()));
  s += header;
  auto f = parse_frame(as_bytes(s));
  check(f.has_value());
  return std::move(*f);
}

template <class... Rows>
static void decode_all(CommandList<Rows...>, const RemotingCommand& c) {
  auto one = [&](auto header) {
    if (!header) check(!remark_of(header.error()).empty());
  };
  (one(Rows::decode(c)), ...);
  (one(Rows::decode_response(c)), ...);
}

static bool is_repaired(const RemotingCommand& c) {
  bool all = json_text::is_valid_utf8(c.remark);
  for (const ExtField& f : c.ext.all())
    all &= json_text::is_valid_utf8(f.name) && json_text::is_valid_utf8(f.value);
  return !all;
}

static void encode_again(const RemotingCommand& c, SerializeType type) {
  std::string out;
  FrameWriter w(out, {.code = c.code,
                      .opaque = c.opaque,
                      .flag = c.flag,
                      .serialize_type = type,
                      .remark = c.remark,
                      .language = c.language,
                      .version = c.version});
  for (const ExtField& f : c.ext.all()) {
    if (type == SerializeType::rocketmq && f.name.size() > 32'767) return;
    w.add(f.name, f.value);
  }
  w.finish(0);
  auto frame = parse_frame(as_bytes(out));
  check(frame.has_value());
  RemotingCommand back;
  check(decode_command(*frame, &back).has_value());
  check(back.opaque == c.opaque);
  check(back.flag == c.flag);
  if (type == SerializeType::json) check(back.code == c.code);
  if (type == SerializeType::json && is_repaired(c)) return;
  check(back.remark == c.remark);
  for (const ExtField& f : c.ext.all()) {
    const std::string_view* v = back.ext.find(f.name);
    if (type == SerializeType::rocketmq && f.value.empty()) {
      check(v == nullptr);
    } else {
      check(v != nullptr);
      check(*v == f.value);
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  auto type = static_cast<SerializeType>(data[0] & 1);
  Frame frame = frame_of(type, {reinterpret_cast<const char*>(data + 1), size - 1});
  RemotingCommand c;
  if (!decode_command(frame, &c)) return 0;
  decode_all(AllCommands{}, c);
  encode_again(c, SerializeType::json);
  encode_again(c, SerializeType::rocketmq);
  return 0;
}

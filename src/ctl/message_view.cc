// Idea: see message_view.h.

#include "ctl/message_view.h"

#include <fmt/format.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include <map>

#include "base/time.h"
#include "ctl/print.h"
#include "proto/fastjson.h"
#include "proto/message_id.h"
#include "proto/properties.h"

namespace rmq::ctl {

static constexpr size_t inflated_bytes_max = 64u << 20;
static constexpr size_t chunk_bytes = 256u << 10;

static Result<std::string> inflate_zlib(std::string_view in) {
  z_stream z{};
  if (inflateInit(&z) != Z_OK) return fail(Errc::limit, "zlib");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  z.avail_in = static_cast<uInt>(in.size());
  std::string out;
  int status = Z_OK;
  while (status == Z_OK && out.size() < inflated_bytes_max) {
    size_t at = out.size();
    out.resize(at + chunk_bytes);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + at);
    z.avail_out = chunk_bytes;
    status = inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
    if (status == Z_OK && z.avail_in == 0 && z.avail_out != 0) break;
  }
  inflateEnd(&z);
  if (status == Z_OK && out.size() >= inflated_bytes_max) return fail(Errc::limit, "inflated body");
  if (status != Z_STREAM_END) return fail(Errc::bad_input, "zlib body");
  return out;
}

static Result<std::string> inflate_lz4(std::string_view in) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return fail(Errc::limit, "lz4");
  std::string out;
  size_t hint = 1;
  bool stuck = false;
  while (hint != 0 && !stuck && out.size() < inflated_bytes_max) {
    size_t at = out.size(), taken = in.size(), made = chunk_bytes;
    out.resize(at + chunk_bytes);
    hint = LZ4F_decompress(context, out.data() + at, &made, in.data(), &taken, nullptr);
    if (LZ4F_isError(hint)) break;
    out.resize(at + made);
    in.remove_prefix(taken);
    stuck = taken == 0 && made == 0;
  }
  LZ4F_freeDecompressionContext(context);
  if (hint != 0 && out.size() >= inflated_bytes_max) return fail(Errc::limit, "inflated body");
  if (hint != 0) return fail(Errc::bad_input, "lz4 body");
  return out;
}

static Result<std::string> inflate_zstd(std::string_view in) {
  ZSTD_DStream* stream = ZSTD_createDStream();
  ZSTD_inBuffer source{in.data(), in.size(), 0};
  std::string out;
  size_t hint = 1;
  bool stuck = false;
  while (hint != 0 && !stuck && out.size() < inflated_bytes_max) {
    size_t at = out.size(), before = source.pos;
    out.resize(at + chunk_bytes);
    ZSTD_outBuffer target{out.data() + at, chunk_bytes, 0};
    hint = ZSTD_decompressStream(stream, &target, &source);
    if (ZSTD_isError(hint)) break;
    out.resize(at + target.pos);
    stuck = source.pos == before && target.pos == 0;
  }
  ZSTD_freeDStream(stream);
  if (hint != 0 && out.size() >= inflated_bytes_max) return fail(Errc::limit, "inflated body");
  if (hint != 0) return fail(Errc::bad_input, "zstd body");
  return out;
}

Result<std::string> inflate_body(Bytes body, int32_t sys_flag) {
  std::string_view in = as_text(body);
  if (!(sys_flag & proto::sys_flag::compressed)) return std::string(in);
  switch (sys_flag & proto::sys_flag::compression_mask) {
    case proto::sys_flag::compression_lz4:
      return inflate_lz4(in);
    case proto::sys_flag::compression_zstd:
      return inflate_zstd(in);
    default:
      return inflate_zlib(in);
  }
}

std::string Message::offset_id() const {
  return proto::make_offset_id(record.store_host, record.physical_offset);
}

Outcome<std::vector<Message>> parse_messages(Bytes body, std::string_view broker) {
  std::vector<Message> out;
  while (!body.empty()) {
    auto record = proto::parse_record(body, proto::CrcCheck::verify);
    if (!record)
      return fail(Exit::bad_input,
                  fmt::format("the broker sent a malformed message ({})", rmq::to_string(record.error())));
    body = body.subspan(record->size);
    auto text = inflate_body(record->body, record->sys_flag);
    if (!text)
      return fail(Exit::bad_input,
                  fmt::format("the body of message {}@{} cannot be inflated ({})", record->queue_id,
                              record->queue_offset, rmq::to_string(text.error())));
    out.push_back({*record, std::string(broker), std::move(*text)});
  }
  return out;
}

std::string message_line(const Message& m) {
  std::string_view tags = m.property(proto::prop::TAGS);
  return fmt::format("{}/{} @{}  {}  {}{}\n", m.broker.empty() ? m.record.store_host.to_string() : m.broker,
                     m.record.queue_id, m.record.queue_offset, format_wall_ms(m.record.store_timestamp_ms),
                     tags.empty() ? "" : fmt::format("[{}] ", one_line(tags)), one_line(m.body));
}

std::string message_page(const Message& m, int64_t now_ms, bool hex) {
  const proto::RecordView& r = m.record;
  std::string out;
  auto line = [&](std::string_view name, std::string_view value) {
    out += fmt::format("{:<22}{}\n", name, value.empty() ? "-" : one_line(value));
  };
  line("Message id", m.property(proto::prop::UNIQ_KEY));
  line("Offset message id", m.offset_id());
  line("Topic", r.topic);
  if (!m.broker.empty()) line("Broker", m.broker);
  line("Queue", fmt::format("{}", r.queue_id));
  line("Queue offset", fmt::format("{}", r.queue_offset));
  line("CommitLog offset", fmt::format("{}", r.physical_offset));
  line("Tags", m.property(proto::prop::TAGS));
  line("Keys", m.property(proto::prop::KEYS));
  line("Born", format_moment(r.born_timestamp_ms, now_ms));
  line("Stored", format_moment(r.store_timestamp_ms, now_ms));
  line("Born host", r.born_host.to_string());
  line("Store host", r.store_host.to_string());
  line("Reconsume times", fmt::format("{}", r.reconsume_times));
  line("Flag", fmt::format("{}", r.flag));
  line("sysFlag", fmt::format("{}", r.sys_flag));
  line("Prepared offset", fmt::format("{}", r.prepared_transaction_offset));
  line("Body CRC", fmt::format("{:08x}", r.body_crc));
  line("Size", format_bytes(r.size));
  out += "Properties\n";
  proto::PropertyReader reader(r.properties);
  for (proto::Property p; reader.next(&p);)
    out += fmt::format("  {:<20}{}\n", printable(p.name), one_line(p.value));
  out +=
      fmt::format("Body                  {}{}\n", format_bytes(static_cast<int64_t>(m.body.size())),
                  r.body.size() == m.body.size() && !(r.sys_flag & proto::sys_flag::compressed)
                      ? ""
                      : fmt::format(" ({} compressed)", format_bytes(static_cast<int64_t>(r.body.size()))));
  bool as_hex = hex || !is_readable_text(m.body);
  out += as_hex ? hex_dump(m.body) : m.body;
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

void write_message_json(proto::JsonWriter& w, const Message& m) {
  const proto::RecordView& r = m.record;
  w.begin_object();
  if (is_readable_text(m.body)) {
    w.member("body", std::string_view(m.body));
  } else {
    w.member("bodyBase64", std::string_view(format_base64(m.body)));
  }
  w.member("bodyCrc", static_cast<int64_t>(r.body_crc));
  w.member("bornHost", std::string_view(r.born_host.to_string()));
  w.member("bornTimestamp", r.born_timestamp_ms);
  if (!m.broker.empty()) w.member("brokerName", std::string_view(m.broker));
  w.member("commitLogOffset", r.physical_offset);
  w.member("flag", r.flag);
  w.member("msgId", m.property(proto::prop::UNIQ_KEY));
  w.member("offsetMsgId", std::string_view(m.offset_id()));
  w.member("preparedTransactionOffset", r.prepared_transaction_offset);
  std::map<std::string_view, std::string_view> properties;
  proto::PropertyReader reader(r.properties);
  for (proto::Property p; reader.next(&p);) properties[p.name] = p.value;
  w.key("properties");
  w.begin_object();
  for (const auto& [name, value] : properties) w.member(name, value);
  w.end_object();
  w.member("queueId", r.queue_id);
  w.member("queueOffset", r.queue_offset);
  w.member("reconsumeTimes", r.reconsume_times);
  w.member("storeHost", std::string_view(r.store_host.to_string()));
  w.member("storeSize", static_cast<int64_t>(r.size));
  w.member("storeTimestamp", r.store_timestamp_ms);
  w.member("sysFlag", r.sys_flag);
  w.member("topic", r.topic);
  w.end_object();
}

std::string message_json_line(const Message& m) {
  proto::JsonWriter w(proto::JsonStyle::strict);
  write_message_json(w, m);
  return w.take() + "\n";
}

}  // namespace rmq::ctl

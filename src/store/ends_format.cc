#include "store/ends_format.h"

#include "base/crc.h"
#include "store/format.h"

namespace rmq::store {

namespace {
constexpr std::string_view ends_magic = "RMQDENDS";
constexpr uint32_t ends_version = 1;
constexpr size_t ends_head_bytes = 16;  // magic 8, version 4, CRC 4
}  // namespace

std::string encode_queue_ends(const QueueEndsFile& f) {
  std::string body;
  append_be(body, f.log_begin);
  append_be(body, static_cast<uint32_t>(f.queues.size()));
  for (const QueueEnd& e : f.queues) {
    append_be(body, e.offset);
    append_be(body, e.queue_id);
    append_be(body, static_cast<uint16_t>(e.topic.size()));
    body += e.topic;
  }
  std::string out(ends_magic);
  append_be(out, ends_version);
  append_be(out, crc32(as_bytes(body)));
  return out + body;
}

std::optional<QueueEndsFile> decode_queue_ends(Bytes file) {
  ByteReader r(file);
  const bool ours = r.text(ends_magic.size()) == ends_magic && r.get<uint32_t>() == ends_version;
  const uint32_t crc = r.get<uint32_t>();
  if (!ours || !r.ok() || crc != crc32(file.subspan(ends_head_bytes))) return std::nullopt;
  QueueEndsFile f;
  f.log_begin = r.get<int64_t>();
  const uint32_t count = r.get<uint32_t>();
  for (uint32_t i = 0; i < count && r.ok(); i++) {
    QueueEnd e;
    e.offset = r.get<int64_t>();
    e.queue_id = r.get<int32_t>();
    e.topic = r.text(r.get<uint16_t>());
    if (!r.ok() || e.offset <= 0 || e.queue_id < 0 || !legal_topic(e.topic)) return std::nullopt;
    f.queues.push_back(std::move(e));
  }
  if (!r.ok() || r.left() != 0) return std::nullopt;
  return f;
}

}  // namespace rmq::store

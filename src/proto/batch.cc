#include "proto/batch.h"

#include "base/check.h"
#include "base/limits.h"

namespace rmq::proto {

namespace {
constexpr size_t batch_fixed_bytes = 4 + 4 + 4 + 4 + 4 + 2;
}

Result<bool> BatchReader::next(BatchMessage* out) {
  if (rest_.empty()) return false;
  ByteReader r(rest_);
  auto size = r.get<int32_t>();
  if (!r.ok() || size < static_cast<int32_t>(batch_fixed_bytes))
    return fail(Errc::bad_input, "batch: message size");
  if (static_cast<size_t>(size) > rest_.size()) return fail(Errc::bad_input, "batch: message is cut");
  ByteReader m(rest_.first(static_cast<size_t>(size)));
  m.skip(12);  // size, magic, CRC
  out->flag = m.get<int32_t>();
  auto body_bytes = m.get<int32_t>();
  if (body_bytes < 0) return fail(Errc::bad_input, "batch: body length");
  out->body = as_bytes(m.text(static_cast<size_t>(body_bytes)));
  auto properties_bytes = m.get<int16_t>();
  if (!m.ok() || properties_bytes < 0) return fail(Errc::bad_input, "batch: properties length");
  out->properties = m.text(static_cast<size_t>(properties_bytes));
  if (!m.ok()) return fail(Errc::bad_input, "batch: properties longer than the message");
  if (m.left() != 0) return fail(Errc::bad_input, "batch: message longer than its fields");
  rest_ = rest_.subspan(static_cast<size_t>(size));
  return true;
}

Result<uint32_t> check_batch(Bytes body) {
  BatchReader reader(body);
  BatchMessage m;
  for (uint32_t n = 0;; ++n) {
    TRY_VAR(more, reader.next(&m));
    if (!more) return n;
  }
}

void append_batch_message(std::string& out, int32_t flag, Bytes body, std::string_view properties) {
  check(properties.size() <= limits::properties_bytes_max);
  check(body.size() <= limits::frame_bytes_max);
  append_be(out, static_cast<int32_t>(batch_fixed_bytes + body.size() + properties.size()));
  append_be(out, int32_t{0});
  append_be(out, int32_t{0});
  append_be(out, flag);
  append_be(out, static_cast<int32_t>(body.size()));
  out.append(as_text(body));
  append_be(out, static_cast<int16_t>(properties.size()));
  out.append(properties);
}

}  // namespace rmq::proto

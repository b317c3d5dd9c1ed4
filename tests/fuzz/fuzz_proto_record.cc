// Records, batches and properties (the first byte says which) from any bytes: no read outside, and what
// parses encodes to the same bytes.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "proto/batch.h"
#include "proto/message_id.h"
#include "proto/properties.h"
#include "proto/record.h"

using namespace rmq;
using namespace rmq::proto;

static void records(Bytes bytes) {
  auto v = parse_record(bytes, CrcCheck::skip);
  if (!v) return;
  (void)parse_record(bytes, CrcCheck::verify);
  (void)v->tags_code();
  if (v->magic == record_magic_v2 && v->topic.size() <= 127) return;  // we would write V1
  RecordFields f{.topic = v->topic,
                 .body = v->body,
                 .properties = v->properties,
                 .queue_id = v->queue_id,
                 .flag = v->flag,
                 .sys_flag = v->sys_flag,
                 .queue_offset = v->queue_offset,
                 .physical_offset = v->physical_offset,
                 .born_timestamp_ms = v->born_timestamp_ms,
                 .born_host = v->born_host,
                 .store_timestamp_ms = v->store_timestamp_ms,
                 .store_host = v->store_host,
                 .reconsume_times = v->reconsume_times,
                 .prepared_transaction_offset = v->prepared_transaction_offset};
  check(record_size(f) == v->size);
  std::string again(v->size, '\0');
  encode_record(f, {reinterpret_cast<std::byte*>(again.data()), again.size()}, v->body_crc);
  check(again == as_text(bytes.first(v->size)));
}

static void batches(Bytes bytes) {
  BatchReader reader(bytes);
  BatchMessage m;
  uint32_t n = 0;
  std::string again;
  for (;;) {
    auto more = reader.next(&m);
    if (!more) {
      check(!check_batch(bytes).has_value());
      return;
    }
    if (!*more) break;
    ++n;
    append_batch_message(again, m.flag, m.body, m.properties);
  }
  check(*check_batch(bytes) == n);
  check(again.size() == bytes.size());
}

static void properties(std::string_view text) {
  size_t half = text.find('\n');
  std::string_view name = text.substr(0, half);
  std::string s(half == std::string_view::npos ? text : text.substr(half + 1));
  std::string kept;
  append_without(kept, s, {name});
  check(!find_property(kept, name));
  PropertyReader reader(s);
  for (Property p; reader.next(&p);) check(find_property(s, p.name).has_value());
  (void)java_hash(s);
  if (!is_property_text(name)) return;
  set_property(s, name, "value");
  check(find_property(s, name) == "value");
  check(remove_property(s, name));
  check(!find_property(s, name));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Bytes bytes(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
      records(bytes);
      break;
    case 1:
      batches(bytes);
      break;
    case 2:
      properties(as_text(bytes));
      break;
    case 3:
      (void)parse_offset_id(as_text(bytes));
      (void)parse_unique_id(as_text(bytes));
      (void)Host::parse(as_text(bytes));
  }
  return 0;
}

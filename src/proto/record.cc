#include "proto/record.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

#include "base/crc.h"
#include "base/limits.h"

namespace rmq::proto {

// ------------------------------------------------------------------------------------------------ hosts

Host Host::v4_of(uint32_t address_host_order, int32_t port) {
  Host h;
  store_be(h.address.data(), address_host_order);
  h.port = port;
  return h;
}

std::optional<Host> Host::parse(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view port = text.substr(colon + 1);
  std::string address(text.substr(0, colon));
  Host h;
  auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), h.port);
  if (ec != std::errc() || end != port.data() + port.size() || h.port < 0 || h.port > 65'535)
    return std::nullopt;
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  if (inet_pton(AF_INET, address.c_str(), h.address.data()) == 1) return h;
  h.v6 = true;
  if (inet_pton(AF_INET6, address.c_str(), h.address.data()) == 1) return h;
  return std::nullopt;
}

std::string Host::to_string() const {
  char b[INET6_ADDRSTRLEN];
  inet_ntop(v6 ? AF_INET6 : AF_INET, address.data(), b, sizeof b);
  std::string s = v6 ? "[" + std::string(b) + "]" : std::string(b);
  return s + ":" + std::to_string(port);
}

// ---------------------------------------------------------------------------------------------- writing

namespace {

bool is_v2(std::string_view topic) {
  return topic.size() > limits::topic_bytes_max;
}

void put_host(ByteWriter& w, const Host& h) {
  w.put_text({reinterpret_cast<const char*>(h.address.data()), h.address_bytes()});
  w.put(h.port);
}

constexpr uint32_t crc_mask = 0x7fffffff;
constexpr size_t crc_digits = 10;

bool lacks_separator(const RecordFields& f) {
  return f.append_crc && !f.properties.empty() && f.properties.back() != '\x02';
}

// Of all that is written so far.
void put_property_crc(ByteWriter& w, Bytes out) {
  uint32_t crc = crc32(out.first(w.position())) & crc_mask;
  w.put_text(prop::CRC32);
  w.put(char{1});
  for (size_t i = 0; i < crc_digits; i++, crc /= 10) w.put(static_cast<char>('0' + crc % 10));
  w.put(char{2});
}

// Takes the property off the end of `properties`.
std::optional<uint32_t> take_property_crc(std::string_view& properties) {
  if (properties.size() < property_crc_bytes || properties.back() != '\x02') return std::nullopt;
  const size_t at = properties.size() - property_crc_bytes;
  std::string_view tail = properties.substr(at);
  if (!tail.starts_with(prop::CRC32) || tail[prop::CRC32.size()] != '\x01') return std::nullopt;
  if (at > 0 && properties[at - 1] != '\x02') return std::nullopt;
  uint64_t crc = 0;
  for (size_t i = crc_digits; i-- > 0;) {
    const char digit = tail[prop::CRC32.size() + 1 + i];
    if (digit < '0' || digit > '9') return std::nullopt;
    crc = crc * 10 + static_cast<uint64_t>(digit - '0');
  }
  if (crc > crc_mask) return std::nullopt;
  properties = properties.substr(0, at);
  return static_cast<uint32_t>(crc);
}

size_t store_timestamp_at(int32_t sys_flag) {
  return sys_flag & sys_flag::bornhost_v6 ? 68 : 56;
}

}  // namespace

size_t properties_bytes(const RecordFields& f) {
  return f.properties.size() + (f.append_crc ? property_crc_bytes : 0) + (lacks_separator(f) ? 1 : 0);
}

size_t record_size(const RecordFields& f) {
  return record_bytes_min - 16 + f.born_host.bytes() + f.store_host.bytes() + f.body.size() +
         (is_v2(f.topic) ? 1 : 0) + f.topic.size() + properties_bytes(f);
}

size_t encode_record(const RecordFields& f, MutableBytes out, std::optional<uint32_t> crc) {
  check(f.topic.size() <= 32'767);
  check(properties_bytes(f) <= limits::properties_bytes_max);
  size_t size = record_size(f);
  check(size <= out.size());
  check(size <= 0x7fffffff);
  int32_t flags = f.sys_flag & ~(sys_flag::bornhost_v6 | sys_flag::storehost_v6);
  if (f.born_host.v6) flags |= sys_flag::bornhost_v6;
  if (f.store_host.v6) flags |= sys_flag::storehost_v6;
  ByteWriter w(out.first(size));
  w.put(static_cast<uint32_t>(size));
  w.put(is_v2(f.topic) ? record_magic_v2 : record_magic_v1);
  w.put(crc ? *crc : body_crc(f.body));
  w.put(f.queue_id);
  w.put(f.flag);
  w.put(f.queue_offset);
  w.put(f.physical_offset);
  w.put(flags);
  w.put(f.born_timestamp_ms);
  put_host(w, f.born_host);
  w.put(f.store_timestamp_ms);
  put_host(w, f.store_host);
  w.put(f.reconsume_times);
  w.put(f.prepared_transaction_offset);
  w.put(static_cast<int32_t>(f.body.size()));
  w.put_text(as_text(f.body));
  if (is_v2(f.topic)) {
    w.put(static_cast<int16_t>(f.topic.size()));
  } else {
    w.put(static_cast<int8_t>(f.topic.size()));
  }
  w.put_text(f.topic);
  w.put(static_cast<int16_t>(properties_bytes(f)));
  w.put_text(f.properties);
  if (lacks_separator(f)) w.put(char{2});
  if (f.append_crc) put_property_crc(w, out);
  check(w.position() == size);
  return size;
}

void patch_queue_offset(MutableBytes record, int64_t queue_offset) {
  check(record.size() >= record_bytes_min);
  store_be(record.data() + record_queue_offset_at, queue_offset);
}

void patch_physical_offset(MutableBytes record, int64_t physical_offset) {
  check(record.size() >= record_bytes_min);
  store_be(record.data() + record_physical_offset_at, physical_offset);
}

void patch_store_timestamp(MutableBytes record, int64_t store_timestamp_ms) {
  check(record.size() >= record_bytes_min);
  store_be(record.data() + store_timestamp_at(load_be<int32_t>(record.data() + record_sys_flag_at)),
           store_timestamp_ms);
}

int64_t record_queue_offset(Bytes record) {
  check(record.size() >= record_bytes_min);
  return load_be<int64_t>(record.data() + record_queue_offset_at);
}

int64_t record_physical_offset(Bytes record) {
  check(record.size() >= record_bytes_min);
  return load_be<int64_t>(record.data() + record_physical_offset_at);
}

int64_t record_store_timestamp(Bytes record) {
  check(record.size() >= record_bytes_min);
  return load_be<int64_t>(record.data() +
                          store_timestamp_at(load_be<int32_t>(record.data() + record_sys_flag_at)));
}

void encode_blank_record(MutableBytes out, uint32_t remaining) {
  check(remaining >= blank_record_bytes);
  ByteWriter w(out);
  w.put(remaining);
  w.put(blank_magic);
}

// ---------------------------------------------------------------------------------------------- reading

namespace {

Host get_host(ByteReader& r, bool v6) {
  Host h;
  h.v6 = v6;
  std::string_view address = r.text(v6 ? 16 : 4);
  if (!address.empty()) std::memcpy(h.address.data(), address.data(), address.size());
  h.port = r.get<int32_t>();
  return h;
}

// A length that must not be negative, and so many bytes. A negative one makes the reader fail.
std::string_view get_text(ByteReader& r, int32_t bytes) {
  return r.text(bytes < 0 ? SIZE_MAX : static_cast<size_t>(bytes));
}

}  // namespace

std::optional<RecordFront> record_front(Bytes bytes) {
  if (bytes.size() < blank_record_bytes) return std::nullopt;
  return RecordFront{load_be<uint32_t>(bytes.data()), load_be<uint32_t>(bytes.data() + 4)};
}

Result<RecordView> parse_record(Bytes bytes, CrcCheck crc) {
  auto front = record_front(bytes);
  if (!front) return fail(Errc::limit, "record is cut");
  if (!front->is_message()) return fail(Errc::bad_input, "record magic");
  if (front->size < record_bytes_min || front->size > 0x7fffffff) return fail(Errc::bad_input, "record size");
  if (front->size > bytes.size()) return fail(Errc::limit, "record is cut");
  ByteReader r(bytes.first(front->size));
  r.skip(8);
  RecordView v;
  v.size = front->size;
  v.magic = front->magic;
  v.body_crc = r.get<uint32_t>();
  v.queue_id = r.get<int32_t>();
  v.flag = r.get<int32_t>();
  v.queue_offset = r.get<int64_t>();
  v.physical_offset = r.get<int64_t>();
  v.sys_flag = r.get<int32_t>();
  v.born_timestamp_ms = r.get<int64_t>();
  v.born_host = get_host(r, v.sys_flag & sys_flag::bornhost_v6);
  v.store_timestamp_ms = r.get<int64_t>();
  v.store_host = get_host(r, v.sys_flag & sys_flag::storehost_v6);
  v.reconsume_times = r.get<int32_t>();
  v.prepared_transaction_offset = r.get<int64_t>();
  v.body = as_bytes(get_text(r, r.get<int32_t>()));
  v.topic = get_text(r, v.magic == record_magic_v1 ? r.get<int8_t>() : r.get<int16_t>());
  v.properties = get_text(r, r.get<int16_t>());
  v.property_crc = take_property_crc(v.properties);
  if (!r.ok()) return fail(Errc::bad_input, "record field longer than the record");
  if (r.left() != 0) return fail(Errc::bad_input, "record longer than its fields");
  if (crc == CrcCheck::verify && body_crc(v.body) != v.body_crc)
    return fail(Errc::corrupt, "record body CRC");
  return v;
}

bool property_crc_fits(const RecordView& v, Bytes record) {
  return !v.property_crc || (crc32(record.first(v.size - property_crc_bytes)) & crc_mask) == *v.property_crc;
}

std::optional<std::string_view> RecordView::property(std::string_view name) const {
  return find_property(properties, name);
}

int64_t RecordView::tags_code() const {
  auto tags = property(prop::TAGS);
  return tags ? tags_code_of(*tags) : 0;
}

// ------------------------------------------------------------------------------------ hash, properties

namespace {

// The code point at `p` and its length; U+FFFD and 1 for an invalid byte.
char32_t decode_utf8(const unsigned char* p, size_t left, size_t* used) {
  auto cont = [&](size_t i) { return i < left && (p[i] & 0xC0) == 0x80; };
  *used = 1;
  if (p[0] < 0x80) return p[0];
  if (p[0] >= 0xC2 && p[0] < 0xE0 && cont(1)) {
    *used = 2;
    return (p[0] & 31u) << 6 | (p[1] & 63u);
  }
  if (p[0] >= 0xE0 && p[0] < 0xF0 && cont(1) && cont(2)) {
    char32_t c = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    if (c >= 0x800 && (c < 0xD800 || c >= 0xE000)) return *used = 3, c;
  }
  if (p[0] >= 0xF0 && p[0] < 0xF5 && cont(1) && cont(2) && cont(3)) {
    char32_t c = (p[0] & 7u) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
    if (c >= 0x10000 && c < 0x110000) return *used = 4, c;
  }
  return 0xFFFD;
}

}  // namespace

int32_t java_hash(std::string_view utf8, int32_t begin) {
  auto h = static_cast<uint32_t>(begin);
  const auto* p = reinterpret_cast<const unsigned char*>(utf8.data());
  for (size_t i = 0, used; i < utf8.size(); i += used) {
    if (p[i] < 0x80) {
      h = 31 * h + p[i];
      used = 1;
      continue;
    }
    char32_t c = decode_utf8(p + i, utf8.size() - i, &used);
    if (c >= 0x10000) {
      h = 31 * h + (0xD800 + ((c - 0x10000) >> 10));
      c = 0xDC00 + ((c - 0x10000) & 0x3FF);
    }
    h = 31 * h + c;
  }
  return static_cast<int32_t>(h);
}

// From the back, since the last entry of a name is the one that counts.
std::optional<std::string_view> find_property(std::string_view properties, std::string_view name) {
  std::string_view rest = properties;
  while (!rest.empty()) {
    size_t before = rest.rfind('\x02');
    std::string_view entry = before == std::string_view::npos ? rest : rest.substr(before + 1);
    if (entry.size() > name.size() + 1 && entry[name.size()] == '\x01' && entry.starts_with(name) &&
        !name.empty()) {
      return entry.substr(name.size() + 1);
    }
    if (before == std::string_view::npos) break;
    rest = rest.substr(0, before);
  }
  return std::nullopt;
}

}  // namespace rmq::proto

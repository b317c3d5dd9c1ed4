#include "ctl/message_view.h"

#include <gtest/gtest.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "base/time.h"
#include "json.h"
#include "proto/properties.h"

namespace rmq::ctl {
namespace {

using namespace proto::sys_flag;

std::string with_zlib(const std::string& in) {
  uLongf size = compressBound(in.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(in.data()),
                     in.size()),
            Z_OK);
  out.resize(size);
  return out;
}
std::string with_lz4(const std::string& in) {
  std::string out(LZ4F_compressFrameBound(in.size(), nullptr), '\0');
  out.resize(LZ4F_compressFrame(out.data(), out.size(), in.data(), in.size(), nullptr));
  return out;
}
std::string with_zstd(const std::string& in) {
  std::string out(ZSTD_compressBound(in.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), in.data(), in.size(), 3));
  return out;
}

// Larger than the step by which bodies are inflated.
std::string long_body() {
  std::string out;
  for (int i = 0; i < 100'000; i++) out += std::to_string(i * 7919);
  return out;
}

std::string record_of(std::string_view topic, std::string_view body, std::string_view properties,
                      int32_t flags) {
  proto::RecordFields f;
  f.topic = topic;
  f.body = as_bytes(body);
  f.properties = properties;
  f.queue_id = 3;
  f.queue_offset = 17;
  f.physical_offset = 0x1234;
  f.sys_flag = flags;
  f.born_timestamp_ms = 1'700'000'000'000;
  f.store_timestamp_ms = 1'700'000'000'123;
  f.born_host = *proto::Host::parse("10.0.0.9:1");
  f.store_host = *proto::Host::parse("10.0.0.1:10911");
  std::string out(proto::record_size(f), '\0');
  proto::encode_record(f, {reinterpret_cast<std::byte*>(out.data()), out.size()});
  return out;
}

TEST(InflateBody, EveryKind) {
  std::string body = long_body();
  EXPECT_EQ(inflate_body(as_bytes(body), 0).value(), body);
  EXPECT_EQ(inflate_body(as_bytes(with_zlib(body)), compressed).value(), body);  // old clients name no kind
  EXPECT_EQ(inflate_body(as_bytes(with_zlib(body)), compressed | compression_zlib).value(), body);
  EXPECT_EQ(inflate_body(as_bytes(with_lz4(body)), compressed | compression_lz4).value(), body);
  EXPECT_EQ(inflate_body(as_bytes(with_zstd(body)), compressed | compression_zstd).value(), body);
}

TEST(InflateBody, CutAndForeignBodiesAreErrors) {
  std::string body = long_body();
  for (auto [text, kind] : {std::pair{with_zlib(body), compression_zlib},
                            {with_lz4(body), compression_lz4},
                            {with_zstd(body), compression_zstd}}) {
    std::string_view cut = std::string_view(text).substr(0, text.size() / 2);
    EXPECT_EQ(inflate_body(as_bytes(cut), compressed | kind).error().code, Errc::bad_input) << kind;
    EXPECT_FALSE(inflate_body(as_bytes("not compressed at all"), compressed | kind)) << kind;
    EXPECT_FALSE(inflate_body({}, compressed | kind)) << kind;
  }
}

TEST(InflateBody, StopsAtALimit) {
  std::string zeros(80u << 20, '\0');
  EXPECT_EQ(inflate_body(as_bytes(with_lz4(zeros)), compressed | compression_lz4).error().code, Errc::limit);
  EXPECT_EQ(inflate_body(as_bytes(with_zstd(zeros)), compressed | compression_zstd).error().code,
            Errc::limit);
}

TEST(Messages, LinePageAndJson) {
  std::string properties;
  proto::append_property(properties, "TAGS", "A");
  proto::append_property(properties, "UNIQ_KEY", "U1");
  std::string two =
      record_of("T", "hello\nworld", properties, 0) + record_of("T", std::string_view("\0\1", 2), "", 0);
  auto messages = parse_messages(as_bytes(two), "broker-a");
  ASSERT_TRUE(messages);
  ASSERT_EQ(messages->size(), 2u);
  const Message& m = (*messages)[0];
  EXPECT_EQ(message_line(m),
            "broker-a/3 @17  " + format_wall_ms(1'700'000'000'123) + "  [A] hello\\nworld\n");
  EXPECT_NE(message_line((*messages)[1]).find("hex:0001"), std::string::npos);
  EXPECT_EQ(m.offset_id(), "0A00000100002A9F0000000000001234");
  std::string page = message_page(m, 1'700'000'001'000, false);
  EXPECT_NE(page.find("Offset message id     0A00000100002A9F0000000000001234\n"), std::string::npos) << page;
  EXPECT_TRUE(page.ends_with("hello\nworld\n")) << page;
  EXPECT_NE(message_page(m, 0, true).find("|hello.world|"), std::string::npos);
  JsonDocument d;
  ASSERT_TRUE(d.parse(message_json_line(m)));
  EXPECT_EQ(d.text("/body"), "hello\nworld");
  EXPECT_EQ(d.text("/properties/TAGS"), "A");
  EXPECT_EQ(d.integer("/queueOffset"), 17);
  ASSERT_TRUE(d.parse(message_json_line((*messages)[1])));
  EXPECT_EQ(d.text("/bodyBase64"), "AAE=");
  EXPECT_FALSE(d.has("/body"));
}

TEST(Messages, CompressedBodiesAreShownInflated) {
  auto messages =
      parse_messages(as_bytes(record_of("T", with_lz4("plain"), "", compressed | compression_lz4)), "b");
  ASSERT_TRUE(messages);
  EXPECT_EQ((*messages)[0].body, "plain");
}

TEST(Messages, DamageIsAnError) {
  std::string record = record_of("T", "hello", "", 0);
  auto at = record.find("hello");
  record[at] = 'j';
  auto damaged = parse_messages(as_bytes(record), "b");
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().exit, Exit::bad_input);
  EXPECT_FALSE(parse_messages(as_bytes(std::string_view(record).substr(0, 40)), "b"));
  EXPECT_FALSE(parse_messages(as_bytes("junk that is no record at all, of some length"), "b"));
}

}  // namespace
}  // namespace rmq::ctl

// Records, properties, batches and ids.
#include "proto/record.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/crc.h"
#include "proto/batch.h"
#include "proto/message_id.h"
#include "proto/properties.h"

namespace rmq::proto {

static RecordFields some_fields() {
  RecordFields f;
  f.topic = "TopicTest";
  f.body = as_bytes(std::string_view("hello"));
  f.properties = "TAGS\x01TagA\x02KEYS\x01k1 k2\x02";
  f.queue_id = 3;
  f.flag = 7;
  f.sys_flag = sys_flag::compressed;
  f.queue_offset = 11;
  f.physical_offset = 0x123456789aLL;
  f.born_timestamp_ms = 1'700'000'000'000;
  f.born_host = *Host::parse("10.1.2.3:40000");
  f.store_timestamp_ms = 1'700'000'000'005;
  f.store_host = *Host::parse("127.0.0.1:10911");
  f.reconsume_times = 2;
  f.prepared_transaction_offset = 99;
  return f;
}

static std::vector<std::byte> encoded(const RecordFields& f) {
  std::vector<std::byte> b(record_size(f));
  EXPECT_EQ(encode_record(f, b), b.size());
  return b;
}

static void expect_same(const RecordView& v, const RecordFields& f) {
  EXPECT_EQ(v.topic, f.topic);
  EXPECT_EQ(as_text(v.body), as_text(f.body));
  EXPECT_EQ(v.properties, f.properties);
  EXPECT_EQ(v.queue_id, f.queue_id);
  EXPECT_EQ(v.flag, f.flag);
  EXPECT_EQ(v.queue_offset, f.queue_offset);
  EXPECT_EQ(v.physical_offset, f.physical_offset);
  EXPECT_EQ(v.born_timestamp_ms, f.born_timestamp_ms);
  EXPECT_EQ(v.born_host, f.born_host);
  EXPECT_EQ(v.store_timestamp_ms, f.store_timestamp_ms);
  EXPECT_EQ(v.store_host, f.store_host);
  EXPECT_EQ(v.reconsume_times, f.reconsume_times);
  EXPECT_EQ(v.prepared_transaction_offset, f.prepared_transaction_offset);
}

TEST(Record, ComesBackWithEveryKindOfHostAndTopic) {
  std::string long_topic(200, 't');
  for (const char* born : {"10.1.2.3:40000", "[2001:db8::1]:5"}) {
    for (const char* store : {"127.0.0.1:10911", "[::1]:10911"}) {
      for (std::string_view topic : {std::string_view("T"), std::string_view(long_topic)}) {
        RecordFields f = some_fields();
        f.born_host = *Host::parse(born);
        f.store_host = *Host::parse(store);
        f.topic = topic;
        auto b = encoded(f);
        auto v = parse_record(b, CrcCheck::verify);
        ASSERT_TRUE(v) << v.error().where;
        expect_same(*v, f);
        EXPECT_EQ(v->size, b.size());
        EXPECT_EQ(v->magic, topic.size() > 127 ? record_magic_v2 : record_magic_v1);
        EXPECT_EQ(bool(v->sys_flag & sys_flag::bornhost_v6), f.born_host.v6);
        EXPECT_EQ(bool(v->sys_flag & sys_flag::storehost_v6), f.store_host.v6);
      }
    }
  }
}

// enabledAppendPropCRC: the last property is the CRC of all bytes before it, lowest digit first.
TEST(Record, TheCrcOfAllOfIt) {
  for (std::string_view properties : {"TAGS\x01TagA\x02", "TAGS\x01TagA", ""}) {
    RecordFields f = some_fields();
    f.properties = properties;
    f.append_crc = true;
    auto b = encoded(f);
    const std::string_view text = as_text(b);
    uint32_t crc = crc32(Bytes(b).first(b.size() - 20)) & 0x7fffffff;
    std::string digits = std::to_string(crc);
    digits = std::string(digits.rbegin(), digits.rend());
    digits.resize(10, '0');
    EXPECT_TRUE(text.ends_with("__CRC32#\x01" + digits + "\x02"));
    auto v = parse_record(b, CrcCheck::verify);
    ASSERT_TRUE(v);
    EXPECT_EQ(v->property_crc, crc);
    EXPECT_EQ(v->properties, properties.empty() ? "" : "TAGS\x01TagA\x02");
    EXPECT_TRUE(property_crc_fits(*v, b));
    for (size_t i = 0; i + 20 < b.size(); i++) {
      auto bad = b;
      bad[i] ^= std::byte{1};
      auto w = parse_record(bad, CrcCheck::skip);
      if (w) {
        EXPECT_FALSE(w->property_crc && property_crc_fits(*w, bad)) << i;
      }
    }
  }
}

TEST(Record, WhatOnlyLooksLikeThatCrc) {
  for (std::string_view properties :
       {"__CRC32#\001123456789\002", "__CRC32#\00112345678a0\002", "A__CRC32#\0011234567890\002",
        "__CRC32#\0019999999999\002", "__CRC32#\0011234567890", "__CRC32#\0011234567890\002K\001v\002"}) {
    RecordFields f = some_fields();
    f.properties = properties;
    auto b = encoded(f);
    auto v = parse_record(b, CrcCheck::verify);
    ASSERT_TRUE(v);
    EXPECT_FALSE(v->property_crc);
    EXPECT_EQ(v->properties, properties);
    EXPECT_TRUE(property_crc_fits(*v, b));
  }
}

TEST(Record, SmallestIs91Bytes) {
  RecordFields f;
  EXPECT_EQ(record_size(f), record_bytes_min);
  EXPECT_TRUE(parse_record(encoded(f)));
}

TEST(Record, Patches) {
  for (const char* born : {"1.2.3.4:5", "[::2]:5"}) {
    RecordFields f = some_fields();
    f.born_host = *Host::parse(born);
    auto b = encoded(f);
    patch_queue_offset(b, 1234567890123);
    patch_physical_offset(b, 42);
    patch_store_timestamp(b, 777);
    f.queue_offset = 1234567890123, f.physical_offset = 42, f.store_timestamp_ms = 777;
    auto v = parse_record(b, CrcCheck::verify);
    ASSERT_TRUE(v);
    expect_same(*v, f);
    EXPECT_EQ(record_queue_offset(b), 1234567890123);
    EXPECT_EQ(record_physical_offset(b), 42);
    EXPECT_EQ(record_store_timestamp(b), 777);
  }
}

TEST(Record, DamageIsFound) {
  auto good = encoded(some_fields());
  for (size_t n = 0; n < good.size(); ++n) {
    auto v = parse_record(Bytes(good).first(n));
    ASSERT_FALSE(v) << n;
    EXPECT_EQ(v.error().code, Errc::limit) << n;
  }
  // The record may go on behind; no length inside may reach over its end.
  auto more = good;
  more.resize(more.size() + 100);
  EXPECT_TRUE(parse_record(more));
  for (size_t at : {size_t{0}, size_t{1}, size_t{2}, size_t{3}}) {
    for (int delta : {1, 255}) {
      auto b = more;
      b[at] = static_cast<std::byte>(static_cast<int>(b[at]) + delta);
      EXPECT_FALSE(parse_record(b)) << at << " " << delta;
    }
  }
  auto magic = good;
  magic[7] = std::byte{0};
  EXPECT_EQ(parse_record(magic).error().code, Errc::bad_input);
  auto body = good;
  size_t body_at = 88;
  EXPECT_EQ(body[body_at], std::byte{'h'});
  body[body_at] = std::byte{'H'};
  EXPECT_TRUE(parse_record(body, CrcCheck::skip));
  EXPECT_EQ(parse_record(body, CrcCheck::verify).error().code, Errc::corrupt);
  for (size_t at : {size_t{84}, size_t{93}, size_t{103}}) {  // body, topic and properties length
    auto b = good;
    b[at] = std::byte{0xff};
    EXPECT_FALSE(parse_record(b)) << at;
  }
}

TEST(Record, Blank) {
  std::byte b[8];
  encode_blank_record(b, 1000);
  auto front = record_front(b);
  ASSERT_TRUE(front);
  EXPECT_TRUE(front->is_blank());
  EXPECT_FALSE(front->is_message());
  EXPECT_EQ(front->size, 1000u);
  EXPECT_FALSE(parse_record(b));
  EXPECT_FALSE(record_front(Bytes(b).first(7)));
}

TEST(Record, JavaHash) {
  EXPECT_EQ(java_hash(""), 0);
  EXPECT_EQ(java_hash("TagA"), 2598919);
  EXPECT_EQ(java_hash("hello world, this overflows"), 161437415);
  EXPECT_EQ(java_hash("\xe4\xb8\xad"), 20013);
  EXPECT_EQ(java_hash("\xf0\x9f\x98\x80"), 31 * 0xD83D + 0xDE00);
  EXPECT_EQ(java_hash("\xff"), 0xFFFD);
  EXPECT_EQ(tags_code_of(""), 0);
  auto b = encoded(some_fields());
  EXPECT_EQ(parse_record(b)->tags_code(), 2598919);
}

TEST(Host, TextForms) {
  EXPECT_EQ(Host::parse("10.0.0.1:10911")->to_string(), "10.0.0.1:10911");
  EXPECT_EQ(Host::parse("[::1]:1")->to_string(), "[::1]:1");
  EXPECT_EQ(Host::parse("fe80:0:0:0:0:0:0:1:1")->to_string(), "[fe80::1]:1");
  for (const char* bad : {"", "a:1", "1.2.3.4", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "1.2.3:4", ":1"}) {
    EXPECT_FALSE(Host::parse(bad)) << bad;
  }
  EXPECT_EQ(Host::v4_of(0x7f000001, 5).to_string(), "127.0.0.1:5");
}

TEST(Properties, TolerantReader) {
  PropertyReader r(
      "a\x01"
      "1\x02\x02x\x02\x01v\x02n\x01\x02"
      "b\x01"
      "2\x01"
      "3\x02KEYS\x01k");
  Property p;
  ASSERT_TRUE(r.next(&p));
  EXPECT_EQ(p.name, "a");
  EXPECT_EQ(p.value, "1");
  ASSERT_TRUE(r.next(&p));
  EXPECT_EQ(p.name, "b");
  EXPECT_EQ(p.value,
            "2\x01"
            "3");
  ASSERT_TRUE(r.next(&p));
  EXPECT_EQ(p.name, "KEYS");
  EXPECT_EQ(p.value, "k");
  EXPECT_FALSE(r.next(&p));
}

TEST(Properties, FindTakesTheLast) {
  std::string_view t =
      "a\x01"
      "1\x02"
      "aa\x01"
      "9\x02"
      "a\x01"
      "2\x02"
      "b\x01\x02";
  EXPECT_EQ(find_property(t, "a"), "2");
  EXPECT_EQ(find_property(t, "aa"), "9");
  EXPECT_FALSE(find_property(t, "b"));
  EXPECT_FALSE(find_property(t, ""));
  EXPECT_FALSE(find_property("", "a"));
  EXPECT_EQ(find_property("a\x01"
                          "1",
                          "a"),
            "1");
}

TEST(Properties, Edit) {
  std::string t = "KEYS\x01k\x02TAGS\x01TagA";
  set_property(t, "CLUSTER", "c");
  EXPECT_EQ(t,
            "KEYS\x01k\x02TAGS\x01TagA\x02"
            "CLUSTER\x01"
            "c\x02");
  set_property(t, "KEYS", "longer");
  EXPECT_EQ(t,
            "KEYS\x01longer\x02TAGS\x01TagA\x02"
            "CLUSTER\x01"
            "c\x02");
  EXPECT_TRUE(remove_property(t, "TAGS"));
  EXPECT_FALSE(remove_property(t, "TAGS"));
  EXPECT_EQ(t,
            "KEYS\x01longer\x02"
            "CLUSTER\x01"
            "c\x02");
  std::string out;
  append_without(out, "POP_CK\x01x\x02junk\x02K\x01v", {"POP_CK"});
  EXPECT_EQ(out, "K\x01v\x02");
  EXPECT_TRUE(is_property_text("x"));
  EXPECT_FALSE(is_property_text(""));
  EXPECT_FALSE(is_property_text("a\x02"));
}

TEST(Batch, ComesBack) {
  std::string b;
  append_batch_message(b, 1, as_bytes("one"), "K\x01v\x02");
  append_batch_message(b, 2, as_bytes(""), "");
  ASSERT_EQ(*check_batch(as_bytes(b)), 2u);
  BatchReader r(as_bytes(b));
  BatchMessage m;
  ASSERT_TRUE(*r.next(&m));
  EXPECT_EQ(as_text(m.body), "one");
  EXPECT_EQ(m.properties, "K\x01v\x02");
  EXPECT_EQ(m.flag, 1);
  ASSERT_TRUE(*r.next(&m));
  EXPECT_EQ(m.flag, 2);
  EXPECT_FALSE(*r.next(&m));
  for (size_t n = 1; n < b.size(); ++n) {
    auto c = check_batch(as_bytes(b).first(n));
    if (n == 22 + 3 + 4) {
      EXPECT_EQ(*c, 1u);  // a cut between two messages
    } else {
      EXPECT_FALSE(c) << n;
    }
  }
  EXPECT_EQ(*check_batch({}), 0u);
  for (size_t at : {size_t{3}, size_t{19}, size_t{16}, size_t{24}}) {
    std::string bad = b;
    bad[at] = static_cast<char>(bad[at] + 1);
    EXPECT_FALSE(check_batch(as_bytes(bad))) << at;
  }
}

TEST(MessageId, OffsetIds) {
  Host h = *Host::parse("127.0.0.1:10911");
  std::string id = make_offset_id(h, 0x1234);
  EXPECT_EQ(id, "7F00000100002A9F0000000000001234");
  auto back = parse_offset_id(id);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->store_host, h);
  EXPECT_EQ(back->physical_offset, 0x1234);
  EXPECT_EQ(parse_offset_id("7f00000100002a9f0000000000001234")->physical_offset, 0x1234);
  Host v6 = *Host::parse("[2001:db8::7]:1");
  std::string id6 = make_offset_id(v6, INT64_MAX);
  EXPECT_EQ(id6.size(), offset_id_text_v6);
  EXPECT_EQ(parse_offset_id(id6)->store_host, v6);
  EXPECT_FALSE(parse_offset_id(""));
  EXPECT_FALSE(parse_offset_id(id.substr(1)));
  EXPECT_FALSE(parse_offset_id("7F00000100002A9F000000000000123G"));
}

TEST(MessageId, UniqueIds) {
  UniqueIdMaker maker(*Host::parse("10.0.0.9:0"), 0x1234, 0xCAFEBABE);
  std::string a = maker.next(1'700'000'000'000), b = maker.next(1'700'000'000'000);
  EXPECT_NE(a, b);
  EXPECT_EQ(a.size(), 32u);
  auto parts = parse_unique_id(b);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->host.to_string(), "10.0.0.9:0");
  EXPECT_EQ(parts->pid, 0x1234);
  EXPECT_EQ(parts->instance, 0xCAFEBABE);
  EXPECT_EQ(parts->counter, 1);
  // 2023-11-14T22:13:20Z: ms since 1 November.
  EXPECT_EQ(parts->ms_in_month, (13u * 86400 + 22 * 3600 + 13 * 60 + 20) * 1000);
  auto december = parse_unique_id(maker.next(1'701'388'800'005));
  EXPECT_EQ(december->ms_in_month, 5u);
}

}  // namespace rmq::proto

// Both header serializations, in both directions, with what real clients send and with what they must not.
#include "proto/command.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/command_table.h"

namespace rmq::proto {

static Frame frame_of(uint32_t type, std::string_view header, std::string_view body = {}) {
  std::string s;
  append_be(s, static_cast<uint32_t>(4 + header.size() + body.size()));
  append_be(s, type << 24 | static_cast<uint32_t>(header.size()));
  s.append(header).append(body);
  auto f = parse_frame(as_bytes(s));
  EXPECT_TRUE(f);
  return std::move(*f);
}

// A command with the frame it views.
struct Decoded {
  Frame frame;
  RemotingCommand command;
  Result<void> result;
};
static Decoded decode(uint32_t type, std::string_view header) {
  Decoded d{frame_of(type, header), {}, {}};
  d.result = decode_command(d.frame, &d.command);
  return d;
}
static Decoded decode_frame(std::string_view bytes) {
  auto f = parse_frame(as_bytes(bytes));
  EXPECT_TRUE(f);
  Decoded d{std::move(*f), {}, {}};
  d.result = decode_command(d.frame, &d.command);
  return d;
}
static std::string_view header_text(const std::string& bytes) {
  return std::string_view(bytes).substr(8, load_be<uint32_t>(bytes.data() + 4) & 0xffffff);
}

TEST(JsonHeader, AsJavaWritesIt) {
  auto d = decode(0, R"({"code":310,"extFields":{"a":"pg","b":"T","i":"k\u0001v\u0002","e":"-1"},"flag":0,)"
                     R"("language":"JAVA","opaque":77,"serializeTypeCurrentRPC":"JSON","version":513})");
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.command.code, 310);
  EXPECT_EQ(d.command.opaque, 77);
  EXPECT_EQ(d.command.version, 513);
  EXPECT_EQ(d.command.language, LanguageCode::JAVA);
  EXPECT_EQ(*d.command.ext.find("b"), "T");
  EXPECT_EQ(*d.command.ext.find("i"), "k\x01v\x02");
  EXPECT_EQ(*d.command.ext.find("e"), "-1");
  EXPECT_EQ(*d.command.ext.find("a"), "pg");
  EXPECT_EQ(d.command.ext.find("z"), nullptr);
  EXPECT_EQ(d.command.ext.size(), 4u);
}

TEST(JsonHeader, AnyOrderUnknownMembersScalarsAndBlanks) {
  auto d = decode(0,
                  " {\n \"version\" : 121 , \"x\":[1,{\"code\":9}],\"extFields\" : { \"q\" : 3 , \"t\":true ,"
                  "\"n\":null,\"d\":1.5 , \"o\":{\"k\":[1]} },\"opaque\": -2147483648,\"remark\":null,"
                  "\"language\":\"KLINGON\",\"flag\":2,\"code\":-5 }\n");
  ASSERT_TRUE(d.result) << d.result.error().where;
  EXPECT_EQ(d.command.code, -5);
  EXPECT_EQ(d.command.opaque, INT32_MIN);
  EXPECT_TRUE(d.command.is_oneway());
  EXPECT_EQ(d.command.language, LanguageCode::OTHER);
  EXPECT_EQ(*d.command.ext.find("q"), "3");
  EXPECT_EQ(*d.command.ext.find("t"), "true");
  EXPECT_EQ(*d.command.ext.find("d"), "1.5");
  EXPECT_EQ(*d.command.ext.find("o"), "{\"k\":[1]}");
  EXPECT_EQ(d.command.ext.find("n"), nullptr);
  EXPECT_EQ(d.command.remark, "");
}

TEST(JsonHeader, MissingMembersHaveDefaults) {
  auto d = decode(0, "{}");
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.command.code, 0);
  EXPECT_EQ(d.command.language, LanguageCode::JAVA);
  EXPECT_EQ(d.command.ext.size(), 0u);
  EXPECT_TRUE(decode(0, R"({"extFields":null,"code":null})").result);
  EXPECT_EQ(decode(0, R"({"code":"10"})").command.code, 10);
}

TEST(JsonHeader, Escapes) {
  auto d = decode(0, R"({"remark":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00\ud800x",)"
                     R"("extFields":{"a\u0062":"\u0022"}})");
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.command.remark, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdx");
  EXPECT_EQ(*d.command.ext.find("ab"), "\"");
  EXPECT_FALSE(decode(0, R"({"remark":"\q"})").result);
  EXPECT_FALSE(decode(0, R"({"remark":"\u12"})").result);
}

TEST(JsonHeader, MalformedIsRefused) {
  for (const char* bad : {"[]", "null", "1", "\"a\"", "{", "}", "{\"code\":}", "{\"code\":1} x",
                          "{\"code\":1,}", "{\"code\":99999999999}", "{\"code\":1.5}", "{\"code\":\"x\"}",
                          "{\"extFields\":[]}", "{\"extFields\":{\"a\":}}", "{\"remark\":[]}",
                          "\xff\xfe{\"code\":\xc3\x28}", "{\"remark\":\"\xc3\x28\"}", "{\"a\":\"b}"}) {
    EXPECT_FALSE(decode(0, bad).result) << bad;
  }
  EXPECT_FALSE(decode(0, std::string(1'000'000, '[')).result);
  EXPECT_FALSE(decode(0, "{\"extFields\":{\"a\":" + std::string(100'000, '[') + "}}").result);
}

TEST(JsonHeader, ManyExtFieldsAndRepeatedNames) {
  std::string h = "{\"extFields\":{";
  for (int i = 0; i < 100; ++i) h += "\"key" + std::to_string(i) + "\":\"" + std::to_string(i) + "\",";
  h += "\"key5\":\"last\"}}";
  auto d = decode(0, h);
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.command.ext.size(), 100u);
  EXPECT_EQ(*d.command.ext.find("key5"), "last");
  EXPECT_EQ(*d.command.ext.find("key99"), "99");
  EXPECT_EQ(*d.command.ext.find("key0"), "0");
  EXPECT_EQ(d.command.ext.find("key100"), nullptr);
  auto again = decode(0, R"({"extFields":{"a":"1","a":"2"}})");
  EXPECT_EQ(*again.command.ext.find("a"), "2");
}

TEST(JsonHeader, LongHeader) {
  std::string value(3'000'000, 'v');
  auto d = decode(0, "{\"extFields\":{\"i\":\"" + value + "\"},\"code\":10}");
  ASSERT_TRUE(d.result);
  EXPECT_EQ(*d.command.ext.find("i"), value);
}

static std::string binary_header(int code, std::string_view remark, std::string_view ext, int flag = 0) {
  std::string h;
  append_be(h, static_cast<int16_t>(code));
  h += '\x09';
  append_be(h, int16_t{513});
  append_be(h, int32_t{7});
  append_be(h, flag);
  append_be(h, static_cast<int32_t>(remark.size()));
  h += remark;
  append_be(h, static_cast<int32_t>(ext.size()));
  h += ext;
  return h;
}
static std::string binary_field(std::string_view k, std::string_view v) {
  std::string s;
  append_be(s, static_cast<int16_t>(k.size()));
  s += k;
  append_be(s, static_cast<int32_t>(v.size()));
  s += v;
  return s;
}

TEST(BinaryHeader, Fields) {
  auto d = decode(
      1, binary_header(310, "rem", binary_field("a", "x") + binary_field("b", "") + binary_field("c", "zz")));
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.command.code, 310);
  EXPECT_EQ(d.command.language, LanguageCode::GO);
  EXPECT_EQ(d.command.version, 513);
  EXPECT_EQ(d.command.opaque, 7);
  EXPECT_EQ(d.command.remark, "rem");
  EXPECT_EQ(*d.command.ext.find("a"), "x");
  EXPECT_EQ(d.command.ext.find("b"), nullptr);  // an empty value is Java's null
  EXPECT_EQ(*d.command.ext.find("c"), "zz");
}

TEST(BinaryHeader, CodesBeyondSixteenBits) {
  EXPECT_EQ(decode(1, binary_header(3442, "", "")).command.code, 200050);
  EXPECT_EQ(decode(1, binary_header(3447, "", "")).command.code, 200055);
  EXPECT_EQ(decode(1, binary_header(3543, "", "")).command.code, 200151);
  EXPECT_EQ(decode(1, binary_header(3542, "", "")).command.code, 3542);
  EXPECT_EQ(decode(1, binary_header(3442, "", "", flag_response)).command.code, 3442);
  EXPECT_EQ(decode(1, binary_header(40000, "", "")).command.code, -25536);
  EXPECT_EQ(decode(1, binary_header(-1, "", "")).command.code, -1);
}

TEST(BinaryHeader, EveryLengthIsChecked) {
  std::string fix = binary_header(310, "", "").substr(0, 13);
  auto with = [&](auto... ints) {
    std::string s = fix;
    (append_be(s, int32_t{ints}), ...);
    return s;
  };
  EXPECT_FALSE(decode(1, with(0x7fffffff)).result);
  EXPECT_FALSE(decode(1, with(-5, 0)).result);
  EXPECT_FALSE(decode(1, with(0, 0x7ffffff0) + binary_field("a", "x")).result);
  EXPECT_FALSE(decode(1, with(0, -1)).result);
  EXPECT_FALSE(decode(1, with(0, 12) + "\xff\xff" + std::string(10, '\0')).result);
  EXPECT_FALSE(decode(1, with(0, 12) + std::string("\0\1a\xff\xff\xff\xff\0\0\0\0\0", 12)).result);
  EXPECT_FALSE(decode(1, with(0, 8) + std::string("\0\1a\0\0\3\350x", 8)).result);
  std::string good = binary_header(310, "remark", binary_field("name", "value"));
  EXPECT_TRUE(decode(1, good).result);
  for (size_t n = 1; n < good.size(); ++n) EXPECT_FALSE(decode(1, good.substr(0, n)).result) << n;
}

TEST(FrameWriter, JsonAsJavaOrdersIt) {
  std::string out = "before";
  FrameWriter w(out, {.code = 0, .opaque = 5, .flag = 1, .remark = "FOUND"});
  w.add("nextBeginOffset", int64_t{12});
  w.add("s", "a\"b");
  w.add("t", true);
  w.finish(3);
  out += "xyz";
  EXPECT_EQ(out.substr(0, 6), "before");
  std::string frame = out.substr(6);
  EXPECT_EQ(
      header_text(frame),
      R"({"code":0,"extFields":{"nextBeginOffset":"12","s":"a\"b","t":"true"},"flag":1,"language":"JAVA",)"
      R"("opaque":5,"remark":"FOUND","serializeTypeCurrentRPC":"JSON","version":513})");
  auto d = decode_frame(frame);
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.frame.body_text(), "xyz");
}

TEST(FrameWriter, WithoutExtFieldsAndRemark) {
  std::string out;
  FrameWriter(out, {.code = 34, .opaque = -1}).finish(0);
  EXPECT_EQ(
      header_text(out),
      R"({"code":34,"flag":0,"language":"JAVA","opaque":-1,"serializeTypeCurrentRPC":"JSON","version":513})");
}

TEST(FrameWriter, BothSerializationsComeBack) {
  std::string nasty = "q\"b\\s\x01\x02\n\t/ \xc3\xa9\xf0\x9f\x98\x80";
  for (SerializeType type : {SerializeType::json, SerializeType::rocketmq}) {
    std::string out;
    FrameWriter w(
        out, {.code = 11, .opaque = 9, .flag = 3, .serialize_type = type, .remark = nasty, .version = 401});
    w.add("a", nasty);
    w.add("long", std::string(5000, 'x'));
    w.add("n", int32_t{-3});
    w.finish(0);
    auto d = decode_frame(out);
    ASSERT_TRUE(d.result);
    EXPECT_EQ(d.command.serialize_type, type);
    EXPECT_EQ(d.command.code, 11);
    EXPECT_EQ(d.command.flag, 3);
    EXPECT_EQ(d.command.version, 401);
    EXPECT_EQ(d.command.remark, nasty);
    EXPECT_EQ(*d.command.ext.find("a"), nasty);
    EXPECT_EQ(d.command.ext.find("long")->size(), 5000u);
    EXPECT_EQ(*d.command.ext.find("n"), "-3");
  }
}

TEST(FrameWriter, InvalidUtf8IsReplaced) {
  std::string out;
  FrameWriter w(out, {.remark = "\xff\xc3"});
  w.add("k", "a\x80\xed\xa0\x80z");
  w.finish(0);
  auto d = decode_frame(out);
  ASSERT_TRUE(d.result);
  EXPECT_EQ(d.command.remark, "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(*d.command.ext.find("k"), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(Header, RequiredNullableDefaulted) {
  auto d =
      decode(0, R"({"code":310,"extFields":{"a":"g","b":"t","c":"TBW102","d":"4","e":"+2","f":"0","g":"123",)"
                R"("h":"0"}})");
  auto h = SendMessageV2::decode(d.command);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->queue_id, 2);
  EXPECT_EQ(h->born_timestamp, 123);
  EXPECT_FALSE(h->properties);
  EXPECT_FALSE(h->batch);
  EXPECT_EQ(h->reconsume_times, 0);
  EXPECT_FALSE(SendMessage::decode(d.command));  // the long names are not there
}

TEST(Header, ErrorsNameTheField) {
  auto missing = GetMaxOffset::decode(decode(0, R"({"extFields":{"topic":"t"}})").command);
  ASSERT_FALSE(missing);
  EXPECT_EQ(remark_of(missing.error()), "the custom field <queueId> is null");
  for (const char* bad : {"", " 1", "1 ", "1x", "+-1", "2147483648", "0x1", "1.0"}) {
    auto invalid = GetMaxOffset::decode(
        decode(0, "{\"extFields\":{\"topic\":\"t\",\"queueId\":\"" + std::string(bad) + "\"}}").command);
    ASSERT_FALSE(invalid) << bad;
    EXPECT_EQ(remark_of(invalid.error()), "the custom field <queueId> is invalid");
  }
}

TEST(Header, OnlyTrueIsTrue) {
  auto value = [](const char* v) {
    return GetMaxOffset::decode(decode(0, "{\"extFields\":{\"topic\":\"t\",\"queueId\":0,\"committed\":" +
                                              std::string(v) + "}}")
                                    .command)
        ->committed;
  };
  EXPECT_TRUE(value("true"));
  EXPECT_TRUE(value("\"TRUE\""));
  EXPECT_FALSE(value("\"1\""));
  EXPECT_FALSE(value("1"));
  EXPECT_FALSE(value("\"yes\""));
  EXPECT_TRUE(value("null"));  // absent: the default
}

TEST(Header, RequestsAndAnswersOfARow) {
  for (SerializeType type : {SerializeType::json, SerializeType::rocketmq}) {
    std::string out;
    PopMessage::append_request(out, 3,
                               {.consumer_group = "g",
                                .topic = "t",
                                .queue_id = -1,
                                .max_msg_nums = 8,
                                .invisible_time = 1000,
                                .exp = "*"},
                               {}, 0, type);
    auto d = decode_frame(out);
    ASSERT_TRUE(d.result);
    EXPECT_EQ(d.command.code, 200050);
    auto h = PopMessage::decode(d.command);
    ASSERT_TRUE(h);
    EXPECT_EQ(h->exp, "*");
    EXPECT_EQ(h->queue_id, -1);
    out.clear();
    PopMessage::append_answer(out, d.command, ResponseCode::POLLING_TIMEOUT, {.pop_time = 1, .rest_num = 2},
                              "r", "body");
    auto a = decode_frame(out);
    ASSERT_TRUE(a.result);
    EXPECT_EQ(a.command.serialize_type, type);
    EXPECT_EQ(a.command.response_code(), ResponseCode::POLLING_TIMEOUT);
    EXPECT_TRUE(a.command.is_response());
    EXPECT_EQ(a.command.opaque, 3);
    EXPECT_EQ(a.frame.body_text(), "body");
    EXPECT_EQ(PopMessage::decode_response(a.command)->rest_num, 2);
  }
}

TEST(Header, BriefNames) {
  std::string out;
  SendMessageV2::append_request(
      out, 1, {.producer_group = "p", .topic = "t", .default_topic = "TBW102", .batch = true});
  EXPECT_NE(out.find(R"("a":"p","b":"t","c":"TBW102")"), std::string::npos);
  auto d = decode_frame(out);
  EXPECT_TRUE(SendMessageV2::decode(d.command)->batch);
}

TEST(Response, NotSupported) {
  std::string out;
  RemotingCommand c;
  c.code = -25536, c.opaque = 777;
  append_not_supported(out, c);
  auto d = decode_frame(out);
  EXPECT_EQ(d.command.code, 3);
  EXPECT_EQ(d.command.opaque, 777);
  EXPECT_EQ(d.command.remark, " request type -25536 not supported");
}

TEST(CommandTable, FindsRowsByCode) {
  const CommandRow* r = find_command(310);
  ASSERT_NE(r, nullptr);
  EXPECT_EQ(r->name, "SEND_MESSAGE_V2");
  EXPECT_EQ(r->admission, Admission::send);
  EXPECT_EQ(r->request[1].name, "b");
  EXPECT_EQ(r->request[1].full, "topic");
  EXPECT_EQ(r->request[1].resource, Resource::topic);
  EXPECT_EQ(r->request[0].presence, FieldPresence::required);
  EXPECT_EQ(r->request[8].presence, FieldPresence::nullable);
  EXPECT_EQ(r->response[2].type, FieldType::int64);
  EXPECT_EQ(find_command(16), nullptr);
  EXPECT_EQ(find_command(200151)->name, "BATCH_ACK_MESSAGE");
  EXPECT_EQ(find_command(10)->name, "SEND_MESSAGE");
  for (const CommandRow& row : command_table()) {
    EXPECT_EQ(row.name, name_of(row.code));
    EXPECT_EQ(find_command(static_cast<int32_t>(row.code)), &row);
    EXPECT_FALSE(name_of(row.admission).empty());
  }
}

}  // namespace rmq::proto

// fastjson's text read, and written.
#include "proto/fastjson.h"

#include <gtest/gtest.h>

namespace rmq::proto {

static std::string norm(std::string_view s) {
  auto r = normalise_fastjson(s);
  return r ? *r : "bad";
}

TEST(Normalise, Keys) {
  EXPECT_EQ(norm("{0:\"a\",-1:'b'}"), R"({"0":"a","-1":"b"})");
  EXPECT_EQ(norm("{a:1,$b_c:2,'d':3,\"e\":4}"), R"({"a":1,"$b_c":2,"d":3,"e":4})");
  EXPECT_EQ(norm(R"({{"brokerName":"b","queueId":0,"topic":"t"}:{"x":1}})"),
            R"({"{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"t\"}":{"x":1}})");
}

TEST(Normalise, StandardJsonStaysWhatItIs) {
  for (const char* s :
       {"{}", "[]", "[1,2.5,-3e10,true,false,null,\"x\"]", R"({"a":{"b":[{}]}})", "\"s\"", "12"}) {
    EXPECT_EQ(norm(s), s);
  }
  EXPECT_EQ(norm(" { \"a\" : [ 1 , 2 ] }\n"), R"({"a":[1,2]})");
  EXPECT_EQ(norm(R"("\u0041\n\"")"), R"("A\n\"")");
}

TEST(Normalise, Leniencies) {
  EXPECT_EQ(norm("[1,2,]"), "[1,2]");
  EXPECT_EQ(norm("{'a':1,}"), R"({"a":1})");
  EXPECT_EQ(norm("/* c */ [1, // d\n 2L, +3, NaN]"), "[1,2,3,null]");
  EXPECT_EQ(norm("'it\\'s \"x\"'"), R"("it's \"x\"")");
  EXPECT_EQ(norm("\"raw\x01\""), R"("raw\u0001")");
  EXPECT_EQ(norm("\xef\xbb\xbf{}"), "{}");
}

TEST(Normalise, Nonsense) {
  for (const char* s : {"", "{", "[", "[1", "{a}", "{a:}", "{:1}", "x", "\"open", "{}{}", "[1 2]",
                        "{\"a\":1 \"b\":2}", "'a\\", "[,]"}) {
    EXPECT_EQ(norm(s), "bad") << s;
  }
  constexpr size_t deep = 1'000'000;
  EXPECT_EQ(norm(std::string(deep, '[')), "bad");
  EXPECT_EQ(norm(std::string(deep, '{')), "bad");
  EXPECT_EQ(norm("{{{{1:1}:1}:1}:1}"), "bad");  // each level of keys doubles the text
}

TEST(JsonWriter, Styles) {
  auto write = [](JsonStyle style) {
    JsonWriter w(style);
    w.begin_object();
    w.key("m");
    w.begin_object();
    w.key_int(0);
    w.text("a\"\x01\xc3\xa9");
    w.key_object(R"({"queueId":0})");
    w.number(int64_t{-5});
    w.end_object();
    w.member("d", 0.0);
    w.member("t", true);
    w.key("l");
    w.begin_array();
    w.end_array();
    w.key("n");
    w.null();
    w.key("r");
    w.raw("[1]");
    w.end_object();
    return w.take();
  };
  EXPECT_EQ(write(JsonStyle::fastjson),
            "{\"m\":{0:\"a\\\"\\u0001\xc3\xa9\",{\"queueId\":0}:-5},\"d\":0.0,\"t\":true,\"l\":[],\"n\":null,"
            "\"r\":[1]}");
  EXPECT_EQ(write(JsonStyle::strict),
            "{\"m\":{\"0\":\"a\\\"\\u0001\\u00E9\",\"{\\\"queueId\\\":0}\":-5},\"d\":0.0,\"t\":true,\"l\":[],"
            "\"n\":null,\"r\":[1]}");
}

TEST(JsonWriter, Pretty) {
  JsonWriter w(JsonStyle::pretty);
  w.begin_object();
  w.member("a", "x,{}\\\"");
  w.key("b");
  w.begin_object();
  w.key_int(1);
  w.number(int32_t{2});
  w.end_object();
  w.key("c");
  w.begin_array();
  w.number(int32_t{1});
  w.number(int32_t{2});
  w.end_array();
  w.key("e");
  w.begin_object();
  w.end_object();
  w.end_object();
  EXPECT_EQ(w.take(),
            "{\n\t\"a\":\"x,{}\\\\\\\"\",\n\t\"b\":{\n\t\t1:2\n\t},\n\t\"c\":[\n\t\t1,\n\t\t2\n\t],\n\t\"e\":"
            "{}\n}");
}

TEST(JsonWriter, InvalidUtf8AndReuse) {
  for (JsonStyle style : {JsonStyle::fastjson, JsonStyle::strict}) {
    JsonWriter w(style);
    for (int i = 0; i < 2; ++i) {
      w.begin_object();
      w.member("k", std::string_view("a\xff"));
      w.end_object();
      EXPECT_EQ(w.take(), style == JsonStyle::strict ? "{\"k\":\"a\\uFFFD\"}" : "{\"k\":\"a\xef\xbf\xbd\"}");
    }
  }
}

}  // namespace rmq::proto

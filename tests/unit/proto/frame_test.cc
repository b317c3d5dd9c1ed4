// Frames cut out of a stream in every way a stream can be split, and the malformed ones.
#include "proto/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace rmq::proto {

static std::string raw_frame(uint32_t type, std::string_view header, std::string_view body) {
  std::string s;
  append_be(s, static_cast<uint32_t>(4 + header.size() + body.size()));
  append_be(s, type << 24 | static_cast<uint32_t>(header.size()));
  s.append(header).append(body);
  return s;
}

static std::vector<Frame> feed_in_pieces(std::string_view stream, size_t piece, FrameParser& parser) {
  std::vector<Frame> frames;
  for (size_t at = 0; at < stream.size(); at += piece) {
    Bytes rest = as_bytes(stream.substr(at, piece));
    for (;;) {
      auto f = parser.next(rest);
      if (!f) {
        ADD_FAILURE() << f.error().where;
        return frames;
      }
      if (!*f) break;
      frames.push_back(std::move(*f));
    }
    EXPECT_TRUE(rest.empty());
  }
  return frames;
}

TEST(Frame, AnySplitGivesTheSameFrames) {
  std::string big(200'000, 'b');
  std::string stream = raw_frame(0, "{}", "body") + raw_frame(1, "h", "") +
                       raw_frame(0, "{\"code\":1}", big) + raw_frame(0, "{}", "");
  for (size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{7}, size_t{13}, size_t{1000},
                       size_t{65'536}, stream.size()}) {
    FrameParser parser;
    auto frames = feed_in_pieces(stream, piece, parser);
    ASSERT_EQ(frames.size(), 4u) << piece;
    EXPECT_EQ(frames[0].body_text(), "body");
    EXPECT_EQ(std::as_const(frames[0]).header(), "{}");
    EXPECT_EQ(frames[0].serialize_type(), SerializeType::json);
    EXPECT_EQ(frames[1].serialize_type(), SerializeType::rocketmq);
    EXPECT_EQ(frames[1].body().size(), 0u);
    EXPECT_EQ(frames[2].body_text(), big);
    EXPECT_EQ(frames[2].bytes(), 8 + 10 + big.size());
    EXPECT_EQ(parser.held_bytes(), 0u);
  }
}

TEST(Frame, EverySplitInTwo) {
  std::string stream = raw_frame(0, "{}", "x") + raw_frame(0, "{ }", "yz");
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameParser parser;
    std::vector<Frame> frames;
    for (std::string_view part :
         {std::string_view(stream).substr(0, cut), std::string_view(stream).substr(cut)}) {
      Bytes rest = as_bytes(part);
      for (;;) {
        auto f = parser.next(rest);
        ASSERT_TRUE(f);
        if (!*f) break;
        frames.push_back(std::move(*f));
      }
    }
    ASSERT_EQ(frames.size(), 2u) << cut;
    EXPECT_EQ(frames[1].body_text(), "yz");
  }
}

TEST(Frame, MalformedOnesAreNamedAsSoonAsTheyShow) {
  struct Case {
    std::string bytes;
    const char* reason;
  };
  std::string too_long(4, '\0'), negative(4, '\xff');
  store_be(too_long.data(), static_cast<uint32_t>(limits::frame_bytes_max + 1));
  std::string header_too_long = raw_frame(0, "{}", "");
  header_too_long[7] = 3;
  for (const Case& c :
       {Case{std::string(4, '\0'), "frame length below 4"},
        Case{std::string("\0\0\0\3", 4), "frame length below 4"}, Case{negative, "frame length below 4"},
        Case{too_long, "frame length above the limit"}, Case{raw_frame(2, "{}", ""), "frame serialize type"},
        Case{raw_frame(255, "{}", ""), "frame serialize type"},
        Case{header_too_long, "frame header longer than the frame"},
        Case{raw_frame(0, "", "body"), "frame without a header"}}) {
    FrameParser parser;
    Bytes rest = as_bytes(c.bytes);
    auto f = parser.next(rest);
    ASSERT_FALSE(f) << c.reason;
    EXPECT_STREQ(f.error().where, c.reason);
    EXPECT_EQ(f.error().code, Errc::bad_input);
    EXPECT_FALSE(parser.next(rest));  // and nothing comes of that stream any more
  }
}

TEST(Frame, LimitIsOfTheParser) {
  std::string ok = raw_frame(0, "{}", "12"), above = raw_frame(0, "{}", "123");
  FrameParser small(8);
  Bytes rest = as_bytes(ok);
  EXPECT_TRUE(small.next(rest));
  rest = as_bytes(above);
  EXPECT_FALSE(small.next(rest));
}

// Memory must not follow a claim: the block behind 16 MiB claimed and 100 bytes sent stays small.
TEST(Frame, MemoryGrowsWithTheBytesNotWithTheClaim) {
  size_t capacity;
  std::byte* block = detail::take_block(100, &capacity);
  EXPECT_GE(capacity, 100u);
  EXPECT_LE(capacity, 4096u);
  detail::give_block(block, capacity);
  std::string front = raw_frame(0, "{}", "");
  store_be(front.data(), static_cast<uint32_t>(limits::frame_bytes_max));
  std::vector<FrameParser> parsers(2000);  // 32 GiB, were it by claim
  for (FrameParser& p : parsers) {
    Bytes rest = as_bytes(front);
    auto f = p.next(rest);
    ASSERT_TRUE(f);
    EXPECT_FALSE(*f);
    EXPECT_EQ(p.held_bytes(), front.size());
  }
}

TEST(Frame, MayDieOnAnotherThread) {
  for (int i = 0; i < 400; ++i) {
    std::string s = raw_frame(0, "{}", std::string(static_cast<size_t>(i) * 300, 'x'));
    auto f = parse_frame(as_bytes(s));
    ASSERT_TRUE(f);
    std::jthread([frame = std::move(*f), &s] { EXPECT_EQ(frame.bytes(), s.size()); });
  }
}

TEST(Frame, ParseFrameWantsExactlyOne) {
  std::string s = raw_frame(0, "{}", "x");
  EXPECT_TRUE(parse_frame(as_bytes(s)));
  EXPECT_FALSE(parse_frame(as_bytes(s).first(s.size() - 1)));
  EXPECT_FALSE(parse_frame(as_bytes(s + "y")));
}

}  // namespace rmq::proto

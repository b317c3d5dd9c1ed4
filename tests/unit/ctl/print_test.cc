#include "ctl/print.h"

#include <gtest/gtest.h>

#include "base/time.h"
#include "json.h"

namespace rmq::ctl {
namespace {

TEST(Print, BytesInATextOfABroker) {
  EXPECT_EQ(with_readable_bytes("/ has 34172928 bytes free, the limit is 41943040 bytes (x2 bytes, 3)"),
            "/ has 32.6 MiB free, the limit is 40.0 MiB (x2 B, 3)");
  EXPECT_EQ(with_readable_bytes("99999999999999999999999 bytes"), "99999999999999999999999 bytes");
  EXPECT_EQ(with_readable_bytes(""), "");
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(int64_t{5} << 30), "5.0 GiB");
}

TEST(Format, Numbers) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(999), "999");
  EXPECT_EQ(format_number(1'234'567), "1,234,567");
  EXPECT_EQ(format_number(-1000), "-1,000");
  EXPECT_EQ(format_number(-999), "-999");
}

TEST(Format, Spans) {
  EXPECT_EQ(format_span_ms(850), "850ms");
  EXPECT_EQ(format_span_ms(59'999), "59s");
  EXPECT_EQ(format_span_ms(200'000), "3m 20s");
  EXPECT_EQ(format_span_ms(600'000), "10m");
  EXPECT_EQ(format_span_ms(7'500'000), "2h 5m");
  EXPECT_EQ(format_span_ms(86'400'000 * 4 + 3'600'000 * 3), "4d 3h");
  EXPECT_EQ(format_ago(1000, 601'000), "10m ago");
  EXPECT_EQ(format_ago(1000, 1500), "just now");
  EXPECT_EQ(format_ago(61'000, 1000), "in 1m");
  EXPECT_EQ(format_moment(0, 1000), "-");
  EXPECT_EQ(format_moment(1000, 61'000), format_wall_ms(1000) + " (1m ago)");
}

TEST(Format, TextOrHex) {
  EXPECT_TRUE(is_readable_text("grüße\n\t€ 𝄞"));
  EXPECT_FALSE(is_readable_text(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_readable_text("\x1b[2J"));   // would clear the terminal
  EXPECT_FALSE(is_readable_text("\xc2\x9b"));  // the same as one C1 character
  EXPECT_FALSE(is_readable_text("\xff"));
  EXPECT_FALSE(is_readable_text("\xc0\xaf"));      // overlong
  EXPECT_FALSE(is_readable_text("\xed\xa0\x80"));  // surrogate
  EXPECT_FALSE(is_readable_text("\xe2\x82"));      // cut
  EXPECT_EQ(one_line("a\nb\\"), "a\\nb\\\\");
  EXPECT_EQ(one_line(std::string_view("\0\xff", 2)), "hex:00ff");
  EXPECT_EQ(format_base64(""), "");
  EXPECT_EQ(format_base64("f"), "Zg==");
  EXPECT_EQ(format_base64("fo"), "Zm8=");
  EXPECT_EQ(format_base64("foo"), "Zm9v");
  EXPECT_EQ(format_base64("\xff\xfe\xfd"), "//79");
  EXPECT_EQ(hex_dump("0123456789abcdefX"),
            "00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n"
            "00000010  58                                                |X|\n");
}

TEST(Format, NamesOfOthersDoNothingToATerminal) {
  EXPECT_EQ(printable("grün%RETRY%a\\b"), "grün%RETRY%a\\b");
  EXPECT_EQ(printable("a\x1b[2J\nb\r\tc"), "a\\x1b[2J\\nb\\r\\tc");
  EXPECT_EQ(printable("\xc2\x9bx\xff\x7f"), "\\xc2\\x9bx\\xff\\x7f");
  EXPECT_EQ(printable_lines("at x\n\tat y\x1b"), "at x\n\tat y\\x1b");
}

TEST(Table, ARowStaysARow) {
  Table t({{"CLIENT", "clientId"}, {"TOPICS", "topics"}});
  t.add({Cell::text("c\x1b[2J\nFAKE"), Cell::list({"a\nb", "c"})});
  EXPECT_EQ(t.to_text(0), "CLIENT          TOPICS\nc\\x1b[2J\\nFAKE  a\\nb,c\n");
  JsonDocument d;
  ASSERT_TRUE(d.parse(t.to_json()));
  EXPECT_EQ(d.text("/0/clientId"), "c\x1b[2J\nFAKE");
}

TEST(Table, AlignsByWidthAndKind) {
  Table t({{"NAME", "name"}, {"N", "n"}, {"", "hidden"}, {"SIZE", "size"}});
  t.add({Cell::text("grün"), Cell::integer(7), Cell::text("x"), Cell::bytes(2048)});
  t.add({Cell::text("a"), Cell::integer(12345), Cell::text("y"), Cell::none()});
  EXPECT_EQ(t.to_text(0),
            "NAME      N     SIZE\n"
            "grün      7  2.0 KiB\n"
            "a     12345        -\n");
}

TEST(Table, WithoutRowsIsItsHeadings) {
  Table t({{"TOPIC", "topic"}, {"N", "n"}});
  EXPECT_EQ(t.to_text(0), "TOPIC  N\n");
  EXPECT_EQ(t.to_json(), "[]\n");
}

TEST(Table, JsonIsValidAndTyped) {
  Table t({{"A", "text"}, {"B", "n"}, {"C", "list"}, {"D", "yes"}, {"E", "none"}, {"F", "real"}});
  t.add({Cell::text("quote\" \\ \n grün"), Cell::integer(INT64_MIN), Cell::list({"x", "y"}),
         Cell::boolean(true), Cell::none(), Cell::real(1)});
  JsonDocument d;
  std::string json = t.to_json();
  ASSERT_TRUE(d.parse(json)) << json;
  ASSERT_EQ(d.size(""), 1u);
  EXPECT_EQ(d.text("/0/text"), "quote\" \\ \n grün");
  EXPECT_EQ(d.integer("/0/n"), INT64_MIN);
  EXPECT_EQ(d.size("/0/list"), 2u);
  EXPECT_TRUE(d.boolean("/0/yes"));
  EXPECT_TRUE(d.is_null("/0/none"));
  EXPECT_DOUBLE_EQ(d.real("/0/real"), 1);
}

}  // namespace
}  // namespace rmq::ctl

// Files of compacted topics, byte by byte.
#include <array>

#include "machine.h"
#include "store/compaction_files.h"

namespace rmq::store::test {
namespace {

TEST(Compaction, UnitsByteForByte) {
  const BatchUnit u{.physical_offset = 0x0102030405060708,
                    .bytes = 0x11121314,
                    .tags_code = -2,
                    .store_timestamp_ms = 0x2122232425262728,
                    .base_offset = 0x3132333435363738,
                    .count = 1};
  std::array<std::byte, batch_unit_bytes> b;
  encode_batch_unit(b.data(), u);
  std::string hex;
  for (std::byte x : b) {
    char two[3];
    snprintf(two, sizeof two, "%02x", static_cast<unsigned>(x));
    hex += two;
  }
  EXPECT_EQ(hex,
            "0102030405060708"
            "11121314"
            "fffffffffffffffe"
            "2122232425262728"
            "3132333435363738"
            "0001"
            "ffffffff"
            "00000000");
  EXPECT_EQ(decode_batch_unit(b.data()), u);
  EXPECT_FALSE(batch_end_unit.is_message());
  EXPECT_FALSE(decode_batch_unit(std::array<std::byte, batch_unit_bytes>{}.data()).is_message());
}

// As a live RocketMQ 5.5.0 makes them of its defaults.
TEST(Compaction, SizesOfFiles) {
  const uint64_t queue = compaction_queue_file_bytes(10u << 20);
  EXPECT_EQ(queue, 10'485'746u);
  EXPECT_EQ(compaction_log_file_bytes(100u << 20, queue), 104'857'460u);
  EXPECT_EQ(compaction_log_file_bytes(1, 920), 4600u);
  EXPECT_EQ(compaction_log_file_bytes(23'000, 4600), 27'600u) << "an exact multiple becomes one more";
  EXPECT_EQ(compaction_log_file_bytes(23'000 + 2299, 4600), 23'000u);
  EXPECT_EQ(compaction_log_file_bytes(23'000 + 2300, 4600), 27'600u);
}

TEST(Compaction, Positions) {
  const std::map<std::string, int64_t> some{{"A_0", 17}, {"B_c_12", 0}};
  EXPECT_EQ(decode_compaction_positions(encode_compaction_positions(some)), some);
  EXPECT_EQ(decode_compaction_positions("{\n\t\"queueOffsetMap\":{\"A_0\":17,\"B_c_12\":0\n\t}\n}"), some);
  EXPECT_TRUE(decode_compaction_positions(encode_compaction_positions({})).empty());
  for (const char* broken :
       {"", "{}", "{\"queueOffsetMap\"", "{\"queueOffsetMap\":{\"A", "{\"queueOffsetMap\":{\"A\":}"})
    EXPECT_TRUE(decode_compaction_positions(broken).empty()) << broken;
}

}  // namespace
}  // namespace rmq::store::test

#include "store/compaction_format.h"

#include <charconv>

#include "base/crc.h"
#include "store/format.h"

namespace rmq::store {

// ---- units -------------------------------------------------------------------------------------------

void encode_batch_unit(std::byte* to, const BatchUnit& u) {
  store_be<int64_t>(to, u.physical_offset);
  store_be<int32_t>(to + 8, u.bytes);
  store_be<int64_t>(to + 12, u.tags_code);
  store_be<int64_t>(to + 20, u.store_timestamp_ms);
  store_be<int64_t>(to + 28, u.base_offset);
  store_be<int16_t>(to + 36, u.count);
  store_be<int32_t>(to + 38, u.compacted_offset);
  store_be<int32_t>(to + 42, 0);
}

BatchUnit decode_batch_unit(const std::byte* from) {
  return {.physical_offset = load_be<int64_t>(from),
          .bytes = load_be<int32_t>(from + 8),
          .tags_code = load_be<int64_t>(from + 12),
          .store_timestamp_ms = load_be<int64_t>(from + 20),
          .base_offset = load_be<int64_t>(from + 28),
          .count = load_be<int16_t>(from + 36),
          .compacted_offset = load_be<int32_t>(from + 38)};
}

BatchUnit compacted_unit_of(const proto::RecordView& v, int64_t physical_offset) {
  return {.physical_offset = physical_offset,
          .bytes = static_cast<int32_t>(v.size),
          .tags_code = v.tags_code(),
          .store_timestamp_ms = v.store_timestamp_ms,
          .base_offset = v.queue_offset,
          .count = 1};
}

// ---- sizes of files ----------------------------------------------------------------------------------

uint64_t compaction_queue_file_bytes(uint64_t configured) {
  return std::max<uint64_t>(configured / batch_unit_bytes, 2) * batch_unit_bytes;
}

uint64_t compaction_log_file_bytes(uint64_t configured, uint64_t queue_file_bytes) {
  constexpr uint64_t least = 5;
  const uint64_t n = configured / queue_file_bytes, rest = configured % queue_file_bytes;
  if (n < least) return queue_file_bytes * least;
  const bool down = rest > 0 && rest < queue_file_bytes / 2;
  return (down ? n : n + 1) * queue_file_bytes;
}

// ---- small files -------------------------------------------------------------------------------------

std::string encode_compaction_positions(const std::map<std::string, int64_t>& positions) {
  std::string text = "{\n\t\"queueOffsetMap\":{";
  for (const auto& [queue, offset] : positions) {
    if (text.back() != '{') text += ',';
    text += "\n\t\t\"" + queue + "\":" + std::to_string(offset);
  }
  return text + "\n\t}\n}";
}

std::map<std::string, int64_t> decode_compaction_positions(std::string_view text) {
  std::map<std::string, int64_t> out;
  constexpr std::string_view blanks = " \t\r\n";
  const size_t table = text.find("\"queueOffsetMap\"");
  if (table == std::string_view::npos) return out;
  text.remove_prefix(std::min(text.find('{', table), text.size()));
  text = text.substr(0, text.find('}'));
  for (;;) {
    const size_t open = text.find('"');
    const size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
    if (close == std::string_view::npos) return out;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const size_t number = text.find_first_not_of(blanks, text.find(':', close) + 1);
    if (number == std::string_view::npos) return out;
    int64_t offset = 0;
    const auto [end, wrong] = std::from_chars(text.data() + number, text.data() + text.size(), offset);
    if (wrong != std::errc()) return out;
    out[std::string(name)] = offset;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

namespace {

constexpr std::string_view swap_head = "RMQDSWAP 1 ";
constexpr size_t crc_digits = 8;

std::string crc_text(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out(crc_digits, '0');
  uint32_t crc = crc32(as_bytes(text));
  for (size_t i = crc_digits; i > 0; crc >>= 4) out[--i] = digits[crc & 15];
  return out;
}

void append_files(std::string& text, const std::vector<uint64_t>& files) {
  for (size_t i = 0; i < files.size(); i++) text += (i == 0 ? "" : " ") + file_name_20(files[i]);
  text += '\n';
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool parse_files(std::string_view line, std::vector<uint64_t>& files) {
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (!parse_file_name_20(line.substr(0, end), files.emplace_back())) return false;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return true;
}

}  // namespace

std::string encode_compaction_swap(const CompactionSwap& s) {
  std::string text = s.topic + "\n" + std::to_string(s.queue_id) + "\n";
  append_files(text, s.old_files);
  append_files(text, s.new_files);
  return std::string(swap_head) + crc_text(text) + "\n" + text;
}

std::optional<CompactionSwap> decode_compaction_swap(std::string_view text) {
  if (!text.starts_with(swap_head)) return std::nullopt;
  text.remove_prefix(swap_head.size());
  const std::string_view crc = take_line(text);
  if (crc != crc_text(text)) return std::nullopt;
  CompactionSwap s;
  s.topic = take_line(text);
  const bool good = legal_topic(s.topic) && parse_queue_id(take_line(text), s.queue_id) &&
                    parse_files(take_line(text), s.old_files) && parse_files(take_line(text), s.new_files);
  return good && text.empty() ? std::optional(s) : std::nullopt;
}

}  // namespace rmq::store

#include "store/change_lines.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "base/bytes.h"
#include "base/crc.h"

namespace rmq::store {

namespace {

constexpr size_t crc_text_bytes = 8;

// A line stays one whatever a name holds.
std::string escaped(std::string_view change) {
  std::string out;
  for (char c : change) {
    if (c == '\\' || c == '\n') out += '\\';
    out += c == '\n' ? 'n' : c;
  }
  return out;
}
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) i++;
    out += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return out;
}

// The change of a whole line without its end, nothing when it is not what was written.
std::string_view change_of(std::string_view line) {
  if (line.size() <= crc_text_bytes + 1 || line[crc_text_bytes] != ' ') return {};
  uint32_t crc = 0;
  auto [end, ec] = std::from_chars(line.data(), line.data() + crc_text_bytes, crc, 16);
  if (ec != std::errc{} || end != line.data() + crc_text_bytes) return {};
  std::string_view change = line.substr(crc_text_bytes + 1);
  return crc32(as_bytes(change)) == crc ? change : std::string_view{};
}

}  // namespace

void append_change_line(std::string& out, std::string_view change) {
  constexpr char digits[] = "0123456789abcdef";
  std::string safe;
  if (change.find_first_of("\\\n") != std::string_view::npos) change = safe = escaped(change);
  uint32_t crc = crc32(as_bytes(change));
  for (int shift = 28; shift >= 0; shift -= 4) out += digits[crc >> shift & 15];
  out += ' ';
  out += change;
  out += '\n';
}

std::vector<std::string> changes_of(std::string_view content) {
  std::vector<std::string> changes;
  for (size_t end = content.find('\n'); end != std::string_view::npos; end = content.find('\n')) {
    std::string_view change = change_of(content.substr(0, end));
    if (change.empty()) break;
    changes.push_back(unescaped(change));
    content.remove_prefix(end + 1);
  }
  return changes;
}

std::string line_of_file(std::string_view content) {
  return fmt::format("J {:08x} {}", crc32(as_bytes(content)), content.size());
}

size_t first_change_since(const std::vector<std::string>& changes, std::string_view content,
                          bool from_backup) {
  const std::string line = line_of_file(content);
  for (size_t i = changes.size(); i > 0; i--)
    if (changes[i - 1] == line) return i;
  return from_backup ? 0 : changes.size();
}

}  // namespace rmq::store

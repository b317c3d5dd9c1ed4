// Base64 with the alphabet for addresses (RFC 4648, section 5: '-' and '_'), as Java's getUrlEncoder(). No
// allocation beyond the result, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rmq {

std::string base64url_encode(std::string_view bytes);  // padded with '='
// Nothing: not such text. Padding may be missing, as Java's decoder has it; nothing may stand behind it.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace rmq

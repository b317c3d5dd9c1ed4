// Java's .properties text, as java.util.Properties.load reads it: the body of UPDATE_BROKER_CONFIG and
// UPDATE_NAMESRV_CONFIG.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rmq {

using Properties = std::vector<std::pair<std::string, std::string>>;

// In the order of the text; a key may come twice (the last one counts in Java). Comments, continued lines,
// escapes (\uXXXX too) and the separators '=', ':' and blank are understood. Never fails.
Properties parse_properties(std::string_view text);

}  // namespace rmq

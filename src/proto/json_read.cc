#include "proto/json_read.h"

namespace rmq::proto::json_read {

Result<void> Document::parse(std::string_view text) {
  // Each value takes two characters at least, and few are looked at twice.
  values_max_ = 4096 + 8 * text.size();
  if (!parser_.parse(text.data(), text.size()).get(root_)) return {};
  TRY_VAR(standard, normalise_fastjson(text));
  if (parser_.parse(standard).get(root_)) return fail(Errc::bad_input, "JSON body");
  return {};
}

Value Document::root() {
  return {this, root_};
}

// "$" is the root; ".name" and "[index]" go down. Other forms ("..", "@") stay as they are.
dom::element Document::resolved(dom::element e) const {
  dom::object o;
  std::string_view path;
  if (e.get(o) || o.size() != 1 || o.at_key("$ref").get(path) || !path.starts_with('$')) return e;
  dom::element at = root_;
  path.remove_prefix(1);
  while (!path.empty()) {
    char kind = path.front();
    path.remove_prefix(1);
    if (kind == '.') {
      size_t end = std::min(path.find_first_of(".["), path.size());
      if (at.at_key(path.substr(0, end)).get(at)) return e;
      path.remove_prefix(end);
    } else if (kind == '[') {
      size_t index = 0, end = path.find(']');
      if (end == std::string_view::npos) return e;
      if (std::from_chars(path.data(), path.data() + end, index).ec != std::errc()) return e;
      if (at.at(index).get(at)) return e;
      path.remove_prefix(end + 1);
    } else {
      return e;
    }
  }
  return at;
}

}  // namespace rmq::proto::json_read

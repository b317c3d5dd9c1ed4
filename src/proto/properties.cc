#include "proto/properties.h"

#include <algorithm>

namespace rmq::proto {

bool PropertyReader::next(Property* out) {
  while (!rest_.empty()) {
    size_t end = rest_.find(property_separator);
    std::string_view entry = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    size_t split = entry.find(name_value_separator);
    if (split == std::string_view::npos || split == 0 || split + 1 == entry.size()) continue;
    *out = {entry.substr(0, split), entry.substr(split + 1)};
    return true;
  }
  return false;
}

void append_property(std::string& text, std::string_view name, std::string_view value) {
  text.append(name);
  text += name_value_separator;
  text.append(value);
  text += property_separator;
}

bool is_property_text(std::string_view s) {
  return !s.empty() && s.find(name_value_separator) == std::string_view::npos &&
         s.find(property_separator) == std::string_view::npos;
}

void set_property(std::string& text, std::string_view name, std::string_view value) {
  if (auto old = find_property(text, name)) {
    text.replace(static_cast<size_t>(old->data() - text.data()), old->size(), value);
    return;
  }
  if (!text.empty() && text.back() != property_separator) text += property_separator;
  append_property(text, name, value);
}

bool remove_property(std::string& text, std::string_view name) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(property_separator, at);
    size_t next = end == std::string::npos ? text.size() : end + 1;
    std::string_view entry = std::string_view(text).substr(at, next - at);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == name_value_separator) {
      text.erase(at, next - at);
      any = true;
    } else {
      at = next;
    }
  }
  return any;
}

void append_without(std::string& out, std::string_view text, std::initializer_list<std::string_view> drop) {
  PropertyReader reader(text);
  for (Property p; reader.next(&p);) {
    if (std::ranges::find(drop, p.name) == drop.end()) append_property(out, p.name, p.value);
  }
}

}  // namespace rmq::proto

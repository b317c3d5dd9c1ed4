#include "json.h"

#include <gtest/gtest.h>
#include <simdjson.h>

namespace rmq::ctl {

struct JsonDocument::Impl {
  simdjson::dom::parser parser;
  simdjson::dom::element root;

  template <class T>
  T get(std::string_view pointer) {
    T out{};
    auto error = root.at_pointer(pointer).get(out);
    EXPECT_FALSE(error) << pointer << ": " << simdjson::error_message(error);
    return out;
  }
};

JsonDocument::JsonDocument() : impl_(std::make_unique<Impl>()) {}
JsonDocument::~JsonDocument() = default;

bool JsonDocument::parse(std::string_view text) {
  return !impl_->parser.parse(text.data(), text.size()).get(impl_->root);
}
int64_t JsonDocument::integer(std::string_view p) {
  return impl_->get<int64_t>(p);
}
double JsonDocument::real(std::string_view p) {
  return impl_->get<double>(p);
}
bool JsonDocument::boolean(std::string_view p) {
  return impl_->get<bool>(p);
}
std::string JsonDocument::text(std::string_view p) {
  return std::string(impl_->get<std::string_view>(p));
}
bool JsonDocument::is_null(std::string_view p) {
  return impl_->get<simdjson::dom::element>(p).is_null();
}
bool JsonDocument::has(std::string_view p) {
  return !impl_->root.at_pointer(p).error();
}
size_t JsonDocument::size(std::string_view p) {
  return impl_->get<simdjson::dom::array>(p).size();
}

}  // namespace rmq::ctl

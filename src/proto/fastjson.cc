#include "proto/fastjson.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

#include "base/check.h"
#include "proto/json_text.h"

namespace rmq::proto {

// ----------------------------------------------------------------------------------------- normalising

namespace {

constexpr int depth_max = 64;
constexpr int key_depth_max = 2;  // each level of objects inside keys doubles the backslashes

void append_quoted(std::string& out, std::string_view text) {
  size_t at = out.size();
  out.resize(at + json_text::escaped_max(text.size()) + 2);
  char* p = out.data() + at;
  *p++ = '"';
  p = json_text::write_escaped(text, p);
  *p++ = '"';
  out.resize(static_cast<size_t>(p - out.data()));
}

// Reads one value after the other and writes it as JSON. Every function returns false at the first thing that
// makes no sense.
class Normaliser {
 public:
  explicit Normaliser(std::string_view text) : in_(text) {}

  bool document(std::string& out) {
    if (in_.starts_with("\xef\xbb\xbf")) in_.remove_prefix(3);
    return value(out, 0, 0) && (skip_blanks(), in_.empty());
  }

 private:
  void skip_blanks() {
    for (;;) {
      size_t n = 0;
      while (n < in_.size() && (in_[n] == ' ' || (in_[n] >= '\t' && in_[n] <= '\r'))) ++n;
      in_.remove_prefix(n);
      if (in_.starts_with("/*")) {
        size_t end = in_.find("*/", 2);
        in_.remove_prefix(end == std::string_view::npos ? in_.size() : end + 2);
      } else if (in_.starts_with("//")) {
        size_t end = in_.find('\n');
        in_.remove_prefix(end == std::string_view::npos ? in_.size() : end + 1);
      } else {
        return;
      }
    }
  }
  char peek() {
    skip_blanks();
    return in_.empty() ? '\0' : in_.front();
  }
  bool take(char c) {
    if (peek() != c) return false;
    in_.remove_prefix(1);
    return true;
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.' || c == '+' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
  }
  std::string_view word() {
    size_t n = 0;
    while (n < in_.size() && is_word(in_[n])) ++n;
    std::string_view w = in_.substr(0, n);
    in_.remove_prefix(n);
    return w;
  }

  bool value(std::string& out, int depth, int key_depth) {
    if (depth > depth_max) return false;
    switch (peek()) {
      case '{':
        return object(out, depth, key_depth);
      case '[':
        return array(out, depth, key_depth);
      case '"':
      case '\'': {
        std::string text;
        if (!string(text)) return false;
        append_quoted(out, text);
        return true;
      }
      default:
        return scalar(out);
    }
  }

  bool scalar(std::string& out) {
    std::string_view w = word();
    if (w.empty()) return false;
    if (w == "true" || w == "false" || w == "null") {
      out += w;
      return true;
    }
    if (w == "undefined" || w == "NaN") {
      out += "null";
      return true;
    }
    if (w.front() == '+') w.remove_prefix(1);
    if (w.size() > 1 && std::string_view("LSBFD").find(w.back()) != std::string_view::npos)
      w.remove_suffix(1);
    if (w.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return false;
    out += w;  // simdjson judges the number
    return true;
  }

  bool array(std::string& out, int depth, int key_depth) {
    take('[');
    out += '[';
    for (bool first = true; !take(']'); first = false) {
      if (!first) {
        if (!take(',')) return false;
        if (take(']')) break;
        out += ',';
      }
      if (!value(out, depth + 1, key_depth)) return false;
    }
    out += ']';
    return true;
  }

  bool object(std::string& out, int depth, int key_depth) {
    take('{');
    out += '{';
    for (bool first = true; !take('}'); first = false) {
      if (!first) {
        if (!take(',')) return false;
        if (take('}')) break;
        out += ',';
      }
      if (!key(out, depth, key_depth) || !take(':')) return false;
      out += ':';
      if (!value(out, depth + 1, key_depth)) return false;
    }
    out += '}';
    return true;
  }

  bool key(std::string& out, int depth, int key_depth) {
    std::string text;
    switch (peek()) {
      case '"':
      case '\'':
        if (!string(text)) return false;
        break;
      case '{':
      case '[':
        if (key_depth == key_depth_max || !value(text, depth + 1, key_depth + 1)) return false;
        break;
      default:
        text = word();
        if (text.empty()) return false;
    }
    append_quoted(out, text);
    return true;
  }

  // What stands between quotes of either kind, unescaped.
  bool string(std::string& text) {
    char quote = in_.front();
    size_t end = 1;
    bool escaped = false;
    while (end < in_.size() && in_[end] != quote) {
      escaped |= in_[end] == '\\';
      end += in_[end] == '\\' ? 2 : 1;
    }
    if (end >= in_.size()) return false;
    text = in_.substr(1, end - 1);
    in_.remove_prefix(end + 1);
    if (!escaped) return true;
    auto plain = json_text::unescape_in_place(text.data(), text.size(), text.find('\\'));
    if (!plain) return false;
    text.resize(plain->size());
    return true;
  }

  std::string_view in_;
};

// Lays a compact document out as fastjson's pretty form does.
std::string pretty(std::string_view json) {
  std::string out;
  size_t depth = 0;
  bool in_string = false;
  auto line = [&] {
    out += '\n';
    out.append(depth, '\t');
  };
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (in_string) {
      out += c;
      if (c == '\\') out += json[++i];
      in_string = c != '"';
    } else if (c == '{' || c == '[') {
      out += c;
      if (json[i + 1] == c + 2) {  // {} and [] stay together
        out += json[++i];
        continue;
      }
      ++depth;
      line();
    } else if (c == '}' || c == ']') {
      --depth;
      line();
      out += c;
    } else {
      out += c;
      if (c == ',') line();
      in_string = c == '"';
    }
  }
  return out;
}

}  // namespace

Result<std::string> normalise_fastjson(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  if (!Normaliser(text).document(out)) return fail(Errc::bad_input, "JSON text");
  return out;
}

// --------------------------------------------------------------------------------------------- writing

struct JsonWriter::Impl {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> plain{buffer};
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::ASCII<>> ascii{buffer};
  bool strict = false;

  template <class F>
  void with(F f) {
    check(strict ? f(ascii) : f(plain));
  }
  void string(std::string_view s, bool as_key) {
    auto put = [&](std::string_view t) {
      with([&](auto& w) {
        auto n = static_cast<rapidjson::SizeType>(t.size());
        const char* p = t.data() ? t.data() : "";
        return as_key ? w.Key(p, n) : w.String(p, n);
      });
    };
    if (json_text::is_valid_utf8(s)) return put(s);
    put(json_text::repaired_utf8(s));
  }
  void raw(std::string_view s, rapidjson::Type type) {
    with([&](auto& w) { return w.RawValue(s.data(), s.size(), type); });
  }
};

JsonWriter::JsonWriter(JsonStyle style) : impl_(std::make_unique<Impl>()), style_(style) {
  impl_->strict = style == JsonStyle::strict;
}
JsonWriter::~JsonWriter() = default;

void JsonWriter::begin_object() {
  impl_->with([](auto& w) { return w.StartObject(); });
}
void JsonWriter::end_object() {
  impl_->with([](auto& w) { return w.EndObject(); });
}
void JsonWriter::begin_array() {
  impl_->with([](auto& w) { return w.StartArray(); });
}
void JsonWriter::end_array() {
  impl_->with([](auto& w) { return w.EndArray(); });
}
void JsonWriter::key(std::string_view name) {
  impl_->string(name, true);
}

void JsonWriter::key_int(int64_t number) {
  std::string digits = std::to_string(number);
  if (style_ == JsonStyle::strict) return impl_->string(digits, true);
  impl_->raw(digits, rapidjson::kStringType);
}

void JsonWriter::key_object(std::string_view json) {
  if (style_ == JsonStyle::strict) return impl_->string(json, true);
  impl_->raw(json, rapidjson::kStringType);
}

void JsonWriter::text(std::string_view value) {
  impl_->string(value, false);
}
void JsonWriter::number(int64_t value) {
  impl_->with([&](auto& w) { return w.Int64(value); });
}
void JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
  impl_->with([&](auto& w) { return w.Double(value); });
}
void JsonWriter::boolean(bool value) {
  impl_->with([&](auto& w) { return w.Bool(value); });
}
void JsonWriter::null() {
  impl_->with([](auto& w) { return w.Null(); });
}
void JsonWriter::raw(std::string_view json) {
  impl_->raw(json, rapidjson::kObjectType);
}

std::string JsonWriter::take() {
  check(impl_->strict ? impl_->ascii.IsComplete() : impl_->plain.IsComplete());
  std::string s(impl_->buffer.GetString(), impl_->buffer.GetSize());
  impl_->buffer.Clear();
  impl_->plain.Reset(impl_->buffer);
  impl_->ascii.Reset(impl_->buffer);
  return style_ == JsonStyle::pretty ? pretty(s) : s;
}

}  // namespace rmq::proto

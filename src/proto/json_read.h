// Private to proto: reading bodies with simdjson as leniently as fastjson does. Numbers may be strings and
// strings numbers, enums names or ordinals, null is absent; what has no reading at all marks the document as
// bad, once, and the caller looks at the end. Included by .cc files only.
#pragma once

#include <simdjson.h>

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "proto/fastjson.h"

namespace rmq::proto {
struct TopicConfigSerializeWrapper;
}

namespace rmq::proto::json_read {

namespace dom = simdjson::dom;

class Value;

// One document being read. Text that is no JSON is normalised first.
class Document {
 public:
  Result<void> parse(std::string_view text);
  Value root();
  bool ok() const { return ok_; }
  void bad() { ok_ = false; }
  // Follows {"$ref":"$.a.b[0]"} of fastjson 1, which stands for an object that occurred before.
  dom::element resolved(dom::element e) const;
  // Counts a value that is read. References multiply a text: one that is read many times its own length is
  // bad, before it costs more.
  bool may_read() {
    if (++values_read_ > values_max_) ok_ = false;
    return ok_;
  }

 private:
  dom::parser parser_;
  dom::element root_;
  bool ok_ = true;
  uint64_t values_read_ = 0;
  uint64_t values_max_ = 0;
};

// A value of a document, or absent. Copies freely; lives as long as its document.
class Value {
 public:
  Value(Document* d, std::optional<dom::element> e) : doc_(d) {
    if (e && !e->is_null() && d->may_read()) e_ = d->resolved(*e);
  }

  bool present() const { return e_.has_value(); }
  Value operator[](std::string_view name) const {
    dom::object o;
    dom::element e;
    if (!e_ || e_->get(o) || o.at_key(name).get(e)) return {doc_, std::nullopt};
    return {doc_, e};
  }

  void read(std::string& out) const {
    std::string_view s;
    if (!e_) return;
    if (!e_->get(s)) {
      out.assign(s);
    } else if (e_->is_object() || e_->is_array()) {
      doc_->bad();
    } else {
      out = simdjson::minify(*e_);
    }
  }
  void read(bool& out) const {
    std::string_view s;
    int64_t n;
    if (!e_ || !e_->get(out)) return;
    if (!e_->get(s)) {
      out = s == "true" || s == "TRUE" || s == "True" || s == "1";
    } else if (!e_->get(n)) {
      out = n == 1;
    } else {
      doc_->bad();
    }
  }
  template <std::signed_integral T>
  void read(T& out) const {
    int64_t n = 0;
    if (!e_) return;
    if (!integer(n) || n < std::numeric_limits<T>::min() || n > std::numeric_limits<T>::max())
      return doc_->bad();
    out = static_cast<T>(n);
  }
  void read(double& out) const {
    std::string_view s;
    if (!e_ || !e_->get(out)) return;
    if (e_->get(s)) return doc_->bad();
    auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
    if (ec != std::errc() || end != s.data() + s.size()) doc_->bad();
  }
  template <class T>
  void read(std::optional<T>& out) const {
    if (e_) read(out.emplace());
  }
  // An enum by name or ordinal; an unknown one keeps the default, as fastjson reads it to null.
  template <class E, size_t N>
  void read_enum(E& out, const E (&all)[N]) const {
    std::string_view s;
    if (!e_) return;
    if (!e_->get(s)) {
      for (E e : all) {
        if (name_of(e) == s) out = e;
      }
    }
    int64_t n;
    if (integer(n) && n >= 0 && n < static_cast<int64_t>(N)) out = all[n];
  }
  template <class T>
  void read(std::vector<T>& out) const {
    each([&](Value v) { v.read(out.emplace_back()); });
  }

  // Elements of an array; anything else present is bad.
  template <class F>
  void each(F f) const {
    dom::array a;
    if (!e_) return;
    if (e_->get(a)) return doc_->bad();
    for (dom::element e : a) {
      if (!doc_->ok()) return;
      f(Value(doc_, e));
    }
  }
  // Members of an object: f(name, value).
  template <class F>
  void members(F f) const {
    dom::object o;
    if (!e_) return;
    if (e_->get(o)) return doc_->bad();
    for (dom::key_value_pair m : o) {
      if (!doc_->ok()) return;
      f(m.key, Value(doc_, m.value));
    }
  }
  void expect_object() const {
    if (!e_ || !e_->is_object()) doc_->bad();
  }
  bool is_array() const { return e_ && e_->is_array(); }
  std::string raw() const { return e_ ? std::string(simdjson::minify(*e_)) : std::string(); }
  void bad() const { doc_->bad(); }

 private:
  bool integer(int64_t& out) const {
    std::string_view s;
    double d;
    bool b;
    if (!e_->get(out)) return true;
    if (!e_->get(b)) return out = b, true;
    if (!e_->get(d)) {
      out = static_cast<int64_t>(std::abs(d) < 9e18 ? d : 0);
      return std::abs(d) < 9e18;
    }
    if (e_->get(s)) return false;
    auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
    return ec == std::errc() && end == s.data() + s.size();
  }
  Document* doc_;
  std::optional<dom::element> e_;
};

// Reads a whole body whose root is an object: f(root, out) fills it.
template <class T, class F>
Result<T> read_body(std::string_view text, F f) {
  Document doc;
  TRY(doc.parse(text));
  T out{};
  doc.root().expect_object();
  if (doc.ok()) f(doc.root(), out);
  if (!doc.ok()) return fail(Errc::bad_input, "JSON body: a member of the wrong type");
  return out;
}

// A TopicConfigSerializeWrapper, wherever it stands; its own parse() reads one that is the whole body.
void read_topics(Value v, TopicConfigSerializeWrapper& out);

// Reads a whole body that is an array of texts.
template <class T>
Result<std::vector<T>> read_array(std::string_view text) {
  Document doc;
  TRY(doc.parse(text));
  std::vector<T> out;
  doc.root().read(out);
  if (!doc.ok()) return fail(Errc::bad_input, "JSON body: an element of the wrong type");
  return out;
}

}  // namespace rmq::proto::json_read
